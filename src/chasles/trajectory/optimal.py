"""The fastest way along a path under limits on velocities, accelerations and joint torques."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import comb, perm
from typing import Any

import numpy as np
from scipy.interpolate import PPoly

from chasles.backends.arrays import checked_count
from chasles.errors import InputError
from chasles.functions.doors import check_robot
from chasles.robot import Robot
from chasles.trajectory.given import all_finite, bounds
from chasles.trajectory.moves import Array, Move, Polynomial, Timed
from chasles.trajectory.reachable import FAR, PLACES, Constraints, Speeds, bernstein, fastest

SLACK = 5e-7
"""Part of every limit that is left for rounding, and for errors of polynomials."""

CUBIC = 1.0 / 24.0
"""A parabola through three places of an interval differs from a smooth curve by 1/31 of the change
of its second difference from interval to interval at most, where that is a cubic's."""

STILL = 1e-6
"""A path stands still where its rate is less than this part of the largest one."""

STEADY = 0.5
"""Squared rates q' that change by more than this factor in an interval bound the speed as one."""

SHARES = np.linspace(0.0, 1.0, PLACES)
"""Where the places are in a grid interval."""

MOST_ROUNDS, CAUTION = 12, 1.1
"""How often limits are tightened where they are exceeded between places, and by how much more than
they were exceeded."""


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
        The robot, whose full dynamics bound the motion: joint torques are those of
        `robot.inverse_dynamics`, with loops closed.
    path
        A trajectory whose time is any parameter s of the path, such as `spline` or `line`; it must
        not stand still. Of one that `line`, `arc` or this function timed, the path counts.
    velocity, acceleration, effort
        Largest absolute values, one number or (nv,), in rad/s, rad/s2 and N m (m/s, m/s2 and N).
        By default those of `robot.limits`, which has no accelerations; infinite where there is
        none.
    grid
        The number of intervals along the path, or grid points that increase from 0 to its
        duration. Breaks of the path are added.
    start_speed, end_speed
        The speed ds/dt at the ends; by default the motion begins and ends at rest.
    actuated
        For a robot with loops, the freedoms with motors, as in `Robot.inverse_dynamics`.

    Returns
    -------
    Move
        The path in time. Its accelerations jump, as those of the fastest motion do.

    Raises
    ------
    InputError
        Where no speed satisfies the limits; the message names the place and the joint.

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
        problem = f"the path has positions of shape {path.start.shape}, the robot {robot.nq}"
        raise InputError("E-PATH-025", problem, "give a path of this robot", part="time_optimal")
    given = {
        "velocity": robot.limits.velocity if velocity is None else velocity,
        "acceleration": np.inf if acceleration is None else acceleration,
        "effort": robot.limits.effort if effort is None else effort,
    }
    limits = [bounds(k, v, robot.nv, "time_optimal", infinite=True) for k, v in given.items()]
    if all(np.all(np.isinf(each)) for each in limits):
        problem = f"robot {robot.name!r} has no limits of velocities and torques"
        remedy = "give velocity=, acceleration= or effort="
        raise InputError("E-PATH-026", problem, remedy, part="time_optimal")
    ends = [_speed(k, v) for k, v in (("start_speed", start_speed), ("end_speed", end_speed))]
    motors = robot.independent if robot.model.constraints and actuated is None else actuated
    while isinstance(path, Timed):
        path = path.path
    along = Along(robot, path, _points(path, grid), limits[0], limits[1], limits[2], motors)
    _check_moving(along)
    return _solved(along, *ends)


def _check_moving(along: "Along") -> None:
    """Refuse a path that stands still somewhere: there is no speed along it."""
    rate = np.abs(along.path_rates[1]).max(axis=-1)
    k = np.unravel_index(int(np.argmin(rate)), rate.shape)
    if rate[k] <= STILL * rate.max():
        place = along.s[k[1]] + along.length[k[1]] * SHARES[k[0]]
        problem = f"the path stands still at s = {place:.6g} of {along.s[-1]:.6g}"
        remedy = "give a path whose velocity is not zero, such as a natural spline or a line"
        raise InputError("E-PATH-054", problem, remedy, part="time_optimal")


def _speed(what: str, value: Any) -> float:
    if not (np.ndim(value) == 0 and math.isfinite(value) and value >= 0.0):
        problem = f"{what} must be a finite speed, zero or more, not {value!r:.60}"
        raise InputError("E-PATH-027", problem, part="time_optimal")
    return float(value)


