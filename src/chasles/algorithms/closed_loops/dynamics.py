"""Equations of motion for mechanisms with closed loops, and methods to solve them."""

from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import NamedTuple

from chasles.algorithms.homogeneous import loop_bias, loop_matrix, loop_rate, loop_residual
from chasles.algorithms.spatial.dynamics import bias_forces, net_forces, tree_mass_matrix
from chasles.expr import Number, less, minimum, select
from chasles.mathematics.linear import (
    Matrix,
    Vector,
    factor_ltdl,
    reduce_rows,
    solve_lower,
    solve_lower_transposed,
    solve_ltdl,
    symmetric_products,
)
from chasles.model.model import Model
from chasles.model.spaces import (
    ABSENT,
    Effort,
    Health,
    IndependentMatrix,
    Known,
    LoopNumbers,
    LoopVector,
    Mixed,
    Multipliers,
    Position,
    TreeVector,
    Velocity,
    Wrenches,
    loop_entries,
    loop_rows,
    stack,
    tree_places,
    unstack,
)


def equations(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches, stabilization: float
) -> tuple[Matrix, Vector, Matrix, Vector, Number]:
    """Return the terms of H qdd = f + K' lam and K qdd = k, and the velocity error.

    The terms are H, f, K and k (Featherstone 2008, Eq 8.1-8.6). Coordinates are in tree order. H is
    the mass matrix, f is the vector of generalized forces minus bias forces, and lam are the
    Lagrange multipliers. K and k contain only the independent loop equations, selected by the
    closure. If the time constant `stabilization` is nonzero, k includes Baumgarte's terms
    (Featherstone 2008, Eq 8.21-8.24). The velocity error (see `strayed`) measures how far qd
    violates the loop equations, and is 0 with stabilization.
    """
    H, h = tree_mass_matrix(model, q), bias_forces(model, q, qd, f_ext)
    return H, net_forces(model, h, tau), *closing(model, q, qd, stabilization)


def closing(
    model: Model, q: Position, qd: Velocity, stabilization: float
) -> tuple[Matrix, Vector, Number]:
    """Return K and k of the loop equations K qdd = k, and the velocity error (see `equations`)."""
    rows, v = model.closure.rows, stack(qd, model.in_tree_order)
    K, k = constraints(model, q, rows), entries(loop_bias(model, q, qd), rows)
    slip, stray = slipping(model, q, K, v, rows), 0.0
    if stabilization:
        a = 1.0 / stabilization
        k = k - slip * (2.0 * a) - entries(loop_residual(model, q), rows) * (a * a)
    else:
        stray = strayed(model, rows, slip, v.dot(v))
    return K, k, stray


def constraints(model: Model, q: Position, rows: Sequence[int]) -> Matrix:
    """Return the selected rows of the loop matrix K, with columns in tree order."""
    K = loop_rows(model, loop_matrix(model, q), model.in_tree_order)
    return Matrix(tuple(tuple(K[r]) for r in rows))


def entries(parts: LoopVector, rows: Sequence[int]) -> Vector:
    """Return the entries of a loop vector that belong to the selected loop equations."""
    flat = loop_entries(parts)
    return Vector(tuple(flat[r] for r in rows))


def slipping(model: Model, q: Position, K: Matrix, v: Vector, rows: Sequence[int]) -> Vector:
    """Return the residuals of the selected loop equations K v = b for joint velocities v.

    b is the result of `loop_rate`.
    """
    return K @ v - entries(loop_rate(model, q), rows)


def strayed(model: Model, rows: Sequence[int], error: Vector, size: Number) -> Number:
    """Return the squared velocity or acceleration error in the selected loop equations.

    The error is dimensionless: it is divided by 1 plus `size`, the squared norm of the velocities
    or accelerations.
    """
    scales = model.closure.scales
    scaled = Vector(tuple(scales[r] * e for r, e in zip(rows, error, strict=True)))
    return scaled.dot(scaled) / (1.0 + size)


