"""Programs divided among a crew, a group of warps in which each warp computes some of the limbs.

The limbs of a robot exchange little data: velocities propagate from the trunk outward, inertias and
forces inward. The warps of a crew compute the same 32 states. Each warp computes some of the limbs
and keeps its values in its own registers. The first warp also computes the trunk. Values exchanged
between warps are kept in shared memory. The program is divided into phases. A warp uses values from
other warps only if they were computed in earlier phases, so the warps synchronize only between
phases.
"""

import functools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from chasles.backends.cuda.body import SMALL, Body, Plan
from chasles.backends.cuda.forms import Form, Looped
from chasles.backends.cuda.parking import parked
from chasles.backends.cuda.tiles import Place, Tiled, column
from chasles.backends.lowering import places
from chasles.expr import Instruction, Program

ABREAST = 16
"""Total size (bytes) of the angles whose sines and cosines a thread computes together."""

QUARTERS = 4
"""Number of partitions (quarters) of a multiprocessor. Each quarter runs every fourth warp."""


class Division(NamedTuple):
    """Assignment of each instruction to a warp and a phase. Constants and inputs have neither."""

    warp: dict[int, int]
    phase: dict[int, int]
    phases: int

    def order(self, plan: Plan, warp: int) -> list[list[int]]:
        """Return the instructions of a warp by phase, in the order of the plan."""
        found: list[list[int]] = [[] for _ in range(self.phases)]
        for k in plan.order:
            if self.warp.get(k) == warp:
                found[self.phase[k]].append(k)
        return found


def groups(program: Program, warps: int) -> dict[int, int]:
    """Return the warp that runs each instruction."""
    limb = _limbs(program)
    sizes = Counter(limb.values())
    del sizes[-1]
    load, warp = [0] * warps, {-1: 0}
    for name, size in sizes.most_common():
        warp[name] = load.index(min(load))
        load[warp[name]] += size
    return {k: warp[name] for k, name in limb.items()}


@functools.lru_cache(3)
def _plan(program: Program, _hints: object, warps: int) -> Plan:
    """Return the plan for a number of warps.

    `_hints` distinguishes equal programs whose limbs differ.
    """
    return Plan(program, groups(program, warps))


def _limbs(program: Program) -> dict[int, int]:
    """Return the limb of each instruction, -1 for the trunk.

    An instruction belongs to a limb if it depends only on inputs of that limb, or if all results
    that depend on it belong to that limb.
    """
    code, none = program.code, frozenset[int]()
    from_limbs: list[frozenset[int]] = []
    for op, args, data in code:
        limb = program.limb(*data) if op == "input" else -1
        from_limbs.append(none.union(*(from_limbs[a] for a in args), [limb] if limb >= 0 else ()))
    to_limbs = [none] * len(code)
    for k, results in places(program).items():
        to_limbs[k] = frozenset(program.limb(len(program.inputs) + n, i) for n, i in results)
    for k in range(len(code) - 1, -1, -1):
        for a in code[k].args:
            to_limbs[a] |= to_limbs[k]
    found = {}
    for k, instruction in enumerate(code):
        if to_limbs[k] and instruction.op not in ("const", "input"):
            certain = (s for s in (from_limbs[k], to_limbs[k]) if len(s) == 1)
            (found[k],) = next(certain, (-1,))
    return found


def divided(plan: Plan, warps: int) -> Division:
    """Divide a program into phases. Its plan already groups the instructions by warp."""
    warp = {k: plan.group[k] for k in plan.order if k in plan.group}
    phase = _phases(plan, warp, warps)
    return Division(warp, phase, max(phase.values(), default=0) + 1)


def _phases(plan: Plan, warp: Mapping[int, int], warps: int) -> dict[int, int]:
    """Return the phase of each instruction. Instructions that can wait fill idle phases.

    All instructions are first placed as late as possible. Then, for one warp after another, they
    are moved as early as the other warps allow.
    """
    order = [k for k in plan.order if k in warp]
    made = {k: [(a, warp[a] != warp[k]) for a in plan.code[k].args if a in warp] for k in order}
    needed = {k: [(u, warp[u] != warp[k]) for u in plan.users[k]] for k in order}
    early: dict[int, int] = {}
    for k in order:
        early[k] = max((early[a] + apart for a, apart in made[k]), default=0)
    last = max(early.values(), default=0)
    phase: dict[int, int] = {}
    for w in range(warps):
        late: dict[int, int] = {}
        for k in reversed(order):
            latest = min((late[u] - apart for u, apart in needed[k]), default=last)
            late[k] = phase.get(k, latest)
        load = [Counter(late[k] for k in order if warp[k] == v) for v in range(warps)]
        others = [load[v] for v in range(warps) if v != w]
        busy = [max((other[p] for other in others), default=0) for p in range(last + 1)]
        mine: Counter[int] = Counter()
        for k in order:
            if warp[k] == w:
                ready = ((late[a] + 1) if apart else phase[a] for a, apart in made[k])
                phase[k] = max(ready, default=0)
                while phase[k] < late[k] and mine[phase[k]] >= busy[phase[k]]:
                    phase[k] += 1
                mine[phase[k]] += 1
    return phase


