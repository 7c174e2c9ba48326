"""Rigid contact in `chasles.simulate`, compared with closed forms and statics."""

import math
from itertools import pairwise

import numpy as np
import pytest
from contact_bodies import GRAVITY, ball, block, body, free, touch, turned
from support import raises

import chasles
from chasles import contact
from chasles.contact import Box, Pair, Plane, Point, Rigid, Sphere
from chasles.mathematics.linear import Vector
from chasles.model import Description, JointData, Limits
from chasles.motion.geometry.kinematics import Points
from chasles.rollouts import Trajectory


def times(motion: Trajectory, name: str) -> np.ndarray:
    """Return the times of events with the given name, or whose name has it as the first word."""
    return np.array([e.t for e in motion.events if name in (e.name, e.name.split()[0])])


def impacts(motion: Trajectory) -> np.ndarray:
    """Return the indices of states before impacts; the next index is the state after the impact."""
    same = np.flatnonzero(np.diff(motion.t) == 0.0)
    return same[np.isin(motion.t[same], times(motion, "impact"))]


def energy(robot: chasles.Robot, motion: Trajectory) -> np.ndarray:
    return robot.kinetic_energy(motion.q, motion.qd) + robot.potential_energy(motion.q)


def flat(mass: float, moment: float) -> chasles.Robot:
    """Robot with one body in the x-y plane, and gravity along -y.

    q is (angle, x, y). Velocities are along the body's axes.
    """
    joint = JointData("plane", "planar", None, "body")
    links = (body(mass, (1.0, 1.0, moment)),)
    return chasles.Robot(Description("flat", links, (joint,))).with_gravity((0.0, -GRAVITY, 0.0))


FLOOR = Plane(None, (0.0, 1.0, 0.0))


# How points move -------------------------------------------------------------------------------


def test_points_move_as_contact_points_and_touch_say() -> None:
    """Compare balls and corners on a plane, on curved ground and on another body."""
    robot, rng = chasles.robots.quadruped(), np.random.default_rng(0)
    q, qd = robot.random(rng), rng.normal(size=robot.nv)
    feet = [Sphere(f"{end}_foot", 0.02) for end in ("front_left", "rear_right")]
    pairs = [
        Pair(feet[0], Plane(None, (0.1, 0.2, 1.0)), Rigid()),
        Pair(feet[1], contact.Ground(lambda x, y: 0.1 * x * x + 0.05 * x * y), Rigid()),
        Pair(feet[0], Box("trunk", (0.3, 0.2, 0.1)), Rigid()),
        Pair(Box("trunk", (0.4, 0.2, 0.1)), Plane(None, (0.0, 0.0, -1.0)), Rigid()),
    ]
    moves = Points(robot.model, [(p.body, p.surface) for p in pairs])(0.0, q, qd)
    expected = [c for p in pairs for c in contact.contact_points(robot, q, qd, p.body, p.surface)]
    assert len(moves.gap) == len(expected) == 11
    for k, c in enumerate(expected):
        E, there = moves.axes[k], touch(robot.mechanism, q, qd, c)
        bias = E @ there.bias + [0.0, 0.0, c.normal_rate @ there.velocity]
        assert np.allclose(E @ E.T, np.eye(3), atol=1e-14)
        assert np.isclose(np.linalg.det(E), 1.0)
        assert np.allclose(E[2], c.normal, atol=1e-14)
        assert np.isclose(moves.gap[k], c.gap, atol=1e-13)
        assert np.allclose(moves.velocity[k], E @ there.velocity, atol=1e-13)
        assert np.allclose(moves.J[k], E @ there.J, atol=1e-13)
        assert np.allclose(moves.bias[k], bias, atol=1e-12)


