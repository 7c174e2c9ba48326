"""Compare every product of spatial algebra with 6x6 matrices (Featherstone 2008, chapter 2)."""

import numpy as np
import pytest
from scipy.linalg import expm

from chasles.expr import RULES, Arena
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import Rotation, about
from chasles.mathematics.spatial import (
    ArticulatedInertia,
    CoriolisInertia,
    Force,
    Forces,
    Motion,
    Motions,
    RigidInertia,
    Transform,
)

KINDS = ["identity", "general", "permutation", "screw x", "screw y", "screw z", "factors", "shift"]


@pytest.fixture(params=KINDS)
def X(request, reference, rng):
    """Transform of each kind that has its own optimized code."""
    general = Rotation.of(reference.matrix(reference.rotation_matrix(rng)))
    permutation = Rotation.of(reference.matrix([[0, 0, 1], [-1, 0, 0], [0, -1, 0]]))
    r = reference.vector(rng)
    return {
        "identity": lambda: Transform.identity(),
        "general": lambda: Transform(general, r),
        "permutation": lambda: Transform(permutation, r),
        "screw x": lambda: Transform(about(0, 0.7), Vector.of(0.4, 0.0, 0.0)),
        "screw y": lambda: Transform(about(1, -2.1), Vector.of(0.0, 0.4, 0.0)),
        "screw z": lambda: Transform(about(2, 3.0), Vector.of(0.0, 0.0, 0.4)),
        "factors": lambda: Transform(about(2, 0.3).then(general).then(permutation), r),
        "shift": lambda: Transform(Rotation(), r),
    }[request.param]()


def _close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_transform_of_vectors(X, reference, rng):
    D, dense = reference.dense(X), reference.dense
    dual = np.linalg.inv(D).T
    m, f = reference.motion(rng), reference.force(rng)
    _close(dense(X @ m), D @ dense(m))
    _close(dense(X @ f), dual @ dense(f))
    _close(dense(X.inverse() @ m), np.linalg.inv(D) @ dense(m))
    _close(dense(X.inverse() @ f), D.T @ dense(f))
    _close(dense(X.T @ f), D.T @ dense(f))
    assert type(X @ m) is type(X.inverse() @ m) is Motion
    assert type(X @ f) is type(X.T @ f) is Force


def test_there_and_back(X, reference, rng):
    m, f = reference.motion(rng), reference.force(rng)
    dense = reference.dense
    _close(dense(X.inverse() @ (X @ m)), dense(m))
    _close(dense(X @ (X.inverse() @ m)), dense(m))
    _close(dense(X.T @ (X @ f)), dense(f))
    _close(dense(X @ (X.T @ f)), dense(f))
    assert (X @ m).dot(X @ f) == pytest.approx(m.dot(f), rel=1e-12)  # power is frame-invariant


def test_transform_of_columns(X, reference, rng):
    S = Motions(tuple(reference.motion(rng) for _ in range(3)))
    F = Forces(tuple(reference.force(rng) for _ in range(3)))
    D, dense = reference.dense(X), reference.dense
    _close(dense(X @ S), D @ dense(S))
    _close(dense(X.inverse() @ S), np.linalg.inv(D) @ dense(S))
    _close(dense(X.T @ F), D.T @ dense(F))


def test_transform_of_rigid_inertia(X, reference, rng):
    I, D, dense = reference.rigid(rng), reference.dense(X), reference.dense
    inverse = np.linalg.inv(D)
    _close(dense(X @ I), inverse.T @ dense(I) @ inverse)
    _close(dense(X.T @ I), D.T @ dense(I) @ D)
    _close(dense(X.T @ (X @ I)), dense(I))
    _close(dense(X @ (X.T @ I)), dense(I))
    assert (X @ I).m == I.m


def test_transform_of_articulated_inertia(X, reference, rng):
    for A in (reference.articulated(rng), ArticulatedInertia.of(reference.rigid(rng))):
        D, dense = reference.dense(X), reference.dense
        inverse = np.linalg.inv(D)
        _close(dense(X @ A), inverse.T @ dense(A) @ inverse)
        _close(dense(X.T @ A), D.T @ dense(A) @ D)
        _close(dense(X.T @ (X @ A)), dense(A))
        _close(dense(X @ (X.T @ A)), dense(A))


