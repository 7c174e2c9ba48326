"""The adjoint of a loop in machine code: transposed steps, run from the last to the first.

The backward pass needs the state before each step. States are stored only at checkpoints, whose
spacing is about the square root of the number of steps. The states between two checkpoints are
recomputed, one pair of checkpoints at a time. Memory grows with the square root of the number of
steps, and each state is computed twice (Griewank, Walther 2008, chapter 12, with one level).
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.backends.arrays import Rows, words
from chasles.backends.llvm.checked import address, start_of
from chasles.backends.llvm.code import Machine, assemble, load
from chasles.backends.llvm.loop import Loop, fitting_threads, workspace
from chasles.backends.llvm.loop_source import BLOCK, NUMBERS, TABLES
from chasles.backends.llvm.threads import pool

AT_ONCE = 2
"""Number of blocks of states per thread that are prepared in Python at a time, then processed."""


@functools.cache
def _machine_code() -> bytes:
    """Compile `perform`, which makes the calls to `repeat` that are listed in tables.

    A row of a table holds the address of `repeat`, followed by the arguments of one call. The
    thread pool (`llvm.threads`) runs `perform`, whose argument lists the number of rows and the
    address of each table.
    """
    types = ["i64"] * NUMBERS + ["ptr"] * TABLES
    lines = []
    for k, kind in enumerate(["ptr", *types]):
        lines.append(f"  %place{k} = getelementptr i64, ptr %call, i64 {k}")
        lines.append(f"  %value{k} = load {kind}, ptr %place{k}")
    given = ", ".join(f"{kind} %value{k}" for k, kind in enumerate(types, 1))
    source = f"""
