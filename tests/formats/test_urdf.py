"""URDF: reading, refusals, rounding of right angles, and agreement with Pinocchio."""

import importlib.metadata
import itertools
import math
import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import close, direct, raises

import chasles
from chasles import formats
from chasles.formats import files, urdf
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_rpy
from chasles.mathematics.spatial import Transform
from chasles.model import JOINTS, WORLD, Limits, Mimic, Model, ModelError, build
from chasles.model.description import spelled

ARM = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"/>
  <joint name="elbow" type="prismatic">
    <origin xyz="1 0 0"/>
    <parent link="upper"/>
    <child link="fore"/>
    <axis xyz="0 3 4"/>
    <limit effort="5" velocity="6" lower="-7"/>
    <mimic joint="shoulder" multiplier="2" offset="0.1"/>
  </joint>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0 0" rpy="0 0 1.5708"/>
      <mass value="2"/>
      <inertia ixx="0.1" ixy="0.01" ixz="0.02" iyy="0.2" iyz="0.03" izz="0.15"/>
    </inertial>
    <visual><geometry><mesh filename="package://nowhere/upper.stl"/></geometry></visual>
  </link>
  <link name="fore">
    <inertial>
      <mass value="1e0"/>
      <inertia ixx=".1" ixy="0" ixz="0" iyy="+0.1" iyz="0" izz="1.E-1"/>
    </inertial>
  </link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute">
    <origin xyz="0 0 0.5" rpy="1.5708 0 0"/>
    <parent link="base"/>
    <child link="upper"/>
    <limit lower="-1" upper="1" velocity="2" effort="3"/>
    <dynamics damping="0.5" friction="0.25"/>
  </joint>
  <joint name="wrist" type="fixed">
    <parent link="fore"/>
    <child link="tool"/>
    <axis xyz="0 0 0"/>
  </joint>
  <transmission name="t"><joint name="shoulder"/></transmission>
  <gazebo><link name="base"/></gazebo>
</robot>
"""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return a function that writes arm.urdf into the working folder; messages begin with it."""
    monkeypatch.chdir(tmp_path)

    def write_text(text: str) -> Path:
        path = Path("arm.urdf")
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


# Reading ---------------------------------------------------------------------------------------


def test_links_and_joints_keep_the_order_of_the_file(write: Write) -> None:
    robot = urdf.read(write(ARM))
    assert (robot.name, robot.where) == ("arm", "arm.urdf")
    assert [link.name for link in robot.links] == ["base", "upper", "fore", "tool"]
    assert [joint.name for joint in robot.joints] == ["elbow", "shoulder", "wrist"]
    assert [joint.where for joint in robot.joints] == ["arm.urdf:4", "arm.urdf:27", "arm.urdf:34"]
    assert build(robot, mimic=False).nv == 2


def test_what_a_joint_says(write: Write) -> None:
    elbow, shoulder, wrist = urdf.read(write(ARM)).joints
    assert (elbow.kind, elbow.parent, elbow.child) == ("prismatic", "upper", "fore")
    assert elbow.pose.r == Vector.of(1.0, 0.0, 0.0)
    assert elbow.axis == Vector.of(0.0, 0.6, 0.8)
    assert elbow.mimic == Mimic("shoulder", 2.0, 0.1)
    assert shoulder.axis == Vector.of(1.0, 0.0, 0.0)
    assert shoulder.limits == Limits(-1.0, 1.0, 2.0, 3.0)
    assert (shoulder.damping, shoulder.friction) == (0.5, 0.25)
    assert wrist.kind == "fixed"


