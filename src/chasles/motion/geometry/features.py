"""Contacts, and those of features: a ball before a surface, a rim on one, two edges that cross.

What the carriers of both bodies do is known, and with it all rates. Where two bodies touch by
edges, the point of contact slides along both. It is where the distance of p(s), on the one, and
p(t), on the other, is stationary; the rates of s and t, and with them those of point and normal,
follow by differentiating that condition.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy

from chasles.errors import ArgumentError, InputError
from chasles.motion.geometry.closed_forms import Ground, Nearby, Nearest, Plane
from chasles.motion.geometry.kinematics import Array, Carrier
from chasles.motion.geometry.shapes import Rim, across, cross

ONE = 1e-12
"""Points of contact as near as this (m) are one."""

STEPS = 50
"""Newton's at most; one is enough for straight edges, and for a rim on a plane."""

CLOSE = 1e-12
"""Newton's last step, beside s: what it leaves is its square."""

UPRIGHT = 1e-9
"""The sine of an angle up to which a rim is level, so that no point of it is the lowest."""

PARALLEL = 1e-6
"""The sine of an angle up to which two straight edges do not cross, and up to which a round one
is along another: the normal is then that of their distance."""

Curve = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A point of an edge, and its first and second derivative along it."""

Frames = tuple[str | None, str | None]
"""The frames of successor and predecessor."""


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


# Features ---------------------------------------------------------------------------------------


def ball_contact(
    frames: Frames, over: Carrier, ball: tuple[Array, float], under: Carrier, surface: Nearby
) -> Contact:
    """The contact of a ball (centre and radius, in its frame) with a surface; of batches too.

    Of one state there may be many centres (m, 3).
    """
    center, radius = ball
    c, rate = over.point(center)
    distance, normal, normal_rate = _nearest(under, surface, c, rate)
    if np.any(np.isnan(normal)) and np.all(np.isfinite(c)):
        problem = "two centres coincide, so that no normal is nearest"
        raise InputError("E-CONTACT-016", problem, part="contact_points")
    point, point_rate = c - radius * normal, rate - radius * normal_rate
    return Contact(*frames, point, normal, distance - radius, point_rate, normal_rate)


class Straight(NamedTuple):
    """An edge from `start` to `start + along`; `sweep`: the radius of what lies around it."""

    start: np.ndarray
    along: np.ndarray
    sweep: float = 0.0

    def at(self, s: Any) -> Curve:
        """The point at s, from 0 to 1, and its derivatives."""
        return self.start + s * self.along, self.along, np.zeros(3)


Edge = Straight | Rim


def crossing(
    frames: Frames,
    carriers: tuple[Carrier, Carrier],
    edges: tuple[Edge, Edge],
    guess: tuple[float, float],
    toward: np.ndarray | None,
) -> tuple[np.ndarray, Contact] | None:
    """The nearest points of two edges: s and t, and the contact; None if they do not cross.

    frames, carriers, edges: of both bodies, the successor first. guess: s and t near the answer, if
    edges are round. toward: a direction of the world, from the second body to the first, that tells
    the side; None where the edges themselves do not touch, so that their distance does.
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
    return x, Contact(*frames, p - sweep * n, n, gap, u + ds * a - sweep * n_rate, n_rate)


def _carried(c: Carrier, curve: Curve) -> Curve:
    """Point and derivatives of a curve in the world."""
    point, first, second = curve
    return c.point(point)[0], c.turned(first), c.turned(second)


def rim_contact(
    frames: Frames,
    over: Carrier,
    rim: Rim,
    under: Carrier,
    surface: Plane | Ground,
) -> Contact:
    """The point of a rim that is nearest to a surface, or any that is where all are; batches too.

    frames: of the rim's body and of the surface. On a plane it is the lowest point; it moves around
    the rim, ever faster the more level the rim is. On a level rim it stays where it is.
    """
    center, rate = over.point(rim.center)
    _, below, _ = _nearest(under, surface, center, rate)
    direction = -over.back(below)
    level = np.hypot(direction @ rim.x, direction @ rim.y) <= UPRIGHT
    s = np.where(level, 0.0, rim.angle(direction))
    for _ in range(STEPS):
        p, a, k = rim.at(s)
        place, v = over.point(p)
        a, k = over.turned(a), over.turned(k)
        _, n, follow = _nearest(under, surface, place, v)
        slope = np.sum(n * k, axis=-1) + _bend(under, surface, place, a)
        step = np.where(level, 0.0, -np.sum(n * a, axis=-1) / np.where(level, 1.0, slope))
        s = s + step
        if np.all(np.abs(step) <= CLOSE * (1.0 + np.abs(s))):
            break
    else:
        problem = "no nearest point of a rim found"
        raise InputError("E-CONTACT-017", problem, "is the ground too bent?", part="contact_points")
    turned = np.sum(follow * a, axis=-1) + np.sum(n * cross(over.w, a), axis=-1)
    ds = np.where(level, 0.0, -turned / np.where(level, 1.0, slope))[..., None]
    v = v + ds * a
    distance, normal, normal_rate = _nearest(under, surface, place, v)
    return Contact(*frames, place, normal, distance, v, normal_rate)


def _nearest(under: Carrier, surface: Nearby, place: np.ndarray, v: np.ndarray) -> Nearest:
    """Distance, normal and its rate before a moving place of the world."""
    distance, n, turn = surface.nearest(*under.seen(place, v))
    normal = under.turned(n)
    return distance, normal, under.turned(turn) + cross(under.w, normal)


def _bend(under: Carrier, surface: Plane | Ground, place: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The turn of the normal along a direction a, times a: the surface's own part of a slope."""
    _, _, turn = surface.nearest(under.back(place - under.o), under.back(a))
    return np.asarray(np.sum(under.turned(turn) * a, axis=-1))
