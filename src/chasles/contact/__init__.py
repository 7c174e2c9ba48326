"""Contact of bodies: impact and soft contact."""

from chasles.contact.impact import (
    ContactPoint,
    Impact,
    collide,
    contact_axes,
    contact_forces,
    impact,
    velocity_step,
)
from chasles.contact.impact_map import impact_derivatives
from chasles.contact.restitution import ImpactLaw, Newton, Poisson, Sticking, Stronge
from chasles.contact.soft import (
    AzadFeatherstone,
    HuntCrossley,
    NormalLaw,
    SoftContact,
    SoftFriction,
    Surface,
    TwoSurfaces,
)

__all__ = [
    "AzadFeatherstone",
    "ContactPoint",
    "HuntCrossley",
    "Impact",
    "ImpactLaw",
    "Newton",
    "NormalLaw",
    "Poisson",
    "SoftContact",
    "SoftFriction",
    "Sticking",
    "Stronge",
    "Surface",
    "TwoSurfaces",
    "collide",
    "contact_axes",
    "contact_forces",
    "impact",
    "impact_derivatives",
    "velocity_step",
]
