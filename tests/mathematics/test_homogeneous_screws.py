"""Screws: exponential and logarithm, axes and Pluecker lines, with floats and symbols."""

import math

import numpy as np
import pytest
from homogeneous_random import MAKE, hat, numbers, traced, vector
from scipy.linalg import expm
from support import close

from chasles.errors import InputError
from chasles.homogeneous import (
    Displacement,
    Rototranslation,
    Screw,
    Velocity,
    axis_of_screw,
    exponential,
    line_from_plucker,
    logarithm,
    plucker_from_line,
    rototranslation_from_axis,
    screw_from_axis,
    screw_motion,
    screw_of_velocity,
)
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import Rotation

TINY = (1e-15, 1e-12, 1e-9, 1e-8, 1e-6, 1e-4, 1e-2)
ANGLES = (0.0, *TINY, 0.1, 0.5, 1.0, 2.0, *(math.pi - t for t in TINY), math.pi)
AXES = ((0.0, 0.0, 1.0), (-1.0, 0.0, 0.0), (0.6, 0.8, 0.0), (2 / 7, -3 / 7, 6 / 7))
PITCHES = (0.0, 0.02, -1.5)
POINT = Vector.of(0.3, -0.7, 1.1)


def _rebuilt(motion: Displacement) -> Rototranslation:
    return rototranslation_from_axis(motion.axis, motion.angle, motion.point, travel=motion.travel)


def _screws():
    for axis in AXES:
        for pitch in PITCHES:
            yield screw_from_axis(Vector(axis), POINT, pitch)


@pytest.mark.parametrize("angle", ANGLES)
def test_exponential_against_scipy(angle):
    for L in _screws():
        expected = expm(hat(list(L.w), list(L.v)) * angle)
        close(exponential(L, angle), expected, 2e-15)
        moved = np.asarray(exponential(L, angle))[:3, 3]
        # Accuracy is relative to the translation, even if that is tiny.
        close(moved, expected[:3, 3], 4e-15, scale=1e-300)


@pytest.mark.parametrize("angle", [-2.5, 4.0, 2.0 * math.pi, 50.0])
def test_exponential_beyond_a_turn(angle):
    for L in _screws():
        close(exponential(L, angle), expm(hat(list(L.w), list(L.v)) * angle), 1e-13)


@pytest.mark.parametrize("angle", ANGLES)
def test_exponential_is_the_rototranslation_of_the_paper(angle):
    """The printed formulas hold (section I.2.3).

    R = 1 + u~ sin + u~^2 (1 - cos), t = (1 - R) p + pitch phi u.
    """
    for axis in AXES:
        for pitch in PITCHES:
            u = hat(axis, (0, 0, 0))[:3, :3]
            R = np.eye(3) + u * math.sin(angle) + u @ u * (1 - math.cos(angle))
            t = (np.eye(3) - R) @ list(POINT) + pitch * angle * np.array(axis)
            Q = np.asarray(exponential(screw_from_axis(Vector(axis), POINT, pitch), angle))
            close(Q[:3, :3], R, 1e-15)
            close(Q[:3, 3], t, 1e-15, scale=1.0)


@pytest.mark.parametrize("distance", [0.0, 1e-12, 0.3, 5.0, 100.0])
def test_pure_translation(distance):
    direction = Vector.of(2 / 7, -3 / 7, 6 / 7)
    L = screw_from_axis(direction, POINT, math.inf)
    assert list(L.w) == [0.0, 0.0, 0.0]
    Q = exponential(L, distance)
    close(Q, expm(hat((0, 0, 0), list(direction)) * distance), 1e-15)
    motion = screw_motion(Q)
    assert motion.angle == 0.0
    assert list(motion.point) == [0.0, 0.0, 0.0]
    close(motion.travel, distance, 1e-15)
    assert math.isinf(motion.pitch)
    close(motion.axis, direction if distance else (0.0, 0.0, 1.0), 1e-15)
    close(_rebuilt(motion), Q, 1e-15)


