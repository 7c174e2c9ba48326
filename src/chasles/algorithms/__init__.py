"""Tables of all functions that can be compiled, and of the methods that compute them."""

from dataclasses import replace
from functools import partial

from chasles.algorithms.method import (
    Method,
    all_of,
    driven_joints,
    floating_base,
    holonomic_joints,
    massive_joints,
    plain_loads,
    positive_inertias,
    solid_bodies,
    steady_gears,
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
    "SENSING",
    "Method",
    "solid_bodies",
    "that_runs",
]

DERIVATIVES: dict[str, Method] = {
    "inverse_dynamics": Method("recursion", "spatial.derivatives:inverse_dynamics_derivatives", "moments"),
    "forward_dynamics": Method("recursion", "spatial.derivatives:forward_dynamics_derivatives", "moments"),
}  # fmt: skip
"""Functions whose derivatives are computed by recursion, and the method for each function.

A recursion needs fewer operations than the program obtained by differentiating the function, and
returns one derivative for each array argument, in the order of the arguments. For all other
functions, the program is differentiated.
"""

SUMMED = ("parallel-axes",)
"""Model transformation (pass) that the `parallel-axes` methods require.

The pass sums the angles of consecutive parallel joints, so that a recursion step can skip the
joints in between.
"""

ASSEMBLY = partial(Method, needs=solid_bodies)
"""`Method` with preset options for algorithms that assemble bodies by their inverse inertias."""

OPERATOR = partial(Method, "spatial-operator", followers=False)
"""`Method` with preset options for algorithms that factor the mass matrix or its inverse."""

KINEMATIC: dict[str, tuple[Method, ...]] = {
    "forward_kinematics": (
        Method("spatial", "spatial.kinematics:forward_kinematics"),
        Method("homogeneous", "homogeneous:forward_kinematics"),
    ),
    "frame_velocity": (
        Method("spatial", "spatial.kinematics:frame_velocity"),
        Method("link-frames", "joint_motion:frame_velocity"),
    ),
    "frame_acceleration": (
        Method("spatial", "spatial.kinematics:frame_acceleration"),
        Method("link-frames", "joint_motion:frame_acceleration"),
    ),
    "frame_motion": (
        Method("joint-motion", "joint_motion:frame_motion"),
        Method("link-frames", "joint_motion:frame_motion_link_frames"),
    ),
    "jacobian": (Method("spatial", "spatial.kinematics:jacobian"),),
    "jacobian_rate": (
        Method("joint-motion", "joint_motion:jacobian_rates"),
        Method("spatial", "spatial.kinematics:jacobian_rate"),
    ),
    "regressor": (Method("newton-euler-vector", "spatial.regressor"),),
    "loop_residual": (Method("homogeneous", "homogeneous:loop_residual"),),
    "loop_matrix": (Method("homogeneous", "homogeneous:loop_matrix"),),
    "loop_rate": (Method("homogeneous", "homogeneous:loop_rate"),),
    "loop_bias": (Method("homogeneous", "homogeneous:loop_bias"),),
    "loop_joint_matrix": (Method("spatial", "closed_loops.forces:loop_joint_matrix"),),
    "loop_forces": (Method("spatial", "closed_loops.forces:loop_forces"),),
    "integrate": (Method("spatial", "spatial.kinematics:integrate"),),
    "difference": (Method("spatial", "spatial.kinematics:difference"),),
}
"""Functions that do not depend on masses, and so are available for a robot without masses."""

