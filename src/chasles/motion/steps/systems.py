"""Linear systems of Newton steps, and programs that leave their solution to another program.

The beginning of a step and all its iterations solve a system of the same form. For robots with many
contacts, the solution is most of their code. Therefore it becomes one program that all of them
share: a program is cut into one that ends with the numbers of a system (`request`), and one that
begins with its solution (`answer`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from chasles.expr import Instruction, Number, Program, Scalar, Variable
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.steps.algebra import absent
from chasles.motion.steps.touching import Near, Rub, Touch

REQUEST, ANSWER, KEPT = "request", "answer", "kept"
"""Names of arrays: a system, its solution, and other values that the second program uses."""

BETWEEN = frozenset((REQUEST, ANSWER, KEPT))

TERMS = 4
"""Operations per slot and entry of the matrix: two terms on one side of the diagonal, one on both.
"""

FREE = ("const", "input")
"""Operations that every program can repeat."""


class System(NamedTuple):
    """System of a Newton step: linearized slots, slopes of stops and dry friction, right side."""

    slots: Sequence[Near]
    stopping: Sequence[Number]
    rubbing: Sequence[Number]
    g: np.ndarray

    @property
    def entries(self) -> list[Number]:
        """All numbers of the system."""
        found: list[Number] = []
        for near in self.slots:
            found.append(near.slope)
            for rub in near.rubs:
                found += [rub.stiffness, *rub.direction, rub.along, rub.growth]
        return [*found, *self.stopping, *self.rubbing, *self.g]


def system_size(touches: Sequence[Touch], others: int) -> int:
    """Return the number of entries of a system. others: stops, dry friction and velocities."""
    still = np.zeros(3)
    rubs = [rub for touch in touches for rub in touch.frictions(0.0, still, still)]
    return len(touches) + sum(3 + len(rub.velocity) for rub in rubs) + others


def work(
    H: np.ndarray, carriers: Sequence[np.ndarray], touches: Sequence[Touch], order: Sequence[int]
) -> int:
    """Return the approximate number of operations that assemble and solve a system."""
    there = np.vectorize(lambda x: not absent(x), otypes=[bool])
    full, count = there(H), 0
    for touch in touches:
        moved = there(carriers[touch.carrier]).any(0)
        full |= np.outer(moved, moved)
        count += TERMS * int(moved.sum()) ** 2
    full = full[np.ix_(order, order)]
    for k in range(len(full) - 1, 0, -1):
        row = full[k, :k]
        count += 2 * int(row.sum()) ** 2
        full[:k, :k] |= np.outer(row, row)
    return count


def system_of(entries: Sequence[Number], touches: Sequence[Touch], stops: int, dry: int) -> System:
    """Return the system with the given entries. Impulses, which it does not need, are zero."""
    left = iter(entries)
    slots = []
    for touch in touches:
        slope, rubs = next(left), []
        for of in touch.frictions(0.0, np.zeros(3), np.zeros(3)):
            zero = np.zeros(len(of.velocity))
            stiffness, direction = next(left), np.array([next(left) for _ in zero], dtype=object)
            rubs.append(Rub(of, zero, stiffness, direction, next(left), next(left)))
        slots.append(Near(0.0, slope, rubs))
    stopping, rubbing = ([next(left) for _ in range(n)] for n in (stops, dry))
    return System(slots, stopping, rubbing, np.array(list(left), dtype=object))


class Apart:
    """Solver that leaves a system to another program. It is called once."""

    def __init__(self) -> None:
        self.request: list[Number] = []
        self.size = 0

    def __call__(self, system: System) -> np.ndarray:
        assert not self.request, "one system"
        self.request, self.size = system.entries, len(system.g)
        arena = next(x.arena for x in self.request if isinstance(x, Scalar))
        return symbols(arena, ANSWER, (self.size,))

    @property
    def asked(self) -> tuple[Variable, list[Number]]:
        """The system as an output."""
        return Variable(REQUEST, (len(self.request),)), self.request

    @property
    def answered(self) -> Variable:
        """The solution as an input."""
        return Variable(ANSWER, (self.size,))


def halves(program: Program) -> tuple[Program, Program]:
    """Return the programs before and after the solution of a system.

    program: program whose last input is the answer. Its outputs that do not depend on the answer,
    among them the request, are computed before. Values that both programs need are passed on.
    """
    code, answer = program.code, len(program.inputs) - 1
    later = bytearray(len(code))
    for k, (op, args, data) in enumerate(code):
        later[k] = (op == "input" and data[0] == answer) or any([later[a] for a in args])
    outputs = list(zip(program.outputs, program.results, strict=True))
    early = [(v, refs) for v, refs in outputs if not any([later[r] for r in refs])]
    late = [(v, refs) for v, refs in outputs if any([later[r] for r in refs])]
    before = _needed(code, early, {})
    told = {r: (answer + 1 + n, k) for n, (_, refs) in enumerate(early) for k, r in enumerate(refs)}
    shared = [k for k in _needed(code, late, before) if k in before and code[k].op not in FREE]
    kept = [k for k in shared if k not in told]
    told |= {r: (answer + 1 + len(early), k) for k, r in enumerate(kept)}
    between = [(Variable(KEPT, (len(kept),)), tuple(kept))] if kept else []
    known = {k: Instruction("input", (), told[k]) for k in shared}
    taken = [*program.inputs, *(v for v, _ in (*early, *between))]
    return (
        _part(program, "before", program.inputs[:-1], [*early, *between], before, {}),
        _part(program, "after", taken, late, _needed(code, late, before), known),
    )


Results = Sequence[tuple[Variable, tuple[int, ...]]]


def _needed(
    code: Sequence[Instruction], outputs: Results, known: Mapping[int, None]
) -> dict[int, None]:
    """Return the instructions that outputs need, in order, up to values that are known."""
    found, stack = set[int](), [r for _, refs in outputs for r in refs]
    while stack:
        k = stack.pop()
        if k not in found:
            found.add(k)
            stack += () if k in known else code[k].args
    return dict.fromkeys(sorted(found))


def _part(
    program: Program,
    name: str,
    inputs: Sequence[Variable],
    outputs: Results,
    order: Mapping[int, None],
    known: Mapping[int, Instruction],
) -> Program:
    """Return a part of a program. known: instructions that are inputs of the part."""
    number = {k: n for n, k in enumerate(order)}
    code = [
        known[k] if k in known else i._replace(args=tuple([number[a] for a in i.args]))
        for k in order
        for i in (program.code[k],)
    ]
    return replace(
        program,
        name=f"{program.name} {name}",
        inputs=tuple(inputs),
        outputs=tuple(v for v, _ in outputs),
        results=tuple(tuple(number[r] for r in refs) for _, refs in outputs),
        code=tuple(code),
        tiled=program.tiled | BETWEEN,
    )
