"""Visual and collision shapes of links, and the properties of each kind of shape."""

from dataclasses import dataclass, field
from typing import NamedTuple

from chasles.mathematics.spatial import Transform


@dataclass(frozen=True)
class ShapeData:
    """A visual or collision shape of a link, with its pose in the link's frame.

    Attributes
    ----------
    kind
        "box", "sphere", "cylinder", "capsule", "ellipsoid" or "mesh".
    size
        Lengths along x, y, z of a box (m); radius of a sphere (m); radius and length along z of a
        cylinder (m); radius of a capsule, and its length along z without the round ends (m);
        semi-axes of an ellipsoid (m); scale factors along x, y, z of a mesh.
    file
        Mesh file, named as in the robot file.
    color
        Red, green, blue and opacity, from 0 to 1.
    role
        One of `ROLES`. Collision shapes are drawn only if there are no visual shapes.
    bits
        MuJoCo's contype and conaffinity, if the file defines them. These bits determine contacts
        regardless of the role.
    friction
        Sliding (dimensionless), spinning (m) and rolling (m) coefficients, if the file defines
        them.
    directions
        MuJoCo's condim, the dimension of the contact.
    priority
        The shape with the higher priority determines the friction of a pair.
    """

    link: str
    kind: str
    size: tuple[float, ...]
    pose: Transform = field(default_factory=Transform.identity)
    file: str = ""
    color: tuple[float, ...] | None = None
    role: str = "visual"
    bits: tuple[int, int] | None = None
    friction: tuple[float, float, float] | None = None
    directions: int = 3
    priority: int = 0

    @property
    def collides(self) -> bool:
        """Return True if the shape can collide with other shapes."""
        return self.role == "collision" if self.bits is None else any(self.bits)


@dataclass(frozen=True)
class HeightFieldData(ShapeData):
    """Height field: a solid between a grid of heights and the plane z = -base, in its frame.

    `kind` is "hfield", and `size` contains the lengths of the grid along x and y (m). Each row of
    `heights` (m) is along x, and rows are in the order of increasing y. `base` is the thickness
    below z = 0 (m).
    """

    heights: tuple[tuple[float, ...], ...] = ()
    base: float = 0.0


ROLES = ("visual", "collision")
"""Valid roles of a shape."""


class ShapeTraits(NamedTuple):
    """Properties of a kind of shape.

    `sizes` contains the name of each size in files, and its number of values. `halved` contains the
    indices of the sizes that MuJoCo stores as half lengths. `urdf` is True if URDF supports the
    shape.
    """

    sizes: tuple[tuple[str, int], ...]
    halved: tuple[int, ...] = ()
    urdf: bool = True


_ROUND = (("radius", 1), ("length", 1))

SHAPE_TRAITS = {
    "box": ShapeTraits((("size", 3),), halved=(0, 1, 2)),
    "sphere": ShapeTraits((("radius", 1),)),
    "cylinder": ShapeTraits(_ROUND, halved=(1,)),
    "capsule": ShapeTraits(_ROUND, halved=(1,)),
    "ellipsoid": ShapeTraits((("radii", 3),), urdf=False),
    "mesh": ShapeTraits((("scale", 3),)),
}
"""Properties of each kind of shape, such as its size parameters."""

SHAPES = {kind: sum(count for _, count in row.sizes) for kind, row in SHAPE_TRAITS.items()}
"""Number of size parameters of each kind of shape."""
