"""Kernels in which the states of a warp share a tile of shared memory.

Inputs, sines and cosines are kept in the tile and read when they are needed, which leaves more
registers for a long program. Whole rows are moved through the tile, because threads that each read
a separate row waste memory bandwidth. If rows of results do not fit in the tile, as for a large
mass matrix, only their distinct values are kept there. Then all threads of a warp together write
one row after another and look up the value of each entry.
"""

from collections.abc import Sequence
from typing import NamedTuple

from chasles.backends.cuda.forms import Form, Threads, stored
from chasles.expr import Program

WARP = 32
"""Number of threads in a warp, which run in lockstep; a tile holds the states of one warp."""

HEADER = 128
"""Size (bytes) of the header before a tile: the barrier on which threads wait for data."""

ROOM = 48 * 1024
"""Shared memory (bytes) that a warp may use, so that several warps fit on a multiprocessor."""


Region = tuple[int, int, int]
"""Index of an input, its number of entries per state, and the first tile column that it uses."""


class Place(NamedTuple):
    """Location of an entry in a tile: its index for the first state, and the stride between states.

    Twins are limbs with the same structure (`cuda.twins`). If each twin has its own location,
    `apart` is the offset between the locations of successive twins.
    """

    start: str
    step: int
    apart: str = ""

    def __str__(self) -> str:
        aside = f" + {self.apart} * side" if self.apart else ""
        return f"[{self.start} + {self.step} * lane{aside}]"

    def on(self, side: int) -> "Place":
        """Return the location for the twin (limb with the same structure) of index `side`."""
        aside = f" + {self.apart} * {side}" if self.apart else ""
        return Place(self.start + aside, self.step)


def column(number: int, apart: int = 0) -> Place:
    """Return the location of a tile column, given its index.

    `apart` is the column offset between successive twins (limbs with the same structure, see
    `cuda.twins`).
    """
    return Place(f"{number} * LANES", 1, f"{apart} * LANES" if apart else "")


