"""Joints: the contract, every type, and the table of them by name.

To add a type, add a class in one of these files and its row in `JOINTS`: the tests in
tests/model/test_joints.py then hold it to the contract.
"""

from chasles.model.joints.basis import Z
from chasles.model.joints.contract import Joint, Slopes, Steady, diagonal
from chasles.model.joints.one_freedom import Fixed, Helical, Prismatic, RackAndPinion, Revolute
from chasles.model.joints.reverse import Reversed
from chasles.model.joints.turning import Spherical, Universal, YawPitchRoll
from chasles.model.joints.turning_and_sliding import (
    Cylindrical,
    Free,
    Planar,
    Rolling,
    SphereInCylinder,
)

JOINTS: dict[str, type[Joint]] = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "helical": Helical,
    "cylindrical": Cylindrical,
    "planar": Planar,
    "universal": Universal,
    "spherical": Spherical,
    "free": Free,
    "rack_and_pinion": RackAndPinion,
    "sphere_in_cylinder": SphereInCylinder,
    "yaw_pitch_roll": YawPitchRoll,
    "rolling": Rolling,
}
"""Every joint type by the name that files and builders use; "fixed" joints merge two links."""

LOOP_JOINTS: dict[str, type[Joint]] = {"fixed": Fixed} | {
    name: joint for name, joint in JOINTS.items() if joint.holonomic
}
"""Every type that can close a loop: one that forbids positions, not only velocities."""

__all__ = [
    "JOINTS",
    "LOOP_JOINTS",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "Joint",
    "Planar",
    "Prismatic",
    "RackAndPinion",
    "Reversed",
    "Revolute",
    "Rolling",
    "Slopes",
    "SphereInCylinder",
    "Spherical",
    "Steady",
    "Universal",
    "YawPitchRoll",
    "Z",
    "diagonal",
]
