"""Speed of float32 relative to float64, of two threads relative to one, and start-up times."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import chasles
from benchmarks.compare import Effort, WrongAnswer, empty_cache, relative_error
from benchmarks.robots import CASES, chasles_robot, path_of
from benchmarks.states import States
from benchmarks.targets import THREADED_BATCH
from benchmarks.timing import interleaved

ROBOT = "panda"
"""Robot whose inverse dynamics are timed."""

SINGLE_TOLERANCE = 1e-4
"""Tolerance for the relative error in float32. The rounding error of 6e-8 is amplified by
cancellation along the arm."""


@dataclass(frozen=True)
class Ratio:
    """Time (s) per state of two variants of a computation, and the difference of their results."""

    what: str
    batch: int
    before: float
    after: float
    error: float

    @property
    def speedup(self) -> float:
        return self.before / self.after


@dataclass(frozen=True)
class Cold:
    """Minimum wall time and processor time (s) of several new processes."""

    what: str
    wall: float
    processor: float


@dataclass(frozen=True)
class Alone:
    """All measurements of this module."""

    ratios: tuple[Ratio, ...] = ()
    colds: tuple[Cold, ...] = ()


def measure(effort: Effort, *, progress: Callable[[str], None] = lambda _: None) -> Alone:
    """Measure all variants. Raise WrongAnswer if results differ."""
    quick = effort.compilations == 1
    with empty_cache():
        progress("float32, two threads")
        many = replace(effort, batch=effort.batch if quick else THREADED_BATCH)
        ratios = (float32(effort), two_threads(many))
        progress("cold start")
        colds = cold_start(1 if quick else 5)
    return Alone(ratios, colds)


def float32(effort: Effort) -> Ratio:
    """Compare the processor times of the compiled function for float64 and float32 arrays."""
    robot = chasles_robot(CASES[ROBOT])
    inputs = States.draw(robot, effort.batch).inputs("inverse_dynamics")
    short = [x.astype(np.float32) for x in inputs]
    double = chasles.compile(robot, "inverse_dynamics").fast
    single = chasles.compile(robot, "inverse_dynamics", dtype="float32").fast
    out, short_out = double(*inputs), single(*short)
    error = _required("float32", relative_error(short_out, out), SINGLE_TOLERANCE)
    runs = [partial(double, *inputs, out=out), partial(single, *short, out=short_out)]
    before, after = (t.minimum / effort.batch for t in interleaved(runs, effort.rounds))
    return Ratio("float32 against float64", effort.batch, before, after, error)


def two_threads(effort: Effort) -> Ratio:
    """Compare the wall times with one and two threads; results must be bitwise identical."""
    robot = chasles_robot(CASES[ROBOT])
    inputs = States.draw(robot, effort.batch).inputs("inverse_dynamics")
    outs = [robot.inverse_dynamics(*inputs, threads=n) for n in (1, 2)]
    error = _required("two threads", relative_error(outs[1], outs[0]), 0.0)
    runs = [
        partial(robot.inverse_dynamics, *inputs, out=out, threads=n)
        for n, out in enumerate(outs, 1)
    ]
    times = interleaved(runs, effort.rounds, clock=time.perf_counter_ns)
    before, after = (t.minimum / effort.batch for t in times)
    return Ratio("two threads against one", effort.batch, before, after, error)


COLD = """
import sys, time
def now(): return time.perf_counter(), time.process_time()
a = now()
import chasles
b = now()
robot = chasles.load(sys.argv[1])
zero = [0.0] * robot.nv
robot.inverse_dynamics(zero, zero, zero)
c = now()
print(b[0] - a[0], b[1] - a[1], c[0] - b[0], c[1] - b[1])
"""
"""Script of a new process. It prints four times (s): wall time and processor time of the import,
and wall time and processor time from `load` to the first torque."""


def cold_start(tries: int) -> tuple[Cold, ...]:
    """Time new processes, first with an empty cache, then with the cache that they have filled.

    Python's bytecode is already compiled, as in an installed package.
    """
    cold, cached = [], []
    with TemporaryDirectory() as code:
        for _ in range(1 + tries):
            with TemporaryDirectory() as folder:
                cold.append(_process(folder, code))
                cached.append(_process(folder, code))
    imports = np.min([row[:2] for row in cold + cached], axis=0)
    return (
        Cold("import", *imports.tolist()),
        Cold("nothing cached", *np.min(cold, axis=0)[2:].tolist()),
        Cold("cached", *np.min(cached, axis=0)[2:].tolist()),
    )


def _process(folder: str, code: str) -> list[float]:
    os.chmod(folder, 0o700)
    source = str(Path(chasles.__file__).parents[1])
    paths = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", COLD, str(path_of(CASES[ROBOT]))],
        env=os.environ
        | {"CHASLES_CACHE": folder, "PYTHONPATH": paths}
        | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": code},
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(word) for word in done.stdout.split()]


def _required(what: str, error: float, allowed: float) -> float:
    if not error <= allowed:
        raise WrongAnswer(f"{what}: relative error {error:.1e}, allowed {allowed:.1e}")
    return error
