"""Compare operation counts with table 10.1 and Eq 10.12 of Featherstone (2008)."""

from functools import cache
from itertools import count

import numpy as np
import pytest
from building.published.featherstone import (
    SAME_ALGORITHM,
    TABLE_10_1,
    Branching,
    ChainCost,
    best,
    composite_body,
    factor_and_solve,
)
from building.published.polynomial import Polynomial
from support import raises

import chasles
from chasles.functions.cost import Cost, Rules
from chasles.mathematics.linear import factor_ltdl
from chasles.model.spaces import tree_places
from chasles.robots import general_chain, general_tree, random_tree

SIZES = range(2, 13)
METHODS = {"RNEA": "inverse_dynamics", "CRBA": "mass_matrix", "ABA": "forward_dynamics"}


@cache
def chain_cost(n: int, function: str, method: str, rules: Rules) -> Cost:
    """Return the cost of a function for a general chain of n joints."""
    return chasles.cost(general_tree(n, 1), function, method=method, rules=rules)


def total(cost: Cost) -> int:
    """Return the number of products, quotients and sums, as in table 10.1."""
    return cost.flops + cost.divisions


def row(algorithm: str, source: str) -> ChainCost:
    return next(r for r in TABLE_10_1 if (r.algorithm, r.source) == (algorithm, source))


def grown(function: str, method: str, rules: Rules) -> list[Polynomial]:
    """Return products and sums of a chain as polynomials, fitted to more counts than terms."""
    costs = {n: chain_cost(n, function, method, rules) for n in SIZES[1:]}
    return [
        Polynomial.through({n: getattr(cost, name) for n, cost in costs.items()})
        for name in ("multiplications", "additions")
    ]


def test_every_algorithm_is_traced() -> None:
    assert {key[0] for key in SAME_ALGORITHM} == set(METHODS)


@pytest.mark.parametrize("rules", ["book", "simplified"])
@pytest.mark.parametrize("key", SAME_ALGORITHM, ids=" ".join)
def test_traced_counts_are_polynomials_of_the_printed_degree(
    key: tuple[str, str], rules: Rules
) -> None:
    """Counts are exact polynomials, and their leading terms exceed the printed ones by at most 1.

    For composite bodies, the n^2 term is that of Eq 10.3, where 20 products and 12 sums transform a
    force to the parent.
    """
    printed = row(*key)
    for found, shown in zip(
        grown(*SAME_ALGORITHM[key], rules), (printed.m, printed.a), strict=True
    ):
        assert len(found.coefficients) == len(shown)
        if key[0] == "CRBA":
            assert found.coefficients[2] in (10, 6)
    slopes = [found.coefficients[-1] for found in grown(*SAME_ALGORITHM[key], rules)]
    assert sum(slopes) <= printed.m[-1] + printed.a[-1] + 1


@pytest.mark.parametrize("rules", ["book", "simplified"])
@pytest.mark.parametrize("key", SAME_ALGORITHM, ids=" ".join)
def test_an_algorithm_costs_no_more_than_printed(key: tuple[str, str], rules: Rules) -> None:
    function, method = SAME_ALGORITHM[key]
    printed = row(*key)
    for n in SIZES:
        found = chain_cost(n, function, method, rules)
        assert total(found) <= sum(printed.at(n)), f"{n} joints"


@pytest.mark.parametrize("function", METHODS.values())
@pytest.mark.parametrize("make", [lambda n: general_tree(n, 1), general_chain], ids=["GU", "D-H"])
def test_the_default_costs_less_than_the_best_printed(make, function: str) -> None:
    algorithm = next(name for name, known in METHODS.items() if known == function)
    for n in (2, 3, 6, 9, 12):
        assert total(chasles.cost(make(n), function)) < sum(best(algorithm).at(n)), f"{n} joints"


def test_the_frames_of_the_book_cost_what_it_says() -> None:
    """With three entries in every offset, algorithm 5.7 costs 93 and 81 per joint, as printed."""
    found = [
        chasles.cost(general_chain(n), "inverse_dynamics", method="augmented-tensor", rules="book")
        for n in (7, 8)
    ]
    slope = found[1].multiplications - found[0].multiplications
    assert (slope, found[1].additions - found[0].additions) == (93, 81)
    assert (best("RNEA").m[1], best("RNEA").a[1]) == (93, 81)


# Consistency of the printed formulas -------------------------------------------------------------


