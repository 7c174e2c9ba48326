"""Load robot files for lint, and read their raw values even if loading fails."""

import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from lxml import etree

from chasles.errors import ModelError
from chasles.formats import sdf as sdf_file
from chasles.formats import sdf_shapes, solids
from chasles.formats import urdf as urdf_file
from chasles.formats import xacro as xacro_file
from chasles.formats.files import is_number, load
from chasles.formats.registry import candidates
from chasles.formats.sdf_frames import is_set
from chasles.formats.spelling import ATTRIBUTES, SDF, URDF
from chasles.formats.toml_file import UNITS, TomlFile
from chasles.formats.xml_file import MOMENTS, ORIGIN, Inertial, Part, Source, misspelled, parse
from chasles.lint.sheet import Document, Found, Joint, Link, Sheet, Table
from chasles.model import ROLES, Description, JointData, LinkData, ShapeData
from chasles.model.description import spelled

_LIMITS = ("lower", "upper", "effort", "velocity")

_LIST = re.compile(r"[^=\n]*=\s*(\[[^\[\]#]*\])")

_LARGEST = sys.float_info.max
"""Largest finite float. Larger integers in a TOML file are not accepted as numbers."""

# Loaded robots ---------------------------------------------------------------------------------


def loaded(file: str, description: Description) -> Sheet:
    """Convert a loaded robot's links, joints and finite limits to a `Sheet`, for linting."""
    shaped = {shape.link for shape in description.shapes}
    links = (
        replace(_loaded_link(link, description.massless), shaped=link.name in shaped)
        for link in description.links
    )
    return Sheet(file, tuple(links), tuple(map(_loaded_joint, description.joints)))


def _loaded_link(link: LinkData, kinematic: bool) -> Link:
    m, c, I = link.inertia.about_center()
    moments = np.array(I.matrix().rows, dtype=float)
    moments[np.abs(moments) < 1e-12 * np.max(np.abs(list(link.inertia.I)), initial=0.0)] = 0.0
    mass = float(m) if m or np.any(moments) else None
    meant = link.massless or kinematic
    return Link(link.name, link.where, mass, np.array([*c]), moments, meant_massless=meant)


def _loaded_joint(joint: JointData) -> Joint:
    given = {key: getattr(joint.limits, key) for key in _LIMITS}
    limits = {key: x for key, x in given.items() if math.isfinite(x)}
    ends, place = (joint.parent, joint.child), tuple(map(float, joint.pose.r))
    return Joint(joint.name, joint.where, joint.kind, *ends, limits, joint.mimic, place)


def joined(sheet: Sheet, description: Description, seen: str) -> Sheet:
    """Return the values to check: values from the file, loaded values, or both (`Format.seen`)."""
    if seen == "raw":
        return sheet
    links = {link.where: link for link in sheet.links}
    joints = {joint.where: joint for joint in sheet.joints}

    def link(whole: Link) -> Link:
        raw = links.get(whole.where)
        if raw is None:
            return whole
        return replace(raw, name=whole.name) if seen == "both" else replace(whole, place=raw.place)

    def joint(whole: Joint) -> Joint:
        """Add data from the file to a loaded joint.

        The data are the location of the limits in the file. If the loaded joint has no limits, but
        the file has limits with lower > upper, the type and limits in the file are also added.
        """
        raw = joints.get(whole.where)
        if raw is None:
            return whole
        if whole.range is None and raw.range is not None and raw.range[0] > raw.range[1]:
            whole = replace(whole, kind=raw.kind, limits=raw.limits)
        return replace(whole, place=raw.place)

    whole = loaded(sheet.file, description)
    return replace(
        sheet, links=tuple(map(link, whole.links)), joints=tuple(map(joint, whole.joints))
    )


def missing(file: str, description: Description) -> Iterator[tuple[str, str, str]]:
    """Yield the location, link and name of each mesh file that does not exist."""
    where = {link.name: link.where for link in description.links}
    for link, name in dict.fromkeys((x.link, x.file) for x in description.shapes if x.file):
        if not any(map(os.path.isfile, candidates(name, file))):
            yield where.get(link, file), link, name


# XML -------------------------------------------------------------------------------------------


def urdf(file: str, *, meshes: bool) -> Sheet:
    """Read a URDF file for lint; open its mesh files if `meshes` is True."""
    notes: list[str] = []
    document = _document(file, notes)
    return replace(_urdf(file, document.root, meshes, notes), document=document)


