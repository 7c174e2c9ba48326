"""A kernel that repeats a step of three programs: a beginning, an iteration, and an end.

    begin(inputs) -> point, memory, data
    refine(point, memory, data) -> point, memory
    end(inputs, point, memory, data) -> outputs

They are those of `llvm.iterated`. A thread has one robot. Its states and controls, and what the
programs tell each other, wait in columns of a tile of shared memory. Each program is a function, so
that all registers are for one at a time. The first number of a memory is not 0 where a robot has
converged. It waits until others of its warp have, too, then they end this step and begin the next
one together: robots of a warp may be at different steps.
"""

import itertools
from collections.abc import Sequence

from chasles.backends.c.body import Number, number_of
from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda.body import Body, Plan
from chasles.backends.cuda.build import Built, shared_memory
from chasles.backends.cuda.kernel import Kernel, kept
from chasles.backends.cuda.math import prelude
from chasles.backends.cuda.tiles import WARP, column
from chasles.errors import StateError
from chasles.expr import Interface, Program

TOGETHER = 12
"""Robots of a warp that have converged before they go on: fewer leave more threads without work in
that part of a step, more of them in the iterations."""


def iterated(kernels: Sequence[Kernel]) -> Kernel:
    """The kernel of a beginning, an iteration and an end, all of one type of numbers."""
    begin, _, end = kernels
    dtype, recipes = begin.dtype.name, tuple(kernel.recipe for kernel in kernels)
    given, taken = begin.interface, end.interface
    interface = Interface("step", given.inputs, taken.outputs, given.nonzero)

    def made(target: str, layout: str) -> Built:
        assert layout == "loop", "a step is repeated"
        return build([kernel.trace() for kernel in kernels], dtype, target)

    recipe = None if None in recipes else ("iterated", recipes)
    return kept(recipe, interface, dtype, made)


def build(programs: Sequence[Program], dtype: str, architecture: str) -> Built:
    """The machine code; an error where a warp's robots need more shared memory than there is."""
    text, shared = source(programs, dtype)
    if shared > (most := shared_memory(architecture)):
        problem = f"a step needs {shared // 1024} KiB of shared memory, of which there are "
        problem += f"{most // 1024}"
        raise StateError("E-GPU-037", problem, "use float32, fewer contacts, or NumPy's arrays")
    made = cuda_driver.compile(text, architecture)
    return Built("loop", WARP, shared, (), made.registers, made.spilled, made.code)


class _Tile:
    """The columns of a tile: inputs, point, memory, data, and what replaces some of them.

    refined, ended: where `refine` and `end` write their results. Those of `end` that no program
    reads are written in place.
    """

    def __init__(self, begin: Program, refine: Program, end: Program) -> None:
        sizes = [v.size for v in (*begin.inputs, *begin.outputs)]
        *starts, after = itertools.accumulate(sizes, initial=0)
        self.inputs, self.carried = starts[: len(begin.inputs)], starts[len(begin.inputs) :]
        self.refined = [after, after + refine.outputs[0].size]
        read = {k.data[0] for p in (begin, end) for k in p.code if k.op == "input"}
        self.ended, self.columns = [], after + sum(v.size for v in refine.outputs)
        for k, variable in enumerate(end.outputs):
            self.ended.append(after if k in read else self.inputs[k])
            after += variable.size if k in read else 0
        self.columns = max(self.columns, after)


def source(programs: Sequence[Program], dtype: str) -> tuple[str, int]:
    """The kernel's text, and the bytes of shared memory of a warp."""
    begin, refine, end = programs
    assert [v.size for v in refine.inputs] == [v.size for v in begin.outputs]
    number, constants, tile = number_of(dtype), list[float](), _Tile(begin, refine, end)
    shared = WARP * tile.columns * number.bytes
    parts = [
        _function("begin", begin, number, constants, (tile.inputs, tile.carried)),
        _function("refine", refine, number, constants, (tile.carried, tile.refined)),
        _function("end", end, number, constants, ([*tile.inputs, *tile.carried], tile.ended)),
    ]
    head = [f"/* {', '.join(f'{p.name}: {p.count}' for p in programs)}. */", prelude(dtype)]
    head += [f"#ifndef LANES\n#define LANES {WARP}\n#endif", f"#define SHARED {shared}", _TILE]
    if constants:
        values = ", ".join(number.spelled(c) for c in constants)
        head.append(f"__constant__ real C[] = {{{values}}};")
    return "\n".join([*head, *parts, *_kernel(begin, end, tile)]), shared


