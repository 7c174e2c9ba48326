"""Spatial motion and force vectors, and matrices of column vectors (Featherstone 2008, ch. 2)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

from chasles.expr import Number
from chasles.mathematics.linear import (
    Additive,
    Matrix,
    Vector,
    factor_ltdl,
    mismatch,
    solve_ltdl,
)

Moved = TypeVar("Moved", "Motion", "Force", "Motions")


class _Six(Additive):
    """Spatial vector, with three angular entries followed by three linear entries."""

    __slots__ = ()

    @classmethod
    def zero(cls) -> Self:
        """Return a vector of six zeros.

        Returns
        -------
        v : same type
            The vector.

        Examples
        --------
        >>> from chasles.mathematics.spatial import Motion
        >>> Motion.zero().linear
        Vector(entries=(0.0, 0.0, 0.0))
        """
        return cls(Vector.zero(), Vector.zero())

    @classmethod
    def of(cls, *entries: Number) -> Self:
        """Create a spatial vector from its six entries.

        Parameters
        ----------
        *entries : Number
            Angular part or moment, followed by the linear part or force.

        Returns
        -------
        v : same type
            The vector.

        Examples
        --------
        >>> from chasles.mathematics.spatial import Force
        >>> Force.of(0.0, 0.0, 1.0, 2.0, 0.0, 0.0).moment
        Vector(entries=(0.0, 0.0, 1.0))
        """
        return cls(Vector(entries[:3]), Vector(entries[3:]))

    def __iter__(self) -> Iterator[Number]:
        first, second = self.__match_args__
        return iter((*getattr(self, first), *getattr(self, second)))


@dataclass(frozen=True, slots=True)
class Motion(_Six):
    """Spatial velocity or acceleration: angular part, and linear part at the frame's origin."""

    angular: Vector
    linear: Vector

    def dot(self, f: "Force") -> Number:
        """Return the scalar product of a motion and a force.

        Parameters
        ----------
        f : Force
            Force in the same frame.

        Returns
        -------
        power : Number
            Power (W), if the motion is a velocity.

        Raises
        ------
        ArgumentError
            If the other vector has the wrong type.

        Examples
        --------
        >>> from chasles.mathematics.spatial import Force, Motion
        >>> Motion.of(0.0, 0.0, 2.0, 0.0, 0.0, 0.0).dot(Force.of(0.0, 0.0, 3.0, 0.0, 0.0, 0.0))
        6.0
        """
        if type(f) is not Force:
            raise mismatch("take the power of", self, f)
        return self.angular.dot(f.moment) + self.linear.dot(f.force)

    def cross(self, other: Moved) -> Moved:
        """Return the cross product crm(v) m or crf(v) f (Featherstone 2008, Eq 2.31, 2.32).

        The result is the rate of change of a vector that is fixed in a frame with velocity v.

        Parameters
        ----------
        other : Motion, Force or Motions
            Vector or columns fixed in the moving frame.

        Returns
        -------
        rate : same type
            Rate of change.

        Raises
        ------
        ArgumentError
            If the other vector has the wrong type.

        Examples
        --------
        >>> from chasles.mathematics.spatial import Motion
        >>> turning = Motion.of(0.0, 0.0, 2.0, 0.0, 0.0, 0.0)
        >>> turning.cross(Motion.of(0.0, 0.0, 0.0, 1.0, 0.0, 0.0)).linear
        Vector(entries=(0.0, 2.0, 0.0))
        """
        w, v = self.angular, self.linear
        if type(other) is Motion:
            return Motion(w.cross(other.angular), w.cross(other.linear) + v.cross(other.angular))
        if type(other) is Force:
            return Force(w.cross(other.moment) + v.cross(other.force), w.cross(other.force))
        if type(other) is Motions:
            return Motions(tuple(self.cross(m) for m in other.columns))
        raise mismatch("cross", self, other)


