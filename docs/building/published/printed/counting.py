"""Numbers that count operations by equation, and the vectors and rotations of the book.

This module shares no code with the library. An `int` is a structural number: factors 0, 1 and -1
cost nothing, and a factor 2 is an addition. A `float` is known in advance: operations between
floats cost nothing. A `Live` number is computed while the arm moves. Signs, sines and cosines cost
nothing, and a division counts as a multiplication.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import cos, sin

Counts = tuple[int, int]
"""Multiplications and additions."""


@dataclass
class Sheet:
    """Operations by equation; new operations are added to the current `equation`."""

    equation: str = ""
    counts: dict[str, Counts] = field(default_factory=dict)
    half: Counts = (1, 0)
    """Cost of a halved number: a product, or a sum, as for a doubled number."""

    def take(self, products: int, sums: int) -> None:
        M, A = self.counts.get(self.equation, (0, 0))
        self.counts[self.equation] = M + products, A + sums

    def live(self, value: float) -> "Live":
        return Live(float(value), self)

    def whole(self) -> Counts:
        """Return the sum over all equations."""
        return sum(M for M, _ in self.counts.values()), sum(A for _, A in self.counts.values())


@dataclass(frozen=True)
class Live:
    """A number that is known only while the arm moves."""

    value: float
    sheet: Sheet

    def __add__(self, other: "Number") -> "Number":
        if type(other) is int and other == 0:
            return self
        self.sheet.take(0, 1)
        return Live(self.value + float(other), self.sheet)

    def __mul__(self, other: "Number") -> "Number":
        if type(other) is int and other in (-1, 0, 1):
            return 0 if other == 0 else self if other == 1 else -self
        doubled = type(other) is int and other == 2
        self.sheet.take(0 if doubled else 1, 1 if doubled else 0)
        return Live(self.value * float(other), self.sheet)

    def __truediv__(self, other: "Number") -> "Number":
        self.sheet.take(1, 0)
        return Live(self.value / float(other), self.sheet)

    def __sub__(self, other: "Number") -> "Number":
        return self + -other

    def __rsub__(self, other: "Number") -> "Number":
        return -self + other

    def __neg__(self) -> "Live":
        return Live(-self.value, self.sheet)

    def __float__(self) -> float:
        return self.value

    def __rtruediv__(self, other: float) -> "Number":
        return self.sheet.live(other) / self

    __radd__ = __add__
    __rmul__ = __mul__


Number = Live | float
Vector = tuple[Number, Number, Number]
Tensor = tuple[Vector, Vector, Vector]
Symmetric = tuple[Number, Number, Number, Number, Number, Number]
"""Entries xx, yy, zz, xy, xz, yz."""

Rows = Sequence[Sequence[Number]]

Z: Vector = (0, 0, 1)
"""Axis of a joint in the frame of the moving link."""


def times(a: Number, b: Number) -> Number:
    """Return a b, or a structural zero if a or b is one."""
    return 0 if 0 in [x for x in (a, b) if isinstance(x, int)] else a * b


def plus(*vectors: Vector) -> Vector:
    x, y, z = (_sum(entries) for entries in zip(*vectors, strict=True))
    return x, y, z


def live(sheet: Sheet, v: Vector) -> Vector:
    """Return a vector with live entries, so that operations with zeros are counted, too."""
    return sheet.live(float(v[0])), sheet.live(float(v[1])), sheet.live(float(v[2]))


def live_symmetric(sheet: Sheet, S: Symmetric) -> Symmetric:
    xx, yy, zz, xy, xz, yz = (sheet.live(float(entry)) for entry in S)
    return xx, yy, zz, xy, xz, yz


def minus(v: Vector) -> Vector:
    return -v[0], -v[1], -v[2]


def halved(x: Number) -> Number:
    """Return x / 2, whose cost is `Sheet.half`."""
    if isinstance(x, Live):
        x.sheet.take(*x.sheet.half)
        return Live(x.value / 2, x.sheet)
    return x / 2


def scaled(v: Vector, factor: Number) -> Vector:
    return times(v[0], factor), times(v[1], factor), times(v[2], factor)


def cross(u: Vector, v: Vector) -> Vector:
    return (
        times(u[1], v[2]) - times(u[2], v[1]),
        times(u[2], v[0]) - times(u[0], v[2]),
        times(u[0], v[1]) - times(u[1], v[0]),
    )


def dot(u: Sequence[Number], v: Sequence[Number]) -> Number:
    return _sum(times(a, b) for a, b in zip(u, v, strict=True))


def apply(T: Tensor, v: Vector) -> Vector:
    return dot(T[0], v), dot(T[1], v), dot(T[2], v)


def before(v: Vector, T: Tensor) -> Vector:
    """Return v . T, the row vector times the tensor."""
    return apply(transposed(T), v)


def transposed(T: Tensor) -> Tensor:
    x, y, z = zip(*T, strict=True)
    return x, y, z


def summed(*tensors: Tensor) -> Tensor:
    x, y, z = (plus(*rows) for rows in zip(*tensors, strict=True))
    return x, y, z


def negative(T: Tensor) -> Tensor:
    return minus(T[0]), minus(T[1]), minus(T[2])


def tilde(v: Vector) -> Tensor:
    """Return the tensor of the cross product."""
    return (0, -v[2], v[1]), (v[2], 0, -v[0]), (-v[1], v[0], 0)


def product(A: Rows, B: Rows) -> list[list[Number]]:
    return [[dot(row, column) for column in zip(*B, strict=True)] for row in A]


def tensor(rows: Rows) -> Tensor:
    x, y, z = ((row[0], row[1], row[2]) for row in rows)
    return x, y, z


def skew_product(u: Vector, v: Vector) -> Tensor:
    """Return u~ v~ = v u' - (u . v) 1 (Eq 3.4.10), with 9 products and 3 sums.

    Each diagonal entry is computed as a sum of two products.
    """
    P = tuple(tuple(times(b, a) for a in u) for b in v)
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = P
    return (-(yy + zz), xy, xz), (yx, -(xx + zz), yz), (zx, zy, -(xx + yy))


def symmetric_product(u: Vector, v: Vector) -> Symmetric:
    """Return u~ v~ + (u~ v~)', with 9 products and 9 sums."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = skew_product(u, v)
    return xx * 2, yy * 2, zz * 2, xy + yx, xz + zx, yz + zy


