"""Time dependence in closed loops: driven joints, and couplings phi(q, t) = 0."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from mechanisms import mechanism
from support import close, raises

import chasles
from chasles.algorithms import CLOSED_LOOPS
from chasles.expr import cos, sin, sqrt
from chasles.mechanisms import dynamics, singular_values
from chasles.model import LoopData, coupling, motion

T = 0.4
"""A generic time, in s."""

H = 1e-3
"""Step of fourth-order differences, in s, with an error of about 1e-10."""


def slope(f: Any, t: float = T) -> np.ndarray:
    """Return df/dt by fourth-order differences."""
    return (8.0 * (f(t + H) - f(t - H)) - (f(t + 2.0 * H) - f(t - 2.0 * H))) / (12.0 * H)


def turning(t: Any) -> Any:
    """Return the crank's angle, which starts at 0.5 rad and increases by about 3 rad/s."""
    return 0.5 + 3.0 * t + 0.2 * sin(4.0 * t)


TURNING = (
    0.5 + 3.0 * T + 0.2 * math.sin(4.0 * T),
    3.0 + 0.8 * math.cos(4.0 * T),
    -3.2 * math.sin(4.0 * T),
)
"""Angle, velocity and acceleration of the crank at time T."""


@cache
def bars() -> chasles.Robot:
    """Return a four-bar with a driven crank, which has no degree of freedom left."""
    return mechanism("four_bar").drive({"crank": turning})


def bars_at(t: float) -> np.ndarray:
    """Return coupler and rocker angles from the four-bar with a free crank."""
    free = mechanism("four_bar")
    crank = 0.5 + 3.0 * t + 0.2 * math.sin(4.0 * t)
    return free.assemble([crank], guess=free.assemble([0.5]))[1:]


