"""Impulses of contacts, limits and dry friction as functions of velocity, and their derivatives.

All impulses derive from a convex potential of the velocities at the end of the step, with a fixed
normal impulse that bounds friction (Castro and others 2024, *Irrotational contact fields*):

    normal    (bound - v_n)+ / R_n
    friction  -v_t min(1 / R_t, limit / |v_t|), limit = mu times the fixed normal impulse

A bound is the normal velocity at which a gap closes exactly at the end of the step, so that shapes
do not overlap. If shapes already overlap, the bound is the separating velocity that removes a
fraction of the overlap. Compliances R (velocity per unit impulse, in 1/kg) are fractions of the
inverse mass at a contact, or follow from a given stiffness and dissipation.
"""

from typing import Any, NamedTuple

import numpy as np

from chasles.expr import Number
from chasles.motion.geometry.closed_forms import less, maximum, minimum, select, sqrt

NORMAL, TANGENT = 1e-4, 2e-4
"""Normal and tangential compliance of a contact, relative to its inverse mass."""

RELEASE, FASTEST = 0.2, 0.5
"""Parameters of the penetration correction. One step corrects the fraction `RELEASE` of a
penetration, at a speed of at most `FASTEST` (m/s or rad/s)."""

SLOW = 1e-36
"""Lower bound on squared speeds, which keeps inverse speeds finite even in float32."""

LIGHTEST, HEAVIEST = 1e12, 1e-12
"""Upper and lower limit on the inverse masses (1/kg or 1/(kg m2)) from which compliances are
computed. With these limits, compliances and their squares are finite and nonzero, even in float32.
"""

NEGLIGIBLE = 1e-9
"""Threshold for friction coefficients (dimensionless or m). Friction with a smaller coefficient is
omitted, to avoid underflow."""

IMPACT = 2.0
"""Threshold for the approach speed, as a multiple of the speed that gravity adds in a step.
Restitution acts only at higher speeds."""


def stiffness(fraction: float, weight: Number) -> Number:
    """Return the impulse per unit velocity, 1 / (`fraction` * `weight`).

    `weight` is the inverse mass, which is clamped (see `bounded`).
    """
    return 1.0 / (fraction * bounded(weight))


def bounded(weight: Number) -> Number:
    """Return an inverse mass clamped to the range from `HEAVIEST` to `LIGHTEST`."""
    return minimum(maximum(weight, HEAVIEST), LIGHTEST)


def bound(gap: Number, dt: float) -> Number:
    """Return the smallest normal velocity that a contact with a given gap allows after a step."""
    out = minimum((-RELEASE / dt) * gap, FASTEST)
    return select(less(0.0, gap), (-1.0 / dt) * gap, out)


class Normal(NamedTuple):
    """Unilateral velocity constraint with compliance R: the impulse is max(bound - v, 0) / R.

    Attributes
    ----------
    bound : Number
        Lower bound on the normal velocity.
    stiffness : Number
        Inverse compliance 1 / R.
    """

    bound: Number
    stiffness: Number

    def impulse(self, v: Number) -> Number:
        """Return the normal impulse, which pushes the bodies apart, at the normal velocity v."""
        return maximum(self.bound - v, 0.0) * self.stiffness

    def slope(self, v: Number) -> Number:
        """Return the negative derivative of the impulse with respect to velocity."""
        return select(less(v, self.bound), self.stiffness, 0.0)


class Friction(NamedTuple):
    """Friction impulse of magnitude up to `limit` that opposes a velocity of one or two components.

    Up to the limit, the impulse is proportional to the velocity. If all contacts stick, the
    impulses are therefore the solution of a linear system. The potential of the impulse is convex
    and differentiable.
    """

    limit: Number
    stiffness: Number

    def factor(self, v: Any) -> tuple[Number, Number, Number]:
        """Return the impulse per unit speed, the inverse of the speed, and 1 for a sliding contact.

        The third result is 0 if the contact sticks. The other results then use the speed at which
        sliding begins instead of the actual speed.
        """
        square, slow = _square(v), self.limit * (1.0 / self.stiffness)
        least = maximum(slow * slow, SLOW)
        inverse = 1.0 / sqrt(maximum(square, least))
        return self.limit * inverse, inverse, less(least, square)

    def impulse(self, v: Any) -> np.ndarray:
        """Return the friction impulse at a tangential velocity."""
        return -self.factor(v)[0] * np.asarray(v)


def _square(v: Any) -> Number:
    total: Number = 0.0
    for x in v:
        total = total + x * x
    return total
