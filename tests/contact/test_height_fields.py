"""Contact with height fields agrees with distances, closed forms, and MuJoCo."""

import numpy as np
import pytest
from support import raises

import chasles
from chasles import contact
from chasles.motion.geometry.fields import contacts_on_field

mujoco = pytest.importorskip("mujoco")

DT = 0.002


def field(heights, size, **more):
    return contact.HeightField(None, heights, size, **more)


def still(count):
    return np.broadcast_to(np.eye(3), (count, 3, 3)), np.zeros((count, 3))


def gaps(shape, centers, ground):
    """Return the gap and normal of the closest contact of a shape at each of the centers."""
    found = contacts_on_field(
        shape, still(len(centers))[0], np.array(centers, dtype=float), ground, *still(len(centers))
    )
    best = np.argmin(found[..., 6], axis=1)
    rows = found[np.arange(len(found)), best]
    return rows[:, 6], rows[:, 3:6]


def test_a_ball_is_as_far_from_a_slope_as_from_its_plane():
    """The distances also agree across inner edges of the grid, and below the plane."""
    x, y = np.meshgrid(np.linspace(-1.0, 1.0, 9), np.linspace(-2.0, 2.0, 6))
    ground = field(0.3 * x + 0.2 * y + 1.0, (2.0, 4.0))
    rng = np.random.default_rng(1)
    at = rng.uniform([-0.5, -1.2, 0.0], [0.5, 1.2, 0.0], (200, 3))
    n = np.array([-0.3, -0.2, 1.0]) / np.sqrt(1.13)
    distance = rng.uniform(-0.05, 0.3, 200)
    at[:, 2] = 0.3 * at[:, 0] + 0.2 * at[:, 1] + 1.0
    found, normals = gaps(contact.Sphere("b", 0.1), at + distance[:, None] * n, ground)
    np.testing.assert_allclose(found, distance - 0.1, atol=1e-12)
    np.testing.assert_allclose(normals, np.broadcast_to(n, (200, 3)), atol=1e-6)


def test_a_flat_field_touches_a_ball_once_and_a_groove_twice():
    flat, groove = field(np.zeros((9, 9)), (1.0, 1.0)), np.tile([2.0, 1.0, 0.0, 1.0, 2.0], (3, 1))
    for ground, at, count in (
        (flat, (0.02, 0.03, 0.1), 1),
        (field(groove, (4.0, 4.0)), (0.0, 0.1, 0.1 * np.sqrt(2.0)), 2),
    ):
        found = contacts_on_field(
            contact.Sphere("b", 0.1), still(1)[0], np.array([at]), ground, *still(1)
        )
        assert np.sum(np.abs(found[..., 6]) < 1e-9) == count


def test_shapes_touch_peaks_between_their_corners():
    heights = np.zeros((5, 5))
    heights[2, 2] = 0.2
    ground = field(heights, (2.0, 2.0))
    for shape, reach in (
        (contact.Box("b", (1.0, 1.0, 0.2)), 0.1),
        (contact.Capsule("b", 0.05, (-0.6, 0.0, 0.0), (0.6, 0.0, 0.0)), 0.05),
    ):
        found, normals = gaps(shape, [(0.0, 0.0, 0.2 + reach + 0.01)], ground)
        assert found[0] == pytest.approx(0.01, abs=1e-12)
        np.testing.assert_allclose(normals[0], [0.0, 0.0, 1.0], atol=1e-9)


SCENE = """
<mujoco>
  <option timestep="0.0005"/>
  <asset>
    <hfield name="hills" nrow="{rows}" ncol="{columns}" size="{x} {y} {high} 0.2"
      elevation="{elevation}"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="hills" pos="{pos}" euler="{euler}" friction="0.6"/>
    <body name="b" pos="{start}"><freejoint name="f"/>{geom}</body>
  </worldbody>
</mujoco>"""

BALL = '<geom type="sphere" size="0.1" mass="1" friction="0.6"/>'
BOX = '<geom type="box" size="0.15 0.1 0.05" mass="1" friction="0.6"/>'
CAPSULE = '<geom type="capsule" size="0.05 0.15" euler="90 0 0" mass="1" friction="0.6"/>'


def written(path, heights, geom, start, *, x=1.0, y=1.0, pos="0 0 0", euler="0 0 0"):
    """Write and load a scene of a body above a field; the rows of `heights` ascend in y."""
    rows, columns = heights.shape
    elevation = " ".join(f"{h:.9g}" for h in heights[::-1].ravel())
    high = float(np.ptp(heights)) or 1.0
    path.write_text(
        SCENE.format(
            rows=rows, columns=columns, x=x, y=y, high=high, elevation=elevation, pos=pos,
            euler=euler, start=start, geom=geom,
        )
    )  # fmt: skip
    return chasles.load(path)


