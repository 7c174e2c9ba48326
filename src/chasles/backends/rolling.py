"""Long programs as loops over segments that share code but not constants or memory locations.

A program traced body by body (`Arena.cut`) is a sequence of segments. Two segments have the same
form if they perform the same operations in the same order; their constants and the sources of their
arguments may differ. Each form becomes a short program, and each segment becomes a row of a table.
A row holds the constants that differ between segments of the form, and the indices in memory that
the segment reads and writes. Memory is one array: all entries of the inputs, then scratch space,
then one entry (slot) for every distinct result.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from chasles.backends.lowering import FREE, places
from chasles.expr import Instruction, Program, Variable

T = TypeVar("T")

ANGLES = 8
"""Number of angles whose sines and cosines are computed together, at the beginning of a program, so
that even a single state fills a SIMD vector."""

SHORTER = 4
"""Minimum factor by which a loop must shorten a program: the program's length divided by the total
length of its forms (`Form`)."""

JOINED, LONG, OFTEN = 24, 600, 64
"""Limits for merging neighboring segments. At most `JOINED` pairs of forms are merged. A merged
segment has at most `LONG` instructions, and a pair is merged only if it occurs at least once per
`OFTEN` segments.
"""

NUMBERS, READS = 0, 1
"""Indices of the two input arrays of a `Form`'s program: constants, and values read from memory."""


@dataclass(frozen=True)
class Form:
    """The program that all segments of one form share, and a table row for each segment.

    The inputs of the program are the constants in a row of `numbers` and the values at the memory
    indices `reads`; the only output is written to the memory indices `writes`. A memory index is
    given as (column, offset): the entry in that column of the segment's row in `places`, plus the
    offset.
    """

    program: Program
    numbers: tuple[tuple[float, ...], ...]
    places: tuple[tuple[int, ...], ...]
    reads: tuple[tuple[int, int], ...]
    writes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Rolled:
    """A program as a loop over segments.

    `forms` contains the code that segments share. `steps` contains a pair for each segment in order
    of execution: the index of its form, and its row in the form's tables.
    """

    forms: tuple[Form, ...]
    steps: tuple[tuple[int, int], ...]
    scratch: int

    @property
    def parts(self) -> tuple["Rolled"]:
        """A tuple that contains only this program, for compatibility with `Lowered.parts`."""
        return (self,)


def rolled(program: Program) -> Rolled | None:
    """Return a program as a loop over segments of code, or None if a loop is not worthwhile.

    The result is None if the loop would not shorten the code by at least the factor `SHORTER`, if
    the program is not divided into segments, or if the program returns an input unchanged.
    """
    code, results = program.code, list(places(program))
    if not program.cuts or any(code[r].op == "input" for r in results):
        return None
    segments = _joined(code, _segments(program, results))
    found: dict[tuple[object, ...], list[list[int]]] = {}
    for segment in segments:
        found.setdefault(_form(code, segment), []).append(segment)
    if sum(len(form) for form in found) * SHORTER > len(code):
        return None
    home = {k: n for n, segment in enumerate(segments) for k in segment}
    kept = set(results)
    crossing = kept | {a for k, n in home.items() for a in code[k].args if home.get(a, n) != n}
    place, scratch = _places(program, segments, home, results, crossing)
    forms, row = [], {}
    for number, group in enumerate(found.values()):
        forms.append(_tables(code, group, place, crossing))
        row.update({home[segment[0]]: (number, k) for k, segment in enumerate(group)})
    return Rolled(tuple(forms), tuple(row[n] for n in range(len(segments))), scratch)


def _segments(program: Program, results: Iterable[int]) -> list[list[int]]:
    """Divide a program into segments, in order of execution, and omit unused instructions.

    The first segments compute the sines and cosines of angles that are sums of inputs."""
    code = program.code
    left = bytearray(len(code))
    for r in results:
        left[r] = 1
    for k in range(len(code) - 1, -1, -1):
        if left[k]:
            for a in code[k].args:
                left[a] = 1
    for k, instruction in enumerate(code):
        left[k] &= instruction.op not in FREE
    early = list(_early(code, left))
    for group in early:
        for k in group:
            left[k] = 0
    starts = [0, *program.cuts, len(code)]
    rest = ([k for k in range(start, end) if left[k]] for start, end in pairwise(starts))
    return _as_soon_as_known(code, [segment for segment in (*early, *rest) if segment])


