"""Joint accelerations for given forces, with the angles of parallel joints summed."""

from chasles.algorithms.equation_of_motion import accelerations
from chasles.algorithms.tensor.bias_forces_parallel_axes import bias_forces_parallel_axes
from chasles.algorithms.tensor.mass_matrix_parallel_axes import mass_matrix_parallel_axes
from chasles.model.model import Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def forward_dynamics_parallel_axes(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Solve M qdd = tau - b with the sparse factors of M (Featherstone 2008, chapter 6)."""
    M = mass_matrix_parallel_axes(model, q)
    return accelerations(model, M, bias_forces_parallel_axes(model, q, qd, f_ext), tau)
