"""Compare robots from Denavit-Hartenberg rows with products of matrices; refuse bad rows."""

import math
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model.dh_oracle import kinetic, poses, potential, random_rows, shift, turn
from support import Floats, close, raises

import chasles
from chasles.algorithms import FUNCTIONS, KINEMATICS
from chasles.functions.programs import spaces
from chasles.robots import puma560, stanford_arm

CONVENTIONS = ("modified", "standard")
GRAVITY = np.array([0.4, -1.1, -9.6])
BASE = shift(0, 0.3) @ turn(1, 0.7) @ turn(2, -0.4) @ shift(2, 0.1)
TOOL = shift(2, 0.15) @ turn(0, 0.5) @ shift(1, -0.2)


# From rows to robots ---------------------------------------------------------------------------


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("kinds", ["R", "P", "RPRRPR", "H", "C", "HCRHPC"])
def test_poses_are_products_of_the_rows(kinds: str, convention: Any) -> None:
    """Poses are products of the rows' matrices.

    Both theta and d of an axis may vary (Featherstone 2008, section 4.3).
    """
    rows = random_rows(kinds, 1)
    made = chasles.from_dh(rows, convention=convention, base=BASE, tool=TOOL, gravity=GRAVITY)
    robot, q = Floats(made), np.random.default_rng(2).normal(size=made.nq)
    T = poses(rows, convention, q, BASE)
    close(robot.forward_kinematics(q, frame="base"), BASE, 1e-15)
    for i in range(1, len(kinds) + 1):
        close(robot.forward_kinematics(q, frame=f"dh{i}"), T[i], 1e-14)
    close(robot.forward_kinematics(q, frame="tool"), T[-1] @ TOOL, 1e-14)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("kinds", ["RPRRPR", "HCRHPC"])
def test_masses_are_those_of_the_rows(kinds: str, convention: Any) -> None:
    """Energies agree with those from the rows' frames, to the accuracy of differences."""
    rows = random_rows(kinds, 3)
    made = chasles.from_dh(rows, convention=convention, base=BASE, gravity=GRAVITY)
    robot, (q, qd) = Floats(made), np.random.default_rng(4).normal(size=(2, made.nq))
    V = potential(rows, poses(rows, convention, q, BASE), GRAVITY)
    close(robot.potential_energy(q), V, 1e-13)
    close(robot.kinetic_energy(q, qd), kinetic(rows, convention, BASE)(q, qd), 1e-8)


def test_both_coordinates_are_in_the_text() -> None:
    rows = random_rows("HC", 6)
    rows[0]["pitch"] = 0.07
    text = str(chasles.to_dh(chasles.from_dh(rows, convention="standard"), convention="standard"))
    assert "0.07 q1" in text
    assert "q2[0]" in text
    assert "q2[1]" in text


@pytest.mark.parametrize(("name", "make"), [("puma560", puma560), ("stanford_arm", stanford_arm)])
def test_published_tables(name: str, make: Callable[[], chasles.Robot]) -> None:
    """Rows of the data files give equal poses with NumPy, `from_dh` and the built-in robots."""
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
    """Inertia may be three moments, six entries or a matrix, about center of mass or frame."""
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
    """Right angles given as math.pi / 2 give exact rotations, which save operations."""
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
    assert robot.notes == ("no masses are given: only kinematics is available",)
    named = [dict(zip(("theta", "d", "a", "alpha"), row, strict=True)) for row in rows]
    q = np.arange(4.0)
    T = poses(named, "standard", q, np.eye(4))
    close(robot.forward_kinematics(q, frame="tool"), T[-1], 1e-14)
    assert robot.jacobian(q, frame="tool").shape == (6, 4)
    with raises("E-CALL-065", "forward_dynamics"):
        robot.forward_dynamics(q, q, q)
    with raises("E-CALL-065", "inverse_dynamics"):
        robot.inverse_dynamics(q, q, q)
    again = chasles.to_dh(robot, convention="standard")
    assert again.massless
    close([[r.theta, r.d, r.a, r.alpha] for r in again.rows], rows, 1e-14)


def test_kinematics_are_the_functions_that_need_no_masses() -> None:
    """KINEMATICS contains the functions whose programs do not depend on masses."""
    light, heavy = (
        chasles.from_dh(
            [row | {"mass": k * row["mass"]} for row in random_rows("RPR", 7)],
            convention="modified",
        )
        for k in (1.0, 1.5)
    )
    options: dict[str, dict[str, Any]] = {
        name: {"frame": "tool"} for name in FUNCTIONS if "frame" in spaces(name).options
    }
    for function in FUNCTIONS:
        programs = [
            str(
                chasles.compile(
                    robot, function, backend="interpret", **options.get(function, {})
                ).program
            )
            for robot in (light, heavy)
        ]
        # Masses do not matter on a fixed base and without driven joints.
        held = {"generalized_jacobian", "driving_forces"}
        # These functions are empty without springs, actuators and sensors.
        held |= {"spring_forces", "actuate", "activation_rate", "actuator_values"}
        held |= {"sensor_values", "closed_sensor_values"}
        assert (programs[0] == programs[1]) == (function in KINEMATICS | held), function


