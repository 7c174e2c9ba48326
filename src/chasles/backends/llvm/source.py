"""A program as an LLVM module, with functions for one state (`one`) and for many (`batch`).

`batch` processes `width` states at a time, one per SIMD lane. It transposes their rows into a tile
(one vector per entry of a state), runs the parts of the program, and transposes the results back.
With a single lane, the tile is the caller's own row. The last tile repeats its last row in unused
lanes. A result that occurs several times in the outputs is stored once. Constant results are
written before the loop over tiles. A program with tiled arrays (`Program.tiled`) has only the
function `tiled`, which other code calls for one tile.

All functions of the LLVM module share the layout of its tiles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from chasles.backends.llvm.limbs import LimbBody, packed, widths
from chasles.backends.llvm.math import Writer, cold_angles
from chasles.backends.llvm.products import Products
from chasles.backends.llvm.rolled import one_state, tiles_of_states
from chasles.backends.llvm.streaming import scatter_past
from chasles.backends.llvm.tiles import (
    PAST,
    Body,
    Place,
    Target,
    attributes,
    declared,
    gather,
    scatter,
    streams,
)
from chasles.backends.lowering import NEVER, Lowered, cut, lower, places
from chasles.backends.rolling import Rolled, rolled
from chasles.expr import Interface, Program, Staged

WORTH_THREADS = 10_000_000
"""Minimum number of operations (about 0.3 ms of work) for which a batch uses several threads."""

MANY, GROUP = 8, 4
"""Numbers of parts and of tiles. If a program has more than MANY parts, each part computes GROUP
tiles before the next part runs. A tile is a block with one state per SIMD lane."""

LOOP = 12_000
"""Number of instructions above which a program is compiled as a loop, if it consists of similar
segments. Straight-line code of this length does not fit in the cache. The loop compiles in a
fraction of the time, and batches take 25 to 45 % less time."""

LONGEST = 40000
"""Maximum number of instructions that LLVM compiles as one part in reasonable time."""

SPREAD = 8000
"""Threshold for the number of scalar multiplications in matrix products. Below it, each SIMD lane
computes one state of a batch. Above it, each lane computes one matrix column (`products`), so that
the code stays in the cache."""

FAR, LASTING = 100, 16_000
"""Thresholds for reloading values. In programs with more than LASTING instructions, a value that
has not been used for FAR instructions is loaded from memory again instead of staying in a register.
LLVM then allocates registers for the functions of a large robot in two thirds of the time, and the
code is equally fast. Shorter programs would be 3 to 11 % slower.
"""

FAR_TILED = 70
"""Threshold that replaces FAR in programs with tiled arrays (`Program.tiled`), even short ones.
These programs use most of their inputs several times, and reloading values makes them 10 to 20 %
faster. With FAR as the threshold, contact steps take 1 to 2 % longer.
"""

SHARE = 10000
"""Number of instructions per part if a program exceeds `LONGEST` and is not compiled as a loop."""


@dataclass(frozen=True)
class Module:
    """Text of an LLVM module, and the size of the workspace that its function `batch` needs.

    The workspace size (bytes) is a multiple of the vector size.
    """

    text: str
    workspace: int


def module(whole: Program | Staged, target: Target) -> Module:
    """Generate the LLVM module for a program."""
    products = None
    if isinstance(whole, Staged):
        products = Products(whole, target.width)
        program = products.head
    else:
        program = whole
    slots = _Slots(program)
    lowered = _lowered(program, target)
    pack = packed(program, lowered) if program.alike and isinstance(lowered, Lowered) else {}
    parts = [
        f"; {whole.name}: {whole.count}\n",
        _declarations(target, widths(pack) if pack else set()),
    ]
    parts.append(cold_angles(target.writer()))
    if not program.tiled and not program.batched:
        parts.append(_one(whole, program, lowered, pack, products, target))
    if products and isinstance(lowered, Lowered) and products.staged.products <= SPREAD:
        first = list(dict.fromkeys(r for refs in program.results for r in refs))
        program, products = products.spread(lowered.code), None
        code, results = list(program.code), list(places(program))
        lowered = cut(code, results, LONGEST, _far(program), first)
        slots = _Slots(program)
    parts.append(_vector_parts(program, lowered, slots, target))
    if program.tiled:
        tiled, vectors = _tiled(program, lowered, slots, target)
        return Module("\n".join([*parts, tiled]), vectors * target.writer().bytes)
    for n in sorted({v.size for v in program.inputs} - {0}):
        parts += [gather(target.writer(), n, clip=clip) for clip in (False, True)]
    for k, columns in enumerate(slots.columns):
        for clip in (False, True)[: 1 if products else 2] if columns else ():
            parts.append(scatter(target.writer(), k, columns, slots.constant, clip=clip))
        if not products and streams(target.writer(), len(columns)):
            parts.append(scatter_past(target.writer(), k, len(columns)))
    batch, vectors = _batch(program, lowered, slots, products, target)
    parts.append(batch)
    if program.batched:
        parts.append(_one_in_batch(program, vectors, target))
    workspace = vectors * target.writer().bytes
    return Module("\n".join(parts), workspace)


def _lowered(program: Program, target: Target) -> Lowered | Rolled:
    """Divide a program into straight-line parts, or convert a long program to a loop."""
    size = len(program.code)
    if size > LOOP and (loop := rolled(program)):
        return loop
    longest = LONGEST if size <= LONGEST else SHARE
    return lower(program, fuse=target.fuse, longest=longest, far=_far(program))


def _far(program: Program) -> int:
    """Return the largest number of instructions between two uses of a value kept in a register."""
    if program.tiled:
        return FAR_TILED
    return FAR if len(program.code) > LASTING else NEVER


class _Slots:
    """Distinct results of a program, and the tile vector that stores each output entry."""

    def __init__(self, program: Program) -> None:
        self.results = list(places(program))
        self.number = {r: k for k, r in enumerate(self.results)}
        self.columns = [[self.number[r] for r in refs] for refs in program.results]
        self.constant: dict[int, float] = {
            k: program.code[r].data for r, k in self.number.items() if program.code[r].op == "const"
        }


ONE = "void @one(ptr %in_pointers, ptr %out_pointers) nounwind"
"""LLVM signature of a kernel's function for one state."""

