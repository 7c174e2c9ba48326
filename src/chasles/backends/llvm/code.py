"""Machine code by LLVM: compiled from text, linked on use, freed with its last reference.

LLVM's linker keeps some kilobytes for every unloaded piece of code until the linker itself is
freed. Therefore a linker is replaced after `SHARED` pieces, and freed with the last of them.
"""

import collections
import contextlib
import functools
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np

from chasles.backends import arrays
from chasles.backends.cache import undisturbed
from chasles.backends.llvm import checked
from chasles.errors import ArgumentError

SHARED = 64
"""Number of pieces of code that one linker loads."""

_MAGIC = b"chasles objects\n"
"""First bytes of code with several objects."""

_LINKER: list[Any] = []
_SERIAL = itertools.count()
_GONE: collections.deque[Any] = collections.deque()
"""Code to be unloaded."""
BUSY = threading.Lock()
"""Lock held during long work of LLVM. Unloading of code waits for it, but owners of code do not."""
_FORKING: list[None] = []
"""Nonempty while the process forks."""
_SWEEPING: list[int] = []
"""Threads that are unloading code, one entry per call."""


@functools.cache
def initialise() -> None:
    """Initialize LLVM for this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


# Compiling ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine:
    """The processor for which code is compiled.

    effort: optimization level of LLVM, 0 to 3. Results are bitwise identical at all levels; level 0
    compiles in a fifth of the time of level 2, to code that takes twice as long.
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
        """Return this computer, with its widest vectors of doubles."""
        found, triple, cpu = undisturbed(_facts)
        widest = found.get("avx512f") and found.get("avx512dq")
        width = 8 if widest else 4 if found.get("avx") else 2
        fuse = any(found.get(name) for name in ("fma", "neon", "fp-armv8"))
        fuse = fuse or triple.startswith(("aarch64", "arm64"))
        return Machine(triple, cpu, found.flatten(), width, fuse)

    def without_fma(self) -> "Machine":
        """Return the same processor, used as if it had no fused multiply-add."""
        return replace(self, fuse=False)


def _facts() -> tuple[Any, str, str]:
    """Return features of this processor, the system's triple, and the processor's name."""
    return llvm.get_host_cpu_features(), llvm.get_process_triple(), llvm.get_host_cpu_name()


def assemble(text: str, machine: Machine, *, optimise: bool = False, opaque: bool = False) -> bytes:
    """Compile a module's text to machine code.

    optimise: run LLVM's mid-level passes, which do not help straight-line programs. Loops are short
    here, so they are neither unrolled nor vectorized. opaque: see `llvm.checked`.
    """
    whole = checked.instrumented(text, opaque=opaque) if checked.ON else text
    return emitted(whole, machine, optimise)


def emitted(text: str, machine: Machine, optimise: bool = False) -> bytes:
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


# Loading -----------------------------------------------------------------------------------------


class Piece:
    """Resources that a piece of code needs while it may run.

    loaded: the code. linker: must outlive the code it loaded. others: code that this code calls.
    kept: Python objects that the code or its callers point to, by name.
    """

    def __init__(self, loaded: Any, linker: Any, others: tuple["Code", ...]) -> None:
        self.loaded, self.linker, self.others = loaded, linker, others
        self.kept: dict[str, Any] = {}

    def __reduce_ex__(self, protocol: Any) -> Any:
        problem = "machine code in memory cannot be copied or pickled"
        raise ArgumentError(
            "E-CALL-099", problem, "pickle the robot or the compiled function instead"
        )

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending():
            own = self.__dict__
            _GONE.append((own.pop("loaded"), own.pop("linker")))  # `sweep` has the last reference
            if not BUSY.locked():
                undisturbed(sweep)


class Code(NamedTuple):
    """A piece of machine code, freed with the last reference to this object.

    Every caller of the code holds this tuple, or another tuple that holds it. The garbage collector
    clears and finalizes the objects of a cycle one by one, while other objects of the cycle may
    still run. It does not clear tuples or traverse NumPy arrays, so it never reaches the piece.
    """

    hidden: np.ndarray

    @property
    def piece(self) -> Piece:
        """The code itself; callers must not keep it."""
        found: Piece = self.hidden.item()
        return found

    def address(self, name: str) -> int:
        """Return the address of a function."""
        return int(self.piece.loaded[name])


def sweep() -> None:
    """Unload code without references, unless the process is about to fork.

    The function acquires no lock of this module: an interrupt could leave the lock acquired, and an
    owner that is freed while another thread compiles must not wait.
    """
    own = threading.get_ident()
    try:
        _SWEEPING.append(own)
        while _GONE and not _FORKING:
            loaded, linker = _GONE.popleft()
            loaded.close()
            del loaded, linker  # the linker may be freed with its last code
    except IndexError:  # another thread was faster
        pass
    finally:
        with contextlib.suppress(ValueError):
            _SWEEPING.remove(own)


def _begin_fork() -> None:
    """Wait until no other thread holds LLVM's lock, which the child could never acquire."""
    _FORKING.append(None)
    end = time.monotonic() + 1.0  # an interrupted thread may have left an entry
    while set(_SWEEPING) - {threading.get_ident()} and time.monotonic() < end:
        time.sleep(1e-4)


def _end_fork() -> None:
    _FORKING.pop()


def _begin_child() -> None:
    _FORKING.clear()
    _SWEEPING.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_begin_fork, after_in_parent=_end_fork, after_in_child=_begin_child)


def joined(objects: Sequence[bytes]) -> bytes:
    """Return several objects as one byte string; a single object is unchanged."""
    if len(objects) == 1:
        return objects[0]
    sizes = json.dumps([len(each) for each in objects]).encode()
    return b"".join((_MAGIC, len(sizes).to_bytes(8, "little"), sizes, *objects))


def objects(code: bytes) -> list[bytes]:
    """Return the objects that `joined` combined."""
    if not code.startswith(_MAGIC):
        return [code]
    start = len(_MAGIC) + 8
    end = start + int.from_bytes(code[len(_MAGIC) : start], "little")
    found = []
    for size in json.loads(code[start:end]):
        found.append(code[end : end + size])
        end += size
    return found


def load(
    code: bytes, symbols: Mapping[str, int], names: Iterable[str], others: tuple[Code, ...] = ()
) -> Code:
    """Link machine code with `symbols` at given addresses, and export some of its names.

    others: other code that this code calls.
    """
    known = {**symbols, **checked.symbols()} if checked.ON else symbols
    with arrays.COMPILING:
        return undisturbed(lambda: _linked(code, known, names, others))


def _linked(
    code: bytes, symbols: Mapping[str, int], names: Iterable[str], others: tuple[Code, ...]
) -> Code:
    initialise()
    sweep()
    number = next(_SERIAL)
    if number % SHARED == 0 or not _LINKER:
        newer = sys.platform != "win32"  # the newer linker takes less memory, fewer mappings
        _LINKER[:] = [llvm.create_lljit_compiler(use_jit_link=newer)]
    builder = llvm.JITLibraryBuilder()
    for piece in objects(code):
        builder.add_object_img(piece)
    builder.add_current_process()
    for name, address in symbols.items():
        builder.import_symbol(name, address)
    for name in names:
        builder.export_symbol(name)
    loaded = builder.link(_LINKER[0], f"chasles{number}")
    hidden = np.empty((), dtype=object)
    hidden[()] = Piece(loaded, _LINKER[0], others)
    return Code(hidden)
