"""External wrenches, joint reactions, momentum and center of mass."""

import numpy as np
import pytest
from machines import VIEWS, Machine, matvec
from support import close, runner, state, tree, turned_rotors

import chasles

ROUNDING = 1e-11
DIFFERENCE = 1e-7


@pytest.mark.parametrize(("axes", "at"), VIEWS)
def test_wrench_acts_through_the_jacobian(compiled: Machine, axes: str, at: object) -> None:
    """tau = M qdd + h - J'F, with J and F in the same axes and at the same point."""
    q, qd, qdd = compiled.q, compiled.qd, compiled.qdd
    F = np.random.default_rng(5).normal(size=(len(q), 6))
    J = compiled.run("jacobian", q, frame="tip", axes=axes, at=at)
    moved = np.einsum("...ij,...i->...j", J, F)
    f_ext = {"tip": chasles.Wrench(F, axes=axes, at=at)}
    free = compiled.run("inverse_dynamics", q, qd, qdd)
    close(compiled.run("inverse_dynamics", q, qd, qdd, f_ext=f_ext), free - moved, ROUNDING)
    h = compiled.run("bias_forces", q, qd)
    close(compiled.run("bias_forces", q, qd, f_ext=f_ext), h - moved, ROUNDING)


def test_wrenches_add_up(machine: Machine) -> None:
    """Wrenches on different links act on forward dynamics like joint torques J'F."""
    q, qd, tau = machine.q, machine.qd, machine.qdd
    rng = np.random.default_rng(6)
    f_ext, moved = {}, np.zeros_like(tau)
    for frame in ("tip", "link2"):
        F = rng.normal(size=(len(q), 6))
        f_ext[frame] = F
        J = machine.run("jacobian", q, frame=frame, axes="world", at="frame")
        moved += np.einsum("...ij,...i->...j", J, F)
    pushed = machine.run("forward_dynamics", q, qd, tau, f_ext=f_ext)
    close(pushed, machine.run("forward_dynamics", q, qd, tau + moved), 1e-9)


def test_reactions_project_to_joint_forces(machine: Machine) -> None:
    """tau = S'f + armature qdd, where S is the joint's columns in the Jacobian of its link."""
    q, qd, qdd = machine.q, machine.qd, machine.qdd
    F = np.random.default_rng(7).normal(size=(len(q), 6))
    f_ext = {"tip": F}
    reactions = machine.run("joint_reactions", q, qd, qdd, f_ext=f_ext)
    tau = machine.run("inverse_dynamics", q, qd, qdd, f_ext=f_ext)
    assert reactions.shape == (len(q), len(machine.robot.joints), 6)
    turned = turned_rotors(machine.robot, qd)
    for k, name in enumerate(machine.robot.joints):
        data, where = machine.robot.joint(name), machine.robot.velocity_slice(name)
        J = machine.run("jacobian", q, frame=data.child, axes="frame", at="frame")
        projected = np.einsum("...ij,...i->...j", J[..., where], reactions[:, k])
        scale, rotor = float(np.max(np.abs(tau))), data.armature * qdd[:, where] + turned[:, where]
        close(projected + rotor, tau[:, where], ROUNDING, scale)


# Momentum --------------------------------------------------------------------------------------


def mass(robot: chasles.Robot) -> float:
    """Return the total mass of the moving bodies."""
    return float(sum(body.inertia.m for body in robot.model.bodies))


def test_momentum_is_the_centroidal_matrix_times_velocity(machine: Machine) -> None:
    h = machine.run("momentum", machine.q, machine.qd, at="com")
    A = machine.run("centroidal_momentum_matrix", machine.q)
    close(h, matvec(A, machine.qd), ROUNDING)


def test_momentum_at_two_points(machine: Machine) -> None:
    """Angular momentum about the world's origin is larger by c x p."""
    q, qd = machine.q, machine.qd
    at_com, at_world = (machine.run("momentum", q, qd, at=at) for at in ("com", "world"))
    c, p = machine.run("center_of_mass", q), at_com[:, 3:]
    close(at_world[:, :3], at_com[:, :3] + np.cross(c, p), ROUNDING)
    close(at_world[:, 3:], p, ROUNDING)


def test_linear_momentum_moves_the_center_of_mass(machine: Machine) -> None:
    rate = machine.rate(lambda q, qd: machine.run("center_of_mass", q))
    p = machine.run("momentum", machine.q, machine.qd, at="com")[:, 3:]
    close(p, mass(machine.robot) * rate, DIFFERENCE)


def test_potential_energy_is_that_of_the_center_of_mass(machine: Machine) -> None:
    c = machine.run("center_of_mass", machine.q)
    weight = mass(machine.robot) * machine.robot.gravity
    close(machine.run("potential_energy", machine.q), -c @ weight, ROUNDING)


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (1.0, -2.0, -9.0)])
def test_nothing_outside_changes_momentum_but_gravity(gravity: tuple[float, ...]) -> None:
    """In free fall, dp/dt = m g, and angular momentum about the com is constant."""
    robot = tree(9, 4, floating=True).with_gravity(gravity)
    run = runner(robot, "llvm")
    q, qd, tau = state(robot, 8, 2)
    tau[:, robot.velocity_slice("joint1")] = 0.0
    motion = Machine(robot, run, q, qd, run("forward_dynamics", q, qd, tau))
    rate = motion.rate(lambda q, qd: run("momentum", q, qd, at="com"))
    expected = np.broadcast_to([0.0, 0.0, 0.0, *(mass(robot) * np.array(gravity))], (2, 6))
    scale = float(np.max(np.abs(motion.qdd)))
    close(rate, expected, DIFFERENCE, scale)
