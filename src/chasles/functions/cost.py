"""Count the operations of functions by source statement, and explain the choice of method."""

import ast
import inspect
import linecache
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from chasles import algorithms
from chasles.errors import InputError, shown
from chasles.expr import BOOK, RULES, Arena, Count, Program
from chasles.functions.doors import Wrench, wrench_arguments
from chasles.functions.programs import Candidate, candidates, checked_options
from chasles.model import Model
from chasles.model.passes import PASSES

_FOLDER = str(Path(algorithms.__file__).parent)
_EQUATION = re.compile(r"\((.*)\)")

Rules = Literal["simplified", "book"]
"""Counting rule. "simplified" counts operations after simplification, with each value computed
once. "book" counts operations as Balafoutis and Patel do by hand (see `chasles.cost`).
"""


@dataclass(frozen=True)
class Step:
    """One statement of an algorithm, and its operation counts summed over all bodies.

    An operation shared by several statements is counted only for the first statement. `equation` is
    the equation number in the cited source, read from the comment after the statement. A statement
    may have several equation numbers.
    """

    file: str
    function: str
    line: int
    source: str
    equation: str
    count: Count


@dataclass(frozen=True)
class Cost(Count):
    """Operation counts, depth and number of live values of a program.

    `depth` is the number of operations in the longest chain of dependent operations, which limits
    the speed for one state on any machine. `live` is the maximum number of values that must be
    stored at one time, which determines whether they fit in registers. `steps` lists the operations
    by statement, in order of execution.
    """

    depth: int = 0
    live: int = 0
    steps: tuple[Step, ...] = field(default=(), repr=False)


def recorder(rules: Rules) -> Callable[[], Arena]:
    """Return a factory of expression arenas that record the source statement of each operation."""
    if rules not in get_args(Rules):
        raise InputError("E-COST-001", f'`rules` must be "simplified" or "book", not {rules!r}')
    if rules == "book":
        return lambda: Arena(BOOK, partial(_here, {}), apart=True)
    return lambda: Arena(RULES, partial(_here, {}))


def measured(program: Program, rules: Rules = "simplified") -> Cost:
    """Return the cost of a traced program; its `steps` are set if statements were recorded."""
    numbers = vars(_counted([i.op for i in program.code], rules))
    return Cost(**numbers, depth=program.depth, live=program.live, steps=_steps(program, rules))


def _counted(ops: Sequence[str], rules: Rules) -> Count:
    count = Count.of(ops)
    if rules == "simplified":
        return count
    products = count.multiplications + count.divisions
    return replace(count, multiplications=products, divisions=0, negations=0, sines_and_cosines=0)


class _Origin(NamedTuple):
    """Source statement that created an operation.

    Statements are sorted by the order in which their functions were first called.
    """

    began: int
    file: str
    function: str
    line: int


