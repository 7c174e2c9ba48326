"""Feature pairs of polyhedra and capsules, with their gaps and contacts.

When two convex bodies just touch, the pair of touching features corresponds to a face of the
Minkowski difference. The pair is either a corner (vertex) and a face, with all edges of the corner
above the face, or two edges whose common normal is between the normals of their faces. The gap of
such a pair is exact, even if the features do not touch.

A capsule is a segment with a radius, represented as a polyhedron with one edge and no faces.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from chasles.motion.geometry.closed_forms import Box, Capsule, Nearest, Point, across, cross, unit
from chasles.motion.geometry.kinematics import Carrier, Contact, ball_contact
from chasles.motion.geometry.shapes import ConvexMesh, mesh

SAME = 1e-9
"""Tolerance for contact between edges, faces and corners. A contact point may lie beyond the end of
an edge by this fraction of the size of the bodies. A contact normal may point into a body by this
angle (rad)."""

LEANS = 1e-3
"""Angle tolerance (as a sine) for corners in a contact patch. A corner belongs to the patch if none
of its edges points into the face of the patch by more than this angle."""

PARALLEL = 1e-6
"""Sine of the largest angle between edges that are treated as parallel. Parallel edges have
contacts only at their ends. The common normal of two edges in a patch must lie between the normals
of the adjacent faces; the value is also the tolerance for this condition."""

ONE_WAY = 0.99
"""Features belong to one contact patch if the cosine of the angle between their normal and the
normal of the patch is at least this value."""

ALONG = 1e-4
"""Sine e of the largest angle at which the side of a capsule is treated as parallel to an edge,
with contacts at the ends. If the ends are a distance l apart, the true gap is smaller by up to
(e l)^2/(8 r), about 1e-9 m. At larger angles, the capsule rocks on the edge as if it lay on a
cylinder of radius r/e^2, and the steps must be small enough for this motion."""


class Solid(NamedTuple):
    """Polyhedron as arrays: v corners, f faces, e edges.

    Shorter lists are padded with their last entries.

    Attributes
    ----------
    corners : array, shape (v, 3)
        Positions of the corners (m).
    arms : array, shape (v, n, 3)
        Unit vectors along the edges at each corner.
    normals, levels : arrays, shapes (f, 3) and (f,)
        Face planes n.x = level.
    sides, ends : arrays, shapes (f, n, 3) and (f, n)
        Lines that bound each face; s.x >= end on the face.
    starts, alongs : array, shape (e, 3)
        First corner of each edge, and vector along the edge (m).
    flanks : array, shape (e, 2, 3)
        Unit vectors from an edge into its two faces.
    size : float
        Size of the shape (m).
    """

    corners: np.ndarray
    arms: np.ndarray
    normals: np.ndarray
    levels: np.ndarray
    sides: np.ndarray
    ends: np.ndarray
    starts: np.ndarray
    alongs: np.ndarray
    flanks: np.ndarray
    size: float

    def moved(self, R: np.ndarray, o: np.ndarray) -> "Solid":
        """Return the solid in the coordinates of another frame.

        `R` and `o` are the rotation and origin of the solid's frame in the other frame.
        """
        arms, normals, sides, alongs, flanks = (
            a @ R.T for a in (self.arms, self.normals, self.sides, self.alongs, self.flanks)
        )
        levels, ends = self.levels + normals @ o, self.ends + sides @ o
        corners, starts = self.corners @ R.T + o, self.starts @ R.T + o
        return Solid(corners, arms, normals, levels, sides, ends, starts, alongs, flanks, self.size)


def solid(shape: Point | Capsule | Box | ConvexMesh) -> Solid:
    """Return a shape as a polyhedron: a point has one corner and no edges, a capsule one edge."""
    none = np.zeros((0, 3))
    flat = none, np.zeros(0), np.zeros((0, 1, 3)), np.zeros((0, 1))
    if isinstance(shape, Point):
        corner = np.array([shape.at]), np.zeros((1, 0, 3))
        return Solid(*corner, *flat, none, none, np.zeros((0, 2, 3)), 0.0)
    if isinstance(shape, Capsule):
        ends = np.array([shape.start, shape.end])
        along, length = ends[1] - ends[0], math.dist(*ends)
        arms, size = np.array([[along], [-along]]) / length, 0.5 * length + shape.radius
        return Solid(ends, arms, *flat, ends[:1], along[None], np.zeros((1, 0, 3)), size)
    whole = mesh(shape)
    x, edges = whole.points, whole.edges
    alongs = x[edges[:, 1]] - x[edges[:, 0]]
    units = alongs / np.linalg.norm(alongs, axis=-1, keepdims=True)
    ways = [[*units[edges[:, 0] == k], *-units[edges[:, 1] == k]] for k in range(len(x))]
    sides, levels = [], []
    flanks: dict[tuple[int, int], list[np.ndarray]] = {(a, b): [] for a, b in edges.tolist()}
    for normal, loop in whole.faces:
        following = (*loop[1:], loop[0])
        inward = cross(normal, x[list(following)] - x[list(loop)])
        inward /= np.linalg.norm(inward, axis=-1, keepdims=True)
        sides.append([*inward])
        levels.append([*np.sum(inward * x[list(loop)], axis=-1)])
        for a, b, side in zip(loop, following, inward, strict=True):
            flanks[min(a, b), max(a, b)].append(side)
    normals = np.array([face.normal for face in whole.faces])
    heights = np.array([face.normal @ x[face.corners[0]] for face in whole.faces])
    faces = normals, heights, _filled(sides), _filled(levels)
    beside = np.array([*flanks.values()])
    return Solid(x, _filled(ways), *faces, x[edges[:, 0]], alongs, beside, whole.size)


def _filled(lists: list[list[np.ndarray]]) -> np.ndarray:
    """Stack lists in one array; shorter lists are padded with their last entries."""
    longest = max(map(len, lists))
    return np.array([[*rows, *[rows[-1]] * (longest - len(rows))] for rows in lists])


# Contacts of selected feature pairs --------------------------------------------------------------

Some = tuple[Solid, np.ndarray, Carrier]
"""Features of a polyhedron: the polyhedron, the feature indices (m,), and the body's motion."""


