"""Backends, each of which compiles a program into a kernel that processes arrays row by row.

This module also provides what all backends share: cache keys for compiled programs, and
`undisturbed`, which runs a function without interruption by signals.
"""

import _thread
import contextlib
import functools
import hashlib
import importlib
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from chasles.backends.arrays import Kernel, Link, Target
from chasles.errors import InputError
from chasles.expr import Program, Staged
from chasles.names import one_of


class Backend(NamedTuple):
    """A compilation target and the modules that implement its features.

    - module: the module that defines `compile(program, dtype)`, which returns a kernel.
    - device: "cpu" or "cuda".
    - arrays: the package whose arrays the kernels accept; arrays other than NumPy's are passed to
      the kernel's `call`.
    - keeps: True if machine code is cached. The module then also defines `known(recipe, trace,
      dtype)`, which looks up cached code, `keep(recipe, program, dtype)`, which compiles and caches
      code, and `described()`, which describes the hardware.
    - loop: the module that defines `Loop`, which repeats a kernel.
    - adjoint: the module that defines `Adjoint`, which runs a loop backward.
    - search: the module that defines `Search`, which repeats a step until each problem is solved or
      abandoned.
    - iterated: the module that combines several kernels into an iterative kernel (`llvm.iterated`).
    - chain: the module that defines `Chain`, which runs several kernels in turn on a tile (a block
      of states, one per SIMD lane).
    - rounds: the module that defines `Rounds`, which repeats a sequence of kernels and loops.
    - gram: the module that defines `Grams`, which sums Gram matrices.
    - staged: threshold for the number of scalar multiplications in matrix products. Above it, a
      program should leave the products to the backend and return their factors (`Staged`). None if
      the backend does not accept such programs.
    - similar: thresholds for the numbers of bodies and of instructions. Above both, limbs of the
      same structure are traced to the same instructions (`Program.alike`), so that these limbs can
      share code. The thresholds apply to functions, not to time steps.
    - first: name of a backend that compiles faster. The slower code of this backend is used until
      optimized code is ready.
    """

    module: str
    device: str = "cpu"
    arrays: str = "numpy"
    keeps: bool = False
    loop: str = ""
    adjoint: str = ""
    search: str = ""
    iterated: str = ""
    chain: str = ""
    rounds: str = ""
    gram: str = ""
    staged: int | None = None
    similar: tuple[float, float] = (math.inf, math.inf)
    first: str = ""


BACKENDS: dict[str, Backend] = {
    "llvm": Backend(
        "chasles.backends.llvm.kernel",
        keeps=True,
        loop="chasles.backends.llvm.loop",
        adjoint="chasles.backends.llvm.adjoint",
        search="chasles.backends.llvm.search",
        iterated="chasles.backends.llvm.iterated",
        chain="chasles.backends.llvm.chain",
        rounds="chasles.backends.llvm.rounds",
        gram="chasles.backends.llvm.gram",
        staged=4000,
        first="llvm-quick",
    ),
    "llvm-quick": Backend("chasles.backends.llvm.quick", staged=4000),
    "numpy": Backend("chasles.backends.numpy"),
    "interpret": Backend("chasles.backends.interpret"),
    "cuda": Backend(
        "chasles.backends.cuda.kernel",
        device="cuda",
        arrays="cupy",
        keeps=True,
        loop="chasles.backends.cuda.kernel",
        search="chasles.backends.cuda.search",
        iterated="chasles.backends.cuda.iterated",
        similar=(20, 6000),
    ),
}
"""Backends by name. The first backend listed for a device is the default of this device. Modules
are imported on first use."""

USUAL = next(iter(BACKENDS))
"""Name of the default backend."""


def devices() -> dict[str, tuple[str, ...]]:
    """Return the backend names of each device; the device "auto" has only the default backend."""
    found: dict[str, tuple[str, ...]] = {}
    for name, row in BACKENDS.items():
        found[row.device] = (*found.get(row.device, ()), name)
    return found | {"auto": (USUAL,)}


def takes_numpy(backend: str) -> bool:
    """Return True if the kernels of a backend accept NumPy arrays."""
    return BACKENDS[backend].arrays == "numpy"


