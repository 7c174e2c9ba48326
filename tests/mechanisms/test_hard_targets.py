"""Inverse kinematics at singularities, out of reach, and with errors that are ignored."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares
from support import raises

import chasles
from chasles.model.spaces import size
from chasles.robots import planar, puma560, stanford_arm
from chasles.targets import Orientation, Pose, Position

PUMA = puma560()


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Return the rotation vector of R from its angle and skew part, for angles below pi."""
    angle = np.arccos(np.clip((np.trace(R) - 1.0) / 2.0, -1.0, 1.0))
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return np.asarray(0.5 * axis * (angle / np.sin(angle) if angle > 1e-9 else 1.0))


def singular(robot: chasles.Robot, count: int) -> np.ndarray:
    """Return postures with a singular Jacobian, because wrist axes are aligned."""
    q = robot.random(np.random.default_rng(4), size=count)
    q[:, 4] = 0.0
    return q


@pytest.mark.parametrize("make", [puma560, stanford_arm])
def test_poses_at_wrist_singularities_are_solved(make: Any) -> None:
    robot = make()
    q = singular(robot, 400)
    J = robot.jacobian(q, frame="tool")
    assert np.linalg.svd(J)[1][:, -1].max() < 1e-9
    T = robot.forward_kinematics(q, frame="tool")
    found = robot.inverse_kinematics({"tool": T})
    assert found.solved.mean() >= 0.9995
    assert np.abs(robot.forward_kinematics(found.q, frame="tool") - T).max() < 3e-6


def test_stretched_arms_are_solved() -> None:
    """Targets on the boundary of the workspace, which are double solutions, are solved."""
    arm = planar(3)
    tip = arm.frames[-1]
    q = np.zeros((200, 3))
    q[:, 0] = np.random.default_rng(5).uniform(-3.0, 3.0, 200)
    T = arm.forward_kinematics(q, frame=tip)
    found = arm.inverse_kinematics({tip: Position(T[:, :3, 3])})
    assert found.solved.all()
    stretched = PUMA.random(np.random.default_rng(6), size=400)
    stretched[:, 2] = np.arctan2(0.0203, 0.4318) - np.pi / 2  # the wrist is as far as possible
    farthest = np.linalg.norm(PUMA.forward_kinematics(stretched, frame="link4")[:, :3, 3], axis=1)
    others = PUMA.random(np.random.default_rng(7), size=4000)
    reach = np.linalg.norm(PUMA.forward_kinematics(others, frame="link4")[:, :3, 3], axis=1)
    T = PUMA.forward_kinematics(stretched, frame="tool")
    found = PUMA.inverse_kinematics({"tool": T})
    assert farthest.min() >= reach.max() - 1e-3
    assert found.solved.mean() >= 0.9975
    assert np.abs(PUMA.forward_kinematics(found.q, frame="tool") - T)[found.solved].max() < 3e-6


