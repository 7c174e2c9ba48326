"""Joint accelerations for given forces, by tensors of augmented and generalised links."""

from chasles.algorithms.equation_of_motion import accelerations
from chasles.algorithms.tensor.bias_forces_augmented_tensor import bias_forces_augmented_tensor
from chasles.algorithms.tensor.mass_matrix_augmented_tensor import mass_matrix_augmented_tensor
from chasles.model.model import Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def forward_dynamics_augmented_tensor(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """D by algorithm 6.2, b by 5.7, then elimination (Balafoutis and Patel 1991, section 6.3)."""
    D = mass_matrix_augmented_tensor(model, q)
    return accelerations(model, D, bias_forces_augmented_tensor(model, q, qd, f_ext), tau)
