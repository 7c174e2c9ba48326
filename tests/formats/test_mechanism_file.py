"""Mechanism files: meaning, units, lossless round trips, and bad files."""

import contextlib
import math
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import Floats, close, raises

import chasles
from chasles import formats
from chasles.expr import Program, sin
from chasles.formats import mechanism_writer
from chasles.mathematics.derivatives import replayed
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import (
    JOINTS,
    LOOP_JOINTS,
    CouplingData,
    Description,
    FrameData,
    JointData,
    Limits,
    LinkData,
    LoopData,
    Mimic,
    ModelError,
    build,
    coupling,
    gear,
)
from chasles.model.graph import in_series
from chasles.robots import ROBOTS
from chasles.robots._solids import box

PRESS = """\
format = "mechanism"
name = "press"
gravity = [0, -9.81, 0]

[units]
angle = "deg"
length = "mm"
mass = "g"

[[link]]
name = "frame"

[[link]]
name = "crank"
mass = 500
center = [50, 0, 0]
inertia = [1e5, 5e5, 5e5]

[[link]]
name = "ram"
mass = 2000
inertia = [1e6, 1e6, 1e6]

[[joint]]
name = "turn"
kind = "revolute"
parent = "frame"
child = "crank"
rpy = [0, 0, 90]
limits = [-180, 180]
velocity = 720

[[joint]]
name = "slide"
kind = "prismatic"
parent = "frame"
child = "ram"
position = [300, 0, 0]
axis = [1, 0, 0]
child_position = [0, 10, 0]
limits = [-200, 200]

[[joint]]
name = "screw"
kind = "helical"
child = "frame"
pitch = 2
armature = 0.1

[[loop]]
name = "rod"
kind = "planar"
parent = "crank"
child = "ram"
child_rpy = [0, 0, 45]

[[frame]]
name = "tip"
link = "ram"
position = [0, 0, 5]

[[gear]]
name = "box"
joint = "turn"
ratios = {slide = -2.0}
offset = 0.1
"""
"""Line numbers: keys 1-3, units 5-8, links 10, 13, 19, joints 24, 33, 43, loop 50, gear 62."""

Write = Callable[[str], Path]


@pytest.fixture
def file(tmp_path: Path) -> Write:
    def write(content: str) -> Path:
        path = tmp_path / "press.toml"
        path.write_text(content, "utf-8")
        return path

    return write


def residual_at(data: CouplingData, values: dict[str, float]) -> float:
    """Return the residual of a coupling for the given coordinates."""
    return float(replayed(data.residual, {"q": [values[name] for name in data.freedoms]})[0])


def flat(value: Any) -> Any:
    """Convert a description to lists: transforms as matrix and position, programs as text."""
    if isinstance(value, Transform):
        return [*map(list, value.R.rows), list(value.r)]
    if isinstance(value, Program):
        return str(value)
    if isinstance(value, tuple | list | Vector):
        return [flat(x) for x in value]
    if isinstance(value, RigidInertia):
        return [value.m, *value.h, *value.I]
    if hasattr(value, "__dataclass_fields__"):
        names = [f.name for f in fields(value) if f.name not in ("where", "notes", "closure")]
        return [flat(getattr(value, name)) for name in names]
    return value


def same(a: Any, b: Any) -> None:
    """Check equality up to rounding, relative to the largest entry of a list of floats."""
    if isinstance(a, list) and a and all(isinstance(x, float | int) for x in a):
        finite = [x for x in a if math.isfinite(x)]
        np.testing.assert_allclose(b, a, rtol=0.0, atol=1e-15 * max(map(abs, finite), default=0.0))
    elif isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a == b


def round_trip(source: Description, path: Path) -> None:
    mechanism_writer.write(source, path)
    same(flat(source), flat(formats.read(path)))


# Meaning ---------------------------------------------------------------------------------------