def test_transform_of_coriolis_inertia(X, reference, rng):
    B = CoriolisInertia.of(reference.rigid(rng), reference.motion(rng))
    D, dense = reference.dense(X), reference.dense
    _close(dense(X.T @ B), D.T @ dense(B) @ D)


def test_rigid_and_articulated_agree(X, reference, rng):
    I = reference.rigid(rng)
    dense = reference.dense
    _close(dense(ArticulatedInertia.of(I)), dense(I))
    _close(dense(X @ ArticulatedInertia.of(I)), dense(X @ I))
    _close(dense(X.T @ ArticulatedInertia.of(I)), dense(X.T @ I))


def test_product_of_transforms(X, reference, rng):
    dense = reference.dense
    R = reference.rotation_matrix(rng)
    for other in (
        Transform(Rotation.of(reference.matrix(R)), reference.vector(rng)),
        Transform(about(1, 0.4), reference.vector(rng)),
        Transform.identity(),
    ):
        _close(dense(X @ other), dense(X) @ dense(other))
        _close(dense(other @ X), dense(other) @ dense(X))


def test_pose(X, reference, rng):
    """R and r are the pose of B in A, as used by `from_pose` and `locate`."""
    dense = reference.dense
    _close(dense(X.R), dense(X.E).T)
    _close(dense(Transform.from_pose(X.R, X.r)), dense(X))
    point = reference.vector(rng)
    _close(dense(X.locate(point)), dense(X.R) @ dense(point) + dense(X.r))
    # The velocity of a point, v_P = v_O + w x OP, is the same vector in both frames.
    m = reference.motion(rng)
    there = X @ m
    in_A = m.linear + m.angular.cross(X.locate(point))
    in_B = there.linear + there.angular.cross(point)
    _close(dense(X.R) @ dense(in_B), dense(in_A))


def test_cross_products(reference, rng):
    dense, crm, crf = reference.dense, reference.crm, reference.crf
    for _ in range(10):
        v, m, f = reference.motion(rng), reference.motion(rng), reference.force(rng)
        _close(dense(v.cross(m)), crm(dense(v)) @ dense(m))
        _close(dense(v.cross(f)), crf(dense(v)) @ dense(f))
        S = Motions((m, v, m))
        _close(dense(v.cross(S)), crm(dense(v)) @ dense(S))
        assert v.dot(f) == f.dot(v) == pytest.approx(dense(v) @ dense(f), rel=1e-12)


def test_identities_of_table_2_3(X, reference, rng):
    """The identities of table 2.3 hold, the last one as corrected.

    It is (u x v) x = u x v x - v x u x, for motions and forces.
    """
    dense = reference.dense
    u, v, m = (reference.motion(rng) for _ in range(3))
    f = reference.force(rng)
    a = 1.7
    _close(dense((v * a).cross(m)), a * dense(v.cross(m)))
    _close(dense((u + v).cross(m)), dense(u.cross(m) + v.cross(m)))
    _close(dense((u + v).cross(f)), dense(u.cross(f) + v.cross(f)))
    _close(dense(v.cross(v)), np.zeros(6))
    _close(dense(u.cross(v)), -dense(v.cross(u)))
    _close(dense(X @ v.cross(m)), dense((X @ v).cross(X @ m)))
    _close(dense(X @ v.cross(f)), dense((X @ v).cross(X @ f)))
    _close(dense(u.cross(v).cross(m)), dense(u.cross(v.cross(m)) - v.cross(u.cross(m))))
    _close(dense(u.cross(v).cross(f)), dense(u.cross(v.cross(f)) - v.cross(u.cross(f))))
    assert v.cross(m).dot(f) == pytest.approx(-m.dot(v.cross(f)), rel=1e-11)  # crf = -crm'


