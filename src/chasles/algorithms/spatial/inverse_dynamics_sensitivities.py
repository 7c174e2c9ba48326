"""Derivatives of joint forces under the names of a linearised model."""

from chasles.algorithms.spatial.inverse_dynamics_derivatives import inverse_dynamics_derivatives
from chasles.model.model import Model
from chasles.model.spaces import JointMatrix, Loads, Position, Velocity


def inverse_dynamics_sensitivities(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Loads = ()
) -> tuple[JointMatrix, JointMatrix, JointMatrix]:
    """D0, V0 and P0 of d tau = D0 d qdd + V0 d qd + P0 d q, by spatial vectors."""
    P0, V0, D0 = inverse_dynamics_derivatives(model, q, qd, qdd, f_ext)
    return D0, V0, P0
