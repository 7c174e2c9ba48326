"""Machine code for one program, through LLVM: scalar for one state, SIMD for batches.

A built-in function around it, the fast entry, costs tens of nanoseconds in addition to the program.
It holds its code, and what CPython's function object points to, by references that the garbage
collector cannot take away (`llvm.code.Code`). Ways of calling a kernel are tuples: an array of
words that the machine code reads (`objects.WAY`), and whatever these words point to. Tuples and
arrays of numbers are never taken apart while somebody holds them. So no order in which garbage is
taken apart, no finalizer and no resurrection can leave an entry without its code; with the last
entry and the last kernel the code is freed. The list of further ways may be emptied by the
collector, and is then an empty list.
Long because an entry and its code are made together.
"""

import ctypes
import functools
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import llvmlite
import numpy as np

from chasles.backends import arrays, cache, objects
from chasles.backends.arrays import Load, Rows, words
from chasles.backends.cache import Artifact
from chasles.backends.llvm import checked
from chasles.backends.llvm import entry as llvm_entry
from chasles.backends.llvm import pieces as llvm_pieces
from chasles.backends.llvm.checked import address, start_of
from chasles.backends.llvm.code import Machine, assemble, emitted, load
from chasles.backends.llvm.math import ELEMENTS
from chasles.backends.llvm.source import WORTH_THREADS, Module, module
from chasles.backends.llvm.threads import pool
from chasles.backends.llvm.tiles import Target
from chasles.errors import StateError
from chasles.expr import Interface, Program, Staged

SHARE = 64
"""Rows go to threads in multiples of this: whole tiles."""
RECENT = 32
"""Kernels that stay loaded though nobody uses them, for robots that are made again."""

_LOADED: WeakValueDictionary[str, "Kernel"] = WeakValueDictionary()
"""Kernels in use, by recipe: equal robots share their code."""
_RECENT: OrderedDict[str, "Kernel"] = OrderedDict()
"""Recently used kernels."""


@functools.cache
def _exact() -> dict[str, int]:
    """The C library's sine and cosine, for angles too large to reduce in the vector code."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    names = ("sin", "cos")
    return {f"chasles_{name}": objects.at_address(getattr(library, name)) for name in names}


def source(
    program: Program | Staged, machine: Machine | None = None, dtype: str = "float64"
) -> Module:
    """The module in LLVM's language."""
    machine, element = machine or Machine.host(), ELEMENTS[dtype]
    lanes = machine.width * 8 // element.bytes
    return module(program, Target(lanes, machine.fuse, element))


def build(
    program: Program | Staged, machine: Machine | None = None, dtype: str = "float64"
) -> Artifact:
    """The machine code of a program."""
    machine = machine or Machine.host()
    written = source(program, machine, dtype)
    text = checked.instrumented(written.text) if checked.ON else written.text
    if text.count("\n") <= llvm_pieces.LONG:
        code = emitted(text, machine)
    else:
        names = ("triple", "cpu", "features", "effort")
        facts = {name: getattr(machine, name) for name in names}
        emit = functools.partial(emitted, machine=machine)
        code = llvm_pieces.compiled(text, facts, arrays.cores(), emit)
    taken = Interface(program.name, program.inputs, program.outputs, program.nonzero)
    return Artifact(taken, dtype, written.workspace, program.count.weight, code)


