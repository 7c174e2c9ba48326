"""Choice of the values to park in shared memory while their registers hold other values.

When registers run out, the compiler would spill values to local memory, which is slow. Here the
program's order is known, so the value whose next use is farthest away is parked (L. A. Belady, A
study of replacement algorithms for a virtual-storage computer, 1966). A value is stored once and
may be read several times; its memory slot is reused after its last use.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from chasles.expr import Instruction

MARGIN = 10
"""Margin (number of instructions) for evicting values from registers when memory slots run out. A
value that is already in memory is evicted before other values if its next use is more than `ahead`
(a parameter of `parked`) plus MARGIN instructions away."""


@dataclass
class Parking:
    """Loads from shared memory before each instruction, and stores to it after each instruction.

    `reads` maps the index of an instruction to the values to load. `parks` maps it to the values to
    store, each with its location in shared memory.
    """

    reads: dict[int, list[int]] = field(default_factory=dict)
    parks: dict[int, list[tuple[int, str]]] = field(default_factory=dict)


@dataclass
class Slots:
    """Memory slots for parked values, which are stored to free their registers for other values.

    Warps may run the same code for several limbs. These limbs have the same structure and are
    called twins; the number of a twin is its side (`cuda.twins`). A value that differs between
    sides has a slot of one column for each side. A value that is the same on all sides has a slot
    of one column, which all warps write. Such a slot is reused only in a later phase, when all
    warps have read it.

    - new: function that returns the expression for a slot with a given first column and number of
      columns. Columns are counted from 0.
    - sides: number of sides.
    - differ: values that differ between sides.
    - phase: phase of each instruction.
    - until: for a slot that a result of the program overwrites, the index of the instruction that
      computes the result.
    - most: target for the number of columns, exceeded only if no value that is already in
      memory can be evicted from its register instead (`parked`).
    """

    new: Callable[[int, int], str]
    sides: int = 1
    differ: Collection[int] = ()
    phase: Mapping[int, int] = field(default_factory=dict)
    until: Mapping[str, int] = field(default_factory=dict)
    most: int = sys.maxsize
    columns: int = 0
    _free: list[str] = field(default_factory=list)
    _common: dict[str, int] = field(default_factory=dict)
    """Slots that all twins (limbs with the same structure) share, and the phase from which each is
    free. Each of these slots has one column."""

    def take(self, value: int, now: int, last: int) -> str:
        """Return a slot for a value that is stored after instruction number `now`.

        last: index of the last instruction that uses the value.
        """
        common = self.sides > 1 and value not in self.differ
        if common:
            ready = (slot for slot, since in self._common.items() if since <= self.phase[now])
            if slot := next(ready, None):
                self._common[slot] = sys.maxsize
                return slot
        if fitting := self._fitting(last):
            slot = min(reversed(fitting), key=self._end)
            self._free.remove(slot)
            return slot
        count = 1 if common else self.sides
        slot = self.new(self.columns, count)
        self.columns += count
        if common:
            self._common[slot] = sys.maxsize
        return slot

    def full(self, last: int) -> bool:
        """Return True if keeping a value until instruction `last` would exceed `most` columns."""
        return self.columns >= self.most and not self._fitting(last)

    def _end(self, slot: str) -> int:
        """Return the index of the instruction whose result overwrites a slot.

        If no result overwrites the slot, return `sys.maxsize`.
        """
        return self.until.get(slot, sys.maxsize)

    def _fitting(self, last: int) -> list[str]:
        """Return the free slots that no result overwrites before instruction `last`."""
        return [slot for slot in self._free if self._end(slot) >= last]

    def give(self, slot: str, now: int) -> None:
        """Release the slot of a value after the last instruction that uses the value."""
        if slot in self._common:
            self._common[slot] = self.phase[now] + 1
        else:
            self._free.append(slot)


def parked(
    code: Sequence[Instruction],
    order: Sequence[int],
    registers: int,
    waiting: Mapping[int, str],
    reusable: Collection[int],
    slots: Slots,
    stored: Mapping[int, str],
    ahead: int = 0,
) -> Parking:
    """Plan moves between registers and memory, with at most `registers` values in registers.

    - waiting: slots of values that are in memory from the start.
    - reusable: values of `waiting` whose slots may be reused after their last use.
    - slots: slots for other values.
    - stored: slots of values that are stored as soon as they are computed.
    - ahead: number of instructions between reading a value and using it. This distance hides the
      memory latency if few warps run at the same time.

    If memory slots run out, values that are already in memory are evicted from registers first.
    """
    uses: dict[int, list[int]] = {}
    run = [k for k in order if code[k].op != "const" and k not in waiting]
    for time in range(len(run) - 1, -1, -1):
        for a in code[run[time]].args:
            uses.setdefault(a, []).append(time)
    found, place = Parking(), {**waiting, **stored}
    inside, done = set[int](), set[int]()

    def next_use(k: int) -> int:
        return uses[k][-1]

    def read(a: int, k: int) -> None:
        found.reads.setdefault(k, []).append(a)
        inside.add(a)

    for time, k in enumerate(run):
        soon = code[run[time + ahead]].args if time + ahead < len(run) else ()
        for a in dict.fromkeys(soon):
            if a in place and a not in inside and (a in waiting or a in done):
                read(a, k)
        needed = [a for a in dict.fromkeys(code[k].args) if code[a].op != "const"]
        for a in needed:
            if a not in inside:
                read(a, k)
        for a in needed:
            while uses[a] and uses[a][-1] <= time:
                uses[a].pop()
            if not uses[a]:
                inside.discard(a)
                if a in place and a not in stored and (a not in waiting or a in reusable):
                    slots.give(place[a], k)
        done.add(k)
        if k in stored:
            found.parks.setdefault(k, []).append((k, stored[k]))
        if k in uses:
            inside.add(k)
        while len(inside) > registers:
            farthest = max(inside, key=next_use)
            last = uses[farthest][0]
            if farthest not in place and slots.full(last):
                copies = [a for a in inside if a in place and next_use(a) > time + ahead + MARGIN]
                farthest = max(copies, key=next_use, default=farthest)
            inside.discard(farthest)
            if farthest not in place:
                place[farthest] = slots.take(farthest, k, last)
                found.parks.setdefault(k, []).append((farthest, place[farthest]))
    return found
