"""Programs in which one limb's instructions also serve its twins, limbs of the same structure.

A robot's left and right leg run the same instructions (`Program.alike`) on different inputs and
constants. Here, the instructions of the first twin are used for all twins. Twins are numbered from
0; this number is the variable `side` of the generated code. The warp of each twin runs the
instructions with that twin's inputs, constants and results. Sharing makes the code short enough for
the instruction cache of a multiprocessor.

Instructions that do not belong to a twin are run for every twin and give the same value each time.
If they use a value of one twin, they read it from shared memory, where that twin's warp has stored
it. A separate instruction, `TOLD`, performs this read.
"""

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from typing import Any

from chasles.backends.cuda.body import SMALL, TOLD
from chasles.backends.lowering import places
from chasles.expr import Instruction, Program

FOLDED: dict[str, Callable[..., float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
}
"""Operations that are evaluated at compile time if all operands are constants."""

_Key = int | tuple[int, int]
"""Key of a result: the index of its instruction. For the result of one of several limbs with the
same structure (twins), the key is (index, side), where side is the number of the twin."""


@dataclass(frozen=True)
class Twins:
    """A program in which limbs of the same structure (twins) share instructions.

    - sides: number of twins, each computed by its own warp.
    - constants: for each instruction that is a constant and differs between twins, the values of
      all twins. The program itself contains NaN in place of such a constant.
    - steps: for each instruction that reads an input of the first twin, the index offset to the
      corresponding input of the next twin.
    - stored: for each result (output, index) of the first twin, the index offset to the
      corresponding result of the next twin.
    """

    program: Program
    sides: int = 1
    constants: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    steps: Mapping[int, int] = field(default_factory=dict)
    stored: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def differ(self, code: Sequence[Instruction], order: Sequence[int]) -> set[int]:
        """Return the instructions whose values differ between twins (limbs that share code)."""
        found = {*self.constants, *self.steps}
        for k in order:
            if code[k].op != TOLD and not found.isdisjoint(code[k].args):
                found.add(k)
        return found

    def shifted(
        self, code: Sequence[Instruction], angle: int
    ) -> tuple[int, tuple[float, ...]] | None:
        """Return the input k and the constants c if an angle is k + c, else None.

        There is one constant for each twin (limb with the same structure). The result is also None
        if a constant is large.
        """
        op, args, _ = code[angle]
        if op == "input":
            return angle, (0.0,) * self.sides
        ops = tuple(code[a].op for a in args)
        if op not in ("add", "sub") or ops not in {("input", "const"), ("const", "input")}:
            return None
        k, constant = args if ops[0] == "input" else args[::-1]
        sign = 1.0 if op == "add" else -1.0
        values = self.constants.get(constant, (code[constant].data,) * self.sides)
        if any(abs(value) >= SMALL for value in values) or (op, k) == ("sub", args[1]):
            return None
        return k, tuple(sign * value for value in values)


def alone(program: Program) -> Twins:
    """Return the program without shared instructions: each limb keeps its own."""
    return Twins(replace(program, alike=()))


def twins(program: Program) -> Twins | None:
    """Return a program in which limbs of the same structure (twins) share instructions.

    Return None if the limbs cannot share instructions.
    """
    return _twins(program, program.alike, program.limbs)


@functools.lru_cache(2)
def _twins(program: Program, packs: tuple[tuple[int, ...], ...], _limbs: object) -> Twins | None:
    if len({len(pack) for pack in packs}) != 1:
        return None
    code = _folded(program.code)
    side = {k: (pack[0], s) for pack in packs for s, k in enumerate(pack)}
    writer = _Writer(program, code, side)
    steps = {pack[0]: _step([code[k].data for k in pack]) for pack in packs if _reads(code, pack)}
    stored = _stored(program, packs)
    if None in steps.values() or stored is None:
        return None
    constants = {p[0]: tuple(code[k].data for k in p) for p in packs if code[p[0]].op == "const"}
    written, number = writer.written(constants)
    limb = _renamed(program, [pack for pack in packs if _reads(code, pack)])
    found = Twins(
        replace(written, limbs=limb),
        len(packs[0]),
        {number[k]: values for k, values in constants.items() if k in number},
        {number[k]: step for k, step in steps.items() if k in number and step is not None},
        stored,
    )
    return found if found.steps and _turns(found) else None


def _folded(code: Sequence[Instruction]) -> list[Instruction]:
    """Return the instructions with each operation on constants replaced by its value."""
    found: list[Instruction] = []
    for instruction in code:
        op, args, _ = instruction
        if op in FOLDED and all(found[a].op == "const" for a in args):
            value = FOLDED[op](*(found[a].data for a in args))
            instruction = Instruction("const", (), value)
        found.append(instruction)
    return found


def _reads(code: Sequence[Instruction], pack: Sequence[int]) -> bool:
    return code[pack[0]].op == "input"


def _step(entries: Sequence[tuple[int, int]]) -> int | None:
    """Return the index offset between successive entries (array, index).

    Return None if the offset varies or the entries belong to different arrays.
    """
    (array, first), (_, second) = entries[:2]
    step = second - first
    even = all(entry == (array, first + s * step) for s, entry in enumerate(entries))
    return step if even else None


def _stored(
    program: Program, packs: Sequence[tuple[int, ...]]
) -> dict[tuple[int, int], int] | None:
    """Return `Twins.stored`, or None if an output stores the twins' results at uneven spacing."""
    found, where = dict[tuple[int, int], int](), places(program)
    for pack in packs:
        entries = [where.get(k, []) for k in pack]
        if not any(entries):
            continue
        steps = [_step(row) for row in zip(*entries, strict=False)]
        even = len({len(each) for each in entries}) == 1 and None not in steps
        if not even or program.code[pack[0]].op in ("const", "input"):
            return None
        found |= {at: step for at, step in zip(entries[0], steps, strict=True) if step is not None}
    return found


def _renamed(program: Program, inputs: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Return `Program.limbs`, with the index of each twin replaced by that of the first twin.

    Twins are limbs with the same structure.
    """
    first = {
        program.limb(*program.code[k].data): program.limb(*program.code[pack[0]].data)
        for pack in inputs
        for k in pack
    }
    return tuple(tuple(first.get(limb, limb) for limb in entries) for entries in program.limbs)


def _turns(found: Twins) -> bool:
    """Return True if each angle that differs between twins is an input or an input plus a constant.

    Twins are limbs with the same structure.
    """
    code = found.program.code
    differ = found.differ(code, range(len(code)))
    angles = {code[k].args[0] for k in differ if code[k].op in ("sin", "cos")}
    return all(found.shifted(code, angle) for angle in angles)


@dataclass
class _Writer:
    """Writer of a program in which limbs of the same structure (twins) share instructions.

    side: for each instruction of a twin, the corresponding instruction of the first twin, and the
    number of the twin (from 0).
    """

    program: Program
    code: Sequence[Instruction]
    side: Mapping[int, tuple[int, int]]

    def __post_init__(self) -> None:
        self.twin = {where: k for k, where in self.side.items()}

    def written(self, constants: Mapping[int, Any]) -> tuple[Program, dict[_Key, int]]:
        """Return the rewritten program, and the index of the instruction for each key (`_Key`)."""
        results = [[self._result(r) for r in refs] for refs in self.program.results]
        needed: dict[_Key, list[_Key]] = {}
        stack = [key for refs in results for key in refs]
        while stack:
            key = stack.pop()
            if key not in needed:
                needed[key] = self._arguments(key)
                stack += needed[key]
        number: dict[_Key, int] = {}
        code: list[Instruction] = []
        for key in TopologicalSorter(needed).static_order():
            number[key] = len(code)
            args = tuple(number[a] for a in needed[key])
            code.append(self._instruction(key, args, differs=key in constants))
        refs = tuple(tuple(number[key] for key in keys) for keys in results)
        return replace(self.program, results=refs, code=tuple(code), alike=()), number

    def _result(self, k: int) -> _Key:
        """Return the key (`_Key`) of an output entry that is the result of instruction k.

        An output that does not belong to a twin (one of several limbs with the same structure) is
        computed by the warps of all twins. It is stored only after all these warps have computed
        it, because it may overwrite an input that they need.
        """
        if k in self.side:
            return self.side[k][0]
        return k if self.code[k].op in ("const", "input") else (k, 0)

    def _arguments(self, key: _Key) -> list[_Key]:
        if isinstance(key, tuple):
            k, _ = key
            return [] if self.code[k].op == "const" else [k]
        if key in self.side:
            return [self.side[a][0] if a in self.side else a for a in self.code[key].args]
        return [self.side.get(a, a) for a in self.code[key].args]

    def _instruction(self, key: _Key, args: tuple[int, ...], *, differs: bool) -> Instruction:
        if isinstance(key, tuple):
            k, side = key
            if self.code[k].op == "const":
                return self.code[self.twin[key]]
            return Instruction(TOLD, args, side)
        op, _, data = self.code[key]
        return Instruction(op, args, math.nan if differs else data)
