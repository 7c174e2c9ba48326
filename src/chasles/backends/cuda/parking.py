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


@dataclass
class Parking:
    """Moves of values between registers and shared memory, before and after each instruction.

    `reads` are the values to be read before an instruction. `parks` are the values to be stored
    after it, each with its memory slot.
    """

    reads: dict[int, list[int]] = field(default_factory=dict)
    parks: dict[int, list[tuple[int, str]]] = field(default_factory=dict)


@dataclass
class Slots:
    """Memory slots for the parked values of warps that run the same code on several sides.

    A value that differs between sides has a slot of one column for each side. A value that is the
    same on all sides has a slot of one column, which all warps write. Such a slot is reused only in
    a later phase, when all warps have read it.

    - new: function that returns the expression for a slot with a given first column and number of
      columns. Columns are counted from 0.
    - sides: number of sides.
    - differ: values that differ between sides.
    - phase: phase of each instruction.
    """

    new: Callable[[int, int], str]
    sides: int = 1
    differ: Collection[int] = ()
    phase: Mapping[int, int] = field(default_factory=dict)
    columns: int = 0
    _free: list[str] = field(default_factory=list)
    _common: dict[str, int] = field(default_factory=dict)
    """Slots of one column for several sides, with the first phase in which they are free."""

    def take(self, value: int, now: int) -> str:
        """Return a slot for a value that is parked after an instruction."""
        common = self.sides > 1 and value not in self.differ
        if common:
            ready = (slot for slot, since in self._common.items() if since <= self.phase[now])
            if slot := next(ready, None):
                self._common[slot] = sys.maxsize
                return slot
        if self._free:
            return self._free.pop()
        count = 1 if common else self.sides
        slot = self.new(self.columns, count)
        self.columns += count
        if common:
            self._common[slot] = sys.maxsize
        return slot

    def give(self, slot: str, now: int) -> None:
        """Release the slot of a value after the instruction that uses the value last."""
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
) -> Parking:
    """Plan the moves so that at most `registers` values are in registers at once.

    - waiting: slots of values that are in memory from the start.
    - reusable: values of `waiting` whose slots may be reused after their last use.
    - slots: slots for other values.
    - stored: slots of values that are stored as soon as they are computed.
    """
    uses: dict[int, list[int]] = {}
    for time in range(len(order) - 1, -1, -1):
        for a in code[order[time]].args:
            uses.setdefault(a, []).append(time)
    found, place = Parking(), {**waiting, **stored}
    inside: set[int] = set()

    def next_use(k: int) -> int:
        return uses[k][-1]

    for time, k in enumerate(order):
        op, args, _ = code[k]
        if op == "const" or k in waiting:
            continue
        needed = [a for a in dict.fromkeys(args) if code[a].op != "const"]
        for a in needed:
            if a not in inside:
                found.reads.setdefault(k, []).append(a)
                inside.add(a)
        for a in needed:
            while uses[a] and uses[a][-1] <= time:
                uses[a].pop()
            if not uses[a]:
                inside.discard(a)
                if a in place and a not in stored and (a not in waiting or a in reusable):
                    slots.give(place[a], k)
        if k in stored:
            found.parks.setdefault(k, []).append((k, stored[k]))
        if k in uses:
            inside.add(k)
        while len(inside) > registers:
            farthest = max(inside, key=next_use)
            inside.discard(farthest)
            if farthest not in place:
                place[farthest] = slots.take(farthest, k)
                found.parks.setdefault(k, []).append((farthest, place[farthest]))
    return found
