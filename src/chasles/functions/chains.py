"""Chains of revolute and prismatic joints by their axes, and the relative positions of these.

A chain is the product of exponentials E1(q1) E2(q2) ...: axes are those of the home posture, in
which all positions are 0. Lengths are in units of the size of the chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.trigonometric import Angle, between


class Displacement(NamedTuple):
    """A rotation and a translation: x becomes R x + p."""

    R: Matrix
    p: Vector

    @staticmethod
    def none() -> "Displacement":
        return Displacement(Matrix.identity(), Vector.zero())

    def __matmul__(self, other: "Displacement") -> "Displacement":
        return Displacement(self.R @ other.R, self.R @ other.p + self.p)

    def point(self, x: Vector) -> Vector:
        return self.R @ x + self.p

    @property
    def inverse(self) -> "Displacement":
        return Displacement(self.R.T, -(self.R.T @ self.p))


class Slide(NamedTuple):
    """The position of a prismatic joint; `real` is 1 where it solves its equation, else 0."""

    t: Number
    real: Number = 1.0


Move = Angle | Slide
Branch = dict[int, Move]
"""Positions by joint number, one solution."""


@dataclass(frozen=True)
class Joint:
    """A joint of a chain: its number, its axis and a point of it at home, and their displacement.

    Joints of one `block` have the same displacement `by`, so that the relative position of their
    axes is known from the home posture.
    """

    number: int
    home_axis: tuple[float, ...]
    home_point: tuple[float, ...]
    slides: bool = False
    block: int = 0
    by: Displacement = Displacement(Matrix.identity(), Vector.zero())  # noqa: RUF009

    @cached_property
    def axis(self) -> Vector:
        return self.by.R @ Vector(self.home_axis)

    @cached_property
    def point(self) -> Vector:
        return self.by.point(Vector(self.home_point))

    @cached_property
    def side(self) -> Vector:
        """A unit vector across the axis."""
        other = np.eye(3)[np.argmin(np.abs(self.home_axis))]
        across = np.cross(self.home_axis, other)
        return self.by.R @ Vector(tuple(snapped(across / np.linalg.norm(across))))

    def reversed(self) -> "Joint":
        return replace(self, home_axis=tuple(-x for x in self.home_axis))

    def displaced(self, by: Displacement, block: int) -> "Joint":
        return replace(self, by=by @ self.by, block=block)

    def through(self, point: np.ndarray) -> "Joint":
        """Return the joint with another point of its axis, at home."""
        return replace(self, home_point=tuple(snapped(point)))

    # How the joint moves vectors and points; `back`: by its inverse

    def turn(self, move: Move, v: Vector, *, back: bool = False) -> Vector:
        if isinstance(move, Slide):
            return v
        along = self.axis * self.axis.dot(v)
        across = self.axis.cross(v) * (-move.s if back else move.s)
        return along + (v - along) * move.c + across

    def shift(self, move: Move, x: Vector, *, back: bool = False) -> Vector:
        if isinstance(move, Slide):
            return x + self.axis * (-move.t if back else move.t)
        return self.point + self.turn(move, x - self.point, back=back)

    def angle(self, start: Vector, end: Vector) -> Angle:
        """Return the angle about the axis between two vectors projected along the axis."""
        a = self.axis
        return between(start.dot(end) - a.dot(start) * a.dot(end), a.dot(start.cross(end)))


def snapped(values: np.ndarray) -> list[float]:
    """Round numbers that are nearly 0, 1 or -1, which shortens programs."""
    whole = np.round(values)
    near = np.abs(values - whole) < 1e-11
    return [float(x) for x in np.where(near & (np.abs(whole) <= 1.0), whole, values) + 0.0]


# How two axes lie -------------------------------------------------------------------------------

CLOSE = 1e-4
"""Axes count as parallel or intersecting if they are within this angle (rad), or this distance in
parts of the size of the chain."""


def meeting(joints: Sequence[Joint]) -> np.ndarray | None:
    """Return the common point of axes at home, or None; they are in one block, not parallel."""
    if len({joint.block for joint in joints}) > 1 or any(j.slides for j in joints):
        return None
    H, O = (np.array([getattr(j, name) for j in joints]) for name in ("home_axis", "home_point"))
    P = np.eye(3) - H[:, :, None] * H[:, None, :]
    total = P.sum(axis=0)
    if np.linalg.eigvalsh(total)[0] < CLOSE**2:
        return None
    point = np.linalg.solve(total, np.einsum("kij,kj->i", P, O))
    gaps = np.linalg.norm(np.einsum("kij,kj->ki", P, point - O), axis=1)
    return point if gaps.max() <= CLOSE else None


def parallel(a: Joint, b: Joint) -> bool:
    """Return True if two axes of one block are parallel."""
    across = np.linalg.norm(np.cross(a.home_axis, b.home_axis))
    return a.block == b.block and bool(across <= CLOSE)


def square(a: Joint, b: Joint) -> bool:
    """Return True if two axes of one block are perpendicular."""
    return a.block == b.block and bool(abs(np.dot(a.home_axis, b.home_axis)) <= CLOSE)