DYNAMIC: dict[str, tuple[Method, ...]] = {
    "generalized_jacobian": (Method("spatial", "spatial.operational_space:generalized_jacobian", needs=all_of(undriven_joints, unheld_base)),),
    "inverse_dynamics": (
        Method("augmented-tensor", "tensor.dynamics:augmented_tensor", "products"),
        Method("parallel-axes", "tensor.dynamics:parallel_axes", "products", SUMMED),
    ),
    "gravity_forces": (Method("composite-body", "spatial.dynamics:gravity_forces", "moments"),),
    "spring_forces": (Method("spatial", "spatial.passive:spring_forces"),),
    "actuate": (Method("spatial", "spatial.actuation:actuate"),),
    "activation_rate": (Method("spatial", "spatial.actuation:activation_rate"),),
    "bias_forces": (Method("parallel-axes", "tensor.dynamics:bias_forces_parallel_axes", "products", SUMMED),),
    "coriolis_matrix": (Method("spatial", "spatial.dynamics:coriolis_matrix", needs=all_of(undriven_joints, steady_gears)),),
    "closed_form": (Method("vukobratovic", "tensor.closed_form:closed_form_vukobratovic", "moments", needs=all_of(undriven_joints, steady_gears)),),
    "mass_matrix": (
        Method("spatial", "spatial.dynamics:mass_matrix", "moments"),
        Method("augmented-tensor", "tensor.dynamics:mass_matrix_augmented_tensor", "products"),
        Method("parallel-axes", "tensor.dynamics:mass_matrix_parallel_axes", "moments", SUMMED),
    ),
    "mass_matrix_inverse": (Method("spatial", "spatial.dynamics:mass_matrix_inverse", "moments"),),
    "ltdl_factors": (Method("spatial", "spatial.dynamics:ltdl_factors", "moments"),),
    "ltl_factor": (Method("spatial", "spatial.dynamics:ltl_factor", "moments"),),
    "operator_factors": (OPERATOR("tensor.operators:operator_factors", "moments"),),
    "forward_dynamics": (
        Method("articulated-body", "spatial.dynamics:forward_dynamics", "moments", followers=False),
        Method("augmented-tensor", "tensor.dynamics:forward_dynamics_augmented_tensor", "products", shallow=True),
        Method("parallel-axes", "tensor.dynamics:forward_dynamics_parallel_axes", "products", SUMMED, shallow=True),
        Method("floating-base", "spatial.dynamics:forward_dynamics_floating_base", "moments", followers=False, needs=floating_base),
    ),
    "hybrid_dynamics": (
        Method("articulated-body", "spatial.hybrid_dynamics", "moments", followers=False),
        Method("mass-matrix", "spatial.hybrid_dynamics:hybrid_dynamics_mass_matrix", "moments", shallow=True),
        Method("floating-base", "spatial.hybrid_dynamics:hybrid_dynamics_floating_base", "moments", needs=all_of(floating_base, driven_joints)),
    ),
    "operational_inertia_inverse": (
        Method("projection", "spatial.operational_space:operational_inertia_inverse", "moments", shallow=True),
        Method("propagation", "spatial.operational_space:operational_inertia_inverse_propagation", "moments", followers=False),
    ),
    "linearize": (Method("spatial", "spatial.derivatives:linearize", "moments", needs=all_of(steady_gears, plain_loads)),),
    "inverse_dynamics_sensitivities": (
        Method("spatial", "spatial.derivatives:inverse_dynamics_sensitivities", "moments", needs=all_of(steady_gears, plain_loads)),
        Method("augmented-tensor", "tensor.sensitivities:inverse_dynamics_sensitivities", "products", needs=all_of(steady_gears, plain_loads)),
    ),
    "driving_forces": (Method("spatial", "closed_loops.forces:driving_forces"),),
    "joint_reactions": (Method("spatial", "spatial.dynamics:joint_reactions"),),
    "kinetic_energy": (Method("spatial", "spatial.momentum:kinetic_energy"),),
    "potential_energy": (Method("spatial", "spatial.momentum:potential_energy"),),
    "momentum": (Method("spatial", "spatial.momentum"),),
    "center_of_mass": (Method("spatial", "spatial.momentum:center_of_mass"),),
    "centroidal_momentum_matrix": (Method("spatial", "spatial.momentum:centroidal_momentum_matrix"),),
}  # fmt: skip
"""Methods for each function that depends on masses, by function name."""

DIVIDING = frozenset(
    (
        *("forward_dynamics", "hybrid_dynamics", "linearize", "mass_matrix_inverse"),
        *("ltdl_factors", "ltl_factor", "operator_factors", "operational_inertia_inverse"),
    )
)
"""Functions that factor or invert the mass matrix, and so need nonzero inertia at every joint."""


def _rows(function: str, rows: tuple[Method, ...]) -> tuple[Method, ...]:
    """Return the methods, with `massive_joints` required if the function is in `DIVIDING`."""
    if function not in DIVIDING:
        return rows
    return tuple(replace(m, needs=all_of(*filter(None, (massive_joints, m.needs)))) for m in rows)


AUTOMATIC: dict[str, tuple[Method, ...]] = {
    function: _rows(function, rows) for function, rows in (KINEMATIC | DYNAMIC).items()
}
"""Default methods for each function. Each robot uses the method with the fewest operations. If
several methods tie, the first in the table is used. The function's signature is taken from its
first method, so a method that accepts any number of time derivatives comes first."""

