"""`robot.plot`: every picture of a robot, by name."""

from collections.abc import Sequence
from typing import Any, Literal

from chasles.plots import costs, motions, postures
from chasles.plots.paper import Axes
from chasles.plots.postures import Plane
from chasles.plots.subject import Rows, Subject

Array = Any


class Plots:
    """Pictures of a robot: each method draws one, and returns matplotlib's axes.

    axes: where to draw; a new figure of pyplot if None. Paths are arrays with a row an instant; t
    (n,) are their times in s, the number of the instant if None. SI units and radians.
    """

    def __init__(self, robot: Subject) -> None:
        self._robot = robot

    def torque(
        self, q: Array, qd: Array, qdd: Array, *, t: Array = None, axes: Axes | None = None
    ) -> Axes:
        """Joint forces along a motion, by inverse dynamics: q (n, nq), qd and qdd (n, nv)."""
        return motions.torque(self._robot, q, qd, qdd, t, axes)

    def energy(self, q: Array, qd: Array, *, t: Array = None, axes: Axes | None = None) -> Axes:
        """Kinetic energy, potential energy from its first value on, and their sum: q (n, nq), qd
        (n, nv). Of a free motion without friction the sum is constant."""
        return motions.energy(self._robot, q, qd, t, axes)

    def manipulability(
        self,
        q: Array,
        *,
        frame: str | None = None,
        joints: Sequence[str] | None = None,
        rows: Rows = "linear",
        t: Array = None,
        points: int = 41,
        axes: Axes | None = None,
    ) -> Axes:
        """How well a frame can move in all directions: the product of its Jacobian's singular
        values, which is sqrt(det(J J')) where it has as many freedoms as rows or more (Yoshikawa
        1985), and 0 where it cannot move in one of them.

        q: a path (n, nq); or with `joints`, the names of two joints of one coordinate, a state
        (nq,) in which these go from limit to limit, in `points` steps. frame: the last if None.
        rows: "linear" (m, at the frame's origin), "angular" (rad) or "all", whose units are mixed.
        """
        return postures.manipulability(self._robot, q, frame, joints, rows, t, points, axes)

    def condition(
        self,
        q: Array,
        *,
        of: Literal["mass_matrix", "jacobian"] = "mass_matrix",
        frame: str | None = None,
        rows: Rows = "linear",
        t: Array = None,
        axes: Axes | None = None,
    ) -> Axes:
        """The condition number along a path q (n, nq): of the mass matrix (of the independent
        freedoms where loops are closed), or of a frame's Jacobian; a gap where it is infinite.

        rows, frame: as in `manipulability`. Where freedoms have different units (rad and m) it
        depends on the choice of units.
        """
        return postures.condition(self._robot, q, of, frame, rows, t, axes)

    def workspace(
        self,
        frame: str | None = None,
        *,
        q: Array = None,
        samples: int = 5000,
        seed: int = 0,
        plane: Plane = "xz",
        axes: Axes | None = None,
    ) -> Axes:
        """Points that a frame's origin reaches, in m along the world's axes: at random positions
        between the joints' limits (`robot.random`), or at given ones q (n, nq).

        frame: the last if None. plane: "xy", "xz", "yz", or "3d" for a picture in space.
        """
        return postures.workspace(self._robot, frame, q, samples, seed, plane, axes)

    def cost(
        self,
        function: str = "inverse_dynamics",
        *,
        methods: Sequence[str] | None = None,
        lengths: Sequence[int] | None = None,
        axes: Axes | None = None,
        **options: Any,
    ) -> Axes:
        """Multiplications and additions of a function against n, by each method, for this robot
        with its first n joints free and the others held at their neutral position.

        methods: names, all but those that grow with the cube or faster if None. lengths: which n,
        all if None. options: of the function, such as frame=.
        """
        return costs.cost(self._robot, function, methods, lengths, axes, options)
