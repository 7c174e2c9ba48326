"""Compare roots of equations in cosine and sine with polynomials in tan(angle / 2)."""

import math

import numpy as np
import pytest
from numpy.polynomial import polynomial

from chasles.mathematics.trigonometric import Angle, between, conic, line, quadratic

RNG = np.random.default_rng(7)


def tangents(terms: list[float]) -> np.ndarray:
    """Return the angles at which k + a c + b s + d c^2 + e c s + f s^2 is zero."""
    one, c, s = [1.0, 0.0, 1.0], [1.0, 0.0, -1.0], [0.0, 2.0, 0.0]
    products = [(one, one), (c, one), (s, one), (c, c), (c, s), (s, s)]
    total = sum(t * np.convolve(x, y) for t, (x, y) in zip(terms, products, strict=True))
    roots = polynomial.polyroots(total)
    real = roots[np.abs(roots.imag) < 1e-9 * (1.0 + np.abs(roots))].real
    return np.asarray(2.0 * np.arctan(real))


def nearest(angle: float, found: list[Angle]) -> float:
    """Return the distance of an angle from the nearest real root."""
    away = [abs(math.remainder(math.atan2(x.s, x.c) - angle, math.tau)) for x in found if x.real]
    return min(away, default=math.inf)


def test_a_line_meets_the_circle_twice_or_not_at_all() -> None:
    for _ in range(200):
        a, b, k = RNG.normal(size=3) * 10.0 ** RNG.uniform(-2.0, 2.0, 3)
        found = line(a, b, k)
        assert all(x.real == float(abs(k) <= math.hypot(a, b)) for x in found)
        for x in found:
            assert x.c**2 + x.s**2 == pytest.approx(1.0)
            assert not x.real or abs(a * x.c + b * x.s - k) <= 1e-12 * (abs(a) + abs(b))
    one, two = line(3.0, 4.0, 5.0)  # the line is tangent to the circle
    assert one.real
    assert (one.c, one.s) == pytest.approx((0.6, 0.8))
    assert (two.c, two.s) == pytest.approx((0.6, 0.8))


def test_equations_that_say_nothing_give_a_unit_vector() -> None:
    """Degenerate equations, as at singular postures, give some angle and never NaN."""
    assert line(0.0, 0.0, 0.0)[0] == (1.0, 0.0, 1.0)
    assert not line(0.0, 0.0, 1.0)[0].real
    assert between(0.0, 0.0)[:2] == (1.0, 0.0)
    assert all(np.isfinite(x).all() for x in conic([0.0] * 6))


@pytest.mark.parametrize("zero", [None, 1, 2, 3, 4, 5])
def test_a_conic_meets_the_circle_where_the_polynomial_vanishes(zero: int | None) -> None:
    """All roots of the quartic are found, also if a coefficient is zero.

    No other roots are marked real.
    """
    met = 0
    for trial in range(100):
        terms = RNG.normal(size=6) * 10.0 ** RNG.uniform(-1.0, 1.0, 6)
        if zero is not None:
            terms[zero] = 0.0
        if trial % 2:  # choose k so that a root exists
            c, s = math.cos(trial), math.sin(trial)
            terms[0] = -terms[1:] @ [c, s, c * c, c * s, s * s]
        found = conic(terms.tolist())
        for angle in tangents(terms.tolist()):
            assert nearest(float(angle), found) < 1e-6
            met += 1
        for x in found:
            error = terms @ [1.0, x.c, x.s, x.c * x.c, x.c * x.s, x.s * x.s]
            assert not x.real or abs(error) < 1e-4 * np.abs(terms).max()
    assert met > 100


def test_a_conic_that_is_a_circle_or_a_line() -> None:
    assert not any(x.real for x in conic([1.0, 0.0, 0.0, 1.0, 0.0, 1.0]))
    angle = 0.4  # the line c cos(a) + s sin(a) = 1/2
    found = conic([-0.5, math.cos(angle), math.sin(angle), 0.0, 0.0, 0.0])
    for root in (angle + math.pi / 3.0, angle - math.pi / 3.0):
        assert nearest(root, found) < 1e-9


def test_a_quadratic() -> None:
    assert [x for x, _ in quadratic(-6.0, 1.0, 1.0)] == pytest.approx([2.0, -3.0])
    assert [real for _, real in quadratic(1.0, 0.0, 1.0)] == [0.0, 0.0]
