"""Spheres and capsules around links contain them, and inverse kinematics avoids obstacles."""

import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.contact import Box, Capsule, ConvexMesh, Cylinder, Plane, Sphere
from chasles.distances import Avoid, Scene
from chasles.formats import registry
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import matrix_from_vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, JointData, LinkData, ShapeData
from chasles.targets import Position

POSE = Transform.from_pose(matrix_from_vector(Vector.of(0.3, -0.5, 0.7)), Vector.of(0.1, 0.2, 0.3))
INERTIA = RigidInertia.from_center(1.0, Vector.zero(), Symmetric(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))


def shaped(*shapes: ShapeData) -> chasles.Robot:
    """Robot with one free body and collision shapes."""
    joint = JointData("free", "free", None, "a")
    return chasles.Robot(Description("r", (LinkData("a", INERTIA),), (joint,), shapes=shapes))


def inside(shape: ShapeData, count: int) -> np.ndarray:
    """Return points of a shape in the link's frame, many of them on its surface."""
    rng = np.random.default_rng(3)
    u = rng.normal(size=(count, 3))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    if shape.kind == "box":
        found = np.clip(2.0 * u, -1.0, 1.0) * 0.5 * np.array(shape.size)
    elif shape.kind in ("sphere", "ellipsoid"):
        found = u * np.array(shape.size)
    elif shape.kind == "cylinder":
        flat = u / np.maximum(np.hypot(u[:, 0], u[:, 1]), 0.5)[:, None]
        found = np.clip(flat, -1.0, 1.0) * [shape.size[0], shape.size[0], 0.5 * shape.size[1]]
        ring = np.hypot(found[:, 0], found[:, 1])
        found[:, :2] *= np.minimum(1.0, shape.size[0] / np.maximum(ring, 1e-9))[:, None]
    else:
        found = u * shape.size[0]
        found[:, 2] += np.sign(u[:, 2]) * 0.5 * shape.size[1]
    return found @ np.array(shape.pose.R.rows).T + np.array([*shape.pose.r])


def reach(shapes: Any, size: np.ndarray) -> float:
    """Return the largest distance from a box of points on spheres and on the caps of capsules."""
    rng = np.random.default_rng(4)
    u = rng.normal(size=(2000, 3))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    R, r = np.array(POSE.R.rows), np.array([*POSE.r])
    ends = [
        end for s in shapes for end in ([s.center] if isinstance(s, Sphere) else [s.start, s.end])
    ]
    radii = [s.radius for s in shapes for _ in range(1 if isinstance(s, Sphere) else 2)]
    far = 0.0
    for end, radius in zip(ends, radii, strict=True):
        local = (np.array(end) + radius * u - r) @ R
        out = np.maximum(np.abs(local) - 0.5 * size, 0.0)
        far = max(far, float(np.linalg.norm(out, axis=1).max()))
    return far


def outside(points: np.ndarray, shapes: Any) -> float:
    """Return the largest distance of points from the union of spheres and capsules."""
    far = np.full(len(points), np.inf)
    for each in shapes:
        start, end = (each.center,) * 2 if isinstance(each, Sphere) else (each.start, each.end)
        along = np.subtract(end, start)
        share = np.clip((points - start) @ along / max(along @ along, 1e-300), 0.0, 1.0)
        away = np.linalg.norm(points - start - share[:, None] * along, axis=1) - each.radius
        far = np.minimum(far, away)
    return float(far.max())


@pytest.mark.parametrize("kind", ["spheres", "capsules"])
@pytest.mark.parametrize(
    ("what", "size"),
    [
        ("box", (0.4, 0.2, 0.1)),
        ("sphere", (0.2,)),
        ("cylinder", (0.1, 0.5)),
        ("capsule", (0.1, 0.5)),
        ("ellipsoid", (0.1, 0.2, 0.3)),
    ],
)
def test_every_kind_of_shape_is_contained(what: str, size: tuple[float, ...], kind: str) -> None:
    shape = ShapeData("a", what, size, POSE, role="collision")
    robot = shaped(shape)
    points = inside(shape, 4000)
    for excess, count in ((0.2, 16), (0.04, 32)):
        found = robot.enclosing_shapes(kind, excess=excess, count=count)
        assert outside(points, found) <= 1e-9
        if what == "box" and len(found) < count:
            assert reach(found, np.array(size)) <= excess + 1e-9
    assert robot.enclosing_shapes(kind, count=1) is robot.enclosing_shapes(kind, count=1)
    for count in range(1, 6):
        found = robot.enclosing_shapes(kind, excess=0.01, count=count)
        assert outside(points, found) <= 1e-9
        assert len(found) <= count
    if what == "capsule" and kind == "capsules":
        (only,) = found
        assert isinstance(only, Capsule)


def test_what_cannot_be_enclosed_is_refused() -> None:
    robot = shaped(ShapeData("a", "sphere", (0.1,), role="collision"))
    for code, options in {
        "E-DIST-040": {"kind": "boxes"},
        "E-DIST-041": {"excess": 0.0},
        "E-CALL-003": {"count": 0},
    }.items():
        with raises(code):
            robot.enclosing_shapes(**options)
    with raises("E-DIST-042"):
        chasles.robots.puma560().enclosing_shapes()


