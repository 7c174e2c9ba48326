"""Published operation counts against what our programs take, equation by equation.

TRACE has what a program written for this purpose counted by the same rules from the same equations
(one wrapper around numbers, no simplification but zeros and ones): an independent count. Ours must
be equal, or smaller for the reason given.
"""

import math

import pytest
from building.published import BY_EQUATION, BY_METHOD, Polynomial, arm, one_body, whole
from building.published.balafoutis_patel import ONE_BODY
from building.published.tables import by_equation, entry, formulas, growth, lines, total

import chasles
from chasles.algorithms import FUNCTIONS

TABLES = {table.number: table for table in BY_EQUATION}
Pair = tuple[str, str]

SENSITIVITIES = ("inverse_dynamics_sensitivities", "augmented-tensor")


def taken(way: tuple[str, str], names: str, n: int, twists: str) -> tuple[int, int]:
    """Multiplications and additions of all statements that are one of these equations."""
    wanted = set(names.split(", "))
    found = by_equation(*way, n, twists).items()
    counts = [pair for statement, pair in found if wanted & set(statement.split(", "))]
    return sum(M for M, _ in counts), sum(A for _, A in counts)


OURS: dict[str, dict[str, tuple[Pair, Pair]]] = {
    "5.2": {
        "5.3.45a": (("8n-12", "5n-9"), ("4n-6", "3n-6")),
        "5.3.45b": (("10n-14", "7n-11"), ("6n-8", "5n-8")),
        "5.3.45c": (("6n-5", "9n-9"), ("6n-5", "9n-9")),
        "5.3.45e": (("17n-22", "13n-18"), ("10n-12", "8n-12")),
        "5.3.45f": (("15n-13", "15n-14"), ("15n-13", "15n-14")),
        "5.3.46a": (("17n-19", "13n-17"), ("13n-15", "11n-15")),
        "5.3.46b": (("20n-26", "19n-25"), ("14n-16", "15n-18")),
        "total": (("93n-111", "81n-103"), ("68n-75", "66n-82")),
    },
    "6.1": {
        "6.3.29a": (("8n-12", "7n-11"), ("4n-6", "5n-10")),
        "6.3.29b": (("0", "0"), ("0", "0")),
        "6.3.29c": (("27n-44", "38n-64"), ("16n-28", "26n-45")),
        "6.3.30a, 6.3.30b": (
            ("10n^2-22n+14", "6n^2-14n+10"),
            ("6n^2-15n+12", "4n^2-11n+10"),
        ),
        "total": (("10n^2+13n-42", "6n^2+31n-65"), ("6n^2+5n-22", "4n^2+20n-45")),
    },
    "7.1": {
        "7.3.18a": (("8n-12", "7n-9"), ("4n-6", "5n-8")),
        "7.3.18b": (("14n-16", "10n-14"), ("10n-12", "8n-12")),
        "7.3.18c": (("27n-44", "38n-64"), ("16n-28", "26n-45")),
        "7.3.18d": (("59n-89", "66n-109"), ("44n-65", "50n-83")),
        "sd of 7.3.18d": (("6n-10", "3n-6"), ("4n-6", "n-2")),
        "7.3.18f, 7.3.18j": (("10n-10", "9n-9"), ("10n-12", "9n-11")),
        "7.3.18g, 7.3.18k": (("29n-29", "29n-29"), ("29n-36", "29n-35")),
        "7.3.18l, 7.3.18m, 7.3.18n": (("9n-7", "9n-7"), ("9n-7", "9n-7")),
        "total": (("162n-217", "171n-247"), ("126n-172", "137n-203")),
    },
    "7.2": {
        "7.3.19a, 7.3.19d": (("11n^2-23n+11", "7n^2-16n+10"), ("6n^2-15n+12", "4n^2-11n+10")),
        "7.3.19b, 7.3.19f": (("11n^2-21n+10", "7n^2-14n+7"), ("6n^2-12n+6", "4n^2-8n+4")),
        "7.3.19c, 7.3.19g": (("11n^2-21n+10", "7n^2-14n+7"), ("6n^2-12n+6", "4n^2-8n+4")),
        "7.3.19e": (("7n^2-15n+8", "5n^2-11n+6"), ("5n^2-13n+9", "4n^2-11n+8")),
        "7.3.19h, 7.3.19j, 7.3.19l": (
            ("4.5n^2-11.5n+7", "4.5n^2-11.5n+7"),
            ("4.5n^2-12.5n+8", "4.5n^2-12.5n+8"),
        ),
        "7.3.19k": (("0", "0.5n^2-0.5n"), ("0", "0.5n^2-0.5n")),
        "total": (
            ("44.5n^2-91.5n+46", "31n^2-67n+37"),
            ("27.5n^2-64.5n+41", "21n^2-51n+34"),
        ),
    },
}
"""What we count now, for general twists and for right angles: a change of any shows here."""


