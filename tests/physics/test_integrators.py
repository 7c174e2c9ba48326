"""Integrators: orders on every joint type, dense output, conserved quantities, and events."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from support import close, raises, state, tree

import chasles
from chasles.mathematics.linear import Vector
from chasles.model import Description, JointData, LinkData
from chasles.model.joints import JOINTS
from chasles.motion.steps.integrators import DORMAND_PRINCE, HEUN_2, HEUN_3
from chasles.motion.steps.system import Advanced, Local
from chasles.robots._solids import sphere

FREE = (0.0, 0.0, 0.0)
"""Zero gravity, in m/s2."""

HOLONOMIC = tuple(name for name, row in chasles.INTEGRATORS.items() if row.hamiltonian)


@cache
def everything(rolling: bool) -> chasles.Robot:
    """Return a tree with every movable joint type, with or without rolling joints.

    Without rolling joints, some armatures are set to zero so that the robot is Hamiltonian."""
    robot = tree(len(JOINTS), 3, floating=True)
    if rolling:
        return robot
    rolls = [n for n in robot.joints if robot.joint(n).kind == "rolling"]
    held = robot.lock({n: robot.neutral()[robot.position_slice(n)] for n in rolls})
    kinds = ("free", "planar", "spherical", "sphere_in_cylinder")
    joints = (
        replace(joint, armature=0.0) if joint.kind in kinds else joint
        for joint in held.model.source.joints
    )
    return chasles.Robot(replace(held.model.source, joints=tuple(joints)))


def moved(
    robot: chasles.Robot, name: str, dt: float, duration: float, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the state after some steps under varying forces, from a fixed initial state."""
    q, qd, strength = state(robot, 5)
    adaptive = {"rtol": 1e6, "atol": 1e6} if chasles.INTEGRATORS[name].adaptive else {}
    motion = chasles.simulate(
        robot,
        q,
        qd,
        duration=duration,
        dt=dt,
        integrator=name,
        tau=lambda t, q, qd: strength * math.cos(5.0 * t) - 0.2 * qd,
        **adaptive,
        **options,
    )
    return motion.q[-1], motion.qd[-1]


