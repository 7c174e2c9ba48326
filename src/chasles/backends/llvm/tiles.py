"""Between rows in memory and tiles of lanes: register transposes in LLVM's language."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from chasles.backends.llvm.math import Writer

UNROLLED = 4
"""Rows of up to this many vectors are moved without a loop."""


def _last_cache() -> int:
    """Bytes of the largest cache of this computer; 32 MiB where the system does not say."""
    sizes = [1 << 25]
    with suppress(OSError, ValueError):
        found = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
        texts = [path.read_text("ascii").strip() for path in found]
        sizes = [int(text.removesuffix("K")) << 10 for text in texts] or sizes
    return max(sizes)


PAST = _last_cache() // 2
"""Bytes of results beyond which long rows are written past the cache, in which they do not stay."""

AHEAD = 32
"""Columns ahead of a store at which the cache lines of long rows are prefetched."""


def attributes(w: Writer) -> str:
    """Function attributes that let LLVM use a writer's vectors."""
    size = max(8 * w.bytes, 128)
    return f'noinline nounwind "prefer-vector-width"="{size}" "min-legal-vector-width"="{size}"'


def gather(w: Writer, n: int, *, clip: bool) -> str:
    """The function that makes a tile of n numbers from rows of n numbers.

    With `clip` (the last tile of a batch) rows past %last repeat that row.
    """
    width, rows = w.width, _rows(w, clip)

    def move(start: str) -> None:
        pairs = []
        for row in rows:
            place = w.at(row, start, w.element.name)
            pairs.append(_halves(w, place) if n >= width else _masked_halves(w, place, n))
        for c, column in enumerate(_transposed(w, pairs)[: min(n, width)]):
            index = w.emit(f"add i64 {start}, {c}")
            place = w.at("%tile", index, w.type)
            w.raw(f"  store {w.type} {column}, ptr {place}, align {w.bytes}")

    count = -(-n // width)
    if count <= UNROLLED:
        for b in range(count):
            move(str(max(0, min(b * width, n - width))))
    else:
        _loop(w, n, "0", move)
    return _function(w, f"gather{n}", "%tile", clip)


def scatter(
    w: Writer, output: int, columns: Sequence[int], constant: dict[int, float], *, clip: bool
) -> str:
    """The function that writes rows of an output from the slots that hold its columns.

    In long rows, blocks of columns that are all constant are written without a transpose, and
    stores are kept from straddling cache lines where the rows' alignment allows it.
    """
    width, n, rows = w.width, len(columns), _rows(w, clip)

    def halves(start: str, c: int) -> tuple[str, str]:
        if c >= n:
            return "zeroinitializer", "zeroinitializer"
        if start.isdigit():
            return _halves(w, w.at("%slots", str(columns[int(start) + c]), w.type))
        return _column(w, output, start, c)

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
            store(start, _transposed(w, [halves(start, c) for c in range(width)]))
        return _function(w, f"scatter{output}", "%slots", clip)

    def move(start: str) -> None:
        soon = w.emit(f"add i64 {start}, {AHEAD}")
        for row in rows:
            place = w.at(row, soon, w.element.name)
            w.raw(f"  call void @llvm.prefetch.p0(ptr {place}, i32 1, i32 3, i32 1)")
        fixed = _steady(w, output, start)
        _store_halves(w, rows, start, [fixed] * width)
        w.raw("  br label %moved\nmoving:")
        _store_halves(w, rows, start, _transposed(w, [halves(start, c) for c in range(width)]))
        w.raw("  br label %moved\nmoved:")

    address = w.emit("ptrtoint ptr %base to i64")
    negative = w.emit(f"sub i64 0, {address}")
    words = w.emit(f"lshr i64 {negative}, {w.element.bytes.bit_length() - 1}")
    ahead = w.emit(f"and i64 {words}, {max(width // 2 - 1, 0)}")
    aligned = w.emit(f"icmp eq i64 {ahead}, 0")
    shift = w.emit(f"sub i64 {ahead}, {width}")
    first = w.emit(f"select i1 {aligned}, i64 0, i64 {shift}")
    _loop(w, n, first, move, back="moved")
    tables = "" if clip else _tables(w, output, columns, constant)
    return tables + _function(w, f"scatter{output}", "%slots", clip)


def _column(w: Writer, output: int, start: str, c: int) -> tuple[str, str]:
    """Column c of the block at `start`, as two halves."""
    place = w.at(f"@columns{output}", w.emit(f"add i64 {start}, {c}"), "i32")
    slot = w.emit(f"zext i32 {w.emit(f'load i32, ptr {place}')} to i64")
    return _halves(w, w.at("%slots", slot, w.type))


def _steady(w: Writer, output: int, start: str) -> str:
    """Branch to %moving if the block at `start` changes; else go on with its constants."""
    steady = w.emit(f"load i1, ptr {w.at(f'@steady{output}', start, 'i1')}")
    w.raw(f"  br i1 {steady}, label %steady, label %moving\nsteady:")
    pattern = w.at(f"@pattern{output}", start, w.element.name)
    return w.emit(f"load {w.type}, ptr {pattern}, align {w.element.bytes}")


def streams(w: Writer, columns: int) -> bool:
    """Return True if rows of a number of columns can be written past the cache: by AVX-512."""
    return -(-columns // w.width) > UNROLLED and w.bytes == 64


def _from_two(w: Writer) -> str:
    """The instruction that takes lanes by number from two vectors."""
    return f"@llvm.x86.avx512.vpermi2var.p{'s' if w.element.bits == 32 else 'd'}.512"


def declared(w: Writer) -> list[str]:
    """Declarations of the functions of LLVM that are used here."""
    masked = f"@llvm.masked.load.{w.suffix}.p0(ptr, i32, {w.mask}, {w.type})"
    lines = [f"declare {w.type} {masked}"]
    lines.append(f"declare void @llvm.masked.store.{w.suffix}.p0({w.type}, ptr, i32, {w.mask})")
    lines.append("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    lines += [f"declare i64 @llvm.{name}.i64(i64, i64)" for name in ("umin", "smax")]
    if w.bytes == 64:
        lines.append(f"declare {w.type} {_from_two(w)}({w.type}, {w.integers}, {w.type})")
    return lines


class Lines:
    """The cache lines of a row of numbers at `base`, each taken from two neighboring vectors.

    Vectors are those of the row, `width` numbers each from its first on. Line n begins in vector n.
    Whole lines are written past the cache. What the row has of its first and of its last lines is
    written as usual, by stores that do not reach into another line: those would be slow.
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
        """Write the numbers of the first vector that stand before all lines."""
        w = self._w
        missing = w.emit(f"sub i64 {w.width}, {self._ahead}")
        self._part(-w.width, vector, vector, "uge", missing)

    def write(self, start: int | str, before: str, after: str) -> None:
        """Write the line that begins in the vector of numbers from `start` on."""
        line, place = self._line(start, before, after)
        w = self._w
        w.raw(f"  store {w.type} {line}, ptr {place}, align {w.bytes}, !nontemporal !1")

    def end(self, start: int, rest: int, before: str, after: str) -> None:
        """Write what is left from the last vector on, whose numbers are those from `start` on.

        rest: how many numbers of `after` belong to the row.
        """
        w = self._w
        for k, first in enumerate((before, after)[: 2 if rest else 1]):
            left = w.emit(f"sub i64 {(1 - k) * w.width + rest}, {self._ahead}")
            self._part(start + k * w.width, first, after, "slt", left)

    def _line(self, start: int | str, before: str, after: str) -> tuple[str, str]:
        w = self._w
        both = f"{w.type} {before}, {w.integers} {self._lanes}, {w.type} {after}"
        line = w.emit(f"call {w.type} {_from_two(w)}({both})")
        return line, w.at(self._first, start, w.element.name)

    def _part(self, start: int, before: str, after: str, comparison: str, limit: str) -> None:
        """Write the numbers of a line below a limit, or from it on."""
        w = self._w
        line, place = self._line(start, before, after)
        mask = w.emit(f"icmp {comparison} {w.integers} {self._counting}, {self._spread(limit)}")
        w.raw(
            f"  call void @llvm.masked.store.{w.suffix}.p0({w.type} {line}, ptr {place}, "
            f"i32 {w.bytes}, {w.mask} {mask})"
        )

    def _spread(self, number: str) -> str:
        """A number in all lanes."""
        w, bits = self._w, self._w.element.bits
        short = number if bits == 64 else w.emit(f"trunc i64 {number} to i{bits}")
        one = w.emit(f"insertelement {w.integers} poison, i{bits} {short}, i32 0")
        return shuffle(w, w.integers, one, "poison", [0] * w.width)


def scatter_past(w: Writer, output: int, n: int) -> str:
    """The function that writes long rows past the cache, wherever they stand: see `scatter`."""
    width, lines = w.width, [Lines(w, row) for row in _rows(w, clip=False)]
    whole, rest = n // width * width, n % width

    def block(start: str) -> list[str]:
        return _transposed(w, [_column(w, output, start, c) for c in range(width)])

    begin = block("0")
    for line, vector in zip(lines, begin, strict=True):
        line.begin(vector)
    w.raw("  br label %head\nhead:\n  br label %loop\nloop:")
    w.raw(f"  %block = phi i64 [ {width}, %head ], [ %next, %moved ]")
    for r, vector in enumerate(begin):
        w.raw(f"  %before{r} = phi {w.type} [ {vector}, %head ], [ %now{r}, %moved ]")
    fixed = _steady(w, output, "%block")
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
    last = block(str(n - width)) if rest else [f"%now{r}" for r in range(width)]
    for r, (line, vector) in enumerate(zip(lines, last, strict=True)):
        turned = [(lane - rest) % width for lane in range(width)]
        after = shuffle(w, w.type, vector, vector, turned) if rest else vector
        line.end(whole - width, rest, f"%now{r}", after)
    return _function(w, f"scatter{output}_past", "%slots", clip=False)


def _tables(w: Writer, output: int, columns: Sequence[int], constant: dict[int, float]) -> str:
    """Return the slot and the constant value of each column, and the constant blocks."""
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


def _function(w: Writer, name: str, tile: str, clip: bool) -> str:
    extra, suffix = (", i64 %last", "_last") if clip else ("", "")
    parameters = f"ptr noalias {tile}, ptr noalias %base, i64 %stride{extra}"
    return w.function(f"internal void @{name}{suffix}({parameters}) {attributes(w)}")


def _rows(w: Writer, clip: bool) -> list[str]:
    """Pointers to `width` rows from %base on."""
    rows = []
    for r in range(w.width):
        number = w.emit(f"call i64 @llvm.umin.i64(i64 {r}, i64 %last)") if clip else str(r)
        offset = w.emit(f"mul i64 {number}, %stride")
        rows.append(w.at("%base", offset))
    return rows


def _loop(w: Writer, n: int, first: str, move: Callable[[str], None], back: str = "loop") -> None:
    """Call `move(start)` for blocks of `width` columns from `first` (or from 0 if it is negative).

    The first and the last block may overlap their neighbors.
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
    """A vector from memory as two half vectors (joining halves is cheap)."""
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
    """Two stores of half a vector: with rows half-aligned, none of them straddles a cache line.

    They are volatile because LLVM would join them again.
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


def _transposed(w: Writer, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Rows, given as halves, become columns: join halves, then exchange ever smaller groups."""
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
