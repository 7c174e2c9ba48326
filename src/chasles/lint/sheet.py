"""Data classes for lint: the contents of a robot file, edits and findings."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from lxml import etree

from chasles.errors import ModelError, shown
from chasles.formats.solids import Solid
from chasles.model import Mimic
from chasles.model.description import traits
from chasles.model.given import Entry
from chasles.robot import Robot

Severity = Literal["error", "warning", "note"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""Severities in descending order.

Errors are impossible values, warnings are probably unintended values, and notes are values worth
checking.
"""


@dataclass(frozen=True)
class Finding:
    """A finding in a robot file.

    `check` is the name of the check, and `severity` is "error", "warning" or "note". `where` is
    "file:line", or the file if the line is unknown. `part` is a part of the robot, such as
    "link 'hand'". `what` describes the problem, `why` describes its effect on results, and `remedy`
    is the action to take. `repairable` is True if `chasles lint --fix` can repair the problem.
    """

    check: str
    severity: Severity
    where: str
    part: str
    what: str
    why: str
    remedy: str
    repairable: bool = False

    def __str__(self) -> str:
        return shown(f"{self.where}: {self.severity}: {self.part}: {self.what}; {self.remedy}")

    @property
    def line(self) -> int:
        """Line number; 0 if unknown."""
        number = self.where.rpartition(":")[2]
        return int(number) if number.isdigit() else 0


def at_least(finding: Finding, severity: str) -> bool:
    """Return True if a finding has at least the given severity."""
    return SEVERITIES.index(finding.severity) <= SEVERITIES.index(severity)


class Found(NamedTuple):
    """Problem found by a check; if `remedy` is empty, the check's general remedy applies."""

    part: str
    where: str
    what: str
    remedy: str = ""


@dataclass(frozen=True, eq=False)
class _Part:
    """Base class for links and joints, with a name and a location ("file:line")."""

    name: str
    where: str

    @property
    def part(self) -> str:
        return f"{type(self).__name__.lower()} {self.name!r}"

    def found(self, what: str) -> Found:
        """Return a finding about this part."""
        return Found(self.part, self.where, what)


@dataclass(frozen=True, eq=False)
class Link(_Part):
    """A link with its inertial parameters.

    Attributes
    ----------
    mass
        Mass (kg), or None if the file contains no inertia.
    center
        Center of mass in the link frame (m).
    moments
        Inertia about the center of mass (kg m2).
    axes
        Axes of `moments`, as columns in the link frame.
    shapes
        Collision or visual shapes; empty if one of them is unknown.
    shaped
        True if the link has a collision or visual shape, known or unknown.
    place
        Location of the moments in the file, for repairs; None if they cannot be changed.
    meant_massless
        True if the file states that the link has no inertia.
    """

    mass: float | None = None
    center: np.ndarray = field(default_factory=lambda: np.zeros(3))
    moments: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    axes: np.ndarray = field(default_factory=lambda: np.eye(3))
    shapes: tuple[Solid, ...] = ()
    shaped: bool = False
    place: Any = None
    meant_massless: bool = False

    @cached_property
    def inertia(self) -> np.ndarray:
        """Inertia about the center of mass, expressed in the link frame."""
        return self.axes @ self.moments @ self.axes.T

    @cached_property
    def principal(self) -> np.ndarray:
        """Principal moments in ascending order, or zeros if the moments are not finite."""
        sound = np.isfinite(np.sum(np.abs(self.moments)))
        return np.linalg.eigvalsh(self.moments) if sound else np.zeros(3)

    @cached_property
    def second_moments(self) -> np.ndarray:
        """Second moments of mass about the principal planes, in ascending order.

        The second moments of a physical body are non-negative. The second moments and the mass are
        the eigenvalues of the pseudo-inertia about the center of mass (Wensing, Kim and Slotine
        2018), which is positive definite if and only if all eigenvalues are positive.
        """
        return (np.sum(self.principal) / 2.0 - self.principal)[::-1]

    @property
    def extended(self) -> bool:
        """Return True if the link has mass and a nonzero extent in all directions."""
        return self.mass is not None and self.mass > 0.0 and bool(self.second_moments[0] > 0.0)


@dataclass(frozen=True, eq=False)
class Joint(_Part):
    """A joint with its limits.

    `kind` is the joint type, spelled as in the file if the type is unknown. `limits` contains the
    position (rad or m), velocity (rad/s or m/s) and effort (N m or N) limits in the file.
    `position` (m) and `angles` (rad) are the joint's pose in the frame of the parent link, if the
    file gives the pose in this form. `place` is the location of the limits in the file, for
    repairs.
    """

    kind: str
    parent: str | None
    child: str
    limits: Mapping[str, float] = field(default_factory=dict)
    mimic: Mimic | None = None
    position: tuple[float, ...] = (0.0, 0.0, 0.0)
    angles: tuple[float, ...] = (0.0, 0.0, 0.0)
    place: Any = None

    @property
    def bounded(self) -> bool:
        """Return True if the joint type requires limits."""
        return traits(self.kind).bounds == "needed"

    @property
    def range(self) -> tuple[float, float] | None:
        """Lower and upper limits, or None if one is infinite or the joint type needs no limits."""
        lower, upper = (self.limits.get(key, math.inf) for key in ("lower", "upper"))
        bounded = self.bounded and math.isfinite(lower) and math.isfinite(upper)
        return (lower, upper) if bounded else None


