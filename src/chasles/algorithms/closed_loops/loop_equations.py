"""The equations that a motion of closed loops satisfies, as what is left of them."""

from chasles.algorithms.homogeneous.loop_bias import loop_bias
from chasles.algorithms.homogeneous.loop_matrix import loop_matrix
from chasles.algorithms.homogeneous.loop_rate import loop_rate
from chasles.algorithms.spatial.newton_euler_vector import newton_euler_vector
from chasles.mathematics.linear import Matrix, Vector
from chasles.model.model import Model
from chasles.model.spaces import (
    ABSENT,
    LoopNumbers,
    Position,
    TreeVector,
    Velocity,
    Wrenches,
    loop_entries,
    loop_rows,
    stack,
)


def loop_equations(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    multipliers: LoopNumbers,
    f_ext: Wrenches = ABSENT,
) -> tuple[TreeVector, LoopNumbers, LoopNumbers]:
    """H qdd + h - K' lam, which is tau; K qdd - k; and K qd - b (Featherstone 2008, Eq 8.1-8.6).

    Over all equations of the loops. Their derivatives say how neighbouring motions differ.
    """
    order = model.in_tree_order
    tau = stack(model.efforts(newton_euler_vector(model, q, qd, qdd, f_ext)), order)
    K = Matrix(tuple(map(tuple, loop_rows(model, loop_matrix(model, q), order))))
    k = Vector(tuple(loop_entries(loop_bias(model, q, qd))))
    slip = K @ stack(qd, order) - Vector(tuple(loop_entries(loop_rate(model, q))))
    return tau - K.T @ multipliers, K @ stack(qdd, order) - k, slip
