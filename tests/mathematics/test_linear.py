"""Small vectors and matrices, and factorizations that preserve branch-induced sparsity."""

import numpy as np
import pytest
from building.published.featherstone import TABLE_6_6, Branching

from chasles.expr import RULES, Arena, Program, Scalar, Variable, interpret
from chasles.mathematics.linear import (
    Matrix,
    Symmetric,
    Vector,
    factor_ltdl,
    factor_ltl,
    invert_ltdl,
    invert_symmetric,
    multiply_lower,
    multiply_lower_transposed,
    multiply_symmetric,
    orthogonalize,
    solve_lower,
    solve_lower_transposed,
    solve_ltdl,
    solve_ltl,
)


def test_cross_and_skew(reference, rng):
    for _ in range(20):
        a, b = reference.vector(rng), reference.vector(rng)
        expected = np.cross(reference.dense(a), reference.dense(b))
        np.testing.assert_allclose(reference.dense(a.cross(b)), expected, rtol=1e-14, atol=1e-15)
        product = Matrix.skew(a) @ b
        assert product == a.cross(b)
        assert -Matrix.skew(a) == Matrix.skew(a).T
        assert a.dot(b) == pytest.approx(np.dot(list(a), list(b)), rel=1e-13)


def test_identities_of_the_cross_operator(reference, rng):
    """Table 2.1 of Featherstone (2008)."""
    a, b = reference.vector(rng), reference.vector(rng)
    E = reference.matrix(reference.rotation_matrix(rng))
    skew, dense = Matrix.skew, reference.dense
    np.testing.assert_allclose(dense(skew(a * 2.5)), 2.5 * dense(skew(a)))
    np.testing.assert_allclose(dense(skew(a + b)), dense(skew(a) + skew(b)))
    np.testing.assert_allclose(dense(skew(E @ a)), dense(E @ skew(a) @ E.T), atol=1e-14)
    outer = np.outer(list(b), list(a)) - np.outer(list(a), list(b))
    np.testing.assert_allclose(dense(skew(a.cross(b))), outer, atol=1e-14)
    product = skew(a) @ skew(b) - skew(b) @ skew(a)
    np.testing.assert_allclose(dense(skew(a.cross(b))), dense(product), atol=1e-14)


def test_matrix_algebra(reference, rng):
    A, B = rng.normal(size=(2, 4)), rng.normal(size=(4, 3))
    M, N = reference.matrix(A), reference.matrix(B)
    v = reference.vector(rng, 4)
    assert (M.shape, N.shape, M.T.shape) == ((2, 4), (4, 3), (4, 2))
    np.testing.assert_allclose(reference.dense(M @ N), A @ B, rtol=1e-13)
    np.testing.assert_allclose(reference.dense(M @ v), A @ list(v), rtol=1e-13)
    np.testing.assert_allclose(reference.dense(M + M * 2.0 - -M), 4.0 * A, rtol=1e-13)
    np.testing.assert_allclose(reference.dense(2.0 * M), 2.0 * A)
    assert M[1, 3] == A[1, 3]
    assert M.T.T == M
    assert Matrix.identity(4) @ v == v
    assert Matrix.zero(2, 5).shape == (2, 5)
    with pytest.raises(ValueError, match="zip"):
        M @ reference.vector(rng, 3)
    with pytest.raises(ValueError, match="zip"):
        M @ M


