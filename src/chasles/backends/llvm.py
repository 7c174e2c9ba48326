"""Machine code for one program, through LLVM: scalar for one state, SIMD for batches.

Around it stands a built-in function, the fast entry, which costs tens of nanoseconds beside the
program itself. What its machine code and CPython's function object point to is never freed, not
even when the interpreter ends: the code, the method definition and the context. So no order in
which the garbage collector takes things apart, no finaliser and no resurrection can leave an entry
without its code. (Equal programs share their code, so a robot made again costs nothing.)
Everything of a robot is reached through the function's `__self__`, an ordinary Python object.
"""

import ctypes
import functools
import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from chasles.backends import arrays, cache, llvm_entry, llvm_objects, llvm_ways
from chasles.backends.arrays import Rows
from chasles.backends.cache import Artifact
from chasles.backends.llvm_math import ELEMENTS
from chasles.backends.llvm_objects import address, at_address
from chasles.backends.llvm_source import WORTH_THREADS, Module, Target, module
from chasles.expr import Interface, Program

_SHARE = 64
"""Rows go to threads in multiples of this: whole tiles."""
_LOADED: dict[str, "Kernel"] = {}
"""Kernels by recipe: equal robots share their code."""
_SERIAL = itertools.count()


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
        found, triple = llvm.get_host_cpu_features(), llvm.get_process_triple()
        widest = found.get("avx512f") and found.get("avx512dq")
        width = 8 if widest else 4 if found.get("avx") else 2
        fuse = any(found.get(name) for name in ("fma", "neon", "fp-armv8"))
        fuse = fuse or triple.startswith(("aarch64", "arm64"))
        return Machine(triple, llvm.get_host_cpu_name(), found.flatten(), width, fuse)

    def without_fma(self) -> "Machine":
        """The same processor, used as if it had no fused multiply-add."""
        return replace(self, fuse=False)


@functools.cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@functools.cache
def _exact() -> dict[str, int]:
    """The C library's sine and cosine, for angles too large to reduce in the vector code."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    return {f"chasles_{name}": at_address(getattr(library, name)) for name in ("sin", "cos")}


@functools.cache
def _jit() -> Any:
    return llvm.create_lljit_compiler()


def source(program: Program, machine: Machine | None = None, dtype: str = "float64") -> Module:
    """The module in LLVM's language."""
    machine, element = machine or Machine.host(), ELEMENTS[dtype]
    lanes = machine.width * 8 // element.bytes
    return module(program, Target(lanes, machine.fuse, element))


def assemble(text: str, machine: Machine, *, optimise: bool = False) -> bytes:
    """Machine code from a module's text.

    optimise: with LLVM's mid-level passes, which have nothing to do in straight-line programs; but
    loops, which are short here, stay as they are.
    """
    with arrays.COMPILING:
        _initialise()
        target = llvm.Target.from_triple(machine.triple).create_target_machine(
            cpu=machine.cpu,
            features=machine.features,
            opt=machine.effort,
            reloc="pic",
            codemodel="small",
        )
        parsed = llvm.parse_assembly(text)
        parsed.triple = machine.triple
        if optimise:
            tuning = llvm.create_pipeline_tuning_options(speed_level=2)
            tuning.loop_unrolling = tuning.loop_vectorization = tuning.slp_vectorization = False
            passes = llvm.create_pass_builder(target, tuning)
            passes.getModulePassManager().run(parsed, passes)
        return bytes(target.emit_object(parsed))


def build(program: Program, machine: Machine | None = None, dtype: str = "float64") -> Artifact:
    """The machine code of a program."""
    machine = machine or Machine.host()
    written = source(program, machine, dtype)
    code = assemble(written.text, machine)
    return Artifact(program.interface, dtype, written.workspace, program.count.weight, code)


def load(code: bytes, symbols: Mapping[str, int], names: Iterable[str]) -> Any:
    """Machine code that calls functions at addresses, with the addresses of some of its names."""
    with arrays.COMPILING:
        _initialise()
        builder = llvm.JITLibraryBuilder()
        builder.add_object_img(code).add_current_process()
        for name, address in symbols.items():
            builder.import_symbol(name, address)
        for name in names:
            builder.export_symbol(name)
        return builder.link(_jit(), f"chasles{next(_SERIAL)}")


Places = Sequence[tuple[int, int]]
"""Where the rows of arrays start, and how far they are apart."""


