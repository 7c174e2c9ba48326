"""The unit of length that is most frequent among the offsets of a robot."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from chasles.expr import Number, Scalar
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model.joints import Revolute, Spherical, Universal
from chasles.model.model import WORLD, Model


def natural_units(model: Model) -> Model:
    """The same equation of motion, with the most frequent offset between axes as unit of length.

    What is multiplied by that offset is then multiplied by one. The unit of mass changes with the
    square, so that moments, moments of inertia and accelerations of joints keep theirs. Only where
    all joints turn, and where no force or position is asked for: named frames and loops are left
    out.
    """
    lengths = Counter(_offsets(model))
    turning = all(isinstance(b.joint, Revolute | Universal | Spherical) for b in model.bodies)
    if not turning or not lengths:
        return model
    [(unit, _)] = lengths.most_common(1)
    bodies = []
    for body in model.bodies:
        X, I = body.joint.placement, body.inertia
        joint = replace(body.joint, placement=Transform(X.E, Vector(tuple(x / unit for x in X.r))))
        inertia = RigidInertia(I.m * unit * unit, I.h * unit, I.I)
        bodies.append(replace(body, joint=joint, inertia=inertia))
    gravity = model.gravity_vector * (1.0 / unit)
    return replace(model, bodies=tuple(bodies), gravity_vector=gravity, frames={}, loops=())


def _offsets(model: Model) -> Iterator[Number]:
    """Lengths that the recursions multiply by: no offset from the base, nor along an axis there."""
    for body in model.bodies:
        if body.parent == WORLD:
            continue
        parent = model.bodies[body.parent]
        on_axis = parent.parent == WORLD and isinstance(parent.joint, Revolute)
        for x in body.joint.placement.r.entries[: 2 if on_axis else 3]:
            if not isinstance(x, Scalar) and x != 0.0:
                yield abs(x)
