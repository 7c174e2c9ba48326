"""Simulations of capsules on boxes and convex meshes agree with closed forms and coal."""

import math

import numpy as np
import pytest
from contact_bodies import GRAVITY, body, free, touch, turned

import chasles
from chasles.contact import Box, Capsule, ConvexMesh, Pair, Plane, Rigid, Stronge
from chasles.model import LinkData
from chasles.motion.contact.pairs import meeting
from chasles.motion.geometry.kinematics import carrier
from chasles.motion.geometry.shapes import mesh
from chasles.rollouts import Trajectory

Place = tuple[float, float, float]

RADIUS, HALF = 0.1, 0.3
TETRAHEDRON = ((0.0, 0.0, 0.0), (0.3, 0.0, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 0.3))


def rod(frame: str, radius: float = RADIUS, half: float = HALF) -> Capsule:
    """Capsule along the x axis."""
    return Capsule(frame, radius, (-half, 0.0, 0.0), (half, 0.0, 0.0))


def bar(name: str, mass: float, *, radius: float = RADIUS, half: float = HALF) -> LinkData:
    """Link with the inertia of a cylinder of about the capsule's size."""
    side = mass * (0.25 * radius**2 + half**2 / 3.0)
    return body(mass, (0.5 * mass * radius**2, side, side), name)


def cuboid(name: str, mass: float, size: Place) -> LinkData:
    x, y, z = (mass * s * s / 12.0 for s in size)
    return body(mass, (y + z, x + z, x + y), name)


def energy(robot: chasles.Robot, motion: Trajectory) -> np.ndarray:
    return robot.kinetic_energy(motion.q, motion.qd) + robot.potential_energy(motion.q)


def names(motion: Trajectory) -> list[str]:
    return [event.name for event in motion.events]


def moved(pair: Pair, q, qd=None, *, duration: float, dt: float = 0.01, **options) -> Trajectory:
    """Simulate a capsule of 1 kg with one contact pair."""
    qd = np.zeros(6) if qd is None else qd
    robot = free(bar("body", 1.0))
    return chasles.simulate(robot, q, qd, duration=duration, dt=dt, contacts=[pair], **options)


TABLE = Box(None, (1.0, 1.0, 0.2), (0.0, 0.0, -0.1))
"""Box whose top is at z = 0."""

MESH = ConvexMesh(None, tuple(at for at, _ in TABLE.balls()))


# Geometry --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("under", "size"),
    [(Box("a", (0.4, 0.4, 0.2)), 2 * 26 + 20), (ConvexMesh("a", TETRAHEDRON), 2 * 14 + 10)],
)
def test_rates_of_features_are_those_of_differences(under, size: int) -> None:
    """Compare points, normals and gaps of all pairs of features while both bodies move.

    All pairs are compared, including those that are far apart.
    """
    over = Capsule("b", 0.05, (0.0, 0.05, -0.2), (0.1, 0.0, 0.3))
    robot = free(cuboid("a", 2.0, (0.4, 0.4, 0.2)), cuboid("b", 1.0, (0.2, 0.2, 0.2)))
    features, rng, h = meeting(over, under), np.random.default_rng(0), 1e-6
    for _ in range(5):
        q, qd = robot.random(rng), rng.normal(size=robot.nv)
        q[4:7], q[11:14] = 0.0, 0.4 * rng.normal(size=3)

        def found(q: np.ndarray, qd: np.ndarray) -> tuple:
            carriers = [carrier(robot.mechanism, q, qd, shape.frame) for shape in (over, under)]
            return features.gaps(*carriers)[0], features.contacts(np.arange(size), *carriers)

        (gap, here), (less, back), (more, ahead) = (
            found(robot.integrate(q, s * qd), qd) for s in (0.0, -h, h)
        )
        assert features.size == size
        assert np.allclose(here.gap, gap, atol=1e-13)
        assert np.allclose((ahead.point - back.point) / (2.0 * h), here.point_rate, atol=1e-6)
        assert np.allclose((ahead.normal - back.normal) / (2.0 * h), here.normal_rate, atol=1e-6)
        speed = np.sum(here.normal * touch(robot.mechanism, q, qd, here).velocity, axis=-1)
        assert np.allclose((more - less) / (2.0 * h), speed, atol=1e-6)


