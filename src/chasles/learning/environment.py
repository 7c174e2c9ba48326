"""Gymnasium vector environment with many copies of one robot."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from chasles.backends.arrays import LARGEST, checked_count
from chasles.errors import InputError, ModelError
from chasles.functions.doors import check_robot
from chasles.learning.task import State, Task, answered, begun, sizes
from chasles.model.given import a_generator, a_mapping, a_number, some_numbers
from chasles.robot import Robot

try:
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError:
    remedy = "run pip install 'chasles[learn]'"
    raise ModelError("E-LEARN-001", "chasles.learning needs gymnasium", remedy) from None

MODES = {"same-step": AutoresetMode.SAME_STEP, "disabled": AutoresetMode.DISABLED}

Controller = Callable[[Any, Any, Any, Any], Any]

MOST = 10**7
"""Maximum number of environments, and maximum size of an observation or action."""


class RobotVectorEnv(VectorEnv):
    """Vector environment with many copies of a robot.

    An action is held for `substeps` simulation steps of length `dt`. One call to compiled code
    steps all copies, with contact, joint limits and friction in each step
    (`integrator="time-stepping"`).

    Parameters
    ----------
    robot : Robot
        The robot.
    task : Task
        Defines initial states, observations, rewards and the termination of episodes.
    num_envs : int
        Number of copies.
    control : callable
        Function `tau(t, q, qd, p)` that returns joint torques, written with arithmetic and the
        functions of `chasles.expr`; p are the parameters returned by `task.control`. The function
        is traced once.
    contacts : sequence of contact pairs, or "file"
        Contact pairs, as in `robot.simulate`.
    dt : float
        Step size in s.
    substeps : int
        Number of simulation steps per action.
    episode : float
        Maximum episode duration (s), after which the episode is truncated.
    autoreset : {"same-step", "disabled"}
        "same-step" starts a new episode in the step in which the previous one ends; the last
        observation of the previous episode is in `info["final_obs"]`. With "disabled", call
        `reset(options={"reset_mask": mask})`.
    threads : int, optional
        Number of simulation threads. Default: all cores.
    options
        Further options of `robot.simulate`, such as `limits` and `dissipation`.
    """

    def __init__(
        self,
        robot: Robot,
        task: Task,
        num_envs: int,
        *,
        control: Controller,
        contacts: Sequence[Any] | str = (),
        dt: float = 0.002,
        substeps: int = 10,
        episode: float = 10.0,
        autoreset: Literal["same-step", "disabled"] = "same-step",
        threads: int | None = None,
        **options: Any,
    ) -> None:
        check_robot("RobotVectorEnv", robot)
        if not isinstance(autoreset, str) or autoreset not in MODES:
            problem = f"`autoreset` must be 'same-step' or 'disabled', not {autoreset!r:.60}"
            raise InputError("E-LEARN-002", problem, part="RobotVectorEnv")
        self.robot, self.task = robot, task
        self.num_envs = checked_count("RobotVectorEnv: num_envs", num_envs, most=MOST)
        self.substeps = checked_count("RobotVectorEnv: substeps", substeps)
        self.dt = _time("dt", dt)
        steps = _time("episode", episode, endless=True) / self.dt / self.substeps
        self.longest = max(1, round(min(steps, LARGEST)))
        self._sizes = observations, actions = sizes(task, MOST)
        self.metadata = {"autoreset_mode": MODES[autoreset]}
        self._control, self._contacts = control, contacts
        self._options = {"integrator": "time-stepping", "threads": threads, **options}
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (observations,))
        self.single_action_space = spaces.Box(-1.0, 1.0, (actions,))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.state: State | None = None
        self._rng = np.random.default_rng(0)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start new episodes.

        Parameters
        ----------
        seed : int or sequence of int, optional
            Seed of the random number generator, which all environments share.
        options : dict, optional
            {"reset_mask": (num_envs,) bool} selects the environments to reset.

        Returns
        -------
        observations : ndarray, shape (num_envs, observations)
            Observations of the initial states.
        info : dict
            Empty.

        Raises
        ------
        InputError
            If `seed` is not a valid seed, if the mask does not have one entry, True or False, for
            each environment, or if the task returns values of the wrong shape.
        ArgumentError
            If `options` is not a dictionary with string keys.
        """
        if seed is not None:
            self._rng = a_generator(seed, "reset")
        mask = self._mask(a_mapping("options", {} if options is None else options, "reset"))
        if self.state is None:
            self.state = self._started(self.num_envs)
        else:
            self.state[mask] = self._started(int(mask.sum()))
        return self._seen(self.state), {}

    def _mask(self, options: Mapping[str, Any]) -> np.ndarray:
        """Return a mask (num_envs,) of the environments to reset."""
        given = options.get("reset_mask", np.ones(self.num_envs, bool))
        mask = some_numbers("reset_mask", given, "reset")
        if mask.shape != (self.num_envs,) or not np.all((mask == 0.0) | (mask == 1.0)):
            problem = f"`reset_mask` must be a boolean array of shape ({self.num_envs},)"
            raise InputError("E-LEARN-003", problem, part="reset")
        return mask == 1.0

    def step(
        self, actions: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Apply actions for one control step.

        Parameters
        ----------
        actions : array_like, shape (num_envs, actions)
            Actions, clipped to [-1, 1].

        Returns
        -------
        observations : ndarray, shape (num_envs, observations)
            Observations after the step.
        rewards : ndarray, shape (num_envs,)
            Rewards for the step.
        terminated, truncated : ndarray of bool, shape (num_envs,)
            True for each episode that failed or reached its time limit, respectively.
        info : dict
            With `autoreset="same-step"`, "final_obs" contains the last observations of episodes
            that ended, and "_final_obs" is a mask of these episodes.

        Raises
        ------
        InputError
            If no episode has begun, if the actions are not finite or have the wrong shape, or if
            the task returns values of the wrong shape.
        ArgumentError
            If the actions are not real numbers.
        """
        state = self.state
        if state is None:
            raise InputError(
                "E-LEARN-004", "no episode has begun", "call `reset` first", part="step"
            )
        given = some_numbers("actions", actions, "step")
        if given.shape != state.action.shape or not np.all(np.isfinite(given)):
            problem = f"`actions` must be finite, with shape {state.action.shape}"
            raise InputError("E-LEARN-005", problem, part="step")
        state.previous, state.action = state.action, np.clip(given, -1.0, 1.0)
        run = self.robot.simulate(
            state.q,
            state.qd,
            duration=self.dt * self.substeps,
            dt=self.dt,
            control=self._control,
            parameters=answered("control", self.task.control(state), (self.num_envs, None)),
            contacts=self._contacts,
            every=self.substeps,
            **self._options,
        )
        state.q, state.qd = run.q[..., -1, :].copy(), run.qd[..., -1, :].copy()
        state.steps += 1
        state.time = state.steps * (self.dt * self.substeps)
        failed = answered("failed", self.task.failed(state), (self.num_envs,))
        rewards = answered("reward", self.task.reward(state), (self.num_envs,))
        terminated = failed != 0.0
        truncated = (state.steps >= self.longest) & ~terminated
        return self._ended(state, rewards, terminated, truncated)

    def _ended(
        self, state: State, rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Return the results of `step`, and restart ended episodes if autoreset is same-step."""
        seen, info = self._seen(state), {}
        over = terminated | truncated
        if np.any(over) and self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP:
            info = {"final_obs": seen.copy(), "_final_obs": over}
            state[over] = self._started(int(over.sum()))
            seen = self._seen(state)
        return seen, rewards, terminated, truncated, info

    def _seen(self, state: State) -> np.ndarray:
        shape = (len(state.q), self._sizes[0])
        return answered("observe", self.task.observe(state), shape).astype(np.float32)

    def _started(self, count: int) -> State:
        """Return initial states of new episodes."""
        widths = (self.robot.nq, self.robot.nv, None)
        q, qd, command = begun(self.task.start(self._rng, count), count, widths)
        still = np.zeros((count, self._sizes[1]))
        zero = np.zeros(count)
        return State(q, qd, still, still.copy(), command, zero.astype(int), zero)


def _time(name: str, value: Any, *, endless: bool = False) -> float:
    """Return a duration (s), after checking that it is positive and finite.

    If `endless` is True, infinity is also allowed.
    """
    found = a_number(name, value, "RobotVectorEnv")
    if not found > 0.0 or not (math.isfinite(found) or (endless and found == math.inf)):
        problem = f"{name} must be a positive duration in s, not {found!r}"
        raise InputError("E-LEARN-006", problem, part="RobotVectorEnv")
    return found