# Impacts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ["heun2", "rk4", "dopri5"])
def test_a_bouncing_ball_comes_to_rest_when_its_bounces_accumulate(integrator: str) -> None:
    """Times and heights of the bounces agree with closed forms.

    Impacts happen at t1 (1 + 2e + 2e^2 + ...). Each height is e^2 times the previous one. The ball
    is at rest from t1 (1+e)/(1-e).
    """
    e, h, robot = 0.5, 1.0, ball(2.0, 0.3)
    motion = chasles.simulate(
        robot,
        [1.0, 0, 0, 0, 0, 0, h + 0.3],
        np.zeros(6),
        duration=1.6,
        dt=0.05,
        integrator=integrator,
        contacts=[Pair(Sphere("body", 0.3), Plane(), Rigid(restitution=e))],
        events=chasles.Event(lambda t, q, qd: qd[5], -1, terminal=False, name="top"),
    )
    first = math.sqrt(2.0 * h / GRAVITY)
    hits = times(motion, "impact")
    expected = first * np.cumsum([1.0, *(2.0 * e**k for k in range(1, len(hits)))])
    assert len(hits) == 19  # the twentieth impact would be slower than 1e-5 m/s
    assert np.max(np.abs(hits - expected)) < 1e-9
    tops = [event.q[6] - 0.3 for event in motion.events if event.name == "top"]
    assert np.allclose(tops[:5], h * e ** (2.0 * np.arange(1, 6)), rtol=1e-8)
    (rest,) = times(motion, "gain body")
    assert abs(rest - first * (1.0 + e) / (1.0 - e)) < 1e-9
    after = motion.t > rest
    assert np.allclose(motion.touching.forces[after], [0.0, 0.0, 2.0 * GRAVITY], rtol=1e-12)
    assert np.max(np.abs(motion.touching.gaps[after])) < 1e-15
    assert motion.touching.states.shape == (len(motion.t), 0)


@pytest.mark.parametrize(
    ("law", "after"),
    [
        (Rigid(restitution=1.0), [0.0, 0.0, 0.0, 0.0, 1.0]),
        (Rigid(impact=contact.Newton(1.0)), [0.0, 0.0, 0.0, 0.0, 1.0]),
        (Rigid(restitution=0.0), [0.2, 0.2, 0.2, 0.2, 0.2]),
    ],
)
def test_newtons_cradle_of_balls_that_touch(law: Rigid, after: list[float]) -> None:
    """The last ball leaves when the first arrives.

    Without restitution, all five move on together.
    """
    links = tuple(body(1.0, (0.1, 0.1, 0.1), name) for name in "abcde")
    x = Vector.of(1.0, 0.0, 0.0)
    joints = tuple(JointData(f"x{k.name}", "prismatic", None, k.name, axis=x) for k in links)
    robot = chasles.Robot(Description("cradle", links, joints))
    balls = [Sphere(name, 0.5) for name in "abcde"]
    motion = chasles.simulate(
        robot,
        [-0.3, 1.0, 2.0, 3.0, 4.0],
        [1.0, 0.0, 0.0, 0.0, 0.0],
        duration=0.4,
        dt=0.1,
        contacts=[Pair(right, left, law) for left, right in pairwise(balls)],
    )
    assert np.allclose(times(motion, "impact b on a"), [0.3], atol=1e-12)
    assert np.allclose(motion.qd[-1], after, atol=1e-9)


@pytest.mark.parametrize("corners", [8, 16])
def test_a_polygon_that_rolls_loses_energy_at_each_corner(corners: int) -> None:
    """A rimless wheel loses energy at each impact, and a disc of the same inertia loses none.

    The loss follows from the conservation of angular momentum about the next corner. Polyhedra have
    such spurious impacts.
    """
    m, r, turn = 2.0, 0.3, 2.0 * math.pi / corners
    robot = flat(m, 0.5 * m * r * r)
    angles = -0.5 * math.pi + turn * np.arange(corners)
    wheel = [
        Pair(Point("body", (r * math.cos(a), r * math.sin(a), 0.0)), FLOOR, Rigid(5.0))
        for a in angles
    ]
    start = {"q": [0.0, 0.0, r], "qd": [-4.0, 4.0 * r, 0.0], "duration": 0.6, "dt": 0.01}
    motion = chasles.simulate(robot, **start, contacts=wheel)
    hits = impacts(motion)
    assert len(hits) >= 2
    kept = (0.5 + math.cos(turn)) / 1.5
    assert np.allclose(motion.qd[hits + 1, 0] / motion.qd[hits, 0], kept, rtol=1e-9)
    disc = [Pair(Sphere("body", r), FLOOR, Rigid(5.0))]
    smooth = chasles.simulate(robot, **start, contacts=disc)
    assert np.allclose(energy(robot, smooth), energy(robot, smooth)[0], rtol=1e-8)
    assert not times(smooth, "impact").size


# Friction --------------------------------------------------------------------------------------


