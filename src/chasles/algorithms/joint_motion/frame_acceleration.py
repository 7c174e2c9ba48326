"""The acceleration of a frame, in the frames of the links."""

from chasles.algorithms.joint_motion.frame_motion_link_frames import frame_motion_link_frames
from chasles.algorithms.spatial.forward_kinematics import body_transforms
from chasles.algorithms.spatial.viewpoint import At, Axes, Kind
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motion
from chasles.model.model import Frame, Model
from chasles.model.spaces import Position, Twist, Velocity


def frame_acceleration(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    *,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
    kind: Kind = "classical",
) -> Twist:
    """Angular acceleration, then linear acceleration at `at`: classical, spatial or proper."""
    v, a = frame_motion_link_frames(model, q, qd, qdd, frame=frame, axes=axes, at=at)
    E, g = (frame.placement @ body_transforms(model, q)[frame.body]).E, model.gravity_vector
    less = {
        "classical": Vector.zero(),
        "spatial": v.angular.cross(v.linear),
        "proper": E @ g if axes == "frame" else g,
    }[kind]
    return Motion(a.angular, a.linear - less)
