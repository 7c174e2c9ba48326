"""Inverse-kinematics target that keeps spheres and capsules apart and away from obstacles.

The target has one error: the square root of the sum of all squared overlaps. An overlap is the
required distance minus the actual distance, if positive. The gradient is computed like joint
torques, with each overlap as a force between the frames that carry the two shapes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from chasles.expr import Number, less, maximum, select, sqrt
from chasles.functions.rounds import (
    OBSTACLES,
    Round,
    Segment,
    Solid,
    axis_points,
    nearest,
    obstacles,
    placed,
    unit,
)
from chasles.functions.targets import Posture, Rows, Target
from chasles.mathematics.linear import Vector
from chasles.model import Model


@dataclass(frozen=True, eq=False)
class Clearance(Target):
    """Inverse-kinematics target that keeps pairs of shapes at least `margin` (m) apart.

    `rounds`, `kinds` and `pairs` are defined in `functions.rounds.Rounds`. `given` contains the
    parameters (..., n) of all obstacles. Solver steps aim at a distance of `margin` plus
    `tolerance`.
    """

    rounds: tuple[Round, ...]
    kinds: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    given: Any
    margin: float = 0.0
    tolerance: float = field(default=1e-3, kw_only=True)

    lengths: ClassVar[int] = 1

    @property
    def size(self) -> int:  # type: ignore[override]
        return 1 + sum(OBSTACLES[kind] for kind in self.kinds)

    @property
    def key(self) -> tuple[Any, ...]:
        return ("Clearance", self.rounds, self.kinds, self.pairs)

    def numbers(self) -> np.ndarray:
        given = np.asarray(self.given, dtype=float)
        first = np.full((*given.shape[:-1], 1), self.margin + self.tolerance)
        return np.concatenate([first, given], axis=-1)

    def movers(self, model: Model, frame: str) -> set[int]:
        return set(range(len(model.bodies)))

    def reached(self, at: Posture, frame: str) -> list[Number]:
        return []

    def errors(self, at: Posture, frame: str, goal: Sequence[Number]) -> tuple[list[Number], Rows]:
        robot = list(placed(self.rounds, at.pose))
        solids: list[Solid] = [*robot, *obstacles(self.kinds, goal[1:])]
        total: Number = 0.0
        forces: dict[int, list[tuple[Vector, Vector]]] = {}
        for i, j in self.pairs:
            overlap, (x, y), push = _overlap(robot[i], solids[j], goal[0])
            total = total + overlap * overlap
            forces.setdefault(i, []).append((x, -push))
            if j < len(robot):
                forces.setdefault(j, []).append((y, push))
        error = sqrt(total)
        none = less(total, 1e-24)
        share = select(none, 0.0, 1.0 / select(none, 1.0, error))
        return [select(none, 0.0, error)], [[x * share for x in self._torques(at, robot, forces)]]

    def _torques(
        self,
        at: Posture,
        robot: Sequence[Segment],
        forces: dict[int, list[tuple[Vector, Vector]]],
    ) -> list[Number]:
        """Return the joint torques due to forces on the spheres and capsules of the robot."""
        by_frame: dict[str, tuple[Vector, Vector]] = {}
        for i, some in forces.items():
            frame = self.rounds[i].frame
            if frame is None:
                continue
            if robot[i].along is None:  # a sphere: apply the total force at its center
                whole = Vector.zero()
                for _, force in some:
                    whole = whole + force
                some = [(robot[i].start, whole)]
            origin = at.pose(frame)[1]
            moment, total = by_frame.get(frame, (Vector.zero(), Vector.zero()))
            for point, force in some:
                moment, total = moment + (point - origin).cross(force), total + force
            by_frame[frame] = moment, total
        found: list[Number] = [0.0] * at.model.nv
        for frame, wrench in by_frame.items():
            for rows, vector in zip(at.jacobian(frame), wrench, strict=True):
                for row, x in zip(rows, vector, strict=True):
                    found = [f + r * x for f, r in zip(found, row, strict=True)]
        return found


def _overlap(a: Segment, b: Solid, wanted: Number) -> tuple[Number, tuple[Vector, Vector], Vector]:
    """Return the overlap of shapes a and b, their closest points, and the overlap times the normal.

    The normal points from a to b. For two round shapes, the closest points are on the axes instead
    of the surfaces, which does not change the torques.
    """
    if isinstance(b, Segment):
        x, y = axis_points(a, b)
        length, n = unit(y - x)
        overlap = maximum(0.0, wanted + (a.radius + b.radius) - length)
        return overlap, (x, y), n * overlap
    found = nearest(a, b)
    overlap = maximum(0.0, wanted - found.distance)
    return overlap, (found.first, found.second), found.normal * overlap
