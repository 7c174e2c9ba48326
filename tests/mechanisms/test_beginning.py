"""Closed-form inverse kinematics as a start of the search, and in place of the search."""

import numpy as np
import pytest
from published_arms import published

import chasles
from chasles.mechanisms import inverse_kinematics as solving
from chasles.targets import Pose

FIELDS = ("q", "solved", "residual", "iterations", "limits")


def poses(robot: chasles.Robot, frame: str, count: int) -> np.ndarray:
    q = robot.random(np.random.default_rng(11), size=count)
    return robot.forward_kinematics(q, frame=frame)


def test_an_arm_with_a_closed_form_begins_at_a_solution() -> None:
    """One iteration is enough for nearly all poses of a UR5."""
    robot, frame = published("ur5_robot")
    T = poses(robot, frame, 500)
    found = robot.inverse_kinematics({frame: T})
    assert found.solved.all()
    assert (found.iterations == 1).mean() > 0.99
    assert np.abs(robot.forward_kinematics(found.q, frame=frame) - T).max() < 4e-6
    assert robot.within(found.q).all()


@pytest.mark.parametrize("name", ["panda", "ur5_robot"])
def test_one_call_begins_as_a_batch_does(name: str) -> None:
    """Single problems and a batch give bitwise identical results.

    The closed form of a Panda needs a position of one joint. Some poses have a solution at the
    first position tried, some at a later one, and some need a search.
    """
    robot, frame = published(name)
    T = poses(robot, frame, 300)
    whole = robot.inverse_kinematics({frame: T}, threads=1)
    assert whole.solved.all()
    assert name != "panda" or (whole.iterations > 1).any()
    for k in range(len(T)):
        alone = robot.inverse_kinematics({frame: T[k]})
        for field in FIELDS:
            assert np.array_equal(getattr(alone, field), getattr(whole, field)[k])


def test_tolerances_that_change_between_calls_choose_the_beginning() -> None:
    robot, frame = published("panda")
    T = poses(robot, frame, 20)
    for tolerance in (1e-2, 1e-6, 1e-2):
        whole = robot.inverse_kinematics({frame: Pose(T, tolerance=tolerance)})
        for k in range(len(T)):
            alone = robot.inverse_kinematics({frame: Pose(T[k], tolerance=tolerance)})
            assert np.array_equal(alone.q, whole.q[k])


def test_a_seed_chooses_another_posture_of_a_redundant_arm() -> None:
    robot, frame = published("panda")
    T = poses(robot, frame, 20)
    first, second = (robot.inverse_kinematics({frame: T}, seed=seed) for seed in (0, 1))
    assert first.solved.all()
    assert second.solved.all()
    assert (np.abs(first.q - second.q).max(axis=1) > 1e-3).mean() > 0.5


@pytest.mark.parametrize("fixed", [(), "panda_joint7"])
def test_checked_postures_are_those_that_the_search_confirms(
    fixed: str | tuple[()], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiled check and the search give the same postures in the same order."""
    robot, frame = published("panda" if fixed else "ur5_robot")
    q = robot.random(np.random.default_rng(12), size=200)
    T = robot.forward_kinematics(q, frame=frame)
    T[7, :3, 3] *= 3.0  # out of reach
    options = {"solutions": "all", "fixed": fixed, "guess": q if fixed else None}
    short = robot.inverse_kinematics({frame: T}, **options)

    def searched(closed, goals, base, count, tolerances, threads):  # type: ignore[no-untyped-def]
        n = len(goals)
        nothing = np.full((n, count, base.shape[1]), np.nan), np.full((n, count, 2), np.inf)
        return *nothing, np.zeros(n), np.ones(n, bool)

    monkeypatch.setattr(solving, "checked", searched)
    long = robot.inverse_kinematics({frame: T}, **options)
    assert np.allclose(short.q, long.q, rtol=0.0, atol=1e-9, equal_nan=True)
    for field in ("solved", "limits", "complete", "iterations"):
        assert np.array_equal(getattr(short, field), getattr(long, field))
    assert np.allclose(short.residual, long.residual, atol=1e-12)
    assert not short.solved[7].any()
    assert short.solved.any(axis=1).sum() == 199