def test_what_is_out_of_reach_has_the_least_error() -> None:
    """SciPy finds no posture with an error smaller by 1e-3, from many starts.

    Errors are in rad and in units of the robot's size.
    """
    rng, scale = np.random.default_rng(8), 1.0 / size(PUMA.model)
    T = PUMA.forward_kinematics(PUMA.random(rng, size=5), frame="tool")
    T[:, :3, 3] *= 1.8
    found = PUMA.inverse_kinematics({"tool": T})
    assert not found.solved.any()
    lower, upper = PUMA.limits.lower, PUMA.limits.upper

    def error(q: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        P = PUMA.forward_kinematics(q, frame="tool")
        turn = rotation_vector(wanted[:3, :3] @ P[:3, :3].T)
        return np.concatenate([turn, scale * (wanted[:3, 3] - P[:3, 3])])

    for q, wanted in zip(found.q, T, strict=True):
        own = np.linalg.norm(error(q, wanted))
        begins = PUMA.random(rng, size=12)
        others = [
            least_squares(error, q0, bounds=(lower, upper), args=(wanted,), max_nfev=40).cost
            for q0 in begins
        ]
        assert own <= np.sqrt(2.0 * min(others)) + 1e-3


def test_errors_of_weight_0_do_not_count() -> None:
    """A pose target with weight 0 for its height is reached except for the height."""
    q = PUMA.random(np.random.default_rng(9), size=30)
    T = PUMA.forward_kinematics(q, frame="tool")
    T[:, 2, 3] += 5.0
    found = PUMA.inverse_kinematics({"tool": Pose(T, weight=[1, 1, 1, 1, 1, 0])})
    at = PUMA.forward_kinematics(found.q, frame="tool")
    assert found.solved.all()
    assert np.abs(at[:, :2, 3] - T[:, :2, 3]).max() < 1e-6
    assert found.residual.max() <= 1e-6


def test_each_error_has_its_tolerance() -> None:
    """A point out of reach by 5 mm along x is solved if the tolerance along x allows it."""
    arm = planar(2)
    tip = arm.frames[-1]
    reach = arm.forward_kinematics([0.0, 0.0], frame=tip)[0, 3]
    point = Position([reach + 5e-3, 0.0, 0.0], tolerance=[6e-3, 1e-6, 1e-6])
    assert arm.inverse_kinematics({tip: point}).solved
    for tolerance in ([1e-6, 6e-3, 1e-6], [4e-3, 1e-6, 1e-6], 1e-6):
        strict = Position([reach + 5e-3, 0.0, 0.0], tolerance=tolerance)
        assert not arm.inverse_kinematics({tip: strict}).solved
    for wrong in ([1.0] * 4, [-1.0, 1, 1], [np.nan, 1, 1]):
        with raises("E-CALL-373"):
            arm.inverse_kinematics({tip: Position([0.0] * 3, tolerance=wrong)})
    with raises("E-CALL-373"):
        arm.inverse_kinematics({tip: Orientation(np.eye(3), weight=np.inf)})


def test_weights_and_tolerances_of_each_problem() -> None:
    """Problems of a batch give results that are bitwise identical to single problems."""
    arm = planar(2)
    tip = arm.frames[-1]
    reach = arm.forward_kinematics([0.0, 0.0], frame=tip)[0, 3]
    rows = [[6e-3, 1e-6, 1e-6], [1e-6, 6e-3, 1e-6], [4e-3, 1e-6, 1e-6], [6e-3, 1e-6, 1e-6]]
    point = Position([reach + 5e-3, 0.0, 0.0], tolerance=np.array(rows))
    assert arm.inverse_kinematics({tip: point}).solved.tolist() == [True, False, False, True]
    q = PUMA.random(8, size=(2, 6))
    T = PUMA.forward_kinematics(q, frame="tool")
    rng = np.random.default_rng(8)
    weights, wide = rng.choice([0.0, 1.0], size=(2, 6, 6)), rng.choice([1e-6, 1e-3], size=(6, 1))
    weights[..., 0] = 1.0
    many = {"tool": Pose(T, weight=weights), "link3": Position(T[..., :3, 3], tolerance=wide)}
    found = PUMA.inverse_kinematics(many, guess=0.9 * q, tries=5)
    for k in np.ndindex(2, 6):
        alone = PUMA.inverse_kinematics(
            {
                "tool": Pose(T[k], weight=weights[k]),
                "link3": Position(T[k][:3, 3], tolerance=wide[k[1]]),
            },
            guess=0.9 * q[k],
            tries=5,
        )
        assert np.array_equal(found.q[k], alone.q)
        assert found.solved[k] == alone.solved
    none = PUMA.inverse_kinematics({"tool": Pose(T[:0], weight=weights[:0])})
    assert none.q.shape == (0, 6, 6)
    with raises("E-CALL-373"):
        PUMA.inverse_kinematics({"tool": Pose(T, weight=weights[..., :4])})


def test_an_error_that_no_joint_changes_does_not_slow_the_others() -> None:
    """A target outside an arm's plane needs as many iterations as one within the plane."""
    arm = planar(3)
    tip = arm.frames[-1]
    T = arm.forward_kinematics(arm.random(np.random.default_rng(2), size=200), frame=tip)
    within = arm.inverse_kinematics({tip: Position(T[:, :3, 3])})
    point = T[:, :3, 3] + np.array([0.0, 0.1, 0.0])
    allowed = arm.inverse_kinematics({tip: Position(point, tolerance=[1e-6, 0.2, 1e-6])})
    assert allowed.solved.all()
    assert np.array_equal(allowed.iterations, within.iterations)
    assert np.allclose(allowed.residual, [0.0, 0.1], atol=1e-9)
    refused = arm.inverse_kinematics({tip: Position(point)})
    away = np.abs(arm.forward_kinematics(refused.q, frame=tip)[:, :3, 3] - point)
    assert not refused.solved.any()
    assert np.allclose(away, [0.0, 0.1, 0.0], atol=1e-9)
    assert np.allclose(refused.residual, [0.0, 0.1], atol=1e-9)
