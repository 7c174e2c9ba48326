"""Denavit-Hartenberg rows: robots of them against products of matrices, and rows of robots."""

import math
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import resources
from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.dh_oracle import kinetic, poses, potential, shift, turn
from support import Floats, close, relative

import chasles
from chasles.algorithms import FUNCTIONS, KINEMATICS
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, FrameData, JointData, LinkData, ModelError
from chasles.robots import general_chain, planar, puma560, quadruped, slider_crank, stanford_arm

CONVENTIONS = ("modified", "standard")
GRAVITY = np.array([0.4, -1.1, -9.6])
BASE = shift(0, 0.3) @ turn(1, 0.7) @ turn(2, -0.4) @ shift(2, 0.1)
TOOL = shift(2, 0.15) @ turn(0, 0.5) @ shift(1, -0.2)


def random_rows(kinds: str, seed: int) -> list[dict[str, Any]]:
    """Rows in which no number is special; every link is a cloud of points, so that it can exist."""
    rng = np.random.default_rng(seed)
    rows = []
    for letter in kinds:
        masses, points = rng.uniform(0.2, 1.0, 6), rng.uniform(-0.3, 0.3, (6, 3))
        c = masses @ points / masses.sum()
        d = points - c
        J = np.einsum("k,kij->ij", masses, [x @ x * np.eye(3) - np.outer(x, x) for x in d])
        row = dict(zip(("theta", "d", "a", "alpha"), rng.uniform(-1.0, 1.0, 4), strict=True))
        kind = {"R": "revolute", "P": "prismatic"}[letter]
        rows.append(row | {"kind": kind, "mass": masses.sum(), "center": c, "inertia": J})
    return rows


# From rows to robots ---------------------------------------------------------------------------


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("kinds", ["R", "P", "RPRRPR"])
def test_poses_are_products_of_the_rows(kinds: str, convention: Any) -> None:
    rows, q = random_rows(kinds, 1), np.random.default_rng(2).normal(size=len(kinds))
    robot = Floats(
        chasles.from_dh(rows, convention=convention, base=BASE, tool=TOOL, gravity=GRAVITY)
    )
    T = poses(rows, convention, q, BASE)
    close(robot.forward_kinematics(q, frame="base"), BASE, 1e-15)
    for i in range(1, len(kinds) + 1):
        close(robot.forward_kinematics(q, frame=f"dh{i}"), T[i], 1e-14)
    close(robot.forward_kinematics(q, frame="tool"), T[-1] @ TOOL, 1e-14)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_masses_are_those_of_the_rows(convention: Any) -> None:
    """Energies from the rows' frames; finite differences of poses leave 1e-9."""
    kinds = "RPRRPR"
    rows = random_rows(kinds, 3)
    robot = Floats(chasles.from_dh(rows, convention=convention, base=BASE, gravity=GRAVITY))
    q, qd = np.random.default_rng(4).normal(size=(2, len(kinds)))
    V = potential(rows, poses(rows, convention, q, BASE), GRAVITY)
    close(robot.potential_energy(q), V, 1e-13)
    close(robot.kinetic_energy(q, qd), kinetic(rows, convention, BASE)(q, qd), 1e-8)


@pytest.mark.parametrize(("name", "make"), [("puma560", puma560), ("stanford_arm", stanford_arm)])
def test_published_tables(name: str, make: Callable[[], chasles.Robot]) -> None:
    """The rows of the data files (degrees), by way of NumPy, from_dh and the built-in robots."""
    text = resources.files("chasles.robots").joinpath(f"{name}.toml").read_text()
    rows = [
        {k: joint[k] for k in ("kind", "a", "d")}
        | {k: math.radians(joint[k]) for k in ("theta", "alpha")}
        for joint in tomllib.loads(text)["joint"]
    ]
    q = np.random.default_rng(5).normal(size=6)
    T = poses(rows, "standard", q, np.eye(4))
    for robot in (Floats(chasles.from_dh(rows, convention="standard")), Floats(make())):
        for i in range(1, 7):
            close(robot.forward_kinematics(q, frame=f"dh{i}"), T[i], 1e-14)


