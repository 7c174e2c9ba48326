"""Options of inverse kinematics: nearest solutions, fixed and idle joints, weights, errors."""

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.errors import ChaslesError
from chasles.formats import registry
from chasles.mechanisms.postures import Prepared
from chasles.model.description import Limits
from chasles.robots import planar, puma560
from chasles.targets import Axis, CenterOfMass, Orientation, Pose, Position, Relative

PUMA = puma560()


def test_nearest_to_a_configuration_outside_the_limits() -> None:
    """The solution is the nearest of all postures and full turns, found by brute force.

    Distances are measured from the given configuration, not from the clipped one.
    """
    rng = np.random.default_rng(5)
    T = PUMA.forward_kinematics(PUMA.random(1, size=300), frame="tool")
    near = PUMA.random(2, size=300) + 2.0 * rng.normal(size=(300, 6))
    assert np.count_nonzero(~PUMA.within(near)) > 200
    found = PUMA.inverse_kinematics({"tool": T}, near=near)
    every = PUMA.inverse_kinematics({"tool": T}, solutions="all", wraps=True, count=300)
    assert found.solved.all()
    assert np.all(every.complete)
    away = np.linalg.norm(every.q - near[:, None], axis=-1)
    np.testing.assert_allclose(
        np.linalg.norm(found.q - near, axis=-1), np.nanmin(away, axis=1), rtol=1e-5
    )


def test_a_redundant_arm_approaches_a_configuration_outside_its_limits() -> None:
    """The solution is at least as near as all samples of the family of solutions."""
    source = planar(3).model.source
    joints = tuple(replace(j, limits=Limits(-1.0, 1.0)) for j in source.joints)
    robot, near = chasles.Robot(replace(source, joints=joints)), np.array([2.0, -1.5, 0.4])
    point = robot.forward_kinematics([0.4, -0.2, 0.7], frame="tip")[:3, 3]
    found = robot.inverse_kinematics({"tip": Position(point)}, near=near)
    assert found.solved
    family = [
        robot.inverse_kinematics(
            {"tip": Position(point)}, guess=[x, y, 0.0], fixed="joint1", tries=4
        )
        for x in np.linspace(-1.0, 1.0, 401)
        for y in (-0.5, 0.5)
    ]
    away = min(np.linalg.norm(each.q - near) for each in family if each.solved)
    assert np.linalg.norm(found.q - near) <= away + 1e-6


@pytest.mark.parametrize("batch", [(), (3,)])
def test_fixed_joints_keep_the_nearest_configuration_without_a_guess(
    batch: tuple[int, ...],
) -> None:
    q = PUMA.random(4, size=batch)
    point = Position(PUMA.forward_kinematics(q, frame="tool")[..., :3, 3])
    near = PUMA.clip(q + 0.1)
    near[..., 3] = q[..., 3]
    found = PUMA.inverse_kinematics({"tool": point}, near=near, fixed="joint4")
    np.testing.assert_array_equal(found.q[..., 3], q[..., 3])
    assert found.solved.all()


def test_fixed_joints_of_a_batch_give_the_bits_of_single_problems() -> None:
    """A batch and single problems give identical results, for good and bad guesses."""
    q = PUMA.random(6, size=40)
    T = PUMA.forward_kinematics(q, frame="tool")
    guess = PUMA.random(7, size=40)
    guess[::2] = PUMA.clip(q[::2] + 0.05)
    guess[:, 5] = q[:, 5]
    batch = PUMA.inverse_kinematics(
        {"tool": Pose(T, weight=(1.0, 2.0))}, guess=guess, fixed="joint6"
    )
    for k in range(40):
        target = {"tool": Pose(T[k], weight=(1.0, 2.0))}
        alone = PUMA.inverse_kinematics(target, guess=guess[k], fixed="joint6")
        np.testing.assert_array_equal(batch.q[k], alone.q)
        assert batch.iterations[k] == alone.iterations
    assert batch.solved.mean() > 0.9
    np.testing.assert_array_equal(batch.q[:, 5], q[:, 5])


