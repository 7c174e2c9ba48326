"""Triangles that enclose a space, with their outside in front: their inside need not be drawn."""

import numpy as np


def outward(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray | None:
    """The triangles with counterclockwise corners seen from outside; None if they enclose nothing.

    They do where each edge is passed as often one way as the other, so that the surface has no
    boundary; corners in the same place count as one. Each connected part of such a surface is
    turned so that the volume within is positive (divergence theorem).
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from trimesh.grouping import unique_rows

    _, place = unique_rows(vertices)
    corners = place[faces]
    start, end = corners.ravel(), np.roll(corners, -1, axis=1).ravel()
    size = int(corners.max(initial=0)) + 1
    passes = coo_array((np.ones(len(start)), (start, end)), shape=(size, size)).tocsr()
    if (passes != passes.T).nnz or not len(faces):
        return None
    _, part = connected_components(passes, directed=False)
    a, b, c = (vertices[faces[:, k]] - vertices.mean(axis=0) for k in range(3))
    volume = np.bincount(part[corners[:, 0]], np.sum(np.cross(a, b) * c, axis=1))
    inside_out = volume[part[corners[:, 0]]] < 0.0
    return np.where(inside_out[:, None], faces[:, ::-1], faces)
