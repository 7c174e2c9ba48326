"""Momentum of the whole mechanism."""

from typing import Literal

from chasles.algorithms.spatial.center_of_mass import center_of_mass
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force, Motion
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Position, Velocity, Wrench6


def momentum(
    model: Model, q: Position, qd: Velocity, *, at: Literal["world", "com"] = "com"
) -> Wrench6:
    """Angular momentum about a point, then linear momentum, along the world's axes (Eq 2.58)."""
    X, v, h = {}, {WORLD: Motion.zero()}, {WORLD: Force.zero()}
    for i, p, joint, I in model.outward():
        X[i] = joint.transform(q[i])
        v[i] = X[i] @ v[p] + joint.subspace(q[i]) @ qd[i]
        h[i] = I @ v[i]
    for i, p, *_ in model.inward():
        h[p] += X[i].T @ h[i]
    about = center_of_mass(model, q) if at == "com" else Vector.zero()
    whole = h[WORLD]
    return Force(whole.moment - about.cross(whole.force), whole.force)
