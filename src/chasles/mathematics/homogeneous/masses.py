"""What moves, and by what: inertias J, momenta Gamma and actions Phi."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from chasles.expr import Number
from chasles.mathematics.homogeneous.dense import Block, Factor, Framed, bordered, mismatch
from chasles.mathematics.homogeneous.motions import Acceleration, Screw, Velocity
from chasles.mathematics.linear import Additive, Matrix, Symmetric, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Force, RigidInertia
from chasles.mathematics.tensor import (
    AngularAcceleration,
    euler_from_inertia,
    inertia_from_euler,
)


@dataclass(frozen=True, slots=True, repr=False)
class Inertia(Framed, Factor, Additive):
    """J = [K h; h' m]: K the integral of x x' dm, h = m times the centre of mass, m the mass."""

    K: Symmetric
    h: Vector
    m: Number

    @staticmethod
    def zero() -> "Inertia":
        return Inertia(Symmetric.zero(), Vector.zero(), 0.0)

    @staticmethod
    def of(rigid: RigidInertia) -> "Inertia":
        """K = trace(I)/2 1 - I from the usual moments about the origin."""
        return Inertia(euler_from_inertia(rigid.I), rigid.h, rigid.m)

    def rigid(self) -> RigidInertia:
        """The usual moments, as a spatial inertia."""
        return RigidInertia(self.m, self.h, inertia_from_euler(self.K))

    def matrix(self) -> Matrix:
        return bordered(self.K.matrix(), self.h, (*self.h, self.m))

    def from_left(self, left: Block) -> Block:
        A, b = left.A, left.b
        outer = Matrix(tuple(tuple(x * h for h in self.h) for x in b))
        return Block(A @ self.K.matrix() + outer, A @ self.h + b * self.m)

    def to_first(self, R: Rotation, t: Vector) -> "Inertia":
        carried = R @ self.h
        h = carried + t * self.m
        return Inertia(R @ self.K + _outer_sum(carried, t, h), h, self.m)

    def to_second(self, R: Rotation, t: Vector) -> "Inertia":
        h = self.h - t * self.m
        return Inertia(R.T @ (self.K - _outer_sum(h, t, self.h)), R.T @ h, self.m)

    def carried(self, X: Velocity | Screw) -> "Inertia":
        """X J + J X': the rate of J when the body moves with X (dJ/dt, or dJ/dq with a screw)."""
        if not isinstance(X, Velocity | Screw):
            raise mismatch("carry", self, X)
        half = X @ self
        return Inertia(Symmetric.of(half.A + half.A.T), half.b, 0.0)


def _outer_sum(a: Vector, t: Vector, h: Vector) -> Symmetric:
    """a t' + t h' with h = a + m t, which is symmetric."""
    (x, y, z), (p, q, s), (u, v, w) = a, t, h
    return Symmetric(
        x * p + p * u, y * q + q * v, z * s + s * w, x * q + p * v, x * s + p * w, y * s + q * w
    )


@dataclass(frozen=True, slots=True, repr=False)
class _Dual(Framed, Additive):
    """The numbers of a skew matrix [c~ f; -f' 0]."""

    c: Vector
    f: Vector

    @classmethod
    def zero(cls) -> Self:
        return cls(Vector.zero(), Vector.zero())

    @classmethod
    def of(cls, force: Force) -> Self:
        """From a spatial vector."""
        return cls(force.moment, force.force)

    def force(self) -> Force:
        """As a spatial vector."""
        return Force(self.c, self.f)

    def matrix(self) -> Matrix:
        return bordered(Matrix.skew(self.c), self.f, (*(-self.f), 0.0))

    def __iter__(self) -> Iterator[Number]:
        return iter((*self.c, *self.f))

    def to_first(self, R: Rotation, t: Vector) -> Self:
        f = R @ self.f
        return type(self)(R @ self.c + t.cross(f), f)

    def to_second(self, R: Rotation, t: Vector) -> Self:
        return type(self)(R.T @ (self.c - t.cross(self.f)), R.T @ self.f)

    def pseudo(self, X: Velocity | Screw) -> Number:
        """The pseudo scalar product: power on a velocity, generalised force on a screw."""
        if not isinstance(X, Velocity | Screw):
            raise mismatch("take the pseudo scalar product of", self, X)
        return self.c.dot(X.w) + self.f.dot(X.v)


@dataclass(frozen=True, slots=True, repr=False)
class Momentum(_Dual):
    """Gamma = skew(W J) = [c~ f; -f' 0]: angular momentum c about the origin, linear momentum f."""


@dataclass(frozen=True, slots=True, repr=False)
class Action(_Dual):
    """Phi = skew(H J) = [c~ f; -f' 0]: couple c about the origin, and force f."""


def momentum(W: Velocity, J: Inertia) -> Momentum:
    """Gamma = skew(W J) (Eq I.16)."""
    if type(W) is not Velocity or type(J) is not Inertia:
        raise mismatch("take the momentum of", W, J)
    return Momentum(*(W @ J).skew())


def action(H: Acceleration, J: Inertia) -> Action:
    """Phi = skew(H J) (Eq I.17): what makes a body accelerate; with H = Hg, its weight.

    skew(G K) takes 15 multiplications (Balafoutis and Patel 1991, section 5.3).
    """
    if type(H) is not Acceleration or type(J) is not Inertia:
        raise mismatch("take the action of", H, J)
    couple = AngularAcceleration(H.w, H.wd).moment(J.K)
    return Action(couple + J.h.cross(H.a), H.G @ J.h + H.a * J.m)


def kinetic_energy(W: Velocity, J: Inertia) -> Number:
    """1/2 trace(W J W')."""
    if type(W) is not Velocity or type(J) is not Inertia:
        raise mismatch("take the kinetic energy of", W, J)
    return (W @ J).trace(W) * 0.5


def potential_energy(Hg: Acceleration, J: Inertia) -> Number:
    """-trace(Hg J), both in the inertial frame: zero with the centre of mass at the origin."""
    if type(Hg) is not Acceleration or type(J) is not Inertia:
        raise mismatch("take the potential energy of", Hg, J)
    A = (Hg @ J).A
    return -(A[0, 0] + A[1, 1] + A[2, 2])
