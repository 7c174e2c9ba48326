"""Time-step loop in machine code: repeat a kernel, with controls for each step, and record states.

The outputs of a step overwrite its first inputs, which the next step reads. After every
`every` steps and after the last step, all outputs, or only the first ones, are copied to records.
"""

import array as standard
import ctypes
import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from chasles.backends import arrays
from chasles.backends.arrays import Rows, words
from chasles.backends.llvm import checked
from chasles.backends.llvm.checked import address, start_of
from chasles.backends.llvm.code import Machine, assemble, load
from chasles.backends.llvm.kernel import Kernel
from chasles.backends.llvm.loop_source import AT_ONCE, BLOCK, source
from chasles.backends.llvm.source import WORTH_THREADS
from chasles.backends.llvm.threads import PATIENCE, memory, pool


@functools.cache
def _machine_code(block: int, alone: bool) -> bytes:
    return assemble(source(block, alone), Machine.host())


class Call(NamedTuple):
    """A prepared call to the machine-code function `repeat`, and the arrays that the call uses.

    `row` holds the address of the function, followed by the arguments."""

    row: list[int]
    arrays: tuple[object, ...]


class _Part(NamedTuple):
    """A range of time steps, and the slice of records that it fills.

    The state is recorded once every `every` steps.
    """

    step: int
    steps: int
    kept: slice | None
    every: int


