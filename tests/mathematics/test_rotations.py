"""Rotations: factors, conversions at all angles, and the exponential of SE(3)."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation as Oracle

from chasles.expr import RULES, Arena, Program, Variable, interpret, jacobian
from chasles.mathematics import rotations
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import (
    SMALL,
    General,
    Plane,
    Rotation,
    about,
    aligned_to_z,
    axis_angle_from_quaternion,
    conjugate,
    matrix_from_axis_angle,
    matrix_from_quaternion,
    matrix_from_rpy,
    matrix_from_vector,
    quaternion_from_axis_angle,
    quaternion_from_matrix,
    quaternion_from_vector,
    quaternion_product,
    rpy_from_matrix,
    screw_of_translation,
    translation_of_screw,
    vector_from_matrix,
    vector_from_quaternion,
)

EPS = 2.0**-52
TINY = [1e-12, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4]
EDGE = math.sqrt(SMALL)
ANGLES = sorted(
    {0.0, 0.5, 1.0, 2.0, math.pi / 2, math.pi, EDGE, EDGE * (1 - 1e-9), EDGE * (1 + 1e-9)}
    | set(TINY)
    | {math.pi - t for t in TINY}
)
AXES = [
    (1.0, 0.0, 0.0),
    (0.0, -1.0, 0.0),
    (0.0, 0.0, 1.0),
    (0.6, 0.8, 0.0),
    (1 / 3, -2 / 3, 2 / 3),
    (2 / 7, 3 / 7, -6 / 7),
]


def _vectors(angles=ANGLES):
    return [Vector.of(*(a * angle for a in axis)) for axis in AXES for angle in angles]


def _norm(v):
    return math.sqrt(sum(a * a for a in v))


def _signed_permutations():
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            E = np.zeros((3, 3))
            E[range(3), order] = signs
            if np.linalg.det(E) > 0.0:
                yield E


# Factors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", range(3))
def test_about_one_axis(axis, reference):
    """`about` gives rx, ry and rz of table 2.2, which transform to the rotated frame."""
    t = 0.7
    c, s = math.cos(t), math.sin(t)
    expected = [
        [[1, 0, 0], [0, c, s], [0, -s, c]],
        [[c, 0, -s], [0, 1, 0], [s, 0, c]],
        [[c, s, 0], [-s, c, 0], [0, 0, 1]],
    ][axis]
    E = about(axis, t)
    np.testing.assert_allclose(reference.dense(E), expected, rtol=1e-15)
    np.testing.assert_allclose(reference.dense(E.T), np.transpose(expected), rtol=1e-15)
    unit = np.zeros(3)
    unit[axis] = t
    turning = Oracle.from_rotvec(unit).as_matrix()
    np.testing.assert_allclose(reference.dense(E), turning.T, rtol=1e-14)


def test_there_are_24_signed_permutations_and_none_is_rounded(reference):
    found = list(_signed_permutations())
    assert len(found) == 24
    for E in found:
        rotation = Rotation.of(reference.matrix(E))
        assert np.array_equal(reference.dense(rotation), E)
        assert all(isinstance(f, General) and f.permutes for f in rotation.factors)
        assert len(rotation.factors) == (0 if np.array_equal(E, np.eye(3)) else 1)
        v = Vector.of(0.1, 0.2, 0.3)
        assert sorted(map(abs, rotation @ v)) == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("axis", range(3))
def test_constant_plane_rotations_stay_planes(axis, reference):
    for P in _signed_permutations():
        for angle in (0.3, -2.0, 3.0, 1e-9, math.pi / 2 + 1e-9, math.pi - 1e-9, 1e-12):
            plane = reference.dense(about(axis, angle))
            for E in (P @ plane, plane @ P):
                rotation = Rotation.of(reference.matrix(E))
                np.testing.assert_allclose(reference.dense(rotation), E, rtol=0.0, atol=EPS)
                kinds = [type(f) for f in rotation.factors]
                assert kinds in ([Plane], [Plane, General])
                assert all(f.permutes for f in rotation.factors if isinstance(f, General))


@pytest.mark.parametrize("angle", [*TINY, 1.0, math.pi - 1e-9])
def test_constant_rotations_keep_small_angles(angle, reference):
    """Angles below 1e-8 rad are kept, although their cosines round to one."""
    for P in _signed_permutations():
        for axis in AXES[3:]:
            turn = matrix_from_vector(Vector.of(*(a * angle for a in axis)))
            E = P @ reference.dense(turn)
            factored = reference.dense(Rotation.of(reference.matrix(E)))
            np.testing.assert_allclose(factored, E, rtol=0.0, atol=EPS)


def test_general_rotations_are_kept(reference, rng):
    E = reference.rotation_matrix(rng)
    assert Rotation.of(reference.matrix(E)).factors == (General(reference.matrix(E)),)


def _many_rotations(reference, rng):
    perm = [Rotation.of(reference.matrix(E)) for E in _signed_permutations()]
    general = [Rotation.of(reference.matrix(reference.rotation_matrix(rng))) for _ in range(4)]
    planes = [about(k, a) for k, a in ((0, 0.3), (1, -2.0), (2, 3.1))]
    mixed = [planes[0].then(planes[1]), planes[2].then(general[0]).then(perm[5])]
    return [Rotation(), *perm[::5], *general, *planes, *mixed]


def test_products_with_vectors_matrices_and_rotations(reference, rng):
    dense = reference.dense
    found = _many_rotations(reference, rng)
    for E in found:
        D = dense(E)
        np.testing.assert_allclose(D @ D.T, np.eye(3), atol=1e-14)
        v, S = reference.vector(rng), reference.symmetric(rng)
        A = reference.matrix(rng.normal(size=(3, 3)))
        tolerance = {"rtol": 1e-13, "atol": 1e-13}
        np.testing.assert_allclose(dense(E @ v), D @ dense(v), **tolerance)
        np.testing.assert_allclose(dense(E @ S), D @ dense(S) @ D.T, **tolerance)
        np.testing.assert_allclose(dense(E @ A), D @ dense(A) @ D.T, **tolerance)
        np.testing.assert_allclose(dense(E.T), D.T, **tolerance)
        assert isinstance(E @ S, Symmetric)
        for F in found:
            np.testing.assert_allclose(dense(E.then(F)), dense(F) @ D, **tolerance)
            np.testing.assert_allclose(dense(F @ E), dense(F) @ D, **tolerance)
    with pytest.raises(TypeError):
        found[0] @ 2.0


@pytest.mark.parametrize("axis", [*AXES, (-1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0)])
def test_aligned_frames_have_the_axis_as_z(axis, reference):
    E = reference.dense(aligned_to_z(Vector.of(*axis)))
    np.testing.assert_allclose(E @ axis, [0.0, 0.0, 1.0], atol=2 * EPS)
    np.testing.assert_allclose(E @ E.T, np.eye(3), atol=4 * EPS)
    assert np.linalg.det(E) == pytest.approx(1.0)
    if sorted(map(abs, axis)) == [0.0, 0.0, 1.0]:
        assert set(np.abs(E).ravel()) == {0.0, 1.0}


def test_aligned_to_z_is_the_identity_for_z():
    assert aligned_to_z(Vector.of(0.0, 0.0, 1.0)) == Matrix.identity()


# Quaternions and rotation vectors ---------------------------------------------------------------


@pytest.mark.parametrize("v", _vectors(), ids=lambda v: ",".join(f"{a:.3g}" for a in v))
def test_rotation_vector_round_trips(v, reference):
    q = quaternion_from_vector(v)
    assert _norm(q) == pytest.approx(1.0, abs=2 * EPS)
    angle = _norm(v)
    # A few units in the last place: relative at small angles, absolute near pi.
    tolerance = {"rtol": 8 * EPS, "atol": 4 * EPS * angle}
    at_pi = angle > math.pi - 1e-15  # both signs are correct
    for back in (vector_from_quaternion(q), vector_from_matrix(matrix_from_quaternion(q))):
        got = np.array(list(back))
        if at_pi and got @ list(v) < 0.0:
            got = -got
        np.testing.assert_allclose(got, list(v), **tolerance)
    R = reference.dense(matrix_from_vector(v))
    np.testing.assert_allclose(R, Oracle.from_rotvec(list(v)).as_matrix(), atol=4 * EPS)
    np.testing.assert_allclose(R, expm(reference.skew(v)), atol=2e-15)
    off = R - R.T
    expected = 2.0 * (math.sin(angle) / angle if angle else 1.0) * reference.skew(v)
    np.testing.assert_allclose(off, expected, rtol=8 * EPS, atol=8 * EPS * min(angle, 1.0))


@pytest.mark.parametrize("v", _vectors()[::3], ids=lambda v: ",".join(f"{a:.3g}" for a in v))
def test_any_scale_of_a_quaternion_is_the_same_rotation(v, reference):
    q = quaternion_from_vector(v)
    for scale in (2.0, -1.0, -0.5, 1e-3, 7.3, 1e8, 1e-8):
        scaled = q * scale
        np.testing.assert_allclose(
            reference.dense(matrix_from_quaternion(scaled)),
            reference.dense(matrix_from_quaternion(q)),
            atol=4 * EPS,
        )
        got = reference.dense(vector_from_quaternion(scaled))
        if _norm(v) > math.pi - 1e-15 and got @ list(v) < 0.0:
            got = -got
        np.testing.assert_allclose(got, list(v), rtol=1e-14, atol=4 * EPS * _norm(v))


def test_quaternions_of_matrices_have_their_largest_entry_positive(reference, rng):
    for _ in range(200):
        R = reference.rotation_matrix(rng)
        q = reference.dense(quaternion_from_matrix(reference.matrix(R)))
        assert np.linalg.norm(q) == pytest.approx(1.0, abs=4 * EPS)
        assert q[np.abs(q).argmax()] > 0.0
        expected = Oracle.from_matrix(R).as_quat(scalar_first=True)
        np.testing.assert_allclose(q * np.sign(q @ expected), expected, atol=8 * EPS)


def test_quaternion_of_every_signed_permutation(reference):
    for E in _signed_permutations():
        q = quaternion_from_matrix(reference.matrix(E))
        np.testing.assert_allclose(reference.dense(matrix_from_quaternion(q)), E, atol=2 * EPS)


def test_quaternion_product_and_conjugate(reference, rng):
    for _ in range(20):
        p, q = reference.vector(rng, 4), reference.vector(rng, 4)
        R = reference.dense(matrix_from_quaternion(p)) @ reference.dense(matrix_from_quaternion(q))
        product = matrix_from_quaternion(quaternion_product(p, q))
        np.testing.assert_allclose(reference.dense(product), R, atol=1e-14)
        opposite = matrix_from_quaternion(conjugate(q))
        transposed = reference.dense(matrix_from_quaternion(q)).T
        np.testing.assert_allclose(reference.dense(opposite), transposed, atol=1e-14)
        one = quaternion_product(q, conjugate(q))
        expected = [_norm(q) ** 2, 0.0, 0.0, 0.0]
        np.testing.assert_allclose(list(one), expected, atol=1e-14 * expected[0])


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("axis", AXES)
def test_axis_and_angle_round_trip(axis, angle, reference):
    q = quaternion_from_axis_angle(Vector.of(*(5.0 * a for a in axis)), angle)
    got_axis, got_angle = axis_angle_from_quaternion(q)
    assert got_angle == pytest.approx(angle, rel=8 * EPS, abs=0.0)
    assert 0.0 <= got_angle <= math.pi * (1 + 2 * EPS)
    assert _norm(got_axis) == pytest.approx(1.0, abs=4 * EPS)
    if angle == 0.0:
        assert list(got_axis) == [0.0, 0.0, 1.0]
    else:
        sign = np.sign(np.dot(list(got_axis), axis)) if angle == math.pi else 1.0
        np.testing.assert_allclose(list(got_axis), np.array(axis) * sign, atol=8 * EPS)
    R = matrix_from_axis_angle(Vector.of(*axis), angle)
    oracle = Oracle.from_rotvec(np.array(axis) * angle).as_matrix()
    np.testing.assert_allclose(reference.dense(R), oracle, atol=4 * EPS)


def test_angles_beyond_pi_come_back_the_short_way(reference):
    axis = np.array(AXES[5])
    for angle in (math.pi + 1e-9, 4.0, 6.0, 2 * math.pi - 1e-9, 2 * math.pi, 7.0, -0.5):
        q = quaternion_from_axis_angle(Vector.of(*axis), angle)
        got = reference.dense(vector_from_quaternion(q))
        assert np.linalg.norm(got) <= math.pi * (1 + EPS)
        short = math.remainder(angle, 2 * math.pi)
        np.testing.assert_allclose(got, axis * short, atol=4e-15)


# Roll, pitch, yaw -------------------------------------------------------------------------------


def test_rpy_is_what_urdf_means(reference, rng):
    for _ in range(50):
        rpy = rng.uniform(-3.0, 3.0, size=3)
        expected = Oracle.from_euler("xyz", rpy).as_matrix()
        np.testing.assert_allclose(
            reference.dense(matrix_from_rpy(*rpy.tolist())), expected, atol=4 * EPS
        )


@pytest.mark.parametrize("pitch", [0.0, 1e-12, 0.4, -1.3, 1.5, math.pi / 2 - 1e-6])
def test_rpy_round_trips_as_angles(pitch):
    for roll, yaw in itertools.product((0.0, 1e-12, -3.0, 1.2, math.pi), repeat=2):
        got = rpy_from_matrix(matrix_from_rpy(roll, pitch, yaw))
        away = math.cos(pitch)
        for angle, expected in zip(got, (roll, pitch, yaw), strict=True):
            assert abs(math.remainder(angle - expected, 2 * math.pi)) <= 4 * EPS / away + 4 * EPS


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("off", [0.0, 1e-15, 1e-13, 3e-12, 1e-10, 1e-9, 1e-8, 1e-6, 1e-3])
def test_rpy_near_gimbal_lock_is_the_same_rotation(sign, off, reference):
    """Angles near gimbal lock give the same rotation, although roll and yaw are ill-conditioned."""
    for roll, yaw in itertools.product((0.0, 0.7, -2.5), repeat=2):
        exact = matrix_from_rpy(roll, sign * (math.pi / 2 - off), yaw)
        rounded = matrix_from_quaternion(quaternion_from_matrix(exact))
        for R in (exact, rounded):
            again = matrix_from_rpy(*rpy_from_matrix(R))
            # Within 1e-12 of gimbal lock, roll is set to zero, which causes an error of this size.
            tolerance = 8 * EPS if off > 1e-12 else 8 * EPS + min(2.0 * off, 1e-12)
            np.testing.assert_allclose(
                reference.dense(again), reference.dense(R), rtol=0.0, atol=tolerance
            )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_roll_is_zero_in_gimbal_lock(sign):
    roll, pitch, _ = rpy_from_matrix(matrix_from_rpy(0.4, sign * math.pi / 2, 1.1))
    assert roll == 0.0
    assert pitch == pytest.approx(sign * math.pi / 2, abs=1e-15)


# The exponential of SE(3) -----------------------------------------------------------------------


def _twist(w, v, reference):
    T = np.zeros((4, 4))
    T[:3, :3], T[:3, 3] = reference.skew(w), list(v)
    return expm(T)


@pytest.mark.parametrize("angle", [*ANGLES, 4.0, 6.0, 6.28, 9.0])
@pytest.mark.parametrize("axis", AXES[2:])
def test_screws_are_the_matrix_exponential(axis, angle, reference, rng):
    w = Vector.of(*(a * angle for a in axis))
    for _ in range(3):
        v = reference.vector(rng)
        T = _twist(w, v, reference)
        p = translation_of_screw(w, v)
        np.testing.assert_allclose(list(p), T[:3, 3], atol=4e-15 * (1.0 + angle))
        np.testing.assert_allclose(
            reference.dense(matrix_from_vector(w)), T[:3, :3], atol=4e-15 * (1.0 + angle)
        )
        # The inverse exists below a full turn, and is ill-conditioned near a full turn.
        if angle < 6.1:
            back = reference.dense(screw_of_translation(w, p))
            condition = 1.0 / abs(math.sin(0.5 * angle) / angle * 2.0) if angle else 1.0
            np.testing.assert_allclose(back, list(v), atol=2e-15 * condition * (1 + _norm(v)))


def test_a_pure_translation_moves_by_itself(reference, rng):
    v = reference.vector(rng)
    assert translation_of_screw(Vector.zero(), v) == v
    assert screw_of_translation(Vector.zero(), v) == v


def _coefficient(t, start):
    """Return the sum of (-t)^n / (2n + start)! in rational arithmetic, to 60 digits."""
    total, term, n = Fraction(0), Fraction(1, math.factorial(start)), 0
    while abs(term) > Fraction(1, 10**60):
        total += term
        n += 1
        term = term * -t / ((2 * n + start - 1) * (2 * n + start))
    return total


@pytest.mark.parametrize("relative", [-0.5, -1e-3, -1e-9, -1e-15, 0.0, 1e-15, 1e-9, 1e-3, 0.5])
def test_series_and_closed_forms_meet(relative, reference):
    """Values on both sides of the switch agree with rational arithmetic to a few last digits."""
    length = math.sqrt(SMALL * (1.0 + relative))
    w = Vector.of(2 / 7 * length, 3 / 7 * length, -6 / 7 * length)
    v = Vector.of(0.3, -1.1, 0.7)
    t = sum(Fraction(a) ** 2 for a in w)
    exact = [float(_coefficient(t / 4, 0)), *(float(_coefficient(t / 4, 1) / 2) * a for a in w)]
    np.testing.assert_allclose(list(quaternion_from_vector(w)), exact, rtol=4 * EPS)
    W = [[Fraction(float(a)) for a in row] for row in reference.skew(w)]
    u = [Fraction(a) for a in v]
    once = [sum(a * b for a, b in zip(row, u, strict=True)) for row in W]
    twice = [sum(a * b for a, b in zip(row, once, strict=True)) for row in W]
    a, b = _coefficient(t, 2), _coefficient(t, 3)
    place = [float(x + a * y + b * z) for x, y, z in zip(u, once, twice, strict=True)]
    np.testing.assert_allclose(list(translation_of_screw(w, v)), place, rtol=1e-14)
    back = screw_of_translation(w, Vector(tuple(place)))
    np.testing.assert_allclose(list(back), list(v), rtol=1e-14)


@pytest.mark.parametrize("relative", [-1e-3, -1e-9, -1e-15, 0.0, 1e-15, 1e-9, 1e-3])
def test_logarithm_meets_at_the_switch(relative):
    """The logarithm is accurate on both sides of its switch, at tan(angle / 2)^2 = SMALL."""
    half = math.atan(math.sqrt(SMALL * (1.0 + relative)))
    for axis in AXES:
        q = quaternion_from_axis_angle(Vector.of(*axis), 2.0 * half)
        expected = [2.0 * half * a for a in axis]
        np.testing.assert_allclose(
            list(vector_from_quaternion(q)), expected, rtol=1e-14, atol=1e-17
        )


@pytest.mark.parametrize("name", ["translation_of_screw", "screw_of_translation"])
@pytest.mark.parametrize("step", [1e-15, 1e-13, 1e-11])
def test_no_jump_across_the_switch(name, step):
    function = getattr(rotations, name)
    v = Vector.of(0.3, -1.1, 0.7)
    below, above = (
        np.array(list(function(Vector.of(0.0, EDGE * 0.6 * s, EDGE * 0.8 * s), v)))
        for s in (1.0 - step, 1.0 + step)
    )
    np.testing.assert_allclose(below, above, rtol=1e-14 + step)


# On symbols -------------------------------------------------------------------------------------

ON_SYMBOLS = {
    "quaternion_from_vector": (quaternion_from_vector, (3,)),
    "vector_from_quaternion": (vector_from_quaternion, (4,)),
    "matrix_from_quaternion": (lambda q: matrix_from_quaternion(q).rows, (4,)),
    "quaternion_from_matrix": (
        lambda v: quaternion_from_matrix(matrix_from_vector(v)),
        (3,),
    ),
    "vector_from_matrix": (lambda v: vector_from_matrix(matrix_from_vector(v)), (3,)),
    "rpy": (lambda v: rpy_from_matrix(matrix_from_rpy(*v)), (3,)),
    "axis and angle": (
        lambda q: [*axis_angle_from_quaternion(q)[0], axis_angle_from_quaternion(q)[1]],
        (4,),
    ),
    "translation_of_screw": (translation_of_screw, (3, 3)),
    "screw_of_translation": (screw_of_translation, (3, 3)),
    "quaternion_product": (quaternion_product, (4, 4)),
}


def _flat(value):
    return [x for row in value for x in (row if isinstance(row, tuple) else (row,))]


def _traced(function, sizes):
    arena, n = Arena(RULES), sum(sizes)
    symbols = [arena.input("x", k) for k in range(n)]
    starts = np.cumsum([0, *sizes])
    args = [Vector(tuple(symbols[a:b])) for a, b in itertools.pairwise(starts)]
    results = _flat(function(*args))
    return Program.from_outputs(
        "f", [Variable("x", (n,))], [(Variable("y", (len(results),)), results)]
    )


@pytest.mark.parametrize("name", ON_SYMBOLS)
def test_symbols_give_what_floats_give(name, rng):
    function, sizes = ON_SYMBOLS[name]
    program = _traced(function, sizes)
    for scale in (1.0, 0.05, 1e-9):
        parts = [Vector(tuple((rng.normal(size=n) * scale).tolist())) for n in sizes]
        expected = _flat(function(*parts))
        got = interpret(program, {"x": [x for part in parts for x in part]})["y"]
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("quaternion_from_vector", [0.0] * 3),
        ("vector_from_quaternion", [1.0, 0.0, 0.0, 0.0]),
        ("vector_from_quaternion", [-2.0, 0.0, 0.0, 0.0]),
        ("vector_from_quaternion", [0.0, 0.0, 3.0, 4.0]),
        ("quaternion_from_matrix", [0.0] * 3),
        ("vector_from_matrix", [0.0] * 3),
        ("translation_of_screw", [0.0] * 6),
        ("translation_of_screw", [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]),
        ("screw_of_translation", [0.0] * 6),
        ("screw_of_translation", [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]),
    ],
)
def test_derivatives_exist_where_series_are_used(name, point, mode):
    program = _traced(*ON_SYMBOLS[name])
    derived = jacobian(program, ["x"], mode=mode)
    got = np.array(interpret(derived, {"x": point})["d_y_d_x"]).reshape(derived.outputs[0].shape)
    assert np.isfinite(got).all()
    h = 1e-3
    if name == "vector_from_quaternion" and point[0] == 0.0:
        return  # at a half turn the logarithm is discontinuous; derivatives need only be finite
    for k in range(len(point)):

        def at(step, k=k):
            moved = list(point)
            moved[k] += step
            return np.array(interpret(program, {"x": moved})["y"])

        slope = (8.0 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12.0 * h)
        np.testing.assert_allclose(got[:, k], slope, atol=1e-10)
    second = jacobian(derived, ["x"], mode=mode)
    assert np.isfinite(next(iter(interpret(second, {"x": point}).values()))).all()
