"""Kinematics of closed loops: published values, closed forms, differences, and errors."""

import itertools
import math
import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from chains import gap, poses, rockers, slider, spatial, transform
from support import TARGETS, close, direct, raises, tree

import chasles
from chasles.functions import numeric
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import LOOP_JOINTS, Description, JointData, LinkData, LoopData
from chasles.robots._solids import rod, sphere
from chasles.robots.mechanisms import four_bar

CRANK = chasles.robots.slider_crank(1.0, 3.0)
FOUR = chasles.robots.four_bar()
BARS = (0.4, 0.1, 0.35, 0.3)
NEAR = np.array([0.7, -0.9, 0.2, 3.7])


def wrapped(angle: np.ndarray) -> np.ndarray:
    return (np.asarray(angle) + math.pi) % (2.0 * math.pi) - math.pi


# The slider crank of Legnani et al. (1996) -------------------------------------------------------


def test_slider_crank_known_answer() -> None:
    """Published values for l1 = 1, l2 = 3, alpha1 = 0.7 rad at 2 rad/s agree to 10 digits."""
    q = CRANK.assemble([0.7], guess=NEAR)
    qd, qdd = CRANK.complete(q, [2.0], [0.0])
    found = [q[1], q[3], qd[3], qdd[3]]
    known = [-0.91642482236, 3.6948564486, -1.6247647033, -3.3300111141]
    np.testing.assert_allclose(found, known, rtol=1e-10, atol=0.0)


def test_slider_crank_velocity_system() -> None:
    """The loop matrix agrees with part II, section 5.

    The sign of the last column in the paper is corrected.
    """
    q = CRANK.assemble([0.7], guess=NEAR)
    s1, c1, s12, c12 = math.sin(q[0]), math.cos(q[0]), math.sin(q[0] + q[1]), math.cos(q[0] + q[1])
    zero = [0.0] * 4
    turns = [1.0, 1.0, 1.0, 0.0]
    x = [0.0, s1, s1 + 3.0 * s12, -1.0]
    y = [0.0, -c1, -c1 - 3.0 * c12, 0.0]
    expected = [zero, zero, turns, x, y, zero]
    np.testing.assert_allclose(CRANK.loop_matrix(q), expected, atol=1e-14)
    assert np.linalg.matrix_rank(CRANK.loop_matrix(q)) == 3
    assert int(CRANK.mobility(q)) == 1


def test_slider_crank_position_equations() -> None:
    """The residual of an open loop is the deviation of the paper's matrix M04 from the identity."""
    q = np.array([0.4, -0.6, 0.3, 3.5])
    M = poses(CRANK.model.source, q)["guide"]
    expected = [0.0, 0.0, math.atan2(M[1, 0], M[0, 0]), *(M[:3, :3].T @ M[:3, 3])]
    np.testing.assert_allclose(CRANK.loop_residual(q), expected, atol=1e-15)


def test_slider_crank_full_turn_by_steps() -> None:
    q, first = CRANK.assemble([0.0]), None
    for angle in np.linspace(0.0, 2.0 * math.pi, 1001):
        q = CRANK.assemble([angle], guess=q)
        first = q if first is None else first
        assert np.max(np.abs(CRANK.loop_residual(q))) < 1e-12
        np.testing.assert_allclose(q[3], slider(1.0, 3.0, angle)[2], atol=1e-14)
    np.testing.assert_allclose(q - first, [2.0 * math.pi, -2.0 * math.pi, 0.0, 0.0], atol=1e-13)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_slider_crank_full_turn_as_a_batch(side: float) -> None:
    """Both assemblies, each from one guess, agree with the closed form and close the loop."""
    angles = np.linspace(0.0, 2.0 * math.pi, 1000)
    exact = np.array([[angle, *slider(1.0, 3.0, angle, side)] for angle in angles])
    guess = [0.7, *slider(1.0, 3.0, 0.7, side)]
    q = CRANK.assemble(angles[:, None], guess)
    assert np.max(np.abs(CRANK.loop_residual(q))) < 1e-12
    np.testing.assert_allclose(q[:, 3], exact[:, 3], atol=1e-13)
    np.testing.assert_allclose(wrapped(q[:, :3] - exact[:, :3]), 0.0, atol=1e-13)
    source = CRANK.model.source
    assert max(gap(source, source.loops[0], each) for each in q[::50]) < 1e-13


