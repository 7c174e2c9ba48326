"""The motion near a position as a system of first order: what every integrator works on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from chasles.robot import Robot

Placed = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A position, its velocity, and the rate of the step that leads to it."""

Place = Callable[[float, np.ndarray, np.ndarray, np.ndarray], Placed]
"""place(t, q, d, v): the position integrate(q, d) at time t, its velocity, and the rate of d."""

Accelerate = Callable[[float, np.ndarray, np.ndarray], np.ndarray]
"""accelerate(t, q, qd): qdd."""


@dataclass(frozen=True)
class Local:
    """y = (d, v, x), from the time t and the position q at which a step begins.

    d: the step from q along `integrate`, which is a vector whatever the joints are, so that methods
    for vectors apply (Munthe-Kaas 1998); v: velocities; x: entries of q that depend on the way (the
    place of a rolling sphere, at the indices `path`), which are integrated by their own rates.
    """

    robot: Robot
    path: Sequence[int]
    place: Place
    accelerate: Accelerate
    t: float
    q: np.ndarray

    def start(self, qd: np.ndarray) -> np.ndarray:
        """y at the beginning."""
        return np.concatenate([np.zeros_like(qd), qd, self.q[..., self.path]], axis=-1)

    def velocity(self, y: np.ndarray) -> np.ndarray:
        """v of y."""
        n = self.robot.nv
        return y[..., n : 2 * n]

    def rates(self, s: float, y: np.ndarray) -> np.ndarray:
        """The rate of y, s seconds after the beginning."""
        there, speed, rate = self._placed(s, y)
        return np.concatenate(
            [rate, self.accelerate(self.t + s, there, speed), self._way(there, speed)], axis=-1
        )

    def state(self, s: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q and qd of y, s seconds after the beginning."""
        there, speed, _ = self._placed(s, y)
        return there, speed

    def _placed(self, s: float, y: np.ndarray) -> Placed:
        n, q, path = self.robot.nv, self.q, self.path
        d = y[..., :n]
        if path:
            q = q.copy()
            q[..., path] += y[..., 2 * n :] - self.robot.integrate(q, d)[..., path]
        return self.place(self.t + s, q, d, self.velocity(y))

    def _way(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """The rate of x."""
        if not self.path:
            return qd[..., :0]
        J = self.robot.derivatives("integrate", q, np.zeros_like(qd), wrt="v")
        return (J[..., self.path, :] @ qd[..., None])[..., 0]


def path(robot: Robot) -> list[int]:
    """Where q has entries that depend on the way."""
    slots = robot.model.position_slices.items()
    return [slot.start + k for i, slot in slots for k in robot.model.bodies[i].joint.path]


class Advanced(NamedTuple):
    """y after a step; what it may be wrong by; y after any part of the step, from 0 to 1.

    error: none where the method does not estimate it. within: none where it has no interpolant of
    its own; Hermite's then serves.
    """

    y: np.ndarray
    error: np.ndarray | None = None
    within: Callable[[float], np.ndarray] | None = None


Advance = Callable[[Local, float, np.ndarray], Advanced]
"""advance(local, h, y): a step of h seconds."""


class Taken(NamedTuple):
    """A step: q and qd after it, its error beside the size of y, and q and qd within it."""

    q: np.ndarray
    qd: np.ndarray
    error: np.ndarray | None
    size: np.ndarray
    at: Callable[[float], tuple[np.ndarray, np.ndarray]]


def take(advance: Advance, local: Local, h: float, qd: np.ndarray) -> Taken:
    """A step of h seconds by a method."""
    y = local.start(qd)
    last, error, within = advance(local, h, y)
    within = within or hermite(local, h, y, last)
    size = np.maximum(np.abs(y), np.abs(last))
    return Taken(
        *local.state(h, last), error, size, lambda part: local.state(part * h, within(part))
    )


def hermite(
    local: Local, h: float, first: np.ndarray, last: np.ndarray
) -> Callable[[float], np.ndarray]:
    """The cubic through both ends of a step with the rates there; these are asked for on use."""
    rates: list[np.ndarray] = []

    def within(part: float) -> np.ndarray:
        if not rates:
            rates.extend([local.rates(0.0, first), local.rates(h, last)])
        a, b, back = rates[0], rates[1], 1.0 - part
        curve = back * (h * a - (last - first)) - part * (h * b - (last - first))
        chord: np.ndarray = back * first + part * last
        return chord + part * back * curve

    return within
