"""An element of a robot's XML file: what it says, with errors and notes that name part and line."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from lxml import etree

from chasles.errors import ModelError
from chasles.formats.files import short
from chasles.formats.numbers import is_number, multiple, radians, right_angles
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import Plane, Rotation
from chasles.mathematics.spatial import RigidInertia, Transform

_QUARTERS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))
"""Cosine and sine of 0, 1, 2 and 3 right angles."""


MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
"""What files call the entries of an inertia, in the order of `Symmetric`."""


ORIGIN = "chasles-origin"
"""The attribute of an element that says where it was written: `xacro_child` sets it."""


class Fault(NamedTuple):
    """Something that cannot be read: the link or joint it belongs to, "file:line", and the fact."""

    part: str
    where: str
    what: str


@dataclass(frozen=True)
class Source:
    """A file being read. space: what stands before the names of its tags, "" or "{namespace}".

    faults: where there is such a list, numbers that cannot be read are put there, and they and
    those that are absent are taken as their defaults or zero; else both are errors.
    """

    file: str
    space: str
    snap: bool
    notes: list[str]
    faults: list[Fault] | None = None


@dataclass(frozen=True)
class Part:
    """An element, and the link or joint that messages about it name."""

    source: Source
    element: etree._Element
    owner: str

    @property
    def where(self) -> str:
        """The file and line, of an included one if what expanded the file said so."""
        return self.element.get(ORIGIN) or f"{self.source.file}:{self.element.sourceline}"

    @property
    def tag(self) -> str:
        tag: str = self.element.tag.removeprefix(self.source.space)
        return tag

    def error(self, code: str, problem: str, remedy: str = "") -> ModelError:
        return ModelError(code, problem, remedy, part=self.owner, file=self.where)

    def fail(self, error: ModelError) -> None:
        """Raise an error, or record it if faults are collected."""
        if self.source.faults is None:
            raise error
        self.source.faults.append(Fault(self.owner, self.where, error.problem))

    def note(self, what: str) -> None:
        self.source.notes.append(f"{self.where}: {self.owner}: {what}")

    # Elements within it ------------------------------------------------------------------------

    def all(self, *tags: str) -> "Iterator[Part]":
        """The children with some tags, in the order of the file."""
        wanted = {self.source.space + tag for tag in tags}
        for element in self.element:
            if element.tag in wanted:
                yield replace(self, element=element)

    def find(self, tag: str) -> "Part | None":
        """The first child with a tag."""
        return next(self.all(tag), None)

    def need(self, tag: str) -> "Part":
        part = self.find(tag)
        if part is None:
            if self.source.faults is None:
                raise self.error("E-XML-005", f"there is no <{tag}>", "add one")
            return replace(self, element=etree.Element(self.source.space + tag))
        return part

    def named(self) -> "Part":
        """The same element, with messages about it by its own tag and name."""
        return replace(self, owner=f"{self.tag} {self.text('name')!r}")

    # Attributes --------------------------------------------------------------------------------

    def text(self, attribute: str, default: str = "") -> str:
        """An attribute; without a default it may not be absent or empty."""
        text = self.element.get(attribute, default)
        if not text and (self.source.faults is None or attribute in self.element.attrib):
            problem, remedy = f"{self.tag} has no {attribute}", f"add {attribute}=..."
            self.fail(self.error("E-XML-006", problem, remedy))
        return text

    def words(self, attribute: str, count: int, default: str = "") -> list[str]:
        """The finite numbers of an attribute, as printed."""
        text = self.text(attribute, default)
        if not text:  # a fault, if it is one, is taken down
            return default.split() or ["0"] * count
        return self.numerals(f"{self.tag} {attribute}", text, count, default)

    def number(self, attribute: str, default: float | None = None) -> float:
        """A number; the default, where there is one, stands for an absent attribute."""
        if default is not None and attribute not in self.element.attrib:
            return default
        return float(self.words(attribute, 1)[0])

    def vector(self, attribute: str, default: str = "") -> Vector:
        return Vector(tuple(map(float, self.words(attribute, 3, default))))

    # Numbers -----------------------------------------------------------------------------------

    def numerals(self, what: str, text: str, count: int, default: str = "") -> list[str]:
        """The finite numbers of a text, as printed; default: for those that cannot be read."""
        words = text.split()
        if len(words) != count or not all(map(is_number, words)):
            needed = "a finite number" if count == 1 else f"{count} finite numbers"
            self.fail(self.error("E-XML-007", f"{what} is {short(text)}", f"give {needed}"))
            return default.split() or ["0"] * count
        return words

    def unit(self, given: Vector) -> Vector:
        """An axis, of length 1."""
        length = math.hypot(*given)
        if not 1e-9 < length < math.inf:
            size = "zero" if length < 1.0 else "infinite"
            raise self.error("E-XML-008", f"axis has {size} length", "give a unit vector")
        return Vector(tuple(a / length for a in given))

    def placement(self, position: Vector, angles: list[str]) -> Transform:
        """Roll about x, pitch about y, yaw about z, all of the outer frame: printed angles, rad."""
        roll, pitch, yaw = map(self._turn, angles)
        E = Rotation((Plane(2, *yaw), Plane(1, *pitch), Plane(0, *roll))).matrix()
        return Transform(Rotation.of(E), position)

    def _turn(self, angle: str) -> tuple[float, float]:
        """Cosine and sine of an angle, exact where its digits mean right angles."""
        k = right_angles(angle) if self.source.snap else 0
        if k == 0:
            return math.cos(float(angle)), math.sin(float(angle))
        if float(angle) != radians(k):
            self.note(f"angle {angle} taken as {multiple(k)}")
        return _QUARTERS[k % 4]


class Inertial(NamedTuple):
    """What a file says of a link's inertia: the mass, a frame at the centre of mass in the link's
    frame, and the moments xx, yy, zz, xy, xz, yz about it, in its axes."""

    mass: float
    pose: Transform
    moments: list[float]

    def about_origin(self) -> RigidInertia:
        """About the link's origin, in its axes."""
        tensor = self.pose.E.T @ Symmetric(*self.moments)
        return RigidInertia.from_center(self.mass, self.pose.r, tensor)
