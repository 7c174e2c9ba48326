"""A program as a module in LLVM's language: `one` for one state, `batch` for many.

`batch` takes `width` states at a time: it brings their rows into tiles of lanes, runs the parts of
the program, and brings the results back. A tile has one vector of lanes for each number; with a
single lane it is the caller's own row. The last tile repeats its last row. A result that occurs
several times among the outputs is kept once; constant results are written before the loop.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chasles.backends.llvm_math import DOUBLE, Element, Writer, angles, arctangent, cold_angles
from chasles.backends.llvm_tiles import attributes, gather, scatter
from chasles.backends.lowering import Lowered, Part, lower, places
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
    """The module of a program."""
    slots = _Slots(program)
    longest = LONGEST if len(program.code) <= LONGEST else SHARE
    lowered = lower(program, fuse=target.fuse, longest=longest)
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
    return Module("\n".join(parts), workspace)


class _Slots:
    """The distinct results, and for every output the slot that each entry comes from."""

    def __init__(self, program: Program) -> None:
        self.results = list(places(program))
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


# The straight-line parts -----------------------------------------------------------------------

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
"""Operations on vectors of numbers. Sines and cosines are taken in groups (`Stage.angles`);
comparisons and selections work on masks."""

COMPARISONS = {"less": "olt", "less_equal": "ole", "equal": "oeq"}

Place = tuple[str, int]
"""A tile and an index in it."""


class _Body:
    """Writes one part of a lowered program for any number of lanes.

    results: where values are delivered, (tile, index) each. A value is stored as soon as it is
    made, so that it need not be kept.
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
        for number, stage in enumerate(part.stages):
            for k in stage.code:
                self._write(k)
                self._store(k)
            if stage.angles:
                sines, cosines = angles(w, [self._use(a) for a in stage.angles], str(number))
                for index, angle in enumerate(stage.angles):
                    self._angle["sin", angle] = (sines, index)
                    self._angle["cos", angle] = (cosines, index)
        for k in list(self._going):
            self._store(k)

    def _store(self, k: int) -> None:
        for tile, index in self._going.pop(k, ()):
            value, place = self._use(k), self.w.at(tile, index, self.w.type)
            self.w.raw(f"  store {self.w.type} {value}, ptr {place}, align {self.w.bytes}")

    def _load(self, tile: str, index: int) -> str:
        place = self.w.at(tile, index, self.w.type)
        return self.w.emit(f"load {self.w.type}, ptr {place}, align {self.w.bytes}")

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
        """The name of a value: made in this part, an input, a constant, or from the scratch."""
        op, args, data = self.code[k]
        if op == "const":
            return self.w.constant(data)
        if k not in self._value:
            if op == "input":
                self._value[k] = self._load(f"%in{data[0]}", data[1])
            elif op in ("sin", "cos") and (op, args[0]) in self._angle:
                self._value[k] = self._load(*self._angle[op, args[0]])
            elif k in self._mask:
                ones, zeros = self.w.constant(1.0), self.w.constant(0.0)
                self._value[k] = self.w.choose(self._mask[k], ones, zeros)
            else:
                self._value[k] = self._load("%scratch", self.place[k])
        return self._value[k]

    def _condition(self, k: int) -> str:
        if k not in self._mask:
            self._mask[k] = self.w.compare("une", self._use(k), self.w.constant(0.0))
        return self._mask[k]


def _parts(
    name: str,
    lowered: Lowered,
    target: Target,
    width: int | None,
    pointers: Sequence[str],
    going: Mapping[int, list[Place]],
) -> list[str]:
    """The functions of all parts of a program, for so many lanes."""
    texts = []
    for n, part in enumerate(lowered.parts):
        w = target.writer(width)
        _Body(lowered, part, w, {r: going[r] for r in part.results if r in going})
        parameters = ", ".join(f"ptr noalias {pointer}" for pointer in pointers)
        texts.append(w.function(f"internal void @{name}{n}({parameters}) {attributes(w)}"))
    return texts


