"""What lint looks at: the links, joints and shapes of a file, also of one that does not load."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from chasles.lint.documents import Document
from chasles.lint.solids import Solid
from chasles.model import Mimic
from chasles.model.joints import traits
from chasles.robot import Robot


class Found(NamedTuple):
    """What a check found: the part by kind and name, "file:line", and the fact.

    remedy: where it is another than the check's own.
    """

    part: str
    where: str
    what: str
    remedy: str = ""


@dataclass(frozen=True, eq=False)
class Link:
    """A link: its centre of mass in its own frame (m), its moments about it (kg m2).

    mass: in kg; None where the file gives no inertia. axes: those of the moments, as columns in the
    link's frame. place: where the moments stand in the file, for a repair; None where they cannot
    be rewritten. meant_massless: the file says that it has no inertia, or is a place only.
    """

    name: str
    where: str
    mass: float | None = None
    center: np.ndarray = field(default_factory=lambda: np.zeros(3))
    moments: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    axes: np.ndarray = field(default_factory=lambda: np.eye(3))
    shapes: tuple[Solid, ...] = ()
    place: Any = None
    meant_massless: bool = False

    @property
    def part(self) -> str:
        return f"link {self.name!r}"

    @cached_property
    def inertia(self) -> np.ndarray:
        """About the centre of mass, along the link's own axes."""
        return self.axes @ self.moments @ self.axes.T

    @cached_property
    def principal(self) -> np.ndarray:
        """The principal moments, the smallest first; zeros where they are beyond all numbers."""
        sound = np.isfinite(np.sum(np.abs(self.moments)))
        return np.linalg.eigvalsh(self.moments) if sound else np.zeros(3)

    @cached_property
    def second_moments(self) -> np.ndarray:
        """Of the mass about the three principal planes, the smallest first: none is negative.

        With the mass they are the eigenvalues of the pseudo-inertia about the centre of mass
        (Wensing, Kim and Slotine 2018), which is positive definite if and only if all are positive.
        """
        return (np.sum(self.principal) / 2.0 - self.principal)[::-1]

    @property
    def extended(self) -> bool:
        """Whether it has a mass that is spread in all directions."""
        return self.mass is not None and self.mass > 0.0 and bool(self.second_moments[0] > 0.0)


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint: its limits as far as the file gives them, in rad or m, N m or N, and per second.

    kind: its type, or the file's word where that is none.
    position (m), angles (rad): its place on the parent link, where the file says it so.
    place: where the limits stand in the file, for a repair.
    """

    name: str
    where: str
    kind: str
    parent: str | None
    child: str
    limits: Mapping[str, float] = field(default_factory=dict)
    mimic: Mimic | None = None
    position: tuple[float, ...] = (0.0, 0.0, 0.0)
    angles: tuple[float, ...] = (0.0, 0.0, 0.0)
    place: Any = None

    @property
    def part(self) -> str:
        return f"joint {self.name!r}"

    @property
    def bounded(self) -> bool:
        """Whether it is of a type that has limits."""
        return traits(self.kind).bounds == "needed"

    @property
    def range(self) -> tuple[float, float] | None:
        """Both bounds, finite, or None."""
        lower, upper = (self.limits.get(key, math.inf) for key in ("lower", "upper"))
        bounded = self.bounded and math.isfinite(lower) and math.isfinite(upper)
        return (lower, upper) if bounded else None


@dataclass(frozen=True, eq=False)
class Sheet:
    """A file. document: what a repair edits, None where it cannot be.

    references: of transmissions and the like to joints and links, as (where, who, "joint" or
    "link", name). faults: numbers that are none. needs_limits: the format wants limits of every
    revolute and prismatic joint. refusal: why it does not load. robot: where it does.
    """

    file: str
    links: tuple[Link, ...] = ()
    joints: tuple[Joint, ...] = ()
    references: tuple[tuple[str, str, str, str], ...] = ()
    faults: tuple[Found, ...] = ()
    needs_limits: bool = False
    document: Document | None = None
    refusal: Found | None = None
    robot: Robot | None = None

    @cached_property
    def by_name(self) -> dict[str, Joint]:
        return {joint.name: joint for joint in self.joints}

    @cached_property
    def moved(self) -> dict[str, Joint]:
        """The joint that carries each link, where it is a moving one."""
        return {joint.child: joint for joint in self.joints if joint.kind != "fixed"}

    def carriers(self, *, fixed: bool) -> set[str | None]:
        """Links with a mass, and those that carry one; fixed: that does not move against them."""
        above = {x.child: x.parent for x in self.joints if x.kind == "fixed" or not fixed}
        found: set[str | None] = set()
        for link in self.links:
            name: str | None = link.name if link.mass else None
            while name is not None and name not in found:
                found.add(name)
                name = above.get(name)
        return found
