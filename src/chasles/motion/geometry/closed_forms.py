"""Shapes with closed forms: the point of a surface that is nearest to a ball.

Points, balls, the ends of a capsule and the corners of a box are balls (of radius zero or more);
planes, grounds of a given height, balls, capsules and boxes are surfaces. A surface is asked, in
its own frame, for the point nearest to a ball's moving centre; what a pair does follows from that,
whatever the two frames do (`features.py`). Lengths in m; centres, ends and poses are
in the frame that carries the shape. frame: of the robot, or None for the world.

Everything is written in operations that floats, NumPy arrays and symbols share.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from numbers import Real
from typing import Any, Protocol

import numpy as np

from chasles import backends, expr
from chasles.backends.arrays import call
from chasles.errors import InputError, said
from chasles.expr import RULES, Arena, Number, Program, Scalar, Variable, is_number, jacobian
from chasles.mathematics.linear import Vector

Value = Any
"""A float, an array of them, or a symbol: laws and shapes take and give any of the three."""
Place = tuple[float, float, float]
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


# Operations on any value ------------------------------------------------------------------------


def _on_any(on_arrays: Callable[..., Value], on_numbers: Callable[..., Value]) -> Any:
    """An operation by its spelling for arrays, where an argument is one, else for numbers."""

    def operation(*arguments: Value) -> Value:
        arrays = any(isinstance(a, np.ndarray | np.generic) for a in arguments)
        return (on_arrays if arrays else on_numbers)(*arguments)

    return operation


def _where(condition: Value, a: Value, b: Value) -> Value:
    """NumPy's choice; of single numbers a number, which vectors can be scaled by."""
    return np.asarray(np.where(condition, a, b))[()]


maximum = _on_any(np.maximum, expr.maximum)
minimum = _on_any(np.minimum, expr.minimum)
absolute = _on_any(np.abs, expr.absolute)
sqrt = _on_any(np.sqrt, expr.sqrt)
less = _on_any(lambda a, b: _where(np.less(a, b), 1.0, 0.0), expr.less)
less_equal = _on_any(lambda a, b: _where(np.less_equal(a, b), 1.0, 0.0), expr.less_equal)
select = _on_any(lambda c, a, b: _where(np.not_equal(c, 0.0), a, b), expr.select)


def scaled(v: Vector, factor: Value) -> Vector:
    """v times a factor, which may be an array as the entries of v may."""
    return Vector(tuple([x * factor for x in v]))


def chosen(condition: Value, a: Vector, b: Vector) -> Vector:
    """a where the condition is non-zero, b elsewhere."""
    return Vector(tuple([select(condition, x, y) for x, y in zip(a, b, strict=True)]))


def _across(n: Vector, v: Vector) -> Vector:
    """v without its part along n."""
    return v - scaled(n, n.dot(v))


def tangents(n: Vector) -> tuple[Vector, Vector]:
    """Two unit vectors across a unit vector; of (0, 0, 1) those along x and y.

    They jump where n is horizontal and nowhere else (Duff and others 2017, *Building an orthonormal
    basis, revisited*).
    """
    x, y, z = n
    up: Value = select(less(z, 0.0), -1.0, 1.0)
    a = -1.0 / (up + z)
    b = x * y * a
    return Vector.of(1.0 + up * x * x * a, up * b, -up * x), Vector.of(b, up + y * y * a, -y)


# Shapes ----------------------------------------------------------------------------------------


class _ClosedForm:
    """A surface that knows the point nearest to a moving one."""

    def near(self, c: Vector, v: Vector) -> Near:
        """Distance, normal and its rate at a place c that moves with v, in the shape's frame."""
        raise NotImplementedError

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """The same for arrays (..., 3) of places and velocities."""
        with np.errstate(divide="ignore", invalid="ignore"):  # coinciding centres: not a number
            places = (Vector(tuple([x[..., k] for k in range(3)])) for x in (c, v))
            distance, n, rate = self.near(*places)
        shape = np.broadcast_shapes(np.shape(c), np.shape(v))
        turned, turn = (
            np.stack([np.broadcast_to(x, shape[:-1]) for x in u], -1) for u in (n, rate)
        )
        return np.broadcast_to(distance, shape[:-1])[()], turned, turn


def check_places(shape: Any, *names: str) -> None:
    """Three finite numbers each, as a tuple, whatever they were given as."""
    for name in names:
        given = getattr(shape, name)
        try:
            found = tuple(map(float, given))
        except (TypeError, ValueError):
            found = ()
        if len(found) != 3 or not all(map(math.isfinite, found)):
            problem = f"{name} must be three finite numbers, not {given!r:.60}"
            raise InputError("E-CONTACT-001", problem, part=type(shape).__name__)
        object.__setattr__(shape, name, found)


def _check(what: str, *lengths: float) -> None:
    """Refuse shapes without extent."""
    if not all(isinstance(length, Real) and 0.0 < length < math.inf for length in lengths):
        problem = f"{what} must be positive and finite, not {', '.join(map(str, lengths))}"
        raise InputError("E-CONTACT-028", problem)


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
class Sphere(_ClosedForm):
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


@dataclass(frozen=True)
class Capsule(_ClosedForm):
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


@dataclass(frozen=True)
class Box(_ClosedForm):
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


@dataclass(frozen=True)
class Plane(_ClosedForm):
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


@dataclass(frozen=True)
class Ground(_ClosedForm):
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
            return [h, g[..., 0], g[..., 1], *(K[..., i, j] for i in (0, 1) for j in (0, 1))]
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


class Nearby(Protocol):
    """A shape that knows what of it is nearest to a place."""

    @property
    def frame(self) -> str | None:
        """What carries it."""

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Of places c (..., 3) that move with v (..., 3), in its frame."""