@pytest.mark.parametrize("number", OURS)
def test_our_counts_are_these_polynomials(number: str) -> None:
    table = TABLES[number]
    found = {line.equations: line.traced for line in [*lines(table), total(table)]}
    for name, pairs in OURS[number].items():
        assert [tuple(map(str, pair)) for pair in found.pop(name)] == list(pairs), name
    nothing = tuple(map(Polynomial.read, ("0", "0")))
    assert set(found.values()) <= {(nothing, nothing)}


# Against an independent count ------------------------------------------------------------------

ENDS = "only what the first joint feels is formed, and gravity along its axis is a number"
OFFSETS = "at right angles an offset has a zero"
PLANES = "the cross product is made where the offset is (a, 0, d)"

TRACE = [
    ("5.2", "5.3.45a", "general", ("8n-12", "5n-9"), ""),
    ("5.2", "5.3.45b", "general", ("10n-14", "7n-11"), ""),
    ("5.2", "5.3.45c", "general", ("6n-5", "9n-9"), ""),
    ("5.2", "5.3.45e", "general", ("17n-19", "13n-18"), ENDS),
    ("5.2", "5.3.45f", "general", ("15n-13", "15n-14"), ""),
    ("5.2", "5.3.46a", "general", ("17n-17", "13n-16"), ENDS),
    ("5.2", "total", "general", ("93n-107", "81n-102"), ENDS),
    ("5.2", "total", "right", ("73n-83", "71n-91"), OFFSETS),
    ("5.1", "total", "general", ("93n-69", "81n-66"), ENDS),
    ("5.1", "total", "right", ("73n-50", "71n-56"), OFFSETS),
    ("6.1", "total", "general", ("11n^2+9n-32", "7n^2+28n-54"), PLANES),
    ("6.1", "total", "right", ("7n^2+6n-13", "5n^2+22n-37"), OFFSETS),
]


@pytest.mark.parametrize(("number", "name", "twists", "traced", "reason"), TRACE)
def test_equal_or_smaller_than_an_independent_count(
    number: str, name: str, twists: str, traced: Pair, reason: str
) -> None:
    table = TABLES[number]
    names = ", ".join(row.equation for row in table.rows) if name == "total" else name
    differs = False
    for n in range(2, 13):
        ours = taken((table.function, table.method), names, n, twists)
        theirs = tuple(Polynomial.read(text)(n) for text in traced)
        assert all(a <= b for a, b in zip(ours, theirs, strict=True))
        differs = differs or ours != theirs
    assert differs == bool(reason)


def test_the_moment_takes_one_product_more_than_a_row_that_is_known() -> None:
    """(5.3.46b) of the first joint: sa (s x + c y) + ca z, where sa s and sa c are not stored."""
    for n in range(2, 13):
        found = by_equation("inverse_dynamics", "augmented-tensor", n, "general")["5.3.46b"]
        assert found == (20 * n - 27 + 1, 19 * n - 25)


PER_STEP = {
    "7.3.18a": ((8, 7), (4, 5)),
    "7.3.18b": ((14, 10), (10, 8)),
    "7.3.18c": ((27, 38), (19, 31)),
    "7.3.18d": ((60, 66), (48, 54)),
    "7.3.18f, 7.3.18j": ((4 + 6, 3 + 6), (10, 9)),
    "7.3.18g, 7.3.18k": ((10 + 19, 12 + 21), (29, 33)),
    "7.3.18l, 7.3.18m, 7.3.18n": ((2 + 7, 3 + 7), (9, 10)),
    "7.3.19a, 7.3.19d": ((8 + 14, 4 + 10), (4 + 10, 2 + 8)),
    "7.3.19b, 7.3.19f": ((8 + 14, 4 + 10), (4 + 10, 2 + 8)),
    "7.3.19c, 7.3.19g": ((8 + 14, 4 + 10), (4 + 10, 2 + 8)),
    "7.3.19e": ((14, 10), (10, 8)),
    "7.3.19h, 7.3.19j, 7.3.19l": ((2 + 7, 3 + 7), (9, 10)),
    "7.3.19k": ((0, 1), (0, 1)),
}
"""One evaluation, independently counted: each link in step 1, each pair of joints in step 2."""