def free_bars() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, qd and qdd of the four-bar with a free crank in the same motion, at T."""
    free = mechanism("four_bar")
    q = np.array([TURNING[0], *bars_at(T)])
    return q, *free.complete(q, [TURNING[1]], [TURNING[2]])


# A driven crank -----------------------------------------------------------------------------------


def test_a_driven_four_bar_has_no_freedom_and_moves() -> None:
    robot, (q, qd, qdd) = bars(), free_bars()
    assert robot.independent == ()
    assert robot.mobility() == 0
    here = robot.at_time(T)
    close(here.assemble([], guess=q[1:]), q[1:], 1e-12)
    found, rates = here.complete(q[1:], [], [])
    close(found, qd[1:], 1e-11)
    close(rates, qdd[1:], 1e-11)
    assert here.mobility(q[1:]) == 0


def test_its_equations_are_the_derivatives_of_its_closure() -> None:
    """r(q, t) stays zero if A qd = loop_rate and A qdd = loop_bias, as differences confirm."""
    robot, (_, qd, qdd) = bars(), free_bars()
    q = bars_at(T)
    here, A = robot.at_time(T), robot.at_time(T).loop_matrix(q)
    drift = slope(lambda t: robot.at_time(t).loop_residual(q))
    close(here.loop_rate(q), -drift, 1e-9)
    close(A @ qd[1:], here.loop_rate(q), 1e-11)
    close(A @ qdd[1:], here.loop_bias(q, qd[1:]), 1e-11)
    close(slope(bars_at), qd[1:], 1e-9)


@pytest.mark.parametrize("method", [m.name for m in CLOSED_LOOPS["constrained_dynamics"]])
def test_its_dynamics_are_hybrid_dynamics_of_the_free_four_bar(method: str) -> None:
    """Accelerations and motor torque agree with hybrid dynamics of the free four-bar."""
    free, (q, qd, _) = mechanism("four_bar"), free_bars()
    tau, here = np.array([0.3, -0.7]), bars().at_time(T)
    mixed = free.hybrid_dynamics(q, qd, [TURNING[2], *tau], known="crank")
    qdd, lam = here.constrained_dynamics(q[1:], qd[1:], tau, method=method)
    close(qdd, mixed[1:], 1e-10)
    close(here.driving_forces(q[1:], qd[1:], qdd, lam), mixed[:1], 1e-10)
    close(here.forward_dynamics(q[1:], qd[1:], tau), qdd, 1e-10)


def test_positions_at_many_times_at_once() -> None:
    times = np.linspace(0.0, 0.6, 4)
    here = bars().at_time(times)
    q = here.assemble(np.zeros((4, 0)), guess=np.array([bars_at(t) for t in times]))
    close(q, [bars_at(t) for t in times], 1e-11)
    qd = here.complete(q, np.zeros((4, 0)))
    close(qd[2], slope(bars_at, times[2]), 1e-9)
    qdd = here.forward_dynamics(q, qd, np.zeros(2))
    one = bars().at_time(times[3]).forward_dynamics(q[3], qd[3], np.zeros(2))
    close(qdd[3], one, 1e-12)
    with raises("E-LOOP-021"):
        bars().at_time(times + 0.1).forward_dynamics(q, qd, np.zeros(2))
    with raises("E-LOOP-018"):
        here.mobility(q[0])


def test_simulated_it_follows_the_crank() -> None:
    start, end = bars_at(0.1), 0.5
    qd = bars().at_time(0.1).complete(start, [])
    run = chasles.simulate(bars(), start, qd, duration=end - 0.1, start=0.1, dt=5e-3)
    close(run.q[-1], bars_at(end), 1e-10)
    with raises("E-MOTION-054"):
        chasles.simulate(bars(), start, 0.0 * qd, duration=0.1, start=0.1)


@cache
def pair() -> chasles.Robot:
    """Return a five-bar with one driven and one free crank."""
    free = mechanism("five_bar")
    return free.drive({free.independent[0]: lambda t: 2.0 + 0.4 * sin(3.0 * t)})


def pair_state() -> tuple[np.ndarray, np.ndarray]:
    """Return q and qd at time zero."""
    robot, free = pair(), mechanism("five_bar")
    loops = free.mechanism.closing
    q = np.delete(free.assemble([2.0, 0.9]), loops.places[loops.independent[0]])
    return q, robot.at_time(0.0).complete(q, [0.5])


def test_a_five_bar_with_one_crank_driven() -> None:
    """The energy changes by the work of the driven crank (power balance)."""
    robot, (q, qd) = pair(), pair_state()
    assert len(robot.independent) == 1
    run = chasles.simulate(robot, q, qd, duration=0.3, dt=1e-3)
    here = robot.at_time(run.t)
    energy = here.kinetic_energy(run.q, run.qd) + here.potential_energy(run.q)
    qdd, lam = here.constrained_dynamics(run.q, run.qd, np.zeros(robot.nv))
    force = here.driving_forces(run.q, run.qd, qdd, lam)[:, 0]
    power = force * 1.2 * np.cos(3.0 * run.t)
    gained = np.sum(power[1:-1:2] * 4.0 + power[:-2:2] + power[2::2]) * 1e-3 / 3.0
    np.testing.assert_allclose(energy[-1] - energy[0], gained, rtol=1e-8)
    residual = here.loop_residual(run.q)
    assert np.max(np.abs(residual)) < 1e-12


def test_a_five_bar_held_by_stabilization() -> None:
    """Stabilization removes a velocity error of 1e-4, which would open the loop by 1e-5.

    The integration error is 1e-9 in steps of a tenth of the stabilization time.
    """
    robot, (q, qd) = pair(), pair_state()
    options: dict[str, Any] = {"duration": 0.3, "dt": 2e-3}
    exact = chasles.simulate(robot, q, qd, **options)
    held = chasles.simulate(robot, q, qd, stabilization=0.02, **options)
    np.testing.assert_allclose(held.q[-1], exact.q[-1], atol=1e-8)
    off = chasles.simulate(robot, q, qd + np.array([0.0, 1e-4, 0.0]), stabilization=0.02, **options)
    assert np.max(np.abs(robot.at_time(off.t[-1]).loop_residual(off.q[-1]))) < 1e-8


def test_linearized_as_by_differences() -> None:
    """A for the free coordinate agrees with differences between neighboring closed motions."""
    robot, (q, qd) = pair(), pair_state()
    here, tau = robot.at_time(0.0), np.array([0.2, -0.1, 0.3])
    A, _ = here.linearize(q, qd, tau, coordinates="independent")
    k = robot.mechanism.loops.independent[0]

    def rate(y: float, yd: float) -> np.ndarray:
        there = here.assemble([q[k] + y], guess=q)
        moved = here.complete(there, [qd[k] + yd])
        return np.array([moved[k], here.forward_dynamics(there, moved, tau)[k]])

    by_y, by_yd = slope(lambda s: rate(s, 0.0), 0.0), slope(lambda s: rate(0.0, s), 0.0)
    close(A, np.stack([by_y, by_yd], axis=-1), 1e-8)


# Time-dependent couplings -------------------------------------------------------------------------


@cache
def led() -> tuple[chasles.Robot, chasles.Robot]:
    """Return an arm with its first joint driven, and the arm with a coupling that does the same."""
    arm = chasles.robots.planar(3)
    driven = arm.drive({"joint1": turning})
    return driven, arm.with_couplings(coupling("motor", ["joint1"], lambda q, t: q - turning(t)))


def test_a_coupling_of_one_joint_drives_it() -> None:
    """The multiplier of the coupling is the driving torque, because K is 1."""
    driven, coupled = led()
    rng = np.random.default_rng(0)
    y, yd, tau = rng.normal(size=(3, 2))
    q, qd = np.array([TURNING[0], *y]), np.array([TURNING[1], *yd])
    qdd, lam = coupled.at_time(T).constrained_dynamics(q, qd, [0.0, *tau])
    expected = driven.at_time(T).forward_dynamics(y, yd, tau)
    close(qdd, [TURNING[2], *expected], 1e-11)
    close(lam, driven.at_time(T).driving_forces(y, yd, expected), 1e-11)
    close(coupled.at_time(T).complete(q, yd), qd, 1e-12)


@cache
def cam() -> chasles.Robot:
    """Return an arm with a nonlinear gear between two joints, whose ratio changes in time."""

    def phi(a: Any, b: Any, t: Any) -> Any:
        return a - (1.0 + 0.3 * sin(5.0 * t)) * sin(b) + 0.2 * cos(3.0 * t) * a * b

    return chasles.robots.planar(3).with_couplings(coupling("cam", ["joint1", "joint3"], phi))


def cam_state() -> tuple[np.ndarray, np.ndarray]:
    here = cam().at_time(T)
    q = here.assemble([0.4, -0.2], guess=[0.4, -0.2, 0.3])
    return q, here.complete(q, [0.8, -0.6])


def test_terms_of_time_by_differences() -> None:
    """K, its drift and all second derivatives agree with differences along q + s qd, T + s."""
    robot, (q, qd) = cam(), cam_state()
    here = robot.at_time(T)

    def phi(s: float) -> np.ndarray:
        return robot.at_time(T + s).loop_residual(q + s * qd)

    def rate(s: float) -> np.ndarray:
        there = robot.at_time(T + s)
        return there.loop_matrix(q + s * qd) @ qd - there.loop_rate(q + s * qd)

    np.testing.assert_allclose(slope(phi, 0.0), 0.0, atol=1e-10)
    np.testing.assert_allclose(rate(0.0), 0.0, atol=1e-12)
    assert abs(here.loop_rate(q)[0]) > 0.1
    close(here.loop_bias(q, qd), -slope(rate, 0.0), 1e-9)


def test_a_simulated_motion_keeps_it() -> None:
    robot, (q, qd) = cam(), cam_state()
    run = chasles.simulate(robot, q, qd, duration=0.2, start=T, dt=2e-3)
    here = robot.at_time(run.t)
    assert np.max(np.abs(here.loop_residual(run.q))) < 1e-12
    slip = np.einsum("kmv,kv->km", here.loop_matrix(run.q), run.qd) - here.loop_rate(run.q)
    assert np.max(np.abs(slip)) < 1e-11
    middle = (8.0 * (run.q[51] - run.q[49]) - (run.q[52] - run.q[48])) / (12.0 * 2e-3)
    close(middle, run.qd[50], 1e-7)


def test_near_singular_states_by_singular_values() -> None:
    """Solutions by singular values agree, including terms of time and of stabilization."""
    robot, (q, qd) = cam(), cam_state()
    loops, tau = robot.at_time(T).mechanism.closing, np.array([0.1, 0.2, -0.3])
    state = (q, qd + np.array([0.0, 0.1, 0.0]), tau)
    qdd, lam = singular_values.constrained_dynamics(loops, state, stabilization=0.1)
    found = robot.at_time(T).constrained_dynamics(*state, stabilization=0.1)
    close(qdd, found[0], 1e-11)
    close(lam, found[1], 1e-11)


def test_reactions_of_a_driven_four_bar() -> None:
    """Reactions agree with those of the free four-bar with a motor torque at the crank."""
    bar, free, (q, qd, qdd) = bars().at_time(T), mechanism("four_bar"), free_bars()
    found, lam = bar.constrained_dynamics(q[1:], qd[1:], [0.0, 0.0])
    motor = free.hybrid_dynamics(q, qd, [qdd[0], 0.0, 0.0], known="crank")[0]
    expected, forces = free.constrained_dynamics(q, qd, [motor, 0.0, 0.0])
    close(
        bar.joint_reactions(q[1:], qd[1:], found, multipliers=lam),
        free.joint_reactions(q, qd, expected, multipliers=forces),
        1e-10,
    )


def test_weak_states_of_a_batch_keep_their_own_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weak states are solved at their own times, for unknown or partly known accelerations."""
    times, tau = np.array([0.1, T, 0.9]), np.array([0.1, 0.2, -0.3])
    robot, here = cam(), cam().at_time(times)
    q = here.assemble([0.4, -0.2], guess=[0.4, -0.2, 0.3])
    qd = here.complete(q, [0.8, -0.6])
    compiled = chasles.compile(robot, "constrained_dynamics", method="minimal")
    qdd, lam, health = compiled(q, qd, tau, times)
    mixed = here.hybrid_dynamics(q, qd, tau, known="joint1")
    monkeypatch.setattr(dynamics, "WEAK", 0.9)
    assert list(health[:, 1] > 0.9) == [True, True, False]
    found = here.constrained_dynamics(q, qd, tau, method="minimal")
    close(found[0], qdd, 1e-11)
    close(found[1], lam, 1e-11)
    monkeypatch.setattr(dynamics, "WEAK", 2.0)
    close(here.hybrid_dynamics(q, qd, tau, known="joint1"), mixed, 1e-11)


