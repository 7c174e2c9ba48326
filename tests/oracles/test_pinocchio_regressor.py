"""Compare regressor and inertial parameters with Pinocchio, also for a floating base."""

import numpy as np
import pinocchio as pin
import pytest
from pinocchio_oracle import Oracle
from support import close, state
from test_pinocchio_derivatives import ROBOTS, loaded

import chasles

SIX = [4, 6, 9, 5, 7, 8]
"""Indices of xx, yy, zz, xy, xz and yz in Pinocchio's parameters."""


def numbers(oracle: Oracle, robot: chasles.Robot) -> list[int]:
    """Return Pinocchio's index of the body that each joint moves."""
    return [
        oracle.model.getJointId("root_joint" if robot.joint(name).kind == "free" else name)
        for name in robot.moving_joints
    ]


@pytest.mark.parametrize("name", ROBOTS)
def test_regressor(name: str) -> None:
    robot, oracle = loaded(name)
    bodies = numbers(oracle, robot)
    theirs = [oracle.model.inertias[k].toDynamicParameters() for k in bodies]
    expected = np.concatenate([[*p[:4], *p[SIX]] for p in theirs])
    close(robot.inertial_parameters(), expected, 1e-12)
    compiled = chasles.compile(robot, "regressor", backend="numpy")
    q, qd, qdd = state(robot, 1)
    given = oracle.position(q), oracle.velocity(qd), oracle.velocity(qdd)
    Y = np.array(pin.computeJointTorqueRegressor(oracle.model, oracle.data, *given))
    blocks = Y.reshape(robot.nv, -1, 10)[:, [k - 1 for k in bodies]]
    expected = oracle.mine(blocks[..., [0, 1, 2, 3, *SIX]].reshape(robot.nv, -1).T).T
    close(compiled(q, qd, qdd), expected, 1e-11)
