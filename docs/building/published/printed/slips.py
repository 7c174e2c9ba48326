"""Differences between the printed counts and the programs that follow the printed equations.

Each difference has a reason, and a test that fails if the reason does not hold. For all other rows
of tables 5.1, 5.2, 6.1, 7.1 and 7.2, the programs reproduce the printed counts in both columns.
Rows without a program are listed, too.
"""

from dataclasses import dataclass

Pair = tuple[str, str]


@dataclass(frozen=True)
class Slip:
    """Count of the program minus printed count, as polynomials in n, and the reason.

    `general` is for general twists, and `right` for twists of 90 degrees.
    """

    general: Pair
    right: Pair
    reason: str


_NONE = ("0", "0")
_BETWEEN = (
    "the second link takes fewer operations with a twist of 0 than with 90 degrees, which is "
    "counted here; the book prints the mean of both, rounded up"
)
_LAST = "the book counts the last entry of the first joint as for a general twist"

ROWS: dict[tuple[str, str], Slip] = {
    ("5.2", "5.3.45a"): Slip(_NONE, ("1", "-1"), _BETWEEN),
    ("5.2", "5.3.45b"): Slip(_NONE, ("2", "0"), _BETWEEN),
    ("5.2", "5.3.45e"): Slip(
        ("0", "-2"),
        ("0", "-2"),
        "the third row of the first link's tensor is zero, and the printed 12 products of the "
        "second link use this; its sums are then 8, or 9 if a zero is added, but 10 are printed",
    ),
    ("5.2", "5.3.46a"): Slip(_NONE, ("0", "-11"), "11n-3 is a misprint of 11n-14"),
    ("6.1", "6.3.29a"): Slip(("0", "-4"), _NONE, "7n-10 is a misprint of 7n-14"),
    ("6.1", "6.3.29c"): Slip(
        _NONE,
        ("-1", "0"),
        "the last entry of the first link takes 14 products at right angles, but 15 are printed; "
        "no way to compute the entry has the printed counts of both columns "
        "(`choices.last_entries`): a rotation by the twist takes at least four products, and the "
        "columns differ by three",
    ),
    ("6.1", "6.3.30b"): Slip(
        ("5n-5", "1.5n^2+0.5n-2"),
        ("6n-6", "1.5n^2+0.5n-2"),
        "a pair of joints takes 10 sums, as printed for the same expression in (7.3.19d), but 7 "
        "are printed here; the first joint needs the complete cross product, but the book counts "
        "only 4 products and 3 sums in total",
    ),
    ("7.1", "7.3.18d"): Slip(
        _NONE,
        ("3n-3", "-3n+3"),
        "at right angles, rotating a tensor takes 18 products and 18 sums, and 15 and 21 are "
        "printed; three of the products are halves, and the printed numbers are met if a half is "
        "counted as a sum; no way to rotate the tensor takes 15 and 21 if halves are products "
        "(`choices.tensor_rotations`)",
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
        "an entry takes 3 + 2 + 2 products and as many sums, as printed for (7.3.18n), but 6 and 6 "
        "are printed here",
    ),
}
"""Differences in the tables by equation, by table and equation."""

