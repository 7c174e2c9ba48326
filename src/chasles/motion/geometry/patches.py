"""Contacts of two extended bodies: where they are nearest, as a minimal set of points.

`coal` (extra `contact`) says along which direction two bodies are nearest, or penetrate least.
What each of them turns that way is a corner, an edge or a face; a patch of contact is a polygon
whose corners are corners of the one before the other and crossings of edges of both. Each of these
has a closed form, with its rates. Two capsules need no direction and no package.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import ConvergenceError, InputError
from chasles.motion.contract import Machine
from chasles.motion.geometry.carriers import Array, Carrier, Place, carrier, cross
from chasles.motion.geometry.closed_forms import Box, Capsule, Contact, Plane
from chasles.motion.geometry.features import (
    Edge,
    Round,
    Straight,
    ball_contact,
    crossing,
    rim_contact,
)
from chasles.motion.geometry.shapes import ConvexMesh, Cylinder, Rim, over_polygon, place
from chasles.motion.solvers.quadratic import optional

Body = Capsule | Box | Cylinder | ConvexMesh

LEVEL = 1e-3
"""The angle (rad) up to which a face or an edge is turned towards the other body; and the part of
its size by which a point may be farther than the nearest one and still be of the patch."""

ALONG = 0.99
"""The cosine of the angle up to which a contact's normal is that of the patch. A body within
another leaves it through many faces, but only one is nearest."""

SAME = 1e-9
"""The part of the bodies' size by which two points of a patch are one, or a point is on an edge."""


class Outline(NamedTuple):
    """What a shape turns towards a direction, in its own frame.

    balls: corners (places and radii). face: its plane and corners, or a disc's rim. edges: those of
    the face, or the one. rims: circles whose lowest point may touch. size: in m.
    """

    balls: list[tuple[Place, float]]
    edges: list[Edge]
    rims: list[Rim]
    face: "Face | None"
    size: float


class Face(NamedTuple):
    """A flat face: its normal, outward, and its corners (k, 3) or the rim of a disc."""

    normal: np.ndarray
    point: np.ndarray
    edge: np.ndarray | Rim

    def holds(self, c: np.ndarray, slack: float) -> bool:
        """Whether a place is straight over the face, up to `slack` (m)."""
        if isinstance(self.edge, Rim):
            r = c - self.edge.center
            return bool(np.hypot(r @ self.edge.x, r @ self.edge.y) <= self.edge.radius + slack)
        return bool(over_polygon(self.edge, self.normal, c, slack))


# What a shape turns towards another ------------------------------------------------------------


def outline(shape: Body, m: np.ndarray | None) -> Outline:
    """The corner, edge or face of a shape that looks along m (3,), a direction of its frame.

    A capsule turns all of itself, whatever the direction.
    """
    if isinstance(shape, Capsule):
        start, along = np.array(shape.start), np.subtract(shape.end, shape.start)
        size = float(np.linalg.norm(along)) + shape.radius
        return Outline(shape.balls(), [Straight(start, along, shape.radius)], [], None, size)
    assert m is not None
    if isinstance(shape, Cylinder):
        return _of_cylinder(shape, m)
    return _of_mesh(mesh(shape), m)


def _of_mesh(shape: ConvexMesh, m: np.ndarray) -> Outline:
    points = shape.points
    top = int(np.argmax(points @ m))
    along = points[shape.edges[:, 1]] - points[shape.edges[:, 0]]
    slope = np.abs(along @ m) / np.linalg.norm(along, axis=-1)
    flat = np.flatnonzero((slope <= LEVEL) & np.any(shape.edges == top, axis=1))
    normal, corners = max(shape.faces, key=lambda face: float(face.normal @ m))
    if np.linalg.norm(normal - m) <= LEVEL:
        loop = points[list(corners)]
        edges = [Straight(a, b - a) for a, b in zip(loop, np.roll(loop, -1, axis=0), strict=True)]
        return Outline(_corners(loop), [*edges], [], Face(normal, loop[0], loop), shape.size)
    edges = [Straight(points[shape.edges[k, 0]], along[k]) for k in flat]
    ends = sorted({top, *(int(i) for k in flat for i in shape.edges[k])})
    return Outline(_corners(points[ends]), [*edges], [], None, shape.size)


