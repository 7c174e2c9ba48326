"""The fastest way along a path under limits on velocities, accelerations and joint torques."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.interpolate import PPoly

from chasles.backends.arrays import checked_count
from chasles.errors import InputError
from chasles.functions.doors import check_robot
from chasles.robot import Robot
from chasles.trajectory.given import all_finite, bounds
from chasles.trajectory.moves import Array, Move, Polynomial, Timed
from chasles.trajectory.reachable import PLACES, SLACK, Course, Speeds, along, fastest
from chasles.trajectory.speed_limits import tops

CUBIC = 1.0 / 24.0
"""A parabola through three places of an interval differs from a smooth curve by 1/31 of the change
of its second difference from interval to interval at most, where that is a cubic's."""

STILL = 1e-6
"""A path stands still where its rate is less than this part of the largest one."""

SHARES = np.linspace(0.0, 1.0, PLACES)
"""Positions within a grid interval."""

MOST_ROUNDS, CAUTION = 12, 1.2
"""Number of times limits are tightened if errors of parabolas may exceed them, and by how much more
than these errors, which change a little with the speeds.
"""


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
    robot
        The robot, whose full dynamics bounds the motion: joint torques are those of
        `robot.inverse_dynamics`, with loops closed.
    path
        A trajectory whose time is any parameter s of the path, such as `spline` or `line`; it must
        not stand still. Only the path of a motion timed by `line`, `arc` or this function counts.
    velocity, acceleration, effort
        Largest absolute values, one number or (nv,), in rad/s, rad/s2 and N m (m/s, m/s2 and N). By
        default those of `robot.limits`, which has no accelerations; infinite where there is none.
    grid
        The number of intervals along the path, or grid points that increase from 0 to its duration.
        Breaks of the path are added.
    start_speed, end_speed
        The speed ds/dt at the ends; by default the motion begins and ends at rest.
    actuated
        For a robot with loops, the degrees of freedom with motors, as in `Robot.inverse_dynamics`.

    Returns
    -------
    Move
        The path in time. Its accelerations jump, as those of the fastest motion do.

    Raises
    ------
    InputError
        If no speed satisfies the limits; the message names the place and the joint.

    Notes
    -----
    With sd = ds/dt, torques are tau = a(s) sdd + b(s) sd^2 + c(s). All coefficients come from one
    batch of inverse dynamics. Reachability analysis (Pham and Pham, IEEE Transactions on Robotics
    34, 2018) gives the speeds; limits hold between grid points too: they bound the Bernstein
    coefficients of each interval, and are tightened where these are not exact enough.
    """
    check_robot("time_optimal", robot)
    if not isinstance(path, Move):
        problem = f"path must be a trajectory, not {type(path).__name__}"
        raise InputError("E-PATH-024", problem, "make one with spline or line", part="time_optimal")
    if path.start.shape != (robot.nq,):
        problem = (
            f"the path has positions of shape {path.start.shape}, but the robot has "
            f"{robot.nq} coordinates"
        )
        raise InputError("E-PATH-025", problem, "give a path of this robot", part="time_optimal")
    given = {
        "velocity": robot.limits.velocity if velocity is None else velocity,
        "acceleration": np.inf if acceleration is None else acceleration,
        "effort": robot.limits.effort if effort is None else effort,
    }
    limits = [bounds(k, v, robot.nv, "time_optimal", infinite=True) for k, v in given.items()]
    if all(np.all(np.isinf(each)) for each in limits):
        problem = f"robot {robot.name!r} has no velocity or torque limits"
        remedy = "give `velocity`, `acceleration` or `effort`"
        raise InputError("E-PATH-026", problem, remedy, part="time_optimal")
    ends = [_speed(k, v) for k, v in (("start_speed", start_speed), ("end_speed", end_speed))]
    motors = robot.independent if robot.model.constraints and actuated is None else actuated
    while isinstance(path, Timed):
        path = path.path
    on = Along(robot, path, _points(path, grid), limits[0], limits[1], limits[2], motors)
    _check_moving(on)
    return _solved(on, *ends)


def _check_moving(on: "Along") -> None:
    """Refuse a path that stands still somewhere: there is no speed along it."""
    rates = on.path_rates[1]
    columns = np.concatenate([rates[0].T, rates[-1, -1:].T], axis=1)  # longer rows are faster
    rate = np.abs(columns).max(axis=0)
    k = int(np.argmin(rate))
    if rate[k] <= STILL * rate.max():
        problem = f"the path has zero velocity at s = {on.s[k]:.6g} of {on.s[-1]:.6g}"
        remedy = "use a path with nonzero velocity, such as a natural spline or a line"
        raise InputError("E-PATH-054", problem, remedy, part="time_optimal")


def _speed(what: str, value: Any) -> float:
    if not (np.ndim(value) == 0 and math.isfinite(value) and value >= 0.0):
        problem = f"{what} must be a finite non-negative speed, not {value!r:.60}"
        raise InputError("E-PATH-027", problem, part="time_optimal")
    return float(value)


def _points(path: Move, grid: Any) -> np.ndarray:
    """Grid points with the breaks of the path among them."""
    breaks = path.breaks
    if np.ndim(grid) == 0:
        count = checked_count("time_optimal: grid", grid)
        shares = np.ceil(count * np.diff(breaks) / path.duration - 1e-9).astype(int)
        parts = zip(breaks, breaks[1:], np.maximum(shares, 1), strict=False)
        return np.append(
            np.concatenate([np.linspace(a, b, n, False) for a, b, n in parts]), breaks[-1]
        )
    found = all_finite("grid", np.asarray(grid, dtype=float), "time_optimal")
    whole = found.ndim == 1 and len(found) > 1 and found[0] == 0.0
    if not whole or abs(found[-1] - path.duration) > 1e-9 or np.any(np.diff(found) <= 0.0):
        problem = f"grid must increase from 0 to the path's duration, {path.duration:g}"
        raise InputError("E-PATH-028", problem, part="time_optimal")
    place = np.searchsorted(breaks, found)
    near = [breaks[np.clip(place - k, 0, len(breaks) - 1)] for k in (0, 1)]
    apart = np.minimum(*(np.abs(found - each) for each in near))
    return np.sort(np.concatenate([found[apart > 1e-9 * path.duration], breaks]))


@dataclass(frozen=True, eq=False)
class Along:
    """A robot on a path: limits (nv,), grid points s (N + 1,), and coefficients between them."""

    robot: Robot
    path: Move
    s: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray
    actuated: Sequence[str] | None

    @cached_property
    def bent(self) -> np.ndarray:
        """True for coordinates whose acceleration is limited."""
        return np.isfinite(self.acceleration)

    @cached_property
    def loaded(self) -> np.ndarray:
        """True for coordinates whose torque is limited."""
        return np.isfinite(self.effort)

    @cached_property
    def length(self) -> np.ndarray:
        """The lengths of the intervals (N,)."""
        return np.diff(self.s)

    @cached_property
    def path_rates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, q' and q'' (PLACES, N, n) at the places of every interval."""
        path = self.path
        if not isinstance(path, Polynomial) or path.space.brackets:
            # inside of every interval, since rates may jump at its ends
            inner = np.clip(SHARES, 1e-9, 1.0 - 1e-9)[:, None]
            q, q1, q2 = path.inside(self.s[:-1] + self.length * inner, 2)
            return q, q1, q2
        q, q1, q2 = along(path.curve, self.s[:-1], self.length)
        return path.space.integrate(path.anchors[0], q), q1, q2

    def torques(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Joint torques, of the actuated joints where there are loops."""
        if self.robot.model.constraints:
            return self.robot.inverse_dynamics(q, qd, qdd, actuated=self.actuated)
        return self.robot.inverse_dynamics(q, qd, qdd)

    @cached_property
    def course(self) -> Course:
        """The constraints at all places, whose torques are three batches of inverse dynamics."""
        q, q1, q2 = self.path_rates
        bent, loaded = self.bent, self.loaded
        some = _columns(q1, bent), _columns(q2, bent)
        if not np.any(loaded):
            none = np.zeros((*q1.shape[:2], 0))
            return Course(some[0], some[1], none, none, none, self.length)
        still = np.zeros_like(q1)
        states = ((still, still), (still, q1), (q1, q2))
        tau = [_columns(self.torques(q, *rates), loaded) for rates in states]
        return Course(some[0], some[1], tau[0], tau[1], tau[2], self.length)

    @cached_property
    def limits(self) -> np.ndarray:
        """The limits of accelerations and torques (r,)."""
        return np.concatenate([self.acceleration[self.bent], self.effort[self.loaded]])

    def top(self) -> np.ndarray:
        """The largest Bernstein coefficients of x (PLACES, N) by the velocities' limits."""
        top = tops(self.path_rates[1], self.velocity, _errors)
        top[0, 1:] = np.minimum(top[0, 1:], top[2, :-1])  # of one grid point
        return top * (1.0 - SLACK)


def _solved(on: Along, start_speed: float, end_speed: float) -> Move:
    """The fastest way, with limits tightened until they hold between the places too."""
    course, top = on.course, on.top()
    hi = np.tile(on.limits, (len(on.length), 1))
    for _ in range(MOST_ROUNDS):
        found = fastest(course.rows(-hi, hi, top), top[0], start_speed**2, end_speed**2)
        if found.failed is not None:
            raise _infeasible(on, found, start_speed)
        peak, second = course.peaks(found.x)
        error = _errors(second)
        over = peak + error > on.limits
        if not np.any(over):
            break
        hi = np.minimum(hi, on.limits - _spread(np.where(over, CAUTION * error, 0.0)))
    return Timed(on.path, _profile(on, found.x))


def _columns(array: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Some entries of the last axis; the array itself where these are all."""
    return array if np.all(chosen) else array[..., chosen]


def _spread(values: np.ndarray) -> np.ndarray:
    """The largest value of each interval and its neighbours, to which a switch may move."""
    found = values.copy()
    found[1:] = np.maximum(found[1:], values[:-1])
    found[:-1] = np.maximum(found[:-1], values[1:])
    return found


def _errors(second: np.ndarray) -> np.ndarray:
    """Return the largest deviation of curves from parabolas with these second differences (N, r).

    The smaller one of the changes to the two neighbours counts: at a break of the path the other is
    not that of a smooth curve.
    """
    if len(second) == 1:
        return np.abs(second)
    change = CUBIC * np.abs(np.diff(second, axis=0))
    found = np.empty_like(second)
    found[0], found[-1] = change[0], change[-1]
    np.minimum(change[:-1], change[1:], out=found[1:-1])
    return found


def _profile(on: Along, x: np.ndarray) -> PPoly:
    """s(t), a parabola in every interval."""
    speed = np.sqrt(np.maximum(x, 0.0))
    dt = 2.0 * on.length / (speed[:-1] + speed[1:])
    if not np.all(np.isfinite(dt)):
        k = int(np.argmax(~np.isfinite(dt)))
        problem = f"the motion stops at s = {on.s[k]:.6g} of {on.s[-1]:.6g}"
        remedy = "check the torque limits there, or use a finer grid"
        raise InputError("E-PATH-029", problem, remedy, part="time_optimal")
    bend = 0.25 * (x[1:] - x[:-1]) / on.length
    t = np.concatenate([[0.0], np.cumsum(dt)])
    return PPoly(np.array([bend, speed[:-1], on.s[:-1]]), t)


def _infeasible(on: Along, found: Speeds, start_speed: float) -> InputError:
    """The error that names the place, and the joint if its torque at rest exceeds the limit."""
    k = found.failed
    assert k is not None
    place = f"at s = {on.s[k]:.6g} of {on.s[-1]:.6g}"
    held = on.torques(on.path_rates[0][0, k], np.zeros(on.robot.nv), np.zeros(on.robot.nv))
    share = np.abs(held) / on.effort
    if share.max(initial=0.0) >= 1.0:
        j = int(np.argmax(share))
        name = _freedom(on.robot, j)
        problem = (
            f"{place}, {name} needs {abs(held[j]):.4g} (N m or N) to stand still, but "
            f"its limit is {on.effort[j]:.4g}"
        )
        remedy = "increase `effort`, or choose another path"
        return InputError("E-PATH-030", problem, remedy, part="time_optimal")
    if k == 0 and found.low[0] <= found.high[0]:
        low, high = (math.sqrt(max(each, 0.0)) for each in (found.low[0], found.high[0]))
        problem = f"start_speed {start_speed:g} is outside {low:.6g} to {high:.6g}"
        remedy = "choose a start_speed within the limits"
        return InputError("E-PATH-031", problem, remedy, part="time_optimal")
    problem = f"{place}, no speed satisfies all limits"
    remedy = "increase the limits, or choose another path"
    return InputError("E-PATH-032", problem, remedy, part="time_optimal")


def _freedom(robot: Robot, j: int) -> str:
    """The name of the joint that velocity j belongs to."""
    model = robot.model
    i = next(i for i in model.movers if j < model.velocity_slices[i].stop)
    return f"joint {model.bodies[i].data.name!r}"
