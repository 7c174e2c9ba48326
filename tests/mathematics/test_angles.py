"""Compare all 24 Cardan and Euler conventions with SciPy: both solutions and singular angles."""

import math

import numpy as np
import pytest
from homogeneous_random import traced
from scipy.spatial.transform import Rotation as Oracle
from support import close

from chasles.expr import RULES, Arena
from chasles.mathematics.angles import (
    CARDAN,
    EULER,
    SEQUENCES,
    angles_from_matrix,
    rotation_from_angles,
    turn,
)
from chasles.mathematics.linear import Matrix

EXACT = 2e-15
AXES = ("moving", "fixed")
EDGES = (0.0, 1e-16, 1e-12, 1e-8, 1e-4)
MIDDLES = sorted({s * (c + e) for c in (0, math.pi / 2, math.pi) for e in EDGES for s in (1, -1)})


def dense(sequence, angles, axes):
    return np.array(rotation_from_angles(sequence, list(angles), axes).matrix().rows)


def oracle(sequence, angles, axes):
    return Oracle.from_euler(sequence.upper() if axes == "moving" else sequence, angles).as_matrix()


def rows(R):
    return Matrix(tuple(map(tuple, np.asarray(R).tolist())))


def test_there_are_twelve_and_twelve():
    assert len(set(CARDAN)) * len(AXES) == 12
    assert len(set(EULER)) * len(AXES) == 12


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_there_and_back(sequence, axes):
    rng = np.random.default_rng(1)
    cardan = sequence in CARDAN
    for angles in rng.uniform(-math.pi, math.pi, size=(20, 3)):
        R = oracle(sequence, angles, axes)
        close(dense(sequence, angles, axes), R, EXACT)
        solutions = [np.array(list(s)) for s in angles_from_matrix(rows(R), sequence, axes)]
        for found in solutions:
            close(dense(sequence, found, axes), R, EXACT)
            assert np.all((found > -math.pi) & (found <= math.pi))
        low, high = (-math.pi / 2, math.pi / 2) if cardan else (0.0, math.pi)
        assert low <= solutions[0][1] <= high
        assert not low < solutions[1][1] < high
        assert min(np.abs(s - angles).max() for s in solutions) < 1e-14


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_near_the_singular_angles(sequence, axes):
    """At and near singularities, the computed angles give the same rotation up to rounding."""
    for middle in MIDDLES:
        R = oracle(sequence, [0.3, middle, -0.8], axes)
        for found in angles_from_matrix(rows(R), sequence, axes):
            close(dense(sequence, found, axes), R, EXACT)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_singular(sequence, axes):
    """At a singularity, the first moving (third fixed) angle is zero.

    The other angle is the sum or difference of the original angles.
    """
    for middle in (math.pi / 2, -math.pi / 2) if sequence in CARDAN else (0.0, math.pi):
        R = dense(sequence, [0.3, middle, 0.4], axes)  # right angles are exact here
        first, _ = angles_from_matrix(rows(R), sequence, axes)
        zero, rest = (first[0], first[2]) if axes == "moving" else (first[2], first[0])
        assert zero == 0.0
        assert min(abs(abs(rest) - x) for x in (0.1, 0.7)) < 1e-15
        close(first[1], middle, 1e-15)
        close(dense(sequence, first, axes), R, EXACT)


@pytest.mark.parametrize("axis", range(3))
def test_right_angles_are_exact(axis):
    for k in range(-4, 5):
        R = np.array(turn(axis, k * math.pi / 2).matrix().rows)
        assert set(np.abs(R).ravel().tolist()) == {0.0, 1.0}
        close(
            R,
            oracle("xyz"[axis] + "yzx"[axis] + "xyz"[axis], [k * math.pi / 2, 0, 0], "moving"),
            EXACT,
        )


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("sequence", ["xyz", "zyx", "zxz", "yxy"])
def test_on_symbols(sequence, axes):
    for angles in ([0.3, 0.5, -2.0], [0.3, math.pi / 2, 0.4], [0.3, 0.0, 0.4]):

        def f(x):
            R = rotation_from_angles(sequence, x, axes).matrix()
            return [a for row in R.rows for a in row]

        def g(r):
            R = Matrix(tuple(tuple(r[3 * k : 3 * k + 3]) for k in range(3)))
            return [a for solution in angles_from_matrix(R, sequence, axes) for a in solution]

        close(traced(f, angles)[0], f(angles), EXACT)
        close(traced(g, f(angles))[0], g(f(angles)), EXACT)


def test_a_symbol_stays_a_plane_turn():
    """A symbolic angle and a right angle keep separate factors, which saves multiplications."""
    x = Arena(RULES).input("q", 0)
    assert len(rotation_from_angles("zyx", [x, 0.0, math.pi / 2], "moving").factors) == 2
