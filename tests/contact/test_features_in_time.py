"""Simulations of rigid bodies whose touching features vary agree with closed forms."""

import math

import numpy as np
import pytest
from contact_bodies import GRAVITY, block, body, free, touch, turned

import chasles
from chasles.contact import Box, ConvexMesh, Cylinder, Pair, Plane, Point, Rigid, Sphere
from chasles.model import LinkData
from chasles.motion.contact.pairs import meeting
from chasles.motion.geometry.kinematics import carrier
from chasles.rollouts import Trajectory

Size = tuple[float, float, float]


def cuboid(name: str, mass: float, size: Size) -> LinkData:
    x, y, z = (mass * s * s / 12.0 for s in size)
    return body(mass, (y + z, x + z, x + y), name)


def roller(mass: float, radius: float, height: float) -> chasles.Robot:
    """Robot with one free uniform cylinder along z."""
    side = mass * (3.0 * radius**2 + height**2) / 12.0
    return free(body(mass, (side, side, 0.5 * mass * radius**2)))


def energy(robot: chasles.Robot, motion: Trajectory) -> np.ndarray:
    return robot.kinetic_energy(motion.q, motion.qd) + robot.potential_energy(motion.q)


def names(motion: Trajectory) -> list[str]:
    return [event.name for event in motion.events]


def slope(angle: float) -> Size:
    return (math.sin(angle), 0.0, math.cos(angle))


# Geometry --------------------------------------------------------------------------------------

TETRAHEDRON = ((0.0, 0.0, 0.0), (0.3, 0.0, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 0.3))


@pytest.mark.parametrize(
    ("over", "under", "size"),
    [
        (Box("b", (0.2, 0.3, 0.1)), Box("a", (0.4, 0.4, 0.2)), 2 * 48 + 144),
        (ConvexMesh("b", TETRAHEDRON), Box("a", (0.4, 0.4, 0.2)), 4 * 6 + 8 * 4 + 6 * 12),
        (Point("b", (0.1, 0.0, 0.0)), ConvexMesh("a", TETRAHEDRON), 4),
        (Cylinder("b", 0.1, (0.0, 0.0, -0.2), (0.0, 0.1, 0.2)), Plane("a", (0.0, 0.1, 1.0)), 18),
    ],
)
def test_rates_of_features_are_those_of_differences(over, under, size) -> None:
    """Compare points, normals and gaps of all pairs of features while both bodies move.

    All pairs are compared, including those that are far apart.
    """
    robot = free(cuboid("a", 2.0, (0.4, 0.4, 0.2)), cuboid("b", 1.0, (0.2, 0.2, 0.2)))
    features, rng, h = meeting(over, under), np.random.default_rng(0), 1e-6
    q, qd = robot.random(rng), rng.normal(size=robot.nv)

    def found(q: np.ndarray) -> tuple:
        carriers = [carrier(robot.mechanism, q, qd, shape.frame) for shape in (over, under)]
        return features.gaps(*carriers)[0], features.contacts(np.arange(size), *carriers)

    (gap, here), (less, back), (more, ahead) = (
        found(robot.integrate(q, s * qd)) for s in (0.0, -h, h)
    )
    assert features.size == size
    assert np.allclose(here.gap, gap, atol=1e-14)
    assert np.allclose((ahead.point - back.point) / (2.0 * h), here.point_rate, atol=1e-7)
    assert np.allclose((ahead.normal - back.normal) / (2.0 * h), here.normal_rate, atol=1e-7)
    speed = np.sum(here.normal * touch(robot.mechanism, q, qd, here).velocity, axis=-1)
    assert np.allclose((more - less) / (2.0 * h), speed, atol=1e-7)


