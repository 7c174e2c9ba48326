"""Machine code for one program, compiled by LLVM: scalar for one state, SIMD for batches.

The fast entry, a C function that wraps a kernel, adds tens of nanoseconds to the program's time.
The fast entry holds its code, and the objects that CPython's function object points to, through
references that the garbage collector cannot clear (`llvm.code.Code`). A call descriptor is a tuple
of a bytes object and other objects. The bytes contain the machine words that the code reads
(`objects.WAY`); these words point to the other objects. Bytes, tuples and numeric arrays are never
cleared while they are referenced. Therefore an entry always has its code, whatever the order of
garbage collection, and even if a finalizer runs or resurrects an object. The code is freed when no
entry and no kernel uses it any longer. The collector may clear an entry's list of further
descriptors, which is then empty.
"""

import contextlib
import ctypes
import functools
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import llvmlite
import numpy as np

from chasles.backends import arrays, cache, code_key, objects
from chasles.backends.arrays import Load, Rows, words
from chasles.backends.cache import Artifact
from chasles.backends.llvm import checked
from chasles.backends.llvm import code as llvm_code
from chasles.backends.llvm import entry as llvm_entry
from chasles.backends.llvm.checked import address, start_of
from chasles.backends.llvm.code import Machine, assemble, emitted, load
from chasles.backends.llvm.math import ELEMENTS
from chasles.backends.llvm.source import WORTH_THREADS, Module, module
from chasles.backends.llvm.threads import pool
from chasles.backends.llvm.tiles import Target
from chasles.errors import StateError
from chasles.expr import Interface, Program, Staged

SHARE = 64
"""Unit (rows) in which a batch is divided among threads, so that they process whole tiles."""
RECENT = 32
"""Maximum number of unused kernels that stay loaded, in case an equal robot is created again."""

_LOADED: WeakValueDictionary[str, "Kernel"] = WeakValueDictionary()
"""Kernels in use, by cache key, so that equal robots share their code."""
_RECENT: OrderedDict[str, "Kernel"] = OrderedDict()
"""Recently used kernels, by cache key, most recent last."""