PARAMETERS = (
    "i64 %count, ptr %in_pointers, ptr %in_strides, ptr %out_pointers, ptr %out_strides, "
    "ptr %workspace"
)
"""LLVM parameters of a kernel's functions for many states."""

_INTRINSICS = {"fma": 3, "fabs": 1, "sqrt": 1, "copysign": 2, "minimum": 2, "maximum": 2}


def _declarations(target: Target, limbs: set[int]) -> str:
    """Return declarations of LLVM intrinsics for scalars and for all vector widths in use."""
    lines = ['!0 = !{!"branch_weights", i32 1, i32 100000}', "!1 = !{i32 1}"]
    for width in sorted({1, target.width, *limbs}):
        w = target.writer(width)
        for name, arity in _INTRINSICS.items():
            lines.append(f"declare {w.type} @llvm.{name}.{w.suffix}({', '.join([w.type] * arity)})")
    return "\n".join(lines + declared(target.writer())) + "\n"


# Straight-line parts ---------------------------------------------------------------------------


def _parts(
    name: str,
    lowered: Lowered,
    target: Target,
    width: int | None,
    pointers: Sequence[str],
    going: Mapping[int, list[Place]],
    pack: Mapping[int, tuple[int, ...]] | None = None,
) -> list[str]:
    """Generate the LLVM functions of all parts of a program.

    The SIMD lanes hold different states or, if `pack` is given, different limbs of the robot in one
    state.
    """
    texts = []
    for n, part in enumerate(lowered.parts):
        w, results = target.writer(width), {r: going[r] for r in part.results if r in going}
        if pack:
            LimbBody(lowered, pack, w, results)
        else:
            Body(lowered, part, w, results)
        parameters = ", ".join(f"ptr noalias {pointer}" for pointer in pointers)
        texts.append(w.function(f"internal void @{name}{n}({parameters}) {attributes(w)}"))
    return texts


def _one(
    whole: Interface,
    program: Program,
    lowered: Lowered | Rolled,
    pack: Mapping[int, tuple[int, ...]],
    products: Products | None,
    target: Target,
) -> str:
    """Generate the function `one` for one state, whose outputs must not overlap its inputs."""
    inputs = [f"%in{k}" for k in range(len(program.inputs))]
    outputs = [f"%out{k}" for k in range(len(program.outputs))]
    texts = []
    if isinstance(lowered, Lowered):
        going = {r: [(outputs[k], index) for k, index in to] for r, to in places(program).items()}
        names = [*inputs, *outputs, "%scratch"]
        texts += _parts("row", lowered, target, 1, names, going, pack)
        if not products:
            w = target.writer(1)
            _run_parts(w, lowered, _pointers(w, program))
            return "\n".join([*texts, w.function(ONE)])
    w = target.writer(1)
    if isinstance(lowered, Rolled):
        texts.append(one_state(program, lowered, target, w))
    else:
        _run_parts(w, lowered, [*inputs, *outputs])
    parameters = ", ".join(f"ptr noalias {name}" for name in [*inputs, *outputs])
    name = "head" if products else "run"
    texts.append(w.function(f"internal void @{name}({parameters}) nounwind"))
    if products:
        results = [f"%out{k}" for k in range(len(whole.outputs))]
        texts.append(products.functions(target.writer()))
        texts.append(products.run(target.writer(1), inputs, results))
    w = target.writer(1)
    w.raw(f"  call void @run({', '.join(f'ptr {p}' for p in _pointers(w, whole))})")
    return "\n".join([*texts, w.function(ONE)])