def test_rates_keep_loops_closed_that_time_moves() -> None:
    """Velocities of a mechanism at rest violate loops that move in time, and raise an error.

    Checks of velocities and accelerations include the terms of time.
    """
    bar, (q, qd, qdd) = bars().at_time(T), free_bars()
    bar.forward_dynamics(q[1:], qd[1:], [0.0, 0.0])
    with raises("E-LOOP-023", "'pin'", "forward_dynamics"):
        bar.forward_dynamics(q[1:], [0.0, 0.0], [0.0, 0.0])
    here, (q, qd) = cam().at_time(T), cam_state()
    _, qdd = here.complete(q, [0.8, -0.6], [0.3, 0.1])
    push = np.array([0.0, 0.0, 1e-3])
    for name in ("inverse_dynamics", "hybrid_dynamics"):
        options: dict[str, Any] = {"known": "joint1"}
        if name == "inverse_dynamics":
            options = {"actuated": ["joint1", "joint2"]}
        call = getattr(here, name)
        call(q, qd, qdd, **options)
        with raises("E-LOOP-023", name):
            call(q, qd + push, qdd, **options)
    with raises("E-LOOP-023", "inverse_dynamics"):
        here.inverse_dynamics(q, qd, qdd + push, actuated=["joint1", "joint2"])


