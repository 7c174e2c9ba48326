"""Where the mass is."""

from chasles.errors import ModelError
from chasles.expr import Number
from chasles.mathematics.linear import Vector
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Point, Position


def first_moment(model: Model, q: Position) -> tuple[Number, Vector]:
    """The mass of all moving bodies and their first moment about the world's origin."""
    m, h = {WORLD: 0.0}, {WORLD: Vector.zero()}
    for i, _, _, I in model.outward():
        m[i], h[i] = I.m, I.h
    for i, p, joint, _ in model.inward():
        X = joint.transform(q[i])
        m[p] += m[i]
        h[p] += X.E.T @ h[i] + X.r * m[i]
    return m[WORLD], h[WORLD]


def center_of_mass(model: Model, q: Position) -> Point:
    """The centre of mass of all moving bodies, in the world."""
    m, h = first_moment(model, q)
    if isinstance(m, float) and m == 0.0:
        problem = "what moves has no mass, hence no centre of mass"
        remedy = "give links a mass, or ask the robot before its inertias were regrouped"
        raise ModelError("E-CALL-001", problem, remedy, part=f"robot {model.name!r}")
    return h * (1.0 / m)
