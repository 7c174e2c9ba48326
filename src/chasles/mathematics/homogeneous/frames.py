"""Positions M and rototranslations Q of bodies, and the base class of Legnani's matrices.

The matrices print, multiply and convert like 4x4 arrays. Subscripts follow the paper (Legnani,
Casolo, Righettini, Zappa 1996): the motion of body j relative to body i, expressed in frame k. `@`
is the matrix product; invalid combinations of types raise errors. All operations accept floats and
symbols.
"""

from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

from chasles.errors import ArgumentError, InputError
from chasles.expr import Number, Scalar
from chasles.mathematics.angles import turn
from chasles.mathematics.linear import Additive, Matrix, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform


def mismatch(operation: str, a: object, b: object) -> ArgumentError:
    """Return the error for an invalid combination of types."""
    problem = f"cannot {operation} {type(a).__name__} and {type(b).__name__}"
    return ArgumentError("E-MATH-022", problem)


def bordered(A: Matrix, b: Vector, last: tuple[Number, Number, Number, Number]) -> Matrix:
    """Return the 4x4 matrix [A b; last]."""
    rows = ((*row, x) for row, x in zip(A.rows, b, strict=True))
    return Matrix((*rows, last))


class Dense:
    """A 4x4 matrix stored by its independent entries; `np.asarray(X)` returns the array."""

    __slots__ = ()

    __array_ufunc__ = None  # NumPy scalars on the left defer to this class

    _mismatch = staticmethod(mismatch)

    def matrix(self) -> Matrix:
        """Return the matrix with all sixteen entries.

        Returns
        -------
        X : Matrix
            The 4x4 matrix; `np.asarray` of this object gives the same entries as an array.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.joint_velocity("revolute", 2.0).matrix().rows[0]
        (0.0, -2.0, 0.0, 0.0)
        """
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np  # only needed if a user requests arrays

        if copy is False:
            problem = f"{type(self).__name__} does not store an array: omit copy=False"
            raise InputError("E-MATH-023", problem)
        rows = [[x + 0.0 for x in row] for row in self.matrix().rows]  # no negative zeros
        return np.array(rows, dtype=dtype)

    def __repr__(self) -> str:
        cells = [[_cell(x) for x in row] for row in self.matrix().rows]
        width = max(len(cell) for row in cells for cell in row)
        lines = [" ".join(cell.rjust(width) for cell in row) for row in cells]
        return "\n".join([type(self).__name__, *(f"[ {line} ]" for line in lines)])


def _cell(x: Number) -> str:
    """Format a number with six digits (zero without a sign), or an expression."""
    return repr(x) if type(x) is Scalar else f"{float(x) + 0.0:.6g}"


class Factor(Dense):
    """A matrix that can be the right factor of a product with a velocity or acceleration."""

    __slots__ = ()

    def from_left(self, left: "Block") -> "Block":
        """Return the product left @ X, where the last row of the left factor is zero.

        Parameters
        ----------
        left : Block
            Left factor, such as `W.block()`.

        Returns
        -------
        product : Block
            The product; `W @ X` returns the same for a velocity W.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> W, M = hm.joint_velocity("revolute", 2.0), hm.position_from_dh(0.0, 0.0, 1.0, 0.0)
        >>> M.from_left(W.block()).b  # velocity of the origin of M
        Vector(entries=(0.0, 2.0, 0.0))
        """
        raise NotImplementedError


