"""Built-in functions for arrays on a GPU, with little more overhead than a kernel launch.

Each robot function has one such built-in function for every array library in use. When the built-in
function is called, its machine code (`cuda.entry`) looks for a prepared launch (a plan) for the
dtype, the device and the number of states. If there is no such plan, Python code handles the call,
and the library's front end adds a plan (`Resident.add`).
"""

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda.arrays import COUNT, CUDA, FIRST, FLOAT
from chasles.backends.cuda.entry import (
    ARRAYS,
    CALLED,
    NAMES,
    OBJECTS,
    PLAN,
    RANK,
    VARIABLE,
    source,
    spelled,
)
from chasles.backends.llvm.code import Machine, assemble, load
from chasles.backends.objects import at_address, supported
from chasles.expr import Interface

PLANS = 32
"""Maximum number of plans (prepared launches) per function and library. Python code handles calls
without a plan."""

BLOCKS = 2**31 - 1
"""Maximum number of blocks per kernel launch."""

KEPT = (None, False, True, -1, tuple, np.dtype(np.float64), np.dtype(np.float32))
STRINGS = tuple(sys.intern(name) for name in NAMES)
"""Objects and strings that the machine code uses in comparisons, kept until the process ends."""

EXCHANGE, READ, CURRENT = b"dlpack_exchange_api", 40, 48
"""Name of DLPack's table of C functions, and offsets (bytes) of two functions in the table."""


class Plan(NamedTuple):
    """A prepared launch for contiguous arrays, valid for a range of state counts.

    - bits: size of an element (bits).
    - least, most: range of state counts.
    - rows: True if the entries of each state are contiguous in all arrays.
    - kernel: the driver's handle for the kernel.
    - states, threads, shared: states, threads and shared memory (bytes) per block.
    - blocks: maximum number of blocks in the launch.
    - memory: memory type, as a DLPack code.
    """

    bits: int
    device: int
    least: int
    most: int
    rows: bool
    kernel: int
    states: int
    threads: int
    shared: int
    memory: int = CUDA
    blocks: int = BLOCKS

    def words(self) -> tuple[int, ...]:
        """Return the fields of the plan as 8-byte integers, in the order of the machine code."""
        number, place = FLOAT | self.bits << 8 | 1 << 16, self.memory | self.device << 32
        launch = self.kernel, self.states, self.threads, self.shared, self.blocks
        return number, place, self.least, self.most, int(not self.rows), *launch


class Library(NamedTuple):
    """Types and functions of an array library that the entry (`cuda.entry`) uses.

    - name: prefix of the library's functions in the machine code.
    - types: one or two array types.
    - make: function that makes a result array with one row per state, given an argument and sizes.
    - turned: function that makes a result array with one column per state.
    - helper: Python object that the machine code uses to get the current stream.
    - read, current: addresses of the library's C functions that read an array and get the current
      stream, or 0.
    """

    name: str
    types: tuple[type, ...]
    make: Callable[..., Any]
    turned: Callable[..., Any]
    helper: Any
    read: int = 0
    current: int = 0


def exchange(array: type) -> tuple[int, int] | None:
    """Return the addresses of two C functions of an array library.

    The first function reads an array, and the second returns the current stream. Return None if the
    library does not have these functions.
    """
    capsule = getattr(array, "__dlpack_c_exchange_api__", None)
    if type(capsule).__name__ != "PyCapsule":
        return None
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(capsule, EXCHANGE)
    if not table or ctypes.c_uint32.from_address(table).value != 1:  # DLPack's major version
        return None
    read, current = (ctypes.c_size_t.from_address(table + place).value for place in (READ, CURRENT))
    return (read, current) if read and current else None


