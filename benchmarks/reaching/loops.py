"""Time inverse kinematics of mechanisms with closed loops for random poses."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.table import Table

import chasles
from benchmarks.console import WrongAnswer
from chasles.robots import delta, five_bar, stewart
from chasles.targets import Pose, Position, Target

CLOSED = 1e-10
"""Tolerance (m or rad) for loop residuals."""


@dataclass(frozen=True)
class Case:
    """Mechanism, end-effector frame, and functions that return poses and their target."""

    make: Callable[[], chasles.Robot]
    frame: str
    poses: Callable[[chasles.Robot, int, np.random.Generator], np.ndarray]
    target: Callable[[np.ndarray], Target]


def _placed(robot: chasles.Robot, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return platform poses, turned by up to 0.4 rad and moved by up to 0.2 m along each axis."""
    start = robot.mechanism.loops.references[0]
    v = np.zeros((count, robot.nv))
    v[:, :3], v[:, 3:6] = rng.uniform(-0.4, 0.4, (count, 3)), rng.uniform(-0.2, 0.2, (count, 3))
    return robot.forward_kinematics(robot.integrate(start, v), frame="platform")


def _driven(reach: float, frame: str) -> Callable[..., np.ndarray]:
    """Return a function that draws poses, with independent joints displaced by up to `reach`."""

    def poses(robot: chasles.Robot, count: int, rng: np.random.Generator) -> np.ndarray:
        start = robot.mechanism.loops.references[0]
        y = np.array([start[robot.position_slice(name)][0] for name in robot.independent])
        q = robot.assemble(y + rng.uniform(-reach, reach, (count, len(y))), start)
        return robot.forward_kinematics(q, frame=frame)

    return poses


CASES = {
    "stewart": Case(stewart, "platform", _placed, Pose),
    "delta": Case(delta, "platform", _driven(0.5, "platform"), lambda T: Position(T[..., :3, 3])),
    "five_bar": Case(five_bar, "right_coupler", _driven(0.6, "right_coupler"), Pose),
}


def table(poses: int) -> Table:
    """Return a table with one row per mechanism: time (us) per pose, without and with a guess."""
    shown = Table("loops", "solved", "steps", "us", "solved from guess", "us", "largest residual")
    for name, case in CASES.items():
        robot = case.make()
        T = case.poses(robot, poses, np.random.default_rng(0))
        target = {case.frame: case.target(T)}
        cells, worst = [], 0.0
        for guess in (None, robot.mechanism.loops.references[0]):
            robot.inverse_kinematics(target, guess=guess, threads=1)  # compile first
            start = time.thread_time()
            found = robot.inverse_kinematics(target, guess=guess, threads=1)
            seconds = (time.thread_time() - start) / poses
            worst = max(worst, _worst(robot, case, T, found))
            steps = [] if guess is not None else [f"{found.iterations.mean():.1f}"]
            cells += [f"{100 * found.solved.mean():.2f} %", *steps, f"{1e6 * seconds:.1f}"]
        shown.add_row(name, *cells, f"{worst:.1e}")
    return shown


def _worst(
    robot: chasles.Robot, case: Case, T: np.ndarray, found: chasles.targets.Solution
) -> float:
    """Return the largest loop residual. Raise WrongAnswer if a solved pose is not reached."""
    q = found.q[found.solved]
    open_ = float(np.abs(robot.loop_residual(q)).max())
    P = robot.forward_kinematics(q, frame=case.frame)
    far = np.abs(P - T[found.solved])
    if case.target is not Pose:
        far = far[..., :3, 3]
    if open_ > CLOSED or far.max() > 3e-6:
        raise WrongAnswer(f"{robot.name}: loop residual {open_:.2g}, pose error {far.max():.2g}")
    return open_
