"""Joint accelerations of closed loops: the forces of the loops first."""

from typing import NamedTuple

from chasles.algorithms.closed_loops.equations import equations, health
from chasles.expr import Number
from chasles.mathematics.linear import (
    Matrix,
    Vector,
    factor_ltdl,
    solve_lower,
    solve_lower_transposed,
    solve_ltdl,
)
from chasles.model.model import Model
from chasles.model.spaces import (
    ABSENT,
    Effort,
    Health,
    Multipliers,
    Position,
    Velocity,
    Wrenches,
    unstack,
)


def multipliers(
    model: Model,
    q: Position,
    qd: Velocity,
    tau: Effort,
    f_ext: Wrenches = ABSENT,
    *,
    stabilization: float = 0.0,
) -> tuple[Velocity, Multipliers, Health]:
    """A lam = b with A = K H^-1 K', by the sparse factors of H (Featherstone 2008, Eq 8.37-8.41).

    In a good position no row of K is a combination of others, so that every pivot of A is a fair
    part of the entry on its diagonal.
    """
    H, f, K, k, stray = equations(model, q, qd, tau, f_ext, stabilization)
    solved = by_multipliers(H, f, K, k)
    qdd = unstack(model, solved.qdd, model.in_tree_order)
    return qdd, solved.lam, health(model, q, solved.margins, stray)


class Solved(NamedTuple):
    """Accelerations, multipliers, and margins: 1 in a good position, 0 in a singular one."""

    qdd: Vector
    lam: Vector
    margins: list[Number]


def by_multipliers(H: Matrix, f: Vector, K: Matrix, k: Vector) -> Solved:
    """A lam = b, then H qdd = f + K' lam; H has the sparsity of a tree or of a part of one."""
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
    return Solved(solve_lower(L, weighted(z)), lam, margins)
