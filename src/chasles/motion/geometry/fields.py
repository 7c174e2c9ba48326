"""Height fields: solids below a grid of heights, and their contacts with other shapes.

Each cell of the grid consists of two triangles. As in MuJoCo, the common edge of the triangles runs
from the corner with the lowest x and y to the corner with the highest x and y. A ball touches the
field where the distance from its center has a local minimum, so the inner edges of a flat field do
not obstruct the ball. A corner of the field can touch a shape if the corner is a peak in the
direction of contact. A ridge of the field can touch the edges of boxes and hulls, and the sides of
capsules (`ridges`).
"""

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.motion.geometry.closed_forms import Box, Capsule, Place, Sphere, check_places
from chasles.motion.geometry.ridges import Ridges, crossings, ridges
from chasles.motion.geometry.shapes import ConvexMesh

FAR = 1e3
"""Gap (m) that marks a missing contact."""

SAME = 1e-9
"""Tolerance (m) within which points on a height field count as coincident, or distances as equal.
"""

SIMILAR = 1e-6
"""Tolerance for duplicate contacts: maximum difference between their positions (m) and normals."""

PEAK = 0.02
"""Sine of the largest angle by which the edges at a peak may rise toward the contact normal. Only
corners of the height field that are peaks can touch a shape."""

CLOSEST = 8
"""Number of closest triangles that are checked for contact with a ball."""

BALL, CORNERS, PEAKS, CROSSINGS = 3, 8, 4, 8
"""Maximum number of contacts between a shape and a height field.

The values are for a ball, for corners of another shape, for peaks of the field, and for edges of
the shape that cross ridges of the field."""


