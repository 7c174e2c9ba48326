"""Simulation: known solutions, order of the method, energy, and closed loops."""

import itertools
import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from chains import rockers, spatial
from scipy.integrate import quad, solve_ivp
from scipy.spatial.transform import Rotation as R
from scipy.special import ellipk
from support import close, raises, state, tree

import chasles
from chasles.expr import Number, atan2, cos, sin, sqrt
from chasles.mathematics.linear import Vector
from chasles.model import Description, JointData, LinkData
from chasles.robots._solids import cylinder, sphere

EXAMPLE = Path(__file__).parents[2] / "examples" / "mechanism_energy.py"
MECHANISMS = runpy.run_path(str(EXAMPLE))["MECHANISMS"]
FREE = (0.0, 0.0, 0.0)
"""Zero gravity, in m/s2."""


# Trees -------------------------------------------------------------------------------------------


def test_pendulum_has_the_period_of_the_elliptic_integral() -> None:
    """A rod released 2 rad from below has the period T = 4 K(sin(1)) / w, with w^2 = 3 g / 2 l."""
    rod = chasles.robots.planar(1)
    period = 4.0 * ellipk(math.sin(1.0) ** 2) / math.sqrt(1.5 * 9.81)
    below = -0.5 * math.pi
    motion = chasles.simulate(rod, [below + 2.0], [0.0], duration=period)
    assert motion.t[-1] == period
    assert motion.t[1] <= 1e-3
    close(motion.q[-1], [below + 2.0], 1e-10)
    assert abs(motion.qd[-1, 0]) < 1e-9


def test_two_rods_by_their_textbook_equations() -> None:
    """Motion agrees with Lagrange's equations of two rods of 1 kg and 1 m, solved by SciPy."""

    def rates(t: float, x: np.ndarray) -> list[float]:
        a, b, da, db = x
        c, s, g = 0.5 * math.cos(a - b), 0.5 * math.sin(a - b), 9.81
        M = np.array([[4.0 / 3.0, c], [c, 1.0 / 3.0]])
        f = [-s * db * db - 1.5 * g * math.cos(a), s * da * da - 0.5 * g * math.cos(b)]
        return [da, db, *np.linalg.solve(M, f)]

    found = solve_ivp(
        rates, (0.0, 1.0), [0.3, 0.9, 1.0, -1.5], method="DOP853", rtol=1e-12, atol=1e-13
    )
    a, b, da, db = found.y[:, -1]
    rods = chasles.robots.planar(2)
    motion = chasles.simulate(rods, [0.3, 0.6], [1.0, -2.5], duration=1.0, dt=5e-4)
    close(motion.q[-1], [a, b - a], 1e-9)
    close(motion.qd[-1], [da, db - da], 1e-9)


def test_a_symmetric_top_precesses() -> None:
    """A free top moves with R(t) = exp(t L / A) R(0) exp(t (1 - C/A) w3 z) on a straight path."""
    body = cylinder(2.0, 0.3, 0.2, 2)
    links = (LinkData("ground", body), LinkData("top", body))
    joints = (JointData("float", "free", "ground", "top"),)
    top = chasles.Robot(Description("top", links, joints)).with_gravity(FREE)
    A, C = 2.0 * (0.09 / 4.0 + 0.04 / 12.0), 0.09
    w, v = np.array([1.0, -2.0, 3.0]), np.array([0.3, 0.1, -0.2])
    R0 = R.from_rotvec([0.4, -0.8, 0.3])
    x, y, z, s = R0.as_quat()
    t = 2.0
    motion = chasles.simulate(top, [s, x, y, z, 0.0, 0.0, 0.0], [*w, *v], duration=t)
    L = R0.apply([A, A, C] * w)
    turned = R.from_rotvec(t * L / A) * R0 * R.from_rotvec([0.0, 0.0, t * (1.0 - C / A) * w[2]])
    s, x, y, z = motion.q[-1, :4]
    assert (turned.inv() * R.from_quat([x, y, z, s])).magnitude() < 1e-9
    close(motion.q[-1, 4:], t * R0.apply(v), 1e-9)


def order(
    robot: chasles.Robot, q: np.ndarray, qd: np.ndarray, dt: float, **options: object
) -> float:
    """Return the order: log2 of the ratio of errors when the step is halved, from three runs."""
    strength = np.linspace(-1.0, 1.0, robot.nv)
    runs = [
        chasles.simulate(
            robot,
            q,
            qd,
            duration=8.0 * dt,
            dt=step,
            tau=lambda t, q, qd: strength * math.cos(5.0 * t) - 0.2 * qd,
            **options,
        )
        for step in (dt, dt / 2.0, dt / 4.0)
    ]
    ends = [(run.q[-1], run.qd[-1]) for run in runs]
    first, second = (
        np.concatenate([robot.difference(finer[0], coarser[0]), finer[1] - coarser[1]])
        for coarser, finer in itertools.pairwise(ends)
    )
    return math.log2(np.linalg.norm(first) / np.linalg.norm(second))


