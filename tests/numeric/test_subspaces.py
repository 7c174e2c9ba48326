"""Subspaces of motions and forces: results do not depend on the choice of basis."""

import numpy as np
import pytest
from support import close, raises

import chasles
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Transform
from chasles.model.joints import LOOP_JOINTS, Helical
from chasles.numeric.subspaces import (
    active_subspace,
    by_coordinates,
    by_multipliers,
    by_projection,
    collect,
    complement,
    decompose,
    span,
    split_force,
)

RNG = np.random.default_rng(3)


def same_subspace(A: np.ndarray, B: np.ndarray) -> bool:
    """Return True if two sets of columns span the same subspace."""
    both = [span(A), span(B)]
    joint = span(np.hstack(both)).shape[1]
    return both[0].shape[1] == both[1].shape[1] == joint


def random_inertia() -> np.ndarray:
    A = RNG.normal(size=(6, 6))
    return A @ A.T + np.eye(6)


def mixed(S: np.ndarray) -> np.ndarray:
    """Return another basis of the same subspace."""
    return S @ (RNG.normal(size=(S.shape[1],) * 2) + 3.0 * np.eye(S.shape[1]))


@pytest.mark.parametrize("kind", LOOP_JOINTS)
def test_joints(kind: str) -> None:
    """T of every joint is the orthogonal complement of its S, and T_a' S = 1."""
    make, none = LOOP_JOINTS[kind], Vector.zero(LOOP_JOINTS[kind].nv)
    extra = (0.2,) if make is Helical else ()
    joint = make(Transform.identity(), none, none, none, *extra)
    q = joint.integrate(joint.neutral(), Vector(tuple(0.1 * (k + 1) for k in range(joint.nv))))
    S, T, Ta = (
        np.array([list(column) for column in basis.columns]).reshape(-1, 6).T
        for basis in (joint.subspace(q), joint.constraint(q), joint.active(q))
    )
    assert same_subspace(complement(S), T)
    assert same_subspace(complement(T), S)
    np.testing.assert_allclose(Ta.T @ S, np.eye(joint.nv), atol=1e-15)
    f = RNG.normal(size=6)
    tau, lam = decompose(f, Ta, T)
    np.testing.assert_allclose(tau, S.T @ f, atol=1e-14)
    np.testing.assert_allclose(Ta @ tau + T @ lam, f, atol=1e-14)


def test_span_and_complement() -> None:
    S = RNG.normal(size=(6, 2))
    repeated = np.hstack([S, S @ RNG.normal(size=(2, 3))])
    assert span(repeated).shape == (6, 2)
    assert same_subspace(span(repeated), mixed(S))
    assert not same_subspace(S, S[:, :1])
    assert not same_subspace(S, RNG.normal(size=(6, 2)))
    T = complement(repeated)
    assert T.shape == (6, 4)
    np.testing.assert_allclose(T.T @ S, 0.0, atol=1e-14)
    assert complement(np.zeros((6, 0))).shape == (6, 6)
    assert span(np.zeros((6, 2))).shape == (6, 0)


def test_sums_that_are_not_direct() -> None:
    S = RNG.normal(size=(6, 3))
    with raises("E-MATH-037"):
        decompose(np.ones(6), S, mixed(S))
    with raises("E-MATH-037"):
        decompose(np.ones(6), S, RNG.normal(size=(6, 2)))
    with raises("E-MATH-038"):
        decompose(np.ones(5), S, RNG.normal(size=(6, 3)))


def test_a_force_has_two_parts() -> None:
    """A force splits into a part that causes all motion and one that causes none (example 3.1).

    The split does not depend on the basis.
    """
    I, S, f = random_inertia(), RNG.normal(size=(6, 2)), RNG.normal(size=6)
    f_a, f_c = split_force(I, S, f)
    close(f_a + f_c, f, 1e-15)
    close(S.T @ f_c, np.zeros(2), 1e-13, scale=1.0)
    assert same_subspace(np.column_stack([I @ S, f_a]), I @ S)
    close(split_force(I, mixed(S), f)[0], f_a, 1e-12)
    a = by_projection(I, S, f, np.zeros(6), np.zeros(6))
    close(a.a, by_projection(I, S, f_a, np.zeros(6), np.zeros(6)).a, 1e-12)
    close(np.linalg.solve(I, f_a), a.a, 1e-12)
    close(a.force, -f_c, 1e-12)


