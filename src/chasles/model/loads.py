"""External forces one by one: where each acts, and how it goes with the body it acts on."""

from collections.abc import Iterable
from dataclasses import dataclass

from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force, Motion
from chasles.model.model import WORLD, Model


@dataclass(frozen=True, slots=True)
class Load:
    """An external force f on a body, in body coordinates, whose six numbers are held fixed.

    point: of the moment, in the body. moves, turns: that point and the axes follow the body. frame:
    the frame or link that it is exerted on. contact: where and how it presses, in the world, if it
    is the normal force of a contact.
    """

    body: int
    f: Force
    point: Vector
    moves: bool
    turns: bool
    frame: str = ""
    contact: tuple[Vector, Vector] | None = None

    def change(self, d: Motion) -> Force:
        """Return the change of f by a small displacement d of the body, in its own frame.

        By the part of d in which it does not follow, the force seems to go the other way.
        """
        w = Vector.zero() if self.turns else d.angular
        u = Vector.zero() if self.moves else d.linear + d.angular.cross(self.point)
        return -Motion(w, u - w.cross(self.point)).cross(self.f)


def by_body(model: Model, loads: Iterable[Load]) -> dict[int, Force]:
    """Return the sum of the external forces on each body, in body coordinates."""
    total = {i: Force.zero() for i in range(WORLD, len(model.parts))}
    for load in loads:
        total[load.body] += load.f
    return total
