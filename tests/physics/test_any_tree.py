"""Identities of kinematics and dynamics on random trees from Hypothesis.

Functions run on plain floats, so nothing is compiled.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support import close, direct, state

import chasles
from chasles.model.passes import equivalent
from chasles.robots import random_tree

SEEDS = st.integers(min_value=0, max_value=10**6)


@st.composite
def trees(draw: st.DrawFn) -> chasles.Robot:
    """Draw a tree of at most twelve joints, fixed or floating, with or without mimic joints."""
    n, seed = draw(st.integers(min_value=1, max_value=12)), draw(SEEDS)
    floating, fixed, mimics = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    return random_tree(n, seed, floating=floating, fixed=fixed, mimics=mimics)


@given(trees(), SEEDS)
def test_equation_of_motion(robot: chasles.Robot, seed: int) -> None:
    """Inverse dynamics methods agree with M qdd + h, and forward dynamics inverts them."""
    model = robot.model
    q, qd, qdd = state(robot, seed)
    M = direct(model, "mass_matrix", q)
    assert np.all(np.linalg.eigvalsh(M) > 0.0)
    h = direct(model, "bias_forces", q, qd)
    tau = M @ qdd + h
    solved = 1e-14 * max(1e3, float(np.linalg.cond(M)))  # rounding error times cond(M)
    for method in ("newton-euler-vector", "spatial"):
        close(direct(model, "inverse_dynamics", q, qd, qdd, method=method), tau, 1e-11)
    coupled = any(body.follow is not None for body in model.bodies)
    for method in ("mass-matrix",) if coupled else ("mass-matrix", "articulated-body"):
        close(direct(model, "forward_dynamics", q, qd, tau, method=method), qdd, solved)
    twin = equivalent(model)
    close(direct(twin, "inverse_dynamics", q, qd, qdd), tau, 1e-11)
    close(direct(twin, "mass_matrix", q), M, 1e-11)


@given(trees(), SEEDS)
def test_velocities(robot: chasles.Robot, seed: int) -> None:
    """J qd is the velocity, A qd is the momentum, and qd'M qd is twice the kinetic energy."""
    model = robot.model
    q, qd, _ = state(robot, seed)
    for axes in ("world", "frame"):
        view = {"frame": "tip", "axes": axes}
        v = direct(model, "frame_velocity", q, qd, **view)
        close(direct(model, "jacobian", q, **view) @ qd, v, 1e-11, scale=1.0)
    h = direct(model, "momentum", q, qd, at="com")
    close(direct(model, "centroidal_momentum_matrix", q) @ qd, h, 1e-11, scale=1.0)
    T = direct(model, "kinetic_energy", q, qd)
    close(T, 0.5 * qd @ direct(model, "mass_matrix", q) @ qd, 1e-11)


@given(trees(), SEEDS)
def test_factors(robot: chasles.Robot, seed: int) -> None:
    q, _, _ = state(robot, seed)
    M = direct(robot.model, "mass_matrix", q)
    L, D = direct(robot.model, "ltdl_factors", q)
    close(L.T @ np.diag(D) @ L, M, 1e-12)
    W = direct(robot.model, "mass_matrix_inverse", q)
    close(M @ W, np.eye(robot.nv), 1e-14 * max(1e3, float(np.linalg.cond(M))))


@given(trees(), SEEDS)
def test_one_step_there_and_back(robot: chasles.Robot, seed: int) -> None:
    q, qd, _ = state(robot, seed)
    step = qd / max(1.0, float(np.max(np.abs(qd))))  # rotations of at most pi
    moved = direct(robot.model, "integrate", q, step)
    close(direct(robot.model, "difference", q, moved), step, 1e-12, scale=1.0)
