"""Time inverse kinematics of arms on a GPU, for random reachable poses in GPU memory.

Complete calls with a CuPy array of poses are timed, until the GPU has finished. Solutions are
checked on the CPU. The first call for a robot compiles its kernels or loads them from the cache.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks.console import WrongAnswer
from benchmarks.reaching.arms import ARMS, reached
from benchmarks.targets import REACHING_ON_GPU

REPEATS = 7
"""Number of timed calls. The fastest call counts."""

PART = 2**18
"""Number of poses that are checked at a time."""

ELSEWHERE = 5000
"""Number of poses that are solved again in another batch and must have the same solutions."""


@dataclass(frozen=True)
class Row:
    """Times (s) of the first and of a later call, fraction of solved poses, and steps per pose."""

    name: str
    poses: int
    first: float
    seconds: float
    solved: float
    steps: float


def measure(name: str, poses: int) -> Row:
    """Solve poses of postures distributed uniformly within the limits; check all solutions."""
    import cupy

    make, frame = ARMS[name]
    robot = make()
    T = robot.forward_kinematics(robot.random(np.random.default_rng(0), size=poses), frame=frame)
    given = cupy.asarray(T)

    def solve() -> Any:
        return robot.inverse_kinematics({frame: given})

    first, _ = _timed(cupy, solve)
    seconds, found = min((_timed(cupy, solve) for _ in range(REPEATS)), key=lambda pair: pair[0])
    q, solved = found.q.get(), found.solved.get()
    for start in range(0, poses, PART):
        some = slice(start, start + PART)
        if not reached(robot, frame, T[some], q[some])[solved[some]].all():
            raise WrongAnswer(f"{name}: a pose is marked as solved but is not reached")
    few = np.random.default_rng(1).permutation(poses)[:ELSEWHERE]
    again = robot.inverse_kinematics({frame: given[cupy.asarray(few)]})
    if not np.array_equal(again.q.get(), q[few], equal_nan=True):
        raise WrongAnswer(f"{name}: the solution of a pose depends on the batch")
    return Row(name, poses, first, seconds, float(solved.mean()), float(found.iterations.mean()))


def _timed(cupy: Any, call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the time (s) until the GPU has finished a call, and the result."""
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    found = call()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start, found


def table(names: Sequence[str], counts: Sequence[int]) -> Table:
    """Return a table with one row per arm and number of poses."""
    shown = Table("arm", "poses", "solved", "steps", "ms", "M poses/s", "target", "first call, s")
    for name in names:
        for poses in counts:
            row = measure(name, poses)
            rate, goal = row.poses / row.seconds / 1e6, REACHING_ON_GPU.get(name)
            shown.add_row(
                name,
                f"{row.poses:,}",
                f"{100 * row.solved:.4f} %",
                f"{row.steps:.1f}",
                f"{1e3 * row.seconds:.2f}",
                f"{rate:.0f}",
                "-" if goal is None else f"{goal / 1e6:.0f}",
                f"{row.first:.2f}",
            )
    return shown
