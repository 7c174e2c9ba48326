"""Floating bases agree with a free joint at the root (Featherstone 2008, sections 9.3 to 9.5).

Methods for floating bases agree to 1e-11 with methods that treat the base as a joint with six
degrees of freedom. The momentum is that of the composite body and of the joints. If the momentum is
zero, the joint velocities determine the motion of the base.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import close, direct, raises, relative, state, tree

import chasles
from chasles.robots import humanoid, puma560, quadruped, stanford_arm

ROBOTS = {
    "quadruped": quadruped,
    "humanoid": humanoid,
    "tree": lambda: tree(9, 4, floating=True),
    "mimics": lambda: tree(9, 12, floating=True, mimics=True),
    "rotor at the base": lambda: rotor_at_the_base(),
}
WRENCH = {"f_ext": {"tip": np.array([0.3, -0.2, 0.5, 4.0, 2.0, -3.0])}}


def rotor_at_the_base() -> chasles.Robot:
    """Return a tree with armature and damping on the free joint at its root."""
    source = tree(5, 3, floating=True).model.source
    first, *rest = source.joints
    assert first.kind == "free"
    joints = (replace(first, armature=0.4, damping=0.2), *rest)
    return chasles.Robot(replace(source, joints=joints))


def forces(robot: chasles.Robot) -> dict[str, Any]:
    return {"f_ext": {robot.frames[-1]: WRENCH["f_ext"]["tip"]}}


@pytest.mark.parametrize("name", [n for n in ROBOTS if n != "mimics"])
def test_forward_dynamics_is_that_of_the_free_joint(name: str) -> None:
    """Table 9.4 agrees with tables 7.1 and 9.5: the mass matrix has the blocks [I_0 F; F' H]."""
    robot = ROBOTS[name]()
    q, qd, tau = state(robot, 1)
    arrays = (robot.model, "forward_dynamics", q, qd, tau)
    found = direct(*arrays, method="floating-base", **forces(robot))
    for method in ("articulated-body", "mass-matrix"):
        close(found, direct(*arrays, method=method, **forces(robot)), 1e-11)


@pytest.mark.parametrize("name", ROBOTS)
def test_inverse_dynamics_is_the_hybrid_of_the_free_joint(name: str) -> None:
    """Base acceleration and joint torques of table 9.6 satisfy inverse dynamics."""
    robot = ROBOTS[name]()
    q, qd, given = state(robot, 2)
    base = robot.velocity_slice(robot.joints[0])
    options: dict[str, Any] = {"known": robot.joints[1:]} | forces(robot)
    found = direct(robot.model, "hybrid_dynamics", q, qd, given, method="floating-base", **options)
    close(
        found,
        direct(robot.model, "hybrid_dynamics", q, qd, given, method="mass-matrix", **options),
        1e-11,
    )
    tau, qdd = found.copy(), given.copy()
    tau[base], qdd[base] = given[base], found[base]
    balance = direct(robot.model, "inverse_dynamics", q, qd, qdd, **forces(robot))
    close(tau, balance, 1e-11)


@pytest.mark.parametrize("function", ["forward_dynamics", "hybrid_dynamics"])
def test_traced_methods_agree(function: str) -> None:
    """Compiled programs agree, although the fastest one regroups inertias and moves frames."""
    robot = quadruped()
    q, qd, x = state(robot, 3, 2)
    options = {"known": robot.joints[1:]} if function == "hybrid_dynamics" else {}
    fastest, *others = (
        chasles.compile(robot, function, backend="interpret", method=method, **options)(q, qd, x)
        for method in ("fastest", "floating-base", "articulated-body", "mass-matrix")
    )
    for other in others:
        close(other, fastest, 1e-11)


def test_composite_inertia_and_momentum() -> None:
    """I_0 v_0 + F qd is the momentum about the base's origin (example 9.3).

    The blocks of I_0 are given by the mass and the center of mass.
    """
    robot = tree(9, 4, floating=True)
    q, qd, _ = state(robot, 4)
    base = robot.bodies[0]
    blocks = robot.mass_matrix(q)[:6]
    momentum = blocks @ qd
    pose = robot.forward_kinematics(q, frame=base)
    R, r = pose[:3, :3], pose[:3, 3]
    world = robot.momentum(q, qd, at="world")
    close(R @ momentum[3:], world[3:], 1e-11)
    close(R @ momentum[:3] + np.cross(r, R @ momentum[3:]), world[:3], 1e-11)
    m = blocks[3, 3]
    close(blocks[3:, 3:6], m * np.eye(3), 1e-12)
    assert abs(m - robot.mass) < 1e-12 * m
    center = R.T @ (robot.center_of_mass(q) - r)
    x, y, z = m * center
    close(blocks[:3, 3:6], np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]), 1e-11)


