"""Time-optimal motion along a path under limits on velocities, accelerations and torques."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from chasles.backends.arrays import COMPILING, checked_count
from chasles.errors import InputError
from chasles.functions.doors import check_robot
from chasles.functions.loads import loads
from chasles.robot import Robot
from chasles.trajectory.given import all_finite, bounds
from chasles.trajectory.grid import Grid, Size, keep, taken
from chasles.trajectory.moves import Array, Move, Polynomial, Timed
from chasles.trajectory.reachable import PLACES

STILL = 1e-6
"""Threshold for zero path velocity, relative to the maximum path velocity."""

SHARES = np.linspace(0.0, 1.0, PLACES)
"""Points in a grid interval where limits are imposed, as fractions of the interval's length."""


def time_optimal(
    robot: Robot,
    path: Move,
    *,
    velocity: Array = None,
    acceleration: Array = None,
    effort: Array = None,
    grid: int | Array = 200,
    start_speed: float = 0.0,
    end_speed: float = 0.0,
    actuated: Sequence[str] | None = None,
) -> Move:
    """Return the fastest motion along a path within the robot's limits.

    Parameters
    ----------
    robot : Robot
        The robot. Torque limits apply to the torques that `robot.inverse_dynamics` returns. Loops
        stay closed.
    path : Move
        A trajectory, such as `spline` or `line`, whose time serves as the path parameter s, and
        whose velocity is never zero. A timing from `line`, `arc`, `path` or `time_optimal` is
        ignored.
    velocity, acceleration, effort : float or array_like, shape (nv,), optional
        Maximum absolute values, in rad/s, rad/s2 and N m
        (m/s, m/s2 and N for prismatic joints). By default, velocity and effort are taken from
        `robot.limits`, and accelerations are unlimited.
    grid : int or array_like, optional
        Number of intervals along the path, or grid points that increase from 0 to its duration.
        The breakpoints of the path are added.
    start_speed, end_speed : float, optional
        The speed ds/dt at each end; by default, the motion begins and ends at rest.
    actuated : sequence of str, optional
        For a robot with loops, the degrees of freedom with motors, as in `Robot.inverse_dynamics`.

    Returns
    -------
    Move
        The timed path, with discontinuous accelerations, as for any time-optimal motion.

    Raises
    ------
    InputError
        If an argument is not valid, if the velocity of the path is zero at a point, or if no speed
        satisfies the limits. In the last case, the message gives the position along the path, and
        the name of the joint if a static torque exceeds its limit.
    ArgumentError
        If `robot` is not a Robot.

    Notes
    -----
    With sd = ds/dt and sdd its derivative, torques are tau = a(s) sdd + b(s) sd^2 + c(s). The
    coefficients are computed by batched inverse dynamics, and the speeds by reachability analysis
    (Pham and Pham, IEEE Transactions on Robotics 34, 2018). Limits also hold between grid points,
    because they are imposed on the Bernstein coefficients of each interval. Limits are tightened
    where these coefficients are not accurate enough.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> path = chasles.trajectory.spline([0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
    >>> move = chasles.trajectory.time_optimal(robot, path, velocity=2.0, effort=40.0)
    >>> 0.5 < move.duration < 2.0
    True
    """
    check_robot("time_optimal", robot)
    if not isinstance(path, Move):
        problem = f"`path` must be a trajectory, not {type(path).__name__}"
        raise InputError("E-PATH-024", problem, "use spline or line", part="time_optimal")
    if path.start.shape != (robot.nq,):
        problem = (
            f"the path has joint positions of shape {path.start.shape}, but the robot has "
            f"{robot.nq} coordinates"
        )
        raise InputError("E-PATH-025", problem, "pass a path for this robot", part="time_optimal")
    if robot.nq != robot.nv and path.inside(np.array(0.0), 1)[1].shape != (robot.nv,):
        problem = f"the path has {robot.nq} joint velocities, but the robot has {robot.nv}"
        raise InputError(
            "E-PATH-060", problem, "pass robot= to create the path", part="time_optimal"
        )
    given = {
        "velocity": robot.limits.velocity if velocity is None else velocity,
        "acceleration": np.inf if acceleration is None else acceleration,
        "effort": robot.limits.effort if effort is None else effort,
    }
    limits = _limits(robot, given)
    ends = [_speed(k, v) for k, v in (("start_speed", start_speed), ("end_speed", end_speed))]
    motors = robot.independent if robot.model.constraints and actuated is None else actuated
    while isinstance(path, Timed):
        path = path.path
    on = Along(robot, path, _points(path, grid), limits, limits < np.inf, motors)
    course = on.grid()
    try:
        on.fill(course)
        _check_moving(on, course)
        return _solved(on, course, *ends)
    finally:
        keep(course)


