"""The targets: each turns a program into a kernel that runs on rows of numbers."""

import importlib
from collections.abc import Callable
from typing import Any

from chasles.backends.arrays import Kernel
from chasles.errors import InputError
from chasles.expr import Program

BACKENDS: dict[str, str] = {
    "llvm": "chasles.backends.llvm",
    "numpy": "chasles.backends.numpy",
    "interpret": "chasles.backends.interpret",
    "cuda": "chasles.backends.cuda",
}
"""One row a backend: a module with `prepare(recipe, trace)` and `compile(program)`; those that make
machine code have `described()` too, and a module beside them, with `_loop` in its name, has the
`Loop` that repeats a kernel."""


def _backend(name: str) -> Any:
    if name not in BACKENDS:
        problem = f"unknown backend {name!r}"
        raise InputError("E-CALL-002", problem, f"use one of {', '.join(BACKENDS)}")
    return importlib.import_module(BACKENDS[name])


def compile(program: Program, backend: str = "llvm") -> Kernel:
    """The kernel of a program."""
    kernel: Kernel = _backend(backend).compile(program)
    return kernel


def prepare(
    recipe: object, trace: Callable[[], Program], backend: str = "llvm", dtype: str = "float64"
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


def loop(kernel: Kernel, backend: str = "llvm") -> Any:
    """A kernel of machine code repeated: its outputs are its first inputs (`llvm_loop.Loop`)."""
    return importlib.import_module(f"{BACKENDS[backend]}_loop").Loop(kernel)


def adjoint(step: Any, back: Any) -> Any:
    """A loop backward: by the loop of its step, and that of the step's pullback."""
    return importlib.import_module("chasles.backends.llvm_adjoint").Adjoint(step, back)
