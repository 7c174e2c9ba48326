"""Measure inverse kinematics for unreachable poses: deviation from the optimum, and time."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

import chasles
from benchmarks.console import WrongAnswer
from benchmarks.reaching.arms import ARMS
from benchmarks.robots import CASES, chasles_robot, pinocchio_model
from chasles.mechanisms.postures import TRIES
from chasles.model.spaces import size

NEAR = 1e-3
"""Threshold for the difference between an error and its optimum.

The error is the root of the sum of the squared angle (rad) and the squared distance, where the
distance is relative to the robot's size (`chasles.model.spaces.size`).
"""

SOLVED = 1e-5
"""Largest weighted error of a posture that may be marked as solved."""

DEEP = 10
"""Factor by which the reference search increases the number of tries."""


@dataclass(frozen=True)
class Row:
    """Measurements of one arm.

    Attributes
    ----------
    right : float
        Fraction of all poses, reachable or not, that are not wrongly marked as solved.
    seconds : float
        Processor time (s) per pose.
    slowest : int
        Largest number of steps for a pose.
    gaps : np.ndarray
        Errors of all poses, minus the errors found by a search with more tries.
    sampled : np.ndarray
        Errors of a sample of poses, minus the errors found by SciPy.
    """

    name: str
    right: float
    seconds: float
    slowest: int
    gaps: np.ndarray
    sampled: np.ndarray


def problems(robot: chasles.Robot, frame: str, poses: int, rng: Any) -> np.ndarray:
    """Return poses: half moved away from the base, half from postures beyond the limits."""
    lower, upper = np.maximum(robot.limits.lower, -4.0), np.minimum(robot.limits.upper, 4.0)
    half, wide = poses // 2, 0.4 * (upper - lower)
    T = robot.forward_kinematics(robot.random(rng, size=poses), frame=frame)
    T[:half, :3, 3] *= rng.uniform(1.2, 3.0, (half, 1))
    beyond = rng.uniform(lower - wide, upper + wide, (poses - half, robot.nq))
    T[half:] = robot.forward_kinematics(beyond, frame=frame)
    return T


def measure(name: str, poses: int, sample: int, starts: int) -> Row:
    """Compare the errors of unreachable poses with those that SciPy finds from many starts."""
    frame = ARMS[name][1]
    robot = chasles_robot(CASES[name], snap=False) if name in CASES else ARMS[name][0]()
    rng = np.random.default_rng(5)
    T = problems(robot, frame, 4 * poses, rng)
    first = robot.inverse_kinematics({frame: T}, threads=1)
    errors, lower, upper = _errors(name, robot, frame), robot.limits.lower, robot.limits.upper
    missed = first.solved & (_sizes(errors, first.q, T) > SOLVED)
    T = T[~first.solved][:poses]
    start = time.thread_time()
    found = robot.inverse_kinematics({frame: T}, threads=1)
    seconds = (time.thread_time() - start) / len(T)
    if not ((found.q >= lower) & (found.q <= upper)).all():
        raise WrongAnswer(f"{name}: a posture is outside the limits")
    chosen = rng.choice(len(T), min(sample, len(T)), replace=False)
    sampled = np.array([_gap(errors, found.q[k], T[k], lower, upper, starts, rng) for k in chosen])
    deeper = robot.inverse_kinematics({frame: T}, tries=DEEP * TRIES, seed=1)
    reached, least = (_sizes(errors, each.q, T) for each in (found, deeper))
    slowest = int(found.iterations.max())
    return Row(
        name, 1.0 - missed.mean(), seconds, slowest, np.maximum(reached - least, 0.0), sampled
    )


def _sizes(errors: "Errors", q: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Return the weighted errors (n,) of postures for poses."""
    pairs = zip(q, T, strict=True)
    return np.linalg.norm([errors.value(*pair) for pair in pairs], axis=1)


Placed = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rotation, position, and Jacobian (angular rows first, world axes) of a frame."""


@dataclass(frozen=True)
class Errors:
    """Weighted errors (6,) of a posture for a pose, and their derivative (6, n)."""

    placed: Callable[[np.ndarray], Placed]
    scale: float

    def value(self, q: np.ndarray, T: np.ndarray) -> np.ndarray:
        import pinocchio

        R, p, _ = self.placed(q)
        return np.concatenate([pinocchio.log3(T[:3, :3] @ R.T), self.scale * (T[:3, 3] - p)])

    def derivative(self, q: np.ndarray, T: np.ndarray) -> np.ndarray:
        import pinocchio

        R, _, J = self.placed(q)
        turned = pinocchio.Jlog3(T[:3, :3] @ R.T) @ J[:3]
        return -np.concatenate([turned, self.scale * J[3:]])


def _errors(name: str, robot: chasles.Robot, frame: str) -> Errors:
    """Return the error functions of a robot. For robots of `CASES`, Pinocchio computes them."""
    import pinocchio

    scale = 1.0 / size(robot.model)
    if name not in CASES:

        def own(q: np.ndarray) -> Placed:
            P = robot.forward_kinematics(q, frame=frame)
            return P[:3, :3], P[:3, 3], robot.jacobian(q, frame=frame)

        return Errors(own, scale)
    model = pinocchio_model(CASES[name])
    data, number = model.createData(), model.getFrameId(frame)

    def other(q: np.ndarray) -> Placed:
        axes = pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
        J = pinocchio.computeFrameJacobian(model, data, q, number, axes)
        at = pinocchio.updateFramePlacement(model, data, number)
        return at.rotation, at.translation, np.roll(J, 3, axis=0)

    return Errors(other, scale)


def _gap(
    errors: Errors, q: np.ndarray, T: np.ndarray, lower: Any, upper: Any, starts: int, rng: Any
) -> float:
    """Return the error of a posture minus the smallest error that SciPy finds."""
    from scipy.optimize import least_squares

    best, low, high = math.inf, np.maximum(lower, -math.pi), np.minimum(upper, math.pi)
    given = {"jac": errors.derivative, "bounds": (lower, upper), "args": (T,), "max_nfev": 60}
    for k in range(starts):
        begin = rng.uniform(low, high) if k else np.clip(q, lower + 1e-9, upper - 1e-9)
        best = min(best, math.sqrt(2.0 * least_squares(errors.value, begin, **given).cost))
    return float(np.linalg.norm(errors.value(q, T)) - best)


def table(names: list[str], poses: int, sample: int, starts: int) -> Table:
    """Return a table with one row per arm."""
    titles = (
        "unreachable",
        "right flags",
        "us per pose",
        "max. steps",
        "within 1e-3",
        "of",
        "worst",
    )
    shown = Table(*titles, "SciPy: within 1e-3", "of", "worst")
    for name in names:
        row = measure(name, poses, sample, starts)
        cells = [f"{100 * row.right:.2f} %", f"{1e6 * row.seconds:.0f}", f"{row.slowest}"]
        for gaps in (row.gaps, row.sampled):
            share, worst = (gaps <= NEAR).mean(), gaps.max(initial=0.0)
            cells += [f"{100 * share:.2f} %", f"{len(gaps)}", f"{worst:.1e}"]
        shown.add_row(name, *cells)
    return shown
