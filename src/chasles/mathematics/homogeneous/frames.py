"""Where bodies are: positions M, also from joint constants, and rototranslations Q."""

from dataclasses import dataclass
from typing import overload

from chasles.expr import Number
from chasles.mathematics.angles import turn
from chasles.mathematics.homogeneous.dense import (
    AnyFramed,
    Block,
    Dense,
    Factor,
    Framed,
    bordered,
    mismatch,
)
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform


@dataclass(frozen=True, slots=True, repr=False)
class _Placed(Dense):
    """The numbers of a matrix [R t; 0 1]."""

    R: Rotation
    t: Vector

    def matrix(self) -> Matrix:
        return bordered(self.R.matrix(), self.t, (0.0, 0.0, 0.0, 1.0))


@dataclass(frozen=True, slots=True, repr=False)
class Position(_Placed, Factor):
    """M = [R t; 0 1]: a second frame in a first one; `P0 = M01 @ P1` takes points to the first.

    `to_first` and `to_second` change the frame in which any of the matrices is written: M X M^-1
    for Q, W, H and L, M X M' for J, Gamma and Phi. No inverse is ever formed.
    """

    @staticmethod
    def identity() -> "Position":
        return Position(Rotation(), Vector.zero())

    @staticmethod
    def of(X: Transform) -> "Position":
        """From the spatial transform, which takes coordinates of the first frame to the second."""
        return Position(X.E.T, X.r)

    @staticmethod
    def from_matrix(M: Matrix) -> "Position":
        """From a 4x4 matrix."""
        R = Matrix(tuple(row[:3] for row in M.rows[:3]))
        return Position(Rotation.of(R), Vector(tuple(row[3] for row in M.rows[:3])))

    def transform(self) -> Transform:
        """The spatial transform from the first frame to the second."""
        return Transform(self.R.T, self.t)

    def inverse(self) -> "Position":
        """[R' -R't; 0 1]: the first frame in the second."""
        return Position(self.R.T, -(self.R.T @ self.t))

    @overload
    def __matmul__(self, other: "Position") -> "Position": ...
    @overload
    def __matmul__(self, other: Vector) -> Vector: ...
    def __matmul__(self, other: "Position | Vector") -> "Position | Vector":
        if type(other) is Vector:
            return self.R @ other + self.t
        if type(other) is Position:
            return Position(self.R @ other.R, self.R @ other.t + self.t)
        raise mismatch("multiply", self, other)

    def to_first(self, X: AnyFramed) -> AnyFramed:
        """A matrix that is written in the second frame, written in the first."""
        if not isinstance(X, Framed):
            raise mismatch("change the frame by", self, X)
        return X.to_first(self.R, self.t)

    def to_second(self, X: AnyFramed) -> AnyFramed:
        """A matrix that is written in the first frame, written in the second."""
        if not isinstance(X, Framed):
            raise mismatch("change the frame by", self, X)
        return X.to_second(self.R, self.t)

    def from_left(self, left: Block) -> Block:
        return Block(left.A @ self.R.matrix(), left.A @ self.t + left.b)


@dataclass(frozen=True, slots=True, repr=False)
class Rototranslation(_Placed, Framed):
    """Q = [R t; 0 1]: a displacement, all in one frame: Q = M02 M01^-1 takes frame 1 to frame 2."""

    @staticmethod
    def between(M01: Position, M02: Position) -> "Rototranslation":
        """The displacement, written in frame 0, that takes frame 1 to frame 2."""
        R = M02.R @ M01.R.T
        return Rototranslation(R, M02.t - R @ M01.t)

    @overload
    def __matmul__(self, other: "Rototranslation") -> "Rototranslation": ...
    @overload
    def __matmul__(self, other: Position) -> Position: ...
    @overload
    def __matmul__(self, other: Vector) -> Vector: ...
    def __matmul__(
        self, other: "Rototranslation | Position | Vector"
    ) -> "Rototranslation | Position | Vector":
        """One displacement after another, a displaced frame, or a displaced point."""
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
    """Rz(theta) Tz(s) Tx(a) Ty(b) Rx(alpha) (Legnani II, section 6); plain D-H has b = 0.

    The joint's coordinate is a part of theta (revolute) or of s (prismatic).
    """
    Rz = turn(2, theta)
    return Position(turn(0, alpha).then(Rz), Rz @ Vector.of(a, b, s))
