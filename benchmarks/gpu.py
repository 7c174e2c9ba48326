"""Kernels on a GPU: states a second, beside what its memory and its arithmetic allow.

Arrays are on the GPU ("resident") in rows or in columns, or come from the host and go back. Times
are of launches within a CUDA graph, as many as take a millisecond; the least of several graphs.
The floor of a function is the longer of two times: that of moving its arguments and results at the
rate at which the GPU copies an array, and that of its operations (a fused product counts once) at
the GPU's peak. Answers are checked against machine code on the CPU before and after.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.robots import CASES, chasles_robot
from benchmarks.routes import WrongAnswer, compiled
from benchmarks.states import States
from chasles.backends.cuda.body import Plan

COUNTS = (16, 256, 1024, 16384, 2**20, 2**22)
FUNCTIONS = (
    "forward_kinematics",
    "jacobian",
    "inverse_dynamics",
    "mass_matrix",
    "forward_dynamics",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
)
DTYPES = ("float32", "float64")
LAYOUTS = ("rows", "columns")
DISTINCT = 4096
"""States that differ; larger batches repeat them."""

MOST_BYTES = 24 * 2**30
"""Arrays of one measurement together; a larger batch is left out."""

TOLERANCE = {"float64": 1e-9, "float32": 2e-3}
LANES = {"float32": 128, "float64": 64}
"""Operations that a multiprocessor starts in a cycle (compute capability 9.0)."""


@dataclass(frozen=True)
class Machine:
    """A GPU: its name, bytes copied in a second (read and written), operations in a second."""

    name: str
    bandwidth: float
    operations: dict[str, float]

    @staticmethod
    def measured() -> "Machine":
        """The current GPU."""
        import cupy

        device = cupy.cuda.Device()
        names = cupy.cuda.runtime.getDeviceProperties(device.id)["name"].decode()
        a = cupy.zeros(2**29, cupy.float32)
        b = cupy.empty_like(a)
        stream = cupy.cuda.get_current_stream()
        seconds = min(seconds_of(cupy, stream, lambda: cupy.copyto(b, a)) for _ in range(10))
        rate = device.attributes["MultiProcessorCount"] * device.attributes["ClockRate"] * 1e3
        return Machine(
            names, 2 * a.nbytes / seconds, {dtype: rate * n for dtype, n in LANES.items()}
        )


@dataclass(frozen=True)
class Row:
    """One measurement. seconds: of one launch. floor: the least that they can be."""

    robot: str
    function: str
    dtype: str
    layout: str
    count: int
    seconds: float
    memory: float
    arithmetic: float

    @property
    def floor(self) -> float:
        return max(self.memory, self.arithmetic)

    @property
    def rate(self) -> float:
        """States in a second."""
        return self.count / self.seconds


def graph_time(launch: Callable[[], object], least: float = 1e-3, graphs: int = 8) -> float:
    """Seconds of a launch, within graphs of so many launches that each takes `least` seconds."""
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(2):
            launch()
        stream.synchronize()
        number = 4
        while True:
            stream.begin_capture()
            for _ in range(number):
                launch()
            graph = stream.end_capture()
            graph.launch(stream)
            stream.synchronize()
            taken = min(
                seconds_of(cupy, stream, partial(graph.launch, stream)) for _ in range(graphs)
            )
            if taken >= least or number >= 400:
                return taken / number
            number = min(400, math.ceil(number * 1.2 * least / taken))


def seconds_of(cupy: Any, stream: Any, launch: Callable[[], object]) -> float:
    """What a launch takes on the GPU."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record(stream)
    launch()
    end.record(stream)
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, end)) * 1e-3


