"""Actuators, keyframes, tendons and fluid in mechanism files: refusals and round trips."""

from pathlib import Path

import numpy as np
import pytest
from support import raises
from test_mjcf_machine import MACHINE

import chasles

LEVER = """format = "mechanism"
[[link]]
name = "lever"
mass = 1
center = [0.2, 0, 0]
inertia = [0.001, 0.01, 0.01]
[[joint]]
name = "pivot"
kind = "revolute"
child = "lever"
stiffness = 8
[[actuator]]
name = "motor"
kind = "joint"
target = "pivot"
[[keyframe]]
name = "level"
"""

FLUID = "[[fluid]]\ndensity = 1\nviscosity = 1\n"

REFUSED = [
    ("[[actuator]]\nname = 'motor'\nkind = 'joint'\ntarget = 'pivot'", "E-MODEL-401"),
    ("[[actuator]]\nname = 'm'\nkind = 'joint'", "E-MODEL-403"),
    ("[[actuator]]\nname = 'm'\nkind = 'crank'\ntarget = 'lever'", "E-MODEL-403"),
    ("[[actuator]]\nname = 'm'\nkind = 'site'\ntarget = 'lever'", "E-MODEL-404"),
    (
        "[[actuator]]\nname = 'm'\nkind = 'joint'\ntarget = 'pivot'\ncontrols = [2, 1]",
        "E-MODEL-411",
    ),
    ("[[keyframe]]\nname = 'level'", "E-MODEL-406"),
    ("[[keyframe]]\nname = 'k'\npositions = {nothing = [1.0]}", "E-MODEL-407"),
    ("[[keyframe]]\nname = 'k'\nactivations = {motor = [1.0]}", "E-MODEL-407"),
    ("[[keyframe]]\nname = 'k'\npositions = {pivot = [1.0, 2.0]}", "E-MODEL-408"),
    ("[[keyframe]]\nname = 'k'\ncontrols = {motor = [1.0, 2.0]}", "E-MODEL-408"),
    (FLUID + "[[box]]\nlink = 'nothing'\nedges = [1, 1, 1]", "E-MODEL-410"),
    (FLUID + FLUID, "E-TOML-020"),
    ("[[box]]\nlink = 'lever'\nedges = [1, 1, 1]", "E-TOML-020"),
    ("[[rotor]]\nname = 't'\nratios = {pivot = 1.0}\nrest = [1, 2, 3]", "E-DH-006"),
    ("[[rotor]]\nname = 't'\nratios = {pivot = 1.0}\nrest = []", "E-DH-006"),
    ("[[plane]]\nlink = 'nothing'", "E-TOML-008"),
]


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_parts_without_meaning_are_refused(text: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "lever.toml"
    path.write_text(LEVER + text + "\n", "utf-8")
    with raises(code):
        chasles.load(path)


@pytest.mark.parametrize("key", ["rest", "start"])
def test_joints_have_as_many_numbers_as_coordinates(key: str, tmp_path: Path) -> None:
    path = tmp_path / "lever.toml"
    path.write_text(LEVER.replace("stiffness = 8", f"stiffness = 8\n{key} = [1, 2]"), "utf-8")
    with raises("E-MODEL-400|E-MODEL-409"):
        chasles.load(path)


def test_a_subtree_keeps_its_part_of_keyframes(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    path = tmp_path / "machine.xml"
    path.write_text(MACHINE, "utf-8")
    robot = chasles.load(path)
    part = robot.subtree("arm")
    key, whole = part.keyframes["up"], robot.keyframes["up"]
    assert len(key.ctrl) == len(part.actuators) < len(robot.actuators)
    places = [robot.actuators.index(name) for name in part.actuators]
    assert np.array_equal(key.ctrl, whole.ctrl[places])
    wrist = robot.position_slice("wrist")
    assert np.array_equal(key.q[part.position_slice("wrist")], whole.q[wrist])
