"""Energy of position."""

from chasles.algorithms.spatial.center_of_mass import first_moment
from chasles.model.model import Model
from chasles.model.spaces import Energy, Position


def potential_energy(model: Model, q: Position) -> Energy:
    """-g . m c of all moving bodies: zero when their centre of mass is at the world's origin."""
    _, h = first_moment(model, q)
    return -model.gravity_vector.dot(h)
