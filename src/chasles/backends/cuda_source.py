"""A program as a CUDA kernel: one thread computes one state, in straight-line code.

There are four forms. "direct" reads all inputs into registers first, from arrays with any strides:
best where a state has few inputs, or the same input of successive states lies side by side
(columns). "rows" and "columns" keep the inputs of a warp's states, and their sines and cosines, in
shared memory and read them there when they are needed, so that a long program has registers left.
Rows come and go through shared memory whole, because threads that each read a row of their own use
little of what the memory delivers. Where rows of results are too long for that, as those of a
large mass matrix, each of their distinct values waits there, and all threads of a warp write one
row after the other, looking up which value comes where. "loop" repeats a step: one thread a robot,
its states in registers throughout. The outputs of the step are the first inputs of the next; the
other inputs, controls, are read anew in every step. After every so many steps, and after the last,
states are written to records.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from chasles.backends.c_body import number_of
from chasles.backends.cuda_body import Body, Plan
from chasles.backends.cuda_math import MOVES, prelude
from chasles.expr import Program

Form = Literal["direct", "rows", "columns", "loop"]

WARP = 32
"""Threads that run in step; a tile holds the states of one warp."""

HEADER = 128
"""Bytes before a tile: the barrier that says its rows have arrived."""

ROOM = 48 * 1024
"""Bytes of shared memory that a warp may use, so that several fit on a multiprocessor."""


@dataclass(frozen=True)
class Source:
    """The text of a kernel.

    shared: bytes of shared memory that each warp needs. columns: outputs that it writes as columns,
    for want of room, though its form is "rows".
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
) -> Source:
    """The kernel of a program for blocks of up to `block` threads.

    least: blocks that must fit on a multiprocessor at once, which limits registers; 0 sets none.
    cuts: keep the compiler from moving work far ahead. most: bytes of shared memory that a warp may
    use for distinct values of long rows.
    """
    written = _FORMS[form](program, dtype, form, most)
    written.body.run(cuts=cuts)
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


class _Form:
    """How threads get the inputs of their states, and deliver the results.

    tables: constants of its own. more: further parameters of the kernel. strides: those of an
    array. before, after: lines around the body.
    """

    tables: Sequence[str] = ()
    more: Sequence[str] = ()
    strides: Sequence[str] = ("row", "column")
    shared: int = 0
    columns: tuple[int, ...] = ()
    before: Sequence[str] = ()
    after: Sequence[str] = ()

    def __init__(self, program: Program, dtype: str, form: Form, most: int) -> None:
        self.program, self.form, self.most, self.plan = program, form, most, Plan(program)
        self.number, code = number_of(dtype), self.plan.code
        self.body = Body(self.plan, self.number, self._deliver)
        self.inputs = sorted((code[k].data, k) for k in self.plan.order if code[k].op == "input")

    def _deliver(self, output: int, index: int, value: str) -> str:
        return f"out{output}[{index} * column_out{output}] = {value};"

    def _begin(self, name: str) -> list[str]:
        """Where the thread's state is in all arrays."""
        return [
            f"  const long long {name} = blockIdx.x * (long long)blockDim.x + threadIdx.x;",
            f"  if ({name} >= count) return;",
            *(f"  in{k} += {name} * row_in{k};" for k in range(len(self.program.inputs))),
            *(f"  out{k} += {name} * row_out{k};" for k in range(len(self.program.outputs))),
        ]


class _Direct(_Form):
    """Each thread reads its state into registers and writes its results where they belong."""

    def __init__(self, program: Program, dtype: str, form: Form, most: int) -> None:
        super().__init__(program, dtype, form, most)
        self.before, turning = self._begin("state"), self.plan.turning_inputs
        for (array, index), k in self.inputs:
            self.body.name(k, f"in{array}[{index} * column_in{array}]", fixed=k not in turning)
        if turning:
            self.body.bring_near([f"t{k}" for k in turning])