def row(name: str) -> Backend:
    """Return a backend's table entry.

    If the name is unknown, raise an error that lists all backends.
    """
    if name not in BACKENDS:
        problem = f"unknown backend {name!r}"
        raise InputError("E-CALL-002", problem, one_of(name, BACKENDS))
    return BACKENDS[name]


def _backend(name: str) -> Any:
    return importlib.import_module(row(name).module)


_OTHERS = ("cli", "formats", "homogeneous", "lint", "peers", "plots", "robots", "view")
"""Subpackages that do not affect compiled code; cache keys ignore their sources."""


@functools.cache
def sources() -> str:
    """Return the SHA-256 of the source files that affect compiled code.

    Cache keys include this hash, so that code cached by other versions is not used.
    """
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] in _OTHERS:
            continue
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def code_key(*parts: object) -> str:
    """Return the name of a cache entry: a digest of everything that determines the code."""
    return hashlib.sha256("\0".join([sources(), *map(repr, parts)]).encode()).hexdigest()


def compile(
    program: Program | Staged, backend: str = USUAL, dtype: str = "float64", recipe: object = None
) -> Kernel:
    """Compile a program; if a recipe is passed, cache the kernel, so that `known` finds it later.

    A recipe is a description of how the program is made, used as the cache key. Two recipes with
    the same `repr` must make the same program.
    """
    target = _backend(backend)
    if recipe is None or not BACKENDS[backend].keeps:
        return target.compile(program, dtype=dtype)
    return target.keep(recipe, program, dtype)


def known(
    recipe: object, trace: Callable[[], Program], backend: str = USUAL, dtype: str = "float64"
) -> Kernel | None:
    """Return the cached kernel for a recipe (a cache key, see `compile`), or None.

    trace: function that traces the program. A GPU backend calls this function when it needs code
    for a different array layout.
    """
    target = _backend(backend)
    return target.known(recipe, trace, dtype) if BACKENDS[backend].keeps else None


def begin(
    recipe: object,
    trace: Callable[[], Program],
    backend: str,
    dtype: str,
    stack: contextlib.ExitStack,
) -> Callable[[], Kernel]:
    """Begin to compile a program unless it is cached; return a function that returns its kernel.

    The program is traced only if no kernel is cached for `recipe` (the cache key, see `compile`).
    Other processes, which end when `stack` is closed, may compile the program while this process
    traces other programs.
    """
    found = known(recipe, trace, backend, dtype)
    if found is not None:
        return lambda: found
    target = _backend(backend)
    if hasattr(target, "begin"):
        return target.begin(recipe, trace(), dtype, stack)
    return functools.partial(compile, trace(), backend, dtype, recipe)


def prepare(
    recipe: object, program: Program, backend: str = USUAL, dtype: str = "float64"
) -> Kernel:
    """Return the cached kernel for a recipe (a cache key), or compile and cache the program."""
    found = known(recipe, lambda: program, backend, dtype)
    return found or compile(program, backend, dtype, recipe)


def fast_entry(
    kernel: Kernel | None, *, fallback: Callable[..., Any], **facts: Any
) -> Callable[..., Any]:
    """Return a function in machine code that calls a kernel, or `fallback` if this is not possible.

    If `kernel` is None, the machine code handles only calls that `learn` has registered; see
    `llvm.kernel.fast_entry`.
    """
    make: Any = functools.partial(_backend(USUAL).fast_entry, None)
    if kernel is not None:
        make = getattr(kernel, "fast_entry", None)
    return fallback if make is None else make(fallback=fallback, **facts)


@functools.cache
def called_by_slot(kind: type) -> None:
    """Make a class's objects callable; calling an object runs the fast entry in its field `_entry`.

    A fast entry is a C callable in machine code (see `llvm.kernel.called_by_slot`).
    """
    _backend(USUAL).called_by_slot(kind, object.__new__(kind))


def learn(
    owner: Any,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    make: Callable[[], Target | None],
) -> None:
    """Register a call handled in Python, so that the fast entry handles calls with these options.

    owner: the `__self__` of the fast entry (see `llvm.ways.learn`).
    """
    if isinstance(owner, tuple):
        importlib.import_module("chasles.backends.llvm.ways").learn(owner, arguments, named, make)


