"""Closed-form dynamics: D, Christoffel symbols C and G of tau[i] = D[i] qdd + qd C[i] qd + G[i].

Bias forces are quadratic in velocity, so a few of them give every symbol exactly, for every joint
type. Christoffel's formula, skew symmetry and published symbols are checked for robots whose
velocities are the rates of q. Rounding errors are at most 1e-11.
"""

import numpy as np
import pytest
from support import TARGETS, close, direct, raises, runner, state, tree, ways

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.robots import planar, puma560, stanford_arm

ROUNDING = 1e-11
METHODS = [method.name for method in FUNCTIONS["closed_form"]]

RATES = {
    "puma560": puma560,
    "stanford_arm": stanford_arm,
    "helical, cylindrical, universal, prismatic": lambda: tree(4, 1751, floating=False),
}
"""Robots whose velocities are the rates of q."""

SMALL = {
    "free, universal": lambda: tree(2, 0, floating=True),
    "spherical, universal, revolute": lambda: tree(3, 1, floating=False),
}


def polarised(robot: chasles.Robot, q: np.ndarray) -> np.ndarray:
    """Return C by polarization of the bias forces h.

    The identity is h(e_j + e_k) - h(e_j) - h(e_k) + h(0) = 2 C[:, j, k].
    """
    model, units = robot.model.frictionless(), np.eye(robot.nv)

    def h(qd: np.ndarray) -> np.ndarray:
        return direct(model, "bias_forces", q, qd)

    rest, alone = h(0.0 * units[0]), [h(e) for e in units]
    C = np.zeros((robot.nv,) * 3)
    for j, e in enumerate(units):
        for k in range(j, robot.nv):
            C[:, j, k] = C[:, k, j] = (h(e + units[k]) - alone[j] - alone[k] + rest) / 2.0
    return C


@pytest.mark.parametrize("mimics", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_every_symbol(seed: int, mimics: bool) -> None:
    """All symbols agree for fixed and floating trees, with or without mimic joints."""
    robot = tree(9, seed, floating=seed == 1, mimics=mimics)
    q, *_ = state(robot, seed)
    M, G = direct(robot.model, "mass_matrix", q), direct(robot.model, "gravity_forces", q)
    symbols, size = polarised(robot, q), float(np.max(np.abs(G)))
    for method in ways(robot, "closed_form"):
        found = direct(robot.model, "closed_form", q, method=method)
        for mine, theirs in zip(found, (M, symbols, G), strict=True):
            close(mine, theirs, ROUNDING, scale=size)
        C = found[1]
        assert np.array_equal(C, np.swapaxes(C, -1, -2))


@pytest.mark.parametrize("seed", range(3))
def test_velocity_forces_have_the_power_of_the_inertia(seed: int) -> None:
    """qd'(dD/dt - 2 qd C) qd is zero for all velocities.

    Central differences with step 1e-4 have an error of about 1e-8.
    """
    robot = tree(9, seed, floating=seed == 1)
    q, qd, _ = state(robot, seed)
    after, before = (
        direct(robot.model, "mass_matrix", direct(robot.model, "integrate", q, t * qd))
        for t in (1e-4, -1e-4)
    )
    twice = qd @ ((after - before) / 2e-4) @ qd
    _, C, _ = direct(robot.model, "closed_form", q)
    close(2.0 * np.einsum("i,ijk,j,k", qd, C, qd, qd), twice, 1e-6, scale=1.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", RATES)
def test_christoffel_and_the_skew_part(name: str, method: str) -> None:
    """C = (dD_ij/dq_k + dD_ik/dq_j - dD_jk/dq_i) / 2, so dD/dt - 2 C qd is skew (5.2.18)."""
    robot = RATES[name]()
    assert all(body.joint.additive for body in robot.model.bodies)
    q, qd, _ = state(robot, 5)
    D, C, _ = robot.closed_form(q, method=method)
    dD = robot.derivatives("mass_matrix", q, wrt="q")
    expected = (dD + np.swapaxes(dD, 1, 2) - np.moveaxis(dD, 2, 0)) / 2.0
    close(D, robot.mass_matrix(q), ROUNDING)
    close(C, expected, ROUNDING)
    N = dD @ qd - 2.0 * C @ qd
    close(N, -N.T, ROUNDING, scale=float(np.max(np.abs(C))))


@pytest.mark.parametrize("method", METHODS)
def test_two_rods_by_hand(method: str) -> None:
    """Textbook symbols of two rods: h = -m2 l1 lc2 sin q2 (Balafoutis and Patel, Eq 5.2.17)."""
    robot = planar(2)
    q = np.array([[0.3, 0.7], [-1.1, 2.0]])
    D, C, G = robot.closed_form(q, method=method)
    h, c2, zero = -0.5 * np.sin(q[:, 1]), np.cos(q[:, 1]), np.zeros(2)
    hand = np.array([[[zero, h], [h, h]], [[-h, zero], [zero, zero]]])
    close(C, np.moveaxis(hand, -1, 0), ROUNDING)
    d12 = 1.0 / 3.0 + 0.5 * c2
    close(D[:, 0, 0], 5.0 / 3.0 + c2, ROUNDING)
    close(D[:, 0, 1], d12, ROUNDING)
    second = 0.5 * 9.81 * np.cos(q[:, 0] + q[:, 1])
    close(G, np.stack([1.5 * 9.81 * np.cos(q[:, 0]) + second, second], axis=-1), ROUNDING)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SMALL)
def test_methods_agree(target: str, name: str) -> None:
    """All methods agree with each other on every backend, in a batch."""
    robot = SMALL[name]()
    q, qd, qdd = state(robot, 6, (2, 2))
    run = runner(robot, target)
    D, C, G = run("closed_form", q)
    velocity = np.einsum("...ijk,...j,...k->...i", C, qd, qd)
    close(velocity + G, run("bias_forces", q, qd), ROUNDING)
    tau = run("inverse_dynamics", q, qd, qdd)
    close(np.einsum("...ij,...j->...i", D, qdd) + velocity + G, tau, ROUNDING)
    for method in METHODS:
        for mine, theirs in zip(run("closed_form", q, method=method), (D, C, G), strict=True):
            close(mine, theirs, ROUNDING)
    close(run("inverse_dynamics", q, qd, qdd, method="vukobratovic"), tau, ROUNDING)
    slopes = run("inverse_dynamics_sensitivities", q, qd, qdd)
    found = run("inverse_dynamics_sensitivities", q, qd, qdd, method="closed-form")
    for mine, theirs in zip(found, slopes, strict=True):
        close(mine, theirs, ROUNDING)


def test_batches_and_results_in_place() -> None:
    robot = stanford_arm()
    q, *_ = state(robot, 7, (3, 2))
    D, C, G = robot.closed_form(q)
    assert (D.shape, C.shape, G.shape) == ((3, 2, 6, 6), (3, 2, 6, 6, 6), (3, 2, 6))
    out = (np.empty_like(D), np.empty_like(C), np.empty_like(G))
    robot.closed_form(q, out=out)
    for mine, theirs, alone in zip(out, (D, C, G), robot.closed_form(q[2, 1]), strict=True):
        assert np.array_equal(mine, theirs)
        assert np.array_equal(alone, theirs[2, 1])
    with raises("E-CALL-032", "mass_matrix"):
        robot.derivatives("closed_form", q)
