"""What is drawn of a robot: triangles, from shapes and meshes of its file, or from its inertias."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import MissingPackageError
from chasles.formats.registry import mesh_file, package_of
from chasles.mathematics.spatial import Transform
from chasles.model import ROLES, WORLD, Model, ShapeData
from chasles.view.coarser import coarser
from chasles.view.ellipsoids import box_lengths, of_inertia
from chasles.view.outward import outward

GREY = (0.62, 0.65, 0.70, 1.0)
STICK = (0.30, 0.33, 0.38, 1.0)
PALETTE = ((0.36, 0.54, 0.75), (0.93, 0.62, 0.32), (0.45, 0.68, 0.47), (0.75, 0.47, 0.62))
"""Colours of links that have none, of the lines between joints, and of bodies in turn."""

MOST_TRIANGLES = 12_000
"""Of a robot's shapes: a processor alone draws so many ten times a second (docs/view.md, Speed)."""

FEW = 100


class Solid(NamedTuple):
    """Triangles in the frame of a body: corners (n, 3), faces (m, 3), colour and opacity (4,).

    closed: they enclose a space, and face outward.
    """

    body: int
    vertices: np.ndarray
    faces: np.ndarray
    color: tuple[float, ...]
    closed: bool = True


def solids(model: Model, size: float) -> tuple[list[Solid], list[str]]:
    """All that is drawn of a robot of some size (m), and notes on what could not be.

    A body of whose links no shape to look at can be drawn is shown by its shapes for collision,
    and one without these as the boxes that have its links' inertias and lines between its joints.
    """
    notes, missing = list[str](), list[str]()
    drawn: list[Solid] = []
    for role in ROLES:
        have = {solid.body for solid in drawn}
        for shape in model.source.shapes:
            if shape.role == role and model.frames[shape.link].body not in have:
                drawn += _seen(model, shape, notes, missing)
    share = MOST_TRIANGLES / max(sum(len(solid.faces) for solid in drawn), MOST_TRIANGLES)
    drawn = [_lighter(solid, share) for solid in drawn]
    have = {solid.body for solid in drawn}
    bare = [i for i in (WORLD, *range(len(model.bodies))) if i not in have]
    for i in bare:
        drawn += [*_boxes(model, i, size), *_sticks(model, i, size)]
    return drawn, [*notes, *_said(missing)]


# Shapes of the file ----------------------------------------------------------------------------


def _said(missing: list[str]) -> Iterator[str]:
    """One note for each package (or for all plain names) of mesh files that are not found."""
    for package in dict.fromkeys(map(package_of, missing)):
        names = [name for name in missing if package_of(name) == package]
        count = f"{len(names)} meshes are" if len(names) > 1 else "a mesh is"
        some = ", ".join(names[:2]) + (", ..." if len(names) > 2 else "")
        remedy = f"; add the folder that holds {package} to ROS_PACKAGE_PATH" if package else ""
        yield f"{count} not found, or of no known kind: {some}{remedy}"


def _seen(model: Model, shape: ShapeData, notes: list[str], missing: list[str]) -> Iterator[Solid]:
    frame = model.frames[shape.link]
    for mesh, own in _meshes(model, shape, notes, missing):
        vertices = _placed(frame.placement, _placed(shape.pose, mesh.vertices))
        faces = outward(vertices, mesh.faces)
        closed, faces = faces is not None, mesh.faces if faces is None else faces
        yield Solid(frame.body, vertices, faces, shape.color or own, closed)


def _lighter(solid: Solid, share: float) -> Solid:
    """A solid with a share of its triangles; small ones, and all if there are not many, as is."""
    most = max(round(share * len(solid.faces)), FEW)
    vertices, faces = coarser(solid.vertices, solid.faces, most)
    return solid._replace(vertices=vertices, faces=faces)


def _meshes(
    model: Model, shape: ShapeData, notes: list[str], missing: list[str]
) -> Iterator[tuple[Any, tuple[float, ...]]]:
    """The triangles of a shape in its own frame, each with a colour of their own."""
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
        found = _loaded(path)
    except Exception as error:  # the readers of mesh files raise whatever a bad file makes them
        notes.append(f"link {shape.link!r}: mesh {path} cannot be read: {error}")
        return
    if not found:
        notes.append(f"link {shape.link!r}: mesh {path} has no triangles")
    for mesh in found:
        yield mesh.copy().apply_transform(np.diag([*shape.size, 1.0])), _own_color(mesh)


@cache
def _loaded(path: Path) -> list[Any]:
    """The meshes of a file, in its frame."""
    import trimesh

    if path.suffix.lower() == ".dae":
        try:
            import collada  # noqa: F401  trimesh reads such files with it
        except ImportError:
            problem = "pip install pycollada, which reads .dae files"
            raise MissingPackageError("E-VIEW-001", problem) from None
    return [mesh for mesh in trimesh.load_scene(path).dump() if len(mesh.faces)]


def _own_color(mesh: Any) -> tuple[float, ...]:
    """Of a mesh file; grey where it has none."""
    if not getattr(mesh.visual, "defined", False):
        return GREY
    visual = getattr(mesh.visual, "material", mesh.visual)
    return tuple(np.asarray(visual.main_color, dtype=float) / 255.0)


def _placed(frame: Transform, points: np.ndarray) -> np.ndarray:
    """Points of a frame in the frame that it is placed in."""
    R: np.ndarray = np.array(frame.R.rows, dtype=float)
    return np.asarray(points @ R.T + np.array(list(frame.r), dtype=float))


# Without shapes --------------------------------------------------------------------------------


def _boxes(model: Model, i: int, size: float) -> Iterator[Solid]:
    """The boxes that have the inertias of a body's links."""
    from trimesh import creation

    for link in model.source.links:
        frame, found = model.frames[link.name], of_inertia(link.inertia)
        if frame.body != i or found is None:
            continue
        lengths = np.clip(box_lengths(found), 0.01 * size, size)
        box = creation.box(lengths)
        vertices = _placed(frame.placement, box.vertices @ found.R.T + found.center)
        yield Solid(i, vertices, box.faces, (*PALETTE[i % len(PALETTE)], 1.0))


def _sticks(model: Model, i: int, size: float) -> Iterator[Solid]:
    """Lines from a body's joint to all that is joined to it, and a knob at each end."""
    from trimesh import creation

    for end in joined(model, i):
        length = float(np.linalg.norm(end))
        if length > 1e-6 * size:
            rod = creation.cylinder(0.008 * size, segment=[np.zeros(3), end], sections=12)
            yield Solid(i, np.asarray(rod.vertices), rod.faces, STICK)
    if i != WORLD:
        knob = creation.icosphere(subdivisions=2, radius=0.018 * size)
        yield Solid(i, np.asarray(knob.vertices), knob.faces, STICK)


def joined(model: Model, i: int) -> list[np.ndarray]:
    """Where on a body (or the world) joints, loops and frames are, in the body's frame."""
    ends = [child.joint.placement.r for child in model.bodies if child.parent == i]
    closing = [frame for loop in model.loops for frame in (loop.predecessor, loop.successor)]
    frames = [model.frames[frame.name] for frame in model.source.frames]
    ends += [frame.placement.r for frame in (*closing, *frames) if frame.body == i]
    return [np.array(list(end), dtype=float) for end in ends]
