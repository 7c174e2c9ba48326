"""Distances agree with closed forms, Pinocchio with coal, MuJoCo and finite differences."""

import os
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.contact import Box, Capsule, ConvexMesh, Cylinder, Plane, Sphere
from chasles.distances import Scene, processes
from chasles.formats import registry
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import Description, JointData, LinkData, ShapeData

SHARE = "cmeel.prefix/share"


def body() -> chasles.Robot:
    """Robot with one free body."""
    inertia = RigidInertia.from_center(1.0, Vector.zero(), Symmetric(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    joint = JointData("free", "free", None, "a")
    return chasles.Robot(Description("r", (LinkData("a", inertia),), (joint,)))


FREE = body()

# Closed forms -----------------------------------------------------------------------------------


def to_segment(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Return the distance of a point from a segment."""
    share = np.clip((c - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
    return float(np.linalg.norm(c - a - share * (b - a)))


def of_segments(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> float:
    """Return the distance of two segments.

    It is the least distance of an end from the other segment, or the distance of the lines if their
    nearest points lie on both segments.
    """
    ends = [to_segment(x, c, d) for x in (a, b)] + [to_segment(x, a, b) for x in (c, d)]
    s, t = np.linalg.lstsq(np.stack([b - a, c - d], axis=1), c - a, rcond=None)[0]
    inside = 0.0 <= s <= 1.0 and 0.0 <= t <= 1.0
    return min(
        [*ends, float(np.linalg.norm(a + s * (b - a) - c - t * (d - c)))] if inside else ends
    )


def to_box(c: np.ndarray, half: np.ndarray) -> float:
    """Return the distance of a point from a box about the origin, negative inside."""
    out = np.abs(c) - half
    return float(np.linalg.norm(np.maximum(out, 0.0)) + min(out.max(), 0.0))


def to_cylinder(c: np.ndarray, radius: float, half: float) -> float:
    """Return the distance of an outside point from a cylinder along z."""
    out = np.array([np.hypot(c[0], c[1]) - radius, abs(c[2]) - half])
    return float(np.linalg.norm(np.maximum(out, 0.0)))


SIZE = np.array([0.5, 0.3, 0.2])
CORNERS = np.array(list(product((-0.25, 0.25), (-0.15, 0.15), (-0.1, 0.1))))
START, END = np.array([0.1, -0.2, 0.05]), np.array([-0.1, 0.3, 0.2])
CASES: dict[str, tuple[Any, Any, Callable[[np.ndarray, np.ndarray], float]]] = {
    "sphere and sphere": (
        Sphere("a", 0.2, (0.1, 0.0, 0.0)),
        Sphere(None, 0.1),
        lambda R, p: np.linalg.norm(R @ [0.1, 0, 0] + p) - 0.3,
    ),
    "sphere and capsule": (
        Sphere("a", 0.2),
        Capsule(None, 0.1, tuple(START), tuple(END)),
        lambda R, p: to_segment(p, START, END) - 0.3,
    ),
    "capsule and sphere": (
        Capsule("a", 0.1, tuple(START), tuple(END)),
        Sphere(None, 0.2),
        lambda R, p: to_segment(np.zeros(3), R @ START + p, R @ END + p) - 0.3,
    ),
    "capsule and capsule": (
        Capsule("a", 0.1, tuple(START), tuple(END)),
        Capsule(None, 0.2, (0.0, 0.0, -0.3), (0.1, 0.0, 0.4)),
        lambda R, p: (
            of_segments(R @ START + p, R @ END + p, np.array([0, 0, -0.3]), np.array([0.1, 0, 0.4]))
            - 0.3
        ),
    ),
    "sphere and box": (
        Sphere("a", 0.1),
        Box(None, tuple(SIZE)),
        lambda R, p: to_box(p, SIZE / 2) - 0.1,
    ),
    "sphere and plane": (
        Sphere("a", 0.1),
        Plane(None, (0.0, 3.0, 4.0), (0.0, 0.0, -0.5)),
        lambda R, p: p @ [0.0, 0.6, 0.8] + 0.4 - 0.1,
    ),
    "capsule and plane": (
        Capsule("a", 0.1, tuple(START), tuple(END)),
        Plane(),
        lambda R, p: min((R @ START + p)[2], (R @ END + p)[2]) - 0.1,
    ),
    "box and sphere": (
        Box("a", tuple(SIZE)),
        Sphere(None, 0.05),
        lambda R, p: to_box(-R.T @ p, SIZE / 2) - 0.05,
    ),
    "box and plane": (
        Box("a", tuple(SIZE)),
        Plane(),
        lambda R, p: (CORNERS @ R.T + p)[:, 2].min(),
    ),
    "mesh and plane": (
        ConvexMesh("a", tuple(map(tuple, CORNERS))),
        Plane(),
        lambda R, p: (CORNERS @ R.T + p)[:, 2].min(),
    ),
    "cylinder and plane": (
        Cylinder("a", 0.2, (0.0, 0.0, -0.3), (0.0, 0.0, 0.3)),
        Plane(),
        lambda R, p: p[2] - 0.3 * abs(R[2, 2]) - 0.2 * np.hypot(R[2, 0], R[2, 1]),
    ),
    "ellipsoid and plane": (
        ShapeData("a", "ellipsoid", (0.1, 0.2, 0.3)),
        Plane(),
        lambda R, p: p[2] - np.linalg.norm(R[2] * [0.1, 0.2, 0.3]),
    ),
}


def postures(count: int, far: float) -> np.ndarray:
    rng = np.random.default_rng(1)
    q = FREE.random(rng, size=count)
    q[:, 4:] = far * rng.normal(size=(count, 3))
    return q


@pytest.mark.parametrize("name", CASES)
def test_closed_forms(name: str) -> None:
    """Errors are below 1e-9, or for penetrations below coal's tolerance, 1e-6."""
    shape, obstacle, closed = CASES[name]
    q = postures(60, 0.5)
    found = FREE.distance(q, shapes=[shape], obstacles={"b": obstacle})
    assert found.pairs == (("a", "b"),)
    T = FREE.forward_kinematics(q, frame="a")
    wanted = np.array([closed(t[:3, :3], t[:3, 3]) for t in T])
    assert (wanted > 0.1).sum() > 10
    error = np.abs(found.distance[:, 0] - wanted)
    assert error[wanted > 0.0].max() < 1e-9
    assert error.max(where=wanted <= 0.0, initial=0.0) < 1e-6
    way = found.points[:, 0, 1] - found.points[:, 0, 0]
    np.testing.assert_allclose(way, found.distance * found.normals[:, 0], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found.normals, axis=-1), 1.0, rtol=1e-9)


@pytest.mark.parametrize("name", ["sphere and sphere", "capsule and plane", "box and sphere"])
def test_pairs_may_be_named_either_way(name: str) -> None:
    shape, obstacle, _ = CASES[name]
    options = {"shapes": [shape], "obstacles": {"b": obstacle}}
    q = postures(5, 0.5)
    there = FREE.distance(q, [("a", "b")], **options)
    back = FREE.distance(q, [("b", "a")], **options)
    np.testing.assert_array_equal(there.distance, back.distance)
    np.testing.assert_array_equal(there.points, back.points[:, :, ::-1])
    np.testing.assert_allclose(there.gradient, back.gradient, atol=1e-15)


def test_a_posed_box_and_a_cylinder_through_coal() -> None:
    """Parallel boxes are nearest at their corners; a sphere is near a rotated cylinder."""
    T = np.eye(4)
    T[:3, :3] = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    T[:3, 3] = 1.0, 2.0, 3.0
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    found = FREE.distance(
        q, shapes=[Box("a", (0.2, 0.2, 0.2))], obstacles={"b": (Box(None, (0.4, 0.6, 0.8)), T)}
    )
    gaps = np.array([1.0 - 0.3 - 0.1, 2.0 - 0.2 - 0.1, 3.0 - 0.4 - 0.1])
    assert found.distance[0] == pytest.approx(np.linalg.norm(gaps), abs=1e-9)
    rod = Cylinder(None, 0.2, (0.0, 0.0, -0.5), (0.0, 0.0, 0.5))
    q = postures(40, 0.8)
    found = FREE.distance(q, shapes=[Sphere("a", 0.1)], obstacles={"b": (rod, T)})
    wanted = [to_cylinder(T[:3, :3].T @ (x[4:] - T[:3, 3]), 0.2, 0.5) - 0.1 for x in q]
    apart = np.array(wanted) > 0.0
    np.testing.assert_allclose(found.distance[apart, 0], np.array(wanted)[apart], atol=1e-9)


def test_parallel_crossing_and_degenerate_segments() -> None:
    """The distance is unique even if the nearest points of two segments are not."""
    rod = Capsule(None, 0.1, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    for start, end, wanted in (
        ((0.2, 0.5, 0.0), (0.7, 0.5, 0.0), 0.3),  # parallel, side by side
        ((2.0, 0.0, 0.0), (3.0, 0.0, 0.0), 0.8),  # on one line
        ((0.2, 1e-9, 0.5), (0.7, 0.0, 0.5), 0.3),  # nearly parallel
        ((0.5, -1.0, 0.0), (0.5, 1.0, 0.0), -0.2),  # crossing
        ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), -0.2),  # identical
        ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0), -0.2),
    ):
        found = FREE.distance(q, shapes=[Capsule("a", 0.1, start, end)], obstacles={"b": rod})
        assert found.distance[0] == pytest.approx(wanted, abs=1e-12)
        assert np.isfinite(found.gradient).all()


