"""LLVM IR that evaluates programs for tiles (blocks with one state per SIMD lane).

Each state is a row in memory. Rows are transposed into tiles, and tiles back into rows, in
registers. A tile with a single lane is the row itself.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from chasles.backends.llvm.math import DOUBLE, Element, Writer, angles, arctangent
from chasles.backends.lowering import Lowered, Part

UNROLLED = 4
"""Maximum length (in vectors) of rows that are transposed without a loop."""


def _last_cache() -> int:
    """Return the size (bytes) of this computer's largest cache, at least 32 MiB."""
    sizes = [1 << 25]
    with suppress(OSError, ValueError):
        found = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
        texts = [path.read_text("ascii").strip() for path in found]
        sizes = [int(text.removesuffix("K")) << 10 for text in texts] or sizes
    return max(sizes)


PAST = _last_cache() // 2
"""Total size of the results (bytes) above which long rows are written with stores that bypass the
cache, because the results would not stay in the cache."""

AHEAD = 32
"""Prefetch distance in long rows: number of columns ahead of the current load or store."""


def attributes(w: Writer) -> str:
    """Return function attributes that let LLVM use vectors as wide as those of the writer `w`."""
    size = max(8 * w.bytes, 128)
    return f'noinline nounwind "prefer-vector-width"="{size}" "min-legal-vector-width"="{size}"'


# Code for one tile -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """Target of code generation: the number of lanes, use of fused multiply-add, and the dtype."""

    width: int
    fuse: bool
    element: Element = DOUBLE

    def writer(self, width: int | None = None) -> Writer:
        """Return a code writer for vectors of `width` entries (default: the target's width)."""
        return Writer(width or self.width, self.fuse, self.element, self.width)


SPELLING: dict[str, Callable[..., str]] = {
    "add": Writer.add,
    "sub": Writer.sub,
    "mul": Writer.mul,
    "div": lambda w, a, b: w.binary("fdiv", a, b),
    "neg": Writer.neg,
    "fma": Writer.fma,
    "fms": lambda w, a, b, c: w.fma(a, b, w.neg(c)),
    "fnma": Writer.fnma,
    "sqrt": lambda w, a: w.call("sqrt", a),
    "atan2": arctangent,
    "min": lambda w, a, b: w.call("minimum", a, b),
    "max": lambda w, a, b: w.call("maximum", a, b),
    "abs": lambda w, a: w.call("fabs", a),
}
"""Functions that emit arithmetic operations on vectors, by operation. Sines and cosines are not
listed, because they are computed in groups (`Stage.angles`). Comparisons and selections are not
listed, because they use masks."""

COMPARISONS = {"less": "olt", "less_equal": "ole", "equal": "oeq"}

Place = tuple[str, int]
"""Location of a value: the name of an array in memory, and an index in the array."""


class Body:
    """Code generator for one part of a lowered program, with any number of SIMD lanes.

    results: destinations (tile, index) of each value. A value is stored as soon as it is computed,
    so that it does not occupy a register.
    """

    def __init__(
        self, lowered: Lowered, part: Part, w: Writer, results: Mapping[int, list[Place]]
    ) -> None:
        self.code, self.place, self.w = lowered.code, lowered.place, w
        self._going = {k: list(places) for k, places in results.items()}
        for k, place in part.saved:
            self._going.setdefault(k, []).append(("%scratch", place))
        self._value: dict[int, str] = {}
        self._mask: dict[int, str] = {}
        self._angle: dict[tuple[str, int], Place] = {}
        self._touched: dict[int, int] = {}
        self._time, self._far = 0, lowered.far
        for number, stage in enumerate(part.stages):
            for k in stage.code:
                self._write(k)
                self._store(k)
                self._touched[k] = self._time
                self._time += 1
            if stage.angles:
                sines, cosines = angles(w, [self._use(a) for a in stage.angles], str(number))
                for index, angle in enumerate(stage.angles):
                    self._angle["sin", angle] = (sines, index)
                    self._angle["cos", angle] = (cosines, index)
        for k in list(self._going):
            self._store(k)

    def _store(self, k: int) -> None:
        for tile, index in self._going.pop(k, ()):
            value, place = self._use(k), self._address(tile, index)
            self.w.raw(f"  store {self.w.type} {value}, ptr {place}, align {self.w.bytes}")

    def _load(self, tile: str, index: int) -> str:
        place = self._address(tile, index)
        return self.w.emit(f"load {self.w.type}, ptr {place}, align {self.w.bytes}")

    def _address(self, tile: str, index: int) -> str:
        return self.w.at(tile, index, self.w.type)

    def _write(self, k: int) -> None:
        op, args, _ = self.code[k]
        if op in COMPARISONS:
            self._mask[k] = self.w.compare(COMPARISONS[op], *map(self._use, args))
        elif op == "select":
            condition, a, b = args
            self._value[k] = self.w.choose(self._condition(condition), self._use(a), self._use(b))
        elif op in SPELLING:
            self._value[k] = SPELLING[op](self.w, *map(self._use, args))

    def _use(self, k: int) -> str:
        """Return the name of an instruction's value; load the value first if it is in memory.

        A value that has not been used for many instructions is reloaded, so that it does not occupy
        a register in the meantime.
        """
        op, args, data = self.code[k]
        if op == "const":
            return self.w.constant(data)
        time = self._time
        if time - self._touched.get(k, time) > self._far and self._in_memory(k):
            self._value.pop(k, None)
        self._touched[k] = time
        value = self._value.get(k)
        if value is None:
            if op == "input":
                value = self._load(f"%in{data[0]}", data[1])
            elif op in ("sin", "cos") and (op, args[0]) in self._angle:
                value = self._load(*self._angle[op, args[0]])
            elif k in self._mask:
                ones, zeros = self.w.constant(1.0), self.w.constant(0.0)
                value = self.w.choose(self._mask[k], ones, zeros)
            else:
                value = self._load("%scratch", self.place[k])
            self._value[k] = value
        return value

    def _in_memory(self, k: int) -> bool:
        op = self.code[k].op
        return op in ("input", "sin", "cos") or k in self.place

    def _condition(self, k: int) -> str:
        if k not in self._mask:
            self._mask[k] = self.w.compare("une", self._use(k), self.w.constant(0.0))
        return self._mask[k]


