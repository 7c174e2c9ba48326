"""From a program to machine operations: fused products, their order, and the parts they run in.

The choices are made here, once, so that one state and a vector of states run the same operations
and give the same bits. A long program is cut into parts, because the compiler's time grows faster
than the length of a block. Values that one part makes and a later one needs wait in numbered places
of a scratch array.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chasles.expr import Instruction, Program

FREE = ("const", "input")
"""Values that every part can have without a place in the scratch array."""


@dataclass(frozen=True)
class Stage:
    """Instructions to run in order, then the angles whose sines and cosines are taken together."""

    code: tuple[int, ...]
    angles: tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """A stretch of the program. `saved` pairs values with the places they are kept in for later."""

    stages: tuple[Stage, ...]
    saved: tuple[tuple[int, int], ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Lowered:
    """Instructions with fused products, cut into parts.

    fma(a, b, c) = a*b + c, fms = a*b - c, fnma = c - a*b. `place` says where a value that crosses
    parts waits; `scratch` is how many places there are.
    """

    code: tuple[Instruction, ...]
    parts: tuple[Part, ...]
    place: dict[int, int]
    scratch: int


def lower(program: Program, *, fuse: bool, longest: int) -> Lowered:
    """Fuse (where the machine can), order, and cut into parts of about `longest` operations."""
    code = _fused(program) if fuse else list(program.code)
    results = list(dict.fromkeys(r for refs in program.results for r in refs))
    order = _deepest_first(code, results)
    pieces = _cut(code, order, longest)
    return _parts(code, pieces, results)


def _fused(program: Program) -> list[Instruction]:
    """Each sum takes in one product that no other instruction needs, or only sums need."""
    code = list(program.code)
    users: dict[int, list[int]] = {k: [] for k in range(len(code))}
    for k, instruction in enumerate(code):
        for a in instruction.args:
            users[a].append(k)
    kept = {r for refs in program.results for r in refs}
    free = {k for k, i in enumerate(code) if i.op in ("add", "sub")}
    products = [k for k, i in enumerate(code) if i.op == "mul" and k not in kept]
    for product in sorted(products, key=lambda k: (len(users[k]), k)):
        sums = users[product]
        if sums and len(set(sums)) == len(sums) and all(k in free for k in sums):
            a, b = program.code[product].args
            for k in sums:
                free.discard(k)
                code[k] = _fuse(program.code[k], product, a, b)
    return code


def _fuse(total: Instruction, product: int, a: int, b: int) -> Instruction:
    first, second = total.args
    if total.op == "add":
        return Instruction("fma", (a, b, second if first == product else first))
    if first == product:
        return Instruction("fms", (a, b, second))
    return Instruction("fnma", (a, b, first))


def _deepest_first(code: Sequence[Instruction], results: Sequence[int]) -> list[int]:
    """An order that keeps few values alive: depth first, the deepest argument before the others."""
    height = [0] * len(code)
    for k, (op, args, _) in enumerate(code):
        height[k] = 0 if op in FREE else 1 + max(height[a] for a in args)
    done, order = bytearray(len(code)), []
    for root in reversed(results):
        stack = [root]
        while stack:
            k = stack[-1]
            waiting = [a for a in code[k].args if not done[a]]
            if waiting and not done[k]:
                waiting.sort(key=lambda a: height[a])
                stack.extend(waiting)
                continue
            stack.pop()
            if not done[k]:
                done[k] = 1
                order.append(k)
    return order


def _cut(code: Sequence[Instruction], order: list[int], longest: int) -> list[list[int]]:
    """Pieces of about equal length, cut where the fewest values are alive."""
    count = -(-len(order) // longest)
    if count <= 1:
        return [order]
    last_use = {}
    for t, k in enumerate(order):
        for a in code[k].args:
            last_use[a] = t
    alive, crossing = 0, []
    ends: dict[int, int] = {}
    for t, k in enumerate(order):
        if code[k].op not in FREE and k in last_use:
            alive += 1
            ends[last_use[k]] = ends.get(last_use[k], 0) + 1
        alive -= ends.pop(t, 0)
        crossing.append(alive)
    pieces, start = [], 0
    for n in range(count, 1, -1):
        target = start + (len(order) - start) // n
        reach = (len(order) - start) // n // 5
        cut = min(range(target - reach, target + 1), key=lambda t: crossing[t]) + 1
        pieces.append(order[start:cut])
        start = cut
    return [*pieces, order[start:]]


def _parts(code: list[Instruction], pieces: list[list[int]], results: list[int]) -> Lowered:
    home = {k: n for n, piece in enumerate(pieces) for k in piece}
    needed_until: dict[int, int] = {}
    for n, piece in enumerate(pieces):
        for k in piece:
            for a in code[k].args:
                needed_until[a] = n
    place: dict[int, int] = {}
    vacant: list[int] = []
    leaving: dict[int, list[int]] = {}
    scratch, parts = 0, []
    for n, piece in enumerate(pieces):
        saved = []
        for k in piece:
            until = needed_until.get(k, n)
            if until > n and code[k].op not in FREE:
                if not vacant:
                    vacant.append(scratch)
                    scratch += 1
                place[k] = vacant.pop()
                saved.append((k, place[k]))
                leaving.setdefault(until, []).append(place[k])
        vacant.extend(leaving.pop(n, ()))
        delivered = tuple(r for r in results if home[r] == n)
        parts.append(Part(tuple(_stages(code, piece)), tuple(saved), delivered))
    return Lowered(tuple(code), tuple(parts), place, scratch)


def _stages(code: Sequence[Instruction], piece: Sequence[int]) -> Iterable[Stage]:
    """Angles that need no sine or cosine of this piece come first, and so on outward."""
    inside = set(piece)
    level: dict[int, int] = {}
    for k in piece:
        inner = max((level.get(a, 0) for a in code[k].args), default=0)
        level[k] = inner + 1 if code[k].op in ("sin", "cos") else inner
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
