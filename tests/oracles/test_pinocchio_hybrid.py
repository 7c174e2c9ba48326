"""Check hybrid dynamics, frame inertia and generalized Jacobian with Pinocchio's M, h, J and A.

Functions run with floats. Rounding errors are 1e-10, or more if M is ill-conditioned.
"""

import numpy as np
import pytest
from support import close, direct, state, ways
from test_pinocchio_derivatives import ROBOTS, loaded


@pytest.mark.parametrize("name", ROBOTS)
def test_hybrid_dynamics(name: str) -> None:
    """tau = M qdd + h holds if half of the joint accelerations are known."""
    robot, oracle = loaded(name)
    known = robot.joints[1::2]
    q, qd, given = state(robot, 1)
    here = np.zeros(robot.nv, dtype=bool)
    for joint in known:
        here[robot.velocity_slice(joint)] = True
    M, h = oracle.mass_matrix(q), oracle.bias_forces(q, qd)
    for method in ways(robot, "hybrid_dynamics"):
        found = direct(
            robot.model.frictionless(), "hybrid_dynamics", q, qd, given, known=known, method=method
        )
        qdd, tau = np.where(here, given, found), np.where(here, found, given)
        close(tau, M @ qdd + h, 1e-10)


@pytest.mark.parametrize("name", ROBOTS)
def test_frames(name: str) -> None:
    """The inverse inertia is J M^-1 J', and the generalized Jacobian is J - J_0 A_0^-1 A."""
    robot, oracle = loaded(name)
    q, qd, qdd = state(robot, 2)
    link = robot.bodies[-1]
    M, A = oracle.mass_matrix(q), oracle.centroidal_momentum_matrix(q)
    oracle.kinematics(q, qd, qdd)
    J = oracle.jacobian(oracle.frame(link), "frame", "frame")
    view = {"frame": link, "axes": "frame"}
    tolerance = 1e-14 * max(1e4, float(np.linalg.cond(M)))
    for method in ways(robot, "operational_inertia_inverse"):
        Phi = direct(robot.model, "operational_inertia_inverse", q, method=method, **view)
        close(Phi, J @ np.linalg.solve(M, J.T), tolerance)
    if robot.model.floating:
        J[:, 6:] -= J[:, :6] @ np.linalg.solve(A[:, :6], A[:, 6:])
        J[:, :6] = 0.0
    close(direct(robot.model, "generalized_jacobian", q, **view), J, 1e-10)