class Framed(Dense):
    """A matrix that a position M = [R t; 0 1] can transform from one frame to another."""

    __slots__ = ()

    def to_first(self, R: Rotation, t: Vector) -> Self:
        """Transform the matrix from the second frame of M = [R t; 0 1] to the first.

        Parameters
        ----------
        R : Rotation
            Rotation of M; its columns are the axes of the second frame in the first.
        t : Vector
            Origin of the second frame in the first (m).

        Returns
        -------
        X : same type
            The same quantity, expressed in the first frame.

        Notes
        -----
        `Position.to_first` calls this function. It returns M X M^-1 for Q, W, H and L, and M X M'
        for J, Gamma and Phi (Eq I.8, I.9, I.17).

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> M = hm.position_from_dh(0.0, 0.0, 1.0, 0.0)
        >>> hm.six_numbers(hm.joint_velocity("revolute", 2.0).to_first(M.R, M.t))
        array([ 0.,  0.,  2.,  0., -2.,  0.])
        """
        raise NotImplementedError

    def to_second(self, R: Rotation, t: Vector) -> Self:
        """Transform the matrix from the first frame of M = [R t; 0 1] to the second.

        Parameters
        ----------
        R : Rotation
            Rotation of M; its columns are the axes of the second frame in the first.
        t : Vector
            Origin of the second frame in the first (m).

        Returns
        -------
        X : same type
            The same quantity, expressed in the second frame.

        Notes
        -----
        `Position.to_second` calls this function. It is the inverse of `to_first`.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> M = hm.position_from_dh(0.0, 0.0, 1.0, 0.0)
        >>> hm.six_numbers(hm.joint_velocity("revolute", 2.0).to_second(M.R, M.t))
        array([0., 0., 2., 0., 2., 0.])
        """
        raise NotImplementedError


AnyFramed = TypeVar("AnyFramed", bound=Framed)
Placed = TypeVar("Placed", "Position", Vector)
Displaced = TypeVar("Displaced", "Rototranslation", "Position", Vector)


class Rate(Protocol):
    """A velocity, an acceleration or a screw."""

    def block(self) -> "Block": ...


@dataclass(frozen=True, slots=True, repr=False)
class Block(Factor, Additive):
    """A 4x4 matrix [A b; 0 0] with a zero last row, such as a product of typed matrices."""

    A: Matrix
    b: Vector

    def matrix(self) -> Matrix:
        return bordered(self.A, self.b, (0.0, 0.0, 0.0, 0.0))

    def __matmul__(self, point: Vector) -> Vector:
        """Return the product X P with a point P."""
        if type(point) is not Vector:
            raise mismatch("multiply", self, point)
        return self.A @ point + self.b

    def from_left(self, left: "Block") -> "Block":
        return Block(left.A @ self.A, left.A @ self.b)

    def trace(self, other: "Rate") -> Number:
        """Return trace(X Y'), the sum of products of entries of X and Y.

        Parameters
        ----------
        other : Velocity, Acceleration or Screw
            Y.

        Returns
        -------
        trace : float
            The sum. 1/2 trace(W J W') is the kinetic energy of a body.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> J = hm.inertia_from_mass(2.0, (0.0, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
        >>> W = hm.joint_velocity("revolute", 2.0)
        >>> round(0.5 * (W @ J).trace(W), 9)  # J
        0.06
        """
        block = other.block()
        pairs = zip(self.A.rows, block.A.rows, strict=True)
        total = self.b.dot(block.b)
        for row, column in pairs:
            total = total + Vector(row).dot(Vector(column))
        return total

    def skew(self) -> tuple[Vector, Vector]:
        """Return X - X' as (c, f): the entries of [c~ f; -f' 0].

        Returns
        -------
        c : Vector
            Vector of the skew-symmetric 3x3 block: angular momentum about the origin if X = W J.
        f : Vector
            The last column: linear momentum if X = W J.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> J = hm.inertia_from_mass(2.0, (0.5, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
        >>> c, f = (hm.joint_velocity("revolute", 2.0) @ J).skew()
        >>> f
        Vector(entries=(0.0, 2.0, 0.0))
        """
        A = self.A
        return Vector.of(A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]), self.b


def product(left: Block, X: object, other: object) -> Block:
    """Return the product X @ other, where `left` is X as a `Block`."""
    if not isinstance(other, Factor):
        raise mismatch("multiply", X, other)
    return other.from_left(left)


