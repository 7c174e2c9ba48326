"""Energy of motion."""

from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motion
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Energy, Position, Velocity


def kinetic_energy(model: Model, q: Position, qd: Velocity) -> Energy:
    """Half the sum of v . I v over all bodies (Featherstone 2008, Eq 2.67), rotors included."""
    v, T = {WORLD: Motion.zero()}, 0.0
    for i, p, joint, I in model.outward():
        v[i] = joint.transform(q[i]) @ v[p] + joint.subspace(q[i]) @ qd[i]
        T = T + v[i].dot(I @ v[i]) + Vector(tuple(qd[i])).dot(joint.rotor(qd[i]))
    return 0.5 * T
