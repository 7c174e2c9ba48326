"""External loads and their derivatives with respect to body motion."""

from collections.abc import Iterable
from dataclasses import dataclass

from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force, Motion
from chasles.model.model import WORLD, Model


@dataclass(frozen=True, slots=True)
class Load:
    """An external wrench on a body, with components f in body coordinates.

    Attributes
    ----------
    point
        Reference point of the moment, in body coordinates.
    moves
        True if the point moves with the body.
    turns
        True if the axes of the wrench rotate with the body.
    frame
        Frame or link on which the wrench acts.
    contact
        Contact point and force in the world, if the wrench is a contact's normal force.
    """

    body: int
    f: Force
    point: Vector
    moves: bool
    turns: bool
    frame: str = ""
    contact: tuple[Vector, Vector] | None = None

    def change(self, d: Motion) -> Force:
        """Return the change in the wrench due to a small displacement `d`, in body coordinates.

        The change is zero if both the point and the axes follow the body.
        """
        w = Vector.zero() if self.turns else d.angular
        u = Vector.zero() if self.moves else d.linear + d.angular.cross(self.point)
        return -Motion(w, u - w.cross(self.point)).cross(self.f)


def by_body(model: Model, loads: Iterable[Load]) -> dict[int, Force]:
    """Return the total external force on each body, in body coordinates."""
    total = {i: Force.zero() for i in range(WORLD, len(model.parts))}
    for load in loads:
        total[load.body] += load.f
    return total