@dataclass(frozen=True)
class Job:
    """A function of a robot in one kind of number, with its inputs and right answers."""

    robot: str
    function: str
    dtype: str
    kernel: Any
    inputs: tuple[np.ndarray, ...]
    answers: tuple[np.ndarray, ...]

    @staticmethod
    def of(robot: str, function: str, dtype: str) -> "Job":
        case = CASES[robot]
        made = chasles_robot(case)
        frame = {"frame": case.tip} if function in ("forward_kinematics", "jacobian") else {}
        states = States.draw(made, DISTINCT).inputs(function)
        right = compiled(made, function, **frame)(*(a.astype(dtype).astype(float) for a in states))
        kernel = compiled(made, function, backend="cuda", dtype=dtype, **frame)
        answers = right if isinstance(right, tuple) else (right,)
        return Job(robot, function, dtype, kernel, tuple(a.astype(dtype) for a in states), answers)

    @property
    def bytes(self) -> int:
        """Of the arguments and results of one state."""
        sizes = (v.size for v in (*self.kernel.interface.inputs, *self.kernel.interface.outputs))
        return sum(sizes) * np.dtype(self.dtype).itemsize

    @property
    def operations(self) -> int:
        """Instructions of one state, fused products counted once."""
        plan = Plan(self.kernel.program)
        return sum(plan.code[k].op not in ("const", "input") for k in plan.order)

    def resident(self, count: int, layout: str) -> list[Any]:
        """The inputs on the GPU."""
        import cupy

        found = []
        for a in self.inputs:
            repeated = cupy.asarray(np.resize(a, (min(count, DISTINCT), a.shape[-1])))
            whole = cupy.tile(repeated, (max(count // DISTINCT, 1), 1))
            found.append(cupy.asarray(whole, order="C" if layout == "rows" else "F"))
        return found

    def check(self, results: Any) -> None:
        """Raise WrongAnswer where the first and last of the results are not right."""
        found = results if isinstance(results, tuple) else (results,)
        for result, right in zip(found, self.answers, strict=True):
            size = min(len(result), DISTINCT)
            for part in (result[:size], result[-size:]):
                error = np.abs(part.get() - right[:size]).max() / np.abs(right).max()
                if not error <= TOLERANCE[self.dtype]:
                    raise WrongAnswer(f"{self.robot} {self.function} {self.dtype}: off {error:.1e}")


def measure(
    robots: Sequence[str],
    functions: Sequence[str],
    dtypes: Sequence[str],
    counts: Sequence[int],
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[Machine, list[Row]]:
    """All rows. Raises WrongAnswer, or what chasles says where there is no GPU."""
    machine = Machine.measured()
    progress(f"{machine.name}: copies {machine.bandwidth / 1e12:.2f} TB/s")
    rows = []
    for robot in robots:
        for function in functions:
            for dtype in dtypes:
                started = time.perf_counter()
                job = Job.of(robot, function, dtype)
                rows += _rows(job, machine, counts)
                seconds = time.perf_counter() - started
                progress(f"{robot} {function} {dtype}: {seconds:.1f} s")
    return machine, rows


def _rows(job: Job, machine: Machine, counts: Sequence[int]) -> Iterator[Row]:
    import cupy

    pool = cupy.get_default_memory_pool()
    arithmetic = job.operations / machine.operations[job.dtype]
    for count in (n for n in counts if n * job.bytes <= MOST_BYTES):
        for layout in LAYOUTS:
            arrays = job.resident(count, layout)
            out = job.kernel(*arrays)
            job.check(out)
            seconds = graph_time(lambda a=arrays, o=out: job.kernel(*a, out=o))
            job.check(out)
            yield _row(job, machine, layout, count, seconds, arithmetic)
            if layout == "rows":
                seconds = _from_host(job, arrays)
                yield _row(job, machine, "from host", count, seconds, arithmetic)
            del arrays, out
            pool.free_all_blocks()


def _row(
    job: Job, machine: Machine, layout: str, count: int, seconds: float, arithmetic: float
) -> Row:
    return Row(
        job.robot,
        job.function,
        job.dtype,
        layout,
        count,
        seconds,
        count * job.bytes / machine.bandwidth,
        count * arithmetic,
    )


def _from_host(job: Job, arrays: Sequence[Any]) -> float:
    """Seconds to bring inputs from the host's memory, compute, and bring results back."""
    host = [a.get() for a in arrays]
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        job.kernel.from_host(*host)
        taken.append(time.perf_counter() - start)
    return min(taken)


def show(machine: Machine, rows: Sequence[Row], console: Console) -> None:
    """A table of all rows."""
    table = Table(title=f"{machine.name}, copies {machine.bandwidth / 1e12:.2f} TB/s")
    for name in ("robot", "function", "numbers", "arrays", "states", "time", "states/s"):
        table.add_column(name, justify="left" if name in ("robot", "function") else "right")
    for name in ("of memory", "of arithmetic"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row.robot,
            row.function,
            row.dtype,
            row.layout,
            f"{row.count:,}",
            f"{row.seconds * 1e6:.2f} us",
            f"{row.rate / 1e9:.3f} G",
            f"{100 * row.memory / row.seconds:.0f} %",
            f"{100 * row.arithmetic / row.seconds:.0f} %",
        )
    console.print(table)


def write(machine: Machine, rows: Sequence[Row], path: Path) -> None:
    """All numbers as JSON."""
    content = {"machine": asdict(machine), "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=1), "utf-8")
