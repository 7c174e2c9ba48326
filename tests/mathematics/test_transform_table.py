"""Compare all transforms of all types of spatial algebra with 6x6 matrices."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from chasles.mathematics import spatial
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.planar import PlanarTransform
from chasles.mathematics.rotations import Rotation, about, matrix_from_vector
from chasles.mathematics.spatial import (
    ArticulatedInertia,
    CoriolisInertia,
    Dyadic,
    Force,
    ForceMap,
    Forces,
    GeneralInertia,
    InverseInertia,
    Motion,
    MotionMap,
    Motions,
    RigidInertia,
    Transform,
    dyad,
    inverted,
)

Reference = Any

# Left and right factors that transform the matrix of a type from A to B (Featherstone 2008, table
# 2.5). M: X for motions, F: X* for forces, m and f: their inverses, 1: no factor.
RULES: dict[type, str] = {
    Motion: "M1",
    Motions: "M1",
    Force: "F1",
    Forces: "F1",
    Transform: "M1",
    RigidInertia: "Fm",
    ArticulatedInertia: "Fm",
    CoriolisInertia: "Fm",
    GeneralInertia: "Fm",
    InverseInertia: "Mf",
    MotionMap: "Mm",
    ForceMap: "Ff",
}

TRANSPOSED = [
    *(Force, Forces, RigidInertia, ArticulatedInertia, CoriolisInertia, GeneralInertia),
]
"""Types for which X.T @ value transforms from B back to A."""

TRANSFORMS = {
    "identity": Transform.identity(),
    "shift": Transform(Rotation(), Vector.of(0.4, -1.2, 0.7)),
    "turn": Transform(about(1, 0.8), Vector.zero()),
    "general": Transform.from_pose(
        matrix_from_vector(Vector.of(0.3, -1.4, 0.9)), Vector.of(-0.6, 0.2, 1.1)
    ),
}


def dense(reference: Reference, value: object) -> np.ndarray:
    """Convert any value, including dyadics, to an array."""
    entries = value.entries if isinstance(value, Dyadic) else value
    return np.asarray(reference.dense(entries))


def sample(reference: Reference, kind: type, rng: np.random.Generator) -> Any:
    """Return a random value of a type, without special entries such as zeros."""
    if kind in (Motion, Force):
        return kind.of(*rng.normal(size=6).tolist())  # type: ignore[attr-defined]
    if kind in (Motions, Forces):
        one = Motion if kind is Motions else Force
        return kind(tuple(sample(reference, one, rng) for _ in range(3)))
    if kind is Transform:
        R = reference.matrix(reference.rotation_matrix(rng))
        return Transform(Rotation.of(R), reference.vector(rng))
    if kind is CoriolisInertia:
        return CoriolisInertia.of(reference.rigid(rng), reference.motion(rng))
    if issubclass(kind, Dyadic):
        return kind(reference.matrix(rng.normal(size=(6, 6))))
    return {RigidInertia: reference.rigid, ArticulatedInertia: reference.articulated}[kind](rng)


def expected(D: np.ndarray, value: np.ndarray, rule: str) -> np.ndarray:
    """Transform a value by a rule of RULES; D is the matrix X for motions."""
    inverse = np.linalg.inv(D)
    factors = {"M": D, "F": inverse.T, "m": inverse, "f": D.T}
    left, right = rule
    moved = factors[left] @ value
    return moved if right == "1" else moved @ factors[right]


def test_the_table_has_every_type() -> None:
    kinds = {x for x in vars(spatial).values() if isinstance(x, type)} - {Dyadic}
    assert kinds == set(RULES)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
def test_every_type_by_every_operation(
    kind: type, name: str, reference: Reference, rng: np.random.Generator
) -> None:
    X, value = TRANSFORMS[name], sample(reference, kind, rng)
    D, before = dense(reference, X), dense(reference, value)
    ways = {
        "X": (lambda: X @ value, D),
        "X.inverse()": (lambda: X.inverse() @ value, np.linalg.inv(D)),
        "inverted(X)": (lambda: inverted(X) @ value, np.linalg.inv(D)),
    }
    for way, (moved, matrix) in ways.items():
        after = moved()
        assert type(after) is kind, way
        right = expected(matrix, before, RULES[kind])
        np.testing.assert_allclose(dense(reference, after), right, rtol=1e-12, atol=1e-12)
    if kind in TRANSPOSED:
        back = X.T @ value
        assert type(back) is kind
        right = expected(np.linalg.inv(D), before, RULES[kind])
        np.testing.assert_allclose(dense(reference, back), right, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(dense(reference, X @ back), before, rtol=1e-12, atol=1e-12)
    else:
        with pytest.raises(TypeError):
            X.T @ value


@pytest.mark.parametrize("left", RULES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("right", RULES, ids=lambda kind: kind.__name__)
def test_products_of_any_two(
    left: type, right: type, reference: Reference, rng: np.random.Generator
) -> None:
    """A product exists if the output type of the left factor fits the right factor.

    It then equals the product of the two matrices.
    """
    maps = {"Fm": "FM", "Mf": "MF", "Mm": "MM", "Ff": "FF"}
    a, b = sample(reference, left, rng), sample(reference, right, rng)
    rule, other = maps.get(RULES[left], ""), RULES[right]
    fits = rule[1:] == other[:1] and right is not Transform
    known: dict[type, tuple[type, ...]] = {
        Transform: tuple(RULES),  # the table above
        CoriolisInertia: (Motions,),
        RigidInertia: (Motion, Motions),
        ArticulatedInertia: (Motion, Motions),
    }
    if left is Transform:
        assert type(a @ b) is right
    elif right in known.get(left, ()) or (issubclass(left, Dyadic) and fits and right not in known):
        np.testing.assert_allclose(
            dense(reference, a @ b),
            dense(reference, a) @ dense(reference, b),
            rtol=1e-12,
            atol=1e-12,
        )
    else:
        with pytest.raises(TypeError):
            a @ b


def test_dyads_are_products_of_two_vectors(reference: Reference, rng: np.random.Generator) -> None:
    m, f, x, g = (sample(reference, kind, rng) for kind in (Motion, Force, Motion, Force))
    found = {(type(a), type(b)): type(dyad(a, b)) for a, b in itertools.product((m, f), (x, g))}
    assert found == {
        (Motion, Force): MotionMap,
        (Force, Motion): ForceMap,
        (Force, Force): GeneralInertia,
        (Motion, Motion): InverseInertia,
    }
    np.testing.assert_allclose(list(dyad(m, f) @ x), list(m * f.dot(x)), rtol=1e-13)
    np.testing.assert_allclose(list(dyad(m, x) @ g), list(m * x.dot(g)), rtol=1e-13)
    for a, b in itertools.product((m, f), (x, g)):
        D, back = dense(reference, dyad(a, b)), dyad(a, b).T
        assert type(back) is type(dyad(b, a))  # type: ignore[call-overload]
        np.testing.assert_array_equal(dense(reference, back), D.T)


def test_the_rate_of_an_inertia(reference: Reference, rng: np.random.Generator) -> None:
    """dI/dt = v x* I - I v x (Eq 2.65) equals B + B', where B is the Coriolis inertia."""
    I, v = reference.rigid(rng), reference.motion(rng)
    whole = GeneralInertia.of(I)
    rate = ForceMap.of(v) @ whole - whole @ MotionMap.of(v)
    B = GeneralInertia.of(CoriolisInertia.of(I, v))
    np.testing.assert_allclose(dense(reference, rate), dense(reference, B + B.T), atol=1e-13)
    np.testing.assert_allclose(dense(reference, MotionMap.of(v)), reference.crm([*v]), atol=1e-15)
    np.testing.assert_allclose(dense(reference, ForceMap.of(v)), reference.crf([*v]), atol=1e-15)


