"""Contact slots between two boxes: a face clipped to a face of the other box, or crossed edges.

The contact normal is the axis along which the boxes overlap least. The candidates are six face
normals and nine cross products of edges (Gottschalk, Lin and Manocha 1996, *OBBTree*). If the axis
is normal to a face, the opposite face of the other box is clipped to that face (Ericson 2005,
sections 4.4.1 and 5.5.4). The result is a polygon with at most eight vertices. Twelve slots are
used: both ends of the four clipped edges, and the vertices of the clipping face. All functions
support floats and symbols.
"""

from typing import Any, NamedTuple

import numpy as np

from chasles.expr import Number, Scalar
from chasles.motion.geometry.closed_forms import (
    Box,
    absolute,
    applied,
    cross,
    less,
    less_equal,
    maximum,
    minimum,
    select,
    sqrt,
)
from chasles.motion.steps.spots import FAR, Placed, Spot

SLOTS = 12
"""Number of potential contact points for a pair of boxes."""

SAME = 1e-9
"""Tolerance for ties between candidate faces. A face replaces an earlier candidate only if it is
better by more than this value: in overlap (m), or in the cosine of the angle to the normal."""

EDGE, PART = 1e-3, 0.02
"""Margins that favor face contacts over edge contacts. A contact is between two edges only if the
overlap along their common normal is smaller than along all face normals, by a margin. The margin is
`EDGE` times the shortest edge plus `PART` times the overlap. Without the margin, a slightly tilted
face would touch at a point instead of along a line."""

PARALLEL = 1e-6
"""Tolerance for parallel edges: the squared sine of the angle between them."""

SLACK = 1e-6
"""Relative enlargement of clipping rectangles, so that faces of equal size overlap completely."""

FLAT = 1e-12
"""Lower bound (m) on the extent of an edge along a side of the clipping rectangle. Smaller extents
are replaced by this bound to avoid division by zero."""


class Face(NamedTuple):
    """Face of a box: center, outward normal, directions of the edges, and half edge lengths."""

    center: np.ndarray
    normal: np.ndarray
    first: np.ndarray
    second: np.ndarray
    wide: Number
    long: Number


class Apart(NamedTuple):
    """Axis along which two boxes overlap least.

    Attributes
    ----------
    normal : np.ndarray
        Unit vector along the axis, from the second box to the first.
    gap : Number
        Gap (m) along the axis, negative for an overlap.
    face : Face
        Face that the axis is normal to.
    over : Number
        1 if the face belongs to the first box, else 0.
    edge : Number
        1 if the axis is normal to two crossing edges instead of a face, else 0.
    lines : tuple[np.ndarray, np.ndarray]
        Directions of the crossing edges.
    """

    normal: np.ndarray
    gap: Number
    face: Face
    over: Number
    edge: Number
    lines: tuple[np.ndarray, np.ndarray]


def _chosen(which: Number, yes: Any, no: Any) -> Any:
    """Return `yes` if the condition `which` holds, else `no`; both may be tuples of arrays."""
    if isinstance(yes, tuple):
        found = (_chosen(which, a, b) for a, b in zip(yes, no, strict=True))
        return type(yes)(*found) if hasattr(yes, "_fields") else tuple(found)
    return select(np.asarray(which, object) if isinstance(which, Scalar) else which, yes, no)


def _frames(body: Box, over: Placed, surface: Box, under: Placed) -> tuple[Placed, Placed]:
    """Return the axes and centers of two boxes in the world, as arrays of the same dtype."""
    kind = np.result_type(over.R, over.o, under.R, under.o)
    return (
        Placed(over.R.astype(kind), over.out(body.center).astype(kind)),
        Placed(under.R.astype(kind), under.out(surface.center).astype(kind)),
    )


def _halves(box: Box) -> list[float]:
    return [0.5 * float(edge) for edge in box.size]


