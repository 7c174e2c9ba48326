"""Recursions with homogeneous matrices agree with the paper's closed sums and with each other.

The sums are dense 4x4 products in NumPy. Their screws are taken from the Jacobian (spatial
vectors), so the sums share no types and no recursion with the tested functions. Rounding errors are
at most 1e-11.
"""

import numpy as np
import pytest
from support import close, direct, state, tree

import chasles
from chasles.algorithms.historical.homogeneous import Chain, chain
from chasles.mathematics.linear import Matrix
from chasles.robots import general_chain, puma560, stanford_arm

ROUNDING = 1e-11
CHAINS = {
    "puma560": puma560,
    "stanford_arm": stanford_arm,
    "general": lambda: general_chain(7),
}
"""Serial robots whose joints have one degree of freedom, as in the paper."""


@pytest.fixture(params=CHAINS)
def robot(request: pytest.FixtureRequest) -> chasles.Robot:
    return CHAINS[request.param]()


def dense(M: Matrix) -> np.ndarray:
    return np.array(M.rows, dtype=float)


def hat(column: np.ndarray) -> np.ndarray:
    """Return the 4x4 matrix of a screw (u, b)."""
    (x, y, z), b = column[:3], column[3:]
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
    matrix[:3, 3] = b
    return matrix


def chain_at(robot: chasles.Robot, *rows: np.ndarray) -> Chain:
    q, qd, qdd = (row.tolist() for row in rows)
    model = robot.model
    return chain(model, model.positions(q), model.velocities(qd), model.velocities(qdd))


def screws(robot: chasles.Robot, q: np.ndarray) -> list[np.ndarray]:
    """Return L(0) of every joint, from the Jacobian of the last body at the world's origin."""
    J = direct(robot.model, "jacobian", q, frame=robot.bodies[-1], axes="world", at="world")
    return [hat(column) for column in J.T]


def test_closed_sums(robot: chasles.Robot) -> None:
    """W is the sum of L qd (Eq II.2), and H agrees with Eq II.3 and II.3bis minus gravity."""
    q, qd, qdd = state(robot, 3)
    L, found = screws(robot, q), chain_at(robot, q, qd, qdd)
    Hg = np.zeros((4, 4))
    Hg[:3, 3] = robot.gravity
    for i in range(robot.nv):
        close(dense(found.W[i].matrix()), sum(L[j] * qd[j] for j in range(i + 1)), ROUNDING)
        own = sum(L[j] @ L[j] * qd[j] ** 2 for j in range(i + 1))
        mixed = sum(2 * L[s] @ L[r] * qd[s] * qd[r] for r in range(1, i + 1) for s in range(r))
        forced = sum(L[j] * qdd[j] for j in range(i + 1))
        close(dense(found.H[i].matrix()), own + mixed + forced - Hg, ROUNDING)
        free = chain_at(robot, q, qd, 0 * qdd).H[i]
        close(dense(free.matrix()) + forced, dense(found.H[i].matrix()), ROUNDING)


def test_lagrangian_by_sums(robot: chasles.Robot) -> None:
    """M and C agree with the sums of section 3 (with errata corrected) in dense matrices."""
    q, qd, qdd = state(robot, 4)
    L, found, n = screws(robot, q), chain_at(robot, q, qd, 0 * qdd), robot.nv
    J = [dense(found.J[h].matrix()) for h in range(n)]
    H = [dense(found.H[h].matrix()) for h in range(n)]
    M = [
        [sum(np.trace(L[i] @ J[h] @ L[m].T) for h in range(max(i, m), n)) for m in range(n)]
        for i in range(n)
    ]
    C = [sum(np.trace(H[h] @ J[h] @ L[m].T) for h in range(m, n)) for m in range(n)]
    armature = [x for body in robot.model.bodies for x in body.joint.armature]
    close(np.array(M) + np.diag(armature), direct(robot.model, "mass_matrix", q), ROUNDING)
    frictionless = robot.model.frictionless()
    close(C, direct(frictionless, "bias_forces", q, qd), ROUNDING)


def test_points_move_as_the_matrices_say(robot: chasles.Robot) -> None:
    """P' = W P and P'' = H P for the last column of M agree with the frame's motion."""
    q, qd, qdd = state(robot, 5)
    last, found = robot.bodies[-1], chain_at(robot, q, qd, qdd)
    i = robot.model.frame(last).body
    pose = direct(robot.model, "forward_kinematics", q, frame=last)
    W, H = dense(found.W[i].matrix()), dense(found.H[i].matrix())
    velocity = direct(robot.model, "frame_velocity", q, qd, frame=last)
    acceleration = direct(robot.model, "frame_acceleration", q, qd, qdd, frame=last)
    close((W @ pose[:, 3])[:3], velocity[3:], ROUNDING)
    close((H @ pose[:, 3])[:3] + robot.gravity, acceleration[3:], ROUNDING)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("floating", [False, True])
def test_external_actions(seed: int, floating: bool) -> None:
    """All methods agree with external forces, on trees with every joint type."""
    robot = tree(8, seed, floating=floating)
    q, qd, qdd = state(robot, seed)
    rng = np.random.default_rng(seed)
    f_ext = {name: rng.normal(size=6) for name in robot.bodies[-2:]}
    model = robot.model
    for function, methods in (
        ("inverse_dynamics", ("homogeneous", "homogeneous-link", "lagrange")),
        ("forward_dynamics", ("homogeneous", "lagrange")),
    ):
        expected = direct(model, function, q, qd, qdd, f_ext=f_ext)
        without = direct(model, function, q, qd, qdd)
        assert not np.allclose(expected, without)
        for method in methods:
            found = direct(model, function, q, qd, qdd, f_ext=f_ext, method=method)
            close(found, expected, 1e-9)
