"""Tables that compare the operation counts printed in a book with counts of programs."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal

from building.published.forms import ByEquation, ByMethod, Formula, Pair, Row
from building.published.polynomial import Polynomial
from building.published.printed import BY_METHOD, BY_TABLE, Link, fitted
from building.published.printed.slips import METHODS, ROWS
from chasles.algorithms import FUNCTIONS
from chasles.api import cost, from_dh, to_dh
from chasles.expr import BOOK, Arena, Count, Number, Program, Variable
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.tensor import AngularAcceleration, dual
from chasles.model.denavit_hartenberg import DHRow
from chasles.robot import Robot
from chasles.robots import general_chain

Twists = Literal["general", "right", "mixed"]
"""Angles between neighboring axes: general, 90 degrees, or alternately 90 and 0 degrees."""

LENGTHS = (3, 4, 5, 6, 9, 12)
"""Numbers of joints to which polynomials are fitted; the fit must be exact for all of them.

Two joints are not used, because the second link is then also the last, and may take fewer
operations.
"""

SHORT = range(3, 9)
"""Numbers of joints to which polynomials are fitted for complete methods."""

MANY = 20_000
"""Methods with more operations than this for six joints are not traced for longer arms."""

Counts = tuple[int, int]
"""Multiplications and additions."""


@cache
def arm(n: int, twists: Twists = "general") -> Robot:
    """Return the book's arm: n revolute joints with general lengths and inertias.

    With mixed twists, every second axis is parallel to the previous one and has no offset along it,
    because of the book's choice of origins.
    """
    if twists != "mixed":
        return general_chain(n, right_angles=twists == "right")
    table = to_dh(general_chain(n))
    rows = tuple(
        replace(row, alpha=0.0, d=0.0) if k % 2 else replace(row, alpha=math.pi / 2.0)
        for k, row in enumerate(table.rows)
    )
    return from_dh(replace(table, rows=rows))


@cache
def links(n: int, twists: Twists = "general") -> tuple[Link, ...]:
    """Return the links of the arm, for the programs that follow the printed equations."""
    return tuple(_link(row) for row in to_dh(arm(n, twists)).rows)


def _link(row: DHRow) -> Link:
    xx, yy, zz, xy, xz, yz = row.inertia
    I = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    x, y, z = row.center
    return Link(row.alpha, row.a, row.d, row.mass, (x, y, z), I)


_ARMS: dict[Twists, Callable[[int], tuple[Link, ...]]] = {
    twists: partial(links, twists=twists) for twists in ("general", "right")
}


def methods_of(function: str) -> list[str]:
    """Return the methods of a function in chasles that support an arm."""
    model = arm(1).model
    return [m.name for m in FUNCTIONS[function] if m.needs is None or not m.needs(model, {})]


@cache
def by_equation(function: str, method: str, n: int, twists: Twists) -> dict[str, Counts]:
    """Return the operations of each statement of a method, by the numbers of its equations.

    Operations are counted by the book's rules.
    """
    found: dict[str, Counts] = {}
    for step in cost(arm(n, twists), function, method=method, rules="book").steps:
        M, A = found.get(step.equation, (0, 0))
        found[step.equation] = M + step.count.multiplications, A + step.count.additions
    return found


def whole(function: str, method: str, n: int, twists: Twists) -> Counts:
    """Return the total operations of a method, counted by the book's rules."""
    counts = by_equation(function, method, n, twists).values()
    return sum(M for M, _ in counts), sum(A for _, A in counts)


