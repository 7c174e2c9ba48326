"""The entry point that Python calls, in LLVM's language: check the arguments, run the program.

`entry` has the signature of a METH_FASTCALL | METH_KEYWORDS function. It takes exactly what it can
prove safe: the right number of plain arrays of the right type, aligned, contiguous, of the right
shape for one state or all for the same number of states, and optionally `out=` of the same kind
(for several results a tuple of them), writeable. For everything else it calls its `__self__`, the
Python path. It reads fields of arrays at offsets that `call` has checked, and reaches the outside
only through the pointers of @context, which is filled when the code is loaded: no address of a
process is in the code.
"""

from chasles.backends.llvm_math import Element, Writer
from chasles.expr import Interface, Variable

CONTEXT = {
    "array_type": "",
    "out_name": "",
    "new_array": "",
    "vectorcall": "PyObject_Vectorcall",
    "increment": "Py_IncRef",
    "unwrap": "",
    "release": "PyEval_SaveThread",
    "acquire": "PyEval_RestoreThread",
    "new_tuple": "PyTuple_New",
    "set_item": "PyTuple_SetItem",
    "tuple_type": "",
}
"""What @context points to, in order: Python's functions, and those that `llvm` fills in:
numpy.ndarray, the interned string "out", PyArray_New, PyArray_Return, and the type of tuples."""

HEAD, TUPLE = object.__basicsize__, tuple.__basicsize__
DATA, RANK, SHAPE, DESCR, FLAGS = (HEAD + k for k in (0, 8, 16, 40, 48))
ORDER, TYPE = HEAD + 10, HEAD + 12
"""Where an array keeps its data, number of axes, shape, element type and flags, and where an
element type keeps its byte order and number."""

LAYOUT = (HEAD, TUPLE)
"""What the code assumes of this build of Python."""

PLAIN = 0x0001 | 0x0100
"""C-contiguous and aligned."""
WRITEABLE = 0x0400

SMALL_WORKSPACE = 64 * 1024
"""Bytes of workspace that a batch may have on the stack; larger ones go to the Python path."""


def entry(program: Interface, element: Element, *, workspace: int, most: int) -> str:
    """The function `entry`. Several outputs come as a tuple of new arrays.

    workspace: bytes that `batch` needs. most: the largest batch it takes (larger ones are for the
    Python path, which shares them among threads).
    """
    batches = workspace <= SMALL_WORKSPACE and bool(program.inputs)
    written = _Entry(program, element, most if batches else 0).write()
    if not batches:
        return written
    return written + _run_batch(program, element, workspace) + _none_zero(element)


Span = tuple[str, int]
"""Where numbers start in memory, and how many there are for each state."""


