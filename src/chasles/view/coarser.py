"""Meshes with fewer triangles, so that a robot of very many can be drawn without a graphics card.

Corners within one cell of a grid become one, at their mean; triangles that lose a corner vanish
(vertex clustering: Rossignac, Borrel 1993).
"""

import numpy as np

FINEST = 200
"""Cells along the longest side of a mesh, to begin with."""

COARSER = 1.3
"""How much larger the cells are at the next try."""


def coarser(vertices: np.ndarray, faces: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners and triangles of a mesh with at most so many triangles; itself if it has no more."""
    low, span = vertices.min(axis=0), float(np.max(np.ptp(vertices, axis=0)))
    cell, found = span / FINEST, (vertices, faces)
    while len(found[1]) > most and cell < span:
        x, y, z = np.floor((vertices - low) / cell).astype(np.int64).T
        found = _clustered(vertices, faces, (x * (FINEST + 1) + y) * (FINEST + 1) + z)
        cell *= COARSER
    return found


def _clustered(
    vertices: np.ndarray, faces: np.ndarray, cells: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """cells: the number of the cell of each corner."""
    _, group = np.unique(cells, return_inverse=True)
    count = np.bincount(group)
    mean = np.stack([np.bincount(group, weights=x) / count for x in vertices.T], axis=1)
    corners = group[faces]
    whole = (corners != np.roll(corners, 1, axis=1)).all(axis=1)
    return mean, _different(corners[whole], len(mean))


def _different(faces: np.ndarray, count: int) -> np.ndarray:
    """Each triangle once, from its lowest corner on, so that equal ones look equal."""
    first = np.argmin(faces, axis=1)[:, None]
    turned = np.take_along_axis(faces, (first + np.arange(3)) % 3, axis=1)
    _, kept = np.unique(turned @ [count**2, count, 1], return_index=True)
    return turned[kept]