def test_the_nearest_shape_of_several_counts() -> None:
    shapes = [Sphere("a", 0.1, (0.0, 0.0, 1.0)), Box("a", (0.2, 0.2, 0.2)), Sphere("a", 0.2)]
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5])
    walls = {"floor": Plane(), "ceiling": Plane(None, (0.0, 0.0, -1.0), (0.0, 0.0, 1.7))}
    found = FREE.distance(q, shapes=shapes, obstacles=walls)
    np.testing.assert_allclose(found.distance, [0.3, 0.1], atol=1e-12)
    assert found.nearest == ("a", "ceiling")
    assert found.least == pytest.approx(0.1)
    np.testing.assert_allclose(found.points[0], [[0, 0, 0.3], [0, 0, 0]], atol=1e-12)
    assert "a, ceiling" in repr(found)


# Gradients --------------------------------------------------------------------------------------


def differences(function: Callable[[np.ndarray], np.ndarray], robot: Any, q: np.ndarray) -> Any:
    """Return central differences on the configuration space."""
    h = 1e-6
    return np.stack(
        [
            (function(robot.integrate(q, h * e)) - function(robot.integrate(q, -h * e))) / (2 * h)
            for e in np.eye(robot.nv)
        ],
        axis=-1,
    )


@pytest.mark.parametrize("seed", [2, 5])
def test_gradients_on_every_joint_type(seed: int) -> None:
    """Gradients of round shapes on random trees agree with finite differences."""
    robot = chasles.robots.random_tree(7, seed, floating=True)
    rng = np.random.default_rng(seed)
    shapes: list[Any] = []
    for k, link in enumerate(robot.bodies):
        a, b = (tuple(0.2 * rng.normal(size=3)) for _ in range(2))
        shapes.append(Capsule(link, 0.02, a, b) if k % 2 else Sphere(link, 0.03, b))
    world = {"floor": Plane(None, (0.0, 0.6, 0.8), (0.0, 0.0, -3.0)), "ball": Sphere(None, 0.3)}
    q = robot.random(rng)
    scene = Scene(robot, shapes=shapes, obstacles=world)
    assert not scene.uses_coal
    found = scene(q)
    numeric = differences(lambda x: scene(x).distance, robot, q)
    assert found.gradient.shape == (len(found.pairs), robot.nv)
    np.testing.assert_allclose(found.gradient, numeric, atol=1e-6)


