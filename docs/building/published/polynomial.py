"""Polynomials in the number of joints, with exact coefficients, for operation counts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from chasles.errors import InputError

_TERM = re.compile(r"([+-]?)(\d+(?:\.\d+|/\d+)?)?(n)?(?:\^(\d+))?")


@dataclass(frozen=True)
class Polynomial:
    """Polynomial with coefficients of 1, n, n^2 and so on; the last one is not zero."""

    coefficients: tuple[Fraction, ...]

    @staticmethod
    def of(coefficients: Sequence[Fraction]) -> "Polynomial":
        """Return a polynomial from coefficients, without zeros of the highest powers."""
        kept = list(coefficients)
        while kept and kept[-1] == 0:
            kept.pop()
        return Polynomial(tuple(kept))

    @staticmethod
    def read(text: str) -> "Polynomial":
        """Return a polynomial from a text such as "5.5n^2+32.5n-54" or "1/6n^3"."""
        coefficients: dict[int, Fraction] = {}
        place, plain = 0, text.replace(" ", "")
        while place < len(plain):
            found = _TERM.match(plain, place)
            assert found is not None
            sign, number, letter, power = found.groups()
            if not (number or letter) or (power and not letter) or (place and not sign):
                problem = f"not a polynomial in n: {text!r}, at {plain[place:]!r}"
                raise InputError("E-TABLE-002", problem)
            degree = int(power or 1) if letter else 0
            coefficients[degree] = coefficients.get(degree, Fraction()) + Fraction(
                f"{sign}{number or 1}"
            )
            place = found.end()
        top = max(coefficients, default=0)
        return Polynomial.of([coefficients.get(k, Fraction()) for k in range(top + 1)])

    @staticmethod
    def through(counts: Mapping[int, int]) -> "Polynomial":
        """Return the polynomial through the given values, by divided differences.

        Raise a ValueError if fewer than two points are left to confirm the polynomial.
        """
        places = sorted(counts)
        column, newton = [Fraction(counts[n]) for n in places], []
        for order in range(1, len(places) + 1):
            newton.append(column[0])
            column = [
                (b - a) / (places[k + order] - places[k])
                for k, (a, b) in enumerate(pairwise(column))
            ]
        total = Polynomial(())
        for place, coefficient in reversed(list(zip(places, newton, strict=True))):
            shifted = (Fraction(), *total.coefficients)
            scaled = Polynomial.of([-place * c for c in total.coefficients])
            total = Polynomial.of(shifted) + scaled + Polynomial.of([coefficient])
        if len(total.coefficients) > len(places) - 2:
            problem = f"no polynomial of low enough degree passes through {dict(counts)}"
            raise InputError("E-TABLE-003", problem)
        return total

    def __add__(self, other: "Polynomial") -> "Polynomial":
        a, b = self.coefficients, other.coefficients
        size = max(len(a), len(b))
        a, b = (c + (Fraction(),) * (size - len(c)) for c in (a, b))
        return Polynomial.of([x + y for x, y in zip(a, b, strict=True)])

    def __call__(self, n: int) -> Fraction:
        return sum((c * n**k for k, c in enumerate(self.coefficients)), Fraction())

    def __str__(self) -> str:
        text = "".join(
            f"{_signed(c, bare=k > 0)}{_power(k)}"
            for k, c in reversed(list(enumerate(self.coefficients)))
            if c
        )
        return text.removeprefix("+") or "0"


def _power(k: int) -> str:
    return ("", "n")[k] if k < 2 else f"n^{k}"


def _signed(c: Fraction, *, bare: bool) -> str:
    """Return a coefficient with its sign; 1 before a letter (`bare`) is omitted."""
    sign, size = "-" if c < 0 else "+", abs(c)
    if bare and size == 1:
        return sign
    decimal = (size * 2).denominator == 1
    return f"{sign}{float(size):g}" if decimal else f"{sign}{size}"
