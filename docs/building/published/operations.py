"""Counts in chasles for the operations of tables A.4 and A.5 (Featherstone 2008)."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from chasles.expr import RULES, Arena, Count, Number, Program, Scalar, Variable
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import General, Plane, Rotation
from chasles.mathematics.spatial import ArticulatedInertia, Force, Motion, RigidInertia, Transform


@dataclass
class Symbols:
    """Source of new symbols, and of vectors, matrices and spatial quantities of new symbols."""

    arena: Arena = field(default_factory=lambda: Arena(RULES))
    number: Iterator[int] = field(default_factory=itertools.count)

    def new(self, n: int) -> tuple[Scalar, ...]:
        return tuple(self.arena.input("x", next(self.number)) for _ in range(n))

    def scalar(self) -> Scalar:
        return self.new(1)[0]

    def vector(self) -> Vector:
        return Vector(self.new(3))

    def matrix(self) -> Matrix:
        return Matrix(tuple(self.new(3) for _ in range(3)))

    def symmetric(self) -> Symmetric:
        return Symmetric(*self.new(6))

    def motion(self) -> Motion:
        return Motion.of(*self.new(6))

    def force(self) -> Force:
        return Force.of(*self.new(6))

    def rigid(self) -> RigidInertia:
        return RigidInertia(self.scalar(), self.vector(), self.symmetric())

    def articulated(self) -> ArticulatedInertia:
        return ArticulatedInertia(self.symmetric(), self.matrix(), self.symmetric())

    def released(self) -> ArticulatedInertia:
        """Return Ia of a joint about z; the third row and column of the 6x6 matrix are zero."""
        H = Matrix((self.new(3), self.new(3), (0.0, 0.0, 0.0)))
        xx, yy, xy = self.new(3)
        return ArticulatedInertia(self.symmetric(), H, Symmetric(xx, yy, 0.0, xy, 0.0, 0.0))

    def rotation(self) -> Rotation:
        return Rotation((General(self.matrix()),))

    def transform(self) -> Transform:
        return Transform(self.rotation(), self.vector())

    def plane(self, axis: int) -> Rotation:
        return Rotation((Plane(axis, *self.new(2)),))

    def screw(self, axis: int) -> Transform:
        """Return a rotation about an axis combined with a translation along it."""
        r: list[Number] = [0.0, 0.0, 0.0]
        r[axis] = self.scalar()
        return Transform(self.plane(axis), Vector(tuple(r)))

    def count(self, value: Any) -> Count:
        """Return the operations needed to compute a value from these symbols."""
        entries = list(numbers(value))
        inputs = [Variable("x", (next(self.number),))]
        outputs = [(Variable("y", (len(entries),)), entries)]
        return Program.from_outputs("operation", inputs, outputs).count


def numbers(value: Any) -> Iterator[Number]:
    """Yield the entries of a value of any of the types."""
    match value:
        case tuple():
            yield from itertools.chain(*map(numbers, value))
        case Vector() | Motion() | Force() | Symmetric():
            yield from value
        case Matrix():
            yield from itertools.chain(*value.rows)
        case RigidInertia():
            yield from (value.m, *value.h, *value.I)
        case ArticulatedInertia():
            yield from (*value.M, *numbers(value.H), *value.I)
        case Rotation():
            yield from numbers(value.matrix())
        case Transform():
            yield from (*value.r, *numbers(value.E))
        case _:
            yield value


def _inverse(X: Transform) -> Transform:
    return Transform(X.E.T, -(X.E @ X.r))


GENERAL: dict[str, Callable[[Symbols], Any]] = {
    "a v": lambda s: s.scalar() * s.motion(),
    "a f": lambda s: s.scalar() * s.force(),
    "a I": lambda s: s.scalar() * s.rigid(),
    "a IA": lambda s: s.scalar() * s.articulated(),
    "v + v": lambda s: s.motion() + s.motion(),
    "f + f": lambda s: s.force() + s.force(),
    "I + I": lambda s: s.rigid() + s.rigid(),
    "IA + IA": lambda s: s.articulated() + s.articulated(),
    "IA + I": lambda s: s.articulated() + ArticulatedInertia.of(s.rigid()),
    "v . f": lambda s: s.motion().dot(s.force()),
    "v x v": lambda s: s.motion().cross(s.motion()),
    "v x* f": lambda s: s.motion().cross(s.force()),
    "I v": lambda s: s.rigid() @ s.motion(),
    "IA v": lambda s: s.articulated() @ s.motion(),
    "X1 X2": lambda s: s.transform() @ s.transform(),
    "X^-1": lambda s: _inverse(s.transform()),
    "X v": lambda s: s.transform() @ s.motion(),
    "X^-1 v": lambda s: s.transform().inverse() @ s.motion(),
    "X* f": lambda s: s.transform() @ s.force(),
    "X' f": lambda s: s.transform().T @ s.force(),
    "X* I X^-1": lambda s: s.transform() @ s.rigid(),
    "X' I X": lambda s: s.transform().T @ s.rigid(),
    "X* IA X^-1": lambda s: s.transform() @ s.articulated(),
    "X' IA X": lambda s: s.transform().T @ s.articulated(),
    "E1 E2": lambda s: s.rotation() @ s.rotation(),
    "E A E'": lambda s: s.rotation() @ s.matrix(),
    "E S E'": lambda s: s.rotation() @ s.symmetric(),
}
"""Operations of table A.4, and of section A.5 for general rotations."""

SCREW: dict[str, Callable[[Symbols, int], Any]] = {
    "X v": lambda s, k: s.screw(k) @ s.motion(),
    "X* f": lambda s, k: s.screw(k) @ s.force(),
    "X* I X^-1": lambda s, k: s.screw(k) @ s.rigid(),
    "X* IA X^-1": lambda s, k: s.screw(k) @ s.articulated(),
    "X' Ia X": lambda s, k: s.screw(k).T @ s.released(),
    "E A E'": lambda s, k: s.plane(k) @ s.matrix(),
    "E S E'": lambda s, k: s.plane(k) @ s.symmetric(),
}
"""Operations of table A.5, and of section A.5 for rotations about axis 0, 1 or 2."""


def general(name: str) -> Count:
    """Return the count in chasles for an operation of table A.4 or section A.5."""
    symbols = Symbols()
    return symbols.count(GENERAL[name](symbols))


def screw(name: str, axis: int) -> Count:
    """Return the count in chasles for an operation of table A.5 about axis 0, 1 or 2.

    Operations that are needed once for a new angle are included.
    """
    symbols = Symbols()
    return symbols.count(SCREW[name](symbols, axis))