def _limits(robot: Robot, given: dict[str, Any]) -> np.ndarray:
    """Check the velocity, acceleration and torque limits; return them as an array (3, nv)."""
    found = np.empty((3, robot.nv))
    for row, (name, value) in zip(found, given.items(), strict=True):
        if type(value) is np.ndarray and value.dtype == float and value.shape == row.shape:
            row[...] = value
        else:
            row[...] = bounds(name, value, robot.nv, "time_optimal", infinite=True)
    every = found.ravel().tolist()
    if not all(map((0.0).__lt__, every)):  # also False for NaN
        for name, row in zip(given, found, strict=True):
            bounds(name, row, robot.nv, "time_optimal", infinite=True)  # raises an error
    if every.count(math.inf) == len(every):
        problem = f"robot {robot.name!r} has no velocity or torque limits"
        remedy = "pass `velocity`, `acceleration` or `effort`"
        raise InputError("E-PATH-026", problem, remedy, part="time_optimal")
    return found


def _check_moving(on: "Along", course: Grid) -> None:
    """Raise an error if the path's velocity is zero somewhere, because s(t) is undefined there."""
    pace = course.pace.ravel()
    if np.minimum.reduce(pace) <= STILL * np.maximum.reduce(pace):
        k, end = divmod(int(pace.argmin()), 2)
        problem = f"the path has zero velocity at s = {on.s[k + end]:.6g} of {on.s[-1]:.6g}"
        remedy = "use a path with nonzero velocity, such as a natural spline or a line"
        raise InputError("E-PATH-054", problem, remedy, part="time_optimal")


def _speed(what: str, value: Any) -> float:
    plain = isinstance(value, float | int) or np.ndim(value) == 0
    if not (plain and math.isfinite(value) and value >= 0.0):
        problem = f"{what} must be a finite non-negative speed, not {value!r:.60}"
        raise InputError("E-PATH-027", problem, part="time_optimal")
    return float(value)


def _points(path: Move, grid: Any) -> np.ndarray:
    """Return the path parameters of the grid points, which include the path's breakpoints."""
    breaks = path.breaks
    if np.ndim(grid) == 0:
        count, length = checked_count("time_optimal: grid", grid), breaks[1:] - breaks[:-1]
        shares = np.maximum(np.ceil(count / path.duration * length - 1e-9).astype(int), 1)
        number = np.arange(shares.sum()) - np.repeat(np.cumsum(shares) - shares, shares)
        inner = np.repeat(breaks[:-1], shares) + np.repeat(length / shares, shares) * number
        return np.append(inner, breaks[-1])
    found = np.asarray(grid, dtype=float)
    if found.ndim != 1 or len(found) < 2:
        found = all_finite("grid", np.atleast_1d(found), "time_optimal")
    ends = found.ndim == 1 and len(found) > 1 and found[0] == 0.0
    ends = ends and abs(found[-1] - path.duration) <= 1e-9
    if not ends or not np.minimum.reduce(found[1:] - found[:-1]) > 0.0:
        all_finite("grid", found, "time_optimal")
        problem = f"`grid` must increase from 0 to the path's duration, {path.duration:g}"
        raise InputError("E-PATH-028", problem, part="time_optimal")
    place = found.searchsorted(breaks)
    if place[-1] < len(found) and found[place].tolist() == breaks.tolist():
        return found
    place = np.searchsorted(breaks, found)
    near = breaks[np.maximum(place - 1, 0)], breaks[np.minimum(place, len(breaks) - 1)]
    apart = np.minimum(found - near[0], np.abs(near[1] - found))
    return np.sort(np.concatenate([found[apart > 1e-9 * path.duration], breaks]))