class _Tiled(_Form):
    """Inputs wait in shared memory; in the form "rows" results go there too, where there is room.

    A tile has a region for each input array: rows as in the array, or columns of LANES numbers.
    Columns follow for sines and cosines (a sine takes the place of an angle that is not needed
    again), then a region for each output that comes in rows, unless it fits in that of an input.
    Last are the distinct values of outputs whose rows are too long, in columns of LANES + 1
    numbers, so that neither threads that write a column nor threads that read along a row wait for
    each other.
    """

    def __init__(self, program: Program, dtype: str, form: Form, most: int) -> None:
        super().__init__(program, dtype, form, most)
        self.size = 0
        self.regions = [self._reserve(variable.size) for variable in program.inputs]
        turns = {angle: self._waiting(angle) for angle in self.plan.angles}
        self.results: dict[int, int] = self._place_results() if form == "rows" else {}
        outputs = range(len(program.outputs)) if form == "rows" else ()
        self.places: dict[int, int] = {}
        left = [k for k in outputs if k not in self.results]
        self.packed = [k for k in left if self._pack(program.results[k])]
        self.columns = tuple(k for k in left if k not in self.packed)
        self.tables = [
            f"__device__ const unsigned short VALUES{k}[] = "
            f"{{{', '.join(str(self.places[r]) for r in program.results[k])}}};"
            for k in self.packed
        ]
        self.shared = HEADER + self._needed(self.places)
        self.before, self.after = [*self._place(), *self._bring()], self._give()
        self._write(turns)

    def _reserve(self, numbers: int) -> int:
        start, self.size = self.size, self.size + numbers
        return start

    def _element(self, region: int, size: int, index: int) -> str:
        if self.form == "rows":
            return f"[{region} * LANES + {size} * lane + {index}]"
        return f"[{region + index} * LANES + lane]"

    def _input(self, k: int) -> str:
        """Where an input is in the tile."""
        array, index = self.plan.code[k].data
        return self._element(self.regions[array], self.program.inputs[array].size, index)

    def _waiting(self, angle: int) -> tuple[str, str]:
        """Where the sine and cosine of an angle wait."""
        column = "[{} * LANES + lane]"
        alone = self.plan.only_turns(angle)
        sine = self._input(angle) if alone else column.format(self._reserve(1))
        return sine, column.format(self._reserve(1))

    def _place_results(self) -> dict[int, int]:
        """A region for each output: of an input that is used up in time, or a new one."""
        found: dict[int, int] = {}
        for k, variable in enumerate(self.program.outputs):
            taken = found.values()
            free = [r for i, r in enumerate(self.regions) if self._frees(i, k) and r not in taken]
            if free:
                found[k] = free[-1]
            elif WARP * (self.size + variable.size) * self.number.bytes <= ROOM:
                found[k] = self._reserve(variable.size)
        return found

    def _needed(self, values: Collection[int]) -> int:
        """Bytes of a tile in which so many values of long rows wait."""
        return (WARP * self.size + (WARP + 1) * len(values)) * self.number.bytes

    def _pack(self, results: Sequence[int]) -> bool:
        """Give each distinct value of a long row a place, if there is room."""
        more = dict.fromkeys([*self.places, *results])
        if self._needed(more) > self.most:
            return False
        self.places = {value: place for place, value in enumerate(more)}
        return True

    def _waits(self, place: str, lane: str) -> str:
        return f"tile[{self.size} * LANES + {place} * (LANES + 1) + {lane}]"

    def _frees(self, array: int, output: int) -> bool:
        """Whether each number of an input is used for the last time before that of an output."""
        plan, results = self.plan, self.program.results[output]
        if self.program.inputs[array].size != len(results):
            return False
        time = {k: t for t, k in enumerate(plan.order)}
        for k in plan.order:
            op, _, data = plan.code[k]
            if op == "input" and data[0] == array:
                turned = any(plan.code[u].op in ("sin", "cos") for u in plan.users[k])
                late = any(time[u] > time[results[data[1]]] for u in plan.users[k])
                if turned or late or k in plan.places:
                    return False
        return True

    def _deliver(self, output: int, index: int, value: str) -> str:
        if output in self.packed:
            results = self.program.results[output]
            place = self.places[results[index]]
            again = results.index(results[index]) < index
            return "" if again else f"{self._waits(str(place), 'lane')} = {value};"
        if output not in self.results:
            stored = super()._deliver(output, index, value)
            return stored if self.form == "columns" else f"if (lane < rows) {stored}"
        size = self.program.outputs[output].size
        return f"tile{self._element(self.results[output], size, index)} = {value};"

    def _write(self, turns: dict[int, tuple[str, str]]) -> None:
        """Angles first: brought near, turned, their sines and cosines kept; then the program."""
        plan, body = self.plan, self.body
        body.held = {k: f"kept{self._input(k)}" for _, k in self.inputs}
        if plan.turning_inputs:
            body.bring_near([f"tile{self._input(k)}" for k in plan.turning_inputs])
        for angle, (sine, cosine) in turns.items():
            body.prepare(angle)
            body.say("{")
            body.turn(angle, "s", "c")
            body.say(f"tile{sine} = s; tile{cosine} = c;")
            body.say("}")
            for k in plan.users[angle]:
                place = {"sin": sine, "cos": cosine}.get(plan.code[k].op)
                if place:
                    body.held[k] = f"kept{place}"
        body.forget()

    def _place(self) -> list[str]:
        return [
            "  extern __shared__ __align__(128) unsigned char memory[];",
            "  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;",
            "  const long long tiles = blockDim.x / LANES;",
            "  const long long first = (blockIdx.x * tiles + warp) * LANES;",
            "  if (first >= count) return;",
            "  const int rows = count - first < LANES ? (int)(count - first) : LANES;",
            f"  unsigned char* const mine = memory + warp * {self.shared};",
            "  unsigned long long* const arrived = (unsigned long long*)mine;",
            f"  real* const tile = (real*)(mine + {HEADER});",
            "  const volatile real* const kept = tile;",
        ]

    def _bring(self) -> list[str]:
        """Fill the tile."""
        lines = [
            f"  out{k} += (first + lane) * row_out{k};"
            for k in range(len(self.program.outputs))
            if k not in self.results and k not in self.packed
        ]
        arrays = [(k, v.size, self.regions[k]) for k, v in enumerate(self.program.inputs)]
        if self.form == "columns":
            lines.append("  if (lane >= rows) return;")
            lines.append("  const long long state = first + lane;")
            for k, size, region in arrays:
                source = f"&in{k}[state * row_in{k} + i * column_in{k}]"
                lines += ["#pragma unroll", f"  for (int i = 0; i < {size}; i++)"]
                lines.append(f"    fetch(&tile[({region} + i) * LANES + lane], {source});")
            return [*lines, "  fetched();"]
        for k, size, _ in arrays:
            whole = f"row_in{k} == {size} && in_bulk(in{k}, rows)"
            lines.append(f"  const unsigned bytes{k} = {whole} ? {self._bytes(size)} : 0;")
        lines.append("  open(arrived, lane);")
        lines.append("  if (lane == 0) {")
        lines.append(f"    expect(arrived, {' + '.join(f'bytes{k}' for k, _, _ in arrays)});")
        for k, size, region in arrays:
            ask = f"ask(tile + {region} * LANES, in{k} + first * {size}, bytes{k}, arrived);"
            lines.append(f"    if (bytes{k}) {ask}")
        lines.append("  }")
        for k, size, region in arrays:
            lines.append(f"  if (!bytes{k})")
            lines.append(f"    for (int i = lane; i < rows * {size}; i += LANES)")
            element = f"in{k}[(first + i / {size}) * row_in{k} + i % {size}]"
            lines.append(f"      fetch(&tile[{region} * LANES + i], &{element});")
        return [*lines, "  fetched();", "  await(arrived);", "  __syncwarp();"]

    def _give(self) -> list[str]:
        """Rows of results from the tile to where they belong."""
        if not self.results and not self.packed:
            return []
        lines = ["  before_bulk();", "  __syncwarp();"]
        for k in self.packed:
            size = self.program.outputs[k].size
            lines.append("  for (int state = 0; state < rows; state++)")
            lines.append("#pragma unroll 8")
            lines.append(f"    for (int i = lane; i < {size}; i += LANES)")
            value = self._waits(f"VALUES{k}[i]", "state")
            lines.append(f"      out{k}[(first + state) * row_out{k} + i] = {value};")
        arrays = [(k, self.program.outputs[k].size, region) for k, region in self.results.items()]
        for k, size, region in arrays:
            whole = f"row_out{k} == {size} && in_bulk(out{k}, rows)"
            lines.append(f"  if ({whole}) {{")
            give = f"give(out{k} + first * {size}, tile + {region} * LANES, {self._bytes(size)});"
            lines.append(f"    if (lane == 0) {give}")
            lines.append("  } else {")
            lines.append(f"    for (int i = lane; i < rows * {size}; i += LANES)")
            element = f"out{k}[(first + i / {size}) * row_out{k} + i % {size}]"
            lines.append(f"      {element} = tile[{region} * LANES + i];")
            lines.append("  }")
        return [*lines, "  if (lane == 0) given();"]

    def _bytes(self, size: int) -> int:
        return WARP * size * self.number.bytes


