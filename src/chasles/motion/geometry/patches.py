"""Contacts between two bodies of any shape, with contact patches between extended bodies.

`coal` (extra `contact`) computes the direction along which two bodies are nearest, or penetrate
least. The feature of each body in that direction is a corner, an edge or a face. The contact patch
is a polygon. The corners of this polygon are corners of one body that project onto the other body
along this direction, and points where edges of the two bodies cross. The points and their rates
have closed forms. For two capsules, `coal` is not needed.
"""

from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import ArgumentError, ConvergenceError, InputError
from chasles.model.given import value_fault
from chasles.motion.contract import Machine
from chasles.motion.geometry.closed_forms import (
    Box,
    Capsule,
    Ground,
    Place,
    Plane,
    Point,
    Sphere,
    cross,
)
from chasles.motion.geometry.features import Edge, Straight, crossing, flipped, rim_contact
from chasles.motion.geometry.kinematics import Array, Carrier, Contact, ball_contact, carrier
from chasles.motion.geometry.shapes import (
    Body,
    ConvexMesh,
    Cylinder,
    Rim,
    Surface,
    mesh,
    over_polygon,
    place,
)
from chasles.motion.solvers import optional

Extended = Capsule | Box | Cylinder | ConvexMesh

LEVEL = 1e-3
"""Tolerance for a contact patch: maximum angle (rad) between the contact plane and a face or edge
in contact, and maximum difference between gaps, relative to the size of the bodies."""

ALONG = 0.99
"""Threshold for the cosine of the angle between the normal of a contact and the contact direction
of its patch. Contacts below the threshold are discarded. If one body is inside the other, such
contacts are at faces that point elsewhere."""

SAME = 1e-9
"""Tolerance for distances, relative to the size of the bodies. Points of a patch that are closer
together than this tolerance are merged. A point within this distance of an edge counts as lying on
the edge."""


def check_shapes(function: str, body: Body, surface: Surface) -> None:
    """Raise an error if a shape is not supported as a body or as a surface."""
    if not isinstance(body, Body) or not isinstance(surface, Surface):
        names = f"{type(body).__name__} as body with {type(surface).__name__} as surface"
        remedy = "pass a plane or ground only as `surface`, and a point only as `body`"
        raise ArgumentError(
            "E-CONTACT-051", f"the pair {names} is not supported", remedy, part=function
        )


def contact_points(
    robot: Machine,
    q: Array,
    qd: Array,
    body: Body,
    surface: Surface,
    *,
    friction: float = 0.0,
    torsion: float = 0.0,
) -> list[Contact]:
    """Return the contacts of a body with a surface, at any distance.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    qd : array_like, shape (..., nv)
        Joint velocities (rad/s or m/s).
    body, surface : shape
        Shapes of `chasles.contact`.
    friction : float, optional
        Coulomb friction coefficient mu.
    torsion : float, optional
        Coefficient (m) of the friction moment about the normal, which models a small contact patch;
        requires friction.

    Returns
    -------
    list of Contact
        On a `Plane` or `Ground`, there is one contact for each end of a capsule and each corner of
        a box or mesh. Each rim of a cylinder has one contact at its lowest point, which moves
        around the rim, and contacts at fixed points; their number is the attribute `Cylinder.rim`.
        A sphere has one contact with any shape, computed in closed form. Other pairs require a
        single state, not a batch. Their contacts are the nearest points, which form a patch: one
        point, two points of an edge, or the corners of a polygon.

    Raises
    ------
    InputError
        If `friction` or `torsion` is not valid, if the contact normal is undefined, if the shapes
        penetrate each other too deeply, or if the pair of shapes supports only a single state.
    ArgumentError
        If the pair of shapes is not supported.
    ConvergenceError
        If the package coal finds no contact normal.
    MissingPackageError
        If the pair of shapes needs the package coal and it is not installed.

    Notes
    -----
    Pairs without a closed form, except two capsules, need the package coal (extra `contact`). The
    points describe the contact completely if the ground is flat near them.

    Examples
    --------
    >>> import chasles
    >>> from chasles.contact import Plane, Sphere, contact_points
    >>> robot = chasles.robots.planar(2)
    >>> len(contact_points(robot, [0.0, 0.5], [0.0, 0.0], Sphere("tip", 0.1), Plane()))
    1
    """
    check_shapes("contact_points", body, surface)
    for name, value in (("friction", friction), ("torsion", torsion)):
        if fault := value_fault(f"contact_points.{name}", value):
            raise InputError("E-CONTACT-052", fault, part="contact_points")
    if torsion and not friction:
        problem = "torsion needs sliding friction (friction > 0), as they share one friction cone"
        raise InputError("E-CONTACT-053", problem, part="contact_points")
    over, under = (carrier(robot.mechanism, q, qd, shape.frame) for shape in (body, surface))
    if isinstance(body, Point | Sphere) or isinstance(surface, Plane | Ground):
        found = _features(body, over, surface, under)
    elif isinstance(surface, Sphere):
        found = [flipped(c, under, over) for c in _features(surface, under, body, over)]
    elif np.ndim(q) == np.ndim(qd) == 1:
        found = patch_contacts(body, over, surface, under)
    else:
        problem = f"{type(body).__name__} on {type(surface).__name__} supports a single state only"
        raise InputError("E-CONTACT-048", problem, "pass one state", part="contact_points")
    return [c._replace(friction=friction, torsion=torsion) for c in found]