# The generalized Jacobian ----------------------------------------------------------------------


@pytest.mark.parametrize("axes", ["world", "frame"])
@pytest.mark.parametrize("at", ["frame", "world", (0.1, -0.3, 0.2)])
@pytest.mark.parametrize("name", ["tree", "mimics"])
def test_generalized_jacobian_of_motions_without_momentum(name: str, axes: Any, at: Any) -> None:
    """If the total momentum is zero, J* qd equals J qd."""
    robot = ROBOTS[name]()
    q, qd, _ = state(robot, 5)
    view = {"frame": "tip", "axes": axes, "at": at}
    A = direct(robot.model, "centroidal_momentum_matrix", q)
    qd[:6] = np.linalg.solve(A[:, :6], -A[:, 6:] @ qd[6:])
    close(
        direct(robot.model, "momentum", q, qd), np.zeros(6), 1e-12, scale=float(np.max(np.abs(A)))
    )
    J = direct(robot.model, "generalized_jacobian", q, **view)
    assert not np.any(J[:, :6])
    close(J @ qd, direct(robot.model, "frame_velocity", q, qd, **view), 1e-10)
    assert relative(J, direct(robot.model, "jacobian", q, **view)) > 1e-3


def test_generalized_jacobian_moves_what_an_impulse_moves() -> None:
    """J* gives the velocity change of a frame that joint impulses cause on a robot at rest."""
    robot = quadruped()
    q, dqd, _ = state(robot, 6)
    M = robot.mass_matrix(q)
    dqd[:6] = -np.linalg.solve(M[:6, :6], M[:6, 6:] @ dqd[6:])  # no impulse on the base
    frame = robot.frames[-1]
    dv = robot.generalized_jacobian(q, frame=frame) @ dqd
    close(dv, robot.frame_velocity(q, dqd, frame=frame), 1e-11)


def test_a_held_base_does_not_recoil() -> None:
    arm = puma560()
    q = state(arm, 7, 3)[0]
    assert np.array_equal(arm.generalized_jacobian(q, frame="tool"), arm.jacobian(q, frame="tool"))


# Errors ----------------------------------------------------------------------------------------


def test_methods_for_floating_bases_refuse_others() -> None:
    arm, walker = puma560(), quadruped()
    zero = np.zeros(6)
    with raises("E-CALL-070"):
        arm.forward_dynamics(zero, zero, zero, method="floating-base")
    still = np.zeros(walker.nv)
    with raises("E-CALL-070"):
        walker.hybrid_dynamics(
            walker.neutral(), still, still, known=walker.joints[2:], method="floating-base"
        )


# Momentum in free fall -------------------------------------------------------------------------


def bracket(d: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return ad(d) v for the twist of the free joint, and zero for the other joints.

    Steps of the other joints are added, so their bracket is zero.
    """
    found = np.zeros_like(v)
    found[:3] = np.cross(d[:3], v[:3])
    found[3:6] = np.cross(d[:3], v[3:6]) + np.cross(d[3:6], v[:3])
    return found


def rate_of_step(d: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the rate of the step d along `integrate` at velocity v, for a fourth-order method."""
    turned = bracket(d, v)
    return v + turned / 2.0 + bracket(d, turned) / 12.0


def runge_kutta(robot: chasles.Robot, q: np.ndarray, v: np.ndarray, h: float) -> Any:
    """Take a fourth-order Runge-Kutta step on the configuration space (Munthe-Kaas 1999)."""
    none = np.zeros(robot.nv)
    d, w, steps, rates = none, v, [], []
    for ahead in (h / 2, h / 2, h, 0.0):
        steps.append(rate_of_step(d, w))
        rates.append(robot.forward_dynamics(robot.integrate(q, d), w, none))
        d, w = ahead * steps[-1], v + ahead * rates[-1]
    weights = np.array([1.0, 2.0, 2.0, 1.0]) * h / 6.0
    return robot.integrate(q, weights @ steps), v + weights @ rates


def test_momentum_in_free_fall() -> None:
    """In 10 s of free fall, L about the center of mass and p - m g t are constant to 1e-10."""
    arm = stanford_arm()
    robot = arm.subtree(arm.bodies[1], floating=True)
    rng = np.random.default_rng(8)
    q, v = robot.random(rng), rng.uniform(-1.0, 1.0, size=robot.nv)
    start, h, steps = robot.momentum(q, v), 2e-3, 5000
    for _ in range(steps):
        q, v = runge_kutta(robot, q, v, h)
    end = robot.momentum(q, v)
    close(end[:3], start[:3], 1e-10)
    fallen = start[3:] + robot.mass * robot.gravity * steps * h
    close(end[3:], fallen, 1e-10)