class Kernel:
    """A compiled program, loaded. Threads may share it."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.interface, self.dtype = artifact.interface, np.dtype(artifact.dtype)
        with arrays.COMPILING:
            self.code = load(artifact.object_code, _exact(), ("one", "batch"))
        self._finish()

    def _finish(self) -> None:
        """Look up the functions of the loaded code."""
        self.one_address, self.batch_address = self.code.address("one"), self.code.address("batch")
        one = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2)(self.one_address)
        self._one = checked.ends(one) if checked.ON else one

    def __call__(self, inputs: Rows, outputs: Rows, threads: int | None = None) -> None:
        """Run on rows: arrays (count, size), each row contiguous, any row stride.

        No output overlaps an input, except that several rows may be exactly those of an input.
        """
        count = outputs[0].shape[0] if outputs else 0
        if count == 0:
            return
        ins, outs = (words(map(address, each)) for each in (inputs, outputs))
        if count == 1:
            self._one(start_of(ins), start_of(outs))
            return
        if threads is None:
            threads = arrays.cores() if count * self.artifact.work > WORTH_THREADS else 1
        steps = [words(a.strides[0] for a in each) for each in (inputs, outputs)]
        tables = (ins, steps[0], outs, steps[1])
        head = (self.batch_address, self.artifact.workspace, len(ins), len(outs))
        given, run = words((*head, *map(start_of, tables))), pool()
        run(run.rows, start_of(given), count, SHARE, threads, self.artifact.work)

    def prepared(self, inputs: Rows, outputs: Rows) -> Callable[..., None]:
        """A call of several rows of certain arrays, on this thread, to be made many times.

        It may be given a count of rows, from one on, if not all are to be computed.
        """
        space = np.empty(self.artifact.workspace // 8 + 8)
        arrays_ = [*inputs, *outputs, space]
        steps = [words(a.strides[0] for a in each) for each in (inputs, outputs)]
        places = [words(objects.address(a) for a in each) for each in (inputs, outputs)]
        tables = (places[0], steps[0], places[1], steps[1])
        starts = [table.buffer_info()[0] for table in tables]
        even = -(-objects.address(space) // 64) * 64
        every, given = len(outputs[0]), tuple(map(ctypes.c_void_p, (*starts, even)))
        kinds = (ctypes.c_int64, *[ctypes.c_void_p] * 5)
        batch = checked.ends(ctypes.CFUNCTYPE(None, *kinds)(self.batch_address))

        def call(count: int = every) -> None:
            assert count <= every, "rows"
            if checked.ON:
                for a in arrays_:
                    address(a)
                for table in tables:
                    start_of(table)
            batch(count, *given)

        return call

    def fast_entry(self, **facts: Any) -> Callable[..., Any]:
        """A built-in function around the code."""
        return fast_entry(self, **facts)


# Fast entries ------------------------------------------------------------------------------------

Again = Callable[["Owner", tuple[Any, ...], dict[str, Any]], Any]
"""A short way for what an entry does not take: its owner, arguments and named ones to an answer, or
NotImplemented."""

Way = tuple[Any, ...]
NEVER, ALWAYS, ANY = 0, 1, 2
"""Use of a way for arguments that are all float32."""


def _plain_way(kernel: Kernel) -> Way | None:
    """The way by arrays alone; None for a kernel with more arrays than the code has room for."""
    interface = kernel.interface
    variables = (*interface.inputs, *interface.outputs)
    few = 0 < len(interface.outputs) <= objects.MOST_OUTPUTS
    if not few or len(interface.inputs) > objects.MOST_INPUTS:
        return None
    if any(len(v.shape) > objects.MOST_RANK for v in variables):
        return None
    shapes = np.zeros((len(variables), objects.VARIABLE), np.int64)
    for row, variable in zip(shapes, variables, strict=True):
        row[:2] = variable.size, len(variable.shape)
        row[2 : 2 + len(variable.shape)] = variable.shape
    zeros = np.array(interface.nonzero, np.int64).reshape(-1, 2)
    count = len(interface.inputs)
    facts = {
        "one": kernel.one_address,
        "batch": kernel.batch_address,
        "workspace": kernel.artifact.workspace,
        "most": WORTH_THREADS // max(kernel.artifact.work, 1),
        "number": kernel.dtype.num,
        "element": int(kernel.dtype == np.float32),
        "bytes": kernel.dtype.itemsize,
        "inputs": count,
        "outputs": len(interface.outputs),
        "shown": len(interface.outputs),
        "gap": 0,
        "margin": 0,
        "numbers": sum(v.size for v in interface.inputs),
        "variables": shapes.ctypes.data,
        "nonzero": len(zeros),
        "quaternions": zeros.ctypes.data,
        "single": ANY if kernel.dtype == np.float32 else NEVER,
    }
    return way_of(facts, (kernel.code, shapes, zeros), count, [4 * k for k in range(count)])


def way_of(
    facts: Mapping[str, int],
    kept: tuple[Any, ...],
    arguments: int,
    sources: Sequence[int],
    fixed: tuple[Any, ...] = (),
    options: Mapping[str, Any] | None = None,
    loads: Sequence[Load] | None = None,
) -> Way:
    """The words of a way, and what they point to."""
    named = [(name, value) for name, value in (options or {}).items()]
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
    counts = {
        "arguments": arguments,
        "options": len(named),
        "wrenches": -1 if loads is None else len(held),
    }
    all_facts = {**facts, **counts, **{name: a.ctypes.data for name, a in lists.items()}}
    all_facts["bare"] = -1
    if list(sources) == [4 * k for k in range(len(sources))]:
        all_facts["sources"] = 0  # the caller's arguments as they are
        if not named and loads is None:
            all_facts["bare"] = arguments
    numbers = np.array([all_facts[name] for name in objects.WAY], np.int64)
    return (numbers, kept, tuple(lists.values()), fixed, tuple(named), tuple(held), dict(facts))


def _addresses(things: Sequence[Any]) -> np.ndarray:
    return np.array([id(thing) for thing in things], np.int64)


class Owner(tuple[Any, ...]):
    """The `__self__` of a fast entry, called for arguments that the machine code does not take.

    A tuple: the way by arrays alone (or None), further ways that were learned, the holder with the
    name under which a pickled entry is found again, the Python path (`fallback`), the path tried
    before it (`again`), and the learned ways.
    """

    __slots__ = ()

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        _, _, _, _, fallback, again, _ = self
        answer = NotImplemented if again is None else again(self, arguments, named)
        if answer is not NotImplemented:
            return answer
        if fallback is None:
            raise StateError("E-CALL-016", "the robot of this function has been taken apart")
        return fallback(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name == self[3]:
            return getattr(self[2], name)
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _without_code, (self[2], self[3])


def _without_code(holder: Any, name: str) -> Owner:
    """An owner from another process: asked only for the entry of its name there."""
    return Owner((None, [], holder, name, None, None, set()))


_FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002
_DEFINITIONS: dict[str, tuple[np.ndarray, Any]] = objects.for_ever({})
"""Method definitions by name, signature and documentation; CPython reads them until the end."""


def _definition(name: str, text: str, entry: int) -> int:
    """The address of a method definition, kept for ever: there is one for each function."""
    if text not in _DEFINITIONS:
        held = ctypes.c_char_p(name.encode()), ctypes.c_char_p(text.encode())
        start, end = (ctypes.cast(x, ctypes.c_void_p).value or 0 for x in held)
        found = np.array([start, entry, _FASTCALL_WITH_KEYWORDS, end], np.int64)
        _DEFINITIONS[text] = found, held
    return _DEFINITIONS[text][0].ctypes.data


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
    """Return a built-in function that calls a kernel, or only what it learns from its fallback.

    The fallback itself, where Python or the kernel allow no such thing. holder: where the function
    can be found again by name when it is unpickled. fallback: takes the same arguments in every
    form, and is called for whatever the machine code does not take. again: tried before it, a short
    way for arrays that only need another memory layout.
    """
    way = None if kernel is None else _plain_way(kernel)
    if not objects.supported() or (kernel is not None and way is None):
        return fallback
    objects.fill_context()
    text, entry = f"{name}($self, {signature})\n--\n\n{doc}", _shared().address("entry")
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    owner = Owner((way, [], holder, name, fallback, again, set()))
    built: Callable[..., Any] = make(_definition(name, text, entry), owner, None)
    return built


@functools.cache
def _shared() -> Any:
    """The code that all fast entries share, loaded; never freed, since finalisers may call it."""
    name = _entry("entry", "float64")
    found = cache.load(name)
    if found is None:
        code = assemble(llvm_entry.module(), Machine.host(), optimise=True, opaque=True)
        found = Artifact(Interface("entry", (), (), ()), "float64", 0, 0, code)
        cache.save(name, found)
    symbols = {"context": ctypes.addressof(objects.FILLED)}
    return objects.for_ever(load(found.object_code, symbols, ("entry", "called")))


def called_by_slot(kind: type, sample: Any) -> None:
    """Let objects of a class that keep a fast entry in their first slot be called like it.

    CPython calls an object by what its class has in `tp_call`, which is by default the `__call__`
    of the class: machine code at an address takes its place, and hands on what it does not take.
    The method stays what others see of the class, as the compiler of PyTorch does.
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
    return cache.key(recipe, dtype, Machine.host(), *made_by)


def _used(name: str, kernel: Kernel) -> Kernel:
    """A kernel, kept for a while in any case."""
    _LOADED[name] = _RECENT[name] = kernel
    _RECENT.move_to_end(name)
    while len(_RECENT) > RECENT:
        _RECENT.popitem(last=False)
    return kernel


def known(recipe: object, trace: Callable[[], Program], dtype: str) -> Kernel | None:
    """The kernel of a recipe that is loaded already, or in the cache."""
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
    """Compile the program of a recipe, and keep its kernel here and in the cache."""
    name, artifact = _entry(recipe, dtype), build(program, dtype=dtype)
    cache.save(name, artifact)
    with arrays.COMPILING:
        return _used(name, Kernel(artifact))


def forget() -> None:
    """Share no kernel loaded so far with robots made from now on."""
    with arrays.COMPILING:
        _LOADED.clear()
        _RECENT.clear()


def compile(
    program: Program | Staged, machine: Machine | None = None, dtype: str = "float64"
) -> Kernel:
    """Machine code for this computer (or as it were for another like it), loaded."""
    return Kernel(build(program, machine, dtype))


def described() -> str:
    """The processor that code runs on, and how many threads of it."""
    return f"{Machine.host().cpu}, {arrays.cores()} threads"
