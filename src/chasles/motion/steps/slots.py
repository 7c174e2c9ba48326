"""Contact slots (potential contact points) of two shapes in a time step, as expressions.

Every pair of shapes has a fixed number of slots. A slot consists of a point, a normal from the
second shape to the first, and a gap; slots with a large gap are inactive. Because all slots are
evaluated in every step, the compiled programs have no branches, and all states of a batch follow
the same code path.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError
from chasles.motion.contact.pairs import Pair
from chasles.motion.geometry.closed_forms import (
    Box,
    Capsule,
    Ground,
    Plane,
    Point,
    Sphere,
    applied,
    contact_axes,
    less,
    maximum,
    minimum,
    select,
    sqrt,
)
from chasles.motion.geometry.fields import HeightField, contacts_on_field, slots_on_field
from chasles.motion.geometry.shapes import Body, ConvexMesh, Cylinder
from chasles.motion.steps.boxes import box_on_box
from chasles.motion.steps.spots import Placed, Spot

TILT = 0.05
"""Tilt of the four directions used to find the lowest vertices of a convex hull. The value is the
tangent of the angle between each direction and the plane's normal."""

MOST_CORNERS = 8
"""Largest vertex count for which a convex hull on a plane has a contact point at every vertex.

Hulls with more vertices have contact points only at the lowest vertices in four tilted directions.
"""

TINY = 1e-12


Meeting = Callable[[Any, Placed, Any, Placed], list[Spot]]
"""Function that returns the contact slots of two shapes, given both shapes and their poses."""


def _ball(center: np.ndarray, radius: float, surface: Any, under: Placed) -> Spot:
    """Return the contact of a ball with a surface that has a closed-form nearest point."""
    seen = under.into(center)
    distance, n, _ = surface.near(seen, np.zeros(3))
    normal = applied(under.R, n)
    gap = distance - radius
    return Spot(center - (radius + 0.5 * gap) * normal, normal, gap)


def balls_on_surface(body: Any, over: Placed, surface: Any, under: Placed) -> list[Spot]:
    """Return one potential contact point for each ball of a body.

    A capsule, for example, has a ball at each end.
    """
    return [_ball(over.out(at), radius, surface, under) for at, radius in body.balls()]


def cylinder_on_plane(body: Cylinder, over: Placed, plane: Plane, under: Placed) -> list[Spot]:
    """Return three contact points on each rim of a cylinder, at intervals of 120 degrees.

    The first of the three is the lowest point of the rim.
    """
    normal = normal_of(plane, under)
    foot, found = under.out(plane.point), []
    for rim in body.rims:
        x, y, center = applied(over.R, rim.x), applied(over.R, rim.y), over.out(rim.center)
        a, b = -np.sum(x * normal), -np.sum(y * normal)
        length = sqrt(a * a + b * b)
        flat = less(length, 1e-9)
        over_length = 1.0 / select(flat, 1.0, length)
        a, b = select(flat, 1.0, a * over_length), select(flat, 0.0, b * over_length)
        for c, s in ((1.0, 0.0), (-0.5, 0.75**0.5), (-0.5, -(0.75**0.5))):
            arm = rim.radius * ((c * a - s * b) * x + (s * a + c * b) * y)
            gap = np.sum(normal * (center + arm - foot))
            found.append(Spot(center + arm - 0.5 * gap * normal, normal, gap))
    return found


class Corners(NamedTuple):
    """Subset (n, 3) of the vertices of a convex hull, which replaces it in `hull_on_plane`."""

    points: np.ndarray


def corners_of(pair: Pair) -> np.ndarray | None:
    """Return the corners (n, 3) of a hull on a plane if the hull has many corners, else None.

    For many corners (more than `MOST_CORNERS`), only the lowest corners are contact points.
    """
    if not (isinstance(pair.body, ConvexMesh) and isinstance(pair.surface, Plane)):
        return None
    return pair.body.points if len(pair.body.points) > MOST_CORNERS else None


def normal_of(plane: Plane, under: Placed) -> np.ndarray:
    """Return the normal (3,) of a plane in the world."""
    return applied(under.R, np.array(plane.normal) / np.linalg.norm(plane.normal))


