"""Select the faster device, CPU or GPU, for each batch.

Arrays in host memory must be copied to the GPU, and results must be copied back. The GPU is
therefore faster only for batches in which it saves more time than the copies take. For very large
batches, the CPU may be faster again because it uses several threads. Both devices are timed at a
few batch sizes when a function is first used. The times are cached by function, robot, dtype, CPU
and GPU.
"""

import bisect
import itertools
import json
import math
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from chasles import backends
from chasles.backends import cache
from chasles.backends.arrays import COMPILING, batch_shape, checked_count
from chasles.backends.cache import Artifact
from chasles.errors import InputError, said
from chasles.functions.compiled import Compiled
from chasles.functions.doors import library_of

COUNTS = (1, 256, 4096, 65536, 2**20)
"""Batch sizes (numbers of states) for which both devices are timed."""

MOST_BYTES = 2**28
"""Maximum total size of the arguments and results of a timed batch (bytes)."""

REPEATS = 5
"""Number of timed runs per batch. The shortest time is used."""


class Timing(NamedTuple):
    """Time (s) for a batch on each device, including copies between host and GPU."""

    states: int
    cpu: float
    gpu: float


@dataclass(frozen=True)
class Report:
    """Timings of a function and the device selected for each batch size, printed as a table.

    `cpu` and `gpu` are device names. Without a GPU, `gpu` is None and `reason` explains why.
    """

    title: str
    cpu: str
    gpu: str | None
    reason: str = ""
    timings: tuple[Timing, ...] = ()

    @cached_property
    def turns(self) -> tuple[int, ...]:
        """Batch sizes at which the device changes. Batches below the first size use the CPU."""
        return turns(self.timings)

    def choice(self, count: int) -> Literal["cpu", "cuda"]:
        """Return the faster device for a batch of `count` states."""
        count = checked_count("choice: count", count, least=0)
        return "cuda" if bisect.bisect_right(self.turns, count) % 2 else "cpu"

    @property
    def verdict(self) -> str:
        """Text that names the device selected for each range of batch sizes."""
        if self.gpu is None:
            return "always on the CPU, because no GPU is available"
        if not self.turns:
            return "always on the CPU, which was faster at every size"
        ranges = itertools.zip_longest(self.turns[::2], self.turns[1::2])
        words = [f"from {a:,} states " + (f"to {b - 1:,}" if b else "on") for a, b in ranges]
        return f"on the GPU {', and '.join(words)}"

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.verdict}", f"CPU: {self.cpu}"]
        if self.gpu is None:
            return "\n".join([*lines, f"GPU: none ({self.reason})"])
        lines += [f"GPU: {self.gpu}, including copies to and from the host"]
        lines += [f"{'states':>12} {'CPU':>12} {'GPU':>12}"]
        lines += [f"{n:>12,} {a * 1e6:>9,.1f} us {b * 1e6:>9,.1f} us" for n, a, b in self.timings]
        return "\n".join(lines)


def turns(timings: Sequence[Timing]) -> tuple[int, ...]:
    """Return the batch sizes at which the device changes.

    Batches below the first of these sizes use the CPU.

    Between timed batch sizes, the logarithm of each time is interpolated linearly in the logarithm
    of the size. Above the largest timed size, the device does not change. If both devices are
    equally fast, the CPU is used.
    """
    found = [timings[0].states] if timings and timings[0].gpu < timings[0].cpu else []
    for a, b in itertools.pairwise(timings):
        before, after = math.log(a.gpu / a.cpu), math.log(b.gpu / b.cpu)
        if (before < 0.0) != (after < 0.0):
            step = before / (before - after)
            found.append(math.ceil(a.states * (b.states / a.states) ** step))
    return tuple(found)


