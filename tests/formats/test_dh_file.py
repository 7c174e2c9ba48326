"""Denavit-Hartenberg tables as TOML files: meaning, units, and bad files."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import close, raises

import chasles
from chasles import formats
from chasles.formats import dh, files
from chasles.formats.toml_file import Lines
from chasles.model import ModelError, build
from chasles.robots import general_chain, puma560, quadruped, stanford_arm

ARM = """\
format = "dh"
convention = "modified"
gravity = [0, 0, -9.8]

[units]
angle = "deg"
length = "mm"
mass = "g"

[base]
position = [100, 0, 500]
rpy = [0, 90, 0]

[[joint]]
theta = 30
d = 120.0
a = 0
alpha = 90
mass = 1500
center = [10, 0, -20]
inertia = [2e6, 3e6, 4e6]
limits = [-180, 90]
velocity = 360
effort = 20

[[joint]]
kind = "prismatic"
name = "slide"
link = "boom"
theta = 0
d = 0
a = 250
alpha = -90
mass = 800
inertia = [1e6, 1e6, 5e5, 0, 1e3, 0]
limits = [0, 300]
velocity = 500
damping = 2.5
"""
"""Keys are in lines 1-3, units in 5-8, the base in 10-12, joints from lines 14 and 26."""

Write = Callable[[str | bytes], Path]


@pytest.fixture
def file(tmp_path: Path) -> Write:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "arm.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# Meaning ---------------------------------------------------------------------------------------


def test_the_file_says_what_the_rows_say(file: Write) -> None:
    """The file describes the same robot as rows in SI units."""
    path = file(ARM)
    robot = chasles.load(path)
    quarter = math.pi / 2.0
    rows = [
        chasles.DHRow(
            math.pi / 6.0,
            0.12,
            0.0,
            quarter,
            mass=1.5,
            center=(0.01, 0.0, -0.02),
            inertia=(2e-3, 3e-3, 4e-3),
            limits=(-math.pi, quarter),
            velocity=2.0 * math.pi,
            effort=20.0,
        ),
        chasles.DHRow(
            0.0,
            0.0,
            0.25,
            -quarter,
            "prismatic",
            mass=0.8,
            inertia=(1e-3, 1e-3, 5e-4, 0.0, 1e-6, 0.0),
            limits=(0.0, 0.3),
            velocity=0.5,
            damping=2.5,
            name="slide",
            link="boom",
        ),
    ]
    base = [[0, 0, 1, 0.1], [0, 1, 0, 0], [-1, 0, 0, 0.5], [0, 0, 0, 1]]
    same = chasles.from_dh(rows, convention="modified", base=base, gravity=(0, 0, -9.8))
    assert robot.name == "arm"
    assert robot.joints == ("joint1", "slide")
    assert robot.frames == same.frames == ("base", "link1", "boom", "dh1", "dh2", "tool")
    q, qd, qdd = np.random.default_rng(1).normal(size=(3, 2))
    close(robot.forward_kinematics(q, frame="base"), base, 1e-15)
    for frame in ("dh1", "dh2", "tool"):
        expected = same.forward_kinematics(q, frame=frame)
        close(robot.forward_kinematics(q, frame=frame), expected, 1e-15)
    tau = same.inverse_dynamics(q, qd, qdd, dissipation=True)
    close(robot.inverse_dynamics(q, qd, qdd, dissipation=True), tau, 1e-14)
    for name in robot.joints:
        limits = vars(robot.joint(name).limits)
        close(list(limits.values())[:3], list(vars(same.joint(name).limits).values())[:3], 1e-15)
    assert [robot.joint(name).where for name in robot.joints] == [f"{path}:{k}" for k in (14, 26)]


SCREW = """\
[[joint]]
kind = "helical"
pitch = 5
theta = 10
d = 20
a = 30
alpha = 0
mass = 500
inertia = [1e6, 1e6, 1e6]
limits = [-90, 90]