def on_slope(angle: float, mu: float, speed: float = 0.0) -> Trajectory:
    """Simulate a block on a slope for one second.

    The block starts flat on its four corners, with the given speed down the slope.
    """
    size, normal = (0.4, 0.3, 0.2), (math.sin(angle), 0.0, math.cos(angle))
    return chasles.simulate(
        block(2.0, size),
        np.array([*turned(angle), *(0.1 * np.array(normal))]),
        [0.0, 0.0, 0.0, speed, 0.0, 0.0],
        duration=1.0,
        dt=0.05,
        contacts=[Pair(Box("body", size), Plane(None, normal), Rigid(mu))],
    )


def test_a_block_sticks_below_and_slips_above_the_angle_of_friction() -> None:
    mu = 0.5
    for angle in (math.atan(mu) - 1e-4, math.atan(mu) + 0.02, 0.8):
        motion = on_slope(angle, mu)
        down = GRAVITY * max(0.0, math.sin(angle) - mu * math.cos(angle))
        moved = np.linalg.norm(motion.q[:, 4:] - motion.q[0, 4:], axis=-1)
        assert np.allclose(moved, 0.5 * down * motion.t**2, atol=1e-9)
        pressed = np.sum(motion.touching.forces, axis=1) @ [math.sin(angle), 0.0, math.cos(angle)]
        assert np.allclose(pressed, 2.0 * GRAVITY * math.cos(angle), rtol=1e-9)


def test_a_sliding_block_stops_and_stays() -> None:
    angle, mu, speed = 0.2, 0.5, 1.5
    motion = on_slope(angle, mu, speed)
    slower = GRAVITY * (mu * math.cos(angle) - math.sin(angle))
    assert np.allclose(times(motion, "stick"), speed / slower, rtol=0.0, atol=1e-9)
    assert len(times(motion, "stick")) == 4
    moved = np.linalg.norm(motion.q[-1, 4:] - motion.q[0, 4:])
    assert abs(moved - 0.5 * speed**2 / slower) < 1e-9
    assert np.max(np.abs(motion.qd[-1])) < 1e-12


def test_a_block_that_slides_up_slides_back_down() -> None:
    angle, mu, speed = 0.6, 0.5, 1.5
    motion = on_slope(angle, mu, -speed)
    up, down = (GRAVITY * (math.sin(angle) + s * mu * math.cos(angle)) for s in (1.0, -1.0))
    top = speed / up
    moved = -0.5 * speed * top + 0.5 * down * (1.0 - top) ** 2
    assert (
        abs((motion.q[-1, 4:] - motion.q[0, 4:]) @ [math.cos(angle), 0.0, -math.sin(angle)] - moved)
        < 1e-9
    )


@pytest.mark.parametrize("speed", [0.0, 0.5])
def test_a_box_that_turns_on_its_corners_is_braked(speed: float) -> None:
    """More corners carry the box than necessary, each with its own slip, which is not a paradox.

    A box that only rotates decelerates by mu g r/k^2, where r is the distance from its center to
    the corners.
    """
    size, mu, spin = (0.4, 0.3, 0.2), 0.3, 3.0
    robot = block(2.0, size)
    motion = chasles.simulate(
        robot,
        [1.0, 0, 0, 0, 0, 0, 0.1],
        [0.0, 0.0, spin, speed, 0.0, 0.0],
        duration=0.4,
        dt=0.01,
        contacts=[Pair(Box("body", size), Plane(), Rigid(mu))],
    )
    wide = size[0] ** 2 + size[1] ** 2
    stop = spin * (wide / 12.0) / (mu * GRAVITY * 0.5 * math.sqrt(wide))
    stops = times(motion, "stick")
    assert len(stops) == 4
    assert np.all(stops > stop + 0.01) if speed else np.allclose(stops, stop, rtol=1e-9)
    assert np.max(np.diff(energy(robot, motion))) < 1e-12
    assert np.max(np.abs(motion.qd[-1])) < 1e-12
    assert np.allclose(np.sum(motion.touching.forces[:, :, 2], axis=1), 2.0 * GRAVITY, rtol=1e-9)