def angular(X: Dense) -> Vector:
    """Return the vector w of the skew-symmetric part w~ of the 3x3 block (SPACELIB's m4v3).

    For W, L and H, the vector is the angular velocity, the axis, and the angular acceleration
    (because w~ w~ is symmetric). For Gamma and Phi, it is the angular momentum and the couple.
    """
    A = X.matrix()
    return Vector.of(A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]) * 0.5


def linear(X: Dense) -> Vector:
    """Return the last column: velocity or acceleration of the pole, momentum, force or origin."""
    return Vector(tuple(row[3] for row in X.matrix().rows[:3]))


# Positions and displacements ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class _Placed(Dense):
    """Entries of a matrix [R t; 0 1]."""

    R: Rotation
    t: Vector

    def matrix(self) -> Matrix:
        return bordered(self.R.matrix(), self.t, (0.0, 0.0, 0.0, 1.0))


@dataclass(frozen=True, slots=True, repr=False)
class Position(_Placed, Factor):
    """Pose M = [R t; 0 1] of one frame (the second) in another (the first).

    `P0 = M01 @ P1` maps the coordinates of a point to the first frame. `to_first` and `to_second`
    change the frame in which a matrix is expressed: M X M^-1 for Q, W, H and L, and M X M' for J,
    Gamma and Phi. They do not compute the inverse matrix.
    """

    @staticmethod
    def identity() -> "Position":
        """Return the identity, the relative position of coincident frames.

        Returns
        -------
        M : Position
            The identity.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import homogeneous as hm
        >>> np.asarray(hm.Position.identity())
        array([[1., 0., 0., 0.],
               [0., 1., 0., 0.],
               [0., 0., 1., 0.],
               [0., 0., 0., 1.]])
        """
        return Position(Rotation(), Vector.zero())

    @staticmethod
    def of(X: Transform) -> "Position":
        """Create a position from the spatial transform from the first frame to the second.

        Parameters
        ----------
        X : Transform
            Transform (E, r) of `chasles.mathematics.spatial`: rotation from first to second axes,
            and origin of the second frame in the first (m).

        Returns
        -------
        M : Position
            [E' r; 0 1].

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> M = hm.position_from_dh(0.3, 0.4, 0.5, 0.6)
        >>> hm.Position.of(M.transform()) == M
        True
        """
        return Position(X.E.T, X.r)

    @staticmethod
    def from_matrix(M: Matrix) -> "Position":
        """Create a position from a 4x4 matrix.

        Parameters
        ----------
        M : Matrix
            Matrix [R t; 0 1] with a rotation R; the last row is not read.

        Returns
        -------
        M : Position
            The position.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> M = hm.position_from_dh(0.0, 0.4, 0.5, 0.0)
        >>> hm.Position.from_matrix(M.matrix()).t
        Vector(entries=(0.5, 0.0, 0.4))
        """
        R = Matrix(tuple(row[:3] for row in M.rows[:3]))
        return Position(Rotation.of(R), Vector(tuple(row[3] for row in M.rows[:3])))

    def transform(self) -> Transform:
        """Return the spatial transform from the first frame to the second.

        Returns
        -------
        X : Transform
            Transform (R', t) of `chasles.mathematics.spatial`.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.position_from_dh(0.0, 0.4, 0.5, 0.0).transform().r
        Vector(entries=(0.5, 0.0, 0.4))
        """
        return Transform(self.R.T, self.t)

    def inverse(self) -> "Position":
        """Return [R' -R't; 0 1], the position of the first frame in the second.

        Returns
        -------
        M : Position
            The inverse.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import homogeneous as hm
        >>> np.asarray(hm.position_from_dh(0.0, 0.4, 0.3, 0.0).inverse())[:3, 3]
        array([-0.3,  0. , -0.4])
        """
        return Position(self.R.T, -(self.R.T @ self.t))

    def __matmul__(self, other: Placed) -> Placed:
        if type(other) is Vector:
            return self.R @ other + self.t
        if type(other) is Position:
            return Position(self.R @ other.R, self.R @ other.t + self.t)
        raise mismatch("multiply", self, other)

    def to_first(self, X: AnyFramed) -> AnyFramed:
        """Transform a matrix from the second frame to the first.

        Parameters
        ----------
        X : typed matrix
            Rototranslation, velocity, acceleration, screw, inertia, momentum or action.

        Returns
        -------
        X : typed matrix
            The same quantity in the first frame.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> M = hm.position_from_dh(0.0, 0.0, 1.0, 0.0)
        >>> hm.six_numbers(M.to_first(hm.joint_velocity("revolute", 2.0)))
        array([ 0.,  0.,  2.,  0., -2.,  0.])
        """
        if not isinstance(X, Framed):
            raise mismatch("change the frame by", self, X)
        return X.to_first(self.R, self.t)

    def to_second(self, X: AnyFramed) -> AnyFramed:
        """Transform a matrix from the first frame to the second.

        Parameters
        ----------
        X : typed matrix
            Rototranslation, velocity, acceleration, screw, inertia, momentum or action.

        Returns
        -------
        X : typed matrix
            The same quantity in the second frame.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> M = hm.position_from_dh(0.0, 0.0, 1.0, 0.0)
        >>> hm.six_numbers(M.to_second(hm.joint_velocity("revolute", 2.0)))
        array([0., 0., 2., 0., 2., 0.])
        """
        if not isinstance(X, Framed):
            raise mismatch("change the frame by", self, X)
        return X.to_second(self.R, self.t)

    def from_left(self, left: Block) -> Block:
        return Block(left.A @ self.R.matrix(), left.A @ self.t + left.b)


