"""Robots with locked joints, payloads, subtrees, other gravity or another base pose.

Functions run on plain floats (`Floats`), because changing a robot changes its model, not its code.
"""

from dataclasses import replace

import numpy as np
import pytest
from support import Floats, close, raises, state, tree

import chasles
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import (
    matrix_from_quaternion,
    quaternion_product,
)
from chasles.mathematics.spatial import Transform
from chasles.robots import random_tree

ROUNDING = 1e-11
ROBOT = tree(9, 3, floating=False)
FLOATING = tree(9, 4, floating=True)


def kept(robot: chasles.Robot, locked: list[str], slices: str) -> np.ndarray:
    """Return the indices of the coordinates that remain when joints are locked."""
    gone = {k for name in locked for k in range(1000)[getattr(robot, slices)(name)]}
    size = robot.nq if slices == "position_slice" else robot.nv
    return np.array([k for k in range(size) if k not in gone])


# Locking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("locked", [["joint2"], ["joint5", "joint9"], list(ROBOT.joints[:4])])
def test_a_locked_joint_leaves_rows_and_columns(locked: list[str]) -> None:
    """Mass matrix, gravity and bias forces of a locked robot are parts of those of the robot."""
    q, qd, _ = state(ROBOT, 1)
    part = ROBOT.lock({name: q[ROBOT.position_slice(name)] for name in locked})
    p, v = kept(ROBOT, locked, "position_slice"), kept(ROBOT, locked, "velocity_slice")
    assert part.joints == tuple(name for name in ROBOT.joints if name not in locked)
    close(Floats(part).mass_matrix(q[p]), Floats(ROBOT).mass_matrix(q)[np.ix_(v, v)], ROUNDING)
    close(Floats(part).gravity_forces(q[p]), Floats(ROBOT).gravity_forces(q)[v], ROUNDING)
    pose = Floats(ROBOT).forward_kinematics(q, frame="tip")
    close(Floats(part).forward_kinematics(q[p], frame="tip"), pose, ROUNDING)
    still = np.zeros_like(qd)
    still[v] = qd[v]
    close(Floats(part).bias_forces(q[p], qd[v]), Floats(ROBOT).bias_forces(q, still)[v], ROUNDING)


def test_locking_everything_leaves_a_rigid_body() -> None:
    q, _, _ = state(ROBOT, 2)
    part = ROBOT.lock({name: q[ROBOT.position_slice(name)] for name in ROBOT.joints})
    assert (part.nq, part.nv, part.joints) == (0, 0, ())
    pose = Floats(ROBOT).forward_kinematics(q, frame="tip")
    close(Floats(part).forward_kinematics([], frame="tip"), pose, ROUNDING)
    assert Floats(part).mass_matrix([]).shape == (0, 0)
    assert Floats(part).inverse_dynamics([], [], []).shape == (0,)


# Payloads --------------------------------------------------------------------------------------


def test_a_payload_adds_its_inertia_through_the_jacobian() -> None:
    """The mass matrix grows by J' I J, with Jacobian J and inertia I at the payload's frame."""
    q, qd, qdd = state(ROBOT, 3)
    m, c = 1.3, np.array([0.1, -0.2, 0.05])
    Ic = np.array([[0.03, 0.002, 0.001], [0.002, 0.04, -0.003], [0.001, -0.003, 0.05]])
    loaded = ROBOT.attach("tip", mass=m, center=c, inertia=Ic)
    cx = np.array([[0.0, -c[2], c[1]], [c[2], 0.0, -c[0]], [-c[1], c[0], 0.0]])
    spatial = np.block([[Ic + m * cx @ cx.T, m * cx], [m * cx.T, m * np.eye(3)]])
    J = ROBOT.jacobian(q, frame="tip", axes="frame", at="frame")
    M = ROBOT.mass_matrix(q) + J.T @ spatial @ J
    close(loaded.mass_matrix(q), M, ROUNDING)
    close(
        loaded.forward_kinematics(q, frame="payload"), ROBOT.forward_kinematics(q, frame="tip"), 0.0
    )
    # A payload acts like the negative of the wrench that accelerates it, at its center of mass.
    view = {"frame": "tip", "axes": "frame", "at": tuple(c)}
    a = ROBOT.frame_acceleration(q, qd, qdd, kind="proper", **view)
    w = ROBOT.frame_velocity(q, qd, **view)[:3]
    wrench = -np.concatenate([Ic @ a[:3] + np.cross(w, Ic @ w), m * a[3:]])
    f_ext = {"tip": chasles.Wrench(wrench, axes="frame", at=tuple(c))}
    tau = ROBOT.inverse_dynamics(q, qd, qdd, f_ext=f_ext)
    close(loaded.inverse_dynamics(q, qd, qdd), tau, ROUNDING)


