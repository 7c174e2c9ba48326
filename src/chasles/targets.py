"""Targets of `Robot.inverse_kinematics`: poses, points, directions, the center of mass."""

from chasles.functions.targets import (
    CENTER,
    Axis,
    CenterOfMass,
    LookAt,
    Orientation,
    Pose,
    Position,
    Relative,
    Target,
)
from chasles.mechanisms.inverse_kinematics import Solution

__all__ = [
    "CENTER",
    "Axis",
    "CenterOfMass",
    "LookAt",
    "Orientation",
    "Pose",
    "Position",
    "Relative",
    "Solution",
    "Target",
]
