"""Impulses of contact, of stops and of dry friction as functions of velocities, and their slopes.

All derive from a convex potential of the velocities at the end of the step, in which the normal
impulse that bounds friction is held (Castro and others 2024, *Irrotational contact fields*):

    normal    (bound - v_n)+ / R_n
    friction  -limit v_t / sqrt(v_t^2 + (limit R_t)^2), limit = mu times the held normal impulse

A bound is the velocity at which a gap closes within the step, so that nothing penetrates; where
shapes overlap, one at which a part of the overlap is released. Compliances R are parts of the
inverse mass that a contact feels, or those of a given stiffness and dissipation.
"""

from typing import Any, NamedTuple

import numpy as np

from chasles.expr import Number
from chasles.motion.geometry.closed_forms import less, maximum, minimum, select, sqrt

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
        """Return the separating impulse at a velocity."""
        return maximum(self.bound - v, 0.0) * self.stiffness

    def slope(self, v: Number) -> Number:
        """The decrease of the impulse with the velocity."""
        return select(less(v, self.bound), self.stiffness, 0.0)


class Friction(NamedTuple):
    """Friction against a velocity of one or two entries: at most `limit`, with stiffness at rest.

    Its potential limit sqrt(v^2 + s^2), s = limit / stiffness, has all derivatives, so that
    Newton's method does not run to and fro where sticking begins.
    """

    limit: Number
    stiffness: Number

    def factor(self, square: Number) -> tuple[Number, Number]:
        """k of the impulse -k v and 1 / (v^2 + s^2), of the square of the speed."""
        slow = self.limit / self.stiffness
        inverse = 1.0 / (square + slow * slow + SLOW)
        return self.limit * sqrt(inverse), inverse

    def impulse(self, v: Any) -> np.ndarray:
        """Return the impulse that opposes a velocity."""
        return -self.factor(_square(v))[0] * np.asarray(v)

    def slope(self, v: Any) -> tuple[Number, Number]:
        """k and c of the slope k (I - c v v')."""
        return self.factor(_square(v))


def _square(v: Any) -> Number:
    total: Number = 0.0
    for x in v:
        total = total + x * x
    return total
