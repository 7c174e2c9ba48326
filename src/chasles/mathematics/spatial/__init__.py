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
from chasles.mathematics.spatial.transform import Transform, inverted
from chasles.mathematics.spatial.vectors import Force, Forces, Motion, Motions

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
    "inverted",
    "shift_of_inertia",
]
