"""Shapes with closed forms: what of a surface is nearest to a ball, and a minimal set of contacts.

Points, balls, the ends of a capsule and the corners of a box are balls (of radius zero or more);
planes, grounds of a given height, balls, capsules and boxes are surfaces. A surface is asked, in
its own frame, for the point nearest to a ball's moving centre; what a pair does follows from that,
whatever the two frames do (`chasles.contact.features`). Lengths in m; centres, ends and poses are
in the frame that carries the shape. frame: of the robot, or None for the world.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.optimize import nnls

from chasles import backends
from chasles.backends.arrays import call
from chasles.contact.carriers import Place, across, unit
from chasles.expr import RULES, Arena, Number, Program, Variable, jacobian

Nearest = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Of a moving point before a surface: distance (...), normal (..., 3) and its rate (..., 3)."""

ROUNDING = 1e-14
STEPS = 50
"""Newton's at most, for the nearest point of a ground."""
ONE = 1e-12
"""Points of contact as near as this (m) are one."""


class Contact(NamedTuple):
    """A point where two bodies touch, or would touch first; along the world's axes.

    successor, predecessor: the frames that carry the two bodies, None for the world. point C
    (..., 3): on the successor, where it is nearest; normal (..., 3): a unit vector from the
    predecessor to the successor. gap (...): their distance, negative where they penetrate.
    point_rate, normal_rate (..., 3): how C and the normal move, as places, in m/s and 1/s. C slides
    and rolls over both bodies. friction: Coulomb's coefficient mu. torsion: that of the moment
    about the normal, in m: alone it is at most torsion times the normal force.
    """

    successor: str | None
    predecessor: str | None
    point: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    point_rate: np.ndarray
    normal_rate: np.ndarray
    friction: float = 0.0
    torsion: float = 0.0


# Shapes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """A point of a body."""

    frame: str | None
    at: Place = (0.0, 0.0, 0.0)

    def balls(self) -> list[tuple[Place, float]]:
        """Itself, as a ball without radius."""
        return [(self.at, 0.0)]


@dataclass(frozen=True)
class Sphere:
    """A ball."""

    frame: str | None
    radius: float
    center: Place = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        _check("Sphere: radius", self.radius)

    def balls(self) -> list[tuple[Place, float]]:
        """Itself."""
        return [(self.center, self.radius)]

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """From the centre."""
        return _from_point(c - np.array(self.center), v, self.radius)


@dataclass(frozen=True)
class Capsule:
    """All points within `radius` of a segment from `start` to `end`."""

    frame: str | None
    radius: float
    start: Place
    end: Place

    def __post_init__(self) -> None:
        _check("Capsule: radius", self.radius)
        _check("Capsule: the distance of its ends", math.dist(self.start, self.end))

    def balls(self) -> list[tuple[Place, float]]:
        """Its ends, which touch a plane first."""
        return [(self.start, self.radius), (self.end, self.radius)]

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """From the nearest point of the segment, which follows along it between the ends."""
        start, along = np.array(self.start), np.subtract(self.end, self.start)
        length = along @ along
        part = (c - start) @ along / length
        inside = (part > 0.0) & (part < 1.0)
        r = c - start - np.clip(part, 0.0, 1.0)[..., None] * along
        follow = np.where(inside, v @ along / length, 0.0)[..., None] * along
        return _from_point(r, v - follow, self.radius)


@dataclass(frozen=True)
class Box:
    """A cuboid with edges `size` along the axes of its frame."""

    frame: str | None
    size: Place
    center: Place = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        _check("Box: every edge", *self.size)

    def balls(self) -> list[tuple[Place, float]]:
        """Its corners, which touch a plane first."""
        (x, y, z), (a, b, c) = self.center, self.size
        return [
            ((x + 0.5 * a * sx, y + 0.5 * b * sy, z + 0.5 * c * sz), 0.0)
            for sx, sy, sz in product((-1.0, 1.0), repeat=3)
        ]

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """From outside the nearest point of face, edge or corner; from inside the nearest face."""
        c, half = c - np.array(self.center), 0.5 * np.array(self.size)
        beyond = np.abs(c) > half
        outside = np.any(beyond, axis=-1)
        r = c - np.clip(c, -half, half)
        face = np.where(np.arange(3) == np.argmin(half - np.abs(c), axis=-1)[..., None], 1.0, 0.0)
        depth = np.min(half - np.abs(c), axis=-1)
        normal = face * np.where(c < 0.0, -1.0, 1.0)
        r = np.where(outside[..., None], r, normal)
        distance, n, rate = _from_point(r, np.where(beyond, v, 0.0), 0.0)
        return np.where(outside, distance, -depth), n, rate


