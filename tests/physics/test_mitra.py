"""Numerical examples of Mitra (section 3), with all values to seven digits.

The values are recomputed in 40-digit arithmetic, because the document truncates. It also prints
261.82 for y of the position (161.8263) and -0.606 for alpha_x (-0.0606218), and omits a row of
Jdot. The document's robot is in mm, defined here as URDF. The built-in `microbot` is the same in m.
"""

from pathlib import Path

import numpy as np
import pytest

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.algorithms.joint_motion import joint_motion_rates, motion_matrices
from chasles.algorithms.spatial.kinematics import Viewpoint, body_transforms
from chasles.mathematics.spatial import Transform
from chasles.model.spaces import VelocitySpace

RIGHT = "1.5707963267948966 0 0"
ROWS = (
    ("revolute", "0 0 0", "0 0 0"),
    ("revolute", "0 0 195", RIGHT),
    ("revolute", "178 0 0", "0 0 0"),
    ("revolute", "178 0 0", "0 0 0"),
    ("prismatic", "0 0 0", RIGHT),
)
"""Type of each joint, and placement of its frame in the previous link (mm, rad)."""

Q = np.array([*np.radians([30.0, 60.0, -30.0, 0.0]), 97.0])
QD = np.array([0.20, 0.0, 0.0, -0.35, 6.0])
RATES = {1: np.zeros(5), 2: np.array([0.2, 0.2, 0.2, 0.2, 5.0])}
"""Joint accelerations of each example, numerically equal to the joint jerks."""

POSITION = (280.2913, 161.8263, 298.7224)
VELOCITY = (-0.175, 0.3031089, 0.2, -72.02968, 33.15800, -33.37115)
ACCELERATION = {
    1: (-0.0606218, -0.035, 0, -13.74164, -29.08810, 14.98019),
    2: (0.2393782, -0.5546152, 0.2, -29.02233, 36.83394, 138.4111),
}
JERK = {
    1: (0.007, -0.0121244, 0, 14.32627, -4.070572, 5.361024),
    2: (0.4542243, -0.4467396, 0.2, 21.31549, 56.64511, 43.72595),
}
JACOBIAN = (
    (0, 0.5, 0.5, 0.5, 0),
    (0, -0.8660254, -0.8660254, -0.8660254, 0),
    (1, 0, 0, 0, 0),
    (-161.8263, -89.82626, 43.67374, 120.75, 0.4330127),
    (280.2913, -51.86122, 25.21505, 69.71505, 0.25),
    (0, 323.6525, 234.6525, 80.5, -0.8660254),
)
FIRST_RATE = (
    (0, 0.1732051, 0.1732051, 0.1732051, 0),
    (0, 0.1, 0.1, 0.1, 0),
    (0, 0, 0, 0, 0),
    (-33.158, 39.27251, 23.85726, 14.95726, -0.3125),
    (-72.02968, -1.279676, 25.42032, 40.83558, -0.06495191),
    (0, -45.80053, -45.80053, -45.80053, -0.175),
)
SECOND_RATE = {
    1: (
        (0, -0.02, -0.02, -0.02, 0),
        (0, 0.03464102, 0.03464102, 0.03464102, 0),
        (0, 0, 0, 0, 0),
        (29.0881, -16.0544, -21.3944, -24.47745, -0.009742786),
        (-13.74164, 6.144462, 3.061411, 1.281411, -0.145625),
        (0, -13.49856, -13.49856, -13.49856, 0.1060881),
    ),
    2: (
        (0, 0.1532051, 0.1532051, 0.1532051, 0),
        (0, 0.134641, 0.134641, 0.134641, 0),
        (0, 0, 0, 0, 0),
        (-36.83394, -112.5764, -117.9164, -76.49949, 0.3902572),
        (-29.02233, -73.53623, -41.01928, 3.446475, 0.2007852),
        (0, 6.228993, 37.0595, 72.6595, 0.4060881),
    ),
}


