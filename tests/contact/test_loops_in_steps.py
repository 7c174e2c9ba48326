"""Closed loops in time stepping: closed to rounding, consistent with event-driven contact."""

from dataclasses import replace

import numpy as np
import pytest
from support import raises

import chasles
from chasles import contact
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import JointData, LinkData

STEPPING = {"integrator": "time-stepping"}


def four_bar(angle=0.6):
    robot = chasles.robots.four_bar()
    return robot, robot.assemble([angle], robot.neutral())


def gap(robot, q):
    return np.max(np.abs(robot.loop_residual(q)))


def test_a_four_bar_swings_as_with_small_steps_and_keeps_its_loop_closed():
    """The loop is closed to rounding; errors of position and energy are of first order in dt."""
    robot, q = four_bar()
    qd = robot.complete(q, [1.0])
    exact = robot.simulate(q, qd, duration=0.3, dt=0.001)
    errors, drifts = [], []
    for dt in (0.002, 0.001):
        run = robot.simulate(q, qd, duration=0.3, dt=dt, **STEPPING)
        assert run.compiled
        assert gap(robot, run.q) < 1e-13
        errors.append(np.max(np.abs(run.q[-1] - exact.q[-1])))
        kinetic = robot.kinetic_energy(run.q, run.qd)
        drifts.append(np.ptp(kinetic + robot.potential_energy(run.q)) / np.ptp(kinetic))
    assert errors[0] < 5e-3
    assert drifts[0] < 0.06
    assert errors[1] / errors[0] == pytest.approx(0.5, abs=0.1)
    assert drifts[1] / drifts[0] == pytest.approx(0.5, abs=0.1)


def test_a_foot_of_a_four_bar_lands_where_rigid_contact_puts_it():
    robot, q = four_bar()
    up, high = (0.0, 1.0, 0.0), robot.forward_kinematics(q, frame="coupler")[1, 3]
    plane = contact.Plane(None, up, (0.0, high - 0.05, 0.0))
    pair = contact.Pair(contact.Point("coupler"), plane, contact.Rigid(friction=0.5))
    state = (q, np.zeros(robot.nv))
    run = robot.simulate(*state, duration=0.6, dt=0.002, contacts=[pair], **STEPPING)
    exact = robot.simulate(*state, duration=0.6, dt=0.001, contacts=[pair])
    assert gap(robot, run.q) < 1e-13
    np.testing.assert_allclose(run.q[-1], exact.q[-1], atol=1e-5)
    np.testing.assert_allclose(run.qd[-1], 0.0, atol=1e-9)
    assert run.excess < 1e-9


def test_a_contact_of_a_closed_mechanism_has_the_compliance_of_its_inertia():
    """A contact at rest yields at 1e-4 of the velocity that its impulse per step would cause.

    A torque presses the crank against a stop. The inertia is that of the whole linkage.
    """
    robot, q = four_bar()
    robot = robot.with_gravity((0.0, 0.0, 0.0))
    T = robot.forward_kinematics(q, frame="coupler")
    plane = contact.Plane(None, (0.0, 1.0, 0.0), (0.0, T[1, 3], 0.0))
    pair = contact.Pair(contact.Point("coupler"), plane, contact.Rigid())
    tau, dt = np.array([-5.0, 0.0, 0.0]), 0.002
    run = robot.simulate(
        q, np.zeros(3), tau=tau, dt=dt, steps=1, duration=dt, contacts=[pair], **STEPPING
    )
    J = robot.jacobian(q, frame="coupler")[3:]
    mass = robot.mass_matrix(q, coordinates="independent").item()
    G = robot.complete(q, [1.0])
    inverse = np.sum((J @ G) ** 2) / 3.0 / mass
    force = run.touching.forces[-1, 0, 1]
    speed = J[1] @ run.qd[-1]
    assert speed == pytest.approx(-1e-4 * inverse * force * dt, rel=1e-6)