def test_inertia_in_all_its_forms() -> None:
    """Three moments, six entries, a matrix; about the centre of mass or the frame."""
    c, diagonal = (0.1, -0.2, 0.3), (0.5, 0.6, 0.7)
    steiner = 2.0 * (np.dot(c, c) * np.eye(3) - np.outer(c, c))
    ways = [
        {"inertia": diagonal},
        {"inertia": (*diagonal, 0.0, 0.0, 0.0)},
        {"inertia": np.diag(diagonal)},
        {"inertia": np.diag(diagonal) + steiner, "inertia_about": "frame"},
    ]
    rows = [chasles.DHRow(0.0, 0.0, 0.0, 0.0, mass=2.0, center=c, **way) for way in ways]
    for row in rows[1:]:
        close(row.rigid.I.matrix().rows, rows[0].rigid.I.matrix().rows, 1e-15)
    assert rows[0] == rows[1] == rows[2]


def test_right_angles_fold() -> None:
    """A right angle as math.pi / 2 costs nothing: as many operations as with exact frames."""
    row = {"d": 0.2, "a": 0.3, "mass": 1.0, "inertia": (0.1, 0.2, 0.25), "center": (0.1, 0, 0)}
    turned = [row | {"theta": -math.pi / 2, "alpha": k * math.pi / 2} for k in (1, -1, 3)]
    plain = [row | {"theta": 0.0, "alpha": k * math.pi / 2 + 0.1} for k in (1, -1, 3)]
    for joint in chasles.from_dh(turned, convention="modified").model.source.joints:
        assert {abs(x) for line in joint.pose.R.rows for x in line} == {0.0, 1.0}
    counts = [
        chasles.cost(chasles.from_dh(rows, convention="modified"), "inverse_dynamics")
        for rows in (turned, plain)
    ]
    assert counts[0].multiplications < 0.8 * counts[1].multiplications


def test_names_limits_and_joint_data() -> None:
    row = chasles.DHRow(
        0.1,
        0.2,
        0.3,
        0.4,
        mass=1.0,
        inertia=(1.0, 1.0, 1.0),
        limits=(-1, 2),
        velocity=3,
        effort=4,
        armature=5,
        damping=6,
        friction=7,
        name="hip",
        link="leg",
    )
    foot = {"theta": 0, "d": 0, "a": 1, "alpha": 0, "armature": 1}
    robot = chasles.from_dh([row, foot], convention="modified", name="walker")
    assert (robot.name, robot.joints, robot.bodies) == (
        "walker",
        ("hip", "joint2"),
        ("base", "leg", "link2"),
    )
    hip = robot.joint("hip")
    assert vars(hip.limits) == {"lower": -1.0, "upper": 2.0, "velocity": 3.0, "effort": 4.0}
    assert (hip.armature, hip.damping, hip.friction) == (5.0, 6.0, 7.0)


def test_an_array_has_kinematics_only() -> None:
    rows = np.random.default_rng(6).normal(size=(4, 4))
    robot = chasles.from_dh(rows, convention="standard")
    assert robot.notes == ("no masses are given: kinematics only",)
    named = [dict(zip(("theta", "d", "a", "alpha"), row, strict=True)) for row in rows]
    q = np.arange(4.0)
    T = poses(named, "standard", q, np.eye(4))
    close(robot.forward_kinematics(q, frame="tool"), T[-1], 1e-14)
    assert robot.jacobian(q, frame="tool").shape == (6, 4)
    with pytest.raises(ModelError, match="forward_dynamics needs masses and it has none; give"):
        robot.forward_dynamics(q, q, q)
    with pytest.raises(ModelError, match="inverse_dynamics needs masses"):
        robot.inverse_dynamics(q, q, q)
    again = chasles.to_dh(robot, convention="standard")
    assert again.massless
    close([[r.theta, r.d, r.a, r.alpha] for r in again.rows], rows, 1e-14)