def _face(box: Box, at: Placed, k: int, sign: Number) -> Face:
    """Return the face of a box whose outward normal is `sign` times its axis k."""
    half, i, j = _halves(box), (k + 1) % 3, (k + 2) % 3
    normal = sign * at.R[:, k]
    return Face(at.o + half[k] * normal, normal, at.R[:, i], at.R[:, j], half[i], half[j])


def least_overlap(body: Box, over: Placed, surface: Box, under: Placed) -> Apart:
    """Return the axis along which two boxes overlap least or are farthest apart."""
    a, b = _frames(body, over, surface, under)
    margin = EDGE * min(*body.size, *surface.size)
    halves, between = (_halves(body), _halves(surface)), a.o - b.o

    def gap_along(n: np.ndarray) -> tuple[Number, Number]:
        reach = sum(
            np.sum(half * absolute(applied(box.R.T, n)))
            for half, box in zip(halves, (a, b), strict=True)
        )
        along = np.sum(n * between)
        return absolute(along) - reach, select(less(along, 0.0), -1.0, 1.0)

    found: Apart | None = None
    for mine, box, own in ((surface, b, 0.0), (body, a, 1.0)):
        for k in range(3):
            gap, sign = gap_along(box.R[:, k])
            outward = -sign if own else sign
            face = _face(mine, box, k, outward)
            new = Apart(sign * box.R[:, k], gap, face, own, 0.0, (a.R[:, 0], b.R[:, 0]))
            found = new if found is None else _chosen(less(found.gap + SAME, gap), new, found)
    assert found is not None
    for i in range(3):
        for j in range(3):
            axis = cross(a.R[:, i], b.R[:, j])
            square = np.sum(axis * axis)
            parallel = less(square, PARALLEL)
            n = axis / sqrt(select(parallel, 1.0, square))
            gap, sign = gap_along(n)
            better = less(found.gap + margin + PART * absolute(found.gap), gap) * (1.0 - parallel)
            new = found._replace(normal=sign * n, gap=gap, edge=1.0, lines=(a.R[:, i], b.R[:, j]))
            found = _chosen(better, new, found)
    return found


def box_on_box(body: Box, over: Placed, surface: Box, under: Placed) -> list[Spot]:
    """Return the possible contact points of two boxes.

    The points are the corners of the overlap of two faces, or the nearest point of two crossing
    edges. A point without contact has the gap `FAR`.
    """
    apart = least_overlap(body, over, surface, under)
    facing = _facing(body, over, surface, under, apart)
    found = []
    for at, level, valid in _clipped(apart.face, facing):
        gap = select(valid * (1.0 - apart.edge), level, FAR)
        found.append(Spot(at, apart.normal, gap))
    crossed = _crossing(body, over, surface, under, apart)
    first = found[0]
    point = select(apart.edge, crossed, first.point)
    found[0] = Spot(point, apart.normal, select(apart.edge, apart.gap, first.gap))
    return found


def _facing(body: Box, over: Placed, surface: Box, under: Placed, apart: Apart) -> Face:
    """Return the face of the other box whose normal is most nearly opposite to that of `apart`."""
    best: Any = None
    face: Any = None
    boxes = [*zip((body, surface), _frames(body, over, surface, under), strict=True)]
    for k in range(3):
        faces = []
        for box, at in boxes:
            towards = np.sum(at.R[:, k] * apart.face.normal)
            sign = select(less(0.0, towards), -1.0, 1.0)
            faces.append((absolute(towards), _face(box, at, k, sign)))
        new = _chosen(apart.over, faces[1], faces[0])
        if best is None:
            best, face = new
            continue
        more = less(best + SAME, new[0])
        best, face = select(more, new[0], best), _chosen(more, new[1], face)
    return face


