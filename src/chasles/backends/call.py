"""The fast entry: a built-in function around a compiled program.

Calling it costs tens of nanoseconds beside the program itself. What the machine code and CPython's
function object point to is never freed, not even when the interpreter ends: the code, the method
definition and the context. So no order in which the garbage collector takes things apart, no
finaliser and no resurrection can leave an entry without its code. (Equal programs share their code,
so a robot made again costs nothing.)
Everything of a robot is reached through the function's `__self__`, an ordinary Python object.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from chasles.backends import llvm_entry
from chasles.errors import StateError

_FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002
_ARRAY_TYPE, _ARRAY_RETURN, _ARRAY_NEW = 2, 76, 93
"""Places in NumPy's table of C functions, fixed since its first version."""

_KEPT: dict[tuple[int, str], Any] = {}
"""Kernels with an entry and their method definitions, by the entry's address and its text."""


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Owner:
    """What an entry belongs to, its `__self__`: called for whatever the machine code does not take.

    fallback: the Python path. holder: where a pickled entry is found again, by name.
    """

    def __init__(self, holder: Any, name: str, fallback: Callable[..., Any] | None = None) -> None:
        self.holder, self.name, self.fallback = holder, name, fallback

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        fallback = self.__dict__.get("fallback")
        if fallback is None:
            raise StateError("E-CALL-016", "the robot of this function has been taken apart")
        return fallback(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name == self.__dict__.get("name"):
            return getattr(self.holder, name)
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Owner, (self.holder, self.name)


def fast_entry(
    kernel: Any,
    *,
    name: str,
    signature: str,
    doc: str,
    holder: Any,
    fallback: Callable[..., Any],
) -> Callable[..., Any]:
    """The built-in function; the fallback itself where the machine or Python does not allow one.

    holder: where the function can be found again by name when it is unpickled. fallback: takes the
    same arguments in every form, and is called for whatever the machine code does not take.
    """
    if getattr(kernel, "entry", None) is None or not supported():
        return fallback
    _fill_context()
    text = f"{name}($self, {signature})\n--\n\n{doc}"
    encoded = (name.encode(), text.encode())
    definition = _MethodDefinition(encoded[0], kernel.entry, _FASTCALL_WITH_KEYWORDS, encoded[1])
    kept = _KEPT.get((kernel.entry, text))
    if kept is None:
        kept = _KEPT[kernel.entry, text] = _for_ever((kernel, definition, encoded))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    owner = Owner(holder, name, fallback)
    built: Callable[..., Any] = make(ctypes.addressof(kept[1]), owner, None)
    return built


def _for_ever(kept: Any) -> Any:
    """Own one more reference, which nobody returns: modules lose their names at the end."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return kept


_OUT = _for_ever(sys.intern("out"))
CONTEXT = _for_ever((ctypes.c_void_p * len(llvm_entry.CONTEXT))())
"""What the machine code reaches of Python and NumPy; filled before the first entry is made."""


@cache
def _fill_context() -> None:
    table = _numpy_table()
    filled = {
        "array_type": table[_ARRAY_TYPE],
        "out_name": id(_OUT),
        "new_array": table[_ARRAY_NEW],
        "vectorcall": _python("PyObject_Vectorcall"),
        "increment": _python("Py_IncRef"),
        "unwrap": table[_ARRAY_RETURN],
        "release": _python("PyEval_SaveThread"),
        "acquire": _python("PyEval_RestoreThread"),
        "new_tuple": _python("PyTuple_New"),
        "set_item": _python("PyTuple_SetItem"),
        "tuple_type": id(tuple),
    }
    for k, key in enumerate(llvm_entry.CONTEXT):
        CONTEXT[k] = filled[key]


def _python(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@cache
def _numpy_table() -> Any:
    core = getattr(np, "_core", None) or np.core
    capsule = core._multiarray_umath._ARRAY_API
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))


@cache
def supported() -> bool:
    """Whether this Python and NumPy have the layout that the machine code reads."""
    import sysconfig

    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    return _numpy_table()[_ARRAY_TYPE] == id(np.ndarray) and _probe()


def _probe() -> bool:
    """Read known arrays and a known tuple at the offsets that the machine code uses."""

    def read(address: int, kind: Any) -> Any:
        return kind.from_address(address).value

    size, number, pointer = ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p
    pair = ("out", "in")
    fits = read(id(pair) + llvm_entry.HEAD, size) == 2
    fits &= read(id(pair) + llvm_entry.TUPLE, pointer) == id(pair[0])
    for array in (np.zeros((3, 5)), np.zeros((2, 3, 4), order="F"), np.zeros(7, ">f8")):
        start = id(array)
        shape, descr = (read(start + k, pointer) for k in (llvm_entry.SHAPE, llvm_entry.DESCR))
        if not shape or descr != id(array.dtype):
            return False  # what they do not point to must not be read
        flags = read(start + llvm_entry.FLAGS, number)
        native = array.dtype.isnative
        fits &= read(start + llvm_entry.HEAD - 8, pointer) == id(np.ndarray)
        fits &= read(start + llvm_entry.DATA, pointer) == array.__array_interface__["data"][0]
        fits &= read(start + llvm_entry.RANK, number) == array.ndim
        fits &= tuple(read(shape + 8 * k, size) for k in range(array.ndim)) == array.shape
        fits &= bool(flags & 0x0001) == array.flags.c_contiguous
        fits &= bool(flags & 0x0100) == array.flags.aligned
        fits &= bool(flags & 0x0400) == array.flags.writeable
        fits &= read(descr + llvm_entry.TYPE, number) == array.dtype.num
        fits &= (read(descr + llvm_entry.ORDER, ctypes.c_char) == b"=") == native
    return fits
