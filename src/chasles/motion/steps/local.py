"""The motion near a position as a system of first order: what every integrator works on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from chasles.motion.contract import Machine
from chasles.motion.steps.system import ONE, Advance, Weights

Placed = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A position, its velocity, and the rate of the step that leads to it."""

Place = Callable[[float, np.ndarray, np.ndarray, np.ndarray], Placed]
"""place(t, q, d, v): the position integrate(q, d) at time t, its velocity, and the rate of d."""

Accelerate = Callable[[float, np.ndarray, np.ndarray], np.ndarray]
"""accelerate(t, q, qd): qdd."""


class Behind(Protocol):
    """What stands behind the numbers of q and is integrated with them: states of soft surfaces."""

    @property
    def size(self) -> int:
        """How many numbers; their rates stand behind the accelerations."""

    def settled(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """q after a step, with these numbers made exact."""


@dataclass(frozen=True)
class Local:
    """y = (d, v, s, x), from the time t and the position q at which a step begins.

    d: the step from q along `integrate`, which is a vector whatever the joints are, so that methods
    for vectors apply (Munthe-Kaas 1998); v: velocities; s: what stands behind q; x: entries of q
    that depend on the way (the place of a rolling sphere, at the indices `path`), which are
    integrated by their own rates.
    """

    robot: Machine
    path: Sequence[int]
    place: Place
    accelerate: Accelerate
    t: float
    q: np.ndarray
    behind: Behind | None = None

    @property
    def position(self) -> np.ndarray:
        """q alone."""
        return self.q if self.behind is None else self.q[..., : self.robot.nq]

    def start(self, qd: np.ndarray) -> np.ndarray:
        """y at the beginning."""
        x = [self.q[..., self.path]] if self.path else []
        return np.concatenate([np.zeros_like(qd), qd, self.q[..., self.robot.nq :], *x], -1)

    def velocity(self, y: np.ndarray) -> np.ndarray:
        """v of y."""
        n = self.freedoms(y)
        return y[..., n : 2 * n]

    def freedoms(self, y: np.ndarray) -> int:
        """How many velocities there are."""
        extra = 0 if self.behind is None else self.behind.size
        return (y.shape[-1] - extra - len(self.path)) // 2

    def first(self, y: np.ndarray) -> np.ndarray:
        """The rate of y at the beginning, where nothing has to be placed."""
        qd = self.velocity(y)
        way = self._way(self.position, qd)
        return np.concatenate([qd, self.accelerate(self.t, self.q, qd), *way], -1)

    def rates(self, s: float, y: np.ndarray) -> np.ndarray:
        """The rate of y, s seconds after the beginning."""
        there, speed, rate = self._placed(s, y)
        qdd = self.accelerate(self.t + s, self._with(there, y), speed)
        return np.concatenate([rate, qdd, *self._way(there, speed)], -1)

    def stages(self, count: int, y: np.ndarray) -> np.ndarray:
        """Room for the rates of so many stages."""
        return np.empty((count, *y.shape))

    def moved(self, y: np.ndarray, h: float, weights: Weights, k: Any) -> np.ndarray:
        """y after h seconds with the weighted mean of the first rates in k."""
        if weights is ONE:
            return y + h * k[0]
        n = len(weights.values)
        there: np.ndarray = y + (h * weights.values @ k[:n].reshape(n, y.size)).reshape(y.shape)
        return there

    def led(self, y: np.ndarray, h: float) -> np.ndarray:
        """y, which is overwritten, with the step that its own velocity makes in h seconds."""
        y[..., : self.freedoms(y)] = h * self.velocity(y)
        return y

    def state(self, s: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q and qd of y, s seconds after the beginning."""
        there, speed, _ = self._placed(s, y)
        return self._with(there, y), speed

    def _with(self, there: np.ndarray, y: np.ndarray) -> np.ndarray:
        """A position with what stands behind it in y."""
        if self.behind is None:
            return there
        n = 2 * self.freedoms(y)
        return np.concatenate([there, y[..., n : n + self.behind.size]], -1)

    def _placed(self, s: float, y: np.ndarray) -> Placed:
        n, q, path = self.freedoms(y), self.position, self.path
        d = y[..., :n]
        if path:
            q = q.copy()
            q[..., path] += y[..., -len(path) :] - self.robot.integrate(q, d)[..., path]
        return self.place(self.t + s, q, d, self.velocity(y))

    def _way(self, q: np.ndarray, qd: np.ndarray) -> list[np.ndarray]:
        """The rate of x, if there is any."""
        if not self.path:
            return []
        J = self.robot.derivatives("integrate", q, np.zeros_like(qd), wrt="v")
        return [(J[..., self.path, :] @ qd[..., None])[..., 0]]


class Taken(NamedTuple):
    """A step: q and qd after it, the error of y where it is estimated, y at both ends.

    at(part): q and qd after a part of it.
    """

    q: np.ndarray
    qd: np.ndarray
    error: np.ndarray | None
    ends: tuple[np.ndarray, np.ndarray]
    at: Callable[[float], tuple[np.ndarray, np.ndarray]]


def take(advance: Advance, local: Local, h: float, qd: np.ndarray) -> Taken:
    """A step of h seconds by a method."""
    y = local.start(qd)
    last, error, within = advance(local, h, y)
    within = within or hermite(local, h, y, last)
    q, qd = local.state(h, last)
    q = q if local.behind is None else local.behind.settled(q, qd)
    return Taken(q, qd, error, (y, last), lambda part: local.state(part * h, within(part)))


def hermite(
    local: Local, h: float, first: np.ndarray, last: np.ndarray
) -> Callable[[float], np.ndarray]:
    """The cubic through both ends of a step with the rates there; these are asked for on use."""
    rates: list[np.ndarray] = []

    def within(part: float) -> np.ndarray:
        if not rates:
            rates.extend([local.first(first), local.rates(h, last)])
        a, b, back = rates[0], rates[1], 1.0 - part
        curve = back * (h * a - (last - first)) - part * (h * b - (last - first))
        chord: np.ndarray = back * first + part * last
        return chord + part * back * curve

    return within