def seven_digits(found: np.ndarray, table: object) -> None:
    """Assert that every entry agrees to half a unit of its seventh digit or decimal."""
    np.testing.assert_allclose(found, np.array(table), rtol=5e-7, atol=5.1e-8)


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> chasles.Robot:
    """Return the document's robot, in mm; frame 6 is link5, and P is a frame on link5."""
    moments = 'ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"'
    inertia = f'<inertial><mass value="1"/><inertia {moments}/></inertial>'
    links = "".join(f'<link name="link{k}">{inertia}</link>' for k in range(6))
    joints = "".join(
        f'<joint name="joint{k}" type="{kind}"><parent link="link{k - 1}"/><child link="link{k}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 0 1"/>'
        '<limit lower="-200" upper="200" effort="1" velocity="1"/></joint>'
        for k, (kind, xyz, rpy) in enumerate(ROWS, start=1)
    )
    tip = (
        '<joint name="tip" type="fixed"><parent link="link5"/><child link="P"/>'
        '<origin xyz="0 0 64"/></joint>'
    )
    path = Path(tmp_path_factory.mktemp("mitra")) / "microbot_mm.urdf"
    path.write_text(f'<robot name="microbot_mm">{links}<link name="P"/>{joints}{tip}</robot>')
    return chasles.load(path)


def test_position(robot: chasles.Robot) -> None:
    seven_digits(robot.forward_kinematics(Q, frame="P")[:3, 3], POSITION)


@pytest.mark.parametrize("method", [method.name for method in FUNCTIONS["frame_motion"]])
@pytest.mark.parametrize("example", RATES)
def test_motion_of_the_point(robot: chasles.Robot, example: int, method: str) -> None:
    rates = QD, RATES[example], RATES[example]
    expected = VELOCITY, ACCELERATION[example], JERK[example]
    seven_digits(robot.frame_motion(Q, *rates, frame="P", method=method), expected)
    in_frame_6 = robot.frame_motion(Q, *rates, frame="link5", at=(0.0, 0.0, 64.0), method=method)
    seven_digits(in_frame_6, expected)


@pytest.mark.parametrize("example", RATES)
def test_jacobian_and_its_rates(robot: chasles.Robot, example: int) -> None:
    seven_digits(robot.jacobian(Q, frame="P"), JACOBIAN)
    for method in ("spatial", "joint-motion"):
        seven_digits(robot.jacobian_rate(Q, QD, frame="P", method=method), FIRST_RATE)
    second = robot.jacobian_rate(Q, QD, RATES[example], frame="P", order=2)
    seven_digits(second, SECOND_RATE[example])


@pytest.mark.parametrize("example", RATES)
def test_motion_matrices_take_the_point_to_its_derivatives(
    robot: chasles.Robot, example: int
) -> None:
    """Omega P, A_H P and J_H P are the published velocity, acceleration and jerk."""
    rates = QD, RATES[example], RATES[example]
    P = np.append(robot.forward_kinematics(Q, frame="P")[:3, 3], 1.0)
    found = robot.motion_matrices(Q, *rates, frame="P") @ P
    expected = [VELOCITY, ACCELERATION[example], JERK[example]]
    seven_digits(found[:, :3], [motion[3:] for motion in expected])
    assert not np.any(found[:, 3])
    Omega, A_H = robot.motion_matrices(Q, *rates, frame="P")[:2]
    D = robot.joint_motion_matrices(Q, frame="P")
    Ddot = robot.joint_motion_matrices(Q, QD, frame="P")
    np.testing.assert_allclose(np.tensordot(QD, D, 1), Omega, atol=1e-12)
    rate = np.tensordot(rates[1], D, 1) + np.tensordot(QD, Ddot, 1)
    np.testing.assert_allclose(rate + Omega @ Omega, A_H, atol=1e-11)


def test_properties_are_the_axes_of_the_joints(robot: chasles.Robot) -> None:
    """D is [e~ r x e; 0 0] for a revolute axis and [0 e; 0 0] for a prismatic one."""
    for k, D in enumerate(robot.joint_motion_matrices(Q, frame="P")):
        T = robot.forward_kinematics(Q, frame=f"link{k + 1}")
        e, r = T[:3, 2], T[:3, 3]
        expected = np.zeros((4, 4))
        if ROWS[k][0] == "prismatic":
            expected[:3, 3] = e
        else:
            expected[:3, :3] = [[0, -e[2], e[1]], [e[2], 0, -e[0]], [-e[1], e[0], 0]]
            expected[:3, 3] = np.cross(r, e)
        np.testing.assert_allclose(D, expected, atol=1e-12)


