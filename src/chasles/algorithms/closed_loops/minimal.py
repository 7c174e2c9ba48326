"""Joint accelerations of closed loops: in the independent coordinates."""

from chasles.algorithms.closed_loops.elimination import eliminated, projected
from chasles.algorithms.closed_loops.equations import equations, health
from chasles.mathematics.linear import Vector, factor_ltdl, reduce_rows, solve_ltdl
from chasles.model.model import Model
from chasles.model.spaces import (
    ABSENT,
    Effort,
    Health,
    Multipliers,
    Position,
    Velocity,
    Wrenches,
    tree_places,
    unstack,
)


def minimal(
    model: Model,
    q: Position,
    qd: Velocity,
    tau: Effort,
    f_ext: Wrenches = ABSENT,
    *,
    stabilization: float = 0.0,
) -> tuple[Velocity, Multipliers, Health]:
    """G' H G ydd = G' (f - H g) and qdd = G ydd + g (Featherstone 2008, Eq 8.42-8.46).

    Where a dependent coordinate moves much faster than the independent ones, G' H G has the square
    of that in its condition; a second solution, for what the first leaves of the equation, brings
    the lost digits back. The forces of the loops are what is left over in the dependent
    coordinates.
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
