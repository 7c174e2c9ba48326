"""Symbolic steps of online estimation: recursive least squares, and descent on a manifold."""

from collections.abc import Iterator, Sequence

import numpy as np

from chasles.expr import Number, Scalar, less, maximum, minimum, select, sqrt
from chasles.identification.equations import Equations
from chasles.identification.linear import LinearModel
from chasles.identification.unknowns import TERMS, parameters, pseudo_inertia

UNKNOWN = 1e4
"""Initial variance of base parameters (SI units).

Forgetting is suspended while the mean variance exceeds `UNKNOWN`, because the variances would
otherwise grow without bound when the robot does not move.
"""

LONGEST = 0.5
"""Maximum relative change of a pseudo-inertia matrix in one step of the estimator."""

HALVINGS = 2
"""Number of squarings in the matrix exponential of a step.

A quadratic polynomial approximates the exponential of a quarter of the matrix, and is squared
twice.
"""

TINY, ALIKE = 1e-200, 1e-9
"""Numerical thresholds for the search direction.

`TINY` is the smallest denominator. Two directions count as parallel if their relative determinant
is at most `ALIKE`.
"""

Matrix = list[list[Number]]

Rows = list[tuple[list[int], list[Number]]]
"""Equations W_j (beta - beta_0) = e_j of one sample, each divided by the noise of its torque.

beta are the base parameters, and beta_0 are their values in the given robot. Row j contains the
indices of the base parameters that occur in the equation, and the symbolic entries [W_j, e_j].
"""


def upper(n: int) -> list[tuple[int, int]]:
    """Return the indices of the upper triangle of an n x n matrix, row by row."""
    return [(i, j) for i in range(n) for j in range(i, n)]


def _symmetric(entries: Sequence[Number], n: int) -> dict[tuple[int, int], Number]:
    """Return all entries of a symmetric n x n matrix by index (i, j), from its upper triangle."""
    found = {}
    for (i, j), entry in zip(upper(n), entries, strict=True):
        found[i, j] = found[j, i] = entry
    return found


def least_squares(
    equations: Equations, forgetting: float, state: Sequence[Scalar], rows: Rows
) -> list[Number]:
    """Return the state after one step of recursive least squares (Ljung 1999, section 11.2).

    Each of the `rows` causes a rank-one update of the covariance. Without excitation, the variances
    stop growing when their mean reaches its initial value.
    """
    b = len(equations.base)
    start = equations.base.combination @ equations.model.nominal
    beta: list[Number] = list(state[:b])
    P = _symmetric(state[b:], b)
    trace = sum((P[i, i] for i in range(1, b)), P[0, 0])
    growth = select(less(trace, b * UNKNOWN), 1.0 / forgetting, 1.0)
    P = {key: growth * P[key] for key in upper(b)}
    P |= {(j, i): entry for (i, j), entry in P.items()}
    for kept, (*w, e) in rows:
        g = [_dot([P[i, k] for k in kept], w) for i in range(b)]
        scale = 1.0 / (1.0 + _dot([g[k] for k in kept], w))
        e = e - _dot([beta[k] - float(start[k]) for k in kept], w)
        beta = [x + gain * (scale * e) for x, gain in zip(beta, g, strict=True)]
        for i, j in upper(b):
            P[i, j] = P[j, i] = P[i, j] - g[i] * (g[j] * scale)
    return [*beta, *(P[key] for key in upper(b))]


def manifold(
    equations: Equations, forgetting: float, state: Sequence[Scalar], rows: Rows
) -> list[Number]:
    """Return the state after one conjugate gradient step on the cost of all samples.

    The cost is 1/2 c' H c - h' c, where c = K (x - x_0) is the change in the base parameters when
    the parameters change from x_0, their values in the given robot, to x. Earlier samples have
    lower weights (forgetting). A step is a combination of the gradient g and the previous
    direction m, both converted to natural gradients. The coefficients of the combination minimize
    the cost. The length of a step is at most `LONGEST`.
    """
    model, K = equations.model, equations.base.combination
    b, n = K.shape
    x, m, h = state[:n], state[n : 2 * n], [forgetting * e for e in state[2 * n : 2 * n + b]]
    H = _symmetric([forgetting * entry for entry in state[2 * n + b :]], b)
    for kept, (*w, e) in rows:
        for a, i in enumerate(kept):
            h[i] = h[i] + w[a] * e
            for c, j in enumerate(kept[a:], a):
                H[i, j] = H[j, i] = H[i, j] + w[a] * w[c]
    away = [x[k] - float(model.nominal[k]) for k in range(n)]
    beta = [_combined(away, K[i]) for i in range(b)]
    slope = [_dot([H[i, j] for j in range(b)], beta) - h[i] for i in range(b)]
    g = [_combined(slope, K[:, k]) for k in range(n)]
    dg, dm = _natural(model, x, g), _natural(model, x, m)
    one, other = ([_combined(d, K[i]) for i in range(b)] for d in (dg, dm))
    bent = [_dot([H[i, j] for j in range(b)], one) for i in range(b)]
    gg, gm = _dot(one, bent), _dot(other, bent)
    mm = _dot(other, [_dot([H[i, j] for j in range(b)], other) for i in range(b)])
    share, more = _smallest(gg, gm, mm, _dot(g, dg), _dot(g, dm))
    m = [share * a + more * c for a, c in zip(g, m, strict=True)]
    d = [share * a + more * c for a, c in zip(dg, dm, strict=True)]
    shorter = minimum(1.0, LONGEST / sqrt(maximum(_dot(m, d), TINY)))
    m, d = [shorter * entry for entry in m], [shorter * entry for entry in d]
    return [*_along(model, x, m, d), *m, *h, *(H[key] for key in upper(b))]