def test_symmetric_is_a_matrix(reference, rng):
    A, B = reference.symmetric(rng), reference.symmetric(rng)
    dense = reference.dense
    np.testing.assert_allclose(dense(A + B * 2.0 - B), dense(A) + dense(B))
    np.testing.assert_allclose(dense(-A), -dense(A))
    v = reference.vector(rng)
    np.testing.assert_allclose(dense(A @ v), dense(A) @ list(v))
    assert Symmetric.of(A.matrix()) == A
    assert dense(Symmetric.zero()).tolist() == np.zeros((3, 3)).tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda v, A, S: v + 1.0,
        lambda v, A, S: v * v,
        lambda v, A, S: v * A,
        lambda v, A, S: A * A,
        lambda v, A, S: A * v,
        lambda v, A, S: A + v,
        lambda v, A, S: A + 1.0,
        lambda v, A, S: A - v,
        lambda v, A, S: S + A,
        lambda v, A, S: S - A,
        lambda v, A, S: S * S,
        lambda v, A, S: A @ 2.0,
        lambda v, A, S: A @ S,
        lambda v, A, S: v @ v,
    ],
)
def test_operators_mean_one_thing(wrong):
    with pytest.raises(TypeError):
        wrong(Vector.zero(), Matrix.identity(), Symmetric.zero())


def test_sizes_must_agree():
    for combine in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a.dot(b)):
        with pytest.raises(ValueError, match="zip"):
            combine(Vector.zero(3), Vector.zero(4))
    with pytest.raises(ValueError, match="unpack"):
        Vector.zero(4).cross(Vector.zero(4))


# Factorization ----------------------------------------------------------------------------------


def _tree_matrix(rng, parents):
    """Return a positive definite matrix with the sparsity of a tree, and the pattern of its factor.

    H_ij is zero unless one of the bodies i and j supports the other.
    """
    n = len(parents)
    L = np.zeros((n, n))
    for i in range(n):
        L[i, i] = rng.uniform(0.5, 2.0)
        j = parents[i]
        while j >= 0:
            L[i, j] = rng.normal()
            j = parents[j]
    return L.T @ L, L != 0.0


TREES = {
    "chain": [-1, 0, 1, 2, 3, 4],
    "star": [-1, 0, 0, 0, 0],
    "forest": [-1, -1, 0, 1, 0, -1],
    "binary": [-1, 0, 0, 1, 1, 2, 2],
    "branches": [-1, 0, 1, 1, 3, 0, 5, 6, 5],
    "one": [-1],
}


@pytest.mark.parametrize("parents", TREES.values(), ids=TREES)
def test_factors_keep_the_zeros_of_branching(parents, rng):
    A, pattern = _tree_matrix(rng, parents)
    L, D = factor_ltdl(A.tolist())
    dense = np.array(L)
    np.testing.assert_allclose(dense.T @ np.diag(D) @ dense, A, rtol=1e-12, atol=1e-13)
    assert np.array_equal(np.diag(dense), np.ones(len(D)))
    assert np.array_equal(dense[~pattern], np.zeros((~pattern).sum()))  # exactly zero
    assert min(D) > 0.0


def _symbolic(parents):
    """Return a matrix of symbols with the sparsity of a tree, and its size.

    Only the lower triangle is used.
    """
    arena, n = Arena(RULES), len(parents)
    _, pattern = _tree_matrix(np.random.default_rng(0), parents)
    a = [
        [arena.input("A", i * n + j) if pattern[i, j] else 0.0 for j in range(n)] for i in range(n)
    ]
    return a, n


def _cost(arrays, values):
    """Count the operations that compute the values from inputs of the given sizes."""
    inputs = [Variable(name, (size,)) for name, size in arrays.items()]
    output = Variable("y", (len(values),))
    return Program.from_outputs("kernel", inputs, [(output, values)]).count


@pytest.mark.parametrize("parents", TREES.values(), ids=TREES)
def test_zeros_of_branching_cost_nothing(parents):
    """Factoring costs what table 6.6 says, except that divisions become products.

    Each product uses the reciprocal of a pivot, and each reciprocal is computed once if used.
    """
    a, n = _symbolic(parents)
    tree = Branching(tuple(parents))
    used = sum(depth > 1 for depth in tree.depths)
    _, pattern = _tree_matrix(np.random.default_rng(0), parents)
    factors = {"LTL": (factor_ltl(a), []), "LTDL": factor_ltdl(a)}
    for kind, (L, D) in factors.items():
        for i in range(n):
            for j in range(i):
                assert isinstance(L[i][j], Scalar) == bool(pattern[i, j])
        count = _cost({"A": n * n}, [x for row in L for x in row] + D)
        book = TABLE_6_6[kind]["factor"].on(tree)
        assert count.square_roots == book.square_roots
        assert book.divisions == tree.D1
        assert count.divisions == used <= tree.D1
        assert count.multiplications == book.multiplications + tree.D1
        assert count.additions == book.additions