[[joint]]
kind = "cylindrical"
theta = -20
d = 40
a = 0
alpha = 90
mass = 500
inertia = [1e6, 1e6, 1e6]
"""


def test_screws_and_cylinders_in_units(file: Write, tmp_path: Path) -> None:
    """Pitch is a length in the file's unit per radian; a file in SI units reads back the same."""
    robot = chasles.load(file(ARM + SCREW))
    rows = [
        *(chasles.to_dh(chasles.load(file(ARM)), convention="modified").rows),
        chasles.DHRow(
            *(math.radians(10.0), 0.02, 0.03, 0.0, "helical"),
            pitch=0.005,
            mass=0.5,
            inertia=(1e-3, 1e-3, 1e-3),
        ),
        chasles.DHRow(
            *(math.radians(-20.0), 0.04, 0.0, math.pi / 2.0, "cylindrical"),
            mass=0.5,
            inertia=(1e-3, 1e-3, 1e-3),
        ),
    ]
    base = robot.forward_kinematics(robot.neutral(), "base")
    plain = chasles.from_dh(rows, convention="modified", base=base, gravity=(0.0, 0.0, -9.8))
    q, qd, qdd = np.random.default_rng(1).normal(size=(3, 5))
    close(robot.forward_kinematics(q, "dh4"), plain.forward_kinematics(q, "dh4"), 1e-14)
    close(robot.inverse_dynamics(q, qd, qdd), plain.inverse_dynamics(q, qd, qdd), 1e-12)
    close(robot.limits.upper[2:], [math.pi / 2.0, np.inf, np.inf], 1e-15)
    dh.write(robot.model.source, tmp_path / "again.toml")
    again = chasles.load(tmp_path / "again.toml")
    close(again.inverse_dynamics(q, qd, qdd), plain.inverse_dynamics(q, qd, qdd), 1e-12)
    for line, code in (("pitch = 1", "E-DH-340"), ("limits = [0, 1]", "E-DH-341")):
        with raises(f"{code} arm.toml:50: joint 4"):
            chasles.load(file(ARM + SCREW + line + "\n"))


def test_inertia_about_the_frame(file: Write) -> None:
    """`inertia_about` can be set at the top for all rows, or in a single row."""
    at_top = ARM.replace("gravity", 'inertia_about = "frame"\ngravity')
    first, second = (
        chasles.to_dh(chasles.load(file(text))).rows[0]
        for text in (at_top, ARM.replace("mass = 1500", 'mass = 1500\ninertia_about = "frame"'))
    )
    assert first == second
    m, (x, y, z) = 1.5, (0.01, 0.0, -0.02)
    moved = [2e-3 - m * (y * y + z * z), 3e-3 - m * (x * x + z * z), 4e-3 - m * (x * x + y * y)]
    close(first.inertia[:3], moved, 1e-14)


def test_radians_with_few_digits_mean_right_angles(file: Write) -> None:
    text = ARM.replace('angle = "deg"', "").replace("alpha = 90", "alpha = 1.5708")
    path = file(text.replace("[-180, 90]", "[-inf, 3.14159]").replace("90, 0]", "0, 0]"))
    robot = chasles.load(path)
    assert chasles.to_dh(robot).rows[0].alpha == math.pi / 2.0
    assert f"{path}:18: joint 1: alpha 1.5708 taken as pi/2" in robot.notes
    assert robot.joint("joint1").limits.upper == math.pi
    exact = chasles.to_dh(chasles.load(path, snap=False)).rows[0]
    assert exact.alpha == pytest.approx(1.5708, rel=1e-15)


def test_a_table_without_masses_has_kinematics_only(file: Write) -> None:
    robot = chasles.load(
        file('format = "dh"\nconvention = "standard"\njoint = [{theta=0, d=1, a=2, alpha=0}]\n')
    )
    close(robot.forward_kinematics([0.0], frame="dh1")[:3, 3], [2.0, 0.0, 1.0], 1e-15)
    with raises("E-CALL-065", "mass_matrix"):
        robot.mass_matrix([0.0])


