"""Chains of revolute and prismatic joints, and geometric relations between their axes.

The displacement of a chain is the product of exponentials E1(q1) E2(q2) ... Axes are given in the
home posture, in which all joint positions are 0. Lengths are in units of the chain size.
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
    """Rotation R and translation p, which map x to R x + p."""

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
    """Solution for the position of a prismatic joint; `real` is 1 for a real solution, else 0."""

    t: Number
    real: Number = 1.0


Move = Angle | Slide
Branch = dict[int, Move]
"""One solution: joint positions by joint index."""


@dataclass(frozen=True)
class Joint:
    """Joint of a chain: its index, its axis and a point on the axis in the home posture.

    `by` is the displacement of the axis from the home posture. Joints with the same `block` have
    the same displacement, so their relative positions are those of the home posture.
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
        """Unit vector perpendicular to the axis."""
        other = np.eye(3)[np.argmin(np.abs(self.home_axis))]
        across = np.cross(self.home_axis, other)
        return self.by.R @ Vector(tuple(snapped(across / np.linalg.norm(across))))

    def reversed(self) -> "Joint":
        return replace(self, home_axis=tuple(-x for x in self.home_axis))

    def displaced(self, by: Displacement, block: int) -> "Joint":
        return replace(self, by=by @ self.by, block=block)

    def through(self, point: np.ndarray) -> "Joint":
        """Return the joint with a different reference point on its axis.

        `point` is the new reference point in the home posture.
        """
        return replace(self, home_point=tuple(snapped(point)))

    # `turn` rotates a vector and `shift` moves a point by the displacement of this joint, or by the
    # inverse displacement if `back` is True

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
        """Return the angle about the axis from vector `start` to vector `end`."""
        a = self.axis
        return between(start.dot(end) - a.dot(start) * a.dot(end), a.dot(start.cross(end)))


def snapped(values: np.ndarray) -> list[float]:
    """Round values close to 0, 1 or -1 to these values, so that traced programs are shorter."""
    whole = np.round(values)
    near = np.abs(values - whole) < 1e-11
    return [float(x) for x in np.where(near & (np.abs(whole) <= 1.0), whole, values) + 0.0]


# Relations between axes --------------------------------------------------------------------------

CLOSE = 1e-4
"""Tolerance for parallel axes (angle in rad) and for intersecting axes (distance relative to the
chain size)."""


def meeting(joints: Sequence[Joint]) -> np.ndarray | None:
    """Return the common point of joint axes in the home posture, or None if there is no such point.

    Also return None if a joint is prismatic, or if the axes have different displacements from the
    home posture (different `block`).
    """
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
    """Return True if two axes are parallel and have the same displacement (same `block`)."""
    across = np.linalg.norm(np.cross(a.home_axis, b.home_axis))
    return a.block == b.block and bool(across <= CLOSE)


def square(a: Joint, b: Joint) -> bool:
    """Return True if two axes are perpendicular and have the same displacement (same `block`)."""
    return a.block == b.block and bool(abs(np.dot(a.home_axis, b.home_axis)) <= CLOSE)