MOTORS = """<robot name="motors" xmlns:drake="http://drake.mit.edu">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.1 0 0.3"/><mass value="2"/>
    <inertia ixx="0.1" ixy="0.01" ixz="0.02" iyy="0.2" iyz="0.03" izz="0.15"/></inertial></link>
  <link name="fore"><inertial><origin xyz="0 0.2 0.1"/><mass value="1"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <link name="tip"><inertial><origin xyz="0 0 0.1"/><mass value="0.5"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <joint name="a" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0.6 0.8"/>
    <limit lower="-1" upper="1" velocity="2" effort="3"/></joint>
  <joint name="b" type="prismatic"><parent link="upper"/><child link="fore"/><axis xyz="1 0 0"/>
    <origin xyz="0 0 0.5"/><limit lower="-1" upper="1" velocity="2" effort="3"/></joint>
  <joint name="c" type="continuous"><parent link="fore"/><child link="tip"/><axis xyz="0 1 0"/>
    <origin xyz="0 0.3 0"/><limit velocity="2" effort="0"/></joint>
  <transmission name="one"><type>transmission_interface/SimpleTransmission</type><joint name="a"/>
    <actuator name="m1"><drake:rotor_inertia value="0.002"/><drake:gear_ratio value="-30"/>
    </actuator></transmission>
  <transmission type="SimpleTransmission" name="two"><joint name="b"/>
    <actuator name="m2"><drake:rotor_inertia value="0.7"/></actuator></transmission>
  <transmission name="three"><type>SimpleTransmission</type><joint name="c"/>
    <actuator name="m3"><drake:rotor_inertia value="5"/></actuator></transmission>
</robot>"""

BY_DRAKE = [
    [2.37639713070083, 0.25294526561853464, 0.06142922043842733],
    [0.25294526561853464, 2.2, 0.038242109364224425],
    [0.06142922043842733, 0.038242109364224425, 0.10500000000000002],
]
"""CalcMassMatrix of pydrake 1.51 at q = (0.3, -0.2, 0.7), with the base welded to the world."""


def test_rotors_of_transmissions_are_armature(write: Write) -> None:
    """Armature is inertia times squared gear ratio, or zero for zero effort limits, as in Drake."""
    source = formats.read(write(MOTORS))
    assert [joint.armature for joint in source.joints] == [1.8, 0.7, 0.0]
    assert any("joint 'c': drake:rotor_inertia is ignored" in note for note in source.notes)
    M = direct(build(source), "mass_matrix", [0.3, -0.2, 0.7])
    close(M, BY_DRAKE, 1e-14)
    for old, new in (
        ("SimpleTransmission", "Differential"),
        ('joint name="a"/', 'joint name="x"/'),
    ):
        assert formats.read(write(MOTORS.replace(old, new))).joints[0].armature == 0.0


def test_an_inertia_turns_with_its_origin_and_moves_to_the_link(write: Write) -> None:
    base, upper, fore, _ = (link.inertia for link in urdf.read(write(ARM)).links)
    assert not any((base.m, *base.h, *base.I))
    assert (upper.m, *upper.h) == (2.0, 0.2, 0.0, 0.0)
    # A rotation by pi/2 about z swaps x and y. The parallel-axis theorem then adds m c^2 = 0.02
    # about y and z.
    expected = (0.2, 0.1 + 0.02, 0.15 + 0.02, -0.01, -0.03, 0.02)
    assert tuple(upper.I) == pytest.approx(expected, rel=1e-15)
    assert tuple(fore.I) == (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)


def test_limits_that_are_absent(write: Write) -> None:
    robot = urdf.read(write(ARM))
    assert robot.joints[0].limits == Limits(-7.0, 0.0, 6.0, 5.0)
    assert "arm.urdf:9: joint 'elbow': no upper limit is given; 0 is used" in robot.notes
    without = re.sub("<limit.*/>", "", ARM)
    robot = urdf.read(write(without))
    assert robot.joints[0].limits == robot.joints[1].limits == Limits()
    assert (
        "arm.urdf:4: joint 'elbow': no limit is given; the joint is taken as unbounded"
        in robot.notes
    )
    continuous = ARM.replace('"revolute"', '"continuous"')
    assert urdf.read(write(continuous)).joints[1].limits == Limits(velocity=2.0, effort=3.0)


@pytest.mark.parametrize("suffix", [".urdf", ".sdf"])
def test_limits_in_degrees_are_noted(tmp_path: Path, suffix: str) -> None:
    """Lengths, and the large limits of a joint that turns freely, are not angles in degrees."""
    bounds = {"wrong": ("revolute", 90), "long": ("prismatic", 90), "free": ("revolute", 10000)}
    limit = '<limit lower="-{0}" upper="{0}" effort="1" velocity="1"/>'
    names, text = list(bounds), '<robot name="arm"><link name="base"/>'
    for parent, name in zip(["base", *names], names, strict=False):
        kind, most = bounds[name]
        text += f'<link name="{name}"/><joint name="{name}_joint" type="{kind}">'
        text += f'<parent link="{parent}"/><child link="{name}"/>{limit.format(most)}</joint>'
    path = tmp_path / "arm.urdf"
    path.write_text(f"{text}</robot>")
    if suffix == ".sdf":
        chasles.save(chasles.load(path), path := path.with_suffix(suffix))
    (note,) = (note for note in chasles.load(path).notes if "like degrees" in note)
    assert "'wrong_joint': limits -90 to 90 rad look like degrees; give radians" in note


