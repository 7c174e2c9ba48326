"""Limits and dry friction of joints and tendons in a time step."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from chasles.algorithms.spatial.lines import Line, lines
from chasles.expr import Arena, Number
from chasles.functions.programs import program
from chasles.model import Model
from chasles.motion.geometry.closed_forms import absolute, less, maximum, minimum
from chasles.motion.steps.algebra import absent, dot
from chasles.motion.steps.bodies import Own, computed, neutral_posture, numbers_of
from chasles.motion.steps.impulses import NORMAL, TANGENT, Normal, bound, stiffness

Row = tuple[tuple[int, Number], ...]
"""Linear combination of joint velocities, as pairs (index, coefficient) of the nonzero terms."""


def speed_along(row: Row, v: np.ndarray) -> Number:
    """Evaluate a linear combination of the joint velocities v."""
    found: Number = 0.0
    for k, a in row:
        found = found + a * v[k]
    return found


class Stop(NamedTuple):
    """Limit of a joint or tendon.

    Attributes
    ----------
    row : Row
        Velocity away from the limit, as a combination of joint velocities.
    bound : Number
        Lower bound on that velocity.
    weight : Number
        Inverse inertia along `row`.
    """

    row: Row
    bound: Number
    weight: Number

    @property
    def term(self) -> Normal:
        """Unilateral constraint on the velocity away from the limit."""
        return Normal(self.bound, stiffness(NORMAL, self.weight))


class Dry(NamedTuple):
    """Dry friction of joints and tendons.

    The impulse is any value between -limit and limit while the velocity along `row` is zero.
    Otherwise, the impulse has the magnitude `limit` and opposes the velocity.

    Attributes
    ----------
    row : Row
        Velocity that friction opposes, as a combination of joint velocities.
    limit : Number
        Largest impulse.
    stiffness : Number
        Impulse per unit velocity in a regularized law (`impulse`) that only iterations use.
    """

    row: Row
    limit: Number
    stiffness: Number

    @property
    def combined(self) -> bool:
        """Return True if friction opposes a combination of several velocity coordinates.

        Otherwise, friction opposes one velocity coordinate, with the coefficient 1.
        """
        return len(self.row) > 1

    def opposing(self, u: Number, margin: float) -> Number:
        """Return the impulse of sliding friction at the velocity u.

        The impulse is 0 if u is so small that a fraction `margin` of the limit would stop it.
        """
        momentum = TANGENT * self.stiffness * u
        least = margin * self.limit
        return (less(momentum, -least) - less(least, momentum)) * self.limit

    def bounded(self, impulse: Number) -> Number:
        """Return the closest impulse whose magnitude is at most `limit`."""
        return maximum(minimum(impulse, self.limit), -self.limit)

    def impulse(self, center: Number, u: Number) -> Number:
        """Return the regularized impulse at the velocity u, with the impulse `center` at rest.

        The exact law is satisfied if u is zero, or if `center` is the limit that opposes u.
        """
        return self.bounded(center - self.stiffness * u)


def stiffen(H: np.ndarray, row: Row, slope: Number) -> None:
    """Add slope * J'J to the matrix H in place, where `row` contains the nonzero entries of J."""
    for i, a in row:
        for j, b in row:
            H[i, j] = H[i, j] + a * b * slope


class Drawn(NamedTuple):
    """Length of a tendon, or angle of a ball joint with a limit, as an expression.

    Attributes
    ----------
    line : Line
        The tendon or joint.
    row : Row
        Rate of the length or angle, as a combination of joint velocities.
    length : Number
        Length (m) of the tendon, or angle (rad) of the joint.
    weight : Number
        Inverse inertia along `row`, in the neutral posture.
    """

    line: Line
    row: Row
    length: Number
    weight: Number


