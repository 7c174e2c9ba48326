"""Joint accelerations for given forces, by composite bodies about their centres of mass."""

from chasles.algorithms.equation_of_motion import accelerations
from chasles.algorithms.historical.tensor.mass_matrix_composite_3x3 import mass_matrix_composite_3x3
from chasles.algorithms.tensor.bias_forces_augmented_tensor import bias_forces_augmented_tensor
from chasles.model.model import Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def forward_dynamics_composite_3x3(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Walker and Orin's third method (1982; Balafoutis and Patel 1991, algorithm 6.1)."""
    D = mass_matrix_composite_3x3(model, q)
    return accelerations(model, D, bias_forces_augmented_tensor(model, q, qd, f_ext), tau)
