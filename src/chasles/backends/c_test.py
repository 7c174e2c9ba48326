"""The test that goes with exported C: stored states, and what the interpreter makes of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chasles.backends import numpy as numpy_backend
from chasles.backends.c_body import Number
from chasles.backends.c_function import Function, wrapped
from chasles.expr import Program, interpret

COUNT = 35
"""States in a batch of the test: stored ones over and over, in whole blocks and a part of one."""

MARGIN = 64.0
"""Errors may be so many times those of another order of the same operations."""


@dataclass(frozen=True)
class Sample:
    """States (count, size) for each input, of numbers that every kind of number has exactly."""

    inputs: tuple[np.ndarray, ...]


def rounded(values: np.ndarray) -> np.ndarray:
    """Numbers of few digits that a float has exactly: multiples of 1/1024."""
    return np.round(values * 1024.0) / 1024.0


def expected(program: Program, sample: Sample) -> list[np.ndarray]:
    """Each output's rows, by the interpreter."""
    rows = []
    for k in range(len(sample.inputs[0])):
        given = {v.name: x[k].tolist() for v, x in zip(program.inputs, sample.inputs, strict=True)}
        rows.append(interpret(program, given))
    return [np.array([row[v.name] for row in rows]) for v in program.outputs]


def tolerances(
    program: Program, sample: Sample, exact: Sequence[np.ndarray], number: Number
) -> list[float]:
    """How far each output may be off.

    Single precision shows how much this program amplifies rounding errors for these states; errors
    of another precision are in proportion.
    """
    single = np.dtype(np.float32)
    found = [np.empty(x.shape, single) for x in exact]
    numpy_backend.compile(program, "float32")([x.astype(single) for x in sample.inputs], found)
    part = float(np.finfo(number.dtype).eps / np.finfo(single).eps)
    result = []
    for mine, truth in zip(found, exact, strict=True):
        size = float(np.max(np.abs(truth), initial=0.0)) or 1.0
        error = float(np.max(np.abs(mine - truth), initial=0.0))
        result.append(MARGIN * part * max(error, size * float(np.finfo(single).eps)))
    return result


def self_test(prefix: str, functions: Sequence[Function], samples: Sequence[Sample]) -> str:
    """A program that returns 0 if all functions, alone and in batches, have the stored results."""
    kind = functions[0].number.name
    lines = [f"/* Compares {prefix}.c with stored results; returns 0 if all agree. */"]
    lines += [f'#include "{prefix}.h"', "", "#include <math.h>", "#include <stdio.h>"]
    lines += ["#include <stdlib.h>", "", f"#define COUNT {COUNT}U", ""]
    if any(v.size for function in functions for v in function.outputs):
        lines.append(_COMPARE.format(T=kind))
    for function, sample in zip(functions, samples, strict=True):
        lines += _check(function, sample)
    lines += ["int main(void)", "{", "    int failures = 0;"]
    lines += [f"    failures += test_{function.name}();" for function in functions]
    return "\n".join([*lines, _END])


def _check(function: Function, sample: Sample) -> list[str]:
    """The numbers of a function, and a C function that compares with them."""
    exact = expected(function.program, sample)
    allowed = tolerances(function.program, sample, exact, function.number)
    states = len(sample.inputs[0]) if sample.inputs else 0
    known = [v for v in function.inputs if v.size]
    given = [v for v in function.outputs if v.size]
    lines = []
    for v, x in zip((*function.inputs, *function.outputs), (*sample.inputs, *exact), strict=True):
        lines += _table(function, v.name, x) if v.size else []
    body = ["    int failures = 0;"]
    for v in (*known, *given):
        body.append(f"    static {function.number.name} {v.name}[COUNT][{v.size}];")
    body.append("    for (size_t k = 0U; k < COUNT; ++k) {")
    for v in known:
        stored = f"{function.name}_{v.name}[k % {states}U][j]"
        body += [f"        for (size_t j = 0U; j < {v.size}U; ++j) {{"]
        body += [f"            {v.name}[k][j] = {stored};", "        }"]
    one, many = (
        [(f"{v.name}{place}" if v.size else "NULL") for v in (*function.inputs, *function.outputs)]
        for place in ("[k]", "[0]")
    )
    body += [wrapped(f"        {function.name}(", one, ");"), "    }"]
    wipe = [f"    wipe(&{v.name}[0][0], COUNT * {v.size}U);" for v in given]
    batch = [*wipe, wrapped(f"    {function.name}_batch(", ["COUNT", *many], ");")]
    for label, call in (("one state", []), ("batch", batch)):
        body += call
        for v, tolerance in zip(function.outputs, allowed, strict=True):
            if v.size:
                numbers = f"&{function.name}_{v.name}[0][0], {states}U, {v.size}U, {tolerance!r}"
                body.append(f'    failures += compare("{function.name}, {label}: {v.name}",')
                body.append(f"        &{v.name}[0][0], {numbers});")
    return [
        *lines,
        f"static int test_{function.name}(void)",
        "{",
        *body,
        "    return failures;",
        "}",
        "",
    ]


def _table(function: Function, name: str, rows: np.ndarray) -> list[str]:
    number = function.number
    head = (
        f"static const {number.name} {function.name}_{name}[{rows.shape[0]}][{rows.shape[1]}] = {{"
    )
    body = [wrapped("    {", [number.spelled(x).strip("()") for x in row], "},") for row in rows]
    return [head, *body, "};"]


_COMPARE = """\
static void wipe({T} *numbers, size_t count)
{{
    for (size_t k = 0U; k < count; ++k) {{
        numbers[k] = NAN;
    }}
}}

static int compare(const char *what, const {T} *found, const {T} *stored, size_t states,
    size_t size, double tolerance)
{{
    double worst = 0.0;
    int failures = 0;
    for (size_t k = 0U; k < COUNT; ++k) {{
        for (size_t j = 0U; j < size; ++j) {{
            const double a = (double)found[(k * size) + j];
            const double b = (double)stored[((k % states) * size) + j];
            const double error = fabs(a - b);
            worst = fmax(worst, error);
            failures += (error <= tolerance) ? 0 : 1; /* also of what is not a number */
        }}
    }}
    (void)printf("%-70s error %.1e, allowed %.1e\\n", what, worst, tolerance);
    return failures;
}}
"""

_END = """\
    (void)printf((failures == 0) ? "all agree\\n" : "FAILED\\n");
    return (failures == 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
"""