def test_kinematics_are_the_functions_that_need_no_masses() -> None:
    """A function belongs to the table if its program is the same for other masses."""
    light, heavy = (
        chasles.from_dh(
            [row | {"mass": k * row["mass"]} for row in random_rows("RPR", 7)],
            convention="modified",
        )
        for k in (1.0, 1.5)
    )
    options: dict[str, dict[str, Any]] = {
        name: {"frame": "tool"} for name in FUNCTIONS if name.startswith(("frame", "jacobian"))
    }
    options["forward_kinematics"] = {"frame": "tool"}
    for function in FUNCTIONS:
        programs = [
            str(
                chasles.compile(
                    robot, function, backend="interpret", **options.get(function, {})
                ).program
            )
            for robot in (light, heavy)
        ]
        assert (programs[0] == programs[1]) == (function in KINEMATICS), function


# From robots to rows -----------------------------------------------------------------------------


def same(robot: chasles.Robot, tolerance: float = 1e-12, **options: Any) -> None:
    """The table of a robot makes the same robot, in both conventions."""
    tip = (
        options.get("tool")
        or [
            name
            for name, frame in robot.model.frames.items()
            if frame.body == len(robot.model.bodies) - 1
        ][-1]
    )
    rng = np.random.default_rng(8)
    for convention in CONVENTIONS:
        table = chasles.to_dh(robot, convention=convention, **options)
        again = chasles.from_dh(table)
        order = [again.joints.index(name) for name in robot.joints]
        a, b = Floats(robot), Floats(again)
        for q, qd, qdd in rng.normal(size=(3, 3, robot.nv)):
            other = [np.empty(robot.nv) for _ in range(3)]
            for mine, its in zip((q, qd, qdd), other, strict=True):
                its[order] = mine
            expected = a.forward_kinematics(q, frame=tip)
            close(b.forward_kinematics(other[0], frame="tool"), expected, tolerance)
            tau = a.inverse_dynamics(q, qd, qdd)
            close(b.inverse_dynamics(*other)[order], tau, tolerance)


def arms() -> list[Path]:
    """The files of example-robot-data whose robot is one chain of revolute and prismatic joints."""
    listed = (
        Path(str(f.locate())) for f in files("example-robot-data") or () if f.suffix == ".urdf"
    )
    return [path for path in sorted(listed) if is_arm(path)]


@cache
def loaded(path: Path) -> chasles.Robot:
    return chasles.load(path)


def is_arm(path: Path) -> bool:
    try:
        bodies = loaded(path).model.bodies
    except ModelError:
        return False
    return bool(bodies) and all(
        body.parent == k - 1 and body.joint.nv == 1 and body.follow is None
        for k, body in enumerate(bodies)
    )


def test_every_serial_arm_of_example_robot_data() -> None:
    found = arms()
    assert {"ur5_robot.urdf", "xarm7.urdf", "z1.urdf", "so101.urdf"} <= {
        path.name for path in found
    }
    assert len(found) > 20
    for path in found:
        same(loaded(path))


def test_panda_has_the_table_of_its_maker() -> None:
    """Modified constants of Franka Emika's documentation; its fingers have to be locked."""
    path = next(f for f in files("example-robot-data") or () if f.name == "panda.urdf")
    robot = chasles.load(Path(str(path.locate())))
    with pytest.raises(ModelError, match=r"joint 'panda_finger_joint2': .*; lock it"):
        chasles.to_dh(robot)
    arm = robot.lock({"panda_finger_joint1": 0.0})
    table = chasles.to_dh(arm)
    quarter = math.pi / 2.0
    published = [  # d, a, alpha
        (0.333, 0.0, 0.0),
        (0.0, 0.0, -quarter),
        (0.316, 0.0, quarter),
        (0.0, 0.0825, quarter),
        (0.384, -0.0825, -quarter),
        (0.0, 0.0, quarter),
        (0.0, 0.088, quarter),
    ]
    assert [(row.d, row.a, row.alpha) for row in table.rows] == published
    same(arm)


