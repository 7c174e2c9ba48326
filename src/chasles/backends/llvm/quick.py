"""Machine code compiled by LLVM without optimization, used until optimized code is ready.

For a humanoid, the code takes a third to two thirds of the processor time to compile, and 1.4 to
2.3 times as long to run. For small robots, both differences are smaller.
"""

from dataclasses import replace

from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm.code import Machine
from chasles.expr import Program, Staged


def compile(program: Program | Staged, dtype: str = "float64") -> llvm.Kernel:
    """Return the kernel for a program, with results bitwise identical to those of `llvm`."""
    return llvm.compile(program, replace(Machine.host(), effort=0), dtype)
