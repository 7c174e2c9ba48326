"""A kernel's step repeated in machine code: states go round, controls and records move along.

The outputs of the step are the first inputs of the next, in place. After every so many steps the
first of them, or all, are copied to a record.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from chasles.backends import arrays
from chasles.backends.arrays import Rows, words
from chasles.backends.llvm.checked import address, start_of
from chasles.backends.llvm.code import Machine, assemble, load
from chasles.backends.llvm.kernel import Kernel
from chasles.backends.llvm.source import WORTH_THREADS
from chasles.backends.llvm.threads import MOVED, PATIENCE, field, memory, pool

BLOCK = 64
"""States that go through all steps before the next: their numbers stay in the nearest cache."""

AT_ONCE = 64
"""Records of a row that are collected in the cache and then written together: those of one row lie
side by side, those of a block's rows far apart."""

NUMBERS, TABLES = 6, 10
"""Number of integers that `repeat` takes, and of addresses after them."""

GIVEN = (
    *((name, "i64") for name in ("steps", "every", "inputs", "outputs", "kept", "size", "space")),
    *((name, "ptr") for name in ("ins", "in_rows", "in_steps", "sizes")),
    *((name, "ptr") for name in ("records", "record_rows", "record_steps")),
    *((name, "ptr") for name in ("fresh_places", "near_places", "near_rows")),
)
"""Parameters of `blocks`: numbers of steps, and of steps between records; of inputs, outputs and
records; bytes of memory, and the place of the workspace in it; tables of the inputs and records
of the first state, as `repeat` takes them, and the places where results and records are
collected.
"""


def _entry(name: str, kind: str, table: str, index: str) -> str:
    """Lines that load an entry of a table, and name its place."""
    place = f"%{name}_place = getelementptr {kind}, ptr %{table}, i64 %{index}"
    return f"  {place}\n  %{name} = load {kind}, ptr %{name}_place"


_SOURCE = f"""
declare void @one(ptr, ptr)
declare void @batch(i64, ptr, ptr, ptr, ptr, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare ptr @malloc(i64)
declare void @free(ptr)
{MOVED}

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

; Places at some distances from another.
define internal void @placed(i64 %count, ptr %to, ptr %from, ptr %far) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %do ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %do, label %end
do:
{_entry("each", "i64", "far", "k")}
  %place = getelementptr i8, ptr %from, i64 %each
  %to.at = getelementptr ptr, ptr %to, i64 %k
  store ptr %place, ptr %to.at
  %next = add i64 %k, 1
  br label %loop
end:
  ret void
}}

; A body (`llvm.threads`): the steps of some states, a block of them at a time. What is kept of a
; block is collected in `near`, and written many records at a time.
define i64 @blocks(ptr %given, i64 %first, i64 %last) {{
entry:
{chr(10).join("  " + field(*each, "given", 8 * k) for k, each in enumerate(GIVEN))}
  %room = add i64 %size, 64
  %all = call ptr @malloc(i64 %room)
  %full = icmp eq ptr %all, null
  br i1 %full, label %fail, label %go
fail:
  ret i64 1
go:
  %number = ptrtoint ptr %all to i64
  %up = add i64 %number, 63
  %even = and i64 %up, -64
  %memory = inttoptr i64 %even to ptr
  %record = getelementptr ptr, ptr %memory, i64 %inputs
  %fresh = getelementptr ptr, ptr %record, i64 %kept
  %workspace = getelementptr i8, ptr %memory, i64 %space
  call void @placed(i64 %outputs, ptr %fresh, ptr %memory, ptr %fresh_places)
  %chunk = mul i64 %every, {AT_ONCE}
  %rounding = sub i64 %every, 1
  br label %block
block:
  %start = phi i64 [ %first, %go ], [ %start.next, %over ]
  %states = sub i64 %last, %start
  %rows = call i64 @llvm.umin.i64(i64 %states, i64 {BLOCK})
  call void @moved(i64 %inputs, ptr %memory, ptr %ins, ptr %in_rows, i64 %start)
  %alone = icmp eq i64 %rows, 1
  br i1 %alone, label %single, label %many
single:
  call void @moved(i64 %kept, ptr %record, ptr %records, ptr %record_rows, i64 %start)
  call void @repeat(i64 1, i64 %steps, i64 %every, i64 %inputs, i64 %outputs, i64 %kept,
                    ptr %memory, ptr %in_rows, ptr %in_steps, ptr %memory, ptr %sizes, ptr %record,
                    ptr %record_rows, ptr %record_steps, ptr %fresh, ptr %workspace)
  br label %over
many:
  %step = phi i64 [ 0, %block ], [ %step.next, %written ]
  %done = phi i64 [ 0, %block ], [ %done.next, %written ]
  %left = sub i64 %steps, %step
  %n = call i64 @llvm.umin.i64(i64 %left, i64 %chunk)
  call void @placed(i64 %kept, ptr %record, ptr %memory, ptr %near_places)
  call void @repeat(i64 %rows, i64 %n, i64 %every, i64 %inputs, i64 %outputs, i64 %kept,
                    ptr %memory, ptr %in_rows, ptr %in_steps, ptr %memory, ptr %sizes, ptr %record,
                    ptr %near_rows, ptr %sizes, ptr %fresh, ptr %workspace)
  %n.up = add i64 %n, %rounding
  %now = udiv i64 %n.up, %every
  br label %each
each:
  %k = phi i64 [ 0, %many ], [ %k.next, %next ]
  %any = icmp ult i64 %k, %kept
  br i1 %any, label %write, label %written
write:
{_entry("to", "ptr", "records", "k")}
{_entry("to_rows", "i64", "record_rows", "k")}
{_entry("to_steps", "i64", "record_steps", "k")}
{_entry("near", "i64", "near_places", "k")}
{_entry("from_rows", "i64", "near_rows", "k")}
{_entry("each_size", "i64", "sizes", "k")}
  %from = getelementptr i8, ptr %memory, i64 %near
  br label %row
row:
  %r = phi i64 [ 0, %write ], [ %r.next, %row ]
  %state = add i64 %start, %r
  %far = mul i64 %state, %to_rows
  %along = mul i64 %done, %to_steps
  %there = add i64 %far, %along
  %target = getelementptr i8, ptr %to, i64 %there
  %here = mul i64 %r, %from_rows
  %source = getelementptr i8, ptr %from, i64 %here
  call void @copied(i64 %now, ptr %target, i64 %to_steps, ptr %source, i64 %each_size)
  %r.next = add i64 %r, 1
  %r.more = icmp ult i64 %r.next, %rows
  br i1 %r.more, label %row, label %next
next:
  %k.next = add i64 %k, 1
  br label %each
written:
  %step.next = add i64 %step, %n
  %done.next = add i64 %done, %now
  %more = icmp ult i64 %step.next, %steps
  br i1 %more, label %many, label %over
over:
  %start.next = add i64 %start, {BLOCK}
  %further = icmp ult i64 %start.next, %last
  br i1 %further, label %block, label %end
end:
  call void @free(ptr %all)
  ret i64 0
}}
"""


