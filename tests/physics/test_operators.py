"""Spatial operators of Rodriguez and Kreutz: their group, and factors of the mass matrix.

Expected values are the dense matrices of the book, computed in NumPy from positions and inertias.
Rounding errors are at most 1e-11, relative to the largest entry.
"""

from collections.abc import Callable

import numpy as np
import pytest
from support import close, direct, raises, state, tree
from test_tensor import ROBOTS, random_chain, tilde

import chasles
from chasles.algorithms.spatial.kinematics import body_transforms
from chasles.algorithms.tensor.operators import transition
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force, Motion

ROUNDING = 1e-11
MACHINES: dict[str, Callable[[], chasles.Robot]] = {
    name: make for name, make in ROBOTS.items() if name != "panda"
} | {
    "panda": lambda: chasles.Robot(ROBOTS["panda"]().model.source, mimic=False),
    **{f"tree {seed}": lambda seed=seed: tree(9, seed) for seed in range(3)},
    "forest": lambda: tree(10, 6, fixed=False),
}
"""Chains and trees without mimic joints, which the factors do not support."""


@pytest.fixture(params=MACHINES, scope="module")
def robot(request: pytest.FixtureRequest) -> chasles.Robot:
    return MACHINES[request.param]()


# Transition operator ---------------------------------------------------------------------------


def dense_transition(s: np.ndarray) -> np.ndarray:
    """Return Phi = [[1, s~], [0, 1]] (5.2.32)."""
    return np.block([[np.eye(3), tilde(s)], [np.zeros((3, 3)), np.eye(3)]])


def columns(apply: Callable[[list[float]], Force | Motion]) -> np.ndarray:
    return np.array([list(apply(unit)) for unit in np.eye(6).tolist()]).T


def test_transitions_form_a_group() -> None:
    """Transitions satisfy Phi(i,k) Phi(k,j) = Phi(i,j) and Phi(i,j)^-1 = Phi(j,i) (5.2.33)."""
    rng = np.random.default_rng(1)
    i, j, k = (Vector(tuple(p)) for p in rng.normal(size=(3, 3)).tolist())

    def Phi(a: Vector, b: Vector) -> np.ndarray:
        return columns(lambda unit: transition(a, b).T @ Force.of(*unit))

    close(Phi(i, j), dense_transition(np.array(list(j - i))), ROUNDING)
    close(Phi(i, k) @ Phi(k, j), Phi(i, j), ROUNDING)
    close(Phi(i, i), np.eye(6), ROUNDING)
    close(np.linalg.inv(Phi(i, j)), Phi(j, i), ROUNDING)
    outward = columns(lambda unit: transition(i, j) @ Motion.of(*unit))
    close(outward, Phi(i, j).T, ROUNDING)


# Factors of the mass matrix --------------------------------------------------------------------