def _one_in_batch(program: Program, vectors: int, target: Target) -> str:
    """Generate the LLVM function `one`, which computes one state by calling `batch` with count 1.

    Calling `batch` halves the compile time, because LLVM compiles the program only once.
    """
    w = target.writer()
    space, count = w.reserve(vectors), max(len(program.inputs), len(program.outputs))
    w.reserved.append(f"  %zeros = alloca [{count} x i64]")
    w.raw(f"  store [{count} x i64] zeroinitializer, ptr %zeros")
    strides = "ptr %in_pointers, ptr %zeros, ptr %out_pointers, ptr %zeros"
    w.raw(f"  call void @batch(i64 1, {strides}, ptr {space})")
    return w.function(ONE)


def _pointers(w: Writer, taken: Interface) -> list[str]:
    """Emit code that loads the pointers to one state's rows from the function's arguments."""
    counts = (("in", len(taken.inputs)), ("out", len(taken.outputs)))
    places = [w.at(f"%{role}_pointers", k, "ptr") for role, n in counts for k in range(n)]
    return [w.emit(f"load ptr, ptr {place}") for place in places]


def _run_parts(w: Writer, lowered: Lowered, pointers: Sequence[str]) -> None:
    """Emit calls that run all parts on one state's rows, with the scratch array on the stack."""
    scratch = w.reserve(lowered.scratch) if lowered.scratch else "null"
    operands = ", ".join(f"ptr {name}" for name in [*pointers, scratch])
    call = "call" if lowered.scratch else "tail call"
    for n in range(len(lowered.parts)):
        w.raw(f"  {call} void @row{n}({operands})")


def _vector_parts(
    program: Program, lowered: Lowered | Rolled, slots: _Slots, target: Target
) -> str:
    if isinstance(lowered, Rolled):
        return tiles_of_states(program, lowered, target)
    own, going = _own(program), dict[int, list[Place]]()
    for r, to in places(program).items():
        if program.code[r].op == "const":
            continue
        going[r] = [(f"%out{k}", index) for k, index in to if k in own]
        if len(going[r]) < len(to):
            going[r].append(("%slots", slots.number[r]))
    names = [*(f"%in{k}" for k in range(len(program.inputs))), "%scratch", "%slots"]
    names += [f"%out{k}" for k in own]
    return "\n".join(_parts("tile", lowered, target, None, names, going))


def _own(program: Program) -> list[int]:
    """Return the indices of the outputs that the program may write directly to the caller's tiles.

    An output may use the same tile as the input of the same name. Such an output is first stored
    elsewhere, and copied to the tile at the end of the program.
    """
    taken = {v.name for v in program.inputs}
    tiled = [k for k, v in enumerate(program.outputs) if v.name in program.tiled and v.size]
    return [k for k in tiled if program.outputs[k].name not in taken]


# Batches ---------------------------------------------------------------------------------------