class Exchange(NamedTuple):
    """Memory slot of each value that one warp computes and others use, and the number of slots."""

    place: dict[int, int]
    places: int


def exchanged(plan: Plan, division: Division, held: Collection[int]) -> Exchange:
    """Assign slots in shared memory to values exchanged between warps, except values in `held`.

    A slot is reused after the last phase in which its value is needed. The warp that computed the
    value may also read it from the slot.
    """
    warp, phase = division.warp, division.phase
    until = {
        k: max(phase[u] for u in plan.users[k])
        for k in warp
        if k not in held and any(warp[u] != warp[k] for u in plan.users[k])
    }
    place: dict[int, int] = {}
    taken: list[int] = []
    for k in sorted(until, key=lambda k: phase[k]):
        place[k] = next((n for n, last in enumerate(taken) if last < phase[k]), len(taken))
        taken[place[k] : place[k] + 1] = [until[k]]
    return Exchange(place, len(taken))


# Kernel -------------------------------------------------------------------------------------------


class Size(NamedTuple):
    """Number of warps in a crew, and number of values that a thread may keep in registers."""

    warps: int
    registers: int


class Crew(Tiled):
    """Kernel whose warps share one tile, which holds values that do not fit in registers.

    In the form "loop", the states stay in columns of the tile for all steps. A step writes the new
    states to other columns.
    """

    def __init__(self, program: Program, dtype: str, form: Form, crew: Size) -> None:
        self.crew = crew
        super().__init__(program, dtype, form, 0)
        if form == "loop":
            self.more, self.strides = Looped.more, Looped.strides

    @property
    def active(self) -> float:
        """Average number of warps in the crew that are active at the same time."""
        loads = [self.division.order(self.plan, w) for w in range(self.crew.warps)]
        phases = list(zip(*([len(phase) for phase in phases] for phases in loads), strict=True))
        return sum(map(sum, phases)) / max(sum(map(max, phases)), 1)

    def _plan(self) -> Plan:
        return _plan(self.program, self.program.limbs, self.crew.warps)

    def _place_results(self) -> dict[int, int]:
        """Return the tile region for each output: a new one, or that of an obsolete input."""
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
        that it is computed last.
        """
        plan, results, pair = self.plan, self.program.results[output], (array, output)
        if self.program.inputs[array].size == len(results) and pair not in plan.found:
            numbers = {index: k for (a, index), k in self.inputs if a == array}
            angles = {a for angle in plan.angles for a in (angle, *plan.turning([angle]))}
            plan.found[pair] = all(
                k not in {*plan.places, *angles} and _needs(plan, results[index], plan.users[k])
                for index, k in numbers.items()
            )
        return plan.found.get(pair, False)

    def _hold(self, turns: dict[int, tuple[Place, Place]]) -> None:
        super()._hold(turns)
        plan, held = self.plan, self.body.held
        self.division = divided(plan, self.crew.warps)
        swap = exchanged(plan, self.division, held)
        start = self._reserve(swap.places)
        told = {k: str(column(start + n)) for k, n in swap.place.items()}
        results = set(self.results.values())
        taken = {k for (array, _), k in self.inputs if self.regions[array] in results}
        self.bodies = []
        for w in range(self.crew.warps):
            own = {k for k, warp in self.division.warp.items() if warp == w}
            needed = {a for k in self.division.warp.keys() - own for a in plan.code[k].args}
            said = {k: place for k, place in told.items() if k in own}
            waiting = held | {k: place for k, place in told.items() if k not in own}
            order = [k for phase in self.division.order(plan, w) for k in phase]
            new = functools.partial(_spelled, self.size)
            reusable = held.keys() - needed - plan.places.keys() - taken
            parking = parked(plan.code, order, self.crew.registers, waiting, reusable, new, said)
            self._reserve(parking.places)
            where = self.number, self._deliver, waiting, parking, self.body.constants
            self.bodies.append(Body(plan, *where))

    mine, leaves = "memory + crew * {}", False

    @property
    def which(self) -> str:
        """C definitions of two indices: a thread's crew in the block, and its warp in the crew.

        If a crew has four warps, they are in different quarters of the multiprocessor. Their order
        rotates from block to block, so that the first warp, which has the most work, is not always
        in the same quarter.
        """
        warps = self.crew.warps
        turned = " + blockIdx.x" if warps == QUARTERS else ""
        crew = f"crew = threadIdx.x / (LANES * {warps})"
        return f"{crew}, warp = (threadIdx.x / LANES{turned}) % {warps}"

    @property
    def first(self) -> str:
        """C expression for the index of a crew's first state."""
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
        """Write code for the sines and cosines of angles, in a loop divided among the warps.

        The first warp handles angles that are not the sum of an input and a small constant.
        """
        rows = []
        for angle in list(turns):
            if shifted := _shifted(self.plan.code, angle):
                k, offset = shifted
                rows.append(((self._input(k), *turns.pop(angle)), offset))
        if rows:
            self._turn_rows(rows)
        if turns:
            self.body.say("if (warp == 0) {")
            super()._turn(turns)
            self.body.say("}")
        self.body.say("together();")

    def _turn_rows(self, rows: Sequence[tuple[tuple[Place, ...], float]]) -> None:
        """Write a loop that computes sines and cosines of angles.

        rows: for each angle, the locations of the input, sine and cosine in the tile, and the
        offset that is added to the input. Each thread processes several angles at once to hide
        latency. The last row is repeated to complete its group.
        """
        f, abreast = self.number.function, ABREAST // self.number.bytes
        count = len(rows)
        rows = [*rows, *[rows[-1]] * (-count % abreast)]
        spelled = (", ".join(f"{at.start}, {at.step}" for at in row) for row, _ in rows)
        table = ", ".join(f"{{{row}}}" for row in spelled)
        offsets = ", ".join(self.number.spelled(offset) for _, offset in rows)
        self.tables = [
            *self.tables,
            f"__constant__ int TURNS[][6] = {{{table}}};",
            f"__constant__ real OFFSETS[] = {{{offsets}}};",
        ]
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

    def run(self, *, cuts: bool) -> None:
        for w, body in enumerate(self.bodies):
            self.body.say(f"if (warp == {w}) {{")
            for n, phase in enumerate(self.division.order(self.plan, w)):
                if n:
                    body.say("together();")
                body.run(phase, cuts=cuts)
            self.body.lines += body.lines
            self.body.say("}")
        for k in self.plan.places.keys() - self.division.warp.keys():  # constants, inputs
            for output, index in self.plan.places[k]:
                stored = self._deliver(output, index, self.body.use(k))
                self.body.say(f"if (warp == 0) {{ {stored} }}")

    def _copied(self, arrays: Sequence[int], regions: Sequence[int], text: str) -> list[str]:
        """Return loops that copy the entries of some arrays, divided among the warps."""
        lines = []
        for k, region in zip(arrays, regions, strict=True):
            variable = (*self.program.inputs, *self.program.outputs)[k]
            lines.append("#pragma unroll 4")
            lines.append(f"  for (int i = warp; i < {variable.size}; i += {self.crew.warps})")
            lines.append("    " + text.format(k=k, place=f"tile[({region} + i) * LANES + lane]"))
        return lines

    def _begin_steps(self) -> list[str]:
        """Return code that copies states to the tile once and controls in every step."""
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
        """Return code that stores the next states, and writes records when due."""
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
    found, stack = {result}, [result]
    while stack:
        more = [a for a in plan.code[stack.pop()].args if a not in found]
        found.update(more)
        stack.extend(more)
    return found.issuperset(values)


def _shifted(code: Sequence[Instruction], angle: int) -> tuple[int, float] | None:
    """Return the input and the small constant whose sum is an angle, or None."""
    op, args, _ = code[angle]
    if op == "input":
        return angle, 0.0
    ops = tuple(code[a].op for a in args)
    if op not in ("add", "sub") or ops not in {("input", "const"), ("const", "input")}:
        return None
    k, constant = args if ops[0] == "input" else args[::-1]
    offset = code[constant].data * (1 if op == "add" else -1)
    return (k, offset) if abs(offset) < SMALL and (op, k) != ("sub", args[1]) else None


def _spelled(start: int, number: int) -> str:
    """Return the expression for the column with a given number, counted from column `start`."""
    return str(column(start + number))
