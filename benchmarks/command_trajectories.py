"""Compare time-optimal paths with TOPP-RA, and S-curves with Ruckig, for the same limits."""

import argparse
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table

import chasles
from benchmarks.console import WrongAnswer, count, output
from benchmarks.reaching.arms import ARMS
from benchmarks.targets import TRAJECTORIES

ROBOTS = ("panda", "ur5", "puma560", "kinova_j2s6s200", "talos_arm", "iiwa14")

SHARES = {"ur5": 0.4, "talos_arm": 2.0}
"""Factors for the robots' torque limits; 0.5 for other robots.

The factors are chosen so that torque limits become active. The Talos arm has a factor of 2, because
the limits of its file are too small to hold the arm in these postures.
"""

EFFORTS = {"iiwa14": (320.0, 320.0, 176.0, 176.0, 110.0, 40.0, 40.0)}
"""Torque limits (N m) of robots whose file does not specify them."""

ALIKE = 0.02
"""Tolerance for the relative difference of durations on the same grid. chasles also enforces the
limits between grid points, so durations differ slightly."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--robots", nargs="+", choices=ROBOTS, default=list(ROBOTS))
    parser.add_argument("--grids", nargs="+", type=count, default=[100, 1000])
    parser.add_argument(
        "--repeat", type=count, default=20, help="Runs of each; the fastest counts."
    )


def best(repeat: int, *runs: Callable[[], Any]) -> list[float]:
    """Return the minimum processor time (s) of each function; the functions run alternately."""
    least = [float("inf")] * len(runs)
    for _ in range(repeat):
        for k, run in enumerate(runs):
            start = time.thread_time()
            run()
            least[k] = min(least[k], time.thread_time() - start)
    return least


def case(name: str) -> tuple[chasles.Robot, np.ndarray, dict[str, np.ndarray]]:
    """Return a robot, five configurations, and limits; limits of all kinds become active."""
    robot = ARMS[name][0]()
    q = 0.4 * robot.random(np.random.default_rng(5), size=5)
    if name == "panda":
        q[:, 3] -= 1.2
    limits = {
        "velocity": np.where(np.isinf(robot.limits.velocity), 4.0, robot.limits.velocity),
        "acceleration": np.full(robot.nv, 25.0),
        "effort": SHARES.get(name, 0.5) * np.array(EFFORTS.get(name, robot.limits.effort)),
    }
    return robot, q, limits


def toppra_run(
    robot: chasles.Robot, q: np.ndarray, limits: dict[str, np.ndarray], grid: np.ndarray
) -> Callable[[], Any] | None:
    """Return a function that runs TOPP-RA with Seidel's solver, or None if not installed."""
    try:
        import toppra
        from toppra import algorithm, constraint
    except ImportError:
        return None
    logging.getLogger("toppra").setLevel(logging.CRITICAL)
    path = toppra.SplineInterpolator(np.linspace(0.0, 1.0, len(q)), q, "natural")
    scheme = constraint.DiscretizationType.Interpolation
    both = {name: np.stack([-limit, limit], axis=1) for name, limit in limits.items()}
    rows = [
        constraint.JointVelocityConstraint(both["velocity"]),
        constraint.JointAccelerationConstraint(both["acceleration"], scheme),
        constraint.JointTorqueConstraint(
            robot.inverse_dynamics, both["effort"], np.zeros(robot.nv), scheme
        ),
    ]

    def run() -> Any:
        options = {"solver_wrapper": "seidel", "parametrizer": "ParametrizeConstAccel"}
        made = algorithm.TOPPRA(rows, path, gridpoints=grid, **options)
        return made.compute_trajectory(0.0, 0.0)

    return run


def excess(robot: chasles.Robot, move: Any, limits: dict[str, np.ndarray]) -> float:
    """Return by how much (N m) torques exceed their limits on a grid a hundred times as fine."""
    t = move.breaks
    fine = (t[:-1, None] + np.diff(t)[:, None] * np.linspace(0.0, 1.0, 100, endpoint=False)).ravel()
    return float(np.max(np.abs(robot.inverse_dynamics(*move(fine))) - limits["effort"]))


def optimal(chosen: argparse.Namespace, table: Table) -> None:
    for name in chosen.robots:
        robot, q, limits = case(name)
        path = chasles.trajectory.spline(np.linspace(0.0, 1.0, len(q)), q)
        for n in chosen.grids:
            grid = np.linspace(0.0, 1.0, n + 1)

            solve = chasles.trajectory.time_optimal
            ours = partial(solve, robot, path, grid=grid, **limits)
            move, peer = ours(), toppra_run(robot, q, limits, grid)
            if excess(robot, move, limits) > 1e-6:
                raise WrongAnswer(f"{name}: torques exceed their limits")
            theirs = peer() if peer is not None else None
            if theirs is not None and abs(move.duration / theirs.duration - 1.0) > ALIKE:
                raise WrongAnswer(f"{name}: {move.duration} s, but TOPP-RA {theirs.duration} s")
            times = best(chosen.repeat, ours, *([peer] if peer is not None else []))
            row = [f"{move.duration:.4f}", f"{1e3 * times[0]:.2f}"]
            rest = ["-"] * 3
            if theirs is not None:
                ratio = f"{times[1] / times[0]:.1f}"
                rest = [f"{theirs.duration:.4f}", f"{1e3 * times[1]:.2f}", ratio]
            table.add_row(name, str(n), *row, *rest)


def ruckig_duration(q: np.ndarray, limits: np.ndarray) -> Callable[[], float] | None:
    """Return a function that computes the duration with Ruckig, or None if not installed."""
    try:
        import ruckig
    except ImportError:
        return None
    n = q.shape[-1]
    given, zero = ruckig.InputParameter(n), np.zeros(n)
    given.current_position, given.target_position = q
    given.current_velocity = given.target_velocity = zero
    given.current_acceleration = given.target_acceleration = zero
    given.max_velocity, given.max_acceleration, given.max_jerk = limits

    def run() -> float:
        found = ruckig.Trajectory(n)
        ruckig.Ruckig(n).calculate(given, found)
        return float(found.duration)

    return run


def profiles(chosen: argparse.Namespace) -> Table:
    table = Table("S-curve, joints", "duration s", "time ms", "Ruckig duration s", "time ms")
    rng = np.random.default_rng(1)
    names = ("velocity", "acceleration", "jerk")
    for n in (1, 7):
        q, limits = rng.normal(size=(2, n)), rng.uniform(1.0, 3.0, size=(3, n)) * [[1], [2], [20]]

        def ours(q: np.ndarray = q, limits: np.ndarray = limits) -> Any:
            return chasles.trajectory.s_curve(*q, **dict(zip(names, limits, strict=True)))

        duration, peer = ours().duration, ruckig_duration(q, limits)
        if peer is not None and abs(peer() / duration - 1.0) > 1e-8:
            raise WrongAnswer(f"S-curve: {duration} s, but Ruckig {peer()} s")
        times = best(chosen.repeat, ours, *([peer] if peer is not None else []))
        rest = ["-", "-"] if peer is None else [f"{peer():.6f}", f"{1e3 * times[1]:.3f}"]
        table.add_row(str(n), f"{duration:.6f}", f"{1e3 * times[0]:.3f}", *rest)
    return table


def run(chosen: argparse.Namespace) -> int:
    title = f"time-optimal paths, processor time; target ratio: {TRAJECTORIES:g}"
    table = Table("robot", "grid", "s", "CPU ms", "TOPP-RA s", "CPU ms", "ratio", title=title)
    optimal(chosen, table)
    output().print(table)
    output().print(profiles(chosen))
    return 0
