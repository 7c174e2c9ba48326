"""Machines to state physics about: random trees of every joint type, run by any backend."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from support import runner, state, tree

import chasles

TREES = {"fixed": (9, 3, False), "floating": (9, 14, True)}
"""Joints, seed, and whether the root is free; the two together have every joint type."""

PAIRS = (
    ("fixed", "numpy"),
    ("floating", "llvm"),
    ("fixed", "interpret"),
)
"""Trees and backends that run them. That all backends agree on each function,
`backends/test_same_bits.py` shows."""

STATES = 3

VIEWS = [(axes, at) for axes in ("world", "frame") for at in ("frame", "world", (0.2, -0.1, 0.4))]
"""Every way to write a twist or a wrench: along which axes, at which point."""


@dataclass(frozen=True)
class Machine:
    """A robot, a backend, and a few states of motion (leading axis: states)."""

    robot: chasles.Robot
    run: Callable[..., Any]
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray

    @property
    def nv(self) -> int:
        return self.robot.nv

    def rate(self, value: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """The time derivative of value(q, qd) along the motion, by extrapolated differences.

        q moves by integrate(q, qd t + qdd t^2 / 2), which is right to t^3; the central difference
        then errs by t^2, and one step of Richardson removes that: about 1e-10 is left.
        """

        def central(t: float) -> np.ndarray:
            after, before = (
                value(
                    self.run("integrate", self.q, s * self.qd + s * s / 2.0 * self.qdd),
                    self.qd + s * self.qdd,
                )
                for s in (t, -t)
            )
            return (after - before) / (2.0 * t)

        return (4.0 * central(5e-4) - central(1e-3)) / 3.0


def make(name: str, target: str) -> Machine:
    """One of the trees, run by one backend."""
    n, seed, floating = TREES[name]
    robot = tree(n, seed, floating=floating)
    return Machine(robot, runner(robot, target), *state(robot, seed, STATES))


def matvec(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A x for each state."""
    return np.einsum("...ij,...j->...i", A, x)


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a . b for each state."""
    return np.einsum("...i,...i->...", a, b)


def steps(n: int, size: float) -> Sequence[np.ndarray]:
    """A step along each axis."""
    return [size * unit for unit in np.eye(n)]
