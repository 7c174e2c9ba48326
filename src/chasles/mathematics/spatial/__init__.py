"""Spatial vector algebra (Featherstone 2008, chapter 2 and appendix A)."""

from chasles.mathematics.spatial.dyadics import (
    Dyadic,
    ForceMap,
    GeneralInertia,
    InverseInertia,
    MotionMap,
    dyad,
)
from chasles.mathematics.spatial.inertia import (
    ArticulatedInertia,
    CoriolisInertia,
    RigidInertia,
    shift_of_inertia,
)
from chasles.mathematics.spatial.transform import Transform, inverted, turn_about_z
from chasles.mathematics.spatial.vectors import Force, Forces, Motion, Motions, group_drift

__all__ = [
    "ArticulatedInertia",
    "CoriolisInertia",
    "Dyadic",
    "Force",
    "ForceMap",
    "Forces",
    "GeneralInertia",
    "InverseInertia",
    "Motion",
    "MotionMap",
    "Motions",
    "RigidInertia",
    "Transform",
    "dyad",
    "group_drift",
    "inverted",
    "shift_of_inertia",
    "turn_about_z",
]
