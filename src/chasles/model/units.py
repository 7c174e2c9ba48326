"""Units that suit a robot: for fewer multiplications, and to compare numbers of several kinds."""

import math
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


def size(model: Model) -> float:
    """The longest distance from one joint to the next, in m; 1 where there are none."""
    offsets = [b.joint.placement.r for b in model.bodies if b.parent != WORLD]
    return max((math.sqrt(r.dot(r)) for r in offsets), default=0.0) or 1.0


def freedom_units(model: Model, length: float) -> list[float]:
    """Of each velocity coordinate: 1 where it turns, a length where it only slides."""
    units = []
    for i in model.movers:
        joint = model.bodies[i].joint
        S = joint.subspace(joint.neutral())
        units += [1.0 if any(s.angular) else length for s in S.columns]
    return units


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
