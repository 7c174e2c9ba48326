"""Where a program written as printed counts otherwise than the book, or there is none, and why.

All other rows of tables 5.1, 5.2, 6.1, 7.1 and 7.2 are met as printed, in both columns.
"""

from dataclasses import dataclass

Pair = tuple[str, str]


@dataclass(frozen=True)
class Slip:
    """Program less print, as polynomials in n: general twists, twists of 90 degrees; the reason."""

    general: Pair
    right: Pair
    reason: str


_NONE = ("0", "0")
_BETWEEN = (
    "the second link takes less with a twist of 0 than with one of 90 degrees, counted here; the "
    "book has the mean of both, rounded up"
)
_TURN = (
    "by double angles a symmetric tensor takes 20 products and 19 sums to rotate, the book has "
    "21, 18"
)
_LAST = "the book has the last entry of the first joint as for a general twist"

ROWS: dict[tuple[str, str], Slip] = {
    ("5.2", "5.3.45a"): Slip(_NONE, ("1", "-1"), _BETWEEN),
    ("5.2", "5.3.45b"): Slip(_NONE, ("2", "0"), _BETWEEN),
    ("5.2", "5.3.45e"): Slip(
        ("0", "-2"),
        ("0", "-2"),
        "the tensor of the first link has no third row, which saves the second link two sums more "
        "than the book has",
    ),
    ("5.2", "5.3.46a"): Slip(_NONE, ("0", "-11"), "11n-3 is a misprint of 11n-14"),
    ("6.1", "6.3.29a"): Slip(("0", "-4"), _NONE, "7n-10 is a misprint of 7n-14"),
    ("6.1", "6.3.29c"): Slip(
        ("-n+1", "n-5"),
        ("-3", "-2"),
        f"{_TURN}; the last entry of the first link takes 17 and 23, the book has 18 and 26",
    ),
    ("6.1", "6.3.30b"): Slip(
        ("5n-5", "1.5n^2+0.5n-2"),
        ("6n-6", "1.5n^2+0.5n-2"),
        "a pair takes 10 sums, as the same expression of (7.3.19d) has in print, where 7 are "
        "printed; of the first joint the whole cross product is needed, where the book has 4 "
        "products "
        "and 3 sums in all",
    ),
    ("7.1", "7.3.18c"): Slip(
        ("-n+1", "n+6"),
        ("-9", "2"),
        f"{_TURN}; the last entry of the first link takes 18 and 15 (9 and 10 at right angles), "
        "where the book has 18 and 8",
    ),
    ("7.1", "7.3.18d"): Slip(
        ("-5n+7", "-4n+7"),
        ("-n-6", "-7n+3"),
        "a tensor takes 28 products and 28 sums to rotate, with the double angles of (7.3.18c); "
        "the book has 33 and 32, and does not say how; the first link takes 20 and 17, the book "
        "has 18 "
        "and 14",
    ),
    ("7.1", "7.3.18f"): Slip(
        ("0", "2n-2"), ("0", "2n-2"), "dU/dt x z is added to two components; the book omits this"
    ),
    ("7.1", "7.3.18g"): Slip(
        ("n-1", "0"), ("n-1", "0"), "U x Omega z takes 6 products, 2 dU/dt x (w x z) takes 4"
    ),
    ("7.1", "7.3.18k"): Slip(
        ("n-1", "0"), ("n-1", "0"), "E Omega z takes 9 products, L (w x z) 6, U x (sdd x z) 4"
    ),
    ("7.2", "7.3.19e"): Slip(_NONE, ("-n+1", "-n+1"), _LAST),
    ("7.2", "7.3.19f"): Slip(_NONE, ("-n+1", "-n+1"), _LAST),
    ("7.2", "7.3.19g"): Slip(_NONE, ("-n+1", "-n+1"), _LAST),
    ("7.2", "7.3.19l"): Slip(
        ("0.5n^2-0.5n", "0.5n^2-0.5n"),
        ("0.5n^2-0.5n", "0.5n^2-0.5n"),
        "an entry takes 3 + 2 + 2 products and as many sums, as (7.3.18n) has in print, where "
        "6 and 6 are printed",
    ),
}
"""Rows of the tables by equation."""

METHODS: dict[str, dict[str, str]] = {
    "5.3": {
        "Uicker, Kahn": "the book does not state what is formed once: with dW J formed again in "
        "each "
        "trace, as here, it is more than print; with dW J formed once 41926 and 32848, less",
        "Waters": "the sums are as printed; the book has one product more for each link",
        "Hollerbach, 4x4": "the sums are as printed, and so is what the ends save; the book has "
        "20 products more for each link, and does not say which",
        "Hollerbach, 3x3": "the sums are as printed; the book has 17 products more for each link "
        "but the first, for which it has 10",
        "Vukobratovic, Li, Kircanski": "for each three joints the book has 9 products and 7 sums, "
        "where two symbols (4 and 3 each) and the two terms that they make take 10 and 8; print "
        "does not say how, and contradicts itself (992 and 776); with twists of 90 degrees the "
        "program takes 908 and 800",
        "Luh, Walker, Paul": "the program is algorithm 5.3, which the book prints; the printed "
        "count is for the "
        "recursion of 1980, whose rotations, frames and centers are others, and is cited without "
        "its equations",
        "Featherstone": "the program is algorithm 5.4, carried by two screws: its products for "
        "each link are as printed; the book has one sum less for each link, and does not say "
        "which zeros of the first link it keeps",
        "algorithm 5.6": "the book omits the three products of gravity that table 5.1 counts, "
        "and has one sum more",
        "the same, optimised": "table 5.2",
    },
    "6.2": {
        "Walker, Orin": "a pair takes 22 products, where 24 are printed, and the printed 14 sums; "
        "a step of the composite body takes 58 and 63, the book has 68 and 74",
        "Angeles, Ma": "n^3 is of 6 products for each three joints, as in print; N is a triangular "
        "root, and twists go from one center of mass to the next",
        "Featherstone": "the sums are as printed; an inertia takes 34 products by two screws, "
        "the book has 41",
        "algorithm 6.2": "table 6.1",
    },
    "6.3": {
        "Walker, Orin": "the bias is by algorithm 5.7; the book has 800 and 595 for it",
        "Featherstone, composite bodies": "the bias is by algorithm 5.7; print is 505 of table "
        "6.2, 712 of section 5.2 and 86, but has six sums less than these",
        "Angeles, Ma": "the bias is by algorithm 5.7; print is 746, 521 and 86, but has 36 sums "
        "more than these",
        "algorithms 6.2 and 5.7": "tables 6.1 and 5.2; the linear system takes the printed 86, 65",
    },
}
"""Rows of the tables by method, by table and author."""

_CITED = "the book cites the formula, but not the equations"
_FIGURES = "the book cites numbers for six joints, without a formula or equations"

_SIX = ("Kazerounian, Gupta", "Wang, Ravani", "Featherstone, articulated bodies")

ALONE: dict[str, dict[str, str]] = {
    "5.3": dict.fromkeys(("Craig", "Khosla, Neuman", "Li", "Khalil", "Angeles, Ma, Rojas"), _CITED),
    "6.3": dict.fromkeys(_SIX, _FIGURES),
}
"""Rows without a program as printed, and why there is none, by table and author."""
