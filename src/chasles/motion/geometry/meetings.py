"""Bodies that touch by other features as they move: which there are, and how far apart they are.

Each pair of features (a corner and a face, two edges, a rim and the ground) is a possible contact
of its own. Its gap is that of the features, wherever they are; its `room` says how far it is from
handing over to its neighbours: beyond an edge of the face, an end of an edge, or where another
feature is turned towards the other body.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from chasles.motion.geometry.closed_forms import Box, Capsule, Ground, Plane
from chasles.motion.geometry.features import (
    UPRIGHT,
    Contact,
    Frames,
    ball_contact,
    flipped,
    rim_contact,
)
from chasles.motion.geometry.kinematics import Carrier
from chasles.motion.geometry.polyhedra import (
    ALONG,
    LEANS,
    SAME,
    Pairs,
    Solid,
    Some,
    corners_before_side,
    corners_on_corners,
    corners_on_edges,
    corners_on_faces,
    crossings,
    edges_across,
    ends_before_corners,
    ends_before_edges,
    joined,
    on_faces,
    solid,
)
from chasles.motion.geometry.shapes import ConvexMesh, Cylinder, cross


class Meeting(Protocol):
    """The pairs of features of two bodies, numbered."""

    @property
    def size(self) -> int:
        """The number of pairs."""

    def gaps(self, over: Carrier, under: Carrier) -> tuple[np.ndarray, np.ndarray]:
        """gap (k,) and room (k,) in m, from how the bodies move; room < 0: others are nearer."""

    def contacts(self, which: np.ndarray, over: Carrier, under: Carrier) -> Contact:
        """Some of them, by their numbers (m,), as contacts: (m, 3) of each."""


class _Kind(NamedTuple):
    """Pairs of features, numbered by fields of two solids; swapped: the solids are exchanged."""

    first: str
    second: str
    pairs: Callable[[Solid, Solid], Pairs]
    contacts: Callable[[Frames, Some, Some], Contact]
    swapped: bool = False


class _Features:
    """All pairs of features of two solids that may touch, numbered by kind: a `Meeting`."""

    kinds: ClassVar[tuple[_Kind, ...]]

    def __init__(self, body: Any, surface: Any) -> None:
        self._frames = body.frame, surface.frame
        self._solids = solid(body), solid(surface)
        self._length = max(one.size for one in self._solids)
        self._counts = []
        for kind in self.kinds:
            names, solids = (kind.first, kind.second), self._solids[:: -1 if kind.swapped else 1]
            self._counts.append(
                [len(getattr(s, name)) for s, name in zip(solids, names, strict=True)]
            )
        self._starts = np.cumsum([0, *(first * second for first, second in self._counts)])

    @property
    def size(self) -> int:
        """The number of pairs of all kinds."""
        return int(self._starts[-1])

    def _pairs(self, over: Carrier, under: Carrier) -> Pairs:
        """All pairs, in the frame of the second solid."""
        a, b = self._solids
        a = a.moved(under.R.T @ over.R, under.back(over.o - under.o))
        found = [k.pairs(b, a).back() if k.swapped else k.pairs(a, b) for k in self.kinds]
        return Pairs(*map(np.concatenate, zip(*found, strict=True)))

    def contacts(self, which: np.ndarray, over: Carrier, under: Carrier) -> Contact:
        """Some of them, see `Meeting`."""
        (a, b), frames = self._solids, self._frames
        numbers = np.searchsorted(self._starts, which, side="right") - 1
        found = []
        for number, kind in enumerate(self.kinds):
            count = max(self._counts[number][1], 1)
            i, j = np.divmod(which[numbers == number] - self._starts[number], count)
            if kind.swapped:
                back = kind.contacts(frames[::-1], (b, i, under), (a, j, over))
                found.append(flipped(back, under, over))
            else:
                found.append(kind.contacts(frames, (a, i, over), (b, j, under)))
        return joined(found, np.argsort(numbers, kind="stable"))


class Polyhedra(_Features):
    """The pairs of two polyhedra: corners and faces, either way, and edges.

    The outward pair whose plane is highest over the other body says along which direction the
    bodies part, or penetrate least; of others along other directions only the distances count.
    """

    kinds = (
        _Kind("corners", "normals", on_faces, corners_on_faces),
        _Kind("corners", "normals", on_faces, corners_on_faces, swapped=True),
        _Kind("starts", "starts", edges_across, crossings),
    )

    def gaps(self, over: Carrier, under: Carrier) -> tuple[np.ndarray, np.ndarray]:
        """gap (k,) and room (k,), see `Meeting`."""
        found, slack = self._pairs(over, under), SAME * self._length
        astray = found.astray(found.outward >= -SAME)
        astray[found.gap > slack] = np.inf
        turned = self._length * np.minimum(found.outward + found.lack, astray)
        return found.gap, np.minimum(found.inside + slack, turned)


class Capsules(_Features):
    """The pairs of a capsule and a polyhedron: ends before faces, edges and corners, and the side.

    Where the segment is beside the polyhedron, two features whose common normal both bodies allow
    are those that are nearest, by convexity: the gap is their distance, less the radius. Before
    faces, and across edges, distances have a sign, so that a step that takes the segment into the
    polyhedron, deeper than the radius, is seen too. Each pair takes over from its neighbours where
    these end, with the same gap and normal. A side that lies along a face or an edge touches by
    both of its ends, or those of the other.
    """

    kinds = (
        _Kind("corners", "normals", on_faces, corners_on_faces),
        _Kind("corners", "starts", ends_before_edges, corners_on_edges),
        _Kind("corners", "corners", ends_before_corners, corners_on_corners),
        _Kind("starts", "starts", partial(edges_across, parallel=ALONG), crossings),
        _Kind("corners", "starts", corners_before_side, corners_on_edges, swapped=True),
    )

    def __init__(self, body: Capsule, surface: Box | ConvexMesh) -> None:
        super().__init__(body, surface)
        self._radius = body.radius

    def gaps(self, over: Carrier, under: Carrier) -> tuple[np.ndarray, np.ndarray]:
        """gap (k,) and room (k,), see `Meeting`."""
        found = self._pairs(over, under)
        turned = found.outward + found.lack
        turned = self._length * np.minimum(turned, found.astray(turned >= 0.0))
        return found.gap - self._radius, np.minimum(found.inside + SAME * self._length, turned)

    def contacts(self, which: np.ndarray, over: Carrier, under: Carrier) -> Contact:
        """Some of them, see `Meeting`: those of the axis, with the capsule all around it."""
        c, r = super().contacts(which, over, under), self._radius
        point, rate = c.point - r * c.normal, c.point_rate - r * c.normal_rate
        return c._replace(point=point, gap=c.gap - r, point_rate=rate)


class Standing:
    """A cylinder on a plane or a ground: the lowest point of each rim, and fixed ones of both.

    A rim that leans touches by its lowest point, which moves around it. The fixed ones, `rim` of
    each, take its place where it is level and has no lowest point.
    """

    def __init__(self, body: Cylinder, surface: Plane | Ground) -> None:
        self._body, self._surface = body, surface
        self._places = np.array([at for at, _ in body.balls()])

    @property
    def size(self) -> int:
        """Two lowest points, and the fixed ones."""
        return 2 + len(self._places)

    def gaps(self, over: Carrier, under: Carrier) -> tuple[np.ndarray, np.ndarray]:
        """gap (k,) and room (k,), see `Meeting`."""
        body, lowest = self._body, self.contacts(np.arange(2), over, under)
        axis = over.turned(body.rims[0].out)
        leans = np.linalg.norm(cross(axis, lowest.normal), axis=-1)
        fixed, _, _ = self._surface.nearest(*under.seen(*over.point(self._places)))
        gap = np.concatenate([lowest.gap, fixed])
        level = np.repeat(LEANS - leans, body.rim)
        return gap, body.radius * np.concatenate([leans - 2.0 * UPRIGHT, level])

    def contacts(self, which: np.ndarray, over: Carrier, under: Carrier) -> Contact:
        """Some of them, see `Meeting`."""
        frames, surface = (self._body.frame, self._surface.frame), self._surface
        rims, fixed = which[which < 2], which[which >= 2] - 2
        found = [rim_contact(frames, over, self._body.rims[k], under, surface) for k in rims]
        found.append(ball_contact(frames, over, (self._places[fixed], 0.0), under, surface))
        return joined(found, np.argsort(which >= 2, kind="stable"))