def test_slider_crank_rates_by_differences() -> None:
    """Velocity and acceleration of the slider agree with differences of its closed form."""
    angles, rate, speeding = np.linspace(0.1, 6.2, 40), 2.0, 0.7
    q = CRANK.assemble(angles[:, None], guess=NEAR)
    qd, qdd = CRANK.complete(q, np.full((40, 1), rate), np.full((40, 1), speeding))

    def a(t: float) -> np.ndarray:
        turned = angles + rate * t + speeding * t * t / 2.0
        return np.array([slider(1.0, 3.0, angle)[2] for angle in turned])

    h = 1e-3
    first = (8.0 * (a(h) - a(-h)) - (a(2 * h) - a(-2 * h))) / (12.0 * h)
    second = (16.0 * (a(h) + a(-h)) - (a(2 * h) + a(-2 * h)) - 30.0 * a(0.0)) / (12.0 * h * h)
    np.testing.assert_allclose(qd[:, 3], first, atol=1e-11)
    np.testing.assert_allclose(qdd[:, 3], second, atol=1e-8)


# The four-bar ------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [0, 1])
def test_four_bar_is_freudenstein(side: int) -> None:
    """Both assemblies agree over a turn of the crank; each position is the guess for the next."""
    q = np.array([0.0, 0.9, 1.9]) * (1 - 2 * side)
    for angle in np.linspace(0.0, 2.0 * math.pi, 60):
        q = FOUR.assemble([angle], guess=q)
        assert abs(wrapped(q[2] - rockers(BARS, angle)[side])) < 1e-12
        pin = 0.1 * np.exp(1j * angle) + 0.35 * np.exp(1j * (angle + q[1]))
        assert abs(pin - (0.4 + 0.3 * np.exp(1j * q[2]))) < 1e-13


def test_four_bar_redundancy_is_reported() -> None:
    """Three degrees of freedom and five constraints of rank two (Featherstone 2008, 8.10)."""
    report = FOUR.mobility()
    assert (report.freedoms, report.rows, report.rank, int(report)) == (3, 5, 2, 1)
    assert report.redundant == (("pin", 3),)
    assert report.dropped < 1e-14 < report.tolerance < 0.01 < report.kept
    assert str(report).startswith(
        "mobility 1: 3 degrees of freedom, rank 2 of 5 equations (redundant: 3 of loop 'pin'; "
    )
    assert report == FOUR.mobility()
    assert report == 1 == len(FOUR.independent)
    assert hash(report) == hash(1)
    copy = pickle.loads(pickle.dumps(report))
    assert (copy, str(copy)) == (report, str(report))


def dead_point() -> np.ndarray:
    """Return the position with crank and coupler aligned, where the rocker reverses."""
    along = math.acos((0.4**2 + 0.45**2 - 0.3**2) / (2.0 * 0.4 * 0.45))
    tip = 0.45 * np.exp(1j * along) - 0.4
    return np.array([along, 0.0, math.atan2(tip.imag, tip.real)])


def test_dead_point_is_a_singular_position() -> None:
    q = dead_point()
    driven = FOUR.with_independent("rocker")
    assert driven.independent == ("rocker",)
    text = "E-LOOP-011 'four_bar'"
    with raises(text):
        driven.complete(q, [1.0])
    with raises("E-LOOP-011"):
        driven.assemble(q[2:], guess=q + np.array([0.1, -0.1, 0.0]))
    qd = FOUR.complete(q, [1.0])  # at this position, the rocker stands still
    assert abs(qd[2]) < 1e-14
    assert int(FOUR.mobility(q)) == 1


