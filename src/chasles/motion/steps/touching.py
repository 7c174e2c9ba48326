"""Contact slots (potential contact points) in a Newton step: impulses and their linearization."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.expr import Number, Scalar
from chasles.motion.contact.pairs import Compliant, Rigid
from chasles.motion.geometry.closed_forms import (
    contact_axes,
    cross,
    less,
    less_equal,
    select,
    sqrt,
)
from chasles.motion.steps.algebra import dot, skew, zeros
from chasles.motion.steps.impulses import (
    NEGLIGIBLE,
    NORMAL,
    TANGENT,
    Friction,
    Normal,
    bound,
)
from chasles.motion.steps.spots import Spot

PLANAR, AXIAL = slice(0, 2), slice(2, 3)
"""Slices that select the two tangents and the normal from the axes of a contact."""

CREEP = 100.0
"""Slip speed above which a closed contact is expected to slide, as a multiple of the largest speed
at which the contact sticks under its load.
"""

FEW = 1
"""Maximum number of potential contact points between two bodies for which each point has its own
Jacobian.

If there are more points, all of them share the Jacobian of the relative motion of the bodies.
"""


class Touch(NamedTuple):
    """Potential contact point (contact slot) in a time step.

    Attributes
    ----------
    carrier : int
        Index of the Jacobian of the relative motion in the list of all Jacobians.
    point : array, shape (3,)
        Position of the contact relative to the origin of the Jacobians, in world axes.
    axes : array, shape (3, 3)
        Two tangents and the normal, as rows.
    direct : bool
        True if the Jacobian is that of the contact point along `axes`, shape (3, nv). Otherwise, it
        is the spatial Jacobian between the bodies, shape (6, nv).
    bound : Number
        Lower bound on the normal velocity at the end of the step.
    stiffness : Number
        Normal impulse per unit of velocity below the bound.
    law : Rigid | Compliant
        Contact law.
    weight : Number
        Inverse mass (1/kg) at the contact.
    friction : Number
        Coefficient of sliding friction.
    """

    carrier: int
    point: np.ndarray
    axes: np.ndarray
    bound: Number
    stiffness: Number
    law: Rigid | Compliant
    weight: Number
    friction: Number
    direct: bool = False

    @property
    def normal(self) -> Normal:
        """Law for the normal impulse."""
        return Normal(self.bound, self.stiffness)

    @property
    def turns(self) -> bool:
        """Return True if the contact law includes torsional or rolling friction."""
        return _counts(self.law.torsion) or _counts(self.law.rolling)

    @property
    def directions(self) -> int:
        """Number of velocity components that friction opposes: sliding, torsional and rolling."""
        law = self.law
        return 2 * _counts(self.friction) + _counts(law.torsion) + 2 * _counts(law.rolling)

    def frictions(self, push: Number, u: np.ndarray, w: np.ndarray) -> "list[Rubbing]":
        """Return the friction terms (sliding, torsional, rolling) at given velocities.

        `push` is the normal impulse that bounds friction. `u` and `w` are the linear and angular
        velocity along the axes of the contact.
        """
        law, stiff, found = self.law, 1.0 / (TANGENT * self.weight), []
        for coefficient, moment, velocity, which, arm in (
            (self.friction, False, u, PLANAR, 1.0),
            (law.torsion, True, w, AXIAL, law.torsion),
            (law.rolling, True, w, PLANAR, law.rolling),
        ):
            if _counts(coefficient):
                friction = Friction(coefficient * push, arm * arm * stiff)
                found.append(Rubbing(moment, which, velocity[which], friction, coefficient))
        return found


def _counts(coefficient: Number) -> bool:
    return isinstance(coefficient, Scalar) or coefficient > NEGLIGIBLE


class Coefficients(NamedTuple):
    """Coefficient of sliding friction and stiffness (N/m) of a contact, as inputs of the step."""

    friction: Number
    stiffness: Number


def touched(
    carrier: int,
    spot: Spot,
    origin: np.ndarray,
    law: Rigid | Compliant,
    weight: Number,
    dt: float,
    own: Coefficients | None = None,
) -> Touch:
    """Return the slot of a potential contact point, with its position relative to `origin`.

    The normal impulse depends on the normal velocity at the end of the step. `own`, if given,
    replaces the friction and stiffness of the contact law.
    """
    axes = contact_axes(np.asarray(spot.normal))
    if isinstance(law, Compliant):
        time = dt + law.relaxation
        ends = ((-1.0 / time) * spot.gap, dt * (own.stiffness if own else law.stiffness) * time)
    else:
        ends = (bound(spot.gap, dt), 1.0 / (NORMAL * weight))
    friction = own.friction if own else law.friction
    return Touch(carrier, spot.point - origin, axes, *ends, law, weight, friction)


class Rubbing(NamedTuple):
    """One kind of friction at a contact: sliding, torsional or rolling.

    Attributes
    ----------
    moment : bool
        True if friction is a moment (torsional or rolling).
    which : slice
        Axes of the contact along which friction acts: `PLANAR` or `AXIAL`.
    velocity : np.ndarray
        Velocity that friction opposes, along these axes.
    law : Friction
        Impulse as a function of the velocity.
    coefficient : Number
        Friction coefficient (dimensionless for sliding, otherwise in m).
    """

    moment: bool
    which: slice
    velocity: np.ndarray
    law: Friction
    coefficient: Number


class Slope(NamedTuple):
    """Scale factors for the derivatives of friction in a Newton step; 1 for an exact Jacobian.

    Attributes
    ----------
    sliding : Number
        Factor for the derivative with respect to the sliding velocity.
    push : Number
        Factor for the derivative with respect to the normal impulse.
    """

    sliding: Number = 1.0
    push: Number = 1.0


class Rub(NamedTuple):
    """Linearized friction at a contact.

    Attributes
    ----------
    of : Rubbing
        The kind of friction that is linearized.
    impulse : np.ndarray
        Friction impulse at the point of linearization.
    stiffness : Number
        Friction impulse per unit velocity across the sliding direction, or in all directions while
        the contact sticks.
    direction : np.ndarray
        Sliding direction, zero while the contact sticks.
    along : Number
        Reduction of `stiffness` along the sliding direction.
    growth : Number
        Derivative of the impulse with respect to the normal impulse.
    """

    of: Rubbing
    impulse: np.ndarray
    stiffness: Number
    direction: np.ndarray
    along: Number
    growth: Number


class Near(NamedTuple):
    """Linearized impulse at one contact point.

    Attributes
    ----------
    push : Number
        Normal impulse.
    slope : Number
        Decrease in the normal impulse per unit of normal velocity.
    rubs : list[Rub]
        Linearized friction terms.
    """

    push: Number
    slope: Number
    rubs: list[Rub]

    @property
    def directions(self) -> list[Number]:
        """Components of each friction term's sliding direction; zero while the contact sticks."""
        return [x for rub in self.rubs for x in rub.direction]

    @property
    def impulses(self) -> tuple[np.ndarray, np.ndarray]:
        """Linear and angular impulse of the contact, along the contact axes."""
        linear, turning = zeros(3), zeros(3)
        linear[2] = self.push
        for rub in self.rubs:
            (turning if rub.of.moment else linear)[rub.of.which] = rub.impulse
        return linear, turning


