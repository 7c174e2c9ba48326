"""Objects of Python and NumPy as the machine code of the fast entry reads them.

Where they keep what, checked before it is relied on; how numbers are gathered from lists, tuples
and arrays that are not plain; and the built-in function around an entry.
"""

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from chasles.backends.llvm_code import Code
from chasles.backends.llvm_math import Element
from chasles.errors import StateError

Again = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""A short way for what an entry does not take: arguments and named ones to an answer, or
NotImplemented."""

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
    "list_type": "",
    "float_type": "",
    "float64_type": "",
    "int_type": "",
    "threads_name": "",
    "none": "",
    "unit": "",
    "as_double": "PyLong_AsDouble",
    "failed": "PyErr_Occurred",
    "clear": "PyErr_Clear",
}
"""What @context points to, in order: Python's functions, and those that `llvm` fills in:
numpy.ndarray, the interned strings "out" and "threads", PyArray_New, PyArray_Return, types of
Python and numpy.float64, None, and the integer 1."""

HEAD, TUPLE = object.__basicsize__, tuple.__basicsize__
DATA, RANK, SHAPE, STRIDES, DESCR, FLAGS = (HEAD + k for k in (0, 8, 16, 24, 40, 48))
ORDER, TYPE = HEAD + 10, HEAD + 12
LIST = HEAD + 8
"""Where an array keeps its data, number of axes, shape, strides, element type and flags, where an
element type keeps its byte order and number, and where a list keeps the address of its items."""

LAYOUT = (HEAD, TUPLE)
"""What the code assumes of this build of Python."""

ALIGNED = 0x0100
PLAIN = 0x0001 | ALIGNED
"""C-contiguous and aligned."""
WRITEABLE = 0x0400

NUMBERS = {12: "double", 9: "i64", 7: f"i{8 * ctypes.sizeof(ctypes.c_long)}", 5: "i32"}
"""NumPy's numbers of types of elements that are gathered, and LLVM's names of them."""


def gathered(element: Element) -> str:
    """Numbers that are not side by side, put into a buffer; null for what must go another way.

    Arrays of float32 that a program of doubles is given are not gathered: if all of them are, the
    program in single precision is meant.
    """
    place = {name: 8 * k for k, name in enumerate(CONTEXT)}
    kinds = NUMBERS | ({11: "float"} if element.name == "float" else {})

    def context(name: str) -> str:
        return (
            f"%{name}.place = getelementptr i8, ptr @context, i64 {place[name]}\n"
            f"  %{name} = load ptr, ptr %{name}.place"
        )

    def converted(kind: str, label: str) -> str:
        """A number as an element, from the name %x.label to %y.label."""
        if kind == element.name:
            return f"%y.{label} = bitcast {kind} %x.{label} to {kind}"
        operation = "sitofp" if kind.startswith("i") else "fptrunc"
        return f"%y.{label} = {operation} {kind} %x.{label} to {element.name}"

    types = ("list_type", "tuple_type", "array_type", "float_type", "float64_type", "int_type")
    loops = "".join(
        f"""
as{number}:
  %i.{number} = phi i64 [ 0, %typed ], [ %next.{number}, %do{number} ]
  %more.{number} = icmp ult i64 %i.{number}, %size
  br i1 %more.{number}, label %do{number}, label %done
