"""Shapes with closed forms: what of a surface is nearest to a ball, and a minimal set of contacts.

Points, balls, the ends of a capsule and the corners of a box are balls (of radius zero or more);
planes, grounds of a given height, balls, capsules and boxes are surfaces. A surface is asked, in
its own frame, for the point nearest to a ball's moving centre; what a pair does follows from that,
whatever the two frames do (`features.py`). Lengths in m; centres, ends and poses are
in the frame that carries the shape. frame: of the robot, or None for the world.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy

from chasles import backends
from chasles.backends.arrays import call
from chasles.errors import ArgumentError, InputError, said
from chasles.expr import RULES, Arena, Number, Program, Scalar, Variable, is_number, jacobian
from chasles.mathematics.linear import Vector
from chasles.motion.geometry.arithmetic import (
    Value,
    absolute,
    chosen,
    less,
    less_equal,
    maximum,
    minimum,
    scaled,
    select,
    sqrt,
)
from chasles.motion.geometry.carriers import Place, check_places

Near = tuple[Value, Vector, Vector]
"""Of a moving point before a surface: distance, normal, and the normal's rate."""
Nearest = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The same as arrays: (...), (..., 3) and (..., 3)."""

ROUNDING = 1e-14
STEPS = 50
"""Newton's at most, for the nearest point of a ground."""
TRACED = 4
"""Newton's where they are traced into a program, which cannot see when they are enough: from below
a ball's centre the error is squared by each, so that slopes of 1 end at rounding."""
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


def listed(function: str, contacts: Any) -> list[Contact]:
    """Contacts as a list; one alone, which is a tuple too, is not taken for many."""
    found = [] if isinstance(contacts, Contact) else list(contacts)
    if isinstance(contacts, Contact) or not all(isinstance(c, Contact) for c in found):
        problem = f"contacts must be a list, as contact_points gives it, not {contacts!r:.60}"
        raise ArgumentError("E-CONTACT-024", problem, part=function)
    return found


# Shapes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """A point of a body."""

    frame: str | None
    at: Place = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        check_places(self, "at")

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
        check_places(self, "center")
        _check("Sphere: radius", self.radius)

    def balls(self) -> list[tuple[Place, float]]:
        """Itself."""
        return [(self.center, self.radius)]

    def near(self, c: Vector, v: Vector) -> Near:
        """From the centre."""
        return _from_point(c - Vector(self.center), v, self.radius)

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """The same of arrays."""
        return _of_arrays(self.near, c, v)


@dataclass(frozen=True)
class Capsule:
    """All points within `radius` of a segment from `start` to `end`."""

    frame: str | None
    radius: float
    start: Place
    end: Place

    def __post_init__(self) -> None:
        check_places(self, "start", "end")
        _check("Capsule: radius", self.radius)
        _check("Capsule: the distance of its ends", math.dist(self.start, self.end))

    def balls(self) -> list[tuple[Place, float]]:
        """Its ends, which touch a plane first."""
        return [(self.start, self.radius), (self.end, self.radius)]

    def near(self, c: Vector, v: Vector) -> Near:
        """From the nearest point of the segment, which follows along it between the ends."""
        start, along = Vector(self.start), Vector(self.end) - Vector(self.start)
        length = along.dot(along)
        part = (c - start).dot(along) / length
        inside = less(0.0, part) * less(part, 1.0)
        r = c - start - scaled(along, minimum(maximum(part, 0.0), 1.0))
        follow = scaled(along, select(inside, v.dot(along) / length, 0.0))
        return _from_point(r, v - follow, self.radius)

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """The same of arrays."""
        return _of_arrays(self.near, c, v)