def test_the_nearest_features_are_at_the_distance_that_another_program_finds() -> None:
    """The least gap is consistent with coal's distance in 200 random poses of a mesh and a box."""
    coal = pytest.importorskip("coal")
    rng = np.random.default_rng(1)
    vertices = tuple(map(tuple, 0.2 * rng.normal(size=(12, 3))))
    over, under = ConvexMesh("b", vertices), Box("a", (0.4, 0.4, 0.2))
    robot = free(cuboid("a", 2.0, (0.4, 0.4, 0.2)), cuboid("b", 1.0, (0.2, 0.2, 0.2)))
    points = coal.StdVec_Vec3s()
    points.extend([np.array(v) for v in vertices])
    shapes = coal.Convex.convexHull(points, True, "Qt"), coal.Box(0.4, 0.4, 0.2)
    features, apart = meeting(over, under), 0
    for _ in range(200):
        q = robot.random(rng)
        q[4:7], q[11:14] = 0.0, 0.3 * rng.normal(size=3)
        carriers = [carrier(robot.mechanism, q, np.zeros(12), name) for name in ("b", "a")]
        gap, room = features.gaps(*carriers)
        result = coal.DistanceResult()
        places = [coal.Transform3s(c.R, c.o) for c in carriers]
        coal.distance(shapes[0], places[0], shapes[1], places[1], coal.DistanceRequest(), result)
        least = np.min(gap[room >= 0.0], initial=np.inf)
        if result.min_distance > 1e-6:
            apart += 1
            assert least >= result.min_distance - 1e-6  # two nearest vertices have no contact plane
        else:
            assert least < 1e-9
    assert 50 < apart < 190


# At rest ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shift", "yaw"), [(0.05, 0.0), (0.0, 0.0), (0.15, 0.4)])
def test_a_stack_of_two_boxes_rests_and_bears_its_weights(shift: float, yaw: float) -> None:
    """The upper box (1 kg) is flush with the lower box (2 kg) on the ground, or overhangs it."""
    low, high = Box("a", (0.4, 0.4, 0.2)), Box("b", (0.4, 0.4, 0.2))
    robot = free(cuboid("a", 2.0, low.size), cuboid("b", 1.0, high.size))
    q = np.array([1.0, 0, 0, 0, 0, 0, 0.1, *turned(yaw, (0.0, 0.0, 1.0)), shift, 0.0, 0.3])
    motion = chasles.simulate(
        robot,
        q,
        np.zeros(12),
        duration=0.05,
        dt=0.01,
        contacts=[Pair(low, Plane(), Rigid(0.5)), Pair(high, low, Rigid(0.5))],
    )
    assert motion.touching.forces.shape == (len(motion.t), 9, 3)  # eight corners, and one pair
    assert np.allclose(motion.touching.forces[:, 8], [0.0, 0.0, GRAVITY], atol=1e-9)
    below = np.sum(motion.touching.forces[:, :8], axis=1)
    assert np.allclose(below, [0.0, 0.0, 3.0 * GRAVITY], atol=1e-9)
    assert np.allclose(motion.q, q, atol=1e-12)
    assert names(motion).count("gain b on a") == 1


def test_a_light_box_bears_a_heavy_one() -> None:
    """A box of 1 kg carries a box of a million kilograms, and the forces resolve both weights."""
    shape, heavy = (0.2, 0.2, 0.1), 1e6
    low, high = Box("a", shape), Box("b", shape)
    robot = free(cuboid("a", 1.0, shape), cuboid("b", heavy, shape))
    q = np.array([1.0, 0, 0, 0, 0, 0, 0.05, 1.0, 0, 0, 0, 0, 0, 0.15])
    pairs = [Pair(low, Plane(), Rigid(0.5)), Pair(high, low, Rigid(0.5))]
    motion = chasles.simulate(robot, q, np.zeros(12), duration=0.01, dt=0.01, contacts=pairs)
    forces = motion.touching.forces[-1, :, 2]
    assert np.isclose(forces[8], heavy * GRAVITY, rtol=1e-8)
    assert np.isclose(np.sum(forces[:8]), (heavy + 1.0) * GRAVITY, rtol=1e-8)
    assert np.allclose(motion.q[-1], q, atol=1e-10)


def test_a_box_dropped_flush_on_another_lands_once() -> None:
    """The box falls 0.1 m. Corners meet corners, and edges meet parallel edges."""
    low, high = Box(None, (0.4, 0.4, 0.2), (0.0, 0.0, -0.1)), Box("body", (0.4, 0.4, 0.2))
    motion = chasles.simulate(
        block(1.0, high.size),
        [1.0, 0, 0, 0, 0, 0, 0.2],
        np.zeros(6),
        duration=0.2,
        dt=0.01,
        contacts=[Pair(high, low, Rigid(0.5))],
    )
    assert names(motion) == ["impact body", "gain body"]
    assert abs(motion.events[0].t - math.sqrt(0.2 / GRAVITY)) < 1e-9
    assert np.allclose(motion.q[-1], [1.0, 0, 0, 0, 0, 0, 0.1], atol=1e-12)


