"""Triangle meshes for drawing a robot, from its shapes, mesh files or inertias."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from chasles.formats import meshes
from chasles.formats.registry import mesh_file, package_of, package_remedy
from chasles.mathematics.spatial import Transform
from chasles.model import ROLES, WORLD, Model, ShapeData
from chasles.view.posture import box_lengths, of_inertia

GREY = (0.62, 0.65, 0.70, 1.0)
STICK = (0.30, 0.33, 0.38, 1.0)
COLLISION = (0.95, 0.55, 0.10, 0.45)
PALETTE = ((0.36, 0.54, 0.75), (0.93, 0.62, 0.32), (0.45, 0.68, 0.47), (0.75, 0.47, 0.62))
"""Default colors of links, rods between joints, collision shapes, and links without shapes."""

MOST_TRIANGLES = 400_000
"""Maximum number of triangles drawn without simplification (docs/view.md)."""

CREASE = math.radians(35.0)
"""Angle (rad) between adjacent triangles above which their common edge is shaded as sharp."""

FREE = 6
"""Degrees of freedom of a free joint."""

FEW = 100

FINEST = 200
"""Initial number of clustering cells along the longest side of a mesh."""

COARSER = 1.3
"""Factor by which the clustering cells grow after each attempt to simplify a mesh."""


class Solid(NamedTuple):
    """Triangle mesh of a link in its body frame, with a color (red, green, blue, opacity).

    `closed` is True if the mesh is a closed surface with outward-facing triangles.
    """

    body: int
    link: str
    vertices: np.ndarray
    faces: np.ndarray
    color: tuple[float, ...]
    closed: bool = True


def solids(
    model: Model, size: float, triangles: int = MOST_TRIANGLES
) -> tuple[list[Solid], list[str]]:
    """Return the triangle meshes of a robot, and notes about shapes that cannot be drawn.

    `size` is the approximate size of the robot (m). Meshes with more than `triangles` triangles in
    total are simplified. A body without drawable visual shapes is drawn with its collision shapes.
    A body without any shapes is drawn as boxes with the inertias of its links, and as rods between
    its joints.
    """
    notes, missing = list[str](), list[str]()
    drawn: list[Solid] = []
    for role in ROLES:
        have = {solid.body for solid in drawn}
        for shape in model.source.shapes:
            if shape.role == role and model.frames[shape.link].body not in have:
                drawn += _seen(model, shape, notes, missing)
    count = sum(len(solid.faces) for solid in drawn)
    if count > triangles:
        notes.append(f"the meshes have {count:,} triangles, of which about {triangles:,} are drawn")
        drawn = [_within_budget(solid, triangles / count) for solid in drawn]
    drawn = [_shaded(solid) for solid in drawn]
    have = {solid.body for solid in drawn}
    bare = [i for i in (WORLD, *range(len(model.bodies))) if i not in have]
    for i in bare:
        drawn += map(_shaded, [*_boxes(model, i, size), *_sticks(model, i, size)])
    return drawn, [*notes, *_said(missing)]


def collision_solids(model: Model) -> list[Solid]:
    """Return the solids of all collision shapes, in one translucent color."""
    shapes = [shape for shape in model.source.shapes if shape.role == "collision"]
    drawn = [solid for shape in shapes for solid in _seen(model, shape, [], [])]
    count = sum(len(solid.faces) for solid in drawn)
    if count > MOST_TRIANGLES:
        drawn = [_within_budget(solid, MOST_TRIANGLES / count) for solid in drawn]
    return [_shaded(solid)._replace(color=COLLISION) for solid in drawn]


# Shapes from the file --------------------------------------------------------------------------


def _said(missing: list[str]) -> Iterator[str]:
    """Yield one note per package with missing mesh files, and one for all other missing files."""
    for package in dict.fromkeys(map(package_of, missing)):
        names = [name for name in missing if package_of(name) == package]
        count = f"{len(names)} meshes are" if len(names) > 1 else "a mesh is"
        some = ", ".join(names[:2]) + (", ..." if len(names) > 2 else "")
        said = f"{count} missing or of unknown type: {some}"
        yield "; ".join(filter(None, (said, package_remedy(package))))


def _seen(model: Model, shape: ShapeData, notes: list[str], missing: list[str]) -> Iterator[Solid]:
    frame = model.frames[shape.link]
    for mesh, own in _meshes(model, shape, notes, missing):
        vertices = _placed(frame.placement, _placed(shape.pose, mesh.vertices))
        faces = outward(vertices, mesh.faces)
        closed, faces = faces is not None, mesh.faces if faces is None else faces
        yield Solid(frame.body, shape.link, vertices, faces, shape.color or own, closed)


def _meshes(
    model: Model, shape: ShapeData, notes: list[str], missing: list[str]
) -> Iterator[tuple[Any, tuple[float, ...]]]:
    """Yield the meshes of a shape, in the shape's frame, with their colors."""
    from trimesh import creation

    if shape.kind != "mesh":
        made = {
            "box": creation.box,
            "sphere": lambda size: creation.icosphere(subdivisions=3, radius=size[0]),
            "cylinder": lambda size: creation.cylinder(*size),
            "capsule": lambda size: creation.capsule(height=size[1], radius=size[0]),
            "ellipsoid": lambda size: creation.icosphere(subdivisions=3).apply_scale(size),
        }[shape.kind]
        yield made(shape.size), GREY
        return
    path = mesh_file(shape.file, model.source.where)
    if path is None:
        missing.append(shape.file)
        return
    try:
        found = meshes.loaded(path)
    except Exception as error:  # mesh readers raise arbitrary exceptions for invalid files
        notes.append(f"link {shape.link!r}: mesh {path} cannot be read: {error}")
        return
    if not found:
        notes.append(f"link {shape.link!r}: mesh {path} has no triangles")
    for mesh in found:
        yield mesh.copy().apply_transform(np.diag([*shape.size, 1.0])), _own_color(mesh)


