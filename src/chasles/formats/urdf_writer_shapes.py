"""Shapes of a URDF file, written: `<visual>` and `<collision>` of links, and their colours."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from lxml import etree

from chasles.formats.numbers import angle_word
from chasles.formats.xml_document import added, words
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import rpy_from_matrix
from chasles.mathematics.spatial import Transform
from chasles.model import SHAPE_TRAITS, Description, ShapeData
from chasles.model.build import compose


def add_shapes(root: etree._Element, source: Description) -> list[str]:
    """Write all shapes into the links of a document; notes say which have no place.

    Most readers know no capsules: these are written as a cylinder between two spheres.
    """
    notes, links = [], {link.get("name"): link for link in root.iterfind("link")}
    colors = {shape.color: "" for shape in source.shapes if shape.color and shape.role == "visual"}
    for k, color in enumerate(colors):
        colors[color] = f"color {k + 1}"
        added(added(root, "material", name=colors[color]), "color", rgba=words(color or ()))
    for shape in source.shapes:
        if not SHAPE_TRAITS[shape.kind].urdf:
            notes.append(f"link {shape.link!r}: URDF has no {shape.kind}s; the shape is left out")
            continue
        for part in _parts(shape):
            element = added(links[shape.link], shape.role)
            add_origin(element, part.pose)
            _geometry(added(element, "geometry"), part)
            if part.color in colors and shape.role == "visual":
                added(element, "material", name=colors[part.color])
    return notes


def add_origin(element: etree._Element, pose: Transform) -> None:
    """The place of what an element describes."""
    angles = rpy_from_matrix(pose.R)
    added(element, "origin", xyz=words(pose.r), rpy=" ".join(map(angle_word, angles)))


def _geometry(geometry: etree._Element, shape: ShapeData) -> None:
    file = {"filename": shape.file} if shape.kind == "mesh" else {}
    numbers = iter(shape.size)
    sizes = {key: words(islice(numbers, n)) for key, n in SHAPE_TRAITS[shape.kind].sizes}
    added(geometry, shape.kind, **file, **sizes)


def _parts(shape: ShapeData) -> Iterator[ShapeData]:
    """The shapes that a shape is written as."""
    if shape.kind != "capsule":
        yield shape
        return
    radius, length = shape.size
    yield replace(shape, kind="cylinder")
    for z in (-0.5 * length, 0.5 * length):
        end = replace(Transform.identity(), r=Vector.of(0.0, 0.0, z))
        yield replace(shape, kind="sphere", size=(radius,), pose=compose(end, shape.pose))
