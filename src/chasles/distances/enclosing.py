"""Enclose the collision shapes of links in spheres or capsules.

Each collision shape is first enclosed in a convex polyhedron (for a mesh, its convex hull). The
polyhedron is split into convex cells. A sphere or capsule is fitted around the vertices of each
cell, and therefore contains the whole cell.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from chasles.backends.arrays import checked_count
from chasles.distances.elements import Element, of_file
from chasles.errors import InputError, ModelError
from chasles.model.given import a_number
from chasles.motion.contract import Machine
from chasles.motion.geometry.closed_forms import Capsule, Sphere
from chasles.motion.geometry.shapes import place

PART = "enclosing_shapes"

ROUNDING = 1e-12
"""Relative increase in fitted radii that keeps all vertices inside despite rounding errors."""

CENTERED = 200
"""Number of iterations of the search for the minimum enclosing sphere or circle."""


def enclosing_shapes(
    robot: Machine,
    kind: str = "spheres",
    *,
    excess: float = 0.05,
    count: int = 16,
) -> tuple[Sphere | Capsule, ...]:
    """Return spheres or capsules that enclose all links; see `Robot.enclosing_shapes`."""
    if kind not in ("spheres", "capsules"):
        problem = f"`kind` must be 'spheres' or 'capsules', not {kind!r}"
        raise InputError("E-DIST-040", problem, part=PART)
    most = checked_count(f"{PART}: count", count)
    if not a_number("excess", excess, PART) > 0.0:
        raise InputError("E-DIST-041", f"`excess` must be positive, not {excess!r}", part=PART)
    key = (PART, kind, float(excess), most)
    kept = robot.mechanism.kept
    if key not in kept:
        found = of_file(robot.model, "hull", None)
        if not found:
            problem = f"robot {robot.model.name!r} has no collision shapes"
            remedy = "define spheres, and pass them as `shapes` to distance or Avoid"
            raise ModelError("E-DIST-042", problem, remedy, part=PART)
        fitted = [each for e in found for each in enclosed(e, kind, excess, most)]
        kept[key] = tuple(fitted)
    shapes: tuple[Sphere | Capsule, ...] = kept[key]
    return shapes


def enclosed(element: Element, kind: str, excess: float, count: int) -> Iterator[Sphere | Capsule]:
    """Yield spheres or capsules whose union contains a collision shape.

    The shape is split until the spheres or capsules extend at most `excess` (m) beyond it, or until
    their number is `count`.
    """
    frame = element.frame
    if element.kind == "plane":
        return
    if element.kind == "sphere":
        yield Sphere(frame, element.size[0], place(element.r))
        return
    if element.kind == "capsule":
        yield from _capsule(element, kind, excess, count)
        return
    body = Cell(element.points())
    fit = ball if kind == "spheres" else rod
    cells = [(body, fit(body))]
    while len(cells) < count:
        beyond = [body.beyond(found) for _, found in cells]
        worst = int(np.argmax(beyond))
        parts = cells[worst][0].halves()
        if beyond[worst] <= excess or len(parts) < 2:
            break
        cells[worst : worst + 1] = [(part, fit(part)) for part in parts]
    for _, (start, end, radius) in cells:
        if np.array_equal(start, end):
            yield Sphere(frame, radius, place(start))
        else:
            yield Capsule(frame, radius, place(start), place(end))


def _capsule(element: Element, kind: str, excess: float, count: int) -> Iterator[Sphere | Capsule]:
    """Yield a capsule unchanged or, if `kind` is "spheres", spheres whose union contains it."""
    radius, length = element.size
    start, end = np.array(element.round.start), np.array(element.round.end)
    if kind == "capsules":
        yield Capsule(element.frame, radius, place(start), place(end))
        return
    if 0.5 * length <= excess or count < 3:
        whole = (radius + 0.5 * length) * (1.0 + ROUNDING)
        yield Sphere(element.frame, whole, place(0.5 * (start + end)))
        return
    reach = np.sqrt((radius + excess) ** 2 - radius**2)
    parts = min(int(np.ceil(0.5 * length / reach)), count - 2)
    wide = float(np.hypot(radius, 0.5 * length / parts)) * (1.0 + ROUNDING)
    for k in range(parts):  # each sphere contains one slice of the cylinder
        share = (k + 0.5) / parts
        yield Sphere(element.frame, wide, place(start + share * (end - start)))
    for tip in (start, end):
        yield Sphere(element.frame, radius, place(tip))


Fit = tuple[np.ndarray, np.ndarray, float]
"""Start point, end point and radius of a capsule. For a sphere, both points are the center."""


@dataclass(frozen=True, eq=False)
class Cell:
    """Convex polyhedron: the convex hull of points (n, 3)."""

    points: np.ndarray

    @cached_property
    def hull(self) -> Any:
        """Convex hull, or None if the points are coplanar."""
        try:
            return scipy.spatial.ConvexHull(self.points)
        except (scipy.spatial.QhullError, ValueError):
            return None

    @cached_property
    def corners(self) -> np.ndarray:
        """Vertices of the convex hull, or all points if they are coplanar."""
        return self.points if self.hull is None else self.points[self.hull.vertices]

    def beyond(self, fit: Fit) -> float:
        """Return how far (m) a sphere or capsule extends beyond the faces of this polyhedron.

        For a capsule, the result is the larger of the values for the two spheres at its ends.
        """
        start, end, radius = fit
        if self.hull is None:
            return radius
        normals, levels = self.hull.equations[:, :3], self.hull.equations[:, 3]
        depths = [float(np.max(normals @ at + levels)) for at in (start, end)]
        return radius + max(depths)

    def halves(self) -> list["Cell"]:
        """Split the polyhedron in half, perpendicular to its longest principal axis.

        Return both halves, or only the polyhedron itself if it is flat or very small.
        """
        corners = self.corners
        middle = corners.mean(axis=0)
        axes = np.linalg.svd(corners - middle, full_matrices=False)[2]
        spans = np.ptp(corners @ axes.T, axis=0)
        n = axes[int(np.argmax(spans))]
        levels = corners @ n
        cut = 0.5 * (levels.min() + levels.max())
        if self.hull is None or np.ptp(levels) < 1e-6:
            return [self]
        ends = np.concatenate([self.hull.simplices[:, [a, b]] for a, b in ((0, 1), (1, 2), (2, 0))])
        a, b = self.points[ends[:, 0]], self.points[ends[:, 1]]
        below, above = a @ n - cut, b @ n - cut
        crossing = below * above < 0.0
        share = (below[crossing] / (below[crossing] - above[crossing]))[:, None]
        between = a[crossing] + share * (b[crossing] - a[crossing])
        sides = (corners[levels <= cut], corners[levels >= cut])
        return [Cell(np.concatenate([side, between])) for side in sides]


def ball(cell: Cell) -> Fit:
    """Return an approximate minimum enclosing sphere of a cell (Badoiu and Clarkson 2003)."""
    center = 0.5 * (cell.corners.min(axis=0) + cell.corners.max(axis=0))
    best, radius = center, np.inf
    for k in range(CENTERED):
        away = np.linalg.norm(cell.corners - center, axis=1)
        far = int(np.argmax(away))
        if away[far] < radius:
            best, radius = center, float(away[far])
        center = center + (cell.corners[far] - center) / (k + 2.0)
    return best, best, radius * (1.0 + ROUNDING)


def rod(cell: Cell) -> Fit:
    """Return the sphere or capsule of smallest volume that encloses a cell.

    The candidates are a sphere and, along each principal axis of the cell, a capsule with an
    approximately minimal radius.
    """
    middle = 0.5 * (cell.corners.min(axis=0) + cell.corners.max(axis=0))
    axes = np.linalg.svd(cell.corners - cell.corners.mean(axis=0), full_matrices=False)[2]
    tried = [ball(cell)]
    for axis in axes:
        across = [other for other in axes if other is not axis]
        flat = Cell((cell.corners - middle) @ np.array(across).T)
        center = middle + _disc(flat.points) @ np.array(across)
        tried.append(_along(cell.corners, center, axis))
    return min(tried, key=_volume)


def _disc(points: np.ndarray) -> np.ndarray:
    """Return the approximate center of the minimum enclosing circle of points (n, 2)."""
    center = 0.5 * (points.min(axis=0) + points.max(axis=0))
    best, radius = center, np.inf
    for k in range(CENTERED):
        away = np.linalg.norm(points - center, axis=1)
        far = int(np.argmax(away))
        if away[far] < radius:
            best, radius = center, float(away[far])
        center = center + (points[far] - center) / (k + 2.0)
    return best


def _along(corners: np.ndarray, center: np.ndarray, axis: np.ndarray) -> Fit:
    """Return the smallest capsule with a given axis that encloses points (n, 3).

    The axis passes through `center` in the direction `axis`. The radius is minimized first, and
    then the length.
    """
    r = corners - center
    t = r @ axis
    across = np.linalg.norm(r - t[:, None] * axis, axis=1)
    radius = float(across.max()) * (1.0 + ROUNDING)
    cap = np.sqrt(np.maximum(radius**2 - across**2, 0.0))
    first, last = float(np.min(t + cap)), float(np.max(t - cap))
    if first > last:
        first = last = 0.5 * (first + last)
    start, end = center + first * axis, center + last * axis
    outside = _away(corners, start, end).max()
    return start, end, max(radius, float(outside) * (1.0 + ROUNDING))


def _away(points: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the distances (n,) from points to a line segment."""
    along = end - start
    square = max(float(along @ along), 1e-300)
    part = np.clip((points - start) @ along / square, 0.0, 1.0)
    return np.asarray(np.linalg.norm(points - start - part[:, None] * along, axis=1))


def _volume(fit: Fit) -> float:
    start, end, radius = fit
    length = float(np.linalg.norm(end - start))
    return np.pi * radius**2 * (length + 4.0 / 3.0 * radius)