def test_the_file_says_what_python_says(file: Write) -> None:
    source = formats.read(file(PRESS))
    assert (source.name, list(source.gravity)) == ("press", [0.0, -9.81, 0.0])
    turn, slide, screw = source.joints
    assert (turn.parent, turn.child, screw.parent, screw.kind) == (
        "frame",
        "crank",
        None,
        "helical",
    )
    np.testing.assert_allclose(turn.pose.R.rows, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-16)
    close(list(vars(turn.limits).values())[:3], [-math.pi, math.pi, 4.0 * math.pi], 1e-15)
    close([slide.limits.lower, slide.limits.upper], [-0.2, 0.2], 1e-15)
    assert list(slide.pose.r) == [0.3, 0.0, 0.0]
    assert list(slide.child_pose.r) == [0.0, 0.01, 0.0]
    assert (screw.pitch, screw.armature) == (0.002, 0.1)
    (rod,) = source.loops
    assert isinstance(rod, LoopData)
    close(rod.child_pose.R[1, 0], math.sqrt(0.5), 1e-15)
    crank = source.links[1].inertia
    m, c, I = crank.about_center()
    close([m, *c, *I], [0.5, 0.05, 0.0, 0.0, 1e-4, 5e-4, 5e-4, 0.0, 0.0, 0.0], 1e-15)
    assert source.couplings[0] == replace(
        gear("box", "turn", {"slide": -2.0}, 0.1), where=source.couplings[0].where
    )
    assert source.joints[1].where.endswith("press.toml:33")
    robot = chasles.load(file(PRESS))
    assert (robot.joints, robot.loops, robot.couplings) == (
        ("turn", "slide", "screw"),
        ("rod",),
        ("box",),
    )
    tip = Floats(robot).forward_kinematics([0.0, 0.0, 0.0], frame="tip")
    close(tip[:3, 3], [0.3, -0.01, 0.005], 1e-15)


def test_right_angles_are_meant(file: Write) -> None:
    text = PRESS.replace('angle = "deg"\n', "").replace("[0, 0, 90]", "[0, 0, 1.5708]")
    robot = chasles.load(file(text))
    assert any(note.endswith(":28: joint 'turn': rpy 1.5708 taken as pi/2") for note in robot.notes)
    assert robot.joint("turn").pose.R[0, 0] == 0.0
    exact = chasles.load(file(text), snap=False)
    assert exact.joint("turn").pose.R[0, 0] != 0.0


def test_floating_bases(file: Write) -> None:
    alone = PRESS.replace('child = "frame"', 'parent = "crank"\nchild = "nut"').replace(
        '[[link]]\nname = "ram"', '[[link]]\nname = "nut"\n\n[[link]]\nname = "ram"'
    )
    robot = chasles.load(file(alone), floating=True)
    assert (robot.joints[0], robot.nv) == ("root_joint", 9)


# Round trips -----------------------------------------------------------------------------------