# Parts -----------------------------------------------------------------------------------------


def test_a_subtree_is_the_block_of_the_mass_matrix() -> None:
    """The mass matrix of a subtree is a block of the whole; a floating base adds six rows."""
    q, _, _ = state(ROBOT, 4)
    link = ROBOT.joint("joint1").child
    part = ROBOT.subtree(link)
    assert part.joints
    v = np.concatenate([np.arange(ROBOT.nv)[ROBOT.velocity_slice(name)] for name in part.joints])
    p = np.concatenate([np.arange(ROBOT.nq)[ROBOT.position_slice(name)] for name in part.joints])
    close(Floats(part).mass_matrix(q[p]), Floats(ROBOT).mass_matrix(q)[np.ix_(v, v)], ROUNDING)
    loose = ROBOT.subtree(link, floating=True)
    assert loose.nv == part.nv + 6
    base = np.random.default_rng(4).normal(size=7)
    close(
        Floats(loose).mass_matrix([*base, *q[p]])[6:, 6:], Floats(part).mass_matrix(q[p]), ROUNDING
    )


# Gravity and the world frame -------------------------------------------------------------------


def test_gravity_is_linear() -> None:
    """Gravity forces are linear in gravity, and zero without gravity."""
    q, qd, qdd = state(ROBOT, 5)
    none = ROBOT.with_gravity((0.0, 0.0, 0.0))
    assert np.array_equal(Floats(none).gravity_forces(q), np.zeros(ROBOT.nv))
    total = Floats(none).inverse_dynamics(q, qd, qdd) + Floats(ROBOT).gravity_forces(q)
    close(Floats(ROBOT).inverse_dynamics(q, qd, qdd), total, ROUNDING)
    parts = sum(Floats(ROBOT.with_gravity(g)).gravity_forces(q) for g in np.diag([1.0, 2.0, 3.0]))
    close(Floats(ROBOT.with_gravity((1.0, 2.0, 3.0))).gravity_forces(q), parts, ROUNDING)


def test_gravity_is_an_upward_acceleration() -> None:
    """In free fall with zero joint torques, the base accelerates by g and the joints do not."""
    q, _, _ = state(FLOATING, 6)
    rest = np.zeros(FLOATING.nv)
    qdd = Floats(FLOATING).forward_dynamics(q, rest, rest)
    R = Floats(FLOATING).forward_kinematics(q, frame=FLOATING.joint("joint1").child)[:3, :3]
    expected = np.zeros(FLOATING.nv)
    expected[FLOATING.velocity_slice("joint1")] = [0.0, 0.0, 0.0, *(R.T @ FLOATING.gravity)]
    close(qdd, expected, 1e-9)


def test_no_place_and_no_direction_is_special() -> None:
    """Translating a floating robot and rotating it with gravity changes no joint torque."""
    robot = chasles.Robot(_unplaced(FLOATING))
    q, qd, qdd = state(robot, 7)
    rng = np.random.default_rng(8)
    turn, shift = rng.normal(size=4), rng.normal(size=3)
    turn /= np.linalg.norm(turn)
    A = np.array(matrix_from_quaternion(Vector(tuple(turn))).rows)
    moved = q.copy()
    where = robot.position_slice("joint1").start
    old = Vector(tuple(q[where : where + 4]))
    moved[where : where + 4] = list(quaternion_product(Vector(tuple(turn)), old))
    moved[where + 4 : where + 7] = A @ q[where + 4 : where + 7] + shift
    turned = robot.with_gravity(A @ robot.gravity)
    close(
        Floats(turned).inverse_dynamics(moved, qd, qdd),
        Floats(robot).inverse_dynamics(q, qd, qdd),
        ROUNDING,
    )
    close(
        Floats(turned).forward_dynamics(moved, qd, qdd),
        Floats(robot).forward_dynamics(q, qd, qdd),
        1e-9,
    )
    close(Floats(robot).mass_matrix(moved), Floats(robot).mass_matrix(q), ROUNDING)
    h = Floats(robot).momentum(q, qd, at="com")
    turned_h = np.concatenate([A @ h[:3], A @ h[3:]])
    close(Floats(robot).momentum(moved, qd, at="com"), turned_h, ROUNDING)
    close(
        Floats(robot).center_of_mass(moved), A @ Floats(robot).center_of_mass(q) + shift, ROUNDING
    )


