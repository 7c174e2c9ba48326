"""Joint accelerations of closed loops: all equations at once."""

from chasles.algorithms.closed_loops.equations import equations, health
from chasles.expr import Number
from chasles.mathematics.linear import Vector, factor_ltdl, solve_ltdl
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


def direct(
    model: Model,
    q: Position,
    qd: Velocity,
    tau: Effort,
    f_ext: Wrenches = ABSENT,
    *,
    stabilization: float = 0.0,
) -> tuple[Velocity, Multipliers, Health]:
    """[0 K; K' H] (-lam, qdd) = (k, f), factored as it stands (Featherstone 2008, Eq 8.36).

    The factors start at the last coordinate, so that H is as sparse as in a tree; the pivots that
    remain belong to -K H^-1 K', and none vanishes in a good position.
    """
    H, f, K, k, stray = equations(model, q, qd, tau, f_ext, stabilization)
    m, n = K.shape
    above = [(0.0,) * m + row for row in K.rows]
    below = [column + row for column, row in zip(K.T.rows, H.rows, strict=True)]
    L, D = factor_ltdl(above + below)
    x = solve_ltdl(L, D, Vector((*k, *f))).entries
    margins = []
    for r in range(m):
        whole: Number = 0.0
        for i in range(m, m + n):
            whole = whole + L[i][r] * L[i][r] * D[i]
        margins.append(-D[r] / whole)
    qdd = unstack(model, Vector(x[m:]), model.in_tree_order)
    return qdd, -Vector(x[:m]), health(model, q, margins, stray)
