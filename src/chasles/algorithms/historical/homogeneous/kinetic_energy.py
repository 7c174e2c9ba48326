"""Energy of motion, by traces."""

from chasles.algorithms.homogeneous.chain import chain
from chasles.mathematics import homogeneous
from chasles.model import spaces
from chasles.model.model import Model


def kinetic_energy(model: Model, q: spaces.Position, qd: spaces.Velocity) -> spaces.Energy:
    """The sum of 1/2 trace(W J W') over all bodies (part I, section 4.5), rotors included."""
    _, _, W, _, J = chain(model, q, qd, model.at_rest())
    total = 0.0
    for i, _, joint, _ in model.outward():
        total = total + homogeneous.kinetic_energy(W[i], J[i])
        total = total + 0.5 * qd[i].dot(joint.rotor(qd[i]))
    return total
