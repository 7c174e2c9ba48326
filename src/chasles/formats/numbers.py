"""Numbers as files print them: what is one, and which angles mean right angles."""

import math
import re
from decimal import Decimal
from typing import Any

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)

RIGHT_ANGLE, _RADIAN = 15707963267948966192313216916397514420985, 10**40
"""A right angle and a radian in one unit, as integers: comparing digits must not round."""

_MOST_RIGHT_ANGLES = 8


def is_number(word: str) -> bool:
    """Whether a word is a finite number in decimal digits, all of it."""
    return _NUMBER.fullmatch(word) is not None and math.isfinite(float(word))


def right_angles(angle: str) -> int:
    """How many right angles the printed digits mean; 0 where they mean something else.

    A number of 5 to 17 digits means a multiple if the multiple, rounded or truncated to as many,
    prints so; one with more digits, or a double printed in full, if it is a neighbouring double.
    """
    k = round(float(angle) / radians(1))
    if not 0 < abs(k) <= _MOST_RIGHT_ANGLES:
        return 0
    if abs(float(angle) - radians(k)) <= math.ulp(radians(k)):
        return k
    _, digits, exponent = Decimal(angle).as_tuple()
    if not 5 <= len(digits) <= 17:
        return 0
    printed = int("".join(map(str, digits)))
    unit = 10 ** (40 + int(exponent))
    exact = abs(k) * RIGHT_ANGLE
    return k if printed in (exact // unit, (exact + unit // 2) // unit) else 0


def radians(k: int) -> float:
    """The double nearest to k right angles."""
    return k * RIGHT_ANGLE / _RADIAN


def multiple(k: int) -> str:
    """The name of k right angles: pi/2, -pi, 3pi/2."""
    numerator, denominator = (k, "/2") if k % 2 else (k // 2, "")
    factor = {1: "", -1: "-"}.get(numerator, str(numerator))
    return f"{factor}pi{denominator}"


def angle_word(angle: Any) -> str:
    """An angle in rad, with digits that are not taken for a right angle unless it is one."""
    plain = repr(float(angle) + 0.0)
    k = right_angles(plain)
    return f"{angle:.20f}" if k and float(angle) != radians(k) else plain
