"""The velocity of a frame, in the frames of the links."""

from chasles.algorithms.joint_motion.frame_motion_link_frames import frame_motion_link_frames
from chasles.algorithms.spatial.viewpoint import At, Axes
from chasles.model.model import Frame, Model
from chasles.model.spaces import Position, Twist, Velocity


def frame_velocity(
    model: Model,
    q: Position,
    qd: Velocity,
    *,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
) -> Twist:
    """Angular velocity, then the velocity of the body's point at `at`."""
    (v,) = frame_motion_link_frames(model, q, qd, frame=frame, axes=axes, at=at)
    return v
