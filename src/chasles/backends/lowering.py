"""Lowering of programs to machine operations: fused multiply-adds, ordering, division into parts.

All programs are lowered here, so that the code for one state and the code for a vector of states
run the same operations, with bitwise identical results. A long program is divided into parts,
because compile time grows faster than linearly with the length of a block. Values that a later part
needs are stored in a scratch array.
"""

import heapq
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from chasles.expr import Instruction, Program

FREE = ("const", "input")
"""Operations whose values need no space in the scratch array: constants and inputs."""

FAST = 512
"""Number of live values (64-byte vectors) that fit in the L1 cache.

Code with more live values is reordered.
"""

COMPARED = ("less", "less_equal", "equal")
"""Operations whose results are masks, which are held in separate mask registers."""

REGISTERS = 32
"""Number of vector registers. Code with at most this many live values needs no reloads."""

NEVER = sys.maxsize
"""Value of `far` that exceeds the length of every program, so that no value is reloaded."""


@dataclass(frozen=True)
class Stage:
    """Instructions in order, followed by the sines and cosines of all `angles` in one group."""

    code: tuple[int, ...]
    angles: tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """A part of a program that is compiled as one function.

    - saved: values that are stored for later use, with their indices in the scratch array.
    - results: values that the program returns.
    """

    stages: tuple[Stage, ...]
    saved: tuple[tuple[int, int], ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Lowered:
    """A program's instructions with fused multiply-adds, divided into parts.

    fma(a, b, c) = a*b + c, fms(a, b, c) = a*b - c, fnma(a, b, c) = c - a*b.

    - place: index in the scratch array of each value that several parts use, or that is used again
      after more than `far` instructions.
    - scratch: length of the scratch array.
    """

    code: tuple[Instruction, ...]
    parts: tuple[Part, ...]
    place: dict[int, int]
    scratch: int
    far: int


def lower(program: Program, *, fuse: bool, longest: int, far: int = NEVER) -> Lowered:
    """Fuse multiply-adds (if `fuse` is True), order instructions, and divide them into parts."""
    code = fused(program) if fuse else list(program.code)
    return cut(code, list(places(program)), longest, far)


def cut(
    code: list[Instruction],
    results: list[int],
    longest: int,
    far: int = NEVER,
    first: Sequence[int] = (),
) -> Lowered:
    """Order instructions, and divide them into parts of at most about `longest` operations.

    - results: the instructions whose values the program returns.
    - far: maximum number of instructions between two uses of a value kept in a register. After more
      instructions, the value is reloaded from the scratch array. Compilers allocate registers
      faster if the lifetimes of values are short.
    - first: values that are computed first; the instructions after them keep their order.
    """
    order = deepest_first(code, first or results)
    most = most_alive(code, order, FREE)
    if most > FAST:
        order = few_alive(code, [order], FREE)
    if first:
        order += sorted({*deepest_first(code, results)}.difference(order))
    pieces = _cut(code, order, longest)
    return _parts(code, pieces, results, far if most > REGISTERS else NEVER)


def places(program: Program) -> dict[int, list[tuple[int, int]]]:
    """Return the destinations of each distinct result, as one or more pairs (output, index)."""
    found: dict[int, list[tuple[int, int]]] = {}
    for output, refs in enumerate(program.results):
        for index, r in enumerate(refs):
            found.setdefault(r, []).append((output, index))
    return found


def fused(program: Program) -> list[Instruction]:
    """Return the program's instructions, with sums written as chains of fused multiply-adds.

    A sum used only by another sum becomes part of that sum. A product used only by sums is fused
    into each of them, which adds no instruction. Terms that are available first are added first.
    The sums of similar limbs (`Program.alike`) become identical chains.
    """
    return fused_apart(program, {})[0]


def fused_apart(
    program: Program, group: Mapping[int, int]
) -> tuple[list[Instruction], dict[int, int]]:
    """Return the result of `fused` with sums split by group, and the group of each instruction.

    `group` maps instructions of the program to groups. The terms of a sum that belong to another
    group are first added within that group.
    """
    code, height, found = list(program.code), heights(program.code), dict(group)
    used = users(code, range(len(code)))
    kept = {r for refs in program.results for r in refs}
    sums = {k for k, i in enumerate(code) if i.op in ("add", "sub")}
    side = {k: lane for pack in program.alike for lane, k in enumerate(pack)}
    inner = {
        k
        for k in sums - kept
        if len(used[k]) == 1 and used[k][0] in sums and side.get(used[k][0]) == side.get(k)
    }
    free = {
        k
        for k, i in enumerate(code)
        if i.op == "mul"
        and k not in kept
        and all(u in sums and side.get(u) == side.get(k) for u in used[k])
    }
    twins = {pack[0]: pack for pack in program.alike}

    def write(terms: list[tuple[bool, int]], slots: list[int], name: int) -> None:
        own = {k for _, k in terms if k in free and group.get(k, name) == name}
        terms = sorted(terms, key=lambda term: height[term[1]] - (term[1] in own))
        _write_chain(code, terms, slots, own)
        found.update(dict.fromkeys(slots, name))

    for root in sums - inner:
        if side.get(root, 0):
            continue
        terms, slots = _terms(program.code, root, inner)
        whole = slots if root in twins else ()
        mine, apart = group.get(root, 0), list[tuple[bool, int]]()
        others = {group.get(k, mine) for _, k in terms} - {mine} if group else set[int]()
        for name in sorted(others):
            theirs = [term for term in terms if group.get(term[1], mine) == name]
            terms = [term for term in terms if term not in theirs]
            if len(theirs) > 1:
                plus = any(added for added, _ in theirs)
                part, slots = slots[: len(theirs) - 1], slots[len(theirs) - 1 :]
                height[part[-1]] = max(height[k] for _, k in theirs) + 1
                write([(added == plus, k) for added, k in theirs], part, name)
                theirs = [(plus, part[-1])]
            # Do not add the partial sum to `terms`: `group` may list it in another group.
            apart += theirs
        write([*terms, *apart], slots, mine)
        for k in whole:
            for lane, twin in enumerate(twins[k]):
                args = (twins[a][lane] if a in twins else a for a in code[k].args)
                code[twin] = Instruction(code[k].op, tuple(args))
    return code, found


def users(code: Sequence[Instruction], order: Sequence[int]) -> dict[int, list[int]]:
    """Return, for each value, the instructions that use it, in order."""
    found: dict[int, list[int]] = {k: [] for k in order}
    for k in order:
        for a in code[k].args:
            found[a].append(k)
    return found


def _terms(
    code: Sequence[Instruction], root: int, inner: set[int]
) -> tuple[list[tuple[bool, int]], list[int]]:
    """Return the terms of a nested sum, and the additions and subtractions that compute it.

    A term is a pair (True if added or False if subtracted, instruction).
    """
    terms, slots, stack = [], [], [(True, root)]
    while stack:
        added, k = stack.pop()
        if k == root or k in inner:
            slots.append(k)
            first, second = code[k].args
            stack.append((added == (code[k].op == "add"), second))
            stack.append((added, first))
        else:
            terms.append((added, k))
    return terms, sorted(slots)


def _write_chain(
    code: list[Instruction], terms: list[tuple[bool, int]], slots: list[int], free: set[int]
) -> None:
    """Write a sum as a chain of additions in place of the instructions `slots`.

    The chain begins with a term that is not subtracted, preferably one that is not a product.
    The products `free` are fused with additions into multiply-add instructions.
    """
    begin = min((t for t in terms if t[0]), key=lambda t: t[1] in free)
    terms.remove(begin)
    total = begin[1]
    if total in free and (minus := next((t for t in terms if t[1] not in free), None)):
        terms.remove(minus)
        total, *slots = slots
        code[total] = Instruction("fms", (*code[begin[1]].args, minus[1]))
    for slot, (added, k) in zip(slots, terms, strict=True):
        if k in free:
            code[slot] = Instruction("fma" if added else "fnma", (*code[k].args, total))
        else:
            code[slot] = Instruction("add" if added else "sub", (total, k))
        total = slot


def depth_first(
    code: Sequence[Instruction], roots: Iterable[int], rank: Callable[[int], int] | None = None
) -> list[int]:
    """Return the instructions on which the roots depend, each after its arguments.

    If `rank` is given, arguments with a higher rank come first.
    """
    done, order = bytearray(len(code)), list[int]()
    for root in roots:
        stack = [root]
        while stack:
            k = stack[-1]
            if done[k]:
                stack.pop()
                continue
            waiting = [a for a in code[k].args if not done[a]]
            if waiting:
                if rank is not None and len(waiting) > 1:
                    waiting.sort(key=rank)
                stack += waiting
                continue
            stack.pop()
            done[k] = 1
            order.append(k)
    return order


def deepest_first(code: Sequence[Instruction], results: Sequence[int]) -> list[int]:
    """Return a depth-first order, deepest argument first, which keeps few values alive."""
    return depth_first(code, reversed(results), heights(code).__getitem__)


def heights(code: Sequence[Instruction]) -> list[int]:
    """Return the length of the longest dependency chain that ends in each instruction."""
    height = [0] * len(code)
    for k in depth_first(code, range(len(code))):
        if args := code[k].args:  # inputs and constants have no arguments
            height[k] = 1 + max([height[a] for a in args])
    return height


def _alive(
    code: Sequence[Instruction], order: Sequence[int], elsewhere: Collection[str]
) -> Iterator[tuple[int, int]]:
    """Yield how many values are live during and after each instruction, in the given order."""
    last = [-1] * len(code)
    for time, k in enumerate(order):
        for a in code[k].args:
            last[a] = time
    ends, alive = [0] * len(order), 0
    for time, k in enumerate(order):
        if (end := last[k]) >= 0 and code[k].op not in elsewhere:
            alive += 1
            ends[end] += 1
        before, alive = alive, alive - ends[time]
        yield before, alive


def _cut(code: Sequence[Instruction], order: list[int], longest: int) -> list[list[int]]:
    """Divide instructions into blocks of similar length, so that few values pass between blocks."""
    count = -(-len(order) // longest)
    if count <= 1:
        return [order]
    crossing = [after for _, after in _alive(code, order, FREE)]
    pieces, start = [], 0
    for n in range(count, 1, -1):
        target = start + (len(order) - start) // n
        reach = (len(order) - start) // n // 5
        cut = min(range(target - reach, target + 1), key=lambda t: crossing[t]) + 1
        pieces.append(order[start:cut])
        start = cut
    return [*pieces, order[start:]]


def _parts(
    code: list[Instruction], pieces: list[list[int]], results: list[int], far: int
) -> Lowered:
    home = {k: n for n, piece in enumerate(pieces) for k in piece}
    needed_until: dict[int, int] = {}
    for n, piece in enumerate(pieces):
        for k in piece:
            for a in code[k].args:
                needed_until[a] = n
    place: dict[int, int] = {}
    leaving: dict[int, list[int]] = {}
    scratch, parts = _Scratch(), []
    for n, piece in enumerate(pieces):
        stages = tuple(_stages(code, piece))
        crossing = [k for k in piece if needed_until.get(k, n) > n and code[k].op not in FREE]
        for k in crossing:
            place[k] = scratch.take()
            leaving.setdefault(needed_until[k], []).append(place[k])
        resting = {k: time for k, time in _resting(code, stages, far).items() if k not in place}
        _give_places(resting, stages, place, scratch)
        scratch.give_back(leaving.pop(n, ()))
        saved = tuple((k, place[k]) for k in (*crossing, *resting))
        delivered = tuple(r for r in results if home[r] == n)
        parts.append(Part(stages, saved, delivered))
    return Lowered(tuple(code), tuple(parts), place, scratch.size, far)


class _Scratch:
    """Allocator for the scratch array, which reuses free entries before it adds new ones."""

    def __init__(self) -> None:
        self.size, self._vacant = 0, list[int]()

    def take(self) -> int:
        """Allocate an entry of the scratch array; return its index."""
        if self._vacant:
            return self._vacant.pop()
        self.size += 1
        return self.size - 1

    def give_back(self, places: Iterable[int]) -> None:
        """Mark entries of the scratch array as free again."""
        self._vacant.extend(places)


def _resting(code: Sequence[Instruction], stages: Iterable[Stage], far: int) -> dict[int, int]:
    """Return the last use of each value with more than `far` instructions between two uses.

    The computation of a value counts as a use. A use is identified by the number of instructions
    before it. Inputs, constants and results of comparisons are omitted.
    """
    touched, found, time, elsewhere = dict[int, int](), set[int](), 0, (*FREE, *COMPARED)
    for stage in stages:
        for k in (*stage.code, None):
            for a in stage.angles if k is None else code[k].args:
                if a in touched:
                    if time - touched[a] > far and code[a].op not in elsewhere:
                        found.add(a)
                    touched[a] = time
            if k is not None:
                touched[k] = time
                time += 1
    return {k: touched[k] for k in sorted(found)}


def _give_places(
    resting: Mapping[int, int], stages: Iterable[Stage], place: dict[int, int], scratch: _Scratch
) -> None:
    """Assign scratch-array entries to the values in `resting`, each until its last use."""
    ending: dict[int, list[int]] = {}
    for time, k in enumerate(k for stage in stages for k in stage.code):
        scratch.give_back(ending.pop(time, ()))
        if k in resting:
            place[k] = scratch.take()
            ending.setdefault(resting[k] + 1, []).append(place[k])
    for places in ending.values():
        scratch.give_back(places)


def _stages(code: Sequence[Instruction], piece: Sequence[int]) -> Iterable[Stage]:
    """Divide a block of instructions into stages; sines and cosines are computed after each stage.

    The angles of a stage depend only on sines and cosines of earlier stages.
    """
    inside = set(piece)
    level: dict[int, int] = {}
    for k in piece:
        op, args, _ = code[k]
        inner = max([level.get(a, 0) for a in args]) if args else 0
        level[k] = inner + 1 if op in ("sin", "cos") else inner
    turns = {k: code[k].args[0] for k in piece if code[k].op in ("sin", "cos")}
    done: set[int] = set(turns)
    for depth in range(max(level.values(), default=0)):
        angles = tuple(dict.fromkeys(a for k, a in turns.items() if level[k] == depth + 1))
        wanted, stack = set(), [a for a in angles if a in inside]
        while stack:
            k = stack.pop()
            if k not in wanted and k not in done:
                wanted.add(k)
                stack.extend(a for a in code[k].args if a in inside)
        ready = tuple(k for k in piece if k in wanted)
        done.update(ready)
        yield Stage(ready, angles)
    yield Stage(tuple(k for k in piece if k not in done), ())


def few_alive(
    code: Sequence[Instruction], orders: Sequence[Sequence[int]], elsewhere: Collection[str]
) -> list[int]:
    """Return the order with the fewest live values among the given orders and variants of them.

    elsewhere: operations whose results are in memory and do not occupy a register.
    """
    found = [tried for order in orders for tried in (_freeing(code, order, elsewhere), list(order))]
    return min(found, key=lambda order: most_alive(code, order, elsewhere))


def most_alive(
    code: Sequence[Instruction], order: Sequence[int], elsewhere: Collection[str]
) -> int:
    """Return the maximum number of live values (computed, and still needed by an instruction)."""
    return max((most for most, _ in _alive(code, order, elsewhere)), default=0)


def _freeing(
    code: Sequence[Instruction], order: Sequence[int], elsewhere: Collection[str]
) -> list[int]:
    """Return an order of the instructions that keeps few values alive at once.

    The candidates for the next position are the instructions whose arguments have all been
    computed. The candidate that ends the most live ranges is chosen. If every candidate adds a live
    value, the first candidate in the given order is chosen.
    """
    place, found = {k: time for time, k in enumerate(order)}, list[int]()
    users: dict[int, list[int]] = {k: [] for k in order}
    needs = {k: set(code[k].args) for k in order}
    for k in order:
        for a in needs[k]:
            users[a].append(k)
    left = {k: len(users[k]) for k in order}
    waiting = {k: len(needs[k]) for k in order}
    held = {k: code[k].op not in elsewhere for k in order}
    gain = {k: -int(held[k] and bool(users[k])) for k in order}
    done, by_gain, by_place = set[int](), list[tuple[int, int, int]](), list[tuple[int, int]]()

    def offer(k: int) -> None:
        if gain[k] >= 0:
            heapq.heappush(by_gain, (-gain[k], place[k], k))

    def last_use(a: int) -> None:
        """Record that the value `a` has one remaining use, after which its register is free."""
        if held[a]:
            for k in users[a]:
                if k not in done:
                    gain[k] += 1
                    if not waiting[k]:
                        offer(k)

    for a in order:
        if left[a] == 1:
            last_use(a)
    for k in order:
        if not waiting[k]:
            heapq.heappush(by_place, (place[k], k))
            offer(k)
    while by_place:
        k = heapq.heappop(by_gain)[2] if by_gain else heapq.heappop(by_place)[1]
        if k in done:
            continue
        done.add(k)
        found.append(k)
        for a in needs[k]:
            left[a] -= 1
            if left[a] == 1:
                last_use(a)
        for user in users[k]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(by_place, (place[user], user))
                offer(user)
    return found
