"""Operation counts as printed in Balafoutis and Patel (1991).

n is the number of joints, which are revolute. Each pair is (multiplications, additions).
"""

from building.published.forms import ByEquation, ByMethod, Formula, Row

ZERO = ("0", "0")
_HERE = "Algorithm 5.7, inverse dynamics"

TABLE_5_1 = ByEquation(
    "5.1",
    f"{_HERE}, first and last link treated separately",
    "inverse_dynamics",
    "augmented-tensor",
    (
        Row("5.3.45a", ("8n-8", "5n-5"), ("4n-4", "3n-3")),
        Row("5.3.45b", ("10n-10", "7n-7"), ("6n-6", "5n-5")),
        Row("5.3.45c", ("6n-5", "9n-9"), ("6n-5", "9n-9")),
        Row("5.3.45e", ("17n-14", "13n-13"), ("13n-11", "11n-11")),
        Row("5.3.45f", ("15n-10", "15n-12"), ("15n-10", "15n-12")),
        Row("5.3.46a", ("17n-8", "13n-7"), ("13n-4", "11n-5")),
        Row("5.3.46b", ("20n-14", "19n-13"), ("16n-10", "17n-11")),
    ),
    (("93n-69", "81n-66"), ("73n-50", "71n-56")),
    "The traced counts are those of table 5.2. The cost per link is as printed (less at right "
    "angles, where offsets have a zero entry), and the first and last links cost less.",
)

TABLE_5_2 = ByEquation(
    "5.2",
    f"{_HERE}, optimised",
    "inverse_dynamics",
    "augmented-tensor",
    (
        Row(
            "5.3.45a",
            ("8n-12", "5n-9"),
            ("4n-7", "3n-5"),
            "the second link takes two products and no sum with a twist of 90 degrees, and no "
            "product and one sum with a twist of 0; the book prints one product and one sum",
        ),
        Row(
            "5.3.45b",
            ("10n-15", "7n-11"),
            ("6n-10", "5n-8"),
            "for the second link, the printed count uses products of sines that are stored "
            "elsewhere",
        ),
        Row("5.3.45c", ("6n-5", "9n-9"), ("6n-5", "9n-9")),
        Row(
            "5.3.45e",
            ("17n-19", "13n-16"),
            ("13n-16", "11n-14"),
            "gravity along the first link's axis is constant, so products with it are constants; "
            "at right angles an offset (a, -d, 0) has a zero entry",
        ),
        Row("5.3.45f", ("15n-13", "15n-14"), ("15n-13", "15n-14")),
        Row(
            "5.3.46a",
            ("17n-17", "13n-16"),
            ("13n-13", "11n-3"),
            "the first link needs only the x and y components; 11n-3 is a misprint of 11n-14",
        ),
        Row(
            "5.3.46b",
            ("20n-27", "19n-25"),
            ("16n-20", "17n-22"),
            "the book counts one product less, because it takes the third row of the second "
            "rotation as known; at right angles an offset has a zero entry",
        ),
    ),
    (("93n-108", "81n-100"), ("73n-84", "71n-75")),
)

TABLE_6_1 = ByEquation(
    "6.1",
    "Algorithm 6.2, mass matrix",
    "mass_matrix",
    "augmented-tensor",
    (
        Row(
            "6.3.29a",
            ("8n-16", "7n-10"),
            ("4n-8", "5n-10"),
            "chasles needs the first moment along the parent's axes for (6.3.29c) of the first "
            "link, too; 7n-10 is a misprint of 7n-14",
        ),
        Row(
            "6.3.29b",
            ("2n-2", "0"),
            ("2n-2", "0"),
            "offsets are used along the parent's axes, where they are constant",
        ),
        Row(
            "6.3.29c",
            ("30n-42", "39n-52"),
            ("20n-25", "32n-42"),
            "rotating a symmetric tensor takes 18 products and 17 sums, but 21 and 18 are printed; "
            "the first link needs only one entry; at right angles an offset has a zero entry",
        ),
        Row("6.3.30a", ("4n^2-12n+8", "2n^2-6n+4"), ("2n^2-6n+4", "n^2-3n+2")),
        Row(
            "6.3.30b",
            ("7n^2-17n+10", "3.5n^2-7.5n+4"),
            ("5n^2-13n+8", "2.5n^2-5.5n+3"),
            "the cross product is computed between the twist and the joint's rotation, where an "
            "offset is (a, 0, d): (a) and (b) together take 20 products and 12 sums; 22 and 11 are "
            "printed, although (b) alone takes 10 sums, as (7.3.19d), and the book omits part of "
            "the cross product for the first joint",
        ),
    ),
    (("11n^2+11n-42", "5.5n^2+32.5n-54"), ("7n^2+7n-23", "3.5n^2+28.5n-47")),
)