def test_ur5_has_its_published_lengths() -> None:
    """d1, a2, a3, d4, d5, d6 of Universal Robots (standard), signs by the book's rules."""
    path = next(f for f in files("example-robot-data") or () if f.name == "ur5_robot.urdf")
    table = chasles.to_dh(loaded(Path(str(path.locate()))), convention="standard")
    quarter = math.pi / 2.0
    assert [row.d for row in table.rows] == [0.089159, 0.0, 0.0, 0.10915, 0.09465, 0.0823]
    assert [row.a for row in table.rows] == [0.0, 0.425, 0.39225, 0.0, 0.0, 0.0]
    assert [row.alpha for row in table.rows] == [quarter, 0.0, 0.0, quarter, quarter, 0.0]


@pytest.mark.parametrize(
    "make", [puma560, stanford_arm, lambda: planar(4), lambda: general_chain(6)]
)
def test_built_in_arms(make: Callable[[], chasles.Robot]) -> None:
    same(make())


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_table_comes_back_as_it_was(convention: Any) -> None:
    rows = [chasles.DHRow(**row) for row in random_rows("RRPRPR", 9)]
    parallel = [chasles.DHRow(0.1, 0.4, 0.3, 0.0, mass=1.0, inertia=(0.1, 0.1, 0.1), name="extra")]
    made = chasles.DHTable((*parallel, *rows), convention, gravity=GRAVITY, base=BASE, tool=TOOL)
    again = chasles.to_dh(chasles.from_dh(made), convention=convention)
    close(again.base, BASE, 1e-15)
    close(again.tool, TOOL, 1e-15)
    for a, b in zip(again.rows, made.rows, strict=True):
        for field in ("theta", "d", "a", "alpha", "mass", "center", "inertia"):
            assert relative(getattr(a, field), getattr(b, field), 1.0) < 1e-14, field
    assert again.rows[0].d == 0.4
    assert again.rows[0].name == "extra"


def test_parallel_axes_have_the_nearest_origins() -> None:
    """d = 0 between parallel axes of a chain whose frames are no table's (the book's rule)."""
    robot = chasles.Robot(arm("RRR", [(0.3, 0.2, 0.5), (0.3, -0.4, 0.7), (0.1, 0.2, 0.3)]))
    table = chasles.to_dh(robot)
    assert [row.alpha for row in table.rows] == [0.0, 0.0, 0.0]
    assert [row.d for row in table.rows[1:]] == [0.0, 0.0]
    close([row.a for row in table.rows[1:]], [0.5, math.hypot(0.1, 0.2)], 1e-15)
    same(robot)


def arm(
    kinds: str,
    places: list[tuple[float, float, float]],
    turns: list[np.ndarray] | None = None,
    axes: list[tuple[float, float, float]] | None = None,
) -> Description:
    """A chain with joints at places, each frame turned against the one before, about given axes."""
    links, joints = [LinkData("base", RigidInertia.zero())], []
    for i, (letter, place) in enumerate(zip(kinds, places, strict=True), start=1):
        R = np.eye(3) if turns is None else turns[i - 1][:3, :3]
        pose = Transform.from_pose(Matrix(tuple(map(tuple, R.tolist()))), Vector(place))
        kind = {"R": "revolute", "P": "prismatic", "C": "continuous"}[letter]
        axis = Vector.of(0.0, 0.0, 1.0) if axes is None else Vector(axes[i - 1])
        joints.append(JointData(f"j{i}", kind, links[-1].name, f"l{i}", pose, axis))
        body = RigidInertia.from_center(
            1.0 + 0.1 * i,
            Vector.of(0.1, -0.2, 0.05 * i),
            Symmetric(0.1, 0.12, 0.15, 0.01, 0.02, 0.0),
        )
        links.append(LinkData(f"l{i}", body))
    tip = Transform.from_pose(
        Matrix(tuple(map(tuple, TOOL[:3, :3].tolist()))), Vector.of(0.1, 0.2, 0.3)
    )
    frame = FrameData("hand", links[-1].name, tip)
    return Description("chain", tuple(links), tuple(joints), (frame,), Vector.of(1.0, 2.0, -9.0))