# Source text and edits ------------------------------------------------------------------------


class Table(NamedTuple):
    """Location of an inertia in a TOML file.

    `span` is the start and end of the list `inertia` in the text. `written` is a function that
    converts moments (kg m2, about the center of mass) to the units and reference point of the file.
    """

    span: tuple[int, int]
    written: Callable[[np.ndarray], Sequence[float]]


class Edit(NamedTuple):
    """Replacement text for an attribute or child of an XML element, or for a TOML key."""

    place: Any
    name: str
    text: str


_TAG = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<([^\s<>/!?][^\s<>/]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
"""Pattern for comments, CDATA sections, processing instructions and start tags.

The groups contain the name and the attributes of a start tag.
"""


@dataclass(frozen=True, eq=False)
class Document:
    """Contents of a robot file that is to be repaired.

    For an XML file, `root` is the root element, and `Edit.place` is one of its descendants.
    """

    file: str
    data: bytes
    root: Any = None

    @cached_property
    def text(self) -> str:
        """Text of the file, which must be encoded as UTF-8."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            problem = "the file is not encoded as UTF-8, so it cannot be repaired"
            raise ModelError(
                "E-LINT-002", problem, "save the file as UTF-8", file=self.file
            ) from None

    @cached_property
    def _starts(self) -> dict[etree._Element, re.Match[str]]:
        """Regular-expression match of the start tag of each XML element."""
        tags = (match for match in _TAG.finditer(self.text) if match[1])
        return dict(zip(self.root.iter(), tags, strict=True))

    def span(self, edit: Edit) -> tuple[int, int]:
        """Return the start and end offsets of the text that an edit replaces."""
        if isinstance(edit.place, Table):
            return edit.place.span
        child = edit.place.find(edit.name)
        if child is not None:
            first = self._starts[child].end()
            return first, self.text.index("<", first)
        tag = self._starts[edit.place]
        found = re.search(rf"(?<![\w:.-]){edit.name}\s*=\s*([\"'])(.*?)\1", tag[2], re.DOTALL)
        assert found is not None, "the parser found the attribute"
        return tag.start(2) + found.start(2), tag.start(2) + found.end(2)


# File contents --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sheet:
    """Contents of a robot file for lint.

    Attributes
    ----------
    document
        Text of the file; None if the file cannot be repaired.
    references
        Joints and links to which transmissions and extensions refer, as tuples ("file:line",
        referring part, kind, name), where kind is "joint", "link" or "part".
    faults
        Findings about text where numbers are expected.
    recovered
        Malformed or incomplete elements that can still be read.
    needs_limits
        True if the format requires limits for every revolute and prismatic joint.
    refusals
        Loading errors.
    robot
        The robot; None if it does not load.
    outside
        Finite numbers outside their valid ranges.
    reductions
        Gear ratios of transmissions, as tuples ("file:line", joint, ratio).
    misspelled
        Findings about unknown elements and attributes whose names are similar to known ones.
    missing
        Links whose mesh files do not exist, as tuples ("file:line", link, file name).
    """

    file: str
    links: tuple[Link, ...] = ()
    joints: tuple[Joint, ...] = ()
    references: tuple[tuple[str, str, str, str], ...] = ()
    faults: tuple[Found, ...] = ()
    recovered: tuple[Found, ...] = ()
    needs_limits: bool = False
    document: Document | None = None
    refusals: tuple[Found, ...] = ()
    robot: Robot | None = None
    outside: tuple[Entry, ...] = ()
    reductions: tuple[tuple[str, str, float], ...] = ()
    misspelled: tuple[Found, ...] = ()
    missing: tuple[tuple[str, str, str], ...] = ()

    @cached_property
    def by_name(self) -> dict[str, Joint]:
        return {joint.name: joint for joint in self.joints}

    @cached_property
    def moved(self) -> dict[str, Joint]:
        """Moving joints, keyed by child link."""
        return {joint.child: joint for joint in self.joints if joint.kind != "fixed"}

    def carriers(self, *, fixed: bool) -> set[str | None]:
        """Return the names of links that have mass or carry links with mass.

        If `fixed` is True, only links attached through fixed joints count as carried.
        """
        above = {x.child: x.parent for x in self.joints if x.kind == "fixed" or not fixed}
        found: set[str | None] = set()
        for link in self.links:
            name: str | None = link.name if link.mass else None
            while name is not None and name not in found:
                found.add(name)
                name = above.get(name)
        return found
