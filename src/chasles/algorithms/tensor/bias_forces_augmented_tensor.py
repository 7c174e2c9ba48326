"""Joint forces that keep all joint accelerations at zero, by tensors of augmented links."""

from chasles.algorithms.tensor.augmented_tensor import augmented_tensor
from chasles.model.model import Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def bias_forces_augmented_tensor(
    model: Model, q: Position, qd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """b = C + G: algorithm 5.7 with all qdd zero (Balafoutis and Patel 1991, section 6.2)."""
    return augmented_tensor(model, q, qd, model.undriven(2), f_ext)
