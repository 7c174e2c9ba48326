"""Velocities and forces of the joints that close loops (Featherstone 2008, 8.4).

A loop joint has no coordinates. With a different spanning tree, the joint has them.
"""

import numpy as np
import pytest
from chains import spatial
from support import close, state, tree

import chasles
from chasles.algorithms.homogeneous import around, loop_coordinates
from chasles.model import LOOP_JOINTS, JointData
from chasles.model.graph import from_graph

KINDS = tuple(kind for kind in LOOP_JOINTS if kind not in ("free", "continuous"))


@pytest.mark.parametrize("kind", KINDS)
def test_velocities_of_loop_joints(kind: str) -> None:
    """Velocities agree with differences of the loop joint's displacement in a closed motion."""
    source, q = spatial(kind, 1)
    robot, h = chasles.Robot(source), 1e-5
    (loop,), model = robot.model.loops, robot.model
    qd = robot.complete(q, np.random.default_rng(2).normal(size=len(robot.independent)))
    before, after = (
        loop_coordinates(loop, around(model, loop, model.positions(x.tolist())))
        for x in (robot.integrate(q, -h * qd), robot.integrate(q, h * qd))
    )
    expected = np.array([*loop.joint.difference(before, after)]) / (2.0 * h)
    found = robot.loop_joint_matrix(q) @ qd
    assert found.shape == (loop.joint.nv,)
    close(found, expected, 1e-7, scale=float(np.max(np.abs(qd))))


def test_a_motor_in_the_pin_of_a_four_bar() -> None:
    """A torque in the loop joint acts as in a spanning tree that contains this joint.

    The crank's acceleration and the velocity of the motor agree.
    """
    known = chasles.robots.four_bar()
    source = known.model.source
    (pin,) = source.loops
    joint = JointData(
        pin.name, pin.kind, pin.parent, pin.child, pin.pose, pin.axis, child_pose=pin.child_pose
    )
    made = from_graph(
        "bars",
        list(source.links),
        [*source.joints, joint],
        base="base",
        loops=["rocker"],
        gravity=known.model.gravity_vector,
    )
    other = chasles.Robot(made).with_independent("crank")
    q = known.assemble([0.8], guess=[0.8, -0.5, 1.5])
    qd = known.complete(q, [3.0])
    guess = {"crank": q[0], "coupler": q[1], "pin": q[2] - q[0] - q[1]}
    there = other.assemble([0.8], guess=other.state(guess))
    turned = other.forward_kinematics(there, frame="rocker")
    close(turned, known.forward_kinematics(q, frame="rocker"), 1e-10)
    rates, torque = other.complete(there, [3.0]), 0.35
    tau = np.zeros(3)
    tau[other.velocity_slice("pin")] = torque
    expected = other.forward_dynamics(there, rates, tau)
    B = known.loop_joint_matrix(q)
    qdd = known.forward_dynamics(q, qd, torque * B[0])
    close(qdd[0], expected[other.velocity_slice("crank")][0], 1e-10)
    close(B @ qd, rates[other.velocity_slice("pin")], 1e-11)


def test_a_tree_has_no_loop_joints() -> None:
    robot = tree(5, 1)
    q = state(robot, 1, 2)[0]
    assert robot.loop_joint_matrix(q).shape == (2, 0, robot.nv)
