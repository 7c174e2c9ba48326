"""Compare tensor algebra (Balafoutis and Patel 1991, chapter 3) with NumPy.

Propositions 3.1 to 3.12 compare the operators of chasles with NumPy or with each other. The
tolerance 1e-13 is the rounding of a few dozen operations on values near one.
"""

import itertools
import math

import numpy as np
import pytest
from support import close, raises

from chasles.expr import RULES, Arena
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.tensor import (
    across,
    along,
    angle,
    change_basis,
    double_dot,
    dual,
    euler_from_inertia,
    invariants,
    left_dual,
    norm,
    skew_part,
    spectral,
    symmetric_part,
    tensor_product,
    trace,
    vect,
    wedge,
)

ROUNDING = 1e-13
ONE = np.eye(3)
EPSILON = np.zeros((3, 3, 3))
for i, j, k in itertools.permutations(range(3)):
    EPSILON[i, j, k] = (j - i) * (k - i) * (k - j) / 2


def vector(v) -> Vector:
    return Vector(tuple(np.asarray(v, dtype=float).tolist()))


def tensor(T) -> Matrix:
    return Matrix(tuple(map(tuple, np.asarray(T, dtype=float).tolist())))


def array(x) -> np.ndarray:
    rows = x.matrix().rows if isinstance(x, Symmetric) else x.rows if isinstance(x, Matrix) else x
    return np.array([list(r) if isinstance(r, tuple) else r for r in rows], dtype=float)


@pytest.fixture(params=range(5))
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


@pytest.fixture
def uvwab(rng: np.random.Generator) -> list[np.ndarray]:
    return list(rng.normal(size=(5, 3)))


def t(v) -> np.ndarray:
    """Return v~, computed with `dual`."""
    return array(dual(vector(v)))


def symmetric(rng: np.random.Generator) -> np.ndarray:
    A = rng.normal(size=(3, 3))
    return A + A.T


# Operators -------------------------------------------------------------------------------------


def test_products(rng, uvwab) -> None:
    u, v, w, *_ = uvwab
    T, S = rng.normal(size=(2, 3, 3))
    close(array(tensor_product(vector(u), vector(v)) @ vector(w)), u * (v @ w), ROUNDING)
    close(array(wedge(vector(u), vector(v))), np.outer(u, v) - np.outer(v, u), ROUNDING)
    fourth = tensor_product(tensor(T), tensor(S))
    assert fourth[0, 1, 2, 1] == T[0, 1] * S[2, 1]
    full = np.einsum("ij,kl->ijkl", T, S)
    for a, b in itertools.combinations(range(4), 2):
        close(array(fourth.contract(a, b)), np.trace(full, axis1=a, axis2=b), ROUNDING)
    close(array(fourth.contract(1, 2)), T @ S, ROUNDING)
    close(double_dot(tensor(T), tensor(S)), np.trace(T @ S), ROUNDING)
    close(norm(tensor(T)), np.linalg.norm(T), ROUNDING)
    close(trace(tensor(T)), np.trace(T), ROUNDING)
    cosine = np.sum(T * S) / np.linalg.norm(T) / np.linalg.norm(S)
    close(angle(tensor(T), tensor(S)), math.acos(cosine), ROUNDING)


def test_double_dot_has_no_transpose() -> None:
    T, S = tensor([[0, 1, 0], [0, 0, 0], [0, 0, 0]]), tensor([[0, 0, 0], [1, 0, 0], [0, 0, 0]])
    assert double_dot(T, S) == 1.0
    assert double_dot(T, T) == 0.0


def test_small_angles_keep_their_digits() -> None:
    T = tensor(np.diag([1.0, 0.0, 0.0]))
    assert angle(T, T) == 0.0
    close(angle(T, tensor(np.diag([1.0, 1e-9, 0.0]))), 1e-9, ROUNDING)


def test_wrong_arguments() -> None:
    u, T = vector([1, 2, 3]), tensor(ONE)
    with raises("E-MATH-027"):
        tensor_product(u, T)
    with raises("E-MATH-026"):
        tensor_product(T, T).contract(1, 1)
    with raises("E-MATH-028"):
        dual(Symmetric.zero())
    for bad in (Arena(RULES).input("x", 0), math.nan):
        with raises("E-MATH-029"):
            spectral(Symmetric(bad, 1.0, 1.0, 0.0, 0.0, 0.0))