def corners_on_faces(corners: Some, faces: Some) -> Contact:
    """Return the contacts of corners with the planes of faces."""
    (a, i, over), (b, j, under) = corners, faces
    point, rate = over.point(a.corners[i])
    n = under.turned(b.normals[j])
    gap = np.sum(under.back(point - under.o) * b.normals[j], axis=-1) - b.levels[j]
    return Contact(over.frame, under.frame, point, n, gap, rate, cross(under.w, n))


def crossings(first: Some, second: Some) -> Contact:
    """Return the contacts of crossing edges.

    At the nearest points, p - r is perpendicular to both edges: a.(p - r) = 0 and b.(p - r) = 0.
    The derivatives of these conditions yield the motion of the points along the edges (see
    `features.crossing`).
    """
    (over, i, above), (under, j, below) = first, second
    a, b = above.turned(over.alongs[i]), below.turned(under.alongs[j])
    start, end = above.point(over.starts[i])[0], below.point(under.starts[j])[0]
    n, _ = _common(a, b, above.turned(over.flanks[i]), below.turned(under.flanks[j]))
    s, t = _nearest(a, b, -_dots((a, b), start - end))
    p, r = start + s[:, None] * a, end + t[:, None] * b
    u, v = above.velocity(p), below.velocity(r)
    turns = cross(above.w, a), cross(below.w, b)
    ds, _ = _nearest(a, b, -_dots((a, b), u - v) - _dots(turns, p - r))
    bend = cross(turns[0], b) + cross(a, turns[1])
    length = np.copysign(np.linalg.norm(cross(a, b), axis=-1), np.sum(cross(a, b) * n, -1))
    n_rate = across(n, bend / length[:, None])
    names, gap = (above.frame, below.frame), np.sum(n * (p - r), axis=-1)
    return Contact(*names, p, n, gap, u + ds[:, None] * a, n_rate)


def _dots(axes: tuple[np.ndarray, np.ndarray], x: np.ndarray) -> np.ndarray:
    """Return the dot products (2, m) of two vectors with a third."""
    return np.array([np.sum(axis * x, axis=-1) for axis in axes])


