"""Motions of a frame along straight lines and arcs, computed by inverse kinematics."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy

from chasles.errors import InputError
from chasles.functions.doors import check_robot
from chasles.functions.targets import Pose, Position, Target
from chasles.model.given import some_numbers
from chasles.robot import Robot
from chasles.trajectory.charts import Chart, chart
from chasles.trajectory.given import all_finite, finite, positive
from chasles.trajectory.moves import Array, Joined, Move, Timed
from chasles.trajectory.polynomials import minimum_jerk
from chasles.trajectory.routes import Route, Via, make_route
from chasles.trajectory.splines import in_pieces, rigid

FEWEST, MOST = 32, 1024
"""Initial and maximum number of configurations that are computed along a path."""

EXACT = 1e-10
"""Inverse kinematics tolerance along the path (rad and m)."""

Orientation = Literal["path", "free"]
"""Frame orientation: "path" follows the orientation of the path, "free" is not constrained."""

JUMP = 0.5
"""Maximum change (rad or m) in a coordinate between consecutive configurations."""


def line(
    robot: Robot,
    frame: str,
    through: Array,
    *,
    start: Array,
    blend: float = 0.0,
    duration: float | None = None,
    tolerance: float = 1e-6,
    orientation: Orientation = "path",
) -> Move:
    """Return the motion of a robot in which a frame follows straight lines.

    Parameters
    ----------
    robot : Robot
        A robot without rolling joints. Closed loops stay closed, for example in a Stewart platform.
    frame : str
        The frame that follows the lines and rotates about a single axis along each line.
    through : array_like, shape (4, 4), (m, 4, 4), (3,) or (m, 3)
        End points of the lines in the world (m): one or several poses, or one or several positions
        with constant orientation.
    start : array_like, shape (nq,)
        Initial configuration (rad or m).
    blend : float, optional
        Distance (m) before a corner at which the frame begins to blend into the next line. The
        distance is reduced to half the length of the shorter line, if necessary. If `blend` is 0,
        the frame stops at corners.
    duration : float, optional
        Duration (s) of a motion from rest to rest with minimum jerk along the path. By
        default, the path has unit speed (m/s, or rad/s where the frame only rotates) and can be
        passed to `time_optimal`.
    tolerance : float, optional
        Maximum deviation from the path, in m and rad.
    orientation : {"path", "free"}, optional
        "path": the frame rotates from pose to pose, or keeps its orientation if positions are
        given. "free": only the frame's position follows the path, for example for a five-bar
        linkage or an arm with few joints.

    Returns
    -------
    Move
        The motion of all joints.

    Raises
    ------
    InputError
        If an array has the wrong shape or is not finite, if an option is not valid, or if the frame
        cannot follow the path. In the last case, the message gives the position along the path.
    ArgumentError
        If `robot` is not a Robot, or if an argument is not numeric.
    OpenLoop
        If the robot has loops, and `start` does not close them.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.puma560()
    >>> q = [0.1, 0.6, -0.8, 0.3, 0.9, -0.2]
    >>> goal = robot.forward_kinematics(q, frame="tool")[:3, 3] + [0.0, 0.2, 0.0]
    >>> move = chasles.trajectory.line(robot, "tool", goal, start=q, duration=2.0)
    >>> reached = robot.forward_kinematics(move.end, frame="tool")[:3, 3]
    >>> bool(abs(reached - goal).max() < 1e-6)
    True
    """
    hand = Guided(robot, frame, orientation, tolerance, "line")
    return hand.along(through, None, start, blend, duration)


def arc(
    robot: Robot,
    frame: str,
    via: Array,
    goal: Array,
    *,
    start: Array,
    blend: float = 0.0,
    duration: float | None = None,
    tolerance: float = 1e-6,
    orientation: Orientation = "path",
) -> Move:
    """Return the motion of a robot in which a frame follows circular arcs.

    Parameters
    ----------
    robot : Robot
        As in `line`.
    frame : str
        The frame that follows the arc.
    via : array_like, shape (3,) or (m, 3)
        A position on each arc (m, world).
    goal : array_like, shape (4, 4), (3,), (m, 4, 4) or (m, 3)
        The end of each arc. For a pose, the frame rotates about a single axis; for a position, it
        keeps its orientation.
    start : array_like, shape (nq,)
        Initial configuration.
    blend, duration, tolerance, orientation : optional
        As in `line`. The blend distance is measured along the arc.

    Returns
    -------
    Move
        The motion.

    Raises
    ------
    InputError
        If an array has the wrong shape or is not finite, if the numbers of via points and end
        points differ, if an option is not valid, or if the frame cannot follow the path. In the
        last case, the message gives the position along the path.
    ArgumentError
        If `robot` is not a Robot, or if an argument is not numeric.
    OpenLoop
        If the robot has loops, and `start` does not close them.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.puma560()
    >>> q = [0.1, 0.6, -0.8, 0.3, 0.9, -0.2]
    >>> p = robot.forward_kinematics(q, frame="tool")[:3, 3]
    >>> via, goal = p + [0.0, 0.05, 0.02], p + [0.0, 0.1, 0.0]
    >>> move = chasles.trajectory.arc(robot, "tool", via, goal, start=q, duration=2.0)
    >>> reached = robot.forward_kinematics(move.end, frame="tool")[:3, 3]
    >>> bool(abs(reached - goal).max() < 1e-6)
    True
    """
    hand = Guided(robot, frame, orientation, tolerance, "arc")
    every = some_numbers("via", via, "arc")
    return hand.along(goal, every if every.ndim > 1 else [every], start, blend, duration)


def path(
    robot: Robot,
    frame: str,
    through: Array,
    via: Sequence[Array | None],
    *,
    start: Array,
    blend: float = 0.0,
    duration: float | None = None,
    tolerance: float = 1e-6,
    orientation: Orientation = "path",
) -> Move:
    """Return the motion of a robot in which a frame follows lines and arcs.

    Parameters
    ----------
    robot : Robot
        As in `line`.
    frame : str
        The frame that follows the path and rotates about a single axis along each segment.
    through : array_like, shape (m, 4, 4) or (m, 3)
        End points of the segments in the world: poses, or positions with constant orientation.
    via : sequence of m positions or None
        For each segment, a position on the arc (m, world), or None for a straight line.
    start : array_like, shape (nq,)
        Initial configuration.
    blend, duration, tolerance, orientation : optional
        As in `line`. The blend distance is measured along the segments.

    Returns
    -------
    Move
        The motion.

    Raises
    ------
    InputError
        If an array has the wrong shape or is not finite, if the numbers of via points and end
        points differ, if an option is not valid, or if the frame cannot follow the path. In the
        last case, the message gives the position along the path.
    ArgumentError
        If `robot` is not a Robot, or if an argument is not numeric.
    OpenLoop
        If the robot has loops, and `start` does not close them.

    Notes
    -----
    In a blend, the speed along one segment decreases while the speed along the next one increases.
    The displacements along the two segments are added, and their rotations are composed.
    Accelerations are continuous, and the speed does not exceed that of the segments.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.puma560()
    >>> q = [0.1, 0.6, -0.8, 0.3, 0.9, -0.2]
    >>> p = robot.forward_kinematics(q, frame="tool")[:3, 3]
    >>> ends = [p + [0.0, 0.1, 0.0], p + [0.0, 0.15, -0.05]]
    >>> via = [None, p + [0.0, 0.135, -0.015]]
    >>> move = chasles.trajectory.path(robot, "tool", ends, via, start=q, blend=0.02)
    >>> reached = robot.forward_kinematics(move.end, frame="tool")[:3, 3]
    >>> bool(abs(reached - ends[-1]).max() < 1e-9)
    True
    """
    hand = Guided(robot, frame, orientation, tolerance, "path")
    return hand.along(through, via, start, blend, duration)


def _goals(name: str, through: Any, first: np.ndarray) -> list[np.ndarray]:
    """Return end points as poses (4, 4); positions are combined with the initial orientation."""
    given = some_numbers("through", through, name).astype(float)
    if given.shape[-2:] == (4, 4) and given.ndim in (2, 3):
        return list(rigid(given.reshape(-1, 4, 4))[1])
    if given.ndim in (1, 2) and given.shape[-1] == 3 and given.size:
        goals = np.tile(first, (given.size // 3, 1, 1))
        goals[:, :3, 3] = all_finite("through", given, name).reshape(-1, 3)
        return list(goals)
    problem = f"end points must be 4x4 poses or 3-vectors, not an array of shape {given.shape}"
    raise InputError("E-PATH-040", problem, part=name)


def _vias(name: str, via: Any, count: int) -> list[Via]:
    """Check the via points, one for each segment: a position for an arc, or None for a line."""
    if via is None:
        return [None] * count
    if not isinstance(via, Sequence | np.ndarray) or len(via) != count:
        given = len(via) if isinstance(via, Sequence | np.ndarray) else "none"
        problem = f"the numbers of via points ({given}) and end points ({count}) must be equal"
        remedy = "pass one via point per end point; use None for a line"
        if name == "arc":
            remedy = "pass one via point per end point"
        raise InputError("E-PATH-061", problem, remedy, part=name)
    return [None if each is None else finite("via", each, 3, name) for each in via]


@dataclass(frozen=True)
class Guided:
    """Options for moving a robot frame along a path.

    `name` is the name of the calling function, for error messages.
    """

    robot: Robot
    frame: str
    orientation: Orientation
    tolerance: float
    name: str

    def along(
        self, through: Any, via: Any, start: Any, blend: float, duration: float | None
    ) -> Move:
        """Return the motion through points, along lines or arcs (see `path`)."""
        q, first = self._begin(start)
        goals = _goals(self.name, through, first)
        vias = _vias(self.name, via, len(goals))
        width = 0.0 if blend == 0.0 else positive("blend", blend, self.name)
        if duration is not None:
            positive("duration", duration, self.name)
        if len(goals) == 1 or width:
            whole = self.followed(make_route(first, goals, vias, width, self.name), q)
            return _timed(whole, duration)
        if duration is None:
            problem = "without a duration, a path through several points must not have corners"
            raise InputError("E-PATH-038", problem, "pass `blend` or `duration`", part=self.name)
        return self._stopping(q, first, zip(goals, vias, strict=True), duration)

    def _stopping(
        self,
        q: np.ndarray,
        first: np.ndarray,
        segments: Iterable[tuple[np.ndarray, Via]],
        duration: float,
    ) -> Move:
        """Return a motion along all segments that stops at each corner."""
        moves: list[Move] = []
        for goal, on in segments:
            moves.append(self.followed(make_route(first, [goal], [on], 0.0, self.name), q))
            q = moves[-1].end
            free = self.orientation == "free"
            first = self.robot.forward_kinematics(q, frame=self.frame) if free else goal
        whole = sum(move.duration for move in moves)
        return Joined(tuple(_timed(move, duration * move.duration / whole) for move in moves))

    def _begin(self, start: Array) -> tuple[np.ndarray, np.ndarray]:
        """Check the robot and options; return the initial configuration and frame pose."""
        robot, name = self.robot, self.name
        check_robot(name, robot)
        if self.orientation not in get_args(Orientation):
            problem = f"`orientation` must be 'path' or 'free', not {self.orientation!r}"
            raise InputError("E-PATH-055", problem, part=name)
        q = finite("start", start, robot.nq, name)
        for body in robot.model.bodies:
            if not body.joint.holonomic:
                problem = f"joint {body.data.name!r} is nonholonomic, which is not supported"
                raise InputError("E-PATH-039", problem, "lock the joint with robot.lock", part=name)
        if robot.model.constraints:
            robot.mechanism.closing.check_closed(f"{name}: start", q, 1e-9)
        return q, robot.forward_kinematics(q, frame=self.frame)

    def followed(self, route: Route, q: np.ndarray) -> Move:
        """Return the motion along a route that starts at q.

        If the motion is impossible and q violates the joint limits, the error names the limit.
        """
        try:
            return self._followed(route, q)
        except InputError as error:
            off = np.abs(q - self.robot.clip(q))
            if not off.any():
                raise
            k, limits = int(np.argmax(off)), self.robot.limits
            ends = f"{limits.lower[k]:.6g} to {limits.upper[k]:.6g}"
            remedy = f"start within the joint limits: start[{k}] is {q[k]:.6g}, but its limits are "
            raise error.at(remedy=remedy + ends) from None

    def _followed(self, route: Route, q: np.ndarray) -> Move:
        """Return the motion along a route, with enough points to stay within the tolerance."""
        allowed, count = positive("tolerance", self.tolerance, self.name), FEWEST
        while True:
            s = np.linspace(0.0, route.length, count + 1)
            at = chart(self.robot, self._postures(route, s, q), self.name)
            curve = in_pieces(scipy.interpolate.make_interp_spline(s, self._steps(at, route, s), 5))
            path = at.move(curve, at.points[:1])
            between = 0.5 * (s[1:] + s[:-1])
            off = self._off(path.inside(between, 0)[0], route.pose(between))
            if off.max() <= allowed:
                return path
            if count >= MOST:
                place = _place(between[int(np.argmax(off))], route)
                problem = (
                    f"{self.frame!r} deviates from the path by {off.max():.3g} m or rad {place}"
                )
                remedy = "avoid singular configurations, or increase `tolerance`"
                raise InputError("E-PATH-043", problem, remedy, part=self.name)
            count *= 2

    def _steps(self, at: Chart, route: Route, s: np.ndarray) -> np.ndarray:
        """Return the displacements (m, n) of all configurations from the first one.

        Raise an error if a joint with a quaternion rotates more than half a turn from its initial
        position, because its displacement is then discontinuous.
        """
        steps = at.space.difference(at.points[:1], at.points)
        jumps = np.abs(np.diff(steps, axis=0)).max(axis=-1)
        if at.space.brackets and jumps.max() > np.pi:
            place = _place(s[int(np.argmax(jumps))], route)
            problem = f"a joint rotates more than half a turn from its initial position {place}"
            remedy = "split the path, and combine the parts with trajectory.join"
            raise InputError("E-PATH-062", problem, remedy, part=self.name)
        return np.asarray(steps)

    def _off(self, q: np.ndarray, T: np.ndarray) -> np.ndarray:
        """Return the frame's deviation (n,) from poses (n, 4, 4), in m and rad."""
        away = np.abs(self.robot.forward_kinematics(q, frame=self.frame) - T)
        counted = away[:, :3, 3:] if self.orientation == "free" else away
        return np.asarray(counted.max(axis=(-1, -2)))

    def _target(self, T: np.ndarray) -> Target:
        if self.orientation == "free":
            return Position(T[:3, 3], tolerance=EXACT)
        return Pose(T, tolerance=EXACT)

    def _postures(self, route: Route, s: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return configurations (m, nq) with the frame on the route, each near the previous one."""
        found, frame = [q], self.frame
        for place, T in zip(s[1:], route.pose(s[1:]), strict=True):
            target = {frame: self._target(T)}
            solution = self.robot.inverse_kinematics(target, guess=found[-1], tries=1)
            if not solution.solved:
                problem = f"no configuration places {frame!r} on the path {_place(place, route)}"
                remedy = "choose a start and a goal within reach and within the joint limits"
                if self.orientation == "path":
                    remedy += ", or let the frame turn: orientation='free'"
                raise InputError("E-PATH-044", problem, remedy, part=self.name)
            if np.abs(self.robot.difference(found[-1], solution.q)).max() > JUMP:
                problem = f"the configuration jumps {_place(place, route)}"
                remedy = "avoid singular configurations and joint limits"
                raise InputError("E-PATH-045", problem, remedy, part=self.name)
            found.append(solution.q)
        return np.array(found)


def _place(s: float, route: Route) -> str:
    return f"after {s:.4g} of {route.length:.4g} m (rad for a pure rotation)"


def _timed(path: Move, duration: float | None) -> Move:
    """Return the path with minimum-jerk timing, or unchanged if `duration` is None."""
    if duration is None:
        return path
    profile = minimum_jerk([0.0], [path.duration], duration)
    curve: scipy.interpolate.PPoly = profile.curve  # type: ignore[attr-defined]
    return Timed(path, scipy.interpolate.PPoly(curve.c[..., 0], curve.x))
