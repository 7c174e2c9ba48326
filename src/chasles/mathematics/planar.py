"""Planar vectors for motion and force in the x-y plane (Featherstone 2008, sections 2.16 and A.1).

Planar quantities are spatial quantities restricted to rotation about z and translation along x and
y (rows 3, 4 and 5 of spatial vectors). A vector has three entries, a transform four, a rigid-body
inertia four, and an articulated-body inertia six.
"""

from dataclasses import dataclass
from typing import TypeVar

from chasles.expr import Number, cos, sin
from chasles.mathematics.linear import Additive, Matrix, Vector

Carried = TypeVar("Carried", "PlanarMotion", "PlanarForce")
Moved = TypeVar(
    "Moved",
    "PlanarMotion",
    "PlanarForce",
    "PlanarTransform",
    "PlanarInertia",
    "PlanarArticulatedInertia",
)


@dataclass(frozen=True, slots=True)
class PlanarMotion(Additive):
    """Planar velocity or acceleration: angular part w about z, linear part (x, y) at the origin."""

    w: Number
    x: Number
    y: Number

    def dot(self, f: "PlanarForce") -> Number:
        """Return the scalar product with a force (the power, if the motion is a velocity)."""
        return self.w * f.n + self.x * f.x + self.y * f.y

    def cross(self, other: Carried) -> Carried:
        """Return the cross product crm(v) m or crf(v) f (Featherstone 2008, Eq 2.75 and 2.76)."""
        w, x, y = self.w, self.x, self.y
        if isinstance(other, PlanarMotion):
            return PlanarMotion(0.0, y * other.w - w * other.y, w * other.x - x * other.w)
        return PlanarForce(x * other.y - y * other.x, -w * other.y, w * other.x)

    def vector(self) -> Vector:
        return Vector.of(self.w, self.x, self.y)


@dataclass(frozen=True, slots=True)
class PlanarForce(Additive):
    """Planar force or momentum: moment n about the frame origin, and linear part (x, y)."""

    n: Number
    x: Number
    y: Number

    def vector(self) -> Vector:
        return Vector.of(self.n, self.x, self.y)


@dataclass(frozen=True, slots=True)
class PlanarTransform:
    """Transform from frame A to a rotated frame B with origin (x, y) in A.

    c and s are the cosine and sine of the rotation angle. As with spatial transforms, `X @ v`,
    `X @ f` and `X @ I` transform motions, forces and inertias from A to B.
    """

    c: Number
    s: Number
    x: Number
    y: Number

    @staticmethod
    def of(angle: Number, x: Number = 0.0, y: Number = 0.0) -> "PlanarTransform":
        """Return the transform Xpln to a frame that is translated and then rotated.

        See Featherstone 2008, Eq 2.77.
        """
        return PlanarTransform(cos(angle), sin(angle), x, y)

    def matrix(self) -> Matrix:
        """Return the matrix X for motions. The matrix for forces is X^-T."""
        c, s, x, y = self.c, self.s, self.x, self.y
        return Matrix(((1.0, 0.0, 0.0), (s * x - c * y, c, s), (c * x + s * y, -s, c)))

    def inverse(self) -> "PlanarTransform":
        c, s, x, y = self.c, self.s, self.x, self.y
        return PlanarTransform(c, -s, -(c * x + s * y), s * x - c * y)

    def __matmul__(self, other: Moved) -> Moved:
        c, s, x, y = self.c, self.s, self.x, self.y
        if isinstance(other, PlanarMotion):
            return PlanarMotion(
                other.w, *self._turned(other.x - y * other.w, other.y + x * other.w)
            )
        if isinstance(other, PlanarForce):
            moment = other.n - x * other.y + y * other.x
            return PlanarForce(moment, *self._turned(other.x, other.y))
        if isinstance(other, PlanarTransform):
            turned = (c * other.c - s * other.s, c * other.s + s * other.c)
            back = (other.c * x - other.s * y, other.s * x + other.c * y)
            return PlanarTransform(*turned, other.x + back[0], other.y + back[1])
        if isinstance(other, PlanarInertia):
            hx, hy = other.hx - other.m * x, other.hy - other.m * y
            moved = other.I - x * (other.hx + hx) - y * (other.hy + hy)
            return PlanarInertia(other.m, *self._turned(hx, hy), moved)
        if isinstance(other, PlanarArticulatedInertia):
            return self._articulated(other)
        return NotImplemented

    def _articulated(self, A: "PlanarArticulatedInertia") -> "PlanarArticulatedInertia":
        """Transform an articulated-body inertia A to frame B: X* A X^-1."""
        c, s, x, y = self.c, self.s, self.x, self.y
        hx, hy = A.hx + y * A.xx - x * A.xy, A.hy + y * A.xy - x * A.yy
        I = A.I + y * (A.hx + hx) - x * (A.hy + hy)
        mean, half, skew = 0.5 * (A.xx + A.yy), 0.5 * (A.xx - A.yy), A.xy
        cos, sin = c * c - s * s, 2.0 * c * s
        part, xy = cos * half + sin * skew, cos * skew - sin * half
        return PlanarArticulatedInertia(I, *self._turned(hx, hy), mean + part, mean - part, xy)

    def _turned(self, x: Number, y: Number) -> tuple[Number, Number]:
        return self.c * x + self.s * y, self.c * y - self.s * x

    def nearly(self) -> PlanarMotion:
        """Return the displacement from A to a nearby frame B, to first order.

        This is the function XtoV in Featherstone 2008, table A.1.
        """
        X = self.matrix()
        return PlanarMotion(X[1, 2], X[2, 0], -X[1, 0])

    def halfway(self) -> PlanarMotion:
        """Return the displacement v from A to a nearby frame B, to second order.

        This is a more accurate form of the function XtoV (Featherstone 2008, table A.1). The
        displacement has the same coordinates in both frames: X v = v. The velocity that moves A to
        B in unit time is asin(w) / w times v.
        """
        X = self.matrix()
        w, a, b, c = X[1, 2], X[2, 0], X[1, 0], X[1, 1]
        return PlanarMotion(w, 0.5 * (a + a * c + b * w), 0.5 * (a * w - b - b * c))