@pytest.mark.parametrize("package", ["torch", "jax"])
def test_derivatives_of_tensors(package: str) -> None:
    """Derivatives by the entries of q agree with differences, also for unit quaternions."""
    pytest.importorskip(package)
    robot = chasles.robots.random_tree(3, 11, floating=True)
    shapes = [Capsule(link, 0.02, (0.0, 0.1, 0.0), (0.1, 0.0, 0.2)) for link in robot.bodies]
    scene = Scene(robot, shapes=shapes, obstacles={"ball": Sphere(None, 0.1, (2.0, 1.0, 1.0))})
    q = robot.random(4, size=2)
    weights = np.arange(1.0, 1.0 + 2 * len(scene.pairs)).reshape(2, -1)
    if package == "torch":
        import torch

        given = torch.tensor(q, requires_grad=True)
        found = scene(given)
        (found.distance * torch.tensor(weights)).sum().backward()
        slopes = given.grad.numpy()
        values, least = found.distance.detach().numpy(), found.least.detach().numpy()
    else:
        import jax

        with jax.enable_x64(True):
            given = jax.numpy.asarray(q)
            found = scene(given)
            total = jax.jit(jax.grad(lambda q: (scene(q).distance * weights).sum()))
            slopes, values, least = map(np.asarray, (total(given), found.distance, found.least))
    np.testing.assert_array_equal(values, scene(q).distance)
    np.testing.assert_array_equal(least, values.min(axis=-1))
    np.testing.assert_array_equal(found.points, scene(q).points)
    for k in range(2):
        rates = differences(lambda x, k=k: scene(x).distance @ weights[k], robot, q[k])
        ways = differences(lambda x: x, robot, q[k])  # changes of the entries of q
        np.testing.assert_allclose(slopes[k] @ ways, rates, atol=1e-6)