@pytest.mark.parametrize("kind", ["box", "mesh"])
def test_the_gap_is_the_distance_that_another_program_finds(kind: str) -> None:
    """Gaps agree with coal in 300 random poses.

    Each kind of feature is the nearest in some poses.
    """
    coal = pytest.importorskip("coal")
    rng = np.random.default_rng(2)
    vertices = tuple(map(tuple, 0.2 * rng.normal(size=(12, 3))))
    over = Capsule("b", 0.05, (0.0, 0.0, -0.2), (0.0, 0.0, 0.2))
    robot = free(cuboid("a", 2.0, (0.4, 0.4, 0.2)), cuboid("b", 1.0, (0.2, 0.2, 0.2)))
    points = coal.StdVec_Vec3s()
    points.extend([np.array(v) for v in vertices])
    under, solid = {
        "box": (Box("a", (0.4, 0.4, 0.2)), coal.Box(0.4, 0.4, 0.2)),
        "mesh": (ConvexMesh("a", vertices), coal.Convex.convexHull(points, True, "Qt")),
    }[kind]
    features, apart, nearest = meeting(over, under), 0, set()
    whole = mesh(under)
    corners, edges, faces = map(len, (whole.points, whole.edges, whole.faces))
    starts = np.cumsum([2 * faces, 2 * edges, 2 * corners, edges])
    for _ in range(300):
        q = robot.random(rng)
        q[4:7], q[11:14] = 0.0, 0.25 * rng.normal(size=3)
        carriers = [carrier(robot.mechanism, q, np.zeros(12), name) for name in ("b", "a")]
        gap, room = features.gaps(*carriers)
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        request.gjk_tolerance = 1e-12
        places = [coal.Transform3s(c.R, c.o) for c in carriers]
        coal.distance(coal.Capsule(0.05, 0.4), places[0], solid, places[1], request, result)
        gap = np.where(room >= 0.0, gap, np.inf)
        if result.min_distance > -0.04:  # the capsule's axis is outside the polyhedron
            apart += 1
            near = np.flatnonzero(np.isfinite(gap))
            assert np.allclose(gap[near], result.min_distance, rtol=0.0, atol=1e-9)
            nearest |= set(np.searchsorted(starts, near, side="right"))
        else:
            assert np.min(gap) < 0.0
    assert 100 < apart < 300
    assert nearest == set(range(5))


# At rest ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("surface", [TABLE, MESH], ids=["box", "mesh"])
@pytest.mark.parametrize(("x", "y", "yaw"), [(0.0, 0.0, 0.0), (0.35, 0.1, 0.0), (0.3, 0.2, 0.4)])
def test_a_capsule_that_lies_bears_its_weight_where_statics_says(surface, x, y, yaw) -> None:
    """The capsule is carried by both ends, or by one end and the edge that it overhangs."""
    q = np.array([*turned(yaw, (0.0, 0.0, 1.0)), x, y, RADIUS])
    pair = Pair(rod("body"), surface, Rigid(0.5))
    motion = moved(pair, q, duration=0.1)
    assert motion.touching.forces.shape == (len(motion.t), 1, 3)
    assert np.allclose(motion.touching.forces[:, 0], [0.0, 0.0, GRAVITY], atol=1e-9)
    assert np.allclose(motion.q, q, atol=1e-12)
    assert names(motion) == ["gain body"]


@pytest.mark.parametrize(("x", "tips"), [(0.5 - 1e-3, False), (0.5 + 1e-3, True)])
def test_a_capsule_over_an_edge_tips_when_its_middle_is_beyond(x: float, tips: bool) -> None:
    """The capsule tips about the edge with an angular acceleration of m g s/(I + m (r^2 + s^2)).

    The lever arm s is x - 1/2.
    """
    robot, q = free(bar("body", 1.0)), np.array([1.0, 0, 0, 0, x, 0.0, RADIUS])
    motion = chasles.simulate(
        robot, q, np.zeros(6), duration=0.05, dt=0.01, contacts=[Pair(rod("body"), TABLE, Rigid(1))]
    )
    turns = motion.qd[-1, 1]
    if tips:
        moment = robot.mass_matrix(q)[1, 1] + RADIUS**2 + (x - 0.5) ** 2
        begun = GRAVITY * (x - 0.5) / moment * 0.05  # the arm then grows, which adds 1 %
        assert math.isclose(turns, begun, rel_tol=0.02)
        assert np.max(np.abs(np.diff(energy(robot, motion)))) < 1e-8  # the capsule rolls
        assert np.max(np.abs(motion.touching.gaps)) < 1e-9
    else:
        assert abs(turns) < 1e-12