def described(backend: str) -> str:
    """Describe the hardware that runs a backend's code.

    Raise an error if the hardware is missing.
    """
    return _backend(backend).described()


def loop(kernel: Kernel, backend: str = USUAL) -> Any:
    """Return a loop that repeats a kernel and feeds its outputs back as inputs (`llvm.loop`)."""
    return importlib.import_module(BACKENDS[backend].loop).Loop(kernel)


def iterated(kernels: Sequence[Kernel], backend: str = USUAL, **options: Any) -> Any:
    """Combine kernels into a kernel that iterates each step until convergence (`llvm.iterated`)."""
    return importlib.import_module(BACKENDS[backend].iterated).iterated(kernels, **options)


def chain(links: Sequence[Link], outputs: Sequence[str], backend: str = USUAL) -> Any:
    """Combine kernels into a kernel that runs them in turn on each tile (block) of states.

    See `llvm.chain`.

    outputs: names of the arrays that the chain returns.
    """
    return importlib.import_module(BACKENDS[backend].chain).Chain(links, outputs)


def rounds(parts: Sequence[Any], most: int = 1, backend: str = USUAL) -> Any:
    """Return a callable that repeats a sequence of kernels and loops, up to `most` times.

    See `llvm.rounds`.
    """
    return importlib.import_module(BACKENDS[backend].rounds).Rounds(parts, most)


def grams(widths: Sequence[int], backend: str = USUAL) -> Any:
    """Return an accumulator of Gram matrices (`llvm.gram`).

    widths: the number of columns of each matrix, rounded up by `gram_width`.
    """
    return importlib.import_module(BACKENDS[backend].gram).Grams(widths)


def gram_width(count: int, backend: str = USUAL) -> int:
    """Round a number of columns up to a multiple of the SIMD width."""
    lanes = importlib.import_module(BACKENDS[backend].gram).lanes()
    return int(-(-count // lanes) * lanes)


def search(*kernels: Kernel, backend: str = USUAL) -> Any:
    """Return a search, which repeats a kernel until each problem is solved or abandoned.

    On a GPU, two kernels must be passed, one for float32 and one for float64.
    """
    return importlib.import_module(BACKENDS[backend].search).Search(*kernels)


def adjoint(step: Any, back: Any, backend: str = USUAL) -> Any:
    """Return the adjoint of a simulation loop.

    `step` is the loop itself, and `back` is a loop that repeats the pullback of a step.
    """
    return importlib.import_module(BACKENDS[backend].adjoint).Adjoint(step, back)


# Protection from interruption by signals ----------------------------------------------------------

Given = ParamSpec("Given")
Result = TypeVar("Result")


def undisturbed(work: Callable[[], Result]) -> Result:
    """Run a function without interruption by signals, and return its result.

    llvmlite is written in Python. An interrupt between two lines of llvmlite can free an object
    twice, or leave llvmlite's lock acquired, and other threads then wait forever. An interrupt
    between `os.open` and the next line leaves a file open. Python runs signal handlers only in the
    main thread, so a worker thread runs the function while the main thread waits. The main thread
    then raises the first exception that a signal handler raised, if any.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    ended, outcome, came = threading.Lock(), list[Any](), list[BaseException]()
    ended.acquire()

    def run() -> None:
        try:
            outcome[:] = True, work()
        except BaseException as error:
            outcome[:] = False, error
        finally:
            ended.release()

    try:
        _thread.start_new_thread(run, ())
    except RuntimeError:  # no thread can be started, or the interpreter is exiting
        return work()
    while not outcome:  # `run` sets `outcome` before it releases the lock
        try:
            ended.acquire()
        except BaseException as error:  # raised by a signal handler
            came.append(error)
    if came:
        raise came[0]
    well, result = outcome
    if not well:
        raise result
    found: Result = result
    return found


def uninterrupted(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Wrap a function so that signal handlers cannot interrupt it (see `undisturbed`)."""

    @functools.wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Result:
        return undisturbed(lambda: function(*given, **named))

    return call
