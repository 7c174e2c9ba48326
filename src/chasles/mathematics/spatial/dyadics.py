"""Spatial dyadics: linear maps between motions and forces (Featherstone 2008, section 2.13).

There are four kinds (Featherstone 2008, table 2.5), one for each combination of input and output
type. Each dyadic stores 36 entries. Inertias with fewer parameters have their own types
(`inertia.py`).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self, overload

from chasles.mathematics.linear import (
    Additive,
    Matrix,
    Vector,
    diagonal,
    invert_symmetric,
    mismatch,
)
from chasles.mathematics.spatial.inertia import ArticulatedInertia, CoriolisInertia, RigidInertia
from chasles.mathematics.spatial.vectors import Force, Forces, Motion, Motions

Six = type[Motion] | type[Force]

_COLUMNS: dict[Six, Any] = {Motion: Motions, Force: Forces}
_DUAL: dict[Six, Six] = {Motion: Force, Force: Motion}


@dataclass(frozen=True, slots=True)
class Dyadic(Additive):
    """Linear map from vectors of type `takes` to vectors of type `gives`, as a 6x6 matrix."""

    entries: Matrix
    takes: ClassVar[Six]
    gives: ClassVar[Six]

    @classmethod
    def zero(cls) -> Self:
        return cls(Matrix.zero(6, 6))

    @property
    def T(self) -> Any:
        """Transpose, which maps the dual space of the outputs to the dual space of the inputs."""
        return _KINDS[_DUAL[self.gives], _DUAL[self.takes]](self.entries.T)

    def __matmul__(self, other: Any) -> Any:
        """Apply the map to a vector or a matrix of columns, or compose it with another dyadic."""
        if type(other) is self.takes:
            return self.gives.of(*(self.entries @ Vector(tuple(other))))
        if type(other) is _COLUMNS[self.takes]:
            return _COLUMNS[self.gives](tuple(self @ column for column in other.columns))
        if isinstance(other, Dyadic) and other.gives is self.takes:
            return _KINDS[other.takes, self.gives](self.entries @ other.entries)
        raise mismatch("multiply", self, other)

    def moved(self, X: Any) -> Self:
        """Transform the dyadic to other coordinates by X, a `Transform` or `Inverse`.

        See Featherstone 2008, table 2.5. Columns transform as vectors of type `gives`, and rows as
        vectors dual to type `takes`.
        """
        columns = (X @ self.gives.of(*column) for column in self.entries.T.rows)
        dual = _DUAL[self.takes]
        rows = (X @ dual.of(*row) for row in zip(*columns, strict=True))
        return type(self)(Matrix(tuple(tuple(row) for row in rows)))


@dataclass(frozen=True, slots=True)
class MotionMap(Dyadic):
    """Linear map A from motion vectors to motion vectors, such as the operator v x.

    A coordinate transform X changes A by the similarity transformation X A X^-1.
    """

    takes = Motion
    gives = Motion

    @staticmethod
    def of(v: Motion) -> "MotionMap":
        """Return the cross-product operator (v x) for motion vectors (Featherstone 2008, Eq 2.31).

        The time derivative of a motion vector m that is fixed in a body with velocity v is v x m.
        """
        w, u = Matrix.skew(v.angular), Matrix.skew(v.linear)
        return MotionMap(_blocks(w, Matrix.zero(), u, w))


@dataclass(frozen=True, slots=True)
class ForceMap(Dyadic):
    """Linear map from force vectors to force vectors, such as the operator v x*."""

    takes = Force
    gives = Force

    @staticmethod
    def of(v: Motion) -> "ForceMap":
        """Return the operator v x* for the rate of a force vector that moves with v.

        See Featherstone 2008, Eq 2.32.
        """
        w, u = Matrix.skew(v.angular), Matrix.skew(v.linear)
        return ForceMap(_blocks(w, u, Matrix.zero(), w))


@dataclass(frozen=True, slots=True)
class GeneralInertia(Dyadic):
    """General 6x6 matrix that maps motions to forces, such as the rate dI/dt of an inertia."""

    takes = Motion
    gives = Force

    @staticmethod
    def of(inertia: RigidInertia | ArticulatedInertia | CoriolisInertia) -> "GeneralInertia":
        """Convert an inertia to a full 6x6 matrix."""
        if type(inertia) is CoriolisInertia:
            left = inertia.A, Matrix.skew(-inertia.l)
            return GeneralInertia(_blocks(left[0], Matrix.zero(), left[1], Matrix.zero()))
        A = ArticulatedInertia.of(inertia) if type(inertia) is RigidInertia else inertia
        if type(A) is not ArticulatedInertia:
            raise mismatch("make", GeneralInertia.zero(), inertia)
        return GeneralInertia(_blocks(A.I.matrix(), A.H, A.H.T, A.M.matrix()))


@dataclass(frozen=True, slots=True)
class InverseInertia(Dyadic):
    """Inverse inertia Phi of a body, or cross-coupling inverse inertia of two bodies.

    The equation of motion is a = Phi f + b, where a is the acceleration of a body, and f is a force
    on the same body or on another body. Phi also exists for a body with constrained motion, and is
    then rank-deficient (Featherstone 2008, sections 2.15 and 7.1). Phi is zero for the world and
    for bodies that are not connected. The transpose exchanges the two bodies. Phi transforms by
    congruence.
    """

    takes = Force
    gives = Motion

    @staticmethod
    def of(rigid: RigidInertia) -> "InverseInertia":
        """Return the inverse inertia of a free body. The inertia must be nonsingular.

        See Featherstone 2008, Eq 2.73.
        """
        m, c, Ic = rigid.about_center()
        turn = invert_symmetric(Ic.matrix())
        mixed = Matrix.skew(c) @ turn
        slide = mixed @ Matrix.skew(c).T + diagonal(Vector((1.0 / m,) * 3))
        return InverseInertia(_blocks(turn, mixed.T, mixed, slide))

    @staticmethod
    def of_articulated(A: ArticulatedInertia) -> "InverseInertia":
        """Return the inverse of an articulated-body inertia, which must be nonsingular."""
        return InverseInertia(invert_symmetric(GeneralInertia.of(A).entries))

    def without(self, U: Motions, K: Motions) -> "InverseInertia":
        """Return Phi - U K', the inverse inertia with an additional constraint.

        The columns of U are the accelerations due to unit constraint forces. A force f on the body
        causes the constraint forces -K' f.
        """
        left, right = ([tuple(m) for m in M.columns] for M in (U, K))
        products = Matrix(tuple(zip(*left, strict=True))) @ Matrix(tuple(right)) if left else None
        return self if products is None else InverseInertia(self.entries - products)


_KINDS: dict[tuple[Six, Six], type[Dyadic]] = {
    (kind.takes, kind.gives): kind for kind in (MotionMap, ForceMap, GeneralInertia, InverseInertia)
}


@overload
def dyad(a: Motion, b: Force) -> MotionMap: ...
@overload
def dyad(a: Force, b: Motion) -> ForceMap: ...
@overload
def dyad(a: Force, b: Force) -> GeneralInertia: ...
@overload
def dyad(a: Motion, b: Motion) -> InverseInertia: ...
def dyad(a: Motion | Force, b: Motion | Force) -> Any:
    """Return the rank-one dyadic that maps x to a (b . x) (Featherstone 2008, Eq 2.64)."""
    return _KINDS[_DUAL[type(b)], type(a)](Matrix(tuple(tuple(x * y for y in b) for x in a)))


def _blocks(A: Matrix, B: Matrix, C: Matrix, D: Matrix) -> Matrix:
    """Return the block matrix [A B; C D]."""
    pairs = [*zip(A.rows, B.rows, strict=True), *zip(C.rows, D.rows, strict=True)]
    return Matrix(tuple((*left, *right) for left, right in pairs))
