"""Contact features of two bodies: rims, crossing edges, and moving pairs of features.

If two edges touch, the contact point slides along both edges. At this point, the distance between
p(s) on one edge and r(t) on the other edge is stationary. The derivative of this condition yields
the rates of s and t, which determine the rates of the contact point and the normal.

If the contact features of two bodies vary with the motion, each pair of features (a corner and a
face, two edges, a rim and the ground) is a separate possible contact. The gap of such a contact is
the gap between the two features, even if other features are nearer. The `room` of the contact is
the distance until a neighboring pair becomes the nearest: at an edge of the face, at an end of an
edge, or where another feature faces the other body.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy

from chasles.errors import ArgumentError, InputError
from chasles.motion.geometry import polyhedra
from chasles.motion.geometry.closed_forms import Box, Capsule, Ground, Plane, across, cross
from chasles.motion.geometry.kinematics import Carrier, Contact, ball_contact, nearest_on
from chasles.motion.geometry.shapes import ConvexMesh, Cylinder, Rim

ONE = 1e-12
"""Tolerance (m) for the distance between contact points: closer points are merged."""

STEPS = 50
"""Maximum number of Newton iterations for the closest points of two edges."""

CLOSE = 1e-12
"""Convergence tolerance for Newton steps of an edge parameter s, relative to 1 + |s|. The error is
about the square of the last step."""

UPRIGHT = 1e-9
"""Sine of the largest tilt at which a circular edge is treated as level. A level edge has no unique
lowest point."""

PARALLEL = 1e-6
"""Sine of the largest angle at which edges are treated as parallel. For parallel straight edges,
no crossing is computed. If the tangents of round edges are parallel at their nearest points, the
normal is along the line between these points."""

Curve = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Point on an edge, and its first and second derivatives along the edge."""


def listed(function: str, contacts: Any) -> list[Contact]:
    """Return contacts as a list, or raise an error for a single contact or other types."""
    found = [] if isinstance(contacts, Contact) else list(contacts)
    if isinstance(contacts, Contact) or not all(isinstance(c, Contact) for c in found):
        problem = f"`contacts` must be a list from contact_points, not {contacts!r:.60}"
        raise ArgumentError("E-CONTACT-024", problem, part=function)
    return found


def flipped(c: Contact, over: Carrier, under: Carrier) -> Contact:
    """Return a contact with its bodies exchanged.

    `over` and `under` are the motions of the successor and predecessor frames.
    """
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


