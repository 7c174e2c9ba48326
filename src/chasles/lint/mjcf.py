"""MJCF files as lint sees them: the inertias that a file says, which MuJoCo may refuse."""

import math
from collections.abc import Iterator

from lxml import etree

from chasles.formats.files import load
from chasles.formats.xml_document import parse
from chasles.formats.xml_part import Part, Source
from chasles.lint.documents import XmlDocument
from chasles.lint.sheet import Joint, Link, Sheet
from chasles.lint.xml_links import found, owned, tensor, tolerant
from chasles.model.joints import spelled


def survey(file: str, *, meshes: bool) -> Sheet:
    """Every `<inertial>`, and ranges of joints, which MuJoCo leaves out where they are inverted;
    shapes are left to it, which makes inertias of them itself."""
    data = load(file)
    root = parse(file, data)
    source, faults = tolerant(file)
    links = []
    for element in root.iter("body"):
        inertial = owned(Part(source, element, ""), "link").find("inertial")
        if inertial is not None:
            links.append(_link(element.get("name", ""), inertial))
    radians = any(x.get("angle") == "radian" for x in root.iter("compiler"))
    angle = 1.0 if radians else math.pi / 180.0
    joints = [_joint(part, angle) for part in _bounded(root, source)]
    document = XmlDocument(file, data, root)
    return Sheet(file, tuple(links), tuple(joints), faults=found(faults), document=document)


def _link(name: str, inertial: Part) -> Link:
    faults = inertial.source.faults
    assert faults is not None, "faults are collected"
    known = len(faults)
    if "fullinertia" in inertial.element.attrib:
        moments = inertial.words("fullinertia", 6)
    else:
        moments = [*inertial.words("diaginertia", 3), "0", "0", "0"]
    mass = inertial.number("mass")
    if len(faults) > known:
        return Link(name, inertial.where)
    return Link(
        name,
        inertial.where,
        mass,
        moments=tensor(*map(float, moments)),
        place=inertial.element,
    )


def _bounded(root: etree._Element, source: Source) -> Iterator[Part]:
    """Joints of bodies that say their range."""
    for body in root.iter("body"):
        for element in body.findall("joint"):
            if element.get("range"):
                yield owned(Part(source, element, ""))


def _joint(part: Part, angle: float) -> Joint:
    """A range, in rad where it is one of angles; links that it connects are left to MuJoCo."""
    slides = part.element.get("type") == "slide"
    lower, upper = (float(x) if slides else float(x) * angle for x in part.words("range", 2))
    name, given = part.element.get("name", ""), {"lower": lower, "upper": upper}
    kind = spelled("MJCF")["slide" if slides else "hinge"]
    return Joint(name, part.where, kind, None, "", given, place=part.element)
