"""Export of programs as plain C99: header, source and build files, and a test with stored results.

The code allocates no memory, keeps no state, and depends only on the C library. Functions for one
state are straight-line code on the caller's arrays; batches, searches and iterative steps are
bounded loops over such code. The same programs always produce identical files.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.backends import interpret, numpy
from chasles.backends.c.body import Number
from chasles.backends.c.function import (
    LANE_BYTES,
    Function,
    definitions,
    signature,
    sine_and_cosine,
    table,
    wrapped,
)
from chasles.backends.c.iterated import Iteration, iteration_definition, iteration_test
from chasles.backends.c.search import Search, search_definition, search_test
from chasles.expr import Program

Sample = tuple[np.ndarray, ...]
"""Sample values (count, size) of each input, exactly representable in float and double."""


@dataclass(frozen=True)
class Library:
    """Contents of a C library: functions for one floating-point type, with a common prefix.

    - notes: lines for the header, such as the meaning of the coordinates.
    - samples: states that the test of each function uses.
    - searches: inverse-kinematics solvers. Each solver repeats one of the functions as its step.
    - iterations: iterative steps, which have their own functions.
    """

    prefix: str
    title: str
    notes: tuple[str, ...]
    number: Number
    functions: tuple[Function, ...]
    samples: tuple[Sample, ...]
    searches: tuple[Search, ...] = ()
    iterations: tuple[Iteration, ...] = ()

    def files(self) -> dict[str, str]:
        """Return a map from the names of the exported files to their contents."""
        return {
            f"{self.prefix}.h": header(self),
            f"{self.prefix}.c": source(self),
            f"{self.prefix}_test.c": self_test(self),
            "CMakeLists.txt": _CMAKE.format(prefix=self.prefix),
        }


def header(library: Library) -> str:
    """Return the header: function declarations, and the cost and stack size of each function."""
    guard = f"{library.prefix.upper()}_H"
    lines = [comment([library.title, "", *library.notes])]
    lines += [f"#ifndef {guard}", f"#define {guard}", "", "#include <stddef.h>", ""]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    for function in library.functions:
        lines.append(comment(_description(function)))
        lines.append(signature(function, restrict=False) + ";")
        lines += [signature(function, batch=True, restrict=False) + ";", ""]
    for search in library.searches:
        lines += [comment(search.description()), search.signature + ";", ""]
    for it in library.iterations:
        lines += [f"#define {it.macro} {it.size}", "", comment(it.description())]
        lines += [it.signature + ";", ""]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */", ""])


def _description(function: Function) -> Iterable[str]:
    yield function.summary
    yield ""
    for role, variables in (("", function.inputs), ("out: ", function.outputs)):
        for v in variables:
            size = " x ".join(map(str, v.shape)) + ", row-major"
            if len(v.shape) < 2:
                size = f"{v.size} number{'' if v.size == 1 else 's'}"
            yield f"{role}{v.name}: {size}"
    yield f"operations: {function.program.count}"
    yield f"stack (optimized build), approximately: {function.stack} bytes"
    yield f"stack of the batch function: {function.batch_stack} bytes"


def source(library: Library) -> str:
    """Return the C source file. Batches compute sines and cosines without the C library."""
    functions, number = library.functions, library.number
    lines = [comment([library.title]), f'#include "{library.prefix}.h"', ""]
    parts = [part for it in library.iterations for part in it.parts]
    every = (*functions, *parts)
    turning = any(f.turns and (f.in_columns or f.own_sine) for f in every)
    lines += ["#include <float.h>"] * turning + ["#include <math.h>", ""]
    if turning:
        lines += [_STRICT, sine_and_cosine(number, exact=any(f.own_sine for f in every))]
    columns = [f for f in functions if f.in_columns]
    if columns:
        lines.append(_LANES.format(lanes=LANE_BYTES // number.bytes))
    if any(v.size for f in columns for v in f.inputs):
        lines.append(_GATHER.format(T=number.name))
    if any(v.size for f in columns for v in f.outputs):
        lines.append(_SCATTER.format(T=number.name))
    searches = map(search_definition, library.searches)
    iterations = map(iteration_definition, library.iterations)
    return "\n".join([*lines, *map(definitions, every), *searches, *iterations])


def comment(lines: Iterable[str]) -> str:
    """Return lines as one C comment, with unsafe characters replaced."""
    words = ["/*"]
    for line in lines:  # remove trigraphs, line breaks and comment delimiters
        plain = re.sub(r"[^ -~]|[\\?]", "_", line)
        harmless = plain.replace("*", "_") if "*/" in plain or "/*" in plain else plain
        words.append(f" * {harmless}".rstrip())
    return "\n".join([*words, " */"])


_STRICT = """\
#if defined(__FAST_MATH__) || (FLT_EVAL_METHOD == 2)
#error "sine_and_cosine rounds by adding: omit -ffast-math, and use SSE, not x87 (-mfpmath=sse)"
#endif
"""

_LANES = """\
#define LANES {lanes}U /* states in a block of a batch */
"""

_GATHER = """\
/* Transposes rows of states to columns. The last row also fills the missing rows. */
static inline void gather(size_t rows, size_t size, const {T} *restrict from,
    {T} (*restrict to)[LANES])
{{
    for (size_t i = 0U; i < LANES; ++i) {{
        const size_t row = (i < rows) ? i : (rows - 1U);
        for (size_t j = 0U; j < size; ++j) {{
            to[j][i] = from[(row * size) + j];
        }}
    }}
}}
"""

_SCATTER = """\
/* Transposes columns back to rows. */
static inline void scatter(size_t rows, size_t size, {T} (*restrict from)[LANES],
    {T} *restrict to)
{{
    for (size_t i = 0U; i < rows; ++i) {{
        for (size_t j = 0U; j < size; ++j) {{
            to[(i * size) + j] = from[j][i];
        }}
    }}
}}
"""

_CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project({prefix} C)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library({prefix} {prefix}.c {prefix}.h)
set_target_properties({prefix} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
target_include_directories({prefix} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  # Fuse products where the machine can; square roots do not set errno.
  target_compile_options({prefix} PRIVATE -ffp-contract=fast -fno-math-errno)
endif()
if(UNIX)
  target_link_libraries({prefix} PUBLIC m)
endif()

enable_testing()
add_executable({prefix}_test {prefix}_test.c)
set_target_properties({prefix}_test PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
target_link_libraries({prefix}_test PRIVATE {prefix})
add_test(NAME {prefix}_test COMMAND {prefix}_test)
"""


