"""Matrix products computed after a straight-line program, in LLVM IR; SIMD lanes hold columns.

For a large robot, the program computes only the factors of its results (`Staged`). This module
writes the code that multiplies these factors, which are branch-sparse matrices. Each row of a
product consists of a few SIMD vectors, called blocks, each with the entries of several columns. A
block is a sum of blocks of the right-hand factor, each multiplied by an entry of the left-hand
factor. Blocks that are zero are neither stored nor multiplied. The same code processes a single
state and each state of a batch. If there are few products, each lane processes one state of the
batch instead (`Products.spread`). The terms of each sum are added in the same order, so that the
results are bitwise identical.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from chasles.backends.llvm.math import Writer
from chasles.backends.llvm.packing import packings
from chasles.backends.llvm.streaming import Kept, Stream
from chasles.backends.llvm.tiles import attributes, streams
from chasles.expr import Instruction, Program, Staged, Variable
from chasles.expr.staged import is_zero

TOGETHER = 2
"""Number of product rows that are computed together and share loads of the right-hand factor."""

REGISTERS = {64: 24, 32: 12}
"""Number of accumulators kept in registers, by vector size (bytes); 12 for all other sizes."""

Block = tuple[int, int]
"""Group of columns of a result: index of the result, and index of the group (`packing`)."""

Blocks = dict[tuple[int, Block], int]
"""Index in memory of each nonzero block of the right-hand factors. Keys are (row, block)."""


class Entry(NamedTuple):
    """Entry of a product's left-hand factor: a value in %entries, or a constant.

    `place` is the index of the value. If `place` is -1, the entry is equal to `constant`.
    """

    place: int = -1
    constant: float = 0.0


ONE = Entry(constant=1.0)

Rows = tuple[dict[int, Entry], ...]
"""Nonzero entries of a product's left-hand factor: one dictionary {column: entry} per row."""


@dataclass(frozen=True)
class Group:
    """Matrix products that differ only in their last factor and are computed together.

    - results: indices of the results.
    - lefts: matrices by which the last factors are multiplied from the left, in this order.
    - kept: for each of these multiplications, the nonzero blocks of the matrix on the right.
    """

    results: tuple[int, ...]
    lefts: tuple[Rows, ...]
    kept: tuple[Blocks, ...]


