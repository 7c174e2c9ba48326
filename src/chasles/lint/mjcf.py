"""MJCF files as lint sees them: the inertias that a file says, which MuJoCo may refuse."""

import math
from collections.abc import Iterator

from lxml import etree

from chasles.formats.files import load
from chasles.formats.xml_document import parse
from chasles.formats.xml_part import Part, Source
from chasles.lint.documents import XmlDocument
from chasles.lint.sheet import Joint, Link, Sheet
from chasles.lint.xml_values import Values, tensor


def survey(file: str, *, meshes: bool) -> Sheet:
    """Every `<inertial>`, and ranges of joints, which MuJoCo leaves out where they are inverted;
    shapes are left to it, which makes inertias of them itself."""
    data = load(file)
    root = parse(file, data)
    values, source = Values(), Source(file, "", False, [])
    links = []
    for element in root.iter("body"):
        part = Part(source, element, f"link {element.get('name', '')!r}")
        inertial = part.find("inertial")
        if inertial is not None:
            links.append(_link(values, part, inertial))
    radians = any(x.get("angle") == "radian" for x in root.iter("compiler"))
    angle = 1.0 if radians else math.pi / 180.0
    joints = [_joint(values, part, angle) for part in _bounded(root, source)]
    document = XmlDocument(file, data, root)
    return Sheet(file, tuple(links), tuple(joints), faults=tuple(values.faults), document=document)


def _link(values: Values, body: Part, inertial: Part) -> Link:
    name, faults = body.element.get("name", ""), len(values.faults)
    if "fullinertia" in inertial.element.attrib:
        moments = values.numbers(inertial, "fullinertia", "0 0 0 0 0 0")
    else:
        moments = (*values.numbers(inertial, "diaginertia", "0 0 0"), 0.0, 0.0, 0.0)
    mass = values.number(inertial, "mass")
    if len(values.faults) > faults:
        return Link(name, inertial.where)
    return Link(
        name,
        inertial.where,
        mass,
        moments=tensor(*moments),
        place=inertial.element,
    )


def _bounded(root: etree._Element, source: Source) -> Iterator[Part]:
    """Joints of bodies that say their range."""
    for body in root.iter("body"):
        for element in body.findall("joint"):
            if element.get("range"):
                yield Part(source, element, f"joint {element.get('name', '')!r}")


def _joint(values: Values, part: Part, angle: float) -> Joint:
    """A range, in rad where it is one of angles; links that it connects are left to MuJoCo."""
    slides = part.element.get("type") == "slide"
    lower, upper = (x if slides else x * angle for x in values.numbers(part, "range", "0 0"))
    name, given = part.element.get("name", ""), {"lower": lower, "upper": upper}
    kind = "prismatic" if slides else "revolute"
    return Joint(name, part.where, kind, None, "", given, place=part.element)
