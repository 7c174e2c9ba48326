"""Motions of a frame along straight lines and arcs, by inverse kinematics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy

from chasles.errors import InputError
from chasles.functions.doors import check_robot
from chasles.functions.targets import Pose, Position, Target
from chasles.model.given import some_numbers
from chasles.robot import Robot
from chasles.trajectory.charts import chart
from chasles.trajectory.given import all_finite, finite, positive
from chasles.trajectory.moves import Array, Joined, Move, Timed
from chasles.trajectory.polynomials import minimum_jerk
from chasles.trajectory.splines import in_pieces, rigid

FEWEST, MOST = 32, 1024
"""Initial and largest number of configurations along a path."""

EXACT = 1e-10
"""Tolerance of inverse kinematics along the path, in rad and m."""

Orientation = Literal["path", "free"]
""""path": the frame also follows the path's orientation. "free": only its position follows."""

JUMP = 0.5
"""Largest change of a coordinate between two configurations, in rad or m."""


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
    robot
        A robot without quaternion joints, or a robot with closed loops, which stay closed (a
        Stewart platform, a delta robot).
    frame
        The frame that follows the lines. Along each line it rotates about a single axis.
    through
        End points of the lines in the world: one pose (4, 4) or several (m, 4, 4), or one position
        (3,) or several (m, 3) with constant orientation.
    start
        Initial configuration (nq,).
    blend
        Distance (m) before a corner at which the frame leaves a line for the next one; at most half
        of the shorter line. With 0, the frame stops at corners.
    duration
        Duration (s) of a motion from rest to rest with minimum jerk along the path. By
        default, the path has unit speed (m/s, or rad/s where the frame only rotates) and can be
        passed to `time_optimal`.
    tolerance
        Largest deviation from the path, in m and rad.
    orientation
        "path": the frame rotates from pose to pose, or keeps its orientation. "free": only its
        position follows the path, as for a five-bar linkage or an arm with few joints.

    Returns
    -------
    Move
        The motion of all joints.

    Raises
    ------
    InputError
        If the frame cannot follow the path; the message gives the position along it.

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
    q, first = _begin("line", robot, frame, start)
    hand = Guided(robot, frame, _checked_orientation("line", orientation), tolerance, "line")
    goals = _goals("line", through, first)
    width = 0.0 if blend == 0.0 else positive("blend", blend, "line")
    if duration is not None:
        positive("duration", duration, "line")
    if len(goals) == 1 or width:
        route = _route(first, goals, width)
        return _timed(hand.followed(route, q), duration)
    if duration is None:
        problem = "without a duration, a path through several points must not have corners"
        raise InputError("E-PATH-038", problem, "give `blend` or `duration`", part="line")
    moves: list[Move] = []
    for goal in goals:
        route = _route(first, [goal], 0.0)
        moves.append(hand.followed(route, q))
        q = moves[-1].end
        first = robot.forward_kinematics(q, frame=frame) if orientation == "free" else goal
    whole = sum(move.duration for move in moves)
    return Joined(tuple(_timed(move, duration * move.duration / whole) for move in moves))


def arc(
    robot: Robot,
    frame: str,
    via: Array,
    goal: Array,
    *,
    start: Array,
    duration: float | None = None,
    tolerance: float = 1e-6,
    orientation: Orientation = "path",
) -> Move:
    """Return the motion of a robot in which a frame follows an arc of a circle.

    Parameters
    ----------
    robot : Robot
        A robot without quaternion joints.
    frame : str
        The frame that follows the arc.
    via : array_like, shape (3,)
        A position on the arc (m, world).
    goal : array_like, shape (4, 4) or (3,)
        The end of the arc: a pose, to which the frame rotates about a single axis, or a position,
        which keeps the orientation.
    start : array_like, shape (nq,)
        Initial configuration.
    duration, tolerance
        As in `line`.

    Returns
    -------
    Move
        The motion.

    Examples
    --------
    >>> move = chasles.trajectory.arc(robot, "tool", via, goal, start=q)  # doctest: +SKIP
    """
    q, first = _begin("arc", robot, frame, start)
    hand = Guided(robot, frame, _checked_orientation("arc", orientation), tolerance, "arc")
    (last,) = _goals("arc", goal, first)
    if duration is not None:
        positive("duration", duration, "arc")
    route = _circle(first, finite("via", via, 3, "arc"), last)
    return _timed(hand.followed(route, q), duration)


