"""What moves the joints that are driven in time."""

from chasles.algorithms.homogeneous.loop_matrix import loop_matrix
from chasles.algorithms.spatial.inverse_dynamics import inverse_dynamics
from chasles.mathematics.linear import Vector
from chasles.model.model import Model
from chasles.model.spaces import (
    ABSENT,
    DrivenEffort,
    LoopNumbers,
    Position,
    Velocity,
    Wrenches,
)


def driving_forces(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    multipliers: LoopNumbers,
    f_ext: Wrenches = ABSENT,
) -> DrivenEffort:
    """tau = S'f of the driven joints, less what loops and couplings exert on them, K' lam (8.4)."""
    tau, first = dict(inverse_dynamics(model, q, qd, qdd, f_ext)), 0
    for constraint, K in zip(model.constraints, loop_matrix(model, q), strict=True):
        lam = Vector(multipliers.entries[first : first + constraint.rows])
        first += constraint.rows
        for i, block in K.items():
            tau[i] -= block.T @ lam
    return tau