def test_parts(rng, uvwab) -> None:
    T, u = rng.normal(size=(3, 3)), uvwab[0]
    e = u / np.linalg.norm(u)
    plus, minus = symmetric_part(tensor(T)).matrix(), skew_part(tensor(T))
    close(array(plus) + array(minus), T, ROUNDING)
    assert -minus == minus.T
    close(double_dot(plus, minus), 0.0, ROUNDING, scale=1.0)
    P, Q = array(along(vector(e))), array(across(vector(e)))
    close(P + Q, ONE, ROUNDING)
    close(P @ P, P, ROUNDING)
    close(P @ Q, np.zeros((3, 3)), ROUNDING, scale=1.0)
    close(P @ T @ e + Q @ T @ e, T @ e, ROUNDING)
    close(Q @ u, np.zeros(3), ROUNDING, scale=1.0)


def test_vect_and_duals(rng, uvwab) -> None:
    """(3.3.25)-(3.3.36) hold: vect has the factor 1/2 and is the dual of the skew part."""
    T, u = rng.normal(size=(3, 3)), uvwab[0]
    close(array(vect(tensor(T))), 0.5 * np.einsum("ijk,kj->i", EPSILON, T), ROUNDING)
    close(array(vect(tensor(T))), array(dual(skew_part(tensor(T)))), ROUNDING)
    close(array(vect(tensor(T + T.T))), np.zeros(3), ROUNDING, scale=1.0)
    assert dual(dual(vector(u))) == vector(u) == left_dual(left_dual(vector(u)))
    close(array(dual(vector(u))), -np.einsum("ijk,k->ij", EPSILON, u), ROUNDING)
    close(array(left_dual(vector(u))), np.einsum("ijk,k->ij", EPSILON, u), ROUNDING)


def test_bases_and_invariants(rng) -> None:
    """(3.3.18)-(3.3.24) hold, and agree with eigenvalues and traces of powers."""
    T, S = rng.normal(size=(3, 3)), symmetric(rng)
    A, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    turned = change_basis(tensor(A), tensor(T))
    close(array(turned), A @ T @ A.T, ROUNDING)
    close(array(change_basis(tensor(A), vector(T[0]))), A @ T[0], ROUNDING)
    close(list(invariants(turned)), list(invariants(tensor(T))), 1e-12)
    I1, I2, I3, I4 = invariants(tensor(S))
    values = np.linalg.eigvalsh(S)
    close([I1, I3, I4], [values.sum(), values.prod(), (values**2).sum()], 1e-12)
    F1, F2, F3 = (np.trace(np.linalg.matrix_power(S, k)) for k in (1, 2, 3))
    close([I2, I3], [(F1**2 - F2) / 2, (2 * F3 + F1**3 - 3 * F1 * F2) / 6], 1e-12)


def test_spectral_decomposition(rng) -> None:
    """T is the sum of its eigenvalues times projections, which add up to 1 (3.3.17)."""
    T = symmetric(rng)
    parts = spectral(Symmetric.of(tensor(T)))
    assert [value for value, _ in parts] == sorted(value for value, _ in parts)
    close(sum(value * array(along(e)) for value, e in parts), T, ROUNDING)
    close(sum(array(along(e)) for _, e in parts), ONE, ROUNDING)
    squares = sum(value * t(e) @ t(e) for value, e in parts)
    close(squares + np.trace(T) * ONE, T, ROUNDING)


def test_isotropic_tensors(rng) -> None:
    """The identity and eps are the same in every basis; products of eps agree (3.3.3)-(3.3.6)."""
    A, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    A *= np.linalg.det(A)
    close(array(change_basis(tensor(A), tensor(ONE))), ONE, ROUNDING)
    u, v = rng.normal(size=(2, 3))
    turned = [vector(A @ x) for x in (u, v)]
    close(array(dual(turned[0]) @ turned[1]), A @ array(dual(vector(u)) @ vector(v)), ROUNDING)
    pairs = np.einsum("ir,js->ijrs", ONE, ONE)
    basis = [array(dual(vector(e))) for e in ONE]  # (e_k~)_ij = -eps_ijk
    close(
        sum(np.einsum("ij,rs->ijrs", E, E) for E in basis), pairs - pairs.swapaxes(2, 3), ROUNDING
    )
    close(sum(E @ E.T for E in basis), 2 * ONE, ROUNDING)


# Propositions 3.1 to 3.12 ----------------------------------------------------------------------


def test_one_dual(rng, uvwab) -> None:
    """Propositions 3.1 to 3.4, (3.4.1)-(3.4.9), hold; the null space of u~ is u."""
    u, v, _, a, b = uvwab
    close(t(u) @ v, np.cross(u, v), ROUNDING)
    close(t(u) @ u, np.zeros(3), ROUNDING, scale=1.0)
    size = np.linalg.norm(u)
    close(np.linalg.svd(t(u))[1], [size, size, 0.0], ROUNDING)
    close(t(u + 2 * v), t(u) + 2 * t(v), ROUNDING)
    assert np.array_equal(t(u).T, -t(u))
    close(t(u) @ v, -t(v) @ u, ROUNDING)
    close(v @ t(u), -t(u) @ v, ROUNDING)
    close(v @ t(u), t(v) @ u, ROUNDING)
    close(np.cross(a, u) @ np.cross(v, b), a @ t(u) @ t(v) @ b, ROUNDING)


