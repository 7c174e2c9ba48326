"""LLVM IR of a program as a loop over segments that share a few functions (`rolling.py`).

Segments that differ only in constants and memory locations have the same form, and each form is one
function. All values are stored in one contiguous array: inputs, scratch space, results. A function
gets separate pointers to this array for reading and writing. No segment writes to a location that
it reads, so LLVM may reorder loads and stores.
"""

from collections.abc import Sequence

from chasles.backends.llvm.math import Writer
from chasles.backends.llvm.tiles import Body, Target, attributes
from chasles.backends.lowering import Lowered, lower, places
from chasles.backends.rolling import Form, Rolled
from chasles.expr import Program


def _tables(rolled: Rolled, target: Target) -> str:
    """Return tables in LLVM IR: constants, memory locations and order of all segments.

    A location is stored as a byte offset for one lane; the generated code multiplies it by the
    number of lanes.
    """
    element, lines = target.element, []
    for f, form in enumerate(rolled.forms):
        numbers = [f"{element.name} {element.spelled(x)}" for row in form.numbers for x in row]
        offsets = [f"i32 {place * element.bytes}" for row in form.places for place in row]
        lines.append(_array(f"numbers{f}", element.name, numbers))
        lines.append(_array(f"places{f}", "i32", offsets))
    steps = [f"i32 {number}" for step in rolled.steps for number in step]
    return "\n".join([*lines, _array("steps", "i32", steps)]) + "\n"


def _array(name: str, kind: str, entries: Sequence[str]) -> str:
    return f"@{name} = internal constant [{len(entries)} x {kind}] [{', '.join(entries)}]"


class _Body(Body):
    """Writer of the function that all segments of one form (the same operations) share.

    Each call runs one segment, with the constants and memory locations in a row of the tables.
    """

    def __init__(self, form: Form, lowered: Lowered, w: Writer) -> None:
        self._near = {"%in1": form.reads, "%write": form.writes}
        self._base: dict[tuple[str, int], str] = {}
        (results,) = form.program.results
        going = {r: [("%write", index)] for index, r in enumerate(results)}
        (part,) = lowered.parts
        super().__init__(lowered, part, w, going)

    def _load(self, tile: str, index: int) -> str:
        if tile != "%in0":
            return super()._load(tile, index)
        w, one = self.w, f"<1 x {self.w.element.name}>"
        place = w.at("%numbers", index, w.element.name)
        number = w.emit(f"load {one}, ptr {place}, align {w.element.bytes}")
        zeros = f"<{w.width} x i32> zeroinitializer"
        return w.emit(f"shufflevector {one} {number}, {one} poison, {zeros}")

    def _address(self, tile: str, index: int) -> str:
        if tile not in self._near:
            return super()._address(tile, index)
        w, (column, distance) = self.w, self._near[tile][index]
        if (tile, column) not in self._base:
            offset = w.emit(f"load i32, ptr {w.at('%places', column, 'i32')}")
            lanes = w.emit(f"mul i64 {w.emit(f'zext i32 {offset} to i64')}, {w.width}")
            self._base[tile, column] = w.at("%read" if tile == "%in1" else "%write", lanes)
        return w.at(self._base[tile, column], distance, w.type)


def tiles_of_states(program: Program, rolled: Rolled, target: Target) -> str:
    """Return the code of `tile0`, which evaluates the program for one state per SIMD lane."""
    names = [f"%tile{k}" for k in range(len(program.inputs) + 2)]
    parameters = ", ".join(f"ptr {name}" for name in names)
    w = target.writer()
    w.raw(f"  call void @tile(ptr {names[0]})")
    call = w.function(f"internal void @tile0({parameters}) {attributes(w)}")
    return _tables(rolled, target) + _functions("tile", rolled, target, w.width) + call


