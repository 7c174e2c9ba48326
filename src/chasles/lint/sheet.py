"""Contents of a robot file for lint (links, joints, text), and the findings about them."""

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
from chasles.model.ranges import Entry
from chasles.robot import Robot

Severity = Literal["error", "warning", "note"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""Severities in descending order. They mean impossible, probably unintended, and worth checking."""


@dataclass(frozen=True)
class Finding:
    """One finding in a robot file.

    `check` is the name of the check, and `severity` is "error", "warning" or "note". `where` is
    "file:line", or the file if the line is unknown, and `part` names the part: "link 'hand'".
    `what` describes the problem, `why` describes its effect on results, and `remedy` is the action
    to take. `repairable` is True if `chasles lint --fix` can repair the problem.
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
        """Line of the file; 0 if unknown."""
        number = self.where.rpartition(":")[2]
        return int(number) if number.isdigit() else 0


def at_least(finding: Finding, severity: str) -> bool:
    """Return True if a finding has at least the given severity."""
    return SEVERITIES.index(finding.severity) <= SEVERITIES.index(severity)


class Found(NamedTuple):
    """Result of a check: part, "file:line", problem, and a remedy (default: the check's remedy)."""

    part: str
    where: str
    what: str
    remedy: str = ""


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of a robot, with its name and its place in the file."""

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
    """A link, with its center of mass in the link frame (m), and moments about the center (kg m2).

    mass: in kg; None if the file gives no inertia. axes: axes of the moments, as columns in the
    link frame. place: place of the moments in the file, for repairs; None if they cannot be
    rewritten. meant_massless: True if the file states that the link has no inertia, or is only a
    frame.
    """

    mass: float | None = None
    center: np.ndarray = field(default_factory=lambda: np.zeros(3))
    moments: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    axes: np.ndarray = field(default_factory=lambda: np.eye(3))
    shapes: tuple[Solid, ...] = ()
    place: Any = None
    meant_massless: bool = False

    @cached_property
    def inertia(self) -> np.ndarray:
        """Inertia about the center of mass, along the link's axes."""
        return self.axes @ self.moments @ self.axes.T

    @cached_property
    def principal(self) -> np.ndarray:
        """Principal moments, the smallest first; zeros if they overflow."""
        sound = np.isfinite(np.sum(np.abs(self.moments)))
        return np.linalg.eigvalsh(self.moments) if sound else np.zeros(3)

    @cached_property
    def second_moments(self) -> np.ndarray:
        """Second moments of mass about the principal planes, the smallest first.

        They are non-negative for every possible body. Together with the mass, they are the
        eigenvalues of the pseudo-inertia about the center of mass (Wensing, Kim and Slotine 2018),
        which is positive definite if and only if all eigenvalues are positive.
        """
        return (np.sum(self.principal) / 2.0 - self.principal)[::-1]

    @property
    def extended(self) -> bool:
        """True if the link has a mass that extends in all directions."""
        return self.mass is not None and self.mass > 0.0 and bool(self.second_moments[0] > 0.0)


@dataclass(frozen=True, eq=False)
class Joint(_Part):
    """A joint, with the limits that the file gives (rad or m, rad/s or m/s, N m or N).

    kind: joint type; an unknown type is given as written in the file. position (m), angles (rad):
    pose on the parent link, if the file gives it in this form. place: place of the limits in the
    file, for repairs.
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
        """True if the joint's type requires limits."""
        return traits(self.kind).bounds == "needed"

    @property
    def range(self) -> tuple[float, float] | None:
        """Lower and upper limit if both are finite, or None."""
        lower, upper = (self.limits.get(key, math.inf) for key in ("lower", "upper"))
        bounded = self.bounded and math.isfinite(lower) and math.isfinite(upper)
        return (lower, upper) if bounded else None


# Text of a file -------------------------------------------------------------------------------


class Table(NamedTuple):
    """A table of a TOML file.

    `span` is the span of its list `inertia` in the text. `written` converts moments (kg m2, about
    the center of mass) to the units and reference point of the file.
    """

    span: tuple[int, int]
    written: Callable[[np.ndarray], Sequence[float]]


class Edit(NamedTuple):
    """New text of an attribute or a child of an XML element, or of a key in TOML."""

    place: Any
    name: str
    text: str


_TAG = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<([^\s<>/!?][^\s<>/]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
"""Pattern of a comment, CDATA section or processing instruction, or of a start tag with groups for
its name and attributes."""


@dataclass(frozen=True, eq=False)
class Document:
    """A file to be repaired.

    root: the root element of an XML file; `Edit.place` is one of its elements.
    """

    file: str
    data: bytes
    root: Any = None

    @cached_property
    def text(self) -> str:
        """Text of the file, which must be in UTF-8."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            problem = "only UTF-8 files can be repaired"
            raise ModelError("E-LINT-002", problem, "save it in UTF-8", file=self.file) from None

    @cached_property
    def _starts(self) -> dict[etree._Element, re.Match[str]]:
        """Start tag of each element; elements and tags are in the order of the text."""
        tags = (match for match in _TAG.finditer(self.text) if match[1])
        return dict(zip(self.root.iter(), tags, strict=True))

    def span(self, edit: Edit) -> tuple[int, int]:
        """Return the start and end of the text that an edit replaces."""
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


# A file ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sheet:
    """Contents of a robot file.

    document: text of the file for repairs; None if the file cannot be repaired. references:
    references from transmissions and extensions to joints and links, as tuples (place of the
    reference, referring part, "joint", "link" or "part", name). faults: invalid numbers. recovered:
    malformed or incomplete parts that are still read. needs_limits: True if the format requires
    limits for every revolute and prismatic joint. refusals: reasons why the file does not load.
    robot: the robot, if it loads. outside: finite numbers outside their ranges. reductions: gear
    ratios of transmissions, as tuples (place, joint, ratio).
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

    @cached_property
    def by_name(self) -> dict[str, Joint]:
        return {joint.name: joint for joint in self.joints}

    @cached_property
    def moved(self) -> dict[str, Joint]:
        """Moving joints by the link that they carry."""
        return {joint.child: joint for joint in self.joints if joint.kind != "fixed"}

    def carriers(self, *, fixed: bool) -> set[str | None]:
        """Return links that have or carry a mass; `fixed` considers only fixed joints."""
        above = {x.child: x.parent for x in self.joints if x.kind == "fixed" or not fixed}
        found: set[str | None] = set()
        for link in self.links:
            name: str | None = link.name if link.mass else None
            while name is not None and name not in found:
                found.add(name)
                name = above.get(name)
        return found