def test_a_capsule_lies_in_the_groove_of_two_edges() -> None:
    """The capsule is parallel to the edges of two boxes that are 0.1 m apart.

    One box is shorter than the capsule. The force of each edge is inclined by an angle whose sine
    is 1/2.
    """
    long, short = (
        Box(None, (length, 0.3, 0.2), (0.0, side * 0.2, -0.1))
        for length, side in ((1.0, 1.0), (0.4, -1.0))
    )
    up = math.sqrt(RADIUS**2 - 0.05**2)
    q = np.array([1.0, 0, 0, 0, 0.02, 0.0, up])
    robot = free(bar("body", 1.0))
    pairs = [Pair(rod("body"), box, Rigid()) for box in (long, short)]
    motion = chasles.simulate(robot, q, np.zeros(6), duration=0.05, dt=0.01, contacts=pairs)
    side = 0.5 * GRAVITY * 0.05 / up
    wanted = [[0.0, -side, 0.5 * GRAVITY], [0.0, side, 0.5 * GRAVITY]]
    assert np.allclose(motion.touching.forces, wanted, atol=1e-9)
    assert np.allclose(motion.q, q, atol=1e-12)


# In motion -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.0, 0.2, 0.8])
def test_a_capsule_along_a_slope_slides_or_stays(mu: float) -> None:
    """The capsule slides with acceleration g (sin - mu cos), or it stays.

    The slope is modeled by inclined gravity. A sliding capsule's end passes the edge.
    """
    angle, start = 0.5, 0.15
    lean = GRAVITY * np.array([math.sin(angle), 0.0, -math.cos(angle)])
    motion = chasles.simulate(
        free(bar("body", 1.0)).with_gravity(lean),
        [1.0, 0, 0, 0, start, 0.0, RADIUS],
        np.zeros(6),
        duration=0.25,
        dt=0.01,
        contacts=[Pair(rod("body"), TABLE, Rigid(mu))],
    )
    x = start + 0.5 * max(lean[0] + mu * lean[2], 0.0) * motion.t**2
    assert (x[-1] + HALF > 0.5) == (mu < 0.5)
    assert np.allclose(motion.q[:, 4], x, atol=1e-9)
    assert np.allclose(motion.q[:, 6], RADIUS, atol=1e-12)
    assert set(names(motion)) == {"gain body"}


@pytest.mark.parametrize("law", [Rigid(0.0, 0.5), Rigid(0.5, impact=Stronge(0.5, 0.5))])
@pytest.mark.parametrize("dt", [0.1, 0.01])
def test_a_capsule_thrown_crosswise_on_an_edge_keeps_momentum(law: Rigid, dt: float) -> None:
    """Two free bodies without gravity keep their momentum.

    The impact is found for both step sizes.
    """
    low, high = Box("a", (0.4, 0.4, 0.4)), rod("b")
    robot = free(cuboid("a", 2.0, low.size), bar("b", 1.0)).with_gravity([0, 0, 0])
    up = 0.2 * math.sqrt(2.0) + RADIUS
    motion = chasles.simulate(
        robot,
        [*turned(0.25 * math.pi), 0, 0, 0, *turned(0.3, (0, 0, 1.0)), 0.05, 0.03, up + 0.05],
        [0.0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.1, -2.0],
        duration=0.1,
        dt=dt,
        contacts=[Pair(high, low, law)],
    )
    assert names(motion) == ["impact b on a"]
    assert abs(motion.events[0].t - 0.025) < 1e-12
    (k,) = np.flatnonzero(np.diff(motion.t) == 0.0)
    before, after = robot.momentum(motion.q[k : k + 2], motion.qd[k : k + 2])
    assert np.allclose(after, before, atol=1e-12)
    assert not np.allclose(motion.qd[k], motion.qd[k + 1])
    assert np.max(np.diff(energy(robot, motion))) < 1e-9
    assert np.min(motion.touching.gaps) > -1e-12


def test_a_capsule_that_spins_on_a_small_box_stays_level() -> None:
    """The capsule spins without friction, and its side passes over all corners of the top."""
    small = Box(None, (0.3, 0.2, 0.2), (0.0, 0.0, -0.1))
    q, qd = np.array([1.0, 0, 0, 0, 0.03, 0.02, RADIUS]), np.array([0.0, 0, 6.0, 0, 0, 0])
    motion = moved(Pair(rod("body"), small, Rigid()), q, qd, duration=0.5)
    assert np.allclose(motion.q[:, 4:], q[4:], rtol=0.0, atol=1e-12)
    assert np.allclose(motion.qd, qd, atol=1e-10)
    assert names(motion) == ["gain body"]
    assert np.allclose(motion.touching.forces[:, 0], [0.0, 0.0, GRAVITY], atol=1e-9)