def test_before_and_beyond_the_dead_point() -> None:
    driven, q = FOUR.with_independent("rocker"), dead_point()
    for sign in (1.0, -1.0):  # two branches meet there
        near = driven.assemble(q[2:] + 1e-3, guess=q + sign * np.array([0.1, -0.1, 0.0]))
        assert np.sign(near[1]) == -sign
        assert np.max(np.abs(FOUR.loop_residual(near))) < 1e-13
    with raises("E-LOOP-001", "'pin'"):
        driven.assemble(q[2:] - 1e-3, guess=q)


def test_a_rough_guess_keeps_its_branch() -> None:
    """Guesses 0.4 rad off keep the branch, except near dead points, where branches meet.

    94 % of 400 guesses return to their branch. Without a limit on the step length, another 3 %
    would be lost.
    """
    exact = FOUR.assemble(np.linspace(-3.0, 3.0, 400)[:, None], guess=[0.0, 0.9, 1.9])
    away = np.random.default_rng(0).uniform(-0.4, 0.4, (400, 3)) * [1.0, 1.0, 0.0]
    found = FOUR.with_independent("rocker").assemble(exact[:, 2:], guess=exact + away)
    same = np.max(np.abs(wrapped(found - exact)), axis=-1) < 1e-6
    assert np.mean(same) > 0.93


def test_a_position_where_the_loop_itself_is_singular() -> None:
    """A flat parallelogram can fold in two ways, so no choice of coordinates is regular."""
    flat = chasles.robots.four_bar(1.0, 0.5, 1.0, 0.5)
    q = np.zeros(3)
    assert int(flat.mobility(q)) == 2
    assert int(flat.mobility()) == 1
    text = "E-LOOP-011 'crank'"
    with raises(text):
        flat.complete(q, [1.0])


def test_a_locked_mechanism_has_no_freedom_to_choose_or_to_move() -> None:
    locked = FOUR.lock({"crank": 0.8})
    q = locked.assemble([])
    text = "E-LOOP-009 'four_bar'"
    for ask in (
        lambda: locked.with_independent("rocker"),
        lambda: locked.assemble([0.5]),
        lambda: locked.complete(q, [1.0]),
    ):
        with raises(text):
            ask()
    assert np.array_equal(locked.complete(q, []), [0.0, 0.0])
    assert np.allclose(locked.forward_dynamics(q, [0.0, 0.0], [1.0, 2.0]), 0.0, atol=1e-12)


# Spatial loops closed by every joint type --------------------------------------------------------


@cache
def closed(kind: str, floating: bool = False) -> tuple[chasles.Robot, np.ndarray]:
    source, q = spatial(kind, 1, floating=floating)
    return chasles.Robot(source), q


def independent_indices(robot: chasles.Robot) -> list[int]:
    """Return the indices of the independent coordinates in qd, from their names."""
    parts = [name.partition("[") for name in robot.independent]
    return [robot.velocity_slice(name).start + int(k[:-1] or 0) for name, _, k in parts]


def start(robot: chasles.Robot, q: np.ndarray) -> np.ndarray:
    """Return the independent coordinates of q, with zeros for displacements from the guess."""
    y = np.zeros(len(robot.independent))
    for k, name in enumerate(robot.independent):
        if robot.joint(name.partition("[")[0]).kind not in (
            "planar",
            "spherical",
            "free",
            "sphere_in_cylinder",
        ):
            first, _, rest = name.partition("[")
            y[k] = q[robot.position_slice(first)][int(rest[:-1] or 0)]
    return y


@pytest.mark.parametrize("kind", LOOP_JOINTS)
def test_residual_vanishes_where_the_loop_is_closed(kind: str) -> None:
    robot, q = closed(kind)
    (loop,) = robot.model.source.loops
    assert gap(robot.model.source, loop, q) < 1e-14
    r = robot.loop_residual(q)
    assert r.shape == (6 - LOOP_JOINTS[kind].nv,)
    assert np.max(np.abs(r), initial=0.0) < 1e-14


