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
from chasles.mathematics.homogeneous.screws import (
    Axis,
    ScrewMotion,
    axis_of_screw,
    exponential,
    line_from_plucker,
    logarithm,
    plucker_from_line,
    screw_from_axis,
    screw_motion,
    screw_of_velocity,
)

__all__ = [
    "Acceleration",
    "Action",
    "Axis",
    "Block",
    "Inertia",
    "Momentum",
    "Position",
    "Rototranslation",
    "Screw",
    "ScrewMotion",
    "Velocity",
    "action",
    "angular",
    "axis_of_screw",
    "dJ",
    "dL",
    "dM",
    "dM_inverse",
    "dW_dq",
    "dW_dt",
    "exponential",
    "kinetic_energy",
    "line_from_plucker",
    "linear",
    "logarithm",
    "momentum",
    "plucker_from_line",
    "position_from_extended_dh",
    "potential_energy",
    "screw_from_axis",
    "screw_motion",
    "screw_of_velocity",
]