def symmetric(T: Tensor) -> Symmetric:
    return T[0][0], T[1][1], T[2][2], T[0][1], T[0][2], T[1][2]


def together(*parts: Symmetric) -> Symmetric:
    """Return the sum of symmetric tensors."""
    xx, yy, zz, xy, xz, yz = (_sum(entries) for entries in zip(*parts, strict=True))
    return xx, yy, zz, xy, xz, yz


def without(S: Symmetric, T: Symmetric) -> Symmetric:
    """Return S - T."""
    xx, yy, zz, xy, xz, yz = (a - b for a, b in zip(S, T, strict=True))
    return xx, yy, zz, xy, xz, yz


def _sum(terms: Iterable[Number]) -> Number:
    total: Number = 0
    for term in terms:
        total = total + term
    return total


def turned(x: Number, y: Number, c: Number, s: Number) -> tuple[Number, Number]:
    """Return two components rotated in their plane."""
    return times(c, x) - times(s, y), times(s, x) + times(c, y)


@dataclass(frozen=True)
class Turn:
    """Rotation A = Rx(alpha) Rz(theta) from the axes of a link to the previous link (Eq 2.3.3).

    Rotating a vector takes 8 products and 4 sums, or 4 and 2 if the twist is 0 or 90 degrees.
    """

    c: Live
    s: Live
    ca: Number
    sa: Number

    def out(self, v: Vector) -> Vector:
        """Return A v."""
        x, y = turned(v[0], v[1], self.c, self.s)
        return x, *turned(y, v[2], self.ca, self.sa)

    def back(self, v: Vector) -> Vector:
        """Return A' v."""
        y, z = turned(v[1], v[2], self.ca, -self.sa)
        return *turned(v[0], y, self.c, -self.s), z

    @property
    def third(self) -> Vector:
        """Third row of A; its entries are computed with A, and are not counted."""
        known = [self.c.sheet.live(float(self.sa) * float(x)) for x in (self.s, self.c)]
        if isinstance(self.sa, int):
            return self.sa * self.s, self.sa * self.c, self.ca
        return known[0], known[1], self.ca

    @property
    def matrix(self) -> Tensor:
        """Matrix A of nine live numbers."""
        c, s, ca, sa = (float(x) for x in (self.c, self.s, self.ca, self.sa))
        rows = ((c, -s, 0.0), (ca * s, ca * c, -sa), (sa * s, sa * c, ca))
        return tensor([[self.c.sheet.live(x) for x in row] for row in rows])

    def double(self) -> tuple[Number, Number]:
        """Return sin and cos of twice the joint angle (section 6.4), with 2 products and 3 sums."""
        return self.s * self.c * 2, 1.0 - self.s * self.s * 2

    @property
    def double_twist(self) -> tuple[Number, Number]:
        """Return sin and cos of twice the twist, which are known in advance."""
        if isinstance(self.sa, int):
            return 0, 1 - 2 * self.sa * self.sa
        return 2.0 * float(self.sa) * float(self.ca), 1.0 - 2.0 * float(self.sa) ** 2

    def symmetric(self, S: Symmetric, double: tuple[Number, Number]) -> Symmetric:
        """Return A S A' by double angles (section 6.4).

        With `double`, the result takes 21 products and 18 sums, or 11 and 11 if the twist is 0 or
        90 degrees. The book states only these numbers; the order of the operations is chosen here.
        """
        xx, yy, zz, xy, xz, yz = S
        xx, yy, xy = plane(xx, yy, xy, *double)
        xz, yz = turned(xz, yz, self.c, self.s)
        yy, zz, yz = self._twisted(yy, zz, yz)
        xy, xz = turned(xy, xz, self.ca, self.sa)
        return xx, yy, zz, xy, xz, yz

    def _twisted(self, yy: Number, zz: Number, yz: Number) -> Vector:
        """Rotate three entries by the twist, with 6 products and 5 sums (none at 90 degrees)."""
        sine, cosine = self.double_twist
        if isinstance(cosine, int):
            return plane(yy, zz, yz, sine, cosine)
        sa, ca = float(self.sa), float(self.ca)
        difference = yy - zz
        moved = sa * (sa * difference + 2.0 * ca * yz)
        return yy - moved, zz + moved, sa * (ca * difference) + cosine * yz

    def last(self, S: Symmetric) -> Number:
        """Return the last entry of A S A', with 9 products and 10 sums (5 and 6 at 90 degrees).

        The order is that of `symmetric`: the rotation by the joint angle changes xx and yy, but not
        their sum, and then the twist changes yy and zz.
        """
        xx, yy, zz, xy, xz, yz = S
        if isinstance(self.sa, int) and self.sa == 0:
            return zz
        square = self.c * self.c
        first = square * xx + (1.0 - square) * yy - self.s * self.c * 2 * xy
        second = xx + yy - first
        if isinstance(self.sa, int):
            return second
        sine, _ = self.double_twist
        side = self.s * xz + self.c * yz
        return zz + float(self.sa) ** 2 * (second - zz) + sine * side

    def tensor(self, T: Tensor) -> Tensor:
        """Return A T A' by double angles, with 33 products and 32 sums (18 each at 90 degrees).

        Three of the products at 90 degrees are halves.
        """
        (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = T
        (xx, xy), (yx, yy) = _block(((xx, xy), (yx, yy)), self._squares)
        xz, yz = turned(xz, yz, self.c, self.s)
        zx, zy = turned(zx, zy, self.c, self.s)
        (yy, yz), (zy, zz) = self._turned_block(((yy, yz), (zy, zz)))
        xy, xz = turned(xy, xz, self.ca, self.sa)
        yx, zx = turned(yx, zx, self.ca, self.sa)
        return (xx, xy, xz), (yx, yy, yz), (zx, zy, zz)

    @property
    def _squares(self) -> "Squares":
        """Squares and double angles by the identities of section 6.4, with 3 products, 4 sums."""
        sine, both = self.s * self.s, self.s * self.c
        double = 1.0 - sine * 2
        return Squares(halved(1.0 + double), sine, both, both * 2, double)

    def _turned_block(self, T: "Block") -> "Block":
        (a, ab), (ba, b) = T
        if isinstance(self.sa, int):
            return ((b, -ba), (-ab, a)) if self.sa else T
        (sine, cosine), square = self.double_twist, float(self.sa) ** 2
        return _block(T, Squares(1.0 - square, square, 0.5 * float(sine), sine, cosine))


@dataclass(frozen=True)
class Squares:
    """The products c c, s s and s c of a cosine and a sine, and 2 s c and c c - s s."""

    cc: Number
    ss: Number
    sc: Number
    sine: Number
    cosine: Number


Block = tuple[tuple[Number, Number], tuple[Number, Number]]


def plane(a: Number, b: Number, ab: Number, sin2: Number, cos2: Number) -> Vector:
    """Rotate the entries aa, bb, ab of a symmetric tensor in their plane.

    `sin2` and `cos2` are the sine and cosine of twice the rotation angle.
    """
    if isinstance(cos2, int):
        return (a, b, ab) if cos2 == 1 else (b, a, -ab)
    half = (a - b) * 0.5
    middle, turned = b + half, half * cos2 - ab * sin2
    return middle + turned, middle - turned, half * sin2 + ab * cos2


def _block(T: Block, angle: Squares) -> Block:
    """Rotate a block of any tensor in its plane, with 7 products and 10 sums.

    The symmetric part is rotated, and the skew-symmetric part does not change.
    """
    (a, ab), (ba, b) = T
    mean, skew = halved(ab + ba), halved(ab - ba)
    first = angle.cc * a + angle.ss * b - angle.sine * mean
    side = angle.sc * (a - b) + angle.cosine * mean
    return (first, side + skew), (side - skew, a + b - first)


@dataclass(frozen=True)
class Link:
    """Link with modified Denavit-Hartenberg constants (section 2.3) and inertial parameters."""

    alpha: float
    a: float
    d: float
    m: float
    r: tuple[float, float, float]
    I: tuple[tuple[float, ...], ...]

    def turn(self, q: float, sheet: Sheet) -> Turn:
        right = abs(sin(2.0 * self.alpha)) < 1e-12
        ca, sa = cos(self.alpha), sin(self.alpha)
        s, c = sheet.live(sin(q)), sheet.live(cos(q))
        return Turn(c, s, round(ca), round(sa)) if right else Turn(c, s, ca, sa)

    @property
    def s(self) -> Vector:
        """Origin along the axes of the previous link (Eq 2.3.4), as three floats."""
        return self.a, -self.d * sin(self.alpha), self.d * cos(self.alpha)
