"""Orientations as quaternions that vary continuously with the configuration."""

from collections.abc import Mapping

from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import quaternion_from_matrix, quaternion_product
from chasles.model.model import Frame, Model


def orientation(model: Model, q: Mapping[int, Vector], frame: Frame) -> Vector:
    """Return the quaternion (w, x, y, z) of a frame in the world.

    The quaternion is the product of the joint quaternions, and is therefore continuous along every
    motion of revolute joints and joints with quaternion coordinates.
    """
    found = Vector.of(1.0, 0.0, 0.0, 0.0)
    for i in reversed(model.support(frame.body)):
        joint = model.bodies[i].joint
        for turn in (quaternion_from_matrix(joint.placement.R), joint.turn(q[i])):
            found = quaternion_product(found, turn)
    return quaternion_product(found, quaternion_from_matrix(frame.placement.R))
