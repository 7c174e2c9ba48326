"""Cylinders and convex meshes: nearest points, standing, rolling and impacts."""

import math

import numpy as np
import pytest
from contact_bodies import GRAVITY, body, free, turned
from scipy.optimize import minimize
from support import raises

from chasles import backends, contact, expr
from chasles.motion.contact import points
from chasles.motion.contact.dynamics import contact_problem
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.steps.scene import Scene

RADIUS, HALF = 0.2, 0.3
UPRIGHT = contact.Cylinder("body", RADIUS, (0.0, 0.0, -HALF), (0.0, 0.0, HALF))
ACROSS = 2.0 * (RADIUS**2 / 4.0 + HALF**2 / 3.0)  # transverse moment of inertia for 2 kg
CAN = free(body(2.0, (ACROSS, ACROSS, RADIUS**2)))


def box_points(size: tuple[float, float, float]) -> np.ndarray:
    corners = np.array(np.meshgrid(*[(-0.5 * s, 0.5 * s) for s in size])).reshape(3, -1).T
    return np.vstack([corners, 0.3 * corners])  # the inner points are not vertices


def test_a_mesh_of_a_box_is_the_box() -> None:
    """Nearest points and rates agree with the closed forms of a box, outside and inside."""
    rng = np.random.default_rng(0)
    size = (0.4, 0.6, 0.3)
    mesh, box = contact.ConvexMesh(None, box_points(size)), contact.Box(None, size)
    assert (len(mesh.points), len(mesh.edges), len(mesh.faces)) == (8, 12, 6)
    c, v = rng.uniform(-0.6, 0.6, size=(500, 3)), rng.normal(size=(500, 3))
    assert 10 < np.count_nonzero(box.nearest(c, v)[0] < 0.0) < 480
    for found, expected in zip(mesh.nearest(c, v), box.nearest(c, v), strict=True):
        assert np.allclose(found, expected, atol=1e-12)


def test_the_nearest_point_of_a_cylinder_is_nearest() -> None:
    """The distance agrees with a search over the solid; inside, it is the shortest way out."""
    rng = np.random.default_rng(1)
    solid = contact.Cylinder(None, 0.3, (0.1, 0.0, -0.2), (0.2, 0.3, 0.4))
    start, along = np.array(solid.start), np.subtract(solid.end, solid.start)
    z = along / np.linalg.norm(along)
    seen = set()
    for c in rng.uniform(-0.8, 0.8, size=(60, 3)):
        distance, normal, _ = solid.nearest(c, np.zeros(3))
        height = (c - start) @ z
        width = np.linalg.norm(c - start - height * z)
        inside = 0.0 < height < np.linalg.norm(along) and width < 0.3
        seen.add(inside)
        if inside:
            least = min(0.3 - width, height, np.linalg.norm(along) - height)
            assert distance == pytest.approx(-least)
            continue

        def square(x: np.ndarray, c: np.ndarray = c) -> float:
            p = x[:3]
            return float((c - p) @ (c - p))

        bounds = [
            {"type": "ineq", "fun": lambda x: (x - start) @ z},
            {"type": "ineq", "fun": lambda x: np.linalg.norm(along) - (x - start) @ z},
            {"type": "ineq", "fun": lambda x: 0.09 - np.sum(np.cross(x - start, z) ** 2)},
        ]
        best = minimize(square, start + 0.5 * along, constraints=bounds, tol=1e-12)
        assert distance == pytest.approx(math.sqrt(best.fun), abs=1e-5)
        assert np.allclose(c - distance * normal, best.x, atol=1e-2)
    assert seen == {True, False}


def placed(angle: float, height: float) -> np.ndarray:
    return np.array([*turned(angle), 0.0, 0.0, height])