# Batches ----------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork")
def test_batches_of_coal_in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are bitwise identical in one process, in three, and if processes fail."""
    shapes, world = [Box("a", tuple(SIZE)), Sphere("a", 0.2)], {"b": Box(None, (0.4, 0.6, 0.8))}
    scene = Scene(FREE, shapes=shapes, obstacles=world)
    assert scene.uses_coal
    q = postures(100, 0.8)
    alone, several = scene(q), scene(q, threads=3)
    for threads in (0, -1, 2.5):
        with raises("E-CALL-003"):
            scene(q, threads=threads)  # type: ignore[arg-type]
    forks: list[int] = []
    monkeypatch.setattr(processes, "_forked", lambda *_: forks.append(_ended(1)) or forks[-1])
    failed = scene(q, threads=3)
    assert len(forks) == 2
    for found in (several, failed):
        np.testing.assert_array_equal(found.distance, alone.distance)
        np.testing.assert_array_equal(found.points, alone.points)


def _ended(status: int) -> int:
    """Return the ID of a process that ends at once."""
    return os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", f"exit({status})"])


@pytest.mark.parametrize("shape", [Sphere, Capsule])
def test_batches_give_the_same_bits(shape: Any) -> None:
    robot = chasles.robots.puma560()
    rest = [(0.0, 0.05, 0.0)] if shape is Capsule else []
    shapes = [shape(name, 0.05, (0.02, 0.0, 0.01), *rest) for name in robot.bodies]
    scene = Scene(robot, shapes=shapes)
    assert not scene.uses_coal
    q = robot.random(0, size=(3, 50))
    whole = scene(q, threads=2)
    assert whole.distance.shape == (3, 50, len(scene.pairs))
    np.testing.assert_array_equal(whole.distance[1, 7], scene(q[1, 7]).distance)
    np.testing.assert_array_equal(whole.points[1, 7], scene(q[1, 7]).points)
    assert whole.nearest.shape == whole.least.shape == (3, 50)
    one = scene(q[0, 0])
    assert one.pairs[int(whole.nearest[0, 0])] == one.nearest
    assert scene(q[:0]).gradient.shape == (0, 50, len(scene.pairs), robot.nv)


# Real files -------------------------------------------------------------------------------------


def installed(name: str) -> Path:
    found = [robot.path for robot in registry.installed() if robot.name == name]
    if not found:
        pytest.skip("example-robot-data is not installed")
    return found[0]


def by_pinocchio(path: Path, robot: chasles.Robot, q: np.ndarray, pairs: Any, hull: bool) -> Any:
    """Return the least distances of pairs of links by coal, from Pinocchio's geometry of a file."""
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(path))
    share = next(parent for parent in path.parents if parent.name == "share")
    folders = [str(share), str(share / "example-robot-data" / "robots")]
    geometry = pin.buildGeomFromUrdf(
        model, str(path), pin.GeometryType.COLLISION, package_dirs=folders
    )
    owned: dict[str, list[int]] = {}
    for k, each in enumerate(geometry.geometryObjects):
        owned.setdefault(model.frames[each.parentFrame].name, []).append(k)
        if hull and hasattr(each.geometry, "buildConvexHull"):
            each.geometry.buildConvexHull(True, "Qt")
            each.geometry = each.geometry.convex
    places = []
    for p, (a, b) in enumerate(pairs):
        for i, j in product(owned[a], owned[b]):
            geometry.addCollisionPair(pin.CollisionPair(i, j))
            places.append(p)
    data, theirs = model.createData(), geometry.createData()
    for request in theirs.distanceRequests:
        request.gjk_tolerance = 1e-9
    found = np.full((len(q), len(pairs)), np.inf)
    for row, x in enumerate(q):
        state = pin.neutral(model)
        for name in robot.joints:
            joint, value = model.joints[model.getJointId(name)], x[robot.position_slice(name)]
            turns = joint.nq == 2
            state[joint.idx_q : joint.idx_q + joint.nq] = (
                [np.cos(value[0]), np.sin(value[0])] if turns else value
            )
        pin.computeDistances(model, data, geometry, theirs, state)
        for k, p in enumerate(places):
            found[row, p] = min(found[row, p], theirs.distanceResults[k].min_distance)
    return found


