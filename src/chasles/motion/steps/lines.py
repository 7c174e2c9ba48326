"""Limits and dry friction of joints and tendons in a step, along sums of joint velocities."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from chasles.algorithms.spatial.lines import Line, lines
from chasles.expr import Arena, Number
from chasles.functions.programs import program
from chasles.model import Model
from chasles.motion.geometry.kinematics import result
from chasles.motion.steps.algebra import absent
from chasles.motion.steps.bodies import neutral_posture, numbers_of
from chasles.motion.steps.impulses import NORMAL, TANGENT, Friction, Normal, bound

Row = tuple[tuple[int, Number], ...]
"""A velocity as a sum of joint velocities: their numbers and factors."""


def speed_along(row: Row, v: np.ndarray) -> Number:
    """The velocity of a row."""
    found: Number = 0.0
    for k, a in row:
        found = found + a * v[k]
    return found


class Stop(NamedTuple):
    """A joint or a tendon at a limit: the velocity at which it leaves, bound, inverse mass."""

    row: Row
    bound: Number
    weight: float

    @property
    def term(self) -> Normal:
        """The impulse."""
        return Normal(self.bound, 1.0 / (NORMAL * self.weight))


class Dry(NamedTuple):
    """Dry friction of a joint or a tendon: its velocity, the largest impulse, stiffness at rest."""

    row: Row
    limit: float
    stiffness: float

    @property
    def term(self) -> Friction:
        """The impulse."""
        return Friction(self.limit, self.stiffness)


def stiffen(H: np.ndarray, row: Row, slope: Number) -> None:
    """Add the stiffness slope J'J of a row J to a matrix."""
    for i, a in row:
        for j, b in row:
            H[i, j] = H[i, j] + a * b * slope


class Drawn(NamedTuple):
    """A length on symbols: its velocity, itself, and the inverse mass that it moves."""

    line: Line
    row: Row
    length: Number
    weight: float


def drawn(
    model: Model, arena: Arena, q: np.ndarray, v: np.ndarray, inverse: np.ndarray
) -> list[Drawn]:
    """Tendons and limited ball joints; inverse: of the mass matrix at the neutral posture."""
    every = lines(model)
    if not every:
        return []
    found, n = program(model, "line_motion"), model.nv
    entries = result(found, arena, {"q": q, "qd": v}).reshape(len(every), n + 2)
    still = numbers_of(found, q=neutral_posture(model), qd=np.zeros(n)).reshape(entries.shape)
    made = []
    for line, here, neutral in zip(every, entries, still, strict=True):
        row = tuple((k, here[k]) for k in range(n) if not absent(here[k]))
        if row:
            made.append(Drawn(line, row, here[n], _weight(neutral[:n], row, inverse)))
    return made


def _weight(J: np.ndarray, row: Row, inverse: np.ndarray) -> float:
    """J M^-1 J' at the neutral posture; where that has no direction, the least of its joints."""
    found = float(J @ inverse @ J) if np.isfinite(J).all() else 0.0
    places = [k for k, _ in row]
    return found if found > 0.0 else max(float(np.min(np.diag(inverse)[places])), 1e-12)


def joint_stops(
    limits: Sequence[tuple[int, int, float, float]], q: np.ndarray, inverse: np.ndarray, dt: float
) -> list[Stop]:
    """Limits of joints: velocity, coordinate, lower and upper limit of each."""
    found = []
    for place, coordinate, *ends in limits:
        for sign, limit in zip((1.0, -1.0), ends, strict=True):
            if np.isfinite(limit):
                gap = sign * (q[coordinate] - limit)
                weight = float(inverse[place, place])
                found.append(Stop(((place, sign),), bound(gap, dt), weight))
    return found


def joint_friction(friction: np.ndarray, inverse: np.ndarray, dt: float) -> list[Dry]:
    """Dry friction of joints (nv,), in N m or N."""
    return [
        Dry(((int(k), 1.0),), dt * float(friction[k]), 1.0 / (TANGENT * inverse[k, k]))
        for k in np.flatnonzero(friction)
    ]


def line_stops(every: Sequence[Drawn], dt: float) -> list[Stop]:
    """Limits of tendons and ball joints."""
    found = []
    for line, row, length, weight in every:
        for sign, limit in zip((1.0, -1.0), line.limits, strict=True):
            if np.isfinite(limit):
                away = tuple((k, sign * a) for k, a in row)
                found.append(Stop(away, bound(sign * (length - limit), dt), weight))
    return found


def line_friction(every: Sequence[Drawn], dt: float) -> list[Dry]:
    """Dry friction of tendons."""
    return [
        Dry(row, dt * line.tendon.data.friction, 1.0 / (TANGENT * weight))
        for line, row, _, weight in every
        if line.tendon is not None and line.tendon.data.friction
    ]
