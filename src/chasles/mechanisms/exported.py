"""Export inverse kinematics as C code: one iteration, or a search from stored configurations."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from chasles.backends.arrays import checked_count
from chasles.backends.c.function import Function
from chasles.backends.c.search import Search
from chasles.errors import InputError
from chasles.functions.reaching import ANGLE, COST, FIRM, MEMORY, MOST, SHARE, STATUS, Task
from chasles.mechanisms.differentiable import _from_numbers
from chasles.mechanisms.given_targets import task_of
from chasles.mechanisms.inverse_kinematics import inverse_kinematics
from chasles.mechanisms.mechanism import Mechanism
from chasles.mechanisms.postures import EAGER, LAST, Bounds, spread

PART = "export"

TRIES = 32
"""Default number of stored starting configurations."""

ENDS = 200
"""Number of iterations of the last attempt, which starts from the best configuration found."""

STEP = (
    "One iteration of inverse kinematics: the next configuration and solver "
    "state, for given targets."
)
WHOLE = (
    "Inverse kinematics: a configuration within the limits that meets the "
    "targets, by iteration from q."
)

FINEST = {"float64": 0.0, "float32": 1e-5}
"""Minimum tolerance (rad and m) that each floating-point type can meet."""


class Reaching:
    """Programs and stored configurations for exporting the inverse kinematics of a mechanism."""

    def __init__(
        self, mechanism: Mechanism, bounds: Bounds, targets: Mapping[str, Any], dtype: str
    ) -> None:
        mechanism.refuse_time(PART, "export it at a fixed time: robot.at_time(t)")
        self.mechanism, self.bounds = mechanism, bounds
        self.task: Task
        self.task, _, (goals, weights, tolerances) = task_of(mechanism, bounds, targets)
        self._goals = goals.reshape(-1, goals.shape[-1])[0]
        self.weights, self.tolerances = weights[0], tolerances[0]
        if self.tolerances.min() < FINEST[dtype]:
            problem = (
                f"a tolerance of {self.tolerances.min():.0e} is too small for single precision"
            )
            remedy = f"use a tolerance of {FINEST[dtype]:.0e} or more, or dtype='double'"
            raise InputError("E-EXPORT-011", problem, remedy, part=PART)
        if any(self.task.scales) and dtype != "float64":
            problem = "single precision cannot close loops accurately enough for inverse kinematics"
            raise InputError("E-EXPORT-012", problem, "use dtype='double'", part=PART)

    def _fixed(self) -> tuple[np.ndarray, ...]:
        """Return the constant inputs: weights, tolerances, and a mask of coordinates that move."""
        return self.weights, self.tolerances, np.ones(self.mechanism.nv)

    def _postures(self, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return configurations within the limits, and the target parameters that they meet."""
        q = spread(self.mechanism, self.bounds, count, seed)
        return q, self._met(q)

    def _met(self, q: np.ndarray) -> np.ndarray:
        """Return the target parameters that are exactly reached at the configurations q.

        Parameters that q does not determine are set to the goals.
        """
        met = np.empty((len(q), self.task.numbers))
        self.task.reached([np.ascontiguousarray(q)], [met])
        return np.where(self.task.weights() > 0.0, met, self._goals)

    def sample(self, states: int) -> tuple[np.ndarray, ...]:
        """Return test inputs for one iteration; all are exactly representable in float32."""
        q, _ = self._postures(states, 2)
        _, goals = self._postures(states, 3)
        memory = np.zeros((states, MEMORY))
        memory[:, [MOST, SHARE, FIRM]] = EAGER
        fixed = (np.tile(a, (states, 1)) for a in self._fixed())
        return tuple(a.astype(np.float32).astype(float) for a in (q, memory, goals, *fixed))

    def search(self, name: str, step: Function, tries: Any, seed: Any) -> Search:
        """Return an inverse-kinematics solver that starts from `tries` stored configurations."""
        count, seed = checked_count("tries", tries), checked_count("seed", seed, least=0)
        starts, met = self._postures(count, seed)
        memories = np.zeros((2, MEMORY))
        memories[:, [MOST, SHARE, FIRM]] = EAGER, (ENDS, *LAST[1:])
        return Search(
            name,
            WHOLE,
            step,
            starts,
            met,
            self.task.weights(),
            np.stack([self.bounds.lower, self.bounds.upper]),
            self._fixed(),
            memories,
            (int(EAGER[0]), ENDS),
            (STATUS, COST, ANGLE),
            *self._tests(starts[0]),
        )

    def _tests(self, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return test goals that are reachable near a configuration, and an initial guess."""
        shifts = 0.05 * np.sin(np.arange(3.0 * self.mechanism.nv)).reshape(3, -1)
        near = self.mechanism.integrate(np.tile(start, (3, 1)), shifts)
        near = np.clip(near, self.bounds.lower, self.bounds.upper)
        goals = self._met(near)
        stated = _from_numbers(list(self.task.targets), goals)
        found = inverse_kinematics(self.mechanism, self.bounds, stated, guess=start)
        begin = found.q[np.argmax(found.solved)]
        return goals[found.solved], begin