_STEP_1 = "one statement computes both: the force and the moment of one wrench"
_PASSED = (
    "one statement passes force and moment inward; for the first joint only the moment about its "
    "axis is computed; at right angles an offset has a zero entry"
)

TABLE_7_1 = ByEquation(
    "7.1",
    "Algorithm 7.1, sensitivities, step 1",
    "inverse_dynamics_sensitivities",
    "augmented-tensor",
    (
        Row(
            "7.3.18a",
            ("8n-8", "7n-7"),
            ("4n-4", "5n-5"),
            "the last link's moment is constant, and only two components of the first link's "
            "moment are needed",
        ),
        Row(
            "7.3.18b",
            ("14n-14", "10n-10"),
            ("10n-10", "8n-8"),
            "only two components are needed for the first link",
        ),
        Row(
            "7.3.18c",
            ("30n-12", "39n-31"),
            ("20n-2", "32n-24"),
            "see (6.3.29c); the book counts a general transform after the last link",
        ),
        Row(
            "7.3.18d",
            ("69n-51", "74n-60"),
            ("51n-33", "63n-49"),
            "tensors are rotated by plane rotations, with 26 products and 24 sums; the book "
            "counts a general transform after the last link; at right angles an offset has a zero "
            "entry",
        ),
        Row(
            "sd of 7.3.18d",
            ZERO,
            ZERO,
            "rates of the offsets, which the book takes as known",
        ),
        Row("7.3.18e", ZERO, ZERO),
        Row("7.3.18h", ZERO, ZERO),
        Row("7.3.18i", ZERO, ZERO),
        Row("7.3.18f", ("4n-4", "n-1"), ("4n-4", "n-1")),
        Row(
            "7.3.18j",
            ("6n-6", "6n-6"),
            ("6n-6", "6n-6"),
            f"{_STEP_1}; two sums per joint are missing in the printed count of (7.3.18f); at "
            "right angles the angular velocity of the second link has a zero entry",
        ),
        Row("7.3.18g", ("9n-9", "12n-12"), ("9n-9", "12n-12")),
        Row(
            "7.3.18k",
            ("18n-18", "21n-21"),
            ("18n-18", "21n-21"),
            f"{_STEP_1}; one product per joint is missing in each printed count; w x z is doubled "
            "once for all products that use it",
        ),
        Row("7.3.18l", ZERO, ZERO),
        Row("7.3.18m", ("2n-2", "3n-3"), ("2n-2", "3n-3")),
        Row(
            "7.3.18n",
            ("7n-7", "7n-7"),
            ("7n-7", "7n-7"),
            "the book does not count the gravity term of the first joint; w x z is doubled in "
            "(7.3.18k)",
        ),
    ),
    (("167n-131", "180n-158"), ("131n-95", "158n-136")),
    "Algorithm 7.1 builds on algorithm 5.7, which is not in the table, and needs its complete "
    "moments and forces, not only the components along the axes.",
)

_MOVED = (("4n^2-4n", "2n^2-2n"), ("2n^2-2n", "n^2-n"))
_SHIFTED = (("7n^2-16n+9", "5n^2-11n+6"), ("5n^2-10n+5", "4n^2-8n+4"))

