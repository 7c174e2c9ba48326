"""Convert a program to the source code of a CUDA kernel.

There are six forms of kernels. The form "direct" reads all inputs into registers first, from arrays
with any strides. It is best if a state has few inputs, or if the same input of successive states is
contiguous (columns). The forms "rows" and "columns" keep inputs, sines and cosines in shared memory
(`cuda.tiles`). The form "loop" runs a given number of time steps (`cuda.forms`). The forms "search"
and "tries" repeat a solver step until each problem is solved or abandoned (`cuda.searching`). In
all forms, a thread computes one state, unless a crew (a group of warps) shares the work of a large
robot (`cuda.crew`).
"""

from dataclasses import dataclass

from chasles.backends.c.body import number_of
from chasles.backends.cuda.crew import Crew, Size
from chasles.backends.cuda.forms import Direct, Form, Looped, Threads
from chasles.backends.cuda.math import MOVES, prelude
from chasles.backends.cuda.searching import Searching
from chasles.backends.cuda.solo import Solo
from chasles.backends.cuda.tiles import ROOM, WARP, Tiled
from chasles.expr import Program


@dataclass(frozen=True)
class Source:
    """The source text of a kernel, and its memory requirements.

    - shared: shared memory (bytes) that each warp needs.
    - columns: outputs that are written as columns even in the form "rows", because their rows do
      not fit in shared memory.
    """

    text: str
    shared: int = 0
    columns: tuple[int, ...] = ()


def source(
    program: Program,
    dtype: str,
    form: Form,
    *,
    block: int,
    least: int = 0,
    cuts: bool = False,
    most: int = ROOM,
    crew: Crew | Size | None = None,
) -> Source:
    """Return the kernel source of a program for blocks of up to `block` threads.

    - least: number of blocks that must fit on a multiprocessor at once, which limits the number of
      registers; 0 for no limit.
    - cuts: True to insert branches that keep the compiler from moving instructions far ahead.
    - most: maximum shared memory (bytes) of a warp. An output is written as columns if its rows do
      not fit in this memory.
    - crew: the group of warps that process the same states together, if any. A `Crew` object can be
      used only once.
    """
    written = crew if isinstance(crew, Crew) else threads(program, dtype, form, most, crew)
    written.run(cuts=cuts)
    body = written.body
    head = [f"/* {program.name}, {form}: {program.count}. */", prelude(dtype)]
    head += [f"#ifndef LANES\n#define LANES {WARP}\n#endif", MOVES if written.shared else ""]
    if body.constants:
        values = ", ".join(body.number.spelled(c) for c in body.constants)
        head.append(f"__constant__ real C[] = {{{values}}};")
    head += written.tables
    parameters = ["long long count", "int never", *written.more]
    for role, kind, variables in (
        ("in", "const real*", program.inputs),
        ("out", "real*", program.outputs),
    ):
        for k in range(len(variables)):
            strides = [f"long long {name}_{role}{k}" for name in written.strides]
            parameters.append(", ".join([f"{kind} __restrict__ {role}{k}", *strides]))
    bound = f"{block}, {least}" if least else f"{block}"
    head.append(f'extern "C" __global__ void __launch_bounds__({bound}) kernel(')
    head.append("    " + ",\n    ".join(parameters) + ") {")
    text = "\n".join([*head, *written.before, *body.lines, *written.after, "}\n"])
    return Source(text, written.shared, written.columns)


FORMS = {"direct": Direct, "loop": Looped, "search": Searching, "tries": Searching}
"""Writer classes of the kernel variants (forms) in which threads do not share inputs."""


def threads(program: Program, dtype: str, form: Form, most: int, crew: Size | None) -> Threads:
    """Return an object that writes the source code of a kernel in a given form."""
    if crew is not None:
        return (Solo if crew.columns else Crew)(program, dtype, form, crew)
    if form in ("rows", "columns"):
        return Tiled(program, dtype, form, most)
    return FORMS[form](program, dtype, form)


def spreading(dtype: str) -> str:
    """Return the source of a kernel that transposes columns (size, count) to rows (count, size)."""
    name = number_of(dtype).name
    return f"""
extern "C" __global__ void spread(long long count, int size, long long row,
                                  const {name}* columns, {name}* rows) {{
  __shared__ {name} tile[{WARP}][{WARP} + 1];
  const long long state = blockIdx.x * {WARP}LL;
  const int first = blockIdx.y * {WARP}, lane = threadIdx.x;
  for (int i = threadIdx.y; i < {WARP}; i += blockDim.y)
    if (first + i < size && state + lane < count)
      tile[i][lane] = columns[(first + i) * count + state + lane];
  __syncthreads();
  for (int i = threadIdx.y; i < {WARP}; i += blockDim.y)
    if (first + lane < size && state + i < count)
      rows[(state + i) * row + first + lane] = tile[lane][i];
}}
"""
