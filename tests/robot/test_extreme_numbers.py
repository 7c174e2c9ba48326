"""Finite but extreme values give a correct result, a result that is not finite, or an error."""

import math

import numpy as np
import pytest
from support import close, tree

import chasles
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_quaternion, vector_from_quaternion

SCALES = [10.0**k for k in (-320, -308, -200, -162, -160, -158, -154, -150, -100, 100, 139)]
SCALES += [10.0**k for k in (141, 150, 153, 154, 155, 200, 300, 307)]


def floating() -> chasles.Robot:
    return tree(3, 3, floating=True)


@pytest.mark.parametrize("scale", SCALES)
def test_quaternions_of_any_length_give_no_wrong_answer(scale: float) -> None:
    """Results for one state and for a batch are correct if the squared norm is representable."""
    robot = floating()
    q, qd, qdd = robot.random(seed=0), np.ones(robot.nv), np.ones(robot.nv)
    scaled = q.copy()
    scaled[:4] *= scale
    frame = robot.frames[-1]
    functions = {
        "kinematics": lambda q: robot.forward_kinematics(q, frame=frame),
        "inverse": lambda q: robot.inverse_dynamics(q, qd, qdd),
        "forward": lambda q: robot.forward_dynamics(q, qd, qdd),
        "moved": lambda q: robot.forward_kinematics(robot.integrate(q, qd), frame=frame),
        "jacobian": lambda q: robot.jacobian(q, frame=frame),
        "difference": lambda q: robot.difference(robot.random(seed=1), q),
    }
    for name, function in functions.items():
        for given, plain in ((scaled, q), (np.tile(scaled, (5, 1)), np.tile(q, (5, 1)))):
            found, wanted = function(given), function(plain)
            if np.all(np.isfinite(found)) or 1e-150 <= scale <= 1e153:
                close(found, wanted, 1e-12)
            assert np.all(np.isfinite(found)) or not 1e-150 <= scale <= 1e153, name


@pytest.mark.parametrize("scale", SCALES)
def test_conversions_of_quaternions_of_any_length(scale: float) -> None:
    unit = Vector.of(0.5, -0.5, 0.1, 0.7)
    scaled = Vector(tuple(x * scale for x in unit))
    if 1e-150 <= scale <= 1e153:
        found = [float(x) for x in vector_from_quaternion(scaled)]
        close(found, [float(x) for x in vector_from_quaternion(unit)], 1e-12)
        R = np.array(matrix_from_quaternion(scaled).rows)
        close(R, np.array(matrix_from_quaternion(unit).rows), 1e-12)


def test_single_precision_has_no_wrong_answer_either() -> None:
    robot = floating()
    q = robot.random(seed=0).astype(np.float32)
    run = chasles.compile(robot, "forward_kinematics", frame=robot.frames[-1], dtype="float32")
    wanted = run(q)
    for scale in (1e-30, 1e-10, 1e10, 1e18, 1e20, 1e30):
        scaled = q.copy()
        scaled[:4] *= np.float32(scale)
        found = run(scaled)
        if np.all(np.isfinite(found)):
            close(found, wanted, 1e-5)


@pytest.mark.parametrize("angle", [1e300, -1e300, 1e22, 1e15, 5e-324, 1e-310])
def test_extreme_angles(angle: float) -> None:
    """Sines and cosines of any finite angle equal those of the C library."""
    robot = chasles.robots.planar(2)
    pose = robot.forward_kinematics(np.array([angle, 0.0]), frame=robot.frames[-1])
    found = abs(pose[0, 0]), np.max(np.abs(pose[0, 1:3]))
    close(found, (abs(math.cos(angle)), abs(math.sin(angle))), 1e-12)


def test_velocities_beyond_squares_give_no_wrong_number() -> None:
    robot = chasles.robots.planar(2)
    q, qd = np.array([0.3, 0.4]), np.array([1e200, 1e200])
    assert not np.all(np.isfinite(robot.inverse_dynamics(q, qd, np.zeros(2))))
    tiny = robot.inverse_dynamics(q, np.array([5e-324, 1e-310]), np.zeros(2))
    close(tiny, robot.gravity_forces(q), 1e-12)


# Arguments of users' functions -------------------------------------------------------------------


def test_functions_of_a_motion_cannot_write_into_its_state() -> None:
    robot = chasles.robots.planar(2)
    q, qd = np.array([0.3, 0.4]), np.zeros(2)

    def writes(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        q[0] = 5.0
        return np.zeros(2)

    for compiled in (None, False):
        with pytest.raises(ValueError, match="read-only"):
            robot.simulate(q, qd, duration=0.01, dt=0.001, control=writes, compiled=compiled)
    event = chasles.Event(lambda t, q, qd: float(writes(t, q, qd)[0]) + 1.0)
    with pytest.raises(ValueError, match="read-only"):
        robot.simulate(q, qd, duration=0.01, dt=0.001, events=event)
    assert q.flags.writeable


def test_what_an_event_does_may_change_its_copies() -> None:
    robot = chasles.robots.planar(1)

    def turned(t: float, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        qd *= -1.0
        return q, qd

    event = chasles.Event(lambda t, q, qd: q[0] - 0.005, then=turned)
    found = robot.simulate([0.0], [1.0], duration=0.008, dt=0.001, events=event)
    (met,) = found.events
    assert met.qd[0] > 0.0
    assert found.qd[-1, 0] < 0.0


def test_zero_quaternions_under_jax_are_not_numbers() -> None:
    """A traced array cannot raise an error, so results that depend on the rotation are NaN."""
    jax = pytest.importorskip("jax")
    robot = floating()
    q, qd = robot.random(seed=0), np.ones(robot.nv)
    q[:4] = 0.0
    run = jax.jit(lambda q: robot.inverse_dynamics(q, qd.astype(q.dtype), qd.astype(q.dtype)))
    given = jax.numpy.asarray(q, dtype="float32")
    assert np.all(np.isnan(np.asarray(run(given))[:6]))
