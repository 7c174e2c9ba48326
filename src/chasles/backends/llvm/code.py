"""Machine code that LLVM compiles from text, links on first use, and frees when unreferenced.

LLVM takes seconds for the long functions of a large robot, and llvmlite holds one lock for the
whole process. Therefore long functions become separate modules, which are compiled by other Python
processes (`llvm.worker`). These processes exchange data through files and exit after compilation.
The caller's main module does not need a `__main__` guard. A module whose process was killed or
could not start is compiled in this process.

LLVM's linker keeps some kilobytes for every module that was unloaded, until the linker itself is
freed. Therefore a linker is replaced after `SHARED` modules, and freed when the last of these
modules is freed.
"""

import collections
import contextlib
import functools
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from chasles.backends import arrays, undisturbed
from chasles.backends.llvm import checked
from chasles.errors import ArgumentError

SHARED = 64
"""Maximum number of code modules that one linker loads."""

LONG = 2000
"""Number of lines above which a function is compiled as a separate module."""

WORTH = 10_000
"""Minimum number of lines in a module's long functions, in total, for which several processes
compile the functions (about 1 s of work)."""

_GLOBAL = re.compile(r"@([A-Za-z_][\w.]*)")

_MAGIC = b"chasles objects\n"
"""First bytes of machine code that consists of several object files."""

_LINKER: list[Any] = []
_SERIAL = itertools.count()
_GONE: collections.deque[Any] = collections.deque()
"""Loaded code (with its linker) that is no longer referenced and waits to be unloaded."""
BUSY = threading.Lock()
"""Lock held while LLVM compiles. Code that is freed meanwhile is unloaded later."""
_FORKING: list[None] = []
"""List that is nonempty while the process forks. Code must not be unloaded during a fork."""
_SWEEPING: list[int] = []
"""Identifiers of the threads that are executing `sweep`, which unloads code."""


@functools.cache
def initialise() -> None:
    """Initialize LLVM for this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


# Compiling ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine:
    """The processor for which code is compiled.

    effort: LLVM's optimization level, 0 to 3. Results are bitwise identical at all levels. Level 0
    compiles faster than level 2, but the code is slower (see `llvm.quick`).
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
        """Return a `Machine` for this computer, with its maximum SIMD width in doubles."""
        found, triple, cpu = undisturbed(_facts)
        widest = found.get("avx512f") and found.get("avx512dq")
        width = 8 if widest else 4 if found.get("avx") else 2
        fuse = any(found.get(name) for name in ("fma", "neon", "fp-armv8"))
        fuse = fuse or triple.startswith(("aarch64", "arm64"))
        return Machine(triple, cpu, found.flatten(), width, fuse)

    def without_fma(self) -> "Machine":
        """Return a copy of this processor description with fused multiply-add disabled."""
        return replace(self, fuse=False)


def _facts() -> tuple[Any, str, str]:
    """Return this processor's features, the system's target triple, and the processor's name."""
    return llvm.get_host_cpu_features(), llvm.get_process_triple(), llvm.get_host_cpu_name()


