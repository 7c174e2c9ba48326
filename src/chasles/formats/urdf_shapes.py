"""Shapes of links in URDF files: `<visual>` and `<collision>`. Meshes are named, never opened.

A shape that cannot be drawn is left out with a note: the motion does not depend on it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from chasles.errors import ModelError
from chasles.formats.xml_part import Part
from chasles.mathematics.spatial import Transform
from chasles.model import ROLES, SHAPE_TRAITS, ShapeData

Color = tuple[float, ...]


def materials(robot: Part) -> dict[str, Color]:
    """The colours that a document names for all links."""
    found = {}
    for material in robot.all("material"):
        color = _color(material, {})
        if color is not None and material.element.get("name"):
            found[material.text("name")] = color
    return found


def shapes(link: Part, named: Mapping[str, Color]) -> Iterator[ShapeData]:
    """The shapes of a link, in its frame; digits of their angles are taken as printed."""
    as_printed = replace(link, source=replace(link.source, snap=False))
    for part in as_printed.all(*ROLES):
        try:
            yield drawn(part, link.text("name"), named)
        except ModelError as error:
            link.source.notes.append(f"{error.message}; the shape is left out")


def origin(part: Part) -> Transform:
    """From `<origin xyz rpy>`: roll about x, pitch about y, yaw about z, all of the outer frame."""
    given = part.find("origin")
    if given is None:
        return Transform.identity()
    angles = given.words("rpy", 3, "0 0 0")
    return given.placement(given.vector("xyz", "0 0 0"), angles)


def drawn(part: Part, link: str, named: Mapping[str, Color]) -> ShapeData:
    """What a `<visual>` or `<collision>` of a link says."""
    geometry, kinds = (
        part.need("geometry"),
        [kind for kind, row in SHAPE_TRAITS.items() if row.urdf],
    )
    found = next(geometry.all(*kinds), None)
    if found is None:
        raise geometry.error("E-URDF-005", f"geometry has none of {', '.join(kinds)}", "add one")
    is_mesh = found.tag == "mesh"
    file, usual = (found.text("filename"), "1 1 1") if is_mesh else ("", "")
    sizes = SHAPE_TRAITS[found.tag].sizes
    size = tuple(float(word) for key, n in sizes for word in found.words(key, n, usual))
    if not is_mesh and min(size) <= 0.0:
        raise found.error("E-URDF-006", f"{found.tag} has no volume", "give sizes above 0")
    material = part.find("material")
    return ShapeData(
        link,
        found.tag,
        size,
        origin(part),
        file,
        None if material is None or part.tag != "visual" else _color(material, named),
        part.tag,
    )


def _color(material: Part, named: Mapping[str, Color]) -> Color | None:
    """Red, green, blue and opacity; none where the file has no such numbers."""
    color = material.find("color")
    if color is None:
        return named.get(material.element.get("name", ""))
    try:
        return tuple(min(max(float(x), 0.0), 1.0) for x in color.words("rgba", 4))
    except ModelError as error:
        material.source.notes.append(f"{error.message}; the colour is left out")
        return None
