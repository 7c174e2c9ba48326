"""Matrices that are written past the cache as they are made, in LLVM's language.

Rows of a matrix do not begin where cache lines do. So its entries are taken as one row
(`tiles.Lines`), whose vectors are put together from those of columns.
"""

from collections.abc import Sequence

from chasles.backends.llvm.math import Writer
from chasles.backends.llvm.tiles import Lines, shuffle

Lane = tuple[str, int]
"""A vector, and the number of a lane in it."""


class Stream:
    """A matrix of so many columns at `base`, whose entries are given row by row.

    There are at least two vectors of entries (`tiles.streams`).
    """

    def __init__(self, w: Writer, base: str, rows: int, columns: int) -> None:
        self._w, self._columns, self._lines = w, columns, Lines(w, base)
        self._vectors, self._rest = divmod(rows * columns, w.width)
        self._waiting: dict[int, Lane] = {}
        self._made = 0
        self._last = ""

    def add(self, row: int, start: int, vector: str) -> None:
        """Give the columns of a row from `start` on; write all lines that are known then."""
        w, n = self._w, self._columns
        for c in range(start, min(start + w.width, n)):
            if row * n + c >= self._made * w.width:  # blocks of columns may overlap
                self._waiting[row * n + c] = (vector, c - start)
        while self._made < self._vectors:
            places = range(self._made * w.width, (self._made + 1) * w.width)
            if not all(k in self._waiting for k in places):
                return
            self._write(self._joined([self._waiting.pop(k) for k in places]))
        if len(self._waiting) == self._rest:
            rest = [self._waiting[k] for k in sorted(self._waiting)]
            after = self._joined((rest + [rest[-1]] * w.width)[: w.width]) if rest else self._last
            self._lines.end((self._made - 1) * w.width, self._rest, self._last, after)

    def _write(self, vector: str) -> None:
        if self._made:
            self._lines.write((self._made - 1) * self._w.width, self._last, vector)
        else:
            self._lines.begin(vector)
        self._last, self._made = vector, self._made + 1

    def _joined(self, lanes: Sequence[Lane]) -> str:
        """The vector of some lanes of others."""
        w = self._w
        found, *others = dict.fromkeys(vector for vector, _ in lanes)
        taken = [lane if vector == found else k for k, (vector, lane) in enumerate(lanes)]
        for other in others:
            pairs = enumerate(lanes)
            mask = [w.width + lane if vector == other else taken[k] for k, (vector, lane) in pairs]
            found, taken = shuffle(w, w.type, found, other, mask), list(range(w.width))
        return found if taken == list(range(w.width)) else shuffle(w, w.type, found, found, taken)