def test_the_field_of_a_file_is_where_mujoco_has_it(tmp_path):
    """Rows, extent, elevation and pose agree with MuJoCo's rays along the field's z axis."""
    heights = np.random.default_rng(3).uniform(0.0, 0.4, (4, 6))
    heights -= heights.min()
    path = tmp_path / "hills.xml"
    given = {"x": 2.0, "y": 1.0, "pos": "0.3 -0.2 0.5", "euler": "10 -20 30"}
    robot = written(path, heights, BALL, "0 0 3", **given)
    (pair,) = contact.file_pairs(robot)
    ground = pair.surface
    assert isinstance(ground, contact.HeightField)
    assert pair.law.friction == 0.6
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    R, r = np.transpose(ground.axes), np.array(ground.center)
    rng, hit = np.random.default_rng(4), np.zeros(1, dtype=np.int32)
    for x, y in rng.uniform([-1.9, -0.9], [1.9, 0.9], (40, 2)):
        start = r + R @ [x, y, 2.0]
        group = np.ones(6, dtype=np.uint8)
        way = mujoco.mj_ray(model, data, start, -R[:, 2], group, 1, 1, hit)
        level, inside = ground.height(np.array([[x, y, 2.0]]))
        assert inside[0]
        assert level[0] == pytest.approx(2.0 - way, abs=1e-6)  # MuJoCo stores float32


def rest_in_mujoco(path, seconds):
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.impratio = 100.0
    data = mujoco.MjData(model)
    while data.time < seconds:
        mujoco.mj_step(model, data)
    return data.qpos.copy()


def depth(ground, pose, half):
    """Return the depth of the field's deepest point inside a box, from many points of the field."""
    x, y = np.meshgrid(np.linspace(-0.4, 0.4, 801), np.linspace(-0.4, 0.4, 801))
    at = np.stack([x, y, x], axis=-1)
    at[..., 2] = ground.height(at)[0]
    return -np.min(np.max(np.abs((at - pose[:3, 3]) @ pose[:3, :3]) - half, axis=-1))


@pytest.mark.parametrize("shape", ["ball", "box"])
def test_bodies_come_to_rest_in_a_bowl_as_in_mujoco(tmp_path, shape):
    """The height of a box at rest agrees; friction holds it where it lands.

    MuJoCo keeps one contact per prism of the field, and its box overlaps the field by 5 mm.
    """
    geom, start = (BALL, "0.05 0.1 0.5") if shape == "ball" else (BOX, "0.1 0 0.3")
    x, y = np.meshgrid(np.linspace(-1.0, 1.0, 9), np.linspace(-1.0, 1.0, 9))
    heights = np.maximum(np.abs(x), np.abs(y)) ** 2 * 0.6
    path = tmp_path / "bowl.xml"
    robot = written(path, heights, geom, start)
    run = robot.simulate(
        robot.neutral(), np.zeros(6), duration=1.0, dt=DT, contacts="file", every=50
    )
    assert not run.compiled
    assert "height fields" in run.why
    assert run.overflow == 0
    assert run.excess < 1e-9
    assert run.touching.gaps[-1].min() > -1e-4
    there = rest_in_mujoco(path, 1.0)
    if shape == "ball":
        np.testing.assert_allclose(run.q[-1, 4:6], there[:2], atol=5e-3)
        assert run.q[-1, 6] == pytest.approx(there[2], abs=1e-3)
    else:
        (pair,) = contact.file_pairs(robot)
        half = np.array([0.15, 0.1, 0.05])
        place = np.r_[there[3:], there[:3]]
        assert depth(pair.surface, robot.forward_kinematics(place, frame="b"), half) > 5e-3
        assert depth(pair.surface, robot.forward_kinematics(run.q[-1], frame="b"), half) < 1e-4
        assert run.q[-1, 6] == pytest.approx(there[2], abs=5e-3)


def test_a_capsule_lies_across_a_ridge(tmp_path):
    """The capsule's ends are in the air, and the peaks of the ridge carry it."""
    heights = np.zeros((9, 9))
    heights[:, 4] = 0.1
    robot = written(tmp_path / "ridge.xml", heights, CAPSULE, "0 0 0.152")
    q = robot.neutral()
    turned = q.copy()
    turned[:4] = [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]
    run = robot.simulate(turned, np.zeros(6), duration=0.2, dt=DT, contacts="file")
    assert run.q[-1, 6] == pytest.approx(0.15, abs=2e-3)


