"""Suggestions for misspelled function names and for names used by other libraries."""

from collections.abc import Mapping

from chasles.model.model import suggest

FOREIGN = {
    "aba": "forward_dynamics",
    "articulated_body_algorithm": "forward_dynamics",
    "nle": "bias_forces",
    "nonlinear_effects": "bias_forces",
    "crba": "mass_matrix",
    "composite_rigid_body": "mass_matrix",
    "inertia_matrix": "mass_matrix",
    "joint_space_inertia": "mass_matrix",
    "inertia": "mass_matrix",
    "minverse": "mass_matrix_inverse",
    "rnea": "inverse_dynamics",
    "id": "inverse_dynamics",
    "fd": "forward_dynamics",
    "fk": "forward_kinematics",
    "fkine": "forward_kinematics",
    "forward_kinematic": "forward_kinematics",
    "frame_placement": "forward_kinematics",
    "ik": "inverse_kinematics",
    "ikine": "inverse_kinematics",
    "inverse_kinematic": "inverse_kinematics",
    "jacob0": "jacobian",
    "jacobe": "jacobian",
    "jacobian_body": "jacobian",
    "jacobian_world": "jacobian",
    "body_jacobian": "jacobian",
    "space_jacobian": "jacobian",
    "frame_jacobian": "jacobian",
    "jacobian_dot": "jacobian_rate",
    "coriolis": "coriolis_matrix",
    "gravload": "gravity_forces",
    "gravity_torques": "gravity_forces",
    "gravity_vector": "gravity_forces",
    "generalized_gravity": "gravity_forces",
    "com": "center_of_mass",
    "ccrba": "centroidal_momentum_matrix",
    "energy": "kinetic_energy",
    "joint_torque_regressor": "regressor",
    "neutral_configuration": "neutral",
    "random_configuration": "random",
    "q0": "neutral",
    "n": "nv",
    "num_positions": "nq",
    "num_velocities": "nv",
    "dof": "nv",
    "ndof": "nv",
    "njoints": "nv",
    "links": "bodies",
    "joint_names": "joints",
    "link_names": "bodies",
    "body_names": "bodies",
    "frame_names": "frames",
    "joint_limits": "limits",
    "qlim": "limits",
    "q_lower": "limits.lower",
    "q_upper": "limits.upper",
    "lower": "limits.lower",
    "upper": "limits.upper",
    "lower_limits": "limits.lower",
    "upper_limits": "limits.upper",
    "lowerpositionlimit": "limits.lower",
    "upperpositionlimit": "limits.upper",
    "velocity_limits": "limits.velocity",
    "velocitylimit": "limits.velocity",
    "effort_limits": "limits.effort",
    "effortlimit": "limits.effort",
    "end_effector": "tool",
    "visualize": "show",
    "view": "show",
    "display": "show",
    "render": "show",
    "animate": "show",
    "step": "simulate",
    "forward": "simulate",
}
"""Lower-case function and attribute names in Pinocchio, Drake, MuJoCo and the Robotics Toolbox, and
the corresponding names in chasles."""


def suggested(name: str, known: Mapping[str, object]) -> str:
    """Return a suggestion for an unknown name: its equivalent in chasles, or similar names."""
    plain = name.lower().removeprefix("compute_").removeprefix("get_").removeprefix("mj_")
    ours = FOREIGN.get(name.lower()) or FOREIGN.get(plain)
    if ours in known:
        return f"it is called {ours!r} here"
    return suggest(name, known)


KEYWORDS = {
    "link": "frame",
    "body": "frame",
    "frame_name": "frame",
    "link_name": "frame",
    "end_effector": "frame",
    "start": "guess",
    "initial": "guess",
    "q0": "guess",
    "q_init": "guess",
    "pose": "targets",
    "goal": "targets",
    "dq": "qd",
    "qdot": "qd",
    "ddq": "qdd",
    "qddot": "qdd",
    "fext": "f_ext",
}
"""Other names for keyword arguments, and the corresponding names in chasles."""


def keyword(name: str, known: Mapping[str, object]) -> str:
    """Return a suggestion for an unknown keyword argument, or an empty string."""
    ours = KEYWORDS.get(name)
    return f"did you mean {ours!r}?" if ours in known else suggest(name, known)
