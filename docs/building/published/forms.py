"""Types for published tables of operation counts, with rows by equation or by method."""

from dataclasses import dataclass

Pair = tuple[str, str]
"""Multiplications and additions, as polynomials in n."""


@dataclass(frozen=True)
class Row:
    """Printed cost of an equation, for general twists and for twists of 0 and 90 degrees.

    `why` is the reason if the traced count of the equation, or of all equations of its statement,
    is different.
    """

    equation: str
    general: Pair
    right: Pair
    why: str = ""


@dataclass(frozen=True)
class ByEquation:
    """Table of one algorithm by equation; `total` is as printed, and may differ from the sum."""

    number: str
    title: str
    function: str
    method: str
    rows: tuple[Row, ...]
    total: tuple[Pair, Pair]
    note: str = ""


@dataclass(frozen=True)
class Formula:
    """Printed count of a whole function.

    `method` is the corresponding method of chasles, if there is one. `at` is set if the count is
    given only for this n. `where` is the place in the book. `why` is the reason if the traced count
    is different.
    """

    author: str
    counts: Pair
    method: str = ""
    at: int | None = None
    where: str = ""
    why: str = ""


@dataclass(frozen=True)
class ByMethod:
    """Table of one function by method."""

    number: str
    title: str
    function: str
    rows: tuple[Formula, ...]
    note: str = ""
