"""A kernel that repeats a step made of several programs: `begin`, `refine`, `rescue` and `end`.

    begin(inputs) -> point, memory, data
    refine(point, memory, data) -> point, memory
    rescue(point, memory, data) -> point, memory
    end(inputs, point, memory, data) -> outputs

The programs are the same as in `llvm.iterated`; `rescue` is optional. Each thread simulates one
robot. The robot's states and controls, and values passed between the programs, are kept in columns
of a tile of shared memory. Each program is a function, so that all registers serve one program at a
time. The first entry of `memory`, the solver state, is nonzero once a robot has converged. A
converged robot waits until enough other robots of its block have converged. Then the converged
robots end this step and begin the next one together, so robots of a block may be at different
steps. In the same way, late robots, which have run `quick` iterations or more, wait until there are
enough of them to run `rescue` together. A thread whose robot has finished all steps takes another
robot.

The programs together exceed the instruction cache of a multiprocessor. Therefore all its warps form
one block and run the same program at the same time, so that they share cached instructions.
"""

from collections.abc import Sequence

from chasles.backends.c.body import Number, number_of
from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda.assembly import HERE, Assembly, place
from chasles.backends.cuda.body import Plan
from chasles.backends.cuda.build import DRIVER, REGISTERS, Built, shared_memory
from chasles.backends.cuda.kernel import Kernel, kept
from chasles.backends.cuda.math import prelude
from chasles.backends.cuda.tiles import WARP, column
from chasles.errors import StateError
from chasles.expr import Interface, Program
from chasles.expr.scalar import uncollected

TOGETHER = 3 / 8
"""Fraction of a block's robots that must have converged before the converged robots begin the next
step. With a smaller value, more threads are idle at the end and beginning of a step; with a larger
value, more threads are idle during the iterations."""

RESCUED = 1 / 16
"""Fraction of a block's robots that must have run `quick` iterations before `rescue` runs."""

NAMES = ("refine", "rescue")
"""Names of the programs that run one iteration of the solver."""

WARPS = REGISTERS // (WARP * 256)
"""Number of warps on a multiprocessor if each thread uses the maximum number of registers."""


def iterated(kernels: Sequence[Kernel], quick: int = 0) -> Kernel:
    """Return a kernel for a time step with an iterative solver, made from several kernels.

    - kernels: kernels for `begin`, `refine`, `rescue` (optional) and `end`, with the same dtype.
    - quick: number of iterations after which `rescue`, if any, replaces `refine`.
    """
    begin, end = kernels[0], kernels[-1]
    dtype, recipes = begin.dtype.name, tuple(kernel.recipe for kernel in kernels)
    given, taken = begin.interface, end.interface
    interface = Interface("step", given.inputs, taken.outputs, given.nonzero)

    def made(target: str, layout: str) -> Built:
        assert layout == "loop", "an iterative kernel only has the layout 'loop'"
        return build([kernel.trace() for kernel in kernels], dtype, target, quick)

    recipe = None if None in recipes else ("iterated", recipes, quick)
    return kept(recipe, interface, dtype, made)


