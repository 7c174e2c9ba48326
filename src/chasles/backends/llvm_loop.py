"""A kernel's step repeated in machine code: states go round, controls and records move along.

The outputs of the step are the first inputs of the next, in place. After every so many steps the
first of them, or all, are copied to a record.
"""

import ctypes
import functools
from collections.abc import Callable

import numpy as np

from chasles.backends import arrays
from chasles.backends.arrays import Rows
from chasles.backends.llvm import Kernel, Machine, assemble, load, table
from chasles.backends.llvm_objects import address
from chasles.backends.llvm_source import WORTH_THREADS

BLOCK = 64
"""States that go through all steps before the next: their numbers stay in the nearest cache."""

AT_ONCE = 64
"""Records of a row that are collected in the cache and then written together: those of one row lie
side by side, those of a block's rows far apart."""

NUMBERS, TABLES = 6, 10
"""How many numbers `repeat` takes, and then how many addresses."""


def _entry(name: str, kind: str, table: str, index: str) -> str:
    """Lines that load an entry of a table, and name its place."""
    place = f"%{name}_place = getelementptr {kind}, ptr %{table}, i64 %{index}"
    return f"  {place}\n  %{name} = load {kind}, ptr %{name}_place"


_SOURCE = f"""
declare void @one(ptr, ptr)
declare void @batch(i64, ptr, ptr, ptr, ptr, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @copied(i64 %rows, ptr %to, i64 %stride, ptr %from, i64 %size) {{
entry:
  %dense = icmp eq i64 %stride, %size
  br i1 %dense, label %whole, label %loop
whole:
  %all = mul i64 %rows, %size
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %all, i1 false)
  ret void
loop:
  %row = phi i64 [ 0, %entry ], [ %next, %loop ]
  %there = mul i64 %row, %stride
  %here = mul i64 %row, %size
  %target = getelementptr i8, ptr %to, i64 %there
  %source = getelementptr i8, ptr %from, i64 %here
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %size, i1 false)
  %next = add i64 %row, 1
  %more = icmp ult i64 %next, %rows
  br i1 %more, label %loop, label %end
end:
  ret void
}}

; Tables: of inputs, addresses, strides between rows and between steps; of outputs, addresses (of
; the states themselves), sizes of a row, and of records (as many as `kept`), addresses and strides
; between rows and between records. `fresh` is where one state's results go before they become the
; state.
define void @repeat(i64 %rows, i64 %steps, i64 %every, i64 %inputs, i64 %outputs, i64 %kept,
                    ptr %in, ptr %in_rows, ptr %in_steps, ptr %state, ptr %sizes,
                    ptr %record, ptr %record_rows, ptr %record_steps, ptr %fresh, ptr %workspace) {{
entry:
  %alone = icmp eq i64 %rows, 1
  %any = icmp ne i64 %kept, 0
  br label %loop
loop:
  %step = phi i64 [ 1, %entry ], [ %next, %again ]
  br i1 %alone, label %single, label %many
single:
  call void @one(ptr %in, ptr %fresh)
  br label %return
return:
  %r = phi i64 [ 0, %single ], [ %r_next, %return ]
{_entry("r_from", "ptr", "fresh", "r")}
{_entry("r_to", "ptr", "state", "r")}
{_entry("r_size", "i64", "sizes", "r")}
  call void @llvm.memcpy.p0.p0.i64(ptr %r_to, ptr %r_from, i64 %r_size, i1 false)
  %r_next = add i64 %r, 1
  %r_more = icmp ult i64 %r_next, %outputs
  br i1 %r_more, label %return, label %advance
many:
  call void @batch(i64 %rows, ptr %in, ptr %in_rows, ptr %state, ptr %sizes, ptr %workspace)
  br label %advance
advance:
  %a = phi i64 [ 0, %return ], [ 0, %many ], [ %a_next, %advance ]
{_entry("a_old", "ptr", "in", "a")}
{_entry("a_step", "i64", "in_steps", "a")}
  %a_new = getelementptr i8, ptr %a_old, i64 %a_step
  store ptr %a_new, ptr %a_old_place
  %a_next = add i64 %a, 1
  %a_more = icmp ult i64 %a_next, %inputs
  br i1 %a_more, label %advance, label %due
due:
  %past = urem i64 %step, %every
  %whole = icmp eq i64 %past, 0
  %last = icmp eq i64 %step, %steps
  %now = or i1 %whole, %last
  %keep = and i1 %now, %any
  br i1 %keep, label %records, label %again
records:
  %k = phi i64 [ 0, %due ], [ %k_next, %records ]
{_entry("k_to", "ptr", "record", "k")}
{_entry("k_rows", "i64", "record_rows", "k")}
{_entry("k_steps", "i64", "record_steps", "k")}
{_entry("k_state", "ptr", "state", "k")}
{_entry("k_size", "i64", "sizes", "k")}
  call void @copied(i64 %rows, ptr %k_to, i64 %k_rows, ptr %k_state, i64 %k_size)
  %k_on = getelementptr i8, ptr %k_to, i64 %k_steps
  store ptr %k_on, ptr %k_to_place
  %k_next = add i64 %k, 1
  %k_more = icmp ult i64 %k_next, %kept
  br i1 %k_more, label %records, label %again
again:
  %next = add i64 %step, 1
  %more = icmp ule i64 %next, %steps
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


@functools.cache
def _machine_code() -> bytes:
    return assemble(_SOURCE, Machine.host())


class Loop:
    """A kernel whose outputs are its first inputs, repeated."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        symbols = {"one": kernel.one_address, "batch": kernel.batch_address}
        self._library = load(_machine_code(), symbols, ["repeat"])
        integer, pointer = ctypes.c_ssize_t, ctypes.c_void_p
        self.address: int = self._library["repeat"]
        kinds = [integer] * NUMBERS + [pointer] * TABLES
        self._repeat = ctypes.CFUNCTYPE(None, *kinds)(self.address)

    def __call__(
        self,
        states: Rows,
        controls: Rows,
        records: Rows,
        steps: int,
        every: int,
        threads: int | None = None,
    ) -> None:
        """Advance states (count, size), in place and contiguous, by so many steps.

        controls: the other inputs, (count or 1, steps or 1, size), shared where 1. records: for
        the first states, or all, (count, kept, size), filled after every `every` steps and after
        the last.
        """

        def block(start: int, end: int) -> None:
            moving, kept = ([a[start:end] for a in some] for some in (states, records))
            given = [c if len(c) == 1 else c[start:end] for c in controls]
            self._collected(moving, given, kept, steps, every)

        in_blocks(len(states[0]), steps * self.kernel.artifact.work, threads, block)

    def _collected(
        self, states: Rows, controls: Rows, records: Rows, steps: int, every: int
    ) -> None:
        """The steps of a block; what is kept is collected, and written many records at a time."""
        rows = len(states[0])
        if rows == 1:  # its records lie side by side already
            self.block(states, controls, records, steps, every)
            return
        near = [np.empty((rows, AT_ONCE, r.shape[2])) for r in records]
        for kept, step in enumerate(range(0, steps, AT_ONCE * every)):
            n = min(AT_ONCE * every, steps - step)
            some = [c if c.shape[1] == 1 else c[:, step : step + n] for c in controls]
            place = slice(kept * AT_ONCE, kept * AT_ONCE + -(-n // every))
            close = [a[:, : place.stop - place.start] for a in near]
            self.block(states, some, close, n, every)
            for record, found in zip(records, close, strict=True):
                record[:, place] = found

    def block(self, states: Rows, controls: Rows, records: Rows, steps: int, every: int) -> None:
        """The same for so few states that they stay in the cache, in this thread."""
        fresh = [np.empty_like(a[0]) for a in states]
        sizes = [a.shape[1] * a.itemsize for a in states]
        rows = sizes + [0 if len(c) == 1 else c.strides[0] for c in controls]
        along = [0] * len(states) + [0 if c.shape[1] == 1 else c.strides[1] for c in controls]
        tables = [
            [address(a) for a in (*states, *controls)],
            rows,
            along,
            [address(a) for a in states],
            sizes,
            [address(r) for r in records],
            [r.strides[0] for r in records],
            [r.strides[1] for r in records],
            [address(a) for a in fresh],
        ]
        numbers = len(states[0]), steps, every, len(rows), len(states), len(records)
        given = (table(ctypes.c_ssize_t, each) for each in tables)
        self._repeat(*numbers, *given, self.kernel.workspace())


def in_blocks(
    count: int, work: int, threads: int | None, block: Callable[[int, int], None]
) -> None:
    """Call `block(start, end)` for all states, on threads where `work`, of each, is worth it."""
    if threads is None:
        threads = arrays.cores() if count * work > WORTH_THREADS and count > BLOCK else 1

    def some(first: int, last: int) -> None:
        for start in range(first, last, BLOCK):
            block(start, min(start + BLOCK, last))

    arrays.in_ranges(count, BLOCK, threads, some)
