"""The fastest way along a path under limits on velocities, accelerations and joint torques."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from chasles.trajectory.reachable import FAR, Rows, Speeds, fastest

NODES = np.array([0.0, 0.5, 1.0])
"""Places in a grid interval where constraints are stated."""

CONTROL = np.array([[1.0, 0.0, 0.0], [-0.5, 2.0, -0.5], [0.0, 0.0, 1.0]])
"""From values of a parabola at the nodes to its Bernstein coefficients, which bound it."""

CHECKS = np.linspace(0.0, 1.0, 9)
"""Places in a grid interval where the result is checked."""

SLACK = 2e-9
"""Part of every limit that is left, so that rounding does not exceed it."""

MET = 1e-9
"""Limits are met where they are exceeded by less than this part of them."""

MOST_ROUNDS, CAUTION = 12, 1.05
"""How often limits are tightened where they are exceeded between grid points, and by how much more
than they were exceeded."""


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
        A trajectory whose time is any parameter s of the path, such as `spline` or `line`.
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
    coefficients of each interval, and are tightened where a check of nine places an interval finds
    that this was not enough.
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
    along = Along(robot, path, _points(path, grid), limits[0], limits[1], limits[2], motors)
    return _solved(along, *ends)


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
        found = np.linspace(0.0, path.duration, count + 1)
    else:
        found = all_finite("grid", np.asarray(grid, dtype=float), "time_optimal")
        whole = found.ndim == 1 and len(found) > 1 and found[0] == 0.0
        if not whole or abs(found[-1] - path.duration) > 1e-9 or np.any(np.diff(found) <= 0.0):
            problem = f"grid must increase from 0 to the path's duration, {path.duration:g}"
            raise InputError("E-PATH-028", problem, part="time_optimal")
    near = np.abs(found - breaks[np.clip(np.searchsorted(breaks, found), 0, len(breaks) - 1)])
    before = np.abs(found - breaks[np.clip(np.searchsorted(breaks, found) - 1, 0, len(breaks) - 1)])
    kept = found[np.minimum(near, before) > 1e-9 * path.duration]
    return np.sort(np.concatenate([kept, breaks]))


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
    def checked(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, q' and q'' where the result is checked."""
        return self.at(CHECKS)

    @cached_property
    def length(self) -> np.ndarray:
        """The lengths of the intervals (N,)."""
        return np.diff(self.s)

    def at(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, q' and q'' (N, k, n) at places from 0 to 1 in every interval."""
        path = self.path
        if not isinstance(path, Polynomial) or path.space.brackets:
            return self._asked(places)
        degree = len(path.curve.c) - 1
        jets = np.array([path.curve(self.s[:-1], nu) for nu in range(degree + 1)])
        h = self.length[:, None] * places
        found = []
        for order in range(3):
            total = np.zeros((*h.shape, jets.shape[-1]))
            for k in range(degree, order - 1, -1):
                total *= (h / (k - order + 1))[..., None]
                total += jets[k][:, None, :]
            found.append(total)
        return path.space.integrate(path.anchors[0], found[0]), found[1], found[2]

    def _asked(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same of any path; inside of every interval, since rates may jump at breaks."""
        inner = np.clip(places, 1e-9, 1.0 - 1e-9)
        found = self.path.inside(self.s[:-1, None] + self.length[:, None] * inner, 2)
        return found[0], found[1], found[2]

    def torques(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Joint torques, of the actuated joints where there are loops."""
        if self.robot.model.constraints:
            return self.robot.inverse_dynamics(q, qd, qdd, actuated=self.actuated)
        return self.robot.inverse_dynamics(q, qd, qdd)

    @cached_property
    def coefficients(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """a, b, c of all rows at the nodes (N, 3, rows), and the largest x there (N, 3).

        Rows are accelerations, then torques, of joints that have limits.
        """
        q, q1, q2 = self.at(NODES)
        a, b = q1[..., self.bent], q2[..., self.bent]
        c = np.zeros_like(a)
        if np.any(self.loaded):
            none = np.zeros_like(q1)
            tau = self.torques(
                np.stack([q, q, q]), np.stack([none, none, q1]), np.stack([none, q1, q2])
            )[..., self.loaded]
            parts = tau[1] - tau[0], tau[2] - tau[0], tau[0]
            a, b, c = (np.concatenate(two, -1) for two in zip((a, b, c), parts, strict=True))
        with np.errstate(divide="ignore"):
            top = np.min((self.velocity / np.abs(q1)) ** 2, axis=-1, where=q1 != 0.0, initial=FAR)
        return a, b, c, np.minimum(top, FAR)

    @cached_property
    def limits(self) -> np.ndarray:
        """The limits of the rows."""
        return np.concatenate([self.acceleration[self.bent], self.effort[self.loaded]])

    def rows(self) -> Rows:
        """All constraints of every interval, on Bernstein coefficients of their parabolas."""
        a, b, c, top = self.coefficients
        h = (2.0 * self.length[:, None] * NODES)[..., None]
        a, b, c = (np.einsum("kj,njr->nkr", CONTROL, each) for each in (a + h * b, b, c))
        n = len(self.length)
        lines = [each.reshape(n, -1) for each in (a, b, c)]
        limit = np.tile(self.limits, len(NODES))
        edge = 2.0 * self.length[:, None] * NODES[1:]
        one, none = np.ones((n, 2)), np.zeros((n, 2))
        lines = [np.concatenate(two, axis=1) for two in zip(lines, (edge, one, none), strict=True)]
        lo = np.concatenate([np.tile(-limit, (n, 1)), none], axis=1)
        hi = np.concatenate([np.tile(limit, (n, 1)), top[:, 1:]], axis=1)
        return Rows(*lines, lo, hi, top[:, 0], self.length)


def _solved(along: Along, start_speed: float, end_speed: float) -> Move:
    """The fastest way, with limits tightened until they hold between grid points too."""
    rows = along.rows()
    for _ in range(MOST_ROUNDS):
        found = fastest(rows, start_speed**2, end_speed**2, SLACK)
        if found.failed is not None:
            raise _infeasible(along, found, start_speed)
        excess = _exceeded(along, found.x)
        if max(each.max(initial=0.0) for each in excess) <= MET:
            break
        rows = _tightened(along, rows, *excess)
    return Timed(along.path, _profile(along, found.x))


def _exceeded(along: Along, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How far limits are exceeded in each interval, as parts of them.

    Below and above, (N, rows), and squared velocities, (N,).
    """
    rise = (x[1:] - x[:-1])[:, None, None]
    at = x[:-1, None, None] + rise * CHECKS[:, None]
    q, q1, q2 = along.checked
    qd = q1 * np.sqrt(np.maximum(at, 0.0))
    qdd = q1 * (0.5 * rise / along.length[:, None, None]) + q2 * at
    values = [(np.abs(qd) / along.velocity).max(axis=-1, keepdims=True) ** 2]
    if np.any(along.bent):
        values.append(qdd[..., along.bent] / along.acceleration[along.bent])
    if np.any(along.loaded):
        tau = along.torques(q, qd, qdd)
        values.append(tau[..., along.loaded] / along.effort[along.loaded])
    parts = np.concatenate(values, axis=-1)
    high, low = _peaks(parts)
    above, below = np.maximum(high - 1.0, 0.0), np.maximum(-1.0 - low, 0.0)
    return below[:, 1:], above[:, 1:], above[:, 0]


def _peaks(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest and smallest values in each interval, from (N, k, rows).

    By parabolas through three neighbours, and what a cubic may differ from them.
    """
    d, e = 0.5 * (v[:, 2:] - v[:, :-2]), 2.0 * v[:, 1:-1] - v[:, 2:] - v[:, :-2]
    inside = (np.abs(d) < np.abs(e)) & (e != 0.0)
    vertex = v[:, 1:-1] + np.where(inside, 0.5 * d * d / np.where(inside, e, 1.0), 0.0)
    more = np.abs(np.diff(e, axis=1)).max(axis=1) / 12.0
    high = np.maximum(v.max(axis=1), vertex.max(axis=1))
    low = np.minimum(v.min(axis=1), vertex.min(axis=1))
    return high + more, low - more


def _tightened(
    along: Along, rows: Rows, below: np.ndarray, above: np.ndarray, fast: np.ndarray
) -> Rows:
    """Limits that are narrower where they were exceeded."""
    k, part = len(NODES), 1.0 - CAUTION * fast
    lo, hi, top = rows.lo.copy(), rows.hi.copy(), rows.top * part
    n = k * len(along.limits)
    lo[:, :n] += np.tile(CAUTION * below * along.limits, k)
    hi[:, :n] -= np.tile(CAUTION * above * along.limits, k)
    hi[:, n:] *= part[:, None]
    return replace(rows, lo=lo, hi=hi, top=top)


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
    held = along.torques(along.at(NODES[:1])[0][k, 0], np.zeros(along.robot.nv), np.zeros(along.robot.nv))
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