def xacro(
    file: str, *, meshes: bool, arguments: Mapping[str, str] | None = None, trust: bool = False
) -> Sheet:
    """Expand a xacro file and read the URDF for lint; line numbers refer to the xacro file."""
    sheet = _urdf(file, xacro_file.expanded(file, arguments, trust)[0], meshes, [])
    document = _document(file, [])
    lines: dict[str, list[etree._Element]] = {}
    for element in document.root.iter():
        lines.setdefault(f"{os.path.abspath(file)}:{element.sourceline}", []).append(element)

    def written(place: etree._Element | None, names: Iterable[str]) -> etree._Element | None:
        """Return the xacro element with the same attributes as `place`, or None if unknown."""
        if place is None:
            return None
        alike = [x for x in lines.get(place.get(ORIGIN, ""), ()) if x.tag == place.tag]
        plain = len(alike) == 1 and all(alike[0].get(key) == place.get(key) for key in names)
        return alike[0] if plain else None

    return replace(
        sheet,
        links=tuple(replace(x, place=written(x.place, MOMENTS)) for x in sheet.links),
        joints=tuple(replace(x, place=written(x.place, _LIMITS)) for x in sheet.joints),
        document=document,
    )


def sdf(file: str, *, meshes: bool) -> Sheet:
    """Read an SDF file for lint: its links and joints, without included files."""
    source, notes = _tolerant(file), list[str]()
    document = _document(file, notes)

    def drawn(shape: Part) -> ShapeData:
        return sdf_shapes.drawn(shape, "", file)[0]

    links = [
        _link(part, sdf_shapes.inertial_of, drawn, meshes)
        for part in _owned(source, document.root.iter("link"))
        if (given := part.find("inertial")) is not None and not is_set(given, "auto")
    ]
    joints = map(_sdf_joint, _owned(source, document.root.iter("joint")))
    found, mended = _found(source), _noted(notes)
    typos = _misspelled(Part(source, document.root, "file"), SDF)
    parts = tuple(links), tuple(joints)
    sheet = Sheet(file, *parts, faults=found, recovered=mended, document=document)
    return replace(sheet, misspelled=typos)


def mjcf(file: str, *, meshes: bool) -> Sheet:
    """Read an MJCF file for lint: all `<inertial>` elements and joint ranges."""
    source, notes = _tolerant(file), list[str]()
    document = _document(file, notes)
    root = document.root
    bodies = list(_owned(source, root.iter("body"), "link"))
    given = ((part.element.get("name", ""), part.find("inertial")) for part in bodies)
    links = tuple(_mjcf_link(name, part) for name, part in given if part is not None)
    radians = any(x.get("angle") == "radian" for x in root.iter("compiler"))
    angle = 1.0 if radians else math.pi / 180.0
    ranged = [x for body in bodies for x in body.element.findall("joint") if x.get("range")]
    joints = tuple(_mjcf_joint(part, angle) for part in _owned(source, ranged))
    found, mended = _found(source), _noted(notes)
    return Sheet(file, links, joints, faults=found, recovered=mended, document=document)


def _document(file: str, notes: list[str]) -> Document:
    data = load(file)
    return Document(file, data, parse(file, data, notes))


def _tolerant(file: str, space: str = "") -> Source:
    """Return an XML source that collects invalid values as faults instead of raising errors."""
    return Source(file, space, False, [], [])


def _found(source: Source) -> tuple[Found, ...]:
    """Return findings for the invalid values that were recorded while a source was read."""
    return tuple(Found(*fault) for fault in source.faults or ())


def _misspelled(root: Part, *known: Mapping[str, tuple[str, ...]]) -> tuple[Found, ...]:
    """Return findings for the misspelled elements and attributes of a document."""
    slips = misspelled(root, *known)
    return tuple(Found(slip.part.owner, slip.part.where, *slip[1:]) for slip in slips)


def why(file: str, error: ModelError) -> Found:
    """Convert a loading error to a finding."""
    return Found(error.part or "file", error.place or file, error.problem, error.remedy)


def _noted(notes: Iterable[str]) -> tuple[Found, ...]:
    """Convert notes of the form "file:line: part: text" to findings."""
    told = (note.split(": ", 2) for note in dict.fromkeys(notes))
    return tuple(Found(part, where, what) for where, part, what in told)


def _owned(source: Source, elements: Iterable[etree._Element], what: str = "") -> Iterator[Part]:
    """Yield a `Part` for each XML element, named by `what` (default: the tag) in messages."""
    for element in elements:
        part = Part(source, element, "")
        yield replace(part, owner=f"{what or part.tag} {element.get('name', '')!r}")