do{number}:
  %step.{number} = mul i64 %i.{number}, %stride
  %from.{number} = getelementptr i8, ptr %data, i64 %step.{number}
  %x.{number} = load {kind}, ptr %from.{number}
  {converted(kind, str(number))}
  %to.{number} = getelementptr {element.name}, ptr %buffer, i64 %i.{number}
  store {element.name} %y.{number}, ptr %to.{number}
  %next.{number} = add i64 %i.{number}, 1
  br label %as{number}"""
        for number, kind in kinds.items()
    )
    cases = " ".join(f"i32 {number}, label %as{number}" for number in kinds)
    return f"""define internal ptr @gathered(ptr %item, i64 %size, ptr %buffer) noinline {{
entry:
  {chr(10).join("  " + context(name) for name in (*types, "as_double", "failed", "clear")).strip()}
  %kind.place = getelementptr i8, ptr %item, i64 {HEAD - 8}
  %kind = load ptr, ptr %kind.place
  %count.place = getelementptr i8, ptr %item, i64 {HEAD}
  %inside = getelementptr i8, ptr %item, i64 {TUPLE}
  %is_list = icmp eq ptr %kind, %list_type
  br i1 %is_list, label %list, label %no_list
list:
  %outside.place = getelementptr i8, ptr %item, i64 {LIST}
  %outside = load ptr, ptr %outside.place
  br label %sequence
no_list:
  %is_tuple = icmp eq ptr %kind, %tuple_type
  br i1 %is_tuple, label %sequence, label %no_tuple
sequence:
  %items = phi ptr [ %outside, %list ], [ %inside, %no_list ]
  %count = load i64, ptr %count.place
  %fits = icmp eq i64 %count, %size
  br i1 %fits, label %each, label %fail
each:
  %i = phi i64 [ 0, %sequence ], [ %next, %stored ]
  %more = icmp ult i64 %i, %size
  br i1 %more, label %one, label %done
one:
  %number.place = getelementptr ptr, ptr %items, i64 %i
  %number = load ptr, ptr %number.place
  %type.place = getelementptr i8, ptr %number, i64 {HEAD - 8}
  %type = load ptr, ptr %type.place
  %is_float = icmp eq ptr %type, %float_type
  %is_float64 = icmp eq ptr %type, %float64_type
  %is_number = or i1 %is_float, %is_float64
  br i1 %is_number, label %float, label %no_float
float:
  %value.place = getelementptr i8, ptr %number, i64 {HEAD}
  %value = load double, ptr %value.place
  br label %stored
no_float:
  %is_int = icmp eq ptr %type, %int_type
  br i1 %is_int, label %int, label %fail
int:
  %whole = call double %as_double(ptr %number)
  %doubtful = fcmp oeq double %whole, -1.0
  br i1 %doubtful, label %asking, label %stored
asking:
  %error = call ptr %failed()
  %too_large = icmp ne ptr %error, null
  br i1 %too_large, label %clearing, label %stored
clearing:
  call void %clear()
  br label %fail
stored:
  %x.seq = phi double [ %value, %float ], [ %whole, %int ], [ %whole, %asking ]
  {converted("double", "seq")}
  %to = getelementptr {element.name}, ptr %buffer, i64 %i
  store {element.name} %y.seq, ptr %to
  %next = add i64 %i, 1
  br label %each
no_tuple:
  %is_array = icmp eq ptr %kind, %array_type
  br i1 %is_array, label %array, label %fail
array:
  %rank.place = getelementptr i8, ptr %item, i64 {RANK}
  %rank = load i32, ptr %rank.place
  %flags.place = getelementptr i8, ptr %item, i64 {FLAGS}
  %flags = load i32, ptr %flags.place
  %aligned = and i32 %flags, {ALIGNED}
  %is_aligned = icmp ne i32 %aligned, 0
  %is_row = icmp eq i32 %rank, 1
  %readable = and i1 %is_aligned, %is_row
  br i1 %readable, label %row, label %fail
row:
  %shape.place = getelementptr i8, ptr %item, i64 {SHAPE}
  %shape = load ptr, ptr %shape.place
  %length = load i64, ptr %shape
  %long = icmp eq i64 %length, %size
  %descr.place = getelementptr i8, ptr %item, i64 {DESCR}
  %descr = load ptr, ptr %descr.place
  %order.place = getelementptr i8, ptr %descr, i64 {ORDER}
  %order = load i8, ptr %order.place
  %native = icmp eq i8 %order, {ord("=")}
  %right = and i1 %long, %native
  br i1 %right, label %typed, label %fail
typed:
  %strides.place = getelementptr i8, ptr %item, i64 {STRIDES}
  %strides = load ptr, ptr %strides.place
  %stride = load i64, ptr %strides
  %data.place = getelementptr i8, ptr %item, i64 {DATA}
  %data = load ptr, ptr %data.place
  %typenumber.place = getelementptr i8, ptr %descr, i64 {TYPE}
  %typenumber = load i32, ptr %typenumber.place
  switch i32 %typenumber, label %fail [ {cases} ]{loops}
done:
  ret ptr %buffer
fail:
  ret ptr null
}}
"""


def at_address(function: Any) -> int:
    """The address of a C function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def address(a: np.ndarray) -> int:
    """Where an array's first number is."""
    return a.__array_interface__["data"][0]


_FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002
_ARRAY_TYPE, _ARRAY_RETURN, _ARRAY_NEW = 2, 76, 93
"""Places in NumPy's table of C functions, fixed since its first version."""


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Owner(tuple[Code]):
    """What an entry belongs to, its `__self__`: called for whatever the machine code does not take.

    It is a tuple, whose one item, the code, the garbage collector cannot take out as long as the
    entry is there; all else is in its dictionary, which may be emptied. fallback: the Python path.
    again: tried before it, on arguments and named ones; NotImplemented where it does not help.
    holder: where a pickled entry is found again, by name.
    """

    holder: Any
    name: str
    fallback: Callable[..., Any] | None
    again: Again | None

    def __new__(
        cls,
        code: Code | None,
        holder: Any,
        name: str,
        fallback: Callable[..., Any] | None = None,
        again: Again | None = None,
    ) -> "Owner":
        made = super().__new__(cls, () if code is None else (code,))
        made.holder, made.name, made.fallback, made.again = holder, name, fallback, again
        return made

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        again = self.__dict__.get("again")
        if again is not None:
            answer = again(arguments, named)
            if answer is not NotImplemented:
                return answer
        fallback = self.__dict__.get("fallback")
        if fallback is None:
            raise StateError("E-CALL-016", "the robot of this function has been taken apart")
        return fallback(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name == self.__dict__.get("name"):
            return getattr(self.holder, name)
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Owner, (None, self.holder, self.name)


def _for_ever(kept: Any) -> Any:
    """Own one more reference, which nobody returns: modules lose their names at the end."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return kept


_OUT, _THREADS = (_for_ever(sys.intern(name)) for name in ("out", "threads"))
FILLED = _for_ever((ctypes.c_void_p * len(CONTEXT))())
"""What the machine code reaches of Python and NumPy; filled before the first entry is made."""


@functools.cache
def _fill_context() -> None:
    numpy = _numpy_table()
    own = {
        "array_type": numpy[_ARRAY_TYPE],
        "out_name": id(_OUT),
        "new_array": numpy[_ARRAY_NEW],
        "unwrap": numpy[_ARRAY_RETURN],
        "tuple_type": id(tuple),
        "list_type": id(list),
        "float_type": id(float),
        "float64_type": id(np.float64),
        "int_type": id(int),
        "threads_name": id(_THREADS),
        "none": id(None),
        "unit": id(1),
    }
    for k, (key, function) in enumerate(CONTEXT.items()):
        FILLED[k] = at_address(getattr(ctypes.pythonapi, function)) if function else own[key]


@functools.cache
def _numpy_table() -> Any:
    core = getattr(np, "_core", None) or np.core
    capsule = core._multiarray_umath._ARRAY_API
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))


@functools.cache
def supported() -> bool:
    """Return True if this Python and NumPy have the layout that the machine code reads."""
    import sysconfig

    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    return _numpy_table()[_ARRAY_TYPE] == id(np.ndarray) and _probe()


def _probe() -> bool:
    """Read known arrays and a known tuple at the offsets that the machine code uses."""

    def read(place: int, kind: Any) -> Any:
        return kind.from_address(place).value

    size, number, pointer = ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p
    pair = ("out", "in")
    fits = read(id(pair) + HEAD, size) == 2
    fits &= read(id(pair) + TUPLE, pointer) == id(pair[0])
    numbers = [0.5, np.float64(-2.0)]
    fits &= read(id(numbers) + HEAD, size) == 2
    if not fits or list.__basicsize__ != LIST + 16:
        return False
    fits &= read(read(id(numbers) + LIST, pointer), pointer) == id(numbers[0])
    fits &= [read(id(x) + HEAD, ctypes.c_double) for x in numbers] == numbers
    for array in (np.zeros((3, 5)), np.zeros((2, 3, 4), order="F"), np.zeros(7, ">f8")):
        start = id(array)
        shape, strides, descr = (read(start + k, pointer) for k in (SHAPE, STRIDES, DESCR))
        if not shape or not strides or descr != id(array.dtype):
            return False  # what they do not point to must not be read
        flags = read(start + FLAGS, number)
        fits &= read(start + HEAD - 8, pointer) == id(np.ndarray)
        fits &= read(start + DATA, pointer) == address(array)
        fits &= read(start + RANK, number) == array.ndim
        fits &= tuple(read(shape + 8 * k, size) for k in range(array.ndim)) == array.shape
        fits &= tuple(read(strides + 8 * k, size) for k in range(array.ndim)) == array.strides
        fits &= bool(flags & 0x0001) == array.flags.c_contiguous
        fits &= bool(flags & 0x0100) == array.flags.aligned
        fits &= bool(flags & 0x0400) == array.flags.writeable
        fits &= read(descr + TYPE, number) == array.dtype.num
        fits &= (read(descr + ORDER, ctypes.c_char) == b"=") == array.dtype.isnative
    return fits


def fast_entry(
    code: Code,
    entry: int | None,
    *,
    name: str,
    signature: str,
    doc: str,
    holder: Any,
    fallback: Callable[..., Any],
    again: Again | None = None,
) -> Callable[..., Any]:
    """The built-in function; the fallback itself where the machine or Python allows none.

    holder: where the function can be found again by name when it is unpickled. fallback: takes
    the same arguments in every form, and is called for whatever the machine code does not take.
    again: tried before it, a short way for arrays that only have to be laid out anew.
    """
    if entry is None or not supported():
        return fallback
    _fill_context()
    text = f"{name}($self, {signature})\n--\n\n{doc}"
    kept = code.piece.kept
    if text not in kept:
        encoded = (name.encode(), text.encode())
        facts = encoded[0], entry, _FASTCALL_WITH_KEYWORDS, encoded[1]
        kept.setdefault(text, (_MethodDefinition(*facts), encoded))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    definition = ctypes.addressof(kept[text][0])
    built: Callable[..., Any] = make(definition, Owner(code, holder, name, fallback, again), None)
    return built
