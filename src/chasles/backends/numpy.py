"""Programs as vectorized Python source: NumPy computes each operation for all states at once."""

from typing import Any

import numpy as np

from chasles.backends.arrays import Rows
from chasles.expr import Program
from chasles.expr.program import ARITHMETIC

SPELLING = ARITHMETIC | {
    "sqrt": "np.sqrt({0})",
    "sin": "np.sin({0})",
    "cos": "np.cos({0})",
    "atan2": "np.arctan2({0}, {1})",
    "min": "np.minimum({0}, {1})",
    "max": "np.maximum({0}, {1})",
    "abs": "np.abs({0})",
    "less": "np.where({0} < {1}, 1.0, 0.0)",
    "less_equal": "np.where({0} <= {1}, 1.0, 0.0)",
    "equal": "np.where({0} == {1}, 1.0, 0.0)",
    "select": "np.where({0} != 0.0, {1}, {2})",
}


def source(program: Program) -> str:
    """Return the source of a function that fills output rows (count, size) from input rows."""
    lines = [f"def {program.name}(inputs, outputs):", f'    """{program.count}."""']
    names: list[str] = []
    for k, (op, args, data) in enumerate(program.code):
        if op == "input":
            names.append(f"inputs[{data[0]}][:, {data[1]}]")
        elif op == "const":
            names.append(f"({data!r})" if abs(data) < float("inf") else f"np.float64('{data}')")
        else:
            lines.append(f"    t{k} = {SPELLING[op].format(*(names[a] for a in args))}")
            names.append(f"t{k}")
    for k, refs in enumerate(program.results):
        lines += [f"    outputs[{k}][:, {j}] = {names[r]}" for j, r in enumerate(refs)]
    return "\n".join(lines) + "\n"


class Kernel:
    """A kernel that runs a program's vectorized Python source."""

    def __init__(self, program: Program, dtype: str) -> None:
        self.interface, self.dtype = program.interface, np.dtype(dtype)
        space: dict[str, Any] = {"np": np}
        exec(source(program), space)
        self._function = space[program.name]

    def __call__(self, inputs: Rows, outputs: Rows, threads: int | None = None) -> None:
        """Fill output rows (count, size) from input rows (count, size), always on one thread."""
        safe = [a.copy() if any(np.may_share_memory(a, o) for o in outputs) else a for a in inputs]
        with np.errstate(all="ignore"):
            self._function(safe, outputs)


def compile(program: Program, dtype: str = "float64") -> Kernel:
    """Return the kernel for a program."""
    return Kernel(program, dtype)
