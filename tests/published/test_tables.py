"""Compare published operation counts with those of chasles, equation by equation.

The programs in `building.published.printed` count the same equations by the same rules, and share
no code with chasles. The methods of chasles must not take more operations than these programs.
"""

import math

import pytest
from building.published import BY_EQUATION, BY_METHOD, Polynomial, arm, one_body, whole
from building.published.balafoutis_patel import ONE_BODY
from building.published.printed import BY_METHOD as PROGRAMS
from building.published.printed import fitted
from building.published.tables import by_equation, entry, formulas, growth, lines, links, total

import chasles
from chasles.algorithms import FUNCTIONS

TABLES = {table.number: table for table in BY_EQUATION}


@pytest.mark.parametrize("table", BY_EQUATION, ids=lambda table: table.number)
def test_no_statement_takes_more_than_the_program_of_print(table) -> None:
    """No statement takes more operations than the program as printed, except those in EXTRA.

    Rows that belong to one statement are added.
    """
    for line in lines(table):
        if line.equations in OUTSIDE:
            continue
        for ours, theirs in zip(line.traced, line.program, strict=True):
            for n in range(3, 13):
                more = [a(n) - b(n) for a, b in zip(ours, theirs, strict=True)]
                extra = EXTRA.get(line.equations, ("0", "0"))
                limit = [Polynomial.read(text)(n) for text in extra]
                assert all(a <= b for a, b in zip(more, limit, strict=True)), (line.equations, n)


OUTSIDE = ("sd of 7.3.18d",)
"""Equations whose results the book takes as known."""

EXTRA = {
    "5.3.45b": ("2", "0"),  # products with the second twist, which the book assumes stored
    "5.3.46b": ("1", "0"),  # such a product, for the moment about the first axis
    "6.3.29a": ("4", "3"),  # the first moment along the parent's axes, for (6.3.29c)
    "7.3.19e": ("n-1", "0"),  # such a product, for each moment about the first axis
    "7.3.18l, 7.3.18m, 7.3.18n": ("2", "3"),  # gravity at the first joint
}
"""Operations that chasles may take in addition to the program, at the ends of an arm."""


@pytest.mark.parametrize("number", TABLES)
def test_an_arm_takes_less_than_the_program_of_print(number: str) -> None:
    """The total is smaller for any number of joints and both kinds of twists."""
    line = total(TABLES[number])
    for ours, theirs in zip(line.traced, line.program, strict=True):
        for n in range(3, 13):
            assert all(a(n) < b(n) for a, b in zip(ours, theirs, strict=True))


def test_the_moment_takes_one_product_more_than_a_row_that_is_known() -> None:
    """(5.3.46b) of the first joint takes one more product than with stored sa s and sa c.

    The expression is sa (s x + c y) + ca z.
    """
    for n in range(2, 13):
        found = by_equation("inverse_dynamics", "augmented-tensor", n, "general")["5.3.46b"]
        assert found == (20 * n - 27 + 1, 19 * n - 25)


def test_sensitivities_take_less_than_printed() -> None:
    """Sensitivities take less than tables 7.1 and 7.2 together.

    For six joints, these are 2056 and 1762 operations, or 1516 and 1472 for right angles.
    """
    for column, printed in enumerate(((2056, 1762), (1516, 1472))):
        sums = [total(TABLES[number]) for number in ("7.1", "7.2")]
        shown = [sum(line.printed[column][k](6) for line in sums) for k in (0, 1)]
        found = [sum(line.traced[column][k](6) for line in sums) for k in (0, 1)]
        assert tuple(shown) == printed
        assert all(a < b for a, b in zip(found, printed, strict=True))


# Printed values --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", TABLES)
def test_printed_rows_add_up_to_the_printed_total(number: str) -> None:
    """Printed rows add up to the printed totals, so errors in rows are also in the totals."""
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
    """Printed values for six joints in tables 5.3 and 6.2 are those of the formulas.

    The exception is Walker and Orin, where 601 is printed instead of 598.
    """
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
    found = entry(BY_METHOD[0], BY_METHOD[0].rows[-1])
    assert tuple(map(str, found.program or ())) == ("93n-108", "81n-102")
    assert found.traced is not None
    assert found.six["general"] == tuple(p(6) for p in found.traced)
    assert found.six["mixed"] < found.six["right"] < found.six["general"]


def test_algorithm_5_6_takes_less_than_its_program() -> None:
    """Algorithm 5.6 takes as much as its program per link, and less at the ends."""
    program = fitted(PROGRAMS["5.3", "algorithm 5.6"], links)
    traced = growth("inverse_dynamics", "newton-euler-tensor")
    assert traced is not None
    for ours, theirs in zip(traced, program, strict=True):
        assert ours.coefficients[1] == theirs.coefficients[1]
        assert ours.coefficients[0] < theirs.coefficients[0]


def test_eulers_equation_alone() -> None:
    """Euler's equation takes fewer operations than printed, because of the first link.

    The printed counts are 24(n-1)+8 and 18(n-1)+2 by vectors, 15(n-1)+5 and 15(n-1)+3 by tensors.
    """
    for n in range(2, 13):
        vectors = by_equation("inverse_dynamics", "newton-euler-vector", n, "general")["5.2.23f"]
        tensors = by_equation("inverse_dynamics", "newton-euler-tensor", n, "general")["5.3.7g"]
        assert vectors == (24 * (n - 1) + 1, 18 * (n - 1))
        assert tensors == (15 * (n - 1) + 2, 15 * (n - 1) + 1)


def test_what_the_closed_form_of_generalized_links_spends() -> None:
    """Products and sums for six joints, by equation, are those stated in the notes of table 5.3."""
    found = by_equation("inverse_dynamics", "vukobratovic", 6, "general")
    parts = (("2.3.6",), ("5.2.20a, 5.2.20b",), ("5.2.19b",), ("5.2.19a",), ("5.2.19c",))
    parts += (("D of 5.2.17", "C of 5.2.17", "G of 5.2.17"),)
    counts = [tuple(sum(found[name][k] for name in part) for k in (0, 1)) for part in parts]
    assert counts == [(152, 97), (339, 365), (856, 613), (181, 128), (22, 5), (162, 216)]
    assert tuple(map(sum, zip(*counts, strict=True))) == (1712, 1424)


def test_a_spatial_link_takes_the_printed_products_where_its_offset_has_two_entries() -> None:
    """A link with offset (a, 0, d) takes 130 and 102 operations (printed: 130 and 101).

    A link with three nonzero offsets takes six more of each.
    """
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
