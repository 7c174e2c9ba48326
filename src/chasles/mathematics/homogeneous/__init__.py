"""Homogeneous 4x4 matrices (Legnani, Casolo, Righettini, Zappa 1996)."""

from chasles.mathematics.homogeneous.matrices import (
    Acceleration,
    Action,
    Block,
    Inertia,
    Momentum,
    Position,
    Rototranslation,
    Screw,
    Velocity,
    action,
    kinetic_energy,
    momentum,
    potential_energy,
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
    "action",
    "kinetic_energy",
    "momentum",
    "potential_energy",
]