def _as_soon_as_known(
    code: Sequence[Instruction], segments: Sequence[list[int]]
) -> list[list[int]]:
    """Return the segments in an order that needs less memory.

    A segment is ready once all segments that provide its inputs are placed. Segments that become
    ready are placed next, beginning with the segment that has the shortest chain of dependents.
    """
    home = {k: n for n, segment in enumerate(segments) for k in segment}
    needs = [{home[a] for k in each for a in code[k].args if a in home} for each in segments]
    users: list[list[int]] = [[] for _ in segments]
    for n, before in enumerate(needs):
        before.discard(n)
        for m in before:
            users[m].append(n)
    height = [0] * len(segments)
    for n in range(len(segments) - 1, -1, -1):
        height[n] = 1 + max((height[m] for m in users[n]), default=0)
    waiting = [len(before) for before in needs]
    ready = sorted((n for n, count in enumerate(waiting) if not count), key=lambda n: -n)
    order = []
    while ready:
        n = ready.pop()
        order.append(segments[n])
        for m in users[n]:
            waiting[m] -= 1
        ready += sorted((m for m in users[n] if not waiting[m]), key=lambda m: -height[m])
    return order


def _joined(code: Sequence[Instruction], segments: list[list[int]]) -> list[list[int]]:
    """Merge neighboring segments, beginning with the pair of forms that occurs most often.

    Segments with the same operations have the same form. Values passed between merged segments stay
    in registers. Merging stops before the total length of all distinct forms exceeds the program's
    length divided by `SHORTER`.
    """
    kinds: dict[tuple[object, ...], int] = {}
    ids = [kinds.setdefault(_form(code, segment), len(kinds)) for segment in segments]
    for _ in range(JOINED):
        lengths = dict(zip(ids, map(len, segments), strict=True))
        pairs = Counter(
            pair for pair in pairwise(ids) if lengths[pair[0]] + lengths[pair[1]] <= LONG
        )
        (pair, count), *_ = pairs.most_common(1) or [((-1, -1), 0)]
        if not count or count * OFTEN < len(segments):
            break
        joined, names, n, new = [], [], 0, max(ids) + 1
        while n < len(segments):
            both = tuple(ids[n : n + 2]) == pair
            joined.append([k for segment in segments[n : n + 1 + both] for k in segment])
            names.append(new if both else ids[n])
            n += 1 + both
        lengths = dict(zip(names, map(len, joined), strict=True))
        if sum(lengths.values()) * SHORTER > len(code):
            break
        segments, ids = joined, names
    return segments


def _early(code: Sequence[Instruction], needed: Sequence[int]) -> Iterator[list[int]]:
    """Yield instructions for the sines and cosines of sums of inputs, `ANGLES` angles at a time."""
    turns: dict[int, list[int]] = {}
    plain: dict[int, bool] = {}
    for k, (op, args, _) in enumerate(code):
        if op in ("sin", "cos") and needed[k] and _is_sum(code, args[0], plain):
            turns.setdefault(args[0], []).append(k)
    done: set[int] = set()
    ordered = list(turns)
    for first in range(0, len(ordered), ANGLES):
        group = ordered[first : first + ANGLES]
        sums, stack = set(), list(group)
        while stack:
            k = stack.pop()
            if k not in done and k not in sums and code[k].op not in FREE:
                sums.add(k)
                stack.extend(code[k].args)
        done |= sums
        yield sorted(sums) + sorted(k for angle in group for k in turns[angle])


def _is_sum(code: Sequence[Instruction], root: int, known: dict[int, bool]) -> bool:
    """Return True if a value depends on inputs and constants through sums and products only."""
    stack = [root]
    while stack:
        k = stack[-1]
        op, args, _ = code[k]
        if op in FREE or op not in ("add", "sub", "mul", "neg"):
            known[k] = op in FREE
        elif waiting := [a for a in args if a not in known]:
            stack += waiting
            continue
        else:
            known[k] = all(known[a] for a in args)
        stack.pop()
    return known[root]


def _form(code: Sequence[Instruction], segment: Sequence[int]) -> tuple[object, ...]:
    """Return a key that is equal for segments that can run as iterations of the same loop."""
    local = {k: j for j, k in enumerate(segment)}
    described = []
    for k in segment:
        op, args, _ = code[k]
        sources = [local[a] if a in local else -1 - (code[a].op == "const") for a in args]
        described.append((op, *sources))
    return tuple(described)


