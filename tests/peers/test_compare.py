"""Robots agree with other libraries, and an introduced difference is found with its cause.

Placements, inertias and matrices are computed by the other library from its own reading of files.
"""

import ast
import json
import re
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree
from support import raises
from typer.testing import CliRunner

import chasles
from chasles import conventions
from chasles.cli import app
from chasles.formats import registry
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import LoopData
from chasles.model.joints import Numbers
from chasles.peers import LIBRARIES, Agreement, terms
from chasles.peers.pinocchio import Pinocchio
from chasles.peers.terms import TERMS

needs_drake = pytest.mark.skipif(find_spec("pydrake") is None, reason="pip install drake")
EACH = [pytest.param(name, marks=needs_drake if name == "drake" else ()) for name in LIBRARIES]

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
    """Return a function that writes a file of the arm with some values changed."""

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


def without_armature(robot: chasles.Robot) -> chasles.Robot:
    source = robot.model.source
    joints = tuple(replace(joint, armature=0.0) for joint in source.joints)
    return chasles.Robot(replace(source, joints=joints))


@pytest.mark.parametrize("library", EACH)
@pytest.mark.parametrize("name", ["puma560", "quadruped"])
@pytest.mark.parametrize("armature", [True, False])
def test_built_in_robots_agree(library: str, name: str, armature: bool) -> None:
    """Robots agree, fixed or floating; those with armature are passed to the library as MJCF."""
    robot = getattr(chasles.robots, name)()
    found = chasles.compare(robot if armature else without_armature(robot), library)
    assert found.ok, found
    whole = {"accelerations"} if library == "mujoco" else set()
    assert {name for name, _ in found.terms} == set(TERMS) - {"loops", "accelerations"} | whole
    assert max(term.error for _, term in found.terms) < 1e-11


@needs_drake
@pytest.mark.parametrize("suffix", [".urdf", ".sdf", ".xml"])
def test_drake_reads_each_of_its_formats(suffix: str, tmp_path: Path) -> None:
    """A floating robot with a fixed link agrees in every format."""
    robot, path = without_armature(chasles.robots.quadruped()), tmp_path / f"robot{suffix}"
    chasles.save(robot, path)
    found = chasles.compare(chasles.load(path), "drake", path)
    assert found.ok, found
    assert max(term.error for _, term in found.terms) < 1e-11


@needs_drake
def test_real_robots_agree_with_drake() -> None:
    """Robots agree, fixed or floating; mimic joints, independent in Drake, are reported."""
    for name, floating in (("panda", False), ("solo12", True)):
        path = registry.find(name)
        robot = chasles.load(path, floating=floating, mimic=False, snap=False)
        found = chasles.compare(robot, "drake", path)
        assert found.ok, found
    followed = chasles.compare(chasles.load("panda"), "drake", registry.find("panda"))
    assert cause(followed) == "mimic"


def held_rods() -> chasles.Robot:
    """Return three rods whose end is held at a point."""
    point, tip = (Transform(Rotation(), Vector.of(x, 0.0, 0.0)) for x in (2.0, 1.0))
    pin = LoopData("pin", "spherical", None, "link3", point, child_pose=tip)
    return chasles.robots.planar(3).with_loops(pin)


@pytest.mark.parametrize("library", EACH)
def test_loops_close(library: str) -> None:
    """Closed loops agree; only MuJoCo reports the residuals of loops."""
    found = chasles.compare(held_rods(), library)
    assert found.ok, found
    assert ("loops" in dict(found.terms)) == (library == "mujoco")


# Introduced differences ------------------------------------------------------------------------


def test_armature(written, tmp_path: Path) -> None:
    """An MJCF file with armature differs from the URDF file of the same arm."""
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
    """The frame of a link is moved along the joint's axis, while its contents stay in place."""
    moved = written("moved", shift=0.3, back=-0.3, center=-0.3)
    found = chasles.compare(chasles.load(written("plain")), "pinocchio", moved)
    assert cause(found) == "frame"
    assert "'upper'" in found.cause


