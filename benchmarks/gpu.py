"""Time kernels on a GPU, and compare them with the limits of its memory and arithmetic.

Arrays are in GPU memory, in row-major or column-major order, or are copied from the host and back.
For arrays in GPU memory, a CUDA graph is timed that contains enough launches to take a millisecond.
The shortest of several times counts.

The time of a function is compared with two lower bounds. The first is the time for moving arguments
and results at the rate at which the GPU copies an array. The second is the time for its operations
at the GPU's peak rate, where a fused multiply-add counts once. Results are checked against the CPU
before and after timing.
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

from benchmarks.console import WrongAnswer
from benchmarks.robots import CASES, chasles_robot
from benchmarks.routes import compiled
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
"""Number of different states. Larger batches repeat them."""

MOST_BYTES = 24 * 2**30
"""Maximum total size of the arrays of a measurement. Larger batches are omitted."""

TOLERANCE = {"float64": 1e-9, "float32": 2e-3}
LANES = {"float32": 128, "float64": 64}
"""Operations that a multiprocessor issues per cycle (compute capability 9.0)."""


@dataclass(frozen=True)
class Machine:
    """Name of a GPU, its copy bandwidth (bytes read and written per second), and operations/s."""

    name: str
    bandwidth: float
    operations: dict[str, float]

    @staticmethod
    def measured() -> "Machine":
        """Measure the copy bandwidth of the current GPU."""
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
    """Measurement: time (s) of a launch, and its lower bounds by memory and by arithmetic."""

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
        """States per second."""
        return self.count / self.seconds


def graph_time(launch: Callable[[], object], least: float = 1e-3, graphs: int = 8) -> float:
    """Return the time (s) of a launch within CUDA graphs that take at least `least` seconds."""
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
    """Return the time (s) of a launch on the GPU."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record(stream)
    launch()
    end.record(stream)
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, end)) * 1e-3


@dataclass(frozen=True)
class Job:
    """Function of a robot with a given dtype, its inputs and expected results."""

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
        """Size (bytes) of the arguments and results of one state."""
        sizes = (v.size for v in (*self.kernel.interface.inputs, *self.kernel.interface.outputs))
        return sum(sizes) * np.dtype(self.dtype).itemsize

    @property
    def operations(self) -> int:
        """Number of instructions per state, where a fused multiply-add counts once."""
        plan = Plan(self.kernel.program)
        return sum(plan.code[k].op not in ("const", "input") for k in plan.order)

    def resident(self, count: int, layout: str) -> list[Any]:
        """Return the inputs in GPU memory."""
        import cupy

        found = []
        for a in self.inputs:
            repeated = cupy.asarray(np.resize(a, (min(count, DISTINCT), a.shape[-1])))
            whole = cupy.tile(repeated, (max(count // DISTINCT, 1), 1))
            found.append(cupy.asarray(whole, order="C" if layout == "rows" else "F"))
        return found

    def check(self, results: Any) -> None:
        """Raise WrongAnswer if the first or last results differ from those of the CPU."""
        found = results if isinstance(results, tuple) else (results,)
        for result, right in zip(found, self.answers, strict=True):
            size = min(len(result), DISTINCT)
            for part in (result[:size], result[-size:]):
                error = np.abs(part.get() - right[:size]).max() / np.abs(right).max()
                if not error <= TOLERANCE[self.dtype]:
                    raise WrongAnswer(
                        f"{self.robot} {self.function} {self.dtype}: relative error {error:.1e}"
                    )


def measure(
    robots: Sequence[str],
    functions: Sequence[str],
    dtypes: Sequence[str],
    counts: Sequence[int],
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[Machine, list[Row]]:
    """Measure all cases. Raise WrongAnswer if results differ, or an error if there is no GPU."""
    machine = Machine.measured()
    progress(f"{machine.name}: copy bandwidth {machine.bandwidth / 1e12:.2f} TB/s")
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
    """Return the time (s) of copying inputs from the host, computing, and copying results back."""
    host = [a.get() for a in arrays]
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        job.kernel.from_host(*host)
        taken.append(time.perf_counter() - start)
    return min(taken)


def show(machine: Machine, rows: Sequence[Row], console: Console) -> None:
    """Print all measurements as a table."""
    table = Table(title=f"{machine.name}, copy bandwidth {machine.bandwidth / 1e12:.2f} TB/s")
    for name in ("robot", "function", "dtype", "arrays", "states", "time", "states/s"):
        table.add_column(name, justify="left" if name in ("robot", "function") else "right")
    for name in ("of memory limit", "of arithmetic limit"):
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
    """Write all measurements to a JSON file."""
    content = {"machine": asdict(machine), "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=1), "utf-8")
