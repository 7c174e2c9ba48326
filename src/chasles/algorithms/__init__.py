"""The table of contents: every public function, and the methods that compute it.

Long because it is a table.
"""

from dataclasses import replace

from chasles.algorithms.method import (
    Method,
    all_of,
    driven_joints,
    floating_base,
    holonomic_joints,
    massive_joints,
    solid_bodies,
    undriven_joints,
    unheld_base,
)
from chasles.model import Model

__all__ = [
    "AUTOMATIC",
    "CLOSED_LOOPS",
    "DERIVATIVES",
    "FUNCTIONS",
    "HISTORICAL",
    "KINEMATICS",
    "METHODS",
    "OPEN",
    "Method",
    "solid_bodies",
    "that_runs",
]

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
        "loop_rate",
        "loop_bias",
        "loop_joint_matrix",
        "loop_forces",
        "closing_step",
        "regressor",
        "integrate",
        "difference",
    }
)
"""The functions that need no masses: all that a robot without any has."""

DERIVATIVES: dict[str, Method] = {
    "inverse_dynamics": Method(
        "recursion", "spatial.inverse_dynamics_derivatives", inertias="moments"
    ),
    "forward_dynamics": Method(
        "recursion", "spatial.forward_dynamics_derivatives", inertias="moments"
    ),
}
"""Functions whose derivatives have a recursion of their own, cheaper than the derivative of the
program: with respect to each array argument, in order. Everything else is differentiated as a
program."""

SUMMED = ("parallel-axes",)
"""The pass without which the methods of that name are those of parents and children."""

AUTOMATIC: dict[str, tuple[Method, ...]] = {
    "forward_kinematics": (
        Method("spatial", "spatial.forward_kinematics"),
        Method("homogeneous", "homogeneous.forward_kinematics"),
    ),
    "frame_velocity": (
        Method("spatial", "spatial.frame_velocity"),
        Method("link-frames", "joint_motion.frame_velocity"),
    ),
    "frame_acceleration": (
        Method("spatial", "spatial.frame_acceleration"),
        Method("link-frames", "joint_motion.frame_acceleration"),
    ),
    "frame_motion": (
        Method("joint-motion", "joint_motion.frame_motion"),
        Method("link-frames", "joint_motion.frame_motion_link_frames"),
    ),
    "jacobian": (Method("spatial", "spatial.jacobian"),),
    "generalized_jacobian": (
        Method(
            "spatial", "spatial.generalized_jacobian", needs=all_of(undriven_joints, unheld_base)
        ),
    ),
    "jacobian_rate": (
        Method("joint-motion", "joint_motion.jacobian_rates"),
        Method("spatial", "spatial.jacobian_rate"),
    ),
    "inverse_dynamics": (
        Method("augmented-tensor", "tensor.augmented_tensor", inertias="products"),
        Method("parallel-axes", "tensor.parallel_axes", inertias="products", passes=SUMMED),
    ),
    "gravity_forces": (Method("composite-body", "spatial.gravity_forces", inertias="moments"),),
    "bias_forces": (
        Method(
            "parallel-axes", "tensor.bias_forces_parallel_axes", inertias="products", passes=SUMMED
        ),
    ),
    "coriolis_matrix": (Method("spatial", "spatial.coriolis_matrix", needs=undriven_joints),),
    "closed_form": (
        Method(
            "vukobratovic",
            "tensor.vukobratovic:closed_form_vukobratovic",
            inertias="moments",
            needs=undriven_joints,
        ),
    ),
    "mass_matrix": (
        Method("spatial", "spatial.mass_matrix", inertias="moments"),
        Method("augmented-tensor", "tensor.mass_matrix_augmented_tensor", inertias="products"),
        Method(
            "parallel-axes", "tensor.mass_matrix_parallel_axes", inertias="moments", passes=SUMMED
        ),
    ),
    "mass_matrix_inverse": (Method("spatial", "spatial.mass_matrix_inverse", inertias="moments"),),
    "ltdl_factors": (
        Method(
            "spatial",
            "spatial.mass_matrix_factors:ltdl_factors",
            inertias="moments",
            needs=massive_joints,
        ),
    ),
    "ltl_factor": (
        Method(
            "spatial",
            "spatial.mass_matrix_factors:ltl_factor",
            inertias="moments",
            needs=massive_joints,
        ),
    ),
    "operator_factors": (
        Method(
            "spatial-operator",
            "tensor.operator_factors",
            inertias="moments",
            followers=False,
            needs=massive_joints,
        ),
    ),
    "forward_dynamics": (
        Method("articulated-body", "spatial.forward_dynamics", inertias="moments", followers=False),
        Method("augmented-tensor", "tensor.forward_dynamics_augmented_tensor", inertias="products"),
        Method(
            "parallel-axes",
            "tensor.forward_dynamics_parallel_axes",
            inertias="products",
            passes=SUMMED,
        ),
        Method(
            "floating-base",
            "spatial.forward_dynamics_floating_base",
            inertias="moments",
            followers=False,
            needs=floating_base,
        ),
    ),
    "hybrid_dynamics": (
        Method("articulated-body", "spatial.hybrid_dynamics", inertias="moments", followers=False),
        Method("mass-matrix", "spatial.hybrid_dynamics_mass_matrix", inertias="moments"),
        Method(
            "floating-base",
            "spatial.hybrid_dynamics_floating_base",
            inertias="moments",
            needs=all_of(floating_base, driven_joints),
        ),
    ),
    "operational_inertia_inverse": (
        Method("projection", "spatial.operational_inertia_inverse", inertias="moments"),
        Method(
            "propagation",
            "spatial.operational_inertia_inverse_propagation",
            inertias="moments",
            followers=False,
        ),
    ),
    "linearize": (Method("spatial", "spatial.linearize", inertias="moments"),),
    "inverse_dynamics_sensitivities": (
        Method("spatial", "spatial.inverse_dynamics_sensitivities", inertias="moments"),
        Method("augmented-tensor", "tensor.inverse_dynamics_sensitivities", inertias="products"),
    ),
    "regressor": (Method("newton-euler-vector", "spatial.regressor"),),
    "driving_forces": (Method("spatial", "spatial.driving_forces"),),
    "joint_reactions": (Method("spatial", "spatial.joint_reactions"),),
    "kinetic_energy": (Method("spatial", "spatial.kinetic_energy"),),
    "potential_energy": (Method("spatial", "spatial.potential_energy"),),
    "momentum": (Method("spatial", "spatial.momentum"),),
    "center_of_mass": (Method("spatial", "spatial.center_of_mass"),),
    "centroidal_momentum_matrix": (Method("spatial", "spatial.centroidal_momentum_matrix"),),
    "loop_residual": (Method("homogeneous", "homogeneous.loop_residual"),),
    "loop_matrix": (Method("homogeneous", "homogeneous.loop_matrix"),),
    "loop_rate": (Method("homogeneous", "homogeneous.loop_rate"),),
    "loop_bias": (Method("homogeneous", "homogeneous.loop_bias"),),
    "loop_joint_matrix": (Method("spatial", "closed_loops.loop_joint_matrix"),),
    "loop_forces": (Method("spatial", "closed_loops.loop_forces"),),
    "integrate": (Method("spatial", "spatial.configuration:integrate"),),
    "difference": (Method("spatial", "spatial.configuration:difference"),),
}
"""The methods that run: of those in a row, the one with fewest operations for a robot, the first
of equals. The annotations of the first are those of the function, so one that takes any number of
rates stands first."""

