"""Division of a program among a crew: warps that process the same 32 states together.

Each warp processes some of the robot's limbs. A warp keeps its values in its own registers; values
exchanged between warps are kept in shared memory. The program is divided among teams
(`cuda.division`). A team is one warp or, if limbs of the same structure share code (`cuda.twins`),
one warp for each of these limbs.
"""

import functools
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from chasles.backends.cuda.body import TOLD, Body, Plan
from chasles.backends.cuda.division import divided, exchanged, groups, limbs
from chasles.backends.cuda.forms import Form, Looped
from chasles.backends.cuda.parking import Slots, parked
from chasles.backends.cuda.tiles import Place, Tiled, column
from chasles.backends.cuda.twins import Twins, alone, twins
from chasles.expr import Program

ABREAST = 16
"""Total size (bytes) of the angles whose sines and cosines a thread computes together."""

QUARTERS = 4
"""Number of sub-partitions of a multiprocessor. Each sub-partition runs every fourth warp."""


class Size(NamedTuple):
    """Size of a crew (a group of warps that process the same states).

    - warps: number of warps.
    - registers: number of values that a thread may keep in registers.
    - shared: True if limbs of the same structure (twins) share code.
    - columns: number of columns in a tile. Values that do not fit are kept in local memory. If 0,
      the tile has as many columns as necessary.
    """

    warps: int
    registers: int
    shared: bool = False
    columns: int = 0


@functools.lru_cache(3)
def _plan(program: Program, _hints: object, teams: int) -> Plan:
    """Return the plan for a number of teams of warps, or a limb-by-limb plan if the number is 0.

    `_hints` is part of the cache key, because equal programs may differ in `Program.limbs`.
    """
    if not teams:
        return Plan(program, limbs(program), limbwise=True)
    return Plan(program, groups(program, teams))


def limbwise(program: Program) -> Plan:
    """Return the plan of a program in which one warp processes the limbs one after another."""
    return _plan(replace(program, alike=()), program.limbs, 0)


@dataclass
class _Body(Body):
    """Writer of the statements for one team of warps.

    `table` holds the constants that differ between twins (limbs with the same structure, such as a
    left and a right leg). Each row has one value per twin.
    """

    twins: Twins = field(kw_only=True)
    table: list[tuple[float, ...]] = field(kw_only=True)

    def use(self, k: int) -> str:
        values = self.twins.constants.get(k)
        if values is None:
            return super().use(k)
        if values not in self.table:
            self.table.append(values)
        return f"SIDES[side][{self.table.index(values)}]"

    def _compute(self, k: int) -> None:
        if self.plan.code[k].op != TOLD:
            super()._compute(k)

    def _deliver(self, k: int, output: int, index: int) -> None:
        """Emit the statement that stores a result.

        If twins (limbs with the same structure) share the result, only the statement for the first
        twin is written. The warp of each twin runs this statement with its own index.
        """
        first = self.twins.stored.keys() & self.plan.places[k]
        if not first or (output, index) in first:
            super()._deliver(k, output, index)