def _smallest(gg: Number, gm: Number, mm: Number, g: Number, m: Number) -> tuple[Number, Number]:
    """Return the coefficients of two directions whose combination minimizes a quadratic cost.

    Along the directions, `g` and `m` are the first derivatives of the cost, and `gg`, `gm` and `mm`
    are the second derivatives. If the directions are nearly parallel, the second direction is not
    used.
    """
    det = gg * mm - gm * gm
    apart = less(ALIKE * gg * mm, det)
    safe = select(apart, det, 1.0)
    alone = g / maximum(gg, TINY)
    share = select(apart, (g * mm - m * gm) / safe, alone)
    return share, select(apart, (m * gg - g * gm) / safe, 0.0)


def _combined(symbols: Sequence[Number], row: np.ndarray) -> Number:
    """Return the dot product of symbols and a sparse constant vector."""
    used = [int(k) for k in np.flatnonzero(row)]
    return _dot([symbols[k] for k in used], [float(row[k]) for k in used])


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    """Return the dot product of two vectors, given as sequences."""
    total: Number = 0.0
    for left, right in zip(a, b, strict=True):
        total = total + left * right
    return total


def _slopes() -> np.ndarray:
    """Return matrices B (10, 4, 4) such that a pseudo-inertia P has the parameters tr(B_k P)."""
    B = np.array([parameters(e) for e in np.eye(16).reshape(16, 4, 4)]).T.reshape(10, 4, 4)
    return np.asarray(0.5 * (B + np.swapaxes(B, 1, 2)))


SLOPES = _slopes()

SHAPES = np.array([pseudo_inertia(e) for e in np.eye(10)])
"""Pseudo-inertias (10, 4, 4), each for a unit value of one inertial parameter."""


def _bodies(
    model: LinearModel, x: Sequence[Number], g: Sequence[Number]
) -> Iterator[tuple[Matrix, Matrix]]:
    """Yield each body's pseudo-inertia P and gradient matrix L, for parameters x and gradient g.

    L satisfies tr(L dP) = g . dx for every change dx of the body's parameters.
    """
    four = range(4)
    for k in range(len(model.bodies)):
        own = slice(10 * k, 10 * k + 10)
        P = [[_combined(x[own], SHAPES[:, i, j]) for j in four] for i in four]
        L = [[_combined(g[own], SLOPES[:, i, j]) for j in four] for i in four]
        yield P, L


def _product(A: Matrix, B: Matrix) -> Matrix:
    return [[_dot(row, [B[k][j] for k in range(4)]) for j in range(4)] for row in A]


def _ten(P: Matrix) -> list[Number]:
    """Return the ten parameters of a symbolic pseudo-inertia."""
    a, b, c = P[0][0], P[1][1], P[2][2]
    return [P[3][3], P[0][3], P[1][3], P[2][3], b + c, a + c, a + b, -P[0][1], -P[0][2], -P[1][2]]


def _natural(model: LinearModel, x: Sequence[Number], g: Sequence[Number]) -> list[Number]:
    """Return the natural gradient for parameters x and gradient g.

    For a body with pseudo-inertia P and gradient matrix L (see `_bodies`), the natural gradient is
    P L P. For joint terms (damping, friction, ...), it is (x² + 1) g.
    """
    found: list[Number] = []
    for P, L in _bodies(model, x, g):
        found += _ten(_product(_product(P, L), P))
    for k in range(10 * len(model.bodies), len(model.names)):
        found.append((x[k] * x[k] + 1.0) * g[k])
    return found


def _along(
    model: LinearModel, x: Sequence[Number], m: Sequence[Number], d: Sequence[Number]
) -> list[Number]:
    """Return the parameters after the step -d, where d is the natural gradient for direction m.

    The new pseudo-inertia of a body is E P E' with E = (1 + Y + Y²/2)^(2^n) and
    Y = -P L / 2^(n + 1), where n is `HALVINGS`. P L has real eigenvalues, and 1 + y + y²/2 has no
    real root. Therefore E is nonsingular, and E P E' is positive definite for any step. Joint terms
    that must be positive decrease by at most half.
    """
    found: list[Number] = []
    share = -(0.5 ** (HALVINGS + 1))
    for P, L in _bodies(model, x, m):
        Y = [[share * entry for entry in row] for row in _product(P, L)]
        square = _product(Y, Y)
        E = [[float(i == j) + Y[i][j] + 0.5 * square[i][j] for j in range(4)] for i in range(4)]
        for _ in range(HALVINGS):
            E = _product(E, E)
        found += _ten(_product(_product(E, P), [list(column) for column in zip(*E, strict=True)]))
    for k, (kind, _) in enumerate(model.unknowns, 10 * len(model.bodies)):
        after = x[k] - d[k]
        found.append(maximum(after, 0.5 * x[k]) if TERMS[kind].positive else after)
    return found
