"""Joint accelerations for given forces, by the Lagrangian equation of motion."""

from chasles.algorithms.equation_of_motion import accelerations
from chasles.algorithms.historical.homogeneous.bias_forces_lagrange import bias_forces_lagrange
from chasles.algorithms.historical.homogeneous.mass_matrix_lagrange import mass_matrix_lagrange
from chasles.model import spaces
from chasles.model.model import Model
from chasles.model.spaces import ABSENT


def forward_dynamics_lagrange(
    model: Model,
    q: spaces.Position,
    qd: spaces.Velocity,
    tau: spaces.Effort,
    f_ext: spaces.Wrenches = ABSENT,
) -> spaces.Velocity:
    """Solve M qdd + C = F (section 3)."""
    C = bias_forces_lagrange(model, q, qd, f_ext)
    return accelerations(model, mass_matrix_lagrange(model, q), C, tau)
