"""Legnani's 4x4 matrices at the prompt: what a user of SPACELIB expects, under readable names.

import numpy as np
from chasles import homogeneous as hm
M = hm.position_from_dh(0.3, 0.1, 0.0, np.pi / 2)  # a Position; np.asarray(M) is its 4x4 array
W = hm.change_reference(hm.joint_velocity("revolute", 2.0), M)

Functions take numbers, sequences and arrays (and symbols of a trace); they give matrices as types
whose wrong combinations are errors, and vectors as arrays. Lengths in m, angles in rad, masses in
kg. Subscripts as in the paper (Legnani, Casolo, Righettini, Zappa 1996): the motion of body j
relative to body i, written in frame k.
"""

from chasles.homogeneous.door import from_array
from chasles.homogeneous.masses import (
    MassData,
    action_from_force,
    angular_part,
    gravity,
    inertia_from_mass,
    linear_part,
    mass_from_inertia,
    pseudo_product,
    six_numbers,
    skew,
    three_numbers,
    velocity_from_six,
    weight,
)
from chasles.homogeneous.motions import (
    acceleration,
    acceleration_from_array,
    change_reference,
    compose_accelerations,
    compose_velocities,
    joint_acceleration,
    joint_screw,
    joint_velocity,
    velocity,
)
from chasles.homogeneous.positions import (
    angles_from_position,
    axis_angle_from_position,
    position_from_angles,
    position_from_axes,
    position_from_axis_angle,
    position_from_dh,
    position_from_extended_dh,
    rototranslation,
)
from chasles.homogeneous.screws import (
    Displacement,
    ScrewAxis,
    axis_of_screw,
    exponential,
    line_from_plucker,
    logarithm,
    plucker_from_line,
    rototranslation_from_axis,
    screw_from_axis,
    screw_motion,
    screw_of_velocity,
)
from chasles.mathematics.homogeneous import (
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
    "Displacement",
    "Inertia",
    "MassData",
    "Momentum",
    "Position",
    "Rototranslation",
    "Screw",
    "ScrewAxis",
    "Velocity",
    "acceleration",
    "acceleration_from_array",
    "action",
    "action_from_force",
    "angles_from_position",
    "angular_part",
    "axis_angle_from_position",
    "axis_of_screw",
    "change_reference",
    "compose_accelerations",
    "compose_velocities",
    "exponential",
    "from_array",
    "gravity",
    "inertia_from_mass",
    "joint_acceleration",
    "joint_screw",
    "joint_velocity",
    "kinetic_energy",
    "line_from_plucker",
    "linear_part",
    "logarithm",
    "mass_from_inertia",
    "momentum",
    "plucker_from_line",
    "position_from_angles",
    "position_from_axes",
    "position_from_axis_angle",
    "position_from_dh",
    "position_from_extended_dh",
    "potential_energy",
    "pseudo_product",
    "rototranslation",
    "rototranslation_from_axis",
    "screw_from_axis",
    "screw_motion",
    "screw_of_velocity",
    "six_numbers",
    "skew",
    "three_numbers",
    "velocity",
    "velocity_from_six",
    "weight",
]
