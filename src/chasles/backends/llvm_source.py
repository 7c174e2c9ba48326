"""A program as a module in LLVM's language: `one` for one state, `batch` for many.

`batch` brings `width` rows at a time into tiles with register transposes, runs the body, and
brings the results back. The last tile repeats its last row. A result that occurs several times
among the outputs is computed and kept once; constant results are written before the loop.
"""

from chasles.backends.llvm_body import Body
from chasles.backends.llvm_math import COLD, Writer
from chasles.backends.lowering import Lowered
from chasles.expr import Program

UNROLLED = 4
"""Rows of up to this many vectors are moved without a loop."""


def module(program: Program, lowered: Lowered, *, width: int, fuse: bool) -> str:
    """The text of the module."""
    slots = _Slots(program)
    sizes = sorted({v.size for v in program.inputs})
    parts = [f"; {program.name}: {program.count}\n", _declarations(width), COLD]
    parts += [_one(program, lowered, fuse), _tile(program, lowered, slots, width, fuse)]
    parts += [_gather(n, width, clip) for n in sizes for clip in (False, True) if n]
    for k, columns in enumerate(slots.columns):
        parts += [_scatter(k, columns, width, clip) for clip in (False, True) if columns]
    parts.append(_batch(program, slots, width))
    return "\n".join(parts)


class _Slots:
    """The distinct results, and for every output the slot that each entry comes from."""

    def __init__(self, program: Program) -> None:
        self.results = list(dict.fromkeys(r for refs in program.results for r in refs))
        number = {r: k for k, r in enumerate(self.results)}
        self.columns = [[number[r] for r in refs] for refs in program.results]
        self.constant = {
            number[r]: program.code[r].data for r in self.results if program.code[r].op == "const"
        }


def _declarations(width: int) -> str:
    lines = ['!0 = !{!"branch_weights", i32 1, i32 100000}', "declare double @llvm.fabs.f64(double)"]
    for w in sorted({1, width}):
        t = f"<{w} x double>"
        for name, arity in (
            ("fma", 3),
            ("fabs", 1),
            ("sqrt", 1),
            ("copysign", 2),
            ("maxnum", 2),
            ("minimum", 2),
            ("maximum", 2),
        ):
            lines.append(f"declare {t} @llvm.{name}.v{w}f64({', '.join([t] * arity)})")
    t, mask = f"<{width} x double>", f"<{width} x i1>"
    lines.append(f"declare {t} @llvm.masked.load.v{width}f64.p0(ptr, i32, {mask}, {t})")
    lines.append(f"declare void @llvm.masked.store.v{width}f64.p0({t}, ptr, i32, {mask})")
    lines.append("declare i64 @llvm.umin.i64(i64, i64)")
    return "\n".join(lines) + "\n"


def _attributes(width: int) -> str:
    size = max(64 * width, 128)
    return f'nounwind "prefer-vector-width"="{size}" "min-legal-vector-width"="{size}"'


def _one(program: Program, lowered: Lowered, fuse: bool) -> str:
    """One state, straight on the caller's rows (an output may be an input: loads come first)."""
    body = Body(program, lowered, 1, fuse=fuse)
    for k, refs in enumerate(program.results):
        for index, r in enumerate(refs):
            body.store(r, f"%out{k}", index)
    parameters = [f"ptr %in{k}" for k in range(len(program.inputs))]
    parameters += [f"ptr %out{k}" for k in range(len(program.outputs))]
    text = body.function("row", parameters, "noinline " + _attributes(1))
    w = Writer(1, fuse)
    arguments = []
    for role, count in (("in", len(program.inputs)), ("out", len(program.outputs))):
        for k in range(count):
            place = w.emit(f"getelementptr ptr, ptr %{role}_pointers, i64 {k}")
            arguments.append(w.emit(f"load ptr, ptr {place}"))
    call = ", ".join(f"ptr {a}" for a in arguments)
    head = "define void @one(ptr %in_pointers, ptr %out_pointers) nounwind {\nentry:"
    return text + "\n".join([head, *w.lines, f"  call void @row({call})", "  ret void\n}\n"])


def _tile(program: Program, lowered: Lowered, slots: _Slots, width: int, fuse: bool) -> str:
    body = Body(program, lowered, width, fuse=fuse)
    for k, r in enumerate(slots.results):
        if k not in slots.constant:
            body.store(r, "%slots", k)
    parameters = [f"ptr noalias %in{k}" for k in range(len(program.inputs))]
    return body.function("tile", [*parameters, "ptr noalias %slots"], "noinline " + _attributes(width))


