"""Parallel axes: a body turns against the one before them by the sum of their angles.

That one, the carrier, is the last body whose own axis is not parallel. Where it turns about an axis
of the base, its angular velocity has one component, and turned at once by the summed angle it has
two: fewer operations than from parent to parent. Everywhere else a body's carrier is its parent.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Plane, Rotation
from chasles.mathematics.spatial import Transform
from chasles.model.joints import Revolute, Z
from chasles.model.model import WORLD, Model


class Turn(NamedTuple):
    """How a body moves against its carrier.

    joints: the bodies of the parallel joints between, its own last. X: from coordinates of the
    carrier to those of the body. axis: the common axis in both, or zero where the carrier is the
    parent.
    """

    carrier: int
    joints: tuple[int, ...]
    X: Transform
    axis: Vector


def summed_angles(model: Model) -> Model:
    """The same mechanism, with the carrier of every body that does not turn against its parent."""
    carriers: dict[int, int] = {}
    for i, p, *_ in model.outward():
        if p != WORLD and _turns_on(model, i, carrier := carriers.get(p, model.bodies[p].parent)):
            carriers[i] = carrier
    return replace(model, carriers=carriers)


def turns(model: Model, q: Mapping[int, Vector]) -> dict[int, Turn]:
    """The turn of every body; only after `summed_angles` has one a carrier that is not its parent.

    Sine and cosine of a sum are made of those of its angles: six operations, fewer than a sine has.
    """
    found: dict[int, Turn] = {}
    for i, p, joint, _ in model.outward():
        X = joint.transform(q[i])
        found[i] = Turn(p, (i,), X, Vector.zero())
        if i in model.carriers:
            carrier, joints, before, _ = found[p]
            (*first, turned), R = before.E.factors, joint.placement.E.matrix()
            (own,) = joint.motion(q[i]).E.factors
            assert isinstance(turned, Plane)
            assert isinstance(own, Plane)
            summed = turned.then(Plane(2, R[0, 0], R[0, 1])).then(own)
            whole = Transform(Rotation((*first, summed)), before.locate(X.r))
            found[i] = Turn(carrier, (*joints, i), whole, Z)
    return found


def _turns_on(model: Model, i: int, carrier: int) -> bool:
    """Whether joint i is parallel to its parent's, and their carrier turns about a fixed axis."""
    body = model.bodies[i]
    joints = [body.joint, model.bodies[body.parent].joint]
    if carrier != WORLD:
        joints.append(model.bodies[carrier].joint)
    return (
        all(isinstance(joint, Revolute) for joint in joints)
        and body.joint.placement.E.matrix().rows[2] == (0.0, 0.0, 1.0)
        and (carrier == WORLD or model.bodies[carrier].parent == WORLD)
    )
