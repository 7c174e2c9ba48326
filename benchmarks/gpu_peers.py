"""Time other libraries on the same GPU in the same run, and check their results.

Arrays are in GPU memory. Calls from Python are timed: many calls in a row, until the last result is
available. Launches of chasles are also timed within a CUDA graph, as in the other tables.
"""

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import chasles
from benchmarks.console import WrongAnswer
from benchmarks.gpu import graph_time
from benchmarks.robots import CASES, chasles_robot
from benchmarks.states import States

COUNTS = (1024, 16384, 2**20)
TOLERANCE = 2e-3
ROBOT = "panda"
INPUTS = {"inverse_dynamics": ("q", "qd", "qdd"), "bias_forces": ("q", "qd")}
PEERS = {"inverse_dynamics": "benchmarks.torch_peer", "bias_forces": "benchmarks.mjx_peer"}
"""Module of each function, with `runs(robot, inputs, dtype)`. It is imported only when used."""


@dataclass(frozen=True)
class PeerRow:
    """Measurement: time (s) of a call."""

    function: str
    count: int
    label: str
    seconds: float


def measure(
    counts: Sequence[int] = COUNTS, progress: Callable[[str], None] = lambda _: None
) -> list[PeerRow]:
    """Measure all routes in float32. Raise WrongAnswer if results differ; report omitted routes."""
    rows: list[PeerRow] = []
    robot = chasles_robot(CASES[ROBOT])
    for function, names in INPUTS.items():
        for count in counts:
            states = States.draw(robot, count)
            inputs = [getattr(states, name) for name in names]
            rows += _rows(robot, function, inputs, progress)
    return rows


def _rows(
    robot: chasles.Robot,
    function: str,
    inputs: Sequence[np.ndarray],
    progress: Callable[[str], None],
) -> Iterator[PeerRow]:
    import cupy

    right = chasles.compile(robot, function)(*(a.astype("float32").astype(float) for a in inputs))
    kernel = chasles.compile(robot, function, backend="cuda", dtype="float32")
    arrays = [cupy.asarray(a, "float32") for a in inputs]
    out = kernel(*arrays)
    _check("chasles", out.get(), right)
    count = len(right)
    graph = graph_time(lambda: kernel(*arrays, out=out))
    yield PeerRow(function, count, "chasles, in a graph", graph)
    yield PeerRow(function, count, "chasles, from Python", burst(lambda: kernel(*arrays, out=out)))
    _check("chasles", out.get(), right)
    for label, run in _peer(robot, function, inputs, progress).items():
        try:
            _check(label, _numbers(run()), right)
            seconds = burst(run)
            _check(label, _numbers(run()), right)
        except WrongAnswer:
            raise
        except Exception as error:  # for example, a compiler that is missing or incomplete
            progress(f"{label} left out: {str(error).splitlines()[0]}")
            continue
        yield PeerRow(function, count, label, seconds)


def _peer(
    robot: chasles.Robot,
    function: str,
    inputs: Sequence[np.ndarray],
    progress: Callable[[str], None],
) -> dict[str, Callable[[], Any]]:
    try:
        module = importlib.import_module(PEERS[function])
    except ImportError as error:
        progress(f"{PEERS[function]} left out: {error}")
        return {}
    found: dict[str, Callable[[], Any]] = module.runs(robot, inputs, "float32")
    return found


def burst(run: Callable[[], Any], least: float = 0.02, times: int = 5) -> float:
    """Return the time (s) of a call, in a sequence of calls that takes at least `least` seconds."""
    _wait(run())
    number = 1
    while True:
        taken = min(_burst(run, number) for _ in range(times))
        if taken >= least or number >= 4096:
            return taken / number
        number *= 4


def _burst(run: Callable[[], Any], number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        result = run()
    _wait(result)
    return time.perf_counter() - start


def _wait(result: Any) -> None:
    """Wait until a result of any library is available."""
    import cupy

    if hasattr(result, "block_until_ready"):
        result.block_until_ready()
    cupy.cuda.Device().synchronize()


def _numbers(result: Any) -> np.ndarray:
    """Return a result as a NumPy array."""
    return np.asarray(result.cpu() if hasattr(result, "cpu") else result)


def _check(label: str, found: np.ndarray, right: np.ndarray) -> None:
    error = np.abs(found - right).max() / np.abs(right).max()
    if not error <= TOLERANCE:
        raise WrongAnswer(f"{label}: off {error:.1e}")


def show(rows: Sequence[PeerRow], console: Console) -> None:
    """Print a table with ratios to the times of chasles, from Python and in a CUDA graph."""
    table = Table(title=f"{CASES[ROBOT].title}, float32, arrays on the GPU")
    for name in ("function", "states", "route", "time", "states/s", "vs. Python", "vs. graph"):
        left = name in ("function", "route")
        table.add_column(name, justify="left" if left else "right")
    mine: dict[tuple[str, int, str], float] = {
        (row.function, row.count, row.label): row.seconds for row in rows
    }
    for row in rows:
        ratios = [
            row.seconds / mine[row.function, row.count, f"chasles, {way}"]
            for way in ("from Python", "in a graph")
        ]
        table.add_row(
            row.function,
            f"{row.count:,}",
            row.label,
            f"{row.seconds * 1e6:.2f} us",
            f"{row.count / row.seconds / 1e9:.4f} G",
            *(f"{ratio:.1f}" for ratio in ratios),
        )
    console.print(table)