def test_jacobian_rates_of_any_order(robot: chasles.Robot) -> None:
    """The third rate is the derivative of the second along q(t) = Q + QD t + a t^2/2 + b t^3/6."""
    a, b = RATES[2], -RATES[2]
    h = 1e-3

    def second(t: float) -> np.ndarray:
        q, qd = Q + t * (QD + t * (a / 2 + t * b / 6)), QD + t * (a + t * b / 2)
        return robot.jacobian_rate(q, qd, a + t * b, frame="P")

    slope = (8.0 * (second(h) - second(-h)) - second(2 * h) + second(-2 * h)) / (12.0 * h)
    third = robot.jacobian_rate(Q, QD, a, b, frame="P", order=3)
    np.testing.assert_allclose(third, slope, atol=1e-6 * np.max(np.abs(slope)))
    np.testing.assert_array_equal(robot.jacobian_rate(Q, qd=QD, qdd=a, qddd=b, frame="P"), third)


@pytest.mark.parametrize("example", RATES)
def test_the_built_in_robot_is_the_same_in_metres(example: int) -> None:
    robot, unit = chasles.robots.microbot(), np.array([1.0, 1.0, 1.0, 1.0, 1e-3])
    mm = np.array([1.0, 1.0, 1.0, 1e3, 1e3, 1e3])
    rates = [unit * QD, unit * RATES[example], unit * RATES[example]]
    found = robot.frame_motion(unit * Q, *rates, frame="P")
    seven_digits(found * mm, (VELOCITY, ACCELERATION[example], JERK[example]))
    second = robot.jacobian_rate(unit * Q, *rates[:2], frame="P", order=2)
    seven_digits(mm[:, None] * second * unit, SECOND_RATE[example])


@pytest.mark.parametrize("example", RATES)
def test_matrices_of_the_document(robot: chasles.Robot, example: int) -> None:
    """D agrees with its definition, Ddot with Eq 3 as 4x4 matrices, and Rdddot with J_H R."""
    model, body = robot.model, robot.model.frame("P").body
    rates = [VelocitySpace().split(model, x.tolist()) for x in (QD, RATES[example], RATES[example])]
    q = model.positions(Q.tolist())
    base = Viewpoint.of(Transform.identity(), "world", "world")
    D, Omega = joint_motion_rates(model, q, rates, body, body_transforms(model, q), base)
    T = [robot.forward_kinematics(Q, frame=f"link{k}") for k in range(1, 6)]
    for i, (kind, *_) in enumerate(ROWS):
        e, r = T[i][:3, 2], T[i][:3, 3]
        expected = [*e, *np.cross(r, e)] if kind == "revolute" else [0.0, 0.0, 0.0, *e]
        np.testing.assert_allclose(list(D[i][0].columns[0]), expected, atol=1e-13 * 300.0)
    speed = sum(dense(D[i][0]) * QD[i] for i in D)
    np.testing.assert_allclose(np.array(Omega[0].matrix().rows), speed, atol=1e-12)
    before = np.zeros((4, 4))
    for i in D:
        Ddot = before @ dense(D[i][0]) - dense(D[i][0]) @ before
        np.testing.assert_allclose(dense(D[i][1]), Ddot, atol=1e-12 * 300.0)
        before = before + dense(D[i][0]) * QD[i]
    R = np.array([*POSITION, 1.0])
    tables = VELOCITY, ACCELERATION[example], JERK[example]
    for B, row in zip(motion_matrices(Omega), tables, strict=True):
        np.testing.assert_allclose((np.array(B.matrix().rows) @ R)[:3], row[3:], rtol=2e-6)


def dense(D: object) -> np.ndarray:
    return np.array(D.columns[0].matrix().rows)
