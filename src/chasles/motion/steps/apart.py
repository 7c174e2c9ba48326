"""Division of long compiled programs into parts, with calls to subprograms between the parts.

A time step repeats three computations. All Newton steps solve linear systems of the same form
(`solve`). The closest of many potential contact points are found one by one (`nearest`). A line
search narrows an interval in several rounds (`narrow`). For robots with many contacts, these
computations make up most of the code. Therefore each of them becomes a subprogram that is called
several times. A program that calls subprograms is divided into parts. A part ends with the arrays
that it passes to a subprogram (requests), and the next part begins with the results (answers).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from chasles.expr import RULES, Arena, Instruction, Number, Program, Scalar, Variable
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.steps.convex import ROUNDS, Interval, Line, Newton, Problem
from chasles.motion.steps.sharing import Rows, nearest
from chasles.motion.steps.systems import System, system_of, system_size

SOLVE, NARROW, NEAREST = "solve", "narrow", "nearest"
"""Names of the subprograms. "nearest" is followed by the index of a group of contact points, for
example "nearest0"."""

INTERVAL = "interval"
"""Name of the array that contains the search interval of a line search."""

FREE = ("const", "input")
"""Operations that are repeated in every part of a divided program that needs them. The results of
all other operations are passed from one part to the next."""


Output = tuple[Variable, list[Number]]
"""Output array of a program: its name and shape, and its entries as expressions."""


def output(name: str, entries: Iterable[Number]) -> Output:
    """Return an output array with the given name and entries."""
    found = list(entries)
    return Variable(name, (len(found),)), found


class Called(NamedTuple):
    """Call of a subprogram between two parts of a program.

    Attributes
    ----------
    program : str
        Name of the subprogram.
    inputs, outputs : Mapping[str, str]
        Map the name of an input or output of the subprogram to the name of the array in the calling
        program. An array that is not in the map has the same name in both programs.
    """

    program: str
    inputs: Mapping[str, str] = {}
    outputs: Mapping[str, str] = {}


class Call(NamedTuple):
    """Arrays passed to a subprogram (requests), and the results of the subprogram (answers)."""

    requests: list[Output]
    answers: list[Variable]


def called(name: str, picks: Sequence[int]) -> list[list[Called]]:
    """Return the subprograms to call after each part of `begin`, `refine` or `search`.

    `picks` contains the maximum number of active contact points in each group of potential points.
    """
    solve = [Called(SOLVE)]
    if name == "refine":
        return [solve]
    if name == "search":
        begun = ["narrow_begun", *["narrow_answer"] * (ROUNDS - 1)]
        rounds = [Called(NARROW, {INTERVAL: x}, {INTERVAL: "narrow_answer"}) for x in begun]
        return [solve, rounds]
    found = []
    for own, count in ((f"{NEAREST}{n}", count) for n, count in enumerate(picks)):
        gaps, rows = [f"{own}_gaps", *[f"{own}_left"] * (count - 1)], f"{own}_rows"
        found.append(
            [
                Called(
                    own,
                    {"left": x, "rows": rows},
                    {"left": f"{own}_left", "best": f"{own}_best{k}"},
                )
                for k, x in enumerate(gaps)
            ]
        )
    return [*found, solve]


class Apart:
    """Calls to subprograms, in order, that separate the parts of a divided program."""

    def __init__(self, problem: Problem, calls: Sequence[Call] = ()) -> None:
        self.problem, self.calls = problem, list(calls)

    def solve(self, system: System) -> np.ndarray:
        """Add a call that solves a linear system, and return the solution as symbols."""
        request = output("solve_request", system.entries)
        answer = Variable("solve_answer", (len(system.g),))
        self.calls.append(Call([request], [answer]))
        return symbols(_arena(request[1]), answer.name, answer.shape)

    def search(self, line: Line, begun: Interval, whole: Number) -> Interval:
        """Add a call that performs a line search, and return the final interval as symbols."""
        requests = [
            output("narrow_line", [whole, *_entries(line, self.problem)]),
            output("narrow_begun", begun),
        ]
        answer = Variable("narrow_answer", (len(begun),))
        self.calls.append(Call(requests, [answer]))
        return Interval(*symbols(_arena(requests[0][1]), answer.name, answer.shape))

    @property
    def answers(self) -> list[Variable]:
        """Results of all subprogram calls, which are passed to later parts of the program."""
        return [v for call in self.calls for v in call.answers]

    @property
    def requests(self) -> list[Output]:
        """Arrays that the program passes to subprograms, in the order of the calls."""
        return [r for call in self.calls for r in call.requests]

    def parts(self, program: Program) -> list[Program]:
        """Divide a program into parts at its calls."""
        passed = {v.name for v in (*self.answers, *(v for v, _ in self.requests))}
        rest, found = program, list[Program]()
        for n in range(len(self.calls)):
            passed.add(f"kept{n}")
            answers = {v.name for later in self.calls[n:] for v in later.answers}
            before, rest = _halves(rest, answers, f"kept{n}", passed)
            found.append(before)
        every = program.tiled | passed
        return [
            replace(part, name=f"{program.name} {n}", tiled=every)
            for n, part in enumerate([*found, rest])
        ]


class Pick:
    """Function that selects the closest contact points in a group, with calls to a subprogram.

    The function is passed to `sharing.closest` as the argument `pick`.
    """

    def __init__(self, number: int) -> None:
        self.name = f"{NEAREST}{number}"

    def __call__(self, rows: Rows, count: int) -> tuple[Rows, Sequence[Number]]:
        self.rows, width = rows, len(rows[0])
        arena = _arena([row[0] for row in rows])
        best = [Variable(f"{self.name}_best{k}", (width,)) for k in range(count)]
        left = Variable(f"{self.name}_left", (len(rows),))
        gaps = output(f"{self.name}_gaps", [row[0] for row in rows])
        self.call = Call([gaps, output(f"{self.name}_rows", self._varied)], [*best, left])
        chosen = [list(symbols(arena, v.name, v.shape)) for v in best]
        return chosen, list(symbols(arena, left.name, left.shape))

    @property
    def _varied(self) -> list[Number]:
        """Symbolic entries of all rows, without the first column, which contains the gaps."""
        return [x for row in self.rows for x in row[1:] if isinstance(x, Scalar)]

    def program(self) -> Program:
        """Return the subprogram that finds the contact point with the smallest gap in a group."""
        arena, width = Arena(RULES), len(self.rows[0])
        shapes = {"left": (len(self.rows),), "rows": (len(self._varied),)}
        given = {name: symbols(arena, name, shape) for name, shape in shapes.items()}
        varied = iter(given["rows"])
        rows = [[next(varied) if isinstance(x, Scalar) else x for x in r[1:]] for r in self.rows]
        best, left = nearest(list(given["left"]), [[0.0, *row] for row in rows])
        inputs = [Variable(name, shape) for name, shape in shapes.items()]
        outputs = [(inputs[0], left), (Variable("best", (width,)), best)]
        made = Program.from_outputs(self.name, inputs, outputs)
        return replace(made, tiled=frozenset((*shapes, "best")))


def solving(problem: Problem, arena: Arena, data: Variable) -> Program:
    """Return the subprogram that solves the linear system of a Newton step.

    `problem` consists of expressions in the input `data`.
    """
    touches, stops, dry = problem.touches, len(problem.stops), len(problem.dry)
    size = system_size(touches, stops + dry + len(problem.p) + len(problem.ties))
    request = Variable("solve_request", (size,))
    entries = symbols(arena, request.name, request.shape)
    answer = Newton(problem).solution(system_of(list(entries), touches, stops, dry))
    found = output("solve_answer", answer)
    made = Program.from_outputs(SOLVE, [data, request], [found])
    return replace(made, tiled=frozenset((data.name, request.name, found[0].name)))


def narrowing(newton: Newton, arena: Arena, memory: Variable, data: Variable) -> Program:
    """Return the subprogram for one round of the line search.

    `newton` is the momentum balance as expressions in the inputs `memory` and `data`.
    """
    p = newton.p
    slots = sum(2 + 2 * touch.turns for touch in p.touches)
    request = Variable("narrow_line", (1 + 2 * len(p.p) + 3 * slots + 3,))
    whole, *rest = symbols(arena, request.name, request.shape)
    interval = Variable(INTERVAL, (len(Interval._fields),))
    begun = Interval(*symbols(arena, interval.name, interval.shape))
    inputs, found = [memory, data, request, interval], newton.narrowed(_line(rest, p), begun, whole)
    made = Program.from_outputs(NARROW, inputs, [(interval, list(found))])
    return replace(made, tiled=frozenset(v.name for v in inputs))


def _entries(line: Line, problem: Problem) -> list[Number]:
    """Return the values of a `Line` as a flat list, from which `_line` restores it."""
    found = [*line.v, *line.d]
    for motions in (line.at, line.along):
        for touch, (u, w) in zip(problem.touches, motions, strict=True):
            found += [*u, *w] if touch.turns else [*u]
    return [*found, line.start, line.inertia, line.begun]


def _line(entries: Sequence[Number], problem: Problem) -> Line:
    """Restore a `Line` from the list that `_entries` returned."""
    left, n, still = iter(entries), len(problem.p), np.zeros(3)

    def array(size: int) -> np.ndarray:
        return np.array([next(left) for _ in range(size)], dtype=object)

    v, d = array(n), array(n)
    at, along = (
        [(array(3), array(3) if touch.turns else still) for touch in problem.touches]
        for _ in range(2)
    )
    return Line(v, d, at, along, *left)


def _arena(entries: Iterable[Number]) -> Arena:
    """Return the arena (storage) of the given expressions."""
    return next(x.arena for x in entries if isinstance(x, Scalar))


# Division of programs into parts -----------------------------------------------------------------

Results = Sequence[tuple[Variable, tuple[int, ...]]]


def _halves(
    program: Program, answers: Collection[str], kept: str, passed: Collection[str]
) -> tuple[Program, Program]:
    """Divide a program at a call, and return the parts before and after it.

    Outputs that do not depend on the results of the call (`answers`) are computed before it. Other
    values that both parts need are passed on in the array `kept`. Arrays named in `passed` become
    inputs of a part only if the part uses these arrays.
    """
    code, known = program.code, {v.name: n for n, v in enumerate(program.inputs)}
    late_inputs, later = {known[name] for name in answers}, bytearray(len(code))
    for k, (op, args, data) in enumerate(code):
        later[k] = (op == "input" and data[0] in late_inputs) or any(later[a] for a in args)
    outputs = list(zip(program.outputs, program.results, strict=True))
    early = [(v, refs) for v, refs in outputs if not any(later[r] for r in refs)]
    late = [(v, refs) for v, refs in outputs if any(later[r] for r in refs)]
    before = _needed(code, early, {})
    after = _needed(code, late, before)
    shared = [k for k in after if k in before and code[k].op not in FREE]
    told = {r: (v, k) for v, refs in early for k, r in enumerate(refs)}
    rest = [k for k in shared if k not in told]
    if rest:
        early.append((Variable(kept, (len(rest),)), tuple(rest)))
        told |= {r: (early[-1][0], k) for k, r in enumerate(rest)}
    taken = {k: told[k] for k in shared}
    own = [v for v in program.inputs if v.name not in passed]
    return (
        _part(program, own, early, before, {}),
        _part(program, own, late, after, taken),
    )


def _needed(
    code: Sequence[Instruction], outputs: Results, known: Mapping[int, None]
) -> dict[int, None]:
    """Return the instructions that the outputs depend on, in order.

    The search does not continue beyond instructions in `known`.
    """
    found, stack = set[int](), [r for _, refs in outputs for r in refs]
    while stack:
        k = stack.pop()
        if k not in found:
            found.add(k)
            stack += () if k in known else code[k].args
    return dict.fromkeys(sorted(found))


def _part(
    program: Program,
    inputs: Sequence[Variable],
    outputs: Results,
    order: Mapping[int, None],
    taken: Mapping[int, tuple[Variable, int]],
) -> Program:
    """Return a program that consists of the instructions in `order`.

    The result has the given inputs, followed by any other inputs that these instructions use.
    If an instruction becomes an input, `taken` maps the index of the instruction to a pair: the
    input array, and the index of the entry in this array.
    """
    number = {k: n for n, k in enumerate(order)}
    index, code = {v: n for n, v in enumerate(inputs)}, list[Instruction]()
    for k in order:
        op, args, data = program.code[k]
        if op == "input" or k in taken:
            v, entry = taken[k] if k in taken else (program.inputs[data[0]], data[1])
            code.append(Instruction("input", (), (index.setdefault(v, len(index)), entry)))
        else:
            code.append(Instruction(op, tuple([number[a] for a in args]), data))
    return replace(
        program,
        inputs=tuple(index),
        outputs=tuple(v for v, _ in outputs),
        results=tuple(tuple(number[r] for r in refs) for _, refs in outputs),
        code=tuple(code),
    )
