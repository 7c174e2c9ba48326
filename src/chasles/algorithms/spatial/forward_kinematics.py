"""Where bodies and frames are."""

from chasles.mathematics.spatial import Transform
from chasles.model.model import WORLD, Frame, Model
from chasles.model.spaces import Pose, Position


def body_transforms(model: Model, q: Position) -> dict[int, Transform]:
    """From world coordinates to those of every body (Featherstone 2008, example 4.3)."""
    X0 = {WORLD: Transform.identity()}
    for i, p, joint, _ in model.outward():
        X0[i] = joint.transform(q[i]) @ X0[p]  # (2.3.6)
    return X0


def forward_kinematics(model: Model, q: Position, *, frame: Frame) -> Pose:
    """The pose of a frame in the world."""
    return frame.placement @ body_transforms(model, q)[frame.body]
