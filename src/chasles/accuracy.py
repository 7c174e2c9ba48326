"""Accuracy of results: the condition of a mechanism, and dynamics by another road."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.backends.arrays import check_tolerance
from chasles.errors import InputError, ModelError
from chasles.functions.doors import check_robot, leading_shape, numbers, wrench_arguments
from chasles.functions.tracing import external_loads
from chasles.mechanisms import OpenLoop, SingularPosition
from chasles.model.loads import by_body
from chasles.numeric.maximal import joint_accelerations, solved, system
from chasles.robot import Coordinates, Robot

Array = Any


@dataclass(frozen=True, eq=False)
class Condition(float):
    """The condition number of a mass matrix; it prints as what that means.

    Relative errors of forces come out of forward dynamics up to `number` times as large, and about
    log10(number) of 16 digits are lost (Featherstone 2008, section 10.2). heaviest, lightest: the
    largest and smallest eigenvalue of M. worst_force: the unit vector of forces (nv,) that is
    answered by the largest acceleration, along itself: an error in this direction grows most.
    Where freedoms have different units (rad and m) all of this depends on the choice of units.
    """

    number: float
    heaviest: float
    lightest: float
    worst_force: np.ndarray

    def __new__(cls, number: float, *rest: Any, **named: Any) -> "Condition":
        return super().__new__(cls, number)

    def __str__(self) -> str:
        return (
            f"condition {self.number:.4g}: errors of joint forces grow up to {self.number:.4g} "
            f"times in accelerations, and about {np.log10(self.number):.1f} of 16 digits are lost"
        )


def condition(robot: Robot, q: Array, *, coordinates: Coordinates = "independent") -> Condition:
    """The condition number of the mass matrix at q (nq,), and what it means.

    Of a robot with loops, which must be closed at q, of the freedoms that these leave;
    coordinates="tree" leaves them open.
    """
    check_robot("condition", robot)
    at = numbers("q", q, robot.nq)
    if at.ndim != 1 or not np.all(np.isfinite(at)):
        problem = f"q must be {robot.nq} finite numbers, one state"
        raise InputError("E-ACCURACY-001", problem, part="condition")
    M = robot.mass_matrix(at, coordinates=coordinates)
    if not len(M):
        problem = f"robot {robot.name!r} has no freedoms, so no mass matrix"
        raise InputError("E-ACCURACY-002", problem, part="condition")
    moments, forces = np.linalg.eigh(M)
    low, high = float(moments[0]), float(moments[-1])
    return Condition(high / low if low > 0.0 else np.inf, high, low, forces[:, 0])


def maximal_dynamics(
    robot: Robot,
    q: Array,
    qd: Array,
    tau: Array,
    *,
    f_ext: dict[str, Any] | None = None,
    dissipation: bool = False,
    tolerance: float = 1e-6,
) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations qdd (..., nv), and multipliers of loops (..., rows), in maximal coordinates.

    What `Robot.forward_dynamics` and `constrained_dynamics` compute, from one sparse system of the
    accelerations of all bodies and the forces of all joints (Featherstone 2008, sections 3.7 and
    8.13): to check them, or for loops so large that compiling does not pay. Nothing is compiled,
    states are computed one after the other. Redundant loops share their force, so that multipliers
    may differ from those of `constrained_dynamics`; qdd does not. tolerance: the residual of a loop
    (rad, m) above which `chasles.OpenLoop` is raised, and of its rate beside the largest of qd.
    Arrays and options as in `forward_dynamics`.
    """
    check_robot("maximal_dynamics", robot)
    check_tolerance("maximal_dynamics", tolerance)
    if robot.couplings:
        problem = (
            f"{robot.couplings[0]!r} of robot {robot.name!r} couples coordinates of joints, which "
            "bodies do not have"
        )
        remedy = "use constrained_dynamics"
        raise ModelError("E-ACCURACY-003", problem, remedy, part="maximal_dynamics")
    robot.mechanism.refuse_time("maximal_dynamics", "use forward_dynamics")
    keys, forces = wrench_arguments(robot.model, f_ext)
    model = robot.model if dissipation else robot.model.frictionless()
    named = [("q", q, model.nq), ("qd", qd, model.nv), ("tau", tau, model.nv)]
    named += [(f"f_ext[{key.frame!r}]", f, 6) for key, f in zip(keys, forces, strict=True)]
    arrays = {name: _finite(name, *rest) for name, *rest in named}
    given, lead = list(arrays.values()), leading_shape("maximal_dynamics", **arrays)
    flat = [np.broadcast_to(a, (*lead, a.shape[-1])).reshape(-1, a.shape[-1]) for a in given]
    qdd, multipliers = np.empty((len(flat[0]), model.nv)), []
    for k, (x, xd, t, *wrenches) in enumerate(zip(*flat, strict=True)):
        loads = external_loads(model, model.positions(x.tolist()), keys, wrenches)
        equations = system(model, x, xd, t, by_body(model, loads))
        if not equations.gap <= tolerance:
            problem = f"the loops are open by {equations.gap:.2g} (tolerance {tolerance:g})"
            remedy = "close them with assemble"
            raise OpenLoop("E-ACCURACY-005", problem, remedy, part="maximal_dynamics")
        if not equations.opening <= tolerance * max(1.0, np.max(np.abs(xd), initial=0.0)):
            problem = f"qd opens the loops by {equations.opening:.2g} rad/s or m/s"
            remedy = "give what robot.complete(q, yd) gives"
            raise OpenLoop("E-ACCURACY-006", problem, remedy, part="maximal_dynamics")
        a, lam, met = solved(equations)
        if not met:
            problem = (
                f"robot {robot.name!r} cannot go on with this qd from this q, where its loops' "
                "equations contradict each other"
            )
            remedy = "start from another position"
            raise SingularPosition("E-ACCURACY-007", problem, remedy, part="maximal_dynamics")
        qdd[k] = joint_accelerations(model, equations, a)
        multipliers.append(lam[len(lam) - equations.loops :])
    found = np.array(multipliers).reshape(*lead, robot.mechanism.rows)
    return qdd.reshape(*lead, model.nv), found


def _finite(what: str, value: Any, size: int) -> np.ndarray:
    array = numbers(f"maximal_dynamics: {what}", value, size)
    if not np.all(np.isfinite(array)):
        problem = f"{what} has entries that are not finite"
        raise InputError("E-ACCURACY-008", problem, part="maximal_dynamics")
    return array
