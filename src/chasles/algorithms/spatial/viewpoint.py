"""How a frame's motion is written: at which point, along which axes."""

from dataclasses import dataclass
from typing import Literal

from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Motion, Motions, Transform
from chasles.model.model import Frame

Axes = Literal["world", "frame"]
At = Literal["frame", "world"] | tuple[float, float, float]
Kind = Literal["classical", "spatial", "proper"]


@dataclass(frozen=True)
class Viewpoint:
    """A point P of space, given in the world, and the rotation from world axes to the axes used.

    moves, turns: whether the point and the axes follow the frame.
    """

    P: Vector
    E: Rotation
    moves: bool
    turns: bool

    @staticmethod
    def of(X: Transform, axes: Axes, at: At) -> "Viewpoint":
        """For a frame whose transform from the world is X.

        at: "frame" is the frame's origin, "world" the point of the frame's body that passes through
        the world's origin, (x, y, z) a point given in the frame.
        """
        E = X.E if axes == "frame" else Rotation()
        if at == "world":
            return Viewpoint(Vector.zero(), E, False, axes == "frame")
        return Viewpoint(X.locate(_in_frame(at)), E, True, axes == "frame")

    def from_body(self, X: Transform, S: Motions) -> Motions:
        """Motions of a body (world to body: X), written at P along the world's axes."""
        return Transform(X.E, X.r - self.P).inverse() @ S

    def turned(self, m: Motion) -> Motion:
        """A motion at P from the world's axes to the axes used."""
        return Motion(self.E @ m.angular, self.E @ m.linear)


def point_in_body(frame: Frame, X: Transform, at: At) -> Vector:
    """The same point in the frame of its body, whose transform from the world is X."""
    return X.E @ -X.r if at == "world" else frame.placement.locate(_in_frame(at))


def _in_frame(at: At) -> Vector:
    assert at != "world", "which lies elsewhere in the frame at every moment"
    return Vector.zero() if at == "frame" else Vector(at)
