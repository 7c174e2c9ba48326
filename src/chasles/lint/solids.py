"""Uniform solids: volume, centre and moments of the shapes that a file gives to a link."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chasles.formats.registry import candidates
from chasles.model import ShapeData

MOST_BYTES = 64 * 2**20
"""Size of the largest mesh that is opened."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A body of density 1 in a link's frame: m3, m, m5 about its centre, and a box around it."""

    volume: float
    center: np.ndarray
    moments: np.ndarray
    corners: np.ndarray
    mesh: bool = False

    def placed(self, R: np.ndarray, r: np.ndarray) -> "Solid":
        """Return the solid in another frame, in which its own has axes R and origin r."""
        moments, corners = R @ self.moments @ R.T, self.corners @ R.T + r
        return Solid(self.volume, R @ self.center + r, moments, corners, self.mesh)


def box(x: float, y: float, z: float) -> Solid:
    """With edges along the axes."""
    return _solid(x * y * z, np.array([x, y, z]) ** 2 / 12.0, (x, y, z))


def sphere(radius: float) -> Solid:
    """A ball."""
    second = np.full(3, radius * radius / 5.0)
    return _solid(4.0 / 3.0 * math.pi * radius**3, second, [2.0 * radius] * 3)


def cylinder(radius: float, length: float) -> Solid:
    """Along z."""
    across = radius * radius / 4.0
    second: np.ndarray = np.array([across, across, length * length / 12.0])
    edges = (2.0 * radius, 2.0 * radius, length)
    return _solid(math.pi * radius * radius * length, second, edges)


_PLAIN: dict[str, Callable[..., Solid]] = {"box": box, "sphere": sphere, "cylinder": cylinder}


def _solid(volume: float, second: np.ndarray, edges: Iterable[float]) -> Solid:
    """From the mean squares of x, y and z, and the edges of the box around it."""
    half = np.array(list(edges)) / 2.0
    signs = np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T
    moments = volume * (np.sum(second) * np.eye(3) - np.diag(second))
    return Solid(volume, np.zeros(3), moments, signs * half)


def of(shape: ShapeData, file: str, *, meshes: bool) -> Solid | None:
    """The solid of a shape in its link's frame, None if unknown; meshes: open mesh files."""
    made = None
    if shape.kind in _PLAIN:
        made = _PLAIN[shape.kind](*shape.size)
    elif shape.kind == "mesh" and meshes:
        made = mesh(located(file, shape.file), shape.size)
    if made is None:
        return None
    return made.placed(np.array(shape.pose.R.rows), np.array([*shape.pose.r]))


def located(file: str, name: str) -> Path | None:
    """A mesh by its name in a robot file."""
    return next((path for path in candidates(name, file) if path.is_file()), None)


def mesh(path: Path | None, scale: Iterable[float] = (1.0, 1.0, 1.0)) -> Solid | None:
    """Solid of a mesh file, or of its hull where it has holes; None if it cannot be read."""
    try:
        import trimesh
    except ImportError:
        return None
    if path is None or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return None
    try:
        found = trimesh.load(path, force="mesh", process=True)
        found.apply_scale(list(scale))
        body = found if found.is_watertight and found.volume > 0.0 else found.convex_hull
        box = trimesh.bounds.corners(found.bounds)
        return Solid(float(body.volume), body.center_mass, body.moment_inertia, box, mesh=True)
    except Exception:  # whatever a foreign reader says of a foreign file: then it tells nothing
        return None


def together(solids: Iterable[Solid]) -> Solid | None:
    """Several as one body; None where there is no volume."""
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
    """Choose the shapes that reach farthest, for contact or to look at; none if one is unknown."""
    if any(solid is None for role in roles for solid in role):
        return ()
    known = [[solid for solid in role if solid is not None] for role in roles]
    spans = [[float(np.linalg.norm(np.ptp(x.corners, axis=0))) for x in role] for role in known]
    return tuple(known[int(np.argmax([max(span, default=0.0) for span in spans]))])


def tensor(xx: float, yy: float, zz: float, xy: float, xz: float, yz: float) -> np.ndarray:
    """The symmetric matrix of six moments."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def six(moments: np.ndarray) -> list[float]:
    """The moments of a symmetric matrix, in the order of `tensor`."""
    return [float(moments[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
