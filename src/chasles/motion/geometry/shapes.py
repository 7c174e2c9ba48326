"""Cylinders and convex meshes: their points, rims, edges, faces, and nearest points.

Lengths are in m. Positions are in the shape's frame; `frame=None` denotes the world frame.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy

from chasles.errors import InputError
from chasles.motion.geometry.closed_forms import (
    Box,
    Capsule,
    Ground,
    Nearest,
    Place,
    Plane,
    Point,
    Sphere,
    check_places,
    contact_axes,
    from_segment,
    unit,
)

FLAT = 1e-9
"""Tolerance for merging coplanar triangles of a convex hull. Their unit normals may differ by this
value, and their distances from the origin by this fraction of the size of the hull."""


@dataclass(frozen=True)
class Cylinder:
    """Solid cylinder between two discs of `radius` around `start` and `end`.

    `rim` is the number of fixed contact points on each rim. The lowest point of a rim, which moves
    along the rim, is an additional contact point. If the cylinder stands on one of its discs, the
    fixed points are used, so the disc acts as a polygon with `rim` corners.
    """

    frame: str | None
    radius: float
    start: Place
    end: Place
    rim: int = 8

    def __post_init__(self) -> None:
        check_places(self, "start", "end")
        for what, length in (("radius", self.radius), ("length", math.dist(self.start, self.end))):
            if not isinstance(length, Real) or not 0.0 < length < math.inf:
                problem = f"{what} must be positive and finite, not {length}"
                raise InputError("E-CONTACT-075", problem, part="Cylinder")
        if not isinstance(self.rim, int) or self.rim < 3:
            problem = f"`rim` must be an integer of at least 3, not {self.rim!r}"
            raise InputError("E-CONTACT-076", problem, part="Cylinder")

    @cached_property
    def rims(self) -> tuple["Rim", "Rim"]:
        """Circular edges of the cylinder, first around `start`, then around `end`."""
        along = np.subtract(self.end, self.start)
        x, y, z = contact_axes(along / np.linalg.norm(along))
        start, end = np.array(self.start), np.array(self.end)
        return Rim(start, x, y, -z, self.radius), Rim(end, x, y, z, self.radius)

    def balls(self) -> list[tuple[Place, float]]:
        """Return points at equal angles on both rims, as balls of radius zero.

        Returns
        -------
        list of (center, radius)
            Center in the shape's frame and radius of each ball (m).

        Examples
        --------
        >>> from chasles import contact
        >>> len(contact.Cylinder(None, 0.1, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)).balls())
        16
        """
        angles = 2.0 * np.pi / self.rim * np.arange(self.rim)
        return [(place(rim.at(s)[0]), 0.0) for rim in self.rims for s in angles]

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Return distance, normal and rate of the normal for the center of a ball.

        The nearest point is on the side, a rim or a disc; for a center inside the cylinder, it is
        on the side or a disc.

        Parameters
        ----------
        c : ndarray, shape (3,)
            Center of a ball, in the shape's frame (m).
        v : ndarray, shape (3,)
            Velocity of the center, in the shape's frame (m/s).

        Returns
        -------
        tuple of ndarray
            Distance from the surface to the center (m, negative inside), unit normal (3,), and
            rate of the normal (1/s).

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> can = contact.Cylinder(None, 0.5, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
        >>> distance, n, _ = can.nearest(np.array([2.0, 0.0, 0.5]), np.zeros(3))
        >>> round(float(distance), 9)
        1.5
        """
        z = self.rims[1].out
        half = 0.5 * math.dist(self.start, self.end)
        r = c - 0.5 * np.add(self.start, self.end)
        height, rise = r @ z, v @ z
        up = np.where(height < 0.0, -1.0, 1.0)[..., None] * z
        width, side, turn = unit(r - height[..., None] * z, v - rise[..., None] * z)
        wide, high = width - self.radius, np.abs(height) - half
        distance, n, rate = unit(
            _where(wide > 0.0, wide[..., None] * side) + _where(high > 0.0, high[..., None] * up),
            _where(wide > 0.0, v - rise[..., None] * z - self.radius * turn)
            + _where(high > 0.0, rise[..., None] * z),
        )
        inside = (wide <= 0.0) & (high <= 0.0)
        by_side = (wide >= high)[..., None]
        return (
            np.where(inside, np.maximum(wide, high), distance),
            np.where(inside[..., None], np.where(by_side, side, up), n),
            np.where(inside[..., None], _where(by_side[..., 0], turn), rate),
        )