@pytest.mark.parametrize(
    ("name", "meshes"),
    [
        *(("a1", "hull"), ("ur5_robot", "triangles"), ("panda", "hull"), ("panda", "triangles")),
        *(("kinova", "hull"), ("solo12", "triangles"), ("talos_reduced", "hull")),
    ],
)
def test_real_files_have_pinocchios_distances(name: str, meshes: str) -> None:
    """Distances of separate links agree to 1e-6, and both libraries find the same overlaps."""
    path = installed(name)
    robot = chasles.load(path, mimic=False, snap=False)
    pairs = robot.collision_pairs()
    q = robot.random(0, size=3)
    found = robot.distance(q, pairs, meshes=meshes)
    wanted = by_pinocchio(path, robot, q, pairs, meshes == "hull")
    apart = wanted > 1e-6
    np.testing.assert_allclose(found.distance[apart], wanted[apart], atol=1e-6, rtol=0.0)
    assert np.array_equal(found.distance > 1e-6, apart)
    assert apart.sum() > 10


def test_gradients_of_hulls_of_a_real_arm() -> None:
    robot = chasles.load(installed("panda"))
    pairs = [("panda_link0", "panda_hand"), ("panda_link1", "panda_link6")]
    pairs += [("panda_hand", "post")]
    post = {"post": Cylinder(None, 0.05, (0.4, 0.4, 0.0), (0.4, 0.4, 1.0))}
    q = robot.random(seed=3)
    found = robot.distance(q, pairs, obstacles=post)
    numeric = differences(lambda x: robot.distance(x, pairs, obstacles=post).distance, robot, q)
    assert (found.distance > 0.01).all()
    np.testing.assert_allclose(found.gradient, numeric, atol=1e-5)


# Bad input --------------------------------------------------------------------------------------


