"""Joint forces that hold the mechanism against gravity."""

from chasles.algorithms.spatial.newton_euler_vector import newton_euler_vector
from chasles.model.model import Model
from chasles.model.spaces import Effort, Position


def gravity_forces(model: Model, q: Position) -> Effort:
    """Inverse dynamics at rest (Featherstone 2008, Eq 5.12)."""
    rest = model.at_rest()
    return newton_euler_vector(model, q, rest, rest)
