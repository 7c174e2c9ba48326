"""Maximal coordinates: one sparse system of all bodies and joints (Featherstone 3.7 and 8.13)."""

import numpy as np
import pytest
from scipy.sparse import block_array, eye_array
from scipy.sparse.linalg import splu
from support import close, direct, raises, state, tree

import chasles
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import LoopData
from chasles.numeric.maximal import system
from chasles.robots import ROBOTS, general_chain, planar, quadruped

MECHANISMS: dict[str, list[float]] = {
    "four_bar": [0.7],
    "slider_crank": [0.7],
    "triangle": [1.0, 0.3],
    "five_bar": [2.0, 1.0],
    "six_bar": [0.7],
    "stewart": [0.05, -0.03, 0.02, 0.04, 0.0, -0.02],
    "delta": [0.2, 0.1, 0.3],
}
"""Their independent coordinates, in positions where nothing is special."""


@pytest.mark.parametrize("seed", range(4))
def test_trees(seed: int) -> None:
    """Every joint type, armature, damping, friction, external forces: on plain floats."""
    robot = tree(13, seed)
    q, qd, tau = state(robot, seed)
    rng = np.random.default_rng(seed)
    f_ext = {name: rng.normal(size=6) for name in robot.bodies[-2:]}
    wrenches = {name: chasles.Wrench(w, axes="frame") for name, w in f_ext.items()}
    expected = direct(robot.model, "forward_dynamics", q, qd, tau, f_ext=f_ext)
    found, lam = chasles.maximal_dynamics(robot, q, qd, tau, f_ext=wrenches, dissipation=True)
    close(found, expected, 1e-9)
    assert lam.shape == (0,)


@pytest.mark.parametrize("seed", range(3))
def test_mimic_joints(seed: int) -> None:
    robot = tree(9, seed, mimics=True)
    assert len(robot.moving_joints) > len(robot.joints)
    q, qd, tau = state(robot, seed)
    model = robot.model.frictionless()
    expected = direct(model, "forward_dynamics", q, qd, tau, method="mass-matrix")
    close(chasles.maximal_dynamics(robot, q, qd, tau)[0], expected, 1e-9)


def test_floating_base_and_batches() -> None:
    robot = quadruped()
    q, qd, tau = state(robot, 1, (2, 3))
    found, lam = chasles.maximal_dynamics(robot, q, qd[0], tau[:, :1])
    expected = robot.forward_dynamics(q, np.broadcast_to(qd[0], qd.shape), tau[:, :1])
    close(found, expected, 1e-9)
    assert lam.shape == (2, 3, 0)


def closed_state(name: str, seed: int) -> tuple[chasles.Robot, np.ndarray, np.ndarray, np.ndarray]:
    """A mechanism that moves with its loops closed."""
    robot, rng = ROBOTS[name](), np.random.default_rng(seed)
    q = robot.assemble(MECHANISMS[name])
    return robot, q, robot.complete(q, rng.normal(size=robot.mobility())), rng.normal(size=robot.nv)


@pytest.mark.parametrize("name", MECHANISMS)
def test_loops(name: str) -> None:
    """Redundant rows (a planar loop in space has three) take nothing from the accelerations."""
    robot, q, qd, tau = closed_state(name, 1)
    expected, _ = robot.constrained_dynamics(q, qd, tau)
    found, lam = chasles.maximal_dynamics(robot, q, qd, tau)
    close(found, expected, 1e-9)
    M, h, A = robot.mass_matrix(q), robot.bias_forces(q, qd), robot.loop_matrix(q)
    close(M @ found + h - A.T @ lam, tau, 1e-8, scale=float(np.max(np.abs(h))))
    close(A @ found, robot.loop_bias(q, qd), 1e-9, scale=float(np.max(np.abs(found))))


def test_a_large_loop() -> None:
    """A ring of forty rods, closed by a joint with three redundant rows, keeps closed."""
    n = 40
    chain = planar(n)
    end, axis = chain.model.source.frames[0].pose, Vector.of(0.0, -1.0, 0.0)
    ring = chain.with_loops(
        LoopData("closing", "revolute", None, f"link{n}", axis=axis, child_pose=end)
    )
    q = np.full(n, 2.0 * np.pi / n)
    qdd, _ = chasles.maximal_dynamics(ring, q, np.zeros(n), np.zeros(n))
    A = ring.loop_matrix(q)
    close(A @ qdd, np.zeros(len(A)), 1e-9, scale=float(np.max(np.abs(qdd))))
    loop_effort = ring.mass_matrix(q) @ qdd + ring.gravity_forces(q)
    close(A.T @ np.linalg.lstsq(A.T, loop_effort, rcond=None)[0], loop_effort, 1e-9)


def fill(n: int) -> int:
    """Entries of the factors of the whole system for a chain of n bodies."""
    robot = general_chain(n)
    still = np.zeros(n)
    found = system(robot.model, robot.neutral(), still, still, {})
    K = found.K
    matrix = block_array([[found.M, K.T], [K, -1e-8 * eye_array(K.shape[0])]], format="csc")
    factors = splu(matrix)
    return factors.L.nnz + factors.U.nnz


def test_cost_grows_with_the_length_of_a_chain() -> None:
    """Each joint more costs the same, while a dense factor would cost n^3 and hold n^2 entries."""
    short, middle, long = (fill(n) for n in (50, 100, 200))
    assert long - middle == pytest.approx(2 * (middle - short), rel=0.1)
    assert long < 0.02 * (11 * 200) ** 2


def test_open_loops_are_refused() -> None:
    robot, q, qd, tau = closed_state("four_bar", 2)
    with raises("E-ACCURACY-005", "maximal_dynamics"):
        chasles.maximal_dynamics(robot, q + 0.1, qd, tau)
    with raises("E-CALL-056", "maximal_dynamics"):
        chasles.maximal_dynamics(robot, q, qd[:1], tau)
    with raises("E-ACCURACY-008", "maximal_dynamics"):
        chasles.maximal_dynamics(robot, q, qd, np.full(3, np.inf))


def test_a_motion_that_has_to_end() -> None:
    """Two rods stretched between two pins: they may start to move sideways, and not go on."""
    end = Transform(Rotation(), Vector.of(2.0, 0.0, 0.0))
    tip = planar(2).model.source.frames[0].pose
    rods = planar(2).with_loops(LoopData("pin", "spherical", None, "link2", end, child_pose=tip))
    still, tau = np.zeros(2), np.zeros(2)
    close(rods.loop_matrix(still) @ [1.0, -2.0], np.zeros(3), 1e-15, scale=1.0)
    assert np.all(np.isfinite(chasles.maximal_dynamics(rods, still, still, tau)[0]))
    with raises("E-ACCURACY-007"):
        chasles.maximal_dynamics(rods, still, [1.0, -2.0], tau)
