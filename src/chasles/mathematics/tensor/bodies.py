"""Tensors of a rigid body: how it turns, and how its mass lies (Balafoutis and Patel, chapter 4).

All components are in one basis. I is the tensor of inertia with products of inertia negative off
its diagonal; J, the integral of r (x) r dm, is the book's Euler tensor, with products positive.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from chasles.expr import Number, Scalar
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.spatial import Force, RigidInertia
from chasles.mathematics.tensor.algebra import dual

# How it turns ----------------------------------------------------------------------------------


def angular_velocity(R: Matrix, Rd: Matrix) -> Matrix:
    """w~ = Rd R', from an orientation and its rate, in the basis that R turns to (4.2.5)."""
    return Rd @ R.T


@dataclass(frozen=True, slots=True)
class AngularAcceleration:
    """Omega = wd~ + w~ w~ = Rdd R': body-fixed vectors r have the acceleration Omega r (4.2.7).

    From the vectors w and wd, in 6 multiplications and 9 additions. `tensor` has the nine
    components: wd is their vect, w~ w~ their symmetric part.
    """

    w: Vector
    wd: Vector
    tensor: Matrix = field(init=False, repr=False, compare=False)

    @staticmethod
    def zero() -> "AngularAcceleration":
        return AngularAcceleration(Vector.zero(), Vector.zero())

    def __post_init__(self) -> None:
        (x, y, z), (p, q, s) = self.w, self.wd
        xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
        rows = (
            (-(yy + zz), xy - s, xz + q),
            (xy + s, -(xx + zz), yz - p),
            (xz - q, yz + p, -(xx + yy)),
        )
        object.__setattr__(self, "tensor", Matrix(rows))

    def __matmul__(self, r: Vector) -> Vector:
        """Omega r, in 9 multiplications and 6 additions."""
        if type(r) is not Vector:
            return NotImplemented
        return self.tensor @ r

    def moment(self, J: Symmetric) -> Vector:
        """dual(Omega J - (Omega J)'), the moment that turns a body with Euler tensor J (4.3.41).

        Of the diagonal of Omega only differences count: 15 multiplications and 15 additions
        (section 5.3).
        """
        (a, xy, xz), (yx, b, yz), (zx, zy, c) = self.tensor.rows
        return Vector.of(
            zy * J.yy - yz * J.zz + (c - b) * J.yz + zx * J.xy - yx * J.xz,
            xz * J.zz - zx * J.xx + (a - c) * J.xz + xy * J.yz - zy * J.xy,
            yx * J.xx - xy * J.yy + (b - a) * J.xy + yz * J.xz - xz * J.yz,
        )

    def moment_of(self, J: Symmetric) -> Vector:
        """The same, without those entries of Omega that nothing else needs."""
        (x, y, z), (p, q, s) = self.w, self.wd
        (a, xy, xz), (yx, b, yz), (zx, zy, c) = self.tensor.rows
        return Vector.of(
            _pair(J.yy, J.zz, y * z, p) + (c - b) * J.yz + zx * J.xy - yx * J.xz,
            _pair(J.zz, J.xx, x * z, q) + (a - c) * J.xz + xy * J.yz - zy * J.xy,
            _pair(J.xx, J.yy, x * y, s) + (b - a) * J.xy + yz * J.xz - xz * J.yz,
        )


def _pair(a: Number, b: Number, product: Number, rate: Number) -> Number:
    """a (product + rate) - b (product - rate): a and b times two entries of Omega.

    Where both are numbers, so are their sum and difference, and the entries need not be formed.
    """
    if any(isinstance(x, Scalar) or x == 0.0 for x in (a, b)):
        return a * (product + rate) - b * (product - rate)
    return (a - b) * product + (a + b) * rate


# How its mass lies -----------------------------------------------------------------------------


def euler_from_inertia(I: Symmetric) -> Symmetric:
    """J = tr(I)/2 1 - I (4.3.14)."""
    half = (I.xx + I.yy + I.zz) * 0.5
    return Symmetric(half - I.xx, half - I.yy, half - I.zz, -I.xy, -I.xz, -I.yz)


def inertia_from_euler(J: Symmetric) -> Symmetric:
    """I = tr(J) 1 - J (4.3.13)."""
    return Symmetric(J.yy + J.zz, J.xx + J.zz, J.xx + J.yy, -J.xy, -J.xz, -J.yz)


def point_mass(m: Number, r: Vector) -> RigidInertia:
    """A mass m at r: first moment m r, inertia -m r~ r~ about the origin."""
    return RigidInertia.from_center(m, r, Symmetric.zero())


def inertia_about(I: Symmetric, m: Number, r: Vector) -> Symmetric:
    """I_o = I_c - m r~ r~: about a point o, with the centre of mass at r from it (4.3.8)."""
    return I + point_mass(m, r).I


def euler_about(J: Symmetric, m: Number, r: Vector) -> Symmetric:
    """J_o = J_c + m r (x) r (4.3.12)."""
    x, y, z = r
    a, b, c = r * m
    return J + Symmetric(a * x, b * y, c * z, a * y, a * z, b * z)


def inertia_rate(w: Vector, I: Symmetric) -> Symmetric:
    """w~ I - I w~, the rate of I (and of J) when the body turns with w (4.3.16)."""
    half = dual(w) @ I.matrix()
    return Symmetric.of(half + half.T)


def angular_momentum(w: Vector, J: Symmetric) -> Vector:
    """dual(J w~ - (J w~)'), about the point to which J belongs, where that rests (4.3.30)."""
    half = J.matrix() @ dual(w)
    return dual(half - half.T)


@dataclass(frozen=True, slots=True)
class Center:
    """A body by the book's numbers: mass m, centre of mass r, inertia I about the centre."""

    m: Number
    r: Vector
    I: Symmetric

    @staticmethod
    def of(rigid: RigidInertia) -> "Center":
        """From moments about the origin; without mass, the centre is the origin."""
        if not isinstance(rigid.m, Scalar) and rigid.m == 0.0:
            assert not any(rigid.h), "regrouped inertias have no centre"
            return Center(rigid.m, Vector.zero(), rigid.I)
        r = rigid.h * (1.0 / rigid.m)
        return Center(rigid.m, r, rigid.I - point_mass(rigid.m, r).I)

    @staticmethod
    def together(parts: Sequence["Center"]) -> "Center":
        """Several bodies frozen into one (6.2.5-7)."""
        m: Number = 0.0
        h, I = Vector.zero(), Symmetric.zero()
        for part in parts:
            m, h = m + part.m, h + part.r * part.m
        r = Center.of(RigidInertia(m, h, I)).r
        for part in parts:
            I += inertia_about(part.I, part.m, part.r - r)
        return Center(m, r, I)


class GeneralisedLink(NamedTuple):
    """A link with all that it carries, as it moves: moments about the link's origin.

    m mass, U first moment and Ud its rate, E inertia, L the tensor of (7.3.18d).
    """

    m: Number
    U: Vector
    Ud: Vector
    E: Symmetric
    L: Matrix

    def force(self, zdd: Vector, zd2: Vector, xdd: Vector) -> Force:
        """What a change of its motion asks for, about the origin (7.3.18e-k).

        zdd, xdd: of its angular acceleration and of the origin's acceleration; zd2: twice that
        of its angular velocity.
        """
        moment = self.E @ zdd - self.L @ zd2 + self.U.cross(xdd)
        return Force(moment, xdd * self.m - self.U.cross(zdd) - self.Ud.cross(zd2))
