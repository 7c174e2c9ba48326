"""Links, joints and text of a file that may not load, as lint sees them; and findings."""

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
"""Severities, the gravest first: impossible; probably unintended; worth a look."""


@dataclass(frozen=True)
class Finding:
    """One finding in a robot file.

    `check` is the row of the table of checks and `severity` "error", "warning" or "note". `where`
    is "file:line", or the file without a line, and `part` the part, such as "link 'hand'". `what`
    states the fact, `why` its effect on results and `remedy` the action. `repairable` is True if
    `chasles lint --fix` can repair it.
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
    """Return True if a finding is as grave as a severity, or graver."""
    return SEVERITIES.index(finding.severity) <= SEVERITIES.index(severity)


class Found(NamedTuple):
    """Result of a check: part, "file:line", fact, and a remedy if it is not the check's own."""

    part: str
    where: str
    what: str
    remedy: str = ""


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of a robot, by its name and its place in the file."""

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
    """A link: its center of mass in its own frame (m), its moments about it (kg m2).

    mass: in kg; None where the file gives no inertia. axes: those of the moments, as columns in the
    link's frame. place: where the moments stand in the file, for a repair; None where they cannot
    be rewritten. meant_massless: the file says that it has no inertia, or is a place only.
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
        """Second moments of mass about the principal planes, the smallest first: none is negative.

        With the mass they are the eigenvalues of the pseudo-inertia about the center of mass
        (Wensing, Kim and Slotine 2018), which is positive definite if and only if all are positive.
        """
        return (np.sum(self.principal) / 2.0 - self.principal)[::-1]

    @property
    def extended(self) -> bool:
        """True if the link has mass that extends in all directions."""
        return self.mass is not None and self.mass > 0.0 and bool(self.second_moments[0] > 0.0)


@dataclass(frozen=True, eq=False)
class Joint(_Part):
    """A joint: its limits as far as the file gives them, in rad or m, N m or N, and per second.

    kind: its type, or the file's word where that is none.
    position (m), angles (rad): its place on the parent link, where the file says it so.
    place: where the limits stand in the file, for a repair.
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
        """Both bounds if finite, or None."""
        lower, upper = (self.limits.get(key, math.inf) for key in ("lower", "upper"))
        bounded = self.bounded and math.isfinite(lower) and math.isfinite(upper)
        return (lower, upper) if bounded else None


# The text of a file ---------------------------------------------------------------------------


class Table(NamedTuple):
    """A table of a TOML file.

    `span` is the span of its list `inertia` in the text. `written` converts moments (kg m2, about
    the center of mass) to the units and reference point of the file.
    """

    span: tuple[int, int]
    written: Callable[[np.ndarray], Sequence[float]]


class Edit(NamedTuple):
    """New text of an element's attribute, of its child of that name, or of a key in TOML."""

    place: Any
    name: str
    text: str


_TAG = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<([^\s<>/!?][^\s<>/]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
"""A comment, CDATA or instruction, or a start tag by its name and attributes."""


@dataclass(frozen=True, eq=False)
class Document:
    """A file that is repaired.

    root: the root element of an XML file, whose elements are the places.
    """

    file: str
    data: bytes
    root: Any = None

    @cached_property
    def text(self) -> str:
        """All of it, which must be in UTF-8."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            problem = "only UTF-8 files can be repaired"
            raise ModelError("E-LINT-002", problem, "save it in UTF-8", file=self.file) from None

    @cached_property
    def _starts(self) -> dict[etree._Element, re.Match[str]]:
        """The start tag of each element: both are in the order of the text."""
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
    """A file. document: what a repair edits, None where it cannot be.

    references: of transmissions and the like to joints and links, as (where, who, "joint" or
    "link", name). faults: invalid numbers. recovered: parts that are read differently than written.
    needs_limits: the format requires limits of every revolute and prismatic joint. refusal: reason
    why it does not load. robot: the robot, if it loads. outside: finite numbers outside their
    ranges. reductions: gear ratios of transmissions, as (where, joint, ratio).
    """

    file: str
    links: tuple[Link, ...] = ()
    joints: tuple[Joint, ...] = ()
    references: tuple[tuple[str, str, str, str], ...] = ()
    faults: tuple[Found, ...] = ()
    recovered: tuple[Found, ...] = ()
    needs_limits: bool = False
    document: Document | None = None
    refusal: Found | None = None
    robot: Robot | None = None
    outside: tuple[Entry, ...] = ()
    reductions: tuple[tuple[str, str, float], ...] = ()

    @cached_property
    def by_name(self) -> dict[str, Joint]:
        return {joint.name: joint for joint in self.joints}

    @cached_property
    def moved(self) -> dict[str, Joint]:
        """Return the moving joint that carries each link, if there is one."""
        return {joint.child: joint for joint in self.joints if joint.kind != "fixed"}

    def carriers(self, *, fixed: bool) -> set[str | None]:
        """Return links with a mass, or that carry one; fixed: only without relative motion."""
        above = {x.child: x.parent for x in self.joints if x.kind == "fixed" or not fixed}
        found: set[str | None] = set()
        for link in self.links:
            name: str | None = link.name if link.mass else None
            while name is not None and name not in found:
                found.add(name)
                name = above.get(name)
        return found