def assemble(text: str, machine: Machine, *, optimise: bool = False, opaque: bool = False) -> bytes:
    """Compile a module's text to machine code.

    - optimise: True to run LLVM's mid-level passes, which do not help straight-line programs. Loops
      are short here, so they are neither unrolled nor vectorized.
    - opaque: see `llvm.checked`.
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
        del tuning, passes  # both must be freed before the target
    return bytes(target.emit_object(parsed))


# Compiling in several processes ------------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """A function in LLVM IR: the `define` line, and the lines of the body."""

    head: str
    body: tuple[str, ...]

    @property
    def name(self) -> str:
        return _GLOBAL.findall(self.head)[0]

    @functools.cached_property
    def used(self) -> set[str]:
        """Names of the functions and data that this function refers to."""
        return set(_GLOBAL.findall("\n".join(self.body)))

    @property
    def declaration(self) -> str:
        """Return a declaration for other modules, without parameter names or attributes."""
        kind, rest = self.head.removeprefix("define internal ").split(" @", 1)
        name, parameters = rest.split("(", 1)
        types = [p.strip().split()[0] for p in parameters[: parameters.rindex(")")].split(",") if p]
        return f"declare hidden {kind} @{name}({', '.join(types)})"

    def text(self, shared: bool) -> str:
        """Return the function's text; if `shared`, other modules can call the function.

        Long functions are not tuned for a specific processor. Scheduling with a processor model
        takes a time that grows faster than the function's length, without a measurable gain.
        """
        head = self.head.replace("define internal", "define hidden") if shared else self.head
        if len(self.body) > LONG:
            head = head.replace(" {", ' "tune-cpu"="generic" {')
        return "\n".join((head, *self.body))


def split(text: str, cores: int, worth: int | None = None, count: int = 0) -> list[str]:
    """Move the long functions of a module to at most `count` (by default `cores`) other modules.

    The first result is the module with the short functions. With one core, or if the long functions
    have fewer lines than `worth` (by default `WORTH`), return only the module itself.
    """
    worth = WORTH if worth is None else worth
    rest, functions = _parsed(text)
    defined = {f.name: f for f in functions}
    data = {m[1] for line in rest if (m := re.match(r"@([\w.]+) =", line))}
    long = [f for f in functions if _is_long(f)]
    if cores > 1 and sum(len(f.body) for f in long) >= worth:
        long = [f for f in long if not f.used & data]
    if cores < 2 or sum(len(f.body) for f in long) < worth:
        return ["\n".join((*rest, *(f.text(False) for f in functions)))]
    bins: list[list[Function]] = [[] for _ in range(min(count or cores, len(long)))]
    for f in sorted(long, key=lambda f: -len(f.body)):
        min(bins, key=lambda bin: sum(len(g.body) for g in bin)).append(f)
    apart = {f.name for f in long}
    groups = [[f for f in functions if f.name not in apart], *bins]
    home = {f.name: k for k, group in enumerate(groups) for f in group}
    calls = [set[str]().union(*(f.used for f in group)) for group in groups]
    shared = {name for k, used in enumerate(calls) for name in used if home.get(name, k) != k}
    common = [line for line in rest if not line.startswith("@")]
    pieces = []
    for k, group in enumerate(groups):
        others = sorted(name for name in calls[k] & shared if home[name] != k)
        declared = [defined[name].declaration for name in others]
        own = [f.text(f.name in shared) for f in group]
        pieces.append("\n".join((*(common if k else rest), *declared, *own)))
    return pieces


def _is_long(function: Function) -> bool:
    return len(function.body) > LONG and function.head.startswith("define internal")


def _parsed(text: str) -> tuple[list[str], list[Function]]:
    """Split the LLVM IR of a module into its functions and all other lines."""
    rest, functions = [], []
    lines = iter(text.split("\n"))
    for line in lines:
        if not line.startswith("define"):
            rest.append(line)
            continue
        head, body = line, list[str]()
        for inner in lines:
            body.append(inner)
            if inner == "}":
                break
        functions.append(Function(head, tuple(body)))
    return rest, functions


def interpreter() -> str | None:
    """Return the Python executable, or None in an application that embeds Python."""
    name = Path(sys.executable or "").name.lower()
    plain = name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)
    return sys.executable if plain else None


def compiled(
    text: str, machine: Mapping[str, Any], cores: int, assemble: Callable[[str], bytes]
) -> bytes:
    """Compile a module, in several processes if it is long.

    Return the object files as one byte string (see `joined`).

    - machine: target triple, cpu, features and effort (optimization level).
    - assemble: function that compiles in this process.
    """
    with contextlib.ExitStack() as stack:
        return begun(text, machine, cores, assemble, stack)()


def begun(
    text: str,
    machine: Mapping[str, Any],
    cores: int,
    assemble: Callable[[str], bytes],
    stack: contextlib.ExitStack,
    *,
    ahead: bool = False,
) -> Callable[[], bytes]:
    """Start compiling a module in other processes; return a function that waits for the code.

    The processes end when `stack` is closed. `ahead` is True if this process does other work
    before it needs the code.
    """
    count = 1 if ahead and text.count("\n") <= 2 * WORTH else cores
    worth = LONG if ahead else None
    first, *others = split(text, cores if interpreter() else 1, worth, count)
    running = [_started(piece, machine, stack) for piece in others]

    def finish() -> bytes:
        own = assemble(first)
        made = [_result(r) or assemble(piece) for r, piece in zip(running, others, strict=True)]
        return joined([own, *made])

    return finish


Running = tuple[subprocess.Popen[bytes], IO[bytes]]
"""A process that compiles a module, and the file to which the process writes the code."""


def _started(text: str, machine: Mapping[str, Any], stack: contextlib.ExitStack) -> Running | None:
    """Start a process that compiles LLVM code; return None if it cannot start.

    The process ends when `stack` is closed.
    """
    folder = str(Path(llvmlite.__file__).parent.parent)
    script = str(Path(__file__).with_name("worker.py"))
    try:
        given = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
        answer = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        given.write(json.dumps(dict(machine)).encode() + b"\n" + text.encode())
        given.seek(0)
        process = subprocess.Popen(
            [str(interpreter()), "-I", "-S", script, folder],
            stdin=given,
            stdout=answer,
            stderr=subprocess.DEVNULL,
            start_new_session=os.name == "posix",  # Ctrl-C must not reach the worker
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError:
        return None
    stack.callback(_ended, process)
    return process, answer


def _ended(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


def _result(running: Running | None) -> bytes | None:
    """Return the machine code that a compiler process produced, or None if it failed."""
    if running is None:
        return None
    process, answer = running
    if process.wait() != 0:
        return None
    answer.seek(0)
    digest, code = answer.read(32), answer.read()
    return code if hashlib.sha256(code).digest() == digest else None


def joined(objects: Sequence[bytes]) -> bytes:
    """Return several object files as one byte string, or a single object file unchanged."""
    if len(objects) == 1:
        return objects[0]
    sizes = json.dumps([len(each) for each in objects]).encode()
    return b"".join((_MAGIC, len(sizes).to_bytes(8, "little"), sizes, *objects))


def objects(code: bytes) -> list[bytes]:
    """Split a byte string from `joined` into the object files that it contains."""
    if not code.startswith(_MAGIC):
        return [code]
    start = len(_MAGIC) + 8
    end = start + int.from_bytes(code[len(_MAGIC) : start], "little")
    found = []
    for size in json.loads(code[start:end]):
        found.append(code[end : end + size])
        end += size
    return found


# Loading -----------------------------------------------------------------------------------------


class Piece:
    """A loaded module of machine code, with all resources that must stay alive while it can run.

    - loaded: the code.
    - linker: the linker, which must outlive the code.
    - others: code that this code calls.
    - kept: Python objects that the code or its callers point to, by name.
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
            _GONE.append((own.pop("loaded"), own.pop("linker")))  # `sweep` frees the last reference
            if not BUSY.locked():
                undisturbed(sweep)


