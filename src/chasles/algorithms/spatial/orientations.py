"""Orientations as quaternions that vary continuously with the configuration."""

from collections.abc import Mapping

from chasles.expr import cos, sin, sqrt
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import quaternion_from_matrix, quaternion_product
from chasles.model.joints import Joint
from chasles.model.model import Frame, Model


def orientation(model: Model, q: Mapping[int, Vector], frame: Frame) -> Vector:
    """Return the quaternion (w, x, y, z) of a frame in the world, as the product over its joints.

    It is continuous along every motion of hinges and of joints with quaternion coordinates.
    """
    found = Vector.of(1.0, 0.0, 0.0, 0.0)
    for i in reversed(model.support(frame.body)):
        joint = model.bodies[i].joint
        for turn in (quaternion_from_matrix(joint.placement.R), _turned(joint, q[i])):
            found = quaternion_product(found, turn)
    return quaternion_product(found, quaternion_from_matrix(frame.placement.R))


def _turned(joint: Joint, q: Vector) -> Vector:
    """Return the quaternion of a joint's motion, from its successor to its predecessor frame."""
    if joint.hinge:
        return Vector.of(cos(0.5 * q[0]), 0.0, 0.0, sin(0.5 * q[0]))
    if "1" in joint.units:
        turn = Vector(tuple(q)[:4])
        return turn * (1.0 / sqrt(turn.dot(turn)))
    return quaternion_from_matrix(joint.motion(q).R)