define i64 @perform(ptr %given, i64 %from, i64 %to) {{
entry:
  br label %table
table:
  %k = phi i64 [ %from, %entry ], [ %k.next, %over ]
  %pair = mul i64 %k, 2
  %count.at = getelementptr i64, ptr %given, i64 %pair
  %calls.at = getelementptr i64, ptr %count.at, i64 1
  %count = load i64, ptr %count.at
  %calls = load ptr, ptr %calls.at
  br label %loop
loop:
  %row = phi i64 [ 0, %table ], [ %next, %do ]
  %more = icmp ult i64 %row, %count
  br i1 %more, label %do, label %over
do:
  %first = mul i64 %row, {1 + len(types)}
  %call = getelementptr i64, ptr %calls, i64 %first
{chr(10).join(lines)}
  call void %value0({given})
  %next = add i64 %row, 1
  br label %loop
over:
  %k.next = add i64 %k, 1
  %further = icmp ult i64 %k.next, %to
  br i1 %further, label %table, label %end
end:
  ret i64 0
}}
"""
    return assemble(source, Machine.host())


@dataclass(frozen=True)
class _Plan:
    """Order of the backward pass: ranges of steps between two checkpoints, latest first.

    A range consists of the steps `first`, ..., `last` - 1, whose inputs are evenly spaced in
    memory. The step that starts at a checkpoint is a separate range. A step after which a state was
    recorded is also a separate range, unless all states were recorded.

    Attributes
    ----------
    steps, every : int
        Number of steps, and number of steps between records.
    length : int
        Number of steps between checkpoints.
    first, last : (ranges,)
        First step of each range, and the step after its last step.
    """

    steps: int
    every: int
    length: int
    first: np.ndarray
    last: np.ndarray

    @staticmethod
    def of(steps: int, every: int) -> "_Plan":
        length = math.isqrt(steps - 1) + 1
        starts = np.arange(0, steps, length)
        cuts = [starts, np.minimum(starts + 1, steps), np.array([steps])]
        if every > 1:
            recorded = np.r_[every : steps + 1 : every, steps]
            cuts += [recorded - 1, recorded]
        ends = np.unique(np.concatenate(cuts))[::-1]
        return _Plan(steps, every, length, ends[1:], ends[:-1])

    @property
    def checkpoints(self) -> int:
        return -(-self.steps // self.length)

    @functools.cached_property
    def slots(self) -> np.ndarray:
        """For each range of steps, the index of the stored state before its last step.

        States at checkpoints are stored first, followed by the states between two checkpoints.
        """
        stretch, place = np.divmod(self.last - 1, self.length)
        return np.where(place == 0, stretch, self.checkpoints + place - 1)

    @functools.cached_property
    def records(self) -> np.ndarray:
        """Index of the record after the last step of each range, or 0 if no record follows."""
        regular = np.where(self.last % self.every == 0, self.last // self.every, 0)
        return np.where(self.last == self.steps, -(-self.steps // self.every), regular)


class Adjoint:
    """Backpropagation through a loop.

    `step` runs the loop forward. `back` applies the pullback (vector-Jacobian product) of each step
    to the gradients, here called covectors, from the last step to the first. The other inputs of
    the pullback are the step's states and controls, and weights that are added to the covectors
    before each step.
    """

    def __init__(self, step: Loop, back: Loop) -> None:
        self._step, self._back = step, back
        self.code = load(_machine_code(), {}, ["perform"], (step.code, back.code))
        self._perform = self.code.address("perform")

    def __call__(
        self,
        states: Rows,
        controls: Rows,
        weights: Rows,
        covectors: Rows,
        along: Rows,
        steps: int,
        every: int,
        threads: int | None = None,
    ) -> None:
        """Update the covectors in place, from the last step to the first.

        - covectors: contiguous arrays (count, size).
        - states, controls: inputs of the loop.
        - weights (count or 1, records, size): weights of the states that the loop records every
          `every` steps. The weight of the first record, the initial state, is not used.
        - along: arrays (count, steps, size) for the first len(along) covectors, each filled with
          the values of one covector at all steps.
        """
        plan, count = _Plan.of(steps, every), len(states[0])
        self._step.sizes.check(states, controls, [], steps, every)
        taken, records = self._back.sizes.inputs, -(-steps // every) + 1
        whole = (*covectors, *states, *controls, *weights)
        assert [a.shape[-1] for a in whole] == taken, "sizes of covectors and weights"
        assert all(a.shape == (count, n) for a, n in zip(covectors, taken, strict=False))
        assert all(w.shape[:2] in ((1, records), (count, records)) for w in weights)
        assert all(a.shape == (count, steps, n) for a, n in zip(along, taken, strict=False))
        work = steps * (self._step.kernel.artifact.work * 2 + self._back.kernel.artifact.work)
        threads = fitting_threads(count, work, threads)
        blocks = [slice(k, min(k + BLOCK, count)) for k in range(0, count, BLOCK)]

        def rows(arrays: Rows, block: slice) -> list[np.ndarray]:
            return [a if len(a) == 1 else a[block] for a in arrays]

        for first in range(0, len(blocks), threads * AT_ONCE):
            some = blocks[first : first + threads * AT_ONCE]
            kept = [_kept(plan, [a[block] for a in states]) for block in some]
            if plan.checkpoints > 1:
                ahead = [
                    self._checkpoints(plan, found, rows(controls, block))
                    for found, block in zip(kept, some, strict=True)
                ]
                self._run(ahead, threads, BLOCK * work)
            back = [
                self._back_calls(
                    plan,
                    found,
                    rows(controls, block),
                    rows(weights, block),
                    [a[block] for a in covectors],
                    [a[block] for a in along],
                )
                for found, block in zip(kept, some, strict=True)
            ]
            self._run(back, threads, BLOCK * work)

    def _run(self, tables: "Sequence[_Calls]", threads: int, work: int) -> None:
        """Run the calls for several blocks of states. The calls for one block run in order."""
        pairs = [number for each in tables for number in (len(each.table), address(each.table))]
        given = words(pairs)
        pool()(self._perform, start_of(given), len(tables), 1, threads, work)

    def _checkpoints(self, plan: _Plan, kept: Rows, controls: Rows) -> "_Calls":
        """Return a `_Calls` object that simulates forward and records states at checkpoints."""
        n, states = plan.checkpoints, [a[:, 0].copy() for a in kept]
        records = [found[:, 1:n] for found in kept]
        made = self._step.call(states, controls, records, (n - 1) * plan.length, plan.length)
        return _Calls(np.array([made.row], dtype=np.intp), np.zeros(1), made.arrays)

    def _back_calls(
        self, plan: _Plan, kept: Rows, controls: Rows, weights: Rows, covectors: Rows, along: Rows
    ) -> "_Calls":
        """Return the calls that repeat the steps from each checkpoint and run their adjoints."""
        weights = [w.copy() for w in weights]
        for w in weights:
            w[:, 0] = 0.0  # index 0: weight of steps whose state is not recorded
        again = _Calls.again(plan, self._step, kept, controls)
        back = _Calls.back(plan, self._back, covectors, kept, controls, weights, along)
        order = np.argsort(np.concatenate([again.order, back.order]), kind="stable")
        calls = np.ascontiguousarray(np.concatenate([again.table, back.table])[order])
        return _Calls(calls, order, (again, back))


def _kept(plan: _Plan, states: Rows) -> list[np.ndarray]:
    """Return arrays with room for the states at and between checkpoints.

    Only the initial states are set.
    """
    slots, rows = plan.checkpoints + plan.length - 1, len(states[0])
    kept = [np.empty((slots, rows, a.shape[1])).swapaxes(0, 1) for a in states]
    for found, a in zip(kept, states, strict=True):
        found[:, 0] = a
    return kept


Given = tuple[np.ndarray, Any, int]
"""Argument of the calls to a loop: an array, a start index, and a direction.