class _Entry(Writer):
    """Writes chains of checks; each check leads on or to the slow path."""

    def __init__(self, program: Interface, element: Element, most: int) -> None:
        super().__init__(1, False, element)
        self.program, self.most, self.steps = program, most, 0
        self.results = program.outputs
        self.one = len(program.outputs) == 1

    # Words of the language ---------------------------------------------------------------------

    def require(self, condition: str) -> None:
        self.steps += 1
        self.raw(f"  br i1 {condition}, label %ok{self.steps}, label %slow\nok{self.steps}:")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.raw(f"  br i1 {condition}, label %{yes}, label %{no}\n{yes}:")

    def equal(self, kind: str, a: str, b: str | int) -> None:
        self.require(self.emit(f"icmp eq {kind} {a}, {b}"))

    def context(self, name: str) -> str:
        return _context(self, name)

    # Checks ------------------------------------------------------------------------------------

    def array(self, item: str, variable: Variable, flags: int, count: str = "") -> str:
        """Check that an object is a plain array of a variable's shape; its data.

        With a count, an array with that many rows, each of the variable's shape.
        """
        self.equal("ptr", self.field(item, HEAD - 8, "ptr"), self.array_type)
        sizes = [count] * bool(count) + [str(size) for size in variable.shape]
        self.equal("i32", self.field(item, RANK, "i32"), len(sizes))
        shape = self.field(item, SHAPE, "ptr")
        for k, size in enumerate(sizes):
            self.equal("i64", self.field(shape, 8 * k, "i64"), size)
        has = self.emit(f"and i32 {self.field(item, FLAGS, 'i32')}, {flags}")
        self.equal("i32", has, flags)
        descr = self.field(item, DESCR, "ptr")
        self.equal("i32", self.field(descr, TYPE, "i32"), self.element.type_number)
        self.equal("i8", self.field(descr, ORDER, "i8"), ord("="))
        return self.field(item, DATA, "ptr")

    def some_nonzero(self, data: str, first: int) -> str:
        found, kind = "", self.element.name
        for k in range(first, first + 4):
            number = self.field(data, self.element.bytes * k, kind)
            nonzero = self.emit(f"fcmp une {kind} {number}, 0.0")
            found = self.emit(f"or i1 {found}, {nonzero}") if found else nonzero
        return found

    def apart(self, a: Span, b: Span, count: str, *, or_same: bool) -> None:
        """Two stretches of memory must not overlap, unless they may be exactly the same."""
        size = self.element.bytes
        ends = [
            self.at(start, self.emit(f"mul i64 {count}, {size * width}")) for start, width in (a, b)
        ]
        before = self.emit(f"icmp ule ptr {ends[0]}, {b[0]}")
        after = self.emit(f"icmp ule ptr {ends[1]}, {a[0]}")
        fine = self.emit(f"or i1 {before}, {after}")
        if or_same and a[1] == b[1]:
            fine = self.emit(f"or i1 {fine}, {self.emit(f'icmp eq ptr {a[0]}, {b[0]}')}")
        self.require(fine)

    def targets(self, inputs: list[str], count: str) -> list[str]:
        """Check what was given as `out=`, one array or a tuple of them; their data.

        All are apart from each other and from the inputs; but a batch with one result may be
        exactly an input.
        """
        given = ["%given"]
        if not self.one:
            self.equal("ptr", self.field("%given", HEAD - 8, "ptr"), self.context("tuple_type"))
            self.equal("i64", self.field("%given", HEAD, "i64"), len(self.results))
            places = range(TUPLE, TUPLE + 8 * len(self.results), 8)
            given = [self.field("%given", place, "ptr") for place in places]
        pairs = zip(given, self.results, strict=True)
        data = [self.array(item, v, PLAIN | WRITEABLE, count) for item, v in pairs]
        taken = [(p, v.size) for p, v in zip(inputs, self.program.inputs, strict=True)]
        made = [(p, v.size) for p, v in zip(data, self.results, strict=True)]
        for k, span in enumerate(made):
            for other in taken:
                self.apart(other, span, count or "1", or_same=bool(count) and self.one)
            for other in made[:k]:
                self.apart(other, span, count or "1", or_same=False)
        return data

    # The function ------------------------------------------------------------------------------

    def write(self) -> str:
        n = len(self.program.inputs)
        self.equal("i64", "%nargs", n)
        self.array_type = self.context("array_type")
        self.items = [self.field("%args", 8 * k, "ptr") for k in range(n)]
        bare = self.emit("icmp eq ptr %kwnames, null")
        self.raw(f"  br i1 {bare}, label %plain, label %named\nnamed:")
        self.equal("i64", self.field("%kwnames", HEAD, "i64"), 1)
        self.equal("ptr", self.field("%kwnames", TUPLE, "ptr"), self.context("out_name"))
        given = self.field("%args", 8 * n, "ptr")
        self.raw("  br label %whole_named\nwhole_named:\n  br label %count\nplain:")
        self.raw("  br label %count\ncount:")
        self.raw(f"  %given = phi ptr [ {given}, %whole_named ], [ null, %plain ]")
        self.raw("  %made = icmp eq ptr %given, null")
        if self.most:
            first = self.items[0]
            self.equal("ptr", self.field(first, HEAD - 8, "ptr"), self.array_type)
            rank = self.field(first, RANK, "i32")
            single = self.emit(f"icmp eq i32 {rank}, {len(self.program.inputs[0].shape)}")
            self.branch(single, "single", "several")
        self._states()
        if self.most:
            self.raw("several:")
            self.equal("i32", rank, len(self.program.inputs[0].shape) + 1)
            count = self.field(self.field(first, SHAPE, "ptr"), 0, "i64")
            some = self.emit(f"sub i64 {count}, 1")
            self.require(self.emit(f"icmp ult i64 {some}, {self.most}"))
            self._states(count)
        self.raw("slow:")
        operands = "ptr %self, ptr %args, i64 %nargs, ptr %kwnames"
        answer = self.emit(f"call ptr {self.context('vectorcall')}({operands})")
        self.raw(f"  ret ptr {answer}")
        head = [
            "@context = external global ptr",
            *(_shape(k, result) for k, result in enumerate(self.results)),
            "define ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {\nentry:",
        ]
        return "\n".join([*head, *self.reserved, *self.lines, "}\n"])

    def _states(self, count: str = "") -> None:
        """One state; or a batch, for which all arrays have the same number of rows."""
        suffix = "_batch" if count else ""
        pairs = zip(self.items, self.program.inputs, strict=True)
        data = [self.array(item, v, PLAIN, count) for item, v in pairs]
        for k, first in self.program.nonzero:
            self.require(self._fine(k, data[k], first, count))
        shapes = [self._sizes(k, v, count) for k, v in enumerate(self.results)]
        self.branch("%made", f"make{suffix}", f"fill{suffix}")
        made, answer = self._new(shapes, f"make{suffix}")
        self._run(count, data, [self.field(array, DATA, "ptr") for array in made])
        for k, result in enumerate(self.results):
            if not count and not result.shape:
                made[k] = self.emit(f"call ptr {self.context('unwrap')}(ptr {made[k]})")
        for k, item in enumerate(made if answer else ()):
            operands = f"ptr {answer}, i64 {k}, ptr {item}"
            self.emit(f"call i32 {self.context('set_item')}({operands})")
        self.raw(f"  ret ptr {answer or made[0]}")
        self.raw(f"fill{suffix}:")
        self._run(count, data, self.targets(data, count))
        self.raw(f"  call void {self.context('increment')}(ptr %given)")
        self.raw("  ret ptr %given")

    def _fine(self, k: int, data: str, first: int, count: str) -> str:
        """Whether a quaternion is not zero, or the first numbers of all are not."""
        if not count:
            return self.some_nonzero(data, first)
        start = self.at(data, self.element.bytes * first)
        step = self.element.bytes * self.program.inputs[k].size
        return self.emit(f"call i1 @none_zero(ptr {start}, i64 {step}, i64 {count})")

    def _sizes(self, k: int, result: Variable, count: str) -> tuple[str, int]:
        """Where the shape of a new array is, and its length."""
        if not count:
            return f"@shape{k}", len(result.shape)
        sizes = self.room(len(result.shape) + 1, "i64")
        for axis, size in enumerate([count, *result.shape]):
            self.store(sizes, 8 * axis, f"i64 {size}")
        return sizes, len(result.shape) + 1

    def _run(self, count: str, data: list[str], targets: list[str]) -> None:
        pointers = ", ".join(f"ptr {p}" for p in [*data, *targets])
        call = f"@run_batch(i64 {count}, " if count else "@run("
        self.raw(f"  call void {call}{pointers})")

    def _new(self, shapes: list[tuple[str, int]], label: str) -> tuple[list[str], str]:
        """New arrays, and for several of them a tuple that will hold them.

        Where there is no memory, the exception is set already: return nothing. (What was made
        before is then lost: the process has run out of memory.)
        """
        made, answer = [], ""
        if not self.one:
            call = f"call ptr {self.context('new_tuple')}(i64 {len(shapes)})"
            answer = self._checked(call, f"{label}_tuple")
        for k, (shape, rank) in enumerate(shapes):
            call = (
                f"call ptr {self.context('new_array')}(ptr {self.array_type}, i32 {rank}, "
                f"ptr {shape}, i32 {self.element.type_number}, ptr null, ptr null, i32 0, i32 0, "
                "ptr null)"
            )
            made.append(self._checked(call, f"{label}{k}"))
        return made, answer

    def _checked(self, call: str, label: str) -> str:
        made = self.emit(call)
        failed = self.emit(f"icmp eq ptr {made}, null")
        self.raw(f"  br i1 {failed}, label %{label}_fail, label %{label}_run")
        self.raw(f"{label}_fail:\n  ret ptr null\n{label}_run:")
        return made