def test_order_four_on_every_joint_type() -> None:
    robot = tree(9, 4, floating=True)
    q, qd, _ = state(robot, 3)
    assert 3.8 < order(robot, q, qd, 0.005) < 4.4


def marble(radius: float = 0.1) -> chasles.Robot:
    """Return a ball with unequal moments of inertia on a plane, and a handle sliding in it."""
    links = (LinkData("ball", cylinder(1.0, 0.1, 0.3, 2)), LinkData("handle", sphere(0.4, 0.05)))
    joints = (
        JointData("roll", "rolling", None, "ball", radius=radius),
        JointData("slide", "prismatic", "ball", "handle", axis=Vector.of(0.0, 0.6, 0.8)),
    )
    return chasles.Robot(Description("marble", links, joints))


def test_order_four_of_where_a_sphere_rolls() -> None:
    """The position of a rolling sphere depends on its path, and is integrated with order four."""
    robot, dt = marble(), 0.02
    q, qd, _ = state(robot, 3)
    strength = np.array([0.1, -0.2, 0.3, 0.2])
    ends = [
        chasles.simulate(
            robot,
            q,
            2.0 * qd,
            duration=8.0 * dt,
            dt=dt / n,
            tau=lambda t, q, qd: strength * np.cos(9 * t),
        ).q[-1, 4:6]
        for n in (1, 2, 4)
    ]
    assert (
        3.8 < math.log2(np.linalg.norm(ends[0] - ends[1]) / np.linalg.norm(ends[1] - ends[2])) < 4.4
    )


def test_a_solid_ball_rolls_down() -> None:
    """On a slope, a solid ball travels 5/14 g sin(a) t^2, independent of its spin."""
    ball = (LinkData("ball", sphere(2.0, 0.1)),)
    source = Description("ball", ball, (JointData("roll", "rolling", None, "ball", radius=0.1),))
    robot = chasles.Robot(source).with_gravity([1.0, -2.0, -9.0])
    moved = chasles.simulate(robot, robot.neutral(), [0.0, 0.0, 3.0], duration=0.5, dt=2e-3)
    close(moved.q[-1, 4:6], 5.0 / 14.0 * np.array([1.0, -2.0]) * 0.25, 1e-9)


def test_batches_are_single_motions() -> None:
    robot = tree(9, 4, floating=True)
    q, qd, tau = state(robot, 1, (2, 2))
    together = chasles.simulate(robot, q, qd, duration=0.05, dt=5e-3, tau=tau)
    assert together.q.shape == (2, 2, 11, robot.nq)
    assert together.qd.shape == (2, 2, 11, robot.nv)
    for k in np.ndindex(2, 2):
        alone = chasles.simulate(robot, q[k], qd[k], duration=0.05, dt=5e-3, tau=tau[k])
        close(together.q[k], alone.q, 1e-12)
        close(together.qd[k], alone.qd, 1e-12)


def test_external_forces_and_dissipation_reach_the_dynamics() -> None:
    """A weightless rod turns at constant rate; damping c slows a mass by exp(-c t/m)."""
    rod = chasles.robots.planar(1)
    lift = {"link1": chasles.Wrench([0.0, 0.0, 0.0, 0.0, 0.0, 9.81], at=(0.5, 0.0, 0.0))}
    motion = chasles.simulate(rod, [0.3], [1.0], duration=0.2, f_ext=lift)
    close(motion.q[-1], [0.5], 1e-12)
    links = (LinkData("rail", cylinder(1.0, 1.0, 1.0, 0)), LinkData("block", sphere(2.0, 0.1)))
    axis = Vector.of(1.0, 0.0, 0.0)
    joints = (JointData("slide", "prismatic", "rail", "block", axis=axis, damping=0.5),)
    block = chasles.Robot(Description("block", links, joints))
    slowed = chasles.simulate(block, [0.0], [3.0], duration=1.0, dt=1e-2, dissipation=True)
    close(slowed.qd[:, 0], 3.0 * np.exp(-0.25 * slowed.t), 1e-11)


# Closed loops ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["revolute", "spherical"])
def test_order_four_with_loops_of_every_joint_type(kind: str) -> None:
    """The order is four for chains with universal, helical, spherical and planar joints."""
    source, q = spatial(kind, 1)
    robot = chasles.Robot(source)
    qd = 0.5 * robot.complete(q, np.linspace(-1.0, 1.0, len(robot.independent)), tolerance=1e-8)
    assert 3.8 < order(robot, q, qd, 0.0025) < 4.4