def build(programs: Sequence[Program], dtype: str, architecture: str, quick: int = 0) -> Built:
    """Compile the programs as one kernel; raise an error if a warp needs too much shared memory."""
    most = shared_memory(architecture) - DRIVER
    shared = tile_bytes(programs, dtype)
    warps = min(most // shared, WARPS)
    if not warps:
        problem = f"a step needs {shared // 1024} KiB of shared memory (limit: {most // 1024} KiB)"
        remedy = "use float32 or fewer contacts, or pass NumPy arrays to run the steps on the CPU"
        raise StateError("E-GPU-037", problem, remedy)
    with uncollected():
        text = source(programs, dtype, warps, architecture, quick)
    made = cuda_driver.compile(text, architecture)
    facts = made.registers, made.spilled, made.code
    return Built("loop", WARP * warps, shared, (), *facts, stays=True)


class _Tile:
    """Layout of a tile: columns of inputs, point, memory, data, and the results that replace them.

    - inputs: columns of each input.
    - moving: columns of point and memory.
    - carried: columns of point, memory and data. Data that are inputs share the input columns.
    - refined, ended: columns of the results of `refine` and `end`. The results of `end` are written
      in place if no program reads the columns that they replace.
    """

    def __init__(self, begin: Program, refine: Program, end: Program) -> None:
        self.columns = 0
        self.inputs = [self._new(v.size) for v in begin.inputs]
        self.moving = [self._new(v.size) for v in begin.outputs[:2]]
        data: list[int] = []
        shared = set()
        for k in begin.results[2]:
            if begin.code[k].op == "input":
                array, index = begin.code[k].data
                data.append(self.inputs[array][index])
                shared.add(array)
            else:
                data += self._new(1)
        self.carried = [*self.moving, data]
        first = self.columns
        self.refined = [self._new(v.size) for v in refine.outputs]
        last, self.columns = self.columns, first
        read = {k.data[0] for p in (begin, end) for k in p.code if k.op == "input"} | shared
        self.ended = [
            self._new(v.size) if k in read else self.inputs[k] for k, v in enumerate(end.outputs)
        ]
        self.columns = max(self.columns, last)

    def _new(self, size: int) -> range:
        """Reserve `size` further columns of the tile and return their indices."""
        self.columns += size
        return range(self.columns - size, self.columns)


def tile_bytes(programs: Sequence[Program], dtype: str) -> int:
    """Return the shared memory (bytes) that a warp needs for its tile."""
    return WARP * _tile(programs).columns * number_of(dtype).bytes


def _tile(programs: Sequence[Program]) -> _Tile:
    """Return the tile layout of a step; the programs `refine` and `rescue` use the same columns."""
    return _Tile(programs[0], programs[1], programs[-1])


def source(
    programs: Sequence[Program],
    dtype: str,
    warps: int = 1,
    architecture: str = "sm_90",
    quick: int = 0,
) -> str:
    """Return the kernel's source text for blocks of `warps` warps."""
    begin, *iterations, end = programs
    for each in iterations:
        assert [v.size for v in each.inputs] == [v.size for v in begin.outputs]
    number, tile = number_of(dtype), _tile(programs)
    shared, capability = tile_bytes(programs, dtype), int(architecture.removeprefix("sm_"))
    parts = [_function("begin", begin, number, capability, tile.inputs, tile.carried)]
    for name, each in zip(NAMES, iterations, strict=False):
        parts.append(_function(name, each, number, capability, tile.carried, tile.refined))
    read = [*tile.inputs, *tile.carried]
    parts.append(_function("end", end, number, capability, read, tile.ended))
    head = [f"/* {', '.join(f'{p.name}: {p.count}' for p in programs)}. */", prelude(dtype)]
    head += [f"#ifndef LANES\n#define LANES {WARP}\n#endif", f"#define SHARED {shared}"]
    head += [_TILE, HERE]
    late = quick if len(iterations) > 1 else 0
    return "\n".join([*head, *parts, *_kernel(begin, end, tile, warps, late)])


_TILE = """#define TILE \\
  extern __shared__ __align__(128) unsigned char memory[]; \\
  const int lane = threadIdx.x % LANES; \\
  real* const tile = (real*)(memory + threadIdx.x / LANES * SHARED);
#ifndef together
#define together() __syncthreads()
#define counted(own) __syncthreads_count(own)
#endif"""


def _function(
    name: str,
    program: Program,
    number: Number,
    capability: int,
    inputs: Sequence[Sequence[int]],
    outputs: Sequence[Sequence[int]],
) -> str:
    """Return a program as a CUDA function that reads and writes columns of the tile."""
    plan = Plan(program)
    same = set()  # results that are already in place
    for k, places in plan.places.items():
        if plan.code[k].op == "input":
            array, entry = plan.code[k].data
            same |= {(a, b) for a, b in places if outputs[a][b] == inputs[array][entry]}

    def deliver(output: int, index: int, _: str) -> str:
        return "" if (output, index) in same else place(outputs[output][index], number.bytes)

    body = Assembly(plan, number, deliver, capability=capability)
    for k in plan.order:
        if plan.code[k].op == "input":
            array, index = plan.code[k].data
            if k in plan.turning_inputs:
                body.name(k, f"tile{column(inputs[array][index])}", fixed=False)
            else:
                body.held[k] = place(inputs[array][index], number.bytes)
    body.turn_near()
    body.run(plan.order)
    head = f"__device__ __noinline__ void {name}() {{\n  TILE"
    return "\n".join([head, *body.text(), "}"])


def _kernel(begin: Program, end: Program, tile: _Tile, warps: int, quick: int) -> list[str]:
    """Return the kernel's function, a loop over steps and robots.

    In the generated code, `step` is the robot's number of remaining steps, and `begun` is true
    during a step. `quick` is the number of iterations after which `rescue` replaces `refine`, or 0
    without `rescue`.
    """
    arrays = [(f"in{k}", "const real*", f"from{k}") for k in range(len(begin.inputs))]
    arrays += [(f"out{k}", "real*", f"to{k}") for k in range(len(end.outputs))]
    strides = ("row", "along", "column")
    parameters = ["long long count", "int never", "long long steps", "long long every"]
    for name, kind, _ in arrays:
        own = ", ".join(f"long long {stride}_{name}" for stride in strides)
        parameters.append(f"{kind} __restrict__ {name}, {own}")
    status = f"tile{column(tile.moving[1].start)}"
    return [
        f'extern "C" __global__ void __launch_bounds__({WARP * warps}, 1) kernel(',
        "    " + ",\n    ".join(parameters) + ") {",
        "  TILE",
        "  const long long stride = gridDim.x * (long long)blockDim.x;",
        "  long long robot = blockIdx.x * (long long)blockDim.x + threadIdx.x - stride;",
        "  long long left = 0, step = 0;",
        "  bool begun = false;",
        *(f"  {kind} {own} = {name};" for name, kind, own in arrays),
        f"  {status} = 1;",
        "  for (;;) {",
        f"  const bool busy = {status} == 0;",
        "  const bool waits = !busy && (begun || step > 0 || robot + stride < count);",
        "  const int working = counted(busy), waiting = counted(waits);",
        "  if (!working && !waiting) return;",
        f"  if (!working || waiting >= {TOGETHER}f * blockDim.x) {{",
        *_ended(end, tile),
        "  together();",
        *_begun(begin, len(end.outputs), tile, arrays),
        "  together();",
        "  }",
        *_iterated(begin, tile, status, quick),
        "  }",
        "}\n",
    ]


def _iterated(begin: Program, tile: _Tile, status: str, quick: int) -> list[str]:
    """Generate code that runs one iteration (`refine` or `rescue`) of each unconverged robot."""
    moved = sum(v.size for v in begin.outputs[:2])
    taken = _copied(moved, tile.moving[0].start, _place(tile.refined[0].start))
    if not quick:
        return [f"  if ({status} == 0) {{", "    refine();", taken, "  }"]
    count = f"tile{column(tile.moving[1][1])}"
    return [
        f"  const bool open = {status} == 0, late = open && {count} >= {quick};",
        "  const int early = counted(open && !late), behind = counted(late);",
        f"  const bool rescues = !early || behind >= {RESCUED}f * blockDim.x;",
        "  if (open && late == rescues) {",
        "    if (rescues) rescue();",
        "    else refine();",
        taken,
        "  }",
    ]


def _begun(
    begin: Program, states: int, tile: _Tile, arrays: Sequence[tuple[str, str, str]]
) -> list[str]:
    """Generate CUDA statements that begin the next step of the robot of each waiting thread.

    A thread whose robot has finished all steps first switches to another robot, if any is left.
    """
    read = [
        _copied(v.size, tile.inputs[k].start, f"from{k}[i * column_in{k}]")
        for k, v in enumerate(begin.inputs)
    ]
    return [
        "  if (waits && step == 0 && robot + stride < count) {",
        "  robot += stride;",
        "  step = steps;",
        "  left = every;",
        *(f"  {own} = {name} + robot * row_{name};" for name, _, own in arrays),
        *read[:states],
        "  }",
        "  if (waits && step > 0) {",
        *read[states:],
        *(f"  from{k} += along_in{k};" for k in range(states, len(begin.inputs))),
        "  begin();",
        "  begun = true;",
        "  step--;",
        "  }",
    ]


def _ended(end: Program, tile: _Tile) -> list[str]:
    """Generate code for the end of a step: set the next states, and write a record if it is due."""
    lines = [
        "  if (waits && begun) {",
        "  end();",
        "  begun = false;",
        "  const bool due = left == 1 || step == 0;",
    ]
    for k, variable in enumerate(end.outputs):
        lines += [
            f"  for (int i = 0; i < {variable.size}; i++) {{",
            f"    const real next = {_place(tile.ended[k].start)};",
            f"    {_place(tile.inputs[k].start)} = next;",
            f"    if (due) to{k}[i * column_out{k}] = next;",
            "  }",
        ]
    lines.append("  if (--left == 0) {")
    lines += [f"    to{k} += along_out{k};" for k in range(len(end.outputs))]
    return [*lines, "    left = every;", "  }", "  }"]


def _copied(size: int, to: int, value: str) -> str:
    """Generate a CUDA loop over `i` that stores a value in `size` columns, from column `to` on."""
    return f"  for (int i = 0; i < {size}; i++)\n    {_place(to)} = {value};"


def _place(start: int) -> str:
    """Return the CUDA expression for a thread's entry in column `start + i` of the tile."""
    return f"tile[({start} + i) * LANES + lane]"