def test_a_capsule_rolls_over_an_edge_that_it_is_along() -> None:
    """Both ends roll from the face to the edge, and then the capsule rolls about the edge."""
    v, robot = 0.5, free(bar("body", 1.0))
    motion = chasles.simulate(
        robot,
        [*turned(0.5 * math.pi, (0.0, 0.0, 1.0)), 0.45, 0.0, RADIUS],
        [v / RADIUS, 0.0, 0.0, 0.0, -v, 0.0],
        duration=0.2,
        dt=5e-3,
        contacts=[Pair(rod("body"), TABLE, Rigid(0.8))],
    )
    x, z = motion.q[:, [4, 6]].T
    assert np.allclose(z[x < 0.5], RADIUS, rtol=0.0, atol=1e-12)
    assert np.allclose(np.hypot(x - 0.5, z)[x > 0.5], RADIUS, rtol=0.0, atol=1e-9)
    assert x[-1] > 0.54
    assert np.ptp(energy(robot, motion)) < 1e-8


@pytest.mark.parametrize("kind", ["box", "mesh"])
def test_a_capsule_that_tumbles_on_another_body_never_gains_energy(kind: str) -> None:
    points = tuple(map(tuple, 1.5 * (np.array(TETRAHEDRON) - 0.075)))
    low = Box("a", (0.4, 0.3, 0.2)) if kind == "box" else ConvexMesh("a", points)
    high, law, rng = rod("b", 0.06, 0.2), Rigid(0.5), np.random.default_rng(0)
    robot = free(cuboid("a", 2.0, (0.4, 0.3, 0.2)), bar("b", 1.0, radius=0.06, half=0.2))
    q, qd = robot.random(rng), rng.normal(size=12)
    q[4:7], q[11:14] = [0.0, 0.0, 0.3], [0.02, 0.05, 0.75]
    qd[[3, 4, 5, 9, 10, 11]] = 0.0
    pairs = [Pair(low, Plane(), law), Pair(high, Plane(), law), Pair(high, low, law)]
    motion = chasles.simulate(robot, q, qd, duration=0.45, dt=5e-3, contacts=pairs)
    assert "impact b on a" in names(motion)
    assert np.max(np.diff(energy(robot, motion))) < 1e-6
    assert np.min(motion.touching.gaps) > -1e-6


def hull(sides: int) -> ConvexMesh:
    """Convex mesh inside the capsule, with its vertices on the capsule's surface."""
    points = [(side * (HALF + RADIUS), 0.0, 0.0) for side in (-1.0, 1.0)]
    for up in 0.5 * np.pi * np.arange(sides // 4) / (sides // 4):
        for around in 2.0 * np.pi * np.arange(sides) / sides:
            wide, tall = RADIUS * math.cos(up), HALF + RADIUS * math.sin(up)
            y, z = wide * math.cos(around), wide * math.sin(around)
            points += [(-tall, y, z), (tall, y, z)]
    return ConvexMesh("body", tuple(points))


@pytest.mark.parametrize("seed", range(4))
def test_polyhedra_within_a_capsule_touch_just_after_it(seed: int) -> None:
    """Each polyhedron lies inside the capsule by at most 2 r (1 - cos(pi/n)).

    The bodies approach the table at 4 m/s, and rotate.
    """
    rng, robot = np.random.default_rng(seed), free(bar("body", 1.0)).with_gravity([0, 0, 0])
    q = robot.random(rng)
    q[4:] = [rng.uniform(0.3, 0.6), rng.uniform(-0.3, 0.3), 0.6]
    R = robot.forward_kinematics(q, frame="body")[:3, :3]
    qd = np.concatenate([rng.normal(size=3), R.T @ [0.0, 0.0, -4.0]])
    first = []
    for shape in (rod("body"), hull(8), hull(24)):
        pairs = [Pair(shape, TABLE, Rigid())]
        motion = chasles.simulate(robot, q, qd, duration=0.13, dt=0.01, contacts=pairs)
        assert names(motion)[0] == "impact body"
        first.append(motion.events[0].t)
    for sides, t in zip((8, 24), first[1:], strict=True):
        assert 0.0 < t - first[0] < RADIUS * (1.0 - math.cos(math.pi / sides))