@pytest.mark.parametrize("name", PER_STEP)
def test_an_evaluation_takes_no_more_than_an_independent_count(name: str) -> None:
    """In the middle of a chain, where nothing is special: by differences of counts."""
    for twists, limit in zip(("general", "right"), PER_STEP[name], strict=True):
        for k in (0, 1):
            M = [taken(SENSITIVITIES, name, n, twists)[k] for n in (4, 5, 6)]
            links, pairs = M[2] - M[1], M[2] - 2 * M[1] + M[0]
            assert (pairs if name.startswith("7.3.19") else links) <= limit[k]


def test_sensitivities_take_less_than_printed() -> None:
    """Tables 7.1 and 7.2 together, 2056 and 1762 for six joints, 1516 and 1472 at right angles."""
    for column, printed in enumerate(((2056, 1762), (1516, 1472))):
        sums = [total(TABLES[number]) for number in ("7.1", "7.2")]
        shown = [sum(line.printed[column][k](6) for line in sums) for k in (0, 1)]
        found = [sum(line.traced[column][k](6) for line in sums) for k in (0, 1)]
        assert tuple(shown) == printed
        assert all(a < b for a, b in zip(found, printed, strict=True))


# What is printed -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", TABLES)
def test_printed_rows_add_up_to_the_printed_total(number: str) -> None:
    """The errors of print are errors of rows, carried into the totals."""
    table = TABLES[number]
    for column, expected in zip(("general", "right"), table.total, strict=True):
        for k in (0, 1):
            whole = Polynomial(())
            for row in table.rows:
                whole = whole + Polynomial.read(getattr(row, column)[k])
            assert str(whole) == expected[k]


@pytest.mark.parametrize("table", BY_EQUATION, ids=lambda table: table.number)
def test_every_difference_is_explained(table) -> None:
    for line in lines(table):
        assert line.printed == line.traced or line.why or table.note, line.equations


def test_printed_figures_for_six_joints() -> None:
    """Every bracket of tables 5.3, 6.2 is its formula for n = 6, but for one (598 for 601)."""
    brackets = {
        "Hollerbach, 4x4": (4388, 3586),
        "Hollerbach, 3x3": (2195, 1719),
        "Luh, Walker, Paul": (852, 738),
        "Craig": (657, 544),
        "Khosla, Neuman": (678, 521),
        "Li": (616, 494),
        "Khalil": (538, 478),
        "Angeles, Ma, Rojas": (521, 435),
        "algorithm 5.6": (499, 434),
        "algorithm 5.7": (489, 420),
        "the same, optimised": (450, 386),
        "Walker, Orin": (741, 601 - 3),
        "Angeles, Ma": (746, 629),
        "algorithm 6.2": (420, 339),
    }
    found = {
        formula.author: tuple(Polynomial.read(text)(6) for text in formula.counts)
        for table in BY_METHOD[:2]
        for formula in table.rows
    }
    assert brackets == {name: found[name] for name in brackets}


def test_one_body_takes_what_chapter_4_says() -> None:
    found = one_body()
    assert list(found.items()) == list(ONE_BODY)
    vectors, tensors = list(found.values())[:3], list(found.values())[3:5]
    newton = found["Newton's equation"]
    assert tuple(map(sum, zip(*vectors, strict=True))) == (45, 33)
    assert tuple(map(sum, zip(newton, *tensors, strict=True))) == (30, 24)


# By method -------------------------------------------------------------------------------------


def test_tables_have_every_method() -> None:
    for table in BY_METHOD:
        known = [m.name for m in FUNCTIONS[table.function] if m.needs is None]
        assert set(known) <= {formula.method for formula in formulas(table)}


