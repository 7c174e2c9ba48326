"""Parse XML files with size limits and without entities; read and write XML elements."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from lxml import etree

from chasles.errors import ModelError
from chasles.expr import Number
from chasles.formats.files import angle_word, is_number, short, snapped, words
from chasles.formats.xml_recovery import recovered
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import Plane, Rotation, rpy_from_matrix
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import ROLES, SHAPE_TRAITS, JointData, Limits, ShapeData
from chasles.model.given import like_degrees
from chasles.names import similar

MAX_BYTES = 8 * 2**20
"""Maximum size of a document (bytes); a robot file without meshes is smaller than 1 MB."""

MAX_MARKS = 500_000
"""Maximum number of "<" and "=" characters in a document.

The limit bounds the number of elements and attributes in any encoding. A parsed element needs about
a hundred times the memory of its text. The largest model in dm_control has 24,000 of these
characters.
"""

MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
"""Names of the inertia tensor entries in files, in the order of `Symmetric`."""

ORIGIN = "chasles-origin"
"""Attribute in which `xacro_child` stores the file and line of an element."""

_QUARTERS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))
"""Cosine and sine of 0, pi/2, pi and 3 pi/2."""

_NONE: Mapping[str, tuple[str, ...]] = {}

NAMED = ("link", "joint", "model")
"""Elements whose tag and name locate a finding."""

SIMILARITY = 0.75
"""Smallest similarity of a misspelled name, by `difflib`.

