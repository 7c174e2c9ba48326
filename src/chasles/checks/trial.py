"""One random state of motion of a robot, at which its functions are asked on plain floats."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from chasles.algorithms import KINEMATICS, METHODS, Method
from chasles.checks.floats import evaluate
from chasles.compiled import Compiled
from chasles.model import WORLD, Model
from chasles.tracing import WrenchKey, signature

STEP = 1e-3
"""Of differences, in rad, m and s: with one extrapolation about 1e-11 of a slope is lost."""

CLOSED = 1e-13
"""Loops closed to this (rad, m) count as closed."""

TRIES = 60
"""How many positions are tried as a start for closing loops, ever nearer to the neutral one."""


class Subject(Protocol):
    """What is asked of a robot."""

    @property
    def name(self) -> str: ...
    @property
    def frames(self) -> tuple[str, ...]: ...

    model: Model

    def random(self, rng: Any = None, size: Any = ()) -> np.ndarray: ...
    def function(self, function: str, *, backend: str = "llvm", **options: Any) -> Compiled: ...


class Raised(Exception):
    """A function that gave no result: its name, its method, and what it said instead."""

    def __init__(self, function: str, method: str, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.function, self.method = function, method


@dataclass(frozen=True)
class Trial:
    """A robot and one state of it; t in s, q, qd, qdd as everywhere.

    Loops are closed at q, and stay so by qd and qdd. `whole` is the mechanism with its damping,
    `model` that without, both at time t. Tests of slopes go along `direction` (nv). `wrench` loads
    the last frame.
    """

    robot: Subject
    source: Model
    t: float
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    direction: np.ndarray
    wrench: np.ndarray
    full: bool = False

    @cached_property
    def whole(self) -> Model:
        return self.source.at(self.t)

    @cached_property
    def model(self) -> Model:
        return self.whole.frictionless()

    @cached_property
    def closed(self) -> Model:
        """The mechanism with a choice of its loops' equations, which some functions need."""
        chosen = self.robot.function("constrained_dynamics", backend="interpret").model
        return chosen.at(self.t).frictionless()

    # Asking -----------------------------------------------------------------------------------

    def run(self, function: str, *arrays: Any, **options: Any) -> Any:
        """A function without damping: its result, or a tuple of several."""
        return self.ask(self.model, function, *arrays, **options)

    def ask(self, model: Model, function: str, *arrays: Any, **options: Any) -> Any:
        """A function of a mechanism; what it raises says which function it was."""
        try:
            found = evaluate(model, function, arrays, **options)
        except Exception as error:
            raise Raised(function, options.get("method", ""), error) from error
        return found[0] if len(found) == 1 else found

    def ways(self, function: str, **options: Any) -> list[Method]:
        """The methods of a function that this mechanism can have, in the order of the table.

        Those that grow with the cube of the freedoms only for arms, unless everything is wanted.
        """
        if self.model.source.massless and function not in KINEMATICS:
            return []
        bound = self.model.mimics or self.model.driven
        return [
            m
            for m in METHODS[function]
            if (m.followers or not bound)
            and not (m.needs and m.needs(self.model, options))
            and not (m.steep and self.model.nv > ARM and not self.full)
        ]

    def has(self, function: str) -> bool:
        """Whether the mechanism has the function at all."""
        return bool(self.ways(function))

    @property
    def nonholonomic(self) -> bool:
        """Whether there are positions that no step leads to, on a body that moves."""
        return any(not b.joint.holonomic and b.parent != WORLD for b in self.model.bodies)

    # Sizes ------------------------------------------------------------------------------------

    @cached_property
    def tau(self) -> np.ndarray:
        """The joint forces that move it as it moves, without damping."""
        return self.run("inverse_dynamics", self.q, self.qd, self.qdd)

    @cached_property
    def M(self) -> np.ndarray:
        return self.run("mass_matrix", self.q)

    @cached_property
    def force(self) -> float:
        """The size of joint forces, N m or N."""
        heavy = np.max(np.abs(self.M), initial=0.0) * max(1.0, np.max(np.abs(self.qd), initial=0.0))
        return float(max(np.max(np.abs(self.tau), initial=0.0), heavy))

    @cached_property
    def speed(self) -> float:
        return float(max(1.0, np.max(np.abs(self.qd), initial=0.0)))

    @cached_property
    def looser(self) -> float:
        """How many digits the mass matrix costs whoever inverts it: 1 up to a condition of 1e5."""
        moments = np.linalg.eigvalsh(self.M) if len(self.M) else np.ones(1)
        condition = moments[-1] / moments[0] if moments[0] > 0.0 else np.inf
        return float(max(1.0, min(condition, 1e15) * 1e-5))

    # Slopes -----------------------------------------------------------------------------------

    def moved(self, s: float) -> "Trial":
        """The same motion s seconds later: right to the third power of s."""
        step = s * self.qd + s * s / 2.0 * self.qdd
        q = self.run("integrate", self.q, step)
        return replace(self, t=self.t + s, q=q, qd=self.qd + s * self.qdd)

    def rate(self, value: Callable[["Trial"], Any]) -> np.ndarray:
        """The time derivative of a value along the motion, by extrapolated differences."""
        return slope_at(lambda s: value(self.moved(s)))

    def rate_of(self, function: str, *arrays: str, **options: Any) -> np.ndarray:
        """The time derivative of a function of "q", "qd", "qdd" along the motion."""
        return self.rate(
            lambda at: at.run(function, *(getattr(at, name) for name in arrays), **options)
        )

    def slope(self, value: Callable[[np.ndarray], Any]) -> np.ndarray:
        """The derivative of value(q) along the direction, at constant time."""
        return slope_at(lambda s: value(self.run("integrate", self.q, s * self.direction)))


