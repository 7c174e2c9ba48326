"""Joint forces for given accelerations, by the Lagrangian equation of motion."""

from chasles.algorithms.historical.homogeneous.bias_forces_lagrange import bias_forces_lagrange
from chasles.algorithms.historical.homogeneous.mass_matrix_lagrange import mass_matrix_lagrange
from chasles.model import spaces
from chasles.model.model import Model
from chasles.model.spaces import ABSENT


def inverse_dynamics_lagrange(
    model: Model,
    q: spaces.Position,
    qd: spaces.Velocity,
    qdd: spaces.Velocity,
    f_ext: spaces.Wrenches = ABSENT,
) -> spaces.Effort:
    """F = M qdd + C (section 3); C has the accelerations of driven joints already."""
    F, driven = dict(bias_forces_lagrange(model, q, qd, f_ext)), model.undriven(2)
    for (i, j), block in mass_matrix_lagrange(model, q).items():
        F[i] += block @ (qdd[j] - driven[j])
    return F
