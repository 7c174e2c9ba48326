"""Forward dynamics with spatial vectors (Featherstone 2008), selected only by `method=`."""

from chasles.algorithms.spatial.dynamics import accelerations, bias_forces, mass_matrix
from chasles.model.model import Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def forward_dynamics_mass_matrix(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Solve M qdd = tau - h with a sparse factorization of M (Featherstone 2008, chapter 6)."""
    return accelerations(model, mass_matrix(model, q), bias_forces(model, q, qd, f_ext), tau)
