"""Positions M and rototranslations Q of bodies, and the base classes of Legnani's matrices.

The matrices are printed as 4x4 arrays, and `np.asarray` converts them to NumPy arrays. `@` is the
matrix product, which raises an error for incompatible types. All operations accept floats and
symbols. Subscripts follow Legnani, Casolo, Righettini and Zappa (1996): W_ij(k) is the velocity of
body j relative to body i, expressed in frame k.
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
    """Return an error for operands of incompatible types."""
    problem = f"cannot {operation} {type(a).__name__} and {type(b).__name__} objects"
    return ArgumentError("E-MATH-022", problem)


def bordered(A: Matrix, b: Vector, last: tuple[Number, Number, Number, Number]) -> Matrix:
    """Return the 4x4 matrix [A b; last], with the given last row."""
    rows = ((*row, x) for row, x in zip(A.rows, b, strict=True))
    return Matrix((*rows, last))


class Dense:
    """4x4 matrix X that stores only independent entries; `np.asarray(X)` returns all entries."""

    __slots__ = ()

    __array_ufunc__ = None  # for products with a NumPy scalar on the left

    _mismatch = staticmethod(mismatch)

    def matrix(self) -> Matrix:
        """Return the full matrix with sixteen entries.

        Returns
        -------
        X : Matrix
            The 4x4 matrix. To get a NumPy array, call `np.asarray` on this object.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.joint_velocity("revolute", 2.0).matrix().rows[0]
        (0.0, -2.0, 0.0, 0.0)
        """
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np  # imported only if needed

        if copy is False:
            problem = f"a {type(self).__name__} cannot be converted to an array without a copy"
            raise InputError("E-MATH-023", problem, "omit copy=False")
        rows = [[x + 0.0 for x in row] for row in self.matrix().rows]  # removes negative zeros
        return np.array(rows, dtype=dtype)

    def __repr__(self) -> str:
        cells = [[_cell(x) for x in row] for row in self.matrix().rows]
        width = max(len(cell) for row in cells for cell in row)
        lines = [" ".join(cell.rjust(width) for cell in row) for row in cells]
        return "\n".join([type(self).__name__, *(f"[ {line} ]" for line in lines)])


def _cell(x: Number) -> str:
    """Format an expression, or a number with six digits and without negative zeros."""
    return repr(x) if type(x) is Scalar else f"{float(x) + 0.0:.6g}"


class Factor(Dense):
    """Matrix X that can be multiplied from the left by a velocity W or an acceleration H."""

    __slots__ = ()

    def from_left(self, left: "Block") -> "Block":
        """Multiply this matrix X from the left by a matrix whose last row is zero.

        Parameters
        ----------
        left : Block
            Left factor, such as `W.block()`.

        Returns
        -------
        product : Block
            The product left @ X. For a velocity W, the product equals `W @ X`.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> W, M = hm.joint_velocity("revolute", 2.0), hm.position_from_dh(0.0, 0.0, 1.0, 0.0)
        >>> M.from_left(W.block()).b  # velocity of the origin of M
        Vector(entries=(0.0, 2.0, 0.0))
        """
        raise NotImplementedError


class Framed(Dense):
    """4x4 matrix of a physical quantity that can be expressed in another frame."""

    __slots__ = ()

    def to_first(self, R: Rotation, t: Vector) -> Self:
        """Transform the matrix from the second frame of M = [R t; 0 1] to the first.

        Parameters
        ----------
        R : Rotation
            Rotation of M, with the axes of the second frame in the first as columns.
        t : Vector
            Origin of the second frame in the first (m).

        Returns
        -------
        X : same type
            The same quantity, expressed in the first frame.

        Notes
        -----
        `Position.to_first` calls this function, which returns M X M^-1 for Q, W, H and L, and M X
        M' for J, Gamma and Phi (Legnani et al. 1996, Eq I.8, I.9, I.17).

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
            Rotation of M, with the axes of the second frame in the first as columns.
        t : Vector
            Origin of the second frame in the first (m).

        Returns
        -------
        X : same type
            The same quantity, expressed in the second frame.

        Notes
        -----
        `Position.to_second` calls this function, which is the inverse of `to_first`.

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
    """Protocol for velocities, accelerations and screws."""

    def block(self) -> "Block": ...


