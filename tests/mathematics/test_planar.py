"""Compare planar vectors (rotation about z, translation along x and y) with spatial vectors."""

import numpy as np
import pytest

from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.planar import (
    PlanarArticulatedInertia,
    PlanarForce,
    PlanarInertia,
    PlanarMotion,
    PlanarTransform,
)
from chasles.mathematics.rotations import about
from chasles.mathematics.spatial import Force, Motion, RigidInertia, Transform
from chasles.robots import planar as rods

EPS = 4e-16


def spatial(quantity: object) -> object:
    """Convert a planar motion or force to a spatial one."""
    match quantity:
        case PlanarMotion(w, x, y):
            return Motion.of(0.0, 0.0, w, x, y, 0.0)
        case PlanarForce(n, x, y):
            return Force.of(0.0, 0.0, n, x, y, 0.0)
    raise TypeError(quantity)


def planar(vector: object) -> np.ndarray:
    """Return rows 3, 4 and 5 of a spatial vector, the other rows of which are zero."""
    entries = np.array(list(vector), dtype=float)
    assert np.all(entries[[0, 1, 5]] == 0.0)
    return entries[[2, 3, 4]]


def numbers(vector: PlanarMotion | PlanarForce) -> np.ndarray:
    return np.array(list(vector.vector()), dtype=float)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def motion(rng: np.random.Generator) -> PlanarMotion:
    return PlanarMotion(*rng.normal(size=3).tolist())


def force(rng: np.random.Generator) -> PlanarForce:
    return PlanarForce(*rng.normal(size=3).tolist())


def test_crosses_and_power(rng: np.random.Generator) -> None:
    v, m, f = motion(rng), motion(rng), force(rng)
    V, M, F = spatial(v), spatial(m), spatial(f)
    np.testing.assert_allclose(numbers(v.cross(m)), planar(V.cross(M)), atol=EPS)
    np.testing.assert_allclose(numbers(v.cross(f)), planar(V.cross(F)), atol=EPS)
    np.testing.assert_allclose(v.dot(f), V.dot(F), atol=EPS)
    # crf = -crm', so the power m . f is constant if both move with v.
    np.testing.assert_allclose(v.cross(m).dot(f), -m.dot(v.cross(f)), atol=EPS)


def test_transforms(rng: np.random.Generator) -> None:
    angle, x, y = rng.normal(size=3).tolist()
    X, Y = PlanarTransform.of(angle, x, y), PlanarTransform.of(*rng.normal(size=3).tolist())
    S = Transform(about(2, angle), Vector.of(x, y, 0.0))
    v, f = motion(rng), force(rng)
    np.testing.assert_allclose(numbers(X @ v), planar(S @ spatial(v)), atol=EPS)
    np.testing.assert_allclose(numbers(X @ f), planar(S @ spatial(f)), atol=EPS)
    np.testing.assert_allclose(np.array(X.matrix()) @ numbers(v), numbers(X @ v), atol=EPS)
    np.testing.assert_allclose(numbers(X.inverse() @ (X @ v)), numbers(v), atol=EPS)
    np.testing.assert_allclose(numbers((X @ Y) @ v), numbers(X @ (Y @ v)), atol=2 * EPS)
    np.testing.assert_allclose((X @ v).dot(X @ f), v.dot(f), atol=2 * EPS)


def test_inertias(rng: np.random.Generator) -> None:
    m, cx, cy, Ic = (*rng.uniform(0.5, 2.0, size=3).tolist(), 0.7)
    I = PlanarInertia.from_center(m, cx, cy, Ic)
    flat = Symmetric(0.0, 0.0, Ic, 0.0, 0.0, 0.0)
    S = RigidInertia.from_center(m, Vector.of(cx, cy, 0.0), flat)
    v, f, X = motion(rng), force(rng), PlanarTransform.of(0.4, 0.3, -0.8)
    np.testing.assert_allclose(numbers(I @ v), planar(S @ spatial(v)), atol=4 * EPS)
    # The transformed inertia is X* I X^-1. A body's inertia is the sum of those of two halves.
    expected = X @ (I @ (X.inverse() @ v))
    np.testing.assert_allclose(numbers((X @ I) @ v), numbers(expected), atol=10 * EPS)
    half = PlanarInertia(0.5 * I.m, 0.5 * I.hx, 0.5 * I.hy, 0.5 * I.I)
    assert numbers((half + half) @ v) == pytest.approx(numbers(I @ v), abs=4 * EPS)
    np.testing.assert_allclose(v.dot(I @ v), v.dot(I @ v + f) - v.dot(f), atol=10 * EPS)


