"""The targets: each turns a program into a kernel that runs on rows of numbers."""

import importlib

from chasles.backends.arrays import Kernel
from chasles.expr import Program

BACKENDS: dict[str, str] = {
    "llvm": "chasles.backends.llvm",
    "numpy": "chasles.backends.numpy",
    "interpret": "chasles.backends.interpret",
}
"""One row a backend: a module with `compile(program)`, loaded on use."""


def compile(program: Program, backend: str = "llvm") -> Kernel:
    """The kernel of a program for one backend."""
    if backend not in BACKENDS:
        raise ValueError(f"unknown backend {backend!r}; use one of {', '.join(BACKENDS)}")
    kernel: Kernel = importlib.import_module(BACKENDS[backend]).compile(program)
    return kernel