def spreading(dtype: str) -> str:
    """The kernel that makes rows, so far apart, of columns: (size, count) to (count, size)."""
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


class _Looped(_Form):
    """The loop around a step. Arrays have a third stride, from one step or record to the next."""

    more = ("long long steps", "long long every")
    strides = ("row", "along", "column")

    def __init__(self, program: Program, dtype: str, form: Form, most: int) -> None:
        super().__init__(program, dtype, form, most)
        states = len(program.outputs)
        sizes = [v.size for v in program.inputs[:states]]
        assert sizes == [v.size for v in program.outputs], "outputs must be the first inputs"
        self.before = self._begin("robot")
        self._read(own=True)
        self.body.say("long long left = every;")
        self.body.say("for (long long step = steps; step > 0; step--) {")
        self._read(own=False)
        self.body.turn_near()
        self.after = self._end()

    def _read(self, *, own: bool) -> None:
        """The states, or the controls."""
        for (array, index), k in self.inputs:
            if (array < len(self.program.outputs)) == own:
                fixed = not own and k not in self.plan.turning_inputs
                self.body.name(k, f"in{array}[{index} * column_in{array}]", fixed=fixed)

    def _deliver(self, output: int, index: int, value: str) -> str:
        return f"const real next{output}_{index} = {value};"

    def _end(self) -> list[str]:
        """The next states and controls; records, where they are due."""
        outputs = self.program.outputs
        lines = [f"  t{k} = next{a}_{i};" for (a, i), k in self.inputs if a < len(outputs)]
        controls = range(len(outputs), len(self.program.inputs))
        lines += [f"  in{k} += along_in{k};" for k in controls]
        lines.append("  if (--left == 0 || step == 1) {")
        for k, variable in enumerate(outputs):
            for index in range(variable.size):
                lines.append(f"    out{k}[{index} * column_out{k}] = next{k}_{index};")
            lines.append(f"    out{k} += along_out{k};")
        return [*lines, "    left = every;", "  }", "  }"]


_FORMS = {"direct": _Direct, "rows": _Tiled, "columns": _Tiled, "loop": _Looped}