def test_two_duals(rng, uvwab) -> None:
    """Propositions 3.5 to 3.7, (3.4.10)-(3.4.17), hold."""
    u, v, *_ = uvwab
    close(t(u) @ t(v), np.outer(v, u) - (u @ v) * ONE, ROUNDING)
    dyad = array(tensor_product(vector(v), vector(u)))
    close(dyad, t(u) @ t(v) + (v @ u) * ONE, ROUNDING)
    close(double_dot(dual(vector(u)), dual(vector(v))), -2 * u @ v, ROUNDING)
    close(t(u) @ t(u), np.outer(u, u) - (u @ u) * ONE, ROUNDING)
    close(trace(tensor(t(u) @ t(v))), -2 * u @ v, ROUNDING)
    I = symmetric(rng)
    close(trace(tensor(I @ t(u))), 0.0, ROUNDING, scale=1.0)
    skew = angle(dual(vector(u)), dual(vector(v)))
    close(skew, math.acos(u @ v / np.linalg.norm(u) / np.linalg.norm(v)), ROUNDING)


def test_three_and_four_duals(uvwab) -> None:
    """Proposition 3.8, (3.4.18)-(3.4.25), holds."""
    u, v, *_ = uvwab
    U, V = t(u), t(v)
    mixed = V @ U @ U + U @ U @ V
    close(mixed, -(u @ u) * V - (v @ u) * U, ROUNDING)
    close(U @ V @ U, -(v @ u) * U, ROUNDING)
    close(U @ V @ U, mixed - np.trace(U @ U) / 2 * V, ROUNDING)
    close(V @ V @ U @ U - U @ U @ V @ V, (u @ v) * (U @ V - V @ U), 1e-12)
    close(U @ U @ U, -(u @ u) * U, ROUNDING)
    close(U @ U @ U @ U, -(u @ u) * U @ U, ROUNDING)


def test_duals_of_normal_vectors(uvwab) -> None:
    """(3.4.22)-(3.4.24) of proposition 3.8 hold; squares commute for parallel vectors too."""
    u, v = uvwab[0], np.cross(uvwab[0], uvwab[1])
    U, V, zero = t(u), t(v), np.zeros((3, 3))
    size = (u @ u) * (v @ v)
    close(V @ U @ U + U @ U @ V, -(u @ u) * V, ROUNDING)
    close(U @ V @ U, zero, ROUNDING, scale=size)
    for W in (V, t(-1.7 * u)):
        close(W @ W @ U @ U - U @ U @ W @ W, zero, ROUNDING, scale=max(size, (u @ u) ** 2))


def test_duals_of_products(rng, uvwab) -> None:
    """Propositions 3.9 to 3.11, (3.4.26)-(3.4.36), hold."""
    u, v, w, *_ = uvwab
    I = symmetric(rng)
    U, V = t(u), t(v)
    close(t(U @ v), np.outer(v, u) - np.outer(u, v), ROUNDING)
    close(t(U @ v), array(wedge(vector(v), vector(u))), ROUNDING)
    close(t(U @ v), U @ V - V @ U, ROUNDING)
    close(array(dual(tensor(U @ V - V @ U))), np.cross(u, v), ROUNDING)
    close(array(dual(wedge(vector(v), vector(u)))), np.cross(u, v), ROUNDING)
    T = rng.normal(size=(3, 3))
    close(array(vect(tensor(T.T))), -array(vect(tensor(T))), ROUNDING)
    close(np.cross(u, v), -2 * array(vect(tensor_product(vector(u), vector(v)))), ROUNDING)
    close(np.cross(u, v), 2 * array(vect(dual(vector(u)) @ dual(vector(v)))), ROUNDING)
    close(t(t(w) @ U @ v), U * (w @ v) - V * (w @ u), ROUNDING)
    close(t(U @ U @ v), -(V @ U @ U + U @ U @ V) + np.trace(U @ U) * V, ROUNDING)
    close(t(I @ v), -(I @ V + V @ I) + np.trace(I) * V, ROUNDING)


def test_bilinear_form_as_a_trace(rng, uvwab) -> None:
    """Proposition 3.12 holds: u.I v = -tr(u~ J v~) (3.4.39)."""
    u, v, *_ = uvwab
    I = symmetric(rng)
    J = array(euler_from_inertia(Symmetric.of(tensor(I))))
    close(-np.trace(t(u) @ J @ t(v)), u @ I @ v, ROUNDING)
