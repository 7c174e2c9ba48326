"""Machine code for one program, through LLVM: scalar for one state, SIMD for batches.

Around it stands a built-in function, the fast entry, which costs tens of nanoseconds beside the
program itself. It holds its code, and what CPython's function object points to, by a reference
that the garbage collector cannot take away (`llvm_code.Code`). So no order in which garbage is
taken apart, no finaliser and no resurrection can leave an entry without its code; with the last
entry and the last kernel the code is freed.
"""

import ctypes
import functools
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from chasles.backends import arrays, cache, objects
from chasles.backends.arrays import Rows, words
from chasles.backends.cache import Artifact
from chasles.backends.interrupts import undisturbed
from chasles.backends.llvm import checked
from chasles.backends.llvm import entry as llvm_entry
from chasles.backends.llvm import pieces as llvm_pieces
from chasles.backends.llvm import threads as llvm_threads
from chasles.backends.llvm import ways as llvm_ways
from chasles.backends.llvm.body import Target
from chasles.backends.llvm.checked import address, start_of
from chasles.backends.llvm.code import BUSY, initialise, load, sweep
from chasles.backends.llvm.math import ELEMENTS
from chasles.backends.llvm.source import WORTH_THREADS, Module, module
from chasles.backends.objects import at_address
from chasles.expr import Interface, Program, Staged

SHARE = 64
"""Rows go to threads in multiples of this: whole tiles."""
RECENT = 32
"""Kernels that stay loaded though nobody uses them, for robots that are made again."""

_LOADED: WeakValueDictionary[str, "Kernel"] = WeakValueDictionary()
"""Kernels in use, by recipe: equal robots share their code."""
_RECENT: OrderedDict[str, "Kernel"] = OrderedDict()
"""Those asked for last."""


@dataclass(frozen=True)
class Machine:
    """The processor that code is made for.

    effort: how hard LLVM tries, 0 to 3. Results have the same bits at any; 0 compiles in a fifth of
    the time of 2, to code that takes twice as long.
    """

    triple: str
    cpu: str
    features: str
    width: int
    fuse: bool
    effort: int = 2

    @staticmethod
    @functools.cache
    def host() -> "Machine":
        """This computer, with its widest vectors of doubles."""
        found, triple, cpu = undisturbed(_facts)
        widest = found.get("avx512f") and found.get("avx512dq")
        width = 8 if widest else 4 if found.get("avx") else 2
        fuse = any(found.get(name) for name in ("fma", "neon", "fp-armv8"))
        fuse = fuse or triple.startswith(("aarch64", "arm64"))
        return Machine(triple, cpu, found.flatten(), width, fuse)

    def without_fma(self) -> "Machine":
        """The same processor, used as if it had no fused multiply-add."""
        return replace(self, fuse=False)


@functools.cache
def _exact() -> dict[str, int]:
    """The C library's sine and cosine, for angles too large to reduce in the vector code."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    return {f"chasles_{name}": at_address(getattr(library, name)) for name in ("sin", "cos")}


def source(
    program: Program | Staged, machine: Machine | None = None, dtype: str = "float64"
) -> Module:
    """The module in LLVM's language."""
    machine, element = machine or Machine.host(), ELEMENTS[dtype]
    lanes = machine.width * 8 // element.bytes
    return module(program, Target(lanes, machine.fuse, element))


def _facts() -> tuple[Any, str, str]:
    """Features of this processor, the system's triple, the processor's name."""
    return llvm.get_host_cpu_features(), llvm.get_process_triple(), llvm.get_host_cpu_name()


def assemble(text: str, machine: Machine, *, optimise: bool = False, opaque: bool = False) -> bytes:
    """Machine code from a module's text.

    optimise: with LLVM's mid-level passes, which have nothing to do in straight-line programs; but
    loops, which are short here, stay as they are. opaque: see `llvm.checked`.
    """
    whole = checked.instrumented(text, opaque=opaque) if checked.ON else text
    return _emitted(whole, machine, optimise)


def _emitted(text: str, machine: Machine, optimise: bool = False) -> bytes:
    try:
        with arrays.COMPILING, BUSY:
            return undisturbed(lambda: _compiled(text, machine, optimise))
    finally:
        undisturbed(sweep)


def _compiled(text: str, machine: Machine, optimise: bool) -> bytes:
    initialise()
    target = llvm.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu,
        features=machine.features,
        opt=machine.effort,
        reloc="pic",
        codemodel="small",
    )
    parsed = llvm.parse_assembly(text, llvm.create_context())
    parsed.triple = machine.triple
    if optimise:
        tuning = llvm.create_pipeline_tuning_options(speed_level=2)
        tuning.loop_unrolling = tuning.loop_vectorization = tuning.slp_vectorization = False
        passes = llvm.create_pass_builder(target, tuning)
        passes.getModulePassManager().run(parsed, passes)
        del tuning, passes  # before the target
    return bytes(target.emit_object(parsed))


def build(
    program: Program | Staged, machine: Machine | None = None, dtype: str = "float64"
) -> Artifact:
    """The machine code of a program."""
    machine = machine or Machine.host()
    written = source(program, machine, dtype)
    text = checked.instrumented(written.text) if checked.ON else written.text
    if text.count("\n") <= llvm_pieces.LONG:
        code = _emitted(text, machine)
    else:
        names = ("triple", "cpu", "features", "effort")
        facts = {name: getattr(machine, name) for name in names}
        emit = functools.partial(_emitted, machine=machine)
        code = llvm_pieces.compiled(text, facts, arrays.cores(), emit)
    taken = Interface(program.name, program.inputs, program.outputs, program.nonzero)
    return Artifact(taken, dtype, written.workspace, program.count.weight, code)


@functools.cache
def pool() -> llvm_threads.Pool:
    """The threads of this process."""
    code = assemble(llvm_threads.SOURCE, Machine.host())
    return llvm_threads.Pool(load(code, llvm_threads.symbols(), ("share", "serve", "rows")))


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
        """A built-in function around the code (`llvm_ways.fast_entry`)."""
        return fast_entry(self, **facts)


def fast_entry(
    kernel: Kernel | None, *, fallback: Callable[..., Any], **facts: Any
) -> Callable[..., Any]:
    """A built-in function that calls a kernel, or only what it learns from its fallback.

    The fallback itself, where Python or the kernel allow no such thing.
    """
    way = None if kernel is None else llvm_ways.plain_way(kernel)
    if not objects.supported() or (kernel is not None and way is None):
        return fallback
    return llvm_ways.fast_entry(_shared().address("entry"), way, fallback=fallback, **facts)


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
    """Call objects of a class by the fast entry in their first slot (`llvm.ways`)."""
    if objects.supported():
        objects.fill_context()
        llvm_ways.called_by_slot(kind, sample, _shared().address("called"))


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
