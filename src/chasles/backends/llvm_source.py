"""A program as a module in LLVM's language: `one` for one state, `batch` for many.

`batch` takes `width` states at a time: it brings their rows into tiles of lanes, runs the parts of
the program, and brings the results back. The last tile repeats its last row. A result that occurs
several times among the outputs is kept once; constant results are written before the loop.
"""

from dataclasses import dataclass

from chasles.backends.llvm_body import Body, Place
from chasles.backends.llvm_entry import entry
from chasles.backends.llvm_math import DOUBLE, Element, Writer, cold_angles
from chasles.backends.llvm_tiles import attributes, gather, scatter
from chasles.backends.lowering import Lowered, lower
from chasles.expr import Program

WORTH_THREADS = 10_000_000
"""Operations in a batch from which on threads share it: about a third of a millisecond."""

MANY, GROUP = 8, 4
"""Programs of more than MANY parts run each part for GROUP tiles in turn."""

LONGEST = 40000
"""Instructions that are still compiled as one part: as many as LLVM takes in reasonable time."""

SHARE = 10000
"""Instructions in each part of a longer program."""


@dataclass(frozen=True)
class Module:
    """The text, and how many bytes of workspace `batch` needs, aligned to a vector."""

    text: str
    workspace: int


@dataclass(frozen=True)
class Target:
    """What code is written for: how many lanes, with fused products or not, of which numbers."""

    width: int
    fuse: bool
    element: Element = DOUBLE

    def writer(self, width: int | None = None) -> Writer:
        """A fresh writer for all lanes, or for another number of them."""
        return Writer(width or self.width, self.fuse, self.element, self.width)


def module(program: Program, target: Target) -> Module:
    """The module of a program; with one output, it has an entry point for Python too."""
    slots = _Slots(program)
    lowered = lower(program, fuse=target.fuse, longest=_longest(program))
    parts = [f"; {program.name}: {program.count}\n", _declarations(target)]
    parts += [cold_angles(target.writer()), _one(program, lowered, target)]
    parts.append(_vector_parts(program, lowered, slots, target))
    for n in sorted({v.size for v in program.inputs} - {0}):
        parts += [gather(target.writer(), n, clip=clip) for clip in (False, True)]
    for k, columns in enumerate(slots.columns):
        for clip in (False, True) if columns else ():
            parts.append(scatter(target.writer(), k, columns, slots.constant, clip=clip))
    batch, vectors = _batch(program, lowered, slots, target)
    parts.append(batch)
    workspace = vectors * target.writer().bytes
    if program.outputs:
        most = WORTH_THREADS // max(program.count.weight, 1)
        parts.append(entry(program, target.element, workspace=workspace, most=most))
    return Module("\n".join(parts), workspace)


def _longest(program: Program) -> int:
    return LONGEST if len(program.code) <= LONGEST else SHARE


class _Slots:
    """The distinct results, and for every output the slot that each entry comes from."""

    def __init__(self, program: Program) -> None:
        self.results = list(dict.fromkeys(r for refs in program.results for r in refs))
        self.number = {r: k for k, r in enumerate(self.results)}
        self.columns = [[self.number[r] for r in refs] for refs in program.results]
        self.constant: dict[int, float] = {
            k: program.code[r].data for r, k in self.number.items() if program.code[r].op == "const"
        }


_INTRINSICS = {"fma": 3, "fabs": 1, "sqrt": 1, "copysign": 2, "minimum": 2, "maximum": 2}


