"""Tasks: where robots start, what a policy sees and does, and how it is rewarded."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass
class State:
    """States of all environments, one row each.

    q (n, nq) and qd (n, nv): positions and velocities. action (n, a): the last action; previous:
    the one before. command (n, c): what the task asks for, chosen at the start of an episode.
    steps (n,): steps since the start of the episode. time (n,): the same in seconds.
    """

    q: np.ndarray
    qd: np.ndarray
    action: np.ndarray
    previous: np.ndarray
    command: np.ndarray
    steps: np.ndarray
    time: np.ndarray

    def __getitem__(self, rows: Any) -> "State":
        """Return the states of some environments."""
        return State(**{name: array[rows] for name, array in vars(self).items()})

    def __setitem__(self, rows: Any, other: "State") -> None:
        """Replace the states of some environments."""
        for name, array in vars(self).items():
            array[rows] = getattr(other, name)


class Task(Protocol):
    """A task for a batch of robots. All methods take and return arrays with a row for each robot.

    Attributes
    ----------
    observations, actions : int
        Number of entries of an observation and of an action. Actions are clipped to [-1, 1].
    """

    observations: int
    actions: int

    def start(
        self, rng: np.random.Generator, count: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return q (count, nq), qd (count, nv) and commands (count, c) of new episodes."""
        ...

    def control(self, state: State) -> np.ndarray:
        """Return the parameters (n, m) of the controller for the actions in `state`."""
        ...

    def observe(self, state: State) -> np.ndarray:
        """Return what a policy sees (n, observations)."""
        ...

    def reward(self, state: State) -> np.ndarray:
        """Return the reward of the last step (n,)."""
        ...

    def failed(self, state: State) -> np.ndarray:
        """Return True (n,) where the episode ends, because the robot fell or left its bounds."""
        ...