KERNELS = {
    "L x, L' x": (multiply_lower, multiply_lower_transposed),
    "L^-1 x, L^-T x": (solve_lower, solve_lower_transposed),
    "H x": (multiply_symmetric,),
}


@pytest.mark.parametrize("parents", TREES.values(), ids=TREES)
@pytest.mark.parametrize("row", KERNELS)
@pytest.mark.parametrize("kind", TABLE_6_6)
def test_sparse_kernels_cost_what_table_6_6_says(kind, row, parents):
    a, n = _symbolic(parents)
    x = Vector(tuple(a[0][0].arena.input("x", k) for k in range(n)))
    unit = kind == "LTDL" and row != "H x"
    L = [[1.0 if unit and i == j else a[i][j] for j in range(i + 1)] for i in range(n)]
    book = TABLE_6_6[kind][row].on(Branching(tuple(parents)))
    for kernel in KERNELS[row]:
        count = _cost({"A": n * n, "x": n}, list(kernel(L, x)))
        # A quotient is a product with a reciprocal.
        assert count.divisions == book.divisions
        assert count.multiplications == book.multiplications + book.divisions
        assert count.additions == book.additions


@pytest.mark.parametrize("parents", TREES.values(), ids=TREES)
def test_solving_costs_what_table_6_6_says(parents):
    """Solving after factoring needs no further divisions, because reciprocals are reused."""
    a, n = _symbolic(parents)
    tree = Branching(tuple(parents))
    x = Vector(tuple(a[0][0].arena.input("x", k) for k in range(n)))
    factor_l, (unit, D) = factor_ltl(a), factor_ltdl(a)
    solutions = {"LTL": solve_ltl(factor_l, x), "LTDL": solve_ltdl(unit, D, x)}
    known = {"LTL": [y for row in factor_l for y in row], "LTDL": [y for r in unit for y in r] + D}
    for kind, solution in solutions.items():
        book = TABLE_6_6[kind]["solve"].on(tree)
        alone = _cost({"A": n * n}, known[kind])
        both = _cost({"A": n * n, "x": n}, [*known[kind], *solution])
        assert both.divisions == n
        assert both.multiplications - alone.multiplications == book.multiplications + book.divisions
        assert both.additions - alone.additions == book.additions


