"""What a published table of operation counts holds: rows by equation, or by method."""

from dataclasses import dataclass

Pair = tuple[str, str]
"""Polynomials in n of multiplications and additions."""


@dataclass(frozen=True)
class Row:
    """What an equation costs: for general twists, and for twists of 0 and 90 degrees.

    why: the reason, where our count for it (or for all equations of one statement) is another.
    """

    equation: str
    general: Pair
    right: Pair
    why: str = ""


@dataclass(frozen=True)
class ByEquation:
    """A table of one algorithm by its equations; total: as printed, which rows may contradict."""

    number: str
    title: str
    function: str
    method: str
    rows: tuple[Row, ...]
    total: tuple[Pair, Pair]
    note: str = ""


@dataclass(frozen=True)
class Formula:
    """A count of a whole function. method: ours, where we have it. at: the only n it is given for.

    where: the place in the book. why: the reason, where our count is another.
    """

    author: str
    counts: Pair
    method: str = ""
    at: int | None = None
    where: str = ""
    why: str = ""


@dataclass(frozen=True)
class ByMethod:
    """A table of one function by its methods."""

    number: str
    title: str
    function: str
    rows: tuple[Formula, ...]
    note: str = ""
