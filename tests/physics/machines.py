"""Random trees with every joint type, for tests of physics on any backend."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from support import runner, state, tree

import chasles

TREES = {"fixed": (9, 3, False), "floating": (9, 14, True)}
"""Number of joints, seed, and True for a floating base; together they have every joint type."""

PAIRS = (
    ("fixed", "numpy"),
    ("floating", "llvm"),
    ("fixed", "interpret"),
)
"""Pairs of tree and backend.

`backends/test_same_bits.py` checks that all backends agree on each function.
"""

STATES = 3

VIEWS = [(axes, at) for axes in ("world", "frame") for at in ("frame", "world", (0.2, -0.1, 0.4))]
"""All combinations of axes and reference point for a twist or wrench."""


@dataclass(frozen=True)
class Machine:
    """A robot, a function that runs a backend, and a batch of states with accelerations."""

    robot: chasles.Robot
    run: Callable[..., Any]
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray

    @property
    def nv(self) -> int:
        return self.robot.nv

    def rate(self, value: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the time derivative of value(q, qd) along the motion, by extrapolated differences.

        q moves by integrate(q, qd t + qdd t^2 / 2), which is accurate to order t^3. The error of
        the central difference is of order t^2, and one Richardson step removes it. The remaining
        error is about 1e-10.
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
    """Return one of the trees with a runner for the given backend."""
    n, seed, floating = TREES[name]
    robot = tree(n, seed, floating=floating)
    return Machine(robot, runner(robot, target), *state(robot, seed, STATES))


def matvec(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return A x for each state."""
    return np.einsum("...ij,...j->...i", A, x)


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a . b for each state."""
    return np.einsum("...i,...i->...", a, b)


def steps(n: int, size: float) -> Sequence[np.ndarray]:
    """Return a step of the given size along each axis."""
    return [size * unit for unit in np.eye(n)]
