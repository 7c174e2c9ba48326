"""Interpreter of programs: a slow reference implementation that runs one operation at a time."""

import numpy as np

from chasles.backends.arrays import Rows
from chasles.expr import Program, interpret


class Kernel:
    """A kernel that interprets a program for one state (row) at a time."""

    def __init__(self, program: Program, dtype: str) -> None:
        self.program, self.interface = program, program.interface
        self.dtype = np.dtype(dtype)

    def __call__(self, inputs: Rows, outputs: Rows, threads: int | None = None) -> None:
        """Fill output rows (count, size) from input rows (count, size), always on one thread."""
        for row in range(outputs[0].shape[0]):
            values = {
                v.name: a[row].tolist() for v, a in zip(self.program.inputs, inputs, strict=True)
            }
            results = interpret(self.program, values)
            for variable, out in zip(self.program.outputs, outputs, strict=True):
                out[row] = results[variable.name]


def compile(program: Program, dtype: str = "float64") -> Kernel:
    """Return a kernel that interprets a program."""
    return Kernel(program, dtype)
