"""Joints: the contract, every type, and the table of them by name.

To add a type, add a class in one of these files and its row in `JOINTS`. Whatever readers, writers
and other libraries ask of a type is a field of its class (`contract.Joint`); no file elsewhere
decides by a type's name. The tests in tests/model/test_joints.py hold it to the contract.
"""

from chasles.mathematics.linear import diagonal
from chasles.model.joints.contract import Joint, Numbers, Steady, Z
from chasles.model.joints.one_freedom import (
    Continuous,
    Fixed,
    Helical,
    Prismatic,
    RackAndPinion,
    Reversed,
    Revolute,
)
from chasles.model.joints.several_freedoms import (
    Cylindrical,
    Free,
    Planar,
    Rolling,
    SphereInCylinder,
    Spherical,
    Universal,
    YawPitchRoll,
)

JOINTS: dict[str, type[Joint]] = {
    "revolute": Revolute,
    "continuous": Continuous,
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


def traits(kind: str) -> type[Joint]:
    """The class of a joint type by its name; the contract itself for types of your own."""
    return Fixed if kind == Fixed.kind else JOINTS.get(kind, Joint)


def spelled(format: str, *, own: bool = False) -> dict[str, str]:
    """The joint types by a file format's words for them; the first row where two share a word.

    own: types that the format has no word for go by their own names.
    """
    found: dict[str, str] = {}
    types: dict[str, type[Joint]] = {**JOINTS, Fixed.kind: Fixed}
    for kind, joint in types.items():
        for word in joint.names.get(format, kind if own else "").split():
            found.setdefault(word, kind)
    return found


def spelling(kind: str, format: str) -> str:
    """The word that a file format has for a joint type; "" where it has none."""
    return traits(kind).names.get(format, "").partition(" ")[0]


def as_bounded(kind: str, bounded: bool) -> str:
    """The type with bounds, or without: a revolute joint without is continuous."""
    joint = traits(kind)
    return joint.twin if joint.twin and (joint.bounds == "none") is bounded else kind


__all__ = [
    "JOINTS",
    "LOOP_JOINTS",
    "Joint",
    "Numbers",
    "Reversed",
    "Revolute",
    "Steady",
    "Z",
    "as_bounded",
    "diagonal",
    "spelled",
    "spelling",
    "traits",
]