HISTORICAL: dict[str, tuple[Method, ...]] = {
    "forward_kinematics": (Method("lagrange", "homogeneous:forward_kinematics"),),
    "inverse_dynamics": (
        Method("newton-euler-vector", "spatial.dynamics:newton_euler_vector", "moments"),
        Method("spatial", "spatial.dynamics:inverse_dynamics", "moments"),
        Method("vukobratovic", "tensor.closed_form:vukobratovic", steep=True),
        Method("homogeneous", "historical.homogeneous:inverse_dynamics", "products"),
        Method("homogeneous-link", "historical.homogeneous:inverse_dynamics_link", "products"),
        Method("lagrange", "historical.homogeneous:inverse_dynamics_lagrange", "products"),
        Method("newton-euler-tensor", "historical.newton_euler:newton_euler_tensor"),
        Method("lagrange-4x4", "historical.lagrange:lagrange_4x4"),
        Method("lagrange-3x3", "historical.lagrange:lagrange_3x3"),
        Method("spatial-1987", "historical.newton_euler:spatial_1987"),
        Method("kane", "historical.newton_euler:kane"),
        Method("kane-sum", "historical.newton_euler:kane_sum"),
        Method("uicker-kahn", "historical.lagrange:uicker_kahn", steep=True),
        Method("waters", "historical.lagrange:waters"),
        Method("christoffel", "historical.lagrange:christoffel", steep=True, needs=holonomic_joints),
        Method("spatial-operator", "historical.operators:spatial_operator"),
    ),
    "bias_forces": (
        Method("newton-euler-vector", "spatial.dynamics:bias_forces", "moments"),
        Method("augmented-tensor", "tensor.dynamics:bias_forces_augmented_tensor", "products"),
        Method("lagrange", "historical.homogeneous:bias_forces_lagrange", "products"),
    ),
    "closed_form": (
        Method("christoffel", "historical.lagrange:closed_form_christoffel", steep=True, needs=all_of(undriven_joints, holonomic_joints, steady_gears)),
        Method("uicker-kahn", "historical.lagrange:closed_form_uicker_kahn", steep=True, needs=all_of(undriven_joints, steady_gears)),
    ),
    "mass_matrix": (
        Method("homogeneous", "historical.homogeneous:mass_matrix", "products"),
        Method("lagrange", "historical.homogeneous:mass_matrix_lagrange", "products"),
        Method("composite-3x3", "historical.mass_matrix:mass_matrix_composite_3x3"),
        Method("orthogonal-complement", "historical.mass_matrix:mass_matrix_orthogonal_complement"),
        Method("factored-complement", "historical.mass_matrix:mass_matrix_factored_complement", needs=positive_inertias),
        Method("unit-acceleration", "historical.mass_matrix:mass_matrix_unit_acceleration"),
        OPERATOR("historical.operators:mass_matrix_spatial_operator", needs=massive_joints),
    ),
    "mass_matrix_inverse": (OPERATOR("historical.operators:mass_matrix_inverse_spatial_operator"),),
    "forward_dynamics": (
        Method("mass-matrix", "historical.spatial:forward_dynamics_mass_matrix", "moments"),
        Method("homogeneous", "historical.homogeneous:forward_dynamics", "products"),
        Method("lagrange", "historical.homogeneous:forward_dynamics_lagrange", "products"),
        Method("unit-acceleration", "historical.mass_matrix:forward_dynamics_unit_acceleration"),
        Method("composite-3x3", "historical.mass_matrix:forward_dynamics_composite_3x3"),
        Method("conjugate-gradient", "historical.mass_matrix:forward_dynamics_conjugate_gradient", steep=True, smooth=False),
        Method("orthogonal-complement", "historical.mass_matrix:forward_dynamics_orthogonal_complement"),
        OPERATOR("historical.operators:forward_dynamics_spatial_operator"),
        ASSEMBLY("assembly-inertia", "historical.assembly_dynamics:forward_dynamics_assembly_inertia"),
        ASSEMBLY("assembly-inverse", "historical.assembly_dynamics:forward_dynamics_assembly_inverse"),
        ASSEMBLY("divide-and-conquer", "historical.assembly_dynamics:forward_dynamics_divide_and_conquer"),
    ),
    "inverse_dynamics_sensitivities": (Method("closed-form", "historical.sensitivities:sensitivities_closed_form", steep=True, needs=all_of(steady_gears, plain_loads)),),
    "kinetic_energy": (Method("homogeneous", "historical.homogeneous:kinetic_energy"),),
    "potential_energy": (Method("homogeneous", "historical.homogeneous:potential_energy"),),
}  # fmt: skip
"""Methods that are kept for reference and run only if selected with `method=`.

Most are in the package `historical`; some are in the same modules as the default methods.
"""

