"""A capsule and a polyhedron that touch: ends before faces, edges and corners, side and the latter.

A capsule is a segment with a radius. Where the segment is beside the polyhedron, two features whose
common normal both bodies allow are those that are nearest, by convexity: the gap is their distance,
less the radius. Before faces, and across edges, distances have a sign, so that a step that takes
the segment into the polyhedron, deeper than the radius, is seen too.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from chasles.motion.geometry.carriers import Carrier, unit
from chasles.motion.geometry.closed_forms import Box, Capsule, Contact, Nearest
from chasles.motion.geometry.features import ball_contact
from chasles.motion.geometry.patches import flipped
from chasles.motion.geometry.polyhedra import (
    LEANS,
    ONE_WAY,
    SAME,
    Pairs,
    Solid,
    corners_on_faces,
    crossings,
    edges_across,
    joined,
    on_faces,
    solid,
)
from chasles.motion.geometry.shapes import ConvexMesh

ALONG = 1e-4
"""The sine e up to which the side is along an edge, and touches it by the ends of both. Between
ends l apart it is then nearer by up to (e l)^2/(8 r), some 1e-9 m; beyond, the capsule rocks on the
edge as on a cylinder of radius r/e^2, which steps must follow."""


class Capsules:
    """All pairs of features of a capsule and a polyhedron that may touch, numbered: a `Meeting`.

    Its two ends before each face, edge and corner; its side before each edge and corner. Each takes
    over from its neighbours where these end, with the same gap and normal. A side that lies along a
    face or an edge touches by both of its ends, or those of the other.
    """

    def __init__(self, body: Capsule, surface: Box | ConvexMesh) -> None:
        self._frames, self._radius = (body.frame, surface.frame), body.radius
        self._solids = axis, whole = segment(body), solid(surface)
        self._length = max(axis.size, whole.size)
        faces, edges, corners = map(len, (whole.normals, whole.starts, whole.corners))
        self._counts = ((2, faces), (2, edges), (2, corners), (1, edges), (1, corners))

    @property
    def size(self) -> int:
        """Two ends times faces, edges and corners, and one side times edges and corners."""
        return sum(first * second for first, second in self._counts)

    def gaps(self, over: Carrier, under: Carrier) -> tuple[np.ndarray, np.ndarray]:
        """gap (k,) and room (k,), see `Meeting`."""
        axis = self._solids[0].moved(under.R.T @ over.R, under.back(over.o - under.o))
        whole = self._solids[1]
        kinds = (
            on_faces(axis, whole),
            _ends_before_edges(axis, whole),
            _ends_before_corners(axis, whole),
            edges_across(axis, whole, ALONG),
            _side_before_corners(axis, whole),
        )
        found = Pairs(*map(np.concatenate, zip(*kinds, strict=True)))
        turned = found.outward + found.lack
        highest = np.argmax(np.where(turned >= 0.0, found.gap, -np.inf))
        astray = found.normal @ found.normal[highest] - ONE_WAY
        inside = found.inside + SAME * self._length
        return found.gap - self._radius, np.minimum(
            inside, self._length * np.minimum(turned, astray)
        )

    def contacts(self, which: np.ndarray, over: Carrier, under: Carrier) -> Contact:
        """Some of them, see `Meeting`."""
        starts = np.cumsum([0, *(first * second for first, second in self._counts)])
        kinds = np.searchsorted(starts, which, side="right") - 1
        pairs = [
            np.divmod(which[kinds == kind] - start, count)
            for kind, (start, (_, count)) in enumerate(zip(starts, self._counts, strict=False))
        ]
        found = self._axes(pairs, over, under)
        return joined([self._swollen(c) for c in found], np.argsort(kinds, kind="stable"))

    def _axes(
        self, pairs: Sequence[tuple[np.ndarray, np.ndarray]], over: Carrier, under: Carrier
    ) -> list[Contact]:
        """The contacts of the axis alone, by the numbers of features of each kind."""
        frames, (axis, whole) = self._frames, self._solids
        faces, edges, corners, sides, tips = pairs

        def end(i: np.ndarray) -> tuple[np.ndarray, float]:
            return axis.corners[i], 0.0

        line = Lines(axis.starts[tips[0]], axis.alongs[tips[0]])
        tip = whole.corners[tips[1]], 0.0
        edge = Lines(whole.starts[edges[1]], whole.alongs[edges[1]])
        corner = Places(whole.corners[corners[1]])
        return [
            corners_on_faces(frames, (axis, faces[0], over), (whole, faces[1], under)),
            ball_contact(frames, over, end(edges[0]), under, edge),
            ball_contact(frames, over, end(corners[0]), under, corner),
            crossings(frames, (axis, sides[0], over), (whole, sides[1], under)),
            flipped(ball_contact(frames[::-1], under, tip, over, line), under, over),
        ]

    def _swollen(self, c: Contact) -> Contact:
        """A contact of the axis as one of the capsule, which is all around it."""
        point, rate = (
            place - self._radius * n
            for place, n in ((c.point, c.normal), (c.point_rate, c.normal_rate))
        )
        return c._replace(point=point, gap=c.gap - self._radius, point_rate=rate)


def segment(shape: Capsule) -> Solid:
    """The axis of a capsule as a polyhedron of two corners and one edge, without faces."""
    ends = np.array([shape.start, shape.end])
    along, length = ends[1] - ends[0], math.dist(*ends)
    arms, none = np.array([[along], [-along]]) / length, np.zeros((0, 3))
    flat = none, np.zeros(0), np.zeros((0, 1, 3)), np.zeros((0, 1))
    size = 0.5 * length + shape.radius
    return Solid(ends, arms, *flat, ends[:1], along[None], np.zeros((1, 0, 3)), size)


# What is nearest to a point --------------------------------------------------------------------


class Places(NamedTuple):
    """Points (m, 3), each before one place."""

    at: np.ndarray
    frame: str | None = None

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Distances, normals and their rates."""
        return unit(c - self.at, v)