@functools.cache
def exact() -> dict[str, int]:
    """Return the addresses of the C library's sine and cosine, used for large angles."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    return {f"chasles_{f}": objects.at_address(getattr(library, f)) for f in ("sin", "cos")}


def source(
    program: Program | Staged, machine: Machine | None = None, dtype: str = "float64"
) -> Module:
    """Return a program as a module in LLVM IR."""
    machine, element = machine or Machine.host(), ELEMENTS[dtype]
    lanes = machine.width * 8 // element.bytes
    return module(program, Target(lanes, machine.fuse, element))


def build(
    program: Program | Staged, machine: Machine | None = None, dtype: str = "float64"
) -> Artifact:
    """Return the machine code of a program."""
    with contextlib.ExitStack() as stack:
        return _begun(program, machine or Machine.host(), dtype, stack)()


def _begun(
    program: Program | Staged,
    machine: Machine,
    dtype: str,
    stack: contextlib.ExitStack,
    *,
    ahead: bool = False,
) -> Callable[[], Artifact]:
    """Begin to compile a program; return a function that waits for the code (`code.begun`)."""
    written = source(program, machine, dtype)
    text = checked.instrumented(written.text) if checked.ON else written.text
    emit = functools.partial(emitted, machine=machine)
    finish: Callable[[], bytes] = functools.partial(emit, text)
    if text.count("\n") > llvm_code.LONG:
        names = ("triple", "cpu", "features", "effort")
        facts = {name: getattr(machine, name) for name in names}
        finish = llvm_code.begun(text, facts, arrays.cores(), emit, stack, ahead=ahead)
    taken = Interface(program.name, program.inputs, program.outputs, program.nonzero)
    known = (taken, dtype, written.workspace, program.count.weight)
    tiled = isinstance(program, Program) and bool(program.tiled)
    return lambda: Artifact(*known, finish(), tiled)


class Kernel:
    """A compiled and loaded program, which several threads may use at once.

    - block: number of states that a loop should pass in one call, or 0 for the default number.
    - alone: True if the kernel has a function for a single state; otherwise, a single state runs as
      a batch of one.
    """

    block = 0
    alone = True

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.interface, self.dtype = artifact.interface, np.dtype(artifact.dtype)
        names = ("tiled",) if artifact.tiled else ("one", "batch")
        with arrays.COMPILING:
            self.code = load(artifact.object_code, exact(), names)
        if artifact.tiled:
            self.tiled_address = self.code.address("tiled")
        else:
            self._finish()

    def _finish(self) -> None:
        """Look up the addresses of the functions `one` and `batch` in the loaded code."""
        self.one_address, self.batch_address = self.code.address("one"), self.code.address("batch")
        one = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2)(self.one_address)
        self._one = checked.ends(one) if checked.ON else one

    def __call__(self, inputs: Rows, outputs: Rows, threads: int | None = None) -> None:
        """Run the kernel on arrays (count, size) of contiguous rows, with any stride between rows.

        An output must not partially overlap an input. If there are several rows, an output may be
        the same array as an input.
        """
        count = outputs[0].shape[0] if outputs else 0
        if count == 0:
            return
        ins, outs = (words(map(address, each)) for each in (inputs, outputs))
        if count == 1 and self.alone:
            self._one(start_of(ins), start_of(outs))
            return
        if threads is None:
            threads = arrays.cores() if count * self.artifact.work > WORTH_THREADS else 1
        steps = [words(a.strides[0] for a in each) for each in (inputs, outputs)]
        tables = (ins, steps[0], outs, steps[1])
        head = (self.batch_address, self.artifact.workspace, len(ins), len(outs))
        given, run = words((*head, *map(start_of, tables))), pool()
        run(run.rows, start_of(given), count, SHARE, threads, self.artifact.work)

    def prepared(self, inputs: Rows, outputs: Rows) -> "Prepared":
        """Return a function for repeated calls on fixed arrays, on the calling thread.

        Call the function with a positive number of rows to compute only the first rows.
        """
        return Prepared(self, inputs, outputs)

    def fast_entry(self, **facts: Any) -> Callable[..., Any]:
        """Return a built-in function that calls the kernel's machine code."""
        return fast_entry(self, **facts)