The array has shape (count or 1, steps or 1, size), with a value for each step. The start index
is the step index at which each call starts. The direction is 1 (forward), -1 (backward) or 0 (the
same value in all steps)."""


@dataclass(frozen=True)
class _Calls:
    """Calls to a loop: arguments (one row per call), sort keys, and arrays to keep alive."""

    table: np.ndarray
    order: np.ndarray
    arrays: tuple[Any, ...]

    @staticmethod
    def again(plan: _Plan, loop: Loop, kept: Rows, controls: Rows) -> "_Calls":
        """Return calls that recompute the states after each checkpoint, up to the next one."""
        n = plan.checkpoints
        start = plan.length * np.arange(n)
        end = np.minimum(start + plan.length, plan.steps)
        many = end - start > 1
        start, end = start[many], end[many]
        moving = [np.ascontiguousarray(a[:, :n].swapaxes(0, 1)[many]) for a in kept]
        states: list[Given] = [(a.swapaxes(0, 1), np.arange(len(start)), 0) for a in moving]
        others: list[Given] = [(c, start, 1) for c in controls]
        records: list[Given] = [(a, n, 1) for a in kept]
        return _Calls.of(loop, end - start - 1, states, others, records, -2 * end)

    @staticmethod
    def back(
        plan: _Plan,
        loop: Loop,
        covectors: Rows,
        kept: Rows,
        controls: Rows,
        weights: Rows,
        along: Rows,
    ) -> "_Calls":
        """Return the calls that run the transposed (adjoint) steps, one for each range of steps."""
        latest, each = plan.last - 1, -1 if plan.every == 1 else 0
        states: list[Given] = [(a[:, None], 0, 0) for a in covectors]
        others: list[Given] = [
            *((a, plan.slots, -1) for a in kept),
            *((c, latest, -1) for c in controls),
            *((w, plan.records, each) for w in weights),
        ]
        records: list[Given] = [(a, latest, -1) for a in along]
        return _Calls.of(loop, plan.last - plan.first, states, others, records, 1 - 2 * plan.last)

    @staticmethod
    def of(
        loop: Loop,
        steps: np.ndarray,
        own: list[Given],
        others: list[Given],
        kept: list[Given],
        order: np.ndarray,
    ) -> "_Calls":
        inputs, states, records = (
            _Tables.of(len(steps), given) for given in (own + others, own, kept)
        )
        fresh = [np.empty(size // 8) for size in states.sizes]
        places = np.array([address(a) for a in fresh], dtype=np.intp)
        room = workspace(loop.kernel)
        columns: list[Any] = [loop.address, len(own[0][0]), steps, 1]
        columns += [len(inputs.sizes), len(states.sizes), len(records.sizes)]
        columns += [inputs.each, address(inputs.rows), address(inputs.along)]
        columns += [states.each, address(states.sizes)]
        columns += [records.each, address(records.rows), address(records.along)]
        columns += [address(places), address(room)]
        table = np.empty((len(steps), len(columns)), dtype=np.intp)
        for k, column in enumerate(columns):
            table[:, k] = column
        return _Calls(table, order, (inputs, states, records, fresh, places, room))


@dataclass(frozen=True)
class _Tables:
    """Addresses of the arrays that several calls to a compiled loop (`repeat`) read or write.

    - places (calls, arrays): the address of the first row that a call uses.
    - rows, along (arrays,): strides (bytes) between rows and between steps, respectively.
    - sizes (arrays,): row sizes (bytes).
    """

    places: np.ndarray
    rows: np.ndarray
    along: np.ndarray
    sizes: np.ndarray
    arrays: tuple[np.ndarray, ...]

    @staticmethod
    def of(calls: int, given: list[Given]) -> "_Tables":
        arrays = tuple(a for a, _, _ in given)
        steps = [0 if a.shape[1] == 1 else a.strides[1] for a in arrays]
        places = np.empty((calls, len(given)), dtype=np.intp)
        for column, ((a, k, _), s) in enumerate(zip(given, steps, strict=True)):
            places[:, column] = address(a) + k * s
        numbers = (
            [0 if len(a) == 1 else a.strides[0] for a in arrays],
            [s * way for s, (_, _, way) in zip(steps, given, strict=True)],
            [a.shape[2] * a.itemsize for a in arrays],
        )
        rows, along, sizes = (np.array(each, dtype=np.intp) for each in numbers)
        return _Tables(places, rows, along, sizes, arrays)

    @property
    def each(self) -> np.ndarray:
        """Addresses of the rows of `places`, one for each call."""
        return address(self.places) + self.places.strides[0] * np.arange(len(self.places))
