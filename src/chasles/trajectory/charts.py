"""Charts: local coordinates in which trajectories of vectors and robots are polynomials."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy

from chasles.errors import InputError
from chasles.robot import Robot
from chasles.trajectory.moves import Closed, Move, Polynomial
from chasles.trajectory.spaces import Space, of_robot, vectors

SAMES = 1e-6
"""Maximum difference (rad or m) between the computed and the given final configuration."""

NEAR = 16
"""Number of configurations stored per polynomial piece as initial guesses for closing loops."""


@dataclass(frozen=True, eq=False)
class Chart:
    """Points in the configuration space of a robot or, if `robot` is None, in a vector space.

    `given` contains the configurations (m, nq) of the robot. For a robot with loops, `rows`
    contains the indices of the independent velocities.
    """

    space: Space
    points: np.ndarray
    robot: Robot | None
    given: np.ndarray
    rows: list[int] | None = None

    def rate(self, velocity: np.ndarray) -> np.ndarray:
        """Return the independent entries of a velocity, or all entries if there are no loops."""
        return velocity if self.rows is None else velocity[..., self.rows]

    @property
    def sizes(self) -> int:
        """Number of velocity coordinates of the robot or, without a robot, size of the vectors."""
        return self.space.size if self.robot is None else self.robot.nv

    def move(
        self, curve: "scipy.interpolate.PPoly", anchors: np.ndarray, *, periodic: bool = False
    ) -> Move:
        """Return the trajectory defined by piecewise polynomials in this space.

        The polynomials are displacements from `anchors`: one for all pieces, or one per piece.
        """
        if self.rows is None:
            return Polynomial(curve, self.space, anchors, self.robot, periodic)
        assert self.robot is not None
        absolute = scipy.interpolate.PPoly(curve.c.copy(), curve.x)
        absolute.c[-1] += anchors
        return self._closed(absolute, periodic)

    def _closed(self, curve: "scipy.interpolate.PPoly", periodic: bool) -> Move:
        """Return the trajectory of all coordinates, given that of the independent coordinates.

        At points along the curve, the loops are closed numerically, with the previous configuration
        as the initial guess.
        """
        assert self.robot is not None
        x = curve.x
        times = np.unique(np.concatenate([np.linspace(a, b, NEAR + 1) for a, b in pairwise(x)]))
        near = [self.given[0]]
        for y in curve(times[1:]):
            near.append(self.robot.assemble(y, guess=near[-1]))
        last = np.abs(near[-1] - self.given[-1]).max()
        if last > SAMES:
            problem = (
                f"the motion ends {last:.3g} (rad or m) away from the last given configuration"
            )
            remedy = "use configurations on the same assembly branch, or add points between them"
            raise InputError("E-PATH-015", problem, remedy, part="trajectory")
        return Closed(curve, np.array(near), times, self.robot, periodic)


def chart(robot: Robot | None, points: np.ndarray, part: str) -> Chart:
    """Return the chart for configurations of a robot, or for vectors if `robot` is None."""
    if robot is None:
        return Chart(vectors(points.shape[-1]), points, None, points)
    if not robot.model.constraints:
        return Chart(of_robot(robot), points, robot, points)
    for k, q in enumerate(points):
        robot.mechanism.closing.check_closed(f"{part}: point {k}", q, 1e-9)
    rows, places = _independent(robot, part)
    return Chart(vectors(len(rows)), points[:, places], robot, points, rows)


def _independent(robot: Robot, part: str) -> tuple[list[int], list[int]]:
    """Return the indices in qd and in q of the independent coordinates of a robot with loops."""
    rows = list(robot.mechanism.closing.independent)
    if robot.independent != robot.independent_positions:
        problem = f"robot {robot.name!r} has rolling constraints, which are not supported"
        remedy = "omit `robot` to treat positions as plain vectors"
        raise InputError("E-PATH-016", problem, remedy, part=part)
    places = {
        robot.model.velocity_slices[i].start: robot.model.position_slices[i].start
        for i in robot.model.movers
        if robot.model.bodies[i].joint.nq == 1
    }
    for row, name in zip(rows, robot.independent, strict=True):
        if row not in places:
            problem = f"independent coordinate {name!r} must belong to a joint with one coordinate"
            remedy = "choose other coordinates with robot.with_independent"
            raise InputError("E-PATH-017", problem, remedy, part=part)
    return rows, [places[row] for row in rows]


def steps(chart: Chart) -> np.ndarray:
    """Return the differences (m - 1, n) between consecutive points."""
    return np.asarray(chart.space.difference(chart.points[:-1], chart.points[1:]))
