"""URDF files as lint sees them: every link, joint and shape, whatever the rest of the file says."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from lxml import etree

from chasles.formats.files import load
from chasles.formats.xacro import expanded
from chasles.formats.xml_document import parse
from chasles.formats.xml_part import MOMENTS, ORIGIN, Part, Source
from chasles.lint import solids
from chasles.lint.documents import Document, XmlDocument
from chasles.lint.sheet import Joint, Link, Sheet
from chasles.lint.solids import Solid
from chasles.lint.xml_values import Values, rotation, tensor
from chasles.model import Mimic

_LIMITS = ("lower", "upper", "effort", "velocity")


def survey(file: str, *, meshes: bool, arguments: Mapping[str, str] | None = None) -> Sheet:
    """What a .urdf or .xacro file says; meshes: also of mesh files that it names."""
    if file.lower().endswith(".xacro"):
        sheet = _sheet(file, expanded(file, arguments), meshes, document=None)
        return _with_source(sheet, XmlDocument(file, data := load(file), parse(file, data)))
    data = load(file)
    root = parse(file, data)
    return _sheet(file, root, meshes, document=XmlDocument(file, data, root))


def _with_source(sheet: Sheet, document: XmlDocument) -> Sheet:
    """What was expanded from a xacro file, with the places where numbers are written in that."""
    lines: dict[str, list[etree._Element]] = {}
    for element in document.root.iter():
        lines.setdefault(f"{os.path.abspath(sheet.file)}:{element.sourceline}", []).append(element)

    def written(place: etree._Element | None, names: tuple[str, ...]) -> etree._Element | None:
        """The element in the file, where all its numbers are digits there."""
        if place is None:
            return None
        alike = [x for x in lines.get(place.get(ORIGIN, ""), ()) if x.tag == place.tag]
        plain = all(alike[0].get(key) == place.get(key) for key in names) if alike else False
        return alike[0] if len(alike) == 1 and plain else None

    return replace(
        sheet,
        links=tuple(replace(x, place=written(x.place, MOMENTS)) for x in sheet.links),
        joints=tuple(replace(x, place=written(x.place, _LIMITS)) for x in sheet.joints),
        document=document,
    )


def _sheet(file: str, root: etree._Element, meshes: bool, document: Document | None) -> Sheet:
    values, space = Values(), root.tag.removesuffix("robot")
    robot = Part(Source(file, space, False, []), root, "robot")
    links = [_link(values, _owned(part), meshes) for part in robot.all("link")]
    joints = [_joint(values, _owned(part)) for part in robot.all("joint")]
    return Sheet(
        file,
        tuple(links),
        tuple(joints),
        tuple(_references(robot)),
        tuple(values.faults),
        needs_limits=True,
        document=document,
    )


def _owned(part: Part) -> Part:
    name = part.element.get("name", "")
    return Part(part.source, part.element, f"{part.tag} {name!r}")


# Links -----------------------------------------------------------------------------------------


def _link(values: Values, part: Part, meshes: bool) -> Link:
    name = part.element.get("name", "")
    shapes = solids.outer(
        *(_shapes(values, part, role, meshes) for role in ("collision", "visual"))
    )
    inertial = part.find("inertial")
    if inertial is None:
        return Link(name, part.where, shapes=shapes)
    origin, inertia = inertial.find("origin"), inertial.find("inertia")
    faults = len(values.faults)
    mass = values.number(inertial.find("mass"), "value")
    moments = tensor(*(values.number(inertia, key) for key in MOMENTS))
    R, r = _pose(values, origin)
    if len(values.faults) > faults:
        return Link(name, part.where, shapes=shapes)
    return Link(
        name,
        inertial.where if inertia is None else inertia.where,
        mass,
        r,
        moments,
        R,
        shapes,
        place=None if inertia is None else inertia.element,
    )


def _pose(values: Values, origin: Part | None) -> tuple[np.ndarray, np.ndarray]:
    """The axes and the origin of a frame in another."""
    x = values.numbers(origin, "xyz", "0 0 0")
    return rotation(*values.numbers(origin, "rpy", "0 0 0")), np.array(x)


def _shapes(values: Values, link: Part, role: str, meshes: bool) -> list[Solid | None]:
    """Those for one purpose, None for each that cannot be seen."""
    found: list[Solid | None] = []
    for part in link.all(role):
        geometry = part.find("geometry")
        solid = None if geometry is None else _solid(values, geometry, meshes)
        found.append(solid and solid.placed(*_pose(values, part.find("origin"))))
    return found


def _solid(values: Values, geometry: Part, meshes: bool) -> Solid | None:
    if (part := geometry.find("box")) is not None:
        return solids.box(*values.numbers(part, "size", "0 0 0"))
    if (part := geometry.find("sphere")) is not None:
        return solids.sphere(values.number(part, "radius"))
    if (part := geometry.find("cylinder")) is not None:
        return solids.cylinder(values.number(part, "radius"), values.number(part, "length"))
    if meshes and (part := geometry.find("mesh")) is not None:
        path = located(part.source.file, part.element.get("filename", ""))
        return solids.mesh(path, values.numbers(part, "scale", "1 1 1"))
    return None


def located(file: str, name: str) -> Path | None:
    """A mesh by its name in a file: a path, beside the file, or `package://` in a folder above."""
    folder = Path(os.path.abspath(file)).parent
    if name.startswith("package://"):
        package, _, rest = name.removeprefix("package://").partition("/")
        above = (folder, *folder.parents)
        places = [x / package / rest for x in above] + [
            x / rest for x in above if x.name == package
        ]
    else:
        places = [folder / name.removeprefix("file://")]
    return next((place for place in places if place.is_file()), None)


# Joints ----------------------------------------------------------------------------------------


def _joint(values: Values, part: Part) -> Joint:
    origin, limit, mimic = (part.find(tag) for tag in ("origin", "limit", "mimic"))
    parent, child = part.find("parent"), part.find("child")
    return Joint(
        part.element.get("name", ""),
        part.where,
        part.element.get("type", ""),
        None if parent is None else parent.element.get("link"),
        "" if child is None else child.element.get("link", ""),
        {
            key: values.number(limit, key)
            for key in _LIMITS
            if limit is not None and key in limit.element.attrib
        },
        None if mimic is None else _mimic(values, mimic),
        values.numbers(origin, "xyz", "0 0 0"),
        values.numbers(origin, "rpy", "0 0 0"),
        place=None if limit is None else limit.element,
    )


def _mimic(values: Values, mimic: Part) -> Mimic:
    ratio, offset = values.number(mimic, "multiplier", 1.0), values.number(mimic, "offset")
    return Mimic(mimic.element.get("joint", ""), ratio, offset)


def _references(robot: Part) -> Iterator[tuple[str, str, str, str]]:
    """The joints that transmissions name, and the parts that simulators' extensions do."""
    for part in robot.all("transmission"):
        who = f"transmission {part.element.get('name', '')!r}"
        for joint in part.all("joint"):
            yield joint.where, who, "joint", joint.element.get("name", "")
    for part in robot.all("gazebo"):
        if "reference" in part.element.attrib:
            yield part.where, "gazebo", "part", part.element.get("reference", "")
