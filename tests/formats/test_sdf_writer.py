"""SDF writer: names, loops and refusals; `test_writers.py` has the other tests."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from same_motion import assert_same_motion
from sdf_files import FILES, put
from support import close, direct, raises
from test_sdf import LOOP
from test_writers import in_frames

import chasles
from chasles import formats
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Transform
from chasles.model import Description, JointData, LoopData, gear

TOLERANCE = 1e-12


def test_rotors_of_motors_are_not_left_out_without_a_word(tmp_path: Path) -> None:
    robot = chasles.load(put(tmp_path, a=FILES["motors"]) / "a.sdf")
    with raises("E-SDF-036 turn"):
        chasles.save(robot, tmp_path / "b.sdf")


@pytest.mark.parametrize("name", [name for name in FILES if name != "motors"])
def test_what_was_read_is_written_and_read_again(name: str, tmp_path: Path) -> None:
    """Nested models are flattened, and their parts get names without colons."""
    robot = chasles.load(put(tmp_path, a=FILES[name]) / "a.sdf")
    notes = chasles.save(robot, tmp_path / "b.sdf")
    again = chasles.load(tmp_path / "b.sdf")
    nested = [body for body in robot.bodies if "::" in body]
    if nested:
        plain = nested[0].replace("::", ".")
        assert f"link {nested[0]!r} is written as {plain!r}, a valid SDF name" in notes
        assert again.joints == tuple(joint.replace("::", ".") for joint in robot.joints)
        q = robot.random(seed=0)
        M = direct(robot.model, "mass_matrix", q)
        close(direct(again.model, "mass_matrix", q), M, TOLERANCE)
    else:
        assert_same_motion(robot, again, TOLERANCE)
    assert chasles.save(again, tmp_path / "c.sdf") is not None
    first, second = ((tmp_path / x).read_text() for x in ("b.sdf", "c.sdf"))
    assert first.count("<joint") == second.count("<joint")


def test_gears_of_two_joints_are_gearboxes(tmp_path: Path) -> None:
    """Gears couple joints in parallel, in series and at the world, with axes of either sense."""
    robot = chasles.robots.general_tree(6, 2).with_couplings(
        gear("side", "joint3", {"joint2": -1.7}),
        gear("row", "joint6", {"joint3": 0.6}),
        gear("ground", "joint2", {"joint1": 2.0}),
    )
    text, again = written(robot, tmp_path / "a.sdf")
    assert text.count('type="gearbox"') == 3
    assert again.couplings == robot.couplings
    assert_same_motion(robot, again, TOLERANCE)


def test_a_gearbox_never_carries_the_world(tmp_path: Path) -> None:
    """The equation that is read back has other factors, but the same solutions."""
    robot = chasles.robots.planar(2).with_couplings(gear("g", "joint1", {"joint2": 2.0}))
    text, again = written(robot, tmp_path / "a.sdf")
    assert "<child>world</child>" not in text
    np.testing.assert_allclose(again.loop_residual([0.8, 0.4]), 0.0, atol=1e-15)
    np.testing.assert_allclose(robot.loop_residual([0.8, 0.4]), 0.0, atol=1e-15)


def written(robot: chasles.Robot, path: Path) -> tuple[str, chasles.Robot]:
    chasles.save(robot, path)
    return path.read_text(), chasles.load(path)


def test_universal_joints_and_screws_are_written_as_such(tmp_path: Path) -> None:
    for kind, word in (("universal", "universal"), ("helical", "screw"), ("spherical", "ball")):
        formats.write(in_frames(kind), tmp_path / "a.sdf")
        assert f'type="{word}"' in (tmp_path / "a.sdf").read_text()
        again = chasles.load(tmp_path / "a.sdf")
        assert again.joints == ("first", "second")


def test_loops_that_are_closed_at_zero(tmp_path: Path) -> None:
    (tmp_path / "a.sdf").write_text(LOOP)
    robot = chasles.load(tmp_path / "a.sdf")
    chasles.save(robot, tmp_path / "b.sdf")
    again = chasles.load(tmp_path / "b.sdf")
    assert again.loops == ("dc",)
    assert_same_motion(robot, again, TOLERANCE)


def test_names_that_sdf_keeps_or_shares(tmp_path: Path) -> None:
    source = in_frames("revolute")
    links = (replace(source.links[0], name="__a__"), replace(source.links[1], name=" b\n c"))
    joints = (
        replace(source.joints[0], name="world", child="__a__"),
        replace(source.joints[1], name="b c", parent="__a__", child=" b\n c"),
    )
    named = Description("x::y", links, joints)
    notes = formats.write(named, tmp_path / "a.sdf")
    again = chasles.load(tmp_path / "a.sdf")
    assert again.name == "x.y"
    assert again.bodies == ("world", "a", "b c")
    assert again.joints == ("world_1", "b c_1")
    assert [note.partition(" is written")[0] for note in notes] == [
        "link '__a__'",
        "link ' b\\n c'",
        "joint 'world'",
        "joint 'b c'",
        "robot 'x::y'",
    ]


PLAIN = in_frames("revolute")
APART = Transform.from_pose(PLAIN.joints[0].pose.R, Vector.of(9.0, 0.0, 0.0))
REFUSED: dict[str, tuple[Description, str]] = {
    "coupling": (
        replace(PLAIN, couplings=(gear("g", "first", {"second": 2.0}, 0.1),)),
        "E-SDF-040 'g'",
    ),
    "armature": (
        replace(PLAIN, joints=(replace(PLAIN.joints[0], armature=1.0), PLAIN.joints[1])),
        "E-SDF-036 'first'",
    ),
    "open loop": (
        replace(PLAIN, loops=(LoopData("pin", "revolute", None, "b", APART),)),
        "E-SDF-038 'pin'",
    ),
    "loop": (
        replace(PLAIN, loops=(LoopData("pin", "planar", None, "b"),)),
        "E-SDF-035 'pin'",
    ),
    "free": (
        replace(PLAIN, joints=(PLAIN.joints[0], JointData("second", "free", "a", "b"))),
        "E-SDF-037 'second'",
    ),
    "resistance": (
        replace(
            PLAIN,
            joints=(JointData("first", "free", None, "a", damping=1.0), PLAIN.joints[1]),
        ),
        "E-SDF-037 'first'",
    ),
    "no masses": (replace(PLAIN, massless=True), "E-FILE-031 'frames'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str, tmp_path: Path) -> None:
    source, message = REFUSED[what]
    with raises(message):
        formats.write(source, tmp_path / "no.sdf")
    assert not list(tmp_path.iterdir())