def _of_cylinder(shape: Cylinder, m: np.ndarray) -> Outline:
    first, last = shape.rims
    lean, size = float(m @ last.out), shape.radius + float(np.linalg.norm(last.center))
    end = 1 if lean > 0.0 else 0
    rim = shape.rims[end]
    if np.linalg.norm(m - np.copysign(1.0, lean) * last.out) <= LEVEL:
        balls = shape.balls()[shape.rim * end : shape.rim * (end + 1)]
        loop = np.array([at for at, _ in balls])
        chords = [Straight(a, b - a) for a, b in zip(loop, np.roll(loop, -1, axis=0), strict=True)]
        return Outline(balls, [*chords], [rim], Face(rim.out, rim.center, rim), size)
    if abs(lean) <= LEVEL:
        side = Straight(first.center, last.center - first.center, shape.radius)
        return Outline([], [side, Round(first), Round(last)], [first, last], None, size)
    return Outline([], [Round(rim)], [rim], None, size)


def _corners(points: np.ndarray) -> list[tuple[Place, float]]:
    return [(place(p), 0.0) for p in points]


@lru_cache(maxsize=256)
def mesh(shape: Box | ConvexMesh) -> ConvexMesh:
    """A box as a mesh."""
    if isinstance(shape, ConvexMesh):
        return shape
    return ConvexMesh(shape.frame, tuple(at for at, _ in shape.balls()))


# Patches ---------------------------------------------------------------------------------------


class _Side(NamedTuple):
    """One of the two bodies: its shape, how it is carried, and what it turns to the other."""

    shape: Body
    carrier: Carrier
    outline: Outline


def patch_contacts(robot: Machine, q: Array, qd: Array, body: Body, surface: Body) -> list[Contact]:
    """The contacts of two extended bodies in one state: q (nq,), qd (nv,).

    The nearest one, and with it those of the same patch: two of parallel edges or of an edge before
    a face, the corners of a polygon of two faces. All gaps are exact, those of penetration too;
    which points they are changes with the features that are nearest, and the least gap does not
    jump.
    """
    if np.ndim(q) != 1 or np.ndim(qd) != 1:
        problem = f"{type(body).__name__} against {type(surface).__name__} is for one state"
        raise InputError("E-CONTACT-048", problem, "call it for each", part="contact_points")
    over, under = (carrier(robot, q, qd, shape.frame) for shape in (body, surface))
    n, places = _direction((body, over), (surface, under))
    ways = (None, None) if n is None else (-over.back(n), under.back(n))
    sides = (
        _Side(body, over, outline(body, ways[0])),
        _Side(surface, under, outline(surface, ways[1])),
    )
    size = max(side.outline.size for side in sides)
    near = [
        *_before(*sides, SAME * size),
        *(flipped(c, under, over) for c in _before(*sides[::-1], SAME * size)),
        *_crossings(sides, n, places),
    ]
    found = [c for c in near if n is None or c.normal @ n >= ALONG]
    if not found:
        problem = (
            f"{type(body).__name__} and {type(surface).__name__} are too deep in each other to say "
            "where they touch"
        )
        raise InputError("E-CONTACT-049", problem, part="contact_points")
    least = min(c.gap for c in found) + LEVEL * size
    patch: list[Contact] = []
    for c in found:
        apart = [np.linalg.norm(c.point - other.point) > SAME * size for other in patch]
        if c.gap <= least and all(apart):
            patch.append(c)
    return patch


def _before(over: _Side, under: _Side, slack: float) -> list[Contact]:
    """Corners and rims of a body before the other: on its face, or else before all of it."""
    found = []
    frames = over.shape.frame, under.shape.frame
    for ball in over.outline.balls:
        meet = partial(ball_contact, frames, over.carrier, ball, under.carrier)
        on = _on_face(under, slack, meet)
        found.append(meet(under.shape) if on is None else on)
    for rim in over.outline.rims:
        on = _on_face(under, slack, partial(rim_contact, frames, over.carrier, rim, under.carrier))
        found += [] if on is None else [on]
    return found


def _on_face(under: _Side, slack: float, meet: Callable[[Plane], Contact]) -> Contact | None:
    """The contact with the plane of a body's face, if there is one and it is on the face."""
    face, c = under.outline.face, under.carrier
    if face is None:
        return None
    on = meet(Plane(under.shape.frame, place(face.normal), place(face.point)))
    return on if face.holds(c.back(on.point - c.o), slack) else None


