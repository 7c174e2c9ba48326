"""Contacts between edges of shapes and ridges of a height field.

Two edges touch along their common normal n, if n is between the normals of the two triangles of the
ridge. Together with corners on triangles and peaks under faces (`fields`), these contacts cover
every case of two touching polyhedra. MuJoCo instead tests a shape against the prism below each
triangle, and keeps one contact for each prism (`mjc_ConvexHField`). In MuJoCo, a shape therefore
also touches the inner walls between prisms, and a flat face rests on one point for each triangle.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from chasles.motion.geometry.closed_forms import Box, Capsule
from chasles.motion.geometry.polyhedra import Solid, solid
from chasles.motion.geometry.shapes import ConvexMesh

FLAT = 1e-6
"""Threshold that distinguishes ridges from flat edges and valleys. An edge is a ridge if the sum of
the unit vectors from the edge into its two triangles has a downward component above the threshold.
"""

TURN, LEAN = 1e-3, 0.1
"""Tolerances (sines) for the angle by which a contact normal may be outside the range between two
face normals: `TURN` for the faces at the ridge, `LEAN` for the faces at the shape's edge. `LEAN` is
larger, so that edges that will touch at the end of a step are found at the beginning of the step.
"""

PARALLEL = 1e-3
"""Sine of the largest angle at which edges are treated as parallel. Parallel edges have contacts at
their ends."""

LARGEST = 200_000
"""Maximum number of edge pairs that are computed at once, to limit memory use."""


class Ridges(NamedTuple):
    """Edges of a height field.

    Attributes
    ----------
    start, along : array, shape (..., 3)
        First corner of each edge, and vector to the second corner (m).
    sides : array, shape (..., 2, 3)
        Unit vectors from an edge into its two triangles.
    exists : array, shape (...)
        True for edges that are ridges.
    """

    start: np.ndarray
    along: np.ndarray
    sides: np.ndarray
    exists: np.ndarray


def ridges(x: np.ndarray) -> Ridges:
    """Return the edges of a grid of points (rows, columns, 3), three edges for each point."""
    rows, columns = x.shape[:2]
    i, j = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    parts = []
    for end, first, second in (
        ((0, 1), (1, 1), (-1, 0)),  # edges along x
        ((1, 0), (1, 1), (0, -1)),  # edges along y
        ((1, 1), (0, 1), (1, 0)),  # edges between the triangles of a cell
    ):
        places = [(i + di, j + dj) for di, dj in (end, first, second)]
        exists = np.all(
            [(a >= 0) & (a < rows) & (b >= 0) & (b < columns) for a, b in places], axis=0
        )
        to, *others = (x[a.clip(0, rows - 1), b.clip(0, columns - 1)] - x for a, b in places)
        square = np.maximum(np.sum(to * to, axis=-1, keepdims=True), 1e-300)
        sides = []
        for apex in others:
            side = apex - np.sum(apex * to, axis=-1, keepdims=True) / square * to
            size = np.linalg.norm(side, axis=-1, keepdims=True)
            sides.append(side / np.maximum(size, 1e-300))
        exists &= (sides[0] + sides[1])[..., 2] < -FLAT
        parts.append((x, to, np.stack(sides, axis=-2), exists))
    return Ridges(*(np.stack(part, axis=2) for part in zip(*parts, strict=True)))


@lru_cache(maxsize=256)
def _solid(body: Any) -> Solid:
    return solid(body)


def crossings(body: Any, turn: np.ndarray, origin: np.ndarray, near: Ridges) -> np.ndarray | None:
    """Return point, normal and gap (n, k, 7) of contacts between a shape and a field's ridges.

    The contacts are between straight edges of the shape and ridges of the height field. `turn`
    (n, 3, 3) and `origin` (n, 3) are the orientation and the origin of the shape's frame, relative
    to the field. `near` contains the m edges of the field that are near the shape in each of the n
    states. Gaps are infinite where edges do not cross. The result is None if the shape has no
    straight edges.
    """
    if not isinstance(body, Box | Capsule | ConvexMesh):
        return None
    edges = _solid(body)
    count = int(near.exists.sum(axis=1).max(initial=0))
    order = np.argsort(~near.exists, axis=1, kind="stable")[:, :count]
    pick = np.arange(len(order))[:, None], order
    kept = Ridges(*(part[pick] for part in near))
    block = max(1, LARGEST // max(1, count * len(edges.starts)))
    parts = [
        _crossed(edges, getattr(body, "radius", 0.0), turn[at], origin[at], kept, at)
        for at in (slice(k, k + block) for k in range(0, len(turn), block))
    ]
    return np.concatenate(parts) if parts else np.zeros((0, 0, 7))


def _crossed(
    edges: Solid, radius: float, turn: np.ndarray, origin: np.ndarray, kept: Ridges, at: slice
) -> np.ndarray:
    """Return the contacts (n, b m, 7) between b edges of a shape and m ridges, in n states."""
    p, e, sides, exists = (part[at][:, None] for part in kept)
    r = (np.einsum("nij,bj->nbi", turn, edges.starts) + origin[:, None])[:, :, None]
    a = np.einsum("nij,bj->nbi", turn, edges.alongs)[:, :, None]
    flanks = np.einsum("nij,bfj->nbfi", turn, edges.flanks)[:, :, None]
    ee, aa = np.sum(e * e, axis=-1), np.sum(a * a, axis=-1)
    ea, pe, pa = np.sum(e * a, axis=-1), np.sum(p * e, axis=-1), np.sum(p * a, axis=-1)
    de, da = np.sum(r * e, axis=-1) - pe, np.sum(r * a, axis=-1) - pa
    square = ee * aa - ea * ea  # |e x a|^2
    crosses = exists & (square > PARALLEL * PARALLEL * ee * aa)
    square = np.where(crosses, square, 1.0)
    s, t = (de * aa - da * ea) / square, (de * ea - da * ee) / square
    crosses &= (np.abs(s - 0.5) <= 0.5) & (np.abs(t - 0.5) <= 0.5)
    found = np.zeros((*crosses.shape, 7))
    found[..., 5], found[..., 6] = 1.0, np.inf
    where = np.nonzero(crosses)
    p, e, sides, r, a, flanks = (
        np.broadcast_to(x, (*crosses.shape, *x.shape[3:]))[where]
        for x in (p, e, sides, r, a, flanks)
    )
    n = np.cross(e, a) / np.sqrt(square[where])[:, None]
    into = np.sum(sides, axis=-2)
    n *= np.where(np.sum(n * into, axis=-1) > 0.0, -1.0, 1.0)[:, None]
    gap = np.sum((r - p) * n, axis=-1) - radius
    fits = np.all(np.sum(sides * n[:, None], axis=-1) < TURN, axis=-1)
    fits &= np.all(np.sum(flanks * n[:, None], axis=-1) > -LEAN, axis=-1) & (gap > -edges.size)
    point = p + s[where][:, None] * e + 0.5 * gap[:, None] * n
    kept_rows = np.concatenate([point, n, gap[:, None]], axis=-1)
    found[tuple(k[fits] for k in where)] = kept_rows[fits]
    return found.reshape(len(turn), -1, 7)
