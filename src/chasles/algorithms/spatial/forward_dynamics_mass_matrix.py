"""Joint accelerations for given forces, through the mass matrix."""

from chasles.algorithms.spatial.bias_forces import bias_forces
from chasles.algorithms.spatial.mass_matrix import mass_matrix
from chasles.mathematics.linear import factor_ltdl, solve_ltdl
from chasles.model.model import Model
from chasles.model.spaces import (
    ABSENT,
    Effort,
    Position,
    Velocity,
    Wrenches,
    assemble,
    stack,
    unstack,
)


def forward_dynamics_mass_matrix(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Solve M qdd = tau - h with the sparse factors of M (Featherstone 2008, chapter 6)."""
    order = model.in_tree_order
    L, D = factor_ltdl(assemble(model, mass_matrix(model, q), order))
    h = model.efforts(bias_forces(model, q, qd, f_ext))
    return unstack(model, solve_ltdl(L, D, stack(tau, order) - stack(h, order)), order)