def _features(body: Body, over: Carrier, surface: Surface, under: Carrier) -> list[Contact]:
    """Return the contacts of a body's corners, rounded ends and circular edges with a surface."""
    found = [ball_contact(over, ball, under, surface) for ball in body.balls()]
    if isinstance(body, Cylinder) and isinstance(surface, Plane | Ground):
        found += [rim_contact(over, rim, under, surface) for rim in body.rims]
    return found


# Corners, edges and faces that touch another body first ------------------------------------------


class Outline(NamedTuple):
    """Farthest corner, edge or face of a shape along a given direction, in the shape's frame.

    Attributes
    ----------
    balls : list[tuple[Place, float]]
        Corners or rounded ends, as balls (position, radius).
    edges : list[Edge]
        Edges of the face, or the single edge.
    rims : list[Rim]
        Circular edges that may touch the other body.
    size : float
        Size of the shape (m).
    face : Plane | None
        Plane of the face.
    around : Any
        Corners of the face (k, 3), or the rim of a disc.
    """

    balls: list[tuple[Place, float]]
    edges: list[Edge]
    rims: list[Rim]
    size: float
    face: Plane | None = None
    around: Any = None

    def holds(self, c: np.ndarray, slack: float) -> bool:
        """Return True if the projection of a point is on the face, or within `slack` (m) of it."""
        if isinstance(self.around, Rim):
            r = c - self.around.center
            far = np.hypot(r @ self.around.x, r @ self.around.y)
            return bool(far <= self.around.radius + slack)
        assert self.face is not None
        return bool(over_polygon(self.around, np.array(self.face.normal), c, slack))


def outline(shape: Extended, m: np.ndarray | None) -> Outline:
    """Return the farthest corner, edge or face of a shape along the vector m (3,).

    For a capsule, the result is an edge for every m.
    """
    if isinstance(shape, Capsule):
        start, along = np.array(shape.start), np.subtract(shape.end, shape.start)
        size = float(np.linalg.norm(along)) + shape.radius
        return Outline(shape.balls(), [Straight(start, along, shape.radius)], [], size)
    assert m is not None
    return _of_cylinder(shape, m) if isinstance(shape, Cylinder) else _of_mesh(mesh(shape), m)


