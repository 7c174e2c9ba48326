"""Joint accelerations for given forces, the mass matrix column by column."""

from chasles.algorithms.equation_of_motion import accelerations
from chasles.algorithms.historical.tensor.mass_matrix_unit_acceleration import (
    mass_matrix_unit_acceleration,
)
from chasles.algorithms.tensor.bias_forces_augmented_tensor import bias_forces_augmented_tensor
from chasles.model.model import Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def forward_dynamics_unit_acceleration(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """D from forces of unit accelerations, then elimination.

    Walker and Orin's second method (1982), their first with half of D by symmetry (Balafoutis and
    Patel 1991, Eq 6.2.4).
    """
    D = mass_matrix_unit_acceleration(model, q)
    return accelerations(model, D, bias_forces_augmented_tensor(model, q, qd, f_ext), tau)