FUNCTIONS: dict[str, tuple[Method, ...]] = {
    function: (
        *rows,
        *_rows(function, tuple(replace(m, by_name=True) for m in HISTORICAL.get(function, ()))),
    )
    for function, rows in AUTOMATIC.items()
}
"""All methods for each function, default methods first."""

CLOSED_LOOPS: dict[str, tuple[Method, ...]] = {
    "constrained_dynamics": (
        Method("multipliers", "closed_loops.dynamics:multipliers", "moments", needs=massive_joints),
        Method("direct", "closed_loops.dynamics:direct", "moments", needs=massive_joints),
        Method("minimal", "closed_loops.dynamics:minimal", "moments"),
        ASSEMBLY("assembly-inertia", "historical.assembly_dynamics:constrained_dynamics_assembly_inertia", by_name=True),
        ASSEMBLY("assembly-inverse", "historical.assembly_dynamics:constrained_dynamics_assembly_inverse", by_name=True),
        ASSEMBLY("divide-and-conquer", "historical.assembly_dynamics:constrained_dynamics_divide_and_conquer", by_name=True),
    ),
    "constrained_hybrid_dynamics": (Method("multipliers", "closed_loops.dynamics:hybrid", "moments", needs=massive_joints),),
    "actuator_forces": (Method("minimal", "closed_loops.forces:actuator_forces", "moments"),),
    "independent_mass_matrix": (Method("minimal", "closed_loops.dynamics:independent_mass_matrix", "moments"),),
    "closed_joint_reactions": (Method("spatial", "closed_loops.forces:closed_joint_reactions"),),
    "loop_equations": (Method("tree", "closed_loops.forces:loop_equations", "moments"),),
    "closing_step": (Method("minimal", "closed_loops.dynamics:closing_step"),),
    "closing_acceleration": (Method("minimal", "closed_loops.dynamics:closing_acceleration"),),
}  # fmt: skip
"""Closed-loop functions that need a closure, i.e. a choice of loop equations and dependent
coordinates. Public functions call these functions and check the conditioning of each state.
"""

SENSING: dict[str, tuple[Method, ...]] = {
    "sensor_values": (Method("spatial", "spatial.sensors:sensor_values"),),
    "actuator_values": (Method("spatial", "spatial.actuation:actuator_values"),),
    "closed_sensor_values": (Method("spatial", "closed_loops.forces:closed_sensor_values"),),
}
"""Functions that `robot.sense` calls.

Each function returns the concatenated sensor values. `actuator_values` reads actuator sensors.
`closed_sensor_values` includes loop forces in the values of force and torque sensors.
"""

OPEN: dict[str, str] = {
    "forward_dynamics": "use robot.linearize(q, qd, tau) for derivatives, or compile "
    '"constrained_dynamics"',
    "linearize": "call robot.linearize directly; it consists of several programs",
    "hybrid_dynamics": "call robot.hybrid_dynamics directly; its equations depend on `known`",
    "mass_matrix_inverse": 'use "independent_mass_matrix" and invert it',
    "operational_inertia_inverse": "call robot.operational_inertia_inverse directly",
    "joint_reactions": 'use "closed_joint_reactions", which takes the loop multipliers',
}
"""Functions whose results are wrong for a robot with loops or couplings, and the remedy for each.
These functions ignore loop and coupling forces, and treat every joint as independent. All other
functions remain valid."""

PASSIVE: dict[str, tuple[Method, ...]] = {
    "line_motion": (Method("spatial", "spatial.lines:line_motion"),),
    "fluid_forces": (Method("spatial", "spatial.passive:fluid_forces"),),
}
"""Functions that `simulate` calls for tendons, ball-joint limits and fluid forces."""

METHODS: dict[str, tuple[Method, ...]] = FUNCTIONS | CLOSED_LOOPS | SENSING | PASSIVE
"""All functions that can be compiled."""

KINEMATICS = frozenset((*KINEMATIC, "closing_step"))
"""All functions that can be compiled for a robot without masses."""


def that_runs(model: Model, function: str) -> str:
    """Return `function`, or "constrained_dynamics" for forward dynamics of a robot with loops."""
    closed = model.loop_rows and function == "forward_dynamics"
    return "constrained_dynamics" if closed else function
