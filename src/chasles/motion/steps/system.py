"""Interface between integrators and equations of motion, with an implementation for arrays.

All integrators use the interface `System`: first-order differential equations in local coordinates
around a position. `Local` implements the interface for arrays of floats, and `Traced` for symbols.
The drivers (`chasles.motion.drivers`) use the interface to compute the state after a step, and
states within the step.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple, Protocol

import numpy as np

from chasles.mechanisms import Mechanism
from chasles.model import Model


class Weights(NamedTuple):
    """Weights of Runge-Kutta stages: `parts` times `unit`.

    If the weights are fractions, the parts are integers, such as (1, 2, 2, 1) with the unit 1/6.
    """

    parts: np.ndarray
    unit: float = 1.0

    @staticmethod
    def exact(text: str) -> "Weights":
        """Parse weights from a string of fractions separated by spaces, such as "1/6 1/3"."""
        found = [Fraction(entry) for entry in text.split()]
        denominator = lcm(*(f.denominator for f in found))
        return Weights(np.array([float(f * denominator) for f in found]), 1.0 / denominator)


ONE = Weights.exact("1")


class System:
    """First-order system in y = (d, v, s, x) near the initial position q of a step.

    The vector y has these parts:

    - d: displacement from q, as in `integrate(q, d)`. For all joint types, d is a vector, so that
      integrators for vectors can be used (Munthe-Kaas 1998).
    - v: velocities.
    - s: additional states that are appended to q.
    - x: path-dependent entries of q, at the indices `path`, such as the position of a rolling
      sphere. These entries are integrated separately.

    Arrays may contain floats or symbols.
    """

    t: Any
    q: np.ndarray
    path: Sequence[int]
    nv: int

    def first(self, y: np.ndarray) -> np.ndarray:
        """Return the time derivative of y at the beginning of the step, at the position q."""
        raise NotImplementedError

    def rates(self, s: Any, y: np.ndarray) -> np.ndarray:
        """Return the time derivative of y at a time s after the start of the step."""
        raise NotImplementedError

    def ways(self, d: np.ndarray) -> np.ndarray:
        """Return the change in the path-dependent entries x due to a small displacement d."""
        raise NotImplementedError

    def start(self, qd: np.ndarray, behind: np.ndarray) -> np.ndarray:
        """Return y = (d, v, s, x) at the start of the step, where the displacement d is zero.

        The velocities v are `qd`, and the additional states s are `behind`. The path-dependent
        entries x are those of q.
        """
        x = [self.q[..., self.path]] if self.path else []
        return np.concatenate([np.zeros(qd.shape), qd, behind, *x], -1)

    def velocity(self, y: np.ndarray) -> np.ndarray:
        """Return the velocity v of a state y."""
        return y[..., self.nv : 2 * self.nv]

    def stages(self, count: int, y: np.ndarray) -> np.ndarray:
        """Return an uninitialized array for the state derivatives at `count` Runge-Kutta stages."""
        return np.empty((count, *y.shape), y.dtype)

    def moved(self, y: np.ndarray, h: Any, weights: Weights, k: Any) -> np.ndarray:
        """Return y + h sum_i weights_i k_i, where k_i is the state derivative at stage i."""
        if weights is ONE:
            return y + h * k[0]
        n = len(weights.parts)
        mean = weights.parts @ k[:n].reshape(n, y.size)
        return y + (weights.unit * h * mean).reshape(y.shape)

    def led(self, y: np.ndarray, h: Any) -> np.ndarray:
        """Set the displacement in the state y to h times the velocity in y, and return y."""
        y[..., : self.nv] = h * self.velocity(y)
        return y


def path(model: Model) -> list[int]:
    """Return the indices of path-dependent entries of q, such as a rolling sphere's position."""
    slots = model.position_slices.items()
    return [slot.start + k for i, slot in slots for k in model.bodies[i].joint.path]


class Advanced(NamedTuple):
    """Result of an integrator step: y, and optionally an error estimate and an interpolant of y."""

    y: Any
    error: np.ndarray | None = None
    within: Callable[[float], np.ndarray] | None = None


Advance = Callable[[Any, Any, Any], Advanced]
"""Step function of an integrator: advance(system, h, y) takes a step of h seconds."""


# Evaluation with arrays -------------------------------------------------------------------------


class State(NamedTuple):
    """Time (s), joint positions and joint velocities of a robot."""

    t: float
    q: np.ndarray
    qd: np.ndarray


Placed = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Configuration, joint velocity, and rate of the displacement d since the start of the step."""

Place = Callable[[float, np.ndarray, np.ndarray, np.ndarray], Placed]
"""Function place(t, q, d, v) for a displacement d from q and a velocity v.

