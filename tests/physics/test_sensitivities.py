"""Sensitivities D0, V0 and P0 of inverse dynamics: closed forms and structure theorems.

The source is Balafoutis and Patel (1991), chapter 7. Vectors are in base coordinates.
"""

import numpy as np
import pytest
from book import Chain, carried, chain, eta_changes
from hypothesis import given, settings
from hypothesis import strategies as st
from support import close, direct, state, tree
from test_tensor import random_chain

import chasles
from chasles import control
from chasles.algorithms.spatial.derivatives import inverse_dynamics_perturbation
from chasles.algorithms.tensor.dynamics import chain as tensor_chain
from chasles.functions.tracing import straight, trace
from chasles.mathematics.linear import Vector
from chasles.robots import general_chain, planar, puma560, stanford_arm

ROUNDING = 1e-11
METHODS = ("spatial", "augmented-tensor", "closed-form")


def closed_forms(c: Chain) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return D0, V0, P0 by (7.3.1) to (7.3.4) for revolute joints, from lemma C-12 along z_i."""
    n, b = len(c.m), carried(c)
    D, V, P = np.zeros((3, n, n))
    for i in range(n):
        for j in range(n):
            D[i, j], V[i, j], P[i, j] = (c.z[i] @ x for x in eta_changes(c, b, i, j))
    return D, V, P


ROBOTS = {
    "puma560": puma560,
    "general chain": lambda: general_chain(5),
    "planar": lambda: planar(3),
}


def sums(robot: chasles.Robot, at: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """Return D0 dqdd + V0 dqd + P0 dq."""
    found = robot.inverse_dynamics_sensitivities(*at)
    return sum(A @ x for A, x in zip(found, changes[::-1], strict=True))


@pytest.mark.parametrize("robot", [*ROBOTS, "stanford arm"])
def test_perturbations_carried_from_link_to_link(robot: str) -> None:
    """Torque perturbations (section 7.2) agree with differences and with D0, V0 and P0."""
    made = stanford_arm() if robot == "stanford arm" else ROBOTS[robot]()
    at, changes = np.random.default_rng(7).normal(size=(2, 3, made.nv))
    found = control.torque_perturbations(made, *at, *changes)
    e = 1e-5
    apart = [made.inverse_dynamics(*(at + k * e * changes)) for k in (1, -1)]
    scale = float(np.max(np.abs(found)))
    close(found, (apart[0] - apart[1]) / (2.0 * e), 1e-7, scale=scale)
    close(found, sums(made, at, changes), ROUNDING, scale=scale)


@pytest.mark.parametrize("seed", range(6))
def test_perturbations_of_every_joint_type(seed: int) -> None:
    """The recursion agrees with D0, V0 and P0 on plain floats."""
    robot = tree(8, seed)
    model, at = robot.model.frictionless(), state(robot, seed)
    changes = np.random.default_rng(seed).normal(size=(3, model.nv))
    q, *rates = ([float(e) for e in x] for x in (*at, *changes))
    tau = inverse_dynamics_perturbation(model, model.positions(q), *map(model.velocities, rates))
    efforts = model.efforts(tau)
    found = np.array([float(x) for i in model.movers for x in efforts[i]])
    D, V, P = direct(model, "inverse_dynamics_sensitivities", *at)
    expected = D @ changes[2] + V @ changes[1] + P @ changes[0]
    close(found, expected, ROUNDING, scale=float(np.max(np.abs(expected))))


def test_perturbations_grow_with_the_number_of_joints() -> None:
    counts = [
        straight(trace(general_chain(n).model, inverse_dynamics_perturbation)).count.multiplications
        for n in (8, 16, 24)
    ]
    assert counts[2] - counts[1] == counts[1] - counts[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ROBOTS)
def test_closed_forms(name: str, method: str) -> None:
    robot = ROBOTS[name]()
    at = state(robot, 1)
    found = robot.inverse_dynamics_sensitivities(*at, method=method)
    D, V, P = closed_forms(chain(robot, *at))
    D += np.diag([robot.joint(joint).armature for joint in robot.joints])
    size = float(np.max(np.abs(P)))
    for mine, theirs in zip(found, (D, V, P), strict=True):
        close(mine, theirs, ROUNDING, scale=size)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [puma560, stanford_arm], ids=lambda f: f.__name__)
def test_differences(make, method: str) -> None:
    """Sensitivities agree with differences, for revolute and prismatic joints.

    Central differences with step 1e-4 have a relative error of 1e-8.
    """
    robot = make()
    at = state(robot, 2)
    found = robot.inverse_dynamics_sensitivities(*at, method=method)
    for k, mine in zip((2, 1, 0), found, strict=True):
        steps = 1e-4 * np.eye(robot.nv)
        ahead, behind = (
            robot.inverse_dynamics(*(x + s * steps * (n == k) for n, x in enumerate(at)))
            for s in (1.0, -1.0)
        )
        close(mine, (ahead - behind).T / 2e-4, 1e-6)


chains = st.tuples(st.text("RP", min_size=1, max_size=5), st.integers(0, 10**6))


@settings(max_examples=15, deadline=None)
@given(chains, st.sampled_from(METHODS))
def test_structure_theorems(kinds_and_seed: tuple[str, int], method: str) -> None:
    """D0 is the mass matrix; v_nn, zd_1 and zdd_1 are zero, for any chain (section 7.3).

    If gravity is along the first axis, the first column of P0 is zero.
    """
    robot = random_chain(*kinds_and_seed)
    first = robot.model.bodies[0].joint
    axis = np.array(list(first.placement.E.T @ Vector.of(0.0, 0.0, 1.0)))
    upright = robot.with_gravity(-9.81 * axis)
    at = state(robot, kinds_and_seed[1])
    D, V, P = direct(upright.model, "inverse_dynamics_sensitivities", *at, method=method)
    size = float(max(np.max(np.abs(D)), np.max(np.abs(P)), np.max(np.abs(V))))
    close(D, direct(robot.model, "mass_matrix", at[0]), ROUNDING)
    assert np.all(np.linalg.eigvalsh(D) > 0.0)
    assert abs(V[-1, -1]) <= 1e-13 * size
    assert np.max(np.abs(P[:, 0])) <= 1e-13 * size
    split = (robot.model.positions(at[0].tolist()), *(_rates(robot, x) for x in at[1:]))
    Omega, z = tensor_chain(robot.model, *split).Omega[0], Vector.of(0.0, 0.0, 1.0)
    assert not any(Omega.w.cross(z))
    assert not any(Omega @ z)


def _rates(robot: chasles.Robot, x: np.ndarray) -> dict[int, Vector]:
    return robot.model.velocities(x.tolist())


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6))
def test_other_gravity_is_felt_by_the_first_joint(seed: int) -> None:
    """If the first axis is not along gravity, the first column of P0 is not zero."""
    robot = random_chain("RRRR", seed)
    at = state(robot, seed)
    _, _, P = direct(robot.model, "inverse_dynamics_sensitivities", *at)
    assert np.max(np.abs(P[:, 0])) > 1e-6 * np.max(np.abs(P))


@pytest.mark.parametrize("method", METHODS)
def test_dissipation(method: str) -> None:
    robot = stanford_arm()
    at = state(robot, 4)
    found = robot.inverse_dynamics_sensitivities(*at, method=method, dissipation=True)
    expected = robot.derivatives("inverse_dynamics", *at, dissipation=True)[::-1]
    for mine, theirs in zip(found, expected, strict=True):
        close(mine, theirs, ROUNDING)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mimics", [False, True])
def test_every_joint_type(seed: int, mimics: bool) -> None:
    """Sensitivities agree with differences along `integrate`, for trees on plain floats.

    The directions are random, so they involve all columns.
    """
    robot = tree(9, seed, mimics=mimics, floating=seed % 2 == 1)
    at, h = state(robot, seed), 1e-4
    ways = np.random.default_rng(seed).normal(size=(robot.nv, 3))

    def moved(k: int, step: np.ndarray) -> np.ndarray:
        q, qd, qdd = at
        q = direct(robot.model, "integrate", q, step * (k == 0))
        qd, qdd = qd + step * (k == 1), qdd + step * (k == 2)
        return direct(robot.model, "inverse_dynamics", q, qd, qdd)

    expected = [
        np.stack([moved(k, h * d) - moved(k, -h * d) for d in ways.T], axis=1) / (2.0 * h)
        for k in (2, 1, 0)
    ]
    for method in METHODS:
        found = direct(robot.model, "inverse_dynamics_sensitivities", *at, method=method)
        for mine, theirs in zip(found, expected, strict=True):
            close(mine @ ways, theirs, 1e-6)