@pytest.mark.parametrize("m", [0, 1, 3, 6])
def test_one_body_three_ways(m: int) -> None:
    """Results agree for S, T and generalized coordinates; Phi has the range of S (section 3.6)."""
    I, S = random_inertia(), np.linalg.qr(RNG.normal(size=(6, m)))[0]
    S = S @ (np.eye(m) + 0.5 * np.tri(m, k=-1))  # neither orthonormal nor nearly dependent
    f, p, c = RNG.normal(size=(3, 6))
    one, two = by_projection(I, S, f, p, c), by_multipliers(I, complement(S), f, p, c)
    for a, b in zip(one, two, strict=True):
        close(a, b, 1e-11, scale=1.0)
    H, C, qdd = by_coordinates(I, S, f, p, c)
    close(S @ qdd + c, one.a, 1e-11)
    close(H @ qdd + C, S.T @ f, 1e-11)
    assert same_subspace(one.Phi, S)
    close(S.T @ one.force, np.zeros(m), 1e-11, scale=1.0)
    close(I @ one.a + p, f + one.force, 1e-12)


def test_what_does_no_work_drives_nothing() -> None:
    with raises("E-MATH-039"):
        active_subspace(np.eye(6)[:, 2:3], np.eye(6)[:, 4:5])
    with raises("E-MATH-039"):
        active_subspace(np.eye(6)[:, 2:3], np.eye(6)[:, 1:3])


def test_bad_shapes() -> None:
    with raises("E-MATH-040"):
        span(np.ones(6))
    with raises("E-MATH-040"):
        complement([[np.nan]])
    with raises("E-MATH-041", "(6, 6)", "split_force"):
        split_force(np.eye(3), np.eye(6), np.ones(6))


def test_collected_bodies_that_are_welded_are_one_body() -> None:
    """Two welded bodies have equal accelerations: (I1 + I2) a = f1 + f2 - p1 - p2.

    The system is [H T; T' 0].
    """
    I, p, f = [random_inertia() for _ in range(2)], RNG.normal(size=(2, 6)), RNG.normal(size=(2, 6))
    H, C = collect((I[0], p[0]), (I[1], p[1]))
    T = np.vstack([np.eye(6), -np.eye(6)])
    whole = np.block([[H, T], [T.T, np.zeros((6, 6))]])
    a = np.linalg.solve(whole, [*(np.concatenate(f) - C), *np.zeros(6)])[:12]
    expected = np.linalg.solve(I[0] + I[1], f.sum(axis=0) - p.sum(axis=0))
    close(a, np.concatenate([expected, expected]), 1e-11)


def test_collected_robots_move_as_they_do_alone() -> None:
    """Two robots and a free body, collected in one system, move as they do alone, in a batch."""
    robots = chasles.robots.planar(2), chasles.robots.stanford_arm()
    q = [robot.random(1, size=3) for robot in robots]
    rates = [RNG.normal(size=(3, robot.nv)) for robot in robots]
    tau, push = [RNG.normal(size=(3, robot.nv)) for robot in robots], RNG.normal(size=6)
    parts = [
        (robot.mass_matrix(x), robot.bias_forces(x, v))
        for robot, x, v in zip(robots, q, rates, strict=True)
    ]
    I = random_inertia()
    H, C = collect(*parts, (I, np.zeros(6)))
    assert H.shape == (3, 14, 14)
    right = np.concatenate([*tau, np.broadcast_to(push, (3, 6))], axis=-1) - C
    found = np.linalg.solve(H, right[..., None])[..., 0]
    alone = [
        robot.forward_dynamics(x, v, t)
        for robot, x, v, t in zip(robots, q, rates, tau, strict=True)
    ]
    body = np.broadcast_to(np.linalg.solve(I, push), (3, 6))
    close(found, np.concatenate([*alone, body], axis=-1), 1e-9)
    assert collect()[0].shape == (0, 0)
    with raises("E-MATH-348", "subsystem 1"):
        collect((I, push), (I, np.zeros(5)))
    with raises("E-MATH-349"):
        collect((np.ones((2, 1, 1)), np.ones(1)), (np.ones((3, 1, 1)), np.ones(1)))