def _one(program: Program, lowered: Lowered, target: Target) -> str:
    """One state, straight on the caller's rows: no output may overlap an input."""
    inputs = [f"%in{k}" for k in range(len(program.inputs))]
    outputs = [f"%out{k}" for k in range(len(program.outputs))]
    going = {r: [(outputs[k], index) for k, index in to] for r, to in places(program).items()}
    names = [*inputs, *outputs]
    texts = _parts("row", lowered, target, 1, [*names, "%scratch"], going)
    w = target.writer(1)
    scratch = w.reserve(max(lowered.scratch, 1))
    operands = ", ".join(f"ptr {name}" for name in [*names, scratch])
    for n in range(len(lowered.parts)):
        w.raw(f"  call void @row{n}({operands})")
    parameters = ", ".join(f"ptr noalias {name}" for name in names)
    texts.append(w.function(f"internal void @run({parameters}) nounwind"))
    w = target.writer(1)
    pointers = []
    for role, count in (("in", len(inputs)), ("out", len(outputs))):
        for k in range(count):
            pointers.append(w.emit(f"load ptr, ptr {w.at(f'%{role}_pointers', k, 'ptr')}"))
    w.raw(f"  call void @run({', '.join(f'ptr {p}' for p in pointers)})")
    texts.append(w.function("void @one(ptr %in_pointers, ptr %out_pointers) nounwind"))
    return "\n".join(texts)


def _vector_parts(program: Program, lowered: Lowered, slots: _Slots, target: Target) -> str:
    changing = [r for r in slots.number if program.code[r].op != "const"]
    going = {r: [("%slots", slots.number[r])] for r in changing}
    names = [*(f"%in{k}" for k in range(len(program.inputs))), "%scratch", "%slots"]
    return "\n".join(_parts("tile", lowered, target, None, names, going))


# Batches ---------------------------------------------------------------------------------------


def _batch(program: Program, lowered: Lowered, slots: _Slots, target: Target) -> tuple[str, int]:
    """The loop over tiles, and the vectors of workspace it needs for tiles, scratch and results.

    The code of a long program does not stay in the cache, so each of its parts runs for a group of
    tiles in turn.
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
    outputs = _arrays(w, "out", len(program.outputs))
    taken = [(f"gather{v.size}", k, *inputs[k]) for k, v in enumerate(program.inputs) if v.size]
    given = [(f"scatter{k}", -1, *outputs[k]) for k, c in enumerate(slots.columns) if c]

    def move(moves: list[tuple[str, int, str, str]], t: int, row: str, last: str) -> None:
        """Bring rows in, or results out."""
        first, suffix = w.emit(f"add i64 {row}, {t * w.width}"), "_last" if last else ""
        for function, k, pointer, stride in moves:
            place = w.at(pointer, w.emit(f"mul i64 {first}, {stride}"))
            tile = f"ptr {tiles[t][k]}"
            w.raw(f"  call void @{function}{suffix}({tile}, ptr {place}, i64 {stride}{last})")

    def run(count: int, row: str, last: str) -> None:
        """Tiles from a row on; with `last`, one tile whose rows past that one are missing."""
        for t in range(count):
            move(taken, t, row, last)
        for n in range(len(lowered.parts)):
            for t in range(count):
                operands = ", ".join(f"ptr {place}" for place in tiles[t])
                w.raw(f"  call void @tile{n}({operands})")
        for t in range(count):
            move(given, t, row, last)

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
    head = (
        "void @batch(i64 %count, ptr %in_pointers, ptr %in_strides, ptr %out_pointers, "
        f"ptr %out_strides, ptr %workspace) {attributes(w)}"
    )
    return w.function(head), len(tiles) * sum(sizes)


def _arrays(w: Writer, role: str, count: int) -> list[tuple[str, str]]:
    """For each of the caller's arrays, where its first row is and how far rows are apart."""
    found = []
    for k in range(count):
        pointer = w.at(f"%{role}_pointers", k, "ptr")
        stride = w.at(f"%{role}_strides", k, "i64")
        found.append((w.emit(f"load ptr, ptr {pointer}"), w.emit(f"load i64, ptr {stride}")))
    return found
