"""The whole force that each joint transmits."""

from chasles.algorithms.spatial.inverse_dynamics import transmitted_forces
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model.model import Model
from chasles.model.spaces import ABSENT, Position, Reactions, Velocity, Wrenches


def joint_reactions(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Reactions:
    """What the parent exerts on the child, at the joint, in the child link's axes (section 5.3)."""
    f, _ = transmitted_forces(model, q, qd, qdd, f_ext)
    at_joint = {}
    for i, body in enumerate(model.bodies):
        joint_on_link = Transform(Rotation(), body.data.child_pose.r)
        at_joint[i] = joint_on_link @ (model.frames[body.name].placement @ f[i])
    return at_joint
