"""Forces of some actuators that move closed loops as asked."""

from collections.abc import Sequence

from chasles.algorithms.closed_loops.elimination import eliminated
from chasles.algorithms.closed_loops.equations import constraints, health, kept, slipping, strayed
from chasles.algorithms.homogeneous.loop_bias import loop_bias
from chasles.algorithms.spatial.newton_euler_vector import newton_euler_vector
from chasles.mathematics.linear import Matrix, Vector, solve_symmetric
from chasles.model.model import Model
from chasles.model.spaces import (
    ABSENT,
    Health,
    Position,
    TreeVector,
    Velocity,
    Wrenches,
    loop_entries,
    stack,
    tree_places,
)


def actuator_forces(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    f_ext: Wrenches = ABSENT,
    *,
    actuated: Sequence[int],
    weights: Sequence[float],
) -> tuple[TreeVector, Health]:
    """G_u' u = G' tau, where tau moves the tree so (Featherstone 2008, Eq 8.61-8.63).

    The u of least sum of weights u^2, where there are more actuators than freedoms. The closure's
    independent coordinates are actuated, so that G_u has a unit matrix in it.
    """
    order, place = model.in_tree_order, tree_places(model)
    tau = stack(model.efforts(newton_euler_vector(model, q, qd, qdd, f_ext)), order)
    K, k = constraints(model, q), kept(model, loop_entries(loop_bias(model, q, qd)))
    v, a = stack(qd, order), stack(qdd, order)
    speed, scales = v.dot(v), kept(model, model.closure.scales)
    stray = strayed(scales, slipping(model, q, K, v), speed)
    stray += strayed(scales, K @ a - k, a.dot(a) + speed * speed)
    solved = eliminated(model, K, Vector.zero(len(K.rows)))
    G = solved.G
    used = [place[c] for c in actuated]
    G_u = Matrix(tuple(G.rows[c] for c in used))
    eased = Matrix(
        tuple(tuple(e * (1.0 / w) for e in row) for row, w in zip(G_u.rows, weights, strict=True))
    )
    u = dict(zip(used, eased @ solve_symmetric(G_u.T @ eased, G.T @ tau), strict=True))
    forces = Vector(tuple(u.get(c, 0.0) for c in range(model.nv)))
    return forces, health(model, q, solved.margins, stray)