def test_bad_input_is_refused(tmp_path: Path) -> None:
    ball, q = [Sphere("a", 0.1)], FREE.neutral()
    floor: dict[str, Any] = {"floor": Plane()}
    for code, options in {
        "E-DIST-035": {},
        "E-DIST-031": {"shapes": ball, "meshes": "fine"},
        "E-DIST-005": {"shapes": ball, "obstacles": {"b": 3}},
        "E-DIST-006": {"shapes": Sphere("a", 0.1)},
        "E-DIST-007": {"shapes": [Sphere(None, 0.1)]},
        "E-MODEL-034": {"shapes": [Sphere("b", 0.1)]},
        "E-DIST-008": {"shapes": ball, "obstacles": [Plane()]},
        "E-DIST-009": {"shapes": ball, "obstacles": {3: Plane()}},
        "E-DIST-010": {"shapes": ball, "obstacles": {"b": Sphere("a", 0.1)}},
        "E-DIST-011": {"shapes": ball, "obstacles": {"b": (Plane(), np.zeros((4, 4)))}},
        "E-DIST-032": {"shapes": ball, "obstacles": {"a": Plane()}},
        "E-DIST-021": {"shapes": ball, "pairs": "a"},
        "E-DIST-022": {"shapes": ball, "pairs": [("a",)]},
        "E-DIST-023": {"shapes": ball, "obstacles": floor, "pairs": [("a", "flor")]},
        "E-DIST-024": {"shapes": ball, "pairs": [("a", "a")]},
        "E-DIST-033": {
            "shapes": ball,
            "obstacles": floor | {"b": Plane()},
            "pairs": [("b", "floor")],
        },
    }.items():
        with raises(code):
            FREE.distance(q, **options)
    with raises("E-DIST-034"):
        FREE.distance(np.full(7, np.nan), shapes=ball, obstacles=floor)
    with raises("E-CALL-056 distance: q must"):
        FREE.distance(q[:3], shapes=ball, obstacles=floor)
    empty = FREE.distance(q, shapes=ball)
    assert empty.least == np.inf
    with raises("E-DIST-030"):
        _ = empty.nearest


ARM = """<robot name="arm">
  <link name="base"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
  <link name="upper"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
  <link name="hand"><collision><geometry>{hand}</geometry></collision></link>
  <joint name="j1" type="continuous"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 1"/><axis xyz="1 0 0"/></joint>
  <joint name="j2" type="continuous"><parent link="upper"/><child link="hand"/>
    <origin xyz="0 0 1"/><axis xyz="1 0 0"/></joint>
</robot>"""


def test_missing_and_broken_meshes_have_clear_errors(tmp_path: Path) -> None:
    """Errors name the mesh and a remedy, and pairs of other links still work."""
    (tmp_path / "arm.urdf").write_text(ARM.format(hand='<mesh filename="package://p/hand.stl"/>'))
    robot = chasles.load(tmp_path / "arm.urdf")
    with raises("E-DIST-001 ROS_PACKAGE_PATH"):
        robot.distance([0.0, 0.0])
    found = robot.distance([0.0, 0.0], [("base", "upper")])
    assert found.distance[0] == pytest.approx(0.9, abs=1e-9)
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "hand.stl").write_bytes(b"no mesh")
    with raises("E-DIST-003|E-DIST-004"):
        robot.distance([0.0, 0.0])


# Pairs ------------------------------------------------------------------------------------------


def test_pairs_are_those_of_links_that_no_joint_connects(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text(ARM.format(hand='<sphere radius="0.1"/>'))
    robot = chasles.load(tmp_path / "arm.urdf")
    assert robot.collision_pairs() == (("base", "hand"),)
    (tmp_path / "arm.srdf").write_text(
        '<robot name="arm"><disable_collisions link1="hand" link2="base" reason="Never"/></robot>'
    )
    assert robot.collision_pairs() == ()
    assert robot.collision_pairs(srdf=False) == (("base", "hand"),)
    assert robot.distance([0.0, 0.0]).pairs == ()
    other = tmp_path / "other.srdf"
    other.write_text('<robot name="arm"/>')
    assert robot.collision_pairs(srdf=other) == (("base", "hand"),)
    for text, code in (
        ("<group/>", "E-SRDF-001"),
        ('<robot><disable_collisions link1="a"/></robot>', "E-SRDF-002"),
    ):
        other.write_text(text)
        with raises(code):
            robot.collision_pairs(srdf=other)
    with raises("E-DIST-020"):
        robot.collision_pairs(srdf=3)
    with raises("E-FILE-004"):
        robot.collision_pairs(srdf=tmp_path / "none.srdf")


def test_an_srdf_file_is_found_in_the_folder_of_its_package() -> None:
    """The Panda's file disables 35 pairs, and one more between bodies that a joint connects."""
    robot = chasles.load(installed("panda"))
    pairs = {frozenset(pair) for pair in robot.collision_pairs()}
    assert frozenset(("panda_link0", "panda_link5")) in pairs
    assert frozenset(("panda_link5", "panda_link7")) not in pairs  # disabled by the file
    more = {frozenset(pair) for pair in robot.collision_pairs(srdf=False)}
    assert frozenset(("panda_link5", "panda_link7")) in more
    assert pairs < more


MJCF = """<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <geom name="floor" type="box" size="1 1 .1"/>
    <body name="a"><joint name="ja"/><geom size=".1"/>
      <body name="b"><joint name="jb"/><joint name="jc" axis="1 0 0"/><geom size=".1" group="3"/>
        <body name="c"><joint name="jd"/><geom size=".1" contype="2" conaffinity="2"/>
          <geom size=".05" contype="0" conaffinity="0"/></body>
      </body>
      <body name="d"><joint name="je"/><geom size=".1" contype="3" conaffinity="1"/></body>
    </body>
    <body name="e"><freejoint/><geom size=".1"/><geom size=".1"/></body>
    <body name="f"><freejoint/><geom size=".1" contype="0" conaffinity="0"/></body>
  </worldbody>
  <contact><exclude body1="a" body2="e"/></contact>
</mujoco>"""


def test_pairs_of_mjcf_are_those_that_mujoco_tests(tmp_path: Path) -> None:
    """All shapes overlap at the origin, so MuJoCo's contacts are the pairs that may touch."""
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "m.xml").write_text(MJCF)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    bodies = model.geom_bodyid[data.contact.geom]
    wanted = {frozenset(model.body(k).name for k in pair) for pair in bodies}
    robot = chasles.load(tmp_path / "m.xml")
    found = {frozenset(pair) for pair in robot.collision_pairs()}
    assert found == wanted
    assert frozenset(("a", "e")) not in found
    assert frozenset(("world", "a")) in found
    assert len(found) > 4


