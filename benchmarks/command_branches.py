"""Time the closed-form solution of all postures for random reachable poses, on one core."""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from rich.table import Table

import chasles
from benchmarks.console import WrongAnswer, count, output
from benchmarks.robots import CASES, chasles_robot

ARMS = ("ur5", "puma560", "stanford_arm", "panda")

NEAR = 4e-6
"""Tolerance for the entries of a pose matrix, for errors of three angles of 1e-6 rad each."""

REPEATS = 5
"""Number of timed calls. The fastest call counts."""


@dataclass(frozen=True)
class Row:
    """Time (s) and number of postures per pose, and fractions of poses.

    `complete` is the fraction of poses for which all postures are known to be found. `missed` is
    the fraction for which the posture that produced the pose was not found or, for a redundant arm,
    no posture was found.
    """

    name: str
    seconds: float
    postures: float
    complete: float
    missed: float


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--poses", type=count, default=20_000, help="Number of poses; default: 20,000."
    )
    parser.add_argument("--robots", nargs="+", choices=ARMS, default=ARMS)


def measure(name: str, poses: int) -> Row:
    """Time `solutions="all"`, and check every posture by forward kinematics.

    Each pose is computed from a posture. For arms that are not redundant, the fraction of these
    postures that are not found is counted.
    """
    robot, frame = _arm(name)
    q = robot.random(np.random.default_rng(0), size=poses)
    T = robot.forward_kinematics(q, frame=frame)
    times = []
    for _ in range(REPEATS + 1):
        start = time.thread_time()
        found = robot.inverse_kinematics({frame: T}, solutions="all", threads=1)
        times.append(time.thread_time() - start)
    solved, each = found.q[found.solved], found.solved.sum(axis=1)
    error = np.abs(robot.forward_kinematics(solved, frame=frame) - np.repeat(T, each, axis=0))
    inside = (solved >= robot.limits.lower) & (solved <= robot.limits.upper)
    if error.max() > NEAR or not inside.all():
        raise WrongAnswer(f"{name}: pose error {error.max():.2g}, or postures outside the limits")
    missed = float(np.mean(each == 0))
    if np.any(found.complete):
        missed = float(np.mean(~_among(robot, q, found.q)))
    return Row(name, min(times[1:]) / poses, each.mean(), float(np.mean(found.complete)), missed)


def _arm(name: str) -> tuple[chasles.Robot, str]:
    """Return an arm and the name of its end-effector frame."""
    if name in CASES:
        return chasles_robot(CASES[name]), CASES[name].tip
    robot: chasles.Robot = getattr(chasles.robots, name)()
    return robot, "tool"


def _among(robot: chasles.Robot, q: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return True (n,) for postures (n, nq) found in (n, count, nq), up to full turns."""
    turn = np.array([robot.joint(j).kind != "prismatic" for j in robot.joints]) * 2.0 * np.pi
    way = found - q[:, None]
    way -= turn * np.round(way / (2.0 * np.pi))
    return np.asarray((np.abs(way) < 1e-4).all(axis=-1).any(axis=-1))


def run(chosen: argparse.Namespace) -> int:
    columns = ("postures/s", "poses/s", "postures per pose", "complete", "not found")
    table = Table("robot", *columns)
    for name in chosen.robots:
        row = measure(name, chosen.poses)
        rates = [f"{row.postures / row.seconds:,.0f}", f"{1.0 / row.seconds:,.0f}"]
        shares = [f"{100.0 * share:.3f} %" for share in (row.complete, row.missed)]
        table.add_row(name, *rates, f"{row.postures:.2f}", *shares)
    output().print(table)
    return 0
