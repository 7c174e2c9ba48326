"""Where a frame is."""

from chasles.mathematics.homogeneous import Position
from chasles.model import spaces
from chasles.model.model import Frame, Model


def forward_kinematics(model: Model, q: spaces.Position, *, frame: Frame) -> spaces.Pose:
    """The product of position matrices from the base to the frame (Eq I.3)."""
    M = Position.of(frame.placement)
    for i in model.support(frame.body):
        M = Position.of(model.bodies[i].joint.transform(q[i])) @ M
    return M.transform()