def ball_on_plate(mass=0.5, radius=0.05):
    """Return a Stewart platform with a ball, their contact pair, and the ball's height."""
    source = chasles.robots.stewart().model.source
    ball = LinkData("ball", sphere_of(mass, radius))
    free = JointData("ball", "free", "base", "ball")
    parts = {"links": (*source.links, ball), "joints": (*source.joints, free)}
    names = (*source.independent, *(f"ball[{k}]" for k in range(6)))
    robot = chasles.Robot(replace(source, independent=names, **parts))
    top = contact.Plane("platform", (0.0, 0.0, 1.0), (0.0, 0.0, 0.05))
    pair = contact.Pair(contact.Sphere("ball", radius), top, contact.Rigid(friction=0.6))
    return robot, pair, 0.05 + radius


def sphere_of(mass, radius):
    moment = 0.4 * mass * radius * radius
    about = Symmetric(moment, moment, moment, 0.0, 0.0, 0.0)
    return RigidInertia.from_center(mass, Vector.of(0.0, 0.0, 0.0), about)


def extensions(R):
    """Return the extensions of the six legs that rotate the plate by R about its center."""
    found = []
    for k in range(6):
        turn, side = 2.0 * np.pi * (k // 2) / 3.0, 1.0 if k % 2 else -1.0
        low, high = (turn + side * np.radians(angle) for angle in (15.0, 45.0))
        foot = np.array([np.cos(low), np.sin(low), 0.0])
        head, up = 0.6 * np.array([np.cos(high), np.sin(high), 0.0]), np.array([0.0, 0.0, 0.8])
        found.append(np.linalg.norm(R @ head + up - foot) - np.linalg.norm(head + up - foot))
    return found


def test_a_ball_rolls_on_a_stewart_platform():
    """The legs hold the plate, and the ball rolls down with 5/7 g sin(tilt)."""
    tilt = 0.1
    robot, pair, high = ball_on_plate()
    R = np.array([[np.cos(tilt), 0, np.sin(tilt)], [0, 1, 0], [-np.sin(tilt), 0, np.cos(tilt)]])
    q = robot.assemble(np.r_[extensions(R), np.zeros(6)], robot.neutral())
    plate = robot.forward_kinematics(q, frame="platform")
    np.testing.assert_allclose(plate[:3, :3], R, atol=1e-9)
    place = robot.position_slice("ball").start + 4
    q[place : place + 3] = plate[:3, 3] + R @ [0.0, 0.0, high]
    legs = [robot.velocity_slice(f"leg{k}").start for k in range(1, 7)]
    gains = np.zeros((2, robot.nv))
    gains[:, legs] = [[1e6], [1e4]]
    run = robot.simulate(
        q, np.zeros(robot.nv), duration=0.2, dt=0.002, contacts=[pair],
        control=chasles.rollouts.PDControl(*gains, q), **STEPPING,
    )  # fmt: skip
    assert gap(robot, run.q) < 1e-12
    moved = (run.q[-1] - run.q[0])[place : place + 3] @ R[:, 0]
    expected = 5.0 / 7.0 * 9.81 * np.sin(tilt) * 0.5 * 0.2**2
    assert moved == pytest.approx(expected, rel=0.02, abs=1e-6)
    assert run.touching.forces[-1, 0] @ R[:, 2] == pytest.approx(
        0.5 * 9.81 * np.cos(tilt), rel=0.02
    )
    assert run.unsolved == 0
    assert run.excess < 1e-9


def test_open_loops_are_refused():
    robot, q = four_bar()
    with raises("E-MOTION-184"):
        robot.simulate(q + 0.1, np.zeros(robot.nv), duration=0.1, dt=0.002, **STEPPING)


@pytest.mark.parametrize("q", ["abc", [0.0, 1.0], np.nan])
def test_a_bad_start_is_refused_by_name(q):
    made = chasles.robots.four_bar()
    start = np.full(made.nq, q) if isinstance(q, float) else q
    with pytest.raises(chasles.ChaslesError, match="q"):
        made.simulate(start, np.zeros(made.nv), dt=0.002, steps=2, integrator="time-stepping")
