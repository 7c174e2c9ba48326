"""Joint forces that keep all joint accelerations at zero, parallel angles summed."""

from chasles.algorithms.tensor.parallel_axes import parallel_axes
from chasles.model.model import Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def bias_forces_parallel_axes(
    model: Model, q: Position, qd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """b = C + G: inverse dynamics with all qdd zero (Balafoutis and Patel 1991, section 6.2)."""
    return parallel_axes(model, q, qd, model.undriven(2), f_ext)
