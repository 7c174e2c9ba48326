"""Less common joint types: published formulas, polarity, rolling, loop joints."""

from dataclasses import replace

import numpy as np
import pytest
from chains import pose, shift, transform, turn
from scipy.spatial.transform import Rotation as R
from support import close, direct, raises, state

import chasles
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import JOINTS, Description, JointData, LinkData
from chasles.model.joints import RackAndPinion, YawPitchRoll
from chasles.robots import random_tree
from chasles.robots.mechanisms import four_bar

# Published formulas ------------------------------------------------------------------------------


def test_rack_and_pinion_is_the_books() -> None:
    """Subspace and bias agree with Featherstone 2008, example 4.6."""
    r, q, qd = 0.3, 0.8, 1.7
    joint = RackAndPinion(radius=r)
    c, s = np.cos(q), np.sin(q)
    (S,) = joint.subspace(Vector.of(q)).columns
    np.testing.assert_allclose(list(S), [0, 0, 1, r * c, -r * s, 0], atol=1e-16)
    bias = joint.bias(Vector.of(q), Vector.of(qd))
    np.testing.assert_allclose(list(bias), [0, 0, 0, -r * s * qd**2, -r * c * qd**2, 0], rtol=1e-15)


def test_yaw_pitch_roll_is_the_books() -> None:
    """Rotation, subspace and bias agree with Featherstone 2008, Eq 4.7 to 4.9, errata corrected."""
    q, qd = np.array([0.4, -0.7, 1.1]), np.array([0.5, -1.3, 0.8])
    (s1, s2, s3), (c1, c2, c3), (a, b, c) = np.sin(q), np.cos(q), qd
    joint, at, speed = YawPitchRoll(), Vector(tuple(q.tolist())), Vector(tuple(qd.tolist()))
    E = [
        [c1 * c2, s1 * c2, -s2],
        [c1 * s2 * s3 - s1 * c3, s1 * s2 * s3 + c1 * c3, c2 * s3],
        [c1 * s2 * c3 + s1 * s3, s1 * s2 * c3 - c1 * s3, c2 * c3],
    ]
    np.testing.assert_allclose(joint.motion(at).E.matrix().rows, E, atol=1e-15)
    S = np.array([[-s2, 0, 1], [c2 * s3, c3, 0], [c2 * c3, -s3, 0]])
    found = [list(column.angular) for column in joint.subspace(at).columns]
    np.testing.assert_allclose(np.transpose(found), S, atol=1e-15)
    bias = [
        -c2 * a * b,
        -s2 * s3 * a * b + c2 * c3 * a * c - s3 * b * c,
        -s2 * c3 * a * b - c2 * s3 * a * c - c3 * b * c,
        *(0, 0, 0),
    ]
    np.testing.assert_allclose(list(joint.bias(at, speed)), bias, atol=1e-15)


def test_yaw_pitch_roll_loses_a_freedom_at_a_right_angle() -> None:
    S = YawPitchRoll().subspace(Vector.of(0.3, np.pi / 2, -0.4)).columns
    assert np.linalg.svd([list(s.angular) for s in S], compute_uv=False)[-1] < 1e-15


# Polarity ----------------------------------------------------------------------------------------


def couple(kind: str) -> tuple[chasles.Robot, chasles.Robot]:
    """Return two floating bodies with a joint between them, rooted at either body."""
    tree = random_tree(2, 5, floating=True, fixed=False).model.source
    (root, joint), (first, second) = tree.joints, tree.links
    root = replace(root, pose=Transform.identity())
    joint = replace(joint, kind=kind, second_axis=None, pitch=0.1, radius=0.2)
    there = replace(tree, joints=(root, joint))
    # the reversed joint leads from the second body to the joint's place on the first one
    back = replace(joint, parent=second.name, child="socket", pose=Transform.identity())
    away = transform(np.linalg.inv(pose(joint.pose)))
    joints = (
        replace(root, child=second.name),
        replace(back, reversed=True),
        JointData("weld", "fixed", "socket", first.name, away),
    )
    links = (second, LinkData("socket", RigidInertia.zero()), first)
    return chasles.Robot(there), chasles.Robot(replace(there, links=links, joints=joints))