@dataclass(frozen=True, repr=False)
class HeightField:
    """Solid between the plane z = -base and a grid of heights over a rectangle.

    Only the integrator "time-stepping" supports height fields.

    Attributes
    ----------
    frame : str or None
        Frame of the robot, or None for the world.
    heights : nested sequence of floats, at least 2 x 2
        Heights (m), in rows along x, from the lowest to the highest y.
    size : pair of floats
        Lengths of the rectangle along x and y (m).
    base : float
        Thickness below z = 0 (m).
    center : three floats
        Center of the field in its frame (m).
    axes : three unit vectors
        Axes of the field in its frame, as rows.
    """

    frame: str | None
    heights: tuple[tuple[float, ...], ...]
    size: tuple[float, float]
    base: float = 0.1
    center: Place = (0.0, 0.0, 0.0)
    axes: tuple[Place, Place, Place] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

    def __post_init__(self) -> None:
        check_places(self, "center")
        try:
            grid, R = (np.array(x, dtype=float) for x in (self.heights, self.axes))
            lengths = np.array([*self.size, self.base], dtype=float)
        except (TypeError, ValueError):
            grid, R, lengths = np.zeros((0, 0)), np.eye(3), np.zeros(3)
        fits = grid.ndim == 2 and min(grid.shape, default=0) >= 2 and np.isfinite(grid).all()
        if not fits or lengths.shape != (3,) or not (np.isfinite(lengths) & (lengths > 0.0)).all():
            problem = (
                "`heights` must be finite and at least 2 x 2; `size` and `base` must be positive"
            )
            raise InputError("E-CONTACT-093", problem, part="HeightField")
        if R.shape != (3, 3) or not np.allclose(R @ R.T, np.eye(3), atol=1e-9):
            problem = "`axes` must be three orthogonal unit vectors"
            raise InputError("E-CONTACT-094", problem, part="HeightField")
        object.__setattr__(self, "heights", tuple(tuple(map(float, row)) for row in grid))

    def __repr__(self) -> str:
        rows, columns = self.grid.shape
        digest = hashlib.sha256(self.grid.tobytes()).hexdigest()[:16]
        rest = f"{self.size}, {self.base}, {self.center}, {self.axes}"
        return f"HeightField({self.frame!r}, {rows} x {columns} heights {digest}, {rest})"

    @cached_property
    def grid(self) -> np.ndarray:
        """Heights (rows, columns) in m."""
        return np.array(self.heights)

    @cached_property
    def cell(self) -> np.ndarray:
        """Lengths of a grid cell along x and y (m)."""
        rows, columns = self.grid.shape
        return np.array([self.size[0] / (columns - 1), self.size[1] / (rows - 1)])

    def corner(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return corners of the grid in the field's axes.

        Parameters
        ----------
        i, j : ndarray of int, shape (...)
            Rows and columns.

        Returns
        -------
        corners : ndarray, shape (..., 3)
            Positions (m).

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> field = contact.HeightField(None, ((0.0, 0.0), (0.0, 0.5)), (2.0, 2.0))
        >>> field.corner(np.array(1), np.array(1))
        array([1. , 1. , 0.5])
        """
        x = self.cell[0] * j - 0.5 * self.size[0]
        y = self.cell[1] * i - 0.5 * self.size[1]
        return np.stack([x, y, self.grid[i, j]], axis=-1)

    def height(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the heights of the field below points.

        Parameters
        ----------
        c : ndarray, shape (..., 3)
            Points in the field's axes (m); z is not used.

        Returns
        -------
        heights : ndarray, shape (...)
            Heights (m), linear on the two triangles of each cell.
        inside : ndarray of bool, shape (...)
            True for points whose x and y are within the field.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> field = contact.HeightField(None, ((0.0, 0.0), (0.0, 0.5)), (2.0, 2.0))
        >>> heights, inside = field.height(np.array([[0.0, 0.0, 1.0], [3.0, 0.0, 1.0]]))
        >>> float(heights[0]), inside
        (0.25, array([ True, False]))
        """
        i, j, part = self._below(c)
        x, y = part[..., 0], part[..., 1]
        h, first = self.grid, x >= y
        low, high = h[i, j], h[i + 1, j + 1]
        side = np.where(first, h[i, j + 1], h[i + 1, j])
        flat, steep = np.minimum(x, y), np.maximum(x, y)
        inside = np.all((part >= 0.0) & (part <= 1.0), axis=-1)
        return low + (side - low) * steep + (high - side) * flat, inside

    def _below(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the cell below (or nearest to) each point: row, column and local coordinates."""
        rows, columns = self.grid.shape
        at = (c[..., :2] + 0.5 * np.array(self.size)) / self.cell
        whole = np.floor(np.nan_to_num(at)).clip(0, [columns - 2, rows - 2]).astype(int)
        return whole[..., 1], whole[..., 0], at - whole

    def triangles(self, c: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the triangles near points.

        Parameters
        ----------
        c : ndarray, shape (..., 3)
            Points in the field's frame (m).
        reach : float
            Search distance along x and y (m): at least one cell is searched, at most 40.

        Returns
        -------
        triangles : ndarray, shape (..., k, 3, 3)
            Corners of the triangles (m).
        exists : ndarray of bool, shape (..., k)
            False for triangles beyond the border.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> field = contact.HeightField(None, ((0.0, 0.0), (0.0, 0.5)), (2.0, 2.0))
        >>> triangles, exists = field.triangles(np.zeros(3), 0.1)
        >>> int(exists.sum())
        2
        """
        rows, columns = self.grid.shape
        i, j, _ = self._below(c)
        around = (x[:-1] for x in self._around(max(reach, float(self.cell.min()))))
        down, along = (x.ravel() for x in np.meshgrid(*around, indexing="ij"))
        i, j = i[..., None] + down, j[..., None] + along
        exists = (i >= 0) & (i < rows - 1) & (j >= 0) & (j < columns - 1)
        i, j = i.clip(0, rows - 2), j.clip(0, columns - 2)
        a, b, d, e = (self.corner(i + di, j + dj) for di, dj in ((0, 0), (0, 1), (1, 0), (1, 1)))
        found = np.concatenate([np.stack([a, b, e], axis=-2), np.stack([a, e, d], axis=-2)], -3)
        return found, np.concatenate([exists, exists], axis=-1)

    def peaks(self, c: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the corners of the grid near points, and the edges that start there.

        Parameters
        ----------
        c : ndarray, shape (..., 3)
            Points in the field's axes (m).
        reach : float
            Distance along x and y (m), at most 40 cells.

        Returns
        -------
        corners : ndarray, shape (..., k, 3)
            Positions (m).
        edges : ndarray, shape (..., k, 6, 3)
            Unit vectors along the edges; zero beyond the border.
        exists : ndarray of bool, shape (..., k)
            False for corners beyond the border.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> field = contact.HeightField(None, ((0.0, 0.0), (0.0, 0.5)), (2.0, 2.0))
        >>> corners, edges, exists = field.peaks(np.zeros(3), 0.1)
        >>> int(exists.sum())
        4
        """
        rows, columns = self.grid.shape
        i, j, _ = self._below(c)
        high, wide = self._around(reach)
        down, along = (x.ravel() for x in np.meshgrid(high, wide, indexing="ij"))
        i, j = i[..., None] + down, j[..., None] + along
        exists = (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
        i, j = i.clip(0, rows - 1), j.clip(0, columns - 1)
        at = self.corner(i, j)
        edges = []
        for di, dj in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1)):
            beside = self.corner((i + di).clip(0, rows - 1), (j + dj).clip(0, columns - 1)) - at
            edges.append(beside / np.maximum(np.linalg.norm(beside, axis=-1), SAME)[..., None])
        return at, np.stack(edges, axis=-2), exists

    @cached_property
    def _ridges(self) -> Ridges:
        """Edges that start at each grid corner. `exists` is True for edges that are ridges."""
        rows, columns = self.grid.shape
        return ridges(self.corner(*np.meshgrid(range(rows), range(columns), indexing="ij")))

    def ridges(self, c: np.ndarray, reach: float) -> Ridges:
        """Return the edges of the grid near points; `exists` is True for edges that are ridges.

        Parameters
        ----------
        c : ndarray, shape (n, 3)
            Points in the field's own axes (m).
        reach : float
            Distance along x and y (m), at most 40 cells.

        Returns
        -------
        ridges : Ridges
            The k edges near each point, as arrays with leading shape (n, k).

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> field = contact.HeightField(None, ((0.0, 0.5, 0.0),) * 3, (2.0, 2.0))
        >>> int(field.ridges(np.zeros((1, 3)), 0.1).exists.sum())
        2
        """
        rows, columns = self.grid.shape
        i, j, _ = self._below(c)
        down, along = (x.ravel() for x in np.meshgrid(*self._around(reach), indexing="ij"))
        i, j = i[:, None] + down, j[:, None] + along
        inside = (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
        at = i.clip(0, rows - 1), j.clip(0, columns - 1)
        start, way, sides, exists = (part[at] for part in self._ridges)
        exists = exists & inside[..., None]
        flat = (x.reshape(len(x), -1, *x.shape[3:]) for x in (start, way, sides, exists))
        return Ridges(*flat)

    def _around(self, reach: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the row and column offsets of the corners within a distance (m)."""
        wide, high = (int(min(math.ceil(reach / x), 40)) for x in self.cell)
        return np.arange(-high, high + 2), np.arange(-wide, wide + 2)


# Contacts -----------------------------------------------------------------------------------------


def slots_on_field(body: Any) -> int:
    """Return the number of contact slots (potential contacts) of a shape on a height field."""
    balls = body.balls()
    if isinstance(body, Sphere | Capsule):
        return BALL * len(balls) + (PEAKS + CROSSINGS if isinstance(body, Capsule) else 0)
    edges = CROSSINGS if isinstance(body, Box | ConvexMesh) else 0
    return min(len(balls), CORNERS) + (PEAKS + edges if len(balls) > 1 else 0)


def contacts_on_field(
    body: Any, R: np.ndarray, o: np.ndarray, field: HeightField, S: np.ndarray, s: np.ndarray
) -> np.ndarray:
    """Return contacts (n, k, 7) of a shape on a height field: point, normal and gap.

    Points and normals are in the world frame. The number k is `slots_on_field(body)`; missing
    contacts have the gap `FAR`.

    `R` (n, 3, 3) and `o` (n, 3) are the axes (as columns) and origin of the shape's frame. `S` and
    `s` are the axes and origin of the field's frame.
    """
    S, s = S @ np.transpose(field.axes), s + S @ np.array(field.center)
    places, radii = zip(*body.balls(), strict=True)
    c = np.einsum("nij,kj->nki", R, np.array(places)) + o[:, None]
    seen = np.einsum("nji,nkj->nki", S, c - s[:, None])
    parts = [_balls(field, seen[:, k], r, BALL if r else 1) for k, r in enumerate(radii)]
    found = np.concatenate(parts, axis=1)
    if not radii[0]:
        found = _first(found, CORNERS)
    if len(places) > 1:
        found = np.concatenate([found, *_between(field, body, R, o, S, s)], axis=1)
    point, normal, gap = np.split(found, [3, 6], axis=-1)
    point = np.einsum("nij,nkj->nki", S, point) + s[:, None]
    return np.concatenate([point, np.einsum("nij,nkj->nki", S, normal), gap], axis=-1)


def _first(found: np.ndarray, count: int) -> np.ndarray:
    """Return the `count` contacts with the smallest gaps, as an array (n, count, 7).

    If there are fewer contacts, the other rows have the gap `FAR`.
    """
    order = np.argsort(found[..., 6], axis=1, kind="stable")[:, :count, None]
    kept = np.take_along_axis(found, order, axis=1)
    rest = np.zeros((len(found), max(0, count - kept.shape[1]), 7))
    rest[..., 5], rest[..., 6] = 1.0, FAR
    return np.concatenate([kept, rest], axis=1)


def _balls(field: HeightField, c: np.ndarray, radius: float, count: int) -> np.ndarray:
    """Return contacts (n, count, 7) between balls with centers c (n, 3) and the height field."""
    corners, exists = field.triangles(c, radius)
    p, face = nearest_on_triangles(c[:, None], corners)
    distance = np.where(exists, np.linalg.norm(c[:, None] - p, axis=-1), FAR)
    few = np.argsort(distance, axis=1, kind="stable")[:, : CLOSEST if count > 1 else 1]
    at = np.take_along_axis(p, few[..., None], axis=1)
    own = np.take_along_axis(distance, few, axis=1)
    up = np.take_along_axis(face, few[..., None], axis=1)
    level, inside = field.height(c)
    below = inside & (c[:, 2] < level)
    # A nearest point is a local minimum if no other triangle through this point is closer to c.
    beside, _ = nearest_on_triangles(at[:, :, None], corners[:, None])
    on = np.linalg.norm(beside - at[:, :, None], axis=-1) < SAME
    least = np.min(np.where(on & exists[:, None], distance[:, None], FAR), axis=-1)
    again = np.linalg.norm(at[:, :, None] - at[:, None], axis=-1) < SAME
    known = np.any(again & np.tri(at.shape[1], k=-1, dtype=bool), axis=-1)
    touches = (own < 0.5 * FAR) & (least > own - SAME) & ~known
    touches[below, 1:] = False  # for a center inside the field, use only the closest point
    touches &= (c[:, 2] > -field.base)[:, None]
    sign = np.where(below, -1.0, 1.0)[:, None]
    away = (c[:, None] - at) * (sign / np.maximum(own, SAME))[..., None]
    normal = np.where((own > 10.0 * SAME)[..., None], away, up)
    gap = np.where(touches, sign * own - radius, FAR)
    point = c[:, None] - (radius + 0.5 * np.where(touches, gap, 0.0))[..., None] * normal
    return _first(np.concatenate([point, normal, gap[..., None]], axis=-1), count)


def nearest_on_triangles(c: np.ndarray, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest points (..., 3) on triangles (..., 3, 3), and the unit normals there.

    For each query point c (..., 3), the nearest point is on the face if the projection of c is
    inside the triangle, or else on the nearest edge (Ericson 2005, section 5.1.5).
    """
    a, b, d = (corners[..., k, :] for k in range(3))
    normal = np.cross(b - a, d - a)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    over = c - np.sum((c - a) * normal, axis=-1, keepdims=True) * normal
    inside = np.ones(np.broadcast_shapes(c.shape, a.shape)[:-1], dtype=bool)
    best, least = over, np.full(inside.shape, np.inf)
    for start, end in ((a, b), (b, d), (d, a)):
        side = end - start
        inside &= np.sum(np.cross(normal, side) * (over - start), axis=-1) >= 0.0
        part = np.sum((c - start) * side, axis=-1) / np.sum(side * side, axis=-1)
        on = start + part.clip(0.0, 1.0)[..., None] * side
        square = np.sum((c - on) ** 2, axis=-1)
        best = np.where((square < least)[..., None], on, best)
        least = np.minimum(square, least)
    return np.where(inside[..., None], over, best), np.broadcast_to(normal, best.shape)


def _between(
    field: HeightField, body: Any, R: np.ndarray, o: np.ndarray, S: np.ndarray, s: np.ndarray
) -> list[np.ndarray]:
    """Return the contacts of a shape with peaks (n, PEAKS, 7) and ridges (n, CROSSINGS, 7).

    The contacts are in the field's axes. For shapes without straight edges, only the contacts with
    peaks are returned.
    """
    places = np.array([at for at, _ in body.balls()])
    middle = np.mean(places, axis=0)
    reach = np.max(np.linalg.norm(places - middle, axis=-1)) + max(r for _, r in body.balls())
    c = np.einsum("nji,nj->ni", S, np.einsum("nij,j->ni", R, middle) + o - s)
    turn = np.einsum("nji,njk->nik", S, R)  # the shape's axes in field coordinates
    origin = np.einsum("nji,nj->ni", S, o - s)
    found = [_peaks(body, turn, origin, *field.peaks(c, float(reach)))]
    crossed = crossings(body, turn, origin, field.ridges(c, float(reach)))
    return found if crossed is None else [*found, _first(_different(crossed), CROSSINGS)]


def _different(found: np.ndarray) -> np.ndarray:
    """Return the k contacts (n, k, 7) with the smallest gaps; duplicates have the gap `FAR`."""
    found = _first(found, 4 * CROSSINGS)
    found[..., 6] = np.minimum(found[..., 6], FAR)
    close = np.linalg.norm(found[:, :, None, :6] - found[:, None, :, :6], axis=-1) < SIMILAR
    found[..., 6][np.any(close & np.tri(found.shape[1], k=-1, dtype=bool), axis=-1)] = FAR
    return found


def _peaks(
    body: Any,
    turn: np.ndarray,
    origin: np.ndarray,
    at: np.ndarray,
    edges: np.ndarray,
    exists: np.ndarray,
) -> np.ndarray:
    """Return the contacts (n, PEAKS, 7) of the field's corners with a shape, in the field's axes.

    `turn` and `origin` are the axes and origin of the shape's frame. The last three arguments are
    the results of `HeightField.peaks`.
    """
    own = np.einsum("nji,nkj->nki", turn, at - origin[:, None])
    gap, out, _ = body.nearest(own, np.zeros_like(own))
    normal = -np.einsum("nij,nkj->nki", turn, out)
    steep = np.max(np.sum(edges * normal[..., None, :], axis=-1), axis=-1)
    touches = exists & (steep < PEAK) & (normal[..., 2] > 0.0) & np.isfinite(gap)
    normal = np.where(touches[..., None], normal, [0.0, 0.0, 1.0])
    gap = np.where(touches, gap, FAR)
    point = at + 0.5 * np.where(touches, gap, 0.0)[..., None] * normal
    return _first(np.concatenate([point, normal, gap[..., None]], axis=-1), PEAKS)