@pytest.mark.parametrize("parents", TREES.values(), ids=TREES)
def test_sparse_kernels_are_the_products_and_solutions(parents, rng, reference):
    """Kernels of table 6.5 agree with dense products for both factorizations.

    Entries above the diagonal are not read.
    """
    H, _ = _tree_matrix(rng, parents)
    n = len(parents)
    unit, D = factor_ltdl(H.tolist())
    b = rng.normal(size=n)
    x = Vector(tuple(b.tolist()))
    close = {"rtol": 1e-12, "atol": 1e-12 * np.linalg.cond(H)}
    for L in (factor_ltl(H.tolist()), unit):
        dense = np.array(L)
        spoiled = [[L[i][j] if j <= i else np.nan for j in range(n)] for i in range(n)]
        for kernel, expected in (
            (multiply_lower, dense @ b),
            (multiply_lower_transposed, dense.T @ b),
            (solve_lower, np.linalg.solve(dense, b)),
            (solve_lower_transposed, np.linalg.solve(dense.T, b)),
        ):
            np.testing.assert_allclose(reference.dense(kernel(spoiled, x)), expected, **close)
    lower = np.where(np.tri(n, dtype=bool), H, np.nan).tolist()
    np.testing.assert_allclose(reference.dense(multiply_symmetric(lower, x)), H @ b, **close)
    L = factor_ltl(lower)
    np.testing.assert_allclose(np.array(L).T @ np.array(L), H, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(reference.dense(solve_ltl(L, x)), np.linalg.solve(H, b), **close)
    np.testing.assert_allclose(
        reference.dense(solve_ltdl(unit, D, x)), np.linalg.solve(H, b), **close
    )


def test_only_the_lower_triangle_is_read(rng):
    A, _ = _tree_matrix(rng, TREES["chain"])
    spoiled = np.tril(A) + np.triu(np.full_like(A, np.nan), 1)
    L, D = factor_ltdl(spoiled.tolist())
    assert np.isfinite(L).all()
    assert np.isfinite(D).all()


@pytest.mark.parametrize("parents", TREES.values(), ids=TREES)
def test_solving_and_inverting(parents, rng, reference):
    A, _ = _tree_matrix(rng, parents)
    L, D = factor_ltdl(A.tolist())
    b = rng.normal(size=len(D))
    x = reference.dense(solve_ltdl(L, D, Vector(tuple(b.tolist()))))
    scale = np.linalg.cond(A) * 1e-14
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=scale, atol=scale * np.abs(x).max())
    inverse = reference.dense(invert_ltdl(L, D))
    expected = np.linalg.inv(A)
    atol = scale * np.abs(expected).max()
    np.testing.assert_allclose(inverse, expected, rtol=scale, atol=atol)
    assert np.array_equal(inverse, inverse.T)  # each entry computed once
    again = reference.dense(invert_symmetric(reference.matrix(A)))
    assert np.array_equal(again, inverse)


def test_inverse_in_symbols_is_the_inverse_of_the_numbers(rng, reference):
    a, n = _symbolic(TREES["binary"])
    A, _ = _tree_matrix(rng, TREES["binary"])
    inverse = invert_ltdl(*factor_ltdl(a))
    program = Program.from_outputs(
        "inverse",
        [Variable("A", (n, n))],
        [(Variable("W", (n, n)), [x for row in inverse.rows for x in row])],
    )
    got = np.array(interpret(program, {"A": A.ravel().tolist()})["W"]).reshape(n, n)
    np.testing.assert_allclose(got @ A, np.eye(n), atol=1e-9)
    assert program.count.divisions == n


@pytest.mark.parametrize("parents", TREES.values(), ids=TREES)
def test_orthogonal_columns(parents, rng, reference):
    """P' M P = L' D L, where L is zero for pairs of columns without common rows."""
    _, pattern = _tree_matrix(rng, parents)
    n = len(parents)
    rows = np.repeat(pattern, 2, axis=0)  # two rows per body, nonzero for the joints that move it
    P = np.where(rows, rng.normal(size=rows.shape), 0.0)
    weights = rng.uniform(0.5, 2.0, size=2 * n)
    columns = [Vector(tuple(column)) for column in P.T.tolist()]
    L, D = orthogonalize(
        columns, lambda v: Vector(tuple(w * x for w, x in zip(weights.tolist(), v, strict=True)))
    )
    dense = np.array(L)
    np.testing.assert_allclose(
        dense.T @ np.diag(D) @ dense, P.T @ np.diag(weights) @ P, rtol=1e-12, atol=1e-13
    )
    assert np.array_equal(dense, np.where(pattern, dense, 0.0))
    assert np.array_equal(np.diag(dense), np.ones(n))


def test_nothing_to_factor():
    assert factor_ltdl([]) == ([], [])
    assert solve_ltdl([], [], Vector(())) == Vector(())
    assert invert_ltdl([], []) == Matrix(())
    assert orthogonalize([], lambda v: v) == ([], [])