def test_every_joint_type_can_be_read(write: Write) -> None:
    kinds = {}
    for name in spelled("URDF", own=True):
        text = ARM.replace('type="revolute"', f'type="{name}" pitch="0.01" radius="0.1"')
        joint = urdf.read(write(text)).joints[1]
        kinds[name] = joint.kind
        assert joint.pitch == (0.01 if name == "helical" else 0.0)
        assert joint.radius == (0.1 if name in ("rack_and_pinion", "rolling") else 0.0)
    assert set(kinds.values()) == {"fixed", *JOINTS}
    assert kinds["floating"] == "free"


def test_the_second_axis_of_a_universal_joint(write: Write) -> None:
    text = ARM.replace('"revolute">', '"universal"><axis xyz="0 1 0"/><axis2 xyz="0 0 2"/>')
    joint = urdf.read(write(text)).joints[1]
    assert (joint.axis, joint.second_axis) == (Vector.of(0.0, 1.0, 0.0), Vector.of(0.0, 0.0, 1.0))


def test_a_robot_without_a_name_has_that_of_its_file(write: Write) -> None:
    assert urdf.read(write(ARM.replace(' name="arm"', ""))).name == "arm"


def test_a_default_namespace_changes_nothing(write: Write) -> None:
    plain = urdf.read(write(ARM))
    named = ARM.replace('name="arm"', 'name="arm" xmlns="http://example.org/urdf"')
    assert urdf.read(write(named)) == plain


def test_floating_puts_the_root_on_a_free_joint(write: Write) -> None:
    fixed = urdf.read(write(ARM))
    free = urdf.read(write(ARM), floating=True)
    assert free.joints[1:] == fixed.joints
    root = free.joints[0]
    assert (root.name, root.kind, root.parent, root.child) == ("root_joint", "free", None, "base")
    taken = ARM.replace('"wrist"', '"root_joint"').replace('"elbow"', '"root_joint_1"')
    assert urdf.read(write(taken), floating=True).joints[0].name == "root_joint_2"


def test_floating_leaves_several_roots_to_build(write: Write) -> None:
    robot = urdf.read(write(ARM.replace("</robot>", '<link name="lost"/></robot>')), floating=True)
    with raises("E-MODEL-008", "'base'", "'lost'"):
        build(robot)


def test_the_suffix_chooses_the_reader(write: Write) -> None:
    path = write(ARM)
    assert formats.read(path, snap=False) == urdf.read(path, snap=False)
    assert formats.read(path, floating=True) == urdf.read(str(path), floating=True)
    with raises("E-FILE-003", "'.dae'"):
        formats.read("arm.dae")


# Refusals --------------------------------------------------------------------------------------