@dataclass(frozen=True, slots=True, repr=False)
class Block(Factor, Additive):
    """4x4 matrix [A b; 0 0], such as the product of a velocity and an inertia."""

    A: Matrix
    b: Vector

    def matrix(self) -> Matrix:
        return bordered(self.A, self.b, (0.0, 0.0, 0.0, 0.0))

    def __matmul__(self, point: Vector) -> Vector:
        """Return the product X P for a point P."""
        if type(point) is not Vector:
            raise mismatch("multiply", self, point)
        return self.A @ point + self.b

    def from_left(self, left: "Block") -> "Block":
        return Block(left.A @ self.A, left.A @ self.b)

    def trace(self, other: "Rate") -> Number:
        """Return trace(X Y'), the sum of the products of corresponding entries of X and Y.

        Parameters
        ----------
        other : Velocity, Acceleration or Screw
            The matrix Y.

        Returns
        -------
        trace : float
            The trace. The kinetic energy of a body is 1/2 trace(W J W').

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
        """Return the vectors c and f of the skew-symmetric matrix X - X' = [c~ f; -f' 0].

        Returns
        -------
        c : Vector
            Axial vector of the 3x3 block. If X = W J, c is the angular momentum about the origin.
        f : Vector
            Last column. If X = W J, f is the linear momentum.

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
    """Return X @ other, where `left` is X converted to a `Block`."""
    if not isinstance(other, Factor):
        raise mismatch("multiply", X, other)
    return other.from_left(left)


def angular(X: Dense) -> Vector:
    """Return the vector w from the skew-symmetric part w~ of the 3x3 block (SPACELIB's m4v3).

    The vector is the angular velocity for W, the axis for L, the angular momentum for Gamma, and
    the couple for Phi. For H, the vector is the angular acceleration, because w~ w~ is symmetric.
    """
    A = X.matrix()
    return Vector.of(A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]) * 0.5


def linear(X: Dense) -> Vector:
    """Return the linear part of a matrix: the first three entries of its last column.

    For a velocity matrix W, the linear part is the velocity of the body's point at the origin.
    """
    return Vector(tuple(row[3] for row in X.matrix().rows[:3]))


# Positions and displacements ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class _Placed(Dense):
    """Base class of matrices [R t; 0 1]: positions and displacements."""

    R: Rotation
    t: Vector

    def matrix(self) -> Matrix:
        return bordered(self.R.matrix(), self.t, (0.0, 0.0, 0.0, 1.0))


@dataclass(frozen=True, slots=True, repr=False)
class Position(_Placed, Factor):
    """Pose M = [R t; 0 1] of a second frame in a first frame.

    `P0 = M01 @ P1` transforms the coordinates of a point to the first frame. `to_first` returns
    M X M^-1 for Q, W, H and L, and M X M' for J, Gamma and Phi. `to_second` is the inverse of
    `to_first`. Both methods avoid computing the inverse of M.
    """

    @staticmethod
    def identity() -> "Position":
        """Return the identity, the position of coincident frames.

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
        """Create a position from the spatial transform between the two frames.

        Parameters
        ----------
        X : Transform
            Transform (E, r) from the first frame to the second. E is the rotation, and r is the
            origin of the second frame in the first (m).

        Returns
        -------
        M : Position
            Position M = [E' r; 0 1].

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
            Matrix [R t; 0 1] with a rotation R. The last row is ignored.

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
            Transform (R', t), as defined in `chasles.mathematics.spatial`.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.position_from_dh(0.0, 0.4, 0.5, 0.0).transform().r
        Vector(entries=(0.5, 0.0, 0.4))
        """
        return Transform(self.R.T, self.t)

    def inverse(self) -> "Position":
        """Return the inverse [R' -R't; 0 1] of this pose M = [R t; 0 1].

        M is the pose of a second frame in a first frame, and the inverse is the pose of the first
        frame in the second.

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

        Raises
        ------
        ArgumentError
            If X is not a typed matrix.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> M = hm.position_from_dh(0.0, 0.0, 1.0, 0.0)
        >>> hm.six_numbers(M.to_first(hm.joint_velocity("revolute", 2.0)))
        array([ 0.,  0.,  2.,  0., -2.,  0.])
        """
        if not isinstance(X, Framed):
            raise mismatch("change frames with", self, X)
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

        Raises
        ------
        ArgumentError
            If X is not a typed matrix.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> M = hm.position_from_dh(0.0, 0.0, 1.0, 0.0)
        >>> hm.six_numbers(M.to_second(hm.joint_velocity("revolute", 2.0)))
        array([0., 0., 2., 0., 2., 0.])
        """
        if not isinstance(X, Framed):
            raise mismatch("change frames with", self, X)
        return X.to_second(self.R, self.t)

    def from_left(self, left: Block) -> Block:
        return Block(left.A @ self.R.matrix(), left.A @ self.t + left.b)


@dataclass(frozen=True, slots=True, repr=False)
class Rototranslation(_Placed, Framed):
    """Displacement Q = [R t; 0 1].

    Q = M02 M01^-1 moves frame 1 to frame 2, and is expressed in frame 0.
    """

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
            Displacement M02 M01^-1.

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
    """Return Rz(theta) Tz(s) Tx(a) Ty(b) Rx(alpha) (Legnani et al. 1996, part II, section 6).

    theta includes the coordinate of a revolute joint, and s the coordinate of a prismatic joint.
    For b = 0, the constants are the standard Denavit-Hartenberg parameters.
    """
    Rz = turn(2, theta)
    return Position(turn(0, alpha).then(Rz), Rz @ Vector.of(a, b, s))
