"""Compute volumes, centers of mass and moments of inertia of uniform solids."""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from chasles.formats import meshes as mesh_files
from chasles.formats.registry import MESHES, candidates
from chasles.mathematics.spatial import Transform
from chasles.model import ShapeData

MOST_BYTES = 64 * 2**20
"""Maximum size of a mesh file (bytes)."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A uniform solid with density 1, expressed in a link frame.

    Attributes
    ----------
    volume
        Volume (m3).
    center
        Center of mass (m).
    moments
        Inertia tensor (3, 3) about the center of mass (m5).
    corners
        Vertices (n, 3) of the bounding boxes that enclose the solid (m).
    mesh
        True if the solid is a mesh.
    """

    volume: float
    center: np.ndarray
    moments: np.ndarray
    corners: np.ndarray
    mesh: bool = False

    def placed(self, R: np.ndarray, r: np.ndarray) -> "Solid":
        """Rotate the solid by R, then translate it by r."""
        moments, corners = R @ self.moments @ R.T, self.corners @ R.T + r
        return Solid(self.volume, R @ self.center + r, moments, corners, self.mesh)


def box(x: float, y: float, z: float) -> Solid:
    """Return a box with edges along the axes."""
    return _solid(x * y * z, np.array([x, y, z]) ** 2 / 12.0, (x, y, z))


def sphere(radius: float) -> Solid:
    """Return a solid sphere."""
    second = np.full(3, radius * radius / 5.0)
    volume = 4.0 / 3.0 * math.pi * radius * radius * radius
    return _solid(volume, second, [2.0 * radius] * 3)


def cylinder(radius: float, length: float) -> Solid:
    """Return a cylinder along z."""
    across = radius * radius / 4.0
    second: np.ndarray = np.array([across, across, length * length / 12.0])
    edges = (2.0 * radius, 2.0 * radius, length)
    return _solid(math.pi * radius * radius * length, second, edges)


def capsule(radius: float, length: float) -> Solid:
    """Return a capsule along z; `length` does not include the hemispherical ends."""
    whole = length + 4.0 / 3.0 * radius
    tube = length / whole if whole else 0.0  # volume fraction of the cylinder
    ends = 1.0 - tube
    along = radius * radius / 5.0 + 0.375 * radius * length + length * length / 4.0
    zz = tube * length * length / 12.0 + ends * along
    across = (tube / 4.0 + ends / 5.0) * radius * radius
    edges = (2.0 * radius, 2.0 * radius, length + 2.0 * radius)
    return _solid(math.pi * radius * radius * whole, np.array([across, across, zz]), edges)


def ellipsoid(a: float, b: float, c: float) -> Solid:
    """Return an ellipsoid with semi-axes a, b, c along x, y, z."""
    half = np.array([a, b, c])
    return _solid(4.0 / 3.0 * math.pi * a * b * c, half**2 / 5.0, 2.0 * half)


def cone(radius: float, length: float) -> Solid:
    """Return a cone along z, with its apex at z = length / 2 and its base at z = -length / 2."""
    across, edges = 0.15 * radius * radius, (2.0 * radius, 2.0 * radius, length)
    second: np.ndarray = np.array([across, across, 0.0375 * length * length])
    found = _solid(math.pi * radius * radius * length / 3.0, second, edges)
    return replace(found, center=np.array([0.0, 0.0, -0.25 * length]))


_PLAIN: dict[str, Callable[..., Solid]] = {
    "box": box,
    "sphere": sphere,
    "cylinder": cylinder,
    "capsule": capsule,
    "ellipsoid": ellipsoid,
}


def _solid(volume: float, second: np.ndarray, edges: Iterable[float]) -> Solid:
    """Create a solid from its volume, mean values of x^2, y^2 and z^2, and bounding box size."""
    half = np.array(list(edges)) / 2.0
    signs = np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T
    moments = volume * (np.sum(second) * np.eye(3) - np.diag(second))
    return Solid(volume, np.zeros(3), moments, signs * half)


def of(shape: ShapeData, file: str, *, meshes: bool) -> Solid | None:
    """Convert a shape to a solid in the link frame; `meshes` allows mesh files to be opened.

    Return None if the shape is not supported, or if its moments of inertia are not finite.
    """
    made = None
    with np.errstate(over="ignore", invalid="ignore"):
        if shape.kind in _PLAIN:
            made = _PLAIN[shape.kind](*shape.size)
        elif shape.kind == "mesh" and meshes:
            made = mesh(located(file, shape.file), shape.size)
        placed = made and at(made, shape.pose)
    return placed if placed and np.all(np.isfinite(placed.moments)) else None


def at(solid: Solid, pose: Transform) -> Solid:
    """Rotate and translate a solid by a pose."""
    return solid.placed(np.array(pose.R.rows), np.array([*pose.r]))


def located(file: str, name: str) -> Path | None:
    """Return the path of a mesh that a robot file refers to; None if it does not exist."""
    paths = (path for path in candidates(name, file) if path.suffix.lower() in MESHES)
    return next((path for path in paths if os.path.isfile(path)), None)


def mesh(path: Path | None, scale: Iterable[float] = (1.0, 1.0, 1.0)) -> Solid | None:
    """Read a mesh file as a solid (the convex hull if the mesh has holes); None on failure."""
    try:
        import trimesh
    except ImportError:
        return None
    if path is None or not os.path.isfile(path) or path.stat().st_size > MOST_BYTES:
        return None
    try:
        mesh_files.check(path)
        found = trimesh.load(path, force="mesh", process=True)
        found.apply_scale(list(scale))
        body = found if found.is_watertight and found.volume > 0.0 else found.convex_hull
        box = trimesh.bounds.corners(found.bounds)
        return Solid(float(body.volume), body.center_mass, body.moment_inertia, box, mesh=True)
    except Exception:  # trimesh may raise any exception
        return None


def together(solids: Iterable[Solid]) -> Solid | None:
    """Combine solids into one; return None if their total volume is not positive."""
    parts = list(solids)
    volume = math.fsum(part.volume for part in parts)
    if not volume > 0.0:
        return None
    center = np.sum([part.volume * part.center for part in parts], axis=0) / volume
    moments = np.zeros((3, 3))
    for part in parts:
        d = part.center - center
        moments += part.moments + part.volume * (d @ d * np.eye(3) - np.outer(d, d))
    corners = np.concatenate([part.corners for part in parts])
    return Solid(volume, center, moments, corners, any(part.mesh for part in parts))


def outer(*roles: Sequence[Solid | None]) -> tuple[Solid, ...]:
    """Return the group (collision or visual shapes) that contains the largest shape.

    If a group contains None (a shape that could not be converted to a solid), the result is empty.
    """
    if any(solid is None for role in roles for solid in role):
        return ()
    known = [[solid for solid in role if solid is not None] for role in roles]
    spans = [[float(np.linalg.norm(np.ptp(x.corners, axis=0))) for x in role] for role in known]
    return tuple(known[int(np.argmax([max(span, default=0.0) for span in spans]))])


def tensor(xx: float, yy: float, zz: float, xy: float, xz: float, yz: float) -> np.ndarray:
    """Return the symmetric matrix with the given moments as its entries."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def six(moments: np.ndarray) -> list[float]:
    """Return the six independent entries of a symmetric matrix, in the order of `tensor`."""
    return [float(moments[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