def test_many_fixed_positions_take_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting configurations are generated once, not for each fixed position."""
    q = PUMA.random(8, size=50)
    T = PUMA.forward_kinematics(q, frame="tool")
    made: list[Any] = []
    own = Prepared.starts
    monkeypatch.setattr(Prepared, "starts", lambda *given: made.append(given) or own(*given))
    point = Position(T[:, :3, 3])
    found = PUMA.inverse_kinematics({"tool": point}, guess=PUMA.clip(q + 1e-3), fixed="joint6")
    assert found.solved.all()
    assert len(made) == 1


@pytest.fixture(scope="module")
def panda() -> chasles.Robot:
    if all(robot.name != "panda" for robot in registry.installed()):
        pytest.skip("example-robot-data is not installed")
    return chasles.load("panda")


def test_distinct_solutions_differ_in_joints_that_move_the_target(panda: chasles.Robot) -> None:
    """The finger joint, which does not move the hand, stays at the guess or at zero."""
    q = panda.random(3, size=12)
    T = panda.forward_kinematics(q, frame="panda_hand")
    options: dict[str, Any] = {"solutions": "all", "fixed": "panda_joint3"}
    found = panda.inverse_kinematics({"panda_hand": T}, guess=q, **options)
    assert found.solved.any(axis=-1).all()
    for k, each in enumerate(found.q):
        some = each[found.solved[k]]
        np.testing.assert_array_equal(some[:, 7], q[k, 7])
        apart = np.abs(some[:, None, :7] - some[:, :7]).max(axis=-1)
        assert np.all(apart[~np.eye(len(some), dtype=bool)] > 1e-5)
    alone = panda.inverse_kinematics({"panda_hand": T}, **options)
    assert set(alone.q[alone.solved][:, 7]) == {0.0}


def test_one_solution_near_a_singularity_is_listed_once(panda: chasles.Robot) -> None:
    """The posture halfway between two close solutions misses the tolerance of 1e-6."""
    q = panda.random(3, size=60)
    T = panda.forward_kinematics(q, frame="panda_hand")
    options: dict[str, Any] = {"solutions": "all", "fixed": "panda_joint3", "guess": q}
    found = panda.inverse_kinematics({"panda_hand": T}, **options)
    close = 0
    for k, each in enumerate(found.q):
        some = each[found.solved[k]]
        for i, j in itertools.combinations(range(len(some)), 2):
            if np.abs(some[i] - some[j]).max() < 0.05:
                middle = 0.5 * (some[i] + some[j])
                away = np.abs(panda.forward_kinematics(middle, frame="panda_hand") - T[k]).max()
                close += away < 1e-6
    assert close == 0
    assert found.solved.sum() > 100


IDLE: dict[str, tuple[dict[str, Any], list[int]]] = {
    "position": ({"link2": Position([0.0, 0.0, 0.0])}, [2, 3]),
    "two frames": ({"link1": Pose(np.eye(4)), "link3": Position([0.0] * 3)}, [3]),
    "relative": ({"link3": Relative("link1", np.eye(4))}, [0, 3]),
    "center of mass": ({"center of mass": CenterOfMass([0.0] * 3)}, []),
}


@pytest.mark.parametrize("case", IDLE)
def test_idle_joints_are_those_without_columns_in_the_jacobian(case: str) -> None:
    """Joints that do not affect the targets stay at their neutral positions."""
    robot, (targets, idle) = planar(4), IDLE[case]
    found = robot.inverse_kinematics(targets, solutions="all", count=30, tries=30)
    q = found.q[found.solved] if found.solved.any() else robot.inverse_kinematics(targets).q[None]
    moved = [k for k in range(4) if np.any(q[:, k] != 0.0)]
    assert not set(moved) & set(idle)
    step = robot.inverse_kinematics(targets, seed=3).q
    assert not np.any(step[idle])
    if case != "two frames":
        assert set(moved) | set(idle) == set(range(4))


def test_targets_without_any_weight_are_refused() -> None:
    T = PUMA.forward_kinematics(np.full(6, 0.3), frame="tool")
    PUMA.inverse_kinematics({"tool": Pose(T)})
    for weight in (0.0, (0.0, 0.0), np.zeros(6), np.array([[1.0], [0.0]])):
        with raises("E-CALL-388"):
            PUMA.inverse_kinematics({"tool": Pose(T, weight=weight)})
    assert PUMA.inverse_kinematics({"tool": Pose(T)}).solved
    pair = {"tool": [Pose(T, weight=0.0), Position(T[:3, 3])]}
    assert PUMA.inverse_kinematics(pair).solved


POSES = np.zeros((2, 3, 4, 4)) + np.eye(4)


def _wrong(*place: int) -> np.ndarray:
    poses = POSES.copy()
    poses[place] = np.nan
    return poses


REFUSALS: dict[str, tuple[Callable[[], Any], str]] = {
    "nan": (
        lambda: {"tool": _wrong(1, 2, 0, 3)},
        "frame 'tool': .* at index (1, 2) must be finite",
    ),
    "one": (lambda: {"tool": _wrong(1, 2, 0, 3)[1, 2]}, "frame 'tool': the entries of a pose must"),
    "row": (
        lambda: {"tool": np.eye(4), "link2": np.diag([1.0, 1, 2, 1]) * np.ones((1, 1, 1))},
        "Pose target of frame 'link2': the rotation of a pose at index 0 is not a rotation matrix",
    ),
    "last": (lambda: {"tool": POSES[0] + [[[0.0]] * 4, [[0.0]] * 4, [[1.0]] * 4]}, "at index 2"),
    "zero": (
        lambda: {"tool": Axis([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])},
        "Axis target of frame 'tool': a direction at index 1 has zero length",
    ),
    "quaternion": (
        lambda: {"tool": Orientation([[1.0, 0, 0, 0], [0.0, 0, 0, 0]])},
        "the quaternion of an orientation at index 1 is zero",
    ),
    "three": (
        lambda: {"tool": ((0.1, 0.2, 0.3), (0.0, 0.0, 1.0))},
        "the rotation of a pose must be a quaternion .* pass a quaternion",
    ),
    "pose as rotation": (
        lambda: {"tool": Orientation(np.eye(4))},
        "the rotation of an orientation is a 4x4 pose matrix; pass only the rotation: T",
    ),
    "pose as position": (lambda: {"tool": Position(np.eye(4))}, "pass the last column of the pose"),
    "weight": (
        lambda: {"tool": np.eye(4), "link2": Pose(np.eye(4), weight=-1.0)},
        "Pose target of frame 'link2': weight of a target",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_name_the_frame_and_the_problem(case: str) -> None:
    """Errors are the same on the first call and on the fast path."""
    targets, words = REFUSALS[case]
    for _ in range(2):
        with pytest.raises(ChaslesError) as caught:
            PUMA.inverse_kinematics(targets())
        assert re.search(words.replace("(", r"\(").replace(")", r"\)"), str(caught.value))
        PUMA.inverse_kinematics({frame: np.eye(4) for frame in targets()})
        PUMA.inverse_kinematics({"tool": Axis([0.0, 0.0, 1.0])})
        PUMA.inverse_kinematics({"tool": Orientation([1.0, 0.0, 0.0, 0.0])})


def test_four_quaternions_are_four_problems() -> None:
    turns = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0.6, 0, 0.8, 0], [0, 0, 0, 1.0]])
    found = PUMA.inverse_kinematics({"tool": Orientation(turns)})
    assert found.solved.tolist() == [True] * 4


def test_a_pose_is_a_pair_of_lists() -> None:
    pose = [0.4, 0.1, 0.2], [1.0, 0.0, 0.0, 0.0]
    found = [PUMA.inverse_kinematics({"tool": x}).q for x in (pose, list(pose), Pose(list(pose)))]
    np.testing.assert_array_equal(found[1:], [found[0]] * 2)
