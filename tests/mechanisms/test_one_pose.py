"""Fast path for a single inverse-kinematics problem: results are bitwise those of a batch."""

import threading
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.mechanisms.quick import Quick
from chasles.robots import planar, puma560
from chasles.targets import CENTER, Axis, CenterOfMass, Pose, Relative

FIELDS = ("q", "solved", "residual", "iterations", "limits")


def same(one: Any, many: Any, k: int) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(many, name)[k]) for name in FIELDS)


@pytest.fixture
def robot() -> chasles.Robot:
    return puma560()


def problems(robot: chasles.Robot, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return poses, every fifth of which is out of reach, and guesses, some outside limits."""
    rng = np.random.default_rng(2)
    q = robot.random(rng, size=count)
    T = robot.forward_kinematics(q, frame="tool")
    T[::5, :3, 3] *= 1.7
    return T, q + 0.3 * rng.normal(size=q.shape)


def test_one_problem_has_the_bits_of_a_batch(robot: chasles.Robot) -> None:
    """Results are identical for solvable and unsolvable problems, with and without a guess."""
    T, guess = problems(robot, 60)
    for start in (None, guess):
        many = robot.inverse_kinematics({"tool": T}, guess=start)
        assert 0.7 < many.solved.mean() < 0.9
        for k in range(60):
            own = None if start is None else start[k]
            assert same(robot.inverse_kinematics({"tool": T[k]}, guess=own), many, k)
    assert list(robot._quick.plain) == [("tool",)]


def test_one_guess_serves_a_batch(robot: chasles.Robot) -> None:
    T, guess = problems(robot, 12)
    many = robot.inverse_kinematics({"tool": T}, guess=guess[1])
    for k in range(12):
        assert same(robot.inverse_kinematics({"tool": T[k]}, guess=guess[1]), many, k)
    P = robot.forward_kinematics(many.q[many.solved], frame="tool")
    assert np.abs(P - T[many.solved]).max() < 3e-6


def test_the_short_way_is_taken(robot: chasles.Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    T, guess = problems(robot, 2)
    first = robot.inverse_kinematics({"tool": T[1]})
    taken = []
    asked = Quick.__call__

    def noted(self: Quick, targets: Any, start: Any) -> Any:
        found = asked(self, targets, start)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(Quick, "__call__", noted)
    again = robot.inverse_kinematics({"tool": T[1]})
    robot.inverse_kinematics({"tool": T[1]}, guess=guess[1])
    assert taken == [True, True]
    assert np.array_equal(first.q, again.q)
    assert not np.shares_memory(first.q, again.q)
    for other in ({"tool": T[1].tolist()}, {"tool": T[1][:, ::-1][:, ::-1]}, {"tool": T}):
        found = robot.inverse_kinematics(other)
        assert np.array_equal(found.q.reshape(-1, 6)[-1], first.q)
    assert taken == [True, True, False, True, False]


def test_two_frames_and_limits_that_are_met() -> None:
    robot = planar(3)
    tip, middle = robot.frames[-1], robot.frames[-2]
    q = robot.random(np.random.default_rng(3), size=20)
    goals = [robot.forward_kinematics(q, frame=f) for f in (tip, middle)]
    many = robot.inverse_kinematics({tip: goals[0], middle: goals[1]})
    assert many.solved.all()
    for k in range(20):
        assert same(robot.inverse_kinematics({tip: goals[0][k], middle: goals[1][k]}), many, k)


def test_every_kind_of_target_has_a_short_way(robot: chasles.Robot) -> None:
    """One prepared search serves targets with changing values, weights and tolerances."""
    T, guess = problems(robot, 8)
    link = np.linalg.inv(robot.forward_kinematics(guess, frame="link2")) @ T

    def targets(k: Any, weight: Any, tolerance: Any) -> dict[str, Any]:
        both = [Pose(T[k], weight=weight, tolerance=tolerance), Axis(T[k][..., :3, 2])]
        center = CenterOfMass(T[k][..., :3, 3], weight=0.1, tolerance=10.0)
        return {"tool": [*both, Relative("link2", link[k], weight=0.0)], CENTER: center}

    for weight, tolerance in ((1.0, 1e-6), ((1.0, 2.0), 1e-3), ([1.0, 1, 1, 0, 1, 1], (0.1, 1e-6))):
        many = robot.inverse_kinematics(targets(slice(None), weight, tolerance), guess=guess)
        for k in range(8):
            assert same(
                robot.inverse_kinematics(targets(k, weight, tolerance), guess=guess[k]), many, k
            )
    assert len(robot._quick.plans) == 1


def test_weights_that_change_in_place_are_seen(robot: chasles.Robot) -> None:
    T, _ = problems(robot, 2)
    weight = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    target = {"tool": Pose(T[0], weight=weight)}
    before = [robot.inverse_kinematics(target) for _ in range(2)]
    weight[:3] = 0.0
    after = robot.inverse_kinematics(target)
    assert np.array_equal(before[0].q, before[1].q)
    assert before[0].residual[0] > 0.0 == after.residual[0]


def test_what_is_wrong_is_named_on_the_short_way_too(robot: chasles.Robot) -> None:
    T, _ = problems(robot, 2)
    robot.inverse_kinematics({"tool": T[1]})
    wrong = {}
    for code, place, value in (
        ("E-CALL-361", (0, 3), np.nan),
        ("E-CALL-361", (1, 1), np.inf),
        ("E-CALL-364", (0, 0), 2.0),
        ("E-CALL-365", (3, 3), 2.0),
    ):
        wrong[code, place] = T[1].copy()
        wrong[code, place][place] = value
    wrong["E-CALL-364", "mirrored"] = T[1] * [[-1], [1], [1], [1]]
    for (code, _), pose in wrong.items():
        with raises(code):
            robot.inverse_kinematics({"tool": pose})
    with raises("E-CALL-374"):
        robot.inverse_kinematics({"tool": T[1]}, guess=np.full(6, np.nan))
    with raises("E-CALL-056"):
        robot.inverse_kinematics({"tool": T[1]}, guess=np.zeros(5))


def test_threads_share_a_prepared_search(robot: chasles.Robot) -> None:
    T, _ = problems(robot, 40)
    many = robot.inverse_kinematics({"tool": T})
    robot.inverse_kinematics({"tool": T[0]})
    wrong = []

    def work() -> None:
        for k in range(40):
            if not same(robot.inverse_kinematics({"tool": T[k]}), many, k):
                wrong.append(k)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    plan = robot._quick.plain["tool",]
    with plan.lock:  # as if another thread used the prepared search
        assert same(robot.inverse_kinematics({"tool": T[1]}), many, 1)
