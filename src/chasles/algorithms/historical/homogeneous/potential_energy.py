"""Energy of position, by traces."""

from chasles.algorithms.homogeneous.chain import chain
from chasles.mathematics import homogeneous
from chasles.mathematics.homogeneous import Acceleration
from chasles.model import spaces
from chasles.model.model import Model


def potential_energy(model: Model, q: spaces.Position) -> spaces.Energy:
    """The sum of -trace(Hg J) over all bodies (part I, section 4.5), in the base frame."""
    rest = model.at_rest()
    Hg, J = Acceleration.uniform(model.gravity_vector), chain(model, q, rest, rest).J
    return sum((homogeneous.potential_energy(Hg, J[i]) for i, *_ in model.outward()), 0.0)
