"""What a function costs: operations, step by step, the longest path, and values needed at once."""

import ast
import linecache
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from chasles import algorithms
from chasles.expr import Count, Program

_FOLDER = str(Path(algorithms.__file__).parent)


@dataclass(frozen=True)
class Step:
    """One statement of an algorithm's source, and the operations that it took, over all bodies.

    An operation that several statements share belongs to the one that came first.
    """

    file: str
    line: int
    source: str
    count: Count


@dataclass(frozen=True)
class Cost(Count):
    """How many operations of each kind, and more.

    depth: operations one after the other on the longest path, which bounds the time of one state on
    any machine. live: the largest number of values that are needed at one time, which decides
    whether they fit the registers. steps: the operations by statement of the algorithm.
    """

    depth: int = 0
    live: int = 0
    steps: tuple[Step, ...] = field(default=(), repr=False)


def measured(program: Program) -> Cost:
    """The cost of a traced program; with steps, if its origins were recorded."""
    numbers = vars(program.count)
    return Cost(**numbers, depth=program.depth, live=program.live, steps=_steps(program))


def here() -> tuple[str, int] | None:
    """The file and line of the algorithm that is running: of its innermost public function."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_FOLDER) and code.co_name[0] not in "_<":
            return code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def _steps(program: Program) -> tuple[Step, ...]:
    groups: dict[tuple[str, int], list[str]] = {}
    for instruction, origin in zip(program.code, program.origins, strict=False):
        if origin is not None:
            file, line = origin
            groups.setdefault((file, _statements(file).get(line, line)), []).append(instruction.op)
    found = []
    for (file, line), ops in sorted(groups.items()):
        count = Count.of(ops)
        if count != Count():
            source = " ".join(_text(file, line).split())
            found.append(Step(Path(file).relative_to(_FOLDER).as_posix(), line, source, count))
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
