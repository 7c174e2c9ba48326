"""Controllers follow trajectories in compiled motions, as in plain Python loops."""

from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles import trajectory
from chasles.expr import sin
from chasles.rollouts import ComputedTorque, PDControl

Q0 = np.array([0.2, 0.8])
STILL = np.zeros(2)
ARM = chasles.robots.planar(2)
MOVE = trajectory.trapezoid(Q0, Q0 + 0.2, velocity=1.5, acceleration=9.0)
"""Trajectory whose acceleration jumps within the simulated time."""


STEPS = "time-stepping"


def by_hand(law: Any, q: np.ndarray, t: float, h: float, steps: int) -> np.ndarray:
    """Integrate by the classical Runge-Kutta method, with forward and inverse dynamics alone."""

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        place, rate, rise = MOVE(t)
        pulled = law.stiffness * (place - y[:2]) + law.damping * (rate - y[2:])
        if isinstance(law, ComputedTorque):
            tau = ARM.inverse_dynamics(y[:2], y[2:], rise + pulled)
        else:
            tau = pulled + law.feedforward
        return np.concatenate([y[2:], ARM.forward_dynamics(y[:2], y[2:], tau)])

    y = np.concatenate([q, STILL])
    for _ in range(steps):
        a = rates(t, y)
        b = rates(t + 0.5 * h, y + 0.5 * h * a)
        c = rates(t + 0.5 * h, y + 0.5 * h * b)
        d = rates(t + h, y + h * c)
        y, t = y + h / 6.0 * (a + 2.0 * b + 2.0 * c + d), t + h
    return y


@pytest.mark.parametrize(
    "law", [ComputedTorque(400.0, 40.0, MOVE), PDControl(90.0, 9.0, MOVE, 1.0)]
)
def test_rollouts_follow_trajectories(law: Any) -> None:
    options: Any = {"dt": 0.002, "steps": 60, "start": 0.05, "integrator": "rk4"}
    q = Q0 + 0.01 * np.arange(2)
    run = ARM.rollout(np.array([q, Q0]), STILL, control=law, **options)
    wanted = by_hand(law, q, 0.05, 0.002, 60)
    assert np.abs(np.concatenate([run.q[0, -1], run.qd[0, -1]]) - wanted).max() < 1e-12
    # The gradient agrees with the difference of two rollouts.
    weights = np.zeros((61, 2))
    weights[-1] = 1.0
    found = ARM.rollout_pullback(q, STILL, control=law, covectors=(weights, None), **options)
    step = 1e-6 * np.ones(2)
    ends = [ARM.rollout(x, STILL, control=law, **options).q[-1].sum() for x in (q - step, q + step)]
    assert abs((ends[1] - ends[0]) / 2e-6 - found.q.sum()) < 1e-6 * max(abs(found.q.sum()), 1.0)
    assert found.ctrl is None


@pytest.mark.parametrize("integrator", ["semi-implicit", "heun3", "rk4"])
def test_compiled_and_interpreted_motions_agree(integrator: str) -> None:
    """The motions contain quaternions, and the compiled motion has two parts."""
    robot = chasles.robots.random_tree(1, 11, floating=True)
    q0, q1 = robot.random(np.random.default_rng(3), size=2)
    move = trajectory.minimum_jerk(q0, q1, 0.4, robot=robot)
    options: Any = {"duration": 0.02, "dt": 0.001, "integrator": integrator}
    options["control"] = ComputedTorque(400.0, 40.0, move)
    still = np.zeros(robot.nv)
    slow = robot.simulate(q0, still, compiled=False, **options)
    first = robot.simulate(q0, still, steps=7, **options)
    last = robot.simulate(q0, still, resume=first.end, **options)
    assert first.compiled
    found = np.concatenate([first.q, last.q])
    assert np.abs(robot.difference(found, slow.q)).max() < 1e-12