def test_a_chain_taken_by_halves_does_not_grow_as_a_polynomial() -> None:
    assert growth("forward_dynamics", "assembly-inertia") is None
    assert growth("forward_dynamics", "articulated-body") is not None


def test_an_entry_has_printed_and_traced() -> None:
    found = entry("inverse_dynamics", BY_METHOD[0].rows[-1])
    assert tuple(map(str, found.traced or ())) == ("93n-111", "81n-103")
    assert found.six == {"general": (447, 383), "right": (333, 314), "mixed": (273, 254)}


@pytest.mark.parametrize(
    ("function", "method", "general", "right"),
    [
        ("inverse_dynamics", "newton-euler-tensor", ("96n-74", "84n-71"), None),
        ("inverse_dynamics", "newton-euler-vector", ("117n-91", "90n-78"), ("97n-72", "80n-68")),
    ],
)
def test_other_recursions_take_no_more_than_an_independent_count(
    function: str, method: str, general: Pair, right: Pair | None
) -> None:
    """Algorithms 5.6 and 5.3: the same for each link, less at the ends."""
    for twists, texts in (("general", general), ("right", right)):
        for n in range(2, 13) if texts else ():
            found = whole(function, method, n, twists)
            assert all(a < Polynomial.read(b)(n) for a, b in zip(found, texts, strict=True))
    slopes = [whole(function, method, n, "general") for n in (7, 8)]
    assert [b - a for a, b in zip(*slopes, strict=True)] == [
        Polynomial.read(text).coefficients[1] for text in general
    ]


def test_eulers_equation_alone() -> None:
    """24(n-1)+8, 18(n-1)+2 by vectors, 15(n-1)+5, 15(n-1)+3 by tensors; of the first link less."""
    for n in range(2, 13):
        vectors = by_equation("inverse_dynamics", "newton-euler-vector", n, "general")["5.2.23f"]
        tensors = by_equation("inverse_dynamics", "newton-euler-tensor", n, "general")["5.3.7g"]
        assert vectors == (24 * (n - 1) + 1, 18 * (n - 1))
        assert tensors == (15 * (n - 1) + 2, 15 * (n - 1) + 1)


def test_what_the_closed_form_of_generalised_links_spends() -> None:
    """The reason given in table 5.3: products and sums of six joints, by equation."""
    found = by_equation("inverse_dynamics", "vukobratovic", 6, "general")
    parts = (("2.3.6",), ("5.2.20a, 5.2.20b",), ("5.2.19b",), ("5.2.19a",), ("5.2.19c",))
    parts += (("D of 5.2.17", "C of 5.2.17", "G of 5.2.17"),)
    counts = [tuple(sum(found[name][k] for name in part) for k in (0, 1)) for part in parts]
    assert counts == [(152, 97), (339, 365), (856, 613), (181, 128), (22, 5), (162, 216)]
    assert tuple(map(sum, zip(*counts, strict=True))) == (1712, 1424)


def test_a_spatial_link_takes_the_printed_products_where_its_offset_has_two_entries() -> None:
    """130 and 102 with (a, 0, d), six more of each with three entries (print has 130 and 101)."""
    for robot, slope in ((chasles.robots.general_chain, (136, 108)), (_two_entries, (130, 102))):
        short, long = (
            chasles.cost(robot(n), "inverse_dynamics", method="spatial-1987", rules="book")
            for n in (6, 7)
        )
        products = long.multiplications - short.multiplications
        assert (products, long.additions - short.additions) == slope


def _two_entries(n: int) -> chasles.Robot:
    return chasles.robots.general_tree(n, 1)


def test_parallel_axes_take_less_than_right_angles() -> None:
    for method in ("augmented-tensor", "newton-euler-tensor", "newton-euler-vector"):
        costs = [
            sum(whole("inverse_dynamics", method, 6, t)) for t in ("general", "right", "mixed")
        ]
        assert costs == sorted(costs, reverse=True)
    rows = chasles.to_dh(arm(5, "mixed")).rows
    assert [row.alpha for row in rows] == [math.pi / 2, 0.0] * 2 + [math.pi / 2]
    assert [row.d == 0.0 for row in rows] == [False, True] * 2 + [False]
