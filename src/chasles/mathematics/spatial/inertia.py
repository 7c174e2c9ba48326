"""Spatial inertias: rigid (10 numbers), articulated (21), the Coriolis part of a body (12).

Also inverse inertias: accelerations for forces, of one body or between two (36 numbers).
"""

import math
from dataclasses import dataclass
from typing import overload

from chasles.expr import Number, Scalar
from chasles.mathematics.linear import (
    Additive,
    Matrix,
    Symmetric,
    Vector,
    diagonal,
    invert_symmetric,
    mismatch,
)
from chasles.mathematics.spatial.vectors import Force, Forces, Motion, Motions


def shift_of_inertia(r: Vector, h: Vector, moved: Vector) -> Symmetric:
    """-(r x h x + (h + m r) x r x): what a new origin at -r adds to rotational inertia.

    h and `moved` = h + m r are the first moments about the old origin and about the new one.
    """
    (x, y, z), (a, b, c), (p, q, s) = r, h, moved
    dx, dy, dz = x * (a + p), y * (b + q), z * (c + s)
    xy, xz, yz = x * q + y * a, x * s + z * a, y * s + z * b
    return Symmetric(dy + dz, dx + dz, dx + dy, -xy, -xz, -yz)


def _by_columns(inertia: "RigidInertia | ArticulatedInertia", other: object) -> Forces:
    if type(other) is not Motions:
        raise mismatch("multiply", inertia, other)
    return Forces(tuple(inertia @ m for m in other.columns))


@dataclass(frozen=True, slots=True)
class RigidInertia(Additive):
    """Mass m, first moment h = m c, rotational inertia I about the frame's origin (not about c)."""

    m: Number
    h: Vector
    I: Symmetric

    @staticmethod
    def zero() -> "RigidInertia":
        return RigidInertia(0.0, Vector.zero(), Symmetric.zero())

    @staticmethod
    def from_center(m: Number, c: Vector, Ic: Symmetric) -> "RigidInertia":
        """From mass, centre of mass, and inertia about the centre of mass (Eq 2.63)."""
        h = c * m
        return RigidInertia(m, h, Ic + shift_of_inertia(c, Vector.zero(), h))

    def about_center(self) -> tuple[Number, Vector, Symmetric]:
        """Mass, centre of mass (the origin if there is no mass), and inertia about it."""
        massless = not isinstance(self.m, Scalar) and self.m == 0.0
        c = Vector.zero() if massless else self.h * (1.0 / self.m)
        return self.m, c, self.I - shift_of_inertia(c, Vector.zero(), self.h)

    @overload
    def __matmul__(self, other: Motion) -> Force: ...
    @overload
    def __matmul__(self, other: Motions) -> Forces: ...
    def __matmul__(self, other: Motion | Motions) -> Force | Forces:
        """Momentum of a velocity: (I w + h x v, m v - h x w)."""
        if type(other) is Motion:
            w, v = other.angular, other.linear
            return Force(self.I @ w + self.h.cross(v), v * self.m - self.h.cross(w))
        return _by_columns(self, other)


@dataclass(frozen=True, slots=True)
class ArticulatedInertia(Additive):
    """The 21 numbers of [[I, H], [H', M]]: force for acceleration of a jointed subsystem.

    Not a momentum map: it must not be applied to velocities (Featherstone 2008, section 7.1).
    """

    M: Symmetric
    H: Matrix
    I: Symmetric

    @staticmethod
    def of(rigid: RigidInertia) -> "ArticulatedInertia":
        m = rigid.m
        return ArticulatedInertia(Symmetric(m, m, m, 0.0, 0.0, 0.0), Matrix.skew(rigid.h), rigid.I)

    @staticmethod
    def zero() -> "ArticulatedInertia":
        return ArticulatedInertia(Symmetric.zero(), Matrix.zero(), Symmetric.zero())

    @overload
    def __matmul__(self, other: Motion) -> Force: ...
    @overload
    def __matmul__(self, other: Motions) -> Forces: ...
    def __matmul__(self, other: Motion | Motions) -> Force | Forces:
        if type(other) is Motion:
            w, v = other.angular, other.linear
            return Force(self.I @ w + self.H @ v, self.H.T @ w + self.M @ v)
        return _by_columns(self, other)

    def without(self, U: Forces, K: Forces) -> "ArticulatedInertia":
        """I - U K', symmetric by construction of K = U D^-1: what a joint's freedom removes."""
        M, H, I = self.M, self.H, self.I
        for u, k in zip(U.columns, K.columns, strict=True):
            I = _remaining(I, u.moment, k.moment)
            M = _remaining(M, u.force, k.force)
            rows = zip(H.rows, u.moment, strict=True)
            H = Matrix(
                tuple(
                    tuple(_left(h, a * b) for h, b in zip(row, k.force, strict=True))
                    for row, a in rows
                )
            )
        return ArticulatedInertia(M, H, I)