@cache
def exact(rolling: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the state of `everything` after 0.02 s, computed with much smaller steps."""
    return moved(everything(rolling), "dopri5", 2.5e-4, 0.02)


def distance(robot: chasles.Robot, a: Any, b: Any) -> float:
    """Return the distance of two states, including the positions of rolling spheres."""
    apart = np.concatenate([robot.difference(a[0], b[0]), a[1] - b[1]])
    if any(robot.joint(name).kind == "rolling" for name in robot.joints):
        where = [robot.position_slice(n) for n in robot.joints if robot.joint(n).kind == "rolling"]
        apart = np.concatenate([apart, *((a[0] - b[0])[slot][4:] for slot in where)])
    return float(np.linalg.norm(apart))


def test_every_joint_type_is_in_the_tree() -> None:
    robot = everything(True)
    assert {robot.joint(name).kind for name in robot.joints} == set(JOINTS) - {"fixed"}


@pytest.mark.parametrize("name", chasles.INTEGRATORS)
def test_order_on_every_joint_type(name: str) -> None:
    """Halving the step divides the error by 2^order."""
    row, rolling = chasles.INTEGRATORS[name], name not in HOLONOMIC
    robot, dt = everything(rolling), (0.005 if row.order > 3 else 0.002)
    found = [moved(robot, name, h, 0.02) for h in (dt, dt / 2.0)]
    errors = [distance(robot, each, exact(rolling)) for each in found]
    assert row.order - 0.25 < math.log2(errors[0] / errors[1]) < row.order + 0.6


def test_order_of_mixed_steps() -> None:
    robot = everything(True)
    found = [moved(robot, "semi-implicit", h, 0.02, free="mixed") for h in (0.002, 0.001)]
    errors = [distance(robot, each, exact(True)) for each in found]
    assert 0.75 < math.log2(errors[0] / errors[1]) < 1.6


@pytest.mark.parametrize("name", [name for name in chasles.INTEGRATORS if name not in HOLONOMIC])
def test_order_with_closed_loops(name: str) -> None:
    """The order holds for a four-bar in independent coordinates, whose loop stays closed."""
    robot = chasles.robots.four_bar(1.0, 0.5, 0.9, 0.8)
    q = robot.assemble([0.5])
    qd = robot.complete(q, [2.0])
    row = chasles.INTEGRATORS[name]
    options: Any = {"rtol": 1e6, "atol": 1e6} if row.adaptive else {}

    def last(method: str, dt: float) -> np.ndarray:
        motion = chasles.simulate(robot, q, qd, duration=0.32, dt=dt, integrator=method, **options)
        assert np.max(np.abs(robot.loop_residual(motion.q))) < 1e-12
        return np.concatenate([motion.q[-1], motion.qd[-1]])

    exact, dt = last("rk4", 5e-4), (0.02 if row.order > 3 else 0.01)
    errors = [float(np.linalg.norm(last(name, h) - exact)) for h in (dt, dt / 2.0)]
    assert row.order - 0.2 < math.log2(errors[0] / errors[1]) < row.order + 1.0


# Dense output ------------------------------------------------------------------------------------


def grown(table: Any, h: float) -> Advanced:
    """Take a step of y' = y from y = 1, which needs no robot."""

    class Growth(Local):
        def first(self, y: np.ndarray) -> np.ndarray:
            return y

        def rates(self, s: float, y: np.ndarray) -> np.ndarray:
            return y

    system = object.__new__(Growth)
    advanced: Advanced = table(system, h, np.ones(1))
    return advanced


def test_published_dense_output() -> None:
    """Published interpolant of Heun's method, and its error for y' = y.

    The interpolant is y(part) = y0 + h ((part - 3/4 part^2) k1 + 3/4 part^2 k2).
    """
    within = grown(HEUN_2, 0.1).within
    assert within is not None
    k1, k2 = 1.0, 1.0 + 0.1 * 2.0 / 3.0
    for part in (0.0, 0.3, 1.0):
        expected = 1.0 + 0.1 * ((part - 0.75 * part**2) * k1 + 0.75 * part**2 * k2)
        close(within(part), [expected], 1e-15)
    errors = []
    for h in (0.1, 0.05):
        middle = grown(HEUN_2, h).within
        assert middle is not None
        errors.append(abs(float(middle(0.5)[0]) - math.exp(0.5 * h)))
    close(errors, [2.11e-5, 2.62e-6], 5e-3)


@pytest.mark.parametrize(("table", "order"), [(HEUN_2, 2), (HEUN_3, 2), (DORMAND_PRINCE, 4)])
def test_order_within_a_step(table: Any, order: int) -> None:
    """The local error is of one order more than `order`, and both ends agree with the step."""
    errors = []
    for h in (0.2, 0.1):
        y, _, within = grown(table, h)
        assert within is not None
        close(within(1.0), y, 1e-14)
        close(within(0.0), [1.0], 1e-15)
        errors.append(abs(float(within(0.4)[0]) - math.exp(0.4 * h)))
    assert order + 0.8 < math.log2(errors[0] / errors[1]) < order + 1.4


@pytest.mark.parametrize("name", chasles.INTEGRATORS)
def test_states_at_given_times(name: str) -> None:
    """Interpolated states are as accurate as steps; states at the ends equal those of steps."""
    robot = everything(name not in HOLONOMIC)
    q, qd, tau = state(robot, 2)
    options: Any = {"integrator": name, "tau": tau, "dt": 2e-3}
    steps = chasles.simulate(robot, q, qd, duration=0.01, **options)
    some = chasles.simulate(robot, q, qd, duration=0.01, times=[0.0, 0.0027, 0.01], **options)
    close(some.t, [0.0, 0.0027, 0.01], 1e-15)
    for k, n in ((0, 0), (2, -1)):
        close(some.q[k], steps.q[n], 1e-12)
        close(some.qd[k], steps.qd[n], 1e-12)
    exact = chasles.simulate(robot, q, qd, duration=0.0027, tau=tau, dt=2e-4)
    near = distance(robot, (some.q[1], some.qd[1]), (exact.q[-1], exact.qd[-1]))
    order = chasles.INTEGRATORS[name].order
    assert near < {1: 0.1, 2: 5e-3, 3: 5e-4}.get(order, 1e-5)


# Conserved quantities, adaptive steps and stiffness ----------------------------------------------


def test_rotations_stay_rotations() -> None:
    """Quaternions keep unit length to rounding error, with every integrator."""
    robot = chasles.robots.quadruped().with_gravity(FREE)
    q, qd, _ = state(robot, 7)
    for name in chasles.INTEGRATORS:
        motion = chasles.simulate(robot, q, qd, duration=0.5, dt=5e-3, integrator=name)
        assert np.max(np.abs(np.linalg.norm(motion.q[:, :4], axis=-1) - 1.0)) < 1e-13


@pytest.mark.parametrize("floating", [False, True])
def test_energy_of_the_adaptive_pair(floating: bool) -> None:
    """The energy drift in a minute is below 1e-9 of the largest kinetic energy.

    examples/long_runs.py also runs a Panda.
    """
    robot = chasles.robots.quadruped().with_gravity(FREE) if floating else chasles.robots.puma560()
    q, qd, _ = state(robot, 1)
    if floating:
        qd = np.random.default_rng(1).uniform(-2.0, 2.0, size=robot.nv)
    motion = chasles.simulate(
        robot, q, qd, duration=60.0, integrator="dopri5", rtol=1e-11, atol=1e-11
    )
    kinetic = robot.kinetic_energy(motion.q, motion.qd)
    energy = kinetic + robot.potential_energy(motion.q)
    assert np.max(np.abs(energy - energy[0])) < 1e-9 * np.max(kinetic)


def test_tolerances_decide_the_error() -> None:
    """The error follows rtol, and looser tolerances take fewer steps, for a rod that turns over."""
    rod = chasles.robots.planar(1)
    exact = chasles.simulate(rod, [0.3], [6.0], duration=1.0, dt=2e-4)
    errors, steps = [], []
    for rtol in (1e-4, 1e-7, 1e-10):
        options: Any = {"integrator": "dopri5", "rtol": rtol, "atol": rtol}
        motion = chasles.simulate(rod, [0.3], [6.0], duration=1.0, **options)
        assert motion.t[-1] == 1.0
        errors.append(abs(motion.q[-1, 0] - exact.q[-1, 0]))
        steps.append(len(motion.t))
    assert all(error < 30.0 * rtol for error, rtol in zip(errors, (1e-4, 1e-7, 1e-10), strict=True))
    assert steps[0] < steps[1] < steps[2]
    short = chasles.simulate(
        rod, [0.3], [6.0], duration=1.0, integrator="dopri5", rtol=1e-3, dt=0.01
    )
    assert np.max(np.diff(short.t)) < 0.01 + 1e-12


def test_the_worst_of_a_batch_decides() -> None:
    """A batch of a slow and a fast rod takes the steps of the fast one, and both are accurate."""
    rod = chasles.robots.planar(1)
    options: Any = {"duration": 0.5, "integrator": "dopri5", "rtol": 1e-9}
    q, qd = np.array([[0.3], [0.3]]), np.array([[0.1], [20.0]])
    together = chasles.simulate(rod, q, qd, **options)
    alone = [chasles.simulate(rod, *one, **options) for one in zip(q, qd, strict=True)]
    assert len(alone[0].t) < len(alone[1].t) <= len(together.t) + 1
    close(together.q[:, -1], [motion.q[-1] for motion in alone], 1e-8)


def test_the_symplectic_one_keeps_momenta_and_a_band_of_energy() -> None:
    """The variational integrator conserves the momenta of a floating robot to rounding error."""
    robot = chasles.robots.quadruped().with_gravity(FREE)
    q, qd, _ = state(robot, 1)
    options: Any = {"duration": 2.0, "dt": 4e-3}
    motion = chasles.simulate(robot, q, qd, integrator="variational", **options)
    momentum = robot.momentum(motion.q, motion.qd, at="world")
    close(momentum, np.broadcast_to(momentum[0], momentum.shape), 1e-11)
    energy = robot.kinetic_energy(motion.q, motion.qd)
    assert np.max(np.abs(energy / energy[0] - 1.0)) < 1e-5
    euler = chasles.simulate(robot, q, qd, integrator="semi-implicit", **options)
    other = robot.momentum(euler.q, euler.qd, at="world")
    assert np.max(np.abs(other - other[0])) > 1e-4 * np.max(np.abs(other))


def test_the_symplectic_one_keeps_angular_momentum_about_fixed_points() -> None:
    """The variational integrator conserves angular momentum about any fixed point.

    About the center of mass, the momentum changes with the square of dt, because the center of mass
    moves along the linear momentum only to second order. If the linear momentum is zero, it is
    conserved there too.
    """
    robot = chasles.robots.quadruped().with_gravity(FREE)
    q, qd, _ = state(robot, 1)
    M = robot.mass_matrix(q)
    still = qd - np.linalg.solve(M[3:6, 3:6], M[3:6] @ qd) @ np.eye(robot.nv)[3:6]
    drifts = []
    for rates, dt in ((qd, 8e-3), (qd, 4e-3), (still, 8e-3)):
        motion = chasles.simulate(robot, q, rates, integrator="variational", duration=0.8, dt=dt)
        L, p = np.split(robot.momentum(motion.q, motion.qd, at="world"), 2, axis=-1)
        elsewhere = L - np.cross([1.0, -2.0, 3.0], p)
        close(elsewhere, np.broadcast_to(elsewhere[0], L.shape), 1e-11)
        about = robot.momentum(motion.q, motion.qd, at="com")[:, :3]
        close(about, L - np.cross(robot.center_of_mass(motion.q), p), 1e-11)
        drifts.append(np.max(np.abs(about - about[0])))
    assert abs(np.log2(drifts[0] / drifts[1]) - 2.0) < 0.1
    assert drifts[0] > 1e-6
    assert drifts[2] < 1e-11


def test_the_symplectic_one_goes_back_the_way_it_came() -> None:
    """The variational integrator retraces its steps if velocities are reversed."""
    robot = everything(False)
    q, qd, _ = state(robot, 4)
    there = chasles.simulate(robot, q, qd, duration=0.02, dt=2e-3, integrator="variational")
    back = chasles.simulate(
        robot, there.q[-1], -there.qd[-1], duration=0.02, dt=2e-3, integrator="variational"
    )
    assert np.max(np.abs(robot.difference(back.q[-1], q))) < 1e-11
    close(-back.qd[-1], qd, 1e-10)


def slider(damping: float = 0.0) -> chasles.Robot:
    """Return a ball of 2 kg on a vertical rail."""
    links = (LinkData("rail", sphere(1.0, 0.1)), LinkData("ball", sphere(2.0, 0.1)))
    axis = Vector.of(0.0, 0.0, 1.0)
    joints = (JointData("slide", "prismatic", "rail", "ball", axis=axis, damping=damping),)
    return chasles.Robot(Description("ball", links, joints))


@pytest.mark.parametrize("name", ["implicit-euler", "sdirk2"])
def test_stiff_dampers_and_springs(name: str) -> None:
    """L-stable methods integrate a damper (1 us) and a spring (6 us) in steps of 10 ms.

    The ball falls at m g/c at once, and with a spring it comes to rest at -m g/k. Explicit methods
    diverge.
    """
    robot = slider(damping=2e6)
    options: Any = {"duration": 0.2, "dt": 0.01}
    motion = chasles.simulate(robot, [0.0], [3.0], integrator=name, dissipation=True, **options)
    close(motion.qd[-1], [-2.0 * 9.81 / 2e6], 1e-6)
    k = 2e12
    held = chasles.simulate(
        slider(), [0.0], [0.0], integrator=name, tau=lambda t, q, qd: -k * q, **options
    )
    close(held.q[-1], [-2.0 * 9.81 / k], 1e-4)
    with raises("E-MOTION-039"), np.errstate(all="ignore"):
        chasles.simulate(
            slider(), [0.0], [3.0], tau=lambda t, q, qd: -2e6 * qd, duration=3.0, dt=0.01
        )
    with raises("E-MOTION-186"):
        chasles.simulate(robot, [0.0], [3.0], dissipation=True, duration=3.0, dt=0.01)


# Events ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rk4", "dopri5", "heun2", "heun3", "sdirk2", "variational"])
def test_bouncing_ball(name: str) -> None:
    """A ball dropped from 1 m bounces at t1 (1 + 2e + 2e^2 ...), with t1 = sqrt(2 h/g).

    Each bounce multiplies the height by e^2.
    """
    robot, e, g = slider(), 0.7, 9.81
    bounce = chasles.Event(
        lambda t, q, qd: q[0], -1, then=lambda t, q, qd: (q, -e * qd), name="floor"
    )
    top = chasles.Event(lambda t, q, qd: qd[0], -1, terminal=False, name="top")
    motion = chasles.simulate(
        robot, [1.0], [0.0], duration=2.3, dt=0.01, integrator=name, events=[bounce, top]
    )
    first = math.sqrt(2.0 / g)
    times = [event.t for event in motion.events if event.name == "floor"]
    expected = [first]
    while expected[-1] + 2.0 * first * e ** len(expected) < 2.3:
        expected.append(expected[-1] + 2.0 * first * e ** len(expected))
    assert len(times) == len(expected) >= 5
    assert np.max(np.abs(np.array(times) - expected)) < 1e-9
    heights = [event.q[0] for event in motion.events if event.name == "top"]
    close(heights[:4], e ** (2.0 * np.arange(1, 5)), 1e-9)
    assert np.min(motion.q) >= 0.0
    assert np.count_nonzero(np.diff(motion.t) == 0.0) == len(times)


def test_bounces_without_end_are_named() -> None:
    """Bounces that accumulate at t1 (1 + e)/(1 - e) raise an error."""
    event = chasles.Event(
        lambda t, q, qd: q[0], -1, then=lambda t, q, qd: (q, -0.5 * qd), name="floor"
    )
    with raises("E-MOTION-061", "'floor'", "1000", "1.36"):
        chasles.simulate(slider(), [1.0], [0.0], duration=3.0, dt=0.01, events=event)


def test_the_earliest_event_stops_and_later_ones_do_not_happen() -> None:
    """The first terminal event in a step stops the motion, at the time of free fall."""
    robot = slider()
    marks = {
        name: chasles.Event(lambda t, q, qd, z=z: q[0] - z, name=name, terminal=stop)
        for name, z, stop in (("low", -0.3, True), ("middle", -0.2, True), ("high", -0.1, False))
    }
    motion = chasles.simulate(
        robot, [0.0], [0.0], duration=1.0, dt=0.5, events=list(marks.values())
    )
    assert [event.name for event in motion.events] == ["high", "middle"]
    fall = [math.sqrt(2.0 * z / 9.81) for z in (0.1, 0.2)]
    close([event.t for event in motion.events], fall, 1e-10)
    assert motion.t[-1] == motion.events[-1].t
    close(motion.q[-1], [-0.2], 1e-10)
    upward = chasles.simulate(
        robot, [0.0], [0.0], duration=0.3, events=chasles.Event(lambda t, q, qd: q[0] + 0.1, 1)
    )
    assert upward.events == ()


def test_events_of_closed_loops() -> None:
    """A crank stops at a right angle with its loops closed."""
    robot = chasles.robots.four_bar(1.0, 0.5, 0.9, 0.8).with_gravity(FREE)
    q = robot.assemble([0.5])
    reached = chasles.Event(lambda t, q, qd: q[0] - 0.5 * math.pi)
    motion = chasles.simulate(
        robot, q, robot.complete(q, [2.0]), duration=2.0, dt=5e-3, events=reached
    )
    close(motion.q[-1, 0], 0.5 * math.pi, 1e-12)
    assert np.max(np.abs(robot.loop_residual(motion.q))) < 1e-12