def _of_mesh(shape: ConvexMesh, m: np.ndarray) -> Outline:
    points, edges = shape.points, shape.edges
    normal, corners = max(shape.faces, key=lambda face: float(face.normal @ m))
    if np.linalg.norm(normal - m) <= LEVEL:
        loop = points[list(corners)]
        face = Plane(shape.frame, place(normal), place(loop[0]))
        return Outline(_corners(loop), _chords(loop), [], shape.size, face, loop)
    top = int(np.argmax(points @ m))
    along = points[edges[:, 1]] - points[edges[:, 0]]
    slope = np.abs(along @ m) / np.linalg.norm(along, axis=-1)
    flat = np.flatnonzero((slope <= LEVEL) & np.any(edges == top, axis=1))
    ends = np.unique([top, *edges[flat].ravel()])
    lines: list[Edge] = [Straight(points[edges[k, 0]], along[k]) for k in flat]
    return Outline(_corners(points[ends]), lines, [], shape.size)


def _of_cylinder(shape: Cylinder, m: np.ndarray) -> Outline:
    first, last = shape.rims
    lean, size = float(m @ last.out), shape.radius + float(np.linalg.norm(last.center))
    end = 1 if lean > 0.0 else 0
    rim = shape.rims[end]
    if np.linalg.norm(m - rim.out) <= LEVEL:
        balls = shape.balls()[shape.rim * end : shape.rim * (end + 1)]
        face = Plane(shape.frame, place(rim.out), place(rim.center))
        return Outline(balls, _chords(np.array([at for at, _ in balls])), [rim], size, face, rim)
    if abs(lean) <= LEVEL:
        side = Straight(first.center, last.center - first.center, shape.radius)
        return Outline([], [side, first, last], [first, last], size)
    return Outline([], [rim], [rim], size)


def _corners(points: np.ndarray) -> list[tuple[Place, float]]:
    return [(place(p), 0.0) for p in points]


def _chords(loop: np.ndarray) -> list[Edge]:
    """Return the edges of a polygon (k, 3)."""
    return [Straight(a, b - a) for a, b in zip(loop, np.roll(loop, -1, axis=0), strict=True)]


# Patches ---------------------------------------------------------------------------------------


class _Side(NamedTuple):
    """One of two bodies: shape, motion, and the feature that faces the other body."""

    shape: Extended
    carrier: Carrier
    outline: Outline


