"""The statements of a kernel in CUDA C, in an order that needs few registers.

Multiples of 2 pi may be subtracted from an input that is used only as an angle, or only in sums
that are angles. If one of these inputs is large, all of them are reduced modulo 2 pi at the
beginning. The computation of sines and cosines then needs no branch.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from chasles.backends.c import body as c_body
from chasles.backends.cuda.parking import Parking
from chasles.backends.lowering import (
    depth_first,
    few_alive,
    fused_apart,
    heights,
    most_alive,
    places,
    users,
)
from chasles.expr import Instruction, Program

NEAR = 8
"""Maximum number of terms in an angle that is a sum. Each term is kept below 1/8 of the largest
angle for which the computed sine is accurate."""

MANY, TURNS, LONG = 100, 8, 5000
"""Limits of the search for an instruction order with few live values.

- MANY: number of live values above which several orders of the results are tried.
- TURNS: number of these orders: the original order and its cyclic shifts.
- LONG: number of instructions at or above which only the original order is tried, to save time.
"""

SMALL = 7
"""Upper bound (rad) for a constant that is added to an angle within a sine or cosine."""

TOLD = "told"
"""Operation that reads a value stored in shared memory by another warp. The operation occurs only
if several warps run the same code for limbs with the same structure (`cuda.twins`)."""

WAITING = ("const", "input", "sin", "cos", TOLD)
"""Operations whose values do not occupy a register, because each use reads them from memory."""

_SUMS = ("add", "sub", "neg")


@dataclass(frozen=True)
class Plan:
    """A program with fused multiply-adds, and the order in which a thread runs the instructions.

    - groups: group of each instruction; multiply-adds are fused only within a group.
    - limbwise: True if the groups are limbs (-1 for the trunk), and limbs are processed one after
      another, so that fewer values are live at the same time.
    """

    program: Program
    groups: Mapping[int, int] = field(default_factory=dict)
    limbwise: bool = False

    @cached_property
    def _fused(self) -> tuple[list[Instruction], dict[int, int]]:
        return fused_apart(self.program, self.groups)

    @property
    def code(self) -> list[Instruction]:
        """Instructions of the program, with fused multiply-adds."""
        return self._fused[0]

    @property
    def group(self) -> dict[int, int]:
        """Group of each instruction; multiply-adds are fused only within a group."""
        return self._fused[1]

    @cached_property
    def order(self) -> list[int]:
        """Instructions that the results need, in an order that keeps few values live."""
        results = list(self.places)
        if self.limbwise:
            return self._limb_by_limb(results)
        order = self._from([results])
        if most_alive(self.code, order, WAITING) > MANY and len(order) < LONG:
            starts = [len(results) * k // TURNS for k in range(1, TURNS)]
            more = [results[start:] + results[:start] for start in starts]
            return few_alive(self.code, [order, self._from(more)], WAITING)
        return order

    def _limb_by_limb(self, results: list[int]) -> list[int]:
        """Return an order in which the values that the trunk needs are computed limb by limb.

        The smallest limb comes first. Orders with two neighboring limbs swapped are also tried.
        """
        order, used = self._from([results]), users(self.code, range(len(self.code)))
        needed, group = set(order), {k: self.group.get(k, -1) for k in order}
        ends: dict[int, list[int]] = {}
        for k in order:
            if group[k] >= 0 and any(u in needed and group[u] != group[k] for u in used[k]):
                ends.setdefault(group[k], []).append(k)
        sizes = Counter(group.values())
        limbs = sorted(ends, key=lambda limb: (sizes[limb], limb))
        swaps = (
            [*limbs[:n], limbs[n + 1], limbs[n], *limbs[n + 2 :]] for n in range(len(limbs) - 1)
        )
        height, tried = heights(self.code).__getitem__, []
        for chosen in (limbs, *swaps):
            roots = [k for limb in chosen for k in ends[limb]]
            tried.append(depth_first(self.code, [*roots, *results], height))
        return few_alive(self.code, tried, ("const",))

    def _from(self, orders: list[list[int]]) -> list[int]:
        """Find the instruction order with the fewest live values.

        Each given order of the results, and its reverse, yields one candidate instruction order.
        """
        both = [roots for order in orders for roots in (order, order[::-1])]
        height = heights(self.code).__getitem__
        tried = [depth_first(self.code, reversed(roots), height) for roots in both]
        return few_alive(self.code, tried, WAITING)

    @cached_property
    def found(self) -> dict[tuple[int, int], bool]:
        """Cache that maps (input, output) to True if the output may overwrite the input."""
        return {}

    @cached_property
    def alive(self) -> int:
        """Maximum number of live values, not counting results of the operations in `WAITING`."""
        return most_alive(self.code, self.order, WAITING)

    def words(self, itemsize: int) -> int:
        """Return the number of 4-byte registers for the largest set of live values and inputs."""
        return most_alive(self.code, self.order, ("const",)) * itemsize // 4

    @cached_property
    def places(self) -> dict[int, list[tuple[int, int]]]:
        """Output entries that store each result, as pairs (index of output, index of entry)."""
        return places(self.program)

    @cached_property
    def angles(self) -> list[int]:
        """Arguments of sines and cosines that do not themselves depend on a sine or cosine.

        The sines and cosines of these angles can be computed before the rest of the program.
        """
        depends = set()
        for k in self.order:
            if self.code[k].op in ("sin", "cos") or any(a in depends for a in self.code[k].args):
                depends.add(k)
        turned = [self.code[k].args[0] for k in self.order if self.code[k].op in ("sin", "cos")]
        return [a for a in dict.fromkeys(turned) if a not in depends]

    @cached_property
    def users(self) -> dict[int, list[int]]:
        """For each value, the instructions that use it."""
        return users(self.code, self.order)

    @cached_property
    def _turning(self) -> set[int]:
        """Values used only in angles; multiples of 2 pi may be subtracted from these values."""
        found: set[int] = set()
        for k in reversed(self.order):
            if k in self.places or self.code[k].op not in ("input", *_SUMS):
                continue
            if all(self.code[u].op in ("sin", "cos") or u in found for u in self.users[k]):
                found.add(k)
        return found

    @cached_property
    def _terms(self) -> dict[int, list[int]]:
        """Inputs of each angle that is a sum of a few inputs and small constants.

        An angle is excluded if one of its inputs also occurs in an expression that is not an angle.
        """
        found = {}
        for angle in self.angles:
            terms, stack = [], [angle]
            while stack:
                k = stack.pop()
                terms.append(k)
                if k in self._turning:
                    stack.extend(self.code[k].args)
            leaves = [k for k in terms if k not in self._turning or not self.code[k].args]
            fixed = [k for k in leaves if self.code[k].op == "const"]
            plain = all(k in fixed or k in self._turning for k in leaves)
            if plain and len(leaves) <= NEAR and all(abs(self.code[k].data) < SMALL for k in fixed):
                found[angle] = [k for k in leaves if k not in fixed]
        return found

    @cached_property
    def turning_inputs(self) -> list[int]:
        """Inputs used only as arguments of sines and cosines, or as terms of such arguments.

        If these inputs are large, they are first reduced by multiples of 2 pi.
        """
        return self.turning(self.angles)

    def turning(self, angles: Collection[int]) -> list[int]:
        """Return the inputs that are reduced modulo 2 pi before the given angles are computed."""
        return list(dict.fromkeys(k for a in angles for k in self._terms.get(a, ())))

    def is_near(self, angle: int) -> bool:
        """Return True if an angle is small once its inputs are reduced modulo 2 pi.

        Such an angle is a sum of a few inputs and small constants.
        """
        return angle in self._terms

    def only_turns(self, k: int) -> bool:
        """Return True if an input is used only as the argument of sines and cosines."""
        return (
            self.code[k].op == "input"
            and k not in self.places
            and all(self.code[u].op in ("sin", "cos") for u in self.users[k])
        )


def planned(program: Program) -> Plan:
    """Return the plan of a program for a single thread. Recent plans are cached."""
    return _planned(program, program.alike)


@lru_cache(2)
def _planned(program: Program, _alike: object) -> Plan:
    """Return the plan of a program.

    `_alike` is part of the cache key, because equal programs may differ in `Program.alike`.
    """
    return Plan(program)


WINDOW = 50
"""Number of instructions during which a value read from shared memory is kept in a register."""

STRETCH = 200
"""Number of instructions between cuts. A cut is a branch that is never taken. Cuts prevent the
compiler from moving instructions across them and keeping results in registers."""

SPELLING = c_body.SPELLING | {
    "fma": "fma{f}({0}, {1}, {2})",
    "fms": "fma{f}({0}, {1}, -{2})",
    "fnma": "fma{f}(-{0}, {1}, {2})",
}
"""CUDA expressions for the operations, as in C, but with explicit fused multiply-adds."""


def at(place: str) -> str:
    """Return the C expression for a location in the tile or in local memory."""
    return f"kept{place}" if place[0] == "[" else place


@dataclass
class Body:
    """Writer of a program's statements in CUDA C.

    - store: function of the output, index and value of a result; returns a statement that stores
      the result.
    - held: locations of values in shared memory.
    - parking: values that are kept in shared memory for a while, so that other values can use their
      registers.
    - window: number of instructions during which a value read from shared memory is used again
      without another read.
    """

    plan: Plan
    number: c_body.Number
    store: Callable[[int, int, str], str]
    held: dict[int, str] = field(default_factory=dict)
    parking: Parking = field(default_factory=Parking)
    constants: list[float] = field(default_factory=list)
    window: int = WINDOW
    lines: list[str] = field(default_factory=list)
    _named: dict[int, str] = field(default_factory=dict)
    _near: dict[int, str] = field(default_factory=dict)
    _read: dict[int, tuple[str, int]] = field(default_factory=dict)
    _time: int = 0

    def name(self, k: int, text: str, *, fixed: bool = True) -> None:
        """Declare a variable for a value."""
        self._named[k] = f"t{k}"
        self.say(f"{'const ' if fixed else ''}real t{k} = {text};")

    def say(self, line: str) -> None:
        self.lines.append("  " + line)

    def use(self, k: int) -> str:
        """Return the expression for a value: a variable, a constant, or a new read from memory."""
        instruction = self.plan.code[k]
        if instruction.op == "const":
            return self._constant(instruction.data)
        if k in self._named:
            return self._named[k]
        text, since = self._read.get(k, ("", -self.window - 1))
        if self._time - since > self.window:
            text = self._fetched(k)
            self._read[k] = text, self._time
        return text

    def seen(self, k: int) -> str:
        """Return the CUDA C expression for a value."""
        return self.use(k)

    def _fetched(self, k: int) -> str:
        """Emit code that reads a value from shared memory into a new variable; return its name."""
        text = f"m{len(self.lines)}"
        self.say(f"const real {text} = {at(self.held[k])};")
        return text

    def _deliver(self, k: int, output: int, index: int) -> None:
        """Emit the statement that stores a result in an output, if one is needed."""
        if stored := self.store(output, index, self.use(k)):
            self.say(stored)

    def _park(self, k: int, place: str) -> None:
        self.say(f"{at(place)} = {self._named[k]};")
        self.held[k] = place

    def bring_near(self, places: list[str]) -> None:
        """Emit code that reduces angle variables by multiples of 2 pi if any of them is large."""
        f = self.number.function
        largest = f"fabs{f}({places[0]})"
        for place in places[1:]:
            largest = f"fmax{f}({largest}, fabs{f}({place}))"
        self.say(f"if (FAR({largest})) {{")
        for place in places:
            self.say(f"  {place} = brought_near({place});")
        self.say("}")

    def turn_near(self) -> None:
        """Emit code that reduces large input angles by multiples of 2 pi, after a single check.

        Inputs that have other uses keep their values; a copy is reduced.
        """
        inputs = [a for a in self.plan.angles if self.plan.code[a].op == "input"]
        for angle in inputs:
            if not self.plan.is_near(angle):
                self._near[angle] = f"near{angle}"
                self.say(f"real near{angle} = {self.seen(angle)};")
        places = [f"t{k}" for k in self.plan.turning_inputs] + list(self._near.values())
        if places:
            self.bring_near(places)

    def forget(self) -> None:
        """Forget which values have been read from memory, so that they are read again."""
        self._read.clear()

    def prepare(self, k: int) -> None:
        """Emit the statements that compute value k and all values on which it depends."""
        needed = {k}
        for a in reversed(self.plan.order):
            if a in needed:
                needed.update(self.plan.code[a].args)
        for a in self.plan.order:
            if a in needed:
                self._compute(a)

    def _compute(self, k: int) -> None:
        """Emit the statement for an instruction, if one is needed."""
        op, args, _ = self.plan.code[k]
        if k in self._named or op in ("const", "input"):
            return
        if op not in ("sin", "cos"):
            self._operate(k, [self.use(a) for a in args])
        elif k not in self.held:
            (angle,) = args
            self.turn(angle, f"s{angle}", f"c{angle}")
            for user in self.plan.users[angle]:
                turned = self.plan.code[user].op
                if turned in ("sin", "cos"):
                    self._named[user] = f"{turned[0]}{angle}"

    def spelled(self, k: int, operands: Sequence[str]) -> str:
        """Return the CUDA C expression for an instruction, given its operands."""
        op, args, _ = self.plan.code[k]
        inverse = op == "div" and self.plan.code[args[0]].data == 1.0
        spelling = "inverse({1})" if inverse else SPELLING[op]
        return spelling.format(*operands, **self.number.words)

    def _operate(self, k: int, operands: Sequence[str]) -> None:
        """Emit the statement for an arithmetic instruction."""
        self.name(k, self.spelled(k, operands))

    def turn(self, angle: int, sine: str, cosine: str) -> None:
        """Emit statements that define two variables, the sine and the cosine of an angle.

        A large angle is first reduced by multiples of 2 pi, unless this was already done.
        """
        text = self._near.get(angle) or self.seen(angle)
        if angle not in self._near and not self.plan.is_near(angle):
            self.say(f"const real a{angle} = FAR({text}) ? brought_near({text}) : {text};")
            text = f"a{angle}"
        self.say(f"real {sine}, {cosine};")
        self.say(f"turn({text}, {sine}, {cosine});")

    def run(self, order: Sequence[int], *, cuts: bool = False) -> None:
        """Emit the plan's instructions in a given order.

        cuts: True to write a cut (a branch that is never taken) after every `STRETCH` instructions.
        """
        done = 0
        for k in order:
            self._time += 1
            for a in self.parking.reads.get(k, ()):
                self._named[a] = self._fetched(a)
            self._compute(k)
            for output, index in self.plan.places.get(k, ()):
                self._deliver(k, output, index)
            for a, place in self.parking.parks.get(k, ()):
                self._park(a, place)
            done += self.plan.code[k].op not in WAITING
            if cuts and done >= STRETCH:
                self.say(f"if (never == {len(self.lines)}) return;")
                done = 0

    def _constant(self, value: float) -> str:
        """Return the expression for a constant; most 64-bit constants are read from a table."""
        if self.number.bytes == 4 or value in (0.0, 1.0, -1.0, 2.0, 0.5):
            return self.number.spelled(value)
        if -value in self.constants:
            return f"(-C[{self.constants.index(-value)}])"
        if value not in self.constants:
            self.constants.append(value)
        return f"C[{self.constants.index(value)}]"
