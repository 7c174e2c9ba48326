"""Compute the first intersection of a ray with a shape (Ericson 2005, section 5.3).

Rays are expressed in the frame of the shape.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from chasles.expr import Number, less, less_equal, minimum, select, sqrt
from chasles.mathematics.linear import Vector

FAR = 1e10
"""Distance (m) returned if a ray misses a shape."""

_TINY = 1e-15
"""Threshold for discriminants and divisors, below which a ray misses a shape (as in MuJoCo)."""

Ray = tuple[Vector, Vector]
"""Origin and direction of a ray. Distances are in units of the direction's length."""


def distance(
    ray: Ray, kind: str, size: Sequence[float], triangles: Iterable[Sequence[float]] = ()
) -> Number:
    """Return the distance along a ray to the surface of a shape, or `FAR` if the ray misses it.

    The origin of the ray may be inside the shape.
    """
    if kind == "mesh":
        return _nearest(_triangle(ray, corners) for corners in triangles)
    return SHAPES[kind](ray, size)


def is_inside(point: Vector, kind: str, size: Sequence[float]) -> Number:
    """Return 1 if a point is inside a shape or on its surface, and 0 otherwise."""
    x, y, z = point
    if kind == "sphere":
        return less_equal(point.dot(point), size[0] * size[0])
    if kind == "ellipsoid":
        scaled = Vector(tuple(c / s for c, s in zip(point, size, strict=True)))
        return less_equal(scaled.dot(scaled), 1.0)
    if kind == "box":
        return _all(less_equal(c * c, 0.25 * s * s) for c, s in zip(point, size, strict=True))
    radius, half = size[0], 0.5 * size[1]
    within = less_equal(x * x + y * y, radius * radius)
    if kind == "cylinder":
        return _all((within, less_equal(z * z, half * half)))
    over = select(less(z, 0.0), -z, z) - half
    over = select(less(over, 0.0), 0.0, over)
    return less_equal(x * x + y * y + over * over, radius * radius)


def _sphere(ray: Ray, size: Sequence[float]) -> Number:
    return _nearest((t, 1.0) for t in _roots(*_quadratic(*ray, size[0])))


def _ellipsoid(ray: Ray, size: Sequence[float]) -> Number:
    p, v = (Vector(tuple(c / s for c, s in zip(x, size, strict=True))) for x in ray)
    return _sphere((p, v), (1.0,))


def _capsule(ray: Ray, size: Sequence[float]) -> Number:
    radius, half = size[0], 0.5 * size[1]
    (p, v), found = ray, list(_side(ray, radius, half))
    for end, sign in ((half, 1.0), (-half, -1.0)):
        for t, hit in _roots_of(*_quadratic(p - Vector.of(0.0, 0.0, end), v, radius)):
            beyond = less_equal(half, sign * (p[2] + t * v[2]))
            found.append((t, select(hit, beyond, 0.0)))
    return _nearest(found)


def _cylinder(ray: Ray, size: Sequence[float]) -> Number:
    radius, half = size[0], 0.5 * size[1]
    (p, v), found = ray, list(_side(ray, radius, half))
    for end in (half, -half):
        t, hit = _crossing(p[2] - end, v[2])
        x, y = p[0] + t * v[0], p[1] + t * v[1]
        found.append((t, select(hit, less_equal(x * x + y * y, radius * radius), 0.0)))
    return _nearest(found)


def _box(ray: Ray, size: Sequence[float]) -> Number:
    (p, v), found, half = ray, [], [0.5 * s for s in size]
    for axis in range(3):
        others = [k for k in range(3) if k != axis]
        for end in (half[axis], -half[axis]):
            t, hit = _crossing(p[axis] - end, v[axis])
            places = [(p[k] + t * v[k], half[k]) for k in others]
            within = _all(less_equal(c * c, h * h) for c, h in places)
            found.append((t, select(hit, within, 0.0)))
    return _nearest(found)