ARM = 12
"""Freedoms up to which closed forms are computed by default."""


def slope_at(value: Callable[[float], Any]) -> np.ndarray:
    """The derivative of a value of one number at 0, by extrapolated central differences."""

    def central(h: float) -> np.ndarray:
        return (np.asarray(value(h)) - np.asarray(value(-h))) / (2.0 * h)

    return (4.0 * central(STEP / 2.0) - central(STEP)) / 3.0


# Random states ---------------------------------------------------------------------------------


def trial(robot: Subject, seed: int, *, full: bool = False) -> Trial:
    """A random state; of a robot with loops, one in which they are closed and stay so."""
    rng = np.random.default_rng(seed)
    source = robot.model
    t = float(rng.uniform(0.1, 1.0)) if source.timed else 0.0
    q = robot.random(rng)
    qd, qdd, direction = rng.normal(size=(3, source.nv))
    direction /= np.linalg.norm(direction) if source.nv else 1.0
    wrench = rng.normal(size=6) * _scale(source, robot.frames[-1])
    model = source.at(t)
    if source.loop_rows:
        q = _closed(model, rng)
        A = evaluate(model, "loop_matrix", (q,))[0]
        back = np.linalg.pinv(A, rcond=1e-9)
        qd = qd - back @ (A @ qd - evaluate(model, "loop_rate", (q,))[0])
        qdd = qdd - back @ (A @ qdd - evaluate(model, "loop_bias", (q, qd))[0])
    return Trial(robot, source, t, q, qd, qdd, direction, wrench, full)


def _scale(model: Model, frame: str) -> np.ndarray:
    """Moments (N m) and forces (N) that move the body of a frame about as fast as its weight does.

    One newton would be nothing to a crane, and too much for a link of a milligram, whose
    accelerations would drown those of all others.
    """
    body = model.frames[frame].body
    if body == WORLD or float(model.bodies[body].inertia.m) <= 0.0:
        return np.ones(6)
    I = model.bodies[body].inertia
    mass, radius = float(I.m), float(np.sqrt((I.I.xx + I.I.yy + I.I.zz) / (2.0 * I.m)))
    return 10.0 * mass * np.array([radius] * 3 + [1.0] * 3)


def _closed(model: Model, rng: np.random.Generator) -> np.ndarray:
    """A position that closes the loops: Gauss's and Newton's method from random starts."""
    neutral = [x for i in model.movers for x in model.bodies[i].joint.neutral()]
    for attempt in range(TRIES):
        reach = np.pi * (1.0 - attempt / TRIES)
        q = evaluate(model, "integrate", (neutral, rng.uniform(-reach, reach, model.nv)))[0]
        for _ in range(60):
            residual = evaluate(model, "loop_residual", (q,))[0]
            if np.max(np.abs(residual)) <= CLOSED:
                return q
            step = -np.linalg.pinv(evaluate(model, "loop_matrix", (q,))[0], rcond=1e-6) @ residual
            step *= min(1.0, 0.5 / max(float(np.max(np.abs(step))), 1e-300))
            q = evaluate(model, "integrate", (q, step))[0]
    raise ValueError(
        f"verify: robot {model.name!r}: no position was found in {TRIES} tries that closes its "
        "loops; see robot.mobility()"
    )


def arguments(function: str, method: Method, given: Mapping[str, Any], order: int = 1) -> list[Any]:
    """The arrays of a function, by the names that its algorithm gives them."""
    names = signature(method.algorithm, order).inputs
    return [given[name] for name in names if name != "f_ext"]


def at_frame(frame: str, wrench: np.ndarray) -> dict[WrenchKey, np.ndarray]:
    """An external wrench along the world's axes at a frame's origin."""
    return {WrenchKey(frame): wrench}