_TILE = """#define TILE \\
  extern __shared__ __align__(128) unsigned char memory[]; \\
  const int lane = threadIdx.x % LANES; \\
  real* const tile = (real*)(memory + threadIdx.x / LANES * SHARED); \\
  volatile real* const kept = tile; (void)kept;"""


def _function(
    name: str,
    program: Program,
    number: Number,
    constants: list[float],
    places: tuple[Sequence[int], Sequence[int]],
) -> str:
    """A program as a function from columns of the tile to others."""
    plan, (inputs, outputs) = Plan(program), places

    def deliver(output: int, index: int, value: str) -> str:
        return f"tile{column(outputs[output] + index)} = {value};"

    body = Body(plan, number, deliver, constants=constants)
    for k in plan.order:
        if plan.code[k].op == "input":
            array, index = plan.code[k].data
            place = str(column(inputs[array] + index))
            if k in plan.turning_inputs:
                body.name(k, f"tile{place}", fixed=False)
            else:
                body.held[k] = place
    body.turn_near()
    body.run(plan.order)
    head = f"__device__ __noinline__ void {name}(const int never) {{\n  TILE"
    return "\n".join([head, *body.lines, "}"])


def _kernel(begin: Program, end: Program, tile: _Tile) -> list[str]:
    """The loop over steps. Robots beyond the last repeat it, and are not written."""
    inputs, states = begin.inputs, len(end.outputs)
    arrays = [(f"in{k}", "const real*", v.size) for k, v in enumerate(inputs)]
    arrays += [(f"out{k}", "real*", v.size) for k, v in enumerate(end.outputs)]
    each = [
        f"{kind} __restrict__ {name}, long long row_{name}, long long along_{name}, "
        f"long long column_{name}"
        for name, kind, _ in arrays
    ]
    parameters = ["long long count", "int never", "long long steps", "long long every", *each]
    read = [
        _copied(v.size, tile.inputs[k], f"in{k}[i * column_in{k}]") for k, v in enumerate(inputs)
    ]
    point = sum(v.size for v in begin.outputs[:2])
    status = f"tile{column(tile.carried[1])}"
    return [
        f'extern "C" __global__ void __launch_bounds__({WARP}) kernel(',
        "    " + ",\n    ".join(parameters) + ") {",
        "  TILE",
        "  const long long own = blockIdx.x * (long long)blockDim.x + threadIdx.x;",
        "  const long long robot = own < count ? own : count - 1;",
        *(f"  {name} += robot * row_{name};" for name, _, _ in arrays),
        *read[:states],
        "  long long left = every, step = own < count ? steps : -1;",
        f"  {status} = 1;",
        "  bool begun = false;",
        "  for (;;) {",
        f"  const bool busy = {status} == 0, waits = !busy && step >= 0;",
        "  const unsigned working = __ballot_sync(0xffffffffu, busy);",
        "  const unsigned waiting = __ballot_sync(0xffffffffu, waits);",
        "  if (!working && !waiting) return;",
        f"  if (waits && (!working || __popc(waiting) >= {TOGETHER})) {{",
        "  if (begun) {",
        "  end(never);",
        "  const bool due = left == 1 || step == 0;",
        *_recorded(end, tile),
        "  if (--left == 0) {",
        *(f"    out{k} += along_out{k};" for k in range(states)),
        "    left = every;",
        "  }",
        "  }",
        "  if (step > 0) {",
        *read[states:],
        *(f"  in{k} += along_in{k};" for k in range(states, len(inputs))),
        "  begin(never);",
        "  }",
        "  begun = true;",
        "  step--;",
        "  }",
        f"  if ({status} == 0 && step >= 0) {{",
        "    refine(never);",
        _copied(point, tile.carried[0], _place(tile.refined[0])),
        "  }",
        "  }",
        "}\n",
    ]


def _recorded(end: Program, tile: _Tile) -> list[str]:
    """The next states; records, where they are due."""
    lines = []
    for k, variable in enumerate(end.outputs):
        lines += [
            f"  for (int i = 0; i < {variable.size}; i++) {{",
            f"    const real next = {_place(tile.ended[k])};",
            f"    {_place(tile.inputs[k])} = next;",
            f"    if (due) out{k}[i * column_out{k}] = next;",
            "  }",
        ]
    return lines


def _copied(size: int, to: int, value: str) -> str:
    """A loop over numbers i that go to columns of the tile."""
    return f"  for (int i = 0; i < {size}; i++)\n    {_place(to)} = {value};"


def _place(start: int) -> str:
    """Column i beyond one of the tile."""
    return f"tile[({start} + i) * LANES + lane]"