@dataclass(frozen=True)
class Box:
    """A cuboid with edges `size` along the axes of its frame."""

    frame: str | None
    size: Place
    center: Place = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        check_places(self, "size", "center")
        _check("Box: every edge", *self.size)

    def balls(self) -> list[tuple[Place, float]]:
        """Its corners, which touch a plane first."""
        (x, y, z), (a, b, c) = self.center, self.size
        return [
            ((x + 0.5 * a * sx, y + 0.5 * b * sy, z + 0.5 * c * sz), 0.0)
            for sx, sy, sz in product((-1.0, 1.0), repeat=3)
        ]

    def near(self, c: Vector, v: Vector) -> Near:
        """From outside the nearest point of face, edge or corner; from inside the nearest face."""
        c, half = c - Vector(self.center), [0.5 * size for size in self.size]
        sides = list(zip(c, half, strict=True))
        depths = [h - absolute(x) for x, h in sides]
        beyond = [less(d, 0.0) for d in depths]
        outside = maximum(maximum(beyond[0], beyond[1]), beyond[2])
        first = less_equal(depths[0], depths[1]) * less_equal(depths[0], depths[2])
        second = (1.0 - first) * less_equal(depths[1], depths[2])
        faces = first, second, (1.0 - first) * (1.0 - second)
        normal = [f * select(less(x, 0.0), -1.0, 1.0) for f, x in zip(faces, c, strict=True)]
        r = Vector(tuple([x - minimum(maximum(x, -h), h) for x, h in sides]))
        v = Vector(tuple([b * u for b, u in zip(beyond, v, strict=True)]))
        distance, n, rate = _from_point(chosen(outside, r, Vector(tuple(normal))), v, 0.0)
        depth = minimum(minimum(depths[0], depths[1]), depths[2])
        return select(outside, distance, -depth), n, rate

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """The same of arrays."""
        return _of_arrays(self.near, c, v)


@dataclass(frozen=True)
class Plane:
    """All that lies below a plane through `point`, `normal` up."""

    frame: str | None = None
    normal: Place = (0.0, 0.0, 1.0)
    point: Place = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        check_places(self, "normal", "point")
        _check("Plane: the length of its normal", math.hypot(*self.normal))

    def near(self, c: Vector, v: Vector) -> Near:
        """Straight down."""
        n = Vector(self.normal) * (1.0 / math.hypot(*self.normal))
        return (c - Vector(self.point)).dot(n), n, Vector.zero()

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """The same of arrays."""
        return _of_arrays(self.near, c, v)


@dataclass(frozen=True)
class Ground:
    """All that lies below z = height(x, y), in the world or another frame.

    height is called once, on symbols, and written with arithmetic and the functions of
    `chasles.expr`; it must be smooth. The nearest point of it is found by Newton's method, from
    below the ball's centre, so curvatures must be less than 1/distance. In a compiled step there
    are four iterations (`TRACED`), whatever they reach.
    """

    height: Callable[[Number, Number], Number]
    frame: str | None = None

    @cached_property
    def _programs(self) -> list[Program]:
        """Of (x, y): the height, its gradient and its Hessian."""
        arena, place = Arena(RULES), Variable("at", (2,))
        x, y = (arena.input("at", k) for k in range(2))
        try:
            height = self.height(x, y)
        except Exception as error:
            problem = f"height failed on symbols, {type(error).__name__}: {said(error)}"
            remedy = "let it take (x, y), and write it with the functions of chasles.expr"
            raise InputError("E-CONTACT-025", problem, remedy, part="Ground") from error
        if not is_number(height):
            problem = f"height gives {height!r:.60}"
            raise InputError("E-CONTACT-026", problem, "return one number, z in m", part="Ground")
        program = Program.from_outputs("height", [place], [(Variable("height", ()), [height])])
        first = jacobian(program, ["at"])
        return [program, first, jacobian(first, ["at"])]

    @cached_property
    def _compiled(self) -> list[Any]:
        return [backends.compile(p) for p in self._programs]

    def _slopes(self, x: Value, y: Value) -> list[Value]:
        """h, then its derivatives by x, y, xx, xy, yx, yy."""
        arena = next((a.arena for a in (x, y) if isinstance(a, Scalar)), None)
        if arena is None:
            at = np.stack([x, y], axis=-1)
            h, g, K = (call(f, "height", (at,)) for f in self._compiled)
            return [
                h,
                *(g[..., i] for i in (0, 1)),
                *(K[..., i, j] for i in (0, 1) for j in (0, 1)),
            ]
        replayed = [(p, p.replay({"at": [x, y]}, arena)) for p in self._programs]
        return [values[r] for p, values in replayed for r in p.results[0]]

    def near(self, c: Vector, v: Vector) -> Near:
        """Where c - p is along the normal at p = (x, y, height)."""
        x, y = c[0], c[1]
        traced = any(isinstance(a, Scalar) for a in c)
        for _ in range(TRACED if traced else STEPS):
            h, gx, gy, *K = self._slopes(x, y)
            above = c[2] - h
            dx, dy = _solved(gx, gy, above, K, c[0] - x + above * gx, c[1] - y + above * gy)
            x, y = x + dx, y + dy
            if not traced and np.all(
                maximum(absolute(dx), absolute(dy)) <= ROUNDING * (1.0 + absolute(x) + absolute(y))
            ):
                break
        else:
            if not traced:
                remedy = "is the ball beyond the curvature?"
                raise InputError("E-CONTACT-027", "no nearest point found", remedy, part="Ground")
        h, gx, gy, *K = self._slopes(x, y)
        mx, my = _solved(gx, gy, c[2] - h, K, v[0] + v[2] * gx, v[1] + v[2] * gy)
        rise = Vector.of(-(K[0] * mx + K[1] * my), -(K[2] * mx + K[3] * my), 0.0)
        over = 1.0 / sqrt(1.0 + gx * gx + gy * gy)
        n = Vector.of(-gx * over, -gy * over, over)
        return n.dot(c - Vector.of(x, y, h)), n, scaled(_across(n, rise), over)

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """The same of arrays."""
        return _of_arrays(self.near, c, v)