The function returns the position integrate(q, d), the velocity, and the time derivative of d.
"""

Accelerate = Callable[[float, np.ndarray, np.ndarray], np.ndarray]
"""Function accelerate(t, q, qd) that returns the joint accelerations qdd."""


class Tree:
    """Position updates for a kinematic tree, and base class of those for closed loops.

    Attributes
    ----------
    rechosen : list[float]
        Times (s) at which a new set of independent coordinates was chosen.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism, model = mechanism, mechanism.model
        self._integrate: Callable[..., np.ndarray] = mechanism.function("integrate").fast
        self._additive = all(model.bodies[i].joint.additive for i in model.movers)
        self.rechosen: list[float] = []

    def begin(self, at: State) -> State:
        """Return the initial state of the motion."""
        return at

    def place(self, t: float, q: np.ndarray, d: np.ndarray, v: np.ndarray) -> Placed:
        """Return the position integrate(q, d), its velocity, and the rate of d."""
        there = self._integrate(q, d)
        return there, v, self._rate(q, there, v)

    def step(self, step: Callable[..., "Taken"], at: State, goal: float) -> "Taken":
        """Integrate to the time `goal` with one call of the integrator `step`."""
        return step(self.place, at, goal)

    def _rate(self, q: np.ndarray, there: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the time derivative of difference(q, there), if `there` moves with velocity v."""
        if self._additive:
            return v
        J = self._mechanism.derivatives("difference", q, there, wrt="q1")
        return (J @ v[..., None])[..., 0]


class Behind(Protocol):
    """States appended to q that are integrated together with q, such as states of soft surfaces."""

    @property
    def size(self) -> int:
        """Number of appended states. The rates of these states come after the accelerations."""

    def settled(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return q at the end of a step, with the appended states made consistent with q and qd."""


@dataclass(frozen=True)
class Local(System):
    """Implementation of `System` for a mechanism, with arrays of floats."""

    mechanism: Mechanism
    nv: int
    path: Sequence[int]
    place: Place
    accelerate: Accelerate
    t: float
    q: np.ndarray
    behind: Behind | None = None

    @property
    def position(self) -> np.ndarray:
        """Position q without appended states."""
        return self.q if self.behind is None else self.q[..., : self.mechanism.nq]

    def first(self, y: np.ndarray) -> np.ndarray:
        qd = self.velocity(y)
        way = self._way(self.position, qd)
        return np.concatenate([qd, self.accelerate(self.t, self.q, qd), *way], -1)

    def rates(self, s: float, y: np.ndarray) -> np.ndarray:
        there, speed, rate = self._placed(s, y)
        qdd = self.accelerate(self.t + s, self._with(there, y), speed)
        return np.concatenate([rate, qdd, *self._way(there, speed)], -1)

    def ways(self, d: np.ndarray) -> np.ndarray:
        return next(iter(self._way(self.position, d)), d[..., :0])

    def state(self, s: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return q and qd for the state y at a time s (seconds) after the start of the step."""
        there, speed, _ = self._placed(s, y)
        return self._with(there, y), speed

    def _with(self, there: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Append additional states, such as positions of soft surfaces, to the position `there`.

        The additional states are entries of the integrator's state vector y.
        """
        if self.behind is None:
            return there
        n = 2 * self.nv
        return np.concatenate([there, y[..., n : n + self.behind.size]], -1)

    def _placed(self, s: float, y: np.ndarray) -> Placed:
        d, q, path = y[..., : self.nv], self.position, self.path
        if path:
            q = q.copy()
            q[..., path] += y[..., -len(path) :] - self.mechanism.integrate(q, d)[..., path]
        return self.place(self.t + s, q, d, self.velocity(y))

    def _way(self, q: np.ndarray, qd: np.ndarray) -> list[np.ndarray]:
        """Return the time derivatives of the path-dependent entries of q, or an empty list."""
        if not self.path:
            return []
        J = self.mechanism.derivatives("integrate", q, np.zeros_like(qd), wrt="v")
        return [(J[..., self.path, :] @ qd[..., None])[..., 0]]


class Taken(NamedTuple):
    """Completed step, with its error estimate and interpolant.

    Attributes
    ----------
    last : State
        State at the end of the step.
    error : np.ndarray | None
        Error estimate of y, or None.
    ends : tuple[np.ndarray, np.ndarray]
        y at the start and at the end of the step.
    at : Callable[[float], State]
        Function that returns the state after a fraction of the step, from 0 to 1.
    """

    last: State
    error: np.ndarray | None
    ends: tuple[np.ndarray, np.ndarray]
    at: Callable[[float], State]


def take(advance: Advance, local: Local, qd: np.ndarray, goal: float) -> Taken:
    """Take a step with an integrator up to the time `goal`."""
    h, y, v = goal - local.t, local.start(qd, local.q[..., local.mechanism.nq :]), qd
    last, error, within = advance(local, h, y)
    within = within or hermite(local, h, y, last)

    def at(part: float) -> State:
        here = local.state(part * h, within(part)) if part else (local.q, v)
        return State(local.t + part * h, *here)

    q, qd = local.state(h, last)
    q = q if local.behind is None else local.behind.settled(q, qd)
    return Taken(State(goal, q, qd), error, (y, last), at)


def hermite(
    local: Local, h: float, first: np.ndarray, last: np.ndarray
) -> Callable[[float], np.ndarray]:
    """Return the cubic Hermite interpolant of a step; its end rates are computed on first use."""
    rates: list[np.ndarray] = []

    def within(part: float) -> np.ndarray:
        if not rates:
            rates.extend([local.first(first), local.rates(h, last)])
        a, b, back = rates[0], rates[1], 1.0 - part
        curve = back * (h * a - (last - first)) - part * (h * b - (last - first))
        return back * first + part * last + part * back * curve

    return within