COORDINATES = st.sampled_from([0.0, 0.5, -0.25]) | st.floats(-1.0, 1.0)
PLACES = st.tuples(COORDINATES, COORDINATES, COORDINATES)
ANGLES = st.sampled_from([0.0, math.pi / 2, -math.pi / 2, math.pi]) | st.floats(0.01, 1.5)
TURNS = st.tuples(ANGLES, ANGLES, ANGLES).map(
    lambda t: turn(2, t[0]) @ turn(1, t[1]) @ turn(0, t[2])
)
AXES = st.sampled_from([(0.0, 0.0, 1.0), (0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.6, 0.0, -0.8)])


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from("RPC"), PLACES, TURNS, AXES), min_size=1, max_size=6))
def test_any_chain(parts: list[Any]) -> None:
    """Axes parallel, opposite, coincident, intersecting, skew: all come up.

    Common normals of axes that are far from parallel are near; those of others cost digits: as many
    as their distance has, squared in the moments of inertia.
    """
    kinds, places, turns, axes = zip(*parts, strict=True)
    robot = chasles.Robot(arm("".join(kinds), list(places), list(turns), list(axes)))
    table = chasles.to_dh(robot)
    reach = max(abs(x) for row in table.rows for x in (row.a, row.d, 1.0))
    same(robot, 1e-14 * max(100.0, reach * reach))


