"""MJCF files as lint sees them: the inertias that a file says, which MuJoCo may refuse."""

from chasles.formats.files import load
from chasles.formats.xml_document import parse
from chasles.formats.xml_part import Part, Source
from chasles.lint.sheet import Link, Sheet
from chasles.lint.xml_values import Values, tensor


def survey(file: str, *, meshes: bool) -> Sheet:
    """Every `<inertial>`; shapes are left to MuJoCo, which makes inertias of them itself."""
    data = load(file)
    root = parse(file, data)
    values, source = Values(), Source(file, "", False, [])
    links = []
    for element in root.iter("body"):
        part = Part(source, element, f"link {element.get('name', '')!r}")
        inertial = part.find("inertial")
        if inertial is not None:
            links.append(_link(values, part, inertial))
    return Sheet(file, tuple(links), faults=tuple(values.faults), document=(data, root))


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
