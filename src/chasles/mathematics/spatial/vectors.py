"""Spatial motion and force vectors, and columns of them (Featherstone 2008, chapter 2)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import overload

from chasles.errors import ArgumentError
from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Vector, factor_ltdl, solve_ltdl


def _mismatch(operation: str, a: object, b: object) -> ArgumentError:
    problem = f"cannot {operation} {type(a).__name__} and {type(b).__name__}"
    return ArgumentError("E-MATH-025", problem)


@dataclass(frozen=True, slots=True)
class Motion:
    """A spatial velocity or acceleration: angular part, then linear part at the frame's origin."""

    angular: Vector
    linear: Vector

    @staticmethod
    def zero() -> "Motion":
        return Motion(Vector.zero(), Vector.zero())

    @staticmethod
    def of(*entries: Number) -> "Motion":
        return Motion(Vector(entries[:3]), Vector(entries[3:]))

    def __iter__(self) -> Iterator[Number]:
        return iter((*self.angular, *self.linear))

    def __add__(self, other: "Motion") -> "Motion":
        if type(other) is not Motion:
            raise _mismatch("add", self, other)
        return Motion(self.angular + other.angular, self.linear + other.linear)

    def __sub__(self, other: "Motion") -> "Motion":
        if type(other) is not Motion:
            raise _mismatch("subtract", self, other)
        return Motion(self.angular - other.angular, self.linear - other.linear)

    def __neg__(self) -> "Motion":
        return Motion(-self.angular, -self.linear)

    def __mul__(self, factor: Number) -> "Motion":
        return Motion(self.angular * factor, self.linear * factor)

    __rmul__ = __mul__

    def dot(self, f: "Force") -> Number:
        """Power: the scalar product of a motion and a force."""
        if type(f) is not Force:
            raise _mismatch("take the power of", self, f)
        return self.angular.dot(f.moment) + self.linear.dot(f.force)

    @overload
    def cross(self, other: "Motion") -> "Motion": ...
    @overload
    def cross(self, other: "Force") -> "Force": ...
    @overload
    def cross(self, other: "Motions") -> "Motions": ...
    def cross(self, other: "Motion | Force | Motions") -> "Motion | Force | Motions":
        """crm(v) m or crf(v) f: the rate of a vector that moves with velocity v (Eq 2.31, 2.32)."""
        w, v = self.angular, self.linear
        if type(other) is Motion:
            return Motion(w.cross(other.angular), w.cross(other.linear) + v.cross(other.angular))
        if type(other) is Force:
            return Force(w.cross(other.moment) + v.cross(other.force), w.cross(other.force))
        if type(other) is Motions:
            return Motions(tuple(self.cross(m) for m in other.columns))
        raise _mismatch("cross", self, other)


@dataclass(frozen=True, slots=True)
class Force:
    """A spatial force or momentum: moment about the frame's origin, then linear force."""

    moment: Vector
    force: Vector

    @staticmethod
    def zero() -> "Force":
        return Force(Vector.zero(), Vector.zero())

    @staticmethod
    def of(*entries: Number) -> "Force":
        return Force(Vector(entries[:3]), Vector(entries[3:]))

    def __iter__(self) -> Iterator[Number]:
        return iter((*self.moment, *self.force))

    def __add__(self, other: "Force") -> "Force":
        if type(other) is not Force:
            raise _mismatch("add", self, other)
        return Force(self.moment + other.moment, self.force + other.force)

    def __sub__(self, other: "Force") -> "Force":
        if type(other) is not Force:
            raise _mismatch("subtract", self, other)
        return Force(self.moment - other.moment, self.force - other.force)

    def __neg__(self) -> "Force":
        return Force(-self.moment, -self.force)

    def __mul__(self, factor: Number) -> "Force":
        return Force(self.moment * factor, self.force * factor)

    __rmul__ = __mul__

    def dot(self, m: Motion) -> Number:
        """Power: the scalar product of a force and a motion."""
        if type(m) is not Motion:
            raise _mismatch("take the power of", self, m)
        return m.dot(self)