@dataclass(frozen=True, slots=True)
class PlanarInertia(Additive):
    """Planar inertia: mass m, first moment (hx, hy), and moment of inertia I about the origin."""

    m: Number
    hx: Number
    hy: Number
    I: Number

    @staticmethod
    def from_center(m: Number, cx: Number, cy: Number, Ic: Number) -> "PlanarInertia":
        """Create an inertia from the mass, center of mass and central inertia.

        See Featherstone 2008, Eq 2.78.
        """
        return PlanarInertia(m, m * cx, m * cy, Ic + m * (cx * cx + cy * cy))

    def matrix(self) -> Matrix:
        return Matrix(
            ((self.I, -self.hy, self.hx), (-self.hy, self.m, 0.0), (self.hx, 0.0, self.m))
        )

    def __matmul__(self, v: PlanarMotion) -> PlanarForce:
        """Return the momentum of a body with this inertia and the velocity v."""
        if type(v) is not PlanarMotion:
            return NotImplemented
        return PlanarForce(*(self.matrix() @ v.vector()))


@dataclass(frozen=True, slots=True)
class PlanarArticulatedInertia(Additive):
    """Planar articulated-body inertia [[I, hx, hy], [hx, xx, xy], [hy, xy, yy]].

    The inertia maps the acceleration of a body in an articulated system to the force on the body,
    but does not map velocity to momentum (Featherstone 2008, section 7.1).
    """

    I: Number
    hx: Number
    hy: Number
    xx: Number
    yy: Number
    xy: Number

    @staticmethod
    def of(rigid: PlanarInertia) -> "PlanarArticulatedInertia":
        return PlanarArticulatedInertia(rigid.I, -rigid.hy, rigid.hx, rigid.m, rigid.m, 0.0)

    def matrix(self) -> Matrix:
        I, hx, hy, xx, yy, xy = self.I, self.hx, self.hy, self.xx, self.yy, self.xy
        return Matrix(((I, hx, hy), (hx, xx, xy), (hy, xy, yy)))

    def __matmul__(self, a: PlanarMotion) -> PlanarForce:
        """Return the force that gives the articulated body the acceleration a."""
        if type(a) is not PlanarMotion:
            return NotImplemented
        return PlanarForce(*(self.matrix() @ a.vector()))

    def without(self, s: PlanarMotion) -> "PlanarArticulatedInertia":
        """Return I - U D^-1 U', the articulated-body inertia propagated across a joint.

        I is this inertia, U = I s, and D = s'U, where s is the axis of the joint.
        """
        U = self @ s
        k = 1.0 / s.dot(U)
        n, x, y = U.n, U.x, U.y
        taken = PlanarArticulatedInertia(n * n, n * x, n * y, x * x, y * y, x * y)
        return self - taken * k