def _here(begun: dict[tuple[str, int], int]) -> _Origin | None:
    """Return the current statement of the innermost running function in `algorithms`.

    `begun` stores the order in which functions were first called, by file and first line.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if file.startswith(_FOLDER) and code.co_name[0] not in "_<":
            began = begun.setdefault((file, code.co_firstlineno), len(begun))
            return _origin(began, file, code.co_name, frame.f_lineno)
        frame = frame.f_back
    return None


@cache
def _origin(began: int, file: str, function: str, line: int) -> _Origin:
    return _Origin(began, file, function, _statements(file).get(line, line))


def _steps(program: Program, rules: Rules) -> tuple[Step, ...]:
    groups: dict[_Origin, list[str]] = {}
    for instruction, origin in zip(program.code, program.origins, strict=False):
        if origin is not None:
            groups.setdefault(origin, []).append(instruction.op)
    found = []
    for (_, file, function, line), ops in sorted(groups.items()):
        count = _counted(ops, rules)
        if count != Count():
            last = max((k for k, first in _statements(file).items() if first == line), default=line)
            text = "".join(linecache.getline(file, k) for k in range(line, last + 1))
            source, _, comment = " ".join(text.split()).partition(" # ")
            named = _EQUATION.fullmatch(comment)
            name = Path(file).relative_to(_FOLDER).as_posix()
            found.append(Step(name, function, line, source, named[1] if named else "", count))
    return tuple(found)


@cache
def _statements(file: str) -> dict[int, int]:
    """Map each line of a source file to the first line of its statement."""
    starts: dict[int, int] = {}
    for node in ast.walk(ast.parse("".join(linecache.getlines(file)))):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                starts[line] = node.lineno
    return starts


_PACKAGE = Path(algorithms.__file__).parents[2]
SHORT = 12
"""Number of lines before the gap in a listing that omits the middle of a program."""


class Tried(NamedTuple):
    """Candidate program: its method, its model passes, and its weight.

    The weight is the number of operations, where a division, square root or trigonometric function
    counts as eight operations. The candidate with the smallest weight runs.
    """

    method: str
    passes: tuple[str, ...]
    weight: int


class Applied(NamedTuple):
    """Pass (model transformation) that changed the model, and the operation count after it."""

    name: str
    what: str
    operations: Count


@dataclass(frozen=True)
class Explanation:
    """The program that runs when a robot function is called.

    `function` is the traced function. For `forward_dynamics` of a robot with loops, it is
    "constrained_dynamics". `method` is the selected method. `candidates` lists all programs tried.
    The candidate with the smallest weight runs (the first one in case of a tie). `given` counts the
    operations before any model pass. `passes` lists the passes that changed the model, with the
    operation count after each. `source` and `lines` are the file of the algorithm and its first and
    last line. `sources` lists all files that contributed operations. `program` is the program
    itself.
    """

    robot: str
    function: str
    method: str
    candidates: tuple[Tried, ...]
    given: Count
    passes: tuple[Applied, ...]
    source: str
    lines: tuple[int, int]
    sources: tuple[str, ...]
    program: Program

    @property
    def reason(self) -> str:
        """Reason why this method was selected."""
        tried = len(self.candidates)
        return "the only candidate" if tried == 1 else f"fewest operations of {tried} candidates"

    def text(self, *, full: bool = False) -> str:
        """Return the explanation as text.

        Parameters
        ----------
        full : bool, optional
            Include every line of the program. By default, the middle of a long program is omitted.

        Returns
        -------
        text : str
            The explanation.

        Examples
        --------
        >>> import chasles
        >>> explained = chasles.robots.planar(2).explain("inverse_dynamics")
        >>> "inverse_dynamics" in explained.text()
        True
        """
        first, last = self.lines
        rows = [
            f"{name:14}{n.multiplications:6}{n.additions:6}{n.divisions:5}{n.square_roots:5}"
            f"{n.sines_and_cosines + n.arctangents:6}  {what}".rstrip()
            for name, what, n in (("as loaded", "", self.given), *self.passes)
        ]
        lines = [
            f"{self.function} of {shown(self.robot)}: method {self.method!r}, {self.reason}",
            f"source: {self.source}, lines {first} to {last}",
            *(f"    and {file}" for file in self.sources if file != self.source),
            "",
            f"{'pass':14}{'mul':>6}{'add':>6}{'div':>5}{'sqrt':>5}{'trig':>6}",
            *rows,
            "",
            f"{'candidate':22}{'work':>6}  passes",
            *(f"{t.method:22}{t.weight:6}  {', '.join(t.passes)}" for t in self.candidates),
            "",
            *self.listing(full=full),
        ]
        return "\n".join(lines)

    def listing(self, *, full: bool = False) -> list[str]:
        """Return the lines of the program.

        Parameters
        ----------
        full : bool, optional
            Include every line. By default, the middle of a long program is omitted.

        Returns
        -------
        lines : list of str
            The lines.

        Examples
        --------
        >>> import chasles
        >>> explained = chasles.robots.planar(2).explain("inverse_dynamics")
        >>> len(explained.listing()) > 10
        True
        """
        lines = str(self.program).rstrip().split("\n")
        results = len(self.program.outputs)
        left_out = len(lines) - SHORT - results
        if full or left_out <= 1:
            return lines
        return [*lines[:SHORT], f"  ... ({left_out} more lines)", *lines[-results:]]

    def __repr__(self) -> str:
        what = f"{self.function} of {shown(repr(self.robot))}: method {self.method!r}"
        return f"<Explanation of {what}, {self.program.count}>"

    def __str__(self) -> str:
        return self.text()


def explain(
    model: Model,
    function: str,
    *,
    method: str = "fastest",
    dissipation: bool = False,
    f_ext: Mapping[str, Wrench] | None = None,
    parameters: Sequence[str] = (),
    **options: Any,
) -> Explanation:
    """Explain the selection of a function's program: candidates, passes and operation counts."""
    keys, _ = wrench_arguments(model, f_ext)
    given = dict(checked_options(model, function, options))
    given |= {"wrenches": keys, "parameters": tuple(dict.fromkeys(parameters))}
    found = candidates(model, function, method=method, dissipation=dissipation, **given)
    weights = [way.trace(model, **given).count.weight for way in found]
    best = found[weights.index(min(weights))]
    passes = _in_order(best.passes)
    counts = [
        Candidate(best.method, passes[:k]).trace(model, **given).count
        for k in range(len(passes) + 1)
    ]
    program = best.trace(model, record=recorder("simplified"), **given)
    algorithm = best.method.algorithm
    source, start = inspect.getsourcelines(algorithm)
    file = Path(inspect.getfile(algorithm)).relative_to(_PACKAGE).as_posix()
    home = Path(algorithms.__file__).parent.relative_to(_PACKAGE).as_posix()
    parts = dict.fromkeys(f"{home}/{step.file}" for step in measured(program).steps)
    ways = zip(found, weights, strict=True)
    tried = tuple(Tried(way.method.name, _in_order(way.passes), weight) for way, weight in ways)
    changes = zip(passes, counts[1:], strict=True)
    applied = tuple(Applied(name, PASSES[name].what, count) for name, count in changes)
    lines = start, start + len(source) - 1
    what = model.name, function, best.method.name, tried, counts[0], applied
    return Explanation(*what, file, lines, tuple(parts), program)


def _in_order(passes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in PASSES if name in passes)