def panda() -> chasles.Robot:
    found = [robot.path for robot in registry.installed() if robot.name == "panda"]
    if not found:
        pytest.skip("example-robot-data is not installed")
    return chasles.load(found[0])


@pytest.mark.parametrize("kind", ["spheres", "capsules"])
def test_distances_of_enclosing_shapes_are_at_most_those_of_hulls(kind: str) -> None:
    """Meshes of a real arm are at least as far apart as the shapes around them."""
    robot = panda()
    pairs = robot.collision_pairs()[::4]
    q = robot.random(0, size=40)
    links = robot.distance(q, pairs).distance
    found = robot.distance(q, pairs, shapes=robot.enclosing_shapes(kind)).distance
    apart = links > 0.0
    assert apart.mean() > 0.9
    assert (found <= links + 1e-9)[apart].all()
    assert (links - found)[apart].mean() < 0.06


@pytest.mark.parametrize("kind", ["spheres", "capsules"])
def test_enclosing_shapes_of_overlapping_boxes_overlap_with_another_depth(kind: str) -> None:
    """Enclosing shapes are apart only if the boxes are; their depth may be larger or smaller."""
    box = ShapeData("a", "box", (0.6, 0.5, 0.4), role="collision")
    robot, wall = shaped(box), {"wall": Box(None, (0.4, 0.4, 0.4))}
    rng = np.random.default_rng(8)
    q = robot.random(2, size=2000)
    q[:, 4:] = rng.uniform(-0.5, 0.5, (2000, 3))
    boxes = robot.distance(q, obstacles=wall).distance[:, 0]
    small = robot.enclosing_shapes(kind, excess=0.01, count=64)
    found = robot.distance(q, shapes=small, obstacles=wall).distance[:, 0]
    apart = found > 0.0
    assert 0.05 < apart.mean() < 0.95
    assert (boxes >= found - 1e-6)[apart].all()
    assert (found <= 1e-6)[boxes <= 0.0].all()
    if kind == "spheres":
        assert (found > boxes + 1e-3)[boxes < 0.0].any()


# Inverse kinematics -----------------------------------------------------------------------------


def pillars(
    robot: chasles.Robot, q: np.ndarray, other: np.ndarray, count: int
) -> tuple[dict[str, np.ndarray], Scene]:
    """Return spheres that are clear of each posture, and the scene that checks them.

    The first half of the spheres blocks another posture if possible.
    """
    rng = np.random.default_rng(5)
    shapes = robot.enclosing_shapes()
    moving = [name for name in dict.fromkeys(s.frame for s in shapes) if name != "panda_link0"]
    scene = Scene(
        robot, [(n, "o") for n in moving], shapes=shapes, obstacles={"o": Sphere(None, 1.0)}
    )
    found = {f"o{k}": np.zeros((len(q), 4)) for k in range(count)}
    arm = np.stack(
        [robot.forward_kinematics(other, frame=name)[:, :3, 3] for name in moving[2:]], axis=1
    )
    for k, balls in enumerate(found.values()):
        left, attempt = np.arange(len(q)), 0
        while len(left):
            centers = rng.uniform([-0.7, -0.7, 0.0], [0.7, 0.7, 1.0], size=(len(left), 3))
            if k < count // 2 and attempt < 12:
                centers = arm[left, rng.integers(arm.shape[1], size=len(left))]
            attempt += 1
            balls[left] = np.column_stack([centers, rng.uniform(0.05, 0.15, size=len(left))])
            left = left[clear(scene, q[left], balls[left]) < 0.01]
    return found, scene


def clear(scene: Scene, q: np.ndarray, balls: np.ndarray) -> np.ndarray:
    """Return the least distance of each posture from its sphere, by the shapes around links."""
    from chasles.backends.arrays import call

    found: np.ndarray = call(scene.rounds.distances, "distance", (q, balls)).min(axis=-1)
    return found