def _link(
    part: Part,
    inertial: Callable[[Part], Inertial],
    drawn: Callable[[Part], ShapeData],
    meshes: bool,
) -> Link:
    """Read a link from a robot file.

    `inertial` and `drawn` are functions that read an inertia and a shape in the file's format.
    `meshes` is False to ignore meshes.
    """

    def solid(shape: Part) -> solids.Solid | None:
        try:
            return solids.of(drawn(shape), part.source.file, meshes=meshes)
        except ModelError:  # loading the robot reports this error
            return None

    shapes = solids.outer(*([solid(each) for each in part.all(role)] for role in reversed(ROLES)))
    shaped = part.find(*ROLES) is not None
    bare = Link(part.element.get("name", ""), part.where, shapes=shapes, shaped=shaped)
    given, known = part.find("inertial"), len(part.source.faults or ())
    if given is None:
        return bare
    try:
        mass, pose, moments = inertial(given)
    except ModelError:  # also reported as a loading error
        return bare
    if len(part.source.faults or ()) > known:
        return bare
    inertia = given.find("inertia")
    return replace(
        bare,
        mass=mass,
        center=np.array([*pose.r]),
        moments=solids.tensor(*moments),
        axes=np.array(pose.R.rows),
        place=None if inertia is None else inertia.element,
    )


def _urdf(file: str, root: etree._Element, meshes: bool, notes: Sequence[str]) -> Sheet:
    robot = Part(_tolerant(file, root.tag.removesuffix("robot")), root, "robot")
    parts = {
        tag: _owned(robot.source, (x.element for x in robot.all(tag))) for tag in ("link", "joint")
    }
    links = tuple(_urdf_link(part, meshes) for part in parts["link"])
    joints = tuple(map(_urdf_joint, parts["joint"]))
    mended, ratios = _noted([*notes, *robot.source.notes]), tuple(_reductions(robot))
    found, seen = _found(robot.source), tuple(_references(robot))
    typos = _misspelled(robot, URDF, ATTRIBUTES)
    strict = replace(robot, source=replace(robot.source, faults=None))
    errors = tuple(why(file, error) for error in urdf_file.refusals(strict))
    sheet = Sheet(file, links, joints, seen, found, mended, needs_limits=True, reductions=ratios)
    return replace(sheet, refusals=errors, misspelled=typos)


def _urdf_link(part: Part, meshes: bool) -> Link:
    """Read a URDF link, and set its location to the line of its moments of inertia."""
    seen = _link(part, urdf_file.inertial, lambda shape: urdf_file.drawn(shape, "", {}), meshes)
    inertial = part.find("inertial")
    if inertial is None or seen.mass is None:
        return seen
    return replace(seen, where=(inertial.find("inertia") or inertial).where)


def _urdf_joint(part: Part) -> Joint:
    limit, mimic, at = part.find("limit"), part.find("mimic"), part.find("origin")
    ends = {tag: part.find(tag) for tag in ("parent", "child")}
    parent, child = (None if x is None else x.element.get("link") for x in ends.values())
    position, angles = (
        () if at is None else tuple(map(float, at.words(key, 3, "0 0 0"))) for key in ("xyz", "rpy")
    )
    word = part.element.get("type", "")
    return Joint(
        part.element.get("name", ""),
        part.where,
        spelled("URDF", own=True).get(word, word),
        parent,
        child or "",
        {} if limit is None else {k: limit.number(k) for k in _LIMITS if k in limit.element.attrib},
        None if mimic is None else urdf_file.follows(mimic),
        position,
        angles,
        place=None if limit is None else limit.element,
    )


def _references(robot: Part) -> Iterator[tuple[str, str, str, str]]:
    """Yield the names of joints and links to which transmissions and `<gazebo>` elements refer."""
    for part in robot.all("transmission"):
        who = f"transmission {part.element.get('name', '')!r}"
        for joint in part.all("joint"):
            yield joint.where, who, "joint", joint.element.get("name", "")
    for part in robot.all("gazebo"):
        if "reference" in part.element.attrib:
            yield part.where, "gazebo", "part", part.element.get("reference", "")


def _reductions(robot: Part) -> Iterator[tuple[str, str, float]]:
    """Yield the gear ratios of transmissions with one joint and one actuator."""
    for part in robot.all("transmission"):
        joints, actuators = list(part.all("joint")), list(part.all("actuator"))
        if len(joints) != 1 or len(actuators) != 1:
            continue
        for place in (*actuators, *joints):
            ratio = place.element.findtext("mechanicalReduction", "").strip()
            if is_number(ratio):
                yield place.where, joints[0].element.get("name", ""), float(ratio)