def _unplaced(robot: chasles.Robot) -> chasles.model.Description:
    """Return the robot with its root joint placed at the world's origin."""
    source = robot.model.source
    root = replace(source.joints[0], pose=Transform.identity())
    return replace(source, joints=(root, *source.joints[1:]))


def test_the_scale_of_a_quaternion_does_not_matter() -> None:
    q, qd, qdd = state(FLOATING, 9)
    longer = q.copy()
    where = FLOATING.position_slice("joint1").start
    longer[where : where + 4] *= -3.7
    tau = Floats(FLOATING).inverse_dynamics(q, qd, qdd)
    close(Floats(FLOATING).inverse_dynamics(longer, qd, qdd), tau, ROUNDING)


# Mimic joints ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 6])
def test_followers_act_through_their_leaders(seed: int) -> None:
    """For q = G y + offsets, M is G'MG, tau is G'tau and h is G'h; reactions are unchanged."""
    coupled = random_tree(12, seed, floating=False, mimics=True)
    loose = chasles.Robot(coupled.model.source, mimic=False)
    followers = [body for body in coupled.model.bodies if body.follow is not None]
    assert followers
    y, yd, ydd = state(coupled, seed)
    G, q = np.zeros((loose.nv, coupled.nv)), np.zeros(loose.nq)
    for name in coupled.joints:
        a, b = loose.velocity_slice(name), coupled.velocity_slice(name)
        G[a, b] = np.eye(b.stop - b.start)
        q[loose.position_slice(name)] = y[coupled.position_slice(name)]
    for body in followers:
        leader = coupled.model.bodies[body.follow.leader].data.name
        row = loose.velocity_slice(body.data.name).start
        G[row, coupled.velocity_slice(leader).start] = body.follow.ratio
        value = y[coupled.position_slice(leader).start]
        q[loose.position_slice(body.data.name)] = body.follow.ratio * value + body.follow.offset
    qd, qdd = G @ yd, G @ ydd
    M = G.T @ Floats(loose).mass_matrix(q) @ G
    close(Floats(coupled).mass_matrix(y), M, ROUNDING)
    close(
        Floats(coupled).inverse_dynamics(y, yd, ydd),
        G.T @ Floats(loose).inverse_dynamics(q, qd, qdd),
        ROUNDING,
    )
    close(Floats(coupled).bias_forces(y, yd), G.T @ Floats(loose).bias_forces(q, qd), ROUNDING)
    tau = coupled.inverse_dynamics(y, yd, ydd)
    close(coupled.forward_dynamics(y, yd, tau), ydd, 1e-9)
    close(
        Floats(coupled).joint_reactions(y, yd, ydd),
        Floats(loose).joint_reactions(q, qd, qdd),
        ROUNDING,
    )
    J = Floats(loose).jacobian(q, frame="tip")
    close(Floats(coupled).jacobian(y, frame="tip"), J @ G, ROUNDING)
    rate = Floats(loose).jacobian_rate(q, qd, frame="tip")
    close(Floats(coupled).jacobian_rate(y, yd, frame="tip"), rate @ G, ROUNDING)
    A = Floats(loose).centroidal_momentum_matrix(q)
    close(Floats(coupled).centroidal_momentum_matrix(y), A @ G, ROUNDING)
    C = Floats(coupled).coriolis_matrix(y, yd)
    close(C @ yd, Floats(coupled).bias_forces(y, yd) - Floats(coupled).gravity_forces(y), ROUNDING)
    L, D = Floats(coupled).ltdl_factors(y)
    close(L.T @ np.diag(D) @ L, M, ROUNDING)
    close(M @ Floats(coupled).mass_matrix_inverse(y), np.eye(coupled.nv), 1e-9)
    close(Floats(coupled).kinetic_energy(y, yd), 0.5 * yd @ M @ yd, ROUNDING)
    with raises("E-CALL-071", "'mass-matrix'"):
        coupled.forward_dynamics(y, yd, ydd, method="articulated-body")


def test_locking_a_leader_locks_its_followers() -> None:
    coupled = random_tree(12, 1, floating=False, mimics=True)
    body = next(body for body in coupled.model.bodies if body.follow is not None)
    leader = coupled.model.bodies[body.follow.leader].data.name
    y, _, _ = state(coupled, 1)
    held = coupled.lock({leader: y[coupled.position_slice(leader)]})
    p = kept(coupled, [leader], "position_slice")
    pose = Floats(coupled).forward_kinematics(y, frame=body.name)
    close(Floats(held).forward_kinematics(y[p], frame=body.name), pose, ROUNDING)
    with raises("E-MODEL-036"):
        coupled.lock({body.data.name: 0.0})
