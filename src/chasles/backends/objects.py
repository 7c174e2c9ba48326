"""Memory layout of Python and NumPy objects, for the machine code in `llvm.entry`.

The offsets of fields are checked before use. The module also lists the Python functions that the
machine code calls (`CONTEXT`), and the layout of call descriptors (`WAY`), which specify how a
kernel is called.
"""

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

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
    "decrement": "Py_DecRef",
    "allocate": "PyMem_RawMalloc",
    "give_back": "PyMem_RawFree",
    "f_ext_name": "",
    "text_type": "",
    "compare": "PyUnicode_Compare",
    "dict_type": "",
    "dict_size": "PyDict_Size",
    "dict_next": "PyDict_Next",
    "call": "PyObject_Call",
    "usual_call": "",
    "frame_name": "",
}
"""Entries of the table at @context, in order, with the names of functions in Python's C API.

Entries without a name are other functions and objects, which `fill_context` looks up: array
functions of NumPy, types, interned strings such as "out", None, the integer 1, and the C function
that calls an object's `__call__`.
"""

HEAD, TUPLE, BYTES = object.__basicsize__, tuple.__basicsize__, bytes.__basicsize__ - 1
DATA, RANK, SHAPE, STRIDES, DESCR, FLAGS = (HEAD + k for k in (0, 8, 16, 24, 40, 48))
ORDER, TYPE = HEAD + 10, HEAD + 12
LIST = HEAD + 8
"""Offsets (bytes) of fields in Python and NumPy objects.

- HEAD, TUPLE, BYTES: an object's first field, a tuple's first item, and the content of a bytes
  object.
- DATA, RANK, SHAPE, STRIDES, DESCR, FLAGS: an array's data, number of axes, shape, strides, dtype
  and flags.
- ORDER, TYPE: a dtype's byte order and type number.
- LIST: the address of a list's items.
"""

CALL = 112
"""Offset (bytes) of `tp_call` in a class, counted from the end of the object header (`HEAD`)."""

LAYOUT = (HEAD, TUPLE, BYTES)
"""Offsets that the machine code assumes for this build of Python."""

ALIGNED = 0x0100
PLAIN = 0x0001 | ALIGNED
"""NumPy's flags for an array that is C-contiguous and aligned."""
WRITEABLE = 0x0400

NOT_TAKEN = "inttoptr (i64 1 to ptr)"
"""Value that machine code returns if Python code must handle the call."""

USUAL, USUAL_RANK = 4, 2
"""Size limits of kernels that are called by loop-free machine code (`llvm.calls.usual`).

Such a kernel has at most `USUAL` inputs, all vectors, and one output with at most `USUAL_RANK`
axes.
"""

WAY = (
    *("one", "batch", "workspace", "most", "number", "element", "bytes"),
    *("inputs", "outputs", "numbers", "nonzero", "quaternions"),
    *("single", "arguments", "sources", "fixed", "options", "named", "wrenches", "loads"),
    *("shown", "gap", "margin", "bare", "dtype"),
)
"""Layout of a call descriptor (`llvm.kernel`), in 8-byte words that hold integers or addresses.

- one, batch: addresses of the kernel's functions for one state and for a batch.
- workspace: size (bytes) of the workspace that `batch` needs.
- most: number of states above which threads share a batch.
- number, element, bytes: NumPy's type number of the kernel's dtype, 0 or 1 for double or single
  precision, and the size (bytes) of an element.
- inputs, outputs: numbers of input and output arrays.
- numbers: total number of entries in all inputs of a state.
- nonzero: number of quaternions in the inputs, each of which must be nonzero.
- quaternions: for each quaternion, the index of the input that contains it, and the index of its
  first entry in this input.
- single: 1 if all arguments must be float32, 0 if at least one must have a different dtype, 2 if
  any dtype is allowed.
- arguments: number of positional arguments.
- sources: an integer 4 k + s for each input; null if the inputs are the arguments in order. The
  input is argument k of the caller (s = 0), wrench k (s = 1) or item k of `fixed` (s = 2).
- options, named: number of options, and the name and value of each option.
- fixed: arguments that do not depend on the call.
- wrenches: number of wrenches in `f_ext`, or -1 if `f_ext` is not passed.
- loads: description of each wrench, laid out as in LOAD.
- shown: number of outputs that a call returns. If a call does not return all outputs, the last
  output holds the squared closure error and the singularity margin of each state.
- gap, margin: limits for the squared closure error and the singularity margin, stored as the bits
  of doubles. The machine code handles the call only if all squared errors are at most `gap` and all
  margins exceed `margin`.
- bare: number of arguments if they are the kernel's inputs in order and a call has no options or
  wrenches, else -1.
- dtype: address of NumPy's own object for the kernel's dtype.

These words are followed by VARIABLE words for each input and output.
"""

LOAD = ("key", "type", "value_place", "axes_place", "axes", "at_place", "at")
"""Layout of a wrench in a call descriptor, in 8-byte words.

The words hold the wrench's key in `f_ext`, its type (0 for an array), the offsets of its fields,
and the required values of the fields `axes` and `at`.
"""

MOST_RANK = 8
VARIABLE = 4 + MOST_RANK
"""Number of integers that describe an input or output: its size, its number of axes, two limits for
overlap checks, and its shape. The limits are b - 1 and b - 1 + c, where b and c are the sizes
(bytes) of the variable and of the first output.
"""

MOST_OPTIONS, MOST_INPUTS, MOST_OUTPUTS, MOST_WRENCHES = 12, 256, 64, 64
"""Maximum numbers of options, inputs, outputs and wrenches that the machine code handles. Calls
that exceed one of these maxima are handled in Python."""

