"""The table of checks: one row to add one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from chasles.checks import agreement, closure, mechanics, motion, slopes, targets
from chasles.checks.comparing import Comparison
from chasles.checks.trial import Trial

ROUNDING = 1e-11
"""What two ways to compute one number may differ by: sums over links lose a few thousand roundings.
On robots whose tolerances are not widened the worst is 4e-13 (python -m benchmarks verify)."""

DIFFERENCES = 1e-8
"""What differences lose: 1e-11 of a slope, squared steps 1e-9 of a mixed one. The worst is 4e-10,
that of linearize, the slope of a slope."""

SINGLE = 2e-3
"""What a program loses in single precision, at a condition of a few thousand."""


@dataclass(frozen=True)
class Check:
    """Something that must hold at every state.

    name: in words. compare: gives pairs of arrays that must be equal. tolerance: of the largest
    difference, relative to the largest entry. compiled: it makes machine code, which takes time.
    full: only where everything is wanted. loops: only of robots with loops or couplings.
    """

    name: str
    compare: Callable[[Trial], Iterator[Comparison]]
    tolerance: float
    compiled: bool = False
    full: bool = False
    loops: bool = False


CHECKS: tuple[Check, ...] = (
    Check("methods agree", agreement.methods_agree, ROUNDING),
    Check("terms of the equation of motion", mechanics.terms_of_motion, ROUNDING),
    Check("sums over links", mechanics.sums_over_links, ROUNDING),
    Check("factors of the mass matrix", mechanics.factors, ROUNDING),
    Check("regressor", mechanics.inertia_parameters, ROUNDING),
    Check("damping and friction", mechanics.dissipation, ROUNDING),
    Check("J qd and kinds of acceleration", motion.jacobians_map_rates, ROUNDING),
    Check("views of a velocity", motion.views_of_velocity, ROUNDING),
    Check("recoil keeps momentum", motion.recoil_keeps_momentum, ROUNDING),
    Check("steps along the configuration space", motion.steps_add_up, ROUNDING),
    Check("poses move as velocities say", motion.poses_move, DIFFERENCES),
    Check("velocities accelerate", motion.velocities_accelerate, DIFFERENCES),
    Check("Jacobians change", motion.jacobians_change, DIFFERENCES),
    Check("Newton's and Euler's laws", mechanics.newton_and_euler, DIFFERENCES),
    Check("power balance", mechanics.power_balance, DIFFERENCES),
    Check("gradients", slopes.gradients, DIFFERENCES),
    Check("sensitivities", slopes.sensitivities, DIFFERENCES),
    Check("derivatives of inverse dynamics", slopes.inverse_recursion, DIFFERENCES),
    Check("derivatives of forward dynamics", slopes.forward_recursion, DIFFERENCES),
    Check("loops close", closure.loops_close, DIFFERENCES, loops=True),
    Check("constrained motion", closure.constrained_motion, ROUNDING, loops=True),
    Check("independent coordinates", closure.independent_coordinates, ROUNDING, loops=True),
    Check("how far loops are from closed", closure.health, ROUNDING, loops=True),
    Check("errors of loops decay", closure.errors_decay, ROUNDING, loops=True),
    Check("loop joints", closure.loop_joints, ROUNDING, loops=True),
    Check("programs against floats", targets.programs, ROUNDING, compiled=True),
    Check("numpy against interpret", targets.by_numpy, ROUNDING, compiled=True),
    Check("llvm against interpret", targets.by_llvm, ROUNDING, compiled=True),
    Check("llvm: alone as in a batch", targets.alone_as_in_a_batch, 0.0, compiled=True),
    Check(
        "llvm in single precision", targets.in_single_precision, SINGLE, compiled=True, full=True
    ),
    Check("derived programs", targets.derived_programs, DIFFERENCES, compiled=True, full=True),
)
