"""The table of contents: every public function, and the methods that compute it.

Long because it is a table.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from chasles.model import Model
from chasles.model.equivalent import Choice, by_moments, by_products
from chasles.model.validate import is_solid

Need = Callable[[Model, Mapping[str, Any]], str]
"""What a method asks of a model and its options: the reason why not, or nothing."""


def all_of(*needs: Need) -> Need:
    """Several needs: the first reason why not."""
    return lambda model, options: next(filter(None, (n(model, options) for n in needs)), "")


def floating_base(model: Model, options: Mapping[str, Any]) -> str:
    """One free joint carries everything."""
    return "" if model.floating else "it needs a floating base, one free root joint"


def massive_joints(model: Model, options: Mapping[str, Any]) -> str:
    """Every joint of the tree moves some inertia, so that its mass matrix has factors.

    Where accelerations of some joints are known, only that of the others is factored.
    """
    names = ", ".join(repr(name) for name in model.idle if name not in options.get("known", ()))
    return f"the tree's mass matrix is singular, since {names} moves no inertia" if names else ""


def unheld_base(model: Model, options: Mapping[str, Any]) -> str:
    """No loop or coupling holds a floating base, so that it recoils."""
    for constraint in model.constraints:
        if model.floating and 0 in constraint.bodies:
            return f"{constraint.name!r} holds the floating base, which does not recoil"
    return ""


def driven_joints(model: Model, options: Mapping[str, Any]) -> str:
    """`known` has all joints but the floating base's."""
    rest = {model.bodies[i].data.name for i in model.movers if i != 0}
    found = rest == set(options.get("known", ()))
    return "" if found else "it needs all joints in known but the floating base's"


def solid_bodies(model: Model, options: Mapping[str, Any]) -> str:
    """Every body by itself has an inverse inertia, and joints have no inertia of their own."""
    for body in model.bodies:
        if any(body.joint.armature):
            return f"it has no place for the armature of joint {body.data.name!r}"
        if not is_solid(body.inertia):
            return f"it inverts every inertia, and link {body.name!r} lacks mass or a moment"
    return ""


def undriven_joints(model: Model, options: Mapping[str, Any]) -> str:
    """Every joint has coordinates: else velocities have a part that is not linear in qd."""
    for i in model.driven:
        return f"joint {model.bodies[i].data.name!r} is driven in time"
    return ""


def holonomic_joints(model: Model, options: Mapping[str, Any]) -> str:
    """Every position is reached by a step: else Lagrange's equations have more terms."""
    for body in model.bodies:
        if not body.joint.holonomic:
            return f"joint {body.data.name!r} is nonholonomic"
    return ""


@dataclass(frozen=True)
class Method:
    """One way to compute a function.

    source: the module of this package that has it, as a function of the same name (or of the name
    after the colon); loaded on use.
    equivalent: how inertias may be regrouped for it, where the result depends on the equation of
    motion alone. followers: mimic joints are allowed (a recursion that solves for each joint's
    acceleration by itself cannot have them). by_name: it is used only where it is asked for, since
    another has fewer operations. smooth: the derivative of its program is that of the result
    (an iteration that ends early, where its residual is zero, has no slopes there).
    needs: what it asks of the robot and the options. steep: its operations grow with the cube of
    the number of freedoms, or faster, so that it is for arms.
    """

    name: str
    source: str
    equivalent: Choice | None = None
    followers: bool = True
    by_name: bool = False
    smooth: bool = True
    needs: Need | None = None
    steep: bool = False

    @property
    def algorithm(self) -> Callable[..., Any]:
        """The function that is traced."""
        return _loaded(self.source)


@cache
def _loaded(source: str) -> Callable[..., Any]:
    module, _, name = source.partition(":")
    loaded = importlib.import_module(f"chasles.algorithms.{module}")
    algorithm: Callable[..., Any] = getattr(loaded, name or module.rpartition(".")[2])
    return algorithm


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
    "inverse_dynamics": Method("recursion", "spatial.inverse_dynamics_derivatives"),
    "forward_dynamics": Method("recursion", "spatial.forward_dynamics_derivatives"),
}
"""Functions whose derivatives have a recursion of their own, cheaper than the derivative of the
program: with respect to each array argument, in order. Everything else is differentiated as a
program."""