def test_the_tool_is_any_frame_of_the_last_link() -> None:
    robot = chasles.Robot(
        arm("RPR", [(0.1, 0.2, 0.3)] * 3, [turn(0, 0.3), turn(1, 0.4), turn(0, 1)])
    )
    same(robot)
    same(robot, tool="l3")
    with pytest.raises(ModelError, match="frame 'l2' does not move with the last link 'l3'; name"):
        chasles.to_dh(robot, tool="l2")
    with pytest.raises(ModelError, match="no frame 'l4'; it has 'base', 'l1'"):
        chasles.to_dh(robot, tool="l4")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (quadruped, "joint '.*': its type is free"),
        (slider_crank, "joint '.*': it closes a loop"),
        (
            lambda: chasles.Robot(arm("RR", [(0.1, 0, 0)] * 2, [np.eye(4), turn(1, 1e-8)])),
            "joint 'j2': its axis encloses 1.0e-08 rad with that of 'j1'.*; make the two parallel",
        ),
        (
            lambda: chasles.Robot(
                Description("stone", (LinkData("rock", RigidInertia.zero()),), ())
            ),
            "robot 'stone' has no moving joint",
        ),
    ],
)
def test_what_is_no_serial_arm_is_refused(make: Callable[[], chasles.Robot], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        chasles.to_dh(make())


# Bad input -------------------------------------------------------------------------------------


GOOD = {"theta": 0.0, "d": 0.1, "a": 0.2, "alpha": 0.3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"theta": math.nan}, "row 2: theta is nan; give a finite number"),
        ({"theta": "1"}, "row 2: theta is '1'; give a finite number"),
        ({"a": True}, "row 2: a is True; give a finite number"),
        ({"d": 10**400}, "row 2: d is 1000.*; give a finite number"),
        ({"mass": -1.0}, "row 2: mass is -1.0; give zero or a positive number"),
        ({"mass": math.inf}, "row 2: mass is inf; give zero or a positive number"),
        ({"center": (0.0, 1.0)}, r"row 2: center is \(0.0, 1.0\); give three finite numbers"),
        ({"inertia": (1.0, 2.0)}, r"row 2: inertia is \(1.0, 2.0\); give \[xx, yy, zz\]"),
        ({"inertia": np.arange(9.0).reshape(3, 3)}, "row 2: inertia is .*; give .*symmetric"),
        ({"inertia_about": "tip"}, "row 2: inertia_about is 'tip'; give 'center' or 'frame'"),
        ({"kind": "helical"}, "row 2: kind is 'helical'; give 'revolute' or 'prismatic'"),
        ({"limits": (1.0, 0.0)}, "row 2: limits is .*; give a lower and an upper limit"),
        ({"limits": (math.nan, 0.0)}, "row 2: limits is .*; give a lower and an upper limit"),
        ({"velocity": -1}, "row 2: velocity is -1; give a positive number, or inf"),
        ({"friction": "low"}, "row 2: friction is 'low'; give zero or a positive number"),
        ({"name": 3}, "row 2: name is 3; give a text"),
        ({"alfa": 1.0}, "row 2: unknown field 'alfa'; did you mean 'alpha'"),
    ],
)
def test_bad_rows(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        chasles.from_dh([GOOD, GOOD | change], convention="modified")


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([GOOD], {}, "say which convention the rows have: 'modified' or 'standard'"),
        ([GOOD], {"convention": "distal"}, "convention is 'distal'; give 'modified' or"),
        ([], {"convention": "modified"}, "a table without rows is no arm"),
        ("rows", {"convention": "modified"}, "rows are given as str; give"),
        (GOOD, {"convention": "modified"}, "rows are given as dict; give"),
        (3, {"convention": "modified"}, "rows are given as int; give"),
        (np.zeros((2, 5)), {"convention": "modified"}, "row 1: .* is no row; give theta, d, a"),
        (np.zeros(4), {"convention": "modified"}, "row 1: .* is no row; give theta, d, a"),
        ([{"theta": 0.0, "a": 1.0}], {"convention": "modified"}, "row 1: no d, alpha; give"),
        ([GOOD], {"convention": "modified", "gravity": (0, 0)}, "gravity is .*; give three"),
        ([GOOD], {"convention": "modified", "base": np.eye(3)}, "base is .*; give a 4x4 matrix"),
        ([GOOD], {"convention": "modified", "tool": 2.0 * np.eye(4)}, "tool is .*; give a 4x4"),
        (
            [GOOD],
            {"convention": "modified", "tool": np.diag([1.0, 1.0, -1.0, 1.0])},
            "tool is .*; give a 4x4",
        ),
        ([GOOD | {"mass": 1.0, "alpha": 0}, GOOD], {"convention": "modified"}, "moves no inertia"),
        ([GOOD | {"link": "tool"}], {"convention": "modified"}, "two frames are named 'tool'"),
    ],
)
def test_bad_tables(rows: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        chasles.from_dh(rows, **options)


def test_a_table_has_its_own_convention() -> None:
    table = chasles.DHTable((chasles.DHRow(0.0, 0.1, 0.2, 0.3),), "standard")
    with pytest.raises(ModelError, match="the table is standard, not modified; leave out"):
        chasles.from_dh(table, convention="modified")
    moved = chasles.from_dh(table, base=BASE)
    close(moved.forward_kinematics([0.0], frame="base"), BASE, 1e-15)


def test_the_table_as_text() -> None:
    table = chasles.to_dh(stanford_arm(), convention="standard")
    assert str(table).splitlines()[:4] == [
        "stanford_arm: standard Denavit-Hartenberg (rad, m)",
        "joint   theta  d        a  alpha",
        "joint1  q1     0        0  -1.5708",
        "joint2  q2     0.15367  0  1.5708",
    ]
