"""Maximal coordinates: one sparse system of all bodies and joints (Featherstone 3.7 and 8.13)."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu
from support import close, direct, raises, state, tree

import chasles
from chasles.expr import cos, sin
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import Description, JointData, LinkData, LoopData, coupling, gear
from chasles.numeric.maximal import Equations, equations
from chasles.robots import ROBOTS, general_chain, planar, quadruped
from chasles.robots._solids import box

MECHANISMS: dict[str, list[float]] = {
    "four_bar": [0.7],
    "slider_crank": [0.7],
    "triangle": [1.0, 0.3],
    "five_bar": [2.0, 1.0],
    "six_bar": [0.7],
    "stewart": [0.05, -0.03, 0.02, 0.04, 0.0, -0.02],
    "delta": [0.2, 0.1, 0.3],
}
"""Mechanisms with independent coordinates at generic positions."""


@pytest.mark.parametrize("seed", range(4))
def test_trees(seed: int) -> None:
    """Results agree on plain floats with armature, damping, friction and external forces."""
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
    """Return a mechanism in motion with closed loops: robot, q, qd, tau."""
    robot, rng = ROBOTS[name](), np.random.default_rng(seed)
    q = robot.assemble(MECHANISMS[name])
    return robot, q, robot.complete(q, rng.normal(size=robot.mobility())), rng.normal(size=robot.nv)


@pytest.mark.parametrize("name", MECHANISMS)
def test_loops(name: str) -> None:
    """Redundant equations (three per planar loop in space) do not affect the accelerations."""
    robot, q, qd, tau = closed_state(name, 1)
    expected, _ = robot.constrained_dynamics(q, qd, tau)
    found, lam = chasles.maximal_dynamics(robot, q, qd, tau)
    close(found, expected, 1e-9)
    M, h, A = robot.mass_matrix(q), robot.bias_forces(q, qd), robot.loop_matrix(q)
    close(M @ found + h - A.T @ lam, tau, 1e-8, scale=float(np.max(np.abs(h))))
    close(A @ found, robot.loop_bias(q, qd), 1e-9, scale=float(np.max(np.abs(found))))


def test_a_large_loop() -> None:
    """A ring of forty rods, with three redundant equations, stays closed."""
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


def sparse(found: Equations) -> csc_array:
    """Return the matrix [M K'; K -1e-8] of a state."""
    n, m = len(found.f), len(found.k)
    whole: dict[tuple[int, int], Any] = {**found.M, **{(n + r, n + r): -1e-8 for r in range(m)}}
    for (r, c), x in found.K.items():
        whole[n + r, c] = whole[c, n + r] = x
    rows, columns = np.array(list(whole)).T
    values = np.array(list(whole.values()), dtype=float)
    return csc_array((values, (rows, columns)), shape=(n + m, n + m))


def fill(n: int) -> int:
    """Return the number of entries in the factors of the system for a chain of n bodies."""
    robot = general_chain(n)
    still = [0.0] * n
    factors = splu(sparse(equations(robot.model, robot.neutral().tolist(), still, still, {})))
    return factors.L.nnz + factors.U.nnz


def test_cost_grows_with_the_length_of_a_chain() -> None:
    """The factors grow linearly with the number of joints; dense factors have n^2 entries."""
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
    """Rods stretched between two pins have no valid acceleration if they move sideways."""
    end = Transform(Rotation(), Vector.of(2.0, 0.0, 0.0))
    tip = planar(2).model.source.frames[0].pose
    rods = planar(2).with_loops(LoopData("pin", "spherical", None, "link2", end, child_pose=tip))
    still, tau = np.zeros(2), np.zeros(2)
    close(rods.loop_matrix(still) @ [1.0, -2.0], np.zeros(3), 1e-15, scale=1.0)
    assert np.all(np.isfinite(chasles.maximal_dynamics(rods, still, still, tau)[0]))
    with raises("E-ACCURACY-007"):
        chasles.maximal_dynamics(rods, still, [1.0, -2.0], tau)


# Couplings and time ------------------------------------------------------------------------------


def same(robot: chasles.Robot, q: Any, qd: Any, tau: Any, tolerance: float = 1e-9) -> None:
    """Assert that both solvers agree with the compiled methods, including multipliers."""
    expected, forces = robot.constrained_dynamics(q, qd, tau)
    A = robot.loop_matrix(q)
    for found, lam in (
        chasles.maximal_dynamics(robot, q, qd, tau),
        chasles.MaximalDynamics(robot)(q, qd, tau),
    ):
        close(found, expected, tolerance)
        pull = np.einsum("...ij,...i->...j", A, lam)
        close(
            pull, np.einsum("...ij,...i->...j", A, forces), 1e-7, scale=float(np.max(np.abs(tau)))
        )


@pytest.mark.parametrize("seed", range(2))
def test_couplings(seed: int) -> None:
    """Accelerations and multipliers agree for gears and a cam in a spatial chain."""
    robot = general_chain(6).with_couplings(
        gear("gears", "joint5", {"joint2": 1.7, "joint4": -0.4}),
        coupling("cam", ["joint1", "joint3"], lambda a, b: b - sin(a) - 0.2 * a * a),
    )
    rng = np.random.default_rng(seed)
    q = robot.assemble(rng.uniform(-0.6, 0.6, robot.mobility()))
    qd = robot.complete(q, rng.normal(size=robot.mobility()))
    same(robot, q, qd, rng.normal(size=robot.nv))


def test_a_coupling_across_a_loop() -> None:
    robot = ROBOTS["five_bar"]()
    names = robot.joints
    q = robot.assemble(MECHANISMS["five_bar"])
    offset = float(q[1] - 0.5 * q[0])
    geared = robot.with_couplings(gear("belt", names[1], {names[0]: 0.5}, offset))
    qd = geared.complete(q, [0.8])
    same(geared, q, qd, np.random.default_rng(3).normal(size=robot.nv))


def test_a_coupling_that_depends_on_time() -> None:
    robot = general_chain(4).with_couplings(
        coupling("cam", ["joint2", "joint3"], lambda a, b, t: b - a * cos(t) - 0.3 * sin(2.0 * t))
    )
    t = 0.7
    held = robot.at_time(t)
    q = held.assemble([0.2, -0.5, 0.9])
    qd = held.complete(q, [1.0, -0.4, 0.3])
    tau = np.random.default_rng(5).normal(size=robot.nv)
    same(held, q, qd, tau)
    with raises("E-ACCURACY-006"):
        chasles.maximal_dynamics(held, q, qd + 1e-3, tau)


def test_driven_joints() -> None:
    """A driven joint constrains all six directions, and has a prescribed acceleration."""
    robot = general_chain(5).drive(
        {"joint2": lambda t: sin(3.0 * t), "joint4": lambda t: 0.3 * t * t}
    )
    times = np.array([0.0, 0.4, 1.3])
    rng = np.random.default_rng(6)
    q, qd, tau = rng.normal(size=(3, 3, robot.nv))
    held = robot.at_time(times)
    expected = held.forward_dynamics(q, qd, tau)
    close(chasles.maximal_dynamics(held, q, qd, tau)[0], expected, 1e-9)
    solver = chasles.MaximalDynamics(robot)
    close(solver(q, qd, tau, t=times)[0], expected, 1e-9)
    close(solver(q[1], qd[1], tau[1], t=times[1])[0], expected[1], 1e-9)
    for call in (solver, lambda *given: chasles.maximal_dynamics(robot, *given)):
        with raises("E-LOOP-039|E-LOOP-040"):
            call(q, qd, tau)


def test_a_loop_with_a_driven_joint() -> None:
    robot, t = ROBOTS["five_bar"](), 0.6
    name, (start, other) = robot.independent[0], MECHANISMS["five_bar"]
    whole = robot.assemble([start + 0.3 * np.sin(2.0 * t), other])
    driven = robot.drive({name: lambda t: start + 0.3 * sin(2.0 * t)}).at_time(t)
    q = np.delete(whole, robot.position_slice(name).start)
    qd = driven.complete(q, [0.7])
    same(driven, q, qd, np.random.default_rng(8).normal(size=driven.nv))


# Reusable solvers --------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_analysed_once(backend: str) -> None:
    """A reusable solver agrees with single calls, with friction, wrenches and batches."""
    robot = tree(9, 2)
    solver = chasles.MaximalDynamics(robot, dissipation=True, backend=backend)
    rng = np.random.default_rng(4)
    for turn in range(2):
        q, qd, tau = state(robot, turn, (2, 3))
        f_ext = {robot.bodies[-1]: chasles.Wrench(rng.normal(size=(2, 1, 6)), axes="frame")}
        for load in (None, f_ext):
            expected = chasles.maximal_dynamics(robot, q, qd, tau, f_ext=load, dissipation=True)
            found = solver(q, qd, tau, f_ext=load)
            close(found[0], expected[0], 1e-10)
            assert found[1].shape == (2, 3, 0)


@pytest.mark.parametrize("name", ["four_bar", "five_bar"])
def test_analysed_loops(name: str) -> None:
    solver = None
    for seed in range(3):
        robot, q, qd, tau = closed_state(name, seed)
        solver = solver or chasles.MaximalDynamics(robot)
        close(solver(q, qd, tau)[0], robot.constrained_dynamics(q, qd, tau)[0], 1e-9)
    with raises("E-ACCURACY-005", "MaximalDynamics"):
        solver(q + 0.1, qd, tau)


def test_a_ladder_costs_as_its_length() -> None:
    """Factors of n adjacent loops have O(n) entries (section 8.13)."""
    sizes = []
    for n in (10, 20, 40):
        robot = ladder(n)
        q, still = robot.neutral().tolist(), [0.0] * robot.nv
        factors = splu(sparse(equations(robot.model, q, still, still, {})))
        sizes.append(factors.L.nnz + factors.U.nnz)
    assert sizes[2] - sizes[1] == pytest.approx(2 * (sizes[1] - sizes[0]), rel=0.15)


def ladder(n: int) -> chasles.Robot:
    """Return two chains of n rods along x, 1 m apart, with a rung between each pair of rods."""
    links = [LinkData(f"{side}{k}", box(1.0, (1.0, 0.1, 0.1))) for side in "ab" for k in range(n)]
    hinge, along = Vector.of(0.0, 0.0, 1.0), Transform(Rotation(), Vector.of(1.0, 0.0, 0.0))
    apart = Transform(Rotation(), Vector.of(0.0, 1.0, 0.0))
    joints = []
    for side in "ab":
        for k in range(n):
            before = f"{side}{k - 1}" if k else None
            place = along if k else (Transform.identity() if side == "a" else apart)
            joints.append(
                JointData(f"{side}j{k}", "revolute", before, f"{side}{k}", place, axis=hinge)
            )
    rungs = tuple(
        LoopData(f"rung{k}", "sphere_in_cylinder", f"a{k}", f"b{k}", apart, axis=hinge)
        for k in range(n)
    )
    return chasles.Robot(Description("ladder", tuple(links), tuple(joints), loops=rungs))


def test_a_solver_travels_and_is_shared_by_threads() -> None:
    robot = planar(3)
    solver = pickle.loads(pickle.dumps(chasles.MaximalDynamics(robot, dissipation=True)))
    assert solver.dissipation
    states = [state(robot, k) for k in range(12)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: solver(*x)[0], states))
    for x, qdd in zip(states, found, strict=True):
        close(qdd, robot.forward_dynamics(*x, dissipation=True), 1e-10)


def test_bad_backends() -> None:
    with raises("E-CALL-002"):
        chasles.MaximalDynamics(planar(1), backend="fortran")
    with raises("E-ACCURACY-340"):
        chasles.MaximalDynamics(planar(1), backend="cuda")


def test_nothing_that_moves() -> None:
    """A robot without degrees of freedom has empty accelerations, in any batch shape."""
    still = planar(1).lock("joint1")
    for solve in (chasles.MaximalDynamics(still), lambda *x: chasles.maximal_dynamics(still, *x)):
        qdd, lam = solve(*np.zeros((3, 2, 0)))
        assert (qdd.shape, lam.shape) == ((2, 0), (2, 0))