def in_world(T: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """Return a wrench about the world's origin, given along and about a frame."""
    moment, force = T[:3, :3] @ wrench[:3], T[:3, :3] @ wrench[3:]
    return np.array([*(moment + np.cross(T[:3, 3], force)), *force])


@pytest.mark.parametrize("kind", JOINTS)
def test_a_flipped_mechanism_is_the_same(kind: str) -> None:
    """Reversing a joint changes no motion, and negates the transmitted wrench (table 4.2)."""
    there, back = couple(kind)
    q, qd, tau = state(there, 11)
    tau[:6] = 0.0  # no force acts on the root body, which differs
    qdd = direct(there.model, "forward_dynamics", q, qd, tau)
    T = direct(there.model, "forward_kinematics", q, frame="link2")
    x, y, z, w = R.from_matrix(T[:3, :3]).as_quat()
    view = {"frame": "link2", "axes": "frame"}
    twist = direct(there.model, "frame_velocity", q, qd, **view)
    rate = direct(there.model, "frame_acceleration", q, qd, qdd, kind="spatial", **view)
    here = (np.array([w, x, y, z, *T[:3, 3], *q[7:]]), np.array([*twist, *qd[6:]]))
    for frame in ("link1", "link2"):
        place = direct(there.model, "forward_kinematics", q, frame=frame)
        close(direct(back.model, "forward_kinematics", here[0], frame=frame), place, 1e-13)
    close(
        direct(back.model, "kinetic_energy", *here),
        direct(there.model, "kinetic_energy", q, qd),
        1e-12,
    )
    found = direct(back.model, "forward_dynamics", *here, tau)
    close(found, [*rate, *qdd[6:]], 1e-10)
    on_second = in_world(T, direct(there.model, "joint_reactions", q, qd, qdd)[1])
    socket = direct(back.model, "forward_kinematics", here[0], frame="socket")
    on_first = in_world(socket, direct(back.model, "joint_reactions", *here, found)[1])
    close(on_first, -on_second, 1e-10, scale=1.0)


# Rolling -----------------------------------------------------------------------------------------


def marble(gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)) -> chasles.Robot:
    """Return a ball of 2 kg with a radius of 0.1 m on the floor."""
    I = 0.4 * 2.0 * 0.1**2
    body = RigidInertia.from_center(2.0, Vector.zero(), Symmetric(I, I, I, 0.0, 0.0, 0.0))
    joint = JointData("roll", "rolling", None, "ball", radius=0.1)
    source = Description("marble", (LinkData("ball", body),), (joint,), gravity=Vector(gravity))
    return chasles.Robot(source)


def test_the_contact_does_not_slip() -> None:
    robot = marble()
    q, qd, _ = state(robot, 4)
    T = direct(robot.model, "forward_kinematics", q, frame="ball")
    contact = tuple(T[:3, :3].T @ [0.0, 0.0, -0.1])
    v = direct(robot.model, "frame_velocity", q, qd, frame="ball", at=contact)
    np.testing.assert_allclose(v[3:], 0.0, atol=1e-15)


def test_three_velocities_reach_five_freedoms() -> None:
    """Flows and their Lie brackets span five directions, all but the height."""
    robot = marble()
    q = state(robot, 5)[0]

    def moved(*steps: np.ndarray) -> np.ndarray:
        at = q
        for step in steps:
            at = direct(robot.model, "integrate", at, step)
        T = direct(robot.model, "forward_kinematics", at, frame="ball")
        T0 = direct(robot.model, "forward_kinematics", q, frame="ball")
        return np.array([*R.from_matrix(T0[:3, :3].T @ T[:3, :3]).as_rotvec(), *(T - T0)[:3, 3]])

    h = 1e-3
    unit = h * np.eye(3)
    flows = [moved(d) / h for d in unit]
    pairs = [(a, b) for a in range(3) for b in range(a)]
    brackets = [moved(unit[a], unit[b], -unit[a], -unit[b]) / h**2 for a, b in pairs]
    assert np.linalg.matrix_rank(flows, tol=1e-2) == robot.nv == 3
    assert np.linalg.matrix_rank(flows + brackets, tol=1e-2) == 5
    np.testing.assert_allclose(np.array(flows + brackets)[:, 5], 0.0, atol=1e-12)


def test_a_ball_on_an_inclined_plane() -> None:
    slope = 0.2
    robot = marble((9.81 * np.sin(slope), 0.0, -9.81 * np.cos(slope)))
    q, qd, tau = robot.neutral(), np.array([0.3, -0.4, 2.0]), np.zeros(3)
    qdd = direct(robot.model, "forward_dynamics", q, qd, tau)
    a = direct(robot.model, "frame_acceleration", q, qd, qdd, frame="ball")
    np.testing.assert_allclose(a[3:], [5 / 7 * 9.81 * np.sin(slope), 0.0, 0.0], atol=1e-14)


