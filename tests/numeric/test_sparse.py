"""Sparse factors of a matrix H with the pattern of a tree (Featherstone 2008, chapter 6).

Expected values are dense factors and the operation counts of table 6.6.
"""

from typing import Any, ClassVar

import numpy as np
import pytest
from building.published.featherstone import TABLE_6_6, Branching
from support import close, raises

import chasles
from chasles.numeric import sparse

CHAIN, STAR = (-1, 0, 1, 2, 3), (-1, -1, -1)


def random_tree(n: int, seed: int) -> tuple[int, ...]:
    """Return random parents of n nodes, in deep or wide trees or several trees."""
    rng = np.random.default_rng(seed)
    reach = int(rng.integers(1, n + 1))
    return tuple(int(rng.integers(max(-1, i - reach), i)) for i in range(n))


def random_matrix(parents: tuple[int, ...], seed: int, lead: tuple[int, ...] = ()) -> np.ndarray:
    """Return a positive definite H of a tree: the sum of J' J, with J of a body's ancestors."""
    rng, n = np.random.default_rng(seed), len(parents)
    H = np.zeros((*lead, n, n))
    for i in range(n):
        J, k = np.zeros((*lead, 6, n)), i
        while k >= 0:
            J[..., k] = rng.normal(size=(*lead, 6))
            k = parents[k]
        H += np.swapaxes(J, -1, -2) @ J
    return H


TREES = [CHAIN, STAR, (), (-1,), *(random_tree(n, n) for n in (2, 7, 13, 30))]


@pytest.mark.parametrize("parents", TREES, ids=str)
def test_factors_are_those_of_dense_matrices_without_fill_in(parents: tuple[int, ...]) -> None:
    """L' is the reversed Cholesky factor of the reversed H, and has no fill-in."""
    H, n = random_matrix(parents, 3), len(parents)
    L = sparse.factor_ltl(H, parents)
    close(L, np.linalg.cholesky(H[::-1, ::-1])[::-1, ::-1].T, 1e-9)
    unit, D = sparse.factor_ltdl(H, parents)
    close(L.T @ L, H, 1e-12)
    close(unit.T @ np.diag(D) @ unit, H, 1e-12)
    close(unit * np.sqrt(D)[:, None], L, 1e-9)
    np.testing.assert_array_equal(np.diag(unit), np.ones(n))
    mask = sparse.pattern(parents)
    np.testing.assert_array_equal(L != 0.0, mask & np.tri(n, dtype=bool))
    np.testing.assert_array_equal(unit != 0.0, mask & np.tri(n, dtype=bool))
    np.testing.assert_array_equal(H != 0.0, mask)


@pytest.mark.parametrize("lead", [(), (4,), (2, 3)], ids=str)
def test_products_and_solutions(lead: tuple[int, ...]) -> None:
    parents = random_tree(11, 5)
    H = random_matrix(parents, 6, lead)
    x = np.random.default_rng(7).normal(size=(3, 11) if lead == (2, 3) else 11)
    L = sparse.factor_ltl(H, parents)
    unit, D = sparse.factor_ltdl(H, parents)
    wide = np.broadcast_to(x, (*lead, 11))

    def dense(A: np.ndarray) -> Any:
        return np.einsum("...ij,...j->...i", A, wide)

    transposed = np.swapaxes(L, -1, -2)
    close(sparse.multiply_lower(L, x, parents), dense(L), 1e-13)
    close(sparse.multiply_lower_transposed(L, x, parents), dense(transposed), 1e-13)
    close(sparse.multiply_symmetric(H, x, parents), dense(H), 1e-13)
    for A, solve in ((L, sparse.solve_lower), (transposed, sparse.solve_lower_transposed)):
        close(solve(L, x, parents), np.linalg.solve(A, wide[..., None])[..., 0], 1e-9)
    solved = np.linalg.solve(H, wide[..., None])[..., 0]
    close(sparse.solve_ltl(L, x, parents), solved, 1e-8)
    close(sparse.solve_ltdl(unit, D, x, parents), solved, 1e-8)
    assert np.array_equal(H, random_matrix(parents, 6, lead))  # inputs are unchanged


def test_the_upper_triangle_is_never_read() -> None:
    """The entries of the upper triangle do not matter (table 6.3)."""
    parents = random_tree(9, 8)
    H, n = random_matrix(parents, 9), 9
    L, (_, D) = sparse.factor_ltl(H, parents), sparse.factor_ltdl(H, parents)
    spoiled = H + np.triu(np.full((n, n), 7.0), 1)
    np.testing.assert_array_equal(sparse.factor_ltl(spoiled, parents), L)
    np.testing.assert_array_equal(sparse.factor_ltdl(spoiled, parents)[1], D)
    junk, b = np.triu(np.full((n, n), 7.0), 1), np.arange(9.0)
    for solve in (sparse.solve_lower, sparse.solve_lower_transposed, sparse.multiply_lower):
        np.testing.assert_array_equal(solve(L + junk, b, parents), solve(L, b, parents))