def minimal(contacts: Sequence[Contact], *, tolerance: float = 1e-9) -> list[Contact]:
    """Return a minimal set of contacts, without redundant contacts.

    Parameters
    ----------
    contacts : sequence of Contact
        Contacts of one state.
    tolerance : float, optional
        Relative tolerance, with lengths relative to the size of the patch.

    Returns
    -------
    kept : list of Contact
        For an edge on a plane, its two ends remain; for a face, the corners of its convex hull.
        If the contacts are frictionless, removing the others does not change the motion.

    Notes
    -----
    A contact is redundant if the unit force along its normal is a non-negative combination of the
    unit forces of other contacts between the same two bodies (Featherstone 2008, section 11.6).

    Examples
    --------
    >>> import chasles
    >>> from chasles import contact
    >>> robot = chasles.robots.planar(1)
    >>> box = contact.Box("tip", (0.2, 0.2, 0.2))
    >>> found = contact.contact_points(robot, [0.0], [0.0], box, contact.Plane())
    >>> len(found), len(contact.minimal(found))
    (8, 4)
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


# Features ---------------------------------------------------------------------------------------


class Straight(NamedTuple):
    """Edge from `start` to `start + along`, or axis of a capsule or cylinder of radius `sweep`."""

    start: np.ndarray
    along: np.ndarray
    sweep: float = 0.0

    def at(self, s: Any) -> Curve:
        """Return the point at the fraction s of the edge, and its first two derivatives in s."""
        return self.start + s * self.along, self.along, np.zeros(3)


Edge = Straight | Rim


def crossing(
    carriers: tuple[Carrier, Carrier],
    edges: tuple[Edge, Edge],
    guess: tuple[float, float],
    toward: np.ndarray | None,
) -> tuple[np.ndarray, Contact] | None:
    """Return the edge parameters (s, t) of the nearest points of two edges, and the contact.

    Return None if the edges are parallel, or if Newton's method does not converge.

    Parameters
    ----------
    carriers : tuple[Carrier, Carrier]
        Motions of the two bodies, the successor first.
    edges : tuple[Edge, Edge]
        One edge of each body, in the same order.
    guess : tuple[float, float]
        Initial guess for the edge parameters s and t.
    toward : np.ndarray | None
        Direction in the world from the second body to the first. If None, the vector between the
        nearest points is used.
    """
    x = np.array(guess, dtype=float)
    for _ in range(STEPS):
        (p, a, ka), (r, b, kb) = (
            _carried(c, edge.at(s)) for c, edge, s in zip(carriers, edges, x, strict=True)
        )
        slopes = np.array([[a @ a + ka @ (p - r), -a @ b], [a @ b, kb @ (p - r) - b @ b]])
        if abs(np.linalg.det(slopes)) <= PARALLEL**2 * (a @ a) * (b @ b):
            return None
        step = np.linalg.solve(slopes, [-a @ (p - r), -b @ (p - r)])
        x = x + step
        if np.max(np.abs(step)) <= CLOSE * (1.0 + np.max(np.abs(x))):
            break
    else:
        return None
    u, v = carriers[0].velocity(p), carriers[1].velocity(r)
    turn_a, turn_b = (cross(c.w, t) for c, t in zip(carriers, (a, b), strict=True))
    driven = np.array([a @ (u - v) + turn_a @ (p - r), b @ (u - v) + turn_b @ (p - r)])
    ds, dt = np.linalg.solve(slopes, -driven)
    normal = cross(a, b)
    normal_rate = cross(turn_a + ds * ka, b) + cross(a, turn_b + dt * kb)
    if np.linalg.norm(normal) <= PARALLEL * np.linalg.norm(a) * np.linalg.norm(b):
        normal, normal_rate = p - r, u + ds * a - v - dt * b
    side = p - r if toward is None else toward
    size = np.copysign(np.linalg.norm(normal), normal @ side)
    n = normal / size
    n_rate = across(n, normal_rate / size)
    sweep = edges[0].sweep
    gap = n @ (p - r) - sweep - edges[1].sweep
    over, under = (c.frame for c in carriers)
    return x, Contact(over, under, p - sweep * n, n, gap, u + ds * a - sweep * n_rate, n_rate)


def _carried(c: Carrier, curve: Curve) -> Curve:
    """Transform a point on a curve, and the curve's derivatives there, to world coordinates."""
    point, first, second = curve
    return c.point(point)[0], c.turned(first), c.turned(second)


def rim_contact(over: Carrier, rim: Rim, under: Carrier, surface: Plane | Ground) -> Contact:
    """Return the contact of a circular edge (rim) with a surface, for one state or a batch.

    On a plane, the contact is at the lowest point, which moves around the rim. If the rim is
    parallel to the plane, the contact is at a fixed point.
    """
    center, rate = over.point(rim.center)
    _, below, _ = nearest_on(under, surface, center, rate)
    direction = -over.back(below)
    level = np.hypot(direction @ rim.x, direction @ rim.y) <= UPRIGHT
    s = np.where(level, 0.0, rim.angle(direction))
    for _ in range(STEPS):
        p, a, k = rim.at(s)
        place, v = over.point(p)
        a, k = over.turned(a), over.turned(k)
        _, n, follow = nearest_on(under, surface, place, v)
        slope = np.sum(n * k, axis=-1) + _bend(under, surface, place, a)
        step = np.where(level, 0.0, -np.sum(n * a, axis=-1) / np.where(level, 1.0, slope))
        s = s + step
        if np.all(np.abs(step) <= CLOSE * (1.0 + np.abs(s))):
            break
    else:
        problem = "no closest point on a rim was found"
        raise InputError(
            "E-CONTACT-017", problem, "use a smoother ground surface", part="contact_points"
        )
    turned = np.sum(follow * a, axis=-1) + np.sum(n * cross(over.w, a), axis=-1)
    ds = np.where(level, 0.0, -turned / np.where(level, 1.0, slope))[..., None]
    v = v + ds * a
    distance, normal, normal_rate = nearest_on(under, surface, place, v)
    return Contact(over.frame, under.frame, place, normal, distance, v, normal_rate)


