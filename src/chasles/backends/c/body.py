"""The straight-line parts of a lowered program as C statements.

A fused multiply-add is written `(a * b) + c`, which compilers contract to a single instruction on
machines that have one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from chasles.backends.lowering import FREE, Lowered, Part
from chasles.expr.program import ARITHMETIC


@dataclass(frozen=True)
class Number:
    """A C floating-point type: its name, dtype, and suffixes of literals and function names."""

    name: str
    dtype: str
    literal: str
    function: str

    @property
    def bytes(self) -> int:
        return np.dtype(self.dtype).itemsize

    @cached_property
    def words(self) -> dict[str, str]:
        """Values to insert for the names f, one and zero in the format strings of `SPELLING`."""
        return {"f": self.function, "one": self.spelled(1.0), "zero": self.spelled(0.0)}

    def spelled(self, value: float) -> str:
        """Return a C literal that exactly represents a value rounded to this type."""
        with np.errstate(over="ignore"):
            rounded = np.dtype(self.dtype).type(value)
        if math.isnan(rounded):
            return "NAN"
        if math.isinf(rounded):
            return "INFINITY" if rounded > 0.0 else "(-INFINITY)"
        text = str(rounded) + self.literal
        return f"({text})" if text.startswith("-") else text


DOUBLE = Number("double", "float64", "", "")
FLOAT = Number("float", "float32", "F", "f")
NUMBERS = {number.name: number for number in (DOUBLE, FLOAT)}


def number_of(dtype: str) -> Number:
    """Return the C type for a dtype."""
    return next(number for number in NUMBERS.values() if number.dtype == dtype)


SPELLING = ARITHMETIC | {
    "fma": "({0} * {1}) + {2}",
    "fms": "({0} * {1}) - {2}",
    "fnma": "{2} - ({0} * {1})",
    "sqrt": "sqrt{f}({0})",
    "sin": "sin{f}({0})",
    "cos": "cos{f}({0})",
    "atan2": "atan2{f}({0}, {1})",
    "min": "({0} < {1}) ? {0} : (({1} <= {0}) ? {1} : ({0} + {1}))",
    "max": "({0} > {1}) ? {0} : (({1} >= {0}) ? {1} : ({0} + {1}))",
    "abs": "fabs{f}({0})",
    "less": "({0} < {1}) ? {one} : {zero}",
    "less_equal": "({0} <= {1}) ? {one} : {zero}",
    "equal": "({0} == {1}) ? {one} : {zero}",
    "select": "({0} != {zero}) ? {1} : {2}",
}
"""C expressions for the operations. Operands are names and literals, so repeating an operand adds
no computation. If an operand of a minimum or maximum is NaN, the result is the sum of the operands,
which is also NaN."""


class Turn(NamedTuple):
    """An angle and the variable names of its sine and cosine.

    A name is None if the value is not needed.
    """

    angle: str
    sine: str | None
    cosine: str | None


Turns = Callable[[int, Sequence[Turn], Number], list[str]]
"""Function that returns C statements to compute the sines and cosines of a group of angles. Its
arguments are the index of the group, the angles, and their C type."""


def library_turns(group: int, turns: Sequence[Turn], number: Number) -> list[str]:
    """Generate C statements that compute each sine and cosine with the standard library."""
    lines = []
    for angle, *names in turns:
        for op, name in zip(("sin", "cos"), names, strict=True):
            if name is not None:
                call = SPELLING[op].format(angle, f=number.function)
                lines.append(f"const {number.name} {name} = {call};")
    return lines


class Statements:
    """Writer of the C statements for one part of a program.

    Values are named t1, t2, ... in order. Results and values for later parts are stored as soon as
    they are computed. `lines` holds the statements.

    - names: names of the inputs.
    - lane: suffix of array indices, "" for one state or "[i]" in a loop over states.
    - results: C expressions to which each result is assigned.
    """

    def __init__(
        self,
        lowered: Lowered,
        part: Part,
        number: Number,
        names: Sequence[str],
        lane: str,
        results: Mapping[int, Sequence[str]],
        turns: Turns,
    ) -> None:
        self.code, self.place = lowered.code, lowered.place
        self.number, self.names, self.lane, self.turns = number, names, lane, turns
        self.lines: list[str] = []
        self._names: dict[int, str] = {}
        self._going = {r: list(results.get(r, ())) for r in part.results}
        for k, place in part.saved:
            self._going.setdefault(k, []).append(f"scratch[{place}]{lane}")
        used = [a for stage in part.stages for k in stage.code for a in self.code[k].args]
        used += [a for stage in part.stages for a in stage.angles] + list(self._going)
        turned = [k for k in dict.fromkeys(used) if self.code[k].op in ("sin", "cos")]
        for group, stage in enumerate(part.stages):
            for k in stage.code:
                self._compute(k)
            here = [k for k in turned if self.code[k].args[0] in stage.angles]
            self._turn(group, stage.angles, here)
        for k in list(self._going):
            self._store(k)

    def _compute(self, k: int) -> None:
        op, args, _ = self.code[k]
        if op not in FREE:
            text = SPELLING[op].format(*map(self._use, args), **self.number.words)
            self.lines.append(f"const {self.number.name} {self._name(k)} = {text};")
            self._store(k)

    def _turn(self, group: int, angles: Sequence[int], turned: Sequence[int]) -> None:
        """Emit statements for the sines and cosines that this part of the program needs."""
        turns = []
        for angle in angles:
            text = self._use(angle)
            both = {self.code[k].op: self._name(k) for k in turned if self.code[k].args[0] == angle}
            turns.append(Turn(text, both.get("sin"), both.get("cos")))
        self.lines += self.turns(group, turns, self.number) if turns else []
        for k in turned:
            self._store(k)

    def _store(self, k: int) -> None:
        for place in self._going.pop(k, ()):
            self.lines.append(f"{place} = {self._use(k)};")

    def _name(self, k: int) -> str:
        self._names[k] = f"t{len(self._names) + 1}"
        return self._names[k]

    def _use(self, k: int) -> str:
        """Return the expression for a value: an input, a constant, or a computed value."""
        op, _, data = self.code[k]
        if op == "const":
            return self.number.spelled(data)
        if op == "input":
            return f"{self.names[data[0]]}[{data[1]}]{self.lane}"
        return self._names.get(k) or f"scratch[{self.place[k]}]{self.lane}"