def test_the_tree_of_loops_and_its_equals_at_a_time() -> None:
    """Results at a time do not depend on times used before."""
    early, late = bars().at_time(0.1), bars().at_time(0.1).at_time(T)
    tree = mechanism("four_bar").model.source
    alone = chasles.Robot(replace(tree, loops=())).drive({"crank": turning})
    q = np.array([0.3, -0.2])
    for robot, t in ((early, 0.1), (early.at_time(T), T), (late, T)):
        found = robot.mass_matrix_inverse(q, coordinates="tree")
        close(found, alone.at_time(t).mass_matrix_inverse(q), 1e-13)
    assert cam().at_time(T).is_equivalent(cam().at_time(T).simplified())
    assert not cam().at_time(T).is_equivalent(cam().at_time(T + 0.1))


def test_a_coupling_with_a_driven_joint() -> None:
    """A coupling to a driven joint depends on time: b = 2 sigma(t) moves like sigma."""
    arm = chasles.robots.planar(3).with_couplings(
        coupling("belt", ["joint1", "joint2"], lambda a, b: b - 2.0 * a)
    )
    robot = arm.drive({"joint1": turning})
    q = np.array([2.0 * TURNING[0], 0.3])
    qd, qdd = robot.at_time(T).complete(q, [0.5], [0.25])
    close(qd, [2.0 * TURNING[1], 0.5], 1e-12)
    close(qdd, [2.0 * TURNING[2], 0.25], 1e-12)
    found, lam = robot.at_time(T).constrained_dynamics(q, qd, np.zeros(2))
    whole, rates = np.array([TURNING[0], *q]), np.array([TURNING[1], *qd])
    both = [TURNING[2], 2.0 * TURNING[2], 0.0]
    expected = chasles.robots.planar(3).hybrid_dynamics(
        whole, rates, both, known=["joint1", "joint2"]
    )
    close(found, [2.0 * TURNING[2], expected[2]], 1e-11)
    force = robot.at_time(T).driving_forces(q, qd, found, lam)
    close(force, expected[:1] + 2.0 * expected[1], 1e-11)