def _bend(under: Carrier, surface: Plane | Ground, place: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return the curvature term for a vector `a`.

    The term is the dot product of `a` and the derivative of the surface normal along `a`.
    """
    _, _, turn = surface.nearest(under.back(place - under.o), under.back(a))
    return np.asarray(np.sum(under.turned(turn) * a, axis=-1))


# Feature pairs -----------------------------------------------------------------------------------


class Meeting:
    """Interface for the pairs of features (corners, edges, faces) at which two bodies may touch.

    `size` is the number of pairs.
    """

    size: int

    def gaps(self, over: Carrier, under: Carrier) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays (k,): the gap and the `room` of each pair (m).

        The `room` of a pair is the distance that the bodies can move before other features become
        nearer than this pair. If other features are already nearer, the `room` is negative.
        """
        raise NotImplementedError

    def contacts(self, which: np.ndarray, over: Carrier, under: Carrier) -> Contact:
        """Return the contacts of the feature pairs `which` (m,), as a `Contact` with m rows."""
        raise NotImplementedError


class _Kind(NamedTuple):
    """Type of contact between features of two solids, such as a corner on a face.

    Attributes
    ----------
    first, second : str
        Names of the fields of `Solid` that contain the features.
    pairs : Callable[[polyhedra.Solid, polyhedra.Solid], polyhedra.Pairs]
        Function that returns all pairs.
    contacts : Callable[[polyhedra.Some, polyhedra.Some], Contact]
        Function that returns the contacts of selected pairs.
    swapped : bool
        True if the first feature belongs to the second solid.
    """

    first: str
    second: str
    pairs: Callable[[polyhedra.Solid, polyhedra.Solid], polyhedra.Pairs]
    contacts: Callable[[polyhedra.Some, polyhedra.Some], Contact]
    swapped: bool = False


class _Features(Meeting):
    """All pairs of features (such as vertex and face) at which two solids may touch.

    The pairs are numbered consecutively, ordered by kind.
    """

    kinds: ClassVar[tuple[_Kind, ...]]

    def __init__(self, body: Any, surface: Any) -> None:
        self._solids = polyhedra.solid(body), polyhedra.solid(surface)
        self._length = max(one.size for one in self._solids)
        self._counts = []
        for kind in self.kinds:
            names, solids = (kind.first, kind.second), self._solids[:: -1 if kind.swapped else 1]
            self._counts.append(
                [len(getattr(s, name)) for s, name in zip(solids, names, strict=True)]
            )
        self._starts = np.cumsum([0, *(first * second for first, second in self._counts)])
        self.size = int(self._starts[-1])

    def _pairs(self, over: Carrier, under: Carrier) -> polyhedra.Pairs:
        """Return all pairs of features, one from each solid, in the frame of the second solid."""
        a, b = self._solids
        a = a.moved(under.R.T @ over.R, under.back(over.o - under.o))
        found = [k.pairs(b, a).back() if k.swapped else k.pairs(a, b) for k in self.kinds]
        return polyhedra.Pairs(*map(np.concatenate, zip(*found, strict=True)))

    def contacts(self, which: np.ndarray, over: Carrier, under: Carrier) -> Contact:
        a, b = self._solids
        numbers = np.searchsorted(self._starts, which, side="right") - 1
        found = []
        for number, kind in enumerate(self.kinds):
            count = max(self._counts[number][1], 1)
            i, j = np.divmod(which[numbers == number] - self._starts[number], count)
            if not i.size and which.size:
                continue
            if kind.swapped:
                back = kind.contacts((b, i, under), (a, j, over))
                found.append(flipped(back, under, over))
            else:
                found.append(kind.contacts((a, i, over), (b, j, under)))
        return polyhedra.joined(found, np.argsort(numbers, kind="stable"))


class Polyhedra(_Features):
    """Feature pairs of two polyhedra: a corner of one and a face of the other, or two edges.

    The contact normal is the normal of the pair with the largest gap, among pairs whose normal
    points outward from both bodies. A pair with a different normal is not a contact if its gap is
    zero or negative; its `room` (see `Meeting.gaps`) is then negative.
    """

    kinds = (
        _Kind("corners", "normals", polyhedra.on_faces, polyhedra.corners_on_faces),
        _Kind("corners", "normals", polyhedra.on_faces, polyhedra.corners_on_faces, True),
        _Kind("starts", "starts", polyhedra.edges_across, polyhedra.crossings),
    )

    def gaps(self, over: Carrier, under: Carrier) -> tuple[np.ndarray, np.ndarray]:
        found, slack = self._pairs(over, under), polyhedra.SAME * self._length
        astray = found.astray(found.outward >= -polyhedra.SAME)
        astray[found.gap > slack] = np.inf
        turned = self._length * np.minimum(found.outward + found.lack, astray)
        return found.gap, np.minimum(found.inside + slack, turned)


class Capsules(_Features):
    """Feature pairs of a capsule and a polyhedron.

    The capsule's ends may touch faces, edges and corners; its side may touch edges and corners.

    By convexity, two features are the nearest if each body lies behind the plane through its
    feature that is perpendicular to the common normal. The gap is the distance between the features
    minus the radius. Distances to faces, and between the capsule's axis and crossing edges, are
    signed, so that deep penetration in a step is also detected. Where one pair replaces another as
    the nearest, both have the same gap and normal. If the side is parallel to a face or an edge,
    the contacts are at the ends of the side or of the edge.
    """

    kinds = (
        _Kind("corners", "normals", polyhedra.on_faces, polyhedra.corners_on_faces),
        _Kind("corners", "starts", polyhedra.ends_before_edges, polyhedra.corners_on_edges),
        _Kind("corners", "corners", polyhedra.ends_before_corners, polyhedra.corners_on_corners),
        _Kind("starts", "starts", polyhedra.side_across, polyhedra.crossings),
        _Kind("corners", "starts", polyhedra.corners_before_side, polyhedra.corners_on_edges, True),
    )

    def __init__(self, body: Capsule, surface: Box | ConvexMesh) -> None:
        super().__init__(body, surface)
        self._radius = body.radius

    def gaps(self, over: Carrier, under: Carrier) -> tuple[np.ndarray, np.ndarray]:
        found = self._pairs(over, under)
        turned = found.outward + found.lack
        turned = self._length * np.minimum(turned, found.astray(turned >= 0.0))
        inside = found.inside + polyhedra.SAME * self._length
        return found.gap - self._radius, np.minimum(inside, turned)

    def contacts(self, which: np.ndarray, over: Carrier, under: Carrier) -> Contact:
        c, r = super().contacts(which, over, under), self._radius
        point, rate = c.point - r * c.normal, c.point_rate - r * c.normal_rate
        return c._replace(point=point, gap=c.gap - r, point_rate=rate)


class Standing(Meeting):
    """Contacts of a cylinder with a plane or ground, at points of its two rims.

    Each rim has one contact at its lowest point. If the rim is level, it has contacts at fixed
    points instead.
    """

    def __init__(self, body: Cylinder, surface: Plane | Ground) -> None:
        self._body, self._surface = body, surface
        self._places = np.array([at for at, _ in body.balls()])
        self.size = 2 + len(self._places)

    def gaps(self, over: Carrier, under: Carrier) -> tuple[np.ndarray, np.ndarray]:
        body, lowest = self._body, self.contacts(np.arange(2), over, under)
        axis = over.turned(body.rims[0].out)
        leans = np.linalg.norm(cross(axis, lowest.normal), axis=-1)
        fixed, _, _ = self._surface.nearest(*under.seen(*over.point(self._places)))
        gap = np.concatenate([lowest.gap, fixed])
        level = np.repeat(polyhedra.LEANS - leans, body.rim)
        return gap, body.radius * np.concatenate([leans - 2.0 * UPRIGHT, level])

    def contacts(self, which: np.ndarray, over: Carrier, under: Carrier) -> Contact:
        rims, fixed = self._body.rims, which[which >= 2] - 2
        found = [rim_contact(over, rims[k], under, self._surface) for k in which[which < 2]]
        found.append(ball_contact(over, (self._places[fixed], 0.0), under, self._surface))
        return polyhedra.joined(found, np.argsort(which >= 2, kind="stable"))
