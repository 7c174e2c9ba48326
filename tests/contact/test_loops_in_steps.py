"""Closed loops in time stepping: closed to rounding, beside event-driven contact, and energy."""

import numpy as np
import pytest
from support import raises

import chasles
from chasles import contact

STEPPING = {"integrator": "time-stepping"}


def four_bar(angle=0.6):
    robot = chasles.robots.four_bar()
    return robot, robot.assemble([angle], robot.neutral())


def gap(robot, q):
    return np.max(np.abs(robot.loop_residual(q)))


def test_a_four_bar_swings_as_with_small_steps_and_keeps_its_loop_closed():
    """Errors of position and energy are of first order in dt; the loop is closed to rounding."""
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
