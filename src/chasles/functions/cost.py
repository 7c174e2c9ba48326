"""What a function costs: operations, step by step, the longest path, and values needed at once."""

import ast
import linecache
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from chasles import algorithms
from chasles.errors import InputError
from chasles.expr import BOOK, RULES, Arena, Count, Program

_FOLDER = str(Path(algorithms.__file__).parent)
_EQUATION = re.compile(r"\((.*)\)")

Rules = Literal["simplified", "book"]
"""How operations are counted: what is left after simplification, every value computed once; or as
Balafoutis and Patel count by hand (`chasles.cost` says how)."""


@dataclass(frozen=True)
class Step:
    """One statement of an algorithm's source, and the operations that it took, over all bodies.

    An operation that several statements share belongs to the one that came first. equation: the
    number of it in the book, where a comment behind the statement is that number in parentheses;
    several, where they are one statement.
    """

    file: str
    function: str
    line: int
    source: str
    equation: str
    count: Count


@dataclass(frozen=True)
class Cost(Count):
    """How many operations of each kind, and more.

    depth: operations one after the other on the longest path, which bounds the time of one state on
    any machine. live: the largest number of values that are needed at one time, which decides
    whether they fit the registers. steps: the operations by statement of the algorithm, in the
    order in which its functions begin to compute.
    """

    depth: int = 0
    live: int = 0
    steps: tuple[Step, ...] = field(default=(), repr=False)


def recorder(rules: Rules) -> Callable[[], Arena]:
    """What makes the arena in which operations are recorded, each with the statement it is of."""
    if rules not in get_args(Rules):
        raise InputError("E-COST-001", f'rules are "simplified" or "book", not {rules!r}')
    if rules == "book":
        return lambda: Arena(BOOK, partial(_here, {}), apart=True)
    return lambda: Arena(RULES, partial(_here, {}))


def measured(program: Program, rules: Rules = "simplified") -> Cost:
    """The cost of a traced program; with steps, if its origins were recorded."""
    numbers = vars(_counted([i.op for i in program.code], rules))
    return Cost(**numbers, depth=program.depth, live=program.live, steps=_steps(program, rules))


def _counted(ops: Sequence[str], rules: Rules) -> Count:
    count = Count.of(ops)
    if rules == "simplified":
        return count
    products = count.multiplications + count.divisions
    return replace(count, multiplications=products, divisions=0, negations=0, sines_and_cosines=0)


class _Origin(NamedTuple):
    """A statement; it stands behind those of functions that began to compute earlier."""

    began: int
    file: str
    function: str
    line: int


def _here(begun: dict[tuple[str, int], int]) -> _Origin | None:
    """The statement of the algorithm that runs: in its innermost public function.

    begun: the functions of this trace that have computed something, numbered.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if file.startswith(_FOLDER) and name[0] not in "_<":
            began = begun.setdefault((file, frame.f_code.co_firstlineno), len(begun))
            line = _statements(file).get(frame.f_lineno, frame.f_lineno)
            return _Origin(began, file, name, line)
        frame = frame.f_back
    return None


def _steps(program: Program, rules: Rules) -> tuple[Step, ...]:
    groups: dict[_Origin, list[str]] = {}
    for instruction, origin in zip(program.code, program.origins, strict=False):
        if origin is not None:
            groups.setdefault(origin, []).append(instruction.op)
    found = []
    for (_, file, function, line), ops in sorted(groups.items()):
        count = _counted(ops, rules)
        if count != Count():
            source, _, comment = " ".join(_text(file, line).split()).partition(" # ")
            named = _EQUATION.fullmatch(comment)
            name = Path(file).relative_to(_FOLDER).as_posix()
            found.append(Step(name, function, line, source, named[1] if named else "", count))
    return tuple(found)


@cache
def _statements(file: str) -> dict[int, int]:
    """For every line of a source file, the line on which its statement begins."""
    starts: dict[int, int] = {}
    for node in ast.walk(ast.parse("".join(linecache.getlines(file)))):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                starts[line] = node.lineno
    return starts


def _text(file: str, line: int) -> str:
    last = max((k for k, first in _statements(file).items() if first == line), default=line)
    return "".join(linecache.getline(file, k) for k in range(line, last + 1))
