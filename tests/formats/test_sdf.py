"""SDF: comparison with Drake on the same files, and refusals."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sdf_files import (
    ANCIENT,
    ARM,
    FILES,
    INERTIAL,
    MERGED,
    MOTORS,
    OLD,
    SOLIDS,
    STATES,
    link,
    put,
)
from support import close, direct, raises

import chasles
from chasles.formats import sdf, sdf_document
from chasles.formats.registry import VARIABLES, mesh_file
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_axis_angle
from chasles.model import Limits, Mimic, ModelError

DRAKE = json.loads(Path(__file__).with_name("sdf_by_drake.json").read_text())
TOLERANCE = 1e-12  # rounding in both programs

Saved = Callable[..., Path]


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    """Return a function that writes a file next to the files that others include."""
    put(tmp_path)

    def save(text: str, name: str = "robot.sdf") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return save


@pytest.mark.parametrize("name", FILES)
def test_files_mean_what_they_mean_to_drake(name: str, saved: Saved) -> None:
    robot, expected = chasles.load(saved(FILES[name])), DRAKE[name]
    assert robot.joints == tuple(STATES[name])
    q = np.concatenate(list(STATES[name].values()))
    assert set(robot.bodies) == {"world", *expected["poses"]}
    frames = {frame.name.rpartition("::")[2]: frame.name for frame in robot.model.source.frames}
    assert set(frames) == set(expected["frames"])
    poses = expected["poses"] | {frames[key]: pose for key, pose in expected["frames"].items()}
    for frame, pose in poses.items():
        close(direct(robot.model, "forward_kinematics", q, frame=frame), pose, TOLERANCE)
    close(direct(robot.model, "mass_matrix", q), expected["mass_matrix"], TOLERANCE)
    close(direct(robot.model, "gravity_forces", q), expected["gravity_forces"], TOLERANCE, 1.0)


def test_old_versions_are_converted(saved: Saved) -> None:
    """Version 1.0 stores values in attributes; its files are converted with a note."""
    text = """<gazebo version="1.0"><model name="old" static="false"><origin pose="0 0 1 0 0.3 0"/>
      <link name="base"/>
      <link name="arm" gravity="true"><origin pose="0 0 0.5 0.7 0 0"/>
        <inertial mass="2"><origin pose="0.1 0 0 0 0 0"/>
          <inertia ixx="1" ixy="0" ixz="0" iyy="2" iyz="0" izz="2.5"/></inertial></link>
      <joint name="hold" type="fixed"><parent link="world"/><child link="base"/></joint>
      <joint name="turn" type="revolute"><origin pose="0 0 0.1 0 0 0.4"/>
        <child link="arm"/><parent link="base"/>
        <axis xyz="0 1 0"><dynamics damping="0.2" friction="0.1"/>
          <limit lower="-1" upper="2"/></axis></joint></model></gazebo>"""
    given = chasles.load(saved(text)).model.source
    turn = next(joint for joint in given.joints if joint.name == "turn")
    expected = chasles.load(saved(ANCIENT)).model.source
    turns = next(joint for joint in expected.joints if joint.name == "turn")
    assert (turn.pose, turn.child_pose, turn.axis) == (turns.pose, turns.child_pose, turns.axis)
    assert (turn.damping, turn.friction) == (0.2, 0.1)
    assert (turn.limits.lower, turn.limits.upper) == (-1.0, 2.0)
    arm = next(link for link in given.links if link.name == "arm").inertia
    assert (arm.m, *arm.h) == (2.0, 0.2, 0.0, 0.0)
    assert any("version 1.0 is older than 1.4; converted" in note for note in given.notes)
    assert any("version 1.3 is older than 1.4; converted" in note for note in expected.notes)


def test_gravity_stood_in_physics_before_version_1_6(saved: Saved) -> None:
    world = "<world name='w'><physics type='ode'><gravity>1 2 3</gravity></physics>{}</world>"
    model = ARM.partition(">")[2].removesuffix("</sdf>")
    for version, expected in (("1.5", (1.0, 2.0, 3.0)), ("1.6", (0.0, 0.0, -9.8))):
        text = f"<sdf version='{version}'>{world.format(model)}</sdf>"
        assert tuple(chasles.load(saved(text)).gravity) == expected


def test_masses_from_shapes_are_noted(saved: Saved) -> None:
    notes = chasles.load(saved(SOLIDS)).notes
    assert any(
        "link 'base': 6 kg, computed from the volumes of its 1 collision shapes" in x for x in notes
    )
    text = SOLIDS.replace("<box>", "<plane>").replace("</box>", "</plane>")
    notes = chasles.load(saved(text)).notes
    assert any(
        "'base': 1 kg" in x and "1 shapes of unknown volume count as 1 kg" in x for x in notes
    )


def test_attributes_that_are_neither_true_nor_false_are_noted(saved: Saved) -> None:
    plain = chasles.load(saved(ARM))
    for old, new, key in (
        ("<inertial>", "<inertial auto='maybe'>", "auto"),
        ("<pose relative", "<pose degrees='maybe' relative", "degrees"),
    ):
        text = ARM.replace(old, new, 1)
        found = chasles.load(saved(text))
        assert any(f"{key} is 'maybe', which is read as false" in note for note in found.notes)
        assert found.model.source.frames == plain.model.source.frames
        assert np.array_equal(
            found.mass_matrix(found.neutral()), plain.mass_matrix(plain.neutral())
        )
    assert "1 collision shapes" in str(chasles.load(saved(SOLIDS.replace("true", "TRUE"))).notes)


def test_a_tag_with_an_undeclared_prefix_is_no_motor(saved: Saved) -> None:
    found = chasles.load(saved(MOTORS.replace("</joint>", "<ns0:a>1</ns0:a></joint>", 1)))
    assert [joint.armature for joint in found.model.source.joints[1:]] == [1.8, 0.7, 0.0]


def test_a_joint_without_effort_has_no_motor(saved: Saved) -> None:
    robot = chasles.load(saved(MOTORS))
    assert [joint.armature for joint in robot.model.source.joints[1:]] == [1.8, 0.7, 0.0]
    assert any(
        "'loose': drake:rotor_inertia is ignored, because the effort" in x for x in robot.notes
    )


def test_frames_move_with_the_link_they_are_attached_to(saved: Saved) -> None:
    """Frame `eye` is placed from the base but moves with the forearm; `mount` with the base."""
    robot = chasles.load(saved(ARM))
    carriers = {frame.name: frame.link for frame in robot.model.source.frames}
    assert carriers == {"mount": "base", "tip": "fore", "eye": "fore"}
    q, zero = np.array([0.3, -0.7, 0.2]), np.zeros(3)
    for at in (q, zero):
        base, eye = (robot.forward_kinematics(at, frame=name) for name in ("base", "eye"))
        placed = np.linalg.solve(base, eye)[:3, 3]
        assert np.allclose(placed, [0.0, 1.0, 0.0], atol=1e-12) == (at is zero)


def test_joints_keep_their_numbers(saved: Saved) -> None:
    robot = chasles.load(saved(ARM))
    shoulder = robot.joint("shoulder")
    assert shoulder.limits == Limits(-1.0, 2.0, 3.0)
    assert shoulder.damping == 0.5
    assert chasles.load(saved(OLD)).joint("turn").limits == Limits()


def chain(joints: str, version: str = "1.11", *, links: str = "abcd") -> str:
    """Return a model with links in a row, with link a fixed to the world."""
    bodies = "".join(link(x, f"<pose>0 0 {i * 0.5} 0 0 0</pose>") for i, x in enumerate(links))
    return (
        f'<sdf version="{version}"><model name="m">{bodies}'
        f'<joint name="hold" type="fixed"><parent>world</parent><child>a</child></joint>'
        f"{joints}</model></sdf>"
    )


def joint(name: str, ends: str, kind: str = "revolute", rest: str = "", axis: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent>{ends[0]}</parent><child>{ends[1]}</child>'
        f"<axis><xyz>0 1 0</xyz>{axis}</axis>{rest}</joint>"
    )


LOOP = """<sdf version="1.9"><model name="parallelogram">
  <link name="a"/><link name="b"/><link name="c"><pose>0 0 1 0 0 0</pose></link>
  <link name="d"><pose>1 0 0 0 0 0</pose></link>
  <joint name="hold" type="fixed"><parent>world</parent><child>a</child></joint>
  <joint name="ab" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 1 0</xyz></axis>
    </joint>
  <joint name="bc" type="revolute"><parent>b</parent><child>c</child><axis><xyz>0 1 0</xyz></axis>
    </joint>
  <joint name="ad" type="revolute"><parent>a</parent><child>d</child><axis><xyz>0 1 0</xyz></axis>
    </joint>
  <joint name="dc" type="revolute"><parent>d</parent><child>c</child><axis><xyz>0 1 0</xyz></axis>
    <pose>1 0 0 0 0 0</pose></joint></model></sdf>"""


def test_a_link_with_two_parents_closes_a_loop(saved: Saved) -> None:
    """In a parallelogram, link c keeps its orientation while both cranks rotate."""
    robot = chasles.load(saved(LOOP))
    assert (robot.joints, robot.loops) == (("ab", "bc", "ad"), ("dc",))
    assert int(robot.mobility()) == 1
    q = robot.assemble([0.3], guess=[0.3, -0.2, 0.2])
    np.testing.assert_allclose(q, [0.3, -0.3, 0.3], atol=1e-9)
    pose = robot.forward_kinematics(q, frame="c")
    np.testing.assert_allclose(pose[:3, 3], [math.sin(0.3), 0.0, math.cos(0.3)], atol=1e-9)


def test_joints_against_the_direction_of_the_tree(saved: Saved) -> None:
    """Joint cb has parent c although b is closer to the base; its sign is that of the file."""
    robot = chasles.load(saved(chain(joint("ab", "ab") + joint("cb", "cb"), links="abc")))
    straight = chasles.load(
        saved(
            chain(
                joint("ab", "ab") + joint("bc", "bc", rest="<pose relative_to='b'/>"), links="abc"
            )
        )
    )
    assert robot.joints == ("ab", "cb")
    q = np.array([0.3, 0.5])
    there = straight.forward_kinematics(q * [1.0, -1.0], frame="c")
    np.testing.assert_allclose(robot.forward_kinematics(q, frame="c"), there, atol=1e-12)


def test_mimic_has_a_reference(saved: Saved) -> None:
    mimic = (
        "<mimic joint='ab'><multiplier>2</multiplier><offset>1</offset><reference>3</reference>"
        "</mimic>"
    )
    text = chain(joint("ab", "ab") + joint("bc", "bc", axis=mimic), links="abc")
    assert chasles.load(saved(text)).joint("bc").mimic == Mimic("ab", 2.0, -5.0)


def gearbox(ends: str, reference: str, axis: str = "0 1 0", axis2: str = "0 1 0") -> str:
    return (
        joint("g", ends, "gearbox", f"<axis2><xyz>{axis2}</xyz></axis2>").replace("0 1 0", axis, 1)
    ).replace(
        "</joint>",
        f"<gearbox_reference_body>{reference}</gearbox_reference_body>"
        "<gearbox_ratio>3</gearbox_ratio></joint>",
    )


@pytest.mark.parametrize(
    ("joints", "box", "ratio"),
    [
        (("ab", "ac"), gearbox("bc", "a"), -3.0),
        (("ab", "ac"), gearbox("cb", "a"), -1.0 / 3.0),
        (("ab", "ac"), gearbox("bc", "a", axis2="0 -1 0"), 3.0),
        (("ab", "ac"), gearbox("bc", "a", axis="0 -2 0", axis2="0 -1 0"), -3.0),
        (("ab", "bc"), gearbox("ac", "b"), 3.0),  # ab is b relative to a, g is a relative to b
        (("ab", "cb"), gearbox("ac", "b"), -3.0),
    ],
)
def test_a_gearbox_couples_the_angles_of_two_joints(
    joints: tuple[str, str], box: str, ratio: float, saved: Saved
) -> None:
    """A gearbox imposes theta2 = -3 theta1 on link angles relative to the reference link.

    The second joint position is `ratio` times the first. A torque accelerates both joints like one
    coordinate with both inertias.
    """
    text = chain("".join(joint(x, x) for x in joints) + box, links="abc")
    robot = chasles.load(saved(text))
    assert robot.couplings == ("g",)
    q = (
        robot.assemble([0.2])
        if robot.independent[0] == joints[0]
        else robot.assemble([0.2 * ratio])
    )
    np.testing.assert_allclose(q, [0.2, 0.2 * ratio], atol=1e-12)
    free = chasles.load(saved(text.replace(box, "")))
    N = np.array([1.0, ratio])
    expected = N @ free.inverse_dynamics(q, [0, 0], N) - N @ free.gravity_forces(q)
    tau = robot.gravity_forces(q) + np.array([1.0, 0.0])
    qdd = robot.forward_dynamics(q, [0, 0], tau)
    np.testing.assert_allclose(qdd, N / expected, rtol=1e-9)


def test_screws_of_both_kinds(saved: Saved) -> None:
    """A right-handed pitch of 0.2 m per turn equals a left-handed -2 pi / 0.2 rad/m."""
    for tag, value in (("screw_thread_pitch", 0.2), ("thread_pitch", -2 * math.pi / 0.2)):
        rest = f"<{tag}>{value!r}</{tag}>"
        robot = chasles.load(saved(chain(joint("ab", "ab", "screw", rest), links="ab")))
        moved = robot.forward_kinematics([math.pi], frame="b")[:3, 3]
        assert np.allclose(moved, [0.0, 0.1, 0.5], atol=1e-12)


@pytest.mark.parametrize(
    ("axis2", "joints"),
    [
        ("<xyz>1 0 0</xyz>", ("ab",)),
        ("<xyz>1 1 0</xyz>", ("ab[0]", "ab[1]")),
        ("<xyz>1 0 0</xyz><dynamics><damping>2</damping></dynamics>", ("ab[0]", "ab[1]")),
    ],
)
def test_two_axes(axis2: str, joints: tuple[str, ...], saved: Saved) -> None:
    """The first joint rotates the second axis."""
    text = chain(joint("ab", "ab", "revolute2", f"<axis2>{axis2}</axis2>"), links="ab")
    robot = chasles.load(saved(text))
    assert robot.joints == joints
    p, q = 0.3, 0.7
    second = np.array([1.0, 1.0, 0.0]) / math.sqrt(2) if "1 1" in axis2 else np.array([1.0, 0, 0])
    R1, R2 = (
        np.array(matrix_from_axis_angle(Vector(tuple(a)), x).rows)
        for a, x in ((np.array([0.0, 1.0, 0.0]), p), (second, q))
    )
    np.testing.assert_allclose(robot.forward_kinematics([p, q], frame="b")[:3, :3], R1 @ R2)


def test_what_nothing_holds_floats(saved: Saved) -> None:
    two = f'<sdf version="1.9"><model name="m">{link("a")}{link("b")}</model></sdf>'
    robot = chasles.load(saved(two))
    assert robot.joints == ("a_free", "b_free")
    assert "no joint connects link 'a' to the world, so free joint 'a_free' is added" in str(
        robot.notes
    )


def test_floating_frees_what_one_fixed_joint_holds(saved: Saved) -> None:
    assert chasles.load(saved(ARM), floating=True).joints[0] == "root_joint"
    held = saved(LOOP.replace("<parent>d</parent>", "<parent>world</parent>"))
    with raises("E-SDF-008", "'hold'", "'dc'"):
        chasles.load(held, floating=True)


def test_static_models_are_fixed(saved: Saved) -> None:
    """Joints of static models are fixed; with several models, parts have names like model::part."""
    text = f"""<sdf version="1.9"><world name="w">
      <model name="table"><static>true</static><pose>1 0 0 0 0 0</pose>{link("top")}{link("leg")}
        <joint name="j" type="ball"><parent>top</parent><child>leg</child></joint></model>
      <model name="cup"><pose>1 0 1 0 0 0</pose>{link("body")}</model></world></sdf>"""
    robot = chasles.load(saved(text))
    assert robot.bodies == ("world", "table::top", "table::leg", "cup::body")
    assert robot.joints == ("root_joint",)
    np.testing.assert_allclose(robot.gravity, [0.0, 0.0, -9.8])
    pose = robot.forward_kinematics(robot.neutral(), frame="table::leg")
    np.testing.assert_allclose(pose[:3, 3], [1.0, 0.0, 0.0])


def test_a_link_without_inertia_has_that_of_the_format(saved: Saved) -> None:
    robot = chasles.load(saved(LOOP))
    assert robot.model.source.links[1].inertia.m == 1.0
    assert "it has no <inertial>; SDF's defaults are used: 1 kg" in str(robot.notes)


def test_includes_are_files(saved: Saved, tmp_path: Path) -> None:
    (tmp_path / "parts" / "arm").mkdir(parents=True)
    saved(
        OLD.replace("world</parent><child>base", "base</parent><child>foot").replace(
            "</model>", link("foot") + "</model>"
        ),
        "parts/arm/model.sdf",
    )
    text = f"""<sdf version="1.9"><model name="m">{link("cart")}
      <joint name="hold" type="fixed"><parent>world</parent><child>cart</child></joint>
      <include><uri>parts/arm</uri><name>left</name>
        <pose relative_to="cart">0 1 0 0 0 0</pose></include>
      <include><uri>file://parts/arm/model.sdf</uri><name>right</name></include>
      <joint name="l" type="fixed"><parent>cart</parent><child>left::base</child></joint>
      <joint name="r" type="fixed"><parent>cart</parent><child>right</child></joint>
      </model></sdf>"""
    robot = chasles.load(saved(text))
    assert robot.joints == ("left::turn", "right::turn")
    left, right = (robot.forward_kinematics([0, 0], frame=f"{x}::base") for x in ("left", "right"))
    np.testing.assert_allclose(left[:3, 3], [0.0, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(right[:3, 3], [0.0, 0.0, 1.0], atol=1e-12)
    axis = robot.jacobian([0, 0], frame="left::arm", axes="world")[:3, 0]
    np.testing.assert_allclose(axis, [0.0, 1.0, 0.0], atol=1e-12)  # SDF 1.4: in model axes


CART = f"""<sdf version="1.9"><model name="m">{link("cart")}<include><uri>model://gripper</uri>
  <name>hand</name></include></model></sdf>"""
WITH_HAND = ("world", "cart", "hand::finger", "hand::palm")


def test_models_beside_the_file_and_above(saved: Saved) -> None:
    """Models are found next to the file or above, in the newest known version.

    As in Gazebo, a bare name is searched in the same folders.
    """
    for place in ("cart.sdf", "tool/cart.sdf", "gripper/cart.sdf"):
        for text in (CART, CART.replace("model://", "")):
            assert chasles.load(saved(text, place)).bodies == WITH_HAND


@pytest.mark.parametrize("variable", VARIABLES)
def test_models_in_listed_folders(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    shelf, path = put(tmp_path / "shelf"), tmp_path / "cart.sdf"
    path.write_text(CART)
    with raises("E-SDF-031", "'model://gripper'"):
        chasles.load(path)
    monkeypatch.setenv(variable, f"{os.pathsep}/nowhere{os.pathsep}{shelf}")
    assert chasles.load(path).bodies == WITH_HAND


@pytest.mark.parametrize("variable", VARIABLES)
def test_meshes_are_looked_for_where_models_are(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = tmp_path / "shelf" / "arm" / "meshes" / "a.stl"
    mesh.parent.mkdir(parents=True)
    mesh.write_text("solid")
    for name in ("model://arm/meshes/a.stl", "package://arm/meshes/a.stl"):
        monkeypatch.delenv(variable, raising=False)
        assert mesh_file(name, str(tmp_path / "arm.sdf")) is None
        monkeypatch.setenv(variable, str(tmp_path / "shelf"))
        assert mesh_file(name, str(tmp_path / "arm.sdf")) == mesh


def test_a_folder_without_manifest_has_model_sdf(saved: Saved, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    saved(OLD, "plain/model.sdf")
    text = "<sdf version='1.9'><world name='w'><include><uri>model://plain</uri></include></world>"
    assert chasles.load(saved(f"{text}</sdf>")).joints == ("turn",)


def test_lights_and_actors_are_left_out(saved: Saved) -> None:
    saved("<sdf version='1.6'><light type='directional' name='sun'/></sdf>", "sun.sdf")
    world = f"""<sdf version="1.9"><world name="w"><include><uri>sun.sdf</uri></include>
      <model name="cup">{link("body")}</model></world></sdf>"""
    robot = chasles.load(saved(world))
    assert robot.bodies[1:] == ("cup::body",)
    assert "robot.sdf:1: file: 'sun.sdf' is not a model and is ignored" in str(robot.notes)


def test_merged_parts_are_those_of_the_model(saved: Saved) -> None:
    """Parts of merged models get no prefix; `__model__` is the frame of their own model."""
    robot = chasles.load(saved(MERGED))
    assert robot.bodies == ("world", "base", "finger", "palm", "shank", "bit::edge")
    with raises("E-SDF-025", "'shank'"):
        chasles.load(saved(MERGED.replace('"base"', '"shank"')))
    assert robot.frames[-5:] == ("grip", "flange", "_merged__tool__model__", "bit::point", "work")


# Refusals --------------------------------------------------------------------------------------

REFUSED = {
    "no version": (ARM.replace(' version="1.9"', ""), ":1: file: sdf has no version"),
    "odd version": (
        ARM.replace("1.9", "two"),
        ":1: file: version is 'two'; give a version such as 1.9",
    ),
    "not sdf": (
        "<robot/>",
        ":1: file: the root element is <robot>, not <sdf>; use <sdf> as the root element",
    ),
    "no links": ("<sdf version='1.9'><model name='m'/></sdf>", ": the model has no links"),
    "pose": (ARM.replace("0.1 0.2 0.3 0.1", "0.1 0.2 0.3"), ":2: model 'arm': pose is '0.1 0.2"),
    "frame": (
        ARM.replace('relative_to="mount"', 'relative_to="mont"'),
        ":19: joint 'shoulder': there is no frame 'mont' in this scope; did you mean 'mount'?",
    ),
    "link": (
        ARM.replace("<child>upper</child>", "<child>uper</child>"),
        ":20: joint 'shoulder': there is no frame 'uper' in this scope; did you mean 'upper'?",
    ),
    "circle of poses": (
        ARM.replace('relative_to="upper"', 'relative_to="slider"'),
        "the pose depends on itself through",
    ),
    "circle of frames": (
        chain("<frame name='f' attached_to='g'/><frame name='g' attached_to='f'/>", links="a"),
        ":3: frame 'f': the frame depends on itself through 'f'; name another frame",
    ),
    "same name": (chain("<frame name='a'/>", links="a"), "has a link with the same name; rename"),
    "type": (chain(joint("j", "ab", "belt")), ": joint 'j': type 'belt' is not supported"),
    "gearbox": (
        chain(joint("ab", "ab") + gearbox("bc", "a"), links="abc"),
        ": joint 'g': no revolute joint parallel to <axis2> connects 'c' and 'a'; add such a",
    ),
    "gearbox without reference": (
        chain(joint("ab", "ab") + joint("g", "ab", "gearbox"), links="ab"),
        ": joint 'g': there is no <gearbox_reference_body>; add one",
    ),
    "gearbox of a loop": (
        chain(joint("ab", "ab") + joint("ac", "ac") + joint("bc", "bc") + gearbox("ca", "b")),
        ": coupling 'g': ",
    ),
    "itself": (chain(joint("j", "bb")), ": joint 'j': it connects a link to itself"),
    "child": (
        chain("<joint name='j' type='ball'><parent>a</parent><child>world</child></joint>"),
        ": joint 'j': its child is the world; name a link of the model as its child",
    ),
    "axis": (
        chain(joint("j", "ab").replace("0 1 0", "0 0 0")),
        ": joint 'j': axis has zero length; give a unit vector",
    ),
    "no axis": (
        chain("<joint name='j' type='screw'><parent>a</parent><child>b</child></joint>"),
        ": joint 'j': there is no <axis>; add one",
    ),
    "auto": (ARM.replace("<inertial>", "<inertial auto='true'>"), "there is no <collision>"),
    "density": (
        ARM.replace("<inertial>", "<inertial auto='true'>").replace(
            "</inertial>",
            "</inertial><collision name='c'><density>-1</density><geometry><sphere>"
            "<radius>1</radius></sphere></geometry></collision>",
        ),
        "density is -1; give a positive number",
    ),
    "uri": (
        chain("<include><uri>model://arm</uri></include>"),
        "'model://arm' is neither in a parent folder of the file nor in the folders listed in",
    ),
    "http": (
        chain("<include><uri>https://x.org/arm</uri></include>"),
        "'https://x.org/arm' is not a local file; download the model and give its path",
    ),
    "merged into a world": (
        "<sdf version='1.9'><world name='w'><include merge='true'>"
        "<uri>tool/tool.sdf</uri></include></world></sdf>",
        ":1: file: 'tool/tool.sdf' has links, which cannot be merged into a world; omit `merge`",
    ),
    "placement without a pose": (
        chain(
            "<include><uri>model://gripper</uri><placement_frame>grip</placement_frame></include>"
        ),
        "placement_frame is given without a <pose>; add a <pose>",
    ),
    "absent": (
        chain("<include><uri>nowhere.sdf</uri></include>"),
        "cannot include 'nowhere.sdf': ",
    ),
    "itself included": (
        chain("<include><uri>robot.sdf</uri></include>"),
        "'robot.sdf' includes itself; remove one <include>",
    ),
    "reserved": (chain(link("__b__"), links="a"), "SDF reserves this name; rename it"),
    "mimic": (
        chain(joint("ab", "ab", axis="<mimic joint='a'/>")),
        "<mimic> must refer to the first axis of a joint",
    ),
    "worlds": (
        "<sdf version='1.9'><world name='a'/><world name='b'/></sdf>",
        "this is the second <world> of the file; keep one",
    ),
    "truth": (ARM.replace("<pose>", "<static>perhaps</static><pose>", 1), "static is 'perhaps'"),
    "number": (ARM.replace("1.5</mass>", "heavy</mass>"), "mass is 'heavy'; give a finite number"),
    "entity": (
        "<!DOCTYPE sdf [<!ENTITY a 'b'>]><sdf version='1.9'/>",
        "document type declarations",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_reason(name: str, saved: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    text, message = REFUSED[name]
    path = saved(text)
    monkeypatch.chdir(path.parent)
    with pytest.raises(ModelError) as caught:
        chasles.load("robot.sdf")
    assert str(caught.value).startswith("robot.sdf:")
    assert message in str(caught.value)


def test_files_that_include_each_other_without_end_are_refused(
    saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten files that each include the next file ten times exceed the limit."""
    monkeypatch.setattr(sdf_document, "MAX_PARTS", 1000)
    for k in range(10):
        names = "".join(
            f"<include><uri>f{k + 1}.sdf</uri><name>n{i}</name></include>" for i in range(10)
        )
        saved(f"<sdf version='1.9'><model name='m'>{names}</model></sdf>", f"f{k}.sdf")
    last = saved(f"<sdf version='1.9'><model name='m'>{link('a')}</model></sdf>", "f10.sdf")
    with raises("E-SDF-012", "1000"):
        sdf.read(last.with_name("f0.sdf"))


def test_deep_nesting_is_refused(saved: Saved) -> None:
    deep = "<model name='m'>" * 60 + INERTIAL + "</model>" * 60
    with raises("E-SDF-018", "40"):
        sdf.read(saved(f"<sdf version='1.9'>{deep}</sdf>"))
