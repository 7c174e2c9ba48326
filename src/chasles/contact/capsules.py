"""A capsule and a polyhedron that touch: ends and corners before all of the other, side and edges.

A capsule is a segment with a radius. Where the segment is beside the polyhedron, what of the two is
nearest is an end of the segment, a corner, or its side across an edge; by convexity there is no
other place with a normal that both bodies allow, so that the gap is their distance, less the
radius. Where a step has taken the segment into the polyhedron, deeper than the radius, all ends and
edges that it is behind say so.
"""

import math

import numpy as np

from chasles.contact.carriers import Carrier
from chasles.contact.features import ball_contact
from chasles.contact.geometry import Box, Capsule, Contact
from chasles.contact.patches import flipped
from chasles.contact.polyhedra import (
    LEANS,
    ONE_WAY,
    SAME,
    Pairs,
    Solid,
    crossings,
    edges_across,
    joined,
    solid,
)
from chasles.contact.shapes import ConvexMesh

ENDS = 2


class Capsules:
    """The features by which a capsule touches a polyhedron, numbered: a `Meeting`.

    Its two ends, as balls before the polyhedron; the corners of that, before the capsule; and its
    edges, across the side. A corner before an end is there twice, and both say the same.
    """

    def __init__(self, body: Capsule, surface: Box | ConvexMesh) -> None:
        self._frames = body.frame, surface.frame
        self._body, self._surface = body, surface
        self._axis, self._solid = segment(body), solid(surface)
        self._length = max(self._axis.size, self._solid.size)

    @property
    def size(self) -> int:
        """Two ends, and the polyhedron's corners and edges."""
        return ENDS + len(self._solid.corners) + len(self._solid.starts)

    def gaps(self, over: Carrier, under: Carrier) -> tuple[np.ndarray, np.ndarray]:
        """gap (k,) and room (k,), see `Meeting`."""
        R, o = under.R.T @ over.R, under.back(over.o - under.o)
        axis = self._axis.moved(R, o)
        side = edges_across(axis, self._solid)
        side = side._replace(gap=side.gap - self._body.radius)
        kinds = self._of_ends(axis), self._of_corners(R, o), side
        found = Pairs(*map(np.concatenate, zip(*kinds, strict=True)))
        turned = found.outward + found.lack
        highest = np.argmax(np.where(turned >= 0.0, found.gap, -np.inf))
        if found.gap[highest] > -self._body.radius:  # the axis is beside the polyhedron
            turned = np.minimum(turned, found.normal @ found.normal[highest] - ONE_WAY)
        room = self._length * turned
        return found.gap, np.minimum(found.inside + SAME * self._length, room)

    def _of_ends(self, axis: Solid) -> Pairs:
        """Its ends, half of which is of its surface, or all where their centres are inside.

        axis: in the polyhedron's frame.
        """
        ahead = axis.arms[:, 0]
        distance, n, turn = self._surface.nearest(axis.corners, ahead)
        bend = np.linalg.norm(turn, axis=-1) * distance
        gap = distance - self._body.radius
        outward = np.where(distance > 0.0, np.sum(n * ahead, axis=-1), 1.0)
        return Pairs(gap, np.full(ENDS, np.inf), outward, n, _lack(bend))

    def _of_corners(self, R: np.ndarray, o: np.ndarray) -> Pairs:
        """The corners of the polyhedron, whose edges turn away.

        R, o: the rotation and the origin of the capsule's frame in its own.
        """
        corners, arms = (self._solid.corners - o) @ R, self._solid.arms @ R
        gap, n, turn = self._body.nearest(corners[:, None], arms)
        bend = np.linalg.norm(turn, axis=-1) * (gap + self._body.radius)
        rises = np.sum(n * arms, axis=-1) + _lack(bend)
        inside = np.full(len(corners), np.inf)
        return Pairs(gap[:, 0], inside, np.min(rises, axis=-1), -n[:, 0] @ R.T, np.zeros(len(gap)))

    def contacts(self, which: np.ndarray, over: Carrier, under: Carrier) -> Contact:
        """Some of them, see `Meeting`."""
        starts = np.array([0, ENDS, ENDS + len(self._solid.corners)])
        kinds = np.searchsorted(starts, which, side="right") - 1
        ends, corners, edges = (which[kinds == k] - start for k, start in enumerate(starts))
        body, radius = self._body, self._body.radius
        balls = self._axis.corners[ends], radius
        tips = self._solid.corners[corners], 0.0
        sides = self._axis, np.zeros_like(edges), over
        found = [
            ball_contact(self._frames, over, balls, under, self._surface),
            flipped(ball_contact(self._frames[::-1], under, tips, over, body), under, over),
            _swollen(crossings(self._frames, sides, (self._solid, edges, under)), radius),
        ]
        return joined(found, np.argsort(kinds, kind="stable"))


def segment(shape: Capsule) -> Solid:
    """The axis of a capsule as a polyhedron of two corners and an edge without faces."""
    ends = np.array([shape.start, shape.end])
    along = ends[1] - ends[0]
    length = math.dist(*ends)
    arms, none = np.array([[along], [-along]]) / length, np.zeros((0, 3))
    flat = none, np.zeros(0), np.zeros((0, 1, 3)), np.zeros((0, 1))
    size = 0.5 * length + shape.radius
    return Solid(ends, arms, *flat, ends[:1], along[None], np.zeros((1, 0, 3)), size)


def _lack(bend: np.ndarray) -> np.ndarray:
    """The sine by which the rest of an edge may be nearer than its end, and this still count.

    bend: by which the normal turns from the end to the rest, beside their distance. Along a face or
    a parallel edge it does not turn: both ends are of the patch, however the edge leans. Elsewhere
    the normals meet the end and the rest of an edge in turn, and one of them takes over.
    """
    return np.maximum(LEANS - bend, SAME)


def _swollen(c: Contact, radius: float) -> Contact:
    """A contact with a body that has grown by a radius all around."""
    point, rate = c.point - radius * c.normal, c.point_rate - radius * c.normal_rate
    return c._replace(point=point, gap=c.gap - radius, point_rate=rate)
