"""Check programs written as in Balafoutis and Patel (1991): results and operation counts.

The programs share no code with the library, so each verifies the other. If a count differs from the
printed one, module `slips` states the exact difference for any number of joints.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from building.published import BY_EQUATION, BY_METHOD, Polynomial
from building.published.featherstone import TABLE_10_1
from building.published.printed import BY_METHOD as PROGRAMS
from building.published.printed import BY_TABLE, Link, Program, Sheet, State, count, fitted
from building.published.printed.counting import (
    Live,
    apply,
    cross,
    skew_product,
    symmetric_product,
)
from building.published.printed.mass_matrix import solve
from building.published.printed.newton_euler import moment, rate_tensor
from building.published.printed.slips import ALONE, METHODS, ROWS
from building.published.tables import Twists, arm, links

TWISTS: tuple[Twists, ...] = ("general", "right", "mixed")
INVERSE = {
    **{k: p for k, p in PROGRAMS.items() if k[0] == "5.3"},
    ("5.2", "table"): BY_TABLE["5.2"],
}


def state(n: int) -> State:
    return State(*np.random.default_rng(n).normal(size=(3, n)).tolist())


def run(program: Program, n: int, twists: Twists) -> tuple[object, tuple[np.ndarray, ...]]:
    x = state(n)
    return program(links(n, twists), x, Sheet()), tuple(map(np.array, (x.q, x.qd, x.qdd)))


def close(found: object, expected: np.ndarray) -> None:
    values = np.array([float(v) for v in found])  # type: ignore[attr-defined]
    assert np.max(np.abs(values - expected)) < 1e-13 * max(1.0, float(np.max(np.abs(expected))))


# Results ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("twists", TWISTS)
@pytest.mark.parametrize("program", list(INVERSE.values()))
def test_inverse_dynamics(program: Program, twists: Twists) -> None:
    for n in (2, 5):
        found, (q, qd, qdd) = run(program, n, twists)
        close(found, arm(n, twists).inverse_dynamics(q, qd, qdd))


@pytest.mark.parametrize("twists", TWISTS)
@pytest.mark.parametrize("key", [k for k in PROGRAMS if k[0] in ("6.2", "6.3")], ids=" ".join)
def test_mass_matrix_and_forward_dynamics(key: tuple[str, str], twists: Twists) -> None:
    for n in (2, 5):
        found, (q, qd, tau) = run(PROGRAMS[key], n, twists)
        robot = arm(n, twists)
        if key[0] == "6.3":
            expected = robot.forward_dynamics(q, qd, tau)
            values = np.array([float(v) for v in found])  # type: ignore[attr-defined]
            worst = float(np.linalg.cond(robot.mass_matrix(q)))
            assert np.max(np.abs(values - expected)) < 1e-14 * worst * np.max(np.abs(expected))
            continue
        D = robot.mass_matrix(q)
        assert len(found) == n * (n + 1) // 2  # type: ignore[arg-type]
        close(found.values(), np.array([D[place] for place in found]))  # type: ignore[attr-defined]


@pytest.mark.parametrize("twists", TWISTS)
def test_sensitivities(twists: Twists) -> None:
    for n in (2, 5):
        found, (q, qd, qdd) = run(BY_TABLE["7.1"], n, twists)
        expected = arm(n, twists).inverse_dynamics_sensitivities(q, qd, qdd)
        for entries, matrix in zip(found, expected, strict=True):  # type: ignore[call-overload]
            assert len(entries) == n * n
            close(entries.values(), np.array([matrix[place] for place in entries]))


# Counts, row by row ----------------------------------------------------------------------------


def by_twists(twists: Twists) -> Callable[[int], Sequence[Link]]:
    return lambda n: links(n, twists)


GENERAL, RIGHT = by_twists("general"), by_twists("right")


@pytest.mark.parametrize("table", BY_EQUATION, ids=lambda table: table.number)
def test_every_row_is_met_or_differs_by_its_slip(table) -> None:
    for row in table.rows:
        slip = ROWS.get((table.number, row.equation))
        for arms, column in ((GENERAL, "general"), (RIGHT, "right")):
            found = fitted(BY_TABLE[table.number], arms, {row.equation})
            extra = getattr(slip, column) if slip else ("0", "0")
            expected = [
                Polynomial.read(a) + Polynomial.read(b)
                for a, b in zip(getattr(row, column), extra, strict=True)
            ]
            assert list(found) == expected, (row.equation, column)


def test_rows_that_are_met() -> None:
    """All rows of table 5.1 and most rows of the other tables agree with the printed counts.

    The remaining differences have a stated reason.
    """
    rows = {(t.number, row.equation) for t in BY_EQUATION for row in t.rows}
    assert set(ROWS) <= rows
    assert not any(number == "5.1" for number, _ in ROWS)
    assert all(
        slip.reason and (slip.general, slip.right) != (("0", "0"),) * 2 for slip in ROWS.values()
    )
    assert {number: sum(key[0] == number for key in ROWS) for number in BY_TABLE} == {
        "5.1": 0,
        "5.2": 4,
        "6.1": 3,
        "7.1": 4,
        "7.2": 4,
    }


def test_a_parallel_second_axis_takes_less_and_print_is_between() -> None:
    """In table 5.2, printed counts are means of those for twists of 90 and 0 degrees.

    This applies to the second link, in the column for right angles.
    """
    first, second = links(2, "right")
    printed = {row.equation: row.right for row in BY_EQUATION[1].rows}
    ninety, zero = (
        count(BY_TABLE["5.2"], [first, replace(second, alpha=alpha)]).counts
        for alpha in (second.alpha, 0.0)
    )
    assert [ninety[name] for name in ("5.3.45a", "5.3.45b")] == [(2, 0), (4, 2)]
    assert [zero[name] for name in ("5.3.45a", "5.3.45b")] == [(0, 1), (0, 1)]
    for name in ("5.3.45a", "5.3.45b"):
        mean = tuple(math.ceil((a + b) / 2) for a, b in zip(ninety[name], zero[name], strict=True))
        assert mean == tuple(Polynomial.read(text)(2) for text in printed[name])


def test_unit_costs_that_the_book_states() -> None:
    """Costs of operations on vectors and tensors are those of sections 5.3.2 and 6.4."""
    sheet, (plain, right) = Sheet(), (links(1, twists)[0] for twists in ("general", "right"))

    def new() -> Live:
        return sheet.live(0.3)

    def taken(made: Callable[[], object]) -> tuple[int, int]:
        sheet.counts.clear()
        made()
        return sheet.whole()

    v, w = ((new(), new(), new()) for _ in range(2))
    tensor = rate_tensor(v, w)
    six = (new(), new(), new(), new(), new(), new())
    full = tuple((new(), new(), new()) for _ in range(3))
    general, square = (link.turn(0.4, sheet) for link in (plain, right))
    assert taken(lambda: general.out(v)) == taken(lambda: general.back(v)) == (8, 4)
    assert taken(lambda: square.out(v)) == taken(lambda: square.back(v)) == (4, 2)
    assert taken(lambda: rate_tensor(v, w)) == (6, 9)
    assert taken(lambda: moment(tensor, tensor)) == (15, 15)
    assert taken(lambda: skew_product(v, w)) == (9, 3)
    assert taken(lambda: symmetric_product(v, w)) == (9, 9)
    assert taken(lambda: square.symmetric(six, square.double())) == (11, 11)
    assert taken(lambda: general.symmetric(six, general.double())) == (21, 18)
    assert taken(lambda: general.tensor(full)) == (33, 32)
    assert taken(lambda: square.tensor(full)) == (18, 18)
    assert taken(lambda: general.last(six)) == (9, 10)
    assert taken(lambda: square.last(six)) == (5, 6)


def printed(number: str, equation: str) -> dict[str, np.ndarray]:
    """Return the coefficients of n^0, n^1, n^2 of a printed row, as products and sums."""
    table = next(table for table in BY_EQUATION if table.number == number)
    row = next(row for row in table.rows if row.equation == equation)
    return {name: coefficients(getattr(row, name)) for name in ("general", "right")}


def coefficients(texts: Sequence[str]) -> np.ndarray:
    rows = [[float(c) for c in Polynomial.read(text).coefficients] for text in texts]
    return np.array([row + [0.0] * (3 - len(row)) for row in rows])


def extra(number: str, equation: str, column: str) -> np.ndarray:
    """Return the coefficients of program less print."""
    return coefficients(getattr(ROWS[number, equation], column))


ROTATED = np.array([4, 2])
"""Products and sums that a twist of 90 degrees saves when a vector is rotated."""


@pytest.mark.parametrize(
    ("number", "equation", "column", "vectors"),
    [("5.2", "5.3.46a", "right", [-1, 1, 0]), ("6.1", "6.3.29a", "general", [-2, 1, 0])],
)
def test_misprints(number: str, equation: str, column: str, vectors: list[int]) -> None:
    """With the corrected number, right angles save 4 and 2 for each rotated vector."""
    row, saved = printed(number, equation), np.outer(ROTATED, vectors)
    assert not np.array_equal(row["general"] - row["right"], saved)
    row[column] = row[column] + extra(number, equation, column)
    assert np.array_equal(row["general"] - row["right"], saved)


def test_printed_rows_consist_of_unit_costs() -> None:
    """(6.3.29c) takes 9 + 21 products and 9 + 18 + 12 sums, or 11 and 11 for the rotation.

    (7.3.18d) takes four products of skew-symmetric or general tensors, 27 sums of entries, and a
    rotation whose cost the book does not state. Its first link takes two products of the third row
    with the tensor or a vector, three entries of the other terms, and three sums. The first link
    takes 9 and 10 operations for the last entry in (6.3.29c), in addition to the same products and
    7 sums. In (7.3.18c), it takes 15 and 5 for the last entry, and 3 and 3 for the other terms.
    """
    for number, equation in SYMMETRIC.items():
        row = printed(number, equation)
        assert row["general"][:, 1].tolist() == [9 + 21, 9 + 18 + 12]
        assert row["right"][:, 1].tolist() == [9 + 11, 9 + 11 + 12]
        for column in row:
            if (number, equation) in ROWS:
                assert not extra(number, equation, column)[:, 1:].any()
    row, other = printed("7.1", "7.3.18d"), np.array([9 + 9 + 18, 3 + 3 + 9 + 27])
    assert (row["general"][:, 1] - other).tolist() == [33, 32]
    assert (row["right"][:, 1] - other).tolist() == [15, 21]
    assert ("7.1", "7.3.18c") not in ROWS
    assert extra("7.1", "7.3.18d", "right")[:, 1].tolist() == [18 - 15, 18 - 21]
    first = {number: printed(number, name) for number, name in SYMMETRIC.items()}
    assert (first["6.1"]["general"] @ [1, 1, 1] + [30, 39]).tolist() == [9 + 9, 9 + 7 + 10]
    for column in first["7.1"].values():
        assert column.sum(axis=1).tolist() == [15 + 3, 5 + 3]
    for column in row.values():
        assert column.sum(axis=1).tolist() == [9 + 3 + 3 * 2, 6 + 2 + 3 * 1 + 3]


SYMMETRIC = {"6.1": "6.3.29c", "7.1": "7.3.18c"}
"""Equations that rotate a symmetric tensor, by table."""


def test_unit_costs_explain_differences_of_table_7_1() -> None:
    """Differences in (7.3.18f), (g) and (k) are those of cross products and sums of vectors."""
    sheet = Sheet()

    def taken(made: Callable[[], object]) -> np.ndarray:
        sheet.counts.clear()
        made()
        return np.array(sheet.whole())

    x, y, z = (sheet.live(v) for v in (0.3, 0.4, 0.5))
    flat, whole, S = (x, y, 0), (x, y, z), ((x, y, z), (y, z, x), (z, x, y))
    across, over = taken(lambda: cross(whole, flat)), taken(lambda: cross(whole, whole))
    per_link = {
        "7.3.18f": np.add(across, (0, 2)),
        "7.3.18g": over + across + (0, 3 + 3 + 2),
        "7.3.18k": taken(lambda: apply(S, whole))
        + taken(lambda: apply(S, flat))
        + across
        + (0, 3 + 3 + 3 + 2),
    }
    for equation, expected in per_link.items():
        row, more = printed("7.1", equation), extra("7.1", equation, "general")
        assert (row["general"] + more)[:, 1].tolist() == expected.tolist(), equation
    assert not any(printed("7.1", "7.3.18f")["general"][1] - [-1, 1, 0])


def test_other_rows_confirm_differences_for_pairs_of_joints() -> None:
    """Rows that evaluate the same expression for each pair or joint have different counts.

    (6.3.30) equals (7.3.19a) and (d) for each of n^2/2 pairs; (7.3.19l) equals (7.3.18n). The first
    joint in (6.3.30b) is printed as 4 and 3 (2 and 2 at right angles), and takes 9 and 8 (8 and 7).
    """
    for column, near, whole in (("general", [4, 3], [9, 8]), ("right", [2, 2], [8, 7])):
        pair = printed("6.1", "6.3.30b")[column] + extra("6.1", "6.3.30b", column)
        same = printed("7.2", "7.3.19d")[column]
        assert (pair[:, 2] == same[:, 2]).all()
        entries = printed("7.2", "7.3.19l")[column] + extra("7.2", "7.3.19l", column)
        assert (2 * entries[:, 2] == printed("7.1", "7.3.18n")[column][:, 1]).all()
        row = printed("6.1", "6.3.30b")[column]
        assert (row @ [1, 2, 4]).tolist() == near
        first = row + extra("6.1", "6.3.30b", column)
        assert (first @ [1, 2, 4]).tolist() == whole


@pytest.mark.parametrize("equation", ["7.3.19e", "7.3.19f", "7.3.19g", "7.3.18c", "7.3.18d"])
def test_first_joint_is_printed_as_for_general_twists(equation: str) -> None:
    """The printed counts of the first joint do not depend on the twists in tables 7.1 and 7.2."""
    number, joints = ("7.2", 2) if ".19" in equation else ("7.1", 1)
    row = printed(number, equation)
    general, right = (row[name] @ [1, joints, joints**2] for name in ("general", "right"))
    assert (general == right).all()


# Counts of whole methods -----------------------------------------------------------------------

MET = {
    ("5.3", "algorithm 5.7"): (True, True),
    ("5.3", "the same, optimised"): (True, False),
    ("5.3", "algorithm 5.6"): (True, True),
    ("5.3", "Hollerbach, 4x4"): (False, True),
    ("5.3", "Hollerbach, 3x3"): (False, True),
    ("6.2", "Featherstone"): (True, True),
}
"""Formulas that agree with the printed ones, with flags for products and sums."""


@pytest.mark.parametrize("key", MET, ids=" ".join)
def test_formulas_that_are_met(key: tuple[str, str]) -> None:
    table = next(table for table in BY_METHOD if table.number == key[0])
    formula = next(row for row in table.rows if row.author == key[1])
    found = fitted(PROGRAMS[key], GENERAL)
    same = tuple(a == Polynomial.read(b) for a, b in zip(found, formula.counts, strict=True))
    assert same == MET[key]


@pytest.mark.parametrize(
    ("key", "difference"),
    [
        (("5.3", "Uicker, Kahn"), (66271 - 70790, 51548 - 54391)),
        (("5.3", "Waters"), (6, 0)),
        (("5.3", "Hollerbach, 4x4"), (20 * 6, 0)),
        (("5.3", "Hollerbach, 3x3"), (17 * 5 + 10, 0)),
        (("5.3", "Luh, Walker, Paul"), (852 - 611, 738 - 462)),
        (("5.3", "Featherstone"), (35, 28)),
        (("5.3", "Vukobratovic, Li, Kircanski"), (-134, -116)),
        (("6.2", "Walker, Orin"), (80, 74)),
        (("6.2", "Angeles, Ma"), (59, 114)),
        (("6.2", "algorithm 6.2"), (-25, -51)),
        (("6.3", "algorithms 6.2 and 5.7"), (-25, -49)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value[0], str) else "",
)
def test_print_less_program_for_six_joints(
    key: tuple[str, str], difference: tuple[int, int]
) -> None:
    table = next(table for table in BY_METHOD if table.number == key[0])
    formula = next(row for row in table.rows if row.author == key[1])
    printed = [Polynomial.read(text)(6) for text in formula.counts]
    found = count(PROGRAMS[key], links(6)).whole()
    assert tuple(a - b for a, b in zip(printed, found, strict=True)) == difference
    assert METHODS[key[0]][key[1]]


def test_algorithm_5_3_takes_what_another_count_of_it_has() -> None:
    """Algorithm 5.3 takes 117n-91 and 90n-78 operations, as in an independent count."""
    found = fitted(PROGRAMS["5.3", "Luh, Walker, Paul"], GENERAL)
    assert list(found) == [Polynomial.read("117n-91"), Polynomial.read("90n-78")]


def test_algorithm_5_4_takes_the_printed_products_for_each_link() -> None:
    products, sums = fitted(PROGRAMS["5.3", "Featherstone"], GENERAL)
    assert products.coefficients[1] == Polynomial.read("130n-68").coefficients[1]
    assert sums.coefficients[1] == Polynomial.read("101n-56").coefficients[1] + 1


def test_a_step_of_featherstones_composite_bodies_is_two_screws() -> None:
    """Each step takes 22 + 19 products, and 19 + 17 sums and 10 for the next link."""
    counts = [count(PROGRAMS["6.2", "Featherstone"], links(n)).counts["X' I X"] for n in (4, 3)]
    step = tuple(a - b for a, b in zip(*counts, strict=True))
    assert step == (22 + 19, 19 + 17 + 10)


def test_bias_forces_take_one_sum_less_for_each_joint() -> None:
    """Without joint accelerations, a link of algorithm 5.4 takes 130 products and 101 sums."""
    program = PROGRAMS["5.3", "Featherstone"]
    for bias, expected in ((False, [130, 102]), (True, [130, 101])):
        found = fitted(partial(program, bias=bias), GENERAL)
        assert [p.coefficients[1] for p in found] == expected


def test_every_row_has_a_program_or_the_reason_why_not() -> None:
    for table in BY_METHOD:
        for row in table.rows:
            reason = ALONE.get(table.number, {}).get(row.author, "")
            assert bool(reason) != ((table.number, row.author) in PROGRAMS), row.author


def test_linear_systems_take_what_table_6_3_adds() -> None:
    """A linear system takes the printed numbers of operations: 86 and 65 for n = 6.

    They are n^3/6 + 3n^2/2 - 2n/3 products and quotients, and n^3/6 + n^2 - 7n/6 sums.
    """
    for n in range(1, 9):
        sheet, A = Sheet(), np.random.default_rng(n).normal(size=(n, n))
        D, b = A @ A.T + np.eye(n), A[0]
        entries = {(i, j): sheet.live(D[i, j]) for i in range(n) for j in range(i, n)}
        found = solve(entries, [sheet.live(f) for f in b])
        assert np.allclose([float(v) for v in found], np.linalg.solve(D, b), rtol=1e-9)
        assert sheet.whole() == ((n**3 + 9 * n**2 - 4 * n) // 6, (n**3 + 6 * n**2 - 7 * n) // 6)


def test_table_6_3_is_made_of_the_other_tables() -> None:
    """Table 6.3 is a sum of rows of other tables, and of other authors' formulas.

    Featherstone's bias forces take one sum less for each joint, because the accelerations are zero.
    Walker and Orin's inverse dynamics takes 137n-22 and 101n-11 operations. Algorithms 6.2 and 5.7
    together take 956 and 790.
    """
    bias = [Polynomial.read(text)(6) for text in ("137n-22", "101n-11")]
    six = {
        (row.algorithm, row.source): tuple(row.at(6)) for row in TABLE_10_1 if "1987" in row.source
    }
    RNEA, CRBA, ABA = (six[name, "Featherstone 1987"] for name in ("RNEA", "CRBA", "ABA"))
    printed = {row.author: tuple(map(int, row.counts)) for row in BY_METHOD[2].rows}
    assert printed["Featherstone, articulated bodies"] == ABA
    assert printed["Featherstone, composite bodies"] == (
        RNEA[0] + CRBA[0] + 86,
        RNEA[1] + CRBA[1] + 65 - 6,
    )
    assert printed["algorithms 6.2 and 5.7"] == (420 + 450 + 86, 339 + 386 + 65)
    assert printed["Angeles, Ma"] == (746 + 521 + 86, 629 + 435 + 65 + 36)
    assert printed["Walker, Orin"] == (741 + bias[0] + 86, 601 + bias[1] + 65)
