"""Estimate and check the accuracy of dynamics computations."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import check_tolerance
from chasles.errors import InputError, ModelError
from chasles.functions.doors import (
    check_robot,
    leading_shape,
    numbers,
    wrench_arguments,
)
from chasles.functions.tracing import external_loads
from chasles.mechanisms import OpenLoop, SingularPosition
from chasles.model.loads import by_body
from chasles.numeric.maximal import Solver, analysed, equations, joint_accelerations
from chasles.robot import Coordinates, Robot

Array = Any


@dataclass(frozen=True, eq=False)
class Condition(float):
    """Condition number of a mass matrix M: a float whose string form explains the value.

    Forward dynamics amplifies relative torque errors by a factor of up to `number`. Accelerations
    therefore lose about log10(number) of their 16 significant digits (Featherstone 2008, section
    10.2). If degrees of freedom have different units (rad and m), all values depend on the choice
    of units.

    Attributes
    ----------
    number : float
        The condition number.
    heaviest, lightest : float
        Largest and smallest eigenvalues of M.
    worst_force : ndarray, shape (nv,)
        Unit torque vector that produces the largest acceleration; torque errors in this direction
        are amplified most.
    """

    number: float
    heaviest: float
    lightest: float
    worst_force: np.ndarray

    def __new__(cls, number: float, *rest: Any, **named: Any) -> "Condition":
        return super().__new__(cls, number)

    def __str__(self) -> str:
        return (
            f"condition number {self.number:.4g}: forward dynamics amplifies relative torque "
            f"errors up to {self.number:.4g} times; about {np.log10(self.number):.1f} of 16 "
            "digits are lost"
        )


def condition(robot: Robot, q: Array, *, coordinates: Coordinates = "independent") -> Condition:
    """Return the condition number of the mass matrix at a configuration.

    Parameters
    ----------
    robot : Robot
        Any robot whose links have mass.
    q : array_like, shape (nq,)
        Joint positions (rad or m); loops must be closed.
    coordinates : {"independent", "tree"}, optional
        Coordinates of the mass matrix for a robot with loops: the independent degrees of freedom
        (default), or all joints of the spanning tree, ignoring the loops.

    Returns
    -------
    Condition
        Condition number (a float); its attributes include the extreme eigenvalues.

    Raises
    ------
    ArgumentError
        If `robot` is not a Robot.
    InputError
        If `q` is not a single state of finite numbers, or if the robot has no degrees of freedom.
    OpenLoop
        If `coordinates` is "independent", and `q` does not close the loops.

    Examples
    --------
    >>> import chasles
    >>> round(float(chasles.condition(chasles.robots.planar(2), [0.0, 0.5])), 2)
    30.84
    """
    check_robot("condition", robot)
    at = numbers("q", q, robot.nq)
    if at.ndim != 1 or not np.all(np.isfinite(at)):
        problem = f"q must contain {robot.nq} finite numbers (a single state)"
        raise InputError("E-ACCURACY-001", problem, part="condition")
    M = robot.mass_matrix(at, coordinates=coordinates)
    if not len(M):
        problem = f"robot {robot.name!r} has no degrees of freedom and therefore no mass matrix"
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
    """Return accelerations and Lagrange multipliers, computed in maximal coordinates.

    The accelerations equal those of `Robot.forward_dynamics` and `constrained_dynamics`, but this
    function solves one sparse linear system for all body accelerations and joint forces. Use it to
    check the compiled functions, or for mechanisms that are too large to compile. States are
    computed one at a time; for many states of one robot, use `MaximalDynamics`.

    Parameters
    ----------
    robot : Robot
        Any robot; use `robot.at_time(t)` if it depends on time.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    qd : array_like, shape (..., nv)
        Joint velocities (rad/s or m/s).
    tau : array_like, shape (..., nv)
        Joint torques or forces (N m or N).
    f_ext : mapping from str to Wrench or array_like, optional
        External wrenches by frame name, as in `Robot.forward_dynamics`.
    dissipation : bool, optional
        Include joint damping and friction.
    tolerance : float, optional
        Largest allowed loop residual (rad or m), and largest allowed violation of the loop
        constraints by qd. The violation is divided by the largest entry of qd if that entry exceeds
        1.

    Returns
    -------
    qdd : ndarray, shape (..., nv)
        Joint accelerations (rad/s2 or m/s2).
    multipliers : ndarray, shape (..., rows)
        Constraint forces, one for each scalar equation of a loop or coupling. If loops are
        redundant, qdd is unique, but the multipliers are not: `constrained_dynamics` may return
        different values.

    Raises
    ------
    OpenLoop
        If q or qd violates the loop constraints.
    SingularPosition
        If the loop constraints have no solution for the accelerations.
    ArgumentError
        If `robot` is not a Robot, or if `f_ext` is not a mapping.
    InputError
        If an array has the wrong shape or is not finite, if the leading shapes do not broadcast, or
        if `tolerance` is not a positive finite number.
    ModelError
        If the robot depends on time or has tendons with inertia, or if a frame in `f_ext` does not
        exist.

    Notes
    -----
    The equations are formulated in maximal coordinates (Featherstone 2008, sections 3.7 and 8.13).

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> qdd, multipliers = chasles.maximal_dynamics(robot, [0.0, 0.5], [0.0, 0.0], [0.0, 0.0])
    >>> qdd.round(3)
    array([-11.973,  14.821])
    """
    check_robot("maximal_dynamics", robot)
    check_tolerance("maximal_dynamics", tolerance)
    _refuse_tendons("maximal_dynamics", robot)
    robot.mechanism.check_inertia("maximal_dynamics")
    keys, forces = wrench_arguments(robot.model, f_ext)
    arrays = _arrays("maximal_dynamics", robot, (q, qd, tau), (keys, forces))
    model = robot.model if dissipation else robot.model.frictionless()
    lead, flat = _rows("maximal_dynamics", arrays)
    answers = []
    for row in zip(*flat, strict=True):
        x, xd, effort, *rest = (part.tolist() for part in row)
        wrenches, time = rest[: len(keys)], rest[len(keys) :]
        here = model.at(time[0][0]) if time else model
        loads = by_body(here, external_loads(here, here.positions(x), keys, wrenches))
        found = equations(here, x, xd, effort, loads)
        numbers = [np.array(_numbers(part), dtype=float) for part in found]
        solver = Solver(found.M, found.K, len(found.f), len(found.k))
        answers.append(
            _answer("maximal_dynamics", robot, solver, found.J, numbers, row[1], tolerance)
        )
    return _stacked(robot, lead, answers)


class MaximalDynamics:
    """Forward dynamics in maximal coordinates, analyzed once per robot and solved many times.

    `MaximalDynamics(robot)(q, qd, tau)` is equivalent to `maximal_dynamics(robot, q, qd, tau)`.
    The first call determines the sparsity pattern, the elimination order and a program that
    computes the matrix entries. After that, each state costs one numeric factorization.
    Featherstone 2008, section 8.13, describes the analyze, factor and solve phases.

    Parameters
    ----------
    robot
        Any robot, including robots with loops, couplings, mimic joints and prescribed motions.
    dissipation
        Add joint damping and friction.
    tolerance
        Largest allowed violation of the loop constraints, as in `maximal_dynamics`.
    backend
        Backend that computes the matrix entries. "numpy" needs no compilation and evaluates all
        states in a call at once. "llvm" is faster for many calls with few states.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        dissipation: bool = False,
        tolerance: float = 1e-6,
        backend: str = "numpy",
    ) -> None:
        check_robot("MaximalDynamics", robot)
        check_tolerance("MaximalDynamics", tolerance)
        _refuse_tendons("MaximalDynamics", robot)
        robot.mechanism.check_inertia("MaximalDynamics")
        backends.row(backend)  # raises an error for an unknown backend
        if not backends.takes_numpy(backend):
            problem = f"backend {backend!r} does not accept NumPy arrays"
            remedy = "use 'numpy' or 'llvm'"
            raise InputError("E-ACCURACY-340", problem, remedy, part="MaximalDynamics")
        self.robot, self.dissipation = robot, dissipation
        self.tolerance, self.backend = tolerance, backend
        self._prepared: dict[Any, tuple[Any, Solver, Any]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the robot and the options; the analysis is repeated after unpickling."""
        options = {key: getattr(self, key) for key in ("dissipation", "tolerance", "backend")}
        return partial(MaximalDynamics, **options), (self.robot,)

    def __call__(
        self,
        q: Array,
        qd: Array,
        tau: Array,
        *,
        t: Array = None,
        f_ext: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return accelerations qdd (..., nv) and Lagrange multipliers (..., rows).

        The multipliers are constraint forces, one for each scalar equation of a loop or coupling.
        t (...) is the time (s) for a time-dependent robot, by default the time passed to `at_time`.
        f_ext is as in `Robot.forward_dynamics`. Each new set of frames in f_ext requires a new
        analysis.
        """
        keys, forces = wrench_arguments(self.robot.model, f_ext)
        here = self.robot if t is None else self.robot.at(t)
        arrays = _arrays("MaximalDynamics", here, (q, qd, tau), (keys, forces))
        if keys not in self._prepared:
            self._prepared[keys] = self._analysed(keys)
        kernel, solver, J = self._prepared[keys]
        lead, flat = _rows("MaximalDynamics", arrays)
        given = [a[..., 0] if name == "t" else a for name, a in zip(arrays, flat, strict=True)]
        parts = backends.arrays.call(kernel, "MaximalDynamics", given)
        answers = [
            _answer("MaximalDynamics", self.robot, solver, J, row, xd, self.tolerance)
            for xd, *row in zip(flat[1], *parts, strict=True)
        ]
        return _stacked(self.robot, lead, answers)

    def _analysed(self, keys: tuple[Any, ...]) -> tuple[Any, Solver, Any]:
        model = self.robot.model if self.dissipation else self.robot.model.frictionless()
        found = analysed(model, keys)
        _, _, f, k, *_ = found.program.outputs
        solver = Solver(found.M, found.K, f.shape[0], k.shape[0])
        return backends.compile(found.program, self.backend), solver, found.J


def _refuse_tendons(function: str, robot: Robot) -> None:
    """Raise an error if a tendon has inertia, because its effective inertia depends on q."""
    for rotor in (rotor for rotor in robot.model.rotors if rotor.path):
        problem = f"maximal coordinates do not support tendons with inertia ({rotor.name!r})"
        raise ModelError("E-ACCURACY-220", problem, "use forward_dynamics", part=function)


def _arrays(
    function: str, robot: Robot, state: tuple[Array, ...], load: Any
) -> dict[str, np.ndarray]:
    """Return the checked arguments q, qd, tau and external wrenches as finite arrays, by name.

    If the robot depends on time, the last array is the time, with shape (..., 1).
    """
    t = robot.mechanism.t
    if t is None:
        robot.mechanism.refuse_time(function, "evaluate the robot at a time: robot.at_time(t)")
    model, (keys, forces) = robot.model, load
    sizes = ("q", model.nq), ("qd", model.nv), ("tau", model.nv)
    named = [(name, x, size) for (name, size), x in zip(sizes, state, strict=True)]
    named += [(f"f_ext[{key.frame!r}]", f, 6) for key, f in zip(keys, forces, strict=True)]
    named += [] if t is None else [("t", t[..., None], 1)]
    found = {}
    for name, value, size in named:
        found[name] = numbers(f"{function}: {name}", value, size)
        if not np.all(np.isfinite(found[name])):
            problem = f"{name} contains NaN or infinite entries"
            raise InputError("E-ACCURACY-008", problem, part=function)
    return found


def _rows(function: str, arrays: dict[str, np.ndarray]) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """Return the batch shape, and the broadcast arguments as arrays with one row per state."""
    lead = leading_shape(function, **arrays)
    wide = [np.broadcast_to(a, (*lead, a.shape[-1])) for a in arrays.values()]
    count = math.prod(lead)
    return lead, [np.array(a.reshape(count, a.shape[-1]), dtype=float) for a in wide]


def _numbers(part: Any) -> list[Any]:
    return list(part.values()) if isinstance(part, dict) else part


def _answer(
    function: str,
    robot: Robot,
    solver: Solver,
    places: Any,
    parts: list[np.ndarray],
    qd: np.ndarray,
    tolerance: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve the equations of motion for one state, and return qdd and the multipliers."""
    M, K, f, k, J, d, residual, opening = parts
    gap, rate = (float(np.max(np.abs(x), initial=0.0)) for x in (residual, opening))
    if not gap <= tolerance:
        problem = f"the loops are not closed (residual {gap:.2g}, tolerance {tolerance:g})"
        remedy = "close the loops with robot.assemble"
        raise OpenLoop("E-ACCURACY-005", problem, remedy, part=function)
    if not rate <= tolerance * max(1.0, np.max(np.abs(qd), initial=0.0)):
        problem = f"qd violates the loop constraints by {rate:.2g} rad/s or m/s"
        remedy = "compute qd from independent velocities yd with robot.complete(q, yd)"
        raise OpenLoop("E-ACCURACY-006", problem, remedy, part=function)
    a, lam, met = solver(M, K, f, k)
    if not met:
        problem = (
            f"the loop constraints of robot {robot.name!r} have no solution for qdd at this q "
            "and qd"
        )
        remedy = "use another configuration q"
        raise SingularPosition("E-ACCURACY-007", problem, remedy, part=function)
    return joint_accelerations(places, J, d, a), lam[len(lam) - len(residual) :]


def _stacked(
    robot: Robot, lead: tuple[int, ...], answers: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Combine the results for all states into an array of qdd and an array of multipliers."""
    sizes = robot.nv, robot.mechanism.rows
    qdd, lam = (np.array([x[k] for x in answers]).reshape(*lead, n) for k, n in enumerate(sizes))
    return qdd, lam
