"""Spatial vector algebra (Featherstone 2008, chapter 2 and appendix A)."""

from chasles.mathematics.spatial.inertia import (
    ArticulatedInertia,
    CoriolisInertia,
    InverseInertia,
    RigidInertia,
    shift_of_inertia,
)
from chasles.mathematics.spatial.transform import Transform, inverted
from chasles.mathematics.spatial.vectors import Force, Forces, Motion, Motions

__all__ = [
    "ArticulatedInertia",
    "CoriolisInertia",
    "Force",
    "Forces",
    "InverseInertia",
    "Motion",
    "Motions",
    "RigidInertia",
    "Transform",
    "inverted",
    "shift_of_inertia",
]