HISTORICAL: dict[str, tuple[Method, ...]] = {
    "forward_kinematics": (Method("lagrange", "homogeneous.forward_kinematics"),),
    "inverse_dynamics": (
        Method("newton-euler-vector", "spatial.newton_euler_vector", inertias="moments"),
        Method("spatial", "spatial.inverse_dynamics", inertias="moments"),
        Method("vukobratovic", "tensor.vukobratovic", steep=True),
        Method("homogeneous", "historical.homogeneous.inverse_dynamics", inertias="products"),
        Method(
            "homogeneous-link", "historical.homogeneous.inverse_dynamics_link", inertias="products"
        ),
        Method("lagrange", "historical.homogeneous.inverse_dynamics_lagrange", inertias="products"),
        Method("newton-euler-tensor", "historical.tensor.newton_euler_tensor"),
        Method("lagrange-4x4", "historical.tensor.lagrange_4x4"),
        Method("lagrange-3x3", "historical.tensor.lagrange_3x3"),
        Method("spatial-1987", "historical.tensor.spatial_1987"),
        Method("kane", "historical.tensor.kane"),
        Method("kane-sum", "historical.tensor.kane_sum"),
        Method("uicker-kahn", "historical.tensor.uicker_kahn", steep=True),
        Method("waters", "historical.tensor.waters"),
        Method("christoffel", "historical.tensor.christoffel", steep=True, needs=holonomic_joints),
        Method("spatial-operator", "historical.tensor.spatial_operator"),
    ),
    "bias_forces": (
        Method("newton-euler-vector", "spatial.bias_forces", inertias="moments"),
        Method("augmented-tensor", "tensor.bias_forces_augmented_tensor", inertias="products"),
        Method("lagrange", "historical.homogeneous.bias_forces_lagrange", inertias="products"),
    ),
    "closed_form": (
        Method(
            "christoffel",
            "historical.tensor.christoffel:closed_form_christoffel",
            steep=True,
            needs=all_of(undriven_joints, holonomic_joints),
        ),
        Method(
            "uicker-kahn",
            "historical.tensor.uicker_kahn:closed_form_uicker_kahn",
            steep=True,
            needs=undriven_joints,
        ),
    ),
    "mass_matrix": (
        Method("homogeneous", "historical.homogeneous.mass_matrix", inertias="products"),
        Method("lagrange", "historical.homogeneous.mass_matrix_lagrange", inertias="products"),
        Method("composite-3x3", "historical.tensor.mass_matrix_composite_3x3"),
        Method("orthogonal-complement", "historical.tensor.mass_matrix_orthogonal_complement"),
        Method("unit-acceleration", "historical.tensor.mass_matrix_unit_acceleration"),
        Method(
            "spatial-operator", "historical.tensor.mass_matrix_spatial_operator", followers=False
        ),
    ),
    "mass_matrix_inverse": (
        Method(
            "spatial-operator",
            "historical.tensor.mass_matrix_inverse_spatial_operator",
            followers=False,
        ),
    ),
    "forward_dynamics": (
        Method(
            "mass-matrix", "historical.spatial.forward_dynamics_mass_matrix", inertias="moments"
        ),
        Method("homogeneous", "historical.homogeneous.forward_dynamics", inertias="products"),
        Method("lagrange", "historical.homogeneous.forward_dynamics_lagrange", inertias="products"),
        Method("unit-acceleration", "historical.tensor.forward_dynamics_unit_acceleration"),
        Method("composite-3x3", "historical.tensor.forward_dynamics_composite_3x3"),
        Method(
            "conjugate-gradient",
            "historical.tensor.forward_dynamics_conjugate_gradient",
            steep=True,
            smooth=False,
        ),
        Method("orthogonal-complement", "historical.tensor.forward_dynamics_orthogonal_complement"),
        Method(
            "spatial-operator",
            "historical.tensor.forward_dynamics_spatial_operator",
            followers=False,
        ),
        Method(
            "assembly-inertia",
            "historical.spatial.forward_dynamics_assembly_inertia",
            followers=False,
            needs=solid_bodies,
        ),
        Method(
            "assembly-inverse",
            "historical.spatial.forward_dynamics_assembly_inverse",
            followers=False,
            needs=solid_bodies,
        ),
        Method(
            "divide-and-conquer",
            "historical.spatial.forward_dynamics_divide_and_conquer",
            followers=False,
            needs=solid_bodies,
        ),
    ),
    "inverse_dynamics_sensitivities": (
        Method("closed-form", "historical.tensor.sensitivities_closed_form", steep=True),
    ),
    "kinetic_energy": (Method("homogeneous", "historical.homogeneous.kinetic_energy"),),
    "potential_energy": (Method("homogeneous", "historical.homogeneous.potential_energy"),),
}
"""Methods that run only by name, kept for history and as oracles. Their modules are those of the
package `historical`, or parts of what runs."""

