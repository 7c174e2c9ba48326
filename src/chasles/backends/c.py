"""Plain C99 from programs: a header, a source, a build file, and a test with stored numbers.

No allocation, no state, nothing of a library but math.h: every function is straight-line code on
the caller's arrays. The same programs give the same bytes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from chasles.backends.c_body import Number
from chasles.backends.c_function import LANE_BYTES, Function, definitions, signature
from chasles.backends.c_math import sine_and_cosine
from chasles.backends.c_test import Sample, self_test
from chasles.expr import Variable


@dataclass(frozen=True)
class Library:
    """What is written: functions of one kind of number, under names that begin with `prefix`.

    notes: lines for the header, e.g. what the coordinates are. samples: for each function the
    numbers that its test is run with.
    """

    prefix: str
    title: str
    notes: tuple[str, ...]
    number: Number
    functions: tuple[Function, ...]
    samples: tuple[Sample, ...]

    def files(self) -> dict[str, str]:
        """All files by name."""
        return {
            f"{self.prefix}.h": header(self),
            f"{self.prefix}.c": source(self),
            f"{self.prefix}_test.c": self_test(self.prefix, self.functions, self.samples),
            "CMakeLists.txt": _CMAKE.format(prefix=self.prefix),
        }


def header(library: Library) -> str:
    """Declarations, each with what it computes, its arrays, operations and stack."""
    guard = f"{library.prefix.upper()}_H"
    lines = [comment([library.title, "", *library.notes])]
    lines += [f"#ifndef {guard}", f"#define {guard}", "", "#include <stddef.h>", ""]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    for function in library.functions:
        lines.append(comment(_description(function)))
        lines.append(signature(function, restrict=False) + ";")
        lines += [signature(function, batch=True, restrict=False) + ";", ""]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */", ""])


def _description(function: Function) -> Iterable[str]:
    yield function.summary
    yield ""
    for role, variables in (("", function.inputs), ("out: ", function.outputs)):
        yield from (f"{role}{v.name}: {_shape(v)}" for v in variables)
    yield f"operations: {function.program.count}"
    yield f"stack with optimisation, about: {function.stack} bytes"
    yield f"of the batch function: {function.batch_stack} bytes"


def _shape(variable: Variable) -> str:
    if len(variable.shape) < 2:
        return f"{variable.size} number{'' if variable.size == 1 else 's'}"
    return " x ".join(map(str, variable.shape)) + ", row by row"


def source(library: Library) -> str:
    """Definitions. Angles of batches are turned without the C library."""
    functions, number = library.functions, library.number
    lines = [comment([library.title]), f'#include "{library.prefix}.h"', ""]
    turning = any(f.turns and (f.in_columns or f.own_sine) for f in functions)
    lines += ["#include <float.h>"] * turning + ["#include <math.h>", ""]
    if turning:
        lines += [_STRICT, sine_and_cosine(number, exact=any(f.own_sine for f in functions))]
    columns = [f for f in functions if f.in_columns]
    if columns:
        lines.append(_LANES.format(lanes=LANE_BYTES // number.bytes))
    if any(v.size for f in columns for v in f.inputs):
        lines.append(_GATHER.format(T=number.name))
    if any(v.size for f in columns for v in f.outputs):
        lines.append(_SCATTER.format(T=number.name))
    return "\n".join([*lines, *map(definitions, functions)])


def comment(lines: Iterable[str]) -> str:
    """Lines as one comment of C, whatever is in them."""
    words = [f" * {_harmless(line)}".rstrip() for line in lines]
    return "\n".join(["/*", *words, " */"])


def _harmless(text: str) -> str:
    """A text that neither ends a comment nor begins one, nor has a trigraph or a line's end."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in "\\?" else "_" for c in text)
    return plain.replace("*", "_") if "*/" in plain or "/*" in plain else plain


_STRICT = """\
#if defined(__FAST_MATH__) || (FLT_EVAL_METHOD == 2)
#error "sine_and_cosine rounds by adding: leave out -ffast-math, and x87 (-mfpmath=sse)"
#endif
"""

_LANES = """\
#define LANES {lanes}U /* states in a block of a batch */
"""

_GATHER = """\
/* Rows of states to columns; a row that is missing is the last one again. */
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
/* Columns back to rows. */
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
  # Products are fused where the machine can, and square roots do not set errno.
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