def health(model: Model, q: Position, margins: Sequence[Number], stray: Number = 0.0) -> Vector:
    """Return the squared closure error and the smallest margin to a singularity.

    Callers check both values in every state. The error is dimensionless and includes the velocity
    error `stray`. A margin is 1 in a well-conditioned configuration and 0 at a singularity.
    """
    residual = loop_entries(loop_residual(model, q))
    gap = Vector(tuple(s * r for s, r in zip(model.closure.scales, residual, strict=True)))
    return Vector.of(gap.dot(gap) + stray, reduce(minimum, margins, 1.0))


def multipliers(
    model: Model,
    q: Position,
    qd: Velocity,
    tau: Effort,
    f_ext: Wrenches = ABSENT,
    *,
    stabilization: float = 0.0,
) -> tuple[Velocity, Multipliers, Health]:
    """Solve A lam = b for the multipliers lam, then compute qdd (Featherstone 2008, Eq 8.37-8.41).

    A = K H^-1 K' and b = k - K H^-1 f are computed from the sparse factors of H. In a
    well-conditioned configuration, the rows of K are linearly independent, so no pivot of A is
    small relative to its diagonal entry.
    """
    H, f, K, k, stray = equations(model, q, qd, tau, f_ext, stabilization)
    qdd, lam, margins = by_multipliers(H, f, K, k)
    return unstack(model, qdd, model.in_tree_order), lam, health(model, q, margins, stray)


def by_multipliers(
    H: Matrix, f: Vector, K: Matrix, k: Vector
) -> tuple[Vector, Vector, list[Number]]:
    """Solve for the multipliers as in `multipliers`, and then for the accelerations.

    The equations are A lam = b and H qdd = f + K' lam. The results are qdd, lam and the margins
    (see `health`). H must have the sparsity pattern of a tree's mass matrix, or of its block for a
    subset of the joints.
    """
    L, D = factor_ltdl(H.rows)
    weights = [1.0 / d for d in D]

    def weighted(x: Vector) -> Vector:
        return Vector(tuple(w * e for w, e in zip(weights, x, strict=True)))

    Y = [solve_lower_transposed(L, Vector(row)) for row in K.rows]
    z = solve_lower_transposed(L, f)
    Z = [weighted(y) for y in Y]
    A = Matrix(tuple(tuple(y.dot(Z[j]) for j in range(len(Z))) for y in Y))
    b = Vector(tuple(e - y.dot(z) for e, y in zip(k, Z, strict=True)))
    factors = factor_ltdl(A.rows)
    lam = solve_ltdl(*factors, b)
    for y, force in zip(Y, lam, strict=True):
        z = z + y * force
    margins = [pivot / A[r, r] for r, pivot in enumerate(factors[1])]
    return solve_lower(L, weighted(z)), lam, margins


def direct(
    model: Model,
    q: Position,
    qd: Velocity,
    tau: Effort,
    f_ext: Wrenches = ABSENT,
    *,
    stabilization: float = 0.0,
) -> tuple[Velocity, Multipliers, Health]:
    """Solve for accelerations and multipliers by factoring the whole system of equations.

    The system is [0 K; K' H] (-lam, qdd) = (k, f) (Featherstone 2008, Eq 8.36). Factorization
    starts at the last coordinate, which preserves the tree sparsity of H. The remaining pivots are
    those of -K H^-1 K', and no pivot vanishes in a well-conditioned configuration.
    """
    H, f, K, k, stray = equations(model, q, qd, tau, f_ext, stabilization)
    m, n = len(K.rows), len(H.rows)
    above = [(0.0,) * m + row for row in K.rows]
    below = [(*(row[j] for row in K.rows), *H.rows[j]) for j in range(n)]
    L, D = factor_ltdl(above + below)
    x = solve_ltdl(L, D, Vector((*k, *f))).entries
    whole = [sum((L[i][r] * L[i][r] * D[i] for i in range(m, m + n)), 0.0) for r in range(m)]
    margins = [-D[r] / whole[r] for r in range(m)]
    qdd = unstack(model, Vector(x[m:]), model.in_tree_order)
    return qdd, -Vector(x[:m]), health(model, q, margins, stray)


