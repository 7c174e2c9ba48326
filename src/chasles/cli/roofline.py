"""Roofline model: execution times relative to the machine's arithmetic and memory limits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np
from rich.console import Console

from chasles.backends.arrays import cores
from chasles.backends.cuda import limits as cuda_limits
from chasles.backends.limits import Limits, Work, processor, rate
from chasles.cli.command import table
from chasles.cli.timing import Way, interleaved
from chasles.errors import InputError
from chasles.functions.compiled import Compiled
from chasles.functions.graphs import captured

GPU_SIZES, GPU_BYTES = (4096, 2**20), 2**32
"""Batch sizes (states) and maximum total array size (bytes) on the GPU."""

LAUNCHES = 10
"""Number of kernel launches in a timed CUDA graph."""

CHECKED, TOLERANCE = 64, {"float64": 1e-9, "float32": 2e-2}
"""Number of states for which GPU and CPU results are compared, and tolerance for each dtype.

Tolerances are relative to the largest result.
"""


@dataclass(frozen=True)
class Row:
    """Time (s) of a function for a batch, and its lower bounds on this machine.

    `arithmetic` and `memory` are the lower bounds (s). `device` is "1 core", "N cores" or "GPU".
    `call` is True for a call with a single state, and False for a batch, also of one state.
    """

    function: str
    states: int
    device: str
    dtype: str
    seconds: float
    arithmetic: float
    memory: float
    call: bool = False

    @property
    def bound(self) -> str:
        """The limit that determines the shortest possible time: "arithmetic" or "memory"."""
        return "arithmetic" if self.arithmetic >= self.memory else "memory"

    @property
    def fraction(self) -> float:
        """Ratio of the shortest possible time to the measured time."""
        return max(self.arithmetic, self.memory) / self.seconds

    def data(self) -> dict[str, Any]:
        """Return the row as machine-readable data."""
        return vars(self) | {"bound": self.bound, "fraction": self.fraction}


@dataclass(frozen=True)
class Roofline:
    """Performance limits of one core, all cores and the GPU, and measured rates of functions."""

    one: Limits
    every: Limits
    gpu: Limits | None
    rows: tuple[Row, ...] = ()

    @staticmethod
    def measured(*, gpu: bool = True) -> "Roofline":
        """Measure the limits of this machine in about a second."""
        return Roofline(processor(1), processor(cores()), _gpu() if gpu else None)

    def _row(
        self, title: str, work: Work, count: int, device: str, dtype: str, seconds: float
    ) -> Row:
        limits = {"1 core": self.one, "GPU": self.gpu}.get(device) or self.every
        least = limits.arithmetic(work, dtype, count), limits.memory(work, dtype, count)
        return Row(title, count, device, dtype, seconds, *least)

    def known(
        self, title: str, compiled: Compiled, batch: int, times: Sequence[float]
    ) -> Iterator[Row]:
        """Yield rows of the roofline table for times that have already been measured.

        `times` contains the seconds per state for a single call, and for a batch on one core, on
        all cores, and on one core in float32.
        """
        work = Work.of(compiled.program)
        call, one, every, single = times
        yield replace(self._row(title, work, 1, "1 core", "float64", call), call=True)
        yield self._row(title, work, batch, "1 core", "float64", batch * one)
        yield self._row(title, work, batch, "1 core", "float32", batch * single)
        yield self._row(title, work, batch, self._all, "float64", batch * every)

    @property
    def _all(self) -> str:
        return f"{cores()} cores"

    def large(
        self, title: str, compiled: Compiled, arrays: Mapping[str, np.ndarray], size: int
    ) -> Iterator[Row]:
        """Time a function on a batch with about `size` bytes of arrays."""
        work, ways, kinds = Work.of(compiled.program), [], []
        count = max(size // (8 * (work.read + work.written)), 2)
        for dtype in ("float64", "float32"):
            given = [_repeated(a, count).astype(dtype) for a in arrays.values()]
            out = compiled(*given)
            for device, threads in (("1 core", 1), (self._all, cores())):
                if dtype == "float64" or threads == 1:
                    run = partial(compiled, *given, out=out, threads=threads)
                    clock = process_time if threads == 1 else perf_counter
                    ways.append(Way(count, run, clock))
                    kinds.append((device, dtype))
        for (device, dtype), taken in zip(kinds, interleaved(ways, 0.0), strict=True):
            yield self._row(title, work, count, device, dtype, count * taken)

    def on_gpu(
        self, title: str, compiled: Compiled, arrays: Mapping[str, np.ndarray]
    ) -> Iterator[Row]:
        """Check the results of a function on the GPU, then time it in CUDA graphs."""
        if self.gpu is None:
            return
        work = Work.of(compiled.program)
        for count in GPU_SIZES:
            if 8 * count * (work.read + work.written) <= GPU_BYTES:
                for dtype in ("float64", "float32"):
                    values = {name: _repeated(a, count).astype(dtype) for name, a in arrays.items()}
                    taken = _launched(title, compiled, values, dtype)
                    yield self._row(title, work, count, "GPU", dtype, taken)

    def data(self) -> dict[str, Any]:
        """Return the machine's limits: operations/s, and bytes/s by array size."""
        found = {"one_core": self.one, "all_cores": self.every, "gpu": self.gpu}
        return {name: vars(each) if each else None for name, each in found.items()}

    def show(self, console: Console) -> None:
        """Print the machine's limits, and each function's speed as a percentage of these limits."""
        for each in (self.one, self.every, self.gpu):
            if each is not None:
                double, single = (each.operations[d] / 1e9 for d in ("float64", "float32"))
                memory = [rate(known, 2**30) / 1e9 for known in (each.copies, each.fills)]
                console.print(
                    f"{each.name}: {double:,.0f} billion operations per second in float64, "
                    f"{single:,.0f} in float32; copy {memory[0]:,.0f} GB/s, fill "
                    f"{memory[1]:,.0f} GB/s",
                    markup=False,
                )
        console.print("Percentage of the limit set by arithmetic (a) or memory (m):")
        kinds = list(dict.fromkeys((row.device, row.dtype) for row in self.rows))
        heads = [device if dtype == "float64" else f"{device} f32" for device, dtype in kinds]
        shown = table(["function", "states"], heads)
        found: dict[tuple[str, str], dict[tuple[str, str], Row]] = {}
        for row in self.rows:
            states = "batch of 1" if row.states == 1 and not row.call else f"{row.states:,}"
            found.setdefault((row.function, states), {})[row.device, row.dtype] = row
        before = ""
        for (function, states), cells in found.items():
            texts = (_percent(cells[kind]) if kind in cells else "" for kind in kinds)
            name, _, derived = function.partition(", ")
            label = f"  {derived}" if derived else f"[cyan]{name}[/]"
            shown.add_row(label if function != before else "", states, *texts)
            before = function
        console.print(shown)


