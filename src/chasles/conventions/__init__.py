"""Convert states, forces and matrices to and from Pinocchio, MuJoCo, Drake and ROS.

The libraries themselves are not imported.
"""

from chasles.conventions.libraries import FREE_IN_WORLD as FREE_IN_WORLD
from chasles.conventions.libraries import LIBRARIES as LIBRARIES
from chasles.conventions.libraries import LINEAR_FIRST as LINEAR_FIRST
from chasles.conventions.libraries import Convention, drake, mujoco, pinocchio
from chasles.conventions.names import (
    from_joint_state,
    position_by_name,
    position_from_names,
    to_joint_state,
    velocity_by_name,
    velocity_from_names,
)
from chasles.conventions.poses import REFERENCE_FRAMES as REFERENCE_FRAMES
from chasles.conventions.poses import (
    from_pose,
    reference_frame,
    scalar_first,
    scalar_last,
    swap,
    to_pose,
)

__all__ = [
    "Convention",
    "drake",
    "from_joint_state",
    "from_pose",
    "mujoco",
    "pinocchio",
    "position_by_name",
    "position_from_names",
    "reference_frame",
    "scalar_first",
    "scalar_last",
    "swap",
    "to_joint_state",
    "to_pose",
    "velocity_by_name",
    "velocity_from_names",
]