class Elimination(NamedTuple):
    """Solution x = G y + g of K x = k in tree order, where y contains the independent coordinates.

    `ratios` contains each pivot, divided by its value at the reference configuration, for which the
    dependent coordinates were chosen.
    """

    G: Matrix
    g: Vector
    ratios: list[Number]

    @property
    def margins(self) -> list[Number]:
        """Squares of `ratios`: 1 at the reference configuration, 0 at a singularity."""
        return [ratio * ratio for ratio in self.ratios]


def eliminated(model: Model, K: Matrix, k: Vector) -> Elimination:
    """Solve the loop equations for the dependent coordinates (Featherstone 2008, Eq 8.48-8.51).

    If K contains only the first rows of the closure, the dependent coordinates of the omitted rows
    are treated as independent.
    """
    place, closure = tree_places(model), model.closure
    solved = closure.dependent[: len(K.rows)]
    dependent = [place[c] for c in solved]
    independent = [place[c] for c in range(model.nv) if c not in solved]
    both = [(*row, e) for row, e in zip(K.rows, k, strict=True)]
    rows, pivots = reduce_rows(both, dependent)
    G = {c: tuple(float(c == i) for i in independent) for c in independent}
    g: dict[int, Number] = dict.fromkeys(independent, 0.0)
    for c, row in zip(dependent, rows, strict=True):
        G[c], g[c] = tuple(-row[i] for i in independent), row[-1]
    order = range(model.nv)
    return Elimination(
        Matrix(tuple(G[c] for c in order)),
        Vector(tuple(g[c] for c in order)),
        [p / start for p, start in zip(pivots, closure.pivots, strict=False)],
    )


def projected(H: Matrix, G: Matrix) -> Matrix:
    """Return G' H G, the mass matrix in independent coordinates (Featherstone 2008, Eq 3.20)."""
    columns = [Vector(column) for column in G.T.rows]
    return symmetric_products(columns, [H @ column for column in columns])


def minimal(
    model: Model,
    q: Position,
    qd: Velocity,
    tau: Effort,
    f_ext: Wrenches = ABSENT,
    *,
    stabilization: float = 0.0,
) -> tuple[Velocity, Multipliers, Health]:
    """Solve the equations of motion in independent coordinates (Featherstone 2008, Eq 8.42-8.46).

    The equations are G' H G ydd = G' (f - H g), with qdd = G ydd + g. If a dependent coordinate
    moves much faster than the independent coordinates, the condition number of G' H G grows with
    the square of the velocity ratio. One step of iterative refinement restores the lost digits. The
    loop forces are computed from the residual in the dependent coordinates.
    """
    H, f, K, k, stray = equations(model, q, qd, tau, f_ext, stabilization)
    solved = eliminated(model, K, k)
    G, g = solved.G, solved.g
    factors = factor_ltdl(projected(H, G).rows)
    qdd = G @ solve_ltdl(*factors, G.T @ (f - H @ g)) + g
    qdd = qdd + G @ solve_ltdl(*factors, G.T @ (f - H @ qdd))
    left, place = H @ qdd - f, tree_places(model)
    dependent = [place[c] for c in model.closure.dependent]
    columns = [(*(row[c] for row in K.rows), left[c]) for c in dependent]
    rows, _ = reduce_rows(columns, range(len(dependent)))
    lam = Vector(tuple(row[-1] for row in rows))
    return unstack(model, qdd, model.in_tree_order), lam, health(model, q, solved.margins, stray)


def independent_mass_matrix(model: Model, q: Position) -> tuple[IndependentMatrix, Health]:
    """Return G' H G, the mass matrix in the independent coordinates y.

    The kinetic energy is yd' G' H G yd / 2 (Featherstone 2008, Eq 8.44).
    """
    H, K = tree_mass_matrix(model, q), constraints(model, q, model.closure.rows)
    solved = eliminated(model, K, Vector.zero(len(K.rows)))
    return projected(H, solved.G), health(model, q, solved.margins)