class Products:
    """The matrix products of a staged program, for vectors of `width` elements.

    head: program that computes the entries of the matrices on the left of the products, and the
    blocks (vectors of entries) of the matrices on the right.
    """

    def __init__(self, staged: Staged, width: int) -> None:
        self.staged, self.width = staged, width
        self._entries: list[int] = []
        self._blocks: list[int] = []
        code = staged.head.code
        self._zero = next((k for k, i in enumerate(code) if is_zero(i)), len(code))
        self._packing = packings(staged, width)
        alike: dict[tuple[int, ...], list[int]] = {}
        for k, chain in enumerate(staged.chains):
            alike.setdefault(chain[:-1], []).append(k)
        shared = dict.fromkeys(left for key in alike for left in key)
        lefts = {left: self._left(left) for left in shared}
        self.groups = [
            self._group([lefts[left] for left in reversed(key)], results)
            for key, results in alike.items()
        ]

    @cached_property
    def head(self) -> Program:
        whole = self.staged.head
        results = tuple(self._entries), tuple(self._blocks)
        outputs = tuple(
            Variable(name, (len(refs),))
            for name, refs in zip(("entries", "blocks"), results, strict=True)
        )
        code = whole.code
        if self._zero == len(code):
            code = (*code, Instruction("const", (), 0.0))
        return replace(whole, outputs=outputs, results=results, code=code)

    def _group(self, lefts: Sequence[Rows], results: Sequence[int]) -> Group:
        kept = [self._right(results)]
        for rows in lefts[:-1]:
            present: dict[int, set[Block]] = {}
            for k, b in kept[-1]:
                present.setdefault(k, set()).add(b)
            found = [
                (r, b)
                for r, row in enumerate(rows)
                for b in sorted(set[Block]().union(*(present.get(k, ()) for k in row)))
            ]
            kept.append({place: n for n, place in enumerate(found)})
        return Group(tuple(results), tuple(lefts), tuple(kept))

    def _left(self, factor: int) -> Rows:
        code, refs = self.staged.head.code, self.staged.head.results[factor]
        _, columns = self.staged.head.outputs[factor].shape
        rows = []
        for r, some in enumerate(self.staged.present(factor)):
            row: dict[int, Entry] = {}
            for c in sorted(some):
                ref = refs[r * columns + c]
                if code[ref].op == "const":
                    row[c] = Entry(constant=code[ref].data)
                else:
                    row[c] = Entry(len(self._entries))
                    self._entries.append(ref)
            rows.append(row)
        return tuple(rows)

    def _right(self, results: Sequence[int]) -> Blocks:
        """Return the nonzero blocks of the right-hand factor of each given result."""
        found: Blocks = {}
        for k in results:
            factor = self.staged.chains[k][-1]
            refs, columns = self.staged.head.results[factor], self._columns(k)
            for r, some in enumerate(self.staged.present(factor)):
                for b, inside in enumerate(self._packing[k]):
                    if some.isdisjoint(inside):
                        continue
                    found[r, (k, b)] = len(self._blocks) // self.width
                    self._blocks += [refs[r * columns + c] for c in inside]
                    self._blocks += [self._zero] * (self.width - len(inside))
        return found

    def _columns(self, result: int) -> int:
        return self.staged.outputs[result].shape[1]

    @property
    def row(self) -> int:
        """Number of SIMD vectors that hold the data of one state: matrix entries and blocks."""
        return self._padded + len(self._blocks) // self.width

    @property
    def _padded(self) -> int:
        return -(-len(self._entries) // self.width)

    def spread(self, code: Sequence[Instruction]) -> Program:
        """Return a straight-line program of all products, for code that computes a state per lane.

        code: the instructions of `head`, with fused multiply-adds. All products of a column are
        computed one after the other, so that its entries stay in registers. The terms of a sum are
        added in the same order as in `functions`, so that results are bitwise identical.
        """
        made, outputs = list(code), self.staged.outputs
        zero = self._added(made, Instruction("const", (), 0.0))
        found: list[dict[tuple[int, int], int]] = [{} for _ in outputs]
        for c in reversed(range(max(v.shape[1] for v in outputs))):
            last: dict[int, tuple[Rows, dict[int, dict[int, int]]]] = {}
            for group in self.groups:
                columns = {k: self._entries_of(k, c) for k in group.results}
                for left in group.lefts[:-1]:
                    columns = self._product(made, left, columns)
                left = group.lefts[-1]
                last.setdefault(id(left), (left, {}))[1].update(columns)
            for left, columns in last.values():
                for k, column in self._product(made, left, columns).items():
                    found[k].update({(r, c): x for r, x in column.items()})
        results = tuple(
            tuple(some.get((r, c), zero) for r in range(v.shape[0]) for c in range(v.shape[1]))
            for some, v in zip(found, outputs, strict=True)
        )
        return replace(self.staged.head, outputs=outputs, results=results, code=tuple(made))

    def _entries_of(self, result: int, c: int) -> dict[int, int]:
        """Return the nonzero entries in column c of a result's last factor, by row."""
        factor, columns = self.staged.chains[result][-1], self._columns(result)
        refs, present = self.staged.head.results[factor], self.staged.present(factor)
        return {r: refs[r * columns + c] for r, some in enumerate(present) if c in some}

    def _product(
        self, code: list[Instruction], left: Rows, columns: Mapping[int, Mapping[int, int]]
    ) -> dict[int, dict[int, int]]:
        """Append instructions that multiply a matrix by columns; return the nonzero products."""
        found: dict[int, dict[int, int]] = {name: {} for name in columns}
        for rows, terms in _orders(left):
            for r in rows:
                for k in (k for k in terms if k in left[r]):
                    for name, column in columns.items():
                        if k in column:
                            total = found[name].get(r)
                            found[name][r] = self._term(code, left[r][k], column[k], total)
        return found

    def _term(self, code: list[Instruction], entry: Entry, x: int, total: int | None) -> int:
        if entry == ONE:
            return x if total is None else self._added(code, Instruction("add", (x, total)))
        factor = (
            self._entries[entry.place]
            if entry.place >= 0
            else self._added(code, Instruction("const", (), entry.constant))
        )
        if total is None:
            return self._added(code, Instruction("mul", (factor, x)))
        return self._added(code, Instruction("fma", (factor, x, total)))

    @staticmethod
    def _added(code: list[Instruction], instruction: Instruction) -> int:
        code.append(instruction)
        return len(code) - 1

    def functions(self, w: Writer) -> str:
        """Generate LLVM IR for the functions that multiply the matrices of each group k of results.

        `prepare<k>` computes all products except the last, and `product<k>` computes the last.
        `past<k>` is like `product<k>`, but writes its results with stores that bypass the cache.

        w: a writer with vectors of `width` elements.
        """
        texts = []
        for k, group in enumerate(self.groups):
            texts.append(self._prepare(_fresh(w), k, group))
            ways: list[tuple[str, Callable[..., Kept | Stream]]] = [("product", Kept)]
            ways += [("past", Stream)] if self.streams(w) else []
            for name, way in ways:
                own = _fresh(w)
                shapes = {r: self.staged.outputs[r].shape for r in group.results}
                to = {r: way(own, f"%out{r}", *shape) for r, shape in shapes.items()}
                texts.append(self._last(own, f"{name}{k}", group, to))
        return "\n".join(texts)

    def streams(self, w: Writer) -> bool:
        """Return True if results can be written with stores that bypass the cache."""
        return all(streams(w, v.size) for v in self.staged.outputs)

    def _prepare(self, w: Writer, k: int, group: Group) -> str:
        """Generate the LLVM function that computes a group's products except the last one.

        The function stores the right-hand factor of the last product in %ready.
        """
        source, blocks = "%blocks", self._places(group)
        for left, right, result in zip(group.lefts, group.kept, group.kept[1:], strict=False):
            target = "%ready" if result is group.kept[-1] else w.reserve(max(len(result), 1))
            for r, block, value in _multiplied(w, left, right, source, blocks):
                if (r, block) in result:
                    place = w.at(target, result[r, block], w.type)
                    w.raw(f"  store {w.type} {value}, ptr {place}, align {w.bytes}")
            source = target
        parameters = "ptr noalias %entries, ptr noalias %blocks, ptr noalias %ready"
        return w.function(f"internal void @prepare{k}({parameters}) {attributes(w)}")

    def _last(self, w: Writer, name: str, group: Group, to: Mapping[int, Kept | Stream]) -> str:
        """Generate the LLVM function that computes a group's last product and stores it in `to`."""
        blocks = self._places(group)
        for r, (k, b), value in _multiplied(w, group.lefts[-1], group.kept[-1], "%ready", blocks):
            to[k].add(r, self._packing[k][b], value)
        names = ("%entries", "%ready", *(f"%out{r}" for r in group.results))
        parameters = ", ".join(f"ptr noalias {name}" for name in names)
        return w.function(f"internal void @{name}({parameters}) {attributes(w)}")

    def _places(self, group: Group) -> list[Block]:
        return [(k, b) for k in group.results for b in range(len(self._packing[k]))]

    def _calls(
        self, w: Writer, places: Sequence[str], outputs: Sequence[str], last: Sequence[str]
    ) -> None:
        """Emit calls that compute the matrix products of one state.

        last: name of the function that computes the last product, for each group.
        """
        for k, group in enumerate(self.groups):
            entries, ready = places
            if len(group.lefts) > 1:
                size = max(len(group.kept[-1]), 1) * self.width // w.width
                blocks, ready = ready, w.reserve(size)
                w.raw(f"  call void @prepare{k}(ptr {entries}, ptr {blocks}, ptr {ready})")
            operands = [entries, ready, *(outputs[r] for r in group.results)]
            w.raw(f"  call void {last[k]}({', '.join(f'ptr {p}' for p in operands)})")

    @property
    def _usual(self) -> list[str]:
        return [f"@product{k}" for k in range(len(self.groups))]

    def run(self, w: Writer, inputs: Sequence[str], outputs: Sequence[str]) -> str:
        """Generate the function `run`, which runs the program and all products for one state."""
        sizes = (len(self._entries), len(self._blocks))
        places = [w.reserve(max(size, 1)) for size in sizes]
        w.raw(f"  call void @head({', '.join(f'ptr {p}' for p in (*inputs, *places))})")
        self._calls(w, places, outputs, self._usual)
        parameters = ", ".join(f"ptr noalias {name}" for name in (*inputs, *outputs))
        return w.function(f"internal void @run({parameters}) nounwind")

    def finish(self, w: Writer) -> str:
        """Generate the function `finish`, which computes the products of a tile of states.

        - %slots: matrix entries and blocks of the tile.
        - %rows: working memory for `width` times `row` vectors.
        - %past: if true, results bypass the cache.
        """
        size = w.bytes * self.row
        blocks = w.at("%rows", self._padded, w.type)
        for k, place in enumerate(("%rows", blocks)):
            if self.head.outputs[k].size:
                w.raw(f"  call void @scatter{k}(ptr %slots, ptr {place}, i64 {size})")
        last = self._usual
        if self.streams(w):
            choices = (f"ptr @past{k}, ptr {usual}" for k, usual in enumerate(last))
            last = [w.emit(f"select i1 %past, {both}") for both in choices]
        w.raw("  br label %loop\nloop:\n  %r = phi i64 [ 0, %entry ], [ %next, %loop ]")
        offset = w.emit(f"mul i64 %r, {size}")
        number = w.emit("add i64 %first, %r")
        mine = [w.at(place, offset) for place in ("%rows", blocks)]
        outputs = []
        for k in range(len(self.staged.outputs)):
            start = w.emit(f"load ptr, ptr {w.at('%out_pointers', k, 'ptr')}")
            stride = w.emit(f"load i64, ptr {w.at('%out_strides', k, 'i64')}")
            outputs.append(w.at(start, w.emit(f"mul i64 {number}, {stride}")))
        self._calls(w, mine, outputs, last)
        w.raw("  %next = add i64 %r, 1\n  %more = icmp ult i64 %next, %count")
        w.raw("  br i1 %more, label %loop, label %end\nend:")
        tables = "ptr noalias %slots, ptr noalias %rows, ptr %out_pointers, ptr %out_strides"
        parameters = f"{tables}, i64 %first, i64 %count, i1 %past"
        return w.function(f"internal void @finish({parameters}) {attributes(w)}")


def _fresh(w: Writer) -> Writer:
    return replace(w, lines=[], reserved=[], used=0)


def _orders(left: Rows) -> Iterator[tuple[range, list[int]]]:
    """Yield groups of rows to compute together, each with the order in which to add its terms.

    Terms with the factor 1 come first.
    """
    for top in range(0, len(left), TOGETHER):
        rows = range(top, min(top + TOGETHER, len(left)))
        terms = dict.fromkeys(k for r in rows for k in left[r])
        yield rows, sorted(terms, key=lambda k: all(left[r].get(k) != ONE for r in rows))


def _multiplied(
    w: Writer, left: Rows, right: Blocks, source: str, blocks: Sequence[Block]
) -> Iterator[tuple[int, Block, str]]:
    """Yield (row, block, value) for a product's blocks, in groups that fit in registers."""
    at_once = REGISTERS.get(w.bytes, 12) // TOGETHER
    for rows, ordered in _orders(left):
        for first in range(0, len(blocks), at_once):
            some = blocks[first : first + at_once]
            sums: dict[tuple[int, Block], str] = {}
            for k in ordered:
                found = [b for b in some if (k, b) in right]
                users = [(r, left[r][k]) for r in rows if k in left[r]]
                factors = [(r, e, _factor(w, e) if found else "") for r, e in users]
                for b in found:
                    place = w.at(source, right[k, b], w.type)
                    block = w.emit(f"load {w.type}, ptr {place}, align {w.bytes}")
                    for r, entry, factor in factors:
                        sums[r, b] = _added(w, entry, factor, block, sums.get((r, b)))
            for r in rows:
                for b in some:
                    yield r, b, sums.get((r, b)) or w.constant(0.0)


def _factor(w: Writer, entry: Entry) -> str:
    """Return a vector with an entry's value in all lanes."""
    if entry.place < 0:
        return w.constant(entry.constant)
    place = w.at("%entries", entry.place, w.element.name)
    scalar = w.emit(f"load {w.element.name}, ptr {place}")
    alone = w.emit(f"insertelement {w.type} poison, {w.element.name} {scalar}, i64 0")
    lanes = f"<{w.width} x i32> zeroinitializer"
    return w.emit(f"shufflevector {w.type} {alone}, {w.type} poison, {lanes}")


def _added(w: Writer, entry: Entry, factor: str, block: str, total: str | None) -> str:
    if total is None:
        return block if entry == ONE else w.mul(factor, block)
    return w.add(block, total) if entry == ONE else w.fma(factor, block, total)
