"""Derivatives of joint accelerations with respect to positions, velocities and forces."""

from chasles.algorithms.spatial.bias_forces import bias_forces
from chasles.algorithms.spatial.inverse_dynamics_derivatives import inverse_dynamics_derivatives
from chasles.algorithms.spatial.mass_matrix import mass_matrix
from chasles.mathematics.linear import Matrix, Vector, factor_ltdl, invert_ltdl, solve_ltdl
from chasles.model.model import Model
from chasles.model.spaces import (
    Effort,
    Position,
    TreeMatrix,
    Velocity,
    assemble,
    stack,
    unstack,
)


def forward_dynamics_derivatives(
    model: Model, q: Position, qd: Velocity, tau: Effort
) -> tuple[TreeMatrix, TreeMatrix, TreeMatrix]:
    """d qdd / d q, d qdd / d qd and d qdd / d tau = M^-1.

    At the accelerations that the forces cause, a change of forces that inverse dynamics would ask
    for is one that forward dynamics does not get: -M^-1 times its derivatives (Carpentier and
    Mansard 2018), by the sparse factors of M.
    """
    order = model.in_tree_order
    L, D = factor_ltdl(assemble(model, mass_matrix(model, q), order))
    h = model.efforts(bias_forces(model, q, qd))
    qdd = unstack(model, solve_ltdl(L, D, stack(tau, order) - stack(h, order)), order)
    dq, dqd, _ = inverse_dynamics_derivatives(model, q, qd, model.followed(qdd))

    def missing(columns: Matrix) -> Matrix:
        return Matrix(tuple(tuple(-solve_ltdl(L, D, Vector(c))) for c in columns.T.rows)).T

    return (
        missing(Matrix(tuple(map(tuple, assemble(model, dq, order))))),
        missing(Matrix(tuple(map(tuple, assemble(model, dqd, order))))),
        invert_ltdl(L, D),
    )