def _nearest(a: np.ndarray, b: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve a.(s a - t b) = right[0] and b.(s a - t b) = right[1] for s and t (m,)."""
    aa, ab, bb = (np.sum(x * y, axis=-1) for x, y in ((a, a), (a, b), (b, b)))
    square = aa * bb - ab * ab  # squared lengths times squared sine of the angle
    return (bb * right[0] - ab * right[1]) / square, (ab * right[0] - aa * right[1]) / square


def joined(found: Sequence[Contact], order: np.ndarray) -> Contact:
    """Merge contacts between the same two bodies into one `Contact` with arrays.

    Contact k is stored at index order[k] of the arrays.
    """
    back = np.argsort(order)
    point, normal, point_rate, normal_rate = (
        np.concatenate([np.reshape(getattr(c, name), (-1, 3)) for c in found])[back]
        for name in ("point", "normal", "point_rate", "normal_rate")
    )
    gap = np.concatenate([np.ravel(c.gap) for c in found])[back]
    return Contact(*found[0][:2], point, normal, gap, point_rate, normal_rate)


def corners_on_edges(corners: Some, edges: Some) -> Contact:
    """Return the contacts between corners and edges, where edges are extended to infinite lines."""
    (a, i, over), (b, j, under) = corners, edges
    lines = Lines(b.starts[j], b.alongs[j])
    return ball_contact(over, (a.corners[i], 0.0), under, lines)


def corners_on_corners(first: Some, second: Some) -> Contact:
    """Return the contacts between corners of two polyhedra."""
    (a, i, over), (b, j, under) = first, second
    return ball_contact(over, (a.corners[i], 0.0), under, Places(b.corners[j]))


class Places(NamedTuple):
    """Corners at the positions `at` (m, 3). Distances are computed between point k and corner k."""

    at: np.ndarray

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Return distances, normals, and the rates of the normals."""
        return unit(c - self.at, v)


class Lines(NamedTuple):
    """Infinite lines along m edges. Distances are computed between point k and line k."""

    starts: np.ndarray
    alongs: np.ndarray

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Return distances, normals, and the rates of the normals."""
        r = c - self.starts - self._part(c - self.starts) * self.alongs
        return unit(r, v - self._part(v) * self.alongs)

    def inside(self, c: np.ndarray) -> np.ndarray:
        """Return the distance along each edge from the point c to the nearer end, as an array (m,).

        The distance is negative if the point lies beyond this end.
        """
        part = self._part(c - self.starts)[..., 0]
        return np.minimum(part, 1.0 - part) * np.linalg.norm(self.alongs, axis=-1)

    def _part(self, r: np.ndarray) -> np.ndarray:
        """Return the projection of r on the edge, as a fraction (m, 1) of its length."""
        square = np.sum(self.alongs * self.alongs, axis=-1, keepdims=True)
        part: np.ndarray = np.sum(r * self.alongs, axis=-1, keepdims=True) / square
        return part


# All feature pairs of two bodies ------------------------------------------------------------------


class Pairs(NamedTuple):
    """Feature pairs of two bodies, such as corners and faces, with one entry per pair.

    Attributes
    ----------
    gap : np.ndarray
        Gap between the features (m).
    inside : np.ndarray
        Distance (m) from the contact point to the borders of the features, negative outside.
    outward : np.ndarray
        Sine of the smallest angle between the contact plane and the two bodies, one on each side of
        the plane; negative if a body crosses the plane.
    normal : np.ndarray
        Contact normal, from the second body to the first.
    lack : np.ndarray
        Tolerance for `outward`: a pair may touch if outward + lack >= 0.
    """

    gap: np.ndarray
    inside: np.ndarray
    outward: np.ndarray
    normal: np.ndarray
    lack: np.ndarray

    def back(self) -> "Pairs":
        """Return the pairs with the bodies exchanged."""
        return self._replace(normal=-self.normal)

    def astray(self, outward: np.ndarray) -> np.ndarray:
        """Return a value (k,) that is negative for pairs whose normal n differs from a reference m.

        The value is n.m - `ONE_WAY`. The reference is the normal of the pair with the largest gap
        among the pairs in the mask `outward` (k,).
        """
        highest = np.argmax(np.where(outward, self.gap, -np.inf))
        astray: np.ndarray = self.normal @ self.normal[highest] - ONE_WAY
        return astray


def _all(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays with the indices of all combinations of entries from two lists."""
    i, j = np.divmod(np.arange(len(first) * len(second)), max(len(second), 1))
    return i, j


def on_faces(a: Solid, b: Solid) -> Pairs:
    """Return all pairs of a corner of a and a face of b, for two bodies in the same frame."""
    shape = len(a.corners), len(b.normals)
    gap = a.corners @ b.normals.T - b.levels
    outward = np.min(a.arms @ b.normals.T, axis=1, initial=1.0)
    beside = np.einsum("vx,fnx->vfn", a.corners, b.sides) - b.ends
    inside = np.min(beside, axis=-1, initial=np.inf)
    normal = np.broadcast_to(b.normals, (*shape, 3)).reshape(-1, 3)
    return Pairs(gap.ravel(), inside.ravel(), outward.ravel(), normal, np.full(gap.size, LEANS))


def edges_across(a: Solid, b: Solid, parallel: float = PARALLEL) -> Pairs:
    """Return all pairs of edges of two bodies in the same frame; parallel edges do not touch."""
    i, j = _all(a.starts, b.starts)
    u, v, w = a.alongs[i], b.alongs[j], a.starts[i] - b.starts[j]
    lengths = np.linalg.norm(u, axis=-1), np.linalg.norm(v, axis=-1)
    crosses = np.linalg.norm(cross(u, v), axis=-1) > parallel * lengths[0] * lengths[1]
    with np.errstate(divide="ignore", invalid="ignore"):  # parallel edges are excluded
        s, t = _nearest(u, v, -_dots((u, v), w))
    inside = np.minimum(np.minimum(s, 1.0 - s) * lengths[0], np.minimum(t, 1.0 - t) * lengths[1])
    n, outward = _common(u, v, a.flanks[i], b.flanks[j])
    gap = np.sum(n * w, axis=-1)
    inside[~crosses], outward[~crosses] = -1.0, -1.0
    return Pairs(gap, inside, outward, n, np.full(len(gap), PARALLEL))


def side_across(axis: Solid, whole: Solid) -> Pairs:
    """Return the edge pairs of a capsule's axis and a polyhedron (see `edges_across`)."""
    return edges_across(axis, whole, ALONG)


def _common(
    u: np.ndarray, v: np.ndarray, over: np.ndarray, under: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the common normals of pairs of edges, and the values `Pairs.outward`.

    The normals point from the second body to the first.
    """
    n = cross(u, v)
    n = n / np.maximum(np.linalg.norm(n, axis=-1, keepdims=True), 1e-300)
    rises = np.concatenate([over, -under], axis=-2) @ n[..., None]
    up, down = np.min(rises[..., 0], axis=-1), np.min(-rises[..., 0], axis=-1)
    return np.where((up >= down)[..., None], n, -n), np.maximum(up, down)


def ends_before_edges(axis: Solid, whole: Solid) -> Pairs:
    """Pair each end of a capsule with each edge of a polyhedron.

    The normal of a pair must point away from the capsule's axis and from both faces of the edge.
    """
    i, j = _all(axis.corners, whole.starts)
    edges, c, ahead = Lines(whole.starts[j], whole.alongs[j]), axis.corners[i], axis.arms[i, 0]
    distance, n, turn = edges.nearest(c, ahead)
    behind = -np.max(np.sum(whole.flanks[j] * n[:, None], axis=-1), axis=-1)
    rises = np.sum(n * ahead, axis=-1) + _lack(turn, distance)
    return _pairs(distance, edges.inside(c), np.minimum(rises, behind + SAME), n)


def ends_before_corners(axis: Solid, whole: Solid) -> Pairs:
    """Pair each end of a capsule with each corner of a polyhedron.

    The normal of a pair must point away from the capsule's axis and from all edges at the corner.
    """
    i, j = _all(axis.corners, whole.corners)
    distance, n, _ = unit(axis.corners[i] - whole.corners[j], np.zeros(3))
    behind = -np.max(np.sum(whole.arms[j] * n[:, None], axis=-1), axis=-1)
    rises = np.sum(n * axis.arms[i, 0], axis=-1)
    return _pairs(distance, np.full(len(i), np.inf), np.minimum(rises, behind) + SAME, n)


def corners_before_side(whole: Solid, axis: Solid) -> Pairs:
    """Return the feature pairs that consist of a polyhedron's corner and a capsule's side."""
    side, x, arms = Lines(axis.starts, axis.alongs), whole.corners, whole.arms
    distance, n, turn = side.nearest(x[:, None], arms)
    rises = np.sum(n * arms, axis=-1) + _lack(turn, distance)
    return _pairs(distance[:, 0], side.inside(x), np.min(rises, axis=-1), n[:, 0])


def _pairs(gap: np.ndarray, inside: np.ndarray, outward: np.ndarray, n: np.ndarray) -> Pairs:
    """Return pairs with the tolerance `lack` set to zero, because `outward` already includes it."""
    return Pairs(gap, inside, outward, n, np.zeros(len(gap)))


def _lack(turn: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Return an angular tolerance (sine of an angle) for pairs of a vertex and an edge.

    The tolerance is larger if the edges of the two bodies are parallel, because both endpoints of
    the edge then belong to the contact patch.
    """
    return np.where(np.linalg.norm(turn, axis=-1) * distance <= ALONG, LEANS, SAME)
