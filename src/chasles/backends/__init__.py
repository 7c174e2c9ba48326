"""The targets: each turns a program into a kernel that runs on rows of numbers."""

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from chasles.backends.arrays import Kernel, Target
from chasles.errors import InputError
from chasles.expr import Program, Staged


class Backend(NamedTuple):
    """A target. module: has `compile(program, dtype)`, the kernel of a program.

    device: "cpu" or "cuda". arrays: the package whose arrays its kernels take; other than NumPy's
    go to the kernel's own `call`. keeps: its machine code is cached; `known(recipe, trace, dtype)`
    finds it, `keep(recipe, program, dtype)` makes it, and `described()` says what it runs on.
    loop: the module with the `Loop` that repeats a kernel; adjoint: the one with the `Adjoint`
    that runs a loop backward; search: the one with the `Search` that repeats a step until problems
    are solved. staged: products of matrix entries from which on a program is best
    left at the factors of its results (`Staged`); None where a backend takes none of these. first:
    the backend of its first tier, which compiles in less time to code that takes longer.
    """

    module: str
    device: str = "cpu"
    arrays: str = "numpy"
    keeps: bool = False
    loop: str = ""
    adjoint: str = ""
    search: str = ""
    staged: int | None = None
    first: str = ""


BACKENDS: dict[str, Backend] = {
    "llvm": Backend(
        "chasles.backends.llvm.kernel",
        keeps=True,
        loop="chasles.backends.llvm.loop",
        adjoint="chasles.backends.llvm.adjoint",
        search="chasles.backends.llvm.search",
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
    ),
}
"""One row a backend, the usual one of each device first; loaded on use."""

USUAL = next(iter(BACKENDS))
"""The default backend."""


def devices() -> dict[str, tuple[str, ...]]:
    """The backends of each device; "auto" takes the usual ones of both."""
    found: dict[str, tuple[str, ...]] = {}
    for name, row in BACKENDS.items():
        found[row.device] = (*found.get(row.device, ()), name)
    return found | {"auto": (USUAL,)}


def takes_numpy(backend: str) -> bool:
    """Return True if kernels of a backend take NumPy's arrays."""
    return BACKENDS[backend].arrays == "numpy"


def row(name: str) -> Backend:
    """The row of a backend; an error names those that there are."""
    if name not in BACKENDS:
        problem = f"unknown backend {name!r}"
        raise InputError("E-CALL-002", problem, f"use one of {', '.join(BACKENDS)}")
    return BACKENDS[name]


def _backend(name: str) -> Any:
    return importlib.import_module(row(name).module)


def compile(
    program: Program | Staged, backend: str = USUAL, dtype: str = "float64", recipe: object = None
) -> Kernel:
    """Compile a program; with a recipe, `known` will find the kernel.

    Two recipes with the same text (`repr`) must have the same program.
    """
    target = _backend(backend)
    if recipe is None or not BACKENDS[backend].keeps:
        return target.compile(program, dtype=dtype)
    return target.keep(recipe, program, dtype)


def known(
    recipe: object, trace: Callable[[], Program], backend: str = USUAL, dtype: str = "float64"
) -> Kernel | None:
    """The kernel of a recipe that was compiled before, by any process; else None.

    trace: makes the program when a GPU needs code for arrays of another layout.
    """
    target = _backend(backend)
    return target.known(recipe, trace, dtype) if BACKENDS[backend].keeps else None


def prepare(
    recipe: object, program: Program, backend: str = USUAL, dtype: str = "float64"
) -> Kernel:
    """The kernel of a recipe and its program, compiled unless it is known."""
    found = known(recipe, lambda: program, backend, dtype)
    return found or compile(program, backend, dtype, recipe)


def fast_entry(
    kernel: Kernel | None, *, fallback: Callable[..., Any], **facts: Any
) -> Callable[..., Any]:
    """A built-in function around a kernel, or around what it will `learn`; or the fallback, where
    there is no such thing (`llvm.kernel.fast_entry`)."""
    make: Any = functools.partial(_backend(USUAL).fast_entry, None)
    if kernel is not None:
        make = getattr(kernel, "fast_entry", None)
    return fallback if make is None else make(fallback=fallback, **facts)


@functools.cache
def called_by_slot(kind: type) -> None:
    """Call objects of a class by the fast entry in their first slot, `_entry`, where they have one.

    See `llvm.kernel.called_by_slot`.
    """
    _backend(USUAL).called_by_slot(kind, object.__new__(kind))


def learn(
    owner: Any,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    make: Callable[[], Target | None],
) -> None:
    """Let the built-in function of an owner remember where a call led (`llvm.ways.learn`)."""
    if isinstance(owner, tuple):
        importlib.import_module("chasles.backends.llvm.ways").learn(owner, arguments, named, make)


def described(backend: str) -> str:
    """Return the hardware that a backend's machine code runs on; an error explains why there is
    none.
    """
    return _backend(backend).described()


def loop(kernel: Kernel, backend: str = USUAL) -> Any:
    """A kernel of machine code repeated: its outputs are its first inputs (`llvm_loop.Loop`)."""
    return importlib.import_module(BACKENDS[backend].loop).Loop(kernel)


def iterated(kernels: Sequence[Kernel]) -> Any:
    """A beginning, an iteration until convergence and an end as one kernel (`llvm.iterated`)."""
    return importlib.import_module("chasles.backends.llvm.iterated").iterated(kernels)


def search(*kernels: Kernel, backend: str = USUAL) -> Any:
    """A kernel repeated until problems are solved; on a GPU those of float32 and float64."""
    return importlib.import_module(BACKENDS[backend].search).Search(*kernels)


def adjoint(step: Any, back: Any, backend: str = USUAL) -> Any:
    """A loop backward: by the loop of its step, and that of the step's pullback."""
    return importlib.import_module(BACKENDS[backend].adjoint).Adjoint(step, back)