def _batch(
    program: Program,
    lowered: Lowered | Rolled,
    slots: _Slots,
    products: Products | None,
    target: Target,
) -> tuple[str, int]:
    """Return the LLVM IR of the function `batch`, and the number of vectors in its workspace.

    The code of a long program does not fit in the instruction cache, so each of its parts runs for
    a group of tiles before the next part starts.
    """
    w = target.writer()
    sizes = (*(v.size for v in program.inputs), lowered.scratch, len(slots.results))
    tiles = []
    for t in range(GROUP if len(lowered.parts) > MANY else 1):
        starts = [t * sum(sizes) + sum(sizes[:k]) for k in range(len(sizes))]
        tiles.append([w.at("%workspace", start, w.type) for start in starts])
        for slot, number in slots.constant.items():
            place = w.at(tiles[t][-1], slot, w.type)
            w.raw(f"  store {w.type} {w.constant(number)}, ptr {place}, align {w.bytes}")
    inputs = _arrays(w, "in", len(program.inputs))
    outputs = _arrays(w, "out", len((products.staged if products else program).outputs))
    far = _many(w, [stride for _, stride in outputs])
    taken = [(f"gather{v.size}", k, *inputs[k]) for k, v in enumerate(program.inputs) if v.size]
    whole = [] if products else [k for k, columns in enumerate(slots.columns) if columns]
    given = [(f"scatter{k}", -1, *outputs[k]) for k in whole]
    past = {}
    for k in whole:
        if streams(w, n := len(slots.columns[k])):
            dense = w.emit(f"icmp eq i64 {outputs[k][1]}, {n * w.element.bytes}")
            both = w.emit(f"and i1 {far}, {dense}")
            ways = f"ptr @scatter{k}_past, ptr @scatter{k}"
            past[f"scatter{k}"] = w.emit(f"select i1 {both}, {ways}")
    used = len(tiles) * sum(sizes)
    rows = w.at("%workspace", used, w.type)

    def move(moves: list[tuple[str, int, str, str]], t: int, row: str, last: str) -> None:
        """Emit calls that transpose rows of inputs into tiles, or tiles of results into rows."""
        first, suffix = w.emit(f"add i64 {row}, {t * w.width}"), "_last" if last else ""
        for function, k, pointer, stride in moves:
            place = w.at(pointer, w.emit(f"mul i64 {first}, {stride}"))
            tile = f"ptr {tiles[t][k]}"
            name = past.get(function) if not last else None
            name = name or f"@{function}{suffix}"
            w.raw(f"  call void {name}({tile}, ptr {place}, i64 {stride}{last})")

    def ask(row: str, count: int) -> None:
        """Emit code that prefetches the cache lines that two tiles of results share.

        These lines are written through the cache. Without the prefetch, stores that bypass the
        cache would wait until these lines are loaded.
        """
        for k in (k for k in whole if f"scatter{k}" in past):
            pointer, stride = outputs[k]
            for r in range(0, count + 1, w.width):
                number = w.emit(f"add i64 {row}, {r}")
                place = w.at(pointer, w.emit(f"mul i64 {number}, {stride}"))
                w.raw(f"  call void @llvm.prefetch.p0(ptr {place}, i32 1, i32 3, i32 1)")

    def run(count: int, row: str, last: str) -> None:
        """Emit code that processes `count` tiles, beginning at a given row.

        last: operand with the index of the last row, for a single tile that may be partial; empty
        for full tiles.
        """
        if not last:
            ask(row, count * w.width)
        for t in range(count):
            move(taken, t, row, last)
        for n in range(len(lowered.parts)):
            for t in range(count):
                operands = ", ".join(f"ptr {place}" for place in tiles[t])
                w.raw(f"  call void @tile{n}({operands})")
        for t in range(count):
            move(given, t, row, last)
            if products:
                first = w.emit(f"add i64 {row}, {t * w.width}")
                some = "%rows" if last else str(w.width)
                tables = "ptr %out_pointers, ptr %out_strides"
                operands = (
                    f"ptr {tiles[t][-1]}, ptr {rows}, {tables}, i64 {first}, i64 {some}, i1 {far}"
                )
                w.raw(f"  call void @finish({operands})")

    w.raw("  br label %groups\ngroups:")
    w.raw("  %group = phi i64 [ 0, %entry ], [ %group_next, %grouped ]")
    w.raw(f"  %group_next = add i64 %group, {len(tiles) * w.width}")
    w.raw("  %fits = icmp ule i64 %group_next, %count")
    w.raw("  br i1 %fits, label %grouped, label %rest\ngrouped:")
    run(len(tiles), "%group", "")
    w.raw("  br label %groups\nrest:")
    w.raw("  %some = icmp ult i64 %group, %count")
    w.raw("  br i1 %some, label %loop, label %end\nloop:")
    w.raw("  %row = phi i64 [ %group, %rest ], [ %next, %again ]")
    w.raw("  %left = sub i64 %count, %row")
    w.raw(f"  %rows = call i64 @llvm.umin.i64(i64 %left, i64 {w.width})")
    w.raw("  %last = sub i64 %rows, 1")
    run(1, "%row", ", i64 %last")
    w.raw("  br label %again\nagain:")
    w.raw(f"  %next = add i64 %row, {w.width}")
    w.raw("  %more = icmp ult i64 %next, %count")
    w.raw("  br i1 %more, label %loop, label %end\nend:")
    if past or (products and products.streams(w)):
        w.raw("  fence seq_cst")  # make non-temporal stores visible to other threads
    head = f"void @batch({PARAMETERS}) {attributes(w)}"
    if products is None:
        return w.function(head), used
    return products.finish(target.writer()) + w.function(head), used + w.width * products.row