def tilted(over: Placed, normal: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the four tilted directions, in hull axes, that are used to find the lowest vertices.

    `normal` is the normal of the plane in the world.
    """
    axes = contact_axes(normal)
    for a, b in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
        yield applied(over.R.T, normal + TILT * (a * axes[0] + b * axes[1]))


def hull_on_plane(
    body: ConvexMesh | Box | Corners, over: Placed, plane: Plane, under: Placed
) -> list[Spot]:
    """Return contact slots at the vertices of a convex hull or box on a plane.

    For more than `MOST_CORNERS` vertices, the lowest ones in four tilted directions are used.
    """
    if isinstance(body, Box) or len(body.points) <= MOST_CORNERS:
        return balls_on_surface(body, over, plane, under)
    normal = normal_of(plane, under)
    foot, found = under.out(plane.point), []
    for down in tilted(over, normal):
        best: Any = None
        at: Any = None
        for corner in body.points:
            level = np.sum(down * corner)
            if best is None:
                best, at = level, corner.astype(object)
                continue
            lower = less(level, best)
            best = select(lower, level, best)
            at = np.array([select(lower, c, k) for c, k in zip(corner, at, strict=True)])
        point = over.out(at)
        gap = np.sum(normal * (point - foot))
        found.append(Spot(point - 0.5 * gap * normal, normal, gap))
    return found


def _segment(shape: Any, frame: Placed) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the start, axis vector and radius of a sphere or capsule in world coordinates."""
    if isinstance(shape, Sphere):
        return frame.out(shape.center), np.zeros(3), shape.radius
    start = frame.out(shape.start)
    return start, frame.out(shape.end) - start, shape.radius


def round_on_round(body: Any, over: Placed, surface: Any, under: Placed) -> list[Spot]:
    """Return the contact point of two spheres or capsules, between the closest points of the axes.

    The axis of a sphere is a segment of length zero. For the closest points of two segments, see
    Ericson (2005), section 5.1.9. If the segments are parallel, the computation starts from the
    middle of the first segment.
    """
    (p, d, r), (q, e, t) = _segment(body, over), _segment(surface, under)
    a, b, between = np.sum(d * d), np.sum(e * e), p - q
    c, f, g = np.sum(d * between), np.sum(e * between), np.sum(d * e)

    def within(x: Any) -> Any:
        return minimum(maximum(x, 0.0), 1.0)

    if isinstance(body, Sphere):
        s: Any = 0.0
    elif isinstance(surface, Sphere):
        s = within(-c / a)
    else:
        bent = a * b - g * g
        parallel = less(bent, 1e-9 * a * b)
        s = select(parallel, 0.5, within((g * f - c * b) / select(parallel, 1.0, bent)))
    u: Any = 0.0
    if not isinstance(surface, Sphere):
        u = within((g * s + f) / b)
        if not isinstance(body, Sphere):
            s = within((g * u - c) / a)
    away = (p + s * d) - (q + u * e)
    square = np.sum(away * away)
    length = sqrt(select(less(square, TINY * TINY), 1.0, square))
    normal = select(less(square, TINY * TINY), np.array([0.0, 0.0, 1.0]), away / length)
    gap = select(less(square, TINY * TINY), 0.0, length) - r - t
    return [Spot(q + u * e + (t + 0.5 * gap) * normal, normal, gap)]


MEETINGS: list[tuple[Any, Any, Meeting]] = [
    (Cylinder, Plane, cylinder_on_plane),
    (Box | ConvexMesh, Plane, hull_on_plane),
    (Point | Sphere | Capsule, Plane | Ground, balls_on_surface),
    (Box | ConvexMesh, Ground, balls_on_surface),
    (Sphere | Capsule, Sphere | Capsule, round_on_round),
    (Point | Sphere, Sphere | Capsule | Box, balls_on_surface),
    (Box, Box, box_on_box),
]
"""Pairs of shape types (body, surface) whose contacts are compiled, with the function that returns
their contact slots."""


def meeting(body: Any, surface: Any) -> Meeting | None:
    """Return the function that computes the contact slots of two shapes, or None."""
    for bodies, surfaces, found in MEETINGS:
        if isinstance(body, bodies) and isinstance(surface, surfaces):
            return found
    return None


class Outside(NamedTuple):
    """Row of `OUTSIDE`: two shape types whose contacts are computed with NumPy before each step.

    Attributes
    ----------
    slots : Callable[[Any], int]
        Function that returns the number of contacts of a body.
    contacts : Callable[..., np.ndarray]
        Function that returns points, normals and gaps, shape (n, slots, 7); see
        `fields.contacts_on_field`.
    """

    body: Any
    surface: Any
    slots: Callable[[Any], int]
    contacts: Callable[..., np.ndarray]


OUTSIDE = [Outside(Body, HeightField, slots_on_field, contacts_on_field)]
"""Pairs of shape types whose contacts are computed with NumPy, not compiled."""


def outside(body: Any, surface: Any) -> Outside | None:
    """Return the row of `OUTSIDE` for two shapes; None if compiled code computes their contacts."""
    for row in OUTSIDE:
        if isinstance(body, row.body) and isinstance(surface, row.surface):
            return row
    return None


def supported(body: Any, surface: Any) -> bool:
    """Return True if time stepping supports a pair of shapes."""
    return bool(meeting(body, surface) or outside(body, surface))


def check_pairs(function: str, pairs: Sequence[Pair]) -> None:
    """Raise an error for pairs of shapes that time stepping does not support."""
    for pair in pairs:
        if not supported(pair.body, pair.surface):
            shapes = f"{type(pair.body).__name__} on {type(pair.surface).__name__}"
            rows = [*(row[:2] for row in MEETINGS), *(row[:2] for row in OUTSIDE)]
            known = ", ".join(f"{_names(a)} on {_names(b)}" for a, b in rows)
            problem = f"time stepping does not support contact between {shapes}"
            raise InputError("E-MOTION-130", problem, f"use one of: {known}", part=function)


def _names(kinds: Any) -> str:
    each = getattr(kinds, "__args__", (kinds,))
    return "/".join(kind.__name__ for kind in each)
