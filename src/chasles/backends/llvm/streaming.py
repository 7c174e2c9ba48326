"""Stores that bypass the cache (non-temporal stores), for results written in whole cache lines.

The results are rows transposed from tiles (`scatter_past`), or matrices. A matrix is computed in
vectors of several columns. `packing` chooses the columns in each vector; this module restores their
order. The rows of a matrix are not aligned with cache lines, so a matrix is written as one long
row.
"""

from collections.abc import Sequence

from chasles.backends.llvm.math import Writer
from chasles.backends.llvm.tiles import (
    column,
    from_two,
    row_places,
    shuffle,
    steady_block,
    tile_function,
    transposed,
)


class Lines:
    """Emit code that stores a row of a matrix at `base`, one whole cache line at a time.

    The row is divided into vectors of `width` elements, beginning with its first element. Cache
    line n begins in vector n and ends in the next vector. Stores of whole lines bypass the cache.
    The incomplete lines at the ends of the row are written by ordinary stores. These stores do not
    cross into another line, which would be slow.
    """

    def __init__(self, w: Writer, base: str) -> None:
        self._w = w
        numbers = ", ".join(f"i{w.element.bits} {c}" for c in range(w.width))
        self._counting = f"<{numbers}>"
        negative = w.emit(f"sub i64 0, {w.emit(f'ptrtoint ptr {base} to i64')}")
        words = w.emit(f"lshr i64 {negative}, {w.element.bytes.bit_length() - 1}")
        self._ahead = w.emit(f"and i64 {words}, {w.width - 1}")
        self._lanes = w.emit(f"add {w.integers} {self._counting}, {self._spread(self._ahead)}")
        self._first = w.at(base, self._ahead, w.element.name)

    def begin(self, vector: str) -> None:
        """Emit stores of the elements that precede the first whole cache line."""
        w = self._w
        missing = w.emit(f"sub i64 {w.width}, {self._ahead}")
        self._part(-w.width, vector, vector, "uge", missing)

    def write(self, start: int | str, before: str, after: str) -> None:
        """Emit a store of a cache line that begins in vector `before` and ends in vector `after`.

        start: index of the first element of `before`.
        """
        line, place = self._line(start, before, after)
        w = self._w
        w.raw(f"  store {w.type} {line}, ptr {place}, align {w.bytes}, !nontemporal !1")

    def end(self, start: int, rest: int, before: str, after: str) -> None:
        """Emit stores of the end of a row, beginning with its last full vector.

        start: index of the first element of the vector.
        rest: number of elements of the next vector, `after`, that belong to the row.
        """
        w = self._w
        for k, first in enumerate((before, after)[: 2 if rest else 1]):
            left = w.emit(f"sub i64 {(1 - k) * w.width + rest}, {self._ahead}")
            self._part(start + k * w.width, first, after, "slt", left)

    def _line(self, start: int | str, before: str, after: str) -> tuple[str, str]:
        w = self._w
        both = f"{w.type} {before}, {w.integers} {self._lanes}, {w.type} {after}"
        line = w.emit(f"call {w.type} {from_two(w)}({both})")
        return line, w.at(self._first, start, w.element.name)

    def _part(self, start: int, before: str, after: str, comparison: str, limit: str) -> None:
        """Store part of a cache line: lanes below `limit` ("slt") or from `limit` on ("uge")."""
        w = self._w
        line, place = self._line(start, before, after)
        mask = w.emit(f"icmp {comparison} {w.integers} {self._counting}, {self._spread(limit)}")
        w.raw(
            f"  call void @llvm.masked.store.{w.suffix}.p0({w.type} {line}, ptr {place}, "
            f"i32 {w.bytes}, {w.mask} {mask})"
        )

    def _spread(self, number: str) -> str:
        """Emit code that copies an integer to all lanes; return the vector."""
        w, bits = self._w, self._w.element.bits
        short = number if bits == 64 else w.emit(f"trunc i64 {number} to i{bits}")
        one = w.emit(f"insertelement {w.integers} poison, i{bits} {short}, i32 0")
        return shuffle(w, w.integers, one, "poison", [0] * w.width)