class Counting(np.ndarray):
    """An array that counts the entries of results by operation."""

    counts: ClassVar[dict[str, int]] = {}

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **more: Any) -> Any:
        plain = [np.asarray(a) if isinstance(a, Counting) else a for a in given]
        if "out" in more:
            more["out"] = tuple(np.asarray(a) for a in more["out"])
        found = getattr(ufunc, method)(*plain, **more)
        self.counts[ufunc.__name__] = self.counts.get(ufunc.__name__, 0) + np.size(found)
        return np.asarray(found).view(Counting)


@pytest.mark.parametrize("kind", TABLE_6_6)
@pytest.mark.parametrize("parents", TREES[:2] + TREES[4:], ids=str)
def test_factors_cost_what_table_6_6_says(
    parents: tuple[int, ...], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scalar operations, counted at run time, agree with table 6.6."""
    given = sparse._matrix

    def counting(*arguments: Any) -> Any:
        L, rows = given(*arguments)
        return L.view(Counting), rows

    H = random_matrix(parents, 1)
    monkeypatch.setattr(sparse, "_matrix", counting)
    monkeypatch.setattr(Counting, "counts", found := dict[str, int]())
    {"LTL": sparse.factor_ltl, "LTDL": sparse.factor_ltdl}[kind](H, parents)
    printed = TABLE_6_6[kind]["factor"].on(Branching(parents))
    assert found.get("multiply", 0) == printed.multiplications
    assert found.get("subtract", 0) == printed.additions
    assert found.get("divide", 0) == printed.divisions
    assert found.get("sqrt", 0) == printed.square_roots


@pytest.mark.parametrize("parents", TREES, ids=str)
def test_numbers_of_a_tree(parents: tuple[int, ...]) -> None:
    """Operation counts agree with Eq 6.26 and 6.27, evaluated from the pattern."""
    counts, mask = sparse.operations(parents), sparse.pattern(parents)
    d = np.count_nonzero(np.tril(mask), axis=1)
    assert np.sum(d - 1) == counts.D1
    assert np.sum(d * (d - 1) // 2) == counts.D2
    assert counts.entries == np.count_nonzero(mask)


def test_chains_have_the_numbers_of_a_dense_matrix() -> None:
    """Counts of a chain are those of a dense matrix (Eq 6.28).

    D1 is (n^2 - n) / 2 and D2 is (n^3 - n) / 6.
    """
    for n in (1, 2, 5, 12):
        counts = sparse.operations(range(-1, n - 1))
        assert counts == (n, (n * n - n) // 2, (n**3 - n) // 6)


def test_expanded_parents() -> None:
    """Joints with several coordinates become chains; fixed joints are skipped (table 6.4)."""
    assert sparse.expanded_parents([-1, 0, 0, 2], [6, 1, 0, 2]) == (-1, 0, 1, 2, 3, 4, 5, 5, 7)
    robot = chasles.robots.quadruped()
    bodies = robot.model.bodies
    parents = sparse.expanded_parents(
        [body.parent for body in bodies], [body.joint.nv for body in bodies]
    )
    q = robot.random(0, size=3)
    H = robot.mass_matrix(q)
    L = sparse.factor_ltl(H, parents)
    close(L, robot.ltl_factor(q), 1e-10)
    unit, D = sparse.factor_ltdl(H, parents)
    theirs = robot.ltdl_factors(q)
    close(unit, theirs[0], 1e-10)
    close(D, theirs[1], 1e-10)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: sparse.factor_ltl(np.eye(2), [0, 1]), "E-MATH-342"),
        (lambda: sparse.factor_ltl(np.eye(2), [-1, 1]), "E-MATH-342"),
        (lambda: sparse.factor_ltl(np.eye(2), [-2, 0]), "E-MATH-342"),
        (lambda: sparse.factor_ltl(np.eye(2), [-1.0, 0.0]), "E-MATH-342"),
        (lambda: sparse.factor_ltl(np.eye(2), -1), "E-MATH-342"),
        (lambda: sparse.factor_ltl(np.eye(3), [-1, 0]), "E-MATH-343"),
        (lambda: sparse.factor_ltdl(np.full((2, 2), np.nan), [-1, 0]), "E-MATH-343"),
        (lambda: sparse.factor_ltl([[2.0, 1.0], [1.0, 2.0]], [-1, -1]), r"E-MATH-344 [1, 0]"),
        (lambda: sparse.solve_lower(np.eye(2), [1.0], [-1, 0]), "E-MATH-345"),
        (lambda: sparse.solve_lower(np.ones((3, 1, 1)), np.ones((2, 1)), [-1]), "E-MATH-346"),
        (lambda: sparse.factor_ltl([[1.0, 2.0], [2.0, 1.0]], [-1, 0]), "E-MATH-347"),
        (lambda: sparse.factor_ltdl(np.zeros((2, 2)), [-1, 0]), "E-MATH-347"),
        (lambda: sparse.solve_ltdl(np.eye(2), [1.0], [1.0, 2.0], [-1, 0]), "E-MATH-341"),
        (lambda: sparse.expanded_parents([-1, 0], [1]), "E-MATH-340"),
        (lambda: sparse.expanded_parents([-1, 0], [1, -1]), "E-MATH-340"),
    ],
)
def test_bad_input(call: Any, code: str) -> None:
    with raises(code):
        call()