@pytest.mark.parametrize("kind", [kind for kind in LOOP_JOINTS if kind != "free"])
def test_residual_sees_every_open_position(kind: str) -> None:
    robot, q = closed(kind)
    (loop,) = robot.model.source.loops
    rng = np.random.default_rng(3)
    for size in (1e-6, 1e-2, 0.5):
        moved = robot.integrate(q, size * rng.normal(size=robot.nv))
        ratio = np.linalg.norm(robot.loop_residual(moved)) / gap(robot.model.source, loop, moved)
        assert 0.1 < ratio < 10.0


@pytest.mark.parametrize("kind", LOOP_JOINTS)
def test_matrix_is_the_derivative_of_the_residual(kind: str) -> None:
    robot, q = closed(kind)
    A = robot.loop_matrix(q)

    def central(h: float) -> np.ndarray:
        both = [robot.loop_residual(robot.integrate(q, s * h * np.eye(robot.nv))) for s in (1, -1)]
        return (both[0] - both[1]).T / (2.0 * h)

    close((4.0 * central(5e-4) - central(1e-3)) / 3.0, A, 1e-9)
    exact = chasles.compile(robot, "loop_residual", wrt="q", backend="interpret")
    close(exact(q), A, 1e-13)


@pytest.mark.parametrize("kind", LOOP_JOINTS)
def test_rates_are_those_of_assembled_motions(kind: str) -> None:
    """Velocities and accelerations agree with differences of closed positions."""
    robot, q = closed(kind)
    (loop,) = robot.model.source.loops
    rng = np.random.default_rng(5)
    y0 = start(robot, q)
    yd, ydd = rng.normal(size=(2, len(y0)))

    def moved(t: float) -> np.ndarray:
        at = robot.assemble(y0 + yd * t + ydd * t * t / 2.0, guess=q)
        assert gap(robot.model.source, loop, at) < 1e-13
        return robot.difference(q, at)

    def differences(h: float) -> np.ndarray:
        ahead, back = moved(h), moved(-h)
        return np.array([(ahead - back) / (2.0 * h), (ahead + back) / (h * h)])

    first, second = (4.0 * differences(5e-4) - differences(1e-3)) / 3.0
    chosen = independent_indices(robot)  # includes displacements from the guess
    qd, qdd = robot.complete(q, first[chosen], second[chosen])
    close(qd, first, 1e-8)
    close(qdd, second, 1e-6)
    close(robot.loop_matrix(q) @ qd, np.zeros(len(robot.loop_residual(q))), 1e-12, scale=1.0)


@pytest.mark.parametrize("kind", LOOP_JOINTS)
def test_mobility_in_space(kind: str) -> None:
    """Each equation removes one of 11 degrees of freedom in general position."""
    robot, q = closed(kind)
    report = robot.mobility(q)
    assert int(report) == 11 - report.rows == 5 + LOOP_JOINTS[kind].nv == len(robot.independent)
    assert report.redundant == (("loop", 0),)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["universal", "fixed"])
def test_compiled_is_what_the_algorithm_says(kind: str, target: str) -> None:
    robot, q = closed(kind)
    rng = np.random.default_rng(7)
    states = robot.integrate(q, 0.3 * rng.normal(size=(5, robot.nv)))
    qd = rng.normal(size=(5, robot.nv))
    for function, arrays in (
        ("loop_residual", (states,)),
        ("loop_matrix", (states,)),
        ("loop_bias", (states, qd)),
    ):
        found = chasles.compile(robot, function, backend=target)(*arrays)
        exact = [direct(robot.model, function, *row) for row in zip(*arrays, strict=True)]
        close(found, np.array(exact), 1e-12)


def test_a_floating_mechanism() -> None:
    """Coordinates of a floating base are independent, and do not affect the loop."""
    robot, q = closed("revolute", floating=True)
    base = [f"float[{k}]" for k in range(6)]
    assert set(base) < set(robot.independent)
    assert not robot.loop_matrix(q)[:, robot.velocity_slice("float")].any()
    y = np.array(
        [
            0.0 if p is None else q[p]
            for p in map(
                robot.mechanism.closing.places.__getitem__, robot.mechanism.closing.independent
            )
        ]
    )
    step = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    y[[robot.independent.index(name) for name in base]] = step
    found = robot.assemble(y, guess=q)
    moved = robot.difference(q, found)
    np.testing.assert_allclose(moved[robot.velocity_slice("float")], step, atol=1e-14)
    (loop,) = robot.model.source.loops
    assert gap(robot.model.source, loop, found) < 1e-13