def _points(path: Move, grid: Any) -> np.ndarray:
    """Grid points with the breaks of the path among them."""
    breaks = path.breaks
    if np.ndim(grid) == 0:
        count = checked_count("time_optimal: grid", grid)
        shares = np.ceil(count * np.diff(breaks) / path.duration - 1e-9).astype(int)
        parts = zip(breaks, breaks[1:], np.maximum(shares, 1), strict=False)
        return np.append(np.concatenate([np.linspace(a, b, n, False) for a, b, n in parts]), breaks[-1])
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
        """True for freedoms whose acceleration is limited."""
        return np.isfinite(self.acceleration)

    @cached_property
    def loaded(self) -> np.ndarray:
        """True for freedoms whose torque is limited."""
        return np.isfinite(self.effort)

    @cached_property
    def length(self) -> np.ndarray:
        """The lengths of the intervals (N,)."""
        return np.diff(self.s)

    @cached_property
    def path_rates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, q' and q'' (PLACES, N, n) at the places of every interval."""
        path, h = self.path, self.length[:, None]
        if not isinstance(path, Polynomial) or path.space.brackets:
            # inside of every interval, since rates may jump at its ends
            inner = np.clip(SHARES, 1e-9, 1.0 - 1e-9)[:, None]
            q, q1, q2 = path.inside(self.s[:-1] + self.length * inner, 2)
            return q, q1, q2
        degree = len(path.curve.c) - 1
        jets = _shifted(path.curve, self.s[:-1], h)
        flat = np.array(jets).reshape(degree + 1, -1)
        powers = np.arange(degree + 1)
        found = []
        for order in range(3):
            by = [perm(k, order) for k in powers]
            weights = by * SHARES[:, None] ** np.maximum(powers - order, 0)
            found.append((weights @ flat).reshape(PLACES, len(h), -1) / h**order)
        return path.space.integrate(path.anchors[0], found[0]), found[1], found[2]

    def torques(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Joint torques, of the actuated joints where there are loops."""
        if self.robot.model.constraints:
            return self.robot.inverse_dynamics(q, qd, qdd, actuated=self.actuated)
        return self.robot.inverse_dynamics(q, qd, qdd)

    @cached_property
    def coefficients(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """a, b, c of all rows at the places (PLACES, N, rows).

        Rows are accelerations, then torques, of joints that have limits.
        """
        q, q1, q2 = self.path_rates
        a, b = q1[..., self.bent], q2[..., self.bent]
        c = np.zeros_like(a)
        if np.any(self.loaded):
            none = np.zeros_like(q1)
            tau = self.torques(
                np.stack([q, q, q]), np.stack([none, none, q1]), np.stack([none, q1, q2])
            )[..., self.loaded]
            parts = tau[1] - tau[0], tau[2] - tau[0], tau[0]
            a, b, c = (np.concatenate(two, -1) for two in zip((a, b, c), parts, strict=True))
        return a, b, c

    @cached_property
    def limits(self) -> np.ndarray:
        """The limits of the rows."""
        return np.concatenate([self.acceleration[self.bent], self.effort[self.loaded]])

    def top(self) -> np.ndarray:
        """The largest Bernstein coefficients of x (PLACES, N) by the velocities' limits.

        Those of (velocity / q')^2, less what a polynomial may differ from it; where q' changes
        much within an interval, one number for all.
        """
        slow = (self.path_rates[1] / self.velocity) ** 2
        high, low = slow.max(axis=0), slow.min(axis=0)
        bend = np.abs(slow[0] - 2.0 * slow[1] + slow[2])
        safe = 1.0 / np.maximum(high + bend, 1.0 / FAR)
        even = low > STEADY * high
        fast = 1.0 / np.where(even, slow, 1.0)
        flat = fast.reshape(PLACES, -1)
        exact = (bernstein() @ flat).reshape(fast.shape) - _errors(fast)
        return np.asarray(np.where(even, np.maximum(exact, safe), safe).min(axis=-1))

    def constraints(self) -> Constraints:
        """All constraints of every interval."""
        a, b, c = self.coefficients
        a = a + b * (2.0 * self.length[:, None] * SHARES[:, None, None])
        a, b, c = ((bernstein() @ x.reshape(PLACES, -1)).reshape(x.shape) for x in (a, b, c))
        return Constraints(a, b, -self.limits - c, self.limits - c, self.top(), self.length)


def _shifted(curve: PPoly, s: np.ndarray, h: np.ndarray) -> list[np.ndarray]:
    """The polynomials from places s (N,) on: coefficients (N, n) of powers of (t - s) / h."""
    c, x = curve.c[::-1], curve.x
    piece = np.clip(np.searchsorted(x, s, "right") - 1, 0, len(x) - 2)
    t, rows = (s - x[piece])[:, None], [row[piece] for row in c]
    found = []
    for k in range(len(rows)):
        total = np.zeros_like(rows[0])
        for m in range(len(rows) - 1, k - 1, -1):
            total *= t
            total += comb(m, k) * rows[m]
        found.append(total * h**k)
    return found


def _solved(along: Along, start_speed: float, end_speed: float) -> Move:
    """The fastest way, with limits tightened until they hold between the places too."""
    given = along.constraints()
    for _ in range(MOST_ROUNDS):
        found = fastest(given, start_speed**2, end_speed**2, SLACK)
        if found.failed is not None:
            raise _infeasible(along, found, start_speed)
        excess = _exceeded(along, given, found.x)
        if not np.any(excess > 0.0):
            break
        narrow = CAUTION * _spread(excess)
        given = replace(given, lo=given.lo + narrow, hi=given.hi - narrow)
    return Timed(along.path, _profile(along, found.x))


def _spread(values: np.ndarray) -> np.ndarray:
    """The largest value of each interval and its neighbours, to which a switch may move."""
    found = np.maximum(values, 0.0)
    found[1:] = np.maximum(found[1:], values[:-1])
    found[:-1] = np.maximum(found[:-1], values[1:])
    return found


def _exceeded(along: Along, given: Constraints, x: np.ndarray) -> np.ndarray:
    """How far limits may be exceeded in each interval (N, r), by the errors of polynomials."""
    rise = (x[1:] - x[:-1])[:, None]
    u = 0.5 * rise / along.length[:, None]
    a, b, c = along.coefficients
    values = a * u + b * (x[:-1, None] + rise * SHARES[:, None, None]) + c
    edges = bernstein() @ values.reshape(PLACES, -1)
    peak = np.maximum(edges.max(axis=0), -edges.min(axis=0)).reshape(values.shape[1:])
    return np.asarray(peak + _errors(values) - along.limits)


def _errors(values: np.ndarray) -> np.ndarray:
    """How far curves may be from the parabolas through their values (PLACES, N, r): (N, r).

    The smaller one of the changes to the two neighbours counts: at a break of the path the other
    is not that of a smooth curve.
    """
    second = values[0] - 2.0 * values[1] + values[2]
    change = np.abs(np.diff(second, axis=0))
    if not len(change):
        return np.abs(second)
    return np.asarray(CUBIC * np.minimum(change[_before(len(second))], change[_after(len(second))]))


@cache
def _before(n: int) -> np.ndarray:
    """The change of each interval from the one before it."""
    return np.maximum(np.arange(n) - 1, 0)


@cache
def _after(n: int) -> np.ndarray:
    """The change of each interval to the one after it."""
    return np.minimum(np.arange(n), n - 2)


def _profile(along: Along, x: np.ndarray) -> PPoly:
    """s(t), a parabola in every interval."""
    speed = np.sqrt(np.maximum(x, 0.0))
    dt = 2.0 * along.length / (speed[:-1] + speed[1:])
    if not np.all(np.isfinite(dt)):
        k = int(np.argmax(~np.isfinite(dt)))
        problem = f"the motion stops at s = {along.s[k]:.6g} of {along.s[-1]:.6g}"
        remedy = "check the torque limits there, or give a finer grid"
        raise InputError("E-PATH-029", problem, remedy, part="time_optimal")
    bend = 0.25 * (x[1:] - x[:-1]) / along.length
    t = np.concatenate([[0.0], np.cumsum(dt)])
    return PPoly(np.array([bend, speed[:-1], along.s[:-1]]), t)


def _infeasible(along: Along, found: Speeds, start_speed: float) -> InputError:
    """The error that names the place, and the joint if its torque at rest exceeds the limit."""
    k = found.failed
    assert k is not None
    place = f"at s = {along.s[k]:.6g} of {along.s[-1]:.6g}"
    held = along.torques(along.path_rates[0][0, k], np.zeros(along.robot.nv), np.zeros(along.robot.nv))
    share = np.abs(held) / along.effort
    if share.max(initial=0.0) >= 1.0:
        j = int(np.argmax(share))
        name = _freedom(along.robot, j)
        problem = (
            f"{place}, {name} needs {abs(held[j]):.4g} (N m or N) to hold still, "
            f"but its limit is {along.effort[j]:.4g}"
        )
        remedy = "raise effort=, or choose another path"
        return InputError("E-PATH-030", problem, remedy, part="time_optimal")
    if k == 0 and found.low[0] <= found.high[0]:
        low, high = (math.sqrt(max(each, 0.0)) for each in (found.low[0], found.high[0]))
        problem = f"start_speed {start_speed:g} is outside of {low:.6g} to {high:.6g}"
        remedy = "change start_speed=, from which the limits can be met"
        return InputError("E-PATH-031", problem, remedy, part="time_optimal")
    problem = f"{place}, no speed meets all limits"
    remedy = "raise the limits, or choose another path"
    return InputError("E-PATH-032", problem, remedy, part="time_optimal")


def _freedom(robot: Robot, j: int) -> str:
    """The name of the joint that velocity j belongs to."""
    model = robot.model
    i = next(i for i in model.movers if j < model.velocity_slices[i].stop)
    return f"joint {model.bodies[i].data.name!r}"