@pytest.mark.parametrize("scenes", [60, 1000])
def test_postures_avoid_obstacles(scenes: int) -> None:
    """Reachable poses of the Panda among six spheres are solved.

    The solutions are clear of the spheres, by coal on the meshes.
    """
    robot = panda()
    own = Scene(robot, shapes=robot.enclosing_shapes())
    q = robot.random(7, size=3 * scenes)
    q = q[own(q).least > 0.01][:scenes]
    assert len(q) == scenes
    T = robot.forward_kinematics(q, frame="panda_hand")
    plain = robot.inverse_kinematics({"panda_hand": T})
    obstacles, scene = pillars(robot, q, plain.q, 6)
    found = robot.inverse_kinematics({"panda_hand": T}, avoid=obstacles)
    assert found.solved.mean() >= 0.99
    gaps = [[clear(scene, x, balls) for balls in obstacles.values()] for x in (plain.q, found.q)]
    assert (np.min(gaps[0], axis=0) < 0.0).mean() > 0.25  # plain solutions collide
    assert np.min(gaps[1], axis=0)[found.solved].min() >= 0.0
    assert own(found.q).least[found.solved].min() >= 0.0
    error = np.abs(robot.forward_kinematics(found.q, frame="panda_hand") - T)
    assert error[found.solved].max() < 4e-6
    assert robot.within(found.q).all()
    for k in range(0, scenes, max(scenes // 20, 1)):
        world = {n: Sphere(None, b[k, 3], tuple(b[k, :3])) for n, b in obstacles.items()}
        if found.solved[k]:
            assert robot.distance(found.q[k], obstacles=world).least >= 0.0


def planar(links: int) -> tuple[chasles.Robot, list[Any]]:
    """Return an arm in a plane, and spheres along it."""
    robot = chasles.robots.planar(links)
    places = [(x, 0.0, 0.0) for x in (0.25, 0.5, 0.75, 1.0)]
    return robot, [Sphere(name, 0.13, at) for name in robot.bodies[-links:] for at in places]


MOVED = np.eye(4)
MOVED[:3, 3] = 1.2, 0.0, 0.2
SIGNS = list(product((-1.0, 1.0), repeat=3))


@pytest.mark.parametrize(
    "obstacle",
    [
        Sphere(None, 0.3, (1.2, 0.0, 0.2)),
        Capsule(None, 0.2, (1.2, -1.0, 0.2), (1.2, 1.0, 0.2)),
        Box(None, (0.4, 1.0, 0.4), (1.2, 0.0, 0.2)),
        (Box(None, (0.4, 1.0, 0.4)), MOVED),
        Plane(None, (0.0, 0.0, 1.0), (0.0, 0.0, -0.15)),
        Cylinder(None, 0.2, (1.2, -0.3, 0.2), (1.2, 0.3, 0.2)),
        ConvexMesh(None, tuple((1.2 + 0.2 * x, 0.2 * y, 0.2 + 0.2 * z) for x, y, z in SIGNS)),
    ],
    ids=["sphere", "capsule", "box", "posed", "plane", "cylinder", "mesh"],
)
def test_every_kind_of_obstacle_is_avoided(obstacle: Any) -> None:
    """The arm keeps a margin of 5 cm, as coal and closed forms confirm."""
    robot, shapes = planar(4)
    tip = robot.bodies[-1]
    low = np.array([0.1, 0.3, 0.8, 0.5])
    goal = {tip: Position(robot.forward_kinematics(low, frame=tip)[:3, 3])}
    pairs = [(name, "thing") for name in dict.fromkeys(s.frame for s in shapes)]
    avoid = Avoid({"thing": obstacle}, margin=0.05, shapes=shapes, pairs=pairs)
    found = robot.inverse_kinematics(goal, avoid=avoid, guess=low)
    assert found.solved
    options = {"shapes": shapes, "obstacles": {"thing": obstacle}}
    assert robot.distance(found.q, pairs, **options).least >= 0.05 - 1e-9
    assert robot.distance(low, pairs, **options).least < 0.05


def test_what_cannot_be_avoided_is_not_solved() -> None:
    robot, shapes = planar(3)
    tip = robot.bodies[-1]
    point = robot.forward_kinematics([0.3, 0.4, 0.2], frame=tip)[:3, 3]
    ball = {"ball": Sphere(None, 0.5, tuple(point))}
    found = robot.inverse_kinematics(
        {tip: Position(point)}, avoid=Avoid(ball, shapes=shapes), tries=20
    )
    assert not found.solved
    assert found.residual[1] > 0.01


def test_bad_avoidance_is_refused() -> None:
    robot, shapes = planar(3)
    tip = robot.bodies[-1]
    targets = {tip: Position((1.0, 0.0, 1.0))}
    for code, avoid in {
        "E-DIST-051": 3,
        "E-DIST-042": {"a": Plane()},
        "E-DIST-052": Avoid(
            {"b": Box(None, (1, 1, 1))}, shapes=[Capsule(tip, 0.1, (0, 0, 0), (1, 0, 0))]
        ),
        "E-DIST-053": Avoid({"b": np.zeros((3, 3))}, shapes=shapes),
    }.items():
        with raises(code):
            robot.inverse_kinematics(targets, avoid=avoid)
    for bad in ({"margin": -1.0}, {"tolerance": 0.0}, {"margin": np.inf}):
        with raises("E-DIST-050"):
            Avoid(**bad)


def test_links_that_always_overlap_are_left_out_with_a_warning() -> None:
    robot = chasles.robots.planar(3)
    shapes = [Sphere(name, 3.0) for name in robot.bodies]
    with pytest.warns(UserWarning, match="are closer than the margin in all") as caught:
        found = robot.inverse_kinematics(
            {robot.bodies[-1]: Position((1.0, 0.0, 1.0))}, avoid=Avoid(shapes=shapes)
        )
    assert caught[0].filename == __file__
    assert found.solved
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot.inverse_kinematics(
            {robot.bodies[-1]: Position((1.0, 0.0, 1.0))},
            avoid=Avoid(shapes=[Sphere(name, 0.01) for name in robot.bodies]),
        )