def _remaining(A: Symmetric, u: Vector, k: Vector) -> Symmetric:
    (x, y, z), (a, b, c) = u, k
    return Symmetric(*map(_left, A, (x * a, y * b, z * c, x * b, x * c, y * c)))


def _left(whole: Number, taken: Number) -> Number:
    """The difference; 0 where two constants differ by rounding, which would cost operations."""
    if isinstance(whole, float) and isinstance(taken, float):
        return 0.0 if math.isclose(whole, taken, rel_tol=1e-15) else whole - taken
    return whole - taken


@dataclass(frozen=True, slots=True)
class CoriolisInertia(Additive):
    """B with B v = v x* I v and dI/dt = B + B': the blocks [[A, 0], [-l x, 0]] of one body.

    l is the linear momentum. Of all matrices with the first property this one makes the Coriolis
    matrix C of a mechanism satisfy dM/dt = C + C' (Echeandia and Wensing 2021).
    """

    A: Matrix
    l: Vector

    @staticmethod
    def of(inertia: RigidInertia, v: Motion) -> "CoriolisInertia":
        """The Coriolis inertia of a body with velocity v; linear in v."""
        half = v * 0.5
        p = inertia @ half
        rate = Matrix.skew(half.angular) @ inertia.I.matrix()  # its symmetric part moves I
        mixed = Matrix.skew(half.linear) @ Matrix.skew(inertia.h)
        A = rate + rate.T - mixed - mixed.T - Matrix.skew(p.moment)
        return CoriolisInertia(A, p.force * 2.0)

    def __matmul__(self, S: Motions) -> Forces:
        if type(S) is not Motions:
            raise mismatch("multiply", self, S)
        return Forces(tuple(Force(self.A @ m.angular, m.angular.cross(self.l)) for m in S.columns))

    def transposed(self, S: Motions) -> Forces:
        """B' S."""
        moments = (self.A.T @ m.angular + self.l.cross(m.linear) for m in S.columns)
        return Forces(tuple(Force(moment, Vector.zero()) for moment in moments))


@dataclass(frozen=True, slots=True)
class InverseInertia:
    """Phi in a = Phi f + b: what a force on one body adds to its acceleration, or to another's.

    Unlike an inertia it exists for a body that is not free to move in every direction, where it
    has less than full rank (Featherstone 2008, sections 2.15 and 7.1).
    """

    entries: Matrix

    @staticmethod
    def zero() -> "InverseInertia":
        """The inverse inertia of the world, or between bodies that are not connected."""
        return InverseInertia(Matrix.zero(6, 6))

    @staticmethod
    def of(rigid: RigidInertia) -> "InverseInertia":
        """The inverse inertia of a free body with a mass and three moments (Eq 2.73)."""
        m, c, Ic = rigid.about_center()
        turn = invert_symmetric(Ic.matrix())
        mixed = Matrix.skew(c) @ turn
        slide = mixed @ Matrix.skew(c).T + diagonal(Vector((1.0 / m,) * 3))
        return InverseInertia(_blocks(turn, mixed.T, mixed, slide))

    @staticmethod
    def of_articulated(A: ArticulatedInertia) -> "InverseInertia":
        """The inverse of an articulated inertia of full rank."""
        return InverseInertia(invert_symmetric(_blocks(A.I.matrix(), A.H, A.H.T, A.M.matrix())))

    @property
    def T(self) -> "InverseInertia":
        """The same between the two bodies the other way round."""
        return InverseInertia(self.entries.T)

    @overload
    def __matmul__(self, other: Force) -> Motion: ...
    @overload
    def __matmul__(self, other: Forces) -> Motions: ...
    def __matmul__(self, other: Force | Forces) -> Motion | Motions:
        if type(other) is Force:
            return Motion.of(*(self.entries @ Vector(tuple(other))))
        if type(other) is Forces:
            return Motions(tuple(self @ f for f in other.columns))
        raise mismatch("multiply", self, other)

    def without(self, U: Motions, K: Motions) -> "InverseInertia":
        """Phi - U K': what a constraint takes away."""
        left, right = ([tuple(m) for m in M.columns] for M in (U, K))
        products = Matrix(tuple(zip(*left, strict=True))) @ Matrix(tuple(right)) if left else None
        return self if products is None else InverseInertia(self.entries - products)


def _blocks(A: Matrix, B: Matrix, C: Matrix, D: Matrix) -> Matrix:
    """[A B; C D]."""
    pairs = [*zip(A.rows, B.rows, strict=True), *zip(C.rows, D.rows, strict=True)]
    return Matrix(tuple((*left, *right) for left, right in pairs))
