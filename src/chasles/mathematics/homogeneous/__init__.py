"""Homogeneous 4x4 matrices (Legnani, Casolo, Righettini, Zappa 1996)."""

from chasles.mathematics.homogeneous.dense import Block, angular, linear
from chasles.mathematics.homogeneous.derivatives import dJ, dL, dM, dM_inverse, dW_dq, dW_dt
from chasles.mathematics.homogeneous.frames import (
    Position,
    Rototranslation,
    position_from_extended_dh,
)
from chasles.mathematics.homogeneous.masses import (
    Action,
    Inertia,
    Momentum,
    action,
    kinetic_energy,
    momentum,
    potential_energy,
)
from chasles.mathematics.homogeneous.motions import Acceleration, Screw, Velocity

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
    "angular",
    "dJ",
    "dL",
    "dM",
    "dM_inverse",
    "dW_dq",
    "dW_dt",
    "kinetic_energy",
    "linear",
    "momentum",
    "position_from_extended_dh",
    "potential_energy",
]