@dataclass(frozen=True, slots=True)
class Motions:
    """Columns of motion vectors: a joint's motion subspace S, a body Jacobian."""

    columns: tuple[Motion, ...]

    @property
    def T(self) -> "TransposedMotions":
        return TransposedMotions(self.columns)

    def __add__(self, other: "Motions") -> "Motions":
        if type(other) is not Motions:
            raise _mismatch("add", self, other)
        return Motions(tuple(a + b for a, b in zip(self.columns, other.columns, strict=True)))

    @overload
    def __matmul__(self, other: Vector) -> Motion: ...
    @overload
    def __matmul__(self, other: Matrix) -> "Motions": ...
    def __matmul__(self, other: Vector | Matrix) -> "Motion | Motions":
        if isinstance(other, Matrix):
            return Motions(tuple(self._combine(Vector(c)) for c in other.T.rows))
        if type(other) is not Vector:
            raise _mismatch("multiply", self, other)
        return self._combine(other)

    def _combine(self, rates: Vector) -> Motion:
        total = Motion.zero()
        for column, rate in zip(self.columns, rates, strict=True):
            total = total + column * rate
        return total


@dataclass(frozen=True, slots=True)
class Forces:
    """Columns of force vectors: I S, a subtree's momentum matrix."""

    columns: tuple[Force, ...]

    @property
    def T(self) -> "TransposedForces":
        return TransposedForces(self.columns)

    def __add__(self, other: "Forces") -> "Forces":
        if type(other) is not Forces:
            raise _mismatch("add", self, other)
        return Forces(tuple(a + b for a, b in zip(self.columns, other.columns, strict=True)))

    def __mul__(self, factor: Number) -> "Forces":
        return Forces(tuple(f * factor for f in self.columns))

    @overload
    def __matmul__(self, other: Vector) -> Force: ...
    @overload
    def __matmul__(self, other: Matrix) -> "Forces": ...
    def __matmul__(self, other: Vector | Matrix) -> "Force | Forces":
        if isinstance(other, Matrix):
            return Forces(tuple(self._combine(Vector(c)) for c in other.T.rows))
        if type(other) is not Vector:
            raise _mismatch("multiply", self, other)
        return self._combine(other)

    def over(self, D: Matrix) -> "Forces":
        """U D^-1 for a symmetric positive definite D: where U has D's own rows, exactly ones."""
        L, pivots = factor_ltdl(D.rows)
        rows = [solve_ltdl(L, pivots, Vector(row)) for row in zip(*self.columns, strict=True)]
        return Forces(tuple(Force.of(*column) for column in zip(*rows, strict=True)))

    def _combine(self, weights: Vector) -> Force:
        total = Force.zero()
        for column, weight in zip(self.columns, weights, strict=True):
            total = total + column * weight
        return total


@dataclass(frozen=True, slots=True)
class TransposedMotions:
    """The rows S' of a motion subspace: they take a force to its components on the joint."""

    columns: tuple[Motion, ...]

    @overload
    def __matmul__(self, other: Force) -> Vector: ...
    @overload
    def __matmul__(self, other: Forces) -> Matrix: ...
    def __matmul__(self, other: Force | Forces) -> Vector | Matrix:
        if type(other) is Force:
            return Vector(tuple(m.dot(other) for m in self.columns))
        if type(other) is Forces:
            return Matrix(tuple(tuple(m.dot(f) for f in other.columns) for m in self.columns))
        raise _mismatch("multiply", self, other)


@dataclass(frozen=True, slots=True)
class TransposedForces:
    """The rows F' of force columns: they take a motion to powers."""

    columns: tuple[Force, ...]

    @overload
    def __matmul__(self, other: Motion) -> Vector: ...
    @overload
    def __matmul__(self, other: Motions) -> Matrix: ...
    def __matmul__(self, other: Motion | Motions) -> Vector | Matrix:
        if type(other) is Motion:
            return Vector(tuple(f.dot(other) for f in self.columns))
        if type(other) is Motions:
            return Matrix(tuple(tuple(f.dot(m) for m in other.columns) for f in self.columns))
        raise _mismatch("multiply", self, other)
