"""Reinforcement learning tasks: initial states, observations, actions and rewards."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from chasles.backends.arrays import checked_count
from chasles.errors import InputError
from chasles.model.given import some_numbers

Shape = tuple[int | None, ...]
"""Expected shape of an array that a task returns; None stands for any length."""


@dataclass
class State:
    """States of all environments, with one row per environment.

    Attributes
    ----------
    q : ndarray, shape (n, nq)
        Joint positions (rad or m).
    qd : ndarray, shape (n, nv)
        Joint velocities (rad/s or m/s).
    action, previous : ndarray, shape (n, a)
        The last action, and the action before it.
    command : ndarray, shape (n, c)
        Goal of the task, chosen at the start of an episode.
    steps : ndarray, shape (n,)
        Number of steps since the start of the episode.
    time : ndarray, shape (n,)
        Time since the start of the episode (s).
    """

    q: np.ndarray
    qd: np.ndarray
    action: np.ndarray
    previous: np.ndarray
    command: np.ndarray
    steps: np.ndarray
    time: np.ndarray

    def __getitem__(self, rows: Any) -> "State":
        """Return the states of selected environments."""
        return State(**{name: array[rows] for name, array in vars(self).items()})

    def __setitem__(self, rows: Any, other: "State") -> None:
        """Replace the states of selected environments."""
        for name, array in vars(self).items():
            array[rows] = getattr(other, name)


class Task(Protocol):
    """Task for a batch of robots. The arrays in its methods have one row for each robot.

    Attributes
    ----------
    observations, actions : int
        Sizes of an observation and of an action. Actions are clipped to [-1, 1].

    Examples
    --------
    >>> import chasles, numpy as np
    >>> from chasles.learning import RobotVectorEnv
    >>> class Upright:
    ...     observations, actions = 2, 1
    ...     def start(self, rng, count):  # q, qd and commands
    ...         q = np.pi / 2 + rng.uniform(-0.1, 0.1, (count, 1))
    ...         return q, np.zeros((count, 1)), np.zeros((count, 0))
    ...     def control(self, state):
    ...         return 10.0 * state.action  # N m
    ...     def observe(self, state):
    ...         return np.concatenate([state.q, state.qd], axis=1)
    ...     def reward(self, state):
    ...         return -((state.q[:, 0] - np.pi / 2) ** 2)
    ...     def failed(self, state):
    ...         return np.abs(state.q[:, 0] - np.pi / 2) > 1.0
    >>> env = RobotVectorEnv(chasles.robots.planar(1), Upright(), 8, control=lambda t, q, qd, p: p)
    >>> observations, info = env.reset(seed=0)
    >>> observations, rewards, terminated, truncated, info = env.step(np.zeros((8, 1)))
    >>> observations.shape, bool(terminated.any())
    ((8, 2), False)
    """

    observations: int
    actions: int

    def start(
        self, rng: np.random.Generator, count: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the initial states of new episodes.

        Parameters
        ----------
        rng : numpy.random.Generator
            Random number generator.
        count : int
            Number of episodes.

        Returns
        -------
        q : ndarray, shape (count, nq)
            Joint positions.
        qd : ndarray, shape (count, nv)
            Joint velocities.
        commands : ndarray, shape (count, c)
            Goals of the episodes, such as target velocities; stored in `State.command`.
        """
        ...

    def control(self, state: State) -> np.ndarray:
        """Return the controller parameters that correspond to the actions in `state`.

        Parameters
        ----------
        state : State
            States of n robots.

        Returns
        -------
        parameters : ndarray, shape (n, m)
            The argument `p` of the controller `tau(t, q, qd, p)`.
        """
        ...

    def observe(self, state: State) -> np.ndarray:
        """Return the observations for a policy.

        Parameters
        ----------
        state : State
            States of n robots.

        Returns
        -------
        observations : ndarray, shape (n, observations)
            Observations.
        """
        ...

    def reward(self, state: State) -> np.ndarray:
        """Return the rewards for the last step.

        Parameters
        ----------
        state : State
            States of n robots.

        Returns
        -------
        reward : ndarray, shape (n,)
            Rewards.
        """
        ...

    def failed(self, state: State) -> np.ndarray:
        """Return True for each episode that ends early, for example because the robot fell.

        Parameters
        ----------
        state : State
            States of n robots.

        Returns
        -------
        failed : ndarray of bool, shape (n,)
            True for episodes that are to be terminated.
        """
        ...


def sizes(task: Any, most: int) -> tuple[int, int]:
    """Check and return the sizes of a task's observations and actions."""
    for name in ("observations", "actions", "start", "control", "observe", "reward", "failed"):
        if not hasattr(task, name):
            problem = f"the task {type(task).__name__} has no attribute or method {name}"
            remedy = "define all attributes and methods of chasles.learning.Task"
            raise InputError("E-LEARN-007", problem, remedy, part="RobotVectorEnv")
    counts = (task.observations, task.actions)
    seen, done = (checked_count("RobotVectorEnv: sizes of a task", n, most=most) for n in counts)
    return seen, done


def answered(name: str, value: Any, shape: Shape) -> np.ndarray:
    """Return the result of a task's method as an array, with its shape checked."""
    found = some_numbers(f"the result of the task's {name}", value, "RobotVectorEnv")
    right = len(found.shape) == len(shape)
    if not right or any(n not in (None, m) for n, m in zip(shape, found.shape, strict=True)):
        words = ", ".join("any" if n is None else str(n) for n in shape)
        problem = f"the task's {name} must return an array of shape ({words}), not {found.shape}"
        raise InputError("E-LEARN-008", problem, part="RobotVectorEnv")
    return np.ascontiguousarray(found, float)


def begun(value: Any, count: int, widths: Shape) -> list[np.ndarray]:
    """Check the result of a task's `start`, and return q, qd and commands as arrays."""
    if not isinstance(value, tuple | list) or len(value) != len(widths):
        given = type(value).__name__
        problem = f"the task's `start` method must return q, qd and commands, not {given}"
        raise InputError("E-LEARN-009", problem, part="RobotVectorEnv")
    pairs = zip(value, widths, strict=True)
    return [answered("start", part, (count, width)).copy() for part, width in pairs]
