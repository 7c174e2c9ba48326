"""Plucker transforms, stored as a rotation and a translation (Featherstone 2008, section A.3)."""

from dataclasses import dataclass
from typing import TypeVar

from chasles.expr import Number, atan2
from chasles.mathematics.linear import Matrix, Symmetric, Vector, mismatch
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial.dyadics import Dyadic, GeneralInertia
from chasles.mathematics.spatial.inertia import (
    ArticulatedInertia,
    CoriolisInertia,
    RigidInertia,
    shift_of_inertia,
)
from chasles.mathematics.spatial.vectors import Force, Forces, Motion, Motions

Moved = TypeVar(
    "Moved",
    Motion,
    Force,
    Motions,
    Forces,
    "Transform",
    RigidInertia,
    ArticulatedInertia,
    CoriolisInertia,
    Dyadic,
)
Inward = TypeVar(
    "Inward", Force, Forces, RigidInertia, ArticulatedInertia, CoriolisInertia, GeneralInertia
)


@dataclass(frozen=True, slots=True)
class Transform:
    """Transform from frame A to frame B: rotation E from A to B, and origin r of B in A.

    `X @ v` and `X @ f` transform motions and forces from A to B. `X.inverse()` transforms all
    quantities from B to A, and `X.T` only forces and inertias; no matrix is inverted. For inertias
    and other dyadics, `X @ I` is X* I X^-1, `X.T @ I` is X' I X, and `X @ Phi` is X Phi X'
    (Featherstone 2008, table 2.5).
    """

    E: Rotation
    r: Vector

    def __repr__(self) -> str:
        """Return a string representation, without the rotation if it is the identity."""
        turned = f"E={self.E!r}, " if self.E.factors else ""
        return f"Transform({turned}r={self.r.entries!r})"

    @staticmethod
    def identity() -> "Transform":
        """Return the identity transform.

        Returns
        -------
        X : Transform
            Transform between two coincident frames.

        Examples
        --------
        >>> from chasles.mathematics.spatial import Transform
        >>> Transform.identity().is_identity
        True
        """
        return Transform(Rotation(), Vector.zero())

    @staticmethod
    def from_pose(R: Matrix, p: Vector) -> "Transform":
        """Create a transform from the pose of frame B in frame A.

        Parameters
        ----------
        R : Matrix
            Rotation matrix that transforms vectors from B to A.
        p : Vector
            Origin of B in A (m).

        Returns
        -------
        X : Transform
            Transform from A to B.

        Examples
        --------
        >>> from chasles.mathematics.linear import Matrix, Vector
        >>> from chasles.mathematics.spatial import Transform
        >>> X = Transform.from_pose(Matrix.identity(), Vector.of(0.5, 0.0, 0.0))
        >>> X.r
        Vector(entries=(0.5, 0.0, 0.0))
        """
        return Transform(Rotation.of(R.T), p)

    @property
    def T(self) -> "Transposed":
        return Transposed(self)

    def inverse(self) -> "Inverse":
        """Return the inverse, which transforms all quantities from B to A.

        Returns
        -------
        inverse : Inverse
            Inverse for use with `@`. No matrix is inverted.

        Examples
        --------
        >>> from chasles.mathematics.linear import Matrix, Vector
        >>> from chasles.mathematics.spatial import Motion, Transform
        >>> X = Transform.from_pose(Matrix.identity(), Vector.of(0.5, 0.0, 0.0))
        >>> twist = Motion.of(0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
        >>> X.inverse() @ (X @ twist) == twist
        True
        """
        return Inverse(self)

    @property
    def R(self) -> Matrix:
        """Orientation of B in A: the matrix that transforms coordinates from B to A."""
        return self.E.matrix().T

    @property
    def homogeneous(self) -> Matrix:
        """Homogeneous 4x4 matrix of the pose of B in A."""
        rows = ((*row, x) for row, x in zip(self.R.rows, self.r, strict=True))
        return Matrix((*rows, (0.0, 0.0, 0.0, 1.0)))

    @property
    def is_identity(self) -> bool:
        """Return True if the transform is exactly the identity."""
        return self.r == Vector.zero() and Matrix.identity() == self.R

    def locate(self, point: Vector) -> Vector:
        """Transform the coordinates of a point from B to A.

        Parameters
        ----------
        point : Vector
            Point in B (m).

        Returns
        -------
        point : Vector
            The same point in A (m).

        Examples
        --------
        >>> from chasles.mathematics.linear import Matrix, Vector
        >>> from chasles.mathematics.spatial import Transform
        >>> X = Transform.from_pose(Matrix.identity(), Vector.of(0.5, 0.0, 0.0))
        >>> X.locate(Vector.of(1.0, 0.0, 0.0))
        Vector(entries=(1.5, 0.0, 0.0))
        """
        return self.r + self.E.T @ point

    def __matmul__(self, other: Moved) -> Moved:
        E, r = self.E, self.r
        if type(other) is Motion:
            w, v = other.angular, other.linear
            return Motion(E @ w, E @ (v - r.cross(w)))
        if type(other) is Force:
            return Force(E @ (other.moment - r.cross(other.force)), E @ other.force)
        if type(other) is Motions:
            return Motions(tuple(self @ m for m in other.columns))
        if type(other) is Transform:
            return Transform(E @ other.E, other.r + other.E.T @ r)
        if type(other) is RigidInertia:
            return _turn_rigid(E, _shift_rigid(-r, other))
        if type(other) is ArticulatedInertia:
            return _turn_articulated(E, _shift_articulated(-r, other))
        if type(other) is Forces:
            return Forces(tuple(self @ f for f in other.columns))
        if type(other) is CoriolisInertia:
            return _turn_coriolis(E, _shift_coriolis(-r, other))
        if isinstance(other, Dyadic):
            return other.moved(self)
        raise mismatch("transform", self, other)

    def halfway(self) -> Motion:
        """Return the displacement from A to a nearby frame B, to second order.

        Returns
        -------
        v : Motion
            Rotation vector (rad) and displacement (m).

        Notes
        -----
        This is the function XtoV in Featherstone 2008, table A.2. The displacement has the same
        coordinates in both frames: X v = v. The result is exact for a pure translation.

        Examples
        --------
        >>> from chasles.mathematics.linear import Matrix, Vector
        >>> from chasles.mathematics.spatial import Transform
        >>> X = Transform.from_pose(Matrix.identity(), Vector.of(0.5, 0.0, 0.0))
        >>> X.halfway().linear
        Vector(entries=(0.5, 0.0, 0.0))
        """
        E, r = self.E.matrix(), self.r
        turn = Vector.of(E[1, 2] - E[2, 1], E[2, 0] - E[0, 2], E[0, 1] - E[1, 0])
        shift = r * (E[0, 0] + E[1, 1] + E[2, 2]) - self.E.T @ r
        return Motion(turn * 0.5, shift * 0.5)


