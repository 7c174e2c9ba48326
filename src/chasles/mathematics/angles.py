"""Convert between rotations and Cardan or Euler angles.

There are six Cardan sequences (x, y and z in any order) and six Euler sequences (first and third
axes equal). The axes are either moving, R = R1 R2 R3, or fixed, R = R3 R2 R1. There are thus twelve
Cardan and twelve Euler conventions.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Literal

from chasles.expr import Number, Scalar, atan2, cos, less, select, sin, sqrt
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import Rotation, about

About = Literal["moving", "fixed"]

CARDAN = tuple("".join(p) for p in itertools.permutations("xyz"))
EULER = tuple(a + b + a for a, b in itertools.permutations("xyz", 2))
SEQUENCES = (*CARDAN, *EULER)

SINGULAR = 1e-15
"""Threshold below which the middle angle's cosine (Cardan) or sine (Euler) is treated as zero."""


def turn(axis: int, angle: Number) -> Rotation:
    """Return the matrix R that rotates vectors by an angle about axis 0, 1 or 2.

    Right angles give exact zeros. In floating point, cos(pi/2) is 6e-17, which would hide
    structural zeros from simplification.
    """
    R = about(axis, angle).T
    return R if type(angle) is Scalar else Rotation.of(R.matrix())


def rotation_from_angles(sequence: str, angles: Sequence[Number], axes: About) -> Rotation:
    """Return the rotation R from the rotated frame to the fixed frame."""
    turns = [turn("xyz".index(a), t) for a, t in zip(sequence, angles, strict=True)]
    inner, middle, outer = turns if axes == "fixed" else reversed(turns)
    return inner.then(middle).then(outer)


def angles_from_matrix(R: Matrix, sequence: str, axes: About) -> tuple[Vector, Vector]:
    """Return the two sets of angles in (-pi, pi] that give the rotation R.

    The middle angle of the first solution is in [-pi/2, pi/2] (Cardan) or [0, pi] (Euler). If the
    first and third axes are parallel, only the sum or difference of their angles is determined. The
    angle about the first moving axis (or the third fixed axis) is then zero.
    """
    i, j, k = ("xyz".index(a) for a in (sequence if axes == "moving" else sequence[::-1]))
    a, b, c = _cardan(R, i, j, k) if i != k else _euler(R, i, j)
    other = math.pi - b if i != k else -b
    triples = (a, b, c), (_opposite(a), _wrapped(other), _opposite(c))
    first, second = (t if axes == "moving" else t[::-1] for t in triples)
    return Vector(first), Vector(second)


def _cardan(R: Matrix, i: int, j: int, k: int) -> tuple[Number, Number, Number]:
    e = _parity(i, j)
    forward = sqrt(R[i, i] * R[i, i] + R[i, j] * R[i, j])
    b = atan2(e * R[i, k], forward)
    a = select(less(forward, SINGULAR), 0.0, atan2(-e * R[j, k], R[k, k]))
    x, y = _turned_back(R, a, e, j, k, i, j)
    return a, b, atan2(e * x, y)


def _euler(R: Matrix, i: int, j: int) -> tuple[Number, Number, Number]:
    e, l = _parity(i, j), 3 - i - j
    side = sqrt(R[i, j] * R[i, j] + R[i, l] * R[i, l])
    b = atan2(side, R[i, i])
    a = select(less(side, SINGULAR), 0.0, atan2(R[j, i], -e * R[l, i]))
    x, y = _turned_back(R, a, e, j, l, l, j)
    return a, b, atan2(-e * x, y)


def _turned_back(R: Matrix, a: Number, e: float, j: int, l: int, p: int, q: int) -> list[Number]:
    """Undo the first rotation of R, and return the entries in columns p and q of row j.

    A third angle that is computed from these entries is consistent with the first angle, even if
    the first angle is inaccurate.
    """
    c, s = cos(a), e * sin(a)
    return [c * R[j, column] + s * R[l, column] for column in (p, q)]


def _parity(i: int, j: int) -> float:
    return 1.0 if (i + 1) % 3 == j else -1.0


def _opposite(angle: Number) -> Number:
    return angle + select(less(0.0, angle), -math.pi, math.pi)


def _wrapped(angle: Number) -> Number:
    return angle - select(less(math.pi, angle), 2.0 * math.pi, 0.0)
