"""Robots beside Pinocchio and MuJoCo: they agree, and a planted difference is found with its cause.

Placements, inertias and matrices come from the other library's own reader and algorithms.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import chasles
from chasles.cli import app
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import LoopData
from chasles.peers import LIBRARIES, Agreement
from chasles.peers.causes import CAUSES
from chasles.peers.terms import TERMS

ARM = """<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.5 0 {center}"/><mass value="{mass}"/>
    <inertia ixx="0.01" iyy="0.2" izz="0.2" ixy="{ixy}" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.4 0.1 0"/><mass value="1"/>
    <inertia ixx="0.02" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="hand"><inertial><origin xyz="0 0 0.1"/><mass value="0.5"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{first}" type="revolute"><origin xyz="0 0 {shift}" rpy="{roll} 0 0"/>
    <parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="2" effort="50" velocity="3"/></joint>
  <joint name="{second}" type="revolute"><origin xyz="1 0 {back}"/><parent link="upper"/>
    <child link="lower"/><axis xyz="{axis}"/>
    <limit lower="-1" upper="2" effort="50" velocity="3"/></joint>
  <joint name="wrist" type="revolute"><origin xyz="1 0 0"/><parent link="lower"/>
    <child link="hand"/><axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="5" velocity="1"/>
    {mimic}</joint>
</robot>
"""
PLAIN = {
    "center": 0,
    "mass": 2,
    "ixy": 0,
    "first": "shoulder",
    "second": "elbow",
    "shift": 0,
    "back": 0,
    "roll": 0,
    "axis": "0 1 0",
    "mimic": "",
}


@pytest.fixture
def written(tmp_path: Path):
    """A file of the arm with some of its numbers changed."""

    def write(name: str, **changes: object) -> Path:
        path = tmp_path / f"{name}.urdf"
        path.write_text(ARM.format(**(PLAIN | changes)))
        return path

    return write


def cause(found: Agreement) -> str:
    assert not found.ok
    assert found.first
    return found.cause.split(":")[0]


# Agreement -------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["puma560", "quadruped"])
def test_built_in_robots_agree(library: str, name: str) -> None:
    """Written for the other library, read by it, with and without a floating base."""
    found = chasles.compare(getattr(chasles.robots, name)(), library)
    assert found.ok, found
    assert {name for name, _ in found.terms} == set(TERMS) - {"loops"}
    assert max(term.error for _, term in found.terms) < 1e-11


def test_loops_close_in_mujoco() -> None:
    """Three rods whose end is held at a point."""
    point, tip = (Transform(Rotation(), Vector.of(x, 0.0, 0.0)) for x in (2.0, 1.0))
    pin = LoopData("pin", "spherical", None, "link3", point, child_pose=tip)
    found = chasles.compare(chasles.robots.planar(3).with_loops(pin), "mujoco")
    assert found.ok, found
    assert "loops" in dict(found.terms)


# Planted differences ---------------------------------------------------------------------------


def test_armature(written, tmp_path: Path) -> None:
    """An MJCF with armature against its URDF twin."""
    plain = written("plain")
    source = chasles.load(plain).model.source
    joints = tuple(replace(j, armature=0.25) if j.name == "elbow" else j for j in source.joints)
    chasles.save(chasles.Robot(replace(source, joints=joints)), tmp_path / "twin.xml")
    found = chasles.compare(chasles.load(tmp_path / "twin.xml"), "pinocchio", plain)
    assert cause(found) == "armature"
    assert "'elbow'" in found.cause
    assert "0.25" in found.cause


def test_mimic(written) -> None:
    path = written("follower", mimic='<mimic joint="elbow" multiplier="0.5"/>')
    found = chasles.compare(chasles.load(path), "pinocchio", path)
    assert cause(found) == "mimic"
    assert "'wrist'" in found.cause
    assert chasles.compare(chasles.load(path, mimic=False), "pinocchio", path).ok


def test_snap(written) -> None:
    path = written("tilted", roll="1.5708")
    found = chasles.compare(chasles.load(path), "pinocchio", path)
    assert cause(found) == "snap"
    assert chasles.compare(chasles.load(path, snap=False), "pinocchio", path).ok


def test_joint_order(written) -> None:
    swapped = written("swapped", first="elbow", second="shoulder")
    found = chasles.compare(chasles.load(written("plain")), "pinocchio", swapped)
    assert cause(found) == "joint order"


def test_frame(written) -> None:
    """The frame of a link moved along its axis, with all that is in it left where it was."""
    moved = written("moved", shift=0.3, back=-0.3, center=-0.3)
    found = chasles.compare(chasles.load(written("plain")), "pinocchio", moved)
    assert cause(found) == "frame"
    assert "'upper'" in found.cause


def test_axis(written) -> None:
    turned = written("turned", axis="0 -1 0")
    found = chasles.compare(chasles.load(written("plain")), "pinocchio", turned)
    assert cause(found) == "joint"
    assert "'lower'" in found.cause


def test_mass(written) -> None:
    found = chasles.compare(chasles.load(written("plain")), "pinocchio", written("heavy", mass=3))
    assert cause(found) == "mass"
    assert "2 kg here, 3 kg there" in found.cause


def test_inertia(written) -> None:
    found = chasles.compare(chasles.load(written("plain")), "pinocchio", written("odd", ixy=0.01))
    assert cause(found) == "inertia"
    assert "'upper'" in found.cause


@pytest.mark.parametrize("library", LIBRARIES)
def test_gravity(written, library: str) -> None:
    path = written("plain")
    robot = chasles.load(path).with_gravity((0.0, 0.0, -1.62))
    assert cause(chasles.compare(robot, library, path)) == "gravity"


def test_floating_base(tmp_path: Path) -> None:
    robot, held = chasles.robots.quadruped(), tmp_path / "held.xml"
    chasles.save(robot.subtree(robot.bodies[0]), held)
    found = chasles.compare(robot, "mujoco", held)
    assert cause(found) == "floating base"


def test_every_term_has_a_cause() -> None:
    names = {"placement", "mass", "inertia", "Jacobian", "mass matrix", "gravity forces"}
    assert set(CAUSES) == names | {"bias forces", "loops"}


# Errors and the command ------------------------------------------------------------------------


def test_unknown_library() -> None:
    with pytest.raises(ValueError, match=r"no library 'drake'.*pinocchio, mujoco"):
        chasles.compare(chasles.robots.puma560(), "drake")


def test_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    with pytest.raises(ValueError, match="pinocchio is not installed; pip install pin"):
        chasles.compare(chasles.robots.planar(2), "pinocchio")


def test_file_of_a_wrong_kind(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"reads \.xml or \.urdf"):
        chasles.compare(chasles.robots.planar(2), "mujoco", tmp_path / "robot.toml")


def test_command(written) -> None:
    plain, heavy = str(written("plain")), str(written("heavy", mass=3))
    same = CliRunner().invoke(app, ["compare", plain, "--with", "pinocchio"])
    assert same.exit_code == 0, same.output
    assert "All terms agree" in same.output
    other = CliRunner().invoke(
        app, ["compare", plain, "--with", "pinocchio", "--file", heavy, "--json"]
    )
    assert other.exit_code == 1
    said = json.loads(other.stdout)
    assert said["cause"].startswith("mass:")
    assert not said["ok"]
    unknown = CliRunner().invoke(app, ["compare", plain, "--with", "drake"])
    assert unknown.exit_code == 2