# Conversion between rows and tiles ----------------------------------------------------------------


def gather(w: Writer, n: int, *, clip: bool) -> str:
    """Return LLVM IR of a function that transposes rows of n elements into a tile.

    clip: True for the last tile of a batch, in which the row %last replaces the rows after it.
    """
    width, rows = w.width, row_places(w, clip)

    def move(start: str) -> None:
        pairs = []
        for row in rows:
            place = w.at(row, start, w.element.name)
            pairs.append(_halves(w, place) if n >= width else _masked_halves(w, place, n))
        for c, column in enumerate(transposed(w, pairs)[: min(n, width)]):
            index = w.emit(f"add i64 {start}, {c}")
            place = w.at("%tile", index, w.type)
            w.raw(f"  store {w.type} {column}, ptr {place}, align {w.bytes}")

    count = -(-n // width)
    if count <= UNROLLED:
        for b in range(count):
            move(str(max(0, min(b * width, n - width))))
    else:

        def move_ahead(start: str) -> None:
            _prefetch(w, rows, start, "i32 0, i32 0")
            move(start)

        _loop(w, n, "0", move_ahead)
    return tile_function(w, f"gather{n}", "%tile", clip)


def scatter(
    w: Writer,
    output: int,
    columns: Sequence[int],
    constant: dict[int, float],
    *,
    clip: bool,
    alone: bool = False,
) -> str:
    """Return the function that transposes a tile's results into rows of an output.

    - columns: index of the vector (slot) in the tile that holds each column.
    - constant: values of the slots that hold constants. In long rows, blocks of constant columns
      are written without a transpose.
    - clip: True for the last tile of a batch, in which the row %last replaces the rows after it.
    - alone: True to define the function's tables here, because the module has no function without
      `clip` that defines them.

    If the rows' alignment allows it, no store straddles a cache line.
    """
    width, n, rows = w.width, len(columns), row_places(w, clip)

    def halves(start: str, c: int) -> tuple[str, str]:
        if c >= n:
            return "zeroinitializer", "zeroinitializer"
        if start.isdigit():
            return _halves(w, w.at("%slots", str(columns[int(start) + c]), w.type))
        return column(w, output, start, c)

    def store(start: str, vectors: Sequence[str]) -> None:
        for row, vector in zip(rows, vectors, strict=True):
            place = w.at(row, start, w.element.name)
            if n < width:
                w.raw(
                    f"  call void @llvm.masked.store.{w.suffix}.p0({w.type} {vector}, "
                    f"ptr {place}, i32 {w.element.bytes}, <{width} x i1> {_mask(width, n)})"
                )
            else:
                w.raw(f"  store {w.type} {vector}, ptr {place}, align {w.element.bytes}")

    count = -(-n // width)
    if count <= UNROLLED:
        for b in range(count):
            start = str(max(0, min(b * width, n - width)))
            store(start, transposed(w, [halves(start, c) for c in range(width)]))
        return tile_function(w, f"scatter{output}", "%slots", clip)

    def move(start: str) -> None:
        _prefetch(w, rows, start, "i32 1, i32 3")
        fixed = steady_block(w, output, start)
        _store_halves(w, rows, start, [fixed] * width)
        w.raw("  br label %moved\nmoving:")
        _store_halves(w, rows, start, transposed(w, [halves(start, c) for c in range(width)]))
        w.raw("  br label %moved\nmoved:")

    address = w.emit("ptrtoint ptr %base to i64")
    negative = w.emit(f"sub i64 0, {address}")
    words = w.emit(f"lshr i64 {negative}, {w.element.bytes.bit_length() - 1}")
    ahead = w.emit(f"and i64 {words}, {max(width // 2 - 1, 0)}")
    aligned = w.emit(f"icmp eq i64 {ahead}, 0")
    shift = w.emit(f"sub i64 {ahead}, {width}")
    first = w.emit(f"select i1 {aligned}, i64 0, i64 {shift}")
    _loop(w, n, first, move, back="moved")
    tables = "" if clip and not alone else _tables(w, output, columns, constant)
    return tables + tile_function(w, f"scatter{output}", "%slots", clip)


def _prefetch(w: Writer, rows: Sequence[str], start: str, how: str) -> None:
    """Emit code that prefetches, in each row, the entry that is `AHEAD` columns after `start`.

    how: read/write flag and locality hint, as operands of LLVM's prefetch intrinsic.
    """
    soon = w.emit(f"add i64 {start}, {AHEAD}")
    for row in rows:
        place = w.at(row, soon, w.element.name)
        w.raw(f"  call void @llvm.prefetch.p0(ptr {place}, {how}, i32 1)")


def column(w: Writer, output: int, start: str, c: int) -> tuple[str, str]:
    """Emit code that loads column `start + c` of a tile's results, as two half vectors."""
    place = w.at(f"@columns{output}", w.emit(f"add i64 {start}, {c}"), "i32")
    slot = w.emit(f"zext i32 {w.emit(f'load i32, ptr {place}')} to i64")
    return _halves(w, w.at("%slots", slot, w.type))


def steady_block(w: Writer, output: int, start: str) -> str:
    """Emit a branch to %moving if a column of the block at `start` is not constant.

    Return the vector of the block's constants.
    """
    steady = w.emit(f"load i1, ptr {w.at(f'@steady{output}', start, 'i1')}")
    w.raw(f"  br i1 {steady}, label %steady, label %moving\nsteady:")
    pattern = w.at(f"@pattern{output}", start, w.element.name)
    return w.emit(f"load {w.type}, ptr {pattern}, align {w.element.bytes}")


def streams(w: Writer, columns: int) -> bool:
    """Return True if rows of `columns` entries are written by stores that bypass the cache."""
    return -(-columns // w.width) > UNROLLED and w.bytes == 64


def from_two(w: Writer) -> str:
    """Return the name of the LLVM intrinsic that selects lanes from two vectors by index."""
    return f"@llvm.x86.avx512.vpermi2var.p{'s' if w.element.bits == 32 else 'd'}.512"


def declared(w: Writer) -> list[str]:
    """Return declarations of the LLVM intrinsics that this module uses."""
    masked = f"@llvm.masked.load.{w.suffix}.p0(ptr, i32, {w.mask}, {w.type})"
    lines = [f"declare {w.type} {masked}"]
    lines.append(f"declare void @llvm.masked.store.{w.suffix}.p0({w.type}, ptr, i32, {w.mask})")
    lines.append("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    lines += [f"declare i64 @llvm.{name}.i64(i64, i64)" for name in ("umin", "smax")]
    if w.bytes == 64:
        lines.append(f"declare {w.type} {from_two(w)}({w.type}, {w.integers}, {w.type})")
    return lines


def _tables(w: Writer, output: int, columns: Sequence[int], constant: dict[int, float]) -> str:
    """Return three constant tables in LLVM IR for the columns of an output.

    - columns: index of each column's vector in the tile.
    - pattern: value of each constant column, and 0 for other columns.
    - steady: for each block of `width` columns, true if all of them are constant.
    """
    n, width, t = len(columns), w.width, w.element.name
    slots = ", ".join(f"i32 {c}" for c in columns)
    pattern = ", ".join(f"{t} {w.element.spelled(constant.get(c, 0.0))}" for c in columns)
    steady = ", ".join(
        f"i1 {str(all(c in constant for c in columns[s : s + width])).lower()}"
        for s in range(n - width + 1)
    )
    return (
        f"@columns{output} = internal constant [{n} x i32] [{slots}]\n"
        f"@pattern{output} = internal constant [{n} x {t}] [{pattern}]\n"
        f"@steady{output} = internal constant [{n - width + 1} x i1] [{steady}]\n"
    )


def tile_function(w: Writer, name: str, tile: str, clip: bool) -> str:
    extra, suffix = (", i64 %last", "_last") if clip else ("", "")
    parameters = f"ptr noalias {tile}, ptr noalias %base, i64 %stride{extra}"
    return w.function(f"internal void @{name}{suffix}({parameters}) {attributes(w)}")


def row_places(w: Writer, clip: bool) -> list[str]:
    """Emit code that computes pointers to `width` rows, the first at %base.

    If `clip` is True, rows after the row %last are replaced by that row.
    """
    rows = []
    for r in range(w.width):
        number = w.emit(f"call i64 @llvm.umin.i64(i64 {r}, i64 %last)") if clip else str(r)
        offset = w.emit(f"mul i64 {number}, %stride")
        rows.append(w.at("%base", offset))
    return rows


def _loop(w: Writer, n: int, first: str, move: Callable[[str], None], back: str = "loop") -> None:
    """Emit a loop that runs `move(start)` for blocks of `width` columns, beginning at `first`.

    A negative `first` is treated as 0. The first and the last block may overlap their neighbors.

    back: label of the LLVM basic block that ends the loop body.
    """
    w.raw("  br label %loop\nloop:")
    w.raw(f"  %block = phi i64 [ {first}, %entry ], [ %next, %{back} ]")
    inside = w.emit("call i64 @llvm.smax.i64(i64 %block, i64 0)")
    move(w.emit(f"call i64 @llvm.umin.i64(i64 {inside}, i64 {n - w.width})"))
    w.raw(f"  %next = add i64 %block, {w.width}")
    w.raw(f"  %more = icmp slt i64 %next, {n}")
    w.raw("  br i1 %more, label %loop, label %end\nend:")


def _half(w: Writer) -> str:
    return f"<{w.width // 2} x {w.element.name}>"


def _halves(w: Writer, place: str) -> tuple[str, str]:
    """Emit code that loads the two halves of a vector, which a transpose then joins at low cost."""
    upper = w.at(place, w.width // 2, w.element.name)
    return (
        w.emit(f"load {_half(w)}, ptr {place}, align {w.element.bytes}"),
        w.emit(f"load {_half(w)}, ptr {upper}, align {w.element.bytes}"),
    )


def _masked_halves(w: Writer, place: str, n: int) -> tuple[str, str]:
    whole = w.emit(
        f"call {w.type} @llvm.masked.load.{w.suffix}.p0(ptr {place}, i32 8, "
        f"<{w.width} x i1> {_mask(w.width, n)}, {w.type} zeroinitializer)"
    )
    low, high = (
        shuffle(w, w.type, whole, whole, range(s, s + w.width // 2)) for s in (0, w.width // 2)
    )
    return low, high


def _store_halves(w: Writer, rows: Sequence[str], start: str, vectors: Sequence[str]) -> None:
    """Emit stores of vectors as half vectors.

    If rows are aligned to half vectors, no store straddles a cache line. The stores are volatile,
    because LLVM would otherwise join them again.
    """
    for row, vector in zip(rows, vectors, strict=True):
        place = w.at(row, start, w.element.name)
        upper = w.at(place, w.width // 2, w.element.name)
        for s, target in ((0, place), (w.width // 2, upper)):
            half = shuffle(w, w.type, vector, vector, range(s, s + w.width // 2))
            w.raw(f"  store volatile {_half(w)} {half}, ptr {target}, align {w.element.bytes}")


def shuffle(w: Writer, of: str, a: str, b: str, lanes: Sequence[int]) -> str:
    mask = ", ".join(f"i32 {lane}" for lane in lanes)
    return w.emit(f"shufflevector {of} {a}, {of} {b}, <{len(lanes)} x i32> <{mask}>")


def transposed(w: Writer, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Emit code that transposes a square block, whose rows are given as pairs of half vectors."""
    size, step = w.width, w.width // 2
    vectors = [""] * size
    for i in range(step):
        for half in (0, 1):
            a, b = pairs[i][half], pairs[i + step][half]
            vectors[i + half * step] = shuffle(w, _half(w), a, b, range(size))
    step //= 2
    while step:
        out = list(vectors)
        low = [i if not i & step else size + i - step for i in range(size)]
        high = [i + step if not i & step else size + i for i in range(size)]
        for i in range(size):
            if not i & step:
                a, b = vectors[i], vectors[i + step]
                out[i] = shuffle(w, w.type, a, b, low)
                out[i + step] = shuffle(w, w.type, a, b, high)
        vectors, step = out, step // 2
    return vectors


def _mask(width: int, n: int) -> str:
    return f"<{', '.join(f'i1 {str(k < n).lower()}' for k in range(width))}>"