def direct(
    carriers: list[np.ndarray], touches: list[Touch]
) -> tuple[list[np.ndarray], list[Touch]]:
    """Replace each Jacobian that few contacts share with one Jacobian per contact (`Touch.direct`).

    Contacts with torsional or rolling friction keep the shared Jacobian. Return the new lists of
    Jacobians and contacts.
    """
    counts = Counter(touch.carrier for touch in touches)
    every: list[np.ndarray] = []
    found: list[Touch] = []
    known: dict[int, int] = {}
    for touch in touches:
        J = carriers[touch.carrier]
        if counts[touch.carrier] <= FEW and not touch.turns:
            J = touch.axes @ (J[3:] - skew(touch.point) @ J[:3])
            found.append(touch._replace(carrier=len(every), direct=True))
            every.append(J)
            continue
        if touch.carrier not in known:
            known[touch.carrier] = len(every)
            every.append(J)
        found.append(touch._replace(carrier=known[touch.carrier]))
    return every, found


def linearized(
    touch: Touch,
    u: np.ndarray,
    w: np.ndarray,
    limiting: Any,
    slope: Slope,
    last: Sequence[Number] = (),
    again: Number = 0.0,
) -> Near:
    """Linearize the impulse of a contact about its linear velocity u and angular velocity w.

    Parameters
    ----------
    limiting : Any
        Function of the contact and its normal impulse. It returns the normal impulse that bounds
        friction, and the derivative of this bound.
    last : Sequence[Number]
        Sliding directions in the last iteration. If a direction has reversed, the contact is
        treated as sticking, because the contact came to rest within the last iteration.
    again : Number
        1 if iterations alternate between the same states. In this case, a contact that opened while
        sticking is treated as closed and sliding.
    """
    push, grown = touch.normal.impulse(u[2]), touch.normal.slope(u[2])
    limit, rate = limiting(touch, push)
    opened: Number = 0.0
    if len(last) and _counts(touch.friction):
        stuck = less(dot(last[:2], last[:2]), 0.5)
        opened = again * stuck * less_equal(touch.bound, u[2])
        push = select(opened, (touch.bound - u[2]) * touch.stiffness, push)
        grown = select(opened, touch.stiffness, grown)
    rubs, start = [], 0
    for rubbing in touch.frictions(limit, u, w):
        v, law = rubbing.velocity, rubbing.law
        k, inverse, slides = law.factor(v)
        if len(last):
            back = less(dot(v, last[start : start + len(v)]), 0.0)
            k, slides = select(back, law.stiffness, k), select(back, 0.0, slides)
            start += len(v)
        growth, z = slope.push * rubbing.coefficient * rate, slides * inverse * v
        impulse = select(opened, -rubbing.coefficient * push * z, -k * v)
        rubs.append(Rub(rubbing, impulse, k, z, slope.sliding * k, growth))
    return Near(push, grown, rubs)


