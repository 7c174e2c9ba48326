"""Vector environments: steps of `simulate`, start and end of episodes, Gymnasium spaces."""

import sys
from pathlib import Path

import numpy as np
import pytest
from support import raises

pytest.importorskip("gymnasium")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "learning"))

from learn_balance import Balance, environment, push

from chasles.learning import RobotVectorEnv


def test_a_step_is_the_motion_of_simulate() -> None:
    """Each copy moves like a single robot under the same action."""
    env = environment(5)
    env.reset(seed=3)
    assert env.state is not None
    q, qd = env.state.q.copy(), env.state.qd.copy()
    actions = np.linspace(-1.0, 1.0, 5)[:, None]
    seen, *_ = env.step(actions)
    for k in range(5):
        run = env.robot.simulate(
            q[k],
            qd[k],
            duration=0.02,
            dt=0.005,
            control=push,
            parameters=10.0 * actions[k],
            integrator="time-stepping",
        )
        alone = np.concatenate([run.q[-1], run.qd[-1]])
        np.testing.assert_array_equal(seen[k], alone.astype(np.float32))


def test_episodes_end_and_begin_anew() -> None:
    """Falling terminates an episode, and the time limit truncates it.

    The last observation is in `info`; the returned observation is that of the new start.
    """
    env = environment(8)
    env.reset(seed=0)
    assert env.state is not None
    env.state.q[2, 1] = 0.39
    env.state.qd[2, 1] = 5.0
    env.state.steps[4] = env.longest - 1
    seen, _, terminated, truncated, info = env.step(np.zeros((8, 1)))
    assert terminated.tolist() == [k == 2 for k in range(8)]
    assert truncated.tolist() == [k == 4 for k in range(8)]
    assert info["_final_obs"].tolist() == [k in (2, 4) for k in range(8)]
    assert abs(info["final_obs"][2, 1]) > 0.4
    assert np.all(np.abs(seen[:, :2]) < 0.4)
    assert env.state.steps.tolist() == [0 if k in (2, 4) else 1 for k in range(8)]


def test_a_seed_repeats_everything() -> None:
    found = []
    for _ in range(2):
        env = environment(4)
        first, _ = env.reset(seed=11)
        found.append([first, *(env.step(np.full((4, 1), 0.3))[0] for _ in range(30))])
    np.testing.assert_array_equal(*found)


def test_some_are_reset_by_a_mask() -> None:
    env = RobotVectorEnv(
        environment(1).robot, Balance(), 3, control=push, dt=0.005, autoreset="disabled"
    )
    env.reset(seed=0)
    for _ in range(20):
        seen, _, terminated, _, info = env.step(np.ones((3, 1)))
    assert terminated.all()
    assert not info
    mask = np.array([True, False, True])
    again, _ = env.reset(options={"reset_mask": mask})
    np.testing.assert_array_equal(again[1], seen[1])
    assert np.all(np.abs(again[mask, 1]) <= 0.2)


def test_gymnasium_accepts_its_spaces() -> None:
    env = environment(6)
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    assert env.single_action_space.shape == (1,)
    seen, rewards, *_ = env.step(env.action_space.sample())
    assert env.observation_space.contains(seen)
    assert rewards.shape == (6,)


def test_refusals() -> None:
    robot = environment(1).robot
    with raises("E-LEARN-002"):
        RobotVectorEnv(robot, Balance(), 2, control=push, autoreset="later")  # type: ignore[arg-type]
    env = environment(2)
    with raises("E-LEARN-004"):
        env.step(np.zeros((2, 1)))
    env.reset(seed=0)
    with raises("E-LEARN-005"):
        env.step(np.full((2, 1), np.nan))
    with raises("E-LEARN-005"):
        env.step(np.zeros(3))
    for mask in ([True], [2, 0], [[1, 0]], "ab", [None, 1]):
        with raises("E-LEARN-003|E-CALL-113"):
            env.reset(options={"reset_mask": mask})
    with raises("E-CALL-112"):
        env.reset(options=3)  # type: ignore[arg-type]
    with raises("E-CALL-115"):
        env.reset(seed=1.5)
    for name in ("dt", "episode"):
        for time in (0.0, -1.0, np.nan, "1", None):
            with raises("E-LEARN-006|E-CALL-113"):
                RobotVectorEnv(robot, Balance(), 2, control=push, **{name: time})
    with raises("E-LEARN-007", "observations"):
        RobotVectorEnv(robot, object(), 2, control=push)  # type: ignore[arg-type]
    assert RobotVectorEnv(robot, Balance(), 2, control=push, episode=np.inf).longest == 2**53


@pytest.mark.parametrize(
    ("method", "answer", "code"),
    [
        ("start", lambda *_: np.zeros(3), "E-LEARN-009"),
        (
            "start",
            lambda _, n: (np.zeros((n, 3)), np.zeros((n, 2)), np.zeros((n, 0))),
            "E-LEARN-008",
        ),
        ("observe", lambda _: np.zeros((2, 3)), "E-LEARN-008"),
        ("observe", lambda _: "seen", "E-CALL-113"),
        ("control", lambda _: np.zeros(2), "E-LEARN-008"),
        ("reward", lambda _: np.zeros((2, 1)), "E-LEARN-008"),
        ("failed", lambda _: np.zeros((0, 2)), "E-LEARN-008"),
    ],
)
def test_answers_of_a_task_have_their_shapes(method: str, answer: object, code: str) -> None:
    task = Balance()
    setattr(task, method, answer)
    env = RobotVectorEnv(environment(1).robot, task, 2, control=push, dt=0.005)
    with raises(code):
        env.reset(seed=0)
        env.step(np.zeros((2, 1)))


def test_a_task_keeps_its_own_arrays() -> None:
    task, first = Balance(), np.full((2, 2), 0.1)
    task.start = lambda rng, count: (first, first, np.zeros((count, 0)))  # type: ignore[method-assign]
    env = RobotVectorEnv(environment(1).robot, task, 2, control=push, dt=0.005)
    env.reset(seed=0)
    env.step(np.ones((2, 1)))
    assert env.state is not None
    env.state.q[:] = 7.0
    assert np.all(first == 0.1)


def test_a_policy_is_trained_and_acts() -> None:
    """Training runs, and the policy's actions vary and have the environment's shape."""
    pytest.importorskip("torch")
    import ppo

    env = environment(16)
    policy, curve = ppo.train(env, 2, ppo.Options(hidden=(16,), horizon=8))
    assert len(curve) == 2
    assert np.isfinite([reward for _, reward in curve]).all()
    actions = policy.act(np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32))
    assert actions.shape == (16, 1)
    assert np.ptp(actions) > 0.0


def test_the_pole_is_balanced() -> None:
    """Over 90 % of new episodes stay upright for ten seconds after 60 updates of the example."""
    pytest.importorskip("torch")
    import learn_balance
    import ppo

    policy, _ = ppo.train(environment(256), 60, ppo.Options(hidden=(64, 64)))
    assert learn_balance.balanced(policy, 50) > 0.9