FUNCTIONS: dict[str, tuple[Method, ...]] = {
    function: (*rows, *(replace(m, by_name=True) for m in HISTORICAL.get(function, ())))
    for function, rows in AUTOMATIC.items()
}
"""One row a function: all its methods, those that run first."""

CLOSED_LOOPS: dict[str, tuple[Method, ...]] = {
    "constrained_dynamics": (
        Method("multipliers", "closed_loops.multipliers", inertias="moments", needs=massive_joints),
        Method("direct", "closed_loops.direct", inertias="moments", needs=massive_joints),
        Method("minimal", "closed_loops.minimal", inertias="moments"),
    ),
    "constrained_hybrid_dynamics": (
        Method("multipliers", "closed_loops.hybrid", inertias="moments", needs=massive_joints),
    ),
    "actuator_forces": (Method("minimal", "closed_loops.actuator_forces", inertias="moments"),),
    "independent_mass_matrix": (
        Method("minimal", "closed_loops.independent_mass_matrix", inertias="moments"),
    ),
    "closed_joint_reactions": (Method("spatial", "closed_loops.closed_joint_reactions"),),
    "loop_equations": (Method("tree", "closed_loops.loop_equations", inertias="moments"),),
    "closing_step": (Method("minimal", "closed_loops.closing_step"),),
}
"""Functions of a robot with loops that need a closure: which equations give which freedoms. What
users call asks them and checks how well each state is conditioned."""

OPEN: dict[str, str] = {
    "forward_dynamics": "for derivatives use robot.linearize(q, qd, tau), for a compiled function "
    '"constrained_dynamics"',
    "linearize": "call robot.linearize itself, which is not one program",
    "hybrid_dynamics": "call robot.hybrid_dynamics itself, which chooses equations by known",
    "mass_matrix_inverse": 'use "independent_mass_matrix" and invert it',
    "operational_inertia_inverse": "call robot.operational_inertia_inverse itself",
    "joint_reactions": 'use "closed_joint_reactions", which takes the multipliers of the loops',
}
"""Functions of which a program of the tree is wrong for a robot with loops or couplings, because
these exert forces or take away freedoms; and what to use for it instead. All others say something
of the tree that is true of its closed motions too."""

METHODS: dict[str, tuple[Method, ...]] = FUNCTIONS | CLOSED_LOOPS
"""Everything that can be traced."""


def that_runs(model: Model, function: str) -> str:
    """What runs where a function is called: forward dynamics of loops are constrained dynamics."""
    closed = model.loop_rows and function == "forward_dynamics"
    return "constrained_dynamics" if closed else function