def test_closed_by_a_function_of_time() -> None:
    """q = gamma(y, t) and its rates agree with the motion by Newton's method."""
    arm = chasles.robots.planar(2).with_couplings(
        coupling("lift", ["joint1", "joint2"], lambda a, b, t: b - sin(a) * cos(2.0 * t))
    )
    gamma = chasles.ClosureFunction(arm, lambda y, t: [y[0], sin(y[0]) * cos(2.0 * t)])
    y, yd, ydd = np.array([[0.3], [0.7], [-0.4]])
    q, qd, qdd = gamma(y, yd, ydd, t=T)
    here = arm.at_time(T)
    np.testing.assert_allclose(here.loop_residual(q), 0.0, atol=1e-15)
    for found, expected in zip((qd, qdd), here.complete(q, yd, ydd), strict=True):
        close(found, expected, 1e-12)
    runs = [
        chasles.simulate(arm, q, qd, duration=0.2, start=T, dt=2e-3, closure=closure)
        for closure in (gamma, None)
    ]
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-10)


# Errors -------------------------------------------------------------------------------------------


def test_what_is_refused() -> None:
    with raises("E-ROBOT-013", "'four_bar'"):
        bars().assemble([])
    with raises("E-LOOP-039"):
        bars().forward_dynamics(*np.zeros((3, 2)))
    with raises("E-ROBOT-019"):
        bars().at_time(T).driving_forces(*np.zeros((3, 2)))
    with raises("E-MODEL-021", "'cam'"):
        cam().lock({"joint1": 0.0, "joint3": 0.0})
    with raises("E-LOOP-028", "'joint1'"):
        coupling("clock", ["joint1"], lambda q, t: sin(t))
    source = mechanism("four_bar").model.source
    pin = source.loops[0]
    moved = LoopData(
        "second", pin.kind, pin.parent, pin.child, pin.pose, motion=motion(lambda t: t)
    )
    with raises("E-MODEL-050", "'second'"):
        mechanism("four_bar").with_loops(moved)


def test_times_at_which_loops_cannot_be_closed() -> None:
    rocker = chasles.robots.four_bar(1.0, 0.9, 0.5, 0.7).drive({"crank": lambda t: 1.0 + t})
    text = "E-LOOP-001 impossible position"
    with raises(text):
        rocker.at_time([0.0, 2.0]).assemble([])
    root = mechanism("four_bar").drive({"crank": lambda t: 0.5 + sqrt(t)})
    with raises("E-LOOP-001", "'pin'"):
        root.at_time(-1.0).assemble([])
    late = mechanism("four_bar").drive({"crank": lambda t: 1.0 / t})
    with raises("E-LOOP-002"):
        late.at_time(1.0).assemble([])


def test_one_joint_of_a_timed_coupling_locked() -> None:
    held = cam().lock({"joint1": 0.2}).at_time(T)
    q = held.assemble([0.1], guess=[0.1, 0.3])
    np.testing.assert_allclose(cam().at_time(T).loop_residual([0.2, *q]), 0.0, atol=1e-13)