# Bad input -------------------------------------------------------------------------------------


GOOD = {"theta": 0.0, "d": 0.1, "a": 0.2, "alpha": 0.3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"theta": math.nan}, "E-DH-006 theta is nan"),
        ({"theta": "1"}, "E-DH-006 theta is '1'"),
        ({"a": True}, "E-DH-006 a is True"),
        ({"d": 10**400}, "E-DH-006 d is 1000"),
        ({"mass": -1.0}, "E-DH-006 mass is -1.0"),
        ({"mass": math.inf}, "E-DH-006 mass is inf"),
        ({"center": (0.0, 1.0)}, "E-DH-006 (0.0, 1.0)"),
        ({"inertia": (1.0, 2.0)}, "E-DH-006 (1.0, 2.0)"),
        ({"inertia": np.arange(9.0).reshape(3, 3)}, "E-DH-006"),
        ({"inertia_about": "tip"}, "E-DH-006 inertia_about is 'tip'"),
        ({"kind": "spherical"}, "E-DH-006 kind is 'spherical'"),
        ({"kind": "helical"}, "E-MODEL-045"),
        ({"pitch": 0.1}, "E-DH-340 revolute"),
        ({"kind": "cylindrical", "pitch": 0.1}, "E-DH-340 cylindrical"),
        ({"kind": "cylindrical", "limits": (0.0, 1.0)}, "E-DH-341 limits"),
        ({"kind": "cylindrical", "effort": 2.0}, "E-DH-341 effort"),
        ({"limits": (1.0, 0.0)}, "E-DH-006"),
        ({"limits": (math.nan, 0.0)}, "E-DH-006"),
        ({"velocity": -1}, "E-DH-006 velocity is -1"),
        ({"friction": "low"}, "E-DH-006 friction is 'low'"),
        ({"name": 3}, "E-DH-006 name is 3"),
        ({"alfa": 1.0}, "E-DH-001 'alfa'"),
    ],
)
def test_bad_rows(change: dict[str, Any], message: str) -> None:
    with raises(message):
        chasles.from_dh([GOOD, GOOD | change], convention="modified")


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([GOOD], {}, "E-ROBOT-002 'modified'"),
        ([GOOD], {"convention": "distal"}, "E-DH-006 convention is 'distal'"),
        ([], {"convention": "modified"}, "E-DH-004"),
        ("rows", {"convention": "modified"}, "E-DH-003"),
        (GOOD, {"convention": "modified"}, "E-DH-003"),
        (3, {"convention": "modified"}, "E-DH-003"),
        (np.zeros((2, 5)), {"convention": "modified"}, "E-DH-005"),
        (np.zeros(4), {"convention": "modified"}, "E-DH-005"),
        ([{"theta": 0.0, "a": 1.0}], {"convention": "modified"}, "E-DH-002"),
        ([GOOD], {"convention": "modified", "gravity": (0, 0)}, "E-DH-006"),
        ([GOOD], {"convention": "modified", "base": np.eye(3)}, "E-DH-007"),
        ([GOOD], {"convention": "modified", "tool": 2.0 * np.eye(4)}, "E-DH-007"),
        (
            [GOOD],
            {"convention": "modified", "tool": np.diag([1.0, 1.0, -1.0, 1.0])},
            "E-DH-007",
        ),
        ([GOOD | {"link": "tool"}], {"convention": "modified"}, "E-MODEL-002 'tool'"),
    ],
)
def test_bad_tables(rows: Any, options: dict[str, Any], message: str) -> None:
    with raises(message):
        chasles.from_dh(rows, **options)


def test_angles_in_degrees_are_reported(tmp_path: Path) -> None:
    """A warning, a note and a finding name the row; angles of up to a turn are not suspicious."""
    rows = [[0.0, 0.1, 0.2, 2.0 * math.pi], [90.0, 0.0, 0.3, -90.0]]
    with pytest.warns(UserWarning, match="row 2: theta = 90 and alpha = -90 look like") as told:
        robot = chasles.from_dh(rows, convention="modified")
    assert [warning.filename for warning in told] == [__file__]
    assert [note.partition(": ")[0] for note in robot.notes if "degrees" in note] == ["row 2"]
    path = tmp_path / "arm.toml"
    text = "\n[[joint]]\ntheta = 0\nd = 0\na = 0.3\nalpha = -90\n"
    path.write_text(f'format = "dh"\nconvention = "modified"{text}')
    notes = [note for note in chasles.load(path).notes if "degrees" in note]
    assert notes == [f"{path}:3: alpha = -90 looks like degrees; give radians"]


def test_a_table_has_its_own_convention() -> None:
    table = chasles.DHTable((chasles.DHRow(0.0, 0.1, 0.2, 0.3),), "standard")
    with raises("E-ROBOT-001"):
        chasles.from_dh(table, convention="modified")
    moved = chasles.from_dh(table, base=BASE)
    close(moved.forward_kinematics([0.0], frame="base"), BASE, 1e-15)