def _sdf_joint(part: Part) -> Joint:
    axis, word = part.find("axis"), part.element.get("type", "")
    name, kind = part.element.get("name", ""), spelled("SDF").get(word, word)
    limit = None if axis is None else axis.find("limit")
    if limit is None:
        return Joint(name, part.where, kind, None, "")
    written = [key for key in ("lower", "upper") if limit.find(key)]
    given = {key: sdf_file.bound(limit, key, 0.0) for key in written}
    return Joint(name, part.where, kind, None, "", given, place=limit.element)


def _mjcf_link(name: str, inertial: Part) -> Link:
    known = len(inertial.source.faults or ())
    if "fullinertia" in inertial.element.attrib:
        moments = inertial.words("fullinertia", 6)
    else:
        moments = [*inertial.words("diaginertia", 3), "0", "0", "0"]
    mass = inertial.number("mass")
    if len(inertial.source.faults or ()) > known:
        return Link(name, inertial.where)
    tensor = solids.tensor(*map(float, moments))
    return Link(name, inertial.where, mass, moments=tensor, place=inertial.element)


def _mjcf_joint(part: Part, angle: float) -> Joint:
    """Read the name, type and range (rad or m) of an MJCF joint."""
    slides = part.element.get("type") == "slide"
    lower, upper = (float(x) if slides else float(x) * angle for x in part.words("range", 2))
    name, given = part.element.get("name", ""), {"lower": lower, "upper": upper}
    kind = spelled("MJCF")["slide" if slides else "hinge"]
    return Joint(name, part.where, kind, None, "", given, place=part.element)


# TOML ------------------------------------------------------------------------------------------


def toml(file: str, *, meshes: bool) -> Sheet:
    """Read the links in a TOML file for lint, even if other parts of the file are invalid."""
    source, document = TomlFile(file, snap=False), Document(file, load(file))
    rows = source.data.get("link", [])
    links = [
        _toml_link(source, document, row, k)
        for k, row in enumerate(rows if isinstance(rows, list) else [])
        if isinstance(row, dict) and _is_number(row.get("mass", 0.0))
    ]
    return Sheet(file, tuple(links), document=document)


def _toml_link(source: TomlFile, document: Document, row: dict[str, Any], k: int) -> Link:
    length, mass = (_unit(source, what) for what in ("length", "mass"))
    m, c = mass * row.get("mass", 0.0), row.get("center", [0.0] * 3)
    center = length * np.array(c, dtype=float) if _numbers(c) == 3 else np.zeros(3)
    given, moments, shift = row.get("inertia"), np.zeros((3, 3)), np.zeros((3, 3))
    place, line = None, source.where("link", k, "inertia").rpartition(":")[2]
    if _numbers(given) == 6:
        if row.get("inertia_about", source.data.get("inertia_about", "center")) == "frame":
            shift = m * (center @ center * np.eye(3) - np.outer(center, center))
        unit = mass * length**2
        moments = unit * solids.tensor(*map(float, given)) - shift  # type: ignore[arg-type]
        if found := _list_at(document.text, line):
            place = Table(found.span(1), lambda I: solids.six((I + shift) / unit))
    name, where = str(row.get("name", k)), source.where("link", k)
    return Link(name, where, m, center, moments, place=place)


def _list_at(text: str, line: str) -> re.Match[str] | None:
    """Match "key = [list]" on a line of a TOML file; return None if there is no match."""
    before = text.split("\n")[: int(line) - 1] if line.isdigit() else [text]
    return _LIST.match(text, sum(len(x) + 1 for x in before))


def _unit(source: TomlFile, what: str) -> float:
    """Return the factor that converts the file's unit to SI; 1 if the unit is invalid."""
    units = source.data.get("units")
    name = units.get(what) if isinstance(units, dict) else None
    return UNITS[what].get(str(name), float)(1.0)


def _is_number(value: Any) -> bool:
    return not isinstance(value, list) and _numbers(value) == 1


def _numbers(value: Any) -> int:
    """Return the number of entries if all are valid numbers, else 0."""
    entries = value if isinstance(value, list) else [value]
    plain = all(isinstance(x, int | float) and not isinstance(x, bool) for x in entries)
    return len(entries) if plain and all(abs(x) <= _LARGEST for x in entries) else 0