def _functions(name: str, rolled: Rolled, target: Target, width: int) -> str:
    """Return LLVM code for a function that runs all segments of a program in `width` lanes."""
    texts, cases, calls = [], [], []
    for f, form in enumerate(rolled.forms):
        w = target.writer(width)
        lowered = lower(form.program, fuse=target.fuse, longest=len(form.program.code) + 1)
        _Body(form, lowered, w)
        pointers = ("read", "write", "numbers", "places")
        parameters = ", ".join(f"ptr noalias %{pointer}" for pointer in pointers)
        texts.append(w.function(f"internal void @{name}_form{f}({parameters}) {attributes(w)}"))
        cases.append(f"i32 {f}, label %form{f}")
        rows = f"mul i64 %row, {len(form.numbers[0])}", f"mul i64 %row, {len(form.places[0])}"
        calls.append(
            f"form{f}:\n"
            f"  %n{f} = {rows[0]}\n  %p{f} = {rows[1]}\n"
            f"  %numbers{f} = getelementptr {w.element.name}, ptr @numbers{f}, i64 %n{f}\n"
            f"  %places{f} = getelementptr i32, ptr @places{f}, i64 %p{f}\n"
            f"  call void @{name}_form{f}(ptr %memory, ptr %memory, ptr %numbers{f}, "
            f"ptr %places{f})\n  br label %next"
        )
    texts.append(f"""define internal void @{name}(ptr %memory) {attributes(target.writer(width))} {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %more, %next ]
  %form.place = getelementptr [2 x i32], ptr @steps, i64 %i
  %row.place = getelementptr [2 x i32], ptr @steps, i64 %i, i64 1
  %form = load i32, ptr %form.place
  %row.short = load i32, ptr %row.place
  %row = zext i32 %row.short to i64
  switch i32 %form, label %next [ {" ".join(cases)} ]
{chr(10).join(calls)}
next:
  %more = add i64 %i, 1
  %some = icmp ult i64 %more, {len(rolled.steps)}
  br i1 %some, label %loop, label %end
end:
  ret void
}}
""")
    return "\n".join(texts)


def _copy(w: Writer, target: str, source: str, count: int) -> None:
    """Emit code that copies elements as full vectors; the last two vectors may overlap."""
    wide = f"<{w.widest} x {w.element.name}>"
    if count < w.widest:
        for k in range(count):
            _move(w, target, source, str(k), w.element.name)
        return
    label = w.name()[1:]
    before, loop, end = (f"{label}.{part}" for part in ("before", "loop", "end"))
    w.raw(f"  br label %{before}\n{before}:\n  br label %{loop}\n{loop}:")
    w.raw(f"  %{label}.at = phi i64 [ 0, %{before} ], [ %{label}.next, %{loop} ]")
    last = w.emit(f"call i64 @llvm.umin.i64(i64 %{label}.at, i64 {count - w.widest})")
    _move(w, target, source, last, wide)
    w.raw(f"  %{label}.next = add i64 %{label}.at, {w.widest}")
    w.raw(f"  %{label}.more = icmp ult i64 %{label}.next, {count}")
    w.raw(f"  br i1 %{label}.more, label %{loop}, label %{end}\n{end}:")


def _move(w: Writer, target: str, source: str, index: str, kind: str) -> None:
    here = w.at(source, index, w.element.name)
    value = w.emit(f"load {kind}, ptr {here}, align {w.element.bytes}")
    there = w.at(target, index, w.element.name)
    w.raw(f"  store {kind} {value}, ptr {there}, align {w.element.bytes}")


def one_state(program: Program, rolled: Rolled, target: Target, w: Writer) -> str:
    """Emit code for one state that copies the inputs, runs all segments, and copies the results."""
    kept = places(program)
    inputs = sum(v.size for v in program.inputs)
    memory, start = w.reserve(inputs + rolled.scratch + len(kept)), 0
    for k, variable in enumerate(program.inputs):
        _copy(w, w.at(memory, start, w.type), f"%in{k}", variable.size)
        start += variable.size
    w.raw(f"  call void @row(ptr {memory})")
    results = w.at(memory, inputs + rolled.scratch, w.type)
    slot = {r: k for k, r in enumerate(kept)}
    for k, refs in enumerate(program.results):
        fixed = any(program.code[r].op == "const" for r in refs)
        first = slot[refs[0]] if refs else 0
        if not fixed and [slot[r] for r in refs] == list(range(first, first + len(refs))):
            _copy(w, f"%out{k}", w.at(results, first, w.type), len(refs))
            continue
        for index, r in enumerate(refs):
            if program.code[r].op == "const":
                value = w.constant(program.code[r].data)
            else:
                value = w.emit(f"load {w.type}, ptr {w.at(results, slot[r], w.type)}")
            w.raw(f"  store {w.type} {value}, ptr {w.at(f'%out{k}', index, w.type)}")
    return _functions("row", rolled, target, 1)
