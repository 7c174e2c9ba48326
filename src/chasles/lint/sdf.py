"""SDF files as lint sees them: the links of a file that say their inertia, and their shapes."""

from chasles.formats.files import load
from chasles.formats.sdf import inertial_of
from chasles.formats.sdf_document import number
from chasles.formats.sdf_shapes import drawn
from chasles.formats.xml_document import parse
from chasles.formats.xml_part import Part
from chasles.lint.documents import XmlDocument
from chasles.lint.sheet import Joint, Sheet
from chasles.lint.xml_links import found, link, owned, tolerant
from chasles.model.joints import spelled


def survey(file: str, *, meshes: bool) -> Sheet:
    """What a file says of its links and joints; what it includes is not looked at."""
    data = load(file)
    root = parse(file, data)
    source, faults = tolerant(file)
    parts = {tag: [owned(Part(source, x, "")) for x in root.iter(tag)] for tag in ("link", "joint")}
    links = [
        link(part, inertial_of, lambda shape: drawn(shape, "", file)[0], meshes=meshes)
        for part in parts["link"]
        if part.find("inertial") is not None
    ]
    joints = tuple(map(_joint, parts["joint"]))
    document = XmlDocument(file, data, root)
    return Sheet(file, tuple(links), joints, faults=found(faults), document=document)


def _joint(part: Part) -> Joint:
    axis, word = part.find("axis"), part.element.get("type", "")
    limit = None if axis is None else axis.find("limit")
    given = {} if limit is None else {key: limit for key in ("lower", "upper") if limit.find(key)}
    return Joint(
        part.element.get("name", ""),
        part.where,
        spelled("SDF").get(word, word),
        None,
        "",
        {key: number(element, key, 0.0) for key, element in given.items()},
        place=None if limit is None else limit.element,
    )
