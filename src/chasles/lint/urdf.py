"""URDF files as lint sees them: every link, joint and shape, whatever the rest of the file says."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace

from lxml import etree

from chasles.formats import urdf
from chasles.formats.files import load
from chasles.formats.urdf_shapes import drawn
from chasles.formats.xacro import expanded
from chasles.formats.xml_document import parse
from chasles.formats.xml_part import MOMENTS, ORIGIN, Part
from chasles.lint.documents import Document, XmlDocument
from chasles.lint.sheet import Joint, Link, Sheet
from chasles.lint.xml_links import found, link, owned, tolerant
from chasles.model.joints import spelled

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
    source, faults = tolerant(file, root.tag.removesuffix("robot"))
    robot = Part(source, root, "robot")
    links = [_link(owned(part), meshes) for part in robot.all("link")]
    joints = [_joint(owned(part)) for part in robot.all("joint")]
    return Sheet(
        file,
        tuple(links),
        tuple(joints),
        tuple(_references(robot)),
        found(faults),
        needs_limits=True,
        document=document,
    )


def _link(part: Part, meshes: bool) -> Link:
    """A link, where its moments stand."""
    seen = link(part, urdf.inertial, lambda shape: drawn(shape, "", {}), meshes=meshes)
    inertial = part.find("inertial")
    if inertial is None or seen.mass is None:
        return seen
    return replace(seen, where=(inertial.find("inertia") or inertial).where)


def _joint(part: Part) -> Joint:
    limit, mimic, at = part.find("limit"), part.find("mimic"), part.find("origin")
    parent, child = part.find("parent"), part.find("child")
    word = part.element.get("type", "")
    given = {} if limit is None else {k: limit for k in _LIMITS if k in limit.element.attrib}
    return Joint(
        part.element.get("name", ""),
        part.where,
        spelled("URDF", own=True).get(word, word),
        None if parent is None else parent.element.get("link"),
        "" if child is None else child.element.get("link", ""),
        {key: element.number(key) for key, element in given.items()},
        None if mimic is None else urdf.follows(mimic),
        _numbers(at, "xyz"),
        _numbers(at, "rpy"),
        place=None if limit is None else limit.element,
    )


def _numbers(origin: Part | None, key: str) -> tuple[float, ...]:
    return tuple(map(float, ["0"] * 3 if origin is None else origin.words(key, 3, "0 0 0")))


def _references(robot: Part) -> Iterator[tuple[str, str, str, str]]:
    """The joints that transmissions name, and the parts that simulators' extensions do."""
    for part in robot.all("transmission"):
        who = f"transmission {part.element.get('name', '')!r}"
        for joint in part.all("joint"):
            yield joint.where, who, "joint", joint.element.get("name", "")
    for part in robot.all("gazebo"):
        if "reference" in part.element.attrib:
            yield part.where, "gazebo", "part", part.element.get("reference", "")