def at(x: float, y: float = 0.0, z: float = 0.0) -> Transform:
    return Transform(Rotation(), Vector.of(x, y, z))


def rssr() -> chasles.Robot:
    """Return a crank and a rocker with crossed axes, and a rod with a ball joint at each end."""
    bodies = {"base": sphere(1.0, 0.1)} | dict.fromkeys(("crank", "rod", "rocker"), rod(1.0, 1.0))
    y = Vector.of(0.0, 1.0, 0.0)
    joints = (
        JointData("crank", "revolute", "base", "crank"),
        JointData("ball", "spherical", "crank", "rod", at(0.3)),
        JointData("rocker", "revolute", "base", "rocker", at(1.0, 0.2, 0.1), y),
    )
    links = tuple(LinkData(name, inertia) for name, inertia in bodies.items())
    end = LoopData("end", "spherical", "rod", "rocker", at(1.1), child_pose=at(0.6))
    return chasles.Robot(Description("rssr", links, joints, loops=(end,)))


def test_rssr_has_an_idle_freedom() -> None:
    """The mobility is 2: the crank moves, and the rod turns about itself without other effects."""
    robot = rssr()
    assert int(robot.mobility()) == 2
    assert robot.independent[0] == "crank"
    assert robot.independent[1].startswith("ball[")
    q = robot.assemble([0.4, 0.0])
    spin = robot.complete(q, [0.0, 1.0])
    rod_axis = spin[1:4] / np.linalg.norm(spin[1:4])
    np.testing.assert_allclose(np.abs(rod_axis), [1.0, 0.0, 0.0], atol=1e-12)
    assert abs(spin[0]) + abs(spin[4]) < 1e-12
    turned = robot.assemble(np.column_stack([np.linspace(0.4, 6.6, 50), np.zeros(50)]), guess=q)
    source = robot.model.source
    assert max(gap(source, source.loops[0], each) for each in turned) < 1e-13


def test_mimic_joints_in_a_loop() -> None:
    """The loop matrix has the contributions of followers in the columns of their leaders."""
    robot = tree(6, 3, floating=False, mimics=True)
    assert len(robot.moving_joints) > len(robot.joints)
    q = robot.random(seed=2)
    a, b = robot.bodies[1], robot.bodies[-1]
    A, B = (robot.forward_kinematics(q, frame=name) for name in (a, b))
    loop = LoopData("loop", "fixed", a, b, child_pose=transform(np.linalg.inv(B) @ A))
    looped = chasles.Robot(replace(robot.model.source, loops=(loop,)))
    assert np.max(np.abs(looped.loop_residual(q))) < 1e-14
    h = 1e-5
    both = [looped.loop_residual(looped.integrate(q, s * h * np.eye(looped.nv))) for s in (1, -1)]
    close(looped.loop_matrix(q), (both[0] - both[1]).T / (2.0 * h), 1e-8)


# Several loops, sizes and parameters -------------------------------------------------------------


def test_a_loop_that_says_nothing_new() -> None:
    source = four_bar()
    twice = replace(source, loops=(*source.loops, replace(source.loops[0], name="again")))
    report = chasles.Robot(twice).mobility()
    assert report.redundant == (("pin", 3), ("again", 5))
    assert int(report) == 1


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_size_does_not_matter(scale: float) -> None:
    robot = chasles.robots.slider_crank(scale, 3.0 * scale)
    assert robot.independent == ("alpha1",)
    assert robot.mobility().redundant == (("closure", 3),)
    q = robot.assemble([0.7], guess=NEAR * [1.0, 1.0, 1.0, scale])
    assert q[3] / scale == pytest.approx(3.6948564486, rel=1e-10)