def test_scaling_and_sums(reference, rng):
    dense = reference.dense
    for make in (reference.motion, reference.force):
        a, b = make(rng), make(rng)
        _close(dense(a + b * 2.0 - b), dense(a) + dense(b))
        _close(dense(-a), -dense(a))
        assert 2.0 * a == a * 2.0
        _close(dense(a + type(a).zero()), dense(a))
    I, J = reference.rigid(rng), reference.rigid(rng)
    _close(dense(I + J * 2.0 - J), dense(I) + dense(J))
    _close(dense(2.0 * I), 2.0 * dense(I))
    _close(dense(I + RigidInertia.zero()), dense(I))
    A, B = reference.articulated(rng), reference.articulated(rng)
    _close(dense(A + B), dense(A) + dense(B))
    _close(dense(A + ArticulatedInertia.zero()), dense(A))
    S, T = (Motions((reference.motion(rng), reference.motion(rng))) for _ in range(2))
    _close(dense(S + T), dense(S) + dense(T))
    F, G = (Forces((reference.force(rng), reference.force(rng))) for _ in range(2))
    _close(dense(F + G), dense(F) + dense(G))


def test_inertia_times_motion(reference, rng):
    dense = reference.dense
    for I in (reference.rigid(rng), reference.articulated(rng)):
        m = reference.motion(rng)
        S = Motions((m, reference.motion(rng)))
        _close(dense(I @ m), dense(I) @ dense(m))
        _close(dense(I @ S), dense(I) @ dense(S))
        assert type(I @ m) is Force
        assert type(I @ S) is Forces


def test_rigid_inertia_from_its_centre(reference, rng):
    """I = [Ic + m c x c x', m c x; m c x', m 1] (Eq 2.63) is positive definite."""
    m, c, Ic = 2.5, reference.vector(rng), reference.symmetric(rng)
    I = RigidInertia.from_center(m, c, Ic)
    C = reference.skew(c)
    expected = np.block([[reference.dense(Ic) + m * C @ C.T, m * C], [m * C.T, m * np.eye(3)]])
    _close(reference.dense(I), expected)
    assert np.linalg.eigvalsh(reference.dense(I)).min() > 0.0
    # Moving a central inertia by c gives the same result.
    central = RigidInertia(m, Vector.zero(), Ic)
    _close(reference.dense(Transform(Rotation(), c).T @ central), expected)


def test_columns_and_rows(reference, rng):
    dense = reference.dense
    S = Motions(tuple(reference.motion(rng) for _ in range(3)))
    F = Forces(tuple(reference.force(rng) for _ in range(2)))
    f, m = reference.force(rng), reference.motion(rng)
    rates, weights = reference.vector(rng, 3), reference.vector(rng, 2)
    A = reference.matrix(rng.normal(size=(2, 4)))
    _close(dense(S @ rates), dense(S) @ dense(rates))
    _close(dense(F @ weights), dense(F) @ dense(weights))
    _close(dense(F @ A), dense(F) @ dense(A))
    _close(dense(S.T @ f), dense(S).T @ dense(f))
    _close(dense(S.T @ F), dense(S).T @ dense(F))
    _close(dense(F.T @ m), dense(F).T @ dense(m))
    _close(dense(F.T @ S), dense(F).T @ dense(S))


def test_no_columns():
    """Joints without degrees of freedom are supported."""
    S, F = Motions(()), Forces(())
    assert S @ Vector(()) == Motion.zero()
    assert F @ Vector(()) == Force.zero()
    assert S.T @ Force.zero() == Vector(())
    assert RigidInertia.zero() @ S == F
    assert Transform.identity() @ S == S


def test_what_a_joint_removes(reference, rng):
    """`without` gives I - U D^-1 U', which maps the joint's motions to zero (section 7.2)."""
    A = ArticulatedInertia.of(reference.rigid(rng))
    for n in (1, 2, 3):
        S = Motions(tuple(reference.motion(rng) for _ in range(n)))
        U = A @ S
        D = reference.dense(S.T @ U)
        K = U @ reference.matrix(np.linalg.inv(D))
        left = A.without(U, K)
        u = reference.dense(U)
        _close(reference.dense(left), reference.dense(A) - u @ np.linalg.inv(D) @ u.T)
        np.testing.assert_allclose(reference.dense(left @ S), np.zeros((6, n)), atol=1e-11)