def _clipped(face: Face, other: Face) -> list[tuple[np.ndarray, Number, Number]]:
    """Return (point, distance, valid) for each vertex of a face clipped to another face.

    Points are halfway between the two faces, and distances are along the normal. `valid` is 1 for
    an existing vertex and 0 for an unused slot.
    """
    sides = (face.wide, face.long)
    reach = [(1.0 + SLACK) * side for side in sides]

    def seen(r: np.ndarray) -> np.ndarray:
        """Return the components of a vector along the face's edges and normal."""
        axes = (face.first, face.second, face.normal)
        return np.array([np.sum(r * axis) for axis in axes])

    def out(x: Number, y: Number, level: Number) -> np.ndarray:
        found: np.ndarray = (
            face.center + x * face.first + y * face.second + 0.5 * level * face.normal
        )
        return found

    center, u, w = (
        seen(r)
        for r in (
            other.center - face.center,
            other.wide * other.first,
            other.long * other.second,
        )
    )
    found = []
    leaving = []
    for start, way in (
        (center - u - w, 2.0 * u), (center + u - w, 2.0 * w),
        (center + u + w, -2.0 * u), (center - u + w, -2.0 * w),
    ):  # fmt: skip
        early, late = _within(start, way, reach)
        valid = less_equal(early, late)
        # If the line of a segment misses the rectangle, the computed points are clipped to the ends
        # of the segment. Points beyond the ends would have large velocities.
        begin, end = start + minimum(early, 1.0) * way, start + maximum(late, 0.0) * way
        found.append((out(*begin), begin[2], valid))
        leaving.append((out(*end), end[2], valid * less(late, 1.0)))
    # Corners of the rectangle, in coordinates (s, t) along the edges of the other face.
    inverse = 1.0 / (u[0] * w[1] - u[1] * w[0])
    corners = []
    for a, b in ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)):
        x, y = a * sides[0], b * sides[1]
        dx, dy = x - center[0], y - center[1]
        s, t = (dx * w[1] - dy * w[0]) * inverse, (u[0] * dy - u[1] * dx) * inverse
        level = center[2] + s * u[2] + t * w[2]
        inside = less(maximum(absolute(s), absolute(t)), 1.0 + SLACK)
        corners.append((out(x, y, level), level, inside))
    return found + leaving + corners


def _within(start: np.ndarray, way: np.ndarray, reach: list[Number]) -> tuple[Number, Number]:
    """Return the fractions of a segment at which the segment enters and leaves a rectangle.

    This is the Liang-Barsky method. `way` is the vector from the start to the end of the segment,
    and `reach` contains half the side lengths of the rectangle. The first fraction is larger than
    the second if the segment misses the rectangle.
    """
    early: Number = 0.0
    late: Number = 1.0
    for k in range(2):
        flat = less(absolute(way[k]), FLAT)
        over = 1.0 / select(flat, FLAT, way[k])
        one, other = (-reach[k] - start[k]) * over, (reach[k] - start[k]) * over
        early, late = maximum(early, minimum(one, other)), minimum(late, maximum(one, other))
    return early, late


def _crossing(body: Box, over: Placed, surface: Box, under: Placed, apart: Apart) -> np.ndarray:
    """Return the midpoint between the closest points of two edges, for boxes in edge contact."""
    middles, reach = [], []
    for box, at, sign, line in zip(
        (body, surface), (over, under), (-1.0, 1.0), apart.lines, strict=True
    ):
        facing = sign * applied(at.R.T, apart.normal)
        corner = select(less(facing, 0.0), -1.0, 1.0) * np.array(_halves(box))
        along = np.sum(applied(at.R, corner) * line)
        middles.append(at.out(corner + np.array(box.center)) - along * line)
        reach.append(absolute(along))
    d, e = apart.lines
    r = middles[0] - middles[1]
    b, c, f = np.sum(d * e), np.sum(d * r), np.sum(e * r)
    bent = 1.0 - b * b
    over_bent = 1.0 / select(less(bent, PARALLEL), 1.0, bent)
    # Limit the closest points of the two lines to the edges (Ericson 2005, section 5.1.9).
    s = _limited((b * f - c) * over_bent, reach[0])
    t = _limited(b * s + f, reach[1])
    s = _limited(b * t - c, reach[0])
    point: np.ndarray = 0.5 * (middles[0] + s * d + middles[1] + t * e)
    return point


def _limited(x: Number, reach: Number) -> Number:
    return minimum(maximum(x, -reach), reach)