METHODS: dict[str, dict[str, str]] = {
    "5.3": {
        "Uicker, Kahn": "66271 is not the value of Hollerbach's formula, 67143; the formula for "
        "products consists of 130 for each velocity term, 129 for each entry of the inertia "
        "matrices, 64 for each derivative and 21 for each weight, as in the program, but contains "
        "only half of the entries on and below the diagonals, and is not an integer for n = 1; the "
        "formula for sums, whose value is 51548, is the corresponding formula plus 13n/6",
        "Waters": "the sums are as printed; the program takes 106.5n^2+620.5n-512 products, which "
        "is 7045, not 7051, for n = 6; no way to multiply by the scalars and masses of the "
        "equations gives 7051 (`choices.waters`)",
        "Hollerbach, 4x4": "the sums and the savings at the ends are as printed; with the same "
        "products of matrices, no way to multiply by the scalars and masses of the equations gives "
        "830n-592 (`choices.hollerbach`); 20n is the number of products of the weight in (5.2.13c)",
        "Hollerbach, 3x3": "the sums are as printed; with the same products of matrices, no way to "
        "multiply by the scalars and masses of the equations gives 412n-277 "
        "(`choices.hollerbach`); 17n-7 is 3n for m r, and 7(2n-1) if the products of matrix and "
        "vector in (5.2.16c) and (5.2.16d) are counted with 16 products, as in (5.2.13), not 9",
        "Vukobratovic, Li, Kircanski": "the printed formulas are misprints: for n = 1, the "
        "products are negative, and the sums are not an integer; with 64/3 for 64/2, the sums are "
        "integers for all n, and with -16 for -36 and -18 for -28, the values for n = 6 are those "
        "that the book prints after the formulas, 992 and 776; for each triple of joints, the "
        "formulas contain 9 products and 7 sums, and the program takes 10 and 8: two symbols (4 "
        "and 3 each) and two terms; the book does not print the steps that save one of each",
        "Luh, Walker, Paul": "the program is algorithm 5.3 of the book; the printed count is for "
        "the recursion of 1980, which has other rotations, frames and centers, and is cited "
        "without its equations",
        "Featherstone": "the program is algorithm 5.4, with transforms as two screws; the products "
        "for each link are as printed; the printed 101 sums are those of a link without joint "
        "acceleration; the book does not state which zeros of the first link are used",
        "the same, optimised": "see table 5.2",
    },
    "6.2": {
        "Walker, Orin": "a pair of joints takes 24 and 14, as printed; a step to the next "
        "composite body takes 59 and 62, the book prints 68 and 74; -56 is a misprint of -53, with "
        "which the sums are 601 for n = 6, as the book prints next to the formula",
        "Angeles, Ma": "the term n^3 is due to 6 products for each triple of joints, as in the "
        "book; N is a triangular root, and twists are transformed from one center of mass to the "
        "next",
        "algorithm 6.2": "see table 6.1",
    },
    "6.3": {
        "Walker, Orin": "the bias forces are from algorithm 5.7; the printed numbers are those of "
        "table 6.2, 86 and 65 for the linear system, and 800 and 595 for the bias forces, which "
        "are Walker and Orin's 137n-22 and 101n-11 for inverse dynamics",
        "Featherstone, composite bodies": "the bias forces are from algorithm 5.4; the printed "
        "numbers are 505 + 712 + 86 and 410 + 550 + 65 (table 6.2, section 5.2 and the linear "
        "system), less six sums; without accelerations, each joint takes one sum less",
        "Angeles, Ma": "the bias forces are from algorithm 5.7; the printed products are "
        "746 + 521 + 86, but the printed sums are 36 more than those of these three parts",
        "algorithms 6.2 and 5.7": "see tables 6.1 and 5.2; the linear system takes 86 and 65, as "
        "printed",
    },
}
"""Differences in the tables by method, by table and author."""

HOLLERBACH: dict[str, Pair] = {
    "Uicker, Kahn": (
        "32.5n^4+1037/12n^3+171.25n^2+160/3n-128",
        "25n^4+199/3n^3+129.5n^2+127/3n-96",
    ),
}
"""Formula attributed to Hollerbach (1980), from which the book quotes values for six joints.

The formula was not checked against the paper, and neither were Walker and Orin's 137n-22 and
101n-11. The tests support it: each coefficient of the products follows from the terms of (5.2.7),
and the sums have the printed value.
"""

INTENDED: dict[str, Pair] = {
    "Vukobratovic, Li, Kircanski": ("1.5n^3+17.5n^2+9n-16", "7/6n^3+11.5n^2+64/3n-18"),
}
"""Formulas without the misprints that the tests prove."""

_CITED = "the book cites the formula, but not the equations"
_FIGURES = "the book cites numbers for six joints, without a formula or equations"

_SIX = ("Kazerounian, Gupta", "Wang, Ravani", "Featherstone, articulated bodies")

ALONE: dict[str, dict[str, str]] = {
    "5.3": dict.fromkeys(("Craig", "Khosla, Neuman", "Li", "Khalil", "Angeles, Ma, Rojas"), _CITED),
    "6.3": dict.fromkeys(_SIX, _FIGURES),
}
"""Rows without a program, and the reason, by table and author."""