class Automatic:
    """A function compiled for one robot that runs each batch on the faster device.

    Call this object like a `Compiled` function. Batches of NumPy arrays and lists run on the CPU or
    on the GPU. CuPy, PyTorch and JAX arrays are processed on the device that stores them. The first
    call for each dtype times both devices (`report`). `threads` is the number of CPU threads, and
    has no effect on batches that run on the GPU. The function can be pickled.
    """

    def __init__(self, function: Compiled) -> None:
        self.function = function
        self.interface = function.interface
        self._reports: dict[str, Report] = {}

    def __call__(self, *arguments: Any, out: Any = None, threads: int | None = None) -> Any:
        if any(library_of(a) is not None for a in (*arguments, out)):
            return self.function(*arguments, out=out, threads=threads)
        title = self.function.recipe.function
        threads = None if threads is None else checked_count(f"{title}: threads", threads)
        single = all(getattr(a, "dtype", None) == np.float32 for a in arguments)
        function = self.function.single if single and arguments else self.function
        known = self._report(function)
        on_gpu = known.turns and known.choice(self._count(arguments)) == "cuda"
        named: dict[str, Any] = {} if out is None else {"out": out}
        if on_gpu:
            return function.from_host(*arguments, **named)
        named |= {} if threads is None else {"threads": threads}
        return function.fast(*arguments, **named)

    def choice(self, count: int, dtype: str = "float64") -> Literal["cpu", "cuda"]:
        """Return the device for a batch, after timing both devices if necessary.

        Parameters
        ----------
        count : int
            Number of states.
        dtype : {"float64", "float32"}, optional
            Data type of the arrays.

        Returns
        -------
        device : {"cpu", "cuda"}
            The faster device for this batch, with the time for copies included.

        Raises
        ------
        InputError
            If `dtype` is not "float64" or "float32".

        Examples
        --------
        >>> import chasles
        >>> function = chasles.compile(chasles.robots.planar(2), "gravity_forces", device="auto")
        >>> function.choice(1)  # without a GPU, always the CPU
        'cpu'
        """
        return self.report(dtype).choice(count)

    def report(self, dtype: str = "float64") -> Report:
        """Return the timings on the CPU and the GPU, measured on the first call.

        Parameters
        ----------
        dtype : {"float64", "float32"}, optional
            Data type of the arrays.

        Returns
        -------
        report : Report
            Timings; printing the report shows a table.

        Raises
        ------
        InputError
            If `dtype` is not "float64" or "float32".

        Examples
        --------
        >>> import chasles
        >>> function = chasles.compile(chasles.robots.planar(2), "gravity_forces", device="auto")
        >>> function.report().title
        "gravity_forces of 'planar', float64"
        """
        if dtype not in ("float64", "float32"):
            raise InputError("E-GPU-020", f"`dtype` must be 'float64' or 'float32', not {dtype!r}")
        return self._report(self.function.single if dtype == "float32" else self.function)

    def _report(self, function: Compiled) -> Report:
        dtype = function.recipe.dtype
        if dtype not in self._reports:
            with COMPILING:
                self._reports[dtype] = report(function)
        return self._reports[dtype]

    def _count(self, arguments: Sequence[Any]) -> int:
        """Return the number of states in a batch, or 0 if shapes are invalid."""
        try:
            leads = [
                np.shape(a)[: max(np.ndim(a) - len(v.shape), 0)]
                for v, a in zip(self.interface.inputs, arguments, strict=True)
            ]
            return math.prod(batch_shape("", self.interface, leads))
        except ValueError:
            return 0

    def __reduce__(self) -> tuple[Any, ...]:
        return Automatic, (self.function,)

    def __repr__(self) -> str:
        known = [f"{dtype} {report.verdict}" for dtype, report in self._reports.items()]
        inputs = ", ".join(variable.name for variable in self.interface.inputs)
        name = f"{self.function.recipe.function}({inputs}) of {self.function.model.name!r}"
        return f"<{name} on the faster device: {'; '.join(known) or 'not measured yet'}>"


def report(function: Compiled) -> Report:
    """Return the timings of a function, measured now or read from the cache."""
    name, dtype = function.recipe.function, function.recipe.dtype
    title = f"{name} of {function.model.name!r}, {dtype}"
    devices = backends.devices()
    cpu = backends.described(devices["cpu"][0])
    try:
        gpu = backends.described(devices["cuda"][0])
    except (ImportError, RuntimeError) as error:
        return Report(title, cpu, None, said(error))
    entry = backends.code_key("devices", function.key, cpu, gpu)
    known = cache.load(entry)
    if known is None:
        timings = measured(function)
        content = json.dumps(timings).encode()
        cache.save(entry, Artifact(function.interface, dtype, 0, 0, content))
    else:
        timings = tuple(Timing(*row) for row in json.loads(known.object_code))
    return Report(title, cpu, gpu, "", timings)


def measured(function: Compiled) -> tuple[Timing, ...]:
    """Time a function on the CPU and on the GPU for several batch sizes, with random inputs."""
    rng = np.random.default_rng(0)
    inputs, outputs = function.interface.inputs, function.interface.outputs
    dtype = np.dtype(function.recipe.dtype)
    size = sum(v.size for v in (*inputs, *outputs)) * dtype.itemsize
    timings = []
    for count in (n for n in COUNTS if n == 1 or n * size <= MOST_BYTES):
        arrays = [rng.uniform(-1.0, 1.0, (count, *v.shape)).astype(dtype) for v in inputs]
        cpu = least(partial(function.fast, *arrays))
        gpu = least(partial(function.from_host, *arrays))
        timings.append(Timing(count, cpu, gpu))
    return tuple(timings)


def least(run: Callable[[], object]) -> float:
    """Return the shortest time (s) of several runs, after a warm-up run that may compile."""
    run()
    return min(timeit.repeat(run, number=1, repeat=REPEATS))