def scatter_past(w: Writer, output: int, n: int) -> str:
    """Generate the function that writes long rows of results with stores that bypass the cache.

    The rows must be contiguous, so that a cache line shared by two rows is written as a whole.
    For short rows or other strides, see `tiles.scatter`.
    """
    width, lines = w.width, [Lines(w, row) for row in row_places(w, clip=False)]
    whole, rest = n // width * width, n % width

    def block(start: str) -> list[str]:
        return transposed(w, [column(w, output, start, c) for c in range(width)])

    begin = block("0")
    lines[0].begin(begin[0])
    w.raw("  br label %head\nhead:\n  br label %loop\nloop:")
    w.raw(f"  %block = phi i64 [ {width}, %head ], [ %next, %moved ]")
    for r, vector in enumerate(begin):
        w.raw(f"  %before{r} = phi {w.type} [ {vector}, %head ], [ %now{r}, %moved ]")
    fixed = steady_block(w, output, "%block")
    w.raw("  br label %moved\nmoving:")
    changing = block("%block")
    w.raw("  br label %moved\nmoved:")
    for r, vector in enumerate(changing):
        w.raw(f"  %now{r} = phi {w.type} [ {fixed}, %steady ], [ {vector}, %moving ]")
    first = w.emit(f"sub i64 %block, {width}")
    for r, line in enumerate(lines):
        line.write(first, f"%before{r}", f"%now{r}")
    w.raw(f"  %next = add i64 %block, {width}\n  %more = icmp ult i64 %next, {whole}")
    w.raw("  br i1 %more, label %loop, label %end\nend:")
    last = block(str(n - width)) if rest else begin
    ends = [shuffle(w, w.type, v, v, [(k - rest) % width for k in range(width)]) for v in last]
    following = block("0"), block(str(width))
    join = [k if k < rest else width + k - rest for k in range(width)]
    for r, (line, after) in enumerate(zip(lines[:-1], ends, strict=False)):
        one, two = (vectors[r + 1] for vectors in following)
        across = shuffle(w, w.type, after, one, join)
        line.write(whole - width, f"%now{r}", across)
        if rest:
            beyond = shuffle(w, w.type, one, two, range(width - rest, 2 * width - rest))
            line.write(whole, across, beyond)
    lines[-1].end(whole - width, rest, f"%now{width - 1}", ends[-1])
    return tile_function(w, f"scatter{output}_past", "%slots", clip=False)


# Matrices written row by row ----------------------------------------------------------------------

Lane = tuple[str, int]
"""A vector's name, and the index of one of its lanes."""


def joined(w: Writer, lanes: Sequence[Lane]) -> str:
    """Return a vector of the given lanes; the last lane is repeated if there are too few."""
    lanes = [*lanes, *[lanes[-1]] * (w.width - len(lanes))]
    found, *others = dict.fromkeys(vector for vector, _ in lanes)
    taken = [lane if vector == found else k for k, (vector, lane) in enumerate(lanes)]
    for other in others:
        pairs = enumerate(lanes)
        mask = [w.width + lane if vector == other else taken[k] for k, (vector, lane) in pairs]
        found, taken = shuffle(w, w.type, found, other, mask), list(range(w.width))
    return found if taken == list(range(w.width)) else shuffle(w, w.type, found, found, taken)


class Kept:
    """Writer that stores a matrix row by row at the address `base`, through the cache."""

    def __init__(self, w: Writer, base: str, rows: int, columns: int) -> None:
        self._w, self._base, self._columns = w, base, columns
        self._waiting: dict[tuple[int, int], Lane] = {}

    def add(self, row: int, columns: Sequence[int], vector: str) -> None:
        """Add some columns of a row; write the row once all its columns have been added."""
        w, n, element = self._w, self._columns, self._w.element
        self._waiting |= {(row, c): (vector, lane) for lane, c in enumerate(columns)}
        if any((row, c) not in self._waiting for c in range(n)):
            return
        lanes = [self._waiting.pop((row, c)) for c in range(n)]
        for start in range(0, n, w.width):
            part = lanes[start : start + w.width]
            value = joined(w, part)
            place = w.at(self._base, row * n + start, element.name)
            if len(part) == w.width:
                w.raw(f"  store {w.type} {value}, ptr {place}, align {element.bytes}")
                continue
            bits = ", ".join(f"i1 {str(k < len(part)).lower()}" for k in range(w.width))
            w.raw(
                f"  call void @llvm.masked.store.{w.suffix}.p0({w.type} {value}, ptr {place}, "
                f"i32 {element.bytes}, {w.mask} <{bits}>)"
            )


class Stream:
    """Writer of a matrix at `base` with stores that bypass the cache.

    The matrix must fill at least two vectors, as `tiles.streams` ensures.
    """

    def __init__(self, w: Writer, base: str, rows: int, columns: int) -> None:
        self._w, self._columns, self._lines = w, columns, Lines(w, base)
        self._vectors, self._rest = divmod(rows * columns, w.width)
        self._waiting: dict[int, Lane] = {}
        self._made = 0
        self._last = ""

    def add(self, row: int, columns: Sequence[int], vector: str) -> None:
        """Add a row's entries in the given columns; write each cache line once it is complete."""
        w, first = self._w, row * self._columns
        self._waiting |= {first + c: (vector, lane) for lane, c in enumerate(columns)}
        while self._made < self._vectors:
            places = range(self._made * w.width, (self._made + 1) * w.width)
            if not all(k in self._waiting for k in places):
                return
            self._write(joined(w, [self._waiting.pop(k) for k in places]))
        if len(self._waiting) == self._rest:
            rest = [self._waiting[k] for k in sorted(self._waiting)]
            after = joined(w, rest) if rest else self._last
            self._lines.end((self._made - 1) * w.width, self._rest, self._last, after)

    def _write(self, vector: str) -> None:
        if self._made:
            self._lines.write((self._made - 1) * self._w.width, self._last, vector)
        else:
            self._lines.begin(vector)
        self._last, self._made = vector, self._made + 1
