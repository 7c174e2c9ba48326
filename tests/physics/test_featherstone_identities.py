"""Identities of Featherstone (2008), chapters 3, 7 and 8, that no other file tests."""

import numpy as np
import pytest
from support import close, state, tree
from test_assembly import without_armature
from test_maximal import MECHANISMS, closed_state

import chasles
from chasles.mathematics.linear import Vector, invert_symmetric
from chasles.mathematics.spatial import ArticulatedInertia, Force, InverseInertia, Motion
from chasles.model.model import WORLD

# Chapter 7: articulated bodies ------------------------------------------------------------------


def unit_responses(A: ArticulatedInertia) -> np.ndarray:
    return np.array([list(A @ Motion.of(*unit)) for unit in np.eye(6).tolist()]).T


def dense(Phi: InverseInertia) -> np.ndarray:
    return np.array(Phi.entries)


@pytest.mark.parametrize("seed", range(3))
def test_articulated_inertias_of_all_assemblies(seed: int) -> None:
    """Articulated inertias agree for all assembly formulas, and I^a S = 0."""
    model = without_armature(tree(9, seed)).model
    q = model.positions(chasles.Robot(model.source).random(seed=seed).tolist())
    standard = {i: ArticulatedInertia.of(I) for i, _, _, I in model.outward()}
    standard[WORLD] = ArticulatedInertia.zero()
    with_T, inverse = dict(standard), {i: InverseInertia.of(I) for i, _, _, I in model.outward()}
    inverse[WORLD] = InverseInertia.zero()
    for i, p, joint, _ in model.inward():
        X, S, T = joint.transform(q[i]), joint.subspace(q[i]), joint.constraint(q[i])
        close(unit_responses(with_T[i]), unit_responses(standard[i]), 1e-10)
        close(np.linalg.inv(dense(inverse[i])), unit_responses(standard[i]), 1e-9)
        U = standard[i] @ S
        Ia = standard[i].without(U, U @ invert_symmetric(S.T @ U))
        felt = np.array([list(f) for f in (Ia @ S).columns])
        close(felt, np.zeros_like(felt), 1e-12, scale=float(np.max(unit_responses(standard[i]))))
        standard[p] += X.T @ Ia
        F = X.T @ T
        W = invert_symmetric(T.T @ (InverseInertia.of_articulated(with_T[i]) @ T))
        with_T[p] = with_T[p].without(F, F @ -W)
        V = inverse[p] @ F
        W = invert_symmetric(F.T @ V + T.T @ (inverse[i] @ T))
        inverse[p] = inverse[p].without(V, V @ W)


@pytest.mark.parametrize("seed", range(2))
def test_assembled_inverse_inertia_is_that_of_the_operational_space(seed: int) -> None:
    """J H^-1 J' of a free root is the inverse of its articulated inertia (Eq 7.9)."""
    robot = without_armature(tree(6, seed, floating=True))
    q, root = robot.random(seed=seed), robot.model.bodies[0].name
    Phi = robot.operational_inertia_inverse(q, frame=root, axes="frame")
    IA = {i: ArticulatedInertia.of(I) for i, _, _, I in robot.model.outward()}
    x = robot.model.positions(q.tolist())
    for i, p, joint, _ in robot.model.inward():
        if p == WORLD:
            break
        U = IA[i] @ joint.subspace(x[i])
        D = invert_symmetric(joint.subspace(x[i]).T @ U)
        IA[p] += joint.transform(x[i]).T @ IA[i].without(U, U @ D)
    assert robot.model.frames[root].placement.r == Vector.zero()
    close(Phi @ unit_responses(IA[0]), np.eye(6), 1e-10)


# Chapter 3: gravity -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_gravity_is_a_force_on_every_body(seed: int) -> None:
    """Accelerating the base (Eq 5.12) is equivalent to forces I a_g on the bodies."""
    robot = tree(9, seed)
    weightless = robot.with_gravity((0.0, 0.0, 0.0))
    q, qd, qdd = state(robot, seed)
    forces = {}
    for i, body in enumerate(robot.model.bodies):
        frame = robot.model.frames[body.name]
        inertia = frame.placement @ body.inertia
        R = robot.forward_kinematics(q, frame=body.name)[:3, :3]
        down = Motion(Vector.zero(), Vector(tuple((R.T @ robot.gravity).tolist())))
        weight: Force = inertia @ down
        forces[body.name] = chasles.Wrench(list(weight), axes="frame", at="frame")
        assert frame.body == i
    expected = robot.inverse_dynamics(q, qd, qdd)
    close(weightless.inverse_dynamics(q, qd, qdd, f_ext=forces), expected, 1e-12)


# Chapters 3 and 8: constraints -------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
def test_constraints_of_loops(name: str) -> None:
    """Loop constraints satisfy K G = 0, K g = k, K qd = 0 and do no work (sections 3.5 and 3.6).

    No work means tau_c . qd = 0 and G' tau_c = 0.
    """
    robot, q, qd, tau = closed_state(name, 4)
    n, K, k = int(robot.mobility(q)), robot.loop_matrix(q), robot.loop_bias(q, qd)
    G = np.array([robot.complete(q, unit) for unit in np.eye(n)]).T
    close(K @ G, np.zeros((len(K), n)), 1e-11, scale=float(np.max(np.abs(K)) * np.max(np.abs(G))))
    y = [robot.mechanism.closing.freedoms.index(freedom) for freedom in robot.independent]
    close(G[y], np.eye(n), 1e-12)
    _, g = robot.complete(q, qd[y], np.zeros(n))
    close(K @ g, k, 1e-10, scale=float(np.max(np.abs(g))))
    qdd, lam = robot.constrained_dynamics(q, qd, tau)
    tau_c = K.T @ lam
    work = float(np.max(np.abs(tau_c)) * np.max(np.abs(G)) * len(tau_c))
    close(G.T @ tau_c, np.zeros(n), 1e-10, scale=work)
    close(tau_c @ qd, 0.0, 1e-10, scale=work * float(np.max(np.abs(qd))))
    close(K @ qdd, k, 1e-9, scale=float(np.max(np.abs(qdd))))


@pytest.mark.parametrize("name", ["four_bar", "delta"])
def test_velocity_across_a_loop_and_its_rate(name: str) -> None:
    """The rate of K qd is K qdd - k, and the rate of the loop residual is K qd.

    Both are checked by central differences along motions that leave the loops.
    """
    robot, q, qd, _ = closed_state(name, 5)
    rng, h = np.random.default_rng(6), 1e-4
    n = int(robot.mobility(q))
    y = [robot.mechanism.closing.freedoms.index(freedom) for freedom in robot.independent]
    _, qdd = robot.complete(q, qd[y], rng.normal(size=n))
    wrong = qdd + rng.normal(size=robot.nv)  # leaves the loops: K qd changes at the rate K qdd - k
    after, before = (
        robot.loop_matrix(robot.integrate(q, s * qd + 0.5 * s * s * wrong)) @ (qd + s * wrong)
        for s in (h, -h)
    )
    expected = robot.loop_matrix(q) @ wrong - robot.loop_bias(q, qd)
    close((after - before) / (2.0 * h), expected, 1e-6)
    speed = rng.normal(size=robot.nv)
    residual = [robot.loop_residual(robot.integrate(q, s * speed)) for s in (h, -h)]
    close((residual[0] - residual[1]) / (2.0 * h), robot.loop_matrix(q) @ speed, 1e-6)