@pytest.mark.parametrize(
    ("moments", "size", "mu", "spin", "speed", "dt"),
    [
        ((0.0282, 0.0295, 0.0121), (0.2, 0.18, 0.37), 0.92, 2.51, (0.11, -0.08), 1e-3),
        ((0.0282, 0.0295, 0.0121), (0.2, 0.18, 0.37), 0.92, 3.02, (0.04, 0.17), 1e-3),
        ((0.0217, 0.0333, 0.0417), (0.2, 0.2, 0.4), 0.87, -2.43, (-0.04, -0.05), 2e-3),
    ],
)
def test_a_tall_box_that_turns_on_its_corners_never_gains_energy(
    moments: tuple[float, float, float],
    size: tuple[float, float, float],
    mu: float,
    spin: float,
    speed: tuple[float, float],
    dt: float,
) -> None:
    """While a corner of a tall box stops sliding, its force grows fast, and its slip turns."""
    robot = free(body(2.0, moments))
    motion = chasles.simulate(
        robot,
        [1.0, 0, 0, 0, 0, 0, 0.5 * size[2]],
        [0.0, 0.0, spin, *speed, 0.0],
        duration=0.05,
        dt=dt,
        contacts=[Pair(Box("body", size), Plane(), Rigid(mu))],
    )
    kinetic = robot.kinetic_energy(motion.q[0], motion.qd[0])
    assert np.max(np.diff(energy(robot, motion))) < 1e-8 * kinetic


def test_a_push_that_grows_begins_a_slip() -> None:
    """A vertical force k t lifts a block at m g; a horizontal force k t makes it slip at mu m g."""
    size, mu, m, k = (0.4, 0.3, 0.2), 0.4, 2.0, 10.0
    motion = chasles.simulate(
        block(m, size),
        [1.0, 0, 0, 0, 0, 0, 0.1],
        np.zeros(6),
        duration=3.0,
        dt=0.05,
        tau=lambda t, q, qd: np.array([0.0, 0.0, 0.0, 0.0, 0.0, k * t]) if t else np.zeros(6),
        contacts=[Pair(Box("body", size), Plane(), Rigid(mu))],
    )
    assert np.allclose(times(motion, "loss"), m * GRAVITY / k, rtol=1e-6)
    assert not times(motion, "slip").size
    push = chasles.simulate(
        block(m, size),
        [1.0, 0, 0, 0, 0, 0, 0.1],
        np.zeros(6),
        duration=1.0,
        dt=0.05,
        tau=lambda t, q, qd: np.array([0.0, 0.1 * k * t, 0.0, k * t, 0.0, 0.0]),
        contacts=[Pair(Box("body", size), Plane(), Rigid(mu))],
    )
    began = mu * m * GRAVITY / k
    assert np.isclose(np.max(times(push, "slip")), began, rtol=1e-6)  # some corners slip earlier
    assert abs(push.qd[-1, 3] - 0.5 * k / m * (1.0 - began) ** 2) < 1e-6


def test_a_ball_rolls_down_a_slope_by_five_sevenths() -> None:
    angle, r = 0.3, 0.3
    normal = (math.sin(angle), 0.0, math.cos(angle))
    motion = chasles.simulate(
        ball(2.0, r),
        np.array([1.0, 0, 0, 0, *(r * np.array(normal))]),
        np.zeros(6),
        duration=1.0,
        integrator="dopri5",
        rtol=1e-9,
        atol=1e-11,
        contacts=[Pair(Sphere("body", r), Plane(None, normal), Rigid(0.5))],
    )
    moved = np.linalg.norm(motion.q[-1, 4:] - motion.q[0, 4:])
    assert abs(moved - 5.0 / 14.0 * GRAVITY * math.sin(angle)) < 1e-8
    assert np.max(np.abs(motion.touching.gaps)) < 1e-12


def test_a_ball_with_backspin_slides_and_then_rolls() -> None:
    """Sliding with the slip velocity v - r w ends after 2 (v - r w)/(7 mu g)."""
    r, mu, v, w = 0.3, 0.2, 2.0, -8.0
    robot = ball(2.0, r)
    motion = chasles.simulate(
        robot,
        [1.0, 0, 0, 0, 0, 0, r],
        [0.0, w, 0.0, v, 0.0, 0.0],
        duration=0.8,
        integrator="dopri5",
        rtol=1e-9,
        atol=1e-11,
        contacts=[Pair(Sphere("body", r), Plane(), Rigid(mu))],
    )
    rolls = 2.0 * (v - r * w) / (7.0 * mu * GRAVITY)
    assert np.allclose(times(motion, "stick body"), rolls, rtol=0.0, atol=1e-9)
    last = robot.frame_velocity(motion.q[-1], motion.qd[-1], frame="body")
    speed = v - mu * GRAVITY * rolls
    assert np.allclose(last[[1, 3]], [speed / r, speed], rtol=1e-8)


