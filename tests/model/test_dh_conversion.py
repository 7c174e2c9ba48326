"""Convert robots that are described in other frames to Denavit-Hartenberg rows."""

import math
from collections.abc import Callable
from functools import cache
from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.dh_oracle import random_rows, shift, turn
from support import Floats, close, raises, relative

import chasles
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, FrameData, JointData, LinkData, ModelError
from chasles.robots import general_chain, planar, puma560, quadruped, slider_crank, stanford_arm

CONVENTIONS = ("modified", "standard")
GRAVITY = np.array([0.4, -1.1, -9.6])
BASE = shift(0, 0.3) @ turn(1, 0.7) @ turn(2, -0.4) @ shift(2, 0.1)
TOOL = shift(2, 0.15) @ turn(0, 0.5) @ shift(1, -0.2)


def places(robot: chasles.Robot, joint: str) -> range:
    """Return the indices of a joint's velocities."""
    (k,) = (k for k, body in enumerate(robot.model.bodies) if body.data.name == joint)
    return range(*robot.model.velocity_slices[k].indices(robot.nv))


def same(robot: chasles.Robot, tolerance: float = 1e-12, **options: Any) -> None:
    """Assert that the table of a robot describes the same robot, in both conventions."""
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
        order = [k for name in robot.joints for k in places(again, name)]
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
    """Return the files of example-robot-data with one chain of revolute and prismatic joints."""
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
    except (ModelError, chasles.errors.LeftOutWarning):
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
    """A Panda with locked fingers has the modified parameters of Franka Emika's documentation."""
    path = next(f for f in files("example-robot-data") or () if f.name == "panda.urdf")
    robot = chasles.load(Path(str(path.locate())))
    with raises("E-DH-011", "'panda_finger_joint2'"):
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
    """d1, a2, a3, d4, d5 and d6 (standard) are those of Universal Robots.

    Signs follow the rules of the book.
    """
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
    """d is 0 between parallel axes if the frames are not those of a table (rule of the book)."""
    robot = chasles.Robot(arm("RRR", [(0.3, 0.2, 0.5), (0.3, -0.4, 0.7), (0.1, 0.2, 0.3)]))
    table = chasles.to_dh(robot)
    assert [row.alpha for row in table.rows] == [0.0, 0.0, 0.0]
    assert [row.d for row in table.rows[1:]] == [0.0, 0.0]
    close([row.a for row in table.rows[1:]], [0.5, math.hypot(0.1, 0.2)], 1e-15)
    same(robot)


KINDS = {"R": "revolute", "P": "prismatic", "C": "continuous", "H": "helical", "Y": "cylindrical"}


def arm(
    kinds: str,
    places: list[tuple[float, float, float]],
    turns: list[np.ndarray] | None = None,
    axes: list[tuple[float, float, float]] | None = None,
) -> Description:
    """Return a chain with the given joint positions, frame rotations and joint axes."""
    links, joints = [LinkData("base", RigidInertia.zero())], []
    for i, (letter, place) in enumerate(zip(kinds, places, strict=True), start=1):
        R = np.eye(3) if turns is None else turns[i - 1][:3, :3]
        pose = Transform.from_pose(Matrix(tuple(map(tuple, R.tolist()))), Vector(place))
        kind = KINDS[letter]
        axis = Vector.of(0.0, 0.0, 1.0) if axes is None else Vector(axes[i - 1])
        pitch = 0.3 if letter == "H" else 0.0
        joints.append(JointData(f"j{i}", kind, links[-1].name, f"l{i}", pose, axis, pitch=pitch))
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
@given(
    st.lists(st.tuples(st.sampled_from(sorted(KINDS)), PLACES, TURNS, AXES), min_size=1, max_size=6)
)
def test_any_chain(parts: list[Any]) -> None:
    """Conversion works for parallel, opposite, coincident, intersecting and skew axes.

    The common normal of nearly parallel axes can be far away. This increases rounding errors in
    proportion to the squared distance, because of the moments of inertia.
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
    with raises("E-DH-015", "'l2'", "'l3'"):
        chasles.to_dh(robot, tool="l2")
    with raises("E-MODEL-034", "'l4'", "'base'", "'l1'"):
        chasles.to_dh(robot, tool="l4")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (quadruped, "E-DH-010 'floating_base'"),
        (slider_crank, "E-DH-008"),
        (
            lambda: chasles.Robot(arm("RR", [(0.1, 0, 0)] * 2, [np.eye(4), turn(1, 1e-8)])),
            "E-DH-016 'j2'",
        ),
        (
            lambda: chasles.Robot(
                Description("stone", (LinkData("rock", RigidInertia.zero()),), ())
            ),
            "E-DH-014 'stone'",
        ),
    ],
)
def test_what_is_no_serial_arm_is_refused(make: Callable[[], chasles.Robot], message: str) -> None:
    with raises(message):
        chasles.to_dh(make())


def test_the_table_as_text() -> None:
    table = chasles.to_dh(stanford_arm(), convention="standard")
    assert str(table).splitlines()[:4] == [
        "stanford_arm: standard Denavit-Hartenberg (rad, m)",
        "joint   theta  d        a  alpha",
        "joint1  q1     0        0  -1.5708",
        "joint2  q2     0.15367  0  1.5708",
    ]