@dataclass(frozen=True)
class Line:
    """A line of a table: counts as pairs of polynomials, for two kinds of twists.

    `rows` contains the printed rows that are one statement in chasles. `printed` contains the sum
    of their printed counts, `program` the counts of the program that follows the printed equations,
    and `traced` the counts of the method in chasles.
    """

    table: str
    rows: tuple[Row, ...]
    printed: tuple[tuple[Polynomial, Polynomial], ...]
    program: tuple[tuple[Polynomial, Polynomial], ...]
    traced: tuple[tuple[Polynomial, Polynomial], ...]

    @property
    def equations(self) -> str:
        return ", ".join(row.equation for row in self.rows)

    @property
    def why(self) -> str:
        """Reason for a difference between traced and printed counts, or an empty string."""
        reasons = "; ".join(row.why for row in self.rows if row.why)
        return reasons if self.printed != self.traced else ""

    @property
    def slip(self) -> str:
        """Reasons for differences between program and printed counts, or an empty string."""
        found = [ROWS.get((self.table, row.equation)) for row in self.rows]
        return "; ".join(slip.reason for slip in found if slip)


def lines(table: ByEquation, lengths: Sequence[int] = LENGTHS) -> list[Line]:
    """Return the lines of a table by equation; rows that are one statement in chasles are combined.

    Traced polynomials match the counts for all lengths exactly.
    """
    return [_line(table, group, lengths) for group in _groups(table)]


def total(table: ByEquation, lengths: Sequence[int] = LENGTHS) -> Line:
    """Return the last line: the printed total, and the sums of program and traced counts."""
    printed = tuple(_read(pair) for pair in table.total)
    names = {row.equation for row in table.rows}
    row = Row("total", *table.total, table.note)
    return Line(
        table.number, (row,), printed, _as_printed(table, names), _traced(table, names, lengths)
    )


def _as_printed(table: ByEquation, names: set[str]) -> tuple[tuple[Polynomial, Polynomial], ...]:
    return tuple(fitted(BY_TABLE[table.number], arms, names) for arms in _ARMS.values())


def _groups(table: ByEquation) -> list[tuple[Row, ...]]:
    """Return the rows in order, grouped by statement of the source."""
    groups: list[list[Row]] = [[row] for row in table.rows]
    for statement in by_equation(table.function, table.method, 3, "general"):
        names = statement.split(", ")
        one = [g for g in groups if any(row.equation in names for row in g)]
        if one:
            first = groups.index(one[0])
            groups = [g for g in groups if g not in one]
            groups.insert(first, [row for g in one for row in g])
    return [tuple(group) for group in groups]


def _line(table: ByEquation, rows: tuple[Row, ...], lengths: Sequence[int]) -> Line:
    printed = tuple(
        (_sum(M for M, _ in pairs), _sum(A for _, A in pairs))
        for pairs in ([_read(row.general) for row in rows], [_read(row.right) for row in rows])
    )
    names = {row.equation for row in rows}
    return Line(
        table.number, rows, printed, _as_printed(table, names), _traced(table, names, lengths)
    )


def _traced(
    table: ByEquation, names: set[str], lengths: Sequence[int]
) -> tuple[tuple[Polynomial, Polynomial], ...]:
    columns: tuple[Twists, ...] = ("general", "right")
    return tuple(_fitted(table, names, twists, lengths) for twists in columns)


def _fitted(
    table: ByEquation, names: set[str], twists: Twists, lengths: Sequence[int]
) -> tuple[Polynomial, Polynomial]:
    M, A = {}, {}
    for n in lengths:
        found = by_equation(table.function, table.method, n, twists)
        counts = [pair for name, pair in found.items() if names & set(name.split(", "))]
        M[n], A[n] = sum(m for m, _ in counts), sum(a for _, a in counts)
    return Polynomial.through(M), Polynomial.through(A)


def _read(pair: Pair) -> tuple[Polynomial, Polynomial]:
    M, A = map(Polynomial.read, pair)
    return M, A


def _sum(parts: Iterable[Polynomial]) -> Polynomial:
    whole = Polynomial(())
    for part in parts:
        whole = whole + part
    return whole


