"""Data files of Legnani et al.: comparison with plain NumPy, all layouts, and bad files."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from formats.serial import instant, random_links, text
from hypothesis import given, settings
from hypothesis import strategies as st
from support import close, raises

import chasles
from chasles import formats
from chasles.formats import dat, files
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import about
from chasles.mathematics.spatial import Transform
from chasles.model import Description, Mimic, ModelError, build
from chasles.robots.arms import microbot, puma560, stanford_arm

GRAVITY = np.array([0.3, -1.2, -9.7])
PLAIN = """3
0 0.1 0.4 0 0.3 1.5708
2.0 0.02 0 0 0.03 0 0.04
-0.1 0 0
1 0 0.5 0 0 0
1.0 0.01 0 0 0.01 0 0.01
0 0 -0.2
0 0 0 0.05 0.2 0
0.5 0.001 0 0 0.002 0 0.003
0 0 0.1
0 0 -9.81
"""
"""Links are in lines 2-4, 5-7 and 8-10, and gravity is in line 11."""

Write = Callable[[str | bytes], Path]


@pytest.fixture
def file(tmp_path: Path) -> Write:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "robot.dat"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# Meaning ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("codes", [[0], [1], [0, 0, 1, 0, 1, 0]])
def test_the_robot_is_that_of_the_listing(file: Write, codes: list[int]) -> None:
    """Poses, velocities, accelerations, joint torques and reactions agree with NumPy."""
    rng = np.random.default_rng(len(codes))
    links, action = random_links(rng, codes), rng.normal(size=6)
    path = file(text(links, GRAVITY, action[None]))
    robot, n = chasles.load(path), len(codes)
    assert robot.joints == tuple(f"joint{i}" for i in range(1, n + 1))
    assert np.array_equal(dat.actions(path), [action])
    force = chasles.Wrench(np.roll(action, 3), axes="frame")
    q, qd, qdd = rng.normal(size=(3, n))
    expected = instant(links, GRAVITY, action, q, qd, qdd)
    for i in range(n):
        T = robot.forward_kinematics(q, frame=f"dh{i + 1}")
        close(T, expected.M[i], 1e-13)
        V = robot.frame_velocity(q, qd, frame=f"dh{i + 1}")
        close(V, [*expected.w[i], *expected.v[i]], 1e-13)
        A = robot.frame_acceleration(q, qd, qdd, frame=f"dh{i + 1}")
        close(A, [*expected.wd[i], *expected.a[i]], 1e-13)
    assert np.array_equal(T, robot.forward_kinematics(q, frame="gripper"))
    tau = robot.inverse_dynamics(q, qd, qdd, f_ext={"gripper": force})
    close(tau, expected.tau, 1e-12)
    reactions = robot.joint_reactions(q, qd, qdd, f_ext={"gripper": force})
    for i, reaction in enumerate(reactions):
        T = robot.forward_kinematics(q, frame=f"link{i + 1}")
        push = T[:3, :3] @ reaction[3:]
        close(push, expected.force[i], 1e-12)
        close(T[:3, :3] @ reaction[:3] + np.cross(T[:3, 3], push), expected.moment[i], 1e-12)


SMART = """6

0 \n 0 0.8 0 0 1.57079 \n 600 \n 100 0 0 \n 120 0 \n 100 \n 0 -0.40 0
0 \n 0 0 0 0.75 0 \n 300 \n 18 0 0 \n 10 0 \n 10 \n -0.30 0 0
0 \n 0 0 0.5 0 -1.57079 \n 200 \n 10 0 0 \n 10 0 \n 18 \n 0 0 -0.2
0 \n 0 0.45 0 0 1.57079 \n 100 \n 3 0 0 \n 5 0 \n 3 \n 0 -0.20 0
0 \n 0 0 0.15 0 -1.57079 \n 100 \n 3 0 0 \n 3 0 \n 5 \n 0 0 -0.07
0 \n 0 0.0 0 0 0 \n 200 \n 4 0 0 \n 4 0 \n 6 \n 0 0 -0.5

