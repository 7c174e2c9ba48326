"""LLVM IR code that checks the arguments of a call and gathers them for a kernel.

If the code does not handle an argument, Python code handles the call.
"""

import functools

from chasles.backends.llvm.gather import NUMBERS, context, kind_of, put_number, word
from chasles.backends.llvm.routine import Routine
from chasles.backends.objects import (
    ALIGNED,
    DATA,
    DESCR,
    FLAGS,
    MOST_RANK,
    ORDER,
    PLAIN,
    RANK,
    SHAPE,
    STRIDES,
    TYPE,
    UNBOUNDED,
    VARIABLE,
    WAY,
)


class Variable:
    """An input or output of a kernel in a call descriptor (fields as in `objects.VARIABLE`)."""

    def __init__(self, w: Routine, k: str) -> None:
        record = w.at(w.at("%way", 8 * len(WAY)), w.times(k, 8 * VARIABLE))
        words = (w.field(record, 8 * n, "i64") for n in range(4))
        self.size, self.rank, self.near, self.span = words
        self.shape = w.at(record, 32)


class Array:
    """LLVM values with the fields of a NumPy array (rank, shape, strides, ...)."""

    def __init__(self, w: Routine, item: str) -> None:
        self.rank = w.emit(f"sext i32 {w.field(item, RANK, 'i32')} to i64")
        self.shape, self.strides = (w.field(item, k, "ptr") for k in (SHAPE, STRIDES))
        self.flags = w.field(item, FLAGS, "i32")
        self.dtype = w.field(item, DESCR, "ptr")
        self.data = w.field(item, DATA, "ptr")

    def has(self, w: Routine, flags: int | str) -> str:
        return w.compare("eq", w.emit(f"and i32 {self.flags}, {flags}"), flags, "i32")

    def check(self, w: Routine, number: str, otherwise: str) -> None:
        """Emit a branch to `otherwise` unless elements have the given type in native byte order."""
        w.leave(w.compare("ne", w.field(self.dtype, TYPE, "i32"), number, "i32"), otherwise)
        w.leave(w.compare("ne", w.field(self.dtype, ORDER, "i8"), ord("="), "i8"), otherwise)


def equal_sizes(w: Routine, a: str, b: str, count: str, otherwise: str) -> None:
    """Emit code that branches to `otherwise` if the first `count` sizes of two shapes differ."""
    with w.each(count) as (k, _):
        w.leave(w.compare("ne", w.entry_of(a, k, "i64"), w.entry_of(b, k, "i64")), otherwise)


def _item_size(w: Routine, number: str) -> str:
    """Emit code that computes the size (bytes) of an element from NumPy's type number."""
    short = [k for k, kind in NUMBERS.items() if kind in ("float", "i32")]
    found = "false"
    for k in short:
        found = w.either(found, w.compare("eq", number, k, "i32"))
    return w.pick(found, "4", "8")


def plain() -> str:
    """Generate a function that returns the data address of an argument for one state, or null.

    The function handles arrays with the kernel's shape, dtype (NumPy's type number %number) and
    memory layout (%flags); `prepared` handles all other arguments.
    """
    w = Routine(
        "internal ptr @plain(ptr %way, i32 %number, i64 %k, ptr %item, i32 %flags) alwaysinline"
    )
    no = w.label()
    w.leave(w.opposite(w.same(kind_of(w, "%item"), context(w, "array_type"))), no)
    variable, array = Variable(w, "%k"), Array(w, "%item")
    w.leave(w.opposite(array.has(w, "%flags")), no)
    w.leave(w.compare("ne", array.rank, variable.rank), no)
    array.check(w, "%number", no)
    equal_sizes(w, array.shape, variable.shape, variable.rank, no)
    w.answer(f"ptr {array.data}")
    w.start(no)
    w.answer("ptr null")
    return w.finished()


