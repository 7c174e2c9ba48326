"""Contact points of two boxes, compared with closed forms and with depths of other libraries."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull, HalfspaceIntersection
from scipy.spatial.transform import Rotation

import chasles
from chasles.contact import Box, Pair, Rigid
from chasles.expr import RULES, Arena, Program, Variable, interpret
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.steps.boxes import EDGE, SLOTS, box_on_box, least_overlap
from chasles.motion.steps.spots import FAR, Placed


def placed(rotation, origin):
    return Placed(np.asarray(rotation, float), np.asarray(origin, float))


def valid(spots):
    """Points and gaps of the active slots."""
    found = [s for s in spots if s.gap < 0.5 * FAR]
    points = np.array([s.point for s in found], float).reshape(-1, 3)
    return points, np.array([s.gap for s in found], float)


def rectangle(center, angle, size):
    """Half-planes A x + b <= 0 whose intersection is a rectangle in the plane."""
    c, s = np.cos(angle), np.sin(angle)
    A = np.array([[c, s], [-c, -s], [-s, c], [s, -c]])
    return np.c_[A, -(A @ center) - 0.5 * np.repeat(size, 2)]


@pytest.mark.parametrize("flipped", [False, True])
def test_a_box_on_a_box_touches_in_the_common_part_of_both_faces(flipped):
    rng = np.random.default_rng(3)
    for _ in range(60):
        low, high = rng.uniform(0.5, 2.0, (2, 3))
        angle, shift = rng.uniform(0, 2 * np.pi), 0.4 * rng.normal(size=2)
        overlap = 1e-4
        if np.abs(shift).max() > 0.2 + 0.4 * min(*low[:2], *high[:2]):
            continue
        up = 0.5 * (low[2] + high[2]) - overlap
        turn = Rotation.from_rotvec([0, 0, angle]).as_matrix()
        one, other = Box("a", tuple(high)), Box("b", tuple(low))
        over, under = placed(turn, [*shift, up]), placed(np.eye(3), np.zeros(3))
        ends = (other, under, one, over) if flipped else (one, over, other, under)
        points, gaps = valid(box_on_box(*ends))
        sides = np.r_[rectangle(np.zeros(2), 0.0, low[:2]), rectangle(shift, angle, high[:2])]
        inside = HalfspaceIntersection(sides, 0.5 * shift)
        expected = ConvexHull(inside.intersections)
        assert len(points) <= 8
        assert np.allclose(gaps, -overlap)
        assert np.allclose(points[:, 2], 0.5 * low[2] - 0.5 * overlap)
        found = ConvexHull(points[:, :2])
        assert found.volume == pytest.approx(expected.volume, rel=1e-4)
        assert np.all(points[:, :2] @ sides[:, :2].T + sides[:, 2] < 1e-4)


def test_equal_boxes_touch_in_all_corners():
    """All corners are found even if rounding places a corner inside or outside of the other box."""
    rng = np.random.default_rng(0)
    box, under = Box("a", (0.2, 0.2, 0.1)), placed(np.eye(3), np.zeros(3))
    for size in (0.0, 1e-17, 1e-15, 1e-9, 1e-6, 1e-4):
        for _ in range(20):
            over = placed(
                Rotation.from_rotvec(size * rng.normal(size=3)).as_matrix(),
                [*size * rng.normal(size=2), 0.1],
            )
            points, gaps = valid(box_on_box(box, over, box, under))
            assert ConvexHull(points[:, :2]).volume == pytest.approx(0.04, rel=1e-2)
            assert np.abs(gaps).max() < 1e-6 + 0.5 * size


def test_crossed_edges_touch_in_one_point():
    """Two long boxes, each standing on an edge, cross at a right angle at a known point."""
    size, half = (2.0, 0.1, 0.1), 0.05 * 2**0.5
    tilt = Rotation.from_rotvec([np.pi / 4, 0, 0])
    turn = Rotation.from_rotvec([0, 0, np.pi / 2])
    at = np.array([0.3, -0.2, 2 * half - 1e-3])
    box = Box("a", size)
    over, under = placed((turn * tilt).as_matrix(), at), placed(tilt.as_matrix(), np.zeros(3))
    points, gaps = valid(box_on_box(box, over, box, under))
    assert np.allclose(gaps, [-1e-3])
    assert np.allclose(points, [[0.3, 0.0, half - 0.5e-3]])


def flights(count):
    """Yield poses of a box near another box, with edges of both boxes nearly parallel."""
    rng = np.random.default_rng(4)
    for tilt in 10.0 ** rng.uniform(-12.0, -3.0, count):
        turn = Rotation.from_rotvec(tilt * rng.normal(size=3))
        yield turn * Rotation.from_rotvec([0, 0, rng.uniform(0, 6)]), [0.5, *rng.uniform(0, 0.5, 2)]


def test_slots_without_contact_stay_near_the_boxes():
    """A slot far away from the boxes would move fast, and would act in spite of its gap."""
    box, under = Box("a", (0.2, 0.15, 0.1)), placed(np.eye(3), np.zeros(3))
    for turn, at in flights(150):
        for ends in ((turn.as_matrix(), at), (turn.as_matrix() @ np.diag([1, -1, -1]), at)):
            spots = box_on_box(box, placed(*ends), box, under)
            assert max(np.linalg.norm(np.array(s.point, float)) for s in spots) < 3.0


def test_boxes_that_do_not_touch_fly_on(tmp_path):
    """A step does not change the velocity of a spinning box next to another box."""
    file = tmp_path / "box.xml"
    file.write_text(
        "<mujoco><option gravity='0 0 0'/><worldbody><body name='a'><freejoint/>"
        "<inertial pos='0 0 0' mass='1' diaginertia='0.004 0.004 0.004'/></body>"
        "</worldbody></mujoco>"
    )
    robot, rng = chasles.load(file), np.random.default_rng(6)
    pair = Pair(Box("a", (0.2, 0.15, 0.1)), Box(None, (0.2, 0.15, 0.1)), Rigid(friction=0.5))
    each = [[*turn.as_quat()[[3, 0, 1, 2]], *at] for turn, at in flights(200)]
    q, qd = np.array(each), 5.0 * rng.normal(size=(200, 6)) * [1, 1, 1, 0, 0, 0]
    run = robot.simulate(q, qd, dt=0.002, steps=1, contacts=[pair], integrator="time-stepping")
    assert np.allclose(run.qd[:, -1], qd, atol=1e-9)
    assert not run.unsolved.any()
    assert run.excess.max() < 1e-9


def random_pair(rng, overlap, tilt=None):
    """Two boxes of random size and orientation that overlap by about the given length.

    If `tilt` is given, the boxes are rotated relative to each other about their last axes, and by
    about this angle (rad) about a random axis.
    """
    sizes = rng.uniform(0.3, 1.5, (2, 3))
    turns = [Rotation.random(random_state=rng) for _ in range(2)]
    if tilt is not None:
        about = Rotation.from_rotvec([0, 0, rng.uniform(0, 2 * np.pi)])
        turns[0] = turns[1] * about * Rotation.from_rotvec(tilt * rng.normal(size=3))
    over = placed(turns[0].as_matrix(), rng.normal(size=3))
    under = placed(turns[1].as_matrix(), np.zeros(3))
    one, other = (Box(name, tuple(size)) for name, size in zip("ab", sizes, strict=True))
    for _ in range(6):
        apart = least_overlap(one, over, other, under)
        way = np.array(apart.normal, float) * (float(apart.gap) + overlap)
        over = placed(over.R, over.o - way)
    return one, over, other, under


def test_the_point_of_edges_that_are_apart_is_between_them():
    """The lines through edges that are apart may cross far beyond the ends of the edges."""
    rng, count = np.random.default_rng(1), 0
    for _ in range(100):
        one, over, other, under = random_pair(rng, -1.0, 0.1)
        if not least_overlap(one, over, other, under).edge:
            continue
        points, gaps = valid(box_on_box(one, over, other, under))
        assert len(gaps) == 1
        # The point is halfway between a point of one box and a point of the other.
        reach = 0.25 * (np.linalg.norm(one.size) + np.linalg.norm(other.size))
        assert np.linalg.norm(points[0] - 0.5 * (over.o + under.o)) <= reach
        count += 1
    assert count > 20


def test_depths_and_normals_agree_with_coal():
    coal = pytest.importorskip("coal")
    rng, alike = np.random.default_rng(5), 0
    for _ in range(60):
        one, over, other, under = random_pair(rng, 0.01)
        apart = least_overlap(one, over, other, under)
        request, result = coal.CollisionRequest(), coal.CollisionResult()
        frames = [coal.Transform3s(f.R, f.o) for f in (under, over)]
        shapes = [coal.Box(*box.size) for box in (other, one)]
        coal.collide(shapes[0], frames[0], shapes[1], frames[1], request, result)
        known = result.getContact(0)
        depth = -known.penetration_depth
        # An edge is chosen only if its overlap is less than a face's by EDGE and PART (2 %).
        assert depth <= -float(apart.gap) + 1e-6
        slack = EDGE * min(*one.size, *other.size)
        assert -float(apart.gap) == pytest.approx(depth, rel=0.021, abs=slack)
        if -float(apart.gap) < depth * (1 + 1e-6):
            alike += 1
            assert np.allclose(np.array(apart.normal, float), known.normal, atol=1e-4)
    assert alike > 50


def test_points_agree_with_mujoco():
    """The greatest depth agrees with MuJoCo's, and MuJoCo's points are among those of chasles."""
    mujoco = pytest.importorskip("mujoco")
    rng, count = np.random.default_rng(8), 0
    for tilt in [None, 1e-4] * 40:
        one, over, other, under = random_pair(rng, 1e-3, tilt)
        text = "<mujoco><worldbody>"
        for box, frame in ((other, under), (one, over)):
            size = " ".join(str(0.5 * x) for x in box.size)
            x, y, z, w = Rotation.from_matrix(frame.R).as_quat()
            pos = " ".join(map(str, frame.o))
            text += (
                f"<body pos='{pos}' quat='{w} {x} {y} {z}'><freejoint/>"
                f"<geom type='box' size='{size}'/></body>"
            )
        model = mujoco.MjModel.from_xml_string(text + "</worldbody></mujoco>")
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        points, gaps = valid(box_on_box(one, over, other, under))
        assert data.ncon
        depths = [c.dist for c in data.contact]
        slack = EDGE * min(*one.size, *other.size)
        # If the overlaps along two axes are nearly equal, the two libraries may choose different
        # axes.
        assert gaps.min() == pytest.approx(min(depths), rel=0.04, abs=slack)
        if gaps.min() == pytest.approx(min(depths), rel=1e-3):  # both chose the same axis
            for c in data.contact:
                assert np.linalg.norm(points - c.pos, axis=1).min() < 2e-3
            count += len(data.contact)
    assert count > 100


def test_symbols_have_the_values_of_floats():
    rng, n = np.random.default_rng(2), SLOTS
    one, over, other, under = random_pair(rng, 0.01)
    arena = Arena(RULES)
    values = {"R": over.R.ravel(), "o": over.o}
    R, o = (symbols(arena, name, x.shape) for name, x in values.items())
    spots = box_on_box(one, Placed(R.reshape(3, 3), o), other, under)
    outputs = [
        (Variable("points", (n, 3)), [x for s in spots for x in s.point]),
        (Variable("gaps", (n,)), [s.gap for s in spots]),
    ]
    inputs = [Variable(name, x.shape) for name, x in values.items()]
    found = interpret(
        Program.from_outputs("boxes", inputs, outputs), {k: list(x) for k, x in values.items()}
    )
    floats = box_on_box(one, over, other, under)
    assert len(floats) == n
    assert np.allclose(found["gaps"], [float(s.gap) for s in floats])
    points = np.array([s.point for s in floats], float)
    assert np.allclose(np.reshape(found["points"], (n, 3)), points)
