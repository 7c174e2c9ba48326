"""Inverse kinematics for each joint type, for loops with limits, and with obstacles."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import chasles
from chasles.contact import Sphere
from chasles.distances import Avoid
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, FrameData, JointData, LinkData
from chasles.model.description import Limits
from chasles.model.joints import JOINTS
from chasles.targets import Axis, Pose, Position

# Every joint type --------------------------------------------------------------------------------


def one(kind: str) -> chasles.Robot:
    """Return a robot with one joint and one link, and a frame at a distance from the joint."""
    inertia = RigidInertia.from_center(1.0, Vector.zero(), Symmetric(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    data: dict[str, Any] = {"radius": 0.3} if kind in ("rolling", "rack_and_pinion") else {}
    data |= {"pitch": 0.2} if kind == "helical" else {}
    joint = JointData("joint", kind, None, "link", axis=Vector.of(0.0, 0.6, 0.8), **data)
    if kind in ("universal", "rack_and_pinion"):
        joint = replace(joint, second_axis=Vector.of(1.0, 0.0, 0.0))
    tip = FrameData("tip", "link", Transform(Rotation(), Vector.of(0.3, -0.2, 0.4)))
    return chasles.Robot(Description("one", (LinkData("link", inertia),), (joint,), (tip,)))


@pytest.mark.parametrize("kind", JOINTS)
def test_every_joint_type_reaches_its_poses(kind: str) -> None:
    robot = one(kind)
    q = robot.random(np.random.default_rng(4), size=30)
    T = robot.forward_kinematics(q, frame="tip")
    found = robot.inverse_kinematics({"tip": T})
    assert found.q.shape == q.shape
    assert found.solved.all()
    assert np.abs(robot.forward_kinematics(found.q, frame="tip") - T).max() < 3e-6
    assert robot.within(found.q).all()
    lifted = T[0].copy()
    lifted[:3, 3] += [3.0, 2.0, 1.0]  # reachable only with a free joint
    assert bool(robot.inverse_kinematics({"tip": lifted}, tries=20).solved) == (kind == "free")


def test_rolling_spheres_are_placed_on_their_plane() -> None:
    """Solutions of a rolling sphere are found with a guess, with `comfort`, and if fixed."""
    robot = one("rolling")
    q = robot.random(np.random.default_rng(5))
    T = robot.forward_kinematics(q, frame="tip")
    found = robot.inverse_kinematics({"tip": T}, guess=robot.random(np.random.default_rng(6)))
    assert np.allclose(found.q[4:], q[4:], atol=1e-6)
    assert min(np.abs(found.q[:4] - s * q[:4]).max() for s in (1.0, -1.0)) < 1e-6
    # For a target position of the center, `comfort` determines the orientation.
    center, ease = Position(T[:3, 3]), robot.neutral()
    still = robot.inverse_kinematics({"tip": center}, comfort=ease, comfort_weight=[1.0, 1.0, 1.0])
    assert still.solved
    held = robot.inverse_kinematics({"tip": T}, guess=q, fixed=["joint"])
    assert held.solved
    assert np.array_equal(held.q, q)


# Loops -------------------------------------------------------------------------------------------


def test_limits_of_passive_joints_of_loops() -> None:
    """Solutions of a five-bar respect the limits of a passive coupler joint."""
    robot = chasles.robots.five_bar()
    tip = FrameData("tip", "left_coupler", Transform(Rotation(), Vector.of(0.8, 0.0, 0.0)))
    source = replace(robot.model.source, frames=(*robot.model.source.frames, tip))
    plain = chasles.Robot(source)
    base = robot.assemble([1.9, 1.2])
    place = plain.position_slice("left_coupler").start
    middle = float(base[place])
    joints = tuple(
        replace(joint, limits=Limits(middle - 0.3, middle + 0.3))
        if joint.name == "left_coupler"
        else joint
        for joint in source.joints
    )
    limited = chasles.Robot(replace(source, joints=joints))
    rng = np.random.default_rng(7)
    q = [robot.assemble(y, guess=base) for y in [1.9, 1.2] + 0.3 * rng.normal(size=(60, 2))]
    inside = np.array([x for x in q if abs(x[place] - middle) < 0.3])
    assert 20 < len(inside) < 60
    goals = {"tip": Position(plain.forward_kinematics(inside, frame="tip")[:, :3, 3])}
    free, found = (each.inverse_kinematics(goals) for each in (plain, limited))
    assert (np.abs(free.q[:, place] - middle) > 0.3).any()
    assert found.solved.all()
    assert np.abs(found.q[:, place] - middle).max() < 0.3 + 1e-15
    assert np.abs(plain.loop_residual(found.q)).max() < 1e-10
    at = plain.forward_kinematics(found.q, frame="tip")[:, :3, 3]
    assert np.abs(at - goals["tip"].point).max() < 2e-6
    # For this target, the coupler joint would exceed its limit. The active limit is reported.
    far = {"tip": Position(plain.forward_kinematics(base, frame="tip")[:3, 3] * 0.6)}
    beyond = limited.inverse_kinematics(far, guess=base, tries=20)
    assert not beyond.solved
    assert abs(beyond.limits[place]) == 1
    assert abs(beyond.q[place] - middle) < 0.3 + 1e-15
    assert plain.inverse_kinematics(far, guess=base).solved


# Obstacles ---------------------------------------------------------------------------------------


def planar(links: int) -> tuple[chasles.Robot, str, list[Any], np.ndarray]:
    """Return a planar arm, its last link, spheres along it, and a posture."""
    robot = chasles.robots.planar(links)
    places = [(x, 0.0, 0.0) for x in (0.25, 0.5, 0.75, 1.0)]
    names = robot.bodies[-links:]
    shapes = [Sphere(name, 0.1, at) for name in names for at in places]
    return robot, names[-1], shapes, np.array([0.1, 0.3, 0.8, 0.5, 0.4, 0.2])[:links]


BALL = Sphere(None, 0.25, (1.1, 0.0, 0.25))


def gap(robot: chasles.Robot, q: np.ndarray, shapes: list[Any]) -> np.ndarray:
    """Return the distance between the spheres and BALL, computed from their centers."""
    far = []
    for shape in shapes:
        T = robot.forward_kinematics(q, frame=shape.frame)
        center = T[..., :3, :3] @ np.array(shape.center) + T[..., :3, 3]
        far.append(np.linalg.norm(center - np.array(BALL.center), axis=-1) - 0.35)
    return np.min(far, axis=0)


def test_obstacles_with_every_other_option() -> None:
    robot, tip, shapes, low = planar(4)
    goal = {tip: Position(robot.forward_kinematics(low, frame=tip)[:3, 3])}
    pairs = [(name, "ball") for name in dict.fromkeys(s.frame for s in shapes)]
    avoid = Avoid({"ball": BALL}, shapes=shapes, pairs=pairs)
    options: Any = {"avoid": avoid, "guess": low}
    assert gap(robot, low, shapes) < 0.0
    rest = np.array([1.2, 0.2, -0.9, -0.6])
    first = robot.inverse_kinematics(goal, **options)
    every = robot.inverse_kinematics(goal, solutions="all", count=8, **options)
    near = robot.inverse_kinematics(goal, near=rest, **options)
    ease = robot.inverse_kinematics(goal, comfort=rest, **options)
    name = robot.model.bodies[0].data.name
    held = robot.inverse_kinematics(goal, avoid=avoid, guess=first.q, fixed=[name])
    assert held.q[0] == first.q[0]
    assert every.solved.sum() > 1
    rows = [first.q, near.q, ease.q, held.q, *every.q[every.solved]]
    for q in rows:
        assert gap(robot, q, shapes) >= -1e-9
        reached = robot.forward_kinematics(q, frame=tip)[:3, 3]
        assert np.abs(reached - goal[tip].point).max() < 2e-6
    away = [np.linalg.norm(robot.difference(rest, q)) for q in (near.q, ease.q, first.q)]
    assert max(away[:2]) < away[2] + 1e-9


def test_obstacles_with_loops() -> None:
    robot = chasles.robots.five_bar()
    source = robot.model.source
    tip = FrameData("tip", "left_coupler", Transform(Rotation(), Vector.of(0.8, 0.0, 0.0)))
    robot = chasles.Robot(replace(source, frames=(*source.frames, tip)))
    base = robot.assemble([1.9, 1.2])
    point = robot.forward_kinematics(base, frame="tip")[:3, 3]
    shapes = [Sphere(name, 0.05) for name in ("left_coupler", "right_coupler")]
    knees = [robot.forward_kinematics(base, frame=shape.frame)[:3, 3] for shape in shapes]
    ball = Sphere(None, 0.1, tuple(knees[0]))
    pairs = [("left_coupler", "ball"), ("right_coupler", "ball")]
    avoid = Avoid({"ball": ball}, shapes=shapes, pairs=pairs)
    found = robot.inverse_kinematics({"tip": Position(point)}, avoid=avoid, guess=base)
    assert found.solved
    assert np.abs(robot.loop_residual(found.q)).max() < 1e-10
    assert np.abs(robot.forward_kinematics(found.q, frame="tip")[:3, 3] - point).max() < 2e-6
    for shape in shapes:
        center = robot.forward_kinematics(found.q, frame=shape.frame)[:3, 3]
        assert np.linalg.norm(center - knees[0]) >= 0.15 - 1e-9


def test_the_weight_of_obstacles_that_cannot_be_avoided() -> None:
    """If the target is inside a ball, a larger weight of the ball keeps the tip farther away."""
    robot, tip, shapes, low = planar(3)
    shapes = shapes[-1:]  # one sphere, at the tip
    place = robot.forward_kinematics(low, frame=tip) @ np.array([1.0, 0.0, 0.0, 1.0])
    end = FrameData("end", tip, Transform(Rotation(), Vector.of(1.0, 0.0, 0.0)))
    source = robot.model.source
    robot = chasles.Robot(replace(source, frames=(*source.frames, end)))
    ball = {"ball": Sphere(None, 0.3, (*(place[:2]), place[2] + 0.05))}
    far = []
    for weight in (0.1, 1.0, 10.0):
        avoid = Avoid(ball, shapes=shapes, pairs=[(tip, "ball")], weight=weight)
        goal = {"end": Position(place[:3])}
        found = robot.inverse_kinematics(goal, avoid=avoid, guess=low, tries=10)
        assert not found.solved
        at = robot.forward_kinematics(found.q, frame="end")[:3, 3]
        far.append(float(np.linalg.norm(at - place[:3])))
    # The tip is at distance x from its goal and 0.05 + x from the ball's center. It minimizes
    # x^2 + w^2 (0.401 - 0.05 - x)^2. 0.401 m is the sum of both radii and a tolerance of 1 mm.
    wanted = [0.351 * w**2 / (1.0 + w**2) for w in (0.1, 1.0, 10.0)]
    assert np.allclose(far, wanted, atol=2e-3)


# Batches and earlier calls -----------------------------------------------------------------------


@pytest.mark.parametrize("option", ["all", "near", "uneven"])
def test_fixed_joints_keep_the_positions_of_their_own_guess(option: str) -> None:
    """Each problem of a batch keeps its own fixed positions in every attempt of the search."""
    robot = chasles.robots.planar(4)
    q = robot.random(seed=0, size=8)
    place = robot.forward_kinematics(q, frame="link4")[:, :3, 3]
    given: dict[str, Any] = {"guess": q, "fixed": [robot.joints[0]]}
    tolerance: Any = 1e-6
    if option == "all":
        given |= {"solutions": "all", "count": 3}
    elif option == "near":
        given |= {"near": q + 0.3}
    else:
        tolerance = [1e-6, 1e-6, 1e-2]
    found = robot.inverse_kinematics({"link4": Position(place, tolerance=tolerance)}, **given)
    posture = found.q if option == "all" else found.q[:, None]
    solved = np.isfinite(posture[..., 0])
    assert solved.any(axis=1).all()
    own = np.broadcast_to(q[:, None, 0], solved.shape)
    assert np.array_equal(posture[..., 0][solved], own[solved])


def test_options_of_one_call_do_not_affect_the_next() -> None:
    robot = chasles.robots.puma560()
    pose = robot.forward_kinematics(robot.random(seed=1), frame="tool")
    right = robot.inverse_kinematics({"tool": pose}).q
    for weight in (np.ones(6), np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])):
        assert robot.inverse_kinematics({"tool": Pose(pose, weight=weight)}).solved
        for _ in range(2):
            assert np.array_equal(robot.inverse_kinematics({"tool": pose}).q, right)


def test_a_frame_may_have_a_batch_and_a_single_target() -> None:
    robot = chasles.robots.puma560()
    T = robot.forward_kinematics(robot.random(seed=1, size=5), frame="tool")
    both = [Position(T[:, :3, 3]), Axis([0.0, 0.0, -1.0])]
    found, other = (robot.inverse_kinematics({"tool": x}) for x in (both, both[::-1]))
    assert found.q.shape == other.q.shape == (5, 6)
    assert np.array_equal(found.solved, other.solved)
    reached = robot.forward_kinematics(found.q, frame="tool")[found.solved]
    assert np.abs(reached[:, :3, 3] - T[found.solved][:, :3, 3]).max() < 1e-5


def test_a_truncated_list_of_turned_postures_is_not_complete() -> None:
    robot = chasles.robots.puma560()
    T = robot.forward_kinematics(robot.random(seed=2, size=50), frame="tool")
    given = {"solutions": "all", "wraps": True}
    many = robot.inverse_kinematics({"tool": T}, count=400, **given).solved.sum(axis=-1)
    for count in (2, 8):
        found = robot.inverse_kinematics({"tool": T}, count=count, **given)
        assert np.array_equal(found.complete, many <= count)
    assert (many > 8).any()