def drawn(
    model: Model, arena: Arena, q: np.ndarray, v: np.ndarray, inverse: np.ndarray, own: Own
) -> list[Drawn]:
    """Return the tendons and the ball joints with limits as `Drawn` objects.

    `inverse` is the inverse of the mass matrix in the neutral posture.
    """
    every = lines(model)
    if not every:
        return []
    n, rest = model.nv, {"q": neutral_posture(model), "qd": np.zeros(model.nv)}
    shape = len(every), n + 2
    entries = computed(model, "line_motion", arena, {"q": q, "qd": v}, own).reshape(shape)
    if own:
        still = computed(model, "line_motion", arena, rest, own).reshape(shape)
    else:
        still = numbers_of(program(model, "line_motion"), **rest).reshape(shape)
    made = []
    for line, here, neutral in zip(every, entries, still, strict=True):
        row = tuple((k, here[k]) for k in range(n) if not absent(here[k]))
        if row:
            made.append(Drawn(line, row, here[n], _weight(neutral[:n], row, inverse)))
    return made


def _weight(J: np.ndarray, row: Row, inverse: np.ndarray) -> Number:
    """Return the inverse inertia J M^-1 J' along a row J of the Jacobian in the neutral posture.

    If J is not finite or the result is zero, return the smallest inverse inertia of the joints in
    `row`.
    """
    if inverse.dtype == object:
        return maximum(dot(J, [dot(line, J) for line in inverse]), 1e-12)
    found = float(J @ inverse @ J) if np.isfinite(J).all() else 0.0
    places = [k for k, _ in row]
    return found if found > 0.0 else max(float(np.min(np.diag(inverse)[places])), 1e-12)


def joint_stops(
    limits: Sequence[tuple[int, int, float, float]], q: np.ndarray, inverse: np.ndarray, dt: float
) -> list[Stop]:
    """Return the finite joint limits as `Stop` objects.

    `limits` contains the velocity index, position index, lower and upper limit of each joint.
    `inverse` is the inverse of the mass matrix.
    """
    found = []
    for place, coordinate, *ends in limits:
        for sign, limit in zip((1.0, -1.0), ends, strict=True):
            if np.isfinite(limit):
                gap = sign * (q[coordinate] - limit)
                found.append(Stop(((place, sign),), bound(gap, dt), inverse[place, place]))
    return found


def joint_friction(friction: np.ndarray, inverse: np.ndarray, dt: float) -> list[Dry]:
    """Return the dry friction of joints as `Dry` objects.

    `friction` (nv,) contains the magnitudes in N m or N, and `inverse` is the inverse of the mass
    matrix.
    """
    return [
        Dry(((k, 1.0),), dt * limit, stiffness(TANGENT, inverse[k, k]))
        for k, limit in enumerate(friction)
        if not absent(limit)
    ]


def gathered(every: Sequence[Dry], weight: Callable[[int], Number]) -> list[Dry]:
    """Add up the dry friction that opposes the same velocity coordinate.

    Friction that opposes a combination of several coordinates remains unchanged. `weight` returns
    the inverse inertia of a coordinate.
    """
    limits: dict[int, Number] = {}
    for dry in every:
        if len(dry.row) == 1:
            ((k, a),) = dry.row
            limits[k] = limits.get(k, 0.0) + absolute(a) * dry.limit
    found = [Dry(((k, 1.0),), x, stiffness(TANGENT, weight(k))) for k, x in limits.items()]
    return found + [dry for dry in every if dry.combined]


def line_stops(every: Sequence[Drawn], dt: float) -> list[Stop]:
    """Return the limits of tendons and ball joints as `Stop` objects."""
    found = []
    for line, row, length, weight in every:
        for sign, limit in zip((1.0, -1.0), line.limits, strict=True):
            if np.isfinite(limit):
                away = tuple((k, sign * a) for k, a in row)
                found.append(Stop(away, bound(sign * (length - limit), dt), weight))
    return found


def line_friction(every: Sequence[Drawn], dt: float) -> list[Dry]:
    """Return the dry friction of tendons as `Dry` objects."""
    return [
        Dry(row, dt * line.tendon.data.friction, stiffness(TANGENT, weight))
        for line, row, _, weight in every
        if line.tendon is not None and line.tendon.data.friction
    ]