TABLE_7_2 = ByEquation(
    "7.2",
    "Algorithm 7.1, sensitivities, step 2",
    "inverse_dynamics_sensitivities",
    "augmented-tensor",
    (
        Row("7.3.19a", *_MOVED),
        Row("7.3.19d", ("7n^2-7n", "5n^2-5n"), ("5n^2-5n", "4n^2-4n"), _PASSED),
        Row("7.3.19b", *_MOVED),
        Row("7.3.19f", *_SHIFTED, _PASSED),
        Row("7.3.19c", *_MOVED),
        Row("7.3.19g", *_SHIFTED, _PASSED),
        Row(
            "7.3.19e",
            *_SHIFTED,
            "for the first joint one component takes 4 products; 3 are printed, as if the row "
            "of the rotation were known; at right angles the rate of an offset has a zero entry",
        ),
        Row("7.3.19h", ZERO, ZERO),
        Row("7.3.19j", ("n^2-n", "1.5n^2-1.5n"), ("n^2-n", "1.5n^2-1.5n")),
        Row(
            "7.3.19l",
            ("3n^2-3n", "3n^2-3n"),
            ("3n^2-3n", "3n^2-3n"),
            "an entry of (l) takes 7 products, but 6 are printed; w x z is doubled in (7.3.18k); "
            "the axis of the first joint is at rest, so its entries take fewer operations",
        ),
        Row(
            "7.3.19k",
            ("0", "0.5n^2-0.5n"),
            ("0", "0.5n^2-0.5n"),
            "the vector is doubled once for each joint, before it is passed inward",
        ),
        Row("7.3.19m", ZERO, ZERO),
    ),
    (("44n^2-71n+27", "31n^2-49n+18"), ("30n^2-45n+15", "24n^2-36n+12")),
)

BY_EQUATION = (TABLE_5_1, TABLE_5_2, TABLE_6_1, TABLE_7_1, TABLE_7_2)

_EVERY_ENTRY = "the book counts every entry of every matrix; chasles does not count zeros and ones"
_ENDS = "zeros of the first links and components that affect no joint are not computed"

TABLE_5_3 = ByMethod(
    "5.3",
    "Inverse dynamics",
    "inverse_dynamics",
    (
        Formula(
            "Uicker, Kahn",
            ("66271", "51548"),
            "uicker-kahn",
            at=6,
            where="section 5.2",
            why="the book counts every entry of every product of 4x4 matrices, separately for each "
            "term",
        ),
        Formula(
            "Waters",
            ("7051", "5652"),
            "waters",
            at=6,
            where="section 5.2",
            why="the book counts every entry of every matrix; chasles does not count zeros and "
            "ones",
        ),
        Formula("Hollerbach, 4x4", ("830n-592", "675n-464"), "lagrange-4x4", why=_EVERY_ENTRY),
        Formula("Hollerbach, 3x3", ("412n-277", "320n-201"), "lagrange-3x3", why=_EVERY_ENTRY),
        Formula(
            "Vukobratovic, Li, Kircanski",
            ("1.5n^3+17.5n^2+9n-36", "7/6n^3+11.5n^2+32n-28"),
            "vukobratovic",
            where="section 5.2",
            why="the book does not state how operations were counted (the formulas give 972 and "
            "830 for n = 6, but 992 and 776 are printed); chasles uses base axes, where a joint "
            "axis is a screw with six entries, not (0, 0, 1), and C is a full array: of 1712 "
            "products, 152 are for rotations to base axes (2.3.6), 339 for links and screws in "
            "base axes (5.2.20), 856 for C, 181 for D, 22 for G (5.2.19), 162 for the sums "
            "(5.2.17)",
        ),
        Formula(
            "Luh, Walker, Paul",
            ("150n-48", "131n-48"),
            "newton-euler-vector",
            why="the printed count is for the recursion of 1980, about centers of mass; chasles "
            f"uses the frame origins and plane rotations; {_ENDS}",
        ),
        Formula(
            "Featherstone",
            ("130n-68", "101n-56"),
            "spatial-1987",
            where="section 5.2",
            why="offsets have three entries here; with two entries (a along x, d along z, as in "
            f"`general_tree`), a link takes 130 and 102; {_ENDS}",
        ),
        Formula("Craig", ("126n-99", "106n-92")),
        Formula("Khosla, Neuman", ("123n-60", "96n-55")),
        Formula("Li", ("120n-104", "98n-94")),
        Formula("Khalil", ("105n-92", "94n-86")),
        Formula(
            "Angeles, Ma, Rojas",
            ("105n-109", "90n-105"),
            "kane",
            why="a link takes the printed products, and three sums less for an unknown reason, "
            "because the derivation of the printed count is not available; the reactions on the "
            "base are not computed",
        ),
        Formula(
            "algorithm 5.6",
            ("96n-77", "84n-70"),
            "newton-euler-tensor",
            why=f"at the ends of the chain, {_ENDS}",
        ),
        Formula("algorithm 5.7", ("93n-69", "81n-66"), "augmented-tensor", why="see table 5.1"),
        Formula(
            "the same, optimised", ("93n-108", "81n-100"), "augmented-tensor", why="see table 5.2"
        ),
    ),
)