@pytest.mark.parametrize("angle", [0.0, 1e-4, 0.4, 1.2, 0.5 * math.pi])
def test_the_lowest_points_of_a_cylinder(angle: float) -> None:
    """The lowest point is HALF cos + RADIUS sin below the center.

    A disc, a point or a line touches.
    """
    low = HALF * math.cos(angle) + RADIUS * math.sin(angle)
    q, qd = placed(angle, low), np.zeros(6)
    found = contact.contact_points(CAN, q, qd, UPRIGHT, contact.Plane())
    assert len(found) == 18
    assert min(float(c.gap) for c in found) == pytest.approx(0.0, abs=1e-12)
    touching = contact.minimal([c for c in found if c.gap < 1e-9])
    assert len(touching) == {0.0: 8, 0.5 * math.pi: 2}.get(angle, 1)
    lowest = min(found, key=lambda c: float(c.gap))
    other = [c.gap for c in found[16:]]
    assert max(other) == pytest.approx(2.0 * HALF * abs(math.cos(angle)), abs=1e-12)
    if angle == 0.4:
        side = RADIUS * math.cos(angle) - HALF * math.sin(angle)
        assert lowest.point == pytest.approx([side, 0.0, 0.0], abs=1e-12)


def test_a_cylinder_stands_until_it_is_pushed_over() -> None:
    """The cylinder stands on a polygon, and tips if the moment exceeds weight times reach."""
    q, qd = placed(0.0, HALF), np.zeros(6)
    found = contact.contact_points(CAN, q, qd, UPRIGHT, contact.Plane())
    touching = contact.minimal([c for c in found if c.gap < 1e-9])
    reach = max(c.point[0] for c in touching)
    assert RADIUS * math.cos(math.pi / 8.0) <= reach <= RADIUS
    for part in (0.99, 1.01):
        tau = np.array([0.0, part * 2.0 * GRAVITY * reach, 0.0, 0.0, 0.0, 0.0])
        motion = contact.solve(contact_problem(CAN, q, qd, tau, touching))
        assert (motion.qdd[1] > 1e-9) == (part > 1.0)
        assert np.sum(motion.forces) == pytest.approx(2.0 * (GRAVITY + motion.qdd[5]))


def test_a_cylinder_rolls_down_a_slope() -> None:
    """The cylinder touches at two moving points, and rolls with 2/3 g sin(angle).

    The motion of the points along the body adds no term m v^2/r.
    """
    pytest.importorskip("clarabel", reason="cones need the extra contact")
    angle, speed = 0.4, 1.5
    normal = np.array([0.0, -math.sin(angle), math.cos(angle)])
    down = np.array([0.0, -math.cos(angle), -math.sin(angle)])
    lying = contact.Cylinder("body", RADIUS, (-HALF, 0.0, 0.0), (HALF, 0.0, 0.0))
    robot = free(body(2.0, (RADIUS**2, ACROSS, ACROSS)))
    q = np.array([1.0, 0, 0, 0, *(RADIUS * normal)])
    qd = np.array([speed / RADIUS, 0.0, 0.0, *(speed * down)])
    plane = contact.Plane(None, tuple(normal))
    found = contact.contact_points(robot, q, qd, lying, plane, friction=0.5)
    touching = [c for c in found if c.gap < 1e-9]
    assert len(touching) == 2
    for c in touching:
        assert c.point_rate == pytest.approx(speed * down)
    motion = contact.contact_dynamics(robot, q, qd, np.zeros(6), found)
    rolling = 2.0 / 3.0 * GRAVITY * math.sin(angle)
    world = motion.qdd[3:] + np.cross(qd[:3], qd[3:])
    assert world == pytest.approx(rolling * down, abs=1e-9)
    assert motion.qdd[0] == pytest.approx(rolling / RADIUS)


def prism(sides: int, radius: float) -> contact.ConvexMesh:
    """Wheel about y with a polygonal cross-section and a vertex straight below its center."""
    angles = 2.0 * np.pi / sides * np.arange(sides)
    ring = radius * np.stack([np.sin(angles), np.zeros(sides), -np.cos(angles)], axis=-1)
    side = np.array([0.0, 0.1, 0.0])
    return contact.ConvexMesh("body", np.vstack([ring - side, ring + side]))


