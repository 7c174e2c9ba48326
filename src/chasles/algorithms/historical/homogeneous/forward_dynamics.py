"""Joint accelerations for given forces, by joint actions."""

from chasles.algorithms.equation_of_motion import accelerations
from chasles.algorithms.historical.homogeneous.inverse_dynamics import inverse_dynamics
from chasles.algorithms.historical.homogeneous.mass_matrix import mass_matrix
from chasles.model import spaces
from chasles.model.model import Model
from chasles.model.spaces import ABSENT


def forward_dynamics(
    model: Model,
    q: spaces.Position,
    qd: spaces.Velocity,
    tau: spaces.Effort,
    f_ext: spaces.Wrenches = ABSENT,
) -> spaces.Velocity:
    """Solve M qdd = tau - h, with h the forces of section 2.3 at zero qdd."""
    h = inverse_dynamics(model, q, qd, model.undriven(2), f_ext)
    return accelerations(model, mass_matrix(model, q), h, tau)
