"""Full turns of joints in inverse kinematics: equivalent postures, and limits far apart."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.robots import puma560
from chasles.targets import Pose, Position

LINK = """<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
</link>"""
JOINT = """<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="{far} 0 0"/><axis xyz="0 0 1"/><limit lower="{low}" upper="{high}"/>{more}</joint>"""


def two_joints(folder: Path, low: float, high: float, more: str = "") -> chasles.Robot:
    """Return an arm with two revolute joints about z and rods of 1 m.

    If `more` makes the second joint mimic the first, the second has wide limits.
    """
    wide = 20 if more else 2
    first = JOINT.format(
        name="one", kind="revolute", parent="base", child="a", far=0, low=low, high=high, more=""
    )
    second = JOINT.format(
        name="two", kind="revolute", parent="a", child="b", far=1, low=-wide, high=wide, more=more
    )
    tip = """<joint name="end" type="fixed"><parent link="b"/><child link="tip"/>
    <origin xyz="1 0 0"/></joint>"""
    links = '<link name="base"/><link name="tip"/>' + LINK.format("a") + LINK.format("b")
    file = folder / "two.urdf"
    file.write_text(f'<robot name="two">{links}{first}{second}{tip}</robot>')
    return chasles.load(file)


def reached(robot: chasles.Robot, frame: str, point: Any, found: Any) -> None:
    """Assert that all solutions reach a point, and that rows without a solution are NaN."""
    at = robot.forward_kinematics(found.q[found.solved], frame=frame)[..., :3, 3]
    assert np.abs(at - point).max() < 3e-6
    assert np.isnan(found.q[~found.solved]).all()


@pytest.mark.parametrize("ratio", [-0.5, 0.25, 2.0])
def test_turns_of_a_leader_count_if_its_followers_turn_fully(tmp_path: Path, ratio: float) -> None:
    mimic = f'<mimic joint="one" multiplier="{ratio}" offset="0.2"/>'
    robot = two_joints(tmp_path, -9.0, 9.0, mimic)
    point = robot.forward_kinematics([0.8], frame="tip")[:3, 3]
    found = robot.inverse_kinematics({"tip": Position(point)}, solutions="all", wraps=True)
    reached(robot, "tip", point, found)
    assert np.abs(found.q[found.solved] - 0.8).min() < 1e-5
    turned = np.abs(np.abs(found.q[found.solved] - 0.8) - 2.0 * np.pi).min() < 1e-5
    assert turned == (ratio == 2.0)


def test_joints_that_advance_are_not_the_same_after_a_turn(tmp_path: Path) -> None:
    """Postures of a screw joint that are one turn apart have different poses."""
    text = """
format = "mechanism"
name = "screw"
[[link]]
name = "nut"
mass = 1.0
inertia = [1.0, 1.0, 1.0]
[[joint]]
name = "turn"
kind = "helical"
child = "nut"
pitch = 0.1
limits = [-20, 20]
"""
    file = tmp_path / "screw.toml"
    file.write_text(text)
    robot = chasles.load(file)
    T = robot.forward_kinematics([0.7], frame="nut")
    found = robot.inverse_kinematics({"nut": Pose(T)}, solutions="all", wraps=True)
    assert found.solved.sum() == 1
    assert abs(found.q[0, 0] - 0.7) < 1e-5
    near = robot.inverse_kinematics({"nut": Pose(T)}, near=[6.5])
    assert near.solved
    assert abs(near.q[0] - 0.7) < 1e-5


@pytest.mark.parametrize("far", [1e3, 1e16])
def test_limits_many_turns_apart(tmp_path: Path, far: float) -> None:
    robot = two_joints(tmp_path, -far, far)
    point = robot.forward_kinematics([0.5, 0.7], frame="tip")[:3, 3]
    target = {"tip": Position(point)}
    assert robot.inverse_kinematics(target).solved
    found = robot.inverse_kinematics(target, solutions="all", wraps=True, count=9)
    assert found.solved.all()
    reached(robot, "tip", point, found)


# Combinations of options ------------------------------------------------------------------------


@pytest.mark.parametrize("wide", range(3, 6))
def test_errors_with_wide_tolerances_give_way(wide: int) -> None:
    """An offset of 5 cm along one axis is accepted by the wide tolerance of that axis."""
    robot = puma560()
    T = robot.forward_kinematics([0.3, 0.5, -1.0, 0.2, 0.9, -0.4], frame="tool")
    T[wide - 3, 3] += 0.05
    tolerance = np.full(6, 1e-6)
    tolerance[wide] = 0.1
    for _ in range(2):  # the second call takes the fast path
        found = robot.inverse_kinematics({"tool": Pose(T, tolerance=tolerance)})
        assert found.solved
        away = robot.forward_kinematics(found.q, frame="tool")[:3, 3] - T[:3, 3]
        assert (np.abs(away) <= tolerance[3:] * (1.0 + 1e-9)).all()


def test_fixed_joints_keep_their_place_in_the_guess() -> None:
    robot, q = puma560(), np.array([0.3, 0.5, -1.0, 0.2, 0.9, -0.4])
    point = Position(robot.forward_kinematics(q, frame="tool")[:3, 3])
    guess = q.copy()
    guess[5] = 1.2
    found = robot.inverse_kinematics({"tool": point}, guess=guess, near=q, fixed="joint6")
    assert found.solved
    assert found.q[5] == 1.2
    alone = robot.inverse_kinematics({"tool": point}, near=q, fixed="joint6")
    assert alone.q[5] == q[5]


def test_no_targets_near_no_configurations() -> None:
    none = {"tool": Position(np.zeros((0, 3)))}
    found = puma560().inverse_kinematics(none, near=np.zeros((0, 6)), fixed="joint6")
    assert found.q.shape == (0, 6)


def test_near_is_for_one_solution() -> None:
    robot = puma560()
    with raises("E-CALL-378"):
        robot.inverse_kinematics({"tool": np.eye(4)}, near=np.zeros(6), solutions="all")
