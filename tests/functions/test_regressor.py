"""Regressor of joint torques, which are linear in inertial parameters, and base parameters."""

from dataclasses import replace

import numpy as np
import pytest
from support import TARGETS, close, raises, state, tree, turned_rotors

import chasles
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_rpy
from chasles.mathematics.spatial import Transform
from chasles.robots import general_chain, planar, puma560, quadruped, stanford_arm

ROUNDING = 1e-12


def rotor_forces(robot: chasles.Robot, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Return the part of the joint torques that is caused by armature and rotors."""
    armature = np.zeros(robot.nv)
    for i, body in enumerate(robot.model.bodies):
        ((leader, _, ratio),) = robot.model.shares(i)  # a follower's rotor rotates with its leader
        armature[robot.model.velocity_slices[leader]] += ratio**2 * body.data.armature
    return armature * qdd + turned_rotors(robot, qd)


TREES = {
    "fixed": {"floating": False},
    "floating": {"floating": True},
    "mimic": {"floating": False, "mimics": True},
}


@pytest.mark.parametrize(
    ("target", "name"),
    [*((t, "floating") for t in TARGETS), ("numpy", "fixed"), ("numpy", "mimic")],
)
def test_it_gives_inverse_dynamics(target: str, name: str) -> None:
    """Regressor times parameters gives inverse dynamics for all joints, even with fixed links."""
    robot = tree(9, 3, **TREES[name])
    q, qd, qdd = state(robot, 1, 3)
    Y = chasles.compile(robot, "regressor", backend=target)(q, qd, qdd)
    assert Y.shape == (3, robot.nv, 10 * len(robot.moving_joints))
    tau = chasles.compile(robot, "inverse_dynamics", backend=target)(q, qd, qdd)
    close(Y @ robot.inertial_parameters() + rotor_forces(robot, qd, qdd), tau, ROUNDING)


def test_a_link_whose_frame_is_not_at_its_joint() -> None:
    """Parameters refer to the link's frame, even if it is not at the joint, as in SDF files."""
    there = Transform.from_pose(matrix_from_rpy(0.3, -0.5, 0.8), Vector.of(0.11, -0.07, 0.05))
    source = tree(5, 2, floating=False).model.source
    joints = tuple(replace(joint, child_pose=there) for joint in source.joints)
    robot = chasles.Robot(replace(source, joints=joints))
    q, qd, qdd = state(robot, 4)
    tau = robot.regressor(q, qd, qdd) @ robot.inertial_parameters() + rotor_forces(robot, qd, qdd)
    close(tau, robot.inverse_dynamics(q, qd, qdd), ROUNDING)


def test_the_order_of_parameters() -> None:
    """Changing the mass data of a link changes its ten parameters as documented."""
    robot = tree(5, 2, floating=False)
    before = robot.inertial_parameters().reshape(-1, 10)
    for k, name in enumerate(robot.moving_joints):
        link = robot.joint(name).child
        mass, center = 1.7, np.array([0.1, -0.2, 0.3])
        inertia = np.array([[0.5, 0.01, -0.02], [0.01, 0.6, 0.03], [-0.02, 0.03, 0.7]])
        loaded = robot.attach(link, mass=mass, center=center, inertia=inertia)
        added = loaded.inertial_parameters().reshape(-1, 10) - before
        skew = np.cross(np.eye(3), center)
        about = inertia + mass * skew @ skew.T
        six = [about[i] for i in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        expected = np.zeros_like(before)
        expected[k] = [mass, *(mass * center), *six]
        close(added, expected, 1e-13)


def test_another_robot_with_the_same_joints() -> None:
    """The regressor depends only on the joints, so it applies to parameters of other robots."""
    robot = puma560()
    loaded = robot.attach("tool", mass=2.0, center=(0.1, 0.0, 0.2))
    q, qd, qdd = state(robot, 3)
    tau = robot.regressor(q, qd, qdd) @ loaded.inertial_parameters() + rotor_forces(robot, qd, qdd)
    close(tau, loaded.inverse_dynamics(q, qd, qdd), ROUNDING)


def test_a_body_acts_on_its_supporting_joints_only() -> None:
    walker = quadruped()
    model = walker.model
    Y = walker.regressor(*state(walker, 4)).reshape(walker.nv, -1, 10)
    for column, i in enumerate(model.in_file_order):
        for j, rows in model.velocity_slices.items():
            assert np.any(Y[rows, column]) == (j in model.support(i))


# Base parameters ---------------------------------------------------------------------------------


def upright(n: int) -> chasles.Robot:
    """Return a planar arm whose joint axes are parallel to gravity."""
    return planar(n).with_gravity((0.0, 9.81, 0.0))


COUNTS = {
    "puma560": (puma560, 7 * 6 - 6),
    "stanford_arm": (stanford_arm, 7 * 5 + 4 - 6),
    "general chain": (lambda: general_chain(4), 7 * 4 - 4),
    "one joint": (lambda: general_chain(1), 3),
    "planar": (lambda: planar(3), 3 * 3),
    "planar, no weight": (lambda: upright(3), 3 * 3 - 2),
    "floating": (quadruped, 10 + 12 * 7),
}
"""Robots and their numbers of base parameters. Each revolute joint has 7 and each prismatic joint
4, less 4 in total, or less 6 if the first axis is parallel to gravity (Mayeda, Yoshida, Osuka 1990;
Khalil, Dombre 2002, section 9.4). A planar arm has 3 per joint, less 2 without weight. A free body
has all 10.
"""


@pytest.mark.parametrize("name", COUNTS)
def test_their_number_and_what_they_do(name: str) -> None:
    make, count = COUNTS[name]
    robot = make()
    base = robot.base_parameters()
    assert len(base) == count
    assert base.largest_dropped < 1e-3 * base.tolerance < base.tolerance < base.smallest_kept
    q, qd, qdd = state(robot, 5, 4)
    values = base.values(robot.inertial_parameters())
    tau = robot.regressor(q, qd, qdd)[..., base.columns] @ values + rotor_forces(robot, qd, qdd)
    close(tau, robot.inverse_dynamics(q, qd, qdd), 1e-10)


def test_parameters_of_other_links_with_the_same_base_parameters() -> None:
    """Parameter changes in the null space of the base parameters do not change the torques."""
    robot = puma560()
    base = robot.base_parameters()
    unseen = np.linalg.svd(base.combination)[2][len(base) :]
    q, qd, qdd = state(robot, 6, 3)
    change = unseen.T @ np.random.default_rng(7).normal(size=len(unseen))
    Y = robot.regressor(q, qd, qdd)
    close(Y @ change, np.zeros((3, 6)), 1e-12, scale=float(np.max(np.abs(Y))))


ARMS = {
    "turning": [(0.4, 0.0, 0.0, 0.0), (0.7, 0.3, 1.0, 0.9)],
    "sliding": [(0.4, 0.0, 0.0, 0.0), (0.7, 0.3, 1.0, 0.9), (0.2, 0.5, 0.6, 1.1)],
}


def scaled(name: str, size: float, gravity: tuple[float, float, float]) -> chasles.Robot:
    """Return an arm with all lengths multiplied by `size`.

    The arm has two revolute joints, or also a prismatic third joint.
    """
    rows = [
        {
            "theta": theta,
            "d": d * size,
            "a": a * size,
            "alpha": alpha,
            "kind": "prismatic" if k == 2 else "revolute",
            "mass": 2.0 + k,
            "center": tuple(size * x for x in (0.3, 0.1 + 0.2 * k, -0.2)),
            "inertia": np.diag((0.3, 0.2, 0.4)) * size**2,
        }
        for k, (theta, d, a, alpha) in enumerate(ARMS[name])
    ]
    return chasles.from_dh(rows, convention="modified", gravity=gravity)


@pytest.mark.parametrize("gravity", [(0.0, -4.0, -9.0), (0.0, 0.0, 0.0)], ids=["weight", "none"])
@pytest.mark.parametrize("name", ARMS)
def test_size_does_not_matter(name: str, gravity: tuple[float, float, float]) -> None:
    """Arms scaled by factors from 1e-7 to 1e7 have the same base parameters."""
    kept = scaled(name, 1.0, gravity).base_parameters()
    if name == "turning" and any(gravity):
        assert len(kept) == 7 * 2 - 4
    for size in (1e-7, 1e-4, 1e4, 1e5, 1e7):
        robot = scaled(name, size, gravity)
        base = robot.base_parameters()
        assert base.columns.tolist() == kept.columns.tolist()
        assert base.smallest_kept == pytest.approx(kept.smallest_kept, rel=1e-6)
        q, qd, qdd = state(robot, 8, 4)
        slides = np.array([1.0, 1.0, size])[: robot.nv]
        q, qd, qdd = (slides * x for x in (q, qd, qdd))
        values = base.values(robot.inertial_parameters())
        tau = robot.regressor(q, qd, qdd)[..., base.columns] @ values
        expected = robot.inverse_dynamics(q, qd, qdd)
        for joint in range(robot.nv):
            close(tau[:, joint], expected[:, joint], 1e-10)


def test_wrong_tolerance() -> None:
    for bad in (0.0, 1.0, -1.0, float("nan")):
        with raises("E-CALL-004|E-ROBOT-020", "base_parameters"):
            planar(1).base_parameters(tolerance=bad)


def test_a_robot_without_joints() -> None:
    rigid = planar(1).lock({"joint1": 0.3})
    assert rigid.inertial_parameters().shape == (0,)
    assert rigid.regressor([], [], []).shape == (0, 0)
    assert len(rigid.base_parameters()) == 0