def test_a_tetrahedron_comes_to_rest_on_a_face() -> None:
    points = np.array(TETRAHEDRON) - np.mean(TETRAHEDRON, axis=0)
    robot = free(body(1.0, (0.01, 0.01, 0.01)))
    for ground in (Plane(), Box(None, (4.0, 4.0, 0.2), (0.0, 0.0, -0.1))):
        motion = chasles.simulate(
            robot,
            [1.0, 0, 0, 0, 0, 0, 0.1],
            [1.0, 2.0, 0.5, 0.0, 0.0, 0.0],
            duration=0.6,
            dt=5e-3,
            contacts=[Pair(ConvexMesh("body", tuple(map(tuple, points))), ground, Rigid(0.5))],
        )
        assert np.max(np.abs(motion.qd[-1])) < 1e-12
        assert abs(motion.q[-1, 6] - 0.075) < 1e-12  # a quarter of its height
        total = np.sum(motion.touching.forces[-1], axis=0)
        assert np.allclose(total, [0.0, 0.0, GRAVITY], atol=1e-9)
        assert np.max(np.diff(energy(robot, motion))) < 1e-7


# In motion -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.3, 0.8])
def test_a_cube_on_a_sledge_that_is_pushed_slides_or_rides_along(mu: float) -> None:
    """A force on the lower box accelerates both boxes equally, or the upper box by only mu g."""
    low, high, push = Box("a", (1.0, 0.6, 0.2)), Box("b", (0.2, 0.2, 0.2)), 15.0
    robot = free(cuboid("a", 2.0, low.size), cuboid("b", 1.0, high.size))
    q = np.array([1.0, 0, 0, 0, 0, 0, 0.1, *turned(0.3, (0.0, 0.0, 1.0)), 0.0, 0.0, 0.3])
    tau = np.array([0.0, 0.1 * push, 0.0, push, *np.zeros(8)])
    motion = chasles.simulate(
        robot,
        q,
        np.zeros(12),
        duration=0.2,
        dt=0.01,
        tau=tau,
        contacts=[Pair(low, Plane(), Rigid()), Pair(high, low, Rigid(mu))],
    )
    upper = min(mu * GRAVITY, push / 3.0)
    lower = (push - upper) / 2.0
    moved = motion.q[-1, [4, 11]] - q[[4, 11]]
    assert np.allclose(moved, 0.5 * np.array([lower, upper]) * 0.2**2, atol=1e-9)
    assert np.allclose(motion.touching.forces[1:, 8, 2], GRAVITY, rtol=1e-8)


def test_a_box_that_slides_over_an_edge_stays_level_until_friction_tips_it() -> None:
    """The contact passes from corners to crossing edges while the box slides over the table's edge.

    A slow box stops with the deceleration mu g. A fast box tips when the distance of its center
    from the edge is mu times the height of its center.
    """
    table, size, mu = Box(None, (1.0, 1.0, 0.2), (0.0, 0.0, -0.1)), (0.2, 0.2, 0.2), 0.4
    start, yaw, robot = 0.35, 0.3, block(1.0, (0.2, 0.2, 0.2))
    q = np.array([*turned(yaw, (0.0, 0.0, 1.0)), start, 0.0, 0.1])
    for speed, falls in ((0.85, False), (1.5, True)):
        motion = chasles.simulate(
            robot,
            q,
            speed * np.array([0.0, 0.0, 0.0, math.cos(yaw), -math.sin(yaw), 0.0]),
            duration=0.4,
            dt=0.01,
            contacts=[Pair(Box("body", size), table, Rigid(mu))],
        )
        tips, (x, z) = 0.5 - 0.1 * mu, motion.q[:, [4, 6]].T
        assert np.allclose(z[x < tips], 0.1, rtol=0.0, atol=1e-12)
        assert np.all(z[(x > tips + 1e-3) & (x < 0.5)] > 0.1 + 1e-9)
        assert np.min(motion.touching.gaps) > -1e-9
        assert np.all(np.diff(energy(robot, motion)) < 1e-7)  # integration error in free fall
        assert (motion.q[-1, 6] < 0.09) == falls
        if not falls:
            assert abs(motion.q[-1, 4] - start - speed**2 / (2.0 * mu * GRAVITY)) < 1e-9


