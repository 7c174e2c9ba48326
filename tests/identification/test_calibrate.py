"""Kinematic calibration finds the true parameters from simulated measurements."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support import raises

import chasles


def pose(turn: Any, shift: Any) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_rotvec(turn).as_matrix(), shift
    return T


BASE = pose([0.1, 2.0, 0.4], [3.0, 1.0, 0.2])
TOOL = pose([0.2, -0.1, 0.3], [0.05, 0.0, 0.1])


def bent(robot: chasles.Robot, rng: np.random.Generator) -> chasles.Robot:
    """Return the robot with all joints slightly displaced and turned."""
    values = {}
    for name in robot.joints:
        P = np.array(robot.joint(name).pose.homogeneous.rows, float)
        small = pose(0.01 * rng.normal(size=3), 0.002 * rng.normal(size=3))
        values[f"{name}.placement"] = P @ small
    return robot.with_parameters(values)


@pytest.mark.parametrize("name", ["puma560", "stanford_arm"])
def test_joint_offsets_are_found_within_their_deviations(name: str) -> None:
    robot, rng = getattr(chasles.robots, name)(), np.random.default_rng(0)
    offset = 0.02 * rng.normal(size=6)
    q = robot.random(rng, size=80)
    T = BASE @ robot.forward_kinematics(q + offset) @ TOOL
    away = []
    for _ in range(5):
        noise = [pose(1e-3 * rng.normal(size=3), 1e-4 * rng.normal(size=3)) for _ in q]
        found = chasles.calibrate(robot, q, poses=T @ np.array(noise))
        assert found.after[0] < 3e-4 < found.before[0]
        known = {f"{joint}.offset": x for joint, x in zip(robot.joints, offset, strict=True)}
        inner = [k for k, each in enumerate(found.names) if each in known]
        assert len(inner) == 4  # the first and last offsets act like the base and the tool
        true = np.array([known[found.names[k]] for k in inner])
        away.append((found.values[inner] - true) / found.deviations[inner])
    assert np.abs(away).max() < 4.0
    assert 0.5 < np.sqrt(np.mean(np.square(away))) < 1.6


@pytest.mark.parametrize(("measured", "count"), [("poses", 30), ("points", 27)])
def test_all_identifiable_corrections_are_found(measured: str, count: int) -> None:
    """Four corrections per revolute joint plus six are found; without orientations, plus three."""
    robot, rng = chasles.robots.puma560(), np.random.default_rng(1)
    true, q = bent(robot, rng), robot.random(rng, size=60)
    T = BASE @ true.forward_kinematics(q) @ TOOL
    given: Any = {"poses": T} if measured == "poses" else {"points": T[:, :3, 3]}
    found = chasles.calibrate(robot, q, include=["base", "tool", "offset", "placement"], **given)
    assert len(found.names) == count
    assert not set(found.names) & set(found.fixed)
    new = robot.random(rng, size=50)
    error = found.base @ found.robot.forward_kinematics(new) @ found.tool
    error -= BASE @ true.forward_kinematics(new) @ TOOL
    assert np.abs(error[:, :3, 3]).max() < 1e-9
    if measured == "poses":
        assert np.abs(error).max() < 1e-9


def test_the_calibrated_robot_takes_the_same_readings(tmp_path: Any) -> None:
    """The calibrated robot, saved and loaded again, reaches the measured poses."""
    robot, rng = chasles.robots.puma560(), np.random.default_rng(2)
    q = robot.random(rng, size=30)
    T = robot.forward_kinematics(q + 0.01)
    found = chasles.calibrate(robot, q, poses=T, include=["offset"])
    np.testing.assert_allclose(found.values, 0.01, atol=1e-9)
    np.testing.assert_allclose(found.robot.forward_kinematics(q), T, atol=1e-9)
    chasles.save(found.robot, tmp_path / "new.toml")
    again = chasles.load(tmp_path / "new.toml")
    np.testing.assert_allclose(again.forward_kinematics(q), T, atol=1e-9)


def test_trees_and_several_kinds_of_joints() -> None:
    """Only joints between the world and the frame are corrected."""
    robot, rng = chasles.robots.quadruped(), np.random.default_rng(3)
    q, frame = robot.random(rng, size=40), robot.tool
    T = robot.forward_kinematics(q, frame=frame)
    found = chasles.calibrate(robot, q, poses=T, frame=frame, include=["offset"])
    assert 0 < len(found.names) < len(robot.joints)
    np.testing.assert_allclose(found.values, 0.0, atol=1e-12)


def test_refusals() -> None:
    robot = chasles.robots.planar(2)
    q = np.zeros((5, 2))
    T = robot.forward_kinematics(q)
    with raises("E-IDENT-031"):
        loop = chasles.robots.four_bar()
        chasles.calibrate(loop, np.zeros((1, loop.nq)), points=np.zeros((1, 3)))
    with raises("E-IDENT-032", "gears"):
        chasles.calibrate(robot, q, poses=T, include=["gears"])
    with raises("E-IDENT-033"):
        chasles.calibrate(robot, q)
    with raises("E-IDENT-034"):
        chasles.calibrate(robot, q, poses=T[:4])
    with raises("E-IDENT-049", "measurement 3"):
        lost = np.where(np.arange(5)[:, None, None] == 3, np.nan, T)
        chasles.calibrate(robot, q, poses=lost)
