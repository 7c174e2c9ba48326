"""Matrices that are made row by row in vectors of columns, on their way to memory.

Which columns stand together in a vector is a choice (`packing`): here they get back into order.
Large results go past the cache, in whole cache lines (`tiles.Lines`). Rows do not begin where lines
do, so the entries of a matrix are then taken as one long row.
"""

from collections.abc import Sequence

from chasles.backends.llvm.math import Writer
from chasles.backends.llvm.tiles import Lines, shuffle

Lane = tuple[str, int]
"""A vector, and the number of a lane in it."""


def joined(w: Writer, lanes: Sequence[Lane]) -> str:
    """The vector of some lanes of others; where there are too few, the last is repeated."""
    lanes = [*lanes, *[lanes[-1]] * (w.width - len(lanes))]
    found, *others = dict.fromkeys(vector for vector, _ in lanes)
    taken = [lane if vector == found else k for k, (vector, lane) in enumerate(lanes)]
    for other in others:
        pairs = enumerate(lanes)
        mask = [w.width + lane if vector == other else taken[k] for k, (vector, lane) in pairs]
        found, taken = shuffle(w, w.type, found, other, mask), list(range(w.width))
    return found if taken == list(range(w.width)) else shuffle(w, w.type, found, found, taken)


class Kept:
    """A matrix of a number of rows and columns at `base`, written row by row through the cache."""

    def __init__(self, w: Writer, base: str, rows: int, columns: int) -> None:
        self._w, self._base, self._columns = w, base, columns
        self._waiting: dict[tuple[int, int], Lane] = {}

    def add(self, row: int, columns: Sequence[int], vector: str) -> None:
        """Give some columns of a row; write the row when all of them are known."""
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
    """A matrix of a number of rows and columns at `base`, which goes past the cache.

    There are at least two vectors of entries (`tiles.streams`).
    """

    def __init__(self, w: Writer, base: str, rows: int, columns: int) -> None:
        self._w, self._columns, self._lines = w, columns, Lines(w, base)
        self._vectors, self._rest = divmod(rows * columns, w.width)
        self._waiting: dict[int, Lane] = {}
        self._made = 0
        self._last = ""

    def add(self, row: int, columns: Sequence[int], vector: str) -> None:
        """Give some columns of a row; write all lines that are known then."""
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
