"""The accessor `robot.plot`, with one method per plot."""

from collections.abc import Sequence
from typing import Any, Literal, NoReturn

import numpy as np

from chasles.algorithms import METHODS
from chasles.errors import ArgumentError, InputError, ModelError
from chasles.functions.programs import checked_options, program
from chasles.plots.paper import (
    ROWS,
    Axes,
    Rows,
    energies,
    finish,
    forces,
    frame_of,
    legend,
    new,
    path,
    span,
    state,
    times,
    unit,
)
from chasles.robot import Robot

Array = Any

Plane = Literal["xy", "xz", "yz", "3d"]
"""Plane onto which points are projected, or "3d" for a three-dimensional plot."""

FEW = 5
"""Maximum number of methods in a legend inside the plot. Longer legends are placed next to it."""

_CLOSED = "use a robot without loops or couplings, because the Jacobian ignores them"


class Plots:
    """Plots of a robot. Each method draws one plot and returns its Matplotlib axes.

    `axes` are the Matplotlib axes to draw in. By default, a new pyplot figure is created. Motions
    are arrays with one row per sample, and `t` (n,) contains the times in s (default: row indices).
    Units are SI units and radians.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot

    def __call__(self, *_arguments: Any, **_options: Any) -> NoReturn:
        """Raise an error, because `robot.plot` is not a function in this library."""
        problem = "`plot` contains several plots, and is not itself a function"
        remedy = "use plot.torque(q, qd, qdd) or another of its methods, or robot.show(q)"
        raise ArgumentError("E-PLOT-023", problem, remedy, part="plot")

    def torque(
        self, q: Array, qd: Array, qdd: Array, *, t: Array = None, axes: Axes | None = None
    ) -> Axes:
        """Plot the joint torques along a motion, computed by inverse dynamics.

        Parameters
        ----------
        q : array_like, shape (n, nq)
            Joint positions (rad or m).
        qd, qdd : array_like, shape (n, nv)
            Joint velocities and accelerations.
        t : array_like, shape (n,), optional
            Times (s). Default: row indices.
        axes : matplotlib Axes, optional
            Axes to draw in. Default: a new figure.

        Returns
        -------
        axes : matplotlib Axes
            The axes, with torques in N m or N.

        Raises
        ------
        InputError
            If an array does not have shape (n, nq) or (n, nv) with at least two samples, if it is
            not finite, or if the numbers of samples differ.
        ArgumentError
            If an array does not contain real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> robot = chasles.robots.planar(2)
        >>> q, qd, qdd = np.zeros((3, 5, 2))  # five samples
        >>> len(robot.plot.torque(q, qd, qdd).lines)
        2
        """
        robot = self._robot
        motion = path("q", q, robot.nq), path("qd", qd, robot.nv), path("qdd", qdd, robot.nv)
        if len({len(part) for part in motion}) > 1:
            problem = (
                "q, qd and qdd must have the same number of samples, "
                f"not {', '.join(str(len(p)) for p in motion)}"
            )
            raise InputError("E-PLOT-002", problem)
        return forces(robot, robot.inverse_dynamics(*motion), t, axes)

    def energy(self, q: Array, qd: Array, *, t: Array = None, axes: Axes | None = None) -> Axes:
        """Plot kinetic energy, potential energy relative to its initial value, and their sum.

        Parameters
        ----------
        q : array_like, shape (n, nq)
            Joint positions (rad or m).
        qd : array_like, shape (n, nv)
            Joint velocities (rad/s or m/s).
        t : array_like, shape (n,), optional
            Times (s). Default: row indices.
        axes : matplotlib Axes, optional
            Axes to draw in. Default: a new figure.

        Returns
        -------
        axes : matplotlib Axes
            The axes, with energies in J. For a free motion without friction, the sum is constant.

        Raises
        ------
        InputError
            If an array does not have shape (n, nq) or (n, nv) with at least two samples, if it is
            not finite, or if the numbers of samples differ.
        ArgumentError
            If an array does not contain real numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> q, qd = np.zeros((2, 5, 2))  # five samples
        >>> len(chasles.robots.planar(2).plot.energy(q, qd).lines)
        3
        """
        robot = self._robot
        positions, rates = path("q", q, robot.nq), path("qd", qd, robot.nv)
        if len(positions) != len(rates):
            raise InputError(
                "E-PLOT-003", f"q has {len(positions)} samples, but qd has {len(rates)}"
            )
        kinetic = robot.kinetic_energy(positions, rates)
        return energies(kinetic, robot.potential_energy(positions), t, axes)

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
        """Plot the manipulability of a frame, the product of the Jacobian's singular values.

        Parameters
        ----------
        q : array_like, shape (n, nq) or (nq,)
            Path; or, if `joints` is given, a configuration that specifies the positions of all
            other joints.
        frame : str, optional
            The frame. Default: `robot.tool`.
        joints : sequence of str, optional
            Names of two joints with one coordinate each, which are varied between their limits.
        rows : {"linear", "angular", "all"}, optional
            Rows of the Jacobian: linear (at the frame's origin), angular, or both with mixed units.
        t : array_like, shape (n,), optional
            Times (s) of a path. Default: row indices.
        points : int, optional
            Number of grid points per joint in `joints`.
        axes : matplotlib Axes, optional
            Axes to draw in. Default: a new figure.

        Returns
        -------
        axes : matplotlib Axes
            The axes.

        Raises
        ------
        InputError
            If `rows` is unknown, if an array has the wrong shape or is not finite, if `joints` does
            not name two joints with one coordinate each, if `points` is less than 2, or if `t` is
            combined with `joints`.
        ModelError
            If the robot has loops, or if the frame or a joint does not exist.
        ArgumentError
            If an array does not contain real numbers.

        Notes
        -----
        The manipulability is sqrt(det(J J')) if there are at least as many degrees of freedom as
        rows (Yoshikawa 1985). The value is 0 where the frame cannot move in some direction.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> robot = chasles.robots.puma560()
        >>> path = robot.random(np.random.default_rng(0), 5)
        >>> len(robot.plot.manipulability(path, frame="tool").lines)
        1
        """
        robot = self._robot
        robot.mechanism.refuse_loops("manipulability", _CLOSED)
        chosen = frame_of(robot, frame)
        title = f"manipulability of {chosen!r}, {rows}"
        if joints is None:
            states = path("q", q, robot.nq)
            instants, across = times(t, len(states))
            values = np.prod(singular_values(robot, states, chosen, rows), axis=-1)
            drawn = new(axes)
            drawn.plot(instants, values)
            drawn.set_ylim(bottom=0.0)
            return finish(drawn, title, across)
        if t is not None:
            problem = "`t` cannot be combined with `joints`"
            raise InputError("E-PLOT-009", problem, "omit one of them")
        first, second, states = swept(robot, q, joints, points)
        values = np.prod(singular_values(robot, states, chosen, rows), axis=-1)
        drawn = new(axes)
        filled = drawn.contourf(first, second, values.T, levels=20)
        drawn.figure.colorbar(filled, ax=drawn)
        return finish(drawn, title, *(f"{joint} ({unit(robot, joint)})" for joint in joints))

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
        """Plot the condition number of the mass matrix or a Jacobian along a path.

        Parameters
        ----------
        q : array_like, shape (n, nq)
            Joint positions (rad or m).
        of : {"mass_matrix", "jacobian"}, optional
            The matrix. For a robot with loops, the mass matrix is in independent coordinates.
        frame : str, optional
            Frame of the Jacobian. Default: `robot.tool`.
        rows : {"linear", "angular", "all"}, optional
            Rows of the Jacobian.
        t : array_like, shape (n,), optional
            Times (s). Default: row indices.
        axes : matplotlib Axes, optional
            Axes to draw in. Default: a new figure.

        Returns
        -------
        axes : matplotlib Axes
            The axes, with gaps where the condition number is infinite.

        Raises
        ------
        InputError
            If `of` or `rows` is unknown, if an array has the wrong shape or is not finite, or if
            the robot has no degrees of freedom.
        ModelError
            If the frame does not exist, or if the robot has loops and `of` is "jacobian".
        ArgumentError
            If an array does not contain real numbers.

        Notes
        -----
        If degrees of freedom have different units (rad and m), the condition number depends on the
        choice of units.

        Examples
        --------
        >>> import numpy as np
        >>> import chasles
        >>> robot = chasles.robots.puma560()
        >>> len(robot.plot.condition(robot.random(np.random.default_rng(0), 5)).lines)
        1
        """
        robot = self._robot
        states = path("q", q, robot.nq)
        instants, across = times(t, len(states))
        if of == "mass_matrix":
            values = np.linalg.svd(robot.mass_matrix(states, coordinates="independent"))[1]
            title = "condition number of the mass matrix"
        elif of == "jacobian":
            robot.mechanism.refuse_loops("condition", _CLOSED)
            chosen = frame_of(robot, frame)
            values = singular_values(robot, states, chosen, rows)
            title = f"condition number of the Jacobian of {chosen!r}, {rows}"
        else:
            raise InputError("E-PLOT-012", f"`of` must be 'mass_matrix' or 'jacobian', not {of!r}")
        if not values.shape[-1]:
            problem = f"robot {robot.name!r} has no degrees of freedom"
            raise InputError("E-PLOT-013", problem)
        low = values[..., -1] > np.finfo(float).eps * values[..., 0]
        ratio = np.divide(values[..., 0], values[..., -1], out=np.full(len(low), np.nan), where=low)
        drawn = new(axes)
        drawn.semilogy(instants, ratio)
        return finish(drawn, title, across)

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
        """Plot reachable positions of a frame's origin, in world coordinates (m).

        Parameters
        ----------
        frame : str, optional
            The frame. Default: `robot.tool`.
        q : array_like, shape (n, nq), optional
            Configurations. Default: random configurations between the joint limits.
        samples : int, optional
            Number of random configurations.
        seed : int, optional
            Seed of the random configurations.
        plane : {"xy", "xz", "yz", "3d"}, optional
            Plane of the plot, or "3d" for a three-dimensional plot.
        axes : matplotlib Axes, optional
            Axes to draw in. Default: a new figure.

        Returns
        -------
        axes : matplotlib Axes
            The axes.

        Raises
        ------
        InputError
            If `plane` is unknown, if `samples` is less than 2, if `q` has the wrong shape or is not
            finite, or if `axes` is not three-dimensional for a three-dimensional plot.
        ModelError
            If the frame does not exist, or if the robot has loops and `q` is not given.
        ArgumentError
            If an array does not contain real numbers.

        Examples
        --------
        >>> import chasles
        >>> axes = chasles.robots.puma560().plot.workspace("tool", samples=100)
        >>> axes.get_xlabel()
        'x'
        """
        if plane not in ("xy", "xz", "yz", "3d"):
            raise InputError(
                "E-PLOT-014", f"`plane` must be 'xy', 'xz', 'yz' or '3d', not {plane!r}"
            )
        robot = self._robot
        chosen = frame_of(robot, frame)
        if q is None:
            remedy = "pass configurations q in which the loops are closed (robot.assemble)"
            robot.mechanism.refuse_loops("workspace", remedy)
            if samples < 2:
                raise InputError("E-PLOT-015", f"`samples` must be at least 2, not {samples}")
            q = robot.random(np.random.default_rng(seed), size=samples)
        points = robot.forward_kinematics(path("q", q, robot.nq), frame=chosen)[:, :3, 3]
        drawn = new(axes, "3d" if plane == "3d" else None)
        if plane == "3d":
            drawn.scatter(*points.T, s=2.0, alpha=0.4, c=points[:, 2])
            drawn.set_zlabel("z")
        else:
            across, up = ("xyz".index(letter) for letter in plane)
            drawn.plot(points[:, across], points[:, up], ".", markersize=2.0, alpha=0.4)
        drawn.set_aspect("equal")
        return finish(drawn, f"positions of {chosen!r} (m)", *("xy" if plane == "3d" else plane))

    def cost(
        self,
        function: str = "inverse_dynamics",
        *,
        methods: Sequence[str] | None = None,
        lengths: Sequence[int] | None = None,
        axes: Axes | None = None,
        **options: Any,
    ) -> Axes:
        """Plot the operation counts of a function's methods against the number of joints.

        Operations are multiplications and additions.

        Parameters
        ----------
        function : str, optional
            Name of a robot function.
        methods : sequence of str, optional
            Method names. Default: all methods whose operation count grows more slowly than n^3.
        lengths : sequence of int, optional
            Numbers of joints n. Default: 1 to the robot's number of joints.
        axes : matplotlib Axes, optional
            Axes to draw in. Default: a new figure.
        **options
            Function options, such as `frame`.

        Returns
        -------
        axes : matplotlib Axes
            The axes. For each n, all joints after the first n are fixed at their neutral position.

        Raises
        ------
        InputError
            If `function`, a method or the value of an option is unknown, or if `lengths` is not a
            sequence of joint counts from 1 to the number of joints.
        ArgumentError
            If an option is unknown, or if a required option is missing.
        ModelError
            If the robot has loops, or does not support a method in `methods`.

        Examples
        --------
        >>> import chasles
        >>> robot = chasles.robots.puma560()
        >>> len(robot.plot.cost("inverse_dynamics", methods=["spatial"], lengths=[1, 2]).lines)
        1
        """
        robot = self._robot
        remedy = "use a robot without loops or couplings"
        robot.mechanism.refuse_loops("cost", remedy)
        checked_options(robot.model, function, options)
        known = [m.name for m in METHODS[function] if not m.steep]
        counts = range(1, len(robot.joints) + 1) if lengths is None else sorted(lengths)
        if not counts or not 1 <= counts[0] <= counts[-1] <= len(robot.joints):
            problem = (
                f"`lengths` must contain one or more joint counts from 1 to {len(robot.joints)}"
            )
            raise InputError("E-PLOT-001", problem)
        neutral = {joint: robot.neutral()[robot.position_slice(joint)] for joint in robot.joints}
        held = [{joint: neutral[joint] for joint in robot.joints[n:]} for n in counts]
        shorter = [robot.lock(some) if some else robot for some in held]
        named, chosen = methods is not None, known if methods is None else methods
        values = {m: [_count(x, function, m, named, options) for x in shorter] for m in chosen}
        possible = {m: found for m, found in values.items() if any(x is not None for x in found)}
        drawn = new(axes)
        for k, (method, found) in enumerate(possible.items()):
            heights = [x or float("nan") for x in found]  # a logarithmic axis cannot show zero
            look = {"color": f"C{k % 10}", "marker": ".v^s"[k // 10 % 4]}
            drawn.plot(counts, heights, label=method, **look)
        drawn.set_yscale("log")
        drawn.xaxis.get_major_locator().set_params(integer=True)
        beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        legend(drawn, **beside if len(possible) > FEW else {})
        title = f"{function} of {robot.name}"
        return finish(drawn, title, "joints", "multiplications and additions")


def singular_values(robot: Robot, q: np.ndarray, frame: str, rows: Rows) -> np.ndarray:
    """Return singular values (..., min(rows, nv)) of the Jacobian rows, in descending order."""
    if rows not in ROWS:
        raise InputError("E-PLOT-007", f"`rows` must be {', '.join(map(repr, ROWS))}, not {rows!r}")
    if not robot.nv:
        raise InputError(
            "E-PLOT-008",
            f"robot {robot.name!r} has no degrees of freedom",
        )
    J = robot.jacobian(q, frame=frame)[..., ROWS[rows], :]
    return np.linalg.svd(J, compute_uv=False)


def swept(
    robot: Robot, q: Any, joints: Sequence[str], points: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the grid points for both joints, and all configurations (points, points, nq)."""
    if isinstance(joints, str) or len(joints) != 2 or joints[0] == joints[1]:
        raise InputError("E-PLOT-010", f"`joints` must be the names of two joints, not {joints!r}")
    if points < 2:
        raise InputError("E-PLOT-011", f"the number of points must be at least 2, not {points}")
    sides = [np.linspace(*span(robot, joint), points) for joint in joints]
    states = np.tile(state(robot, q), (points, points, 1))
    for values, joint in zip(np.meshgrid(*sides, indexing="ij"), joints, strict=True):
        states[..., robot.position_slice(joint)] = values[..., None]
    return sides[0], sides[1], states


def _count(
    robot: Robot, function: str, method: str, named: bool, options: dict[str, Any]
) -> int | None:
    """Return the operation count of a robot function for one state.

    If the method does not support the robot, return None, unless the user named the method
    (`named`). In this case, raise ModelError.
    """
    chosen = dict(checked_options(robot.model, function, options))
    try:
        return program(robot.model, function, method=method, **chosen).count.flops
    except ModelError:
        if named:
            raise
        return None