class Lines(NamedTuple):
    """Lines through the ends of edges, and beyond, each before one place: (m, 3) both."""

    starts: np.ndarray
    alongs: np.ndarray
    frame: str | None = None

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Distances, normals and their rates."""
        r = c - self.starts - self._part(c - self.starts) * self.alongs
        return unit(r, v - self._part(v) * self.alongs)

    def inside(self, c: np.ndarray) -> np.ndarray:
        """How far from the ends of the edge the nearest point is, in m, negative beyond: (m,)."""
        part = self._part(c - self.starts)[..., 0]
        return np.minimum(part, 1.0 - part) * np.linalg.norm(self.alongs, axis=-1)

    def _part(self, r: np.ndarray) -> np.ndarray:
        """How far along (m, 1), of the whole edge."""
        square = np.sum(self.alongs * self.alongs, axis=-1, keepdims=True)
        part: np.ndarray = np.sum(r * self.alongs, axis=-1, keepdims=True) / square
        return part


# Pairs, in the polyhedron's frame --------------------------------------------------------------


def _ends_before_edges(axis: Solid, whole: Solid) -> Pairs:
    """Half of the ball around an end is of the capsule, and the edge has two faces."""
    i, j = _all(axis.corners, whole.starts)
    edges, c, ahead = Lines(whole.starts[j], whole.alongs[j]), axis.corners[i], axis.arms[i, 0]
    distance, n, turn = edges.nearest(c, ahead)
    behind = -np.max(np.sum(whole.flanks[j] * n[:, None], axis=-1), axis=-1)
    rises = np.sum(n * ahead, axis=-1) + _lack(turn, distance)
    return _pairs(distance, edges.inside(c), np.minimum(rises, behind + SAME), n)


def _ends_before_corners(axis: Solid, whole: Solid) -> Pairs:
    """Half of the ball around an end is of the capsule, and the corner has several edges."""
    i, j = _all(axis.corners, whole.corners)
    distance, n, _ = unit(axis.corners[i] - whole.corners[j], np.zeros(3))
    behind = -np.max(np.sum(whole.arms[j] * n[:, None], axis=-1), axis=-1)
    rises = np.sum(n * axis.arms[i, 0], axis=-1)
    return _pairs(distance, np.full(len(i), np.inf), np.minimum(rises, behind) + SAME, n)


def _side_before_corners(axis: Solid, whole: Solid) -> Pairs:
    """Between its ends, and the corner has several edges."""
    side, x, arms = Lines(axis.starts, axis.alongs), whole.corners, whole.arms
    distance, n, turn = side.nearest(x[:, None], arms)
    rises = np.sum(n * arms, axis=-1) + _lack(turn, distance)
    return _pairs(distance[:, 0], side.inside(x), np.min(rises, axis=-1), -n[:, 0])


def _all(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all pairs."""
    i, j = np.divmod(np.arange(len(first) * len(second)), len(second))
    return i, j


def _pairs(gap: np.ndarray, inside: np.ndarray, outward: np.ndarray, n: np.ndarray) -> Pairs:
    """Pairs whose lack is in `outward` already."""
    return Pairs(gap, inside, outward, n, np.zeros(len(gap)))


def _lack(turn: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """The sine by which the rest of an edge may be nearer than its end, and this still count.

    turn: of the normal, from the end along the edge. Beside an edge that is parallel it does not
    turn, and both ends are of the patch. Elsewhere end and edge touch in turn.
    """
    return np.where(np.linalg.norm(turn, axis=-1) * distance <= ALONG, LEANS, SAME)
