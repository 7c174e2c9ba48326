"""Choice of the values to park in shared memory while their registers hold other values.

When registers run out, the compiler would spill values to local memory, which is slow. Here the
program's order is known, so the value whose next use is farthest away is parked (L. A. Belady, A
study of replacement algorithms for a virtual-storage computer, 1966). A value is stored once and
may be read several times; its memory slot is reused after its last use.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from chasles.expr import Instruction


@dataclass
class Parking:
    """Moves of values between registers and shared memory, before and after each instruction.

    `reads` are the values to be read before an instruction. `parks` are the values to be stored
    after it, each with its memory slot. `places` is the number of additional slots needed.
    """

    reads: dict[int, list[int]] = field(default_factory=dict)
    parks: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    places: int = 0


def parked(
    code: Sequence[Instruction],
    order: Sequence[int],
    registers: int,
    waiting: Mapping[int, str],
    reusable: Collection[int],
    new: Callable[[int], str],
    stored: Mapping[int, str],
) -> Parking:
    """Plan the moves so that at most `registers` values are in registers at once.

    - waiting: slots of values that are in memory from the start.
    - reusable: values of `waiting` whose slots may be reused after their last use.
    - new: function that returns the name of the k-th new slot.
    - stored: slots of values that are stored as soon as they are computed.
    """
    uses: dict[int, list[int]] = {}
    for time in range(len(order) - 1, -1, -1):
        for a in code[order[time]].args:
            uses.setdefault(a, []).append(time)
    found, free, place = Parking(), list[str](), {**waiting, **stored}
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
                    free.append(place[a])
        if k in stored:
            found.parks.setdefault(k, []).append((k, stored[k]))
        if k in uses:
            inside.add(k)
        while len(inside) > registers:
            farthest = max(inside, key=next_use)
            inside.discard(farthest)
            if farthest not in place:
                if not free:
                    free.append(new(found.places))
                    found.places += 1
                place[farthest] = free.pop()
                found.parks.setdefault(k, []).append((farthest, place[farthest]))
    return found