def _places(
    program: Program,
    segments: Sequence[Sequence[int]],
    home: dict[int, int],
    results: Sequence[int],
    crossing: set[int],
) -> tuple[dict[int, int], int]:
    """Return the memory indices of inputs, shared values and results, and the scratch-space size.

    Within a segment, values with equal lifetimes form one block in memory, or several smaller
    blocks of reused memory. Memory is reused after the last segment that reads its values. All
    segments of the same form store the same number of values; values that no other segment reads
    are stored in the last scratch entry (key -1).
    """
    code, place, start = program.code, {}, 0
    first = [start := 0]
    for variable in program.inputs:
        first.append(start := start + variable.size)
    for k, (op, _, data) in enumerate(code):
        if op == "input":
            place[k] = first[data[0]] + data[1]
    last = {a: n for k, n in home.items() for a in code[k].args}
    kept, scratch = set(results), 0
    vacant: dict[int, list[int]] = {}
    leaving: dict[int, list[tuple[int, int]]] = {}
    for n, segment in enumerate(segments):
        blocks: dict[int, list[int]] = {}
        for k in segment:
            if k in crossing and k not in kept:
                blocks.setdefault(last[k], []).append(k)
        for until, block in blocks.items():
            while block:
                size = max((s for s, free in vacant.items() if free and s <= len(block)), default=0)
                if size:
                    here = vacant[size].pop()
                else:
                    here, size = start + scratch, len(block)
                    scratch += size
                place.update({k: here + j for j, k in enumerate(block[:size])})
                leaving.setdefault(until, []).append((here, size))
                block = block[size:]
        for here, size in leaving.pop(n, ()):
            vacant.setdefault(size, []).append(here)
    place[-1] = start + scratch
    place.update({r: start + scratch + 1 + slot for slot, r in enumerate(results)})
    return place, scratch + 1


def _tables(
    code: Sequence[Instruction],
    group: Sequence[Sequence[int]],
    place: dict[int, int],
    crossing: set[int],
) -> Form:
    """Return the `Form` of a group of segments: its program, and a row for each segment.

    Two operands share a column if their constants, or their memory indices, agree in every segment.
    A constant that is the same in all segments is a constant of the program.
    """
    model, local = group[0], {k: j for j, k in enumerate(group[0])}
    uses = [
        (j, n) for j, k in enumerate(model) for n, a in enumerate(code[k].args) if a not in local
    ]
    fixed = [code[code[model[j]].args[n]].op == "const" for j, n in uses]
    outside = [[code[segment[j]].args[n] for j, n in uses] for segment in group]
    columns = list(zip(*outside, strict=True))
    numbers: dict[tuple[float, ...], int] = {}
    reads: dict[tuple[int, ...], int] = {}
    written: list[Instruction] = []
    known: dict[Instruction, int] = {}

    def entry(instruction: Instruction) -> int:
        if instruction not in known:
            known[instruction] = len(written)
            written.append(instruction)
        return known[instruction]

    source: dict[tuple[int, int], int] = {}
    for use, constant, column in zip(uses, fixed, columns, strict=True):
        if constant:
            values = tuple(code[a].data for a in column)
            if len(set(map(repr, values))) == 1:
                source[use] = entry(Instruction("const", (), values[0]))
            else:
                index = numbers.setdefault(values, len(numbers))
                source[use] = entry(Instruction("input", (), (NUMBERS, index)))
        else:
            index = reads.setdefault(tuple(place[a] for a in column), len(reads))
            source[use] = entry(Instruction("input", (), (READS, index)))
    number: dict[int, int] = {}
    for j, k in enumerate(model):
        op, args, _ = code[k]
        refs = [number[local[a]] if a in local else source[j, n] for n, a in enumerate(args)]
        number[j] = len(written)
        written.append(Instruction(op, tuple(refs)))
    leaving = [j for j in range(len(model)) if any(s[j] in crossing for s in group)]
    writes = [tuple(place[s[j] if s[j] in crossing else -1] for s in group) for j in leaving]
    inputs = (Variable("numbers", (len(numbers),)), Variable("reads", (len(reads),)))
    outputs = (Variable("writes", (len(leaving),)),)
    results = (tuple(number[j] for j in leaving),)
    made = Program("form", inputs, outputs, (), results, tuple(written))
    bases, near = _bases([*reads, *writes])
    split = len(reads)
    rows = _rows(numbers, len(group)), _rows(bases, len(group))
    return Form(made, *rows, near[:split], near[split:])


def _bases(
    columns: Iterable[tuple[int, ...]],
) -> tuple[list[tuple[int, ...]], tuple[tuple[int, int], ...]]:
    """Return distinct base columns, and each column as a pair (index of its base, offset).

    A column is equal to its base column plus the offset.
    """
    bases: dict[tuple[int, ...], int] = {}
    kept: list[tuple[int, ...]] = []
    near = []
    for column in columns:
        shape = tuple([x - column[0] for x in column])
        if shape not in bases:
            bases[shape] = len(kept)
            kept.append(column)
        base = bases[shape]
        near.append((base, column[0] - kept[base][0]))
    return kept, tuple(near)


def _rows(columns: Iterable[tuple[T, ...]], count: int) -> tuple[tuple[T, ...], ...]:
    """Transpose columns; if there are none, return `count` empty rows."""
    return tuple(zip(*columns, strict=True)) or ((),) * count