class Rim(NamedTuple):
    """Rim of a cylinder: a circle around `center` in the plane of the unit vectors x and y.

    `out` is the unit normal of this plane that points out of the cylinder.
    """

    center: np.ndarray
    x: np.ndarray
    y: np.ndarray
    out: np.ndarray
    radius: float
    sweep: float = 0.0
    """Rounding radius of the edge (m): zero, because a rim is sharp."""

    def at(self, s: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the point at angle s (...), measured from x to y, and its derivatives (..., 3)."""
        c, d = np.cos(s)[..., None], np.sin(s)[..., None]
        arm = self.radius * (c * self.x + d * self.y)
        return self.center + arm, self.radius * (c * self.y - d * self.x), -arm

    def angle(self, direction: np.ndarray) -> np.ndarray:
        """Return the angle of the rim's point that is farthest along a direction (..., 3)."""
        return np.arctan2(direction @ self.y, direction @ self.x)


class Face(NamedTuple):
    """Face of a hull: the outward unit normal, and the indices (k,) of the corners in order."""

    normal: np.ndarray
    corners: tuple[int, ...]


@dataclass(frozen=True)
class ConvexMesh:
    """Convex hull of points; interior points are ignored.

    `vertices` must contain at least four points that are not coplanar, such as the vertices of a
    mesh file.
    """

    frame: str | None
    vertices: tuple[Place, ...]

    def __post_init__(self) -> None:
        points = np.asarray(self.vertices, dtype=float)
        if points.ndim != 2 or points.shape[1:] != (3,) or not np.all(np.isfinite(points)):
            problem = "`vertices` must be a finite array of shape (n, 3)"
            raise InputError("E-CONTACT-077", problem, part="ConvexMesh")
        object.__setattr__(self, "vertices", tuple(place(p) for p in points))
        assert len(self._hull.vertices) >= 4

    @cached_property
    def _hull(self) -> Any:
        try:
            return scipy.spatial.ConvexHull(self.vertices)
        except (scipy.spatial.QhullError, ValueError):
            problem = f"the {len(self.vertices)} vertices enclose no volume"
            remedy = "pass at least four points that are not coplanar"
            raise InputError("E-CONTACT-078", problem, remedy, part="ConvexMesh") from None

    @cached_property
    def points(self) -> np.ndarray:
        """Corners of the hull (n, 3)."""
        return np.array(self._hull.points[self._hull.vertices])

    @cached_property
    def size(self) -> float:
        """Half of the hull's largest extent along a coordinate axis (m)."""
        return float(np.max(np.ptp(self.points, axis=0)) / 2.0)

    @cached_property
    def faces(self) -> tuple[Face, ...]:
        """Faces of the hull; coplanar triangles are merged."""
        planes = self._hull.equations * [1.0, 1.0, 1.0, 1.0 / self.size]
        found: list[Face] = []
        while len(planes):
            same = np.max(np.abs(planes - planes[0]), axis=1) <= FLAT
            n, level = planes[0, :3], self.points @ planes[0, :3]
            on = np.flatnonzero(level >= np.max(level) - FLAT * self.size)
            arms = self.points[on] - np.mean(self.points[on], axis=0)
            x = arms[0] / np.linalg.norm(arms[0])
            around = np.argsort(np.arctan2(arms @ np.cross(n, x), arms @ x))
            found.append(Face(n, tuple(int(k) for k in on[around])))
            planes = planes[~same]
        return tuple(found)

    @cached_property
    def edges(self) -> np.ndarray:
        """Indices of the two corners of each edge: (m, 2)."""
        pairs = {
            (min(a, b), max(a, b))
            for face in self.faces
            for a, b in zip(face.corners, (*face.corners[1:], face.corners[0]), strict=True)
        }
        return np.array(sorted(pairs))

    def balls(self) -> list[tuple[Place, float]]:
        """Return the corners, as balls of radius zero.

        Returns
        -------
        list of (center, radius)
            Center in the shape's frame and radius of each ball (m).

        Examples
        --------
        >>> from chasles import contact
        >>> corners = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
        >>> len(contact.ConvexMesh(None, corners).balls())
        4
        """
        return [(place(p), 0.0) for p in self.points]

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Return distance, normal and rate of the normal for the center of a ball.

        The nearest point is on a face, an edge or a corner; for a center inside the mesh, it is on
        a face.

        Parameters
        ----------
        c : ndarray, shape (3,)
            Center of a ball, in the shape's frame (m).
        v : ndarray, shape (3,)
            Velocity of the center, in the shape's frame (m/s).

        Returns
        -------
        tuple of ndarray
            Distance from the surface to the center (m, negative inside), unit normal (3,), and
            rate of the normal (1/s).

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> corners = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
        >>> solid = contact.ConvexMesh(None, corners)
        >>> distance, n, _ = solid.nearest(np.array([0.2, 0.2, -1.0]), np.zeros(3))
        >>> round(float(distance), 9)
        1.0
        """
        corner = self.points[[face.corners[0] for face in self.faces]]
        normals = np.array([face.normal for face in self.faces])
        levels = np.sum((c[..., None, :] - corner) * normals, axis=-1)
        loops = [(self.points[list(face.corners)], face.normal) for face in self.faces]
        on = np.stack([over_polygon(*loop, c) for loop in loops], axis=-1)
        inside = np.all(levels <= 0.0, axis=-1)
        flat = inside | np.any(on & (levels > 0.0), axis=-1)
        which = np.argmax(np.where(inside[..., None] | on, levels, -np.inf), axis=-1)
        level = np.take_along_axis(levels, which[..., None], axis=-1)[..., 0]
        distance, n, rate = self._from_edges(c, v)
        return (
            np.where(flat, level, distance),
            np.where(flat[..., None], normals[which], n),
            np.where(flat[..., None], 0.0, rate),
        )

    def _from_edges(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Return distance, normal and rate of the normal for the edge nearest to c (..., 3)."""
        start, end = np.moveaxis(self.points[self.edges], 1, 0)
        r, rate = from_segment(c[..., None, :], v[..., None, :], start, end - start)
        best = np.argmin(np.sum(r * r, axis=-1), axis=-1)[..., None, None]
        r, rate = (np.take_along_axis(x, best, axis=-2)[..., 0, :] for x in (r, rate))
        return unit(r, rate)


def over_polygon(
    corners: np.ndarray, normal: np.ndarray, c: np.ndarray, slack: float = 0.0
) -> np.ndarray:
    """Return True for points c (..., 3) whose projection is within `slack` of a polygon (k, 3).

    The polygon must be convex.
    """
    sides = np.roll(corners, -1, axis=0) - corners
    inward = np.cross(normal, sides) / np.linalg.norm(sides, axis=-1, keepdims=True)
    depths = np.sum((c[..., None, :] - corners) * inward, axis=-1)
    return np.asarray(np.all(depths >= -slack, axis=-1))


def _where(condition: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Set the vectors (..., 3) to zero where a condition (...) is False."""
    return np.where(condition[..., None], vectors, 0.0)


def place(point: np.ndarray) -> Place:
    """Return a point (3,) as a tuple."""
    x, y, z = (float(a) for a in point)
    return x, y, z


Body = Point | Sphere | Capsule | Box | Cylinder | ConvexMesh
Surface = Sphere | Capsule | Box | Cylinder | ConvexMesh | Plane | Ground


@lru_cache(maxsize=256)
def mesh(shape: Box | ConvexMesh) -> ConvexMesh:
    """Return a box or convex mesh as a `ConvexMesh`."""
    if isinstance(shape, ConvexMesh):
        return shape
    return ConvexMesh(shape.frame, tuple(at for at, _ in shape.balls()))