def _own_color(mesh: Any) -> tuple[float, ...]:
    """Return the color of a mesh, which is gray by default."""
    if not getattr(mesh.visual, "defined", False):
        return GREY
    visual = getattr(mesh.visual, "material", mesh.visual)
    return tuple(np.asarray(visual.main_color, dtype=float) / 255.0)


def _placed(frame: Transform, points: np.ndarray) -> np.ndarray:
    """Transform points from a frame to its parent frame."""
    R: np.ndarray = np.array(frame.R.rows, dtype=float)
    return np.asarray(points @ R.T + np.array(list(frame.r), dtype=float))


# Bodies without shapes -------------------------------------------------------------------------


def _boxes(model: Model, i: int, size: float) -> Iterator[Solid]:
    """Yield one box for each link of a body, sized to match the link's inertia."""
    from trimesh import creation

    for link in model.source.links:
        frame, found = model.frames[link.name], of_inertia(link.inertia)
        if frame.body != i or found is None:
            continue
        lengths = np.clip(box_lengths(found), 0.01 * size, size)
        box = creation.box(lengths)
        vertices = _placed(frame.placement, box.vertices @ found.R.T + found.center)
        yield Solid(i, link.name, vertices, box.faces, (*PALETTE[i % len(PALETTE)], 1.0))


def _sticks(model: Model, i: int, size: float) -> Iterator[Solid]:
    """Yield rods from a body's parent joint to its child joints, and a ball at the parent joint.

    Free joints are left out, because they do not connect bodies.
    """
    from trimesh import creation

    name = "" if i == WORLD else model.bodies[i].name
    for end in joined(model, i):
        length = float(np.linalg.norm(end))
        if length > 1e-6 * size:
            rod = creation.cylinder(0.008 * size, segment=[np.zeros(3), end], sections=12)
            yield Solid(i, name, np.asarray(rod.vertices), rod.faces, STICK)
    if i != WORLD and model.bodies[i].joint.nv < FREE:
        knob = creation.icosphere(subdivisions=2, radius=0.018 * size)
        yield Solid(i, name, np.asarray(knob.vertices), knob.faces, STICK)