def prepared() -> str:
    """Generate a function that finds the address and the row stride (bytes) of an argument.

    The function stores them in %data and %stride.

    %lead, %dims, %count: the number of leading axes of the batch, their sizes, and the product of
    the sizes. For one state, %lead is 0, %count is 1, and %dims is not used. Elements that must be
    copied are written to the memory at %room, and %room is advanced past them.
    """
    w = Routine(
        "internal i1 @prepared(ptr %way, i64 %k, ptr %item, i64 %lead, ptr %dims, i64 %count,"
        " ptr %room, ptr %data, ptr %stride) noinline"
    )
    no, other, whole = w.label(), w.label(), w.label()
    variable, bytes_ = Variable(w, "%k"), word(w, "bytes")
    element = word(w, "element")
    row = w.times(variable.size, bytes_)
    room = w.get("%room", "ptr")
    w.set("%stride", "i64 0")
    w.leave(w.opposite(w.same(kind_of(w, "%item"), context(w, "array_type"))), other)
    array = Array(w, "%item")
    ahead = w.minus(array.rank, variable.rank)
    shared = w.compare("eq", ahead, 0)
    w.leave(w.opposite(w.either(shared, w.compare("eq", ahead, "%lead"))), no)
    w.leave(w.opposite(array.has(w, ALIGNED)), no)
    number = w.field(array.dtype, TYPE, "i32")
    array.check(w, number, no)
    inner = w.at(array.shape, ahead, "i64")
    equal_sizes(w, inner, variable.shape, variable.rank, no)
    # Find the number and stride of the rows, and of the elements in each row.
    right = w.compare("eq", number, word(w, "number", "i32"), "i32")
    plain = w.both(right, array.has(w, PLAIN))
    spread = w.variable("i64", row)
    rows = w.variable("i64", "%count")
    with w.when(shared):
        w.set(spread, "i64 0")
        w.set(rows, "i64 1")
    one_axis = w.both(w.compare("eq", ahead, 1), w.compare("eq", "%lead", 1))
    differs, further = w.variable("i1", "false"), w.label()
    with w.each(w.pick(shared, "0", ahead)) as (k, _):
        size, wanted = w.entry_of(array.shape, k, "i64"), w.entry_of("%dims", k, "i64")
        with w.when(w.compare("ne", size, wanted)):
            w.leave(w.opposite(w.both(one_axis, w.compare("eq", size, 1))), no)
            w.set(differs, "i1 true")
    with w.when(w.get(differs, "i1")):  # one row is broadcast to all states
        w.set(spread, "i64 0")
        w.set(rows, "i64 1")
    with w.when(plain):
        w.set("%data", f"ptr {array.data}")
        w.set("%stride", f"i64 {w.get(spread)}")
        w.answer("i1 true")
    # Copy an array that is not C-contiguous or has a different dtype.
    flat = array.has(w, PLAIN)
    step, jump, size = (w.variable("i64", "0") for _ in range(3))
    with w.when(flat, go=whole):  # only the dtype differs: copy as one row
        w.set(size, f"i64 {w.times(w.get(rows), variable.size)}")
        w.set(rows, "i64 1")
        w.set(step, f"i64 {_item_size(w, number)}")
    w.leave(w.compare("sgt", array.rank, 2), no)
    w.leave(w.compare("sgt", ahead, 1), no)
    w.set(size, f"i64 {variable.size}")
    vectors = w.compare("eq", variable.rank, 1)
    with w.when(vectors):
        w.set(step, f"i64 {w.entry_of(array.strides, ahead, 'i64')}")
    with w.when(w.compare("eq", ahead, 1)):
        w.set(jump, f"i64 {w.entry_of(array.strides, '0', 'i64')}")
    matrix = w.compare("eq", variable.rank, 2)
    with w.when(matrix):
        w.set(rows, f"i64 {w.entry_of(array.shape, '0', 'i64')}")
        w.set(size, f"i64 {w.entry_of(array.shape, '1', 'i64')}")
        w.set(jump, f"i64 {w.entry_of(array.strides, '0', 'i64')}")
        w.set(step, f"i64 {w.entry_of(array.strides, '1', 'i64')}")
    # Contiguous rows are read in place.
    straight = w.either(w.compare("eq", w.get(step), bytes_), w.compare("sle", variable.size, 1))
    straight = w.both(w.both(straight, right), w.opposite(matrix))
    with w.when(straight):
        w.set("%data", f"ptr {array.data}")
        steady = w.either(shared, w.get(differs, "i1"))
        w.set("%stride", f"i64 {w.pick(steady, '0', w.get(jump))}")
        w.answer("i1 true")
    w.start(whole)
    w.leave(w.is_null(room), no)
    operands = [f"i32 {number}", f"ptr {array.data}", f"i64 {w.get(rows)}"]
    operands += [f"i64 {w.get(jump)}", f"i64 {w.get(size)}", f"i64 {w.get(step)}"]
    done = w.called("i1", "@copied", *operands, f"ptr {room}", f"i64 {element}")
    w.leave(w.opposite(done), no)
    w.set("%data", f"ptr {room}")
    w.set("%stride", f"i64 {w.get(spread)}")
    used = w.times(w.times(w.get(rows), w.get(size)), bytes_)
    w.set("%room", f"ptr {w.at(room, used)}")
    w.answer("i1 true")
    # A list or tuple (or a number, for a scalar variable) has the same value for all states.
    w.start(other)
    w.leave(w.is_null(room), no)
    with w.when(w.compare("eq", variable.rank, 0), go=further):
        value = w.variable("double", "0.0")
        w.leave(w.opposite(w.called("i1", "@number", "ptr %item", f"ptr {value}")), no)
        put_number(w, room, "0", w.get(value, "double"), element)
    w.leave(w.compare("ne", variable.rank, 1), no)
    operands = ["ptr %item", f"i64 {variable.size}", f"ptr {room}", f"i64 {element}"]
    w.leave(w.opposite(w.called("i1", "@sequence", *operands)), no)
    w.start(further)
    w.set("%data", f"ptr {room}")
    w.set("%room", f"ptr {w.at(room, row)}")
    w.answer("i1 true")
    w.start(no)
    w.answer("i1 false")
    return w.finished()


