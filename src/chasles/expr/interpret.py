"""Runs a program on floats, one operation at a time: the definition of a correct result."""

from collections.abc import Mapping, Sequence

from chasles.expr.ops import OPS
from chasles.expr.program import Program


def interpret(program: Program, inputs: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """The outputs for the given flat inputs; follows IEEE 754 and never raises on values."""
    columns = [inputs[v.name] for v in program.inputs]
    values: list[float] = []
    for op, args, data in program.code:
        if op == "input":
            values.append(float(columns[data[0]][data[1]]))
        elif op == "const":
            values.append(data)
        else:
            values.append(OPS[op].value(*(values[a] for a in args)))
    return {
        variable.name: [values[r] for r in refs]
        for variable, refs in zip(program.outputs, program.results, strict=True)
    }