def joined(model: Model, i: int) -> list[np.ndarray]:
    """Return the positions of the child joints, loop joints and frames on body i, in its frame.

    Free joints are left out, because they do not connect bodies.
    """
    children = [body for body in model.bodies if body.parent == i and body.joint.nv < FREE]
    ends = [child.joint.placement.r for child in children]
    closing = [frame for loop in model.loops for frame in (loop.predecessor, loop.successor)]
    frames = [model.frames[frame.name] for frame in model.source.frames]
    ends += [frame.placement.r for frame in (*closing, *frames) if frame.body == i]
    return [np.array(list(end), dtype=float) for end in ends]


# Triangles ------------------------------------------------------------------------------------


def _within_budget(solid: Solid, share: float) -> Solid:
    """Simplify a solid to a fraction of its triangles. Small solids are not simplified."""
    most = max(round(share * len(solid.faces)), FEW)
    vertices, faces = coarser(solid.vertices, solid.faces, most)
    return solid._replace(vertices=vertices, faces=faces)


def _shaded(solid: Solid) -> Solid:
    vertices, faces = creased(solid.vertices, solid.faces)
    return solid._replace(vertices=vertices, faces=faces)


def creased(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split vertices along sharp edges, and merge them elsewhere, for smooth shading.

    The browser shades smoothly across triangles that share vertices. In the result, adjacent
    triangles share vertices if the angle between them is less than `CREASE`.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from trimesh.grouping import unique_rows

    _, place = unique_rows(vertices)
    normals = _normals(vertices, faces)
    tail = place[faces]
    head = np.roll(tail, -1, axis=1)
    ends = np.sort(np.stack([tail, head], axis=-1).reshape(-1, 2), axis=1)
    order = np.lexsort(ends.T)
    same = np.flatnonzero((ends[order[1:]] == ends[order[:-1]]).all(axis=1))
    one, other = order[same], order[same + 1]  # edges, numbered as 3 * face + side
    angle = np.sum(normals[one // 3] * normals[other // 3], axis=1)
    smooth = angle > math.cos(CREASE)
    one, other = one[smooth], other[smooth]
    joined = np.concatenate([_corners(edges, tail) for edges in (one, other)]).reshape(2, -1)
    graph = coo_array((np.ones(joined.shape[1]), tuple(joined)), shape=(faces.size, faces.size))
    count, group = connected_components(graph, directed=False)
    placed = np.empty((count, 3))
    placed[group] = vertices[faces.ravel()]
    return placed, group.reshape(-1, 3)


def _corners(edges: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """Return the two corners (2, n) of each edge, with the lower vertex index first.

    The edges and corners of triangle k have the indices 3 k, 3 k + 1 and 3 k + 2; an edge starts at
    the corner with the same index. `tail` contains the vertex index of each corner.
    """
    begin, end = edges, edges - edges % 3 + (edges + 1) % 3
    swapped = tail.ravel()[begin] > tail.ravel()[end]
    return np.where(swapped, [end, begin], [begin, end])


def _normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return the unit normals (n, 3) of triangles, or zero for degenerate triangles."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    return np.asarray(normals / np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None])


def coarser(vertices: np.ndarray, faces: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Simplify a mesh to at most `most` triangles by vertex clustering.

    Vertices in the same grid cell are replaced by their mean, and degenerate triangles are removed
    (Rossignac, Borrel 1993).
    """
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
    """Merge the vertices in each cell. `cells` contains the cell index of each vertex."""
    _, group = np.unique(cells, return_inverse=True)
    count = np.bincount(group)
    mean = np.stack([np.bincount(group, weights=x) / count for x in vertices.T], axis=1)
    corners = group[faces]
    whole = (corners != np.roll(corners, 1, axis=1)).all(axis=1)
    return mean, _different(corners[whole], len(mean))


def _different(faces: np.ndarray, count: int) -> np.ndarray:
    """Remove duplicate triangles, even if they start at different vertices."""
    first = np.argmin(faces, axis=1)[:, None]
    turned = np.take_along_axis(faces, (first + np.arange(3)) % 3, axis=1)
    _, kept = np.unique(turned @ [count**2, count, 1], return_index=True)
    return turned[kept]


def outward(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray | None:
    """Orient triangles outward (counterclockwise); return None if the surface is not closed.

    A surface is closed if each edge is traversed equally often in both directions. Coincident
    vertices are merged. Each connected component is oriented so that its volume is positive
    (divergence theorem).
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
