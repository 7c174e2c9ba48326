"""Read shapes and inertias from SDF files, or compute inertias from shapes."""

from collections.abc import Iterator
from dataclasses import replace

from chasles.errors import ModelError
from chasles.formats import solids
from chasles.formats.files import renamed
from chasles.formats.sdf_frames import Node, placed, relative
from chasles.formats.xml_file import MOMENTS, Inertial, Part
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import SHAPE_TRAITS, ShapeData
from chasles.model.build import compose

DENSITY = 1000.0
"""Default density for computing masses from shapes (kg/m3)."""


def uniform(node: Node, inertial: Part, file: str) -> RigidInertia:
    """Compute the inertia of a link from its collision shapes, scaled to the mass in the file.

    The file requests this with `<inertial auto="true">`.

    As in sdformat's Link::ResolveAutoInertials, the density is read from `<collision>` or, if it is
    missing there, from `<inertial>`; the default is 1000 kg/m3. A shape with unknown volume has
    mass 1 kg and moments of inertia 1 kg m2.
    """
    plain = replace(node.part, source=replace(node.part.source, snap=False))
    parts, total, unknown = list(plain.all("collision")), RigidInertia.zero(), 0
    if not parts:
        raise inertial.error("E-SDF-220", "auto is set, but there is no <collision>", "add one")
    for part in parts:
        solid = _solid(part, node, file)
        density = part.number("density", inertial.number("density", DENSITY))
        if not density > 0.0:
            raise part.error("E-SDF-590", f"density is {density:g}", "give a positive number")
        if solid is None or not solid.volume > 0.0:
            unknown += 1
            total += inertial_of(node.part).about_origin()
        else:
            tensor = Symmetric(*(density * x for x in solids.six(solid.moments)))
            center = Vector(tuple(solid.center.tolist()))
            total += RigidInertia.from_center(density * solid.volume, center, tensor)
    mass = inertial.number("mass", total.m)
    left = f"; {unknown} shapes of unknown volume count as 1 kg and 1 kg m2" if unknown else ""
    inertial.note(
        f"{mass:g} kg, computed from the volumes of its {len(parts)} collision shapes{left}"
    )
    scale = mass / total.m
    return RigidInertia(mass, total.h * scale, Symmetric(*(x * scale for x in total.I)))


def _solid(part: Part, node: Node, file: str) -> solids.Solid | None:
    """Return a `<collision>` as a solid in the link frame; None if its volume is unknown."""
    cone = part.need("geometry").find("cone")
    if cone is not None:
        pose, base = placed(part)
        outer = relative(node.beside(base, part), node) if base else Transform.identity()
        made = solids.cone(cone.number("radius", 0.5), cone.number("length", 1.0))
        return solids.at(made, compose(pose, outer))
    try:
        return solids.of(_placed(part, node, file), file, meshes=True)
    except ModelError:
        return None


def inertial_of(inertial: Part) -> Inertial:
    """Read an `<inertial>` element; return SDF's default inertia for any other element."""
    if inertial.tag != "inertial":
        return Inertial(1.0, Transform.identity(), [1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    if inertial.find("fluid_added_mass") is not None:
        inertial.note("fluid_added_mass is ignored")
    tensor = inertial.find("inertia")
    usual = zip(MOMENTS, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0), strict=True)
    moments = [x if tensor is None else tensor.number(tag, x) for tag, x in usual]
    pose, base = placed(inertial)
    if base:
        inertial.note("relative_to of its pose is ignored, as SDF specifies")
    return Inertial(inertial.number("mass", 1.0), pose, moments)


def shapes(link: Node, file: str) -> Iterator[ShapeData]:
    """Return the shapes of a link in its frame; mesh paths are relative to the robot file."""
    return link.part.shapes(lambda part: _placed(part, link, file))


def _placed(part: Part, link: Node, file: str) -> ShapeData:
    shape, base = drawn(part, link.name, file)
    outer = relative(link.beside(base, part), link) if base else Transform.identity()
    return replace(shape, pose=compose(shape.pose, outer)) if base else shape


def drawn(part: Part, link: str, file: str) -> tuple[ShapeData, str]:
    """Read a `<visual>` or `<collision>`; return the shape and the reference frame of its pose."""
    geometry = part.need("geometry")
    found = geometry.find(*SHAPE_TRAITS)
    if found is None:
        raise geometry.error("E-SDF-033", f"geometry contains none of {', '.join(SHAPE_TRAITS)}")
    pose, base = placed(part)
    name = ""
    if found.tag == "mesh" and found.need("uri"):
        name = renamed(found.content("uri"), part.source.file, file)
    size = found.sizes()
    if found.tag != "mesh" and min(size) <= 0.0:
        raise found.error("E-SDF-034", f"{found.tag} has no volume", "give positive sizes")
    color = _color(part) if part.tag == "visual" else None
    return ShapeData(link, found.tag, size, pose, name, color, part.tag), base


def _color(visual: Part) -> tuple[float, ...] | None:
    """Return the RGBA color of a visual shape; None if the file does not specify one."""
    material = visual.find("material")
    if material is None or material.find("diffuse") is None:
        return None
    count = 3 if len(material.content("diffuse").split()) == 3 else 4
    *rgb, opacity = (*map(float, material.words("diffuse", count)), 1.0)[:4]
    opacity *= 1.0 - visual.number("transparency", 0.0)
    return tuple(min(max(x, 0.0), 1.0) for x in (*rgb, opacity))