def test_slip_that_turns_is_as_accurate_as_the_integrator() -> None:
    """A sliding ball with spin across its path follows a parabola (Coriolis)."""
    r, mu, robot = 0.3, 0.2, ball(2.0, 0.3)
    start = {"q": [1.0, 0, 0, 0, 0, 0, r], "qd": np.array([6.0, 0.0, 3.0, 2.0, 0.0, 0.0])}
    motion = chasles.simulate(
        robot,
        **start,
        duration=0.5,
        dt=0.01,
        contacts=[Pair(Sphere("body", r), Plane(), Rigid(mu))],
    )
    slip = np.array([2.0, 6.0 * r])  # slip velocity of the lowest point; its direction is constant
    force = -mu * GRAVITY * slip / np.linalg.norm(slip)
    path = np.array([2.0, 0.0]) * motion.t[:, None] + 0.5 * force * motion.t[:, None] ** 2
    sliding = motion.t < 2.0 * np.linalg.norm(slip) / (7.0 * mu * GRAVITY)
    assert np.count_nonzero(sliding) > 30
    assert np.allclose(motion.q[sliding, 4:6], path[sliding], atol=1e-7)


# Rocking ---------------------------------------------------------------------------------------


def tilted(angle: float) -> tuple[chasles.Robot, np.ndarray, Box]:
    """Robot, configuration and shape of a tall box that stands on one edge, tilted by the angle."""
    size = (0.2, 0.3, 0.6)
    c, s = math.cos(angle), math.sin(angle)
    corner = np.array([0.1 * c - 0.3 * s, 0.0, -0.1 * s - 0.3 * c])
    return block(3.0, size), np.array([*turned(angle), *-corner]), Box("body", size)


def test_a_box_rocks_and_loses_energy_as_housner_says() -> None:
    """Energy and period agree with Housner (1963).

    Each impact multiplies the angular velocity by 1 - 3/2 sin^2 of the diagonal's angle. Energy is
    conserved between impacts. The first quarter period is acosh(a/(a - tilt))/p, where p^2 = 3 g/(4
    R).
    """
    slim = math.atan2(0.2, 0.6)
    robot, q, shape = tilted(0.02)
    motion = chasles.simulate(
        robot, q, np.zeros(6), duration=0.3, dt=0.005, contacts=[Pair(shape, Plane(), Rigid(0.9))]
    )
    hit = impacts(motion)
    assert len(hit) >= 2
    kept = motion.qd[hit + 1, 1] / motion.qd[hit, 1]
    assert np.allclose(kept, 1.0 - 1.5 * math.sin(slim) ** 2, rtol=1e-9)
    whole = energy(robot, motion)
    assert np.ptp(whole[: hit[0] + 1]) < 1e-9 * whole[0]
    p = math.sqrt(3.0 * GRAVITY / (4.0 * math.hypot(0.1, 0.3)))
    assert abs(motion.t[hit[0]] - math.acosh(slim / (slim - 0.02)) / p) < 1e-3


def test_a_box_that_never_slips_comes_to_rest() -> None:
    """One end of an edge needs friction of 23 times its normal force when the edge lands.

    The coefficients 100 and 1e6 both allow this.
    """
    size, stuck = (0.2, 0.3, 0.1), []
    for mu in (1e2, 1e6):
        motion = chasles.simulate(
            block(1.0, size),
            [*turned(0.4, (0.6, 0.8, 0.0)), 0.0, 0.0, 0.3],
            [1.0, 2.0, 3.0, 1.0, 0.0, 0.0],
            duration=1.0,
            dt=0.01,
            contacts=[Pair(Box("body", size), Plane(), Rigid(mu))],
        )
        assert np.max(np.abs(motion.qd[-1])) < 1e-9
        assert abs(motion.q[-1, 6] - 0.05) < 1e-9
        stuck.append(motion.q[-1])
    assert np.allclose(*stuck, atol=1e-9)  # sticking does not depend on mu