class Kernel:
    """A compiled program, loaded. Threads may share it: each has its own workspace."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.interface, self.dtype = artifact.interface, np.dtype(artifact.dtype)
        self._local = threading.local()
        with arrays.COMPILING:
            self._library = load(artifact.object_code, _exact(), ("one", "batch"))
        pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
        self.one_address: int = self._library["one"]
        self._one = ctypes.CFUNCTYPE(None, pointer, pointer)(self.one_address)
        self.batch_address: int = self._library["batch"]
        self._batch = ctypes.CFUNCTYPE(None, size, *[pointer] * 5)(self.batch_address)

    def __call__(self, inputs: Rows, outputs: Rows, threads: int | None = None) -> None:
        """Run on rows: arrays (count, size), each row contiguous, any row stride.

        No output overlaps an input, except that several rows may be exactly those of an input.
        """
        count = outputs[0].shape[0] if outputs else 0
        if count == 0:
            return
        if count == 1:
            self._one(*(table(ctypes.c_void_p, map(address, a)) for a in (inputs, outputs)))
            return
        if threads is None:
            threads = arrays.cores() if count * self.artifact.work > WORTH_THREADS else 1

        def work(first: int, last: int) -> None:
            """Rows from first to last; whoever has this function keeps the arrays alive."""
            given, taken = ([(address(a), a.strides[0]) for a in b] for b in (inputs, outputs))
            self._range(first, last, given, taken)

        arrays.in_ranges(count, _SHARE, threads, work)

    def run(self, count: int, *tables: int) -> None:
        """Run on all threads on rows at addresses that the caller keeps.

        tables: where addresses and strides of the inputs are, then those of the outputs.
        """
        sizes = [len(self.interface.inputs)] * 2 + [len(self.interface.outputs)] * 2
        lists = [
            list((ctypes.c_ssize_t * size).from_address(place))
            for size, place in zip(sizes, tables, strict=True)
        ]
        given, taken = (list(zip(lists[k], lists[k + 1], strict=True)) for k in (0, 2))
        cores = arrays.cores()
        arrays.in_ranges(count, _SHARE, cores, lambda a, b: self._range(a, b, given, taken))

    def _range(self, first: int, last: int, given: Places, taken: Places) -> None:
        tables = []
        for places in (given, taken):
            tables.append(table(ctypes.c_void_p, [start + first * step for start, step in places]))
            tables.append(table(ctypes.c_ssize_t, [step for _, step in places]))
        self._batch(last - first, *tables, self.workspace())

    def workspace(self) -> int:
        """Room for tiles of lanes, one for each thread; aligned to the widest vector."""
        if not hasattr(self._local, "workspace"):
            self._local.workspace = np.empty(self.artifact.workspace + 64, np.uint8)
        return -(-address(self._local.workspace) // 64) * 64

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
    if not llvm_objects.supported() or (kernel is not None and way is None):
        return fallback
    return llvm_ways.fast_entry(_shared()["entry"], way, fallback=fallback, **facts)


@functools.cache
def _shared() -> Any:
    """The code that all fast entries share, loaded; never freed, since finalisers may call it."""
    name = _entry("entry", "float64")
    found = cache.load(name)
    if found is None:
        code = assemble(llvm_entry.module(), Machine.host(), optimise=True)
        found = Artifact(Interface("entry", (), (), ()), "float64", 0, 0, code)
        cache.save(name, found)
    symbols = {"context": ctypes.addressof(llvm_objects.FILLED)}
    return llvm_objects.for_ever(load(found.object_code, symbols, ("entry", "called")))


def called_by_slot(kind: type, sample: Any) -> None:
    """Call objects of a class by the fast entry in their first slot (`llvm_ways`)."""
    if llvm_objects.supported():
        llvm_objects.fill_context()
        llvm_ways.called_by_slot(kind, sample, _shared()["called"])


def table(kind: Any, numbers: Iterable[int]) -> Any:
    """Numbers or addresses as an array of C."""
    listed = list(numbers)
    return (kind * len(listed))(*listed)


def _entry(recipe: object, dtype: str) -> str:
    return cache.key(recipe, dtype, Machine.host(), llvmlite.__version__, llvm_objects.LAYOUT)


def known(recipe: object, trace: Callable[[], Program], dtype: str) -> Kernel | None:
    """The kernel of a recipe that is loaded already, or in the cache."""
    name = _entry(recipe, dtype)
    if name not in _LOADED:
        artifact = cache.load(name)
        if artifact is None:
            return None
        _LOADED[name] = Kernel(artifact)
    return _LOADED[name]


def keep(recipe: object, program: Program, dtype: str) -> Kernel:
    """Compile the program of a recipe, and keep its kernel here and in the cache."""
    name, artifact = _entry(recipe, dtype), build(program, dtype=dtype)
    cache.save(name, artifact)
    _LOADED[name] = Kernel(artifact)
    return _LOADED[name]


def forget() -> None:
    """Share no kernel loaded so far with robots made from now on."""
    _LOADED.clear()


def compile(program: Program, machine: Machine | None = None, dtype: str = "float64") -> Kernel:
    """Machine code for this computer (or as it were for another like it), loaded."""
    return Kernel(build(program, machine, dtype))


def described() -> str:
    """The processor that code runs on, and how many threads of it."""
    return f"{Machine.host().cpu}, {arrays.cores()} threads"