UNBOUNDED = 1 << 40
"""Number of states that stands for "no limit", larger than any batch that fits in memory."""

SINGLE_NUMBER = 11
"""NumPy's type number for float32."""


def at_address(function: Any) -> int:
    """Return the address of a C function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


_word = ctypes.c_size_t.from_address


def address(a: np.ndarray) -> int:
    """Return the address of an array's first element."""
    if supported():
        return _word(id(a) + DATA).value  # ten times as fast as reading `__array_interface__`
    return a.__array_interface__["data"][0]


def places(sample: Any, values: Sequence[Any]) -> tuple[int, ...] | None:
    """Return the offsets (bytes) at which an object with `__slots__` stores `values`.

    Return None if an offset cannot be determined.
    """
    words = type(sample).__basicsize__ // 8
    held = list((ctypes.c_void_p * words).from_address(id(sample)))
    found = [held.index(id(x)) * 8 if held.count(id(x)) == 1 else 0 for x in values]
    return tuple(found) if all(place >= HEAD for place in found) else None


_ARRAY_TYPE, _ARRAY_RETURN, _ARRAY_NEW = 2, 76, 93
"""Indices of entries in NumPy's C API table. All versions of NumPy use the same indices."""


def for_ever(kept: Any) -> Any:
    """Keep an object alive even at exit, when Python clears the globals of modules; return it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return kept


_NAMES = {x: for_ever(sys.intern(x)) for x in ("out", "threads", "f_ext", "frame")}
FILLED = for_ever((ctypes.c_void_p * len(CONTEXT))())
"""Addresses of the functions and objects in `CONTEXT`, filled in by `fill_context` before the first
fast entry is created.
"""


class _Callable:
    def __call__(self) -> None:
        """Do nothing. This class only provides CPython's default `tp_call` for `__call__`."""


def call_slot(kind: type) -> ctypes.c_void_p:
    """Return the `tp_call` slot of a class, the function with which CPython calls its objects."""
    return ctypes.c_void_p.from_address(id(kind) + HEAD + CALL)


@functools.cache
def fill_context() -> None:
    numpy = _numpy_table()
    own = {
        "array_type": numpy[_ARRAY_TYPE],
        "out_name": id(_NAMES["out"]),
        "new_array": numpy[_ARRAY_NEW],
        "unwrap": numpy[_ARRAY_RETURN],
        "tuple_type": id(tuple),
        "list_type": id(list),
        "float_type": id(float),
        "float64_type": id(np.float64),
        "int_type": id(int),
        "threads_name": id(_NAMES["threads"]),
        "none": id(None),
        "unit": id(1),
        "f_ext_name": id(_NAMES["f_ext"]),
        "text_type": id(str),
        "dict_type": id(dict),
        "usual_call": call_slot(_Callable).value or 0,
        "frame_name": id(_NAMES["frame"]),
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
    """Return True if Python and NumPy objects have the memory layout that the code assumes."""
    import sysconfig

    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    return _numpy_table()[_ARRAY_TYPE] == id(np.ndarray) and _probe()


def _probe() -> bool:
    """Return True if test objects in memory have their data at the expected offsets."""

    def read(place: int, kind: Any) -> Any:
        return kind.from_address(place).value

    size, number, pointer = ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p
    pair = ("out", "in")
    fits = read(id(pair) + HEAD, size) == 2
    fits &= read(id(pair) + TUPLE, pointer) == id(pair[0])
    fits &= read(id(b"out of 8") + BYTES, ctypes.c_uint64) == int.from_bytes(b"out of 8", "little")
    numbers = [0.5, np.float64(-2.0)]
    fits &= read(id(numbers) + HEAD, size) == 2
    if not fits or list.__basicsize__ != LIST + 16:
        return False
    fits &= read(read(id(numbers) + LIST, pointer), pointer) == id(numbers[0])
    fits &= [read(id(x) + HEAD, ctypes.c_double) for x in numbers] == numbers
    kinds = [type("A", (base,), {}) for base in (object, _Callable, functools.partial)]
    slots = [
        read(id(kind) + HEAD + CALL, pointer) for kind in (*kinds, _Callable, functools.partial)
    ]
    if slots[0] is not None or None in slots[1:] or slots[1:3] != slots[3:] or slots[3] == slots[4]:
        return False
    for array in (np.zeros((3, 5)), np.zeros((2, 3, 4), order="F"), np.zeros(7, ">f8")):
        start = id(array)
        shape, strides, descr = (read(start + k, pointer) for k in (SHAPE, STRIDES, DESCR))
        if not shape or not strides or descr != id(array.dtype):
            return False  # the offsets are wrong, so these addresses are not safe to read
        flags = read(start + FLAGS, number)
        fits &= read(start + HEAD - 8, pointer) == id(np.ndarray)
        fits &= read(start + DATA, pointer) == array.__array_interface__["data"][0]
        fits &= read(start + RANK, number) == array.ndim
        fits &= tuple(read(shape + 8 * k, size) for k in range(array.ndim)) == array.shape
        fits &= tuple(read(strides + 8 * k, size) for k in range(array.ndim)) == array.strides
        fits &= bool(flags & 0x0001) == array.flags.c_contiguous
        fits &= bool(flags & 0x0100) == array.flags.aligned
        fits &= bool(flags & 0x0400) == array.flags.writeable
        fits &= read(descr + TYPE, number) == array.dtype.num
        fits &= (read(descr + ORDER, ctypes.c_char) == b"=") == array.dtype.isnative
    return fits