def _percent(row: Row) -> str:
    return f"{100 * row.fraction:.0f} {row.bound[0]}"


def _gpu() -> Limits | None:
    """Return the limits of the GPU, or None without a GPU."""
    try:
        return cuda_limits.measured()
    except (ImportError, RuntimeError):
        return None


def _repeated(a: np.ndarray, count: int) -> np.ndarray:
    """Repeat the given states until there are `count` states."""
    return np.resize(a, (count, *a.shape[1:]))


def _launched(
    title: str, compiled: Compiled, values: Mapping[str, np.ndarray], dtype: str
) -> float:
    """Check results computed on the GPU; return the time (s) per kernel launch in a CUDA graph."""
    there = compiled.cuda.single if dtype == "float32" else compiled.cuda
    graph = captured(lambda *a: [there(*a) for _ in range(LAUNCHES)][-1], values, "cupy", None)
    results = graph()
    few = [a[:CHECKED].astype(float) for a in values.values()]
    rights = compiled(*few)
    pairs = zip(results, rights, strict=True) if isinstance(rights, tuple) else [(results, rights)]
    for result, right in pairs:
        found = result[:CHECKED].get()
        error = float(np.max(np.abs(found - right)) / np.max(np.abs(right)))
        if not error <= TOLERANCE[dtype]:
            problem = f"GPU results differ from CPU results (relative error {error:.1e})"
            raise InputError("E-CLI-046", problem, "timing was skipped", part=title)
    return cuda_limits.seconds(graph) / LAUNCHES
