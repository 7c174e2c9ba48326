"""Solve random reachable poses, beside the Robotics Toolbox where it is installed."""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

import chasles
from benchmarks.console import count, output
from benchmarks.robots import CASES, chasles_robot
from benchmarks.routes import WrongAnswer

TOLERANCE = 1e-6
"""Of angles (rad) and positions (m). The toolbox bounds half of the squared error instead."""

SLACK = 4.0
"""By so much the entries of a rotation matrix may differ, times the tolerance of three angles."""


def _robots() -> dict[str, tuple[Callable[[], chasles.Robot], str]]:
    """Names of arms, how to make them, and the frame that is to reach the poses."""
    arms = {name: CASES[name] for name in ("panda", "ur5")}
    found: dict[str, tuple[Callable[[], chasles.Robot], str]] = {
        name: (lambda case=case: chasles_robot(case), case.tip) for name, case in arms.items()
    }
    found["puma560"] = (chasles.robots.puma560, "tool")
    found["stanford_arm"] = (chasles.robots.stanford_arm, "tool")
    return found


@dataclass(frozen=True)
class Row:
    """Shares that were solved, steps a pose, and seconds a pose in a batch and alone."""

    name: str
    solved: float
    steps: float
    batch: float
    call: float
    peer_solved: float | None = None
    peer: float | None = None


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--poses", type=count, default=100_000, help="Poses. Default: 100,000.")
    parser.add_argument("--robots", nargs="+", choices=_robots(), default=list(_robots()))
    parser.add_argument(
        "--peer-poses", type=count, default=2000, help="Poses for the toolbox. Default: 2000."
    )


def measure(name: str, poses: int, peer_poses: int) -> Row:
    """Solve poses of random postures, uniform in the limits, and check every solution."""
    make, frame = _robots()[name]
    robot = make()
    rng = np.random.default_rng(0)
    T = robot.forward_kinematics(robot.random(rng, size=poses), frame=frame)
    found = robot.inverse_kinematics({frame: T}, threads=1)
    _check(robot, frame, T, found)
    start = time.thread_time()
    found = robot.inverse_kinematics({frame: T}, threads=1)
    batch = (time.thread_time() - start) / poses
    _check(robot, frame, T, found)
    alone = T[: min(poses, 500)]
    start = time.thread_time()
    for each in alone:
        robot.inverse_kinematics({frame: each})
    call = (time.thread_time() - start) / len(alone)
    peer = _toolbox(robot, frame, T[:peer_poses])
    return Row(name, found.solved.mean(), found.iterations.mean(), batch, call, *peer)


def _check(robot: chasles.Robot, frame: str, T: np.ndarray, found: Any) -> None:
    error = np.abs(robot.forward_kinematics(found.q, frame=frame) - T)[found.solved]
    inside = (found.q >= robot.limits.lower) & (found.q <= robot.limits.upper)
    if error.max(initial=0.0) > SLACK * TOLERANCE or not inside.all():
        raise WrongAnswer(f"{robot.name}: solutions miss by {error.max():.2g}, or leave the limits")


def _toolbox(robot: chasles.Robot, frame: str, T: np.ndarray) -> tuple[Any, Any]:
    """The share that `ik_LM` of the Robotics Toolbox solves within the limits, seconds a pose."""
    try:
        from roboticstoolbox import ET, ETS
    except ImportError:
        return None, None
    chain, before = ETS(), np.eye(4)
    here = robot.neutral()
    for name in robot.joints:
        joint = robot.joint(name)
        after = robot.forward_kinematics(here, frame=joint.child)
        turn = _to_axis(np.array(list(joint.axis)))
        sort = ET.tz if joint.kind == "prismatic" else ET.Rz
        low, high = (float(a[robot.position_slice(name)][0]) for a in _limits(robot))
        chain *= ET.SE3(np.linalg.inv(before) @ after @ turn) * sort(qlim=[low, high])
        before = after @ turn
    chain *= ET.SE3(np.linalg.inv(before) @ robot.forward_kinematics(here, frame=frame))
    start, solved = time.thread_time(), 0
    for each in T:
        found = chain.ik_LM(each, tol=0.5 * TOLERANCE**2, joint_limits=True)
        solved += bool(getattr(found, "success", None) if hasattr(found, "success") else found[1])
    return solved / len(T), (time.thread_time() - start) / len(T)


def _limits(robot: chasles.Robot) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = robot.limits.lower, robot.limits.upper
    return np.maximum(lower, -math.pi * 2), np.minimum(upper, math.pi * 2)


def _to_axis(axis: np.ndarray) -> np.ndarray:
    """A rotation whose z axis is the given one."""
    z = axis / np.linalg.norm(axis)
    other = np.eye(3)[np.argmin(np.abs(z))]
    x = np.cross(other, z) / np.linalg.norm(np.cross(other, z))
    T = np.eye(4)
    T[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    return T


def run(chosen: argparse.Namespace) -> int:
    table = Table("robot", "solved", "steps", "us a pose", "us alone", "toolbox", "us", "ratio")
    for name in chosen.robots:
        row = measure(name, chosen.poses, chosen.peer_poses)
        peer = ["-"] * 3
        if row.peer is not None and row.peer_solved is not None:
            ratio = f"{row.peer / row.batch:.0f}, alone {row.peer / row.call:.1f}"
            peer = [f"{100 * row.peer_solved:.2f} %", f"{1e6 * row.peer:.1f}", ratio]
        times = [f"{1e6 * row.batch:.2f}", f"{1e6 * row.call:.1f}"]
        table.add_row(name, f"{100 * row.solved:.3f} %", f"{row.steps:.1f}", *times, *peer)
    output().print(table)
    return 0