FAULTS = [
    ('xyz="0 3 4"', 'xyz="0 0 0"', "E-XML-008 arm.urdf:8: joint 'elbow':"),
    ('xyz="0 3 4"', 'xyz="1.7e308 1.7e308 0"', "E-XML-008 arm.urdf:8: joint 'elbow':"),
    ('<axis xyz="0 3 4"/>', "<axis/>", "E-XML-006 arm.urdf:8: joint 'elbow':"),
    ('xyz="1 0 0"', 'xyz="1 0"', "E-XML-007 arm.urdf:5: joint 'elbow':"),
    ('xyz="1 0 0"', 'xyz="1 0 0 0"', "E-XML-007 arm.urdf:5: joint 'elbow':"),
    ('xyz="1 0 0"', 'xyz="1 0 nan"', "E-XML-007 arm.urdf:5: joint 'elbow':"),
    ('xyz="1 0 0"', 'xyz="1e999 0 0"', "E-XML-007 arm.urdf:5: joint 'elbow':"),
    ('xyz="1 0 0"', 'xyz="${x} 0 0"', "E-XML-007 arm.urdf:5: joint 'elbow':"),
    ('xyz="1 0 0"', 'xyz=" "', "E-XML-007 arm.urdf:5: joint 'elbow':"),
    ('xyz="1 0 0"', 'xyz="0x1 0 0"', "E-XML-007 arm.urdf:5: joint 'elbow':"),
    ('xyz="1 0 0"', f'xyz="{"1" * 99}x 0 0"', "E-XML-007 arm.urdf:5: joint 'elbow':"),
    ('rpy="0 0 1.5708"', 'rpy="0 0 1_5"', "E-XML-007 arm.urdf:14: link 'upper':"),
    ('value="2"', 'value="2,5"', "E-XML-007 arm.urdf:15: link 'upper':"),
    ('<parent link="upper"/>', "", "E-XML-005 arm.urdf:4: joint 'elbow':"),
    ('<child link="fore"/>', "<child/>", "E-XML-006 arm.urdf:7: joint 'elbow':"),
    ('"prismatic"', '"sliding"', "E-URDF-004 arm.urdf:4: joint 'elbow':"),
    ('"prismatic"', '"helical"', "E-XML-006 arm.urdf:4: joint 'elbow':"),
    (' type="prismatic"', "", "E-XML-006 arm.urdf:4: joint 'elbow':"),
    ('joint name="elbow"', "joint", "E-XML-006 arm.urdf:4: robot:"),
    ('<link name="base"/>', '<link name=""/>', "E-XML-006 arm.urdf:3: robot:"),
    ('mimic joint="shoulder"', "mimic", "E-XML-006 arm.urdf:10: joint 'elbow':"),
    ('damping="0.5"', 'damping="low"', "E-XML-007 arm.urdf:32: joint 'shoulder':"),
    ('lower="-7"', 'lower="-inf"', "E-XML-007 arm.urdf:9: joint 'elbow':"),
    ('"wrist"', '"elbow"', "E-URDF-003 arm.urdf:34: joint 'elbow':"),
    ('"tool"/>', '"base"/>', "E-URDF-003 arm.urdf:26: link 'base':"),
]


@pytest.mark.parametrize(("old", "new", "message"), FAULTS, ids=[fault[2] for fault in FAULTS])
def test_a_fault_is_named_with_its_place(write: Write, old: str, new: str, message: str) -> None:
    assert old in ARM
    path = write(ARM.replace(old, new, 1))
    with raises(message):
        urdf.read(path)


def test_what_build_refuses_has_its_line_too(write: Write) -> None:
    path = write(ARM.replace('<parent link="fore"/>', '<parent link="four"/>'))
    with raises("E-MODEL-006", "34", "'wrist'", "'four'"):
        build(urdf.read(path))


LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
DOCUMENTS = {
    "empty": (" \n", "E-FILE-006 arm.urdf:"),
    "text": ("robot", "E-XML-001 arm.urdf:1: invalid XML:"),
    "cut": (ARM[:-9], "E-XML-001 arm.urdf:41: invalid XML:"),
    "mismatch": ("<robot>\n</link>", "E-XML-001 arm.urdf:2: invalid XML:"),
    "root": ("\n<sdf/>", "E-URDF-001 arm.urdf:2:"),
    "deep": ("<robot>" * 10**5, "E-XML-001 arm.urdf:1: invalid XML:"),
    "undeclared": ("<robot>&a;</robot>", "E-XML-001 arm.urdf:1: invalid XML:"),
    "doctype": ("\n<!DOCTYPE robot><robot/>", "E-XML-003 arm.urdf:2:"),
    "laughs": (
        f'<!DOCTYPE robot [<!ENTITY l0 "ha">{LAUGHS}]><robot name="&l9;">&l9;</robot>',
        "E-XML-003 arm.urdf:1:",
    ),
    "itself": (
        '<?xml version="1.0"?>\n<!DOCTYPE robot [<!ENTITY a "&a;">]><robot name="&a;"/>',
        "E-XML-003 arm.urdf:2:",
    ),
    "external": (
        '<!DOCTYPE robot [<!ENTITY a SYSTEM "secret.txt">]><robot name="x">&a;</robot>',
        "E-XML-003 arm.urdf:1:",
    ),
    "external type": (
        '<!DOCTYPE robot SYSTEM "http://example.org/robot.dtd"><robot/>',
        "E-XML-003 arm.urdf:1:",
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_that_is_not_a_robot(write: Write, name: str) -> None:
    text, message = DOCUMENTS[name]
    Path(write(text).parent, "secret.txt").write_text("secret")
    with raises(message) as caught:
        urdf.read("arm.urdf")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["laughs", "external"])
def test_entities_do_not_hide_in_another_encoding(tmp_path: Path, name: str) -> None:
    path = tmp_path / "arm.urdf"
    path.write_bytes(DOCUMENTS[name][0].encode("utf-16"))
    with raises("E-XML-001|E-XML-003"):  # refused here, or earlier by the parser
        urdf.read(path)


def test_a_comment_about_document_types_is_harmless(write: Write) -> None:
    text = ARM.replace("</robot>", "<!-- no <!DOCTYPE robot> here --><?editor x?></robot>")
    assert urdf.read(write(text)) == urdf.read(write(ARM))


def test_paths_that_are_not_files(tmp_path: Path) -> None:
    with raises("E-FILE-004", "does not exist"):
        urdf.read(tmp_path / "none.urdf")
    with raises("E-FILE-004", "the path is a"):
        urdf.read(tmp_path)
    with raises("E-FILE-004", "does not exist"):
        urdf.read("a\0b.urdf")
    (tmp_path / "broken.urdf").symlink_to(tmp_path / "none.urdf")
    with raises("E-FILE-004"):
        urdf.read(tmp_path / "broken.urdf")


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.urdf"
    with path.open("wb") as stream:
        stream.truncate(2**30)
    start = time.process_time()
    with raises("E-FILE-007", "1024", "64"):
        urdf.read(path)
    assert time.process_time() - start < 0.1


def test_a_long_bad_number_takes_linear_time(write: Write) -> None:
    path = write(ARM.replace('value="2"', f'value="{"2" * 10**6}x"'))
    start = time.process_time()
    with raises("E-XML-007", "222"):
        urdf.read(path)
    assert time.process_time() - start < 5.0


PIECES = st.sampled_from(
    [
        *('"', "<", ">", "/>", "&a;", "&#0;", "<!--", "]]>", "<!ENTITY", "<?x?>", "\0", "\ufffe"),
        *("nan", "1e999", "1e308", "-0", "", "1.5708", "planar", "universal", "floating", "é"),
        *re.findall(r"<[^>]*>|\"[^\"]*\"", ARM),
    ]
)
SPOTS = [match.span() for match in re.finditer(r"<[^>]*>|\"[^\"]*\"|[\d.]+|\w+", ARM)]
EDITS = st.tuples(
    st.sampled_from(SPOTS)
    | st.tuples(st.integers(0, len(ARM)), st.integers(0, 9)).map(lambda e: (e[0], sum(e))),
    PIECES,
)


def refused(path: Path, *, floating: bool) -> str | None:
    """Return the message with which a file is refused, or None."""
    try:
        urdf.read(path, floating=floating)
    except ModelError as error:
        return str(error)
    return None


@settings(max_examples=400, deadline=None)
@given(edits=st.lists(EDITS, min_size=1, max_size=3), floating=st.booleans())
def test_a_mutated_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    edits: list[tuple[tuple[int, int], str]],
    floating: bool,
) -> None:
    text = ARM
    for (start, stop), piece in sorted(edits, reverse=True):
        text = text[:start] + piece + text[stop:]
    path = tmp_path_factory.getbasetemp() / "mutated.urdf"
    path.write_bytes(text.encode())
    refusal = refused(path, floating=floating)
    assert refusal is None or refusal.startswith(f"{path}:")


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.urdf"
    path.write_bytes(content)
    with pytest.raises(ModelError):
        urdf.read(path)


# Right angles ----------------------------------------------------------------------------------