def test_rolling_on_what_moves_cannot_be_linearized() -> None:
    """A rolling sphere can be linearized on the floor, but not on a board that turns."""
    robot = marble()
    q, qd, tau = state(robot, 6)
    A, _ = robot.linearize(q, qd, tau)
    assert A.shape == (6, 6)
    source = robot.model.source
    board = JointData("hinge", "revolute", None, "board", axis=Vector.of(0.0, 1.0, 0.0))
    joints = (board, replace(source.joints[0], parent="board"))
    body = source.links[0].inertia
    seesaw = chasles.Robot(
        replace(source, links=(LinkData("board", body), *source.links), joints=joints)
    )
    with raises("E-CALL-072", "'roll'"):
        seesaw.linearize(*state(seesaw, 6))


# Weaker loop joints ------------------------------------------------------------------------------


@pytest.mark.parametrize("reversed_too", [False, True])
def test_a_ball_in_a_tube_closes_a_plane_loop_without_redundancy(reversed_too: bool) -> None:
    """A sphere-in-cylinder joint closes a planar loop with two equations instead of five.

    The motion is unchanged (Featherstone 2008, chapter 8).
    """
    source = four_bar()
    ball = replace(source.loops[0], kind="sphere_in_cylinder", reversed=reversed_too)
    pinned, loose = chasles.Robot(source), chasles.Robot(replace(source, loops=(ball,)))
    a, b = pinned.mobility(), loose.mobility()
    assert (int(a), a.rows, a.redundant) == (1, 5, (("pin", 3),))
    assert (int(b), b.rows, b.redundant) == (1, 2, (("pin", 0),))
    q = pinned.assemble([0.8], guess=[0.8, -0.5, 1.5])
    np.testing.assert_allclose(loose.assemble([0.8], guess=[0.8, -0.5, 1.5]), q, atol=1e-13)
    one, other = (robot.complete(q, [1.3], [0.4]) for robot in (pinned, loose))
    for x, y in zip(one, other, strict=True):
        close(y, x, 1e-12)


# Prescribed motion -------------------------------------------------------------------------------


def test_a_shaken_base_is_a_changed_gravity() -> None:
    """Accelerating the base is equivalent to subtracting the acceleration from gravity."""
    arm = chasles.robots.planar(2)
    source = arm.model.source
    links = (LinkData("cart", RigidInertia.zero()), *source.links)
    # a cart between the world and the arm's base, moving along a slanted line
    u = np.array([0.6, 0.0, 0.8])
    first = source.links[0].name
    rail = JointData(
        "rail", "prismatic", None, "cart", axis=Vector(tuple(u.tolist())), armature=1.0
    )
    mount = JointData("mount", "fixed", "cart", first)
    moving = chasles.Robot(replace(source, links=links, joints=(rail, mount, *source.joints)))
    rng = np.random.default_rng(3)
    q, qd, qdd = rng.normal(size=(3, 2))
    known = 7.0  # m/s2, independent of position and velocity
    tau = moving.inverse_dynamics([0.4, *q], [-1.1, *qd], [known, *qdd])
    felt = arm.with_gravity(arm.gravity - known * u)
    close(tau[1:], felt.inverse_dynamics(q, qd, qdd), 1e-12)
    given = moving.hybrid_dynamics([0.4, *q], [-1.1, *qd], [known, *tau[1:]], known="rail")
    close(given, [tau[0], *qdd], 1e-11)


# Invalid parameters ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rolling", "rack_and_pinion"])
@pytest.mark.parametrize("radius", [0.0, -1.0])
def test_a_radius_is_positive(kind: str, radius: float) -> None:
    source = marble().model.source
    joints = (replace(source.joints[0], kind=kind, radius=radius),)
    with raises("E-MODEL-044", "'roll'", kind):
        chasles.Robot(replace(source, joints=joints))


def test_a_rack_is_across_its_pinion() -> None:
    source = marble().model.source
    joint = replace(source.joints[0], kind="rack_and_pinion")
    across = replace(joint, axis=Vector.of(0.0, 1.0, 0.0), second_axis=Vector.of(0.0, 0.0, 1.0))
    robot = chasles.Robot(replace(source, joints=(across,)))
    T = robot.forward_kinematics([0.5], frame="ball")
    expected = shift(np.array([0.0, 0.0, 0.05])) @ turn(np.array([0.0, 0.5, 0.0]))
    np.testing.assert_allclose(T, expected, atol=1e-15)
    np.testing.assert_allclose(pose(across.pose), np.eye(4))
    slanted = replace(across, second_axis=Vector.of(0.0, 0.6, 0.8))
    with raises("E-MODEL-011"):
        chasles.Robot(replace(source, joints=(slanted,)))


def test_rolling_closes_no_loop() -> None:
    source = four_bar()
    loop = replace(source.loops[0], kind="rolling", radius=0.1)
    with raises("E-MODEL-043", "'pin'", "'rolling'"):
        chasles.Robot(replace(source, loops=(loop,)))
