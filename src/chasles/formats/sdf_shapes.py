"""Shapes of links in SDF files, `<visual>` and `<collision>`: read, and written.

Meshes are named, never opened. A shape that cannot be drawn is left out with a note: the motion
does not depend on it.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from lxml import etree

from chasles.errors import ModelError
from chasles.formats.mesh_files import renamed
from chasles.formats.sdf_document import content, number, placed
from chasles.formats.sdf_elements import add_pose, add_text
from chasles.formats.sdf_frames import Node, relative
from chasles.formats.xml_document import added, words
from chasles.formats.xml_part import Part
from chasles.model import ROLES, SHAPE_TRAITS, ShapeData
from chasles.model.build import compose

# Reading ---------------------------------------------------------------------------------------


def shapes(link: Node, file: str) -> Iterator[ShapeData]:
    """The shapes of a link, in its frame; digits of their angles are taken as printed.

    file: the robot's, from whose folder meshes are named.
    """
    part = link.part
    as_printed = replace(part, source=replace(part.source, snap=False))
    for shape in as_printed.all(*ROLES):
        try:
            yield _shape(shape, link, file)
        except ModelError as error:
            part.source.notes.append(f"{error.message}; the shape is left out")


def _shape(part: Part, link: Node, file: str) -> ShapeData:
    shape, base = drawn(part, link.name, file)
    if not base:
        return shape
    assert link.scope is not None, "links stand in a model or a world"
    return replace(shape, pose=compose(shape.pose, relative(link.scope.find(base, part), link)))


def drawn(part: Part, link: str, file: str) -> tuple[ShapeData, str]:
    """What a `<visual>` or `<collision>` of a link says, and the name of the frame of its pose."""
    geometry = part.need("geometry")
    found = next(geometry.all(*SHAPE_TRAITS), None)
    if found is None:
        raise geometry.error("E-SDF-033", f"geometry has none of {', '.join(SHAPE_TRAITS)}")
    pose, base = placed(part)
    name = ""
    if found.tag == "mesh":
        name = renamed(content(found.need("uri")), part.source.file, file)
        scale = found.find("scale")
        size = (1.0, 1.0, 1.0) if scale is None else _numbers(scale, 3)
    else:
        size = tuple(
            x for tag, n in SHAPE_TRAITS[found.tag].sizes for x in _numbers(found.need(tag), n)
        )
        if min(size) <= 0.0:
            raise found.error("E-SDF-034", f"{found.tag} has no volume", "give sizes above 0")
    color = _color(part) if part.tag == "visual" else None
    return ShapeData(link, found.tag, size, pose, name, color, part.tag), base


def _numbers(part: Part, count: int) -> tuple[float, ...]:
    return tuple(map(float, part.numerals(part.tag, content(part), count)))


def _color(visual: Part) -> tuple[float, ...] | None:
    """Red, green, blue and opacity; none where the file has no such numbers."""
    material = visual.find("material")
    diffuse = None if material is None else material.find("diffuse")
    if diffuse is None:
        return None
    count = 3 if len(content(diffuse).split()) == 3 else 4
    *rgb, opacity = (*_numbers(diffuse, count), 1.0)[:4]
    opacity *= 1.0 - number(visual, "transparency", 0.0)
    return tuple(min(max(x, 0.0), 1.0) for x in (*rgb, opacity))


# Writing ---------------------------------------------------------------------------------------


def add_shape(link: etree._Element, shape: ShapeData, k: int) -> None:
    """A shape of a link, its k-th: names differ within a link."""
    element = added(link, shape.role, name=f"{shape.role} {k}")
    add_pose(element, shape.pose)
    kind = added(added(element, "geometry"), shape.kind)
    if shape.kind == "mesh":
        add_text(kind, "uri", shape.file)
    numbers = iter(shape.size)
    for tag, count in SHAPE_TRAITS[shape.kind].sizes:
        add_text(kind, tag, words(islice(numbers, count)))
    if shape.color is not None and shape.role == "visual":
        material = added(element, "material")
        for light in ("ambient", "diffuse"):
            add_text(material, light, words(shape.color))