def _declarations(target: Target) -> str:
    lines = ['!0 = !{!"branch_weights", i32 1, i32 100000}']
    for w in (target.writer(1), target.writer()):
        for name, arity in _INTRINSICS.items():
            lines.append(f"declare {w.type} @llvm.{name}.{w.suffix}({', '.join([w.type] * arity)})")
    masked = f"@llvm.masked.load.{w.suffix}.p0(ptr, i32, {w.mask}, {w.type})"
    lines.append(f"declare {w.type} {masked}")
    lines.append(f"declare void @llvm.masked.store.{w.suffix}.p0({w.type}, ptr, i32, {w.mask})")
    lines.append("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    lines += [f"declare i64 @llvm.{name}.i64(i64, i64)" for name in ("umin", "smax")]
    return "\n".join(lines) + "\n"


def _one(program: Program, lowered: Lowered, target: Target) -> str:
    """One state, straight on the caller's rows: no output may overlap an input."""
    inputs = [f"ptr noalias %in{k}" for k in range(len(program.inputs))]
    outputs = [f"ptr noalias %out{k}" for k in range(len(program.outputs))]
    places: dict[int, list[Place]] = {}
    for k, refs in enumerate(program.results):
        for index, r in enumerate(refs):
            places.setdefault(r, []).append((f"%out{k}", index))
    texts = []
    for n, part in enumerate(lowered.parts):
        delivered = {r: places[r] for r in part.results}
        body = Body(lowered, part, target.writer(1), delivered)
        parameters = [*inputs, *outputs, "ptr noalias %scratch"]
        texts.append(body.function(f"row{n}", parameters, attributes(body.w)))
    w = target.writer(1)
    scratch = w.reserve(max(lowered.scratch, 1))
    names = [p.split()[-1] for p in [*inputs, *outputs]]
    operands = ", ".join(f"ptr {name}" for name in [*names, scratch])
    calls = [f"  call void @row{n}({operands})" for n in range(len(lowered.parts))]
    head = f"define internal void @run({', '.join([*inputs, *outputs])}) nounwind {{\nentry:"
    run = "\n".join([head, *w.reserved, *calls, "  ret void\n}\n"])
    w = target.writer(1)
    pointers = []
    for role, count in (("in", len(inputs)), ("out", len(outputs))):
        for k in range(count):
            place = w.emit(f"getelementptr ptr, ptr %{role}_pointers, i64 {k}")
            pointers.append(w.emit(f"load ptr, ptr {place}"))
    operands = ", ".join(f"ptr {p}" for p in pointers)
    head = "define void @one(ptr %in_pointers, ptr %out_pointers) nounwind {\nentry:"
    one = "\n".join([head, *w.lines, f"  call void @run({operands})", "  ret void\n}\n"])
    return "\n".join([*texts, run, one])


def _vector_parts(program: Program, lowered: Lowered, slots: _Slots, target: Target) -> str:
    texts, code = [], program.code
    parameters = [f"ptr noalias %in{k}" for k in range(len(program.inputs))]
    parameters += ["ptr noalias %scratch", "ptr noalias %slots"]
    for n, part in enumerate(lowered.parts):
        changing = {r: slots.number[r] for r in part.results if code[r].op != "const"}
        delivered = {r: [("%slots", slot)] for r, slot in changing.items()}
        body = Body(lowered, part, target.writer(), delivered)
        texts.append(body.function(f"tile{n}", parameters, attributes(body.w)))
    return "\n".join(texts)


def _batch(program: Program, lowered: Lowered, slots: _Slots, target: Target) -> tuple[str, int]:
    """The loop over tiles, and the vectors of workspace it needs for tiles, scratch and results.

    The code of a long program does not stay in the cache, so each of its parts runs for a group of
    tiles in turn.
    """
    w = target.writer()
    sizes = (*(v.size for v in program.inputs), lowered.scratch, len(slots.results))
    places = []
    for t in range(GROUP if len(lowered.parts) > MANY else 1):
        starts = [t * sum(sizes) + sum(sizes[:k]) for k in range(len(sizes))]
        places.append(
            [w.emit(f"getelementptr {w.type}, ptr %workspace, i64 {start}") for start in starts]
        )
        for slot, number in slots.constant.items():
            place = w.emit(f"getelementptr {w.type}, ptr {places[t][-1]}, i64 {slot}")
            w.raw(f"  store {w.type} {w.constant(number)}, ptr {place}, align {w.bytes}")
    batch = _Batch(w, program, lowered, slots, places)
    w.raw("  br label %groups\ngroups:")
    w.raw("  %group = phi i64 [ 0, %entry ], [ %group_next, %grouped ]")
    w.raw(f"  %group_next = add i64 %group, {len(places) * w.width}")
    w.raw("  %fits = icmp ule i64 %group_next, %count")
    w.raw("  br i1 %fits, label %grouped, label %rest\ngrouped:")
    batch.run(len(places), "%group", "")
    w.raw("  br label %groups\nrest:")
    w.raw("  %some = icmp ult i64 %group, %count")
    w.raw("  br i1 %some, label %loop, label %end\nloop:")
    w.raw("  %row = phi i64 [ %group, %rest ], [ %next, %again ]")
    w.raw("  %left = sub i64 %count, %row")
    w.raw(f"  %rows = call i64 @llvm.umin.i64(i64 %left, i64 {w.width})")
    w.raw("  %last = sub i64 %rows, 1")
    batch.run(1, "%row", ", i64 %last")
    w.raw("  br label %again\nagain:")
    w.raw(f"  %next = add i64 %row, {w.width}")
    w.raw("  %more = icmp ult i64 %next, %count")
    w.raw("  br i1 %more, label %loop, label %end\nend:")
    head = (
        "define void @batch(i64 %count, ptr %in_pointers, ptr %in_strides, ptr %out_pointers, "
        f"ptr %out_strides, ptr %workspace) {attributes(w)} {{\nentry:"
    )
    return "\n".join([head, *w.lines, "  ret void\n}\n"]), len(places) * sum(sizes)


class _Batch:
    """Writes the calls for a group of tiles: bring rows in, run the parts, bring results out."""

    def __init__(
        self,
        w: Writer,
        program: Program,
        lowered: Lowered,
        slots: _Slots,
        places: list[list[str]],
    ) -> None:
        self.w, self.parts, self.places = w, len(lowered.parts), places
        inputs = _arrays(w, "in", len(program.inputs))
        outputs = _arrays(w, "out", len(program.outputs))
        self.taken = [
            (f"gather{v.size}", k, *inputs[k]) for k, v in enumerate(program.inputs) if v.size
        ]
        self.given = [(f"scatter{k}", -1, *outputs[k]) for k, c in enumerate(slots.columns) if c]

    def run(self, tiles: int, row: str, last: str) -> None:
        """From a row on; with `last`, one tile whose rows past that one are missing."""
        for t in range(tiles):
            self._move(self.taken, t, row, last)
        for n in range(self.parts):
            for t in range(tiles):
                operands = ", ".join(f"ptr {place}" for place in self.places[t])
                self.w.raw(f"  call void @tile{n}({operands})")
        for t in range(tiles):
            self._move(self.given, t, row, last)

    def _move(self, moves: list[tuple[str, int, str, str]], t: int, row: str, last: str) -> None:
        w, suffix = self.w, "_last" if last else ""
        first = w.emit(f"add i64 {row}, {t * w.width}")
        for function, k, pointer, stride in moves:
            offset = w.emit(f"mul i64 {first}, {stride}")
            place = w.emit(f"getelementptr i8, ptr {pointer}, i64 {offset}")
            tile = f"ptr {self.places[t][k]}"
            w.raw(f"  call void @{function}{suffix}({tile}, ptr {place}, i64 {stride}{last})")


def _arrays(w: Writer, role: str, count: int) -> list[tuple[str, str]]:
    """For each of the caller's arrays, where its first row is and how far rows are apart."""
    found = []
    for k in range(count):
        pointer = w.emit(f"getelementptr ptr, ptr %{role}_pointers, i64 {k}")
        stride = w.emit(f"getelementptr i64, ptr %{role}_strides, i64 {k}")
        found.append((w.emit(f"load ptr, ptr {pointer}"), w.emit(f"load i64, ptr {stride}")))
    return found