def batch_shape(w: Routine, no: str) -> tuple[str, str, str]:
    """Emit code that finds the number of leading axes, their sizes, and the number of states."""
    lead, dims = w.variable("i64", "0"), w.variable("ptr", "null")
    with w.each(word(w, "inputs")) as (k, further):
        item = w.entry_of("%items", k, "ptr")
        w.leave(w.opposite(w.same(kind_of(w, item), context(w, "array_type"))), further)
        rank = w.emit(f"sext i32 {w.field(item, RANK, 'i32')} to i64")
        ahead, shape = w.minus(rank, Variable(w, k).rank), w.field(item, SHAPE, "ptr")
        w.leave(w.compare("slt", ahead, w.get(lead)), further)
        w.leave(w.compare("eq", ahead, 0), further)
        # An array whose first leading size is 1 may be broadcast. Its sizes are replaced by those
        # of a later array with the same number of leading axes.
        longer = w.compare("sgt", ahead, w.get(lead))
        with w.when(w.opposite(longer)):
            now = w.entry_of(w.get(dims, "ptr"), "0", "i64")
            w.leave(w.compare("ne", now, 1), further)
        w.set(lead, f"i64 {ahead}")
        w.set(dims, f"ptr {shape}")
    axes, count = w.get(lead), w.variable("i64", "1")
    w.leave(w.compare("sgt", axes, MOST_RANK), no)
    with w.each(axes) as (k, _):
        size = w.entry_of(w.get(dims, "ptr"), k, "i64")
        w.leave(w.compare("ugt", size, UNBOUNDED), no)
        w.set(count, f"i64 {w.times(w.get(count), size)}")
        w.leave(w.compare("ugt", w.get(count), UNBOUNDED), no)
    return axes, w.get(dims, "ptr"), w.get(count)


def quaternions(w: Routine, inputs: tuple[str, str], batch: str, count: str, no: str) -> None:
    """Emit checks that branch to `no` if a quaternion may be zero.

    For one state, all four components are checked. For a batch, only the first component of each
    quaternion is checked; if it is zero, Python code checks the others.
    """
    records = word(w, "quaternions", "ptr")
    short = w.compare("ne", word(w, "element"), 0)

    def zero(place: str, count: int) -> str:
        """Emit a test that is true if `count` values at an address are all 0.0 or -0.0."""
        result, done = w.variable("i1", "false"), w.label()
        for kind, go in (("i32", done), ("i64", "")):
            with w.when(short if go else "true", go=go):
                bits = [w.entry_of(place, str(n), kind) for n in range(count)]
                every = functools.reduce(lambda a, b: w.emit(f"or {kind} {a}, {b}"), bits)
                unsigned = w.emit(f"shl {kind} {every}, 1")
                w.set(result, f"i1 {w.compare('eq', unsigned, 0, kind)}")
        w.start(done)
        return w.get(result, "i1")

    with w.each(count) as (row, _), w.each(word(w, "nonzero")) as (k, further):
        both = w.times(k, 2)
        which, first = (w.entry_of(records, n, "i64") for n in (both, w.plus(both, 1)))
        start = w.entry_of(inputs[0], which, "ptr")
        ahead = w.times(row, w.entry_of(inputs[1], which, "i64"))
        place = w.at(start, w.plus(ahead, w.times(first, word(w, "bytes"))))
        with w.when(w.opposite(batch), go=further):
            w.leave(zero(place, 4), no)
        w.leave(zero(place, 1), no)