@functools.cache
def _machine_code() -> bytes:
    return assemble(_SOURCE, Machine.host())


class Call(NamedTuple):
    """Parameters of `repeat`, its address first, and the arrays that they point to."""

    row: list[int]
    arrays: tuple[object, ...]


class _Part(NamedTuple):
    """Steps from one on, and the records that they fill, one after every so many, if any."""

    step: int
    steps: int
    kept: slice | None
    every: int


def _parts(steps: int, every: int, most: int) -> Iterator[_Part]:
    """All steps in parts of `most` at most, which end where records are made, or between two."""
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
    """A kernel whose outputs are its first inputs, repeated."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.sizes = kernel, arrays.LoopSizes(kernel)
        symbols = {"one": kernel.one_address, "batch": kernel.batch_address}
        names = ("repeat", "blocks")
        self.code = load(_machine_code(), symbols | memory(), names, (kernel.code,))
        self.address, self._blocks = (self.code.address(name) for name in names)

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
        self.sizes.check(states, controls, records, steps, every)
        assert all(a.flags.c_contiguous for a in states), "states are advanced in place"
        work = max(self.kernel.artifact.work, 1)
        threads = fitting_threads(len(states[0]), steps * work, threads)
        for part in _parts(steps, min(every, steps), max(PATIENCE // (work * BLOCK), 1)):
            span = slice(part.step, part.step + part.steps)
            some = [c if c.shape[1] == 1 else c[:, span] for c in controls]
            now = [r[:, part.kept] for r in records] if part.kept else []
            self._part(states, some, now, part.steps, part.every, threads)

    def _part(
        self, states: Rows, controls: Rows, records: Rows, steps: int, every: int, threads: int
    ) -> None:
        """So few steps that interrupts can wait for them."""
        at = _Tables(states, controls, records)
        near = [AT_ONCE * size for size in at.sizes[: len(records)]]
        taken = 8 * (len(at.ins) + len(at.records) + len(at.sizes))
        places = list(
            itertools.accumulate([*at.sizes, *(BLOCK * size for size in near)], initial=taken)
        )
        space = -(-places.pop() // 64) * 64
        n, own = len(at.sizes), self.kernel.artifact.workspace
        tables = [at.ins, at.in_rows, at.in_steps, at.sizes, at.records, at.record_rows]
        kept = [words(each) for each in (*tables, at.record_steps, places[:n], places[n:], near)]
        numbers = (steps, every, len(at.ins), n, len(records), space + own, space)
        given, run = words((*numbers, *map(start_of, kept))), pool()
        work = steps * self.kernel.artifact.work
        run(self._blocks, start_of(given), len(states[0]), BLOCK, threads, work)

    def call(self, states: Rows, controls: Rows, records: Rows, steps: int, every: int) -> Call:
        """A call of `repeat` for so few states that they stay in the cache."""
        at, fresh = _Tables(states, controls, records), [np.empty_like(a[0]) for a in states]
        tables = [at.ins, at.in_rows, at.in_steps, [address(a) for a in states], at.sizes]
        tables += [at.records, at.record_rows, at.record_steps, [address(a) for a in fresh]]
        kept, room = [words(each) for each in tables], workspace(self.kernel)
        numbers = (len(states[0]), steps, every, len(at.ins), len(states), len(records))
        row = [self.address, *numbers, *map(start_of, kept), address(room)]
        return Call(row, (states, controls, records, fresh, kept, room))


class _Tables:
    """Addresses and strides of a loop's arrays, in bytes, as `repeat` takes them."""

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
    """Room for a kernel's tiles of lanes, aligned to the widest vector."""
    room = np.empty(kernel.artifact.workspace + 64, np.uint8)
    return room[-address(room) % 64 :]


def fitting_threads(count: int, work: int, threads: int | None) -> int:
    """Return the default number of threads: all, if the `work` of each state is worth it."""
    if threads is not None:
        return threads
    return arrays.cores() if count * work > WORTH_THREADS and count > BLOCK else 1