def expected(touch: Touch, u: np.ndarray, w: np.ndarray, slack: Number, before: np.ndarray) -> Near:
    """Return a contact slot, linearized for the contact state expected in the step.

    `before` is the impulse of the slot in the previous step along the world axes, or zeros. The
    normal component of this impulse, if positive, is the load that determines how friction changes
    as the sliding direction turns.

    The contact is expected to act if a velocity change of `slack` (m/s) would close it. The
    contact is expected to stick if the friction of the corresponding normal impulse could stop its
    slip. However, a closed contact is expected to slide if it slips faster than `CREEP` times the
    largest velocity at which it sticks under its load.
    """
    near, closed = less(u[2] - touch.bound, slack), less(u[2], touch.bound)
    slope = touch.stiffness * near
    push, rubs = (touch.bound - u[2]) * slope, []
    load = dot(touch.axes[2], before)
    for rubbing in touch.frictions(slack / touch.weight, u, w):
        v, law = rubbing.velocity, rubbing.law
        limit = select(less(0.0, load), rubbing.coefficient * load, law.limit)
        speed = sqrt(dot(v, v))
        slow = less_equal(speed * (TANGENT * law.stiffness), law.limit)
        creeps = less_equal(speed * law.stiffness, CREEP * rubbing.coefficient * push)
        sticks = slow * select(closed, creeps, 1.0)
        inverse = select(sticks, 0.0, 1.0 / select(sticks, 1.0, speed))
        z, k = inverse * v, near * select(sticks, law.stiffness, limit * inverse)
        impulse = select(sticks, -k * v, -rubbing.coefficient * push * z)
        rubs.append(Rub(rubbing, impulse, k, z, k, rubbing.coefficient))
    return Near(push, slope, rubs)


class Rows(NamedTuple):
    """Negative derivative of a slot's generalized impulse with respect to joint velocities.

    The derivative (nv, nv) of a slot with its own Jacobian is l'n + sum of k r'r.

    Attributes
    ----------
    symmetric : list[tuple[Number, np.ndarray]]
        Pairs (k, r). With friction, the rows r are along and across the sliding direction.
    left : np.ndarray | None
        The row l, or None if there is no friction.
    normal : np.ndarray
        The row n.
    """

    symmetric: list[tuple[Number, np.ndarray]]
    left: np.ndarray | None
    normal: np.ndarray


def rows_of(J: np.ndarray, near: Near) -> Rows:
    """Return -dp/dv for the generalized impulse p of one linearized contact, as `Rows`.

    J (3, nv) is the Jacobian of the contact point, along the contact axes.
    """
    x, y, n = J
    if not near.rubs:
        return Rows([(near.slope, n)], None, n)
    (rub,) = near.rubs
    a, b = rub.direction
    slides = a * a + b * b
    a = a + (1.0 - slides)  # while the contact sticks, the direction is arbitrary
    along, across = a * x + b * y, a * y - b * x
    left = near.slope * (n - rub.growth * slides * along)
    stiffness = rub.stiffness - rub.along * slides
    return Rows([(stiffness, along), (rub.stiffness, across)], left, n)


def spatial_stiffness(touch: Touch, near: Near) -> np.ndarray:
    """Return the negative derivative (6, 6) of the contact impulse with respect to velocity.

    Spatial impulse and velocity are both about the origin of the Jacobians.
    """
    E, P = touch.axes, skew(touch.point)
    n = E[2]
    normal = np.outer(n, n)
    pushed = near.slope * np.concatenate([cross(touch.point, n), n])
    G: np.ndarray = near.slope * normal
    B: np.ndarray = zeros(3, 3)
    turning: np.ndarray = zeros(6, 6)
    for rub in near.rubs:
        axes = E[rub.of.which]
        z = rub.direction @ axes
        t = rub.along * z
        K = rub.stiffness * (np.eye(3) - normal if rub.of.which == PLANAR else normal)
        if rub.of.moment:
            B = B + K
            left, right = (np.concatenate([x, zeros(3)]) for x in (z, t))
        else:
            G = G + K
            left, right = (np.concatenate([cross(touch.point, x), x]) for x in (z, t))
        turning = turning + np.outer(left, right + rub.growth * pushed)
    A = P @ G
    return np.block([[A @ P.T + B, A], [A.T, G]]) - turning
