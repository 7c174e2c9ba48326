"""Forces and accelerations of a mixed problem of closed loops."""

from chasles.algorithms.closed_loops.equations import equations, health, strayed
from chasles.algorithms.closed_loops.multipliers import by_multipliers
from chasles.algorithms.homogeneous.loop_bias import loop_bias
from chasles.algorithms.homogeneous.loop_matrix import loop_matrix
from chasles.algorithms.homogeneous.loop_rate import loop_rate
from chasles.mathematics.linear import Matrix, Vector
from chasles.model.model import Model
from chasles.model.spaces import (
    ABSENT,
    Health,
    LoopNumbers,
    Mixed,
    Position,
    Velocity,
    Wrenches,
    loop_entries,
    loop_rows,
    stack,
    unstack,
)


def hybrid(
    model: Model,
    q: Position,
    qd: Velocity,
    given: Mixed,
    f_ext: Wrenches = ABSENT,
    *,
    known: frozenset[int] = frozenset(),
) -> tuple[Mixed, LoopNumbers, Health]:
    """H11 qdd1 = f1 - H12 qdd2 + K1' lam and K1 qdd1 = k - K2 qdd2, then tau2 (sections 8.5, 9.1).

    1: joints whose forces are given, 2: known accelerations. The closure keeps rows that are
    independent over the former; rates are checked by all rows. Second result: what is left of
    all rows, K qdd - k, which known accelerations that are too many may not satisfy.
    """
    order, none = model.in_tree_order, {i: Vector.zero(model.bodies[i].joint.nv) for i in given}
    tau = none | {i: force for i, force in given.items() if i not in known}
    H, f, K, k, _ = equations(model, q, qd, tau, f_ext, 0.0)
    x = stack(none | {i: given[i] for i in known}, order)
    owners = [i for i in order for _ in given[i]]
    free = [c for c, i in enumerate(owners) if i not in known]
    solved = by_multipliers(
        _columns(Matrix(tuple(H.rows[c] for c in free)), free),
        Vector(tuple((f - H @ x)[c] for c in free)),
        _columns(K, free),
        k - K @ x,
    )
    found = dict(zip(free, solved.qdd, strict=True))
    qdd = Vector(tuple(found.get(c, x[c]) for c in range(len(x))))
    forces = H @ qdd - f
    for row, force in zip(K.rows, solved.lam, strict=True):
        forces = forces - Vector(row) * force
    mixed = unstack(model, qdd, order) | {
        i: part for i, part in unstack(model, forces, order).items() if i in known
    }
    A = Matrix(tuple(map(tuple, loop_rows(model, loop_matrix(model, q), order))))
    left = A @ qdd - Vector(tuple(loop_entries(loop_bias(model, q, qd))))
    v = stack(qd, order)
    slip = A @ v - Vector(tuple(loop_entries(loop_rate(model, q))))
    stray = strayed(Vector(model.closure.scales), slip, v.dot(v))
    return mixed, left, health(model, q, solved.margins, stray)


def _columns(A: Matrix, chosen: list[int]) -> Matrix:
    return Matrix(tuple(tuple(row[c] for c in chosen) for row in A.rows))