def test_axis(written) -> None:
    """The cause is found from two states, also if other states from a motion file are compared."""
    robot, turned = chasles.load(written("plain")), written("turned", axis="0 -1 0")
    motion = turned.with_suffix(".csv")
    motion.write_text("t,shoulder.q,elbow.q,wrist.q\n0,0.1,0.2,0.3\n1,0.5,0.6,0.7\n")
    for states in (None, motion):
        found = chasles.compare(robot, "pinocchio", turned, motion=states)
        assert cause(found) == "joint"
        assert "'lower'" in found.cause


def test_mass(written) -> None:
    found = chasles.compare(chasles.load(written("plain")), "pinocchio", written("heavy", mass=3))
    assert cause(found) == "mass"
    assert "2 kg in chasles, 3 kg in the other library" in found.cause


def test_inertia(written) -> None:
    found = chasles.compare(chasles.load(written("plain")), "pinocchio", written("odd", ixy=0.01))
    assert cause(found) == "inertia"
    assert "'upper'" in found.cause


@pytest.mark.parametrize("library", EACH)
def test_gravity(written, library: str) -> None:
    path = written("plain")
    robot = chasles.load(path).with_gravity((0.0, 0.0, -1.62))
    assert cause(chasles.compare(robot, library, path)) == "gravity"


def test_forces_that_are_left_out(tmp_path: Path) -> None:
    """chasles does not support drag on ellipsoids; the second file has no damping."""
    path = tmp_path / "drag.xml"
    path.write_text(
        """<mujoco><option density="1000"/><worldbody><body><joint name="j" type="hinge"/>
        <geom type="box" size=".1 .2 .3" pos=".3 0 0" fluidshape="ellipsoid"/></body></worldbody>
        </mujoco>"""
    )
    with pytest.warns(chasles.errors.LeftOutWarning, match="ellipsoid"):
        robot = chasles.load(path)
    found = chasles.compare(robot, "mujoco", path)
    assert cause(found) == "unsupported"
    assert "shapes with the ellipsoid fluid model (1)" in found.cause
    path.write_text(path.read_text().replace('fluidshape="ellipsoid"', "").replace("1000", "0"))
    robot = chasles.load(path).with_parameters({"j.damping": 3.0})
    damped = chasles.compare(robot, "mujoco", path)
    assert cause(damped) == "forces"


def test_springs_that_are_left_out(tmp_path: Path) -> None:
    """The spring of an ignored tendon explains different bias forces."""
    path = tmp_path / "wrapped.xml"
    path.write_text(
        """<mujoco><worldbody><site name="a" pos="-.1 0 .2"/><body>
        <joint name="j" axis="0 1 0"/><joint name="k"/>
        <geom name="drum" type="cylinder" size=".05 .1" zaxis="0 1 0"/>
        <geom type="box" size=".1 .2 .3" pos=".3 0 0"/><site name="b" pos=".3 .1 0"/></body>
        </worldbody><tendon><spatial stiffness="900" springlength="0.1"><site site="a"/>
        <geom geom="drum"/><site site="b"/></spatial></tendon></mujoco>"""
    )
    with pytest.warns(chasles.errors.LeftOutWarning, match="wraps around a cylinder"):
        robot = chasles.load(path)
    found = chasles.compare(robot, "mujoco", path)
    assert cause(found) == "unsupported"
    assert found.first.startswith("bias forces")


def test_floating_base(tmp_path: Path) -> None:
    robot, held = chasles.robots.quadruped(), tmp_path / "held.xml"
    chasles.save(robot.subtree(robot.bodies[0]), held)
    found = chasles.compare(robot, "mujoco", held)
    assert cause(found) == "floating base"


def test_shapes(written) -> None:
    """A box without its own inertia is fixed to the hand."""
    text = written("plain").read_text()
    box = """<link name="box"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>
      </link><joint name="glue" type="fixed"><parent link="hand"/><child link="box"/></joint>
      </robot>"""
    path = written("boxed")
    path.write_text(text.replace("</robot>", box))
    found = chasles.compare(chasles.load(path), "mujoco", path)
    assert cause(found) == "shapes"
    assert "'box'" in found.cause


