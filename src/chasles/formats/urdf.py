"""URDF files: links, joints and inertias, with errors and notes that say where.

The format is that of wiki.ros.org/urdf/XML. Joint types beyond it: spherical, yaw_pitch_roll,
universal (`<axis>` and an optional perpendicular `<axis2>`), cylindrical, sphere_in_cylinder,
helical (attribute `pitch`, m/rad), rack_and_pinion and rolling (attribute `radius`, m).
Shapes, transmissions and simulator extensions are ignored; no other file is ever opened.
"""

import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath

from lxml import etree

from chasles.formats.files import load, short
from chasles.formats.numbers import is_number, multiple, radians, right_angles
from chasles.formats.xml_document import parse
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import Plane, Rotation
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, JointData, Limits, LinkData, Mimic, ModelError
from chasles.model.graph import on_free_joint

_STANDARD = ("revolute", "continuous", "prismatic", "fixed", "planar")
_EXTENDED = (
    *("spherical", "universal", "cylindrical", "helical"),
    *("yaw_pitch_roll", "rack_and_pinion", "sphere_in_cylinder", "rolling"),
)
_KINDS = {"floating": "free"} | {kind: kind for kind in _STANDARD + _EXTENDED}
"""The model's name for each joint type of the file."""

_WITHOUT_AXIS = ("free", "spherical", "yaw_pitch_roll")
_WITH_TWO = ("universal", "rack_and_pinion")
_WITH_RADIUS = ("rack_and_pinion", "rolling")
_BOUNDED = ("revolute", "prismatic")

UNBOUNDED = sys.float_info.max
"""Stands for no limit where one must be given: readers of the format take no "inf"."""

_QUARTERS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))
"""Cosine and sine of 0, 1, 2 and 3 right angles."""


def read(path: str | os.PathLike[str], *, snap: bool = True, floating: bool = False) -> Description:
    """What a URDF file says.

    snap: an angle whose five or more printed digits are those of a multiple of a right angle,
    rounded or truncated, is taken as that multiple, with exact sine and cosine; notes say where.
    floating: put the root link on a free joint, named root_joint.
    """
    file = os.fsdecode(path)
    root = _parse(file, load(file))
    source = _Source(file, root.tag.removesuffix("robot"), snap, [])
    links = tuple(map(_link, _named(source, root, "link")))
    joints = tuple(map(_joint, _named(source, root, "joint")))
    if floating:
        joints = on_free_joint(links, joints)
    name = root.get("name") or PurePath(file).stem
    return Description(name, links, joints, notes=tuple(dict.fromkeys(source.notes)), where=file)


# The file and its elements ---------------------------------------------------------------------


def _parse(file: str, data: bytes) -> etree._Element:
    """The `<robot>` element."""
    root = parse(file, data)
    if root.tag.rpartition("}")[2] != "robot":
        raise ModelError(
            f"{file}:{root.sourceline}: the document is a <{root.tag}>; a URDF file is a <robot>"
        )
    return root


@dataclass(frozen=True)
class _Source:
    """A file being read. space: what stands before the names of its tags, "" or "{namespace}"."""

    file: str
    space: str
    snap: bool
    notes: list[str]


@dataclass(frozen=True)
class _Part:
    """An element, and the link or joint that messages about it name."""

    source: _Source
    element: etree._Element
    owner: str

    @property
    def where(self) -> str:
        return f"{self.source.file}:{self.element.sourceline}"

    @property
    def tag(self) -> str:
        return self.element.tag.removeprefix(self.source.space)

    def error(self, what: str) -> ModelError:
        return ModelError(f"{self.where}: {self.owner}: {what}")

    def note(self, what: str) -> None:
        self.source.notes.append(f"{self.where}: {self.owner}: {what}")

    def find(self, tag: str) -> "_Part | None":
        """The first child with a tag."""
        for element in self.element:
            if element.tag == self.source.space + tag:
                return replace(self, element=element)
        return None

    def need(self, tag: str) -> "_Part":
        part = self.find(tag)
        if part is None:
            raise self.error(f"there is no <{tag}>; add one")
        return part

    def text(self, attribute: str, default: str = "") -> str:
        """An attribute; without a default it may not be absent or empty."""
        text = self.element.get(attribute, default)
        if not text:
            raise self.error(f"{self.tag} has no {attribute}; add {attribute}=...")
        return text

    def words(self, attribute: str, count: int, default: str = "") -> list[str]:
        """The finite numbers of an attribute, as printed."""
        text = self.text(attribute, default)
        words = text.split()
        if len(words) != count or not all(map(is_number, words)):
            needed = "a finite number" if count == 1 else f"{count} finite numbers"
            raise self.error(f"{self.tag} {attribute} is {short(text)}; give {needed}")
        return words

    def number(self, attribute: str, default: float | None = None) -> float:
        """A number; the default, where there is one, stands for an absent attribute."""
        if default is not None and attribute not in self.element.attrib:
            return default
        return float(self.words(attribute, 1)[0])

    def vector(self, attribute: str, default: str = "") -> Vector:
        return Vector(tuple(map(float, self.words(attribute, 3, default))))