FUNCTIONS: dict[str, tuple[Method, ...]] = {
    "forward_kinematics": (
        Method("spatial", "spatial.forward_kinematics"),
        Method("homogeneous", "homogeneous.forward_kinematics"),
        Method("lagrange", "homogeneous.forward_kinematics", by_name=True),
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
            "spatial",
            "spatial.generalized_jacobian",
            needs=all_of(undriven_joints, unheld_base),
        ),
    ),
    "jacobian_rate": (
        Method("joint-motion", "joint_motion.jacobian_rates"),
        Method("spatial", "spatial.jacobian_rate"),
    ),
    "inverse_dynamics": (
        Method(
            "newton-euler-vector",
            "spatial.newton_euler_vector",
            equivalent=by_moments,
            by_name=True,
        ),
        Method("spatial", "spatial.inverse_dynamics", equivalent=by_moments, by_name=True),
        Method("homogeneous", "homogeneous.inverse_dynamics", equivalent=by_products, by_name=True),
        Method(
            "homogeneous-link",
            "homogeneous.inverse_dynamics_link",
            equivalent=by_products,
            by_name=True,
        ),
        Method(
            "lagrange",
            "homogeneous.inverse_dynamics_lagrange",
            equivalent=by_products,
            by_name=True,
        ),
        Method("augmented-tensor", "tensor.augmented_tensor", equivalent=by_products),
        Method("newton-euler-tensor", "tensor.newton_euler_tensor", by_name=True),
        Method("parallel-axes", "tensor.parallel_axes", equivalent=by_products),
        Method("lagrange-4x4", "tensor.lagrange_4x4", by_name=True),
        Method("lagrange-3x3", "tensor.lagrange_3x3", by_name=True),
        Method("spatial-1987", "tensor.spatial_1987", by_name=True),
        Method("kane", "tensor.kane", by_name=True),
        Method("kane-sum", "tensor.kane_sum", by_name=True),
        Method("uicker-kahn", "tensor.uicker_kahn", by_name=True, steep=True),
        Method("waters", "tensor.waters", by_name=True),
        Method(
            "christoffel",
            "tensor.christoffel",
            by_name=True,
            steep=True,
            needs=holonomic_joints,
        ),
        Method("vukobratovic", "tensor.vukobratovic", by_name=True, steep=True),
        Method("spatial-operator", "tensor.spatial_operator", by_name=True),
    ),
    "gravity_forces": (Method("composite-body", "spatial.gravity_forces", equivalent=by_moments),),
    "bias_forces": (
        Method("newton-euler-vector", "spatial.bias_forces", equivalent=by_moments, by_name=True),
        Method(
            "lagrange", "homogeneous.bias_forces_lagrange", equivalent=by_products, by_name=True
        ),
        Method(
            "augmented-tensor",
            "tensor.bias_forces_augmented_tensor",
            equivalent=by_products,
            by_name=True,
        ),
        Method("parallel-axes", "tensor.bias_forces_parallel_axes", equivalent=by_products),
    ),
    "coriolis_matrix": (Method("spatial", "spatial.coriolis_matrix", needs=undriven_joints),),
    "closed_form": (
        Method(
            "vukobratovic",
            "tensor.vukobratovic:closed_form_vukobratovic",
            equivalent=by_moments,
            needs=undriven_joints,
        ),
        Method(
            "christoffel",
            "tensor.christoffel:closed_form_christoffel",
            by_name=True,
            steep=True,
            needs=all_of(undriven_joints, holonomic_joints),
        ),
        Method(
            "uicker-kahn",
            "tensor.uicker_kahn:closed_form_uicker_kahn",
            by_name=True,
            steep=True,
            needs=undriven_joints,
        ),
    ),
    "mass_matrix": (
        Method("spatial", "spatial.mass_matrix", equivalent=by_moments),
        Method("homogeneous", "homogeneous.mass_matrix", equivalent=by_products, by_name=True),
        Method(
            "lagrange", "homogeneous.mass_matrix_lagrange", equivalent=by_products, by_name=True
        ),
        Method("augmented-tensor", "tensor.mass_matrix_augmented_tensor", equivalent=by_products),
        Method("composite-3x3", "tensor.mass_matrix_composite_3x3", by_name=True),
        Method("orthogonal-complement", "tensor.mass_matrix_orthogonal_complement", by_name=True),
        Method("unit-acceleration", "tensor.mass_matrix_unit_acceleration", by_name=True),
        Method(
            "spatial-operator",
            "tensor.mass_matrix_spatial_operator",
            followers=False,
            by_name=True,
        ),
        Method("parallel-axes", "tensor.mass_matrix_parallel_axes", equivalent=by_moments),
    ),
    "mass_matrix_inverse": (
        Method("spatial", "spatial.mass_matrix_inverse", equivalent=by_moments),
        Method(
            "spatial-operator",
            "tensor.mass_matrix_inverse_spatial_operator",
            followers=False,
            by_name=True,
        ),
    ),
    "ltdl_factors": (
        Method(
            "spatial",
            "spatial.mass_matrix_factors:ltdl_factors",
            equivalent=by_moments,
            needs=massive_joints,
        ),
    ),
    "ltl_factor": (
        Method(
            "spatial",
            "spatial.mass_matrix_factors:ltl_factor",
            equivalent=by_moments,
            needs=massive_joints,
        ),
    ),
    "operator_factors": (
        Method(
            "spatial-operator",
            "tensor.operator_factors",
            equivalent=by_moments,
            followers=False,
            needs=massive_joints,
        ),
    ),
    "forward_dynamics": (
        Method(
            "articulated-body", "spatial.forward_dynamics", equivalent=by_moments, followers=False
        ),
        Method(
            "mass-matrix",
            "spatial.forward_dynamics_mass_matrix",
            equivalent=by_moments,
            by_name=True,
        ),
        Method("homogeneous", "homogeneous.forward_dynamics", equivalent=by_products, by_name=True),
        Method(
            "lagrange",
            "homogeneous.forward_dynamics_lagrange",
            equivalent=by_products,
            by_name=True,
        ),
        Method(
            "augmented-tensor", "tensor.forward_dynamics_augmented_tensor", equivalent=by_products
        ),
        Method("parallel-axes", "tensor.forward_dynamics_parallel_axes", equivalent=by_products),
        Method("unit-acceleration", "tensor.forward_dynamics_unit_acceleration", by_name=True),
        Method("composite-3x3", "tensor.forward_dynamics_composite_3x3", by_name=True),
        Method(
            "conjugate-gradient",
            "tensor.forward_dynamics_conjugate_gradient",
            by_name=True,
            steep=True,
            smooth=False,
        ),
        Method(
            "orthogonal-complement", "tensor.forward_dynamics_orthogonal_complement", by_name=True
        ),
        Method(
            "spatial-operator",
            "tensor.forward_dynamics_spatial_operator",
            followers=False,
            by_name=True,
        ),
        Method(
            "floating-base",
            "spatial.forward_dynamics_floating_base",
            equivalent=by_moments,
            followers=False,
            needs=floating_base,
        ),
        Method(
            "assembly-inertia",
            "spatial.forward_dynamics_assembly_inertia",
            followers=False,
            by_name=True,
            needs=solid_bodies,
        ),
        Method(
            "assembly-inverse",
            "spatial.forward_dynamics_assembly_inverse",
            followers=False,
            by_name=True,
            needs=solid_bodies,
        ),
        Method(
            "divide-and-conquer",
            "spatial.forward_dynamics_divide_and_conquer",
            followers=False,
            by_name=True,
            needs=solid_bodies,
        ),
    ),
    "hybrid_dynamics": (
        Method(
            "articulated-body", "spatial.hybrid_dynamics", equivalent=by_moments, followers=False
        ),
        Method("mass-matrix", "spatial.hybrid_dynamics_mass_matrix", equivalent=by_moments),
        Method(
            "floating-base",
            "spatial.hybrid_dynamics_floating_base",
            equivalent=by_moments,
            needs=all_of(floating_base, driven_joints),
        ),
    ),
    "operational_inertia_inverse": (
        Method("projection", "spatial.operational_inertia_inverse", equivalent=by_moments),
        Method(
            "propagation",
            "spatial.operational_inertia_inverse_propagation",
            equivalent=by_moments,
            followers=False,
        ),
    ),
    "linearize": (Method("spatial", "spatial.linearize", equivalent=by_moments),),
    "inverse_dynamics_sensitivities": (
        Method("spatial", "spatial.inverse_dynamics_sensitivities", equivalent=by_moments),
        Method("augmented-tensor", "tensor.inverse_dynamics_sensitivities", equivalent=by_products),
        Method("closed-form", "tensor.sensitivities_closed_form", by_name=True, steep=True),
    ),
    "regressor": (Method("newton-euler-vector", "spatial.regressor"),),
    "driving_forces": (Method("spatial", "spatial.driving_forces"),),
    "joint_reactions": (Method("spatial", "spatial.joint_reactions"),),
    "kinetic_energy": (
        Method("spatial", "spatial.kinetic_energy"),
        Method("homogeneous", "homogeneous.kinetic_energy", by_name=True),
    ),
    "potential_energy": (
        Method("spatial", "spatial.potential_energy"),
        Method("homogeneous", "homogeneous.potential_energy", by_name=True),
    ),
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
"""One row a function. The annotations of the first method are those of the function, so one that
takes any number of rates stands first."""

CLOSED_LOOPS: dict[str, tuple[Method, ...]] = {
    "constrained_dynamics": (
        Method(
            "multipliers",
            "closed_loops.multipliers",
            equivalent=by_moments,
            needs=massive_joints,
        ),
        Method("direct", "closed_loops.direct", equivalent=by_moments, needs=massive_joints),
        Method("minimal", "closed_loops.minimal", equivalent=by_moments),
    ),
    "constrained_hybrid_dynamics": (
        Method("multipliers", "closed_loops.hybrid", equivalent=by_moments, needs=massive_joints),
    ),
    "actuator_forces": (Method("minimal", "closed_loops.actuator_forces", equivalent=by_moments),),
    "independent_mass_matrix": (
        Method("minimal", "closed_loops.independent_mass_matrix", equivalent=by_moments),
    ),
    "closed_joint_reactions": (Method("spatial", "closed_loops.closed_joint_reactions"),),
    "loop_equations": (Method("tree", "closed_loops.loop_equations", equivalent=by_moments),),
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