def inverted(X: Transform) -> Transform:
    """Return the inverse of a transform as a `Transform`.

    Parameters
    ----------
    X : Transform
        Transform from A to B.

    Returns
    -------
    inverse : Transform
        Transform from B to A.

    Examples
    --------
    >>> from chasles.mathematics.linear import Matrix, Vector
    >>> from chasles.mathematics.spatial import Transform
    >>> X = Transform.from_pose(Matrix.identity(), Vector.of(0.5, 0.0, 0.0))
    >>> from chasles.mathematics.spatial import inverted
    >>> inverted(X).r
    Vector(entries=(-0.5, -0.0, -0.0))
    """
    return Transform(X.E.T, -(X.E @ X.r))


def turn_about_z(XJ: Transform) -> Number:
    """Return the angle of the rotation about z that is closest to the rotation of XJ.

    Parameters
    ----------
    XJ : Transform
        Any transform.

    Returns
    -------
    angle : Number
        Angle (rad), in (-pi, pi].

    Examples
    --------
    >>> from chasles.mathematics.linear import Matrix, Vector
    >>> from chasles.mathematics.spatial import Transform
    >>> X = Transform.from_pose(Matrix.identity(), Vector.of(0.5, 0.0, 0.0))
    >>> from chasles.mathematics.spatial import turn_about_z
    >>> turn_about_z(X)
    0.0
    """
    R = XJ.R
    return atan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])


