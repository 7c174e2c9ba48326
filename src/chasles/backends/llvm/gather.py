"""LLVM IR code that copies values from Python and NumPy objects for `llvm.entry`.

The values come from lists and tuples of floats and integers, and from arrays that are not
C-contiguous or have a different dtype. Methods of user-defined types are never called, because
types must match exactly.
"""

import ctypes

from chasles.backends.llvm.routine import Routine
from chasles.backends.objects import CONTEXT, HEAD, LIST, TUPLE, WAY

NUMBERS = {12: "double", 11: "float", 9: "i64", 7: f"i{8 * ctypes.sizeof(ctypes.c_long)}", 5: "i32"}
"""Element types that can be read: NumPy's type numbers, and the types' names in LLVM."""

ELEMENTS = ("double", "float")
"""Element types of kernels, indexed by the word `element` of a call descriptor."""


def context(w: Routine, name: str) -> str:
    """Emit code that loads an entry of the table @context (`objects.CONTEXT`)."""
    return w.field("@context", 8 * list(CONTEXT).index(name), "ptr")


def word(w: Routine, name: str, kind: str = "i64", base: str = "%way") -> str:
    """Emit code that loads a field of a call descriptor (`objects.WAY`)."""
    return w.field(base, 8 * WAY.index(name), kind)


def kind_of(w: Routine, item: str) -> str:
    """Emit code that loads the type of a Python object."""
    return w.field(item, HEAD - 8, "ptr")


def number() -> str:
    """Generate a function that converts a float or an integer to a double, or returns false.

    The function accepts Python's float and int and NumPy's float64, and stores the double in
    %value.
    """
    w = Routine("internal i1 @number(ptr %item, ptr %value)")
    kind = kind_of(w, "%item")
    floats = [w.same(kind, context(w, name)) for name in ("float_type", "float64_type")]
    with w.when(w.either(*floats)):
        w.set("%value", f"double {w.field('%item', HEAD, 'double')}")
        w.answer("i1 true")
    with w.when(w.opposite(w.same(kind, context(w, "int_type")))):
        w.answer("i1 false")
    whole = w.called("double", context(w, "as_double"), "ptr %item")
    w.set("%value", f"double {whole}")
    with w.when(w.emit(f"fcmp one double {whole}, -1.0")):
        w.answer("i1 true")
    with w.when(w.is_null(w.called("ptr", context(w, "failed")))):
        w.answer("i1 true")
    w.do(context(w, "clear"))
    w.answer("i1 false")
    return w.finished()


def sequence() -> str:
    """Generate a function that copies a list or tuple of %size numbers to %to.

    The function returns false if %item is not a list or tuple of %size numbers.
    """
    w = Routine("internal i1 @sequence(ptr %item, i64 %size, ptr %to, i64 %element)")
    kind, items, value = kind_of(w, "%item"), w.variable("ptr", "null"), w.room(1, "double")
    with w.when(w.same(kind, context(w, "list_type"))):
        w.set(items, f"ptr {w.field('%item', LIST, 'ptr')}")
    with w.when(w.same(kind, context(w, "tuple_type"))):
        w.set(items, f"ptr {w.at('%item', TUPLE)}")
    listed = w.either(w.same(kind, context(w, "list_type")), w.same(kind, context(w, "tuple_type")))
    with w.when(w.opposite(listed)):
        w.answer("i1 false")
    with w.when(w.compare("ne", w.field("%item", HEAD, "i64"), "%size")):
        w.answer("i1 false")
    first = w.get(items, "ptr")
    with w.each("%size") as (k, _):
        each = w.entry_of(first, k, "ptr")
        with w.when(w.opposite(w.called("i1", "@number", f"ptr {each}", f"ptr {value}"))):
            w.answer("i1 false")
        put_number(w, "%to", k, w.get(value, "double"), "%element")
    w.answer("i1 true")
    return w.finished()


def put_number(w: Routine, to: str, k: str, value: str, element: str) -> None:
    """Emit code that stores a double in an array, converted to the array's element type."""
    short, after = w.compare("ne", element, 0), w.label()
    with w.when(short, go=after):
        w.put(to, k, "float", w.emit(f"fptrunc double {value} to float"))
    w.put(to, k, "double", value)
    w.start(after)


def copied() -> list[str]:
    """Generate LLVM IR for functions that copy an array with any strides to a contiguous array.

    There is one function for each pair of input and output types. The function `copied` in LLVM IR
    calls the right one, or returns false if the types are not supported.
    """
    texts = []
    w = Routine(
        "internal i1 @copied(i32 %number, ptr %from, i64 %rows, i64 %row, i64 %size, i64 %step,"
        " ptr %to, i64 %element)"
    )
    operands = "ptr %from", "i64 %rows", "i64 %row", "i64 %size", "i64 %step", "ptr %to"
    for n, element in enumerate(ELEMENTS):
        for k, kind in NUMBERS.items():
            texts.append(_copy(f"copy{n}_{k}", kind, element))
            right = w.both(w.compare("eq", "%number", k, "i32"), w.compare("eq", "%element", n))
            with w.when(right):
                w.do(f"@copy{n}_{k}", *operands)
                w.answer("i1 true")
    w.answer("i1 false")
    return [*texts, w.finished()]


def _copy(name: str, kind: str, element: str) -> str:
    w = Routine(
        f"internal void @{name}(ptr %from, i64 %rows, i64 %row, i64 %size, i64 %step, ptr %to)"
    )
    with w.each("%rows") as (i, _):
        start = w.at("%from", w.times(i, "%row"))
        goal = w.at("%to", w.times(i, "%size"), element)
        with w.each("%size") as (k, _):
            value = w.get(w.at(start, w.times(k, "%step")), kind)
            if kind != element:
                operation = "fpext" if element == "double" else "fptrunc"
                operation = "sitofp" if kind.startswith("i") else operation
                value = w.emit(f"{operation} {kind} {value} to {element}")
            w.put(goal, k, element, value)
    w.answer("void")
    return w.finished()