def patch_contacts(
    body: Extended, over: Carrier, surface: Extended, under: Carrier
) -> list[Contact]:
    """Return the contacts that form the patch between two extended bodies, in one state.

    All gaps are exact, and the smallest gap stays continuous when other features become the
    nearest.
    """
    n, places = _direction(body, over, surface, under)
    ways = (None, None) if n is None else (-over.back(n), under.back(n))
    first = _Side(body, over, outline(body, ways[0]))
    sides = first, _Side(surface, under, outline(surface, ways[1]))
    size = max(side.outline.size for side in sides)
    near = [
        *_before(*sides, SAME * size),
        *(flipped(c, under, over) for c in _before(*sides[::-1], SAME * size)),
        *_crossings(sides, n, places),
    ]
    found = [c for c in near if n is None or c.normal @ n >= ALONG]
    if not found:
        names = f"{type(body).__name__} and {type(surface).__name__}"
        problem = (
            f"{names} penetrate each other so deeply that the contact points cannot be determined"
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
    """Return the contacts of one body's corners and rims with the other body.

    Corners and rims above the other body's face, or up to `slack` (m) beyond its border, are paired
    with the face. Other corners are paired with the nearest point of the entire shape. Other rims
    are omitted.
    """
    found, c = [], under.carrier
    features: list[tuple[Any, Any]] = [(ball_contact, ball) for ball in over.outline.balls]
    features += [(rim_contact, rim) for rim in over.outline.rims]
    for meet, feature in features:
        face = under.outline.face
        on = None if face is None else meet(over.carrier, feature, c, face)
        if on is not None and under.outline.holds(c.back(on.point - c.o), slack):
            found.append(on)
        elif meet is ball_contact:
            found.append(ball_contact(over.carrier, feature, c, under.shape))
    return found


def _crossings(
    sides: tuple[_Side, _Side], n: np.ndarray | None, places: tuple[np.ndarray, np.ndarray]
) -> list[Contact]:
    """Return the contacts where edges of one body cross edges of the other."""
    found = []
    first, second = sides[0].carrier, sides[1].carrier
    near = first.back(places[0] - first.o), second.back(places[1] - second.o)
    for a, b in product(sides[0].outline.edges, sides[1].outline.edges):
        guess = _guess(a, near[0]), _guess(b, near[1])
        at = crossing((first, second), (a, b), guess, n)
        if at is None:
            continue
        (s, t), contact = at
        ways = -first.back(contact.normal), second.back(contact.normal)
        if _holds(a, s, ways[0]) and _holds(b, t, ways[1]):
            found.append(contact)
    return found


def _guess(edge: Edge, place: np.ndarray) -> float:
    """Return an initial guess for the parameter of the point on an edge nearest to `place`.

    For straight edges, any guess works.
    """
    return float(edge.angle(place - edge.center)) if isinstance(edge, Rim) else 0.5


def _holds(edge: Edge, s: float, way: np.ndarray) -> bool:
    """Return True if the edge point at parameter s can be the farthest one in direction `way`.

    On a straight edge, s must be from 0 to 1.
    """
    if isinstance(edge, Rim):
        _, _, inward = edge.at(s)
        return bool(way @ edge.out >= -SAME and -way @ inward >= -SAME * edge.radius)
    return 0.0 <= s <= 1.0


# Contact directions ----------------------------------------------------------------------------


def _direction(
    body: Extended, over: Carrier, surface: Extended, under: Carrier
) -> tuple[np.ndarray | None, tuple[np.ndarray, np.ndarray]]:
    """Return the contact direction from surface to body, and the nearest point on each shape.

    For two capsules, the direction is None, and the points are the origins of the two frames.
    """
    if isinstance(body, Capsule) and isinstance(surface, Capsule):
        return None, (over.o, under.o)
    coal = optional("coal")
    found, request = coal.DistanceResult(), coal.DistanceRequest()
    coal.distance(*_placed(surface, under), *_placed(body, over), request, found)
    n = np.array(found.normal)
    if not np.all(np.isfinite(n)):
        problem = "the library Coal found no contact normal for the two bodies"
        raise ConvergenceError("E-CONTACT-050", problem, part="contact_points")
    return n, (np.array(found.getNearestPoint2()), np.array(found.getNearestPoint1()))


def _placed(shape: Extended, over: Carrier) -> tuple[Any, Any]:
    """Convert a shape for the library `coal`, and return the result with its pose in the world."""
    coal = optional("coal")
    solid, turn, center = _solid(shape)
    return solid, coal.Transform3s(over.R @ turn, over.point(center)[0])


@lru_cache(maxsize=256)
def _solid(shape: Extended) -> tuple[Any, np.ndarray, np.ndarray]:
    """Convert a shape to a `coal` shape, and return the result with its pose.

    The pose is the rotation and position of the `coal` shape in the frame of the original shape.
    """
    coal = optional("coal")
    if isinstance(shape, Box):
        return coal.Box(*shape.size), np.eye(3), np.array(shape.center)
    if isinstance(shape, ConvexMesh):
        points = coal.StdVec_Vec3s()
        points.extend(list(shape.points))
        return coal.Convex.convexHull(points, True, "Qt"), np.eye(3), np.zeros(3)
    along = np.subtract(shape.end, shape.start)
    length = float(np.linalg.norm(along))
    axes = np.linalg.svd(along[None] / length)[2]  # the axis, then two perpendicular vectors
    turn = np.column_stack([axes[1], cross(axes[0], axes[1]), axes[0]])
    kind = coal.Capsule if isinstance(shape, Capsule) else coal.Cylinder
    return kind(shape.radius, length), turn, 0.5 * np.add(shape.start, shape.end)