# Writing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("convention", ["modified", "standard"])
@pytest.mark.parametrize("make", [puma560, stanford_arm, lambda: general_chain(5)])
def test_what_is_written_reads_back(
    make: Callable[[], chasles.Robot], convention: Any, tmp_path: Path
) -> None:
    robot, path = make(), tmp_path / "copy.toml"
    dh.write(robot.model.source, path, convention=convention)
    again = chasles.load(path)
    table, copy = (chasles.to_dh(r, convention=convention) for r in (robot, again))
    for a, b in zip(table.rows, copy.rows, strict=True):
        for field in ("kind", "limits", "effort", "armature", "damping", "friction", "link"):
            assert getattr(a, field) == getattr(b, field)
    q, qd, qdd = np.random.default_rng(2).normal(size=(3, robot.nv))
    tau = robot.inverse_dynamics(q, qd, qdd, dissipation=True)
    close(again.inverse_dynamics(q, qd, qdd, dissipation=True), tau, 1e-12)
    tip = robot.forward_kinematics(q, frame="tool")
    close(again.forward_kinematics(q, frame="tool"), tip, 1e-13)


def test_odd_names_and_angles_survive(tmp_path: Path) -> None:
    """Odd characters in names and angles close to right angles are preserved."""
    path, name = tmp_path / "odd.toml", 'a "b" \\ \n \x7f \u00e9 \U0001f980'
    bounds = (-1.5708, 3.1416)
    row = chasles.DHRow(
        1.5707, 0.1, 0.2, 3.1415, mass=1.0, inertia=(1, 1, 1), name=name, limits=bounds
    )
    robot = chasles.from_dh([row], convention="standard", name=name, tool=np.eye(4))
    dh.write(robot.model.source, path, convention="standard")
    again = chasles.load(path)
    assert (again.name, again.joints) == (name, (name,))
    assert again.notes == ()
    copy = chasles.to_dh(again, convention="standard").rows[0]
    assert (copy.theta, copy.alpha) == pytest.approx((1.5707, 3.1415), rel=1e-14)
    assert copy.limits == bounds


def test_what_is_no_serial_arm_cannot_be_written(tmp_path: Path) -> None:
    with raises("E-DH-010"):
        dh.write(quadruped().model.source, tmp_path / "no.toml")
    assert not (tmp_path / "no.toml").exists()