@dataclass(frozen=True)
class Plane:
    """All that lies below a plane through `point`, `normal` up."""

    frame: str | None = None
    normal: Place = (0.0, 0.0, 1.0)
    point: Place = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        _check("Plane: the length of its normal", math.hypot(*self.normal))

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Straight down."""
        n = np.array(self.normal) / np.linalg.norm(self.normal)
        up = np.broadcast_to(n, c.shape)
        return (c - np.array(self.point)) @ n, up, np.zeros_like(up)


@dataclass(frozen=True)
class Ground:
    """All that lies below z = height(x, y), in the world or another frame.

    height is called once, on symbols, and written with arithmetic and the functions of
    `chasles.expr`; it must be smooth. The nearest point of it is found by Newton's method, from
    below the ball's centre, so curvatures must be less than 1/distance.
    """

    height: Callable[[Number, Number], Number]
    frame: str | None = None

    @cached_property
    def _slopes(self) -> Any:
        """Compiled functions of (x, y): the height, its gradient and its Hessian."""
        arena, place = Arena(RULES), Variable("at", (2,))
        x, y = (arena.input("at", k) for k in range(2))
        program = Program.from_outputs(
            "height", [place], [(Variable("height", ()), [self.height(x, y)])]
        )
        first = jacobian(program, ["at"])
        return [backends.compile(p) for p in (program, first, jacobian(first, ["at"]))]

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Where c - p is along the normal at p = (x, y, height)."""
        at = np.array(c[..., :2])
        for _ in range(STEPS):
            h, g, K = (call(f, "height", (at,)) for f in self._slopes)
            above = c[..., 2] - h
            miss = c[..., :2] - at + above[..., None] * g
            slope = np.eye(2) + g[..., :, None] * g[..., None, :] - above[..., None, None] * K
            step = np.linalg.solve(slope, miss[..., None])[..., 0]
            at = at + step
            if np.all(np.abs(step) <= ROUNDING * (1.0 + np.abs(at))):
                break
        else:
            raise ValueError("Ground: no nearest point found; is the ball beyond the curvature?")
        moved = np.linalg.solve(slope, (v[..., :2] + v[..., 2:] * g)[..., None])
        rise = -(K @ moved)[..., 0]
        up = np.concatenate([-g, np.ones_like(h)[..., None]], axis=-1)
        size = np.linalg.norm(up, axis=-1, keepdims=True)
        n = up / size
        rate = across(n, np.concatenate([rise, np.zeros_like(h)[..., None]], axis=-1)) / size
        foot = np.concatenate([at, h[..., None]], axis=-1)
        return np.sum(n * (c - foot), axis=-1), n, rate


Ball = Point | Sphere | Capsule | Box
Surface = Sphere | Capsule | Box | Plane | Ground


def _check(what: str, *lengths: float) -> None:
    """Refuse shapes without extent."""
    if not all(0.0 < length < math.inf for length in lengths):
        raise ValueError(f"{what} must be positive and finite, not {', '.join(map(str, lengths))}")


def _from_point(r: np.ndarray, v: np.ndarray, radius: float) -> Nearest:
    """Before a ball around the origin: r is a place, v its rate."""
    distance, n, rate = unit(r, v)
    return distance - radius, n, rate


class Nearby(Protocol):
    """A shape that knows what of it is nearest to a place."""

    @property
    def frame(self) -> str | None:
        """What carries it."""

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Of places c (..., 3) that move with v (..., 3), in its frame."""


def minimal(contacts: Sequence[Contact], *, tolerance: float = 1e-9) -> list[Contact]:
    """The contacts without those that say nothing beyond the others: a minimal set.

    One is left out where its normal, as a unit force along its line, is a sum of others of the same
    two bodies with factors >= 0 (Featherstone 2008, section 11.6). Of an edge on a plane its two
    ends are left, of a face the corners of its convex hull. Without friction nothing changes.
    contacts: of one state. tolerance: relative, with lengths in parts of the patch.
    """
    kept = list(contacts)
    for contact in contacts:
        others = [o for o in kept if o is not contact and o[:2] == contact[:2]]
        size = max((np.linalg.norm(o.point - contact.point) for o in others), default=0.0)
        size = size if size > ONE else 1.0
        lines = [
            np.concatenate([np.cross(o.point - contact.point, o.normal) / size, o.normal])
            for o in (*others, contact)
        ]
        if others and nnls(np.transpose(lines[:-1]), lines[-1])[1] <= tolerance:
            kept = [o for o in kept if o is not contact]
    return kept
