"""Reinforcement-learning environments: odd counts, times, tasks, actions, masks and seeds."""

import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import chasles
from chasles.learning import RobotVectorEnv, State
from fuzz.target import Case, Hostile, allowed
from fuzz.values import COUNTS, NUMBERS, TEXTS, hostile, passive, thing


class Swing:
    """A task for an arm with two joints.

    `odd` names a method or attribute that returns `answer`, or `answer(good)` for a callable.
    """

    observations: Any = 4
    actions: Any = 2

    def __init__(self, odd: str = "", answer: Any = None) -> None:
        self.odd, self.answer = odd, answer
        if odd in ("observations", "actions"):
            setattr(self, odd, answer)

    def _given(self, name: str, good: Any) -> Any:
        if name != self.odd:
            return good
        if callable(self.answer):
            return self.answer(good)
        return self.answer

    def start(self, rng: np.random.Generator, count: int) -> Any:
        q, qd = rng.normal(size=(2, count, 2))
        return self._given("start", (q, qd, np.zeros((count, 1))))

    def control(self, state: State) -> Any:
        return self._given("control", 3.0 * state.action)

    def observe(self, state: State) -> Any:
        return self._given("observe", np.concatenate([state.q, state.qd], axis=1))

    def reward(self, state: State) -> Any:
        return self._given("reward", -np.sum(state.q**2, axis=1))

    def failed(self, state: State) -> Any:
        return self._given("failed", np.abs(state.q[:, 0]) > 2.0)


PARTS = ("start", "control", "observe", "reward", "failed", "observations", "actions")


def push(t: Any, q: Any, qd: Any, p: Any) -> list[Any]:
    return [p[0], p[1]]


@cache
def arm() -> chasles.Robot:
    return chasles.robots.planar(2)


def make() -> Case:
    return case


def case(rng: random.Random, folder: Path) -> None:
    """Run one environment: a valid one with checks, or one with hostile arguments."""
    try:
        if rng.random() < 0.3:
            agree(rng)
        else:
            odd(rng)
    except Exception as error:
        if not allowed(error):
            raise


def agree(rng: random.Random) -> None:
    """Check that shapes match the spaces, and that a seed determines the episodes."""
    count, seen = rng.choice((1, 2, 9)), []
    mode = rng.choice(("same-step", "disabled"))
    seed, steps = rng.randrange(2**32), rng.randint(1, 5)
    for _ in range(2):
        env = RobotVectorEnv(
            arm(), Swing(), count, control=push, substeps=2, episode=0.012, autoreset=mode
        )
        draw = np.random.default_rng(seed)
        first, _ = env.reset(seed=seed)
        kept = [first]
        for _ in range(steps):
            got, reward, terminated, truncated, _ = env.step(draw.normal(size=(count, 2)))
            assert env.observation_space.contains(got)
            assert reward.shape == terminated.shape == truncated.shape == (count,)
            over = terminated | truncated
            if mode == "disabled" and np.any(over):
                env.reset(options={"reset_mask": over})
            kept.append(got)
        seen.append(kept)
    assert np.array_equal(*seen)


def odd(rng: random.Random) -> None:
    """Run an environment with hostile arguments.

    The result must be an allowed error, or arrays with the expected shapes.
    """
    named: dict[str, Any] = {"control": push, "substeps": 2, "episode": 0.02}
    odds = {
        "control": lambda: rng.choice((None, 1, "pd", lambda t, q, qd, p: [p[0]], 1.5)),
        "contacts": lambda: rng.choice(("file", "none", (), thing(rng))),
        "dt": lambda: rng.choice([x for x in NUMBERS if not isinstance(x, dict)]),
        "substeps": lambda: rng.choice([c for c in COUNTS if not _large(c)]),
        "episode": lambda: rng.choice(NUMBERS),
        "autoreset": lambda: rng.choice(TEXTS),
        "threads": lambda: rng.choice(COUNTS),
        "integrator": lambda: rng.choice(("rk4", "euler", *TEXTS)),
        "limits": lambda: rng.choice((True, thing(rng))),
        "x": lambda: thing(rng),
    }
    for name in rng.sample(list(odds), rng.choice((0, 0, 1, 2))):
        named[name] = odds[name]()
    count = rng.choice([c for c in COUNTS if not _large(c)]) if rng.random() < 0.2 else 3
    task: Any = Swing()
    if rng.random() < 0.3:
        task = Swing(rng.choice(PARTS), lambda good: hostile(rng, np.asarray(good[0], float)))
        if task.odd in ("observations", "actions"):
            task = Swing(task.odd, rng.choice([c for c in COUNTS if not _large(c)]))
        elif rng.random() < 0.5:
            task = Swing(task.odd, passive(thing(rng)))
    elif rng.random() < 0.03:
        task = thing(rng)
    env = RobotVectorEnv(thing(rng) if rng.random() < 0.03 else arm(), task, count, **named)
    for _ in range(rng.choice((1, 2, 4))):
        turn = rng.random()
        if turn < 0.5:
            reset(rng, env)
        else:
            good = np.zeros((env.num_envs, task.actions))
            actions = hostile(rng, good) if rng.random() < 0.6 else good
            seen, reward, terminated, truncated, _ = env.step(actions)
            assert seen.shape == env.observation_space.shape
            assert reward.shape == terminated.shape == truncated.shape == (env.num_envs,)


def reset(rng: random.Random, env: RobotVectorEnv) -> None:
    """Reset the environment with a random seed and mask, which may be invalid."""
    named: dict[str, Any] = {}
    if rng.random() < 0.5:
        named["seed"] = rng.choice(COUNTS)
    if rng.random() < 0.5:
        mask = hostile(rng, np.ones(env.num_envs))
        named["options"] = rng.choice(({"reset_mask": mask}, {}, {"x": 1}, thing(rng)))
    seen, _ = env.reset(**named)
    assert seen.shape == env.observation_space.shape


def _large(count: Any) -> bool:
    """Return True if a count is too large for the time or memory of a case."""
    try:
        return 10**3 < int(count) <= 10**18
    except (TypeError, ValueError, OverflowError, Hostile):
        return False