def test_printed_formulas_agree_on_a_chain() -> None:
    """For chains, Eq 10.12 equals Eq 10.3, and table 6.6 equals row F&S of table 10.1."""
    for n in range(1, 30):
        chain = Branching.even(n, 1)
        assert composite_body(chain) == best("CRBA").at(n)
        assert factor_and_solve(chain) == best("F&S").at(n)
        sums = chain.D0, chain.D1, chain.D2
        assert sums == (n - 1, n * (n - 1) // 2, n * (n * n - 1) // 6)  # Eq 6.28


@pytest.mark.parametrize("children", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [1, 7, 20])
def test_bounds_of_the_sums(children: int, n: int) -> None:
    """The sums satisfy the bounds in Eq 6.29 and 10.7 to 10.9.

    Each transform is used once for each body that its joint carries.
    """
    tree = Branching.even(n, children)
    depth = max(tree.depths)
    assert 0 <= tree.D0 <= n - 1
    assert 0 <= tree.D1 <= min(n * (n - 1) // 2, n * (depth - 1))
    assert 0 <= tree.D2 <= n * depth * (depth - 1) // 2
    assert len(tree.dh) + len(tree.general) == tree.D0
    assert sum(tree.beyond[i] for i in (*tree.dh, *tree.general)) == tree.D1


def test_freedoms_of_a_joint_are_a_chain() -> None:
    """A joint with several degrees of freedom counts as a chain of joints (section 6.5).

    In the book, lambda = (0, 1, 1, 2, 2, 3) with three degrees of freedom in joint 2 gives
    lambda' = (0, 1, 2, 3, 1, 4, 4, 5) and map = (0, 1, 4, 5, 6, 7, 8). The book counts from 1, and
    0 is the base.
    """
    book = Branching.expanded((-1, 0, 0, 1, 1, 2), (1, 3, 1, 1, 1, 1))
    assert tuple(p + 1 for p in book.parents) == (0, 1, 2, 3, 1, 4, 4, 5)
    welded = Branching.expanded((-1, 0, 1, 1), (6, 0, 1, 2))
    assert welded.parents == (-1, 0, 1, 2, 3, 4, 5, 5, 7)


@pytest.mark.parametrize("seed", range(3))
def test_mass_matrices_have_the_zeros_of_the_expanded_tree(seed: int) -> None:
    """M has at most n + 2 D1 nonzero entries, and its factor has at most n + D1."""
    robot = random_tree(10, seed, floating=bool(seed))
    model, order = robot.model, robot.model.in_tree_order
    parents = [order.index(p) if (p := model.bodies[i].parent) >= 0 else -1 for i in order]
    tree = Branching.expanded(parents, [model.bodies[i].joint.nv for i in order])
    held = np.eye(tree.n, dtype=bool)
    for i, p in enumerate(tree.parents):
        held[i] |= held[p] if p >= 0 else False
    assert np.count_nonzero(held) == tree.n + tree.D1
    M = np.empty((tree.n, tree.n))
    M[np.ix_(tree_places(model), tree_places(model))] = robot.mass_matrix(robot.random(seed=seed))
    assert not np.any(M[~(held | held.T)])
    assert np.count_nonzero(M[held]) > 0.8 * np.count_nonzero(held)
    L, _ = factor_ltdl(M.tolist())
    assert not np.any(np.array(L)[~held])


def test_the_seven_bodies_of_the_book() -> None:
    """The tree of figure 6.3 has D1 = 10 and D2 = 14; each of its four leaves adds 2 and 3."""
    tree = Branching.even(7, 2)
    assert (tree.D1, tree.D2) == (10, 14)
    before = Branching(tree.parents[:6])
    assert (tree.D1 - before.D1, tree.D2 - before.D2) == (2, 3)


def test_a_bush_of_single_joints_costs_nothing() -> None:
    assert composite_body(Branching((-1,) * 5)) == (0, 0)
    with raises("E-TABLE-001"):
        Branching((-1, 2))


@pytest.mark.parametrize(
    ("n", "mass_matrix", "solving"),
    [(7, (457, 453), (51, 34)), (15, (1301, 1217), (179, 130)), (31, (3341, 2985), (547, 418))],
)
def test_binary_trees(n: int, mass_matrix: tuple[int, int], solving: tuple[int, int]) -> None:
    """Costs of binary trees agree with values computed by hand.

    There are 2^(d-1) bodies at depth d. Half of the bodies that are attached to another body have a
    general transform.
    """
    tree = Branching.even(n, 2)
    assert composite_body(tree) == mass_matrix
    assert factor_and_solve(tree) == solving


def first(ahead) -> int:
    """Return the smallest number of joints, at least two, for which a condition holds."""
    return next(n for n in count(2) if ahead(n))


def test_crossovers_of_the_printed_formulas() -> None:
    """The crossovers are those of section 10.3.

    Articulated bodies are cheaper from 9 joints on, by a factor of 1.6 for 18 joints. Factoring and
    solving costs more than the mass matrix from 45 joints on, and more than RNEA from 19 on.
    """
    rnea, crba, solving, aba = (
        lambda n, name=name: sum(best(name).at(n)) for name in ("RNEA", "CRBA", "F&S", "ABA")
    )
    cubic = [rnea(n) + crba(n) + solving(n) for n in range(19)]
    assert first(lambda n: cubic[n] > aba(n)) == 9
    assert cubic[18] / aba(18) == pytest.approx(1.638, abs=1e-3)
    assert first(lambda n: solving(n) > crba(n)) == 45
    assert first(lambda n: solving(n) > rnea(n)) == 19


# Trees -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("children", [2, 3, 6])
def test_mass_matrix_of_trees_costs_no_more_than_eq_10_12(children: int) -> None:
    for n in (4, 7, 13):
        robot, printed = general_tree(n, children), composite_body(Branching.even(n, children))
        for options in ({"method": "spatial", "rules": "book"}, {"method": "spatial"}, {}):
            assert total(chasles.cost(robot, "mass_matrix", **options)) < sum(printed)


def test_the_tree_is_the_one_of_the_formula() -> None:
    """The robot has the parents for which the formulas are evaluated."""
    model = general_tree(13, 3).model
    names = [body.name for body in model.bodies]
    for i, p in enumerate(Branching.even(13, 3).parents):
        body = model.bodies[names.index(f"link{i + 1}")]
        assert (names[body.parent] if body.parent >= 0 else None) == (
            f"link{p + 1}" if p >= 0 else None
        )


@pytest.mark.parametrize("rules", ["book", "simplified"])
def test_articulated_bodies_overtake_the_mass_matrix(rules: Rules) -> None:
    """By counting, articulated bodies are cheaper from nine joints on, as in section 10.3."""
    for n in (8, 9):
        by_matrix, by_bodies = (
            total(chain_cost(n, "forward_dynamics", m, rules))
            for m in ("mass-matrix", "articulated-body")
        )
        assert (by_bodies < by_matrix) == (n == 9)