def test_time_of_a_turn() -> None:
    """The time of a crank turn is the integral of sqrt(M / 2E), with M from the geometry."""
    ground, crank, coupler, rocker = bars = (1.0, 0.5, 0.9, 0.8)
    robot = chasles.robots.four_bar(*bars).with_gravity(FREE)

    def mass(a: float) -> float:
        """Return the inertia at the crank, for rods of 1 kg/m."""
        c = rockers(bars, a)[0]
        ends = crank * np.exp(1j * a), ground + rocker * np.exp(1j * c)
        b = np.angle(ends[1] - ends[0])
        u, v, w = (1j * l * np.exp(1j * x) for l, x in ((crank, a), (coupler, b), (rocker, c)))
        db, dc = np.linalg.solve([[v.real, -w.real], [v.imag, -w.imag]], [-u.real, -u.imag])
        middle = abs(u + 0.5 * db * v) ** 2 + (coupler * db) ** 2 / 12.0
        return float(crank**3 / 3.0 + coupler * middle + rocker**3 / 3.0 * dc**2)

    q = robot.assemble([0.5], guess=[0.5, 0.0, rockers(bars, 0.5)[0]])
    rate = 6.0
    integral, _ = quad(lambda a: math.sqrt(mass(a)), 0.0, 2.0 * math.pi, epsabs=1e-12, limit=200)
    period = integral / (math.sqrt(mass(q[0])) * rate)
    motion = chasles.simulate(robot, q, robot.complete(q, [rate]), duration=period, dt=5e-4)
    close(motion.q[-1, 0], q[0] + 2.0 * math.pi, 1e-9)
    close(motion.qd[-1, 0], rate, 1e-8)


@pytest.mark.parametrize("name", MECHANISMS)
def test_energy_of_mechanisms(name: str) -> None:
    """The energy drift is below 1e-8 of the largest kinetic energy.

    The example runs for ten seconds.
    """
    first = MECHANISMS[name]()
    duration = 0.3 if first.robot.nv > 10 else 2.0
    motion = chasles.simulate(first.robot, first.q, first.qd, duration=duration, tau=first.tau)
    energy, kinetic = first.energy(motion.q, motion.qd)
    assert np.max(np.abs(energy - energy[0])) < 1e-8 * np.max(kinetic)
    assert np.max(np.abs(first.robot.loop_residual(motion.q))) < 1e-12
    rates = np.einsum("tmv,tv->tm", first.robot.loop_matrix(motion.q), motion.qd)
    assert np.max(np.abs(rates)) < 1e-12 * np.max(np.abs(motion.qd))


@pytest.mark.parametrize("name", ["double rocker", "slider rocker"])
def test_dead_points_are_passed_in_other_coordinates(name: str) -> None:
    """Coordinates change at dead points, where the crank or the rocker reverses."""
    first = MECHANISMS[name]()
    motion = chasles.simulate(first.robot, first.q, first.qd, duration=4.0, dt=2e-3)
    assert motion.rechosen
    assert np.sum(np.diff(np.sign(motion.qd[:, 0])) != 0.0) >= 2
    energy, kinetic = first.energy(motion.q, motion.qd)
    assert np.max(np.abs(energy - energy[0])) < 1e-7 * np.max(kinetic)


def test_members_of_a_batch_change_coordinates_each_for_itself() -> None:
    robot = chasles.robots.four_bar(1.0, 0.9, 0.5, 0.7).with_gravity(FREE)
    q = robot.assemble([[1.0], [1.2], [1.0]])
    qd = robot.complete(q, [[1.0], [-0.5], [0.3]])
    together = chasles.simulate(robot, q, qd, duration=1.5, dt=5e-3)
    apart = [chasles.simulate(robot, *x, duration=1.5, dt=5e-3) for x in zip(q, qd, strict=True)]
    assert len({motion.rechosen for motion in apart}) > 1
    close(together.q, [motion.q for motion in apart], 1e-7)


def test_a_singular_position_on_the_way() -> None:
    """A parallelogram that swings through its flat position, 0.3 s away, raises an error."""
    flat = chasles.robots.four_bar(1.0, 0.5, 1.0, 0.5)
    q = np.array([0.6, -0.6, 0.6])
    with pytest.raises(chasles.SingularPosition) as caught:
        chasles.simulate(flat.with_gravity(FREE), q, [-2.0, 2.0, -2.0], duration=1.0)
    message = str(caught.value)
    assert all(f"'{name}'" in message for name in ("four_bar", "coupler", "rocker", "pin"))
    t = float(message.split("after t = ")[1].split(" s")[0])
    assert 0.297 < t < 0.3005
    with raises("E-LOOP-011"):
        chasles.simulate(flat, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], duration=1.0)
    with raises("E-MOTION-055"):  # within the first step
        chasles.simulate(flat.with_gravity(FREE), 1e-3 * q, [-2.0, 2.0, -2.0], duration=0.01)
    apart = chasles.simulate(flat, [q, 1.5 * q], [0.0] * 3, duration=0.05)
    assert apart.q.shape == (2, 51, 3)