The value accepts <axes> for <axis>, and excludes extensions such as <sdf_mesh>, <loop_joint> and
<collision_checking>.
"""


def parse(file: str, data: bytes, notes: list[str] | None = None) -> etree._Element:
    """Parse a document and return its root element.

    Entities raise an error, because they can expand without bound. `notes` is a list to which notes
    are added if the document is malformed but unambiguous.
    """
    if len(data) > MAX_BYTES:
        raise _too_large(file, f"{len(data) / 2**20:.0f} MB of XML", f"{MAX_BYTES // 2**20} MB")
    marks = data.count(b"<") + data.count(b"=")
    if marks > MAX_MARKS:
        raise _too_large(file, f"{marks} tags and attributes", f"{MAX_MARKS}")
    if b"<!ENTITY" in data:
        raise _declares(file, data)
    # By default, lxml does not access the network, does not load DTDs, and rejects huge trees.
    parser = etree.XMLParser(resolve_entities=False, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        found = recovered(data)
        if found is None:
            problem = f"invalid XML: {re.split(', line|, use XML_PARSE_HUGE', error.msg)[0]}"
            line = error.lineno
            raise ModelError(
                "E-XML-001", problem, "correct the file", file=file, line=line
            ) from error
        root, slips = found
        if notes is not None:
            notes += [f"{file}:{slip.line}: XML: {slip.fault}; {slip.remedy}" for slip in slips]
    if root.getroottree().docinfo.internalDTD is not None:
        raise _declares(file, data)
    return root


def _too_large(file: str, size: str, most: str) -> ModelError:
    problem = f"the file contains {size}; the limit for a robot file is {most}"
    return ModelError("E-XML-002", problem, "check that this is the intended file", file=file)


def _declares(file: str, data: bytes) -> ModelError:
    line = data.count(b"\n", 0, max(0, data.find(b"<!DOCTYPE"))) + 1
    problem = "document type declarations and entities are not supported"
    remedy = "remove the DOCTYPE and expand its entities"
    return ModelError("E-XML-003", problem, remedy, file=file, line=line)


# XML elements ----------------------------------------------------------------------------------


class Fault(NamedTuple):
    """An unreadable value: its link or joint, its "file:line", and the problem."""

    part: str
    where: str
    what: str


@dataclass(frozen=True)
class Source:
    """An XML file that is being read; `space` is the prefix of its tags, "" or "{namespace}".

    `faults` is a list that collects unreadable numbers, which are replaced by their defaults or
    zero. If `faults` is None, an unreadable number raises an error.
    """

    file: str
    space: str
    snap: bool
    notes: list[str]
    faults: list[Fault] | None = None


@dataclass(frozen=True)
class Part:
    """An XML element whose values are attributes or child elements.

    `owner` is the name of the element in error messages, such as "link 'arm'".
    """

    source: Source
    element: etree._Element
    owner: str

    @property
    def where(self) -> str:
        """Location as "file:line", in the xacro file if the document was expanded from one."""
        return self.element.get(ORIGIN) or f"{self.source.file}:{self.element.sourceline}"

    @property
    def tag(self) -> str:
        tag: str = self.element.tag.removeprefix(self.source.space)
        return tag

    def error(self, code: str, problem: str, remedy: str = "") -> ModelError:
        return ModelError(code, problem, remedy, part=self.owner, file=self.where)

    def fail(self, error: ModelError) -> None:
        """Raise an error, or append it to `source.faults` if this list exists."""
        if self.source.faults is None:
            raise error
        self.source.faults.append(Fault(self.owner, self.where, error.problem))

    def note(self, what: str) -> None:
        self.source.notes.append(f"{self.where}: {self.owner}: {what}")

    def all(self, *tags: str) -> "Iterator[Part]":
        """Yield the children with any of the given tags, in file order."""
        wanted = {self.source.space + tag for tag in tags}
        for element in self.element:
            if element.tag in wanted:
                yield replace(self, element=element)

    def find(self, *tags: str) -> "Part | None":
        """Return the first child with any of the given tags, or None."""
        return next(self.all(*tags), None)

    def of_drake(self, tag: str) -> "Part | None":
        """Return the first child with tag "drake:" + tag, even if the prefix is not declared."""
        for element in self.element:
            name = element.tag.rpartition("}")[2]
            if f"drake:{tag}" in (name, f"{element.prefix}:{name}"):
                return replace(self, element=element)
        return None

    def need(self, tag: str) -> "Part":
        part = self.find(tag)
        if part is None:
            if self.source.faults is None:
                raise self.error("E-XML-005", f"there is no <{tag}>", "add one")
            return replace(self, element=etree.Element(self.source.space + tag))
        return part

    def named(self) -> "Part":
        """Return the element with `owner` set to its tag and name."""
        return replace(self, owner=f"{self.tag} {self.text('name')!r}")

    # Values ------------------------------------------------------------------------------------

    def content(self, tag: str, default: str = "") -> str:
        """Return the text of a child without leading and trailing white space."""
        child = self.find(tag)
        return default if child is None else (child.element.text or "").strip() or default

    def text(self, key: str, default: str = "") -> str:
        """Return an attribute, a child's text, or the default; raise an error if all are empty."""
        text = self.element.get(key)
        if text is None:
            text = self.content(key, default)
        if not text and (self.source.faults is None or key in self.element.attrib):
            problem, remedy = f"{self.tag} has no {key}", f"add {key}=..."
            self.fail(self.error("E-XML-006", problem, remedy))
        return text

    def words(self, key: str, count: int, default: str = "") -> list[str]:
        """Return the finite numbers in an attribute or child element as strings."""
        text = self.text(key, default)
        if not text:  # the missing value is already in `faults`
            return default.split() or ["0"] * count
        child = None if key in self.element.attrib else self.find(key)
        if child is not None:
            return child.numerals(key, text, count, default)
        return self.numerals(f"{self.tag} {key}", text, count, default)

    def number(self, key: str, default: float | None = None) -> float:
        """Return the number in an attribute or child element, or the default if it is missing."""
        if default is not None and key not in self.element.attrib and not self.content(key):
            return default
        return float(self.words(key, 1)[0])

    def value(self, key: str) -> float:
        """Return the attribute `key`, or the element's text if `key` is empty, as a number."""
        if key:
            return self.number(key)
        return float(self.numerals(self.tag, self.element.text or "", 1)[0])

    def vector(self, key: str, default: str = "") -> Vector:
        return Vector(tuple(map(float, self.words(key, 3, default))))

    def numerals(self, what: str, text: str, count: int, default: str = "") -> list[str]:
        """Return the finite numbers in `text` as strings, or the default if the text is invalid.

        If the text is invalid, `fail` raises or records an error.
        """
        words = text.split()
        if not all(map(is_number, words)) and "'" in (bare := text.replace('"', "'")):
            words = bare.replace("'", " ").split()
            self.note(f"{what} is {short(text)}; the quotation marks are ignored; remove them")
        if len(words) != count or not all(map(is_number, words)):
            needed = "a finite number" if count == 1 else f"{count} finite numbers"
            self.fail(self.error("E-XML-007", f"{what} is {short(text)}", f"give {needed}"))
            return default.split() or ["0"] * count
        return words

    def axis(self) -> Vector:
        """Return the attribute `xyz` as a unit vector."""
        given = self.vector("xyz")
        length = math.hypot(*given)
        if not 1e-9 < length < math.inf:
            size = "zero" if length < 1.0 else "infinite"
            raise self.error("E-XML-008", f"axis has {size} length", "give a unit vector")
        return Vector(tuple(a / length for a in given))

    def placement(self, position: Vector, angles: list[str]) -> Transform:
        """Return a pose from roll, pitch, yaw (rad, as strings) about the fixed x, y, z axes."""
        roll, pitch, yaw = map(self._turn, angles)
        E = Rotation((Plane(2, *yaw), Plane(1, *pitch), Plane(0, *roll))).matrix()
        return Transform(Rotation.of(E), position)

    def _turn(self, angle: str) -> tuple[float, float]:
        """Return the cosine and sine of an angle.

        If `source.snap` is True, a rounded multiple of pi/2 is replaced by the exact multiple.
        """
        k = snapped(angle, "angle", self.note) if self.source.snap else 0
        return _QUARTERS[k % 4] if k else (math.cos(float(angle)), math.sin(float(angle)))

    def sizes(self) -> tuple[float, ...]:
        """Return the dimensions of a shape, or the scale of a mesh."""
        usual = "1 1 1" if self.tag == "mesh" else ""
        rows = SHAPE_TRAITS[self.tag].sizes
        return tuple(float(word) for key, n in rows for word in self.words(key, n, usual))

    def shapes(self, drawn: "Callable[[Part], ShapeData]") -> Iterator[ShapeData]:
        """Yield a link's shapes, without snapping their angles to multiples of pi/2.

        Unreadable shapes are omitted with a note, because they do not affect the motion.
        """
        for part in replace(self, source=replace(self.source, snap=False)).all(*ROLES):
            try:
                yield drawn(part)
            except ModelError as error:
                self.source.notes.append(f"{error.message}; the shape is ignored")


