"""Joint forces that keep all joint accelerations at zero."""

from chasles.algorithms.spatial.newton_euler_vector import newton_euler_vector
from chasles.model.model import Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def bias_forces(model: Model, q: Position, qd: Velocity, f_ext: Wrenches = ABSENT) -> Effort:
    """h in tau = M qdd + h: Coriolis, centrifugal, gravity and external forces (section 6.1)."""
    return newton_euler_vector(model, q, qd, model.undriven(2), f_ext)