# Rows to tiles and back -----------------------------------------------------------------------


def _rows(w: Writer, clip: bool) -> list[str]:
    """Pointers to `width` rows from %base on; with `clip`, rows past %last repeat that row."""
    rows = []
    for r in range(w.width):
        number = w.emit(f"call i64 @llvm.umin.i64(i64 {r}, i64 %last)") if clip else str(r)
        offset = w.emit(f"mul i64 {number}, %stride")
        rows.append(w.emit(f"getelementptr i8, ptr %base, i64 {offset}"))
    return rows


def _transposed(w: Writer, vectors: list[str]) -> list[str]:
    """Rows become columns: log2(width) rounds of exchanging halves of pairs."""
    size = w.width
    step = size // 2
    while step:
        out = list(vectors)
        low = [i if not i & step else size + i - step for i in range(size)]
        high = [i + step if not i & step else size + i for i in range(size)]
        for i in range(size):
            if not i & step:
                a, b = vectors[i], vectors[i + step]
                for index, lanes in ((i, low), (i + step, high)):
                    mask = ", ".join(f"i32 {lane}" for lane in lanes)
                    out[index] = w.emit(
                        f"shufflevector {w.type} {a}, {w.type} {b}, <{size} x i32> <{mask}>"
                    )
        vectors, step = out, step // 2
    return vectors


def _mask(width: int, n: int) -> str:
    return f"<{', '.join(f'i1 {str(k < n).lower()}' for k in range(width))}>"