0 0 -9.8
0 0 0 0 0 0
"""


def test_published_numbers_of_the_program(file: Write) -> None:
    """Results equal those printed by ROB-MAT (fig. 6) for robot SMART of SPACELIB's distribution.

    The file has the distribution's layout, too: one number or one triangle of moments per line. The
    program prints four decimals, computed in single precision. Its actions are about the base's
    origin and act on the bodies after the joint, so the predecessor's reaction is opposite.
    """
    robot = chasles.load(file(SMART), snap=False)
    q, qd, qdd = np.array([0, 1.57, -1.57, 0, 0.26, 0]), np.full(6, 0.5), np.full(6, 2.0)
    T = robot.forward_kinematics(q, frame="gripper")
    printed = [[0.9664, 0, -0.2571, -0.0380], [0, 1, 0, 0], [0.2571, 0, 0.9664, 2.6450]]
    assert np.allclose(T[:3], printed, atol=1e-4)
    W = robot.frame_velocity(q, qd, frame="gripper", at="world")
    assert np.allclose(W, [-0.1285, -1.5, 1.4832, 2.4250, -0.3219, -0.0006], atol=1e-4)
    A = robot.frame_acceleration(q, qd, qdd, frame="gripper", at="world")
    H = [(-2.9638 + 1.4859) / 2, (-6.3192 - 5.9379) / 2, (5.9328 + 5.5472) / 2]
    assert np.allclose(A, [*H, 10.5004, 2.3873, 4.5265], atol=2e-4)
    actions = {  # at joint i: moments (c32, c13, c21) and forces of the matrix ACT0
        1: [-1104.5747, 5663.0017, -381.1567, 2542.5464, 527.9832, -14365.1269],
        4: [-769.6375, 4264.1656, -69.2525, 1732.4312, 325.9361, -3715.9230],
        6: [-114.1284, 1746.3928, -27.7172, 712.6660, 57.4843, -1992.9190],
    }
    reactions = robot.joint_reactions(q, qd, qdd)
    for i, action in actions.items():
        T = robot.forward_kinematics(q, frame=f"link{i}")
        force = T[:3, :3] @ reactions[i - 1, 3:]
        moment = T[:3, :3] @ reactions[i - 1, :3] + np.cross(T[:3, 3], force)
        close([*-moment, *-force], action, 1e-6)


def test_line_breaks_and_comments_do_not_matter(file: Write) -> None:
    plain = formats.read(file(PLAIN))
    spread = "\ufeff# a robot\n" + PLAIN.replace(" ", "\n", 3).replace("\n", "  # what\r\n\n")
    again = formats.read(file(spread))
    assert [replace(link, where="") for link in again.links] == [
        replace(link, where="") for link in plain.links
    ]
    assert [replace(joint, where="") for joint in again.joints] == [
        replace(joint, where="") for joint in plain.joints
    ]
    assert again.gravity == plain.gravity


def test_names_places_and_notes(file: Write) -> None:
    path = file(PLAIN + "1 2 3 4 5 6\n0 0 0 0 0 1e-3\n")
    robot = chasles.load(path)
    assert robot.name == "robot"
    assert robot.bodies == ("base", "link1", "link2", "link3")
    assert robot.frames[-4:] == ("dh1", "dh2", "dh3", "gripper")
    assert [robot.joint(name).kind for name in robot.joints] == [
        "revolute",
        "prismatic",
        "revolute",
    ]
    assert [robot.joint(name).where for name in robot.joints] == [f"{path}:{k}" for k in (2, 5, 8)]
    assert f"{path}:2: link 1: angle 1.5708 taken as pi/2" in robot.notes
    assert any("forces and moments to the gripper" in note for note in robot.notes)
    assert np.array_equal(dat.actions(path), [[1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 0, 1e-3]])
    assert dat.actions(file(PLAIN)).shape == (0, 6)


def test_options(file: Write) -> None:
    path = file(PLAIN)
    exact, printed = chasles.load(path), chasles.load(path, snap=False)
    assert not printed.notes
    T, P = (r.forward_kinematics(np.zeros(3), frame="dh1") for r in (exact, printed))
    assert T[2, 2] == 0.0
    assert P[2, 2] == pytest.approx(math.cos(1.5708), rel=1e-12)
    with raises("E-DAT-001"):
        chasles.load(path, floating=True)


def test_impossible_inertias_are_notes_with_their_line(file: Write) -> None:
    path = file(PLAIN.replace("0.5 0.001", "0.5 0.1"))
    assert any(f"{path}:8" in note and "triangle" in note for note in chasles.load(path).notes)
    with raises("E-MODEL-040"):
        chasles.load(path, strict=True)


# Writing ---------------------------------------------------------------------------------------


def bare(source: Description) -> Description:
    """Remove the parameters that a data file cannot store."""
    joints = (replace(j, armature=0.0, damping=0.0, friction=0.0) for j in source.joints)
    return replace(source, joints=tuple(joints))


@pytest.mark.parametrize("arm", [puma560, stanford_arm, microbot], ids=lambda make: make.__name__)
def test_built_in_arms_written_and_read_are_the_same(
    arm: Callable[[], Description], tmp_path: Path
) -> None:
    source, path = bare(arm()), tmp_path / "arm.dat"
    last = len(source.joints)
    dat.write(source, path, gripper=f"dh{last}")
    robot, again = chasles.Robot(source), chasles.load(path)
    rng = np.random.default_rng(3)
    q, qd, qdd = rng.normal(size=(3, 5, robot.nv))
    close(again.inverse_dynamics(q, qd, qdd), robot.inverse_dynamics(q, qd, qdd), 1e-13)
    close(again.mass_matrix(q), robot.mass_matrix(q), 1e-13)
    for frame in (f"dh{last}", "link3"):
        T = again.forward_kinematics(q, frame=frame)
        close(T, robot.forward_kinematics(q, frame=frame), 1e-13)
    close(
        again.forward_kinematics(q, frame="gripper"),
        robot.forward_kinematics(q, frame=f"dh{last}"),
        1e-13,
    )


def test_any_table_is_written_and_read_back(file: Write, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    path = file(text(random_links(rng, [0, 1, 0, 0]), GRAVITY, np.empty((0, 6))))
    robot, out = chasles.load(path), tmp_path / "again.dat"
    dat.write(robot.model.source, out, gripper="gripper")
    again = chasles.load(out)
    q, qd, qdd = rng.normal(size=(3, 4))
    close(again.inverse_dynamics(q, qd, qdd), robot.inverse_dynamics(q, qd, qdd), 1e-12)
    for frame in ("dh1", "dh2", "gripper"):
        T = robot.forward_kinematics(q, frame=frame)
        close(again.forward_kinematics(q, frame=frame), T, 1e-13)


def test_helical_and_cylindrical_joints(file: Write, tmp_path: Path) -> None:
    """Each joint equals the joints of which it consists: a rotation and a slide along one axis."""
    body, point = "1.0 0.01 0 0 0.02 0 0.015", "0.1 0.2 -0.2"
    gravity = "0.5 -1 -9.81"
    text = f"3\n2 0.1 0.4 0 0.3 0.5 -0.2\n{body}\n{point}\n"
    text += f"3 0.3 0.1 0.2 0.5 0\n{body}\n{point}\n0 0 0 0.05 0.2 0\n{body}\n{point}\n"
    robot = chasles.load(file(text + gravity))
    parts = f"5\n0 0.1 0.4 0 0 0\n0 0 0 0 0 0 0\n0 0 0\n1 0 0 0 0.3 0.5\n{body}\n{point}\n"
    parts += "0 0.3 0.1 0 0 0\n0 0 0 0 0 0 0\n0 0 0\n"
    parts += f"1 0 0 0.2 0.5 0\n{body}\n{point}\n"
    parts += f"0 0 0 0.05 0.2 0\n{body}\n{point}\n{gravity}"
    parted = tmp_path / "parts.dat"
    parted.write_text(parts)
    apart = chasles.load(parted)
    rng = np.random.default_rng(5)
    q, qd, qdd = rng.normal(size=(3, 4))
    spread = np.array([[1, 0, 0, 0], [-0.2, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    tau = apart.inverse_dynamics(spread @ q, spread @ qd, spread @ qdd)
    close(robot.inverse_dynamics(q, qd, qdd), spread.T @ tau, 1e-13)
    T = apart.forward_kinematics(spread @ q, frame="gripper")
    close(robot.forward_kinematics(q, frame="gripper"), T, 1e-14)
    again = tmp_path / "again.dat"
    dat.write(robot.model.source, again, gripper="gripper")
    close(
        chasles.load(again).inverse_dynamics(q, qd, qdd), robot.inverse_dynamics(q, qd, qdd), 1e-13
    )


def changed(**changes: object) -> Description:
    source = bare(puma560())
    first, *rest = source.joints
    return replace(source, joints=(replace(first, **changes), *rest))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (puma560(), "E-DAT-014 'joint1'"),
        (changed(kind="spherical"), "E-DAT-012 'joint1'"),
        (changed(axis=Vector.of(0.0, 1.0, 0.0)), "E-DAT-017"),
        (changed(mimic=Mimic("joint2")), "E-DAT-015 'joint2'"),
        (changed(parent=None), "E-DAT-013"),
        (changed(pose=puma560().joints[1].pose), "E-DAT-010"),
        (
            changed(pose=Transform(about(1, 0.3), Vector.zero())),
            "E-DAT-019",
        ),
        (replace(puma560(), joints=()), "E-DAT-018"),
    ],
    ids=lambda case: case[:30] if isinstance(case, str) else "robot",
)
def test_what_cannot_be_written_is_named(source: Description, message: str, tmp_path: Path) -> None:
    with raises(message):
        dat.write(source, tmp_path / "x.dat")
    assert not (tmp_path / "x.dat").exists()


@pytest.mark.parametrize(
    ("arm", "gripper", "message"),
    [(puma560, "dh5", "E-DAT-021 'dh5'"), (stanford_arm, "tool", "E-DAT-020")],
)
def test_grippers_that_cannot_be_written(
    arm: Callable[[], Description], gripper: str, message: str, tmp_path: Path
) -> None:
    with raises(message):
        dat.write(bare(arm()), tmp_path / "x.dat", gripper=gripper)


# Bad files -------------------------------------------------------------------------------------


def spoiled(line: int, content: str) -> str:
    rows = PLAIN.splitlines()
    rows[line - 1] = content
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("", 1, "E-DAT-003"),
        ("\n# nothing\n", 1, "E-DAT-003"),
        ("3\n", 1, "E-DAT-003"),
        (PLAIN.rsplit("\n", 2)[0], 10, "E-DAT-003"),
        (PLAIN[: PLAIN.index("0 0 -0.2")], 6, "E-DAT-003"),
        (PLAIN[: PLAIN.index(" -9.81")], 11, "E-DAT-006"),
        (spoiled(1, "three"), 1, "E-DAT-004 'three'"),
        (spoiled(1, "0"), 1, "E-DAT-002 '0' is not"),
        (spoiled(1, "-3"), 1, "E-DAT-002 '-3' is not"),
        (spoiled(1, "2.5"), 1, "E-DAT-002 '2.5' is not"),
        (spoiled(1, "9" * 5000), 1, "E-DAT-004"),
        (spoiled(2, "4 0.1 0.4 0 0.3 1.5708"), 2, "E-DAT-008 '4'"),
        (spoiled(2, "2 0.1 0.4 0 0.3 1.5708"), 3, "E-DAT-007"),
        (spoiled(5, "0.5 0 0.5 0 0 0"), 5, "E-DAT-008 '0.5'"),
        (spoiled(3, "-2.0 0.02 0 0 0.03 0 0.04"), 3, "E-DAT-009 2.0"),
        (spoiled(3, "2.0 0.02 x 0 0.03 0 0.04"), 3, "E-DAT-004 'x'"),
        (spoiled(3, "2.0 nan 0 0 0.03 0 0.04"), 3, "E-DAT-004 'nan'"),
        (spoiled(3, "2.0 inf 0 0 0.03 0 0.04"), 3, "E-DAT-004 'inf'"),
        (spoiled(4, "1e999 0 0"), 4, "E-DAT-004 '1e999'"),
        (spoiled(4, "1_0 0 0"), 4, "E-DAT-004 '1_0'"),
        (spoiled(2, "0 0.1 0.4 0 0.3"), 3, "E-DAT-007 12"),
        (spoiled(3, "2.0 0.02 0 0 0.03 0"), 4, "E-DAT-007"),
        (spoiled(9, "0.5 0.001 0 0 0.002 0 0.003 7"), 9, "E-DAT-007"),
        (spoiled(11, "0 0 -9.81 0"), 11, "E-DAT-007"),
        (PLAIN + "1 2 3\n", 12, "E-DAT-006"),
        (PLAIN + "1 2 3 4 5 6 7\n", 12, "E-DAT-007"),
        (PLAIN + "1 2 3 4 5 6\n1 2 3\n", 13, "E-DAT-006"),
        (PLAIN + "\nend\n", 13, "E-DAT-004 'end'"),
        (b"\x7fELF\x02\x01\x00\x00\xff\xfe" * 9, 1, "E-DAT-004"),
        ("0" * (files.MAX_LINE + 9), 1, "E-FILE-008 1048576"),
    ],
)
def test_bad_files_are_refused_with_their_line(
    file: Write, content: str | bytes, line: int, message: str
) -> None:
    path = file(content)
    with raises(message) as caught:
        chasles.load(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert ";" in str(caught.value)
    assert len(str(caught.value)) < 400 + len(str(path))


def test_files_that_are_not_there_or_too_large(
    tmp_path: Path, file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raises("E-FILE-004", "does not exist"):
        chasles.load(tmp_path / "none.dat")
    (tmp_path / "folder.dat").mkdir()
    with raises("E-FILE-004", "the path is a"):
        chasles.load(tmp_path / "folder.dat")
    monkeypatch.setattr(files, "MAX_BYTES", 50)
    with raises("E-FILE-007"):
        chasles.load(file(PLAIN))


WORDS = st.sampled_from(
    ["0", "1", "2", "3", "-1", "1.5708", "1e99", "-1e99", "1e-320", "nan", "#", "x", "\n", "\n"]
)
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(WORDS, max_size=60).map(" ".join),
    st.tuples(st.integers(0, len(PLAIN)), st.text(max_size=4)).map(
        lambda cut: PLAIN[: cut[0]] + cut[1] + PLAIN[cut[0] + 1 :]
    ),
)


@settings(max_examples=300)
@given(content=TEXTS)
def test_any_text_is_a_robot_or_an_error_with_its_line(
    content: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.dat"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    message = f"{path}:1: no error"
    try:
        description = formats.read(path)
        assert description.joints
        build(description)
    except ModelError as error:
        message = str(error)
    assert message.startswith(f"{path}:")
    assert message.removeprefix(f"{path}:")[0].isdigit()
