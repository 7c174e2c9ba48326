"""Positions from joint constants, and Mitra's conversions, with floats and symbols."""

import math

import numpy as np
import pytest
from homogeneous_random import MAKE, numbers, traced, vector
from support import close

from chasles import homogeneous as hm
from chasles.mathematics.homogeneous import (
    Acceleration,
    Action,
    Momentum,
    Position,
    Screw,
    Velocity,
    position_from_extended_dh,
)

EXACT = 2e-15


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def test_extended_dh_on_symbols(rng):
    constants = rng.normal(size=5).tolist()
    f = lambda x: numbers(position_from_extended_dh(*x))  # noqa: E731
    close(traced(f, constants)[0], f(constants), EXACT)


def test_right_angles_fold():
    """A link with alpha = 90 degrees costs a sine, a cosine, and two products with a."""
    f = lambda q: numbers(position_from_extended_dh(q[0], 0.3, 0.0, 0.5, math.pi / 2))  # noqa: E731
    _, program = traced(f, [0.4])
    assert program.count.sines_and_cosines == 2
    assert program.count.multiplications == 2
    assert program.count.additions == 0


def test_second_column_of_the_dh_matrix():
    """Mitra's v axis is (-sin cos, cos cos, sin); the formula is damaged in the printed book."""
    theta, alpha = 0.7, -1.2
    _, v, _, r = np.asarray(position_from_extended_dh(theta, 0.4, 0.0, 0.3, alpha)).T[:, :3]
    c, s = math.cos(theta), math.sin(theta)
    close(v, [-s * math.cos(alpha), c * math.cos(alpha), math.sin(alpha)], EXACT)
    close(r, [0.3 * c, 0.3 * s, 0.4], EXACT)


def test_axes_and_origin(rng):
    M = MAKE[Position](rng)
    close(hm.position_from_axes(*np.asarray(M).T[:, :3]), M, EXACT)


@pytest.mark.parametrize("kind", [Velocity, Screw, Momentum, Action])
def test_six_numbers(kind, rng):
    X = MAKE[kind](rng)
    close(hm.six_numbers(X), list(X), EXACT)
    close(hm.angular_part(X), list(X)[:3], EXACT)
    close(hm.linear_part(X), list(X)[3:], EXACT)


def test_angular_part_of_an_acceleration(rng):
    """The skew part of G is the angular acceleration, because w~ w~ is symmetric."""
    H = MAKE[Acceleration](rng)
    close(hm.six_numbers(H), [*H.wd, *H.a], EXACT)


def test_vectors_on_symbols(rng):
    x, p = rng.normal(size=6).tolist(), [*vector(rng), 1.0]
    f = lambda x, p: [*hm.six_numbers(hm.velocity_from_six(x)), *hm.three_numbers(p)]  # noqa: E731
    values, program = traced(f, x, p)
    assert values.tolist() == [*x, *p[:3]]
    assert program.count.flops == 0