def _plane(ray: Ray, size: Sequence[float]) -> Number:
    """Return the distance to a plane or rectangle; rays from below do not hit it."""
    p, v = ray
    t, hit = _crossing(p[2], v[2])
    inside = [select(hit, less(v[2], -_TINY), 0.0)]
    for k, length in enumerate(size):
        if math.isfinite(length):
            place = p[k] + t * v[k]
            inside.append(less_equal(place * place, 0.25 * length * length))
    return _nearest([(t, _all(inside))])


def _triangle(ray: Ray, corners: Sequence[float]) -> tuple[Number, Number]:
    """Intersect a ray with a triangle, from either side (Moeller and Trumbore 1997)."""
    p, v = ray
    a, b, c = (Vector(tuple(corners[k : k + 3])) for k in (0, 3, 6))
    first, second = b - a, c - a
    across, start = v.cross(second), p - a
    scale = first.dot(across)
    hit = select(less(scale * scale, _TINY * _TINY), 0.0, 1.0)
    over = 1.0 / select(hit, scale, 1.0)
    u, turned = start.dot(across) * over, start.cross(first)
    w = v.dot(turned) * over
    inside = (hit, less_equal(0.0, u), less_equal(0.0, w), less_equal(u + w, 1.0))
    return second.dot(turned) * over, _all(inside)


SHAPES: dict[str, Callable[[Ray, Sequence[float]], Number]] = {
    "sphere": _sphere,
    "ellipsoid": _ellipsoid,
    "capsule": _capsule,
    "cylinder": _cylinder,
    "box": _box,
    "plane": _plane,
}
"""Functions that return the distance along a ray to a shape, by kind of shape.

The sizes of shapes are defined in `ShapeData`.
"""


def _side(ray: Ray, radius: float, half: float) -> Iterable[tuple[Number, Number]]:
    """Yield the intersections with the curved surface of a cylinder."""
    p, v = ray
    flat = (Vector.of(p[0], p[1], 0.0), Vector.of(v[0], v[1], 0.0))
    for t, hit in _roots_of(*_quadratic(*flat, radius)):
        z = p[2] + t * v[2]
        yield t, select(hit, less_equal(z * z, half * half), 0.0)


def _quadratic(p: Vector, v: Vector, radius: float) -> tuple[Number, Number, Number]:
    """Return a, b and c in the equation a t^2 + 2 b t + c = 0 for intersections with a sphere."""
    return v.dot(v), v.dot(p), p.dot(p) - radius * radius


def _roots_of(a: Number, b: Number, c: Number) -> list[tuple[Number, Number]]:
    """Return both roots of a t^2 + 2 b t + c = 0, each with a flag (1 if it exists, 0 otherwise).

    For a = 0 (a ray along the axis of a cylinder), no root exists.
    """
    inner = b * b - a * c
    hit = select(less(inner, _TINY), 0.0, select(less(a, _TINY), 0.0, 1.0))
    root = sqrt(select(hit, inner, 1.0))
    over = 1.0 / select(hit, a, 1.0)
    return [((-b - root) * over, hit), ((-b + root) * over, hit)]


def _roots(a: Number, b: Number, c: Number) -> list[Number]:
    return [select(hit, t, FAR) for t, hit in _roots_of(a, b, c)]


def _crossing(p: Number, v: Number) -> tuple[Number, Number]:
    """Solve p + t v = 0 for t; return t and a flag: 1 if a solution exists, otherwise 0."""
    hit = select(less(v * v, _TINY * _TINY), 0.0, 1.0)
    return -p / select(hit, v, 1.0), hit


def _nearest(found: Iterable[tuple[Number, Number]]) -> Number:
    """Return the distance to the nearest intersection ahead, or `FAR` if there is none.

    `found` contains a distance and a flag for each candidate. The flag is 1 for an intersection.
    """
    ahead = (select(hit, select(less(t, 0.0), FAR, t), FAR) for t, hit in found)
    return reduce(minimum, ahead, FAR)


def _all(conditions: Iterable[Number]) -> Number:
    return reduce(lambda a, b: select(a, b, 0.0), conditions, 1.0)
