"""The targets: each turns a program into a kernel that runs on rows of numbers."""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from chasles.backends.arrays import Kernel
from chasles.errors import InputError
from chasles.expr import Program


class Backend(NamedTuple):
    """A target. module: has `prepare(recipe, trace, dtype)` and `compile(program)`.

    device: "cpu" or "cuda". arrays: the package whose arrays its kernels take; other than NumPy's
    go to the kernel's own `call`. A module that makes machine code says in `described()` what that
    runs on. loop: the module with the `Loop` that repeats a kernel; adjoint: the one with the
    `Adjoint` that runs a loop backward.
    """

    module: str
    device: str = "cpu"
    arrays: str = "numpy"
    loop: str = ""
    adjoint: str = ""


BACKENDS: dict[str, Backend] = {
    "llvm": Backend(
        "chasles.backends.llvm",
        loop="chasles.backends.llvm_loop",
        adjoint="chasles.backends.llvm_adjoint",
    ),
    "numpy": Backend("chasles.backends.numpy"),
    "interpret": Backend("chasles.backends.interpret"),
    "cuda": Backend(
        "chasles.backends.cuda", device="cuda", arrays="cupy", loop="chasles.backends.cuda_loop"
    ),
}
"""One row a backend, the usual one of each device first; loaded on use."""

USUAL = next(iter(BACKENDS))
"""The backend where none is asked for."""


def devices() -> dict[str, tuple[str, ...]]:
    """The backends of each device; "auto" takes the usual ones of both."""
    found: dict[str, tuple[str, ...]] = {}
    for name, row in BACKENDS.items():
        found[row.device] = (*found.get(row.device, ()), name)
    return found | {"auto": (USUAL,)}


def takes_numpy(backend: str) -> bool:
    """Whether kernels of a backend take NumPy's arrays."""
    return BACKENDS[backend].arrays == "numpy"


def _backend(name: str) -> Any:
    if name not in BACKENDS:
        problem = f"unknown backend {name!r}"
        raise InputError("E-CALL-002", problem, f"use one of {', '.join(BACKENDS)}")
    return importlib.import_module(BACKENDS[name].module)


def compile(program: Program, backend: str = USUAL) -> Kernel:
    """The kernel of a program."""
    kernel: Kernel = _backend(backend).compile(program)
    return kernel


def prepare(
    recipe: object, trace: Callable[[], Program], backend: str = USUAL, dtype: str = "float64"
) -> Kernel:
    """The kernel of a recipe, whose program `trace()` makes where it is not known already.

    Two recipes with the same text (`repr`) must have the same program.
    """
    kernel: Kernel = _backend(backend).prepare(recipe, trace, dtype)
    return kernel


def described(backend: str) -> str:
    """What a backend's machine code runs on, in words; an error says why there is no such thing."""
    words: str = _backend(backend).described()
    return words


def loop(kernel: Kernel, backend: str = USUAL) -> Any:
    """A kernel of machine code repeated: its outputs are its first inputs (`llvm_loop.Loop`)."""
    return importlib.import_module(BACKENDS[backend].loop).Loop(kernel)


def adjoint(step: Any, back: Any, backend: str = USUAL) -> Any:
    """A loop backward: by the loop of its step, and that of the step's pullback."""
    return importlib.import_module(BACKENDS[backend].adjoint).Adjoint(step, back)
