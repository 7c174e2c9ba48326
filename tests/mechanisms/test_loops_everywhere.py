"""Check every public function for a robot with loops.

A function is valid for closed motions as it is, takes loops into account, or refuses loops. Each
new function of the robot, of `chasles` or of `chasles.control` needs a row here.
"""

import inspect
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.linalg
from mechanisms import constraint_forces, mechanism, motion
from support import Floats, close, raises

import chasles
from chasles import control
from chasles.algorithms import FUNCTIONS, OPEN
from chasles.contact import Sphere
from chasles.model import FrameData, LoopData, SensorData, gear
from chasles.model.machine import ActuatorData

NAME, FRAME = "five_bar", "tip"


class State(NamedTuple):
    """State that satisfies the loops, joint torques, and results of dense linear algebra."""

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    qdd: np.ndarray
    M: np.ndarray
    h: np.ndarray
    G: np.ndarray
    """Matrix in qd = G yd, from the null space of the loop matrix."""


def with_tip() -> chasles.Robot:
    """Return a five-bar with a frame at the pin that closes its loop."""
    source = mechanism(NAME).model.source
    (pin,) = source.loops
    return chasles.Robot(replace(source, frames=(FrameData(FRAME, str(pin.parent), pin.pose),)))


ROBOT = with_tip()
TREE = chasles.Robot(replace(ROBOT.model.source, loops=(), independent=()))


@cache
def state() -> State:
    q, qd, tau = (a[0] for a in motion(NAME))
    run = Floats(ROBOT)
    M, h, K, k = (
        run.mass_matrix(q),
        run.bias_forces(q, qd),
        run.loop_matrix(q),
        run.loop_bias(q, qd),
    )
    N = scipy.linalg.null_space(K, rcond=1e-10)
    free = [ROBOT.joints.index(name) for name in ROBOT.independent]
    G = N @ np.linalg.inv(N[free])
    return State(q, qd, tau, constraint_forces(M, h, K, k, tau), M, h, G)


# Checks ------------------------------------------------------------------------------------------

Check = Callable[[State], None]


def alike(name: str, *arguments: str, **options: Any) -> Check:
    """Return a check that a function gives the same result as for the tree without loops."""

    def check(s: State) -> None:
        arrays = [getattr(s, argument) for argument in arguments]
        mine, theirs = (getattr(robot, name)(*arrays, **options) for robot in (ROBOT, TREE))
        pairs = zip(mine, theirs, strict=True) if isinstance(mine, tuple) else [(mine, theirs)]
        for a, b in pairs:
            close(a, b, 1e-13)

    return check


def refused(call: Callable[[State], object], message: str) -> Check:
    """Return a check that a call raises an error with a message that names the remedy."""

    def check(s: State) -> None:
        with pytest.raises((ValueError, TypeError), match=message):
            call(s)

    return check


def itself(s: State) -> None:
    """Check that a robot that does not depend on time is the same at any time."""
    assert ROBOT.at(0.5) is ROBOT


def accelerations(s: State) -> None:
    close(ROBOT.forward_dynamics(s.q, s.qd, s.tau), s.qdd, 1e-10)
    close(ROBOT.constrained_dynamics(s.q, s.qd, s.tau)[0], s.qdd, 1e-10)