class Inertial(NamedTuple):
    """Inertia of a link as stored in a file.

    `mass` is in kg. `pose` places the inertial frame, whose origin is the center of mass, in the
    link frame. `moments` contains the entries xx, yy, zz, xy, xz, yz of the inertia tensor about
    the center of mass, in the inertial frame.
    """

    mass: float
    pose: Transform
    moments: list[float]

    def about_origin(self) -> RigidInertia:
        """Return the inertia about the link origin, expressed in the link frame."""
        tensor = self.pose.E.T @ Symmetric(*self.moments)
        return RigidInertia.from_center(self.mass, self.pose.r, tensor)


def reflected(joint: JointData, part: Part, key: str = "") -> JointData:
    """Add the rotor inertia, times the squared gear ratio, to the armature of a joint.

    The values are read from the child elements `drake:rotor_inertia` and `drake:gear_ratio`: from
    the attribute `key` or, if `key` is empty, from the text. As in Drake, a joint with an effort
    limit of 0 has no motor.
    """
    inertia, gear = part.of_drake("rotor_inertia"), part.of_drake("gear_ratio")
    if inertia is None:
        return joint
    if joint.limits.effort == 0.0 or joint.traits.nv != 1:
        why = "the effort limit is 0" if joint.traits.nv == 1 else f"the type is {joint.kind}"
        part.note(f"drake:rotor_inertia is ignored, because {why}: the joint has no motor")
        return joint
    ratio = 1.0 if gear is None else gear.value(key)
    return replace(joint, armature=joint.armature + ratio * ratio * inertia.value(key))