def closing_step(model: Model, q: Position, qd: Velocity) -> tuple[TreeVector, TreeVector, Health]:
    """Return a Newton step that closes the loops, and velocities that keep them closed.

    See Featherstone 2008, Eq 8.48-8.51. The step d solves the position constraints K d = -residual,
    with d = 0 in the independent coordinates. The velocities are G yd + g, where yd are the
    independent velocities in qd, and g is due to prescribed motions. The third result contains the
    closure error and a margin (see `health`). The margin changes sign where the motion passes
    through a configuration that is singular for these independent coordinates.
    """
    place, v, rows = tree_places(model), stack(qd, model.in_tree_order), model.closure.rows
    K = constraints(model, q, rows)
    moved = eliminated(model, K, entries(loop_rate(model, q), rows))
    yd = Vector(tuple(v[place[c]] for c in model.independent))
    still = [r for r in rows if model.holonomic_rows[r]]
    error, A = entries(loop_residual(model, q), still), Matrix(K.rows[: len(still)])
    closed = eliminated(model, A, -error)
    gap, margin = health(model, q, moved.margins)
    beyond = less(reduce(mul, moved.ratios, 1.0), 0.0)
    return closed.g, moved.G @ yd + moved.g, Vector.of(gap, select(beyond, -margin, margin))


def closing_acceleration(model: Model, q: Position, qd: Velocity) -> tuple[TreeVector, Health]:
    """Return the accelerations that keep the loops closed if the independent accelerations are 0.

    The result is g in qdd = G ydd + g (Featherstone 2008, Eq 8.42).
    """
    rows = model.closure.rows
    solved = eliminated(model, constraints(model, q, rows), entries(loop_bias(model, q, qd), rows))
    return solved.g, health(model, q, solved.margins)


def hybrid(
    model: Model, q: Position, qd: Velocity, given: Mixed, f_ext: Wrenches = ABSENT, *, known: Known
) -> tuple[Mixed, LoopNumbers, Health]:
    """Compute hybrid dynamics with closed loops (Featherstone 2008, sections 8.5 and 9.1).

    Solve H11 qdd1 = f1 - H12 qdd2 + K1' lam and K1 qdd1 = k - K2 qdd2, then compute tau2. Index 1
    denotes joints with known forces. Index 2 denotes joints with known accelerations. The closure
    selects loop equations for which the rows of K1 are linearly independent. The velocity error and
    the second result, the residual K qdd - k, include all loop equations. The residual is nonzero
    if the known accelerations contradict a loop.
    """
    order, none = model.in_tree_order, {i: Vector.zero(model.bodies[i].joint.nv) for i in given}
    tau = none | {i: force for i, force in given.items() if i not in known}
    H, f, K, k, _ = equations(model, q, qd, tau, f_ext, 0.0)
    x = stack(none | {i: given[i] for i in known}, order)
    owners = [i for i in order for _ in given[i]]
    free, net = [c for c, i in enumerate(owners) if i not in known], f - H @ x
    qdd1, lam, margins = by_multipliers(
        _columns(Matrix(tuple(H.rows[c] for c in free)), free),
        Vector(tuple(net[c] for c in free)),
        _columns(K, free),
        k - K @ x,
    )
    found = dict(zip(free, qdd1, strict=True))
    qdd = Vector(tuple(found.get(c, x[c]) for c in range(len(x))))
    forces = H @ qdd - f
    for row, force in zip(K.rows, lam, strict=True):
        forces = forces - Vector(row) * force
    mixed = unstack(model, qdd, order) | {
        i: part for i, part in unstack(model, forces, order).items() if i in known
    }
    rows, v = range(model.loop_rows), stack(qd, order)
    A = constraints(model, q, rows)
    left = A @ qdd - entries(loop_bias(model, q, qd), rows)
    stray = strayed(model, rows, slipping(model, q, A, v, rows), v.dot(v))
    return mixed, left, health(model, q, margins, stray)


def _columns(A: Matrix, chosen: list[int]) -> Matrix:
    return Matrix(tuple(tuple(row[c] for c in chosen) for row in A.rows))
