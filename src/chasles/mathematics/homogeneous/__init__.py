"""Homogeneous 4x4 matrices for rigid bodies (Legnani, Casolo, Righettini and Zappa 1996)."""

from chasles.mathematics.homogeneous.frames import (
    Block,
    Position,
    Rototranslation,
    angular,
    linear,
    position_from_extended_dh,
)
from chasles.mathematics.homogeneous.motions import (
    Acceleration,
    Action,
    Inertia,
    Momentum,
    Screw,
    Velocity,
    acceleration_from_action,
    action,
    kinetic_energy,
    momentum,
    potential_energy,
    velocity_from_momentum,
)

__all__ = [
    "Acceleration",
    "Action",
    "Block",
    "Inertia",
    "Momentum",
    "Position",
    "Rototranslation",
    "Screw",
    "Velocity",
    "acceleration_from_action",
    "action",
    "angular",
    "kinetic_energy",
    "linear",
    "momentum",
    "position_from_extended_dh",
    "potential_energy",
    "velocity_from_momentum",
]