class Resident:
    """A kernel and its built-in function `call`, which runs the kernel on arrays of one library.

    fallback: Python function that handles calls for which no launch is prepared.
    """

    def __init__(
        self, interface: Interface, library: Library, fallback: Callable[..., Any], code: "Code"
    ) -> None:
        variables = (*interface.inputs, *interface.outputs)
        self._first = FIRST + VARIABLE * len(variables)
        self._words = words = (ctypes.c_int64 * (self._first + PLAN * PLANS))()
        words[:FIRST] = [
            len(interface.inputs),
            len(interface.outputs),
            *(id(kind) for kind in (library.types[0], library.types[-1])),
            *(code[f"{library.name}_{what}"] for what in ("reader", "stream")),
            id(library.helper),
            library.read,
            library.current,
            0,
        ]
        for k, variable in enumerate(variables):
            axes = [*variable.shape, *[0] * (RANK - len(variable.shape))]
            place = FIRST + VARIABLE * k
            words[place : place + VARIABLE] = [len(variable.shape), variable.size, *axes]
        self._plans: list[Plan] = []
        # A tuple owns the objects that the code reads: the garbage collector never clears a tuple.
        makers = library.make, library.turned
        owner = (fallback, ctypes.addressof(words), *makers, words, library, code)
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        self.call: Callable[..., Any] = make(ctypes.addressof(code.definition), owner, None)

    def lacks(self, bits: int, device: int, count: int, *, rows: bool) -> bool:
        """Return True if a plan (prepared launch) should be added for a call.

        A plan should be added if no plan covers the dtype, device, layout and number of states of
        the call, and there are fewer than `PLANS` plans.
        """
        wanted = bits, device, rows
        known = any(
            (plan.bits, plan.device, plan.rows) == wanted and plan.least <= count <= plan.most
            for plan in self._plans
        )
        return not known and len(self._plans) < PLANS and count > 0

    def add(self, plan: Plan) -> None:
        """Add a prepared launch, which later calls can use."""
        place = self._first + PLAN * len(self._plans)
        self._words[place : place + PLAN] = list(plan.words())
        self._plans.append(plan)
        self._words[COUNT] = len(self._plans)  # from here on, the machine code can find the plan


def resident(
    interface: Interface, library: Library, fallback: Callable[..., Any]
) -> Resident | None:
    """Return a kernel that is launched by a function in machine code, or None if not supported.

    The number of arrays and the number of their axes are limited, and some builds of Python are not
    supported.
    """
    variables = (*interface.inputs, *interface.outputs)
    long = any(len(v.shape) > RANK for v in variables) or len(variables) > ARRAYS
    if long or not interface.inputs or not interface.outputs or not supported():
        return None
    return Resident(interface, library, fallback, _code())


class _Definition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Code:
    """Machine code and method definition of the entry function (`cuda.entry`).

    The code must stay loaded until the process ends. If it were freed, LLVM might reuse its memory
    for code that is loaded later, and place the sections of this later code too far apart.

    `launch` and `current_device` are the addresses of the corresponding CUDA driver functions.
    """

    def __init__(self, launch: int, current_device: int) -> None:
        symbols = {name: at_address(getattr(ctypes.pythonapi, name)) for name in CALLED}
        symbols |= {name: id(kept) for name, kept in zip(OBJECTS, KEPT, strict=True)}
        symbols |= {spelled(name): id(name) for name in STRINGS}
        symbols |= {"launch": launch, "current_device": current_device}
        names = [f"{name}_{what}" for name in ("torch", "cupy") for what in ("reader", "stream")]
        machine = Machine.host()
        self._code = load(assemble(source(), machine, opaque=True), symbols, ["entry", *names])
        fast = 0x0080 | 0x0002  # METH_FASTCALL | METH_KEYWORDS
        self.definition = _Definition(b"resident", self["entry"], fast, None)

    def __getitem__(self, name: str) -> int:
        return self._code.address(name)


@functools.cache
def _code() -> Code:
    """Return the machine code that calls the CUDA driver; the code is loaded once per process."""
    return Code(*(cuda_driver.address(name) for name in ("cuLaunchKernel", "cuCtxGetDevice")))