def _begin(name: str, robot: Robot, frame: str, start: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the configuration and the frame's pose at the start."""
    check_robot(name, robot)
    q = finite("start", start, robot.nq, name)
    for body in robot.model.bodies:
        if not (body.joint.additive or robot.model.constraints):  # loops allow any joint
            problem = f"the coordinates of joint {body.data.name!r} do not form a vector space"
            remedy = "lock the joint with robot.lock"
            raise InputError("E-PATH-039", problem, remedy, part=name)
    if robot.model.constraints:
        robot.mechanism.closing.check_closed(f"{name}: start", q, 1e-9)
    return q, robot.forward_kinematics(q, frame=frame)


def _checked_orientation(name: str, orientation: Any) -> Orientation:
    if orientation not in get_args(Orientation):
        problem = f"orientation must be 'path' or 'free', not {orientation!r}"
        raise InputError("E-PATH-055", problem, part=name)
    found: Orientation = orientation
    return found


def _goals(name: str, through: Any, first: np.ndarray) -> list[np.ndarray]:
    """Return poses (4, 4), from poses or positions."""
    given = some_numbers("through", through, name).astype(float)
    if given.shape[-2:] == (4, 4) and given.ndim in (2, 3):
        return list(rigid(given.reshape(-1, 4, 4))[1])
    if given.ndim in (1, 2) and given.shape[-1] == 3 and given.size:
        goals = np.tile(first, (given.size // 3, 1, 1))
        goals[:, :3, 3] = all_finite("through", given, name).reshape(-1, 3)
        return list(goals)
    problem = f"goals must be poses (4, 4) or positions (3,), not shape {given.shape}"
    raise InputError("E-PATH-040", problem, part=name)


@dataclass(frozen=True)
class Route:
    """A path of poses: pose(s) returns (..., 4, 4) for s (...) from 0 to `length`."""

    length: float
    pose: Callable[[np.ndarray], np.ndarray]


def _route(first: np.ndarray, goals: Sequence[np.ndarray], blend: float) -> Route:
    """Return straight lines with blends at their corners.

    Along each line, the covered fraction grows from 0 to 1. In a blend, the speed along one line
    decreases while the speed along the next increases, both smoothly, so that accelerations are
    continuous.
    """
    ends = np.array([first, *goals])
    way = np.diff(ends[:, :3, 3], axis=0)
    turn = scipy.spatial.transform.Rotation.from_matrix(
        np.swapaxes(ends[:-1, :3, :3], -1, -2) @ ends[1:, :3, :3]
    )
    w, far = turn.as_rotvec(), np.linalg.norm(way, axis=-1)
    far = np.where(far > 1e-12, far, np.linalg.norm(w, axis=-1))
    if np.any(far <= 1e-12):
        problem = f"point {int(np.argmin(far))} coincides with the current position of the frame"
        raise InputError("E-PATH-041", problem, "omit this point", part="line")
    corners = np.concatenate([[0.0], np.cumsum(far)])
    half = np.minimum(blend, 0.5 * np.minimum(far[:-1], far[1:]))
    widths = np.concatenate([[0.0], half, [0.0]])

    def pose(s: np.ndarray) -> np.ndarray:
        begun = np.array([_begun(s - c, d) for c, d in zip(corners, widths, strict=True)])
        shares = np.moveaxis((begun[:-1] - begun[1:]), 0, -1) / far
        T = np.zeros((*np.shape(s), 4, 4))
        T[..., :3, 3], T[..., 3, 3] = first[:3, 3] + shares @ way, 1.0
        R = first[:3, :3]
        for k, each in enumerate(w):
            step = scipy.spatial.transform.Rotation.from_rotvec(
                shares[..., k].reshape(-1, 1) * each
            ).as_matrix()
            R = R @ step.reshape(*np.shape(s), 3, 3)
        T[..., :3, :3] = R
        return T

    return Route(float(corners[-1]), pose)


def _begun(x: np.ndarray, half: float) -> np.ndarray:
    """Return max(x, 0), smoothed for x between -half and half."""
    if half == 0.0:
        return np.maximum(x, 0.0)
    t = np.clip(0.5 * (x + half) / half, 0.0, 1.0)
    return np.where(x > half, x, 2.0 * half * (t**6 - 3.0 * t**5 + 2.5 * t**4))


def _circle(first: np.ndarray, via: np.ndarray, last: np.ndarray) -> Route:
    """Return the arc from the first pose through a point to the last pose."""
    a, b, c = first[:3, 3], via, last[:3, 3]
    u, v = b - a, c - a
    n = np.cross(u, v)
    area = float(n @ n)
    if area <= 1e-20 * max(float(u @ u), float(v @ v)) ** 2:
        problem = "the three points are collinear"
        raise InputError("E-PATH-042", problem, "use `line`, or move `via`", part="arc")
    center = a + (np.cross(n, u) * (v @ v) + np.cross(v, n) * (u @ u)) / (2.0 * area)
    x = a - center
    y = np.cross(n / np.sqrt(area), x)
    angle = float(np.arctan2((c - center) @ y, (c - center) @ x)) % (2.0 * np.pi)
    radius = float(np.linalg.norm(x))
    w = scipy.spatial.transform.Rotation.from_matrix(first[:3, :3].T @ last[:3, :3]).as_rotvec()

    def pose(s: np.ndarray) -> np.ndarray:
        turn = (np.asarray(s) / radius)[..., None]
        T = np.zeros((*np.shape(s), 4, 4))
        T[..., :3, 3] = center + np.cos(turn) * x + np.sin(turn) * y
        step = scipy.spatial.transform.Rotation.from_rotvec(
            (turn / angle).reshape(-1, 1) * w
        ).as_matrix()
        T[..., :3, :3], T[..., 3, 3] = first[:3, :3] @ step.reshape(*np.shape(s), 3, 3), 1.0
        return T

    return Route(radius * angle, pose)


@dataclass(frozen=True)
class Guided:
    """A frame of a robot that follows routes. `name` is the function name shown in errors."""

    robot: Robot
    frame: str
    orientation: Orientation
    tolerance: float
    name: str

    def followed(self, route: Route, q: np.ndarray) -> Move:
        """Return the motion along a route, with enough points to stay within the tolerance."""
        allowed, count = positive("tolerance", self.tolerance, self.name), FEWEST
        while True:
            s = np.linspace(0.0, route.length, count + 1)
            at = chart(self.robot, self._postures(route, s, q), self.name)
            curve = in_pieces(scipy.interpolate.make_interp_spline(s, at.points - at.points[0], 5))
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

    def _off(self, q: np.ndarray, T: np.ndarray) -> np.ndarray:
        """Return the deviation from poses (n, 4, 4) in m and rad."""
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
                problem = f"{frame!r} cannot reach the path {_place(place, route)}"
                remedy = "choose another start or goal, within reach and within the joint limits"
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
    """Return a path timed from rest to rest, with minimum jerk of its parameter."""
    if duration is None:
        return path
    profile = minimum_jerk([0.0], [path.duration], duration)
    curve: scipy.interpolate.PPoly = profile.curve  # type: ignore[attr-defined]
    return Timed(path, scipy.interpolate.PPoly(curve.c[..., 0], curve.x))
