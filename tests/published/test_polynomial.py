"""Polynomials in n: reading, writing, fitting and evaluation."""

import random
from fractions import Fraction

import pytest
from building.published import Polynomial
from support import raises


@pytest.mark.parametrize(
    "text", ["0", "n", "-n", "8n-12", "5.5n^2+32.5n-54", "n^3-16n+5", "1/6n^3-1/6n", "-7", "-n^4+n"]
)
def test_reading_and_writing(text: str) -> None:
    assert str(Polynomial.read(text)) == text


def test_values_and_sums() -> None:
    p, q = Polynomial.read("3.5n^2-7.5n+4"), Polynomial.read("-3.5n^2+n")
    assert [p(n) for n in (0, 2)] == [4, 3]
    assert str(p + q) == "-6.5n+4"
    assert all((p + q)(n) == p(n) + q(n) for n in range(5))


@pytest.mark.parametrize("text", ["x", "8m-12", "8n12", "n^", "2^3", "+-3", "8n--2"])
def test_what_is_no_polynomial(text: str) -> None:
    with raises("E-TABLE-002"):
        Polynomial.read(text)


@pytest.mark.parametrize("degree", range(4))
def test_a_polynomial_is_found_through_its_values(degree: int) -> None:
    rng = random.Random(degree)
    whole = Polynomial.of([Fraction(rng.randint(-50, 50)) for _ in range(degree)] + [Fraction(3)])
    counts = {n: int(whole(n)) for n in (3, 4, 5, 6, 9, 12)}
    assert Polynomial.through(counts) == whole
    with raises("E-TABLE-003"):
        Polynomial.through(counts | {9: counts[9] + 1})