# Bad files -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('format = "dh"', "", None, "E-TOML-018"),
        ('format = "dh"', 'format = "urdf"', 1, "E-TOML-018"),
        ('convention = "modified"\n', "", 1, "E-TOML-002"),
        ('"modified"', '"proximal"', 2, "E-DH-006 convention is 'proximal'"),
        ("gravity", "gravitation", 3, "E-TOML-015 'gravitation'"),
        ("[0, 0, -9.8]", "[0, 0]", 3, "E-DH-006"),
        ("[0, 0, -9.8]", "[0, 0, nan]", 3, "E-DH-006"),
        ("[0, 0, -9.8]", "[0, 0, -9.8", 5, "E-TOML-017"),
        ('"deg"', '"grad"', 6, "E-DH-006 angle is 'grad'"),
        ('"deg"', '"deg', 6, "E-TOML-017"),
        ("length =", "lenght =", 7, "E-TOML-015 'lenght'"),
        ("[units]", "units = 3\n[tool]", 5, "E-TOML-014"),
        ("position = [100", "position = [true", 11, "E-DH-006"),
        ("rpy", "quaternion", 12, "E-TOML-015 'quaternion'"),
        ("theta = 30", "theta = 30\ntheta = 31", 16, "E-TOML-017"),
        ("theta = 30", "", 14, "E-DH-002"),
        ("theta = 30", 'theta = "30"', 15, "E-DH-006 theta is '30'"),
        ("theta = 30", "theta = nan", 15, "E-DH-006 theta is nan"),
        ("theta = 30", "theta = 1e200", 15, "E-DH-006 theta is 1e+200"),
        ("alpha = 90", "alfa = 90", 18, "E-TOML-015 'alfa'"),
        ("mass = 1500", "mass = -1500", 19, "E-DH-006 mass is -1500"),
        ("mass = 800", "mass = 1900-01-01", 34, "E-DH-006 mass is datetime.date"),
        ('"prismatic"', '"spherical"', 27, "E-DH-006 kind is 'spherical'"),
        ("[0, 300]", "[300, 0]", 36, "E-DH-006"),
        ("1e6, 1e6, 5e5, 0,", "1e6, 1e6, 0,", 35, "E-DH-006"),
        ("mass = 800", "mass = 800\nwhere = 'x'", 35, "E-TOML-015 'where'"),
        ("[[joint]]", "[[joints]]", None, "E-TOML-015 'joints'"),
        ('link = "boom"', 'link = "base"', None, "E-MODEL-010 'base'"),
    ],
)
def test_bad_files_are_refused_with_their_line(
    file: Write, old: str, new: str, line: int | None, message: str
) -> None:
    assert old in ARM
    path = file(ARM.replace(old, new))
    with raises(message) as caught:
        chasles.load(path)
    place = f"{path}:" if line is None else f"{path}:{line}: "
    assert str(caught.value).startswith(place)
    assert ";" in str(caught.value)
    assert len(str(caught.value)) < 300 + len(str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "E-FILE-006"),
        (b'format = "dh"\nconvention = "modified"\n', "E-TOML-003"),
        (b'format = "dh"\nconvention = "modified"\njoint = 3\n', "E-TOML-003"),
        (b'format = "dh"\nconvention = "modified"\njoint = [1]\n', "E-TOML-014"),
        (b'format = "dh"\n\xff', "E-TOML-016"),
        (b"a = " + b"[" * 5000, "E-TOML-017"),
        (b"a = " + b"1" * 5000, "E-TOML-019"),
    ],
)
def test_other_bad_files(file: Write, content: bytes, message: str) -> None:
    with raises(message):
        chasles.load(file(content))


def test_no_floating_base(file: Write) -> None:
    with raises("E-TOML-001"):
        chasles.load(file(ARM), floating=True)


def test_files_that_are_not_there_or_too_large(
    tmp_path: Path, file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raises("E-FILE-004", "does not exist"):
        chasles.load(tmp_path / "none.toml")
    monkeypatch.setattr(files, "MAX_BYTES", 50)
    with raises("E-FILE-007"):
        chasles.load(file(ARM))


def test_lines_that_are_not_sure_are_not_said() -> None:
    """A header inside a string makes headers ambiguous, so no line number is reported."""
    text = 'note = """\n[[joint]]\n"""\n[[joint]]\na = 1\n'
    assert Lines(text).of({"note": "", "joint": [{"a": 1}]}, "joint", 0, "a") is None
    plain = Lines("b = 1\r\n[[joint]] # one\r\na = 1\r\n[[joint]]\r\n'a' = 2\r\n")
    data = {"b": 1, "joint": [{"a": 1}, {"a": 2}]}
    assert [plain.of(data, "joint", i, "a") for i in (0, 1)] == [3, 5]
    assert [plain.of(data, "b"), plain.of(data, "joint", 1), plain.of(data, "c")] == [1, 4, None]


WORDS = st.sampled_from(
    [
        "[[joint]]",
        "[units]",
        "theta = 1",
        "d = nan",
        "a = [",
        "]",
        "alpha = -1e9",
        "= 3",
        "mass = 1",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(WORDS, max_size=20).map(lambda lines: "\n".join([*ARM.split("\n")[:3], *lines])),
    st.tuples(st.integers(0, len(ARM)), st.text(max_size=4)).map(
        lambda cut: ARM[: cut[0]] + cut[1] + ARM[cut[0] + 1 :]
    ),
)


@settings(max_examples=300)
@given(content=TEXTS)
def test_any_text_is_a_robot_or_an_error(
    content: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    message = f"{path}: no error"
    try:
        description = formats.read(path)
        assert description.joints
        build(description)
    except ModelError as error:
        message = str(error)
    assert message.startswith((f"{path}:", f"robot {path.stem!r}: two frames"))