def _named(source: _Source, root: etree._Element, tag: str) -> Iterator[_Part]:
    """The links or the joints; no two may have the same name."""
    first: dict[str, str] = {}
    for element in root:
        if element.tag == source.space + tag:
            name = _Part(source, element, "robot").text("name")
            part = _Part(source, element, f"{tag} {name!r}")
            if name in first:
                raise part.error(f"{first[name]} has a {tag} of the same name; rename one of them")
            first[name] = part.where
            yield part


# What the elements say -------------------------------------------------------------------------


def _link(link: _Part) -> LinkData:
    return LinkData(link.text("name"), _inertia(link.find("inertial")), link.where)


def _inertia(inertial: _Part | None) -> RigidInertia:
    """About the link's origin; the file has it about the centre of mass, in axes of its own."""
    if inertial is None:
        return RigidInertia.zero()
    mass, tensor = inertial.need("mass").number("value"), inertial.need("inertia")
    pose = _pose(inertial.find("origin"))
    entries = map(tensor.number, ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    return RigidInertia.from_center(mass, pose.r, pose.E.T @ Symmetric(*entries))


def _joint(joint: _Part) -> JointData:
    given = joint.text("type")
    if given not in _KINDS:
        raise joint.error(f"unknown type {short(given)}; use one of {', '.join(_KINDS)}")
    data = JointData(
        joint.text("name"),
        _KINDS[given],
        joint.need("parent").text("link"),
        joint.need("child").text("link"),
        _pose(joint.find("origin")),
        where=joint.where,
    )
    return data if data.kind == "fixed" else _moving(joint, data)


def _moving(joint: _Part, data: JointData) -> JointData:
    """The data of a joint, with what only a moving one has."""
    axis = None if data.kind in _WITHOUT_AXIS else joint.find("axis")
    second = joint.find("axis2") if data.kind in _WITH_TWO else None
    dynamics, mimic = joint.find("dynamics"), joint.find("mimic")
    return replace(
        data,
        axis=Vector.of(1.0, 0.0, 0.0) if axis is None else _axis(axis),
        second_axis=None if second is None else _axis(second),
        pitch=joint.number("pitch") if data.kind == "helical" else 0.0,
        radius=joint.number("radius") if data.kind in _WITH_RADIUS else 0.0,
        limits=_limits(joint, data.kind),
        damping=0.0 if dynamics is None else dynamics.number("damping", 0.0),
        friction=0.0 if dynamics is None else dynamics.number("friction", 0.0),
        mimic=None if mimic is None else _mimic(mimic),
    )


def _axis(axis: _Part) -> Vector:
    """A unit vector in the joint's frame."""
    given = axis.vector("xyz")
    length = math.hypot(*given)
    if not 1e-9 < length < math.inf:
        size = "zero" if length < 1.0 else "infinite"
        raise axis.error(f"axis has {size} length; give a unit vector")
    return Vector(tuple(a / length for a in given))


def _limits(joint: _Part, kind: str) -> Limits:
    """Bounds; URDF takes an absent lower or upper as 0, and gives a continuous joint neither."""
    limit = joint.find("limit")
    if limit is None:
        if kind in _BOUNDED:
            joint.note("no limit is given; taken as unbounded")
        return Limits()
    absent = {"velocity": math.inf, "effort": math.inf}
    if kind in _BOUNDED:
        absent |= {"lower": 0.0, "upper": 0.0}
        for bound, value in absent.items():
            if bound not in limit.element.attrib:
                limit.note(f"no {bound} limit is given; taken as {value:g}")
    elif kind != "continuous":
        absent |= {"lower": -math.inf, "upper": math.inf}
    given = {bound: limit.number(bound, value) for bound, value in absent.items()}
    return Limits(
        **{k: x if abs(x) < UNBOUNDED else math.copysign(math.inf, x) for k, x in given.items()}
    )


def _mimic(mimic: _Part) -> Mimic:
    return Mimic(mimic.text("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))


# Placements and right angles -------------------------------------------------------------------


def _pose(origin: _Part | None) -> Transform:
    """From `<origin xyz rpy>`: roll about x, pitch about y, yaw about z, all of the outer frame."""
    if origin is None:
        return Transform.identity()
    roll, pitch, yaw = (_turn(origin, angle) for angle in origin.words("rpy", 3, "0 0 0"))
    E = Rotation((Plane(2, *yaw), Plane(1, *pitch), Plane(0, *roll))).matrix()
    return Transform(Rotation.of(E), origin.vector("xyz", "0 0 0"))


def _turn(origin: _Part, angle: str) -> tuple[float, float]:
    """Cosine and sine of an angle, exact where its digits mean right angles."""
    k = right_angles(angle) if origin.source.snap else 0
    if k == 0:
        return math.cos(float(angle)), math.sin(float(angle))
    if float(angle) != radians(k):
        origin.note(f"angle {angle} taken as {multiple(k)}")
    return _QUARTERS[k % 4]
