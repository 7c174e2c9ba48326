"""The table of contents: every public function, and the methods that compute it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chasles.algorithms.homogeneous.bias_forces_lagrange import bias_forces_lagrange
from chasles.algorithms.homogeneous.forward_dynamics import (
    forward_dynamics as forward_dynamics_homogeneous,
)
from chasles.algorithms.homogeneous.forward_dynamics_lagrange import forward_dynamics_lagrange
from chasles.algorithms.homogeneous.forward_kinematics import (
    forward_kinematics as forward_kinematics_homogeneous,
)
from chasles.algorithms.homogeneous.inverse_dynamics import (
    inverse_dynamics as inverse_dynamics_homogeneous,
)
from chasles.algorithms.homogeneous.inverse_dynamics_lagrange import inverse_dynamics_lagrange
from chasles.algorithms.homogeneous.inverse_dynamics_link import inverse_dynamics_link
from chasles.algorithms.homogeneous.kinetic_energy import (
    kinetic_energy as kinetic_energy_homogeneous,
)
from chasles.algorithms.homogeneous.loop_bias import loop_bias
from chasles.algorithms.homogeneous.loop_matrix import loop_matrix
from chasles.algorithms.homogeneous.loop_residual import loop_residual
from chasles.algorithms.homogeneous.mass_matrix import mass_matrix as mass_matrix_homogeneous
from chasles.algorithms.homogeneous.mass_matrix_lagrange import mass_matrix_lagrange
from chasles.algorithms.homogeneous.potential_energy import (
    potential_energy as potential_energy_homogeneous,
)
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
from chasles.model.equivalent import Choice, by_moments, by_products


@dataclass(frozen=True)
class Method:
    """One way to compute a function.

    equivalent: how inertias may be regrouped for it, where the result depends on the equation of
    motion alone. followers: mimic joints are allowed (a recursion that solves for each joint's
    acceleration by itself cannot have them). by_name: it is used only where it is asked for, since
    another always has fewer operations.
    """

    name: str
    algorithm: Callable[..., Any]
    equivalent: Choice | None = None
    followers: bool = True
    by_name: bool = False


KINEMATICS = frozenset(
    {
        "forward_kinematics",
        "frame_velocity",
        "frame_acceleration",
        "frame_motion",
        "jacobian",
        "jacobian_rate",
        "loop_residual",
        "loop_matrix",
        "loop_bias",
        "integrate",
        "difference",
    }
)
"""The functions that need no masses: all that a robot without any has."""

DERIVATIVES: dict[str, Callable[..., Any]] = {
    "inverse_dynamics": inverse_dynamics_derivatives,
    "forward_dynamics": forward_dynamics_derivatives,
}
"""Functions whose derivatives have a recursion of their own, cheaper than the derivative of the
program: with respect to each array argument, in order. For joints with constant subspaces and
without external forces; everything else is differentiated as a program."""

FUNCTIONS: dict[str, tuple[Method, ...]] = {
    "forward_kinematics": (
        Method("spatial", forward_kinematics),
        Method("homogeneous", forward_kinematics_homogeneous),
        Method("lagrange", forward_kinematics_homogeneous, by_name=True),
    ),
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
        Method("newton-euler-vector", newton_euler_vector, equivalent=by_moments),
        Method("spatial", inverse_dynamics, equivalent=by_moments),
        Method("homogeneous", inverse_dynamics_homogeneous, equivalent=by_products, by_name=True),
        Method("homogeneous-link", inverse_dynamics_link, equivalent=by_products),
        Method("lagrange", inverse_dynamics_lagrange, equivalent=by_products, by_name=True),
    ),
    "gravity_forces": (Method("composite-body", gravity_forces, equivalent=by_moments),),
    "bias_forces": (
        Method("newton-euler-vector", bias_forces, equivalent=by_moments),
        Method("lagrange", bias_forces_lagrange, equivalent=by_products, by_name=True),
    ),
    "coriolis_matrix": (Method("spatial", coriolis_matrix),),
    "mass_matrix": (
        Method("spatial", mass_matrix, equivalent=by_moments),
        Method("homogeneous", mass_matrix_homogeneous, equivalent=by_products, by_name=True),
        Method("lagrange", mass_matrix_lagrange, equivalent=by_products, by_name=True),
    ),
    "mass_matrix_inverse": (Method("spatial", mass_matrix_inverse, equivalent=by_moments),),
    "ltdl_factors": (Method("spatial", ltdl_factors, equivalent=by_moments),),
    "ltl_factor": (Method("spatial", ltl_factor, equivalent=by_moments),),
    "forward_dynamics": (
        Method("articulated-body", forward_dynamics, equivalent=by_moments, followers=False),
        Method("mass-matrix", forward_dynamics_mass_matrix, equivalent=by_moments),
        Method("homogeneous", forward_dynamics_homogeneous, equivalent=by_products, by_name=True),
        Method("lagrange", forward_dynamics_lagrange, equivalent=by_products, by_name=True),
    ),
    "joint_reactions": (Method("spatial", joint_reactions),),
    "kinetic_energy": (
        Method("spatial", kinetic_energy),
        Method("homogeneous", kinetic_energy_homogeneous, by_name=True),
    ),
    "potential_energy": (
        Method("spatial", potential_energy),
        Method("homogeneous", potential_energy_homogeneous, by_name=True),
    ),
    "momentum": (Method("spatial", momentum),),
    "center_of_mass": (Method("spatial", center_of_mass),),
    "centroidal_momentum_matrix": (Method("spatial", centroidal_momentum_matrix),),
    "loop_residual": (Method("homogeneous", loop_residual),),
    "loop_matrix": (Method("homogeneous", loop_matrix),),
    "loop_bias": (Method("homogeneous", loop_bias),),
    "integrate": (Method("spatial", integrate),),
    "difference": (Method("spatial", difference),),
}
"""One row a function. The first method is the default where `method="fastest"` has no choice."""