def linear(s: State) -> None:
    """Check the linearization in independent and in tree coordinates."""
    A, B = ROBOT.linearize(s.q, s.qd, s.tau)
    at = [ROBOT.velocity_slice(name).start for name in ROBOT.independent]
    n, h, y, yd = len(at), 1e-6, s.q[at], s.qd[at]

    def acceleration(change: np.ndarray) -> np.ndarray:
        q = ROBOT.assemble(y + change[:n], guess=s.q)
        qd = ROBOT.complete(q, yd + change[n:])
        return ROBOT.forward_dynamics(q, qd, s.tau)[at]

    steps = h * np.eye(2 * n)
    slopes = [(acceleration(e) - acceleration(-e)) / (2.0 * h) for e in steps]
    close(A, np.vstack([np.eye(n, 2 * n, n), np.transpose(slopes)]), 1e-7)
    close(B, np.vstack([np.zeros((2, 4)), np.linalg.solve(s.G.T @ s.M @ s.G, s.G.T)]), 1e-10)
    opened = ROBOT.linearize(s.q, s.qd, s.tau, coordinates="tree")
    for mine, theirs in zip(opened, TREE.linearize(s.q, s.qd, s.tau), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def mass_inverse(s: State) -> None:
    refused(
        lambda s: ROBOT.mass_matrix_inverse(s.q), 'coordinates="independent" or coordinates="tree"'
    )(s)
    found = ROBOT.mass_matrix_inverse(s.q, coordinates="independent")
    close(found, np.linalg.inv(s.G.T @ s.M @ s.G), 1e-10)
    np.testing.assert_array_equal(
        ROBOT.mass_matrix_inverse(s.q, coordinates="tree"), TREE.mass_matrix_inverse(s.q)
    )


def operational_inertia(s: State) -> None:
    J = ROBOT.jacobian(s.q, frame=FRAME) @ s.G
    expected = J @ np.linalg.solve(s.G.T @ s.M @ s.G, J.T)
    found = ROBOT.operational_inertia_inverse(s.q, frame=FRAME)
    close(found, expected, 1e-10)
    both = [FRAME, ROBOT.bodies[1]]
    J = np.vstack([ROBOT.jacobian(s.q, frame=name) for name in both]) @ s.G
    expected = J @ np.linalg.solve(s.G.T @ s.M @ s.G, J.T)
    close(ROBOT.operational_inertia_inverse(s.q, frame=both), expected, 1e-10)
    with pytest.raises(ValueError, match="method 'projection' applies only to trees"):
        ROBOT.operational_inertia_inverse(s.q, frame=FRAME, method="projection")


def reactions(s: State) -> None:
    """Check that each joint transmits exactly its own torque along its axis."""
    refused(lambda s: ROBOT.joint_reactions(s.q, s.qd, s.qdd), "pass `multipliers`")(s)
    qdd, lam = ROBOT.constrained_dynamics(s.q, s.qd, s.tau)
    f_ext = {FRAME: [0.1, 0.2, 0.3, 1.0, -2.0, 0.5]}
    found = ROBOT.joint_reactions(s.q, s.qd, qdd, multipliers=lam)
    close(found[:, 2], s.tau, 1e-9)
    unloaded = ROBOT.joint_reactions(s.q, s.qd, qdd, multipliers=0.0 * lam)
    close(unloaded[:, 2], TREE.inverse_dynamics(s.q, s.qd, qdd), 1e-9)
    pushed = ROBOT.constrained_dynamics(s.q, s.qd, s.tau, f_ext=f_ext)
    loaded = ROBOT.joint_reactions(s.q, s.qd, pushed[0], multipliers=pushed[1], f_ext=f_ext)
    close(loaded[:, 2], s.tau, 1e-9)


def forces_of_actuators(s: State) -> None:
    """Check that inverse dynamics is that of the tree, or satisfies G' u = G' tau at actuators."""
    alike("inverse_dynamics", "q", "qd", "qdd")(s)
    u = ROBOT.inverse_dynamics(s.q, s.qd, s.qdd, actuated=ROBOT.independent)
    close(s.G.T @ u, s.G.T @ s.tau, 1e-9)


def mixed(s: State) -> None:
    """Check that results do not depend on which joints have known accelerations.

    Velocities that violate the loops are refused.
    """
    for known in (ROBOT.joints[:1], ROBOT.independent, ROBOT.joints[1:]):
        there = [ROBOT.joints.index(name) for name in known]
        given, expected = s.tau.copy(), s.qdd.copy()
        given[there], expected[there] = s.qdd[there], s.tau[there]
        found = ROBOT.hybrid_dynamics(s.q, s.qd, given, known=known)
        alone = np.delete(np.arange(ROBOT.nv), there)
        close(found[alone], expected[alone], 1e-9)
        forces = np.where(np.isin(np.arange(ROBOT.nv), there), found, s.tau)
        close(s.G.T @ forces, s.G.T @ s.tau, 1e-9)
        with pytest.raises(chasles.OpenLoop, match="hybrid_dynamics: qd does not keep the loops"):
            ROBOT.hybrid_dynamics(s.q, s.qd + 0.1 * np.eye(4)[0], given, known=known)


def driving(s: State) -> None:
    """Check that driving forces require multipliers. `test_time_in_loops` checks the values."""
    refused(lambda s: ROBOT.driving_forces(s.q, s.qd, s.qdd), "pass `multipliers`, the second")(s)
    assert ROBOT.driving_forces(s.q, s.qd, s.qdd, np.zeros(ROBOT.model.loop_rows)).shape == (0,)


def equivalence(s: State) -> None:
    """Check which robots are equivalent.

    Regrouped inertias and a weaker loop joint keep equivalence. Open loops, other lengths, other
    couplings and other masses do not.
    """
    source = ROBOT.model.source
    (loop,) = source.loops
    ball = chasles.Robot(replace(source, loops=(replace(loop, kind="sphere_in_cylinder"),)))
    assert ROBOT.is_equivalent(ROBOT.simplified())
    assert ROBOT.is_equivalent(ball)
    assert not ROBOT.is_equivalent(TREE)
    assert not TREE.is_equivalent(ROBOT)
    assert not ROBOT.is_equivalent(chasles.robots.five_bar(1.1))
    assert not ROBOT.is_equivalent(ROBOT.with_couplings(gear("belt", "left", {"right": -1.0}, 2.9)))
    assert not ROBOT.is_equivalent(ROBOT.attach(FRAME, mass=0.1))


def conditioned(s: State) -> None:
    assert chasles.condition(ROBOT, s.q) == pytest.approx(np.linalg.cond(s.G.T @ s.M @ s.G))
    assert chasles.condition(ROBOT, s.q, coordinates="tree") == pytest.approx(np.linalg.cond(s.M))


def costs(s: State) -> None:
    """Check that forward dynamics costs as much as constrained dynamics, which it runs."""
    runs = chasles.cost(ROBOT, "constrained_dynamics")
    assert chasles.cost(ROBOT, "forward_dynamics") == runs
    assert runs.weight > chasles.cost(TREE, "forward_dynamics").weight
    refused(lambda s: chasles.cost(ROBOT, "hybrid_dynamics"), "would violate; call")(s)


def compiled(s: State) -> None:
    found = chasles.compile(ROBOT, "constrained_dynamics", backend="numpy")(s.q, s.qd, s.tau)
    close(found[0], s.qdd, 1e-10)


def maximal(s: State) -> None:
    close(chasles.maximal_dynamics(ROBOT, s.q, s.qd, s.tau)[0], s.qdd, 1e-9)
    with pytest.raises(chasles.OpenLoop, match="qd violates the loop constraints by"):
        chasles.maximal_dynamics(ROBOT, s.q, s.qd + 0.1 * np.eye(4)[0], s.tau)


def task_dynamics(s: State) -> None:
    """Check that f = Lambda xdd + bias for joint torques J' f."""
    Lambda, bias = control.operational_dynamics(
        ROBOT, s.q, s.qd, frame=FRAME, task="position", damping=1e-3
    )
    J, Jd = (
        x[3:]
        for x in (ROBOT.jacobian(s.q, frame=FRAME), ROBOT.jacobian_rate(s.q, s.qd, frame=FRAME))
    )
    f = np.array([0.7, -0.4, 0.0])
    qdd = ROBOT.forward_dynamics(s.q, s.qd, J.T @ f)
    xdd = J @ qdd + Jd @ s.qd
    plane = slice(0, 2)  # normal to the plane, nothing moves; damping keeps Lambda finite
    close((Lambda @ xdd + bias)[plane], f[plane], 1e-4)
    refused(
        lambda s: control.operational_dynamics(ROBOT, s.q, s.qd, frame=FRAME),
        "task 'twist' has 6 rows, but robot 'five_bar' has 2 degrees of freedom",
    )(s)


def feedback(s: State) -> None:
    """Check that each independent error behaves as a separate damped oscillator."""
    wanted = motion(NAME)[0][1]
    rate, acceleration = ROBOT.complete(wanted, [0.3, -0.2], [1.0, 0.5])
    stiffness, damping = np.array([9.0, 4.0]), 5.0
    law = {"stiffness": stiffness, "damping": damping}
    tau = control.computed_torque(ROBOT, s.q, s.qd, wanted, rate, acceleration, **law)
    free = [ROBOT.joints.index(name) for name in ROBOT.independent]
    assert not np.any(np.delete(tau, free))
    ydd = ROBOT.forward_dynamics(s.q, s.qd, tau)[free]
    e, edot = (wanted - s.q)[free], (rate - s.qd)[free]
    close(ydd, acceleration[free] + damping * edot + stiffness * e, 1e-9)
    others = control.computed_torque(
        ROBOT, s.q, s.qd, wanted, rate, acceleration, **law, actuated=["left", "left_coupler"]
    )
    close(s.G.T @ others, s.G.T @ tau, 1e-9)
    with pytest.raises(chasles.OpenLoop, match="computed_torque: q_wanted: the loops are open"):
        control.computed_torque(ROBOT, s.q, s.qd, wanted + 0.1, rate, acceleration, **law)


# Descriptions of a robot --------------------------------------------------------------------------


def closed(robot: chasles.Robot, q: np.ndarray) -> None:
    assert np.abs(robot.loop_residual(q)).max() < 1e-12


def described(s: State) -> None:
    """Check that joint names and indices are those of the tree."""
    for k, name in enumerate(ROBOT.joints):
        assert ROBOT.joint(name) == TREE.joint(name)
        assert ROBOT.position_slice(name) == ROBOT.velocity_slice(name) == slice(k, k + 1)
    refused(lambda s: ROBOT.joint("pin"), "'pin'")(s)
    close(ROBOT.parameter("left.mass"), TREE.parameter("left.mass"), 1e-15)
    np.testing.assert_array_equal(ROBOT.parameter("gravity"), ROBOT.gravity)


def placed(s: State) -> None:
    """Check configurations by name and random configurations, which do not close the loops."""
    q = ROBOT.state(dict(zip(ROBOT.joints, s.q, strict=True)))
    np.testing.assert_array_equal(q, s.q)
    np.testing.assert_array_equal(ROBOT.state({"left": 0.3}, default=s.q)[1:], s.q[1:])
    anywhere = ROBOT.random(0, size=4)
    np.testing.assert_array_equal(anywhere, TREE.random(0, size=4))
    assert np.abs(ROBOT.loop_residual(anywhere)).max() > 0.1


# Modifications of a robot -------------------------------------------------------------------------


def locked(s: State) -> None:
    """Check that locking a crank leaves one degree of freedom and keeps the loop closed."""
    held = ROBOT.lock({"left": s.q[0]})
    assert (held.nv, held.mobility(s.q[1:])) == (3, 1)
    closed(held, s.q[1:])


def loaded(s: State) -> None:
    """Check that a payload at the pin adds to the mass matrix and keeps the loop closed."""
    heavy = ROBOT.attach(FRAME, mass=0.5)
    J = ROBOT.jacobian(s.q, frame=FRAME)[3:]
    more = s.M + 0.5 * J.T @ J
    close(heavy.mass_matrix(s.q), more, 1e-12)
    found = heavy.forward_dynamics(s.q, s.qd, s.tau)
    close(ROBOT.loop_matrix(s.q) @ found, ROBOT.loop_bias(s.q, s.qd), 1e-10)
    assert np.abs(found - s.qdd).max() > 1e-3


def driven(s: State) -> None:
    """Check that a crank driven in time leaves one degree of freedom and a closed loop."""
    angle, rate = s.q[0], s.qd[0]
    clock = ROBOT.drive({"left": lambda t: angle + rate * t})
    assert (clock.nv, clock.model.timed) == (3, True)
    now = clock.at_time(0.0)
    closed(now, s.q[1:])
    (moving,) = now.independent
    close(now.complete(s.q[1:], s.qd[[ROBOT.joints.index(moving)]]), s.qd[1:], 1e-9)
    later = clock.at_time(0.01).loop_residual(s.q[1:])
    assert np.abs(later).max() > 1e-4 * abs(rate)


def cut(s: State) -> None:
    """Check that `subtree` keeps loops within the part, and removes others with a note."""
    part = ROBOT.subtree("left")
    assert not part.model.loops
    assert any("'pin' is removed" in note for note in part.notes)
    whole = ROBOT.subtree(ROBOT.bodies[0])
    assert [loop.name for loop in whole.model.source.loops] == ["pin"]
    closed(whole, s.q)


def weightless(s: State) -> None:
    """Check that nothing moves without gravity, and that gravity forces scale with gravity."""
    floating = ROBOT.with_gravity([0.0, 0.0, 0.0])
    np.testing.assert_array_equal(floating.forward_dynamics(s.q, 0 * s.q, 0 * s.q), 0 * s.q)
    lower = ROBOT.with_gravity(ROBOT.gravity / 2.0)
    close(lower.gravity_forces(s.q), ROBOT.gravity_forces(s.q) / 2.0, 1e-12)


def chosen(s: State) -> None:
    """Check that other independent coordinates give the same motion."""
    other = ROBOT.with_independent("left", "left_coupler")
    assert other.independent == ("left", "left_coupler")
    close(other.complete(s.q, s.qd[:2]), s.qd, 1e-9)
    close(other.forward_dynamics(s.q, s.qd, s.tau), s.qdd, 1e-9)


def closed_more(s: State) -> None:
    """Check that a gear removes one degree of freedom.

    The tree with the loop added is equal to the robot.
    """
    (pin,) = ROBOT.model.source.loops
    again = TREE.with_loops(pin)
    close(again.forward_dynamics(s.q, s.qd, s.tau), s.qdd, 1e-10)
    belt = gear("belt", "left", {"right": -1.0}, s.q[0] + s.q[2])
    geared = ROBOT.with_couplings(belt)
    assert geared.mobility(s.q) == ROBOT.mobility(s.q) - 1
    assert [c.loops for c in geared.loop_clusters()] == [("pin", "belt")]


# Loops --------------------------------------------------------------------------------------------


def free_motions(s: State) -> None:
    """Check that mobility is nv minus the rank of the loop matrix."""
    assert ROBOT.mobility(s.q) == ROBOT.nv - np.linalg.matrix_rank(ROBOT.loop_matrix(s.q), 1e-9)
    assert TREE.mobility() == TREE.nv
    ((loops, joints),) = ROBOT.loop_clusters()
    assert (loops, joints) == (("pin",), ROBOT.joints)


def reached(s: State) -> None:
    """Check that inverse kinematics reaches a target and closes the loops."""
    T = ROBOT.forward_kinematics(s.q, frame=FRAME)
    found = ROBOT.inverse_kinematics({FRAME: T}, guess=s.q + 0.01)
    assert found.solved
    close(ROBOT.forward_kinematics(found.q, frame=FRAME), T, 1e-5)
    assert np.abs(ROBOT.loop_residual(found.q)).max() < 1e-10


def apart(s: State) -> None:
    """Check that distances are those of the tree, with spheres at the ends of the linkage."""
    shapes = [Sphere("left", 0.01), Sphere("right_coupler", 0.02)]
    mine, theirs = (robot.distance(s.q, shapes=shapes).distance for robot in (ROBOT, TREE))
    ends = [ROBOT.forward_kinematics(s.q, frame=sphere.frame)[:3, 3] for sphere in shapes]
    close(mine, theirs, 1e-13)
    close(np.min(mine), np.linalg.norm(ends[0] - ends[1]) - 0.03, 1e-12)


def resolved(s: State) -> None:
    """Check that resolved rates move the frame as desired and keep the loop closed."""
    step = control.resolved_rate(ROBOT, {FRAME: "position"}, dt=1e-3, damping=1e-4)
    wanted = ROBOT.frame_velocity(s.q, s.qd, frame=FRAME)[3:]
    qd = step(s.q, s.qd, wanted)
    close(ROBOT.loop_matrix(s.q) @ qd, np.zeros(len(ROBOT.loop_matrix(s.q))), 1e-7, scale=1.0)
    close(ROBOT.frame_velocity(s.q, qd, frame=FRAME)[3:], wanted, 1e-4)


def assembled(s: State) -> None:
    """Check that the pin has the same position in both chains, and that rates keep it so."""
    free = [ROBOT.joints.index(name) for name in ROBOT.independent]
    moved = s.q[free] + 0.05
    q = ROBOT.assemble(moved, guess=s.q)
    np.testing.assert_array_equal(q[free], moved)
    (pin,) = ROBOT.model.source.loops
    at = np.array([*pin.pose.r, 1.0])
    here, there = (ROBOT.forward_kinematics(q, frame=str(f)) for f in (pin.parent, pin.child))
    close(here @ at, there @ np.array([*pin.child_pose.r, 1.0]), 1e-12)
    qd, qdd = ROBOT.complete(s.q, s.qd[free], s.qdd[free])
    close(qd, s.qd, 1e-9)
    close(qdd, s.qdd, 1e-9)


def equations(s: State) -> None:
    """Check that A qd = b for closed motions, and that A is the derivative of the residual."""
    A = ROBOT.loop_matrix(s.q)
    closed(ROBOT, s.q)
    np.testing.assert_array_equal(ROBOT.loop_rate(s.q), np.zeros(5))
    assert np.abs(A @ s.qd).max() < 1e-12
    close(A @ s.qdd, ROBOT.loop_bias(s.q, s.qd), 1e-10)
    h = 1e-6 * np.eye(4)
    slopes = (ROBOT.loop_residual(s.q + h) - ROBOT.loop_residual(s.q - h)).T / 2e-6
    close(A, slopes, 1e-8)


def in_the_pin(s: State) -> None:
    """Check the pin's rate, which is the relative rate of its links, and its wrench."""
    turns = ROBOT.loop_joint_matrix(s.q) @ s.qd
    close(np.abs(turns), np.abs([s.qd[0] + s.qd[1] - s.qd[2] - s.qd[3]]), 1e-10)
    _, lam = ROBOT.constrained_dynamics(s.q, s.qd, s.tau)
    (wrench,) = ROBOT.loop_forces(s.q, lam)
    assert abs(wrench[2]) < 1e-9 * np.abs(wrench).max()
    (pin,) = ROBOT.model.source.loops
    motions = []
    for link, at in ((pin.parent, pin.pose.r), (pin.child, pin.child_pose.r)):
        motions.append(ROBOT.jacobian(s.q, frame=str(link), at=tuple(at), axes="world"))
    R = ROBOT.forward_kinematics(s.q, frame=str(pin.child))[:3, :3]
    turned = np.concatenate([R @ wrench[:3], R @ wrench[3:]])
    close((motions[1] - motions[0]).T @ turned, ROBOT.loop_matrix(s.q).T @ lam, 1e-9)


def identifiable(s: State) -> None:
    """Check that a subset of the parameters determines the torques of closed motions."""
    found, parameters = ROBOT.base_parameters(), ROBOT.inertial_parameters().reshape(-1)
    assert 0 < len(found.columns) < len(parameters)
    Y = s.G.T @ ROBOT.regressor(s.q, s.qd, s.qdd)
    close(Y[:, found.columns] @ found.values(parameters), s.G.T @ s.tau, 1e-9)


# Tools for a robot --------------------------------------------------------------------------------


def verified(s: State) -> None:
    """Check that `verify` succeeds and includes checks of loops."""
    found = chasles.verify(ROBOT, states=1)
    assert found.ok, found.failures
    assert any("loop" in result.check for result in found.results)
    assert found.results == ROBOT.verify(states=1).results


def shown(s: State) -> None:
    """Check that loops stay closed when a slider of the viewer moves a joint."""
    pytest.importorskip("viser", reason="the viewer needs viser (extra view)")
    from chasles.view import posture

    left, right = (ROBOT.joints.index(name) for name in ROBOT.independent)
    q = posture.moved(ROBOT, s.q, left, s.q[left] + 0.2)
    closed(ROBOT, q)
    assert q[left] == pytest.approx(s.q[left] + 0.2)
    assert q[right] == pytest.approx(s.q[right])


def compared(s: State) -> None:
    """Check that MuJoCo agrees, including the loop."""
    pytest.importorskip("mujoco", reason="the comparison needs MuJoCo")
    found = chasles.compare(ROBOT, "mujoco")
    assert found.ok
    assert "loops" in dict(found.terms)


def from_rows(s: State) -> None:
    """Check that an arm from Denavit-Hartenberg parameters accepts a coupling."""
    arm = chasles.from_dh(np.array([[0.0, 0.0, 1.0, 0.0]] * 3), convention="modified")
    assert arm.mobility() == 3
    belt = gear("belt", arm.joints[0], {arm.joints[1]: 2.0})
    assert arm.with_couplings(belt).mobility(np.zeros(3)) == 2


def kept(s: State) -> None:
    """Check that a saved and reloaded robot moves as before, and that lint finds no errors."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "five_bar.toml"
        chasles.save(ROBOT, path)
        again, found = chasles.load(path), chasles.lint(path)
        refused(lambda s: chasles.save(ROBOT, path.with_suffix(".urdf")), "pin")(s)
    close(again.forward_dynamics(s.q, s.qd, s.tau), s.qdd, 1e-10)
    assert not [f for f in found if f.severity == "error"]


def simulated(s: State) -> None:
    """Check that a simulation conserves energy and keeps the loops closed."""
    run = ROBOT.simulate(s.q, s.qd, duration=0.1, dt=1e-3)
    assert not run.compiled
    assert "loops" in run.why
    energy = ROBOT.kinetic_energy(run.q, run.qd) + ROBOT.potential_energy(run.q)
    close(energy, np.full_like(energy, energy[0]), 1e-8)
    assert np.abs(ROBOT.loop_residual(run.q)).max() < 1e-9
    assert np.abs(run.q[-1] - s.q).max() > 1e-2


def task(s: State) -> None:
    """Check that task functions are those of the tree, and that J qd is the frame's velocity."""
    for name, arrays in (
        ("task_coordinates", (s.q,)),
        ("task_jacobian", (s.q,)),
        ("task_jacobian_rate", (s.q, s.qd)),
    ):
        mine, theirs = (
            getattr(control, name)(robot, *arrays, frame=FRAME, task="position")
            for robot in (ROBOT, TREE)
        )
        close(mine, theirs, 1e-13)
    J = control.task_jacobian(ROBOT, s.q, frame=FRAME, task="position")
    close(J @ s.qd, ROBOT.frame_velocity(s.q, s.qd, frame=FRAME)[3:], 1e-12)


def explained(s: State) -> None:
    """Check that `explain` uses constrained dynamics and refuses functions that ignore loops."""
    assert ROBOT.explain("forward_dynamics").function == "constrained_dynamics"
    refused(lambda s: ROBOT.explain("mass_matrix_inverse"), "would violate")(s)


def sprung(s: State) -> None:
    """Check that joint springs enter the dynamics with loops."""
    source, stiffness = ROBOT.model.source, np.arange(2.0, 2.0 + ROBOT.nv)
    pairs = zip(source.joints, stiffness, strict=True)
    joints = tuple(replace(joint, stiffness=float(k)) for joint, k in pairs)
    robot, run = chasles.Robot(replace(source, joints=joints)), Floats(ROBOT)
    forces = stiffness * s.q
    close(robot.spring_forces(s.q), forces, 1e-13)
    K, k = run.loop_matrix(s.q), run.loop_bias(s.q, s.qd)
    right = constraint_forces(s.M, s.h + forces, K, k, s.tau)
    close(robot.forward_dynamics(s.q, s.qd, s.tau), right, 1e-10)


def actuated(s: State) -> None:
    """Check that actuator forces act along the joints of the tree, independent of loops."""
    name = ROBOT.independent[0]
    motor = ActuatorData("motor", "joint", name, gear=(3.0,), dynamics="filter", constant=0.5)
    robot = chasles.Robot(replace(ROBOT.model.source, actuators=(motor,)))
    np.testing.assert_array_equal(robot.activations(), [0.0])
    force = np.where([joint == name for joint in ROBOT.joints], 3.0 * 0.7, 0.0)
    close(robot.actuate(s.q, s.qd, [2.0], [0.7]), force, 1e-14)
    close(robot.activation_rate(s.q, s.qd, [2.0], [0.7]), [(2.0 - 0.7) / 0.5], 1e-14)


def sensed(s: State) -> None:
    """Check that motion sensors measure the same as in the tree."""
    sensor = SensorData("imu", "accelerometer", FRAME)
    mine, theirs = (robot.with_sensors(sensor) for robot in (ROBOT, TREE))
    assert mine.sensor("imu") == sensor
    found, right = (robot.sense(s.q, s.qd, s.qdd)["imu"] for robot in (mine, theirs))
    close(found, right, 1e-13)
    assert not mine.without_sensors("imu").sensors


def with_numbers(s: State) -> None:
    """Check that new link parameters change the mass matrix but not the loops."""
    mine, theirs = (
        robot.with_parameters({f"{robot.bodies[-1]}.mass": 7.0}) for robot in (ROBOT, TREE)
    )
    close(mine.mass_matrix(s.q), theirs.mass_matrix(s.q), 1e-13)
    assert np.abs(mine.mass_matrix(s.q) - s.M).max() > 1e-3
    close(mine.loop_matrix(s.q), ROBOT.loop_matrix(s.q), 1e-13)


def identified(s: State) -> None:
    """Check that identified parameters reproduce the torques of closed motions."""
    q, qd, tau = motion(NAME)
    qdd = ROBOT.forward_dynamics(q, qd, tau)
    given = q, qd, qdd, ROBOT.inverse_dynamics(q, qd, qdd)
    names = ("q", "qd", "qdd", "tau")
    with pytest.warns(UserWarning, match="too few|excites"):  # harmless for the torques
        found = chasles.identify(ROBOT, **dict(zip(names, given, strict=True)), include=["inertia"])
    assert found.validate(*given).max() < 1e-6 * np.abs(given[3]).max()


# Tables of checks ---------------------------------------------------------------------------------


def packed(s: State) -> None:
    """Check the packed entries of the mass matrix."""
    M = np.zeros((ROBOT.nv, ROBOT.nv))
    M[ROBOT.packed_entries("mass_matrix")] = ROBOT.mass_matrix(s.q, packed=True)
    np.testing.assert_array_equal(M, np.tril(ROBOT.mass_matrix(s.q)))


def graphed(s: State) -> None:
    """Check that GPU graphs are refused, because loops are solved on the CPU."""
    with pytest.raises(chasles.ChaslesError):
        ROBOT.graph("forward_dynamics", 4)


FUNCTIONS_OF_THE_ROBOT: dict[str, Check] = {
    "spring_forces": sprung,
    "actuate": actuated,
    "activation_rate": actuated,
    "activations": actuated,
    "sense": sensed,
    "sensor": sensed,
    "with_sensors": sensed,
    "without_sensors": sensed,
    "with_parameters": with_numbers,
    "packed_entries": packed,
    "graph": graphed,
    "joint": described,
    "position_slice": described,
    "velocity_slice": described,
    "parameter": described,
    "lock": locked,
    "attach": loaded,
    "drive": driven,
    "at": itself,
    "at_time": driven,
    "subtree": cut,
    "with_gravity": weightless,
    "simplified": equivalence,
    "is_equivalent": equivalence,
    "with_independent": chosen,
    "with_loops": closed_more,
    "with_couplings": closed_more,
    "neutral": alike("neutral"),
    "clip": alike("clip", "q"),
    "within": alike("within", "q"),
    "distance": apart,
    "collision_pairs": apart,
    "enclosing_shapes": refused(lambda s: ROBOT.enclosing_shapes(), "no collision shapes"),
    "state": placed,
    "random": placed,
    "integrate": alike("integrate", "q", "qd"),
    "difference": alike("difference", "q", "q"),
    "forward_kinematics": alike("forward_kinematics", "q", frame=FRAME),
    "frame_velocity": alike("frame_velocity", "q", "qd", frame=FRAME),
    "frame_acceleration": alike("frame_acceleration", "q", "qd", "qdd", frame=FRAME),
    "frame_motion": alike("frame_motion", "q", "qd", "qdd", frame=FRAME),
    "jacobian": alike("jacobian", "q", frame=FRAME),
    "generalized_jacobian": alike("generalized_jacobian", "q", frame=FRAME),
    "jacobian_rate": alike("jacobian_rate", "q", "qd", frame=FRAME),
    "joint_motion_matrices": alike("joint_motion_matrices", "q", "qd", frame=FRAME),
    "motion_matrices": alike("motion_matrices", "q", "qd", "qdd", frame=FRAME),
    "mobility": free_motions,
    "loop_clusters": free_motions,
    "assemble": assembled,
    "inverse_kinematics": reached,
    "complete": assembled,
    "loop_residual": equations,
    "loop_matrix": equations,
    "loop_rate": equations,
    "loop_bias": equations,
    "loop_joint_matrix": in_the_pin,
    "loop_forces": in_the_pin,
    "constrained_dynamics": accelerations,
    "forward_dynamics": accelerations,
    "inverse_dynamics": forces_of_actuators,
    "hybrid_dynamics": mixed,
    "gravity_forces": alike("gravity_forces", "q"),
    "bias_forces": alike("bias_forces", "q", "qd"),
    "coriolis_matrix": alike("coriolis_matrix", "q", "qd"),
    "closed_form": alike("closed_form", "q"),
    "mass_matrix": alike("mass_matrix", "q"),
    "mass_matrix_inverse": mass_inverse,
    "operational_inertia_inverse": operational_inertia,
    "ltdl_factors": alike("ltdl_factors", "q"),
    "ltl_factor": alike("ltl_factor", "q"),
    "operator_factors": alike("operator_factors", "q"),
    "joint_reactions": reactions,
    "driving_forces": driving,
    "inverse_dynamics_sensitivities": alike("inverse_dynamics_sensitivities", "q", "qd", "qdd"),
    "linearize": linear,
    "rollout": refused(
        lambda s: ROBOT.rollout(s.q, s.qd, dt=1e-3, steps=1),
        "has closed loops; use chasles.simulate",
    ),
    "rollout_pullback": refused(
        lambda s: ROBOT.rollout_pullback(s.q, s.qd, covectors=(None, None), dt=1e-3, steps=1),
        "has closed loops; use chasles.simulate",
    ),
    "simulate": simulated,
    "inertial_parameters": alike("inertial_parameters"),
    "regressor": alike("regressor", "q", "qd", "qdd"),
    "base_parameters": identifiable,
    "kinetic_energy": alike("kinetic_energy", "q", "qd"),
    "potential_energy": alike("potential_energy", "q"),
    "center_of_mass": alike("center_of_mass", "q"),
    "momentum": alike("momentum", "q", "qd"),
    "centroidal_momentum_matrix": alike("centroidal_momentum_matrix", "q"),
    "show": shown,
    "verify": verified,
    "explain": explained,
    "derivatives": refused(
        lambda s: ROBOT.derivatives("forward_dynamics", s.q, s.qd, s.tau),
        r"derivatives: robot 'five_bar' has loops .* use robot.linearize\(q, qd, tau\)",
    ),
    "pullback": refused(
        lambda s: ROBOT.pullback("mass_matrix_inverse", s.q, covector=s.M), "and invert it"
    ),
    "function": refused(lambda s: ROBOT.function("linearize"), "call robot.linearize directly"),
}

FUNCTIONS_OF_CHASLES: dict[str, Check] = {
    "compile": compiled,
    "condition": conditioned,
    "cost": costs,
    "export": refused(
        lambda s: chasles.export(ROBOT, ["forward_dynamics"], "not-written"),
        "export: robot 'five_bar' has loops .* \"constrained_dynamics\"",
    ),
    "compare": compared,
    "excite": refused(lambda s: chasles.excite(ROBOT), "loop"),
    "from_dh": from_rows,
    "identify": identified,
    "lint": kept,
    "load": kept,
    "maximal_dynamics": maximal,
    "save": kept,
    "simulate": simulated,
    "verify": verified,
    "calibrate": refused(
        lambda s: chasles.calibrate(ROBOT, s.q[None], points=np.zeros((1, 3))), "closed loops"
    ),
    "online_estimator": refused(lambda s: chasles.online_estimator(ROBOT), "chasles.identify"),
    "to_dh": refused(lambda s: chasles.to_dh(ROBOT), "loop"),
    "control.computed_torque": feedback,
    "control.operational_dynamics": task_dynamics,
    "control.joint_perturbations": refused(
        lambda s: control.joint_perturbations(ROBOT, s.q, s.qd, s.qdd, *(s.qd,) * 3, frame=FRAME),
        r"use robot.linearize\(q, qd, tau\)",
    ),
    "control.operational_torques": refused(
        lambda s: control.operational_torques(ROBOT, s.q, s.qd, frame=FRAME),
        r"use robot.linearize\(q, qd, tau\)",
    ),
    "control.task_perturbations": refused(
        lambda s: control.task_perturbations(ROBOT, s.q, s.qd, s.qdd, *(s.qd,) * 3, frame=FRAME),
        r"use robot.linearize\(q, qd, tau\)",
    ),
    "control.torque_perturbations": refused(
        lambda s: control.torque_perturbations(ROBOT, s.q, s.qd, s.qdd, *(s.qd,) * 3),
        r"use robot.linearize\(q, qd, tau\)",
    ),
    "control.operational_sensitivities": refused(
        lambda s: control.operational_sensitivities(ROBOT, s.q, s.qd, s.qdd, frame=FRAME),
        r"use robot.linearize\(q, qd, tau\)",
    ),
    "control.resolved_rate": resolved,
    "control.task_coordinates": task,
    "control.task_jacobian": task,
    "control.task_jacobian_rate": task,
}


def test_no_function_is_forgotten() -> None:
    methods = {name for name, _ in inspect.getmembers(chasles.Robot, inspect.isfunction)}
    assert {name for name in methods if not name.startswith("_")} == set(FUNCTIONS_OF_THE_ROBOT)
    top = {n for n in chasles.__all__ if inspect.isfunction(getattr(chasles, n))}
    laws = {f"control.{n}" for n in control.__all__}
    assert top | laws == set(FUNCTIONS_OF_CHASLES)


@pytest.mark.parametrize("name", FUNCTIONS_OF_THE_ROBOT | FUNCTIONS_OF_CHASLES)
def test_what_it_does_with_loops(name: str) -> None:
    (FUNCTIONS_OF_THE_ROBOT | FUNCTIONS_OF_CHASLES)[name](state())


@pytest.mark.parametrize("function", OPEN)
def test_programs_that_leave_loops_open_are_refused(function: str) -> None:
    assert function in FUNCTIONS
    options = {"frame": FRAME} if "inertia" in function else {}
    with raises("E-ROBOT-015", function):
        chasles.compile(ROBOT, function, **options)
    coupled = chasles.robots.planar(3).with_couplings(gear("belt", "joint2", {"joint1": 0.5}))
    with raises("E-ROBOT-015", function):
        coupled.function(function, **options)


def test_a_floating_base_that_loops_hold_does_not_recoil() -> None:
    """The generalized Jacobian is refused for a base that a loop connects to the ground."""
    walker = chasles.robots.quadruped()
    foot = LoopData("foot", "fixed", None, walker.bodies[-1])
    with raises("E-CALL-067", "'foot'"):
        walker.with_loops(foot).generalized_jacobian(walker.neutral(), frame=walker.bodies[-1])