def _blocks(w: Writer, n: int, move: "object") -> None:
    """Call `move(start)` for every block of `width` columns; the last may overlap the one before."""
    count = -(-n // w.width)
    if count <= UNROLLED:
        for b in range(count):
            move(str(max(0, min(b * w.width, n - w.width))))  # type: ignore[operator]
        return
    w.raw("  br label %loop\nloop:")
    w.raw("  %block = phi i64 [ 0, %entry ], [ %next, %loop ]")
    start = w.emit(f"call i64 @llvm.umin.i64(i64 %block, i64 {n - w.width})")
    move(start)  # type: ignore[operator]
    w.raw(f"  %next = add i64 %block, {w.width}")
    w.raw(f"  %more = icmp ult i64 %next, {n}")
    w.raw("  br i1 %more, label %loop, label %end\nend:")


def _suffix(clip: bool) -> str:
    return "_last" if clip else ""


def _gather(n: int, width: int, clip: bool) -> str:
    """A tile of n numbers from rows of n numbers."""
    w = Writer(width, False)
    rows = _rows(w, clip)

    def move(start: str) -> None:
        vectors = []
        for row in rows:
            place = w.emit(f"getelementptr double, ptr {row}, i64 {start}")
            if n >= width:
                vectors.append(w.emit(f"load {w.type}, ptr {place}, align 8"))
            else:
                vectors.append(
                    w.emit(
                        f"call {w.type} @llvm.masked.load.v{width}f64.p0(ptr {place}, i32 8, "
                        f"<{width} x i1> {_mask(width, n)}, {w.type} zeroinitializer)"
                    )
                )
        for c, column in enumerate(_transposed(w, vectors)[: min(n, width)]):
            index = w.emit(f"add i64 {start}, {c}")
            place = w.emit(f"getelementptr {w.type}, ptr %tile, i64 {index}")
            w.raw(f"  store {w.type} {column}, ptr {place}, align {8 * width}")

    _blocks(w, n, move)
    name = f"gather{n}{_suffix(clip)}"
    parameters = "ptr noalias %tile, ptr noalias %base, i64 %stride" + (", i64 %last" if clip else "")
    head = f"define internal void @{name}({parameters}) noinline {_attributes(width)} {{\nentry:"
    return "\n".join([head, *w.lines, "  ret void\n}\n"])


def _scatter(output: int, columns: list[int], width: int, clip: bool) -> str:
    """Rows of an output from the slots that hold its columns."""
    w, n = Writer(width, False), len(columns)
    rows = _rows(w, clip)
    table = ", ".join(f"i64 {c}" for c in columns)
    constant = "" if clip else f"@columns{output} = internal constant [{n} x i64] [{table}]\n"

    def column(start: str, c: int) -> str:
        if c >= n:
            return "zeroinitializer"
        if start.isdigit():
            slot = str(columns[int(start) + c])
        else:
            index = w.emit(f"add i64 {start}, {c}")
            place = w.emit(f"getelementptr i64, ptr @columns{output}, i64 {index}")
            slot = w.emit(f"load i64, ptr {place}")
        place = w.emit(f"getelementptr {w.type}, ptr %slots, i64 {slot}")
        return w.emit(f"load {w.type}, ptr {place}, align {8 * width}")

    def move(start: str) -> None:
        vectors = _transposed(w, [column(start, c) for c in range(width)])
        for row, vector in zip(rows, vectors, strict=True):
            place = w.emit(f"getelementptr double, ptr {row}, i64 {start}")
            if n >= width:
                w.raw(f"  store {w.type} {vector}, ptr {place}, align 8")
            else:
                w.raw(
                    f"  call void @llvm.masked.store.v{width}f64.p0({w.type} {vector}, ptr {place}, "
                    f"i32 8, <{width} x i1> {_mask(width, n)})"
                )

    _blocks(w, n, move)
    name = f"scatter{output}{_suffix(clip)}"
    parameters = "ptr noalias %slots, ptr noalias %base, i64 %stride" + (", i64 %last" if clip else "")
    head = f"define internal void @{name}({parameters}) noinline {_attributes(width)} {{\nentry:"
    return constant + "\n".join([head, *w.lines, "  ret void\n}\n"])


# The loop over tiles --------------------------------------------------------------------------


def _batch(program: Program, slots: _Slots, width: int) -> str:
    w = Writer(width, False)
    tiles = [w.emit(f"alloca [{max(v.size, 1)} x {w.type}], align 64") for v in program.inputs]
    kept = w.emit(f"alloca [{max(len(slots.results), 1)} x {w.type}], align 64")
    arrays = {}
    for role, variables in (("in", program.inputs), ("out", program.outputs)):
        for k in range(len(variables)):
            place = w.emit(f"getelementptr ptr, ptr %{role}_pointers, i64 {k}")
            stride = w.emit(f"getelementptr i64, ptr %{role}_strides, i64 {k}")
            pointer = w.emit(f"load ptr, ptr {place}")
            arrays[role, k] = pointer, w.emit(f"load i64, ptr {stride}")
    for slot, number in slots.constant.items():
        place = w.emit(f"getelementptr {w.type}, ptr {kept}, i64 {slot}")
        w.raw(f"  store {w.type} {w.constant(number)}, ptr {place}, align {8 * width}")
    w.raw(f"  %whole = and i64 %count, {-width}")
    w.raw("  %some = icmp ne i64 %whole, 0")
    w.raw("  br i1 %some, label %loop, label %rest\nloop:")
    w.raw("  %i = phi i64 [ 0, %entry ], [ %i_next, %loop ]")
    _run_tile(w, program, slots, tiles, kept, arrays, "%i", "")
    w.raw(f"  %i_next = add i64 %i, {width}")
    w.raw("  %again = icmp ult i64 %i_next, %whole")
    w.raw("  br i1 %again, label %loop, label %rest\nrest:")
    w.raw("  %left = sub i64 %count, %whole")
    w.raw("  %last = sub i64 %left, 1")
    w.raw("  %none = icmp eq i64 %left, 0")
    w.raw("  br i1 %none, label %end, label %tail\ntail:")
    _run_tile(w, program, slots, tiles, kept, arrays, "%whole", ", i64 %last")
    w.raw("  br label %end\nend:")
    head = (
        "define void @batch(i64 %count, ptr %in_pointers, ptr %in_strides, ptr %out_pointers, "
        f"ptr %out_strides) {_attributes(width)} {{\nentry:"
    )
    return "\n".join([head, *w.lines, "  ret void\n}\n"])


def _run_tile(
    w: Writer,
    program: Program,
    slots: _Slots,
    tiles: list[str],
    kept: str,
    arrays: dict[tuple[str, int], tuple[str, str]],
    first: str,
    last: str,
) -> None:
    suffix = _suffix(bool(last))

    def base(role: str, k: int) -> str:
        pointer, stride = arrays[role, k]
        offset = w.emit(f"mul i64 {first}, {stride}")
        place = w.emit(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        return f"ptr {place}, i64 {stride}{last}"

    for k, variable in enumerate(program.inputs):
        if variable.size:
            w.raw(f"  call void @gather{variable.size}{suffix}(ptr {tiles[k]}, {base('in', k)})")
    inputs = "".join(f"ptr {tile}, " for tile in tiles)
    w.raw(f"  call void @tile({inputs}ptr {kept})")
    for k, columns in enumerate(slots.columns):
        if columns:
            w.raw(f"  call void @scatter{k}{suffix}(ptr {kept}, {base('out', k)})")