def test_crossed_bars_touch_by_edges_alone() -> None:
    """A bar lies across another on four edge crossings, and the total force equals its weight."""
    low, high = Box(None, (0.6, 0.1, 0.1), (0.0, 0.0, -0.05)), Box("body", (0.1, 0.6, 0.1))
    robot = block(1.0, high.size)
    q = np.array([*turned(0.2, (0.0, 0.0, 1.0)), 0.0, 0.02, 0.05])
    motion = chasles.simulate(
        robot, q, np.zeros(6), duration=0.05, dt=0.01, contacts=[Pair(high, low, Rigid(0.5))]
    )
    assert np.allclose(motion.touching.forces[:, 0], [0.0, 0.0, GRAVITY], atol=1e-9)
    assert np.allclose(motion.q, q, atol=1e-12)


@pytest.mark.parametrize(
    ("x", "y", "speed"), [(0.0, 0.19, 0.0), (0.1, 0.1, 1.0), (0.19, 0.199, 0.0)]
)
def test_edges_that_cross_near_their_ends_collide_however_long_the_step(x, y, speed) -> None:
    """The edges meet after 2 cm, within a long step.

    At the end of the step, the boxes would overlap by 8 cm, and other features would be nearest.
    """
    low, high, up = Box("a", (0.4, 0.4, 0.4)), Box("b", (0.4, 0.4, 0.4)), 0.2 * math.sqrt(2.0)
    robot = free(cuboid("a", 1.0, low.size), cuboid("b", 1.0, high.size)).with_gravity([0, 0, 0])
    c = math.sqrt(0.5)
    motion = chasles.simulate(
        robot,
        [
            *turned(0.25 * math.pi, (1.0, 0, 0)),
            0,
            0,
            0,
            *turned(0.25 * math.pi),
            x,
            y,
            2 * up + 0.02,
        ],
        [*np.zeros(9), c * (speed + 1.0), 0.0, c * (speed - 1.0)],
        duration=0.1,
        dt=0.1,
        contacts=[Pair(high, low, Rigid(0.0, 0.5))],
    )
    assert names(motion) == ["impact b on a"]
    assert abs(motion.events[0].t - 0.02) < 1e-12
    assert np.min(motion.touching.gaps) > -1e-12
    (k,) = np.flatnonzero(np.diff(motion.t) == 0.0)
    before, after = robot.momentum(motion.q[k : k + 2], motion.qd[k : k + 2])
    assert np.allclose(after, before, atol=1e-12)


def test_two_boxes_that_tumble_never_gain_energy() -> None:
    low, high = Box("a", (0.4, 0.4, 0.2)), Box("b", (0.2, 0.2, 0.2))
    robot = free(cuboid("a", 2.0, low.size), cuboid("b", 1.0, high.size))
    law, rng = Rigid(0.5), np.random.default_rng(0)
    q = robot.random(rng)
    q[4:7], q[11:14] = [0.0, 0.0, 0.3], [0.02, 0.05, 0.7]
    motion = chasles.simulate(
        robot,
        q,
        rng.normal(size=12),
        duration=0.5,
        dt=5e-3,
        contacts=[Pair(low, Plane(), law), Pair(high, Plane(), law), Pair(high, low, law)],
    )
    assert "impact b on a" in names(motion)
    assert np.max(np.diff(energy(robot, motion))) < 1e-6
    assert np.min(motion.touching.gaps) > -1e-6


# Cylinders -------------------------------------------------------------------------------------


def test_a_cylinder_rolls_down_a_slope_by_two_thirds() -> None:
    angle, r = 0.3, 0.1
    q = np.array([*turned(0.5 * math.pi, (1.0, 0.0, 0.0)), *(r * np.array(slope(angle)))])
    shape = Cylinder("body", r, (0.0, 0.0, -0.2), (0.0, 0.0, 0.2))
    motion = chasles.simulate(
        roller(2.0, r, 0.4),
        q,
        np.zeros(6),
        duration=0.3,
        dt=0.01,
        contacts=[Pair(shape, Plane(None, slope(angle)), Rigid(0.5))],
    )
    moved = np.linalg.norm(motion.q[-1, 4:] - q[4:])
    assert abs(moved - GRAVITY * math.sin(angle) / 3.0 * 0.3**2) < 1e-7
    assert names(motion) == ["gain body"]
    assert np.max(np.abs(motion.touching.gaps)) < 1e-12


