"""The fast entry: a built-in function around a compiled program.

Calling it costs tens of nanoseconds beside the program itself. The function's `__self__` is an
owner that keeps the machine code, the method definition and the Python path alive, so lifetime,
garbage collection and pickling follow from CPython.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from chasles.backends import llvm_entry

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


class Owner:
    """Keeps what a fast entry needs. Pickled entries come back by name from `holder`."""

    def __init__(self, holder: Any, name: str) -> None:
        self.holder, self.name = holder, name
        self.kept: tuple[Any, ...] = ()

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
    out_name = sys.intern("out")
    table = _numpy_table()
    filled = {
        "array_type": table[_ARRAY_TYPE],
        "fallback": id(fallback),
        "out_name": id(out_name),
        "new_array": table[_ARRAY_NEW],
        "vectorcall": _python("PyObject_Vectorcall"),
        "increment": _python("Py_IncRef"),
        "unwrap": table[_ARRAY_RETURN],
        "release": _python("PyEval_SaveThread"),
        "acquire": _python("PyEval_RestoreThread"),
    }
    if kernel.context[0]:
        kernel = kernel.again()  # a kernel has one context: another entry needs a kernel of its own
    for k, key in enumerate(llvm_entry.CONTEXT):
        kernel.context[k] = filled[key]
    text = f"{name}($self, {signature})\n--\n\n{doc}"
    definition = _MethodDefinition(
        name.encode(), kernel.entry, _FASTCALL_WITH_KEYWORDS, text.encode()
    )
    owner = Owner(holder, name)
    owner.kept = (kernel, definition, fallback, out_name)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p],
    )
    built: Callable[..., Any] = make(ctypes.addressof(definition), owner, None)
    return built


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
        flags = read(start + llvm_entry.FLAGS, number)
        native = array.dtype.isnative
        fits &= read(start + llvm_entry.HEAD - 8, pointer) == id(np.ndarray)
        fits &= read(start + llvm_entry.DATA, pointer) == array.__array_interface__["data"][0]
        fits &= read(start + llvm_entry.RANK, number) == array.ndim
        fits &= tuple(read(shape + 8 * k, size) for k in range(array.ndim)) == array.shape
        fits &= descr == id(array.dtype)
        fits &= bool(flags & 0x0001) == array.flags.c_contiguous
        fits &= bool(flags & 0x0100) == array.flags.aligned
        fits &= bool(flags & 0x0400) == array.flags.writeable
        fits &= read(descr + llvm_entry.TYPE, number) == array.dtype.num
        fits &= (read(descr + llvm_entry.ORDER, ctypes.c_char) == b"=") == native
    return fits