@dataclass(frozen=True, slots=True, repr=False)
class Rototranslation(_Placed, Framed):
    """Displacement Q = [R t; 0 1] in a single frame; Q = M02 M01^-1 moves frame 1 to frame 2."""

    @staticmethod
    def between(M01: Position, M02: Position) -> "Rototranslation":
        """Return the displacement, expressed in frame 0, that moves frame 1 to frame 2.

        Parameters
        ----------
        M01, M02 : Position
            Poses of frames 1 and 2 in frame 0.

        Returns
        -------
        Q : Rototranslation
            M02 M01^-1.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import homogeneous as hm
        >>> before, after = (hm.position_from_dh(0.0, 0.0, x, 0.0) for x in (0.2, 0.5))
        >>> np.asarray(hm.Rototranslation.between(before, after))[:3, 3]
        array([0.3, 0. , 0. ])
        """
        R = M02.R @ M01.R.T
        return Rototranslation(R, M02.t - R @ M01.t)

    def __matmul__(self, other: Displaced) -> Displaced:
        """Compose two displacements, or displace a frame or a point."""
        if type(other) is Vector:
            return self.R @ other + self.t
        if type(other) is Rototranslation or type(other) is Position:
            return type(other)(self.R @ other.R, self.R @ other.t + self.t)
        raise mismatch("multiply", self, other)

    def to_first(self, R: Rotation, t: Vector) -> "Rototranslation":
        turned = R @ self.R @ R.T
        return Rototranslation(turned, R @ self.t + t - turned @ t)

    def to_second(self, R: Rotation, t: Vector) -> "Rototranslation":
        turned = R.T @ self.R @ R
        return Rototranslation(turned, R.T @ (self.t - t + self.R @ t))


def position_from_extended_dh(
    theta: Number, s: Number, b: Number, a: Number, alpha: Number
) -> Position:
    """Return Rz(theta) Tz(s) Tx(a) Ty(b) Rx(alpha) (Legnani II, section 6).

    The joint coordinate is part of theta (revolute) or s (prismatic). For b = 0, these are the
    standard Denavit-Hartenberg parameters.
    """
    Rz = turn(2, theta)
    return Position(turn(0, alpha).then(Rz), Rz @ Vector.of(a, b, s))