def _parts(steps: int, every: int, most: int) -> Iterator[_Part]:
    """Yield ranges of at most `most` steps; if possible, each range ends at a recorded step."""
    whole = max(most // every, 1) * every
    for start in range(0, steps, whole):
        end, first = min(start + whole, steps), start // every
        kept = slice(first, first + -(-(end - start) // every))
        if every <= most:
            yield _Part(start, end - start, kept, every)
            continue
        for step in range(start, end, most):
            n = min(most, end - step)
            yield _Part(step, n, kept if step + n == end else None, n)


class Loop:
    """A kernel that is repeated, with its outputs as the first inputs of the next repetition."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.sizes = kernel, arrays.LoopSizes(kernel)
        self.block = kernel.block or BLOCK
        symbols = {"batch": kernel.batch_address}
        symbols |= {"one": kernel.one_address} if kernel.alone else {}
        names = ("repeat", "blocks")
        self.code = load(
            _machine_code(self.block, kernel.alone), symbols | memory(), names, (kernel.code,)
        )
        self.address, self.blocks = (self.code.address(name) for name in names)

    def __call__(
        self,
        states: Rows,
        controls: Rows,
        records: Rows,
        steps: int,
        every: int,
        threads: int | None = None,
    ) -> None:
        """Advance contiguous states (count, size) in place, by a number of steps.

        - controls: the other inputs (count or 1, steps or 1, size). An axis of length 1 is shared
          by all states or steps.
        - records: an array (count, kept, size) for each state array or for the first few, filled
          after every `every` steps and after the last step.
        """
        self.sizes.check(states, controls, records, steps, every)
        assert all(a.flags.c_contiguous for a in states), "states must be C-contiguous"
        work = max(self.kernel.artifact.work, 1)
        threads = fitting_threads(len(states[0]), steps * work, threads)
        for part in _parts(steps, min(every, steps), max(PATIENCE // (work * self.block), 1)):
            span = slice(part.step, part.step + part.steps)
            some = [c if c.shape[1] == 1 else c[:, span] for c in controls]
            now = [r[:, part.kept] for r in records] if part.kept else []
            self._part(states, some, now, part.steps, part.every, threads)

    def _part(
        self, states: Rows, controls: Rows, records: Rows, steps: int, every: int, threads: int
    ) -> None:
        """Run a short range of steps; interrupts are handled only after the last of these steps."""
        given, run = self.given(states, controls, records, steps, every), pool()
        work = steps * self.kernel.artifact.work
        run(self.blocks, start_of(given.row), len(states[0]), self.block, threads, work)

    def given(
        self, states: Rows, controls: Rows, records: Rows, steps: int, every: int
    ) -> "_Given":
        """Return the arguments of the machine-code function `blocks` for these arrays."""
        at = _Tables(states, controls, records)
        near = [AT_ONCE * size for size in at.sizes[: len(records)]]
        taken = 8 * (len(at.ins) + len(at.records) + len(at.sizes))
        places = list(
            itertools.accumulate([*at.sizes, *(self.block * size for size in near)], initial=taken)
        )
        space = -(-places.pop() // 64) * 64
        n, own = len(at.sizes), self.kernel.artifact.workspace
        tables = [at.ins, at.in_rows, at.in_steps, at.sizes, at.records, at.record_rows]
        kept = [words(each) for each in (*tables, at.record_steps, places[:n], places[n:], near)]
        numbers = (steps, every, len(at.ins), n, len(records), space + own, space)
        return _Given(words((*numbers, *map(start_of, kept))), kept)

    def prepared(self, states: Rows, controls: Rows, records: Rows, steps: int) -> "Prepared":
        """Return a reusable function that runs steps on fixed arrays and records every step.

        The function runs on the calling thread without interruption. A pending KeyboardInterrupt is
        raised after the function ends.
        """
        self.sizes.check(states, controls, records, steps, 1)
        return Prepared(self, (states, controls, records, steps, 1))

    def call(self, states: Rows, controls: Rows, records: Rows, steps: int, every: int) -> Call:
        """Return a call to the function `repeat` for one block of states that fits in the cache."""
        at, fresh = _Tables(states, controls, records), [np.empty_like(a[0]) for a in states]
        tables = [at.ins, at.in_rows, at.in_steps, [address(a) for a in states], at.sizes]
        tables += [at.records, at.record_rows, at.record_steps, [address(a) for a in fresh]]
        kept, room = [words(each) for each in tables], workspace(self.kernel)
        numbers = (len(states[0]), steps, every, len(at.ins), len(states), len(records))
        row = [self.address, *numbers, *map(start_of, kept), address(room)]
        return Call(row, (states, controls, records, fresh, kept, room))


class Prepared:
    """A function that runs a fixed number of steps of a loop on fixed arrays."""

    def __init__(self, loop: Loop, rows: tuple[Rows, Rows, Rows, int, int]) -> None:
        self.code, self._loop, self._rows = loop.code, loop, rows
        self._row, self._count = loop.given(*rows), len(rows[0][0])
        self.words = (loop.blocks, start_of(self._row.row), 0, self._count)
        kinds = (ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self._call = checked.ends(ctypes.CFUNCTYPE(*kinds)(loop.blocks))

    def note(self) -> None:
        """Allow the code that is called next to access the arrays (`llvm.checked`)."""
        self._loop.given(*self._rows)
        for table in (self._row.row, *self._row.tables):
            start_of(table)

    def __call__(self) -> None:
        if checked.ON:
            self.note()
        if self._call(*self.words[1:]):
            raise MemoryError


class _Given(NamedTuple):
    """Arguments of `blocks` (LLVM IR in `loop_source`), and the tables that they point to."""

    row: "standard.array[int]"
    tables: list["standard.array[int]"]


class _Tables:
    """Addresses and strides (bytes) of a loop's arrays, for the machine-code function `repeat`."""

    def __init__(self, states: Rows, controls: Rows, records: Rows) -> None:
        self.ins = [address(a) for a in (*states, *controls)]
        self.sizes = [a.shape[1] * a.itemsize for a in states]
        self.in_rows = self.sizes + [0 if len(c) == 1 else c.strides[0] for c in controls]
        along = [0 if c.shape[1] == 1 else c.strides[1] for c in controls]
        self.in_steps = [0] * len(states) + along
        self.records = [address(r) for r in records]
        self.record_rows = [r.strides[0] for r in records]
        self.record_steps = [r.strides[1] for r in records]


def workspace(kernel: Kernel) -> np.ndarray:
    """Allocate a kernel's workspace, aligned to the widest vector."""
    room = np.empty(kernel.artifact.workspace + 64, np.uint8)
    return room[-address(room) % 64 :]


def fitting_threads(count: int, work: int, threads: int | None) -> int:
    """Return the number of threads: `threads` if given, else all cores if there is enough work."""
    if threads is not None:
        return threads
    return arrays.cores() if count * work > WORTH_THREADS and count > BLOCK else 1