def test_an_inverse_inertia_moves_with_its_inertia(
    reference: Reference, rng: np.random.Generator
) -> None:
    I = reference.rigid(rng)
    for X in TRANSFORMS.values():
        there = dense(reference, X @ InverseInertia.of(I))
        np.testing.assert_allclose(there, np.linalg.inv(dense(reference, X @ I)), rtol=1e-10)


# XtoV ------------------------------------------------------------------------------------------


def reached(u: np.ndarray) -> Transform:
    """Return the transform to frame B, which A reaches in unit time with velocity u."""
    w, v = u[:3], u[3:]
    T = np.zeros((4, 4))
    T[:3, :3], T[:3, 3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]], v
    M = expm(T)
    R = tuple(map(tuple, M[:3, :3].tolist()))
    return Transform.from_pose(Matrix(R), Vector(tuple(M[:3, 3].tolist())))


def test_halfway_is_the_printed_formula(reference: Reference, rng: np.random.Generator) -> None:
    """`halfway` is the formula of table A.2, and its result is invariant under X.

    It is half of (X23 - X32, X31 - X13, X12 - X21, X53 - X62, X61 - X43, X42 - X51).
    """
    X = sample(reference, Transform, rng)
    D = dense(reference, X)
    pairs = ((23, 32), (31, 13), (12, 21), (53, 62), (61, 43), (42, 51))
    at = [[D[k // 10 - 1, k % 10 - 1] for k in pair] for pair in pairs]
    np.testing.assert_allclose(list(X.halfway()), [(a - b) / 2 for a, b in at], rtol=1e-14)
    np.testing.assert_allclose(list(X @ X.halfway()), list(X.halfway()), rtol=1e-13)


def test_halfway_converges_to_the_velocity() -> None:
    """The error is proportional to the cube of the distance; a pure translation is exact."""
    u = np.array([0.5, -0.7, 0.3, 0.9, 0.2, -0.4])
    errors = [
        np.max(np.abs(np.array([*reached(scale * u).halfway()]) - scale * u))
        for scale in (0.1, 0.05)
    ]
    assert errors[0] / errors[1] == pytest.approx(8.0, rel=0.02)
    shift = Transform(Rotation(), Vector.of(1.0, 2.0, 3.0))
    assert list(shift.halfway()) == [0, 0, 0, 1, 2, 3]


def test_in_a_plane_halfway_is_the_planar_one() -> None:
    X = Transform(about(2, 0.6), Vector.of(0.3, -0.8, 0.0))
    flat = PlanarTransform.of(0.6, 0.3, -0.8).halfway()
    np.testing.assert_allclose(list(X.halfway()), [0, 0, flat.w, flat.x, flat.y, 0], atol=1e-16)