def test_a_flat_field_is_a_plane(tmp_path):
    """A ball rolls over the edges of grid cells as it does over a plane."""
    robot = written(tmp_path / "flat.xml", np.zeros((41, 41)), BALL, "-0.8 0.013 0.1", x=2.0)
    q, qd = robot.neutral(), np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    options = {"duration": 0.5, "dt": DT, "integrator": "time-stepping"}
    (pair,) = contact.file_pairs(robot)
    plane = contact.Pair(pair.body, contact.Plane(), pair.law)
    on_field, on_plane = (robot.simulate(q, qd, contacts=[p], **options) for p in (pair, plane))
    np.testing.assert_allclose(on_field.q, on_plane.q, atol=1e-6)
    batch = robot.simulate(np.stack([q, q]), qd, contacts=[pair], **options)
    np.testing.assert_array_equal(batch.q[0], batch.q[1])


def test_fields_are_checked_and_other_integrators_refuse_them(tmp_path):
    with raises("E-CONTACT-093"):
        field([[0.0]], (1.0, 1.0))
    with raises("E-CONTACT-093"):
        field(np.zeros((2, 2)), (1.0, -1.0))
    with raises("E-CONTACT-094"):
        field(np.zeros((2, 2)), (1.0, 1.0), axes=np.ones((3, 3)))
    robot = written(tmp_path / "flat.xml", np.zeros((3, 3)), BALL, "0 0 0.1")
    pairs, state = contact.file_pairs(robot), (robot.neutral(), np.zeros(6))
    with raises("E-MOTION-137"):
        robot.simulate(*state, duration=0.1, contacts=pairs, integrator="rk4")
    with raises("E-MOTION-181"):
        robot.simulate(*state, duration=0.1, dt=DT, contacts="file", compiled=True)


# Edges ------------------------------------------------------------------------------------------


def tilted(rng, count):
    """Random rotation matrices."""
    q = rng.normal(size=(count, 4))
    w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


TETRAHEDRON = ((-0.1, -0.1, -0.1), (0.15, 0.0, -0.05), (-0.05, 0.15, 0.0), (0.0, 0.0, 0.15))


@pytest.mark.parametrize("kind", ["box", "capsule", "hull"])
def test_the_smallest_gap_is_the_distance_that_coal_finds(kind):
    """Random poses above rough ground, where corners, peaks and crossing edges are nearest."""
    coal = pytest.importorskip("coal")
    rng = np.random.default_rng(7)
    ground = field(rng.uniform(0.0, 0.15, (13, 13)), (1.2, 1.2))
    if kind == "box":
        shape, other = contact.Box("b", (0.3, 0.2, 0.1)), coal.Box(0.3, 0.2, 0.1)
    elif kind == "capsule":
        shape = contact.Capsule("b", 0.05, (0.0, 0.0, -0.15), (0.0, 0.0, 0.15))
        other = coal.Capsule(0.05, 0.3)
    else:
        shape = contact.ConvexMesh("b", TETRAHEDRON)
        points = coal.StdVec_Vec3s()
        points.extend([np.array(p) for p in TETRAHEDRON])
        other = coal.Convex.convexHull(points, False, None)
    corners, exists = ground.triangles(np.zeros((1, 3)), 0.6)
    mesh = coal.BVHModelOBBRSS()
    mesh.beginModel(int(exists.sum()), 3 * int(exists.sum()))
    for triangle in corners[0][exists[0]]:
        mesh.addTriangle(*triangle)
    mesh.endModel()
    R, o = tilted(rng, 150), rng.uniform([-0.2, -0.2, 0.1], [0.2, 0.2, 0.35], (150, 3))
    found = contacts_on_field(shape, R, o, ground, *still(150))[..., 6].min(axis=1)
    known = 0
    for k in range(150):
        pose, result = coal.Transform3s(R[k], o[k]), coal.DistanceResult()
        request = coal.DistanceRequest()
        least = coal.distance(other, pose, mesh, coal.Transform3s(), request, result)
        if 1e-3 < least < 0.1:
            known += 1
            assert found[k] == pytest.approx(least, abs=1e-5), k
    assert known > 30


def on_ridges(folder, geom, start, columns=(3, 5)):
    """Robot of a body above two ridges along y, 0.2 m apart and 0.1 m high."""
    heights = np.zeros((5, 9))
    heights[:, columns] = 0.1
    return written(folder / "ridges.xml", heights, geom, start, x=0.4, y=0.4)