def test_dimensions_as_parameters() -> None:
    """The residual with another joint placement as input agrees with that of another robot."""
    compiled = chasles.compile(CRANK, "loop_residual", parameters=("alpha2.placement",))
    other = chasles.robots.slider_crank(1.5, 3.0)
    q = np.array([0.4, -0.6, 0.3, 3.5])
    close(compiled(q, other.parameter("alpha2.placement")), other.loop_residual(q), 1e-14)


def test_newton_is_quadratic_at_the_end() -> None:
    """Newton's method converges quadratically, in a few iterations from a fair guess."""
    calls = []

    def residual(q: np.ndarray) -> np.ndarray:
        calls.append(np.max(np.abs(CRANK.loop_residual(q))))
        return CRANK.loop_residual(q)

    moved = np.array([0.0, 1.0, 1.0, 4.0])
    rows = np.array([1.0, 1.0, 1.0, 0.25, 0.25, 0.25])
    numeric.solve(
        residual,
        CRANK.loop_matrix,
        CRANK.integrate,
        NEAR[None] + [0.0, 0.2, 0.1, 0.3],
        rows=rows,
        columns=moved,
        tolerance=1e-13,
        rank=1e-8,
    )
    falling = [r for r in calls if r > 1e-14]
    assert len(calls) <= 7
    assert all(after < 2.0 * before**2 for before, after in itertools.pairwise(falling[1:]))


# Independent coordinates and errors --------------------------------------------------------------


def test_another_choice_of_independent_freedoms() -> None:
    q = CRANK.assemble([0.7], guess=NEAR)
    qd, qdd = CRANK.complete(q, [2.0], [0.5])
    for name, k in (("alpha2", 1), ("alpha3", 2), ("a", 3)):
        other = CRANK.with_independent(name)
        assert other.independent == (name,)
        np.testing.assert_allclose(other.assemble(q[[k]], guess=q + 0.1), q, atol=1e-12)
        again = other.complete(q, qd[[k]], qdd[[k]])
        np.testing.assert_allclose(again, [qd, qdd], atol=1e-12)
    assert pickle.loads(pickle.dumps(other)).independent == ("a",)


def test_a_robot_without_loops() -> None:
    arm = chasles.robots.planar(3)
    assert (arm.loops, arm.independent) == ((), arm.joints)
    assert int(arm.mobility()) == 3
    y = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(arm.assemble(y), y)
    np.testing.assert_array_equal(arm.complete(y, y), y)
    assert arm.loop_matrix(y).shape == (2, 0, 3)
    walker = chasles.robots.quadruped()
    np.testing.assert_array_equal(walker.assemble(np.zeros(18)), walker.neutral())


def test_batches_broadcast() -> None:
    y, guess = np.linspace(0.1, 1.0, 6).reshape(3, 2, 1), np.stack([NEAR, NEAR + 0.1])
    q = CRANK.assemble(y, guess)
    assert q.shape == (3, 2, 4)
    qd, qdd = CRANK.complete(q, [1.0], np.zeros((2, 1)))
    assert qd.shape == qdd.shape == (3, 2, 4)
    np.testing.assert_allclose(CRANK.complete(q[1, 1], [1.0]), qd[1, 1], atol=1e-15)
    assert CRANK.assemble(np.empty((0, 1))).shape == (0, 4)
    assert CRANK.complete(np.empty((0, 4)), np.empty((0, 1))).shape == (0, 4)


def test_coordinates_by_name() -> None:
    """Values by name, in any order and with broadcasting, are those of the array."""
    robot, turns = chasles.robots.five_bar(), np.linspace(0.1, 0.4, 4)
    first, second = robot.independent_positions
    y = np.stack([np.full(4, 0.2), turns], axis=-1) + robot.neutral()[:2]
    q = robot.assemble({second: y[:, 1], first: y[0, 0]})
    np.testing.assert_array_equal(q, robot.assemble(y))


def test_impossible_positions_are_named() -> None:
    short = chasles.robots.slider_crank(3.0, 1.0)
    text = "E-LOOP-001 impossible position"
    with raises(text):
        short.assemble([1.5])
    with raises("E-LOOP-001", "(1,)"):
        short.assemble([[0.1], [1.5], [1.6]])


