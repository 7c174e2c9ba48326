"""Joint forces that hold the mechanism against gravity."""

from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Effort, Position


def gravity_forces(model: Model, q: Position) -> Effort:
    """The weight of everything beyond a joint, on the joint's freedom (Featherstone, Eq 5.12).

    A rigid composite body is held like any other: only its mass m and first moment h count.
    """
    X, a, tau = {}, {WORLD: -model.gravity_vector}, {}
    m, h = {WORLD: 0.0}, {WORLD: Vector.zero()}
    for i, p, joint, I in model.outward():
        X[i] = joint.transform(q[i])
        a[i] = X[i].E @ a[p]
        m[i], h[i] = I.m, I.h
    for i, p, joint, _ in model.inward():
        tau[i] = joint.subspace(q[i]).T @ Force(h[i].cross(a[i]), a[i] * m[i])
        m[p] += m[i]
        h[p] += X[i].E.T @ h[i] + X[i].r * m[i]
    return tau
