"""Compare derivatives of inverse and forward dynamics with Pinocchio."""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from pinocchio_oracle import Oracle, robot_files
from support import EPS, close, state

import chasles

PATHS = {path.stem: path for path in robot_files()}
ROBOTS = {"ur5_robot": False, "panda": False, "solo12": True}
"""Robots, and a flag: True for a floating base."""

COMPUTE = {
    "inverse_dynamics": (pin.computeRNEADerivatives, ("q", "qd", "qdd")),
    "forward_dynamics": (pin.computeABADerivatives, ("q", "qd", "tau")),
}


@cache
def loaded(name: str) -> tuple[chasles.Robot, Oracle]:
    robot = chasles.load(PATHS[name], floating=ROBOTS[name], snap=False, mimic=False)
    oracle = Oracle(PATHS[name], floating=ROBOTS[name])
    oracle.order(robot)
    return robot, oracle


def derivatives(oracle: Oracle, function: str, q, v, a, f_ext=None) -> list[np.ndarray]:
    """Return derivatives with respect to position and velocity, and M or its inverse.

    Derivatives with respect to q are along `integrate`, which is the same in both libraries.
    """
    given = oracle.position(q), oracle.velocity(v), oracle.velocity(a)
    forces = () if f_ext is None else (oracle.external(f_ext),)
    found = COMPUTE[function][0](oracle.model, oracle.data, *given, *forces)
    by_q, by_v, symmetric = (np.array(D) for D in found)
    whole = np.triu(symmetric) + np.triu(symmetric, 1).T  # only this half is filled
    return [oracle.square(D) for D in (by_q, by_v, whole)]


@pytest.mark.parametrize("function", COMPUTE)
@pytest.mark.parametrize("name", ROBOTS)
def test_all_derivatives(name: str, function: str) -> None:
    """Derivatives agree at random states and at rest, up to the condition number of M."""
    robot, oracle = loaded(name)
    derived = chasles.compile(robot, function, backend="interpret", wrt=COMPUTE[function][1])
    still = robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv)
    for given in (state(robot, 1), state(robot, 2), still):
        expected = derivatives(oracle, function, *given)
        condition = float(np.linalg.cond(expected[2]))
        slack = max(1e-10, 100.0 * EPS * condition) if function == "forward_dynamics" else 1e-10
        size = 1e-6 * float(np.max(np.abs(expected[2])))  # some derivatives are zero at rest
        for D, reference in zip(derived(*given), expected, strict=True):
            close(D, reference, slack, scale=size)


@pytest.mark.parametrize("function", COMPUTE)
def test_machine_code(function: str) -> None:
    """The public method agrees, and a batch is bitwise identical to single states."""
    robot, oracle = loaded("ur5_robot")
    states = state(robot, 4, 9)
    many = robot.derivatives(function, *states)
    for k in (0, 8):
        row = [a[k] for a in states]
        one, expected = robot.derivatives(function, *row), derivatives(oracle, function, *row)
        for D, batch, reference in zip(one, many, expected, strict=True):
            assert np.array_equal(D, batch[k])
            close(D, reference, 1e-10)


@pytest.mark.parametrize("function", COMPUTE)
@pytest.mark.parametrize("name", ROBOTS)
def test_external_forces(name: str, function: str) -> None:
    """In Pinocchio, forces are fixed in their bodies, which is axes="frame" in chasles."""
    robot, oracle = loaded(name)
    given, rng = state(robot, 5), np.random.default_rng(6)
    numbers = {frame: 5.0 * rng.normal(size=6) for frame in robot.bodies[-2:]}
    f_ext = {frame: chasles.Wrench(w, axes="frame") for frame, w in numbers.items()}
    expected = derivatives(oracle, function, *given, numbers)
    values = [numbers[frame] for frame in sorted(numbers)]
    wrt = COMPUTE[function][1]
    found = chasles.compile(robot, function, backend="interpret", wrt=wrt, f_ext=f_ext)
    condition = float(np.linalg.cond(expected[2]))
    slack = max(1e-10, 100.0 * EPS * condition) if function == "forward_dynamics" else 1e-10
    for D, reference in zip(found(*given, *values), expected, strict=True):
        close(D, reference, slack)
    if function == "forward_dynamics":
        A, B = chasles.compile(robot, "linearize", backend="interpret", f_ext=f_ext)(
            *given, *values
        )
        close(A[robot.nv :], np.hstack(expected[:2]), slack)
        close(B[robot.nv :], expected[2], slack)