@needs_drake
def test_rotors_behind_gears(written) -> None:
    """In Drake's URDF extension, armature is given by rotor inertia and gear ratio."""
    plain = written("plain")
    driven = plain.with_name("driven.urdf")
    motor = """<transmission name="t"><type>transmission_interface/SimpleTransmission</type>
      <joint name="elbow"/><actuator name="motor">
      <drake:rotor_inertia xmlns:drake="d" value="0.01"/>
      <drake:gear_ratio xmlns:drake="d" value="5"/></actuator></transmission></robot>"""
    driven.write_text(plain.read_text().replace("</robot>", motor))
    found = chasles.compare(chasles.load(plain), "drake", driven)
    assert cause(found) == "armature"
    assert "'elbow'" in found.cause
    assert "-0.25" in found.cause


@pytest.mark.parametrize("change", [{"ixy": 0.2}, {"mass": 0}])
@needs_drake
def test_impossible_inertia(written, change: dict[str, float]) -> None:
    """Drake replaces an inertia that is physically impossible."""
    path = written("impossible", **change)
    found = chasles.compare(chasles.load(path), "drake", path)
    assert cause(found) == "impossible inertia"
    assert "link 'upper'" in found.cause


def test_joints(written) -> None:
    """A joint is fixed in the other file, or has another name."""
    plain = written("plain")
    fixed, renamed = plain.with_name("fixed.urdf"), written("renamed", second="bend")
    text = plain.read_text()
    fixed.write_text(text.replace('"wrist" type="revolute"', '"wrist" type="fixed"'))
    robot = chasles.load(plain)
    found = chasles.compare(robot, "pinocchio", fixed)
    assert cause(found) == "joints"
    assert found.first == "3 degrees of freedom in chasles, 2 in the other library"
    assert "only in chasles: 'wrist', only in the other library: none" in found.cause
    found = chasles.compare(robot, "pinocchio", renamed)
    assert cause(found) == "joints"
    assert "only in chasles: 'elbow', only in the other library: 'bend'" in found.cause


def test_moves_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The base's linear velocity is converted along the base's axes instead of the world's."""
    row = Numbers("x y z qw qx qy qz", "vx vy vz wx wy wz")
    monkeypatch.setitem(conventions.LIBRARIES["MuJoCo"], "free", row)
    found = chasles.compare(chasles.robots.quadruped(), "mujoco")
    assert cause(found) == "joint"
    assert found.first.startswith("Jacobian of link 'trunk'")


def test_coupled_inertia(written, tmp_path: Path) -> None:
    """The armature of a tendon over two joints also adds entries off the diagonal."""
    robot = chasles.load(written("plain"))
    text = in_mjcf(robot, tmp_path)
    over = "".join(f'<joint joint="{j}" coef="1"/>' for j in ("shoulder", "elbow"))
    tendon = f'<tendon><fixed name="t" armature="0.3">{over}</fixed></tendon></mujoco>'
    (tmp_path / "tied.xml").write_text(text.replace("</mujoco>", tendon))
    found = chasles.compare(robot, "mujoco", tmp_path / "tied.xml")
    assert cause(found) == "inertia"
    assert found.first.startswith("mass matrix")


@pytest.mark.parametrize("library", EACH)
def test_gravity_of_a_robot_that_is_written(library: str) -> None:
    """Pinocchio reads no gravity from files, so gravity is passed separately."""
    robot = chasles.robots.puma560().with_gravity((0.0, -9.0, 1.0))
    assert chasles.compare(robot, library).ok


def test_gravity_that_does_not_act(written, tmp_path: Path) -> None:
    """The gravity vector in the other file is the same, but gravity is disabled there."""
    robot = chasles.load(written("plain"))
    off = '<option><flag gravity="disable"/></option></mujoco>'
    (tmp_path / "off.xml").write_text(in_mjcf(robot, tmp_path).replace("</mujoco>", off))
    found = chasles.compare(robot, "mujoco", tmp_path / "off.xml")
    assert cause(found) == "gravity"
    assert found.first.startswith("gravity: (0, 0, -9.81) m/s2 in chasles, (0, 0, 0) in the other")


