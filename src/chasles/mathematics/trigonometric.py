"""Solve equations in the cosine and sine of an angle, for closed-form inverse kinematics.

The solutions are intersections of a line or a conic with the unit circle. The functions have no
conditional branches, so that they can be traced. Each function returns all roots, each with a flag:
1 for a real root, and 0 otherwise.
"""

from collections.abc import Sequence
from typing import NamedTuple

from chasles.expr import (
    Number,
    absolute,
    atan2,
    cos,
    less,
    less_equal,
    maximum,
    minimum,
    select,
    sin,
    sqrt,
)

SLACK = 1e-5
"""Relative tolerance for discriminants.

A slightly negative discriminant is treated as zero; callers must check the resulting double root.
"""

TINY = 1e-24
"""Threshold below which squared coefficients (typically about 1) are treated as zero."""

NEWTON = 20
"""Number of Newton steps for the root of a cubic.

Convergence is monotonic, and quadratic for a simple root.
"""


Line = tuple[Number, Number, Number]
"""Coefficients a, b and k of the line a c + b s = k, where c and s are a cosine and a sine."""


class Angle(NamedTuple):
    """Cosine c and sine s of an angle. `real` is 1 for a real solution, and 0 otherwise."""

    c: Number
    s: Number
    real: Number = 1.0


def line(a: Number, b: Number, k: Number) -> list[Angle]:
    """Return both angles (cosine c, sine s) with a c + b s = k, or the angle 0 if a = b = k = 0."""
    square = a * a + b * b
    gap = square - k * k
    whole = less(TINY, square)
    size = select(whole, square, 1.0)
    real = select(whole, less_equal(size * -SLACK, gap), less_equal(absolute(k), SLACK))
    root = sqrt(select(whole, maximum(gap, 0.0), 0.0))
    unit = 1.0 / sqrt(size * maximum(size, k * k))
    found = []
    for way in (root, -root):
        c, s = (a * k - b * way) * unit, (b * k + a * way) * unit
        found.append(Angle(select(whole, c, 1.0), select(whole, s, 0.0), real))
    return found


def between(x: Number, y: Number) -> Angle:
    """Return the polar angle of the point (x, y), or 0 if both coordinates are zero."""
    square = x * x + y * y
    whole = less(TINY, square)
    unit = 1.0 / sqrt(select(whole, square, 1.0))
    return Angle(select(whole, x * unit, 1.0), select(whole, y * unit, 0.0))


def conic(terms: Sequence[Number]) -> list[Angle]:
    """Return the four angles that satisfy k + a c + b s + d c^2 + e c s + f s^2 = 0.

    c and s are the cosine and sine of the angle, and `terms` contains k, a, b, d, e and f. For some
    x, the conic plus x times the unit circle degenerates to a pair of lines. x is a root of a
    cubic, which always has a root for which the lines are real.
    """
    k, a, b, d, e, f = terms
    # Rotate the axes by `tilt` and subtract a multiple of c^2 + s^2 - 1 to remove the terms in c s
    # and s^2.
    p = sqrt((d - f) * (d - f) + e * e)
    tilt = atan2(e, d - f) * 0.5
    cosine, sine = cos(tilt), sin(tilt)
    a, b = a * cosine + b * sine, b * cosine - a * sine
    k = k + (d + f - p) * 0.5
    size = p + absolute(a) + absolute(b) + absolute(k)
    unit = 1.0 / select(less(TINY, size), size, 1.0)
    p, a, b, k = maximum(p * unit, 1e-12), a * unit, b * unit, k * unit
    x = _factor(p, a, b, k)
    across, along = p + x, -x
    first, second = _lines(across, along, a, b, k - x)
    return [
        Angle(c * cosine - s * sine, s * cosine + c * sine, real)
        for c, s, real in line(*first) + line(*second)
    ]


def _factor(p: Number, a: Number, b: Number, k: Number) -> Number:
    """Return x in [-p, 0] for which a conic degenerates to a pair of lines.

    In coordinates (c, s), the conic is p c^2 + a c + b s + k + x (c^2 + s^2 - 1) = 0.
    """
    aa, bb = a * a * 0.25, b * b * 0.25
    square, linear, constant = k - p, p * k - aa - bb, -p * bb

    def value(x: Number) -> Number:
        return ((square - x) * x + linear) * x + constant

    # The value is not negative at -p and not positive at 0. Newton's method starts at the end of
    # the interval that is on the same side of the inflection point as the root. There, the value
    # and its second derivative have the same sign, so the iteration cannot overshoot.
    middle = maximum(-p, minimum(square * (1.0 / 3.0), 0.0))
    x = select(less(0.0, value(middle)), 0.0, -p)
    for _ in range(NEWTON):
        slope = (square * 2.0 - x * 3.0) * x + linear
        steep = less(slope, -1e-300)
        x = x - select(steep, value(x) / select(steep, slope, -1.0), 0.0)
        x = maximum(-p, minimum(x, 0.0))
    return x


def _lines(A: Number, B: Number, a: Number, b: Number, k: Number) -> tuple[Line, Line]:
    """Return the linear factors of the reducible polynomial A c^2 - B s^2 + a c + b s + k."""
    root_A, root_B = sqrt(maximum(A, 0.0)), sqrt(maximum(B, 0.0))
    # The lines are root_A c + root_B s + m and root_A c - root_B s + n, with m n = k. a determines
    # m + n, and b determines m - n. If A or B is small, the missing sum or difference follows from
    # the other one and k.
    safe_A, safe_B = (select(less(0.0, r), r, 1.0) for r in (root_A, root_B))
    total, apart = a / safe_A, b / safe_B
    rest = sqrt(maximum(total * total - k * 4.0, 0.0))
    whole = sqrt(maximum(apart * apart + k * 4.0, 0.0))
    wide = less_equal(B, A)
    poor_A, poor_B = (less(x, maximum(absolute(y), 1e-8)) for x, y in ((A, a), (B, b)))
    poor_A, poor_B = poor_A * (1.0 - wide), poor_B * wide
    apart = select(poor_B, select(less(b, 0.0), -rest, rest), apart)
    total = select(poor_A, select(less(a, 0.0), -whole, whole), total)
    m, n = (total - apart) * 0.5, (total + apart) * 0.5
    larger = less(absolute(n), absolute(m))
    big = select(larger, m, n)
    small = k / select(less(TINY, big * big), big, 1.0)
    m, n = select(larger, m, small), select(larger, small, n)
    return (root_A, root_B, -m), (root_A, -root_B, -n)


def quadratic(c: Number, b: Number, a: Number) -> list[tuple[Number, Number]]:
    """Return both roots of a x^2 + b x + c = 0 with a > 0.

    Each root is paired with 1 if it is real, or 0 otherwise.
    """
    gap = b * b - a * c * 4.0
    real = less_equal((b * b + absolute(a * c)) * -SLACK, gap)
    root = sqrt(maximum(gap, 0.0))
    unit = 0.5 / a
    return [((root - b) * unit, real), ((-root - b) * unit, real)]