@pytest.mark.parametrize("sides", [6, 12, 48])
def test_polyhedra_roll_with_spurious_impacts(sides: int) -> None:
    """A polygonal wheel loses speed at each corner (rimless wheel, McGeer 1990).

    A round wheel keeps touching without impacts.
    """
    pytest.importorskip("clarabel", reason="cones need the extra contact")
    mass, radius, spin = 2.0, 0.3, 2.0
    moment = 0.4 * mass * radius**2
    robot = free(body(mass, (moment, moment, moment)))
    step = 2.0 * np.pi / sides
    height = radius * math.cos(0.5 * step)
    q = np.array([*turned(0.5 * step), 0.0, 0.0, height])  # on a side; rotates about a corner
    pose = robot.forward_kinematics(q, frame="body")[:3, :3]
    arm = np.array([radius * math.sin(0.5 * step), 0.0, height])
    qd = np.array([0.0, spin, 0.0, *(pose.T @ np.cross([0.0, spin, 0.0], arm))])
    hits = contact.contact_points(robot, q, qd, prism(sides, radius), contact.Plane())
    touching = [c for c in hits if c.gap < 1e-9]
    assert len(touching) == 4
    after = contact.impact(robot, q, qd, hits, contact.Moreau(0.0, 20.0)).qd
    kept = (moment + mass * radius**2 * math.cos(step)) / (moment + mass * radius**2)
    assert after[1] == pytest.approx(kept * spin, rel=1e-9)
    wheel = contact.Cylinder("body", radius, (0.0, -0.1, 0.0), (0.0, 0.1, 0.0))
    q[6] = radius
    rolling = np.array([0.0, spin, 0.0, *(pose.T @ [radius * spin, 0.0, 0.0])])
    round_hits = contact.contact_points(robot, q, rolling, wheel, contact.Plane())
    smooth = contact.impact(robot, q, rolling, round_hits, contact.Newton(0.0))
    assert np.allclose(smooth.qd, rolling, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: contact.Cylinder(None, 0.1, (0, 0, 0), (0, 0, 1), rim=2), "E-CONTACT-076"),
        (lambda: contact.ConvexMesh(None, np.zeros((4, 2))), "E-CONTACT-077"),
        (lambda: contact.ConvexMesh(None, np.full((4, 3), np.nan)), "E-CONTACT-077"),
        (lambda: contact.ConvexMesh(None, np.eye(3)), "E-CONTACT-078"),
        (
            lambda: contact.ConvexMesh(None, [(x, y, 0.0) for x in (0, 1) for y in (0, 1)]),
            "E-CONTACT-078",
        ),
    ],
)
def test_bad_shapes_are_refused(make, words: str) -> None:
    with raises(words):
        make()


def test_points_of_a_motion_compare_only_the_corners_that_are_lowest(monkeypatch) -> None:
    """The points are bitwise identical to those from all corners, with a much smaller program."""
    rng = np.random.default_rng(5)
    around = rng.normal(size=(150, 3))
    around /= np.linalg.norm(around, axis=1, keepdims=True)
    pair = contact.Pair(contact.ConvexMesh("body", around), contact.Plane(), contact.Rigid())
    scene = Scene(CAN.model, (pair,))
    assert scene.slots == 4
    assert "usual" not in vars(scene)
    turns = np.zeros((9, 6))
    turns[:, :2], turns[:, 5] = 0.1 * rng.normal(size=(9, 2)), 1.0
    q = CAN.integrate(CAN.neutral(), turns)
    q[0] = np.nan
    sizes: list[int] = []
    compiled = backends.compile

    def counted(program: expr.Program, backend: str):
        sizes.append(len(program.code))
        return compiled(program, backend)

    monkeypatch.setattr(points.backends, "compile", counted)
    found = points.contact_points(CAN.model, [pair], q, count=4, stepped=True)
    given = symbols(expr.Arena(expr.RULES), "q", (CAN.nq,))
    whole = [spot.point for _, spot in scene.spots(given)[0]]
    assert np.array_equal(found, points._evaluated(whole, q), equal_nan=True)
    reduced, every = sizes[-2:]
    assert 3 * reduced < every