@dataclass(frozen=True, slots=True)
class Inverse:
    """Inverse of a transform, which transforms all quantities from B to A."""

    X: Transform

    def __matmul__(self, other: Moved) -> Moved:
        E, r = self.X.E.T, self.X.r
        if type(other) is Motion:
            w = E @ other.angular
            return Motion(w, E @ other.linear + r.cross(w))
        if type(other) is Motions:
            return Motions(tuple(self @ m for m in other.columns))
        if isinstance(other, Force | Forces | RigidInertia | ArticulatedInertia | CoriolisInertia):
            return self.X.T @ other
        if type(other) is Transform:
            return inverted(self.X) @ other
        if isinstance(other, Dyadic):
            return other.moved(self)
        raise mismatch("multiply the inverse of", self.X, other)


@dataclass(frozen=True, slots=True)
class Transposed:
    """The transpose X' of a transform; it transforms forces and inertias from B to A."""

    X: Transform

    def __matmul__(self, other: Inward) -> Inward:
        E, r = self.X.E.T, self.X.r
        if type(other) is Force:
            f = E @ other.force
            return Force(E @ other.moment + r.cross(f), f)
        if type(other) is Forces:
            return Forces(tuple(self @ f for f in other.columns))
        if type(other) is RigidInertia:
            return _shift_rigid(r, _turn_rigid(E, other))
        if type(other) is ArticulatedInertia:
            return _shift_articulated(r, _turn_articulated(E, other))
        if type(other) is CoriolisInertia:
            return _shift_coriolis(r, _turn_coriolis(E, other))
        if type(other) is GeneralInertia:
            return other.moved(self.X.inverse())
        raise mismatch("multiply the transpose of", self.X, other)


def _turn_rigid(E: Rotation, inertia: RigidInertia) -> RigidInertia:
    return RigidInertia(inertia.m, E @ inertia.h, E @ inertia.I)


def _shift_rigid(r: Vector, inertia: RigidInertia) -> RigidInertia:
    """Return the rigid-body inertia about a new origin at -r."""
    h = inertia.h + r * inertia.m
    return RigidInertia(inertia.m, h, inertia.I + shift_of_inertia(r, inertia.h, h))


def _turn_coriolis(E: Rotation, B: CoriolisInertia) -> CoriolisInertia:
    return CoriolisInertia(E @ B.A, E @ B.l)


def _shift_coriolis(r: Vector, B: CoriolisInertia) -> CoriolisInertia:
    return CoriolisInertia(B.A - Matrix.skew(r) @ Matrix.skew(B.l), B.l)


def _turn_articulated(E: Rotation, A: ArticulatedInertia) -> ArticulatedInertia:
    return ArticulatedInertia(E @ A.M, E @ A.H, E @ A.I)


def _shift_articulated(r: Vector, A: ArticulatedInertia) -> ArticulatedInertia:
    """Return the articulated-body inertia about a new origin at -r (Featherstone 2008, table A.4).

    The new blocks are H + r x M and I + r x H' - (H + r x M) r x.
    """
    x, y, z = r
    H = A.H + Matrix.skew(r) @ A.M.matrix()
    (_, b, c), (d, e, f), (g, h, i) = A.H.rows
    (p, q, s), (t, u, v), (k, l, _) = H.rows
    added = Symmetric(
        y * (c + s) - z * (b + q),
        z * (d + t) - x * (f + v),
        x * (h + l) - y * (g + k),
        y * f - x * s + z * (p - e),
        x * q - z * h + y * (i - p),
        z * g - y * t + x * (u - i),
    )
    return ArticulatedInertia(A.M, H, A.I + added)