class Twist(conventions.Convention):
    """Convention with accelerations of a floating base as derivatives of its body-fixed twist."""

    def _drift(self, qd: np.ndarray) -> np.ndarray:
        return np.zeros_like(qd)


def test_velocity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bias forces are compared at zero derivative of the twist, not of MuJoCo's velocities."""

    def convention(*arguments: Any) -> Twist:
        return Twist(**vars(conventions.mujoco(*arguments)))

    monkeypatch.setitem(LIBRARIES, "mujoco", replace(LIBRARIES["mujoco"], convention=convention))
    found = chasles.compare(chasles.robots.quadruped(), "mujoco")
    assert cause(found) == "velocity"
    assert found.first.startswith("bias forces")


@pytest.mark.parametrize(
    ("anchor", "words"), [(None, "3 in chasles, 0 in the other"), ("0.9 0 0", "0 in chasles")]
)
def test_loops(tmp_path: Path, anchor: str | None, words: str) -> None:
    """A loop is missing from the other file, or holds another point of the link."""
    robot, path = held_rods(), tmp_path / "held.xml"
    chasles.save(robot, path)
    document = etree.parse(path)
    if anchor is None:
        document.getroot().remove(document.find("equality"))
    else:
        document.find(".//site[@name='tip']").set("pos", anchor)
    document.write(path)
    found = chasles.compare(robot, "mujoco", path)
    assert cause(found) == "loops"
    assert words in found.first


def in_mjcf(robot: chasles.Robot, folder: Path) -> str:
    chasles.save(robot, folder / "plain.xml")
    return (folder / "plain.xml").read_text()


def said(file: str | Path) -> set[str]:
    """Return the causes in a Python file: words before the colon in returned texts or in tables."""
    found = set()
    for node in ast.walk(ast.parse(Path(file).read_text("utf-8"))):
        texts = ast.walk(node) if isinstance(node, ast.Return | ast.AnnAssign) else ()
        for text in texts:
            value = text.value if isinstance(text, ast.Constant) else ""
            word = re.match(r"([a-z][a-z ]+): ", str(value))
            found |= {word[1]} if word else set()
    return found


def test_every_cause_is_planted_and_on_the_page() -> None:
    planted = set(re.findall(r'cause\([^"]*\) == "([a-z ]+)"', Path(__file__).read_text("utf-8")))
    known = said(terms.__file__)
    assert {"frame", "loops", "impossible inertia"} <= known
    assert known == planted
    page = (Path(__file__).parents[2] / "docs/compare.md").read_text("utf-8")
    table = page[page.index("| cause |") :].split("\n\n")[0]
    rows = re.findall(r"^\| ([a-z ,]+) \|", table, re.MULTILINE)
    assert known == {word for row in rows for word in row.split(", ")} - {"cause"}


# Errors and the command ------------------------------------------------------------------------


def test_unknown_library() -> None:
    with raises("E-PEER-002", "'bullet'"):
        chasles.compare(chasles.robots.puma560(), "bullet")


def test_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    with raises("E-PEER-003"):
        chasles.compare(chasles.robots.planar(2), "pinocchio")


def test_file_of_a_wrong_kind(tmp_path: Path) -> None:
    with raises("E-PEER-001"):
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
    unknown = CliRunner().invoke(app, ["compare", plain, "--with", "bullet"])
    assert unknown.exit_code == 2


def test_an_installed_robot_is_read_from_its_own_file(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    class Noted(Pinocchio):
        def __init__(self, path: Path, *, floating: bool) -> None:
            read.append(path)
            super().__init__(path, floating=floating)

    monkeypatch.setattr("chasles.peers.pinocchio.Pinocchio", Noted)
    arguments = ["compare", "panda", "--with", "pinocchio", "--no-mimic", "--no-snap"]
    same = CliRunner().invoke(app, arguments)
    assert same.exit_code == 0, same.output
    assert read == [registry.find("panda")]


@pytest.mark.parametrize("library", EACH)
def test_files_that_the_library_does_not_read(library: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.urdf"
    path.write_text("<robot name='broken'><link")
    with raises("E-PEER-004", library):
        chasles.compare(chasles.robots.planar(2), library, path)