def test_coriolis_inertia_is_a_factor_of_the_bias_force(reference, rng):
    """B v = v x* I v and dI/dt = v x* I - I v x = B + B' (Echeandia and Wensing 2021)."""
    dense, crm, crf = reference.dense, reference.crm, reference.crf
    for _ in range(5):
        I, v = reference.rigid(rng), reference.motion(rng)
        B = CoriolisInertia.of(I, v)
        D = dense(B)
        _close(D @ dense(v), dense(v.cross(I @ v)))
        rate = crf(dense(v)) @ dense(I) - dense(I) @ crm(dense(v))
        _close(D + D.T, rate)
        S = Motions((v, reference.motion(rng), reference.motion(rng)))
        _close(dense(B @ S), D @ dense(S))
        _close(dense(B.transposed(S)), D.T @ dense(S))
        other = CoriolisInertia.of(reference.rigid(rng), reference.motion(rng))
        _close(dense(B + other), D + dense(other))


def test_kinetic_energy_has_no_frame(X, reference, rng):
    I, v = reference.rigid(rng), reference.motion(rng)
    there = (X @ v).dot((X @ I) @ (X @ v))
    assert there == pytest.approx(v.dot(I @ v), rel=1e-12)


def test_momentum_changes_by_the_cross_product(reference, rng):
    """The gyroscopic force v x* I v does no work on the body."""
    I, v = reference.rigid(rng), reference.motion(rng)
    bias = v.cross(I @ v)
    assert v.dot(bias) == pytest.approx(0.0, abs=1e-12 * abs(v.dot(I @ v)) + 1e-12)


def test_transform_rate_is_minus_the_cross_product(reference, rng):
    """d/dt BXA = -v x BXA if B moves with velocity v, expressed in B (Eq 2.45)."""
    w, u = rng.normal(size=3), rng.normal(size=3)
    R0, p0 = reference.rotation_matrix(rng), rng.normal(size=3)
    v = np.concatenate([w, u])

    def X(t):
        T = np.zeros((4, 4))
        T[:3, :3], T[:3, 3] = reference.skew(w), u
        step = expm(t * T)
        pose = R0 @ step[:3, :3], p0 + R0 @ step[:3, 3]
        return reference.dense(
            Transform.from_pose(reference.matrix(pose[0]), Vector(tuple(pose[1].tolist())))
        )

    h = 1e-3
    rate = (8.0 * (X(h) - X(-h)) - (X(2 * h) - X(-2 * h))) / (12.0 * h)
    np.testing.assert_allclose(rate, -reference.crm(v) @ X(0.0), atol=1e-9)


FREEDOMS = {"hinge": (2,), "slide": (5,), "ball": (0, 1, 2), "planar": (2, 3, 4)}


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("joint", FREEDOMS)
def test_nothing_is_left_along_a_freedom(joint, symbolic):
    """The reduced inertia is exactly zero along the joint's degrees of freedom.

    Rounding errors there would cost operations and destroy the sparsity pattern.
    """
    rigid = RigidInertia(1.3, Vector.of(0.4, -1.1, 0.7), Symmetric(2.1, 2.2, 2.3, 0.1, 0.2, 0.15))
    A, arena = ArticulatedInertia.of(rigid), Arena(RULES)
    if symbolic:
        x = [arena.input("x", k) for k in range(21)]
        A = ArticulatedInertia(
            Symmetric(*x[:6]),
            Matrix((tuple(x[6:9]), tuple(x[9:12]), tuple(x[12:15]))),
            Symmetric(*x[15:]),
        )
    unit = Matrix.identity(6).rows
    S = Motions(tuple(Motion.of(*unit[k]) for k in FREEDOMS[joint]))
    U = A @ S
    left = A.without(U, U.over(S.T @ U))
    for column in S.columns:
        assert list(left @ column) == [0.0] * 6
