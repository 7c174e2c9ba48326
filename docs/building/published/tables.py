"""Tables of operation counts made again: what a book prints beside what a trace counts."""

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
"""Between neighbouring axes: any angle; 90 degrees; 90 and 0 degrees in turn, from the base."""

LENGTHS = (3, 4, 5, 6, 9, 12)
"""Numbers of joints whose counts a polynomial must meet; a few of them determine it. With two
joints the second link is also the last, and may take less."""

SHORT = range(3, 9)
"""The same for whole methods, of which there are many."""

MANY = 20_000
"""Methods with more operations than this for six joints are not traced for longer arms."""

Counts = tuple[int, int]
"""Multiplications and additions."""


@cache
def arm(n: int, twists: Twists = "general") -> Robot:
    """The arm that the book counts: n revolute joints, all lengths and inertias arbitrary.

    mixed: every other axis is parallel to the one before it, and has no offset along it (which the
    book's choice of origins leaves out).
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
    """The same arm for the programs that are written as printed."""
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
    """Our methods of a function, but for those that need another robot than an arm."""
    model = arm(1).model
    return [m.name for m in FUNCTIONS[function] if m.needs is None or not m.needs(model, {})]


@cache
def by_equation(function: str, method: str, n: int, twists: Twists) -> dict[str, Counts]:
    """What each statement of a method takes by the book's rules, by the equations it is."""
    found: dict[str, Counts] = {}
    for step in cost(arm(n, twists), function, method=method, rules="book").steps:
        M, A = found.get(step.equation, (0, 0))
        found[step.equation] = M + step.count.multiplications, A + step.count.additions
    return found


def whole(function: str, method: str, n: int, twists: Twists) -> Counts:
    """What a method takes in all by the book's rules."""
    counts = by_equation(function, method, n, twists).values()
    return sum(M for M, _ in counts), sum(A for _, A in counts)


@dataclass(frozen=True)
class Line:
    """One line of a table made again: pairs of polynomials, each for two kinds of twists.

    rows: the printed rows that are one statement here. program: counts of the program that is
    written as printed; traced: those of the library's own.
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
        """The reason for a difference; empty where there is none."""
        reasons = "; ".join(row.why for row in self.rows if row.why)
        return reasons if self.printed != self.traced else ""

    @property
    def slip(self) -> str:
        """The reasons for differences between the program and print; empty without one."""
        found = [ROWS.get((self.table, row.equation)) for row in self.rows]
        return "; ".join(slip.reason for slip in found if slip)


def lines(table: ByEquation, lengths: Sequence[int] = LENGTHS) -> list[Line]:
    """The rows of a table by equation, those of one statement together, as printed and as traced.

    Traced polynomials pass through the counts of all lengths exactly.
    """
    return [_line(table, group, lengths) for group in _groups(table)]


def total(table: ByEquation, lengths: Sequence[int] = LENGTHS) -> Line:
    """The last line: the printed total, and the sum of what is traced for all rows."""
    printed = tuple(_read(pair) for pair in table.total)
    names = {row.equation for row in table.rows}
    row = Row("total", *table.total, table.note)
    return Line(
        table.number, (row,), printed, _as_printed(table, names), _traced(table, names, lengths)
    )


def _as_printed(table: ByEquation, names: set[str]) -> tuple[tuple[Polynomial, Polynomial], ...]:
    return tuple(fitted(BY_TABLE[table.number], arms, names) for arms in _ARMS.values())


def _groups(table: ByEquation) -> list[tuple[Row, ...]]:
    """The rows in order, those that share a statement of the source together."""
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
    """One line of a table by method: what is printed, and what our method takes.

    program: of the program that is written as printed, for general twists, where there is one.
    traced: polynomials for general twists, where `growth` finds them; six: for six joints, by
    twists. Both are empty where we have no such method.
    """

    formula: Formula
    program: tuple[Polynomial, Polynomial] | None
    slip: str
    traced: tuple[Polynomial, Polynomial] | None
    six: dict[Twists, Counts]


def entries(table: ByMethod) -> list[Entry]:
    """The rows of a table by method, printed and traced."""
    return [entry(table, formula) for formula in formulas(table)]


def formulas(table: ByMethod) -> tuple[Formula, ...]:
    """What is printed, and an empty formula for each of our methods that has none."""
    printed = {formula.method for formula in table.rows}
    ours = [name for name in methods_of(table.function) if name not in printed]
    return (*table.rows, *(Formula("", ("", ""), name) for name in ours))


def entry(table: ByMethod, formula: Formula) -> Entry:
    """A formula of a table, what its program takes, and what our method of it takes."""
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
    """Multiplications and additions of a method for n joints with general twists.

    None if they are `MANY`, or no polynomials in n: those of a chain taken by halves are not.
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
    """What acceleration and moment of one body take, by vectors and by the tensor Omega, known."""
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