@dataclass(frozen=True, eq=False)
class Along:
    """A robot, a path, and the grid points s (N + 1,) along the path.

    The rows of `limits` (3, nv) are the velocity, acceleration and torque limits. The mask `finite`
    is True for finite limits.
    """

    robot: Robot
    path: Move
    s: np.ndarray
    limits: np.ndarray
    finite: np.ndarray
    actuated: Sequence[str] | None

    @property
    def polynomial(self) -> Polynomial | None:
        """The path, or None if its coordinates are not piecewise polynomials."""
        path = self.path
        return path if isinstance(path, Polynomial) and not path.space.brackets else None

    def grid(self) -> Grid:
        """Return the grid on which speed limits are computed, from the cache if possible."""
        bent, loaded = self.finite[1:].tolist()
        terms = 0 if self.polynomial is None else len(self.polynomial.pieces[0])
        robot = self.robot
        size = Size(len(self.s) - 1, robot.nq, robot.nv, sum(bent), sum(loaded), terms)
        return taken(size, self._loads(tuple(loaded)))

    def _loads(self, limited: tuple[bool, ...]) -> Any:
        """Return the program that computes the joint torques with finite limits.

        The program is compiled once per robot and combination of limits.
        """
        key, kept = ("torques along a path", limited), self.robot.mechanism.kept
        if key not in kept:
            with COMPILING:
                kept[key] = loads(self.robot.model, limited)
        return kept[key]

    def fill(self, course: Grid) -> None:
        """Store the path, and the torques and limits along it, at all points of a grid."""
        np.subtract(self.s[1:], self.s[:-1], out=course.length[:, 0])
        self._follow(course)
        course.bound(self.limits[0], self.limits[1:][self.finite[1:]])
        _, bent, loaded = self.finite
        if 0 < course.size.accelerations < course.size.velocities:
            course.bent[...] = course.rates[..., bent]
        if course.loads is None and course.size.torques:
            still, (q1, q2) = np.zeros_like(course.rates[0]), course.rates
            states = ((still, still), (still, q1), (q1, q2))
            for tau, rates in zip(course.torques, states, strict=True):
                tau[...] = self.torques(course.q, *rates)[..., loaded]

    def _follow(self, course: Grid) -> None:
        """Store the path in the grid, as polynomial coefficients or else as q, q' and q''."""
        path, begin = self.polynomial, self.s[:-1]
        if path is None:
            # stay inside each interval, because derivatives may jump at its ends
            inner = np.clip(SHARES, 1e-9, 1.0 - 1e-9)[:, None]
            places = begin + course.length.T * inner
            course.q[...], course.rates[0], course.rates[1] = self.path.inside(places, 2)
            return
        c, x = path.pieces
        piece = x.searchsorted(begin, "right") - 1
        c.take(piece, 1, course.pieces, "clip")
        np.subtract(begin, x[piece], out=course.start[:, 0])
        course.anchor[0] = path.anchors[0]  # reference point of all pieces

    def torques(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return joint torques; for a robot with loops, those of the actuated joints."""
        if self.robot.model.constraints:
            return self.robot.inverse_dynamics(q, qd, qdd, actuated=self.actuated)
        return self.robot.inverse_dynamics(q, qd, qdd)


def _solved(on: Along, course: Grid, start_speed: float, end_speed: float) -> Move:
    """Return the fastest motion along the path."""
    most = math.sqrt(course.end[0])
    if end_speed > most * (1.0 + 1e-9):
        problem = (
            f"`end_speed` {end_speed:g} exceeds {most:.6g}, the largest speed that the joint "
            "velocity limits allow"
        )
        remedy = "choose an `end_speed` within the limits"
        raise InputError("E-PATH-059", problem, remedy, part="time_optimal")
    failed = course.fastest(start_speed**2, end_speed**2)
    if failed is not None:
        raise _infeasible(on, course, failed, start_speed)
    return Timed(on.path, _profile(on, course))


def _profile(on: Along, course: Grid) -> "scipy.interpolate.PPoly":
    """Return the timing s(t), a quadratic polynomial in each interval."""
    n = len(course.dt)
    c, t = np.empty((3, n)), np.empty(n + 1)
    c[:2], c[2], t[0] = course.motion[..., 0], on.s[:-1], 0.0
    np.add.accumulate(course.dt[:, 0], out=t[1:])
    if not math.isfinite(t[-1]):
        k = int(np.argmax(~np.isfinite(t))) - 1
        problem = f"the motion stops at s = {on.s[k]:.6g}, before the end at s = {on.s[-1]:.6g}"
        remedy = "check the torque limits there, or use a finer grid"
        raise InputError("E-PATH-029", problem, remedy, part="time_optimal")
    return scipy.interpolate.PPoly.construct_fast(c, t)


def _infeasible(on: Along, course: Grid, k: int, start_speed: float) -> InputError:
    """Return an error that names the place on the path.

    If a joint is overloaded even at rest, the error also names this joint.
    """
    place = f"at s = {on.s[k]:.6g} of {on.s[-1]:.6g}"
    held = on.torques(on.path.inside(on.s[k], 0)[0], np.zeros(on.robot.nv), np.zeros(on.robot.nv))
    share = np.abs(held) / on.limits[2]
    if share.max(initial=0.0) >= 1.0:
        j = int(np.argmax(share))
        name = _freedom(on.robot, j)
        problem = (
            f"{place}, {name} needs {abs(held[j]):.4g} (N m or N) to stay at rest, but "
            f"its limit is {on.limits[2][j]:.4g}"
        )
        remedy = "increase `effort`, or choose another path"
        return InputError("E-PATH-030", problem, remedy, part="time_optimal")
    if k == 0 and course.reach[0, 0] <= course.reach[0, 1]:
        low, high = (math.sqrt(max(each, 0.0)) for each in course.reach[0].tolist())
        problem = (
            f"`start_speed` {start_speed:g} is outside the feasible range {low:.6g} to {high:.6g}"
        )
        remedy = "choose a `start_speed` within the limits"
        return InputError("E-PATH-031", problem, remedy, part="time_optimal")
    problem = f"{place}, no speed satisfies all limits"
    remedy = "increase the limits, or choose another path"
    return InputError("E-PATH-032", problem, remedy, part="time_optimal")


def _freedom(robot: Robot, j: int) -> str:
    """Return the name of the joint with velocity coordinate j."""
    model = robot.model
    i = next(i for i in model.movers if j < model.velocity_slices[i].stop)
    return f"joint {model.bodies[i].data.name!r}"