def _crossings(
    sides: tuple[_Side, _Side], n: np.ndarray | None, places: tuple[np.ndarray, np.ndarray]
) -> list[Contact]:
    """Where edges of one body cross those of the other."""
    found = []
    frames = sides[0].shape.frame, sides[1].shape.frame
    first, second = sides[0].carrier, sides[1].carrier
    for a, b in product(sides[0].outline.edges, sides[1].outline.edges):
        guess = (
            _guess(a, first.back(places[0] - first.o)),
            _guess(b, second.back(places[1] - second.o)),
        )
        at = crossing(frames, (first, second), (a, b), guess, n)
        if at is None:
            continue
        ways = -first.back(at.contact.normal), second.back(at.contact.normal)
        if _holds(a, at.s, ways[0]) and _holds(b, at.t, ways[1]):
            found.append(at.contact)
    return found


def _guess(edge: Edge, place: np.ndarray) -> float:
    """Where an edge is near to a place of its frame; straight ones need no guess."""
    return float(edge.rim.angle(place - edge.rim.center)) if isinstance(edge, Round) else 0.5


def _holds(edge: Edge, s: float, way: np.ndarray) -> bool:
    """Whether an edge has a point s that is the farthest of its body along a direction."""
    if isinstance(edge, Round):
        _, _, inward = edge.at(s)
        return bool(way @ edge.rim.out >= -SAME and -way @ inward >= -SAME * edge.rim.radius)
    return 0.0 <= s <= 1.0


def flipped(c: Contact, over: Carrier, under: Carrier) -> Contact:
    """A contact with its two bodies exchanged; over, under: those of successor and predecessor."""
    gap_rate = np.sum(c.normal * (over.velocity(c.point) - under.velocity(c.point)), axis=-1)
    gap = np.asarray(c.gap)[..., None]
    return c._replace(
        successor=c.predecessor,
        predecessor=c.successor,
        point=c.point - gap * c.normal,
        normal=-c.normal,
        point_rate=c.point_rate - gap_rate[..., None] * c.normal - gap * c.normal_rate,
        normal_rate=-c.normal_rate,
    )


# Directions ------------------------------------------------------------------------------------


def _direction(
    over: tuple[Body, Carrier], under: tuple[Body, Carrier]
) -> tuple[np.ndarray | None, tuple[np.ndarray, np.ndarray]]:
    """The direction from `under` to `over` along which they are nearest, and a point of each.

    Of two capsules, whose axes always have a distance, None.
    """
    if isinstance(over[0], Capsule) and isinstance(under[0], Capsule):
        return None, (over[1].o, under[1].o)
    coal = optional("coal")
    (upper, above), (lower, below) = (_placed(*side) for side in (over, under))
    found = coal.DistanceResult()
    coal.distance(lower, below, upper, above, coal.DistanceRequest(), found)
    n = np.array(found.normal)
    if not np.all(np.isfinite(n)):
        problem = "coal found no direction between two bodies"
        raise ConvergenceError("E-CONTACT-050", problem, part="contact_points")
    return n, (np.array(found.getNearestPoint2()), np.array(found.getNearestPoint1()))


def _placed(shape: Body, over: Carrier) -> tuple[Any, Any]:
    """A shape of coal, and where it is in the world."""
    coal = optional("coal")
    solid, turn, center = _solid(shape)
    return solid, coal.Transform3s(over.R @ turn, over.point(center)[0])


@lru_cache(maxsize=256)
def _solid(shape: Body) -> tuple[Any, np.ndarray, np.ndarray]:
    """A shape of coal, with its rotation and place in the shape's frame."""
    coal = optional("coal")
    if isinstance(shape, Box):
        return coal.Box(*shape.size), np.eye(3), np.array(shape.center)
    if isinstance(shape, ConvexMesh):
        points = coal.StdVec_Vec3s()
        points.extend(list(shape.points))
        return coal.Convex.convexHull(points, True, "Qt"), np.eye(3), np.zeros(3)
    along = np.subtract(shape.end, shape.start)
    length = float(np.linalg.norm(along))
    axes = np.linalg.svd(along[None] / length)[2]  # the axis, then two across it
    turn = np.column_stack([axes[1], cross(axes[0], axes[1]), axes[0]])
    kind = coal.Capsule if isinstance(shape, Capsule) else coal.Cylinder
    return kind(shape.radius, length), turn, 0.5 * np.add(shape.start, shape.end)