def test_a_box_topples_beyond_the_critical_angle() -> None:
    critical = math.atan2(0.2, 0.6)
    for angle, end in ((critical - 0.05, 0.0), (critical + 0.05, 0.5 * math.pi)):
        robot, q, shape = tilted(angle)
        motion = chasles.simulate(
            robot,
            q,
            np.zeros(6),
            duration=2.5,
            dt=0.01,
            contacts=[Pair(shape, Plane(), Rigid(0.6))],
        )
        lies = 2.0 * np.arctan2(motion.q[:, 2], motion.q[:, 0])
        assert (np.max(lies) > 1.5) == (end > 0.0)
        assert np.max(-motion.touching.gaps) < 1e-6
        assert np.all(np.diff(energy(robot, motion)) < 1e-6)


# No solution ------------------------------------------------------------------------------------


def test_a_rod_that_slides_into_painleves_paradox_is_reported() -> None:
    """Friction lifts the rod into angles for which no contact force exists.

    At mu = 2, forces are unique at angles below atan 0.76.
    """
    m, half, mu, angle = 1.0, 1.0, 2.0, 0.62
    robot = flat(m, m * half * half / 3.0)
    c, s = math.cos(angle), math.sin(angle)
    speed = -30.0  # velocity of the sliding end; the rod leans the other way
    with raises("E-CONTACT-020"):
        chasles.simulate(
            robot,
            [angle, half * c, half * s],
            [0.0, c * speed, -s * speed],
            duration=0.1,
            contacts=[Pair(Point("body", (-half, 0.0, 0.0)), FLOOR, Rigid(mu))],
        )


def test_what_does_not_go_with_contacts_is_refused_with_the_remedy() -> None:
    robot, pair = ball(), Pair(Sphere("body", 0.3), Plane(), Rigid())
    q, qd = np.array([1.0, 0, 0, 0, 0, 0, 0.3]), np.zeros(6)
    for change, message in (
        ({"integrator": "sdirk2"}, "E-MOTION-072 'rk4'"),
        ({"integrator": "variational"}, "E-MOTION-072"),
        ({"q": np.tile(q, (2, 1))}, "E-MOTION-071"),
        ({"q": q - 0.01}, "E-MOTION-059 0.01"),
        ({"contacts": [Pair(Sphere("hand", 0.3), Plane(), Rigid())]}, "E-MODEL-034"),
    ):
        options = {"q": q, "qd": qd, "duration": 0.1, "contacts": [pair]} | change
        with raises(message):
            chasles.simulate(robot, **options)
    with raises("E-MOTION-070"):
        chasles.simulate(robot, q, qd, duration=0.1, contacts=[pair, pair.body])