COUNT = 35
"""Number of states in a test batch, made by repeating the stored states so that several blocks are
full and one is partial."""

MARGIN = 64.0
"""Tolerance of the exported test, as a multiple of the estimated rounding error."""


def _computed(backend: Any, program: Program, sample: Sample, dtype: str) -> list[np.ndarray]:
    """Return the outputs that a backend computes for sample inputs, with one row per state."""
    found = [np.empty((len(sample[0]), v.size), dtype) for v in program.outputs]
    backend.compile(program, dtype)([x.astype(dtype) for x in sample], found)
    return found


def _tolerances(
    program: Program, sample: Sample, exact: Sequence[np.ndarray], number: Number
) -> list[float]:
    """Return the allowed error of each output.

    The errors in single precision show how much the program amplifies rounding errors for these
    states. For double precision, these errors are multiplied by the ratio of the machine epsilons.
    """
    single = float(np.finfo(np.float32).eps)
    part, result = float(np.finfo(number.dtype).eps) / single, []
    for mine, truth in zip(_computed(numpy, program, sample, "float32"), exact, strict=True):
        size = float(np.max(np.abs(truth), initial=0.0)) or 1.0
        error = float(np.max(np.abs(mine - truth), initial=0.0))
        result.append(MARGIN * part * max(error, size * single))
    return result


def self_test(library: Library) -> str:
    """Generate a C program that returns 0 if all functions reproduce the stored results."""
    prefix, functions, samples = library.prefix, library.functions, library.samples
    kind = library.number.name
    lines = [f"/* Compares {prefix}.c with stored results; returns 0 if all agree. */"]
    lines += [f'#include "{prefix}.h"', "", "#include <math.h>", "#include <stdio.h>"]
    lines += ["#include <stdlib.h>", "", f"#define COUNT {COUNT}U", ""]
    if any(v.size for function in functions for v in function.outputs):
        lines.append(_COMPARE.format(T=kind))
    for function, sample in zip(functions, samples, strict=True):
        lines += _check(function, sample)
    for search in library.searches:
        lines += search_test(search)
    for it in library.iterations:
        lines += iteration_test(it)
    lines += ["int main(void)", "{", "    int failures = 0;"]
    tested = [f.name for f in functions] + [search.name for search in library.searches]
    tested += [it.name for it in library.iterations]
    lines += [f"    failures += test_{name}();" for name in tested]
    return "\n".join([*lines, _END])


def _check(function: Function, sample: Sample) -> list[str]:
    """Generate C code that tests a function: expected results, and a comparison with them."""
    exact = _computed(interpret, function.program, sample, "float64")
    allowed = _tolerances(function.program, sample, exact, function.number)
    states = len(sample[0]) if sample else 0
    known = [v for v in function.inputs if v.size]
    given = [v for v in function.outputs if v.size]
    lines = []
    for v, x in zip(function.arrays, (*sample, *exact), strict=True):
        lines += table(f"{function.name}_{v.name}", function.number, x) if v.size else []
    body = ["    int failures = 0;"]
    for v in (*known, *given):
        body.append(f"    static {function.number.name} {v.name}[COUNT][{v.size}];")
    body.append("    for (size_t k = 0U; k < COUNT; ++k) {")
    for v in known:
        stored = f"{function.name}_{v.name}[k % {states}U][j]"
        body += [f"        for (size_t j = 0U; j < {v.size}U; ++j) {{"]
        body += [f"            {v.name}[k][j] = {stored};", "        }"]
    one, many = (
        [(f"{v.name}{place}" if v.size else "NULL") for v in function.arrays]
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
    head = f"static int test_{function.name}(void)"
    return [*lines, head, "{", *body, "    return failures;", "}", ""]


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
            failures += (error <= tolerance) ? 0 : 1; /* NaN is a failure, too */
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