def test_time_stepping_follows_trajectories() -> None:
    """The error of time stepping, in which damping is implicit, is of first order in dt."""
    law = ComputedTorque(400.0, 40.0, MOVE)
    options: Any = {"duration": 0.1, "control": law}
    run = ARM.simulate(Q0, STILL, dt=0.0005, integrator="time-stepping", **options)
    exact = ARM.simulate(Q0, STILL, dt=0.0005, **options)
    assert run.compiled
    coarse = ARM.simulate(Q0, STILL, dt=0.001, integrator="time-stepping", **options)
    errors = [np.abs(each.q[-1] - exact.q[-1]).max() for each in (run, coarse)]
    assert errors[0] < 1e-3
    assert 1.7 < errors[1] / errors[0] < 2.3


def test_functions_of_time_are_targets() -> None:
    """A target may be a function t -> q, qd, qdd that is not a trajectory."""

    def circle(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return Q0 + 0.1 * np.sin(t), 0.1 * np.cos(t) * np.ones(2), -0.1 * np.sin(t) * np.ones(2)

    def law(t: Any, q: Any, qd: Any) -> list[Any]:
        wave, slope = 0.1 * sin(t), 0.1 * sin(t + 0.5 * np.pi)
        return [90.0 * (Q0[k] + wave - q[k]) + 9.0 * (slope - qd[k]) for k in range(2)]

    options: Any = {"dt": 0.001, "steps": 50, "integrator": "rk4"}
    run = ARM.rollout(Q0, STILL, control=PDControl(90.0, 9.0, circle), **options)
    assert np.abs(run.q - ARM.rollout(Q0, STILL, control=law, **options).q).max() < 1e-13


@pytest.mark.parametrize("law", [PDControl, ComputedTorque])
def test_trajectories_of_other_robots_are_refused(law: Any) -> None:
    """Rollouts, compiled and interpreted simulations raise an error with both sizes."""
    arm, control = chasles.robots.puma560(), law(100.0, 10.0, MOVE)
    state = np.zeros(6), np.zeros(6)
    five = chasles.robots.five_bar()
    closed = five.assemble([1.9, 1.2], guess=[1.2, -1.0, 1.9, 1.0])
    for size, call in (
        (6, lambda: arm.simulate(*state, duration=0.1, control=control)),
        (6, lambda: arm.simulate(*state, duration=0.1, control=control, integrator=STEPS)),
        (6, lambda: arm.rollout(*state, dt=1e-3, steps=5, control=control)),
        (4, lambda: five.simulate(closed, np.zeros(4), duration=0.1, control=control)),
    ):
        with raises("E-MOTION-211", f"2 coordinates was given, but the robot has {size};"):
            call()


@pytest.mark.parametrize("integrator", ["dopri5", "time-stepping"])
def test_motors_of_a_closed_loop_follow_a_trajectory(integrator: str) -> None:
    """A five-bar with motors at its two cranks moves as with an equal function of time."""
    robot = chasles.robots.five_bar()
    first = robot.assemble([1.9, 1.2], guess=[1.2, -1.0, 1.9, 1.0])
    last = robot.assemble([2.0, 1.35], guess=first)
    move = trajectory.minimum_jerk(first, last, duration=0.4, robot=robot)
    motors = np.array([name in robot.independent for name in robot.joints], float)
    options = {"duration": 0.4, "dt": 1e-3, "integrator": integrator}
    control = PDControl(2000.0 * motors, 60.0 * motors, move)
    run = robot.simulate(first, np.zeros(4), control=control, **options)
    assert np.abs(robot.loop_residual(run.q)).max() < 1e-8
    assert np.abs(run.q[-1] - last).max() < 1e-2
    if integrator != "time-stepping":

        def law(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
            place, rate, _ = move(t)
            return motors * (2000.0 * (place - q) + 60.0 * (rate - qd))

        same = robot.simulate(first, np.zeros(4), control=law, **options)
        np.testing.assert_allclose(run.q, same.q, atol=1e-10)
