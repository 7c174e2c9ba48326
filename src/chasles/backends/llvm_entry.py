"""The entry point that Python calls, in LLVM's language: check the arguments, run the program.

`entry` has the signature of a METH_FASTCALL | METH_KEYWORDS function. It takes exactly what it can
prove safe: the right number of plain arrays of doubles, aligned, contiguous, of the right shape,
and optionally `out=` of the same kind and writeable. Everything else goes to the Python path.
It reads fields of arrays at offsets that `call.probe` has checked, and reaches the outside only
through the pointers of @context, which is filled when the code is loaded: no address of a process
is in the code.
"""

from chasles.backends.llvm_math import Writer
from chasles.expr import Interface, Variable

CONTEXT = ("array_type", "fallback", "out_name", "new_array", "vectorcall", "increment", "unwrap")
"""What @context points to, in order: numpy.ndarray, the Python path, the interned "out", and the
functions PyArray_New, PyObject_Vectorcall, Py_IncRef, PyArray_Return."""

HEAD, TUPLE = object.__basicsize__, tuple.__basicsize__
DATA, RANK, SHAPE, DESCR, FLAGS = (HEAD + k for k in (0, 8, 16, 40, 48))
ORDER, TYPE = HEAD + 10, HEAD + 12
"""Where an array keeps its data, number of axes, shape, element type and flags, and where an
element type keeps its byte order and number."""

LAYOUT = (HEAD, TUPLE)
"""What the code assumes of this build of Python."""

DOUBLE = 12
PLAIN = 0x0001 | 0x0100
"""C-contiguous and aligned."""
WRITEABLE = 0x0400


def entry(program: Interface) -> str:
    """The function `entry`, for programs with one output."""
    return _Entry(program).write()


class _Entry:
    """Writes a chain of checks; each leads on or to the slow path."""

    def __init__(self, program: Interface) -> None:
        self.program = program
        self.w = Writer(1, False)
        self.steps = 0

    def require(self, condition: str) -> None:
        self.steps += 1
        self.w.raw(f"  br i1 {condition}, label %ok{self.steps}, label %slow\nok{self.steps}:")

    def field(self, base: str, offset: int, kind: str) -> str:
        place = self.w.emit(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.w.emit(f"load {kind}, ptr {place}")

    def equal(self, kind: str, a: str, b: str | int) -> None:
        self.require(self.w.emit(f"icmp eq {kind} {a}, {b}"))

    def context(self, name: str) -> str:
        index = CONTEXT.index(name)
        place = self.w.emit(f"getelementptr ptr, ptr @context, i64 {index}")
        return self.w.emit(f"load ptr, ptr {place}")

    def array(self, item: str, variable: Variable, flags: int) -> str:
        """Check that an object is a plain array of a variable's shape; its data."""
        self.equal("ptr", self.field(item, HEAD - 8, "ptr"), self.array_type)
        self.equal("i32", self.field(item, RANK, "i32"), len(variable.shape))
        shape = self.field(item, SHAPE, "ptr")
        for k, size in enumerate(variable.shape):
            self.equal("i64", self.field(shape, 8 * k, "i64"), size)
        has = self.w.emit(f"and i32 {self.field(item, FLAGS, 'i32')}, {flags}")
        self.equal("i32", has, flags)
        descr = self.field(item, DESCR, "ptr")
        self.equal("i32", self.field(descr, TYPE, "i32"), DOUBLE)
        self.equal("i8", self.field(descr, ORDER, "i8"), ord("="))
        return self.field(item, DATA, "ptr")

    def write(self) -> str:
        w, program = self.w, self.program
        n, result = len(program.inputs), program.outputs[0]
        self.equal("i64", "%nargs", n)
        self.array_type = self.context("array_type")
        items = []
        for k in range(n):
            place = w.emit(f"getelementptr ptr, ptr %args, i64 {k}")
            items.append(w.emit(f"load ptr, ptr {place}"))
        data = [self.array(item, v, PLAIN) for item, v in zip(items, program.inputs, strict=True)]
        for k, first in program.nonzero:
            self.require(self._some_nonzero(data[k], first))
        bare = w.emit("icmp eq ptr %kwnames, null")
        w.raw(f"  br i1 {bare}, label %make, label %named\nnamed:")
        self.equal("i64", self.field("%kwnames", HEAD, "i64"), 1)
        self.equal("ptr", self.field("%kwnames", TUPLE, "ptr"), self.context("out_name"))
        place = w.emit(f"getelementptr ptr, ptr %args, i64 {n}")
        given = w.emit(f"load ptr, ptr {place}")
        target = self.array(given, result, PLAIN | WRITEABLE)
        self._run(data, target)
        w.raw(f"  call void {self.context('increment')}(ptr {given})")
        w.raw(f"  ret ptr {given}\nmake:")
        made = w.emit(
            f"call ptr {self.context('new_array')}(ptr {self.array_type}, i32 {len(result.shape)}, "
            f"ptr @shape, i32 {DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null)"
        )
        failed = w.emit(f"icmp eq ptr {made}, null")
        w.raw(f"  br i1 {failed}, label %fail, label %fill\nfail:\n  ret ptr null\nfill:")
        self._run(data, self.field(made, DATA, "ptr"))
        if result.shape:
            w.raw(f"  ret ptr {made}")
        else:
            bare_number = w.emit(f"call ptr {self.context('unwrap')}(ptr {made})")
            w.raw(f"  ret ptr {bare_number}")
        w.raw("slow:")
        operands = f"ptr {self.context('fallback')}, ptr %args, i64 %nargs, ptr %kwnames"
        answer = w.emit(f"call ptr {self.context('vectorcall')}({operands})")
        w.raw(f"  ret ptr {answer}")
        sizes = ", ".join(f"i64 {size}" for size in result.shape) or "i64 0"
        head = [
            "@context = external global ptr",
            f"@shape = internal constant [{max(len(result.shape), 1)} x i64] [{sizes}]",
            "define ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {\nentry:",
        ]
        return "\n".join([*head, *w.lines, "}\n"])

    def _some_nonzero(self, data: str, first: int) -> str:
        w = self.w
        found = ""
        for k in range(first, first + 4):
            place = w.emit(f"getelementptr double, ptr {data}, i64 {k}")
            number = w.emit(f"load double, ptr {place}")
            nonzero = w.emit(f"fcmp une double {number}, 0.0")
            found = w.emit(f"or i1 {found}, {nonzero}") if found else nonzero
        return found

    def _run(self, data: list[str], target: str) -> None:
        pointers = ", ".join(f"ptr {p}" for p in [*data, target])
        self.w.raw(f"  call void @run({pointers})")