# Stabilization -----------------------------------------------------------------------------------


def test_an_open_loop_closes_as_baumgarte_says() -> None:
    """From rest, the error decays as (1 + t/T) exp(-t/T), with two poles at -1/T (Eq 8.21)."""
    robot, T = chasles.robots.four_bar(1.0, 0.5, 0.9, 0.8).with_gravity(FREE), 0.05
    q = robot.assemble([0.5]) + np.array([0.0, 1e-6, -2e-6])
    motion = chasles.simulate(robot, q, np.zeros(3), duration=0.3, stabilization=T)
    error = robot.loop_residual(motion.q)
    expected = ((1.0 + motion.t / T) * np.exp(-motion.t / T))[:, None] * error[0]
    close(error, expected, 1e-4)


def test_stabilisation_bounds_the_error() -> None:
    """Errors are bounded for T_stab of 0.1 and 0.01 s, and grow for 1 s or without stabilization.

    Source: Featherstone 2008, section 8.3.
    """
    robot = chasles.robots.four_bar(1.0, 0.5, 0.9, 0.8).with_gravity(FREE)
    q = robot.assemble([0.5])
    qd = robot.complete(q, [6.0])

    def errors(T: float) -> tuple[float, float]:
        """Return the largest errors in the first and in the last third of more than four turns."""
        motion = chasles.simulate(robot, q, qd, duration=9.0, dt=5e-3, stabilization=T)
        size = np.linalg.norm(robot.loop_residual(motion.q), axis=-1)
        return float(np.max(size[:600])), float(np.max(size[-600:]))

    early, late = errors(1e3)
    assert late > 2.5 * early
    for T in (0.1, 0.01):
        first, last = errors(T)
        assert last < 1.1 * first
        assert last < 0.2 * late
    early, late = errors(1.0)
    assert late > 1.5 * early
    assert late > 10.0 * errors(0.1)[1]


# Loop-closure functions --------------------------------------------------------------------------


def figure_8_3(y: list[Number]) -> list[Number]:
    """Return q of figure 8.3 with l1 = 1 and l2 = 2 (Featherstone 2008, Eq 8.56)."""
    across, up = 2.0 * cos(y[0]) - 1.0, 2.0 * sin(y[0])
    return [y[0], atan2(up, across), sqrt(across * across + up * up), y[1]]


def test_published_numbers_of_the_triangle() -> None:
    """Published values are reproduced for y1 = 1 and yd1 = 0.5: theta2, d, and u1 to u4."""
    robot = chasles.robots.triangle(1.0, 2.0)
    gamma = chasles.ClosureFunction(robot, figure_8_3)
    q, qd, qdd = gamma([1.0, 0.3], [0.5, 0.7], [0.0, 0.0])
    close(q, [1.0, 1.5229378362, 1.6848711454, 0.3], 1e-10)
    close(qd, [0.5, 0.5 * 1.0283939952, 0.5 * 0.9988550010, 0.7], 1e-10)
    close(qdd, [0.0, -0.1566259195, 0.0122996496, 0.0], 1e-9)
    assert np.max(np.abs(robot.loop_residual(q))) < 1e-15
    close(robot.complete(q, [0.5, 0.7]), qd, 1e-13)


def test_actuator_forces_of_the_triangle() -> None:
    """Actuators on joints 3 and 4 need u = [[1/u2, u1/u2, 1, 0], [0, 0, 0, 1]] tau of the tree."""
    robot = chasles.robots.triangle(1.0, 2.0)
    gamma = chasles.ClosureFunction(robot, figure_8_3)
    q, qd, qdd = gamma([1.0, 0.3], [0.5, -0.4], [0.2, 0.9])
    _, u1, u2, _ = gamma([1.0, 0.3], [1.0, 0.0])[1]
    expected = [[1.0 / u2, u1 / u2, 1.0, 0.0], [0, 0, 0, 1.0]] @ robot.inverse_dynamics(q, qd, qdd)
    found = robot.inverse_dynamics(q, qd, qdd, actuated=["q3", "q4"])
    close(found, [0.0, 0.0, *expected], 1e-12)


def test_motion_by_a_closure_function() -> None:
    robot = chasles.robots.triangle(1.0, 2.0)
    gamma = chasles.ClosureFunction(robot, figure_8_3)
    q, qd = gamma([[1.0, 0.3], [2.0, -0.5]], [0.5, -0.4])
    known = chasles.simulate(robot, q, qd, duration=0.5, closure=gamma)
    solved = chasles.simulate(robot, q, qd, duration=0.5)
    close(known.q, solved.q, 1e-11)
    close(known.qd, solved.qd, 1e-11)