@pytest.mark.parametrize("angle", ANGLES[1:])
def test_screw_of_a_rototranslation(angle):
    """Axis, point, angle and travel are recovered; at pi the axis may be reversed."""
    for axis in AXES:
        for pitch in PITCHES:
            L = screw_from_axis(Vector(axis), POINT, pitch)
            motion = screw_motion(exponential(L, angle), tolerance=0.0)
            same = np.dot(list(motion.axis), axis) > 0
            assert same or angle == math.pi
            sign = 1.0 if same else -1.0
            close(np.array(list(motion.axis)) * sign, axis, 1e-14)
            close(motion.angle, angle, 1e-14)
            close(motion.travel * sign, pitch * angle, 1e-14, scale=angle)
            close(motion.point, axis_of_screw(L).point, 1e-13)
            close(_rebuilt(motion), exponential(L, angle), 4e-15)


@pytest.mark.parametrize("angle", ANGLES)
def test_logarithm_undoes_the_exponential(angle):
    for L in _screws():
        if angle == math.pi:
            again = exponential(logarithm(exponential(L, angle)))
            close(again, exponential(L, angle), 4e-15)
        else:
            W = logarithm(exponential(L, angle))
            close(list(W), list(L.velocity(angle)), 1e-14)


def test_any_rototranslation_is_a_screw_motion():
    """Random displacements are screw motions (Chasles): points of the axis move along it."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        Q = MAKE[Rototranslation](rng)
        motion = screw_motion(Q)
        close(_rebuilt(motion), Q, 1e-13)
        slid = np.array(list(Q @ Vector(tuple(motion.point)))) - list(motion.point)
        close(slid, np.array(list(motion.axis)) * motion.travel, 1e-13, scale=1.0)
        close(np.dot(list(motion.point), list(motion.axis)), 0.0, 1e-13, scale=1.0)
        close(exponential(logarithm(Q)), Q, 1e-13)


@pytest.mark.parametrize("angle", ANGLES)
def test_far_axes(angle):
    """No digits of Q are lost if a small rotation angle puts the screw axis far away."""
    for axis in AXES:
        w = Vector(axis) * angle
        Q = exponential(Velocity(w, Vector.of(1.0, -2.0, 0.5)))
        again = _rebuilt(screw_motion(Q, tolerance=0.0))
        close(again.t, Q.t, 4e-15)
        close(again.R.matrix().rows, Q.R.matrix().rows, 4e-15)


@pytest.mark.parametrize("diagonal", [(1, -1, -1), (-1, 1, -1), (-1, -1, 1)])
def test_half_turns_that_are_exact(diagonal):
    """Half turns are recognized if R is exact and has no entries from a rounded sin(pi)."""
    R = Rotation.of(Matrix(tuple(tuple(float(x) for x in row) for row in np.diag(diagonal))))
    Q = Rototranslation(R, Vector.of(1.0, 2.0, 3.0))
    motion = screw_motion(Q)
    assert motion.angle == pytest.approx(math.pi, rel=1e-15)
    close(np.abs(list(motion.axis)), np.array(diagonal) > 0, 1e-15)
    close(_rebuilt(motion), Q, 1e-15)


def test_rounding_in_a_translation():
    """A rotation by a rounding error counts as a translation if a tolerance is given."""
    Q = exponential(Velocity(Vector.of(0.0, 0.0, 3e-16), Vector.of(1.0, 2.0, 2.0)))
    assert screw_motion(Q, tolerance=0.0).angle == pytest.approx(3e-16)
    motion = screw_motion(Q, tolerance=1e-15)
    assert motion.angle == 0.0
    close(motion.axis, (1 / 3, 2 / 3, 2 / 3), 1e-15)
    close(motion.travel, 3.0, 1e-15)


def test_screw_from_axis_and_back():
    rng = np.random.default_rng(5)
    for _ in range(20):
        u, p, pitch = vector(rng), vector(rng), float(rng.normal())
        L = screw_from_axis(u, p, pitch)
        unit = np.array(list(u)) / np.linalg.norm(list(u))
        close(L.w, unit, 1e-15)
        close(L.v, np.cross(list(p), unit) + pitch * unit, 1e-15)
        axis = axis_of_screw(L)
        close(axis.direction, unit, 1e-15)
        close(axis.pitch, pitch, 1e-14, scale=1.0)
        close(axis.point, np.array(list(p)) - unit * (unit @ list(p)), 1e-14)
        close(list(screw_from_axis(*axis)), list(L), 1e-14)
    sliding = screw_from_axis(Vector.of(0.0, 2.0, 0.0), POINT, math.inf)
    direction, point, pitch = axis_of_screw(sliding)
    assert (*direction, *point, pitch) == (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, math.inf)
    assert screw_from_axis(*axis_of_screw(sliding)) == sliding


def test_screw_of_a_velocity():
    """L is W/|w|, or W/|v| if w = 0 (section I.5); a body at rest is an error."""
    rng = np.random.default_rng(6)
    W = MAKE[Velocity](rng)
    L, rate = screw_of_velocity(W)
    close(rate, np.linalg.norm(list(W.w)), 1e-15)
    close(list(L.velocity(rate)), list(W), 1e-15)
    close(np.linalg.norm(list(L.w)), 1.0, 1e-15)
    L, rate = screw_of_velocity(Velocity(Vector.zero(), Vector.of(0.0, 3.0, -4.0)))
    assert rate == 5.0
    close(list(L), [0.0, 0.0, 0.0, 0.0, 0.6, -0.8], 1e-15)
    with pytest.raises(InputError) as error:
        screw_of_velocity(Velocity.zero())
    assert error.value.code == "E-MATH-020"


def test_plucker_coordinates():
    """All points of a line give the same coordinates, with u.m = 0.

    The line is recovered from coordinates of any scale.
    """
    rng = np.random.default_rng(7)
    p, u = vector(rng), vector(rng)
    line = plucker_from_line(p, u)
    close(plucker_from_line(p + u * 2.3, u * 4.0), line, 1e-15)
    close(np.dot(line[:3], line[3:]), 0.0, 1e-15, scale=1.0)
    point, direction = line_from_plucker(line * 7.0)
    close(np.cross(list(p) - point, list(u)), [0.0, 0.0, 0.0], 1e-14, scale=1.0)
    close(np.dot(list(point), list(u)), 0.0, 1e-14, scale=1.0)
    close(plucker_from_line(point, direction), line, 1e-14)


# Symbols ---------------------------------------------------------------------------------------


def _everything(w, v, q, m):
    W, phi = Velocity(Vector(tuple(w)), Vector(tuple(v))), q[0]
    L, rate = screw_of_velocity(W)
    R = Matrix(tuple(tuple(m[4 * k : 4 * k + 3]) for k in range(3)))
    Q = Rototranslation(Rotation.of(R), Vector.of(m[3], m[7], m[11]))
    motion, axis = screw_motion(Q), axis_of_screw(L)
    line = plucker_from_line(W.v, W.w)
    flat = [*L, rate, *logarithm(Q), *motion.axis, *motion.point, motion.angle, motion.travel]
    flat += [*axis.direction, *axis.point, *screw_from_axis(W.w, W.v, phi), *line]
    flat += [x for v in line_from_plucker(line) for x in v]
    return flat + numbers(exponential(L, phi)) + numbers(_rebuilt(motion))


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.7, math.pi - 1e-9, math.pi])
def test_everything_works_on_symbols(angle):
    L = screw_from_axis(Vector.of(2 / 7, -3 / 7, 6 / 7), POINT, 0.4)
    inputs = [list(L.w * 2.0), list(L.v * 2.0), [angle], numbers(exponential(L, angle))]
    close(traced(_everything, *inputs)[0], _everything(*inputs), 1e-14)


def test_translations_and_rest_on_symbols():
    """Branches on the values of floats are selections in a program."""
    for v in ([0.0, 3.0, -4.0], [0.0, 0.0, 0.0]):
        f = lambda w, v: [  # noqa: E731
            x
            for part in screw_of_velocity(Velocity(Vector(tuple(w)), Vector(tuple(v))))
            for x in (part if isinstance(part, Screw) else [part])
        ]
        length = math.hypot(*v)  # may differ from sqrt(sum of squares) in the last bit
        expected = [0.0, 0.0, 0.0, *(x / (length or 1.0) for x in v), length]
        assert traced(f, [0.0] * 3, v)[0].tolist() == pytest.approx(expected, rel=1e-15)


def test_a_constant_axis_folds():
    """The exponential about a coordinate axis costs a sine, a cosine and a few products."""
    L = screw_from_axis(Vector.of(0.0, 0.0, 1.0), Vector.zero(), 0.0)
    _, program = traced(lambda q: numbers(exponential(L, q[0])), [0.3])
    assert program.count.sines_and_cosines <= 4
    assert program.count.flops < 60


def test_pitch_of_a_screw_motion():
    Q = rototranslation_from_axis((0.0, 0.0, 1.0), 0.5, travel=0.1)
    assert screw_motion(Q).pitch == pytest.approx(0.2)