@pytest.mark.parametrize(("geom", "reach"), [(BOX, 0.05), (CAPSULE, 0.05)], ids=["box", "capsule"])
def test_bodies_rest_across_two_ridges(tmp_path, geom, reach):
    """The body rests on both ridges, between the vertices of the field.

    It is aligned with the field, or rotated by 0.3 rad.
    """
    robot = on_ridges(tmp_path, geom, "0 0 0")
    half = 0.5 * (np.array([0.0, 0.3]) + (np.pi / 2 if geom == CAPSULE else 0.0))
    q = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.033, 0.1 + reach + 0.01], (2, 1))
    q[:, 0], q[:, 3] = np.cos(half), np.sin(half)
    run = robot.simulate(q, np.zeros((2, 6)), duration=0.5, dt=DT, contacts="file")
    last = run.q[:, -1]
    np.testing.assert_allclose(last[:, 4:], [[0.0, 0.033, 0.1 + reach]] * 2, atol=1e-4)
    np.testing.assert_allclose(last[:, :4], q[:, :4], atol=1e-3)
    assert np.abs(run.qd[:, -1]).max() < 1e-6
    forces = run.touching.forces[:, -1]
    np.testing.assert_allclose(forces[:, :, 2].sum(axis=-1), 9.81, rtol=1e-3)
    assert run.touching.gaps[:, -1].min() > -1e-5
    assert np.max(run.excess) < 1e-9
    assert np.max(run.overflow) == 0


def test_a_box_stands_on_its_edge_across_two_ridges(tmp_path):
    """The lowest edge of the box touches, and its center is half a diagonal above the ridges."""
    robot = on_ridges(tmp_path, BOX, "0 0 0")
    lean = np.arctan2(0.1, 0.05)
    high = 0.1 + np.hypot(0.1, 0.05)
    q = np.array([np.cos(lean / 2), np.sin(lean / 2), 0.0, 0.0, 0.0, 0.033, high])
    run = robot.simulate(q, np.zeros(6), duration=0.05, dt=DT, contacts="file")
    assert run.q[-1, 6] == pytest.approx(high, abs=1e-5)
    assert run.touching.forces[-1, :, 2].sum() == pytest.approx(9.81, rel=1e-2)


def test_a_ball_rests_in_a_valley(tmp_path):
    """The center is sqrt(2) radii high between slopes of 45 degrees, and both forces are equal."""
    heights = np.tile(0.1 * np.abs(np.arange(-4, 5)), (5, 1))
    robot = written(tmp_path / "valley.xml", heights, BALL, "0 0 0", x=0.4, y=0.4)
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.033, 0.1 * np.sqrt(2.0) + 0.02])
    run = robot.simulate(q, np.zeros(6), duration=0.5, dt=DT, contacts="file")
    assert run.q[-1, 6] == pytest.approx(0.1 * np.sqrt(2.0), abs=1e-5)
    size = np.linalg.norm(run.touching.forces[-1], axis=-1)
    np.testing.assert_allclose(np.sort(size)[-2:], 9.81 / np.sqrt(2.0), rtol=1e-3)
    assert run.excess < 1e-9


@pytest.mark.parametrize("geom", [BALL, BOX, CAPSULE], ids=["ball", "box", "capsule"])
def test_energy_never_grows_on_rough_ground(tmp_path, geom):
    heights = np.random.default_rng(2).uniform(0.0, 0.1, (9, 9))
    heights -= heights.min()
    robot = written(tmp_path / "rough.xml", heights, geom, "0 0 0", x=0.8, y=0.8)
    rng, n = np.random.default_rng(3), 8
    q, qd = robot.random(rng, (n,)), rng.normal(size=(n, 6)) * [3, 3, 3, 0.5, 0.5, 0.5]
    q[:, 4:] = rng.uniform([-0.2, -0.2, 0.3], [0.2, 0.2, 0.5], (n, 3))
    run = robot.simulate(q, qd, duration=0.6, dt=DT, contacts="file")
    energy = robot.kinetic_energy(run.q, run.qd) + robot.potential_energy(run.q)
    assert run.excess.max() < 1e-9
    # Releasing the overlap of a step adds energy; a fall at 3 m/s overlaps by at most 6 mm.
    assert np.max(np.maximum.accumulate(energy[:, ::-1], axis=1)[:, ::-1] - energy) < 0.02
    assert run.touching.gaps.min() > -0.01