def _context(w: Writer, name: str) -> str:
    return w.field("@context", 8 * list(CONTEXT).index(name), "ptr")


def filled_tables(w: Writer, arrays: list[tuple[str, str]]) -> tuple[str, str]:
    """Tables on the stack of arrays, as `batch` takes them: where rows start, and their strides."""
    places, steps = w.room(len(arrays), "ptr"), w.room(len(arrays), "i64")
    for k, (place, step) in enumerate(arrays):
        w.store(places, 8 * k, place)
        w.store(steps, 8 * k, step)
    return places, steps


def _shape(k: int, result: Variable) -> str:
    sizes = ", ".join(f"i64 {size}" for size in result.shape) or "i64 0"
    return f"@shape{k} = internal constant [{max(len(result.shape), 1)} x i64] [{sizes}]"


def _none_zero(element: Element) -> str:
    """Whether none of `count` numbers, `step` bytes apart, is zero.

    For first entries of quaternions: if one is zero, the Python path looks at the others.
    """
    return f"""define internal i1 @none_zero(ptr %start, i64 %step, i64 %count) noinline {{
entry:
  br label %loop
loop:
  %place = phi ptr [ %start, %entry ], [ %next, %loop ]
  %left = phi i64 [ %count, %entry ], [ %fewer, %loop ]
  %before = phi i1 [ true, %entry ], [ %all, %loop ]
  %number = load {element.name}, ptr %place
  %fine = fcmp une {element.name} %number, 0.0
  %all = and i1 %before, %fine
  %next = getelementptr i8, ptr %place, i64 %step
  %fewer = sub i64 %left, 1
  %more = icmp sgt i64 %fewer, 0
  br i1 %more, label %loop, label %end
end:
  ret i1 %all
}}
"""


def _run_batch(program: Interface, element: Element, workspace: int) -> str:
    """Run a batch of contiguous rows, without holding Python's lock."""
    w = Writer(1, False)
    sides = (("in", program.inputs), ("out", program.outputs))
    names = [[f"%{role}{k}" for k in range(len(variables))] for role, variables in sides]
    tables: list[str] = []
    for pointers, (_, variables) in zip(names, sides, strict=True):
        steps = [f"i64 {element.bytes * v.size}" for v in variables]
        tables += filled_tables(w, [(f"ptr {p}", s) for p, s in zip(pointers, steps, strict=True)])
    w.reserved.append(f"  %workspace = alloca [{max(workspace, 1)} x i8], align 64")
    functions = [_context(w, name) for name in ("release", "acquire")]
    state = w.emit(f"call ptr {functions[0]}()")
    operands = ", ".join(f"ptr {table}" for table in tables)
    w.raw(f"  call void @batch(i64 %count, {operands}, ptr %workspace)")
    w.raw(f"  call void {functions[1]}(ptr {state})")
    parameters = ", ".join(f"ptr {name}" for name in [*names[0], *names[1]])
    return w.function(f"internal void @run_batch(i64 %count, {parameters}) noinline")