def test_a_motion_with_contacts_that_is_stopped_goes_on_bit_for_bit() -> None:
    robot = ball(2.0, 0.3)
    arguments = {
        "q": [1.0, 0, 0, 0, 0, 0, 0.4],
        "qd": [0.0, -8.0, 0.0, 2.0, 0.0, 0.0],
        "duration": 0.8,
        "dt": 0.02,
        "contacts": [Pair(Sphere("body", 0.3), Plane(), Rigid(0.2, 0.3))],
    }
    whole = chasles.simulate(robot, **arguments)
    parts = [chasles.simulate(robot, **arguments, steps=7)]
    while not parts[-1].end.over:
        parts.append(chasles.simulate(robot, **arguments, steps=7, resume=parts[-1].end))
    assert len(parts) > 5
    for name in ("t", "q", "qd"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert np.array_equal(joined, getattr(whole, name))
    assert [e.name for part in parts for e in part.events] == [e.name for e in whole.events]
    forces = [p.touching.forces for p in parts if p.touching is not None]
    assert np.array_equal(np.concatenate(forces), whole.touching.forces)


@pytest.mark.parametrize("mu", [0.0, 0.5])
@pytest.mark.parametrize("power", [1, 2])
def test_a_ball_without_weight_is_lifted_off_by_a_force_that_grows_from_nothing(power, mu) -> None:
    """The ball rests without a contact force, so the force tolerance has no scale.

    Its rise is z = t^(n+2)/((n+1)(n+2) m).
    """
    motion = chasles.simulate(
        ball(2.0, 0.3).with_gravity([0, 0, 0]),
        [1.0, 0, 0, 0, 0, 0, 0.3],
        np.zeros(6),
        duration=1.0,
        dt=0.05,
        tau=lambda t, q, qd: np.array([0.0, 0, 0, 0, 0, t**power]),
        contacts=[Pair(Sphere("body", 0.3), Plane(), Rigid(mu))],
    )
    rise = 0.5 / ((power + 1.0) * (power + 2.0))
    assert abs(motion.q[-1, 6] - 0.3 - rise) < 1e-9
    assert [event.name for event in motion.events] == ["gain body", "loss body"]
    assert motion.events[1].t < 1e-4


# Robots ----------------------------------------------------------------------------------------


def test_a_joint_stops_at_its_limit_and_leaves_it() -> None:
    """A weight on a prismatic joint falls to its limit, rests, and is lifted by a growing force."""
    drop, k = 0.5, 30.0
    link, up = body(2.0, (0.1, 0.1, 0.1)), Vector.of(0.0, 0.0, 1.0)
    slide = JointData("slide", "prismatic", None, "body", axis=up, limits=Limits(-drop, 9.0))
    robot = chasles.Robot(Description("weight", (link,), (slide,)))
    motion = chasles.simulate(
        robot, [0.0], [0.0], duration=1.0, dt=0.05, limits=True, tau=lambda t, q, qd: [k * t]
    )
    lands = times(motion, "impact slide lower limit")
    exact = np.roots([k / 12.0, -0.5 * GRAVITY, 0.0, drop])
    assert np.min(np.abs(lands - exact[np.isreal(exact)].real)) < 1e-9
    assert np.allclose(times(motion, "loss"), 2.0 * GRAVITY / k, rtol=1e-6)
    later = 1.0 - 2.0 * GRAVITY / k
    assert abs(motion.q[-1, 0] + drop - k / 12.0 * later**3) < 1e-8
    assert motion.touching is None


def test_a_closed_loop_lands_and_its_force_is_that_of_statics() -> None:
    """The tip of a five-bar linkage falls on the ground and sticks.

    At rest, dV = f . dx for all motions of the linkage.
    """
    robot = chasles.robots.five_bar()
    tip = Point(robot.bodies[2], (0.8, 0.0, 0.0))
    q = robot.assemble([2.2, 0.9])
    place = robot.forward_kinematics(q, frame=tip.frame) @ [*tip.at, 1.0]
    ground = Plane(None, (0.0, 1.0, 0.0), (0.0, place[1] - 0.1, 0.0))
    motion = chasles.simulate(
        robot,
        q,
        np.zeros(robot.nv),
        duration=1.0,
        dt=2e-3,
        every=20,
        tau=lambda t, q, qd: -2.0 * qd,
        contacts=[Pair(tip, ground, Rigid(1.0))],
    )
    assert [e.name for e in motion.events][:2] == [f"impact {tip.frame}", f"gain {tip.frame}"]
    assert np.max(np.abs(motion.qd[-1])) < 1e-9
    assert np.max(np.abs(robot.loop_residual(motion.q))) < 1e-11
    assert abs(motion.touching.gaps[-1, 0]) < 1e-12
    y = motion.q[-1][[robot.position_slice(j).start for j in robot.independent]]

    def both(y: np.ndarray) -> np.ndarray:
        q = robot.assemble(y, guess=motion.q[-1])
        x = robot.forward_kinematics(q, frame=tip.frame) @ [*tip.at, 1.0]
        return np.array([robot.potential_energy(q), *x[:3]])

    slopes = np.array([(both(y + d) - both(y - d)) / 2e-5 for d in 1e-5 * np.eye(2)])
    assert np.allclose(slopes[:, 1:] @ motion.touching.forces[-1, 0], slopes[:, 0], atol=1e-6)


def test_a_collision_at_the_start_keeps_the_given_velocities_too() -> None:
    motion = chasles.simulate(
        ball(2.0, 0.3),
        [1.0, 0, 0, 0, 0, 0, 0.3],
        [0.0, 0.0, 0.0, 0.0, 0.0, -2.0],
        duration=0.1,
        dt=0.05,
        contacts=[Pair(Sphere("body", 0.3), Plane(), Rigid(restitution=0.5))],
    )
    assert np.array_equal(motion.t[:2], [0.0, 0.0])
    assert np.allclose(motion.qd[:2, 5], [-2.0, 1.0], atol=1e-12)
    assert np.array_equal(motion.touching.forces[:2], np.zeros((2, 1, 3)))