class Tiled(Threads):
    """Kernel that keeps inputs in shared memory; the form "rows" also keeps results that fit there.

    A tile has a region for each input array: rows as in the array, or columns of LANES entries.
    Columns for sines and cosines follow; a sine overwrites an angle that is not needed again. Next
    is a region for each output stored by rows, unless the output fits in the region of an input.
    Then come the distinct values of outputs whose rows are too long for such a region. These values
    are in columns of LANES + 1 entries, so that threads can write a column or read along a row
    without bank conflicts. The tile ends with a list that gives the column of each entry of a long
    row.
    """

    unrolled = ""
    """Argument of `#pragma unroll` for loops that copy columns; empty to unroll them fully."""

    def __init__(self, program: Program, dtype: str, form: Form, most: int) -> None:
        super().__init__(program, dtype, form)
        self.most, self.size = most, 0
        self.regions = [self._reserve(variable.size) for variable in program.inputs]
        turns = {angle: self._waiting(angle) for angle in self.plan.angles}
        self.results = self._place_results()
        self._hold(turns)
        outputs = range(len(program.outputs)) if form == "rows" else ()
        self.places: dict[int, int] = {}
        left = [k for k in outputs if k not in self.results]
        self.packed = [k for k in left if self._pack(program.results[k])]
        self.columns = tuple(k for k in left if k not in self.packed)
        self.found = [self.places[r] * (WARP + 1) for k in self.packed for r in program.results[k]]
        if self.found:
            values = ", ".join(map(str, self.found))
            self.tables = [f"__device__ const unsigned short COLUMNS[] = {{{values}}};"]
        self.shared = HEADER + self._needed(len(self.places), len(self.found))
        self.before, self.after = [*self._place(), *self._bring()], self._give()
        self._turn(turns)

    def _hold(self, turns: dict[int, tuple[Place, Place]]) -> None:
        """Assign locations in the tile to inputs, sines and cosines."""
        plan, held = self.plan, self.body.held
        held.update({k: str(self._input(k)) for _, k in self.inputs})
        for angle, (sine, cosine) in turns.items():
            for k in plan.users[angle]:
                place = {"sin": sine, "cos": cosine}.get(plan.code[k].op)
                if place:
                    held[k] = str(place)

    def _reserve(self, numbers: int) -> int:
        start, self.size = self.size, self.size + numbers
        return start

    def _element(self, region: int, size: int, index: int, apart: int = 0) -> Place:
        """Return the location of an array's entry.

        `apart` is the offset, in entries of the array, between successive twins (limbs with the
        same structure, see `cuda.twins`).
        """
        if self.form == "rows":
            return Place(f"{region} * LANES + {index}", size, f"{apart}" if apart else "")
        return column(region + index, apart)

    def _input(self, k: int, apart: int = 0) -> Place:
        """Return the location of an input in the tile."""
        array, index = self.plan.code[k].data
        return self._element(self.regions[array], self.program.inputs[array].size, index, apart)

    def _new_column(self, _value: int) -> Place:
        """Reserve a column of shared memory for a value, and return its location."""
        return column(self._reserve(1))

    def _waiting(self, angle: int) -> tuple[Place, Place]:
        """Return the locations of the sine and the cosine of an angle."""
        alone = self.plan.only_turns(angle)
        sine = self._input(angle) if alone else self._new_column(angle)
        return sine, self._new_column(angle)

    def _place_results(self) -> dict[int, int]:
        """Return the tile region for each output: a new region, or that of an unneeded input."""
        found: dict[int, int] = {}
        for k, variable in enumerate(self.program.outputs if self.form == "rows" else ()):
            taken = found.values()
            free = [r for i, r in enumerate(self.regions) if self._frees(i, k) and r not in taken]
            if free:
                found[k] = free[-1]
            elif WARP * (self.size + variable.size) * self.number.bytes <= ROOM:
                found[k] = self._reserve(variable.size)
        return found

    def _needed(self, values: int, numbers: int) -> int:
        """Return the size (bytes) of a tile, including the values of long result rows.

        The long rows have `numbers` entries, of which `values` are distinct.
        """
        tile = (WARP * self.size + (WARP + 1) * values) * self.number.bytes
        return -(-(tile + 2 * numbers) // HEADER) * HEADER

    def _pack(self, results: Sequence[int]) -> bool:
        """Assign a column to each distinct value of an output whose rows are too long for a region.

        Return False if the values do not fit in shared memory.
        """
        more = dict.fromkeys([*self.places, *results])
        numbers = sum(len(r) for r in self.program.results)
        if self._needed(len(more), numbers) > self.most:
            return False
        self.places = {value: place for place, value in enumerate(more)}
        return True

    def _frees(self, array: int, output: int) -> bool:
        """Return True if an output may overwrite an input, because the input is not read later."""
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

    def _deliver(self, output: int, index: int, value: str, apart: int = 0) -> str:
        """Return the statement that stores a result.

        `apart` is the offset, in entries of the output, to the result of the next twin (limb with
        the same structure, see `cuda.twins`).
        """
        if output in self.packed:
            results = self.program.results[output]
            column = self.places[results[index]] * (WARP + 1)
            again = results.index(results[index]) < index
            return "" if again else f"waiting[{column} + lane] = {value};"
        if output not in self.results:
            entry = f"({index} + {apart} * side)" if apart else f"{index}"
            statement = stored(output, entry, value)
            return statement if self.leaves else f"if (lane < rows) {statement}"
        size = self.program.outputs[output].size
        return f"tile{self._element(self.results[output], size, index, apart)} = {value};"

    def _turn(self, turns: dict[int, tuple[Place, Place]]) -> None:
        """Emit code that reduces angles modulo 2 pi and stores their sines and cosines."""
        plan, body = self.plan, self.body
        if turning := plan.turning(turns):
            body.bring_near([f"tile{self._input(k)}" for k in turning])
        for angle, (sine, cosine) in turns.items():
            body.prepare(angle)
            body.say("{")
            body.turn(angle, "s", "c")
            body.say(f"tile{sine} = s; tile{cosine} = c;")
            body.say("}")
        body.forget()

    @property
    def leaves(self) -> bool:
        """Return True if threads without a state return at once, so that stores need no condition.

        A condition at each store makes the compiler spill more (Talos in float64: 15 % slower).
        """
        return self.form == "columns"

    @property
    def which(self) -> str:
        """C definition of `warp`, the index of a thread's warp in the block."""
        return "warp = threadIdx.x / LANES"

    @property
    def first(self) -> str:
        """C expression for the index of the first state of a tile."""
        return "(blockIdx.x * (long long)(blockDim.x / LANES) + warp) * LANES"

    mine = "memory + warp * {}"
    """C expression for the start of the tile; the braces stand for the tile's size (bytes)."""

    def _place(self) -> list[str]:
        return [
            "  extern __shared__ __align__(128) unsigned char memory[];",
            f"  const int lane = threadIdx.x % LANES, {self.which};",
            f"  const long long first = {self.first};",
            "  if (first >= count) return;",
            "  const int rows = count - first < LANES ? (int)(count - first) : LANES;",
            f"  unsigned char* const mine = {self.mine.format(self.shared)};",
            "  unsigned long long* const arrived = (unsigned long long*)mine;",
            f"  real* const tile = (real*)(mine + {HEADER});",
            "  volatile real* const kept = tile;",
            *(self._place_packed() if self.packed else ()),
            *(
                f"  out{k} += (first + lane) * row_out{k};"
                for k in range(len(self.program.outputs))
                if k not in self.results and k not in self.packed
            ),
        ]

    def _place_packed(self) -> list[str]:
        """Generate code that places the buffer for long rows, and copies their column indices."""
        return [
            f"  real* const waiting = tile + {self.size} * LANES;",
            "  unsigned short* const columns = "
            f"(unsigned short*)(waiting + {len(self.places) * (WARP + 1)});",
            f"  for (int i = lane; i < {len(self.found)}; i += LANES) columns[i] = COLUMNS[i];",
        ]

    def _bring(self) -> list[str]:
        """Generate code that copies the inputs to the tile."""
        lines = []
        arrays = [(k, v.size, self.regions[k]) for k, v in enumerate(self.program.inputs)]
        if self.form == "columns":
            state = "lane" if self.leaves else "(lane < rows ? lane : rows - 1)"
            lines += ["  if (lane >= rows) return;"] if self.leaves else []
            lines.append(f"  const long long state = first + {state};")
            for k, size, region in arrays:
                source = f"&in{k}[state * row_in{k} + i * column_in{k}]"
                lines += [f"#pragma unroll{self.unrolled}", f"  for (int i = 0; i < {size}; i++)"]
                lines.append(f"    fetch(&tile[({region} + i) * LANES + lane], {source});")
            return [*lines, "  fetched();"]
        ask = ["  if (lane == 0) {", *self._ask(arrays), "  }"]
        return ["  open(arrived, lane);", *ask, *self._receive(arrays)]

    def _whole(self, array: int, rows: str = "rows") -> str:
        """Return an expression that is true if the copy engine moves the rows of an input."""
        size = self.program.inputs[array].size
        return f"row_in{array} == {size} && in_bulk(in{array}, {rows})"

    def _ask(
        self,
        arrays: Sequence[Region],
        first: str = "first",
        rows: str = "rows",
        arrived: str = "arrived",
    ) -> list[str]:
        """Generate CUDA statements that make one thread request the rows of the given inputs."""
        lines = []
        for k, size, _ in arrays:
            whole = self._whole(k, rows)
            lines.append(f"    const unsigned bytes{k} = {whole} ? {self._bytes(size)} : 0;")
        lines.append(f"    expect({arrived}, {' + '.join(f'bytes{k}' for k, _, _ in arrays)});")
        for k, size, region in arrays:
            ask = f"ask(tile + {region} * LANES, in{k} + ({first}) * {size}, bytes{k}, {arrived});"
            lines.append(f"    if (bytes{k}) {ask}")
        return lines

    def _receive(self, arrays: Sequence[Region], arrived: str = "arrived") -> list[str]:
        """Generate code that waits for requested rows and copies all other rows to the tile."""
        lines = []
        for k, size, region in arrays:
            lines += [f"  if (!({self._whole(k)}))", "#pragma unroll 1"]
            lines.append(f"    for (int i = lane; i < rows * {size}; i += LANES)")
            element = f"in{k}[(first + i / {size}) * row_in{k} + i % {size}]"
            lines.append(f"      fetch(&tile[{region} * LANES + i], &{element});")
        return [*lines, "  fetched();", f"  await({arrived});", "  __syncwarp();"]

    def _give(self) -> list[str]:
        """Generate code that copies rows of results from the tile to the outputs."""
        lines = self._send()
        return [*lines, "  if (lane == 0) given();"] if lines else []

    def _send(self) -> list[str]:
        """Generate code that begins to copy rows of results from the tile to the outputs."""
        if not self.results and not self.packed:
            return []
        lines = ["  before_bulk();", "  __syncwarp();"]
        start = 0
        for k in self.packed:
            size = self.program.outputs[k].size
            lines.append("  for (int state = 0; state < rows; state++) {")
            lines.append(f"    real* const row = out{k} + (first + state) * row_out{k};")
            lines.append("#pragma unroll 8")
            lines.append(f"    for (int i = lane; i < {size}; i += LANES)")
            lines.append(f"      row[i] = waiting[columns[{start} + i] + state];")
            lines.append("  }")
            start += size
        arrays = [(k, self.program.outputs[k].size, region) for k, region in self.results.items()]
        for k, size, region in arrays:
            whole = f"row_out{k} == {size} && in_bulk(out{k}, rows)"
            lines.append(f"  if ({whole}) {{")
            give = f"give(out{k} + first * {size}, tile + {region} * LANES, {self._bytes(size)});"
            lines.append(f"    if (lane == 0) {give}")
            lines += ["  } else {", "#pragma unroll 1"]
            lines.append(f"    for (int i = lane; i < rows * {size}; i += LANES)")
            element = f"out{k}[(first + i / {size}) * row_out{k} + i % {size}]"
            lines.append(f"      {element} = tile[{region} * LANES + i];")
            lines.append("  }")
        return [*lines, "  if (lane == 0) commit();"]

    def _bytes(self, size: int) -> int:
        return WARP * size * self.number.bytes
