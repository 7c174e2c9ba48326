"""Runs a program one operation and one state at a time: slow, and the definition of correct."""

from collections.abc import Callable, Sequence

import numpy as np

from chasles.expr import Program, interpret


def compile(program: Program) -> Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], None]:
    """A kernel on rows: arrays (count, size) in, arrays (count, size) out."""

    def run(inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        for row in range(outputs[0].shape[0]):
            values = {v.name: a[row].tolist() for v, a in zip(program.inputs, inputs, strict=True)}
            results = interpret(program, values)
            for variable, out in zip(program.outputs, outputs, strict=True):
                out[row] = results[variable.name]

    return run
