"""Initial configurations for inverse kinematics, computed in closed form for one or many poses."""

from typing import Any

import numpy as np

from chasles import backends
from chasles.expr import Program
from chasles.functions.beginning import GOLDEN, MEMORY, MOST, PART, STATUS, beginning
from chasles.mechanisms.branches import Branches


class Beginning:
    """Compiled function that returns the first closed-form solution for a pose.

    The solution depends only on the pose and the seed. If there is no solution within the limits at
    any of the tried positions of the redundant joint, the result is the base configuration.
    """

    def __init__(self, closed: Branches, nq: int) -> None:
        chain, form = closed.chain, closed.form
        limits, given = (closed.lower, closed.upper), closed.range
        bounds = [a.tolist() for a in limits]
        recipe = ("beginning", chain, form, *bounds, given, nq)

        def trace() -> Program:
            return beginning(chain, form, limits, given, nq)

        self._kernel = backends.known(recipe, trace) or backends.compile(trace(), recipe=recipe)
        self._search = backends.search(self._kernel)
        self._tries = 1 if form.given is None else MOST

    def __call__(
        self, goals: np.ndarray, base: np.ndarray, seed: int, threads: int | None
    ) -> np.ndarray:
        """Return an initial configuration for each target pose, as an array (count, nq).

        Each row of `goals` (count, 12) contains a rotation matrix, row by row, then a position. For
        a pose without a solution, the configuration is `base` (1, nq).
        """
        memories, none = self._memories(seed)[:1], np.zeros((len(goals), 0), np.int64)
        found = self._search([goals], base, none, base, 0, memories, threads)
        q: np.ndarray = found[0]
        return q

    def alone(self, base: np.ndarray, seed: int) -> "BeginOne":
        """Return a function that computes the initial configuration for a single pose."""
        return BeginOne(self._kernel, base, self._memories(seed))

    def _memories(self, seed: int) -> np.ndarray:
        """Return solver states (tries, MEMORY), one for each trial value of the redundant joint."""
        memories = np.zeros((self._tries, MEMORY))
        part = 0.5 if not seed else float(np.random.default_rng(seed).random())
        for k in range(self._tries):
            memories[k, PART] = part
            part = part + GOLDEN - (1.0 if part + GOLDEN >= 1.0 else 0.0)
        return memories


class BeginOne:
    """Function that returns the initial configuration for one pose.

    The result is bitwise identical to the result for the same pose in a batch. All positions of the
    redundant joint are tried in one call.
    """

    def __init__(self, kernel: Any, base: np.ndarray, memories: np.ndarray) -> None:
        rows = len(memories)
        goal, ends = np.empty((1, 12)), np.empty((rows, MEMORY))
        self._turn, self._place = goal[0, :9].reshape(3, 3), goal[0, 9:]
        q, self._status = np.empty((rows, base.shape[1])), ends[:, STATUS]
        self._postures, self._base = list(q), base[0]
        given = [np.broadcast_to(base, q.shape), memories, np.broadcast_to(goal, (rows, 12))]
        self._run = kernel.prepared(given, [q, ends])

    def __call__(self, pose: np.ndarray) -> np.ndarray:
        """Return the configuration (nq,) from which the search for a pose (4, 4) starts."""
        self._turn[...] = pose[:3, :3]
        self._place[...] = pose[:3, 3]
        self._run()
        status = self._status.tolist()
        return self._postures[status.index(1.0)] if 1.0 in status else self._base
