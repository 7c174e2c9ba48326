"""The table of contents: every public function, and the methods that compute it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chasles.algorithms.joint_motion.frame_motion import frame_motion
from chasles.algorithms.joint_motion.frame_motion_link_frames import frame_motion_link_frames
from chasles.algorithms.joint_motion.jacobian_rates import jacobian_rates
from chasles.algorithms.spatial.bias_forces import bias_forces
from chasles.algorithms.spatial.center_of_mass import center_of_mass
from chasles.algorithms.spatial.centroidal_momentum_matrix import centroidal_momentum_matrix
from chasles.algorithms.spatial.configuration import difference, integrate
from chasles.algorithms.spatial.coriolis_matrix import coriolis_matrix
from chasles.algorithms.spatial.forward_dynamics import forward_dynamics
from chasles.algorithms.spatial.forward_dynamics_derivatives import forward_dynamics_derivatives
from chasles.algorithms.spatial.forward_dynamics_mass_matrix import forward_dynamics_mass_matrix
from chasles.algorithms.spatial.forward_kinematics import forward_kinematics
from chasles.algorithms.spatial.frame_acceleration import frame_acceleration
from chasles.algorithms.spatial.frame_velocity import frame_velocity
from chasles.algorithms.spatial.gravity_forces import gravity_forces
from chasles.algorithms.spatial.inverse_dynamics import inverse_dynamics
from chasles.algorithms.spatial.inverse_dynamics_derivatives import inverse_dynamics_derivatives
from chasles.algorithms.spatial.jacobian import jacobian
from chasles.algorithms.spatial.jacobian_rate import jacobian_rate
from chasles.algorithms.spatial.joint_reactions import joint_reactions
from chasles.algorithms.spatial.kinetic_energy import kinetic_energy
from chasles.algorithms.spatial.mass_matrix import mass_matrix
from chasles.algorithms.spatial.mass_matrix_factors import ltdl_factors, ltl_factor
from chasles.algorithms.spatial.mass_matrix_inverse import mass_matrix_inverse
from chasles.algorithms.spatial.momentum import momentum
from chasles.algorithms.spatial.newton_euler_vector import newton_euler_vector
from chasles.algorithms.spatial.potential_energy import potential_energy


@dataclass(frozen=True)
class Method:
    """One way to compute a function.

    equivalent: the result depends on the equation of motion alone, so inertias may be regrouped.
    followers: mimic joints are allowed (a recursion that solves for each joint's acceleration by
    itself cannot have them).
    """

    name: str
    algorithm: Callable[..., Any]
    equivalent: bool = False
    followers: bool = True


DERIVATIVES: dict[str, Callable[..., Any]] = {
    "inverse_dynamics": inverse_dynamics_derivatives,
    "forward_dynamics": forward_dynamics_derivatives,
}
"""Functions whose derivatives have a recursion of their own, cheaper than the derivative of the
program: with respect to each array argument, in order. For joints with constant subspaces and
without external forces; everything else is differentiated as a program."""

FUNCTIONS: dict[str, tuple[Method, ...]] = {
    "forward_kinematics": (Method("spatial", forward_kinematics),),
    "frame_velocity": (Method("spatial", frame_velocity),),
    "frame_acceleration": (Method("spatial", frame_acceleration),),
    "frame_motion": (
        Method("joint-motion", frame_motion),
        Method("link-frames", frame_motion_link_frames),
    ),
    "jacobian": (Method("spatial", jacobian),),
    "jacobian_rate": (
        Method("spatial", jacobian_rate),
        Method("joint-motion", jacobian_rates),
    ),
    "inverse_dynamics": (
        Method("newton-euler-vector", newton_euler_vector, equivalent=True),
        Method("spatial", inverse_dynamics, equivalent=True),
    ),
    "gravity_forces": (Method("composite-body", gravity_forces, equivalent=True),),
    "bias_forces": (Method("newton-euler-vector", bias_forces, equivalent=True),),
    "coriolis_matrix": (Method("spatial", coriolis_matrix),),
    "mass_matrix": (Method("spatial", mass_matrix, equivalent=True),),
    "mass_matrix_inverse": (Method("spatial", mass_matrix_inverse, equivalent=True),),
    "ltdl_factors": (Method("spatial", ltdl_factors, equivalent=True),),
    "ltl_factor": (Method("spatial", ltl_factor, equivalent=True),),
    "forward_dynamics": (
        Method("articulated-body", forward_dynamics, equivalent=True, followers=False),
        Method("mass-matrix", forward_dynamics_mass_matrix, equivalent=True),
    ),
    "joint_reactions": (Method("spatial", joint_reactions),),
    "kinetic_energy": (Method("spatial", kinetic_energy),),
    "potential_energy": (Method("spatial", potential_energy),),
    "momentum": (Method("spatial", momentum),),
    "center_of_mass": (Method("spatial", center_of_mass),),
    "centroidal_momentum_matrix": (Method("spatial", centroidal_momentum_matrix),),
    "integrate": (Method("spatial", integrate),),
    "difference": (Method("spatial", difference),),
}
"""One row a function. The first method is the default where `method="fastest"` has no choice."""