# By method -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A line of a table by method: the printed count, and counts of program and method.

    `program` contains the counts of the program that follows the printed equations, for general
    twists, if there is one. `traced` contains polynomials for general twists if `growth` finds
    them, and `six` contains counts for six joints by kind of twists. Both are empty if chasles does
    not have the method.
    """

    formula: Formula
    program: tuple[Polynomial, Polynomial] | None
    slip: str
    traced: tuple[Polynomial, Polynomial] | None
    six: dict[Twists, Counts]


def entries(table: ByMethod) -> list[Entry]:
    """Return the lines of a table by method."""
    return [entry(table, formula) for formula in formulas(table)]


def formulas(table: ByMethod) -> tuple[Formula, ...]:
    """Return the printed formulas, and an empty one for each other method of chasles."""
    printed = {formula.method for formula in table.rows}
    ours = [name for name in methods_of(table.function) if name not in printed]
    return (*table.rows, *(Formula("", ("", ""), name) for name in ours))


def entry(table: ByMethod, formula: Formula) -> Entry:
    """Return the line for a formula, with the counts of its program and method."""
    method, function = formula.method, table.function
    program = BY_METHOD.get((table.number, formula.author))
    counted = fitted(program, _ARMS["general"]) if program else None
    slip = METHODS.get(table.number, {}).get(formula.author, "")
    if method not in methods_of(function):
        return Entry(formula, counted, slip, None, {})
    twists: tuple[Twists, ...] = ("general", "right", "mixed")
    six = {twist: whole(function, method, 6, twist) for twist in twists}
    return Entry(formula, counted, slip, growth(function, method), six)


@cache
def growth(function: str, method: str) -> tuple[Polynomial, Polynomial] | None:
    """Return the multiplications and additions of a method for n joints with general twists.

    Return None if there are more than `MANY` operations, or if the counts are not polynomials in n,
    as for methods that divide a chain into halves.
    """
    if sum(whole(function, method, 6, "general")) > MANY:
        return None
    steep = any(m.name == method and m.steep for m in FUNCTIONS[function])
    lengths = (*SHORT, SHORT[-1] + 1) if steep else SHORT
    counts = {n: whole(function, method, n, "general") for n in lengths}
    M, A = ({n: pair[k] for n, pair in counts.items()} for k in (0, 1))
    try:
        return Polynomial.through(M), Polynomial.through(A)
    except ValueError:
        return None


# One body --------------------------------------------------------------------------------------


def one_body() -> dict[str, Counts]:
    """Return the counts for one body by vectors, and by tensors with a known tensor Omega."""
    arena, number = Arena(BOOK), itertools.count()

    def new(size: int) -> tuple[Number, ...]:
        return tuple(arena.input("x", next(number)) for _ in range(size))

    w, wd, r, s = (Vector(new(3)) for _ in range(4))
    I, (m,), Omega = Symmetric(*new(6)), new(1), AngularAcceleration(w, wd)
    product = Omega.tensor @ I.matrix()
    known = [entry for row in Omega.tensor.rows for entry in row]
    results: dict[str, tuple[Vector, Sequence[Number]]] = {
        "acceleration, by vectors": (s + wd.cross(r) + w.cross(w.cross(r)), ()),
        "Newton's equation": (s * m, ()),
        "Euler's equation, by vectors": (I @ wd + w.cross(I @ w), ()),
        "acceleration, by the tensor": (s + Omega @ r, known),
        "Euler's equation, by the tensor": (dual(product - product.T), known),
        "the same, J symmetric": (Omega.moment(I), known),
    }

    def taken(entries: Sequence[Number]) -> Count:
        outputs = [(Variable("y", (len(entries),)), entries)]
        return Program.from_outputs("body", [Variable("x", (next(number),))], outputs).count

    found = {}
    for name, (result, given) in results.items():
        all_, before = taken([*result, *given]), taken(given)
        found[name] = (
            all_.multiplications - before.multiplications,
            all_.additions - before.additions,
        )
    return found
