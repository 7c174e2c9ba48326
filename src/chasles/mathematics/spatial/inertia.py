"""Spatial inertias: rigid-body (10 parameters), articulated-body (21) and Coriolis (12)."""

import math
from dataclasses import dataclass
from typing import overload

from chasles.expr import Number, Scalar
from chasles.mathematics.linear import (
    Additive,
    Matrix,
    Symmetric,
    Vector,
    mismatch,
)
from chasles.mathematics.spatial.vectors import Force, Forces, Motion, Motions


def shift_of_inertia(r: Vector, h: Vector, moved: Vector) -> Symmetric:
    """Return -(r x h x + (h + m r) x r x), the change in rotational inertia for a new origin at -r.

    h and `moved` = h + m r are the first moments about the old and the new origin.
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
    """Rigid-body inertia: mass m, first moment h = m c, and rotational inertia I.

    I is the inertia about the origin of the frame, not about the center of mass c.
    """

    m: Number
    h: Vector
    I: Symmetric

    @staticmethod
    def zero() -> "RigidInertia":
        """Return the inertia of a massless body.

        Returns
        -------
        inertia : RigidInertia
            Zero.

        Examples
        --------
        >>> from chasles.mathematics.spatial import RigidInertia
        >>> RigidInertia.zero().m
        0.0
        """
        return RigidInertia(0.0, Vector.zero(), Symmetric.zero())

    @staticmethod
    def from_center(m: Number, c: Vector, Ic: Symmetric) -> "RigidInertia":
        """Create an inertia from the mass, center of mass and central inertia.

        See Featherstone 2008, Eq 2.63.

        Parameters
        ----------
        m : Number
            Mass (kg).
        c : Vector
            Center of mass in the frame (m).
        Ic : Symmetric
            Rotational inertia about the center of mass, in the axes of the frame (kg m2).

        Returns
        -------
        inertia : RigidInertia
            Inertia about the origin of the frame.

        Examples
        --------
        >>> from chasles.mathematics.linear import Symmetric, Vector
        >>> from chasles.mathematics.spatial import RigidInertia
        >>> RigidInertia.from_center(2.0, Vector.of(0.5, 0.0, 0.0), Symmetric.zero()).I.zz
        0.5
        """
        h = c * m
        return RigidInertia(m, h, Ic + shift_of_inertia(c, Vector.zero(), h))

    def about_center(self) -> tuple[Number, Vector, Symmetric]:
        """Return the mass, the center of mass, and the inertia about the center of mass.

        Returns
        -------
        m : Number
            Mass (kg).
        c : Vector
            Center of mass (m), which is the origin for a massless body.
        Ic : Symmetric
            Rotational inertia about the center of mass (kg m2).

        Examples
        --------
        >>> from chasles.mathematics.linear import Symmetric, Vector
        >>> from chasles.mathematics.spatial import RigidInertia
        >>> ball = RigidInertia.from_center(2.0, Vector.of(0.5, 0.0, 0.0), Symmetric.zero())
        >>> ball.about_center()[1]
        Vector(entries=(0.5, 0.0, 0.0))
        """
        massless = not isinstance(self.m, Scalar) and self.m == 0.0
        c = Vector.zero() if massless else self.h * (1.0 / self.m)
        return self.m, c, self.I - shift_of_inertia(c, Vector.zero(), self.h)

    @overload
    def __matmul__(self, other: Motion) -> Force: ...
    @overload
    def __matmul__(self, other: Motions) -> Forces: ...
    def __matmul__(self, other: Motion | Motions) -> Force | Forces:
        """Return the momentum (I w + h x v, m v - h x w) for a velocity (w, v)."""
        if type(other) is Motion:
            w, v = other.angular, other.linear
            return Force(self.I @ w + self.h.cross(v), v * self.m - self.h.cross(w))
        return _by_columns(self, other)


@dataclass(frozen=True, slots=True)
class ArticulatedInertia(Additive):
    """Articulated-body inertia [[I, H], [H', M]] with 21 parameters.

    The inertia maps the acceleration of a body in an articulated system to the force on the body,
    but does not map velocity to momentum (Featherstone 2008, section 7.1).
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
        """Return I - U K', the inertia propagated across a joint, with K = U D^-1.

        Entry (i, j) uses row i or row j of K. A row that is a unit vector (see `Forces.over`) is
        preferred, so that entries eliminated by the joint are exactly zero.
        """
        if not U.columns:
            return self
        u, k = (tuple(zip(*X.columns, strict=True)) for X in (U, K))

        def left(whole: Number, i: int, j: int) -> Number:
            a, b = (k[i], u[j]) if _ZEROS_AND_ONES.issuperset(k[i]) else (u[i], k[j])
            for x, y in zip(a, b, strict=True):
                whole = _left(whole, x * y)
            return whole

        upper = (0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)
        M = [left(x, 3 + i, 3 + j) for x, (i, j) in zip(self.M, upper, strict=True)]
        I = [left(x, i, j) for x, (i, j) in zip(self.I, upper, strict=True)]
        H = (
            tuple(left(x, i, 3 + j) for j, x in enumerate(row)) for i, row in enumerate(self.H.rows)
        )
        return ArticulatedInertia(Symmetric(*M), Matrix(tuple(H)), Symmetric(*I))


_ZEROS_AND_ONES = frozenset((0.0, 1.0))


def _left(whole: Number, taken: Number) -> Number:
    """Return `whole - taken`, or 0 if both are constants that differ only by rounding errors."""
    if isinstance(whole, float) and isinstance(taken, float):
        return 0.0 if math.isclose(whole, taken, rel_tol=1e-15) else whole - taken
    return whole - taken


@dataclass(frozen=True, slots=True)
class CoriolisInertia(Additive):
    """Coriolis matrix B of a body, with B v = v x* I v and dI/dt = B + B'.

    B has the blocks [[A, 0], [-l x, 0]], where l is the linear momentum. B v = v x* I v does not
    determine B uniquely. With this choice, the Coriolis matrix C of a mechanism satisfies
    dM/dt = C + C' (Echeandia and Wensing 2021).
    """

    A: Matrix
    l: Vector

    @staticmethod
    def of(inertia: RigidInertia, v: Motion) -> "CoriolisInertia":
        """Return the Coriolis matrix of a body with velocity v, which is linear in v."""
        half = v * 0.5
        p = inertia @ half
        rate = Matrix.skew(half.angular) @ inertia.I.matrix()  # w x I / 2
        mixed = Matrix.skew(half.linear) @ Matrix.skew(inertia.h)
        A = rate + rate.T - mixed - mixed.T - Matrix.skew(p.moment)
        return CoriolisInertia(A, p.force * 2.0)

    def __matmul__(self, S: Motions) -> Forces:
        if type(S) is not Motions:
            raise mismatch("multiply", self, S)
        return Forces(tuple(Force(self.A @ m.angular, m.angular.cross(self.l)) for m in S.columns))

    def transposed(self, S: Motions) -> Forces:
        """Return the forces B' S, where B is this matrix and S contains motions."""
        moments = (self.A.T @ m.angular + self.l.cross(m.linear) for m in S.columns)
        return Forces(tuple(Force(moment, Vector.zero()) for moment in moments))