Ball = Point | Sphere | Capsule | Box
Surface = Sphere | Capsule | Box | Plane | Ground


def _check(what: str, *lengths: float) -> None:
    """Refuse shapes without extent."""
    if not all(isinstance(length, Real) and 0.0 < length < math.inf for length in lengths):
        problem = f"{what} must be positive and finite, not {', '.join(map(str, lengths))}"
        raise InputError("E-CONTACT-028", problem)


def _solved(
    gx: Value, gy: Value, above: Value, K: Sequence[Value], bx: Value, by: Value
) -> tuple[Value, Value]:
    """(1 + g g' - above K)^-1 b, in the plane: how the foot of a point over a ground moves."""
    xx, yy = 1.0 + gx * gx - above * K[0], 1.0 + gy * gy - above * K[3]
    xy = gx * gy - above * K[1]
    over = 1.0 / (xx * yy - xy * xy)
    return (yy * bx - xy * by) * over, (xx * by - xy * bx) * over


def _from_point(r: Vector, v: Vector, radius: float) -> Near:
    """Before a ball around the origin: r is a place, v its rate. Of the centre it is NaN."""
    distance = sqrt(r.dot(r))
    over = 1.0 / distance
    n = scaled(r, over)
    return distance - radius, n, scaled(_across(n, v), over)


def _across(n: Vector, v: Vector) -> Vector:
    """v without its part along n."""
    return v - scaled(n, n.dot(v))


def _of_arrays(near: Callable[..., Near], c: np.ndarray, v: np.ndarray) -> Nearest:
    """Distances, normals and their rates for arrays (..., 3) of places and velocities."""
    with np.errstate(divide="ignore", invalid="ignore"):  # coinciding centres: not a number
        distance, n, rate = near(_columns(c), _columns(v))
    shape = np.broadcast_shapes(np.shape(c), np.shape(v))
    return np.broadcast_to(distance, shape[:-1])[()], _rows(n, shape), _rows(rate, shape)


def _columns(rows: np.ndarray) -> Vector:
    return Vector(tuple(np.asarray(rows)[..., k] for k in range(np.shape(rows)[-1])))


def _rows(v: Vector, shape: tuple[int, ...]) -> np.ndarray:
    return np.stack([np.broadcast_to(x, shape[:-1]) for x in v], axis=-1)


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
        if others and scipy.optimize.nnls(np.transpose(lines[:-1]), lines[-1])[1] <= tolerance:
            kept = [o for o in kept if o is not contact]
    return kept