def test_loops_that_cannot_close_at_all() -> None:
    source = four_bar()
    far = replace(source.loops[0], pose=Transform(Rotation(), Vector.of(9.0, 0.0, 0.0)))
    robot = chasles.Robot(replace(source, loops=(far,)))
    with raises("E-LOOP-002"):
        robot.mobility()


def test_open_positions_are_named() -> None:
    q = FOUR.assemble([[0.3], [0.4]])
    q[1, 2] += 1e-3
    text = "E-LOOP-021 (1,)"
    with raises(text):
        FOUR.complete(q, [1.0])
    assert FOUR.complete(q, [1.0], tolerance=1e-2).shape == (2, 3)
    with raises("E-LOOP-021"):
        FOUR.mobility(q[1])
    assert issubclass(chasles.OpenLoop, chasles.LoopError)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: FOUR.assemble([1.0, 2.0]),
            ValueError,
            "E-LOOP-007 (..., 1)",
        ),
        (lambda: FOUR.assemble(0.3), ValueError, "E-LOOP-007"),
        (lambda: FOUR.assemble([math.nan]), ValueError, "E-LOOP-008"),
        (lambda: FOUR.assemble(["a"]), TypeError, "E-LOOP-006"),
        (lambda: FOUR.assemble({"crnk": 0.1}), ValueError, "E-LOOP-042 'crank'"),
        (lambda: FOUR.assemble({}), ValueError, "E-LOOP-043 'crank'"),
        (lambda: FOUR.assemble({"crank": "a"}), TypeError, "E-CALL-113"),
        (lambda: FOUR.assemble([0.1], [0.1]), ValueError, "E-LOOP-007 (..., 3)"),
        (lambda: FOUR.complete(np.zeros(2), [1.0]), ValueError, "E-LOOP-007 (..., 3)"),
        (lambda: FOUR.mobility(np.zeros((2, 3))), ValueError, "E-LOOP-018 (3,)"),
        (
            lambda: FOUR.with_independent("x"),
            chasles.ModelError,
            "E-LOOP-005 'x'",
        ),
        (
            lambda: FOUR.with_independent("crank", "rocker"),
            chasles.ModelError,
            "E-LOOP-004 'crank'",
        ),
        (
            lambda: closed("free", True)[0].with_independent("revolute"),
            chasles.ModelError,
            "E-LOOP-004 'revolute'",
        ),
    ],
)
def test_bad_input(call, error: type, message: str) -> None:
    with raises(message, kind=error):
        call()


def test_a_choice_that_determines_nothing() -> None:
    """Loop coordinates do not determine a lift outside the loop, so the choice is rejected."""
    source = four_bar()
    raised = replace(
        source,
        links=(LinkData("ground", sphere(1.0, 0.1)), *source.links),
        joints=(JointData("lift", "prismatic", "ground", "base"), *source.joints),
    )
    robot = chasles.Robot(raised)
    assert robot.independent == ("lift", "crank")
    with raises("E-LOOP-004", "'crank'", "'rocker'"):
        robot.with_independent("crank", "rocker")


@pytest.mark.parametrize("tolerance", [float("nan"), -1.0, 0.0, "x"])
def test_a_tolerance_is_a_positive_number(tolerance: object) -> None:
    robot = chasles.robots.slider_crank(1.0, 3.0)
    q = robot.assemble([0.7])
    for call in (
        lambda: robot.complete(q, [1.0], tolerance=tolerance),
        lambda: robot.mobility(q, tolerance=tolerance),
    ):
        with raises("E-CALL-004"):
            call()


def test_leading_shapes_are_named() -> None:
    robot = chasles.robots.slider_crank(1.0, 3.0)
    q = robot.assemble([[0.1], [0.2]])
    with raises("E-CALL-057", "(2,)", "(3,)"):
        robot.complete(q, np.ones((3, 1)))
    with raises("E-CALL-057", "(2,)", "(3,)"):
        robot.assemble([[0.1], [0.2]], guess=np.zeros((3, 4)))