@dataclass(frozen=True, slots=True)
class Force(_Six):
    """Spatial force or momentum: moment about the origin of the frame, and linear force."""

    moment: Vector
    force: Vector

    def dot(self, m: Motion) -> Number:
        """Return the scalar product of a force and a motion.

        Parameters
        ----------
        m : Motion
            Motion in the same frame.

        Returns
        -------
        power : Number
            Power (W), if the motion is a velocity.

        Raises
        ------
        ArgumentError
            If the other vector has the wrong type.

        Examples
        --------
        >>> from chasles.mathematics.spatial import Force, Motion
        >>> Force.of(0.0, 0.0, 3.0, 0.0, 0.0, 0.0).dot(Motion.of(0.0, 0.0, 2.0, 0.0, 0.0, 0.0))
        6.0
        """
        if type(m) is not Motion:
            raise mismatch("take the power of", self, m)
        return m.dot(self)


V = TypeVar("V", Motion, Force)


@dataclass(frozen=True, slots=True)
class _Columns(Generic[V]):
    """Matrix whose columns are spatial vectors of the same type."""

    columns: tuple[V, ...]
    kind: ClassVar[Any]

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            raise mismatch("add", self, other)
        return type(self)(tuple(a + b for a, b in zip(self.columns, other.columns, strict=True)))

    def __mul__(self, factor: Number) -> Self:
        return type(self)(tuple(column * factor for column in self.columns))

    @overload
    def __matmul__(self, other: Vector) -> V: ...
    @overload
    def __matmul__(self, other: Matrix) -> Self: ...
    def __matmul__(self, other: Vector | Matrix) -> V | Self:
        if type(other) is Matrix:
            return type(self)(tuple(self._combine(Vector(c)) for c in other.T.rows))
        if type(other) is not Vector:
            raise mismatch("multiply", self, other)
        return self._combine(other)

    def _combine(self, weights: Vector) -> V:
        total: V = self.kind.zero()
        for column, weight in zip(self.columns, weights, strict=True):
            total = total + column * weight
        return total


@dataclass(frozen=True, slots=True)
class Motions(_Columns[Motion]):
    """Matrix whose columns are motions, such as a motion subspace S or a body Jacobian."""

    kind = Motion

    @property
    def T(self) -> "Transposed[Force]":
        return Transposed(self.columns)


@dataclass(frozen=True, slots=True)
class Forces(_Columns[Force]):
    """Matrix whose columns are forces, such as I S or the momentum matrix of a subtree."""

    kind = Force

    @property
    def T(self) -> "Transposed[Motion]":
        return Transposed(self.columns)

    def over(self, D: Matrix) -> "Forces":
        """Return U D^-1, where U is this matrix, and D is symmetric positive definite.

        A row of U that equals a row of D becomes exactly a unit vector.
        """
        L, pivots = factor_ltdl(D.rows)
        ones = Matrix.identity(len(D.rows)).rows
        own = {row: Vector(one) for row, one in zip(D.rows, ones, strict=True)}
        given = zip(*self.columns, strict=True)
        rows = [own.get(row) or solve_ltdl(L, pivots, Vector(row)) for row in given]
        return Forces(tuple(Force.of(*column) for column in zip(*rows, strict=True)))


@dataclass(frozen=True, slots=True)
class Transposed(Generic[V]):
    """Transposed matrix S', where the columns of S are motion vectors or force vectors.

    A transposed motion matrix multiplies force vectors, and a transposed force matrix multiplies
    motion vectors.
    """

    columns: tuple[Any, ...]

    @overload
    def __matmul__(self, other: V) -> Vector: ...
    @overload
    def __matmul__(self, other: _Columns[V]) -> Matrix: ...
    def __matmul__(self, other: V | _Columns[V]) -> Vector | Matrix:
        if isinstance(other, _Columns):
            return Matrix(tuple(tuple(a.dot(b) for b in other.columns) for a in self.columns))
        return Vector(tuple(a.dot(other) for a in self.columns))


def group_drift(S: Motions, qd: Vector) -> Matrix:
    """Return the matrix -ad(qd) of a joint whose motions form a group, such as a spherical joint.

    The columns of the motion subspace S must be unit vectors.
    """
    brackets = (S @ qd).cross(S)
    rows = (Vector(tuple(s)) for s in S.columns)
    return Matrix(
        tuple(tuple(-row.dot(Vector(tuple(m))) for m in brackets.columns) for row in rows)
    )