def stacked(
    robot: chasles.Robot, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the stacked H, the transitions of bodies to their parents, I, and armature.

    Matrices are in base axes. Coordinates are in the order of the file.
    """
    model, n = robot.model, len(robot.model.bodies)
    split = model.positions(q.tolist())
    W = body_transforms(model, split)
    H, step, I = np.zeros((robot.nv, 6 * n)), np.zeros((6 * n, 6 * n)), np.zeros((6 * n, 6 * n))
    noise = np.zeros((robot.nv, robot.nv))
    for i, p, joint, inertia in model.outward():
        R, here, where = np.array(W[i].R), slice(6 * i, 6 * i + 6), model.velocity_slices[i]
        turn = np.kron(np.eye(2), R)
        H[where, here] = np.array([list(s) for s in joint.subspace(split[i]).columns]) @ turn.T
        h, m = tilde(np.array(list(inertia.h))), inertia.m * np.eye(3)
        I[here, here] = turn @ np.block([[np.array(inertia.I.matrix()), h], [h.T, m]]) @ turn.T
        noise[where, where] = np.diag(list(joint.armature))
        if p >= 0:
            s = np.array(list(W[i].r)) - np.array(list(W[p].r))
            step[6 * p : 6 * p + 6, here] = dense_transition(s)
    return H, step, I, noise


def test_factors_of_the_mass_matrix(robot: chasles.Robot) -> None:
    """The factors satisfy M = A D A', M^-1 = B' D^-1 B and A B = 1 (6.2.18-19)."""
    q, *_ = state(robot, 1)
    A, B, D = direct(robot.model, "operator_factors", q)
    M = direct(robot.model, "mass_matrix", q)
    one = np.eye(robot.nv)
    close(A @ B, one, ROUNDING)
    close(A @ D @ A.T, M, ROUNDING)
    close(B.T @ np.linalg.inv(D) @ B @ M, one, 1e-15 * np.linalg.cond(M) + ROUNDING)
    for i, where in robot.model.velocity_slices.items():
        assert np.array_equal(A[where, where], np.eye(where.stop - where.start))
        assert np.all(np.linalg.eigvalsh(D[where, where]) > 0.0)
        outside = [c for j, c in robot.model.velocity_slices.items() if j != i]
        assert not any(np.any(D[where, c]) for c in outside)


def test_factors_by_dense_operators(robot: chasles.Robot) -> None:
    """A = 1 + H Psi L and B = 1 - H Phi L, with P from the Riccati equation of all bodies.

    `step` maps each body to its parent and is nilpotent, so Psi = 1 + step + step^2 + ... is
    finite. With the gain, step (1 - G H) gives the book's Phi, and L is step G.
    """
    q, *_ = state(robot, 2)
    H, step, I, noise = stacked(robot, q)
    one, ones = np.eye(len(I)), np.eye(robot.nv)
    P, G = I, np.zeros(H.T.shape)
    blocks = np.kron(np.eye(len(I) // 6), np.ones((6, 6)))  # P has one diagonal block per body
    for _ in robot.model.bodies:  # enough iterations for the longest branch
        D = H @ P @ H.T + noise
        G = P @ H.T @ np.linalg.inv(D)
        P = I + (step @ (P - G @ H @ P) @ step.T) * blocks
    L, Psi, Phi = step @ G, np.linalg.inv(one - step), np.linalg.inv(one - step @ (one - G @ H))
    found = direct(robot.model, "operator_factors", q)
    close(found[0], ones + H @ Psi @ L, ROUNDING)
    close(found[1], ones - H @ Phi @ L, ROUNDING)
    close(found[2], D, ROUNDING)
    close(H @ Psi @ I @ Psi.T @ H.T + noise, direct(robot.model, "mass_matrix", q), ROUNDING)


def test_they_are_the_sparse_factors_of_joints_with_one_freedom() -> None:
    """For joints with one degree of freedom, the factors agree with M = L' D L, which is unique."""
    robot = random_chain("RRPRRPR", 2)
    q, *_ = state(robot, 3)
    L, D = direct(robot.model, "ltdl_factors", q)
    A, _, block = direct(robot.model, "operator_factors", q)
    close(A, L.T, ROUNDING)
    close(block, np.diag(D), ROUNDING)


def test_mass_matrix_and_its_inverse_by_operators(robot: chasles.Robot) -> None:
    q, *_ = state(robot, 4)
    M = direct(robot.model, "mass_matrix", q, method="spatial")
    close(direct(robot.model, "mass_matrix", q, method="spatial-operator"), M, ROUNDING)
    expected = np.linalg.inv(M)
    for method in ("spatial", "spatial-operator"):
        found = direct(robot.model, "mass_matrix_inverse", q, method=method)
        close(found, expected, 1e-15 * np.linalg.cond(M) + ROUNDING)


# Public functions ------------------------------------------------------------------------------


def test_public_factors() -> None:
    """Public functions return the factors of a batch, from machine code."""
    robot = ROBOTS["stanford_arm"]()
    q = robot.random(0, size=(2, 3))
    A, B, D = robot.operator_factors(q)
    assert A.shape == B.shape == D.shape == (2, 3, 6, 6)
    close(A @ D @ np.swapaxes(A, -1, -2), robot.mass_matrix(q), ROUNDING)
    W = robot.mass_matrix_inverse(q, method="spatial-operator")
    close(W, robot.mass_matrix_inverse(q), ROUNDING)
    with raises("E-CALL-009", "(..., 6)"):
        robot.operator_factors(q[..., :5])


def test_mimic_joints_are_refused() -> None:
    coupled = tree(9, 1, mimics=True)
    q = coupled.neutral()
    with raises("E-CALL-067", "operator_factors"):
        coupled.operator_factors(q)
    for function in ("mass_matrix", "mass_matrix_inverse"):
        with raises("E-CALL-071", "'spatial-operator'"):
            getattr(coupled, function)(q, method="spatial-operator")