TABLE_6_2 = ByMethod(
    "6.2",
    "Mass matrix",
    "mass_matrix",
    (
        Formula(
            "Walker, Orin",
            ("12n^2+56n-27", "7n^2+67n-56"),
            "composite-3x3",
            why="chasles uses plane rotations; for n = 6, the book prints 601 sums, as if the last "
            "number were -53",
        ),
        Formula(
            "Angeles, Ma",
            ("n^3+17n^2-15n+8", "n^3+14n^2-16n+5"),
            "factored-complement",
            why="P'P is the same; twists are transformed from origin to origin, and then to the "
            "centers of mass",
        ),
        Formula(
            "Featherstone",
            ("10n^2+31n-41", "6n^2+40n-46"),
            "spatial",
            why="the book transforms inertias by screws, chasles by plane rotations; the first "
            "link needs fewer operations",
        ),
        Formula(
            "algorithm 6.2",
            ("11n^2+11n-42", "5.5n^2+32.5n-54"),
            "augmented-tensor",
            why="see table 6.1; the printed number of sums of (6.3.30b) is too small",
        ),
    ),
)

TABLE_6_3 = ByMethod(
    "6.3",
    "Forward dynamics",
    "forward_dynamics",
    (
        Formula("Kazerounian, Gupta", ("2468", "1879"), at=6),
        Formula("Wang, Ravani", ("1659", "1252"), at=6),
        Formula(
            "Walker, Orin",
            ("1627", "1261"),
            "composite-3x3",
            at=6,
            why="chasles uses algorithm 5.7 for inverse dynamics, and plane rotations",
        ),
        Formula(
            "Featherstone, articulated bodies",
            ("1533", "1415"),
            "articulated-body",
            at=6,
            why="chasles uses plane rotations and known zeros",
        ),
        Formula(
            "Featherstone, composite bodies",
            ("1303", "1019"),
            "mass-matrix",
            at=6,
            why="505 products are for table 6.2, 712 for inverse dynamics and 86 for the linear "
            "system; inverse dynamics takes fewer products in chasles",
        ),
        Formula(
            "Angeles, Ma",
            ("1353", "1165"),
            "orthogonal-complement",
            at=6,
            why="the book computes the mass matrix and solves a linear system; chasles "
            "orthogonalizes the twists",
        ),
        Formula(
            "algorithms 6.2 and 5.7",
            ("956", "790"),
            "augmented-tensor",
            at=6,
            why="420 + 450 + 86 products and 339 + 386 + 65 sums; 339 is too small (table 6.1)",
        ),
    ),
)

BY_METHOD = (TABLE_5_3, TABLE_6_2, TABLE_6_3)

ONE_BODY = (
    ("acceleration, by vectors", (18, 15)),
    ("Newton's equation", (3, 0)),
    ("Euler's equation, by vectors", (24, 18)),
    ("acceleration, by the tensor", (9, 9)),
    ("Euler's equation, by the tensor", (18, 15)),
    ("the same, J symmetric", (15, 15)),
)
"""Section 4.3: counts for one body if Omega is known.

In total, vectors take 45 products and 33 sums. Tensors take 30 products (27 for a symmetric J) and
24 sums.
"""