def turned(write: Write, rpy: str, *, snap: bool = True) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the orientation of the elbow for the given angles, and the notes about them."""
    path = write(ARM.replace('<origin xyz="1 0 0"/>', f'<origin rpy="{rpy}"/>'))
    robot = urdf.read(path, snap=snap)
    notes = tuple(note for note in robot.notes if "'elbow': angle" in note)
    return np.array(robot.joints[0].pose.R.rows, dtype=float), notes


MEANT = {
    "1.5708": 1, "1.5707": 1, "1.57079": 1, "-1.57079632679": -1, "1.5707963268": 1,
    "3.1415": 2, "3.1416": 2, "-3.14159": -2, "3.141593": 2, "4.71238898038": 3, "-4.7124": -3,
    "6.2832": 4, "6.2831853": 4, "7.854": 0, "7.8540": 5, "12.566": 8, "15.708": 0,
    "15708e-4": 1, "+0.15708E+01": 1, "001.57080": 1, "1.5707963267948961": 0, "1.570796325": 0,
    "3.1415926535897932384626": 2, "1.57": 0, "3.142": 0, "1.571": 0, "1.5709": 0, "1.570800": 0,
    "3.14148426": 0, "0": 0, "0.00019159": 0, "1e300": 0,
}  # fmt: skip


@pytest.mark.parametrize("angle", MEANT)
def test_which_angles_mean_right_angles(write: Write, angle: str) -> None:
    k, x = MEANT[angle], float(angle)
    as_printed = [
        [1.0, 0.0, 0.0],
        [0.0, math.cos(x), -math.sin(x)],
        [0.0, math.sin(x), math.cos(x)],
    ]
    R, notes = turned(write, f"{angle} 0 0", snap=False)
    np.testing.assert_allclose(R, as_printed, atol=1e-15)
    assert notes == ()
    R, notes = turned(write, f"{angle} 0 0")
    assert bool(notes) == (k != 0 and x != k * math.pi / 2)
    if k:
        c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[k % 4]
        assert R.tolist() == [[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]]
    else:
        np.testing.assert_allclose(R, as_printed, atol=1e-15)


@given(k=st.integers(1, 8), places=st.integers(4, 16), negative=st.booleans())
def test_a_multiple_printed_at_any_length_is_recognised(
    k: int, places: int, negative: bool
) -> None:
    sign = "-" if negative else ""
    expected = -k if negative else k
    assert files.right_angles(f"{sign}{k * math.pi / 2:.{places}e}") == expected
    exact = f"{k * files.RIGHT_ANGLE:042d}"
    assert files.right_angles(f"{sign}{exact[:2]}.{exact[2 : 3 + places]}") == expected
    assert files.right_angles(f"{sign}{k * math.pi / 2!r}") == expected


def test_right_angles_give_exact_rotations(write: Write) -> None:
    for angles in itertools.product(("0", "1.5708", "-1.57079632679", "3.14159"), repeat=3):
        R, _ = turned(write, " ".join(angles))
        exact = matrix_from_rpy(*(round(float(a) / math.pi * 2) * math.pi / 2 for a in angles))
        assert set(R.flat) <= {-1.0, 0.0, 1.0}
        np.testing.assert_allclose(R, np.array(exact.rows), atol=1e-15)


def test_a_right_angle_beside_a_calibrated_one(write: Write) -> None:
    R, notes = turned(write, "1.5708 0.00012 -3.14159")
    np.testing.assert_allclose(
        R, np.array(matrix_from_rpy(math.pi / 2, 0.00012, -math.pi).rows), atol=3e-16
    )
    assert notes == (
        "arm.urdf:5: joint 'elbow': angle 1.5708 taken as pi/2",
        "arm.urdf:5: joint 'elbow': angle -3.14159 taken as -pi",
    )


def test_a_double_printed_in_full_needs_no_note(write: Write) -> None:
    R, notes = turned(write, "1.5707963267948966 -3.1415926535897931 4.71238898038469")
    assert set(R.flat) <= {-1.0, 0.0, 1.0}
    assert notes == ()


def test_notes_say_where_an_inertia_was_turned(write: Write) -> None:
    assert "arm.urdf:14: link 'upper': angle 1.5708 taken as pi/2" in urdf.read(write(ARM)).notes
    assert not any("angle" in note for note in urdf.read(write(ARM), snap=False).notes)


def test_a_joint_that_mimics_no_moving_joint_is_independent(write: Write) -> None:
    """Other readers ignore mimic relations, and load such files."""
    joints = "".join(
        f"<link name='{k}'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' "
        f"ixz='0' iyz='0'/></inertial></link><joint name='left_{k}' type='{kind}'>"
        f"<parent link='{p}'/><child link='{k}'/>{mimic}</joint>"
        for p, k, kind, mimic in (
            ("world", "a", "continuous", ""),
            ("a", "b", "continuous", "<mimic joint='left_A'/>"),
            ("b", "c", "fixed", ""),
            ("c", "d", "continuous", "<mimic joint='left_c'/>"),
        )
    )
    path = write(f"<robot name='r'><link name='world'/>{joints}</robot>")
    with pytest.warns(chasles.errors.LeftOutWarning) as found:
        robot = chasles.load(path)
    assert robot.joints == ("left_a", "left_b", "left_d")
    assert chasles.load(path, mimic=False).joints == robot.joints  # without a warning
    texts = [str(w.message) for w in found]
    assert len(texts) == 2
    assert "joint 'left_b': the mimicked joint 'left_A' does not exist" in texts[0]
    assert "did you mean 'left_a'" in texts[0]
    assert "joint 'left_d': the mimicked joint 'left_c' does not exist or is fixed" in texts[1]


# Real robots -----------------------------------------------------------------------------------

ROBOTS = sorted(
    Path(str(file.locate()))
    for file in importlib.metadata.files("example-robot-data") or ()
    if file.suffix == ".urdf"
)
REFUSED = {
    "alex_psyonic_hands.urdf": "E-MODEL-016 'index_q1'",
    "falcon.urdf": "E-MODEL-006 'Z_propeller'",
    "ur3.urdf": "E-URDF-002",
}
"""Files with mistakes, such as names without a link or a joint."""


def test_every_real_robot_is_built_or_rightly_refused() -> None:
    assert len(ROBOTS) > 50
    for path in ROBOTS:
        if path.name in REFUSED:
            with raises(REFUSED[path.name]) as caught:
                build(urdf.read(path))
            assert caught.value.file == str(path)
            assert caught.value.line is not None
        else:
            robot = urdf.read(path)
            assert build(robot).nv > 0 or not any(j.kind != "fixed" for j in robot.joints)


def frame_poses(model: Model, q: dict[str, float]) -> dict[str, Transform]:
    X = {WORLD: Transform.identity()}
    for i, p, joint, _ in model.outward():
        X[i] = joint.transform(Vector.of(q[model.bodies[i].data.name])) @ X[p]
    return {name: frame.placement @ X[frame.body] for name, frame in model.frames.items()}


def body_inertias(model: Model) -> dict[str, np.ndarray]:
    """Return mass, first moment and rotational inertia of each body in its link's frame."""
    placed = {b.data.name: model.frames[b.name].placement @ b.inertia for b in model.bodies}
    return {
        name: np.array([I.m, *I.h, *np.ravel(I.I.matrix().rows)], dtype=float)
        for name, I in placed.items()
    }


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.name)
def test_real_robots_agree_with_pinocchio(path: Path) -> None:
    if path.name in REFUSED.keys() - {"alex_psyonic_hands.urdf"}:
        pytest.skip("refused")
    pinocchio = pytest.importorskip("pinocchio")
    ours = build(urdf.read(path, snap=False), mimic=False)
    theirs = pinocchio.buildModelFromUrdf(str(path))
    data = theirs.createData()
    rng = np.random.default_rng(7)
    q = {body.data.name: rng.uniform(-2.0, 2.0) for body in ours.bodies}
    state = pinocchio.neutral(theirs)
    for name, value in q.items():
        joint = theirs.joints[theirs.getJointId(name)]
        state[joint.idx_q : joint.idx_q + joint.nq] = (
            value if joint.nq == 1 else (math.cos(value), math.sin(value))
        )
    pinocchio.framesForwardKinematics(theirs, data, state)
    for name, pose in frame_poses(ours, q).items():
        place = data.oMf[theirs.getFrameId(name, pinocchio.BODY)]
        np.testing.assert_allclose(np.array(pose.R.rows), place.rotation, atol=1e-13)
        np.testing.assert_allclose(list(pose.r), place.translation, atol=1e-13)
    for name, inertia in body_inertias(ours).items():
        I = theirs.inertias[theirs.getJointId(name)]
        expected = [I.mass, *(I.mass * I.lever), *I.matrix()[3:, 3:].ravel()]
        np.testing.assert_allclose(inertia, expected, atol=1e-13 * max(map(abs, expected)))
