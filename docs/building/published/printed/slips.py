"""Differences between the printed counts and the programs that follow the printed equations.

Each difference has a reason. For all other rows of tables 5.1, 5.2, 6.1, 7.1 and 7.2, the programs
reproduce the printed counts in both columns. Rows without a program are listed, too.
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
        "the third row of the first link's tensor is zero, which saves two more sums for the "
        "second link than the book counts",
    ),
    ("5.2", "5.3.46a"): Slip(_NONE, ("0", "-11"), "11n-3 is a misprint of 11n-14"),
    ("6.1", "6.3.29a"): Slip(("0", "-4"), _NONE, "7n-10 is a misprint of 7n-14"),
    ("6.1", "6.3.29c"): Slip(
        ("-1", "-3"),
        ("-1", "-3"),
        "all links are as printed, except the last entry of the first link: it takes 17 and 23 "
        "operations (14 and 19 at right angles), the book prints 18 and 26 (15 and 22) without a "
        "derivation",
    ),
    ("6.1", "6.3.30b"): Slip(
        ("5n-5", "1.5n^2+0.5n-2"),
        ("6n-6", "1.5n^2+0.5n-2"),
        "a pair of joints takes 10 sums, as printed for the same expression in (7.3.19d), but 7 "
        "are printed here; the first joint needs the complete cross product, but the book counts "
        "only 4 products and 3 sums in total",
    ),
    ("7.1", "7.3.18c"): Slip(
        ("-4", "4"),
        ("-4", "4"),
        "all links are as printed, except the last entry of the first link: it takes 14 and 12 "
        "operations, the book prints 18 and 8 without a derivation",
    ),
    ("7.1", "7.3.18d"): Slip(
        ("-5n+5", "-4n+4"),
        ("-n+1", "-7n+7"),
        "with the double angles of (7.3.18c), rotating a tensor takes 28 products and 28 sums (14 "
        "each at right angles); the book prints 33 and 32 (15 and 21) without a derivation; the "
        "first link is as printed",
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
        "Uicker, Kahn": "the book does not state which terms are computed only once: if dW J is "
        "computed again in each trace, as here, the count is larger than printed; if dW J is "
        "computed once, the count is 41926 and 32848, which is smaller",
        "Waters": "the sums are as printed; the book counts one more product for each link",
        "Hollerbach, 4x4": "the sums and the savings at the ends are as printed; the book counts "
        "20 more products for each link, and does not state which",
        "Hollerbach, 3x3": "the sums are as printed; the book counts 10 more products for the "
        "first link and 17 more for each other link",
        "Vukobratovic, Li, Kircanski": "for each triple of joints the book counts 9 products and "
        "7 sums, but two symbols (4 and 3 each) and the two terms formed from them take 10 and 8; "
        "the book gives no derivation, and contradicts itself (992 and 776); with twists of 90 "
        "degrees the program takes 908 and 800",
        "Luh, Walker, Paul": "the program is algorithm 5.3 of the book; the printed count is for "
        "the recursion of 1980, which has other rotations, frames and centers, and is cited "
        "without its equations",
        "Featherstone": "the program is algorithm 5.4, with transforms as two screws; the products "
        "for each link are as printed; the book counts one sum less for each link, and does not "
        "state which zeros of the first link it uses",
        "algorithm 5.6": "the book omits the three products with gravity that table 5.1 includes, "
        "and counts one more sum",
        "the same, optimised": "see table 5.2",
    },
    "6.2": {
        "Walker, Orin": "a pair of joints takes 22 products, but 24 are printed; its 14 sums are "
        "as printed; a step to the next composite body takes 59 and 62, the book prints 68 and 74",
        "Angeles, Ma": "the term n^3 is due to 6 products for each triple of joints, as in the "
        "book; N is a triangular root, and twists are transformed from one center of mass to the "
        "next",
        "Featherstone": "the sums are as printed; transforming an inertia by two screws takes 34 "
        "products, the book prints 41",
        "algorithm 6.2": "see table 6.1",
    },
    "6.3": {
        "Walker, Orin": "the bias forces are from algorithm 5.7; the book counts 800 and 595 for "
        "them",
        "Featherstone, composite bodies": "the bias forces are from algorithm 5.7; the printed "
        "products are 505 (table 6.2) + 712 (section 5.2) + 86, but the printed sums are six less "
        "than those of these three parts",
        "Angeles, Ma": "the bias forces are from algorithm 5.7; the printed products are "
        "746 + 521 + 86, but the printed sums are 36 more than those of these three parts",
        "algorithms 6.2 and 5.7": "see tables 6.1 and 5.2; the linear system takes 86 and 65, as "
        "printed",
    },
}
"""Differences in the tables by method, by table and author."""

_CITED = "the book cites the formula, but not the equations"
_FIGURES = "the book cites numbers for six joints, without a formula or equations"

_SIX = ("Kazerounian, Gupta", "Wang, Ravani", "Featherstone, articulated bodies")

ALONE: dict[str, dict[str, str]] = {
    "5.3": dict.fromkeys(("Craig", "Khosla, Neuman", "Li", "Khalil", "Angeles, Ma, Rojas"), _CITED),
    "6.3": dict.fromkeys(_SIX, _FIGURES),
}
"""Rows without a program, and the reason, by table and author."""