SIZES: dict[str, tuple[int, ...]] = {
    "planar": (3,),
    "zigzag": (3,),
    "general_chain": (4,),
    "general_tree": (5, 2),
    "random_tree": (12, 3),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_built_in_robots_survive(name: str, tmp_path: Path) -> None:
    robot = ROBOTS[name](*SIZES.get(name, ()))
    chasles.save(robot, tmp_path / "copy.toml")
    same(flat(robot.model.source), flat(formats.read(tmp_path / "copy.toml")))


def test_a_robot_read_back_moves_the_same(tmp_path: Path) -> None:
    robot = chasles.robots.random_tree(10, 3)
    chasles.save(robot, tmp_path / "copy.toml")
    again, known = Floats(chasles.load(tmp_path / "copy.toml")), Floats(robot)
    q = known.integrate(robot.neutral(), np.linspace(-1.0, 1.0, robot.nv))
    qd, qdd = np.sin(np.arange(2 * robot.nv)).reshape(2, -1)
    close(again.inverse_dynamics(q, qd, qdd), known.inverse_dynamics(q, qd, qdd), 1e-13)


NUMBER = st.floats(-2.0, 2.0, allow_nan=False)
NAMES = st.text(min_size=1, max_size=6)


@st.composite
def descriptions(draw: st.DrawFn) -> Description:
    """Draw trees of all joint types with loops, gears, mimic joints, frames and any names."""
    count = draw(st.integers(1, 4))
    names = draw(st.lists(NAMES, min_size=2 * count + 4, max_size=2 * count + 4, unique=True))
    links, joints = names[: count + 1], names[count + 1 : 2 * count + 1]

    def vector() -> Vector:
        return Vector(tuple(draw(NUMBER) for _ in range(3)))

    def pose() -> Transform:
        return Transform.from_pose(matrix_from_vector(vector()), vector())

    def data(made: Any, name: str, kind: str, parent: str | None, child: str) -> Any:
        lower = draw(NUMBER)
        return made(
            name,
            kind,
            parent,
            child,
            pose(),
            Vector.of(draw(NUMBER), draw(NUMBER), 1.0),
            child_pose=pose(),
            pitch=draw(NUMBER),
            radius=abs(draw(NUMBER)) + 0.1,
            reversed=draw(st.booleans()) and kind != "fixed",
            limits=draw(st.sampled_from([Limits(), Limits(lower, lower + 1.0, 3.0, 4.0)])),
            damping=abs(draw(NUMBER)),
        )

    tree = [
        data(
            JointData,
            name,
            draw(st.sampled_from(["fixed", *JOINTS])),
            links[draw(st.integers(0, k))],
            links[k + 1],
        )
        for k, name in enumerate(joints)
    ]
    lead = data(JointData, names[-3], "revolute", None, links[0])
    if tree[0].kind == "revolute":
        tree[0] = replace(tree[0], mimic=Mimic(names[-3], draw(NUMBER), draw(NUMBER)))
    kinds = sorted(LOOP_JOINTS)
    return Description(
        draw(NAMES),
        tuple(
            LinkData(name, box(abs(draw(NUMBER)) + 0.1, (1.0, 2.0, 3.0), vector()))
            for name in links
        ),
        (lead, *tree),
        (FrameData(names[-1], links[-1], pose()),),
        vector(),
        loops=(data(LoopData, names[-2], draw(st.sampled_from(kinds)), None, links[-1]),),
        couplings=(gear("a gear", names[-3], {}, draw(NUMBER)),),
    )


@settings(max_examples=60, deadline=None)
@given(source=descriptions())
def test_any_mechanism_survives(
    source: Description, tmp_path_factory: pytest.TempPathFactory
) -> None:
    round_trip(source, tmp_path_factory.getbasetemp() / "any.toml")


def test_gears_keep_their_numbers(tmp_path: Path) -> None:
    """Gears and couplings keep their coefficients, also with leading factors other than one."""
    source = chasles.robots.planar(3).model.source
    sums = gear("d", "joint3", {"joint1": 0.1, "joint2": -1.0 / 3.0}, 0.7)
    round_trip(replace(source, couplings=(sums,)), tmp_path / "a.toml")
    other = coupling("s", ["joint1", "joint2"], lambda a, b: 2.0 * a + 3.0 * b - 1.0)
    idle = coupling("i", ["joint1", "joint3", "joint2"], lambda a, b, c: 0.0 * a - 2.0 * c + b * b)
    for couplings in ((other, sums), (sums, idle, other), (idle, replace(sums, name="e"))):
        mechanism_writer.write(replace(source, couplings=couplings), tmp_path / "b.toml")
        back = formats.read(tmp_path / "b.toml").couplings
        assert [(x.name, x.freedoms) for x in back] == [(x.name, x.freedoms) for x in couplings]
        at = {f"joint{k}": 0.3 * k for k in (1, 2, 3)}
        assert [residual_at(x, at) for x in back] == pytest.approx(
            [residual_at(x, at) for x in couplings], rel=1e-15
        )


def test_polynomials_keep_their_numbers(tmp_path: Path) -> None:
    """Products of coordinates, constants, divisions and powers of sums are preserved."""
    source = chasles.robots.planar(3).model.source
    names = ["joint3", "joint1", "joint2"]
    curve = coupling("c", names, lambda z, x, y: (x - 2.0 * y) * (x - 2.0 * y) / 3.0 - z + 0.7)
    mechanism_writer.write(replace(source, couplings=(curve,)), tmp_path / "a.toml")
    (back,) = formats.read(tmp_path / "a.toml").couplings
    assert sorted(back.freedoms) == sorted(names)
    for z, x, y in np.random.default_rng(4).normal(size=(5, 3)):
        q = {"joint1": x, "joint2": y, "joint3": z}
        close(residual_at(back, q), (x - 2.0 * y) ** 2 / 3.0 - z + 0.7, 1e-14, scale=1.0)


def test_massless_links_are_meant(tmp_path: Path) -> None:
    source = in_series(chasles.robots.random_tree(12, 3).model.source)
    assert any(link.massless for link in source.links)
    round_trip(source, tmp_path / "a.toml")


# Refused mechanisms ------------------------------------------------------------------------------


def test_what_has_no_place_in_a_file(tmp_path: Path) -> None:
    robot = chasles.robots.planar(2)
    bent = robot.with_couplings(coupling("cam", ["joint1", "joint2"], lambda a, b: b - sin(a)))
    with raises("E-TOML-011", "'cam'"):
        chasles.save(bent, tmp_path / "no.toml")
    own = replace(robot.model.source.joints[0], custom=robot.model.bodies[0].joint, kind="custom")
    source = replace(robot.model.source, joints=(own, *robot.model.source.joints[1:]))
    with raises("E-FILE-032", "'joint1'"):
        mechanism_writer.write(source, tmp_path / "no.toml")
    assert not list(tmp_path.iterdir())


# Bad files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (
            '"mechanism"',
            '"mechanics"',
            1,
            "E-TOML-018",
        ),
        ("gravity", "gravitation", 3, "E-TOML-015 'gravitation'"),
        ('"deg"', '"grad"', 6, "E-DH-006 angle is 'grad'"),
        ('[[link]]\nname = "frame"', "[[link]]", 10, "E-TOML-006"),
        ("mass = 500", "mass = nan", 15, "E-DH-006 mass is nan"),
        ("[1e5, 5e5, 5e5]", "[1e5, 5e5]", 17, "E-DH-006"),
        (
            'kind = "revolute"',
            'kind = "hinge"',
            26,
            "E-DH-006 kind is 'hinge'",
        ),
        ('kind = "prismatic"\n', "", 33, "E-TOML-006"),
        ("rpy = [0, 0, 90]", "rotation = [[1, 0, 0], [0, 1, 0], [0, 0, 2]]", 29, "E-DH-006"),
        (
            "rpy = [0, 0, 90]",
            "rpy = [0, 0, 90]\nrotation = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]",
            24,
            "E-TOML-007",
        ),
        ("axis = [1, 0, 0]", "axis = [0, 0, 0]", 33, "E-MODEL-012 'slide'"),
        ("armature = 0.1", "armature = true", 48, "E-DH-006 armature is True"),
        ('child = "ram"\nposition', 'child = "rim"\nposition', 33, "E-MODEL-006 'rim'"),
        ("child_rpy", "mimic", 55, "E-TOML-015 'mimic'"),
        ('link = "ram"', 'link = "rim"', None, "E-MODEL-003 'tip'"),
        ("ratios = {slide = -2.0}", "ratios = [1]", 65, "E-DH-006"),
        ("slide = -2.0", "slid = -2.0", 62, "E-MODEL-004 'box'"),
        ("slide = -2.0", "turn = -2.0", 62, "E-LOOP-025 'box'"),
        (
            "[[gear]]",
            "[[coupling]]\nname = 'c'\nterms = [[1, {turn = -1}]]\n[[gear]]",
            64,
            "E-DH-006",
        ),
        ("[[gear]]", "[[coupling]]\nname = 'c'\nterms = [[1, {}]]\n[[gear]]", 62, "E-LOOP-025"),
        (
            "gravity = [0, -9.81, 0]",
            'independent = ["slid"]',
            3,
            "E-TOML-005 'slid'",
        ),
        ("pitch = 2", "pitch = 0", 43, "E-MODEL-045 'screw'"),
        ("pitch = 2\n", "", 43, "E-MODEL-045 'screw'"),
        ("[[loop]]", "[loop]", 50, "E-TOML-013"),
    ],
)
def test_bad_files_are_refused_with_their_line(
    file: Write, old: str, new: str, line: int | None, message: str
) -> None:
    assert old in PRESS
    path = file(PRESS.replace(old, new, 1))
    with raises(message) as caught:
        chasles.load(path)
    assert line is None or str(caught.value).startswith(f"{path}:{line}: ")
    assert ";" in str(caught.value)


def test_limits_of_a_loop_are_noted(file: Write) -> None:
    robot = chasles.load(file(PRESS.replace("child_rpy = [0, 0, 45]", "limits = [-1, 1]")))
    (note,) = (note for note in robot.notes if "its limits" in note)
    assert "press.toml:50: loop 'rod': its limits are ignored, because it has no coord" in note


def test_no_links(file: Write) -> None:
    with raises("E-TOML-004"):
        chasles.load(file('format = "mechanism"\n'))


LINES = st.sampled_from([*PRESS.split("\n"), "mass = -1", "rpy = [", "kind = 3", "child = 'frame'"])
TEXTS = st.one_of(
    st.lists(LINES, max_size=25).map(lambda lines: "\n".join(['format = "mechanism"', *lines])),
    st.tuples(st.integers(0, len(PRESS)), st.text(max_size=4)).map(
        lambda cut: PRESS[: cut[0]] + cut[1] + PRESS[cut[0] + 1 :]
    ),
)


@settings(max_examples=200, deadline=None)
@given(content=TEXTS)
def test_any_text_is_a_robot_or_an_error(
    content: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(ModelError):
        assert build(formats.read(path)).bodies
