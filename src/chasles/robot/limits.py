"""Limits of joints as arrays."""

from dataclasses import dataclass

import numpy as np

from chasles.model import Model


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of all joints, infinite where a joint has none.

    lower, upper: positions (nq,), in rad or m. velocity, effort: the largest absolute values
    (nv,), in rad/s or m/s, and in N m or N.
    """

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


def limits_of(model: Model) -> Limits:
    """The limits of the joints that own coordinates; those with several coordinates have none."""
    q, v = np.full((2, model.nq), np.inf), np.full((2, model.nv), np.inf)
    q[0] = -np.inf
    for i in model.movers:
        given, joint = model.bodies[i].data.limits, model.bodies[i].joint
        if joint.nq == 1:
            q[:, model.position_slices[i].start] = sorted((given.lower, given.upper))
            v[:, model.velocity_slices[i].start] = given.velocity, given.effort
    return Limits(*q, *v)