def test_a_lying_cylinder_that_turns_too_slowly_to_slip_comes_to_rest() -> None:
    """The two contact points would accelerate apart by w^2 L = 3.6e-9 m/s2.

    No contact force can change this.
    """
    r, h = 0.1, 0.1
    motion = chasles.simulate(
        roller(1.0, r, h),
        [*turned(0.5 * math.pi, (1.0, 0.0, 0.0)), 0.0, 0.0, r],
        [0.0, 1.9e-4, 0.0, 0.0, 0.0, 0.0],
        duration=0.02,
        dt=0.01,
        contacts=[
            Pair(Cylinder("body", r, (0, 0, -0.5 * h), (0, 0, 0.5 * h)), Plane(), Rigid(0.5))
        ],
    )
    assert np.max(np.abs(motion.qd[-1])) < 1e-12
    assert np.allclose(motion.touching.forces[-1, 0], [0.0, 0.0, GRAVITY], atol=1e-9)


def test_a_standing_cylinder_tips_above_the_angle_of_its_diagonal() -> None:
    """The limit is arctan(r/(h/2)); one of the fixed points of the rim is downhill."""
    r, h = 0.1, 0.4
    shape = Cylinder("body", r, (0.0, 0.0, -0.5 * h), (0.0, 0.0, 0.5 * h))
    first = math.atan2(*shape.rims[0].x[1::-1])
    for beyond in (-1e-6, 1e-6):
        angle = math.atan2(r, 0.5 * h) + beyond
        c, s = math.cos(0.5 * first), math.sin(0.5 * first)
        w, _, y, _ = turned(angle)
        q = np.array([w * c, -y * s, y * c, -w * s, *(0.5 * h * np.array(slope(angle)))])
        motion = chasles.simulate(
            roller(2.0, r, h),
            q,
            np.zeros(6),
            duration=0.1,
            dt=0.01,
            contacts=[Pair(shape, Plane(None, slope(angle)), Rigid(1.0))],
        )
        turning = np.linalg.norm(motion.qd[-1, :3])
        assert (turning > 1e-7) == (beyond > 0.0)


def test_the_lowest_point_of_a_rim_may_outrun_the_steps() -> None:
    """The closer a rim is to level, the faster its lowest point moves around it.

    Steps are shorter there, and energy is conserved. With full steps, energy changed by 1e-3 J.
    """
    r, h, lean, robot = 0.1, 0.05, 0.05, roller(1.0, 0.1, 0.05)
    low = r * math.sin(lean) + 0.5 * h * math.cos(lean)
    motion = chasles.simulate(
        robot,
        [*turned(lean), 0.0, 0.0, low],
        [1.0, 0.0, 1.0, 0.0, 0.0, 0.0],
        duration=0.06,
        dt=5e-3,
        contacts=[
            Pair(Cylinder("body", r, (0.0, 0.0, -0.5 * h), (0.0, 0.0, 0.5 * h)), Plane(), Rigid())
        ],
    )
    assert names(motion) == ["gain body"]
    assert np.ptp(energy(robot, motion)) < 1e-5
    assert np.max(np.abs(motion.touching.gaps)) < 1e-12


def test_a_cylinder_on_its_rim_keeps_its_energy() -> None:
    """A leaning cylinder rolls on the lowest point of its rim, which moves around the rim."""
    r, h, lean, robot = 0.1, 0.05, 0.3, roller(1.0, 0.1, 0.05)
    low = r * math.sin(lean) + 0.5 * h * math.cos(lean)
    motion = chasles.simulate(
        robot,
        [*turned(lean), 0.0, 0.0, low],
        [3.0, 0.0, 8.0, 0.0, 0.0, 0.0],
        duration=0.1,
        dt=1e-3,
        contacts=[
            Pair(Cylinder("body", r, (0.0, 0.0, -0.5 * h), (0.0, 0.0, 0.5 * h)), Plane(), Rigid())
        ],
    )
    later = [event.t for event in motion.events if event.name.startswith("impact")]
    free_of_impacts = motion.t > (max(later) if later else 0.0)
    assert np.ptp(energy(robot, motion)[free_of_impacts]) < 1e-7
    assert np.max(np.abs(motion.touching.gaps)) < 1e-9


def test_a_ball_rests_on_a_mesh() -> None:
    mesh = ConvexMesh(None, tuple(at for at, _ in Box(None, (1.0, 1.0, 0.2)).balls()))
    motion = chasles.simulate(
        block(1.0, (0.1, 0.1, 0.1)),
        [1.0, 0, 0, 0, 0, 0, 0.3],
        np.zeros(6),
        duration=0.3,
        dt=0.01,
        contacts=[Pair(Sphere("body", 0.1), mesh, Rigid(0.5))],
    )
    assert abs(motion.q[-1, 6] - 0.2) < 1e-12
    assert np.allclose(motion.touching.forces[-1, 0], [0.0, 0.0, GRAVITY], rtol=1e-9)