class Code(NamedTuple):
    """A loaded module of machine code, freed with the last reference to this object.

    Every caller of the code holds this tuple, or another tuple that holds it. The garbage collector
    clears and finalizes the objects in a reference cycle one by one, while other objects in the
    cycle may still call the code. The collector does not clear tuples or traverse NumPy arrays, so
    it never reaches the loaded module.
    """

    hidden: np.ndarray

    @property
    def piece(self) -> Piece:
        """The loaded module, to which callers must not keep a reference."""
        found: Piece = self.hidden.item()
        return found

    def address(self, name: str) -> int:
        """Return the address of an exported function."""
        return int(self.piece.loaded[name])


def sweep() -> None:
    """Unload code that is no longer referenced, unless the process is about to fork.

    The function acquires none of this module's locks: an interrupt could leave a lock acquired.
    Also, freeing an owner must not wait while another thread compiles.
    """
    own = threading.get_ident()
    try:
        _SWEEPING.append(own)
        while _GONE and not _FORKING:
            loaded, linker = _GONE.popleft()
            loaded.close()
            del loaded, linker  # a linker is freed after the last code that it loaded
    except IndexError:  # another thread took the last item of `_GONE`
        pass
    finally:
        with contextlib.suppress(ValueError):
            _SWEEPING.remove(own)


def _begin_fork() -> None:
    """Wait until no other thread is unloading code.

    Otherwise, LLVM's lock could stay locked in the forked child.
    """
    _FORKING.append(None)
    # Wait for at most 1 s, because an interrupted `sweep` may have left an entry in `_SWEEPING`.
    end = time.monotonic() + 1.0
    while set(_SWEEPING) - {threading.get_ident()} and time.monotonic() < end:
        time.sleep(1e-4)


def _end_fork() -> None:
    _FORKING.pop()


def _begin_child() -> None:
    _FORKING.clear()
    _SWEEPING.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_begin_fork, after_in_parent=_end_fork, after_in_child=_begin_child)


def load(
    code: bytes, symbols: Mapping[str, int], names: Iterable[str], others: tuple[Code, ...] = ()
) -> Code:
    """Link machine code with `symbols` at given addresses; export the functions in `names`.

    others: other code that this code calls, which must stay loaded.
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
        # JITLink needs less memory and fewer memory mappings than LLVM's default linker.
        newer = sys.platform != "win32"
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
