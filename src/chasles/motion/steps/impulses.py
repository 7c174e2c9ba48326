"""Impulses of contact, of stops and of dry friction as functions of velocities, and their slopes.

All derive from a convex potential of the velocities at the end of the step, in which the normal
impulse that bounds friction is held (Castro and others 2024, *Irrotational contact fields*):

    normal    (bound - v_n)+ / R_n
    friction  -min(limit / |v_t|, 1 / R_t) v_t, limit = mu times the held normal impulse

A bound is the velocity at which a gap closes within the step, so that nothing penetrates; where
shapes overlap, one at which a part of the overlap is released. Compliances R are parts of the
inverse mass that a contact feels, or those of a given stiffness and dissipation.
"""

from typing import Any, NamedTuple

import numpy as np

from chasles.expr import Number
from chasles.motion.geometry.closed_forms import absolute, less, maximum, minimum, select, sqrt

NORMAL, TANGENT = 1e-4, 1e-3
"""Compliance of a contact, normal and tangential, as parts of its inverse mass."""

RELEASE, FASTEST = 0.2, 0.5
"""The part of an overlap that one step releases, and the largest speed of release (m/s, rad/s)."""

SLOW = 1e-150
"""Added to squares of speeds, so that their roots have an inverse."""

IMPACT = 2.0
"""Restitution acts above this many times the speed that gravity gives in a step."""


def bound(gap: Number, dt: float) -> Number:
    """The least velocity along the normal at the end of a step."""
    out = minimum((-RELEASE / dt) * gap, FASTEST)
    return select(less(0.0, gap), (-1.0 / dt) * gap, out)


class Normal(NamedTuple):
    """A unilateral constraint: bound, and the inverse compliance 1 / R."""

    bound: Number
    stiffness: Number

    def impulse(self, v: Number) -> Number:
        """What pushes apart at a velocity."""
        return maximum(self.bound - v, 0.0) * self.stiffness

    def slope(self, v: Number) -> Number:
        """The decrease of the impulse with the velocity."""
        return select(less(v, self.bound), self.stiffness, 0.0)


class Huber(NamedTuple):
    """Friction along one direction: at most `limit`, with stiffness near rest."""

    limit: Number
    stiffness: Number

    def impulse(self, v: Number) -> Number:
        """What opposes a velocity."""
        return -maximum(minimum(self.stiffness * v, self.limit), -self.limit)

    def slope(self, v: Number) -> Number:
        """The decrease of the impulse with the velocity."""
        return select(less(absolute(v) * self.stiffness, self.limit), self.stiffness, 0.0)


class Disc(NamedTuple):
    """Friction in a plane: at most `limit` against the direction of motion."""

    limit: Number
    stiffness: Number

    def factor(self, v: Any) -> tuple[Number, Number]:
        """k of the impulse -k v, and the inverse of the speed."""
        inverse = 1.0 / sqrt(v[0] * v[0] + v[1] * v[1] + SLOW)
        return minimum(self.limit * inverse, self.stiffness), inverse

    def impulse(self, v: Any) -> np.ndarray:
        """What opposes a velocity (2,)."""
        return -self.factor(v)[0] * np.asarray(v)

    def slope(self, v: Any) -> tuple[Number, Number, np.ndarray]:
        """k, s and t of the slope k I - s t t', t the direction of motion."""
        k, inverse = self.factor(v)
        slides = select(less(k, self.stiffness), k, 0.0)
        return k, slides, np.asarray(v) * inverse