def _tiled(
    program: Program, lowered: Lowered | Rolled, slots: _Slots, target: Target
) -> tuple[str, int]:
    """Return the function `tiled` for one tile, and the size of its workspace in vectors.

    The caller passes the arrays listed in `Program.tiled` as tiles.
    """
    w, others = target.writer(), list[str]()
    sizes = (*(v.size for v in program.inputs), lowered.scratch, len(slots.results))
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    tiles = [w.at("%workspace", start, w.type) for start in starts]
    last = w.emit("sub i64 %count, 1")
    used = {i.data[0] for i in program.code if i.op == "input"}
    sizes_read = set[int]()
    for k, (variable, (pointer, stride)) in enumerate(
        zip(program.inputs, _arrays(w, "in", len(program.inputs)), strict=True)
    ):
        if variable.name in program.tiled:
            tiles[k] = pointer
        elif variable.size and k in used:
            operands = f"ptr {tiles[k]}, ptr {pointer}, i64 {stride}, i64 {last}"
            w.raw(f"  call void @gather{variable.size}_last({operands})")
            sizes_read.add(variable.size)
    others += [gather(target.writer(), n, clip=True) for n in sorted(sizes_read)]
    outputs, own = _arrays(w, "out", len(program.outputs)), _own(program)
    pointers = ", ".join(f"ptr {tile}" for tile in [*tiles, *(outputs[k][0] for k in own)])
    for n in range(len(lowered.parts)):
        w.raw(f"  call void @tile{n}({pointers})")

    def store(value: str, tile: str, index: int) -> None:
        place = w.at(tile, index, w.type)
        w.raw(f"  store {w.type} {value}, ptr {place}, align {w.bytes}")

    for slot, number in slots.constant.items():
        store(w.constant(number), tiles[-1], slot)
    for k, (variable, (pointer, stride)) in enumerate(zip(program.outputs, outputs, strict=True)):
        if k in own:
            for index, slot in enumerate(slots.columns[k]):
                if slot in slots.constant:
                    store(w.constant(slots.constant[slot]), pointer, index)
        elif variable.name in program.tiled:
            for first, count in _runs(slots.columns[k]):
                index, slot = first, slots.columns[k][first]
                to, place = w.at(pointer, index, w.type), w.at(tiles[-1], slot, w.type)
                w.raw(f"  call void @copied(ptr {to}, ptr {place}, i64 {count})")
        elif variable.size:
            taken = (target.writer(), k, slots.columns[k], slots.constant)
            others.append(scatter(*taken, clip=True, alone=True))
            operands = f"ptr {tiles[-1]}, ptr {pointer}, i64 {stride}, i64 {last}"
            w.raw(f"  call void @scatter{k}_last({operands})")
    whole = w.function(f"void @tiled({PARAMETERS}) {attributes(w)}")
    return "\n".join([*others, _copied(target.writer()), whole]), sum(sizes)


def _runs(columns: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first index and the length of each run of consecutive integers."""
    starts = [0, *(k for k in range(1, len(columns)) if columns[k] != columns[k - 1] + 1)]
    return [(a, b - a) for a, b in pairwise([*starts, len(columns)])] if columns else []


def _copied(w: Writer) -> str:
    """Generate the function that copies vectors from one tile to another."""
    text = f"""entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %source = getelementptr {w.type}, ptr %from, i64 %k
  %target = getelementptr {w.type}, ptr %to, i64 %k
  %x = load {w.type}, ptr %source, align {w.bytes}
  store {w.type} %x, ptr %target, align {w.bytes}
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}}"""
    head = f"define internal void @copied(ptr %to, ptr %from, i64 %count) {attributes(w)} {{"
    return f"{head}\n{text}"


def _many(w: Writer, strides: Sequence[str]) -> str:
    """Emit code that tests whether outputs with these row strides exceed `PAST` bytes in total."""
    total = "0"
    for stride in strides:
        total = w.emit(f"add i64 {total}, {stride}")
    size = w.emit(f"mul i64 %count, {total}")
    return w.emit(f"icmp sgt i64 {size}, {PAST}")


def _arrays(w: Writer, role: str, count: int) -> list[tuple[str, str]]:
    """Emit code that loads the address and the row stride of each of the caller's arrays."""
    found = []
    for k in range(count):
        pointer = w.at(f"%{role}_pointers", k, "ptr")
        stride = w.at(f"%{role}_strides", k, "i64")
        found.append((w.emit(f"load ptr, ptr {pointer}"), w.emit(f"load i64, ptr {stride}")))
    return found