# Writing ---------------------------------------------------------------------------------------


def each(numbers: Mapping[str, Number]) -> dict[str, str]:
    """Convert the numbers in a mapping to strings at full precision."""
    return {key: words([x]) for key, x in numbers.items()}


def sizes(shape: ShapeData) -> dict[str, str]:
    """Format the dimensions of a shape as XML attributes."""
    numbers = iter(shape.size)
    return {key: words(islice(numbers, n)) for key, n in SHAPE_TRAITS[shape.kind].sizes}


def angles(pose: Transform) -> str:
    """Format a pose's roll, pitch and yaw (rad) so that reading restores the exact values."""
    return " ".join(map(angle_word, rpy_from_matrix(pose.R)))


def added(parent: etree._Element | None, tag: str, /, **attributes: str) -> etree._Element:
    """Append a new element to a parent and return it; without a parent, return a root element."""
    element = etree.Element(tag) if parent is None else etree.SubElement(parent, tag)
    for key, value in attributes.items():
        try:
            element.set(key, value)
        except ValueError:
            problem = f"{tag} {key} {value!r} has characters that XML does not allow"
            raise ModelError("E-XML-004", problem, "remove these characters") from None
    return element


def add_texts(parent: etree._Element, /, **texts: str) -> None:
    """Append a child element for each given tag, with the given text."""
    for tag, text in texts.items():
        added(parent, tag).text = text


def printed(root: etree._Element) -> str:
    """Return a document as a string with one element per line."""
    etree.indent(root)
    text: str = etree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


class Slip(NamedTuple):
    """Name that is probably misspelled: the element, the problem and a suggestion."""

    part: Part
    what: str
    remedy: str


def misspelled(
    part: Part,
    elements: Mapping[str, tuple[str, ...]],
    attributes: Mapping[str, tuple[str, ...]] = _NONE,
) -> Iterator[Slip]:
    """Find unknown attributes and elements, in an element, whose names are similar to known ones.

    If the known attribute is also present, the unknown one is an extension. Elements with a
    namespace prefix, and elements inside unknown elements, are extensions too.
    """
    tag, given = part.tag, list(map(str, part.element.attrib))
    known = attributes.get(tag, ())
    absent = [key for key in known if key not in given]
    for key in given:
        remedy = "" if key in (*known, "name") else similar(key, absent, SIMILARITY)
        if remedy:
            yield Slip(part, f"<{tag}> has the unknown attribute {key!r}", remedy)
    for element in part.element:
        child = replace(part, element=element)
        if child.tag in NAMED:
            child = replace(child, owner=f"{child.tag} {element.get('name', '')!r}")
        if child.tag in elements.get(tag, ()):
            yield from misspelled(child, elements, attributes)
        elif ":" not in child.tag and "}" not in child.tag:
            remedy = similar(child.tag, elements.get(tag, ()), SIMILARITY)
            if remedy:
                yield Slip(child, f"<{tag}> has the unknown element <{child.tag}>", remedy)


def note_misspelled(
    part: Part,
    elements: Mapping[str, tuple[str, ...]],
    attributes: Mapping[str, tuple[str, ...]] = _NONE,
) -> None:
    """Add a note to the file for each misspelled name in an element."""
    for slip in misspelled(part, elements, attributes):
        slip.part.note(f"{slip.what}, which is ignored; {slip.remedy}")


def note_degrees(part: Part, limits: Limits) -> None:
    """Add a note to the file if the limits of a hinge look like degrees."""
    lower, upper = limits.lower, limits.upper
    if like_degrees(lower, upper):
        part.note(f"limits {lower:g} to {upper:g} rad look like degrees; give radians")
