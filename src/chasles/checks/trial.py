"""Random robot states for the checks, and evaluation of functions at these states."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from chasles.algorithms import DERIVATIVES, KINEMATICS, METHODS, Method
from chasles.checks.comparing import NOTHING, Comparison, Loss, Units, units_of
from chasles.checks.floats import evaluate, run
from chasles.errors import InputError, said
from chasles.functions.tracing import WrenchKey, signature
from chasles.mathematics.spatial import RigidInertia
from chasles.model import WORLD, Model
from chasles.model.auxiliary import auxiliary_inertias
from chasles.robot import Robot

STEP = 1e-3
"""Finite-difference step (in rad, robot lengths or s). Derivative errors are about 1e-11."""

CLOSED = 1e-13
"""Tolerance for loop residuals (rad, or relative to the robot's length)."""

TRIES = 60
"""Maximum number of random starting positions for closing the loops."""


class Raised(Exception):
    """An exception raised by a tested function, with the names of the function and method."""

    def __init__(self, function: str, method: str, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {said(error)}")
        self.function, self.method = function, method


@contextmanager
def raising(function: str, method: str) -> Iterator[None]:
    """Context manager that re-raises exceptions as `Raised` and suppresses NumPy warnings."""
    try:
        with np.errstate(all="ignore"):
            yield
    except Exception as error:
        raise Raised(function, method, error) from error


@dataclass(frozen=True)
class Trial:
    """A robot at a random state: t (s), q, qd and qdd.

    The state satisfies the loop constraints, including their time derivatives. `whole` is the model
    with damping and `model` is the model without damping, both at time t. Directional derivatives
    are taken along `direction` (nv). `wrench` acts on the tool frame. Random lengths are
    proportional to the robot's length.
    """

    robot: Robot
    source: Model
    t: float
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    direction: np.ndarray
    wrench: np.ndarray
    full: bool = False

    @property
    def load(self) -> dict[Any, np.ndarray]:
        """Value of `f_ext` that applies `wrench` (in world axes) to the tool frame."""
        return self.on(self.robot.tool)

    def on(self, frame: str) -> dict[Any, np.ndarray]:
        """Return the value of `f_ext` that applies `wrench` (in world axes) to a frame."""
        return {WrenchKey(frame): self.wrench}

    @cached_property
    def whole(self) -> Model:
        return self.source.at(self.t)

    @cached_property
    def model(self) -> Model:
        return self.whole.frictionless()

    @cached_property
    def units(self) -> Units:
        return units_of(self.model, self.robot.mechanism.loops.counted)

    @cached_property
    def misfit(self) -> Loss:
        """Accuracy loss due to redundant loop equations, which hold only approximately."""
        off = sum(misfit for _, misfit in self.robot.mechanism.loops.misfits)
        return (
            Loss(1.0 + off / 1e-12, f"the loops are closed to within {off:.0e}") if off else NOTHING
        )

    @cached_property
    def closed(self) -> Model:
        """Frictionless model with the loop equations selected for constrained dynamics."""
        chosen = self.robot.function("constrained_dynamics", backend="interpret").model
        return chosen.at(self.t).frictionless()

    # Evaluation -------------------------------------------------------------------------------

    def run(self, function: str, *arrays: Any, **options: Any) -> Any:
        """Evaluate a robot function without damping. Return multiple results as a tuple."""
        return self.ask(self.model, function, *arrays, **options)

    def ask(self, model: Model, function: str, *arrays: Any, **options: Any) -> Any:
        """Evaluate a robot function for a model; exceptions are re-raised as `Raised`."""
        with raising(function, options.get("method", "")):
            found = evaluate(model, function, arrays, **options)
        return found[0] if len(found) == 1 else found

    def derivatives(self, function: str, *arrays: Any, **options: Any) -> tuple[np.ndarray, ...]:
        """Return the analytical derivatives of a function with respect to each input.

        The recursive algorithm in `DERIVATIVES` is evaluated for the model with damping.
        """
        with raising(function, "recursion"):
            return run(self.whole, DERIVATIVES[function].algorithm, arrays, **options)

    def ways(self, function: str, **options: Any) -> list[Method]:
        """Return the methods of a function that support this robot.

        Costly methods are included only for small robots, or if `full` is True.
        """
        if self.model.source.massless and function not in KINEMATICS:
            return []
        bound = self.model.mimics or self.model.driven or self.model.rotors
        return [
            m
            for m in METHODS[function]
            if (m.followers or not bound)
            and not (m.needs and m.needs(self.model, options))
            and not (m.steep and self.model.nv > ARM and not self.full)
        ]

    def has(self, function: str) -> bool:
        """Return True if at least one method of the function supports this robot."""
        return bool(self.ways(function))

    @property
    def nonholonomic(self) -> bool:
        """Return True if a nonholonomic joint connects two moving bodies."""
        return any(not b.joint.holonomic and b.parent != WORLD for b in self.model.bodies)

    # Frames, axes and points ------------------------------------------------------------------

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of the frames to test: the tool frame, and the middle body in the body list."""
        bodies = self.model.bodies
        middle = [bodies[len(bodies) // 2].name] if bodies else []
        return tuple(dict.fromkeys([self.robot.tool, *middle]))

    @property
    def views(self) -> tuple[dict[str, Any], ...]:
        """Combinations of the options `axes` and `at` to test for frame functions."""
        point = tuple(self.units.length * x for x in (0.4, -0.2, 0.8))
        return (
            {"axes": "world", "at": "frame"},
            {"axes": "frame", "at": "world"},
            {"axes": "frame", "at": point},
        )

    @property
    def places(self) -> list[dict[str, Any]]:
        """Combinations of the options `frame`, `axes` and `at` to test for frame functions."""
        return [{"frame": frame, **view} for frame in self.frames for view in self.views]

    # Comparisons ------------------------------------------------------------------------------

    def forces(
        self, function: str, method: str, found: Any, expected: Any, loss: Loss = NOTHING
    ) -> Comparison:
        """Return a comparison of computed and expected generalized forces (nv,)."""
        return Comparison(function, method, found, expected, self.force, loss, self.units.effort)

    def twists(
        self, function: str, method: str, found: Any, expected: Any, order: int = 1
    ) -> Comparison:
        """Return a comparison of computed and expected twists or their time derivatives.

        `order` is 1 for twists, 2 for accelerations and 3 for jerks. Errors are divided by the
        largest expected entry, or by the joint speed to the power `order` if that is larger.
        """
        size = self.speed**order
        return Comparison(function, method, found, expected, size, units=self.units.twist)

    # Magnitudes -------------------------------------------------------------------------------

    @cached_property
    def tau(self) -> np.ndarray:
        """Joint torques for the accelerations `qdd`, without damping."""
        return self.run("inverse_dynamics", self.q, self.qd, self.qdd)

    @cached_property
    def M(self) -> np.ndarray:
        return self.run("mass_matrix", self.q)

    @cached_property
    def force(self) -> float:
        """Scale of the joint torques (N m), used for relative errors.

        Forces of prismatic joints are multiplied by the robot's length.
        """
        heavy = np.max(np.abs(self.M * self.units.inertia), initial=0.0) * self.speed
        return float(np.max(np.abs(self.tau * self.units.effort), initial=heavy))

    @cached_property
    def speed(self) -> float:
        """Largest joint speed of the trial (rad/s or robot lengths per s), but at least 1."""
        return float(np.max(np.abs(self.qd * self.units.rate), initial=1.0))

    @cached_property
    def inverting(self) -> Loss:
        """Accuracy loss from inverting a mass matrix with a condition number above 1e4."""
        moments = np.linalg.eigvalsh(self.M * self.units.inertia) if len(self.M) else np.ones(1)
        condition = moments[-1] / moments[0] if moments[0] > 0.0 else np.inf
        why = f"the mass matrix has a condition number of {condition:.0e}"
        return Loss(float(max(1.0, min(condition, 1e15) * 1e-4)), why)

    @cached_property
    def assembling(self) -> Loss:
        """Accuracy loss of methods that invert the inertia of each link.

        The loss grows with the ratio of the inertia that a link carries to the link's own inertia.
        """
        most = max(_carried(self.model, self.q), default=1.0)
        why = f"the method inverts link inertias, but a link carries {most:.0e} times its inertia"
        return max(self.inverting, Loss(float(max(1.0, min(most * most, 1e20) * 1e-4)), why))

    # Derivatives ------------------------------------------------------------------------------

    def moved(self, s: float) -> "Trial":
        """Return the state after `s` seconds, accurate to second order in s."""
        step = s * self.qd + s * s / 2.0 * self.qdd
        q = self.run("integrate", self.q, step)
        return replace(self, t=self.t + s, q=q, qd=self.qd + s * self.qdd)

    def rate(self, value: Callable[["Trial"], Any]) -> np.ndarray:
        """Return the time derivative of value(trial) along the motion, by finite differences."""
        return slope_at(lambda s: value(self.moved(s)))

    def rate_of(self, function: str, *arrays: str, **options: Any) -> np.ndarray:
        """Return the time derivative of a robot function along the motion.

        `arrays` are the names of the function's inputs, such as "q" and "qd".
        """
        return self.rate(
            lambda at: at.run(function, *(getattr(at, name) for name in arrays), **options)
        )

    def slope(self, value: Callable[[np.ndarray], Any]) -> np.ndarray:
        """Return the derivative of value(q) along `direction`, at constant time."""
        return slope_at(lambda s: value(self.run("integrate", self.q, s * self.direction)))


def _carried(model: Model, q: np.ndarray) -> Iterator[float]:
    """Yield, for each link, the ratio of its composite inertia to its own inertia.

    The ratio is the maximum over all directions of motion. Auxiliary inertias are included.
    """
    model, added = model.bare(), auxiliary_inertias(model)
    values = model.positions(q.tolist())
    inertias = {i: I + added[i] if i in added else I for i, _, _, I in model.outward()}
    carried = dict(inertias)
    for i, p, joint, _ in model.inward():
        if p != WORLD:
            carried[p] = carried[p] + joint.transform(values[i]).T @ carried[i]
        whole, own = _matrix(carried[i]), _matrix(inertias[i])
        try:
            L = np.linalg.inv(np.linalg.cholesky(own))
        except np.linalg.LinAlgError:
            yield np.inf
        else:
            yield float(np.linalg.eigvalsh(L @ whole @ L.T)[-1])


def _matrix(inertia: RigidInertia) -> np.ndarray:
    """Return a body's spatial inertia matrix (6, 6)."""
    m, (x, y, z) = float(inertia.m), map(float, inertia.h)
    h = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    I = np.array(inertia.I.matrix().rows, dtype=float)
    return np.block([[I, h], [h.T, m * np.eye(3)]])


ARM = 12
"""Maximum number of degrees of freedom for which costly methods are checked by default."""


def slope_at(value: Callable[[float], Any]) -> np.ndarray:
    """Return the derivative of value(s) at s = 0, by extrapolated central differences."""

    def central(h: float) -> np.ndarray:
        return (np.asarray(value(h)) - np.asarray(value(-h))) / (2.0 * h)

    return (4.0 * central(STEP / 2.0) - central(STEP)) / 3.0


# Random states ---------------------------------------------------------------------------------


def trial(robot: Robot, seed: int, *, full: bool = False) -> Trial:
    """Return the robot in a random state that satisfies the loop constraints."""
    rng = np.random.default_rng(seed)
    source = robot.model
    t = float(np.random.default_rng((seed, 1)).uniform(0.1, 1.0))
    model = source.at(t)
    units = units_of(model, robot.mechanism.loops.counted)
    q = _position(robot, units.length, rng)
    qd, qdd, direction = rng.normal(size=(3, source.nv))
    direction /= np.linalg.norm(direction) if source.nv else 1.0
    qd, qdd, direction = (x * units.effort for x in (qd, qdd, direction))
    wrench = rng.normal(size=6) * _scale(source, robot.tool)
    if len(units.closing):
        q = _closed(model, units, rng)
        A = evaluate(model, "loop_matrix", (q,))[0]
        slip = A @ qd - evaluate(model, "loop_rate", (q,))[0]
        qd = qd - _least(units, A, slip, 1e-9)
        slide = A @ qdd - evaluate(model, "loop_bias", (q, qd))[0]
        qdd = qdd - _least(units, A, slide, 1e-9)
    return Trial(robot, source, t, q, qd, qdd, direction, wrench, full)


def _position(robot: Robot, length: float, rng: np.random.Generator) -> np.ndarray:
    """Return a random configuration within the joint limits.

    Angles are in [-pi, pi] if the limits allow it. Prismatic coordinates without limits are
    drawn from a range proportional to the robot's length.
    """
    q = robot.random(rng)
    for i, where in robot.model.position_slices.items():
        joint, limits = robot.model.bodies[i].joint, robot.model.limits[i]
        if joint.nq > 1 or not np.isfinite(limits.upper - limits.lower):
            q[where] *= [length if unit == "m" else 1.0 for unit in joint.units]
        elif joint.units == ("rad",):
            turned = np.remainder(q[where] + np.pi, 2.0 * np.pi) - np.pi
            q[where] = np.where(
                (limits.lower <= turned) & (turned <= limits.upper), turned, q[where]
            )
    return q


def _least(units: Units, A: np.ndarray, b: np.ndarray, cut: float) -> np.ndarray:
    """Return the solution of A x = b that has the smallest norm in scaled units.

    Singular values below `cut` (relative to the largest) are treated as zero.
    """
    rows = units.closing
    scaled = rows[:, None] * A * units.effort
    return units.effort * (np.linalg.pinv(scaled, rcond=cut) @ (rows * b))


def _scale(model: Model, frame: str) -> np.ndarray:
    """Return a scale (6,) for random wrenches, based on the weight of the frame's body."""
    body = model.frames[frame].body
    if body == WORLD or float(model.bodies[body].inertia.m) <= 0.0:
        return np.ones(6)
    I = model.bodies[body].inertia
    mass, radius = float(I.m), float(np.sqrt((I.I.xx + I.I.yy + I.I.zz) / (2.0 * I.m)))
    return 10.0 * mass * np.array([radius] * 3 + [1.0] * 3)


def _closed(model: Model, units: Units, rng: np.random.Generator) -> np.ndarray:
    """Close the loops with the Gauss-Newton method, starting from random positions.

    The starting positions approach the neutral position with each attempt.
    """
    neutral = [x for i in model.movers for x in model.bodies[i].joint.neutral()]
    for attempt in range(TRIES):
        reach = np.pi * (1.0 - attempt / TRIES)
        start = rng.uniform(-reach, reach, model.nv) * units.effort
        q = evaluate(model, "integrate", (neutral, start))[0]
        for _ in range(60):
            residual = evaluate(model, "loop_residual", (q,))[0]
            A = evaluate(model, "loop_matrix", (q,))[0] * np.array(model.holonomic_rows)[:, None]
            step = -_least(units, A, residual, 1e-6)
            step *= min(1.0, 0.5 / max(float(np.max(np.abs(step * units.rate))), 1e-300))
            q = evaluate(model, "integrate", (q, step))[0]
            if np.max(np.abs(units.closing * residual)) <= CLOSED:
                return q  # the error after this step is about the square of the residual
    problem = f"the loops could not be closed in {TRIES} attempts"
    remedy = "inspect the mechanism with robot.mobility()"
    raise InputError("E-VERIFY-001", problem, remedy, part=f"verify: robot {model.name!r}")


def arguments(function: str, method: Method, given: Mapping[str, Any], order: int = 1) -> list[Any]:
    """Return the input arrays of a function, without `f_ext`, in the order of its arguments."""
    names = signature(method.algorithm, order).inputs
    return [given[name] for name in names if name != "f_ext"]