FLOOR = """<mujoco><worldbody>
  <geom type="plane" size="5 5 .1" pos="0 0 -0.2" euler="10 0 0"/>
  <geom type="plane" size="5 5 .1" pos="0 0 -1" contype="2" conaffinity="2"/>
  <geom type="box" pos="1 1 0" size=".1 .1 .1"/>
  <body name="a" pos="0 0 0.5"><joint type="hinge" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.05"/>
    <body name="b" pos="0.4 0 0"><joint type="hinge" axis="0 1 0"/>
      <geom type="sphere" pos="0.3 0 0" size="0.06"/>
      <geom type="box" pos="0.1 0 0" size="0.04 0.02 0.02"/>
    </body></body></worldbody></mujoco>"""


def test_planes_of_files_are_obstacles(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "floor.xml"
    path.write_text(FLOOR)
    robot, model = chasles.load(path), mujoco.MjModel.from_xml_path(str(path))
    data, unused = mujoco.MjData(model), np.zeros(6)
    for q in np.random.default_rng(4).uniform(-2.0, 2.0, (8, 2)):
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        found = robot.distance(q)
        assert found.pairs == (("world", "a"), ("world", "b"))
        still = (0, 2)  # the tilted plane and the box; masks exclude the other plane
        for far, shapes in zip(found.distance, ((3,), (4, 5)), strict=True):
            pairs = product(still, shapes)
            theirs = [mujoco.mj_geomDistance(model, data, *pair, 10.0, unused) for pair in pairs]
            assert abs(far - min(theirs)) < 1e-6
        way = found.points[:, 1] - found.points[:, 0]
        assert np.allclose(way, found.distance[:, None] * found.normals, atol=1e-6)
        h = 1e-6
        slopes = [
            (robot.distance(q + h * e).distance - robot.distance(q - h * e).distance) / (2.0 * h)
            for e in np.eye(2)
        ]
        assert np.allclose(found.gradient, np.transpose(slopes), atol=1e-5)


def test_files_keep_what_may_touch(tmp_path: Path) -> None:
    """Contact masks and excluded pairs are kept in .toml and .xml files."""
    pytest.importorskip("mujoco")
    (tmp_path / "m.xml").write_text(MJCF)
    robot = chasles.load(tmp_path / "m.xml")
    for name in ("n.toml", "n.xml"):
        chasles.save(robot, tmp_path / name)
        again = chasles.load(tmp_path / name)
        assert set(again.collision_pairs()) == set(robot.collision_pairs())
    assert robot.subtree("a").collision_pairs()
