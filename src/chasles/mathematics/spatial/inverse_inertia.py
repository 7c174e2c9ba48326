"""Inverse inertias: accelerations for forces, of one body or between two (36 numbers)."""

from dataclasses import dataclass
from typing import overload

from chasles.mathematics.linear import Matrix, Vector, invert_symmetric, mismatch
from chasles.mathematics.spatial.inertia import ArticulatedInertia, RigidInertia
from chasles.mathematics.spatial.vectors import Force, Forces, Motion, Motions


@dataclass(frozen=True, slots=True)
class InverseInertia:
    """Phi in a = Phi f + b: what a force on one body adds to its acceleration, or to another's.

    Unlike an inertia it exists for a body that is not free to move in every direction, where it
    has less than full rank (Featherstone 2008, sections 2.15 and 7.1).
    """

    entries: Matrix

    @staticmethod
    def zero() -> "InverseInertia":
        """Of the world, which no force accelerates; or between bodies that are not connected."""
        return InverseInertia(Matrix.zero(6, 6))

    @staticmethod
    def of(rigid: RigidInertia) -> "InverseInertia":
        """Of a free body (Eq 2.73); it must have a mass and three moments about its centre."""
        m, c, Ic = rigid.about_center()
        turn = invert_symmetric(Ic.matrix())
        mixed = Matrix.skew(c) @ turn
        w = 1.0 / m
        slide = mixed @ Matrix.skew(c).T + Matrix(((w, 0.0, 0.0), (0.0, w, 0.0), (0.0, 0.0, w)))
        above = [(*a, *b) for a, b in zip(turn.rows, mixed.T.rows, strict=True)]
        below = [(*a, *b) for a, b in zip(mixed.rows, slide.rows, strict=True)]
        return InverseInertia(Matrix((*above, *below)))

    @staticmethod
    def of_articulated(A: ArticulatedInertia) -> "InverseInertia":
        """The inverse of an articulated inertia of full rank."""
        M, H, I = A.M.matrix(), A.H, A.I.matrix()
        above = [(*a, *b) for a, b in zip(I.rows, H.rows, strict=True)]
        below = [(*a, *b) for a, b in zip(H.T.rows, M.rows, strict=True)]
        return InverseInertia(invert_symmetric(Matrix((*above, *below))))

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