class Prepared:
    """A kernel that is called repeatedly on rows of fixed arrays."""

    def __init__(self, kernel: Kernel, inputs: Rows, outputs: Rows) -> None:
        self.code, space = kernel.code, np.empty(kernel.artifact.workspace // 8 + 8)
        self._arrays = [*inputs, *outputs, space]
        steps = [words(a.strides[0] for a in each) for each in (inputs, outputs)]
        places = [words(objects.address(a) for a in each) for each in (inputs, outputs)]
        self._tables = (places[0], steps[0], places[1], steps[1])
        starts = [table.buffer_info()[0] for table in self._tables]
        even = -(-objects.address(space) // 64) * 64
        self._every = len(outputs[0])
        self.words = (kernel.batch_address, self._every, *starts, even)
        kinds = (ctypes.c_int64, *[ctypes.c_void_p] * 5)
        self._batch = checked.ends(ctypes.CFUNCTYPE(None, *kinds)(kernel.batch_address))
        self._given = tuple(map(ctypes.c_void_p, (*starts, even)))

    def note(self) -> None:
        """Register the arrays as memory that the next call may access (`llvm.checked`)."""
        for a in self._arrays:
            address(a)
        for table in self._tables:
            start_of(table)

    def __call__(self, count: int | None = None) -> None:
        if count is None:
            count = self._every
        assert count <= self._every, "rows"
        if checked.ON:
            self.note()
        self._batch(count, *self._given)


# Fast entries ------------------------------------------------------------------------------------

Again = Callable[["Owner", tuple[Any, ...], dict[str, Any]], Any]
"""Python function for calls that the machine code does not handle. Its arguments are the owner of
the entry point, and the arguments of the call by position and by keyword. It returns the result or
NotImplemented."""

Way = tuple[Any, ...]
NEVER, ALWAYS, ANY = 0, 1, 2
"""Values of `single`, a field of a call descriptor (`objects.WAY`) that restricts the dtypes.

- NEVER: at least one argument must have a dtype other than float32.
- ALWAYS: all arguments must be float32.
- ANY: the arguments may have any dtype.
"""


def _plain_way(kernel: Kernel) -> Way | None:
    """Return the descriptor of calls without options, or None if the kernel has too many arrays."""
    interface = kernel.interface
    variables = (*interface.inputs, *interface.outputs)
    few = 0 < len(interface.outputs) <= objects.MOST_OUTPUTS
    if not few or len(interface.inputs) > objects.MOST_INPUTS:
        return None
    if any(len(v.shape) > objects.MOST_RANK for v in variables):
        return None
    shapes, item = np.zeros((len(variables), objects.VARIABLE), np.int64), kernel.dtype.itemsize
    for row, variable in zip(shapes, variables, strict=True):
        near = variable.size * item - 1
        span = near + interface.outputs[0].size * item
        row[:4] = variable.size, len(variable.shape), near, span
        row[4 : 4 + len(variable.shape)] = variable.shape
    zeros = np.array(interface.nonzero, np.int64).reshape(-1, 2)
    count = len(interface.inputs)
    facts = {
        "one": kernel.one_address,
        "batch": kernel.batch_address,
        "workspace": kernel.artifact.workspace,
        "most": max(WORTH_THREADS // max(kernel.artifact.work, 1), 1),
        "number": kernel.dtype.num,
        "element": int(kernel.dtype == np.float32),
        "bytes": kernel.dtype.itemsize,
        "inputs": count,
        "outputs": len(interface.outputs),
        "shown": len(interface.outputs),
        "gap": 0,
        "margin": 0,
        "numbers": sum(v.size for v in interface.inputs),
        "nonzero": len(zeros),
        "quaternions": zeros.ctypes.data,
        "single": ANY if kernel.dtype == np.float32 else NEVER,
        "dtype": id(kernel.dtype),
    }
    kept = shapes.tobytes(), kernel.code, kernel.dtype, zeros
    return way_of(facts, kept, count, [4 * k for k in range(count)])


def way_of(
    facts: Mapping[str, int],
    kept: tuple[Any, ...],
    arguments: int,
    sources: Sequence[int],
    fixed: tuple[Any, ...] = (),
    options: Mapping[str, Any] | None = None,
    loads: Sequence[Load] | None = None,
) -> Way:
    """Return a call descriptor: integers for the fast entry, and objects that must stay alive.

    kept: a bytes object with the integers that describe the kernel's variables, and other objects
    that must stay alive.
    """
    named = list((options or {}).items())
    held = [(w.key, w.kind, *w.places, w.axes, w.at) for w in loads or ()]
    lists = {
        "sources": np.array(sources, np.int64),
        "fixed": _addresses(fixed),
        "named": _addresses([part for pair in named for part in pair]),
        "loads": np.array(
            [
                [id(key), id(kind) if kind else 0, value, axes_at, id(axes), at_at, id(at)]
                for key, kind, value, axes_at, at_at, axes, at in held
            ],
            np.int64,
        ),
    }
    all_facts = {**facts, "arguments": arguments, "options": len(named)}
    all_facts["wrenches"] = -1 if loads is None else len(held)
    all_facts |= {name: a.ctypes.data for name, a in lists.items()}
    all_facts["bare"] = -1
    if list(sources) == [4 * k for k in range(len(sources))]:
        all_facts["sources"] = 0  # the caller's arguments, in the order given
        if not named and loads is None and facts["shown"] == facts["outputs"]:
            all_facts["bare"] = arguments
    numbers = np.array([all_facts[name] for name in objects.WAY], np.int64).tobytes() + kept[0]
    return (numbers, kept, tuple(lists.values()), fixed, tuple(named), tuple(held), dict(facts))


def _addresses(things: Sequence[Any]) -> np.ndarray:
    return np.array([id(thing) for thing in things], np.int64)


class Owner(tuple[Any, ...]):
    """The `__self__` of a fast entry, called for arguments that the machine code does not handle.

    The items, in order, are:

    - the words of the call descriptor for calls whose arguments are all arrays, or None
    - a list of registered call descriptors
    - the object that holds the entry
    - the attribute name under which unpickling finds the entry in this object
    - the Python function that handles all calls (`fallback`)
    - the function tried before `fallback` (`again`)
    - a set of keys that identify the registered call descriptors
    - the call descriptor for calls whose arguments are all arrays, or None
    """

    __slots__ = ()

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        fallback, again = self[4:6]
        answer = NotImplemented if again is None else again(self, arguments, named)
        if answer is not NotImplemented:
            return answer
        if fallback is None:
            problem = "a copy of a function's `__self__` cannot be called"
            raise StateError("E-CALL-016", problem, "call the function itself")
        return fallback(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name == self[3]:
            return getattr(self[2], name)
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _without_code, (self[2], self[3])


def _without_code(holder: Any, name: str) -> Owner:
    """Return an `Owner` without machine code; unpickling uses it to look up the function `name`."""
    return Owner((None, [], holder, name, None, None, set(), None))


_FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002
_DEFINITIONS: dict[tuple[str, int], tuple[np.ndarray, Any]] = objects.for_ever({})
"""CPython method definitions, which are never freed, because CPython may read them until exit.

A key consists of the function's text (name, signature, docstring) and the address of its code.
"""


def _definition(name: str, text: str, entry: int) -> int:
    """Return the address of a function's PyMethodDef, which is created once and never freed."""
    key = text, entry
    if key not in _DEFINITIONS:
        held = ctypes.c_char_p(name.encode()), ctypes.c_char_p(text.encode())
        start, end = (ctypes.cast(x, ctypes.c_void_p).value or 0 for x in held)
        found = np.array([start, entry, _FASTCALL_WITH_KEYWORDS, end], np.int64)
        _DEFINITIONS[key] = found, held
    return _DEFINITIONS[key][0].ctypes.data


def fast_entry(
    kernel: Kernel | None,
    *,
    name: str,
    signature: str,
    doc: str,
    holder: Any,
    fallback: Callable[..., Any],
    again: Again | None = None,
) -> Callable[..., Any]:
    """Return a built-in function that runs a kernel, or handles calls registered by `ways.learn`.

    Without a kernel, the function only handles registered calls. Return the fallback itself if this
    build of Python or the kernel does not support such functions.

    - holder: object in which unpickling looks up the function by name.
    - fallback: function that accepts the arguments in any supported form, and is called when the
      machine code does not handle a call.
    - again: faster function that is tried before the fallback, for arrays that only need a
      different memory layout.
    """
    way = None if kernel is None else _plain_way(kernel)
    if not objects.supported() or (kernel is not None and way is None):
        return fallback
    objects.fill_context()
    text, entry = f"{name}($self, {signature})\n--\n\n{doc}", _shared().address(_usual(kernel))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    words = None if way is None else way[0]
    owner = Owner((words, [], holder, name, fallback, again, set(), way))
    built: Callable[..., Any] = make(_definition(name, text, entry), owner, None)
    return built


@functools.cache
def _shared() -> Any:
    """Load the code of all fast entries (C callables).

    The code is never freed, because finalizers may call it.
    """
    name = _entry("entry", "float64")
    found = cache.load(name)
    if found is None:
        code = assemble(llvm_entry.module(), Machine.host(), optimise=True, opaque=True)
        found = Artifact(Interface("entry", (), (), ()), "float64", 0, 0, code)
        cache.save(name, found)
    symbols = {"context": ctypes.addressof(objects.FILLED)}
    usual = (f"entry{k + 1}" for k in range(objects.USUAL))
    return objects.for_ever(load(found.object_code, symbols, ("entry", "called", *usual)))


def _usual(kernel: Kernel | None) -> str:
    """Return the name of the function in `llvm.entry` that handles calls to a kernel."""
    if kernel is None or len(kernel.interface.outputs) != 1:
        return "entry"
    inputs, rank = kernel.interface.inputs, len(kernel.interface.outputs[0].shape)
    few = 0 < len(inputs) <= objects.USUAL and rank <= objects.USUAL_RANK
    return f"entry{len(inputs)}" if few and all(len(v.shape) == 1 for v in inputs) else "entry"


def called_by_slot(kind: type, sample: Any) -> None:
    """Make a class's objects callable through the fast entry (a C callable) in their first field.

    CPython calls an object through its class's `tp_call`, by default a wrapper of `__call__`.
    Machine code replaces this wrapper, and forwards to it the calls that it does not handle. Other
    tools, such as PyTorch's compiler, still see the method `__call__`.
    """
    if not objects.supported():
        return
    objects.fill_context()
    sample._entry = entry = object()
    usual = objects.FILLED[list(objects.CONTEXT).index("usual_call")]
    found = objects.call_slot(kind)
    if objects.places(sample, [entry]) == (objects.HEAD,) and found.value == usual:
        found.value = _shared().address("called")
    del sample._entry


def _entry(recipe: object, dtype: str) -> str:
    made_by = llvmlite.__version__, objects.LAYOUT, *["checked"] * checked.ON
    return code_key(recipe, dtype, Machine.host(), *made_by)


def _used(name: str, kernel: Kernel) -> Kernel:
    """Mark a kernel as recently used, so that it stays loaded for a while; return the kernel."""
    _LOADED[name] = _RECENT[name] = kernel
    _RECENT.move_to_end(name)
    while len(_RECENT) > RECENT:
        _RECENT.popitem(last=False)
    return kernel


def known(recipe: object, trace: Callable[[], Program], dtype: str) -> Kernel | None:
    """Return the cached kernel for a recipe (a cache key, see `backends.compile`), or None."""
    name = _entry(recipe, dtype)
    with arrays.COMPILING:
        found = _LOADED.get(name)
        if found is None:
            artifact = cache.load(name)
            if artifact is None:
                return None
            found = Kernel(artifact)
        return _used(name, found)


def keep(recipe: object, program: Program | Staged, dtype: str) -> Kernel:
    """Compile a program, and keep its kernel in memory and in the cache (see `known`)."""
    return _kept(_entry(recipe, dtype), build(program, dtype=dtype))


def _kept(name: str, artifact: Artifact) -> Kernel:
    cache.save(name, artifact)
    with arrays.COMPILING:
        return _used(name, Kernel(artifact))


def begin(
    recipe: object, program: Program, dtype: str, stack: contextlib.ExitStack
) -> Callable[[], Kernel]:
    """Begin to compile a program in other processes, which end when `stack` is closed.

    Return a function that waits for the kernel, stores it in the cache and returns it.
    """
    name, made = _entry(recipe, dtype), _begun(program, Machine.host(), dtype, stack, ahead=True)
    return lambda: _kept(name, made())


def forget() -> None:
    """Discard all loaded kernels, so that new robots do not share them."""
    with arrays.COMPILING:
        _LOADED.clear()
        _RECENT.clear()


def compile(
    program: Program | Staged, machine: Machine | None = None, dtype: str = "float64"
) -> Kernel:
    """Compile and load a program for this computer or a compatible machine."""
    return Kernel(build(program, machine, dtype))


def described() -> str:
    """Return the processor's name and the number of threads."""
    return f"{Machine.host().cpu}, {arrays.cores()} threads"