def test_articulated_inertias(rng: np.random.Generator) -> None:
    """Articulated inertias are symmetric 3x3 matrices that transform to X* A X^-1."""
    numbers_of = rng.normal(size=6).tolist()
    A, X = PlanarArticulatedInertia(*numbers_of), PlanarTransform.of(0.9, -0.3, 1.4)
    D = np.linalg.inv(np.array(X.matrix()))
    expected = D.T @ np.array(A.matrix()) @ D
    np.testing.assert_allclose(np.array((X @ A).matrix()), expected, atol=20 * EPS)
    back = X.inverse() @ (X @ A)
    np.testing.assert_allclose(np.array(back.matrix()), np.array(A.matrix()), atol=40 * EPS)
    I = PlanarInertia.from_center(1.3, 0.4, -0.2, 0.7)
    both = PlanarArticulatedInertia.of(I)
    np.testing.assert_array_equal(np.array(both.matrix()), np.array(I.matrix()))
    v = motion(rng)
    np.testing.assert_allclose(numbers((X @ both) @ v), numbers((X @ I) @ v), atol=10 * EPS)
    left = numbers(both.without(v) @ v)
    np.testing.assert_allclose(left, np.zeros(3), atol=20 * EPS)


def test_articulated_rods_answer_as_the_mass_matrix_says() -> None:
    """1 / D of the first of three hinges is the first diagonal entry of M^-1.

    It is the acceleration for a unit torque at this hinge if the other hinges are free.
    """
    q = [0.4, -1.1, 0.8]
    hinge = PlanarMotion(1.0, 0.0, 0.0)
    rod = PlanarArticulatedInertia.of(PlanarInertia.from_center(1.0, 0.5, 0.0, 1.0 / 12.0))
    A = rod
    for angle in q[:0:-1]:
        A = rod + PlanarTransform.of(angle, 1.0).inverse() @ A.without(hinge)
    M = rods(3).mass_matrix(q)
    assert 1.0 / hinge.dot(A @ hinge) == pytest.approx(np.linalg.inv(M)[0, 0], rel=1e-12)


def test_small_displacements() -> None:
    """The error of XtoV is quadratic for `nearly` and cubic for `halfway`.

    The result of `halfway` is invariant under X, and exact after scaling by asin(w) / w.
    """
    errors = []
    for scale in (0.1, 0.05):
        w, x, y = scale * 0.9, scale * 0.7, scale * -0.4
        c, s = np.cos(w), np.sin(w)
        place = np.array([[s, c - 1.0], [1.0 - c, s]]) @ [x, y] / w
        X, exact = PlanarTransform.of(w, *place.tolist()), np.array([w, x, y])
        simple, better = X.nearly(), X.halfway()
        np.testing.assert_allclose(numbers(X @ better), numbers(better), atol=1e-16)
        np.testing.assert_allclose(numbers(better) * np.arcsin(s) / s, exact, atol=1e-16)
        errors.append([np.max(np.abs(numbers(v) - exact)) for v in (simple, better)])
    np.testing.assert_allclose(np.divide(*errors), [4.0, 8.0], rtol=0.1)


def test_types_are_kept_apart(rng: np.random.Generator) -> None:
    v, f = motion(rng), force(rng)
    with pytest.raises(TypeError):
        v + f
    with pytest.raises(TypeError):
        f - v
    with pytest.raises(TypeError):
        PlanarInertia(1.0, 0.0, 0.0, 1.0) @ f
    with pytest.raises(TypeError):
        PlanarTransform.of(0.1) @ 1.0