class Crew(Tiled):
    """Kernel whose warps share a tile of shared memory for values that do not fit in registers.

    In the form "loop", the states stay in columns of the tile for all steps. A step writes the new
    states to other columns.

    ahead: number of instructions between reading a value from memory and using it.
    """

    ahead = 0

    def __init__(self, program: Program, dtype: str, form: Form, crew: Size) -> None:
        found = twins(program) if crew.shared else alone(program)
        assert found is not None, "the program has no twins"
        self.crew, self.twins = crew, found
        self.teams = crew.warps // found.sides
        super().__init__(found.program, dtype, form, 0)
        if form == "loop":
            self.more, self.strides = Looped.more, Looped.strides

    @property
    def active(self) -> float:
        """Average number of warps that run at the same time.

        An instruction that several warps repeat with the same result counts only once.
        """
        loads = [self.division.order(self.plan, t) for t in range(self.teams)]
        work = sum(self._sides(k) for phases in loads for phase in phases for k in phase)
        phases = zip(*loads, strict=True)
        return work / max(sum(max(map(len, phase)) for phase in phases), 1)

    def _plan(self) -> Plan:
        plan = self._planned()
        self.differ = self.twins.differ(plan.code, plan.order)
        return plan

    def _planned(self) -> Plan:
        return _plan(self.program, self.program.limbs, self.teams)

    def _sides(self, k: int) -> int:
        """Return the number of twins if a value differs between twins, else 1.

        Twins are limbs with the same structure.
        """
        return self.twins.sides if k in self.differ else 1

    def _input(self, k: int, apart: int = 0) -> Place:
        return super()._input(k, apart or self.twins.steps.get(k, 0))

    def _new_column(self, value: int) -> Place:
        sides = self._sides(value)
        return column(self._reserve(sides), int(sides > 1))

    def _place_results(self) -> dict[int, int]:
        """Return the region of the tile (shared memory) in which each output is stored.

        The region is new, or it is the region of an input that is no longer needed.
        """
        found: dict[int, int] = {}
        for k, variable in enumerate(self.program.outputs if self.form != "columns" else ()):
            states = len(self.program.outputs) if self.form == "loop" else 0
            arrays = [a for a in range(states, len(self.regions)) if self._frees(a, k)]
            free = [self.regions[a] for a in arrays if self.regions[a] not in found.values()]
            found[k] = free[-1] if free else self._reserve(variable.size)
        return found

    def _frees(self, array: int, output: int) -> bool:
        """Return True if an output may overwrite an input in the tile.

        Each output entry must depend on all values that use the input entry with the same index, so
        that the output entry is computed last. The distance between the entries of successive twins
        (limbs with the same structure) must be the same in the input and in the output.
        """
        plan, results, pair = self.plan, self.program.results[output], (array, output)
        if self.program.inputs[array].size == len(results) and pair not in plan.found:
            numbers = {index: k for (a, index), k in self.inputs if a == array}
            angles = {a for angle in plan.angles for a in (angle, *plan.turning([angle]))}
            plan.found[pair] = all(
                k not in {*plan.places, *angles}
                and self.twins.steps.get(k) == self.twins.stored.get((output, index))
                and all(plan.code[u].op != TOLD for u in plan.users[k])
                and _needs(plan, results[index], plan.users[k])
                for index, k in numbers.items()
            )
        return plan.found.get(pair, False)

    def _hold(self, turns: dict[int, tuple[Place, Place]]) -> None:
        super()._hold(turns)
        plan, held = self.plan, self.body.held
        self.division = divided(plan, self.teams)
        sides = {k: self._sides(k) for k in self.division.team}
        read = self._told(turns)
        swap = exchanged(plan, self.division, {*held, *read}, sides)
        start = self._reserve(swap.places)
        places = {k: column(start + n, int(sides[k] > 1)) for k, n in swap.place.items()}
        for k in read:
            (value,) = plan.code[k].args
            place = read[k] or places[value]
            held[k] = str(place.on(plan.code[k].data))
        told = {k: str(place) for k, place in places.items()}
        kept = {*read, *(a for k in read for a in plan.code[k].args), *plan.places}
        results = set(self.results.values())
        until = self._until()
        last = {k for (array, _), k in self.inputs if self.regions[array] in results}
        kept |= {k for k in last if held[k] not in until}
        kept |= held.keys() - self.differ if self.twins.sides > 1 else set()
        self.bodies, self.numbers = list[_Body](), list[tuple[float, ...]]()
        for t in range(self.teams):
            own = {k for k, team in self.division.team.items() if team == t}
            needed = {a for k in self.division.team.keys() - own for a in plan.code[k].args}
            said = {k: place for k, place in told.items() if k in own}
            waiting = held | {k: place for k, place in told.items() if k not in own}
            order = [k for phase in self.division.order(plan, t) for k in phase if k not in read]
            most = max(self.crew.columns - self.size, 0) if self.crew.columns else sys.maxsize
            new = functools.partial(_spelled, self.size, most)
            known = self.twins.sides, self.differ, self.division.phase
            slots = Slots(new, *known, until, most)
            reusable = held.keys() - needed - kept
            given = waiting, reusable, slots, said, self.ahead
            parking = parked(plan.code, order, self.crew.registers, *given)
            self._reserve(min(slots.columns, most))
            self.spare = max(slots.columns - most, 0)
            where = self.number, self._deliver, waiting, parking, self.body.constants
            self.bodies.append(_Body(plan, *where, twins=self.twins, table=self.numbers))

    def _until(self) -> dict[str, int]:
        """Return the index of the instruction that overwrites each reusable input location.

        This instruction computes a result and stores it in the location. After the last use of the
        input and before this instruction, the location may store other values.
        """
        return {}

    def _told(self, turns: dict[int, tuple[Place, Place]]) -> dict[int, Place | None]:
        """Return the location in shared memory (in the tile) that each `TOLD` instruction reads.

        The location is None if the value is not an input, a sine or a cosine.
        """
        plan, found = self.plan, dict[int, Place | None]()
        for k in plan.order:
            if plan.code[k].op == TOLD:
                (value,) = plan.code[k].args
                op, args, _ = plan.code[value]
                if op == "input":
                    found[k] = self._input(value)
                else:
                    turned = op in ("sin", "cos") and args[0] in turns
                    found[k] = turns[args[0]][op == "cos"] if turned else None
        return found

    def _deliver(self, output: int, index: int, value: str, apart: int = 0) -> str:
        step = self.twins.stored.get((output, index), apart)
        return super()._deliver(output, index, value, step)

    mine, leaves = "memory + crew * {}", False

    @property
    def which(self) -> str:
        """C definitions of two indices: a thread's crew (group of warps), and its warp in the crew.

        If a crew has four warps, they are in different sub-partitions of the multiprocessor. The
        order of the warps rotates from block to block, so that the first warp, which has the most
        work, is not always in the same sub-partition.
        """
        warps = self.crew.warps
        turned = " + blockIdx.x" if warps == QUARTERS else ""
        crew = f"crew = threadIdx.x / (LANES * {warps})"
        return f"{crew}, warp = (threadIdx.x / LANES{turned}) % {warps}"

    @property
    def first(self) -> str:
        """C expression for the index of the first state of a crew (group of warps)."""
        crews = f"(long long)(blockDim.x / (LANES * {self.crew.warps}))"
        return f"(blockIdx.x * {crews} + crew) * LANES"

    def _bring(self) -> list[str]:
        if self.form == "loop":
            return self._begin_steps()
        return ["  if (warp == 0) {", *super()._bring(), "  }", "  together();"]

    def _give(self) -> list[str]:
        if self.form == "loop":
            return self._end_step()
        lines = super()._give()
        return ["  together();", "  if (warp == 0) {", *lines, "  }"] if lines else []

    def _turn(self, turns: dict[int, tuple[Place, Place]]) -> None:
        """Emit code for the sines and cosines of angles, in a loop divided among the warps.

        The first warp handles angles that are not the sum of an input and a small constant.
        """
        rows = []
        for angle in list(turns):
            if shifted := self.twins.shifted(self.plan.code, angle):
                k, offsets = shifted
                at = self._input(k), *turns.pop(angle)
                for side in range(self._sides(angle)):
                    rows.append((tuple(place.on(side) for place in at), offsets[side]))
        if rows:
            self._turn_rows(rows)
        if turns:
            self.body.say("if (warp == 0) {")
            super()._turn(turns)
            self.body.say("}")
        self.body.say("together();")

    def _turn_rows(self, rows: Sequence[tuple[tuple[Place, ...], float]]) -> None:
        """Emit a loop that computes sines and cosines of angles.

        rows: for each angle, the locations of the input, sine and cosine in the tile, and the
        offset that is added to the input. Each thread processes a group of angles at once to hide
        latency. The last row is repeated until the last group is full.
        """
        f, abreast = self.number.function, ABREAST // self.number.bytes
        count = len(rows)
        rows = [*rows, *[rows[-1]] * (-count % abreast)]
        self._list_turns(rows)
        each = ["#pragma unroll", f"    for (int k = 0; k < {abreast}; k++) {{"]
        at = "      const int* const at = TURNS[i + k];"
        self.body.lines += [
            "#pragma unroll 1",
            f"  for (int i = warp * {abreast}; i < {count}; i += {self.crew.warps * abreast}) {{",
            f"    real angle[{abreast}], s[{abreast}], c[{abreast}], largest = 0;",
            *[*each, at, "      angle[k] = tile[at[0] + at[1] * lane];"],
            *[f"      largest = fmax{f}(largest, fabs{f}(angle[k]));", "    }"],
            "    if (FAR(largest)) {",
            *[*each, "      if (FAR(angle[k])) angle[k] = brought_near(angle[k]);", "    }"],
            "    }",
            *[*each, "      turn(angle[k] + OFFSETS[i + k], s[k], c[k]);", "    }"],
            *[*each, at, "      tile[at[2] + at[3] * lane] = s[k];"],
            *["      tile[at[4] + at[5] * lane] = c[k];", "    }", "  }"],
        ]

    def _list_turns(self, rows: Sequence[tuple[tuple[Place, ...], float]]) -> None:
        """Define the tables of angle locations and offsets that a loop in the kernel reads."""
        spelled = (", ".join(f"{at.start}, {at.step}" for at in row) for row, _ in rows)
        table = ", ".join(f"{{{row}}}" for row in spelled)
        offsets = ", ".join(self.number.spelled(offset) for _, offset in rows)
        self.tables = [
            *self.tables,
            f"__constant__ int TURNS[][6] = {{{table}}};",
            f"__constant__ real OFFSETS[] = {{{offsets}}};",
        ]

    def run(self, *, cuts: bool) -> None:
        if self.spare:
            self.body.say(f"volatile real spare[{self.spare}];")
        for t, body in enumerate(self.bodies):
            self._begin_team(t)
            for n, phase in enumerate(self.division.order(self.plan, t)):
                if n:
                    body.say("together();")
                body.run(phase, cuts=cuts)
            self.body.lines += body.lines
            self.body.say("}")
        # store results that are constants or inputs
        for k in self.plan.places.keys() - self.division.team.keys():
            for output, index in self.plan.places[k]:
                stored = self._deliver(output, index, self.body.use(k))
                self.body.say(f"if (warp == 0) {{ {stored} }}")
        if self.numbers:
            rows = zip(*self.numbers, strict=True)
            spelled = (", ".join(map(self.number.spelled, row)) for row in rows)
            table = ", ".join(f"{{{row}}}" for row in spelled)
            size = f"[{self.twins.sides}][{len(self.numbers)}]"
            self.tables = [*self.tables, f"__constant__ real SIDES{size} = {{{table}}};"]

    def _begin_team(self, team: int) -> None:
        """Emit the condition under which a warp runs the statements of a team, and define `side`.

        `side` is the index of the twin that a warp processes. Twins are limbs with the same
        structure; `side` is defined only if twins share code.
        """
        sides = self.twins.sides
        if sides == 1:
            self.body.say(f"if (warp == {team}) {{")
        else:
            self.body.say(f"if (warp / {sides} == {team}) {{")
            self.body.say(f"const int side = __shfl_sync(0xffffffffu, warp % {sides}, 0);")

    def _copied(self, arrays: Sequence[int], regions: Sequence[int], text: str) -> list[str]:
        """Generate code that copies the entries of the given arrays; each warp copies a share."""
        lines = []
        for k, region in zip(arrays, regions, strict=True):
            variable = (*self.program.inputs, *self.program.outputs)[k]
            lines.append("#pragma unroll 4")
            lines.append(f"  for (int i = warp; i < {variable.size}; i += {self.crew.warps})")
            lines.append("    " + text.format(k=k, place=f"tile[({region} + i) * LANES + lane]"))
        return lines

    def _begin_steps(self) -> list[str]:
        """Generate code that loads the states once, and the controls before every step."""
        inputs, outputs = len(self.program.inputs), len(self.program.outputs)
        read = "{place} = in{k}[i * column_in{k}];"
        states, controls = range(outputs), range(outputs, inputs)
        return [
            "  const long long robot = first + (lane < rows ? lane : rows - 1);",
            *(f"  in{k} += robot * row_in{k};" for k in range(inputs)),
            *(f"  out{k} += robot * row_out{k};" for k in range(outputs)),
            *self._copied(states, self.regions[:outputs], read),
            "  long long left = every;",
            "  for (long long step = steps; step > 0; step--) {",
            *self._copied(controls, self.regions[outputs:], read),
            *(f"  in{k} += along_in{k};" for k in controls),
            "  together();",
        ]

    def _end_step(self) -> list[str]:
        """Generate code that updates the states, and writes them to memory every `every` steps."""
        outputs = range(len(self.program.outputs))
        due = "lane < rows && (left == 1 || step == 1)"
        lines = ["  together();", f"  const bool due = {due};"]
        for k in outputs:
            size, before, after = self.program.outputs[k].size, self.regions[k], self.results[k]
            lines += [
                "#pragma unroll 4",
                f"  for (int i = warp; i < {size}; i += {self.crew.warps}) {{",
                f"    const real next = tile[({after} + i) * LANES + lane];",
                f"    tile[({before} + i) * LANES + lane] = next;",
                f"    if (due) out{k}[i * column_out{k}] = next;",
                "  }",
            ]
        lines.append("  if (--left == 0) {")
        lines += [f"    out{k} += along_out{k};" for k in outputs]
        return [*lines, "    left = every;", "  }", "  together();", "  }"]


def _needs(plan: Plan, result: int, values: Collection[int]) -> bool:
    """Return True if a result depends on all given values."""
    code, found, stack = plan.code, {result}, [result]
    while stack:
        more = [a for a in code[stack.pop()].args if a not in found]
        found.update(more)
        stack.extend(more)
    return found.issuperset(values)


def _spelled(start: int, most: int, number: int, columns: int) -> str:
    """Return the C expression for the location `number` columns after column `start` of a tile.

    The location is in local memory if `number` >= `most`.

    columns: number of columns that the value occupies. If the value differs between twins (limbs
    with the same structure), it occupies one column per twin.
    """
    if number >= most:
        return f"spare[{number - most}]"
    return str(column(start + number, int(columns > 1)))
