"""Shapes of an MJCF file, written: geoms of bodies, and the meshes that they show."""

import os
from collections.abc import Mapping
from pathlib import Path

from lxml import etree

from chasles.formats.mesh_files import mesh_file, renamed
from chasles.formats.mjcf_writer_equalities import placed
from chasles.formats.xml_document import added, words
from chasles.model import SHAPE_TRAITS, ShapeData

_ROLES = {
    "visual": {"group": "2", "contype": "0", "conaffinity": "0"},
    "collision": {"group": "3"},
}
"""Groups by MuJoCo's custom; its viewer shows the first three."""

_SUFFIXES = (".stl", ".obj", ".msh")
_MOST_FACES = 200_000
"""What MuJoCo reads of meshes: STL files that are binary, with so many triangles at most."""


def add_shapes(
    root: etree._Element,
    bodies: Mapping[str | None, etree._Element],
    shapes: tuple[ShapeData, ...],
    file: str,
) -> list[str]:
    """Write shapes into the elements of their links; notes say which have no place.

    A mesh is written if its file is there and MuJoCo can read it: else it would refuse the model.
    """
    notes: list[str] = []
    meshes: dict[tuple[str, tuple[float, ...]], str] = {}
    for shape in shapes:
        given, mesh = dict(_ROLES[shape.role]), ""
        if shape.kind == "mesh":
            mesh, trouble = _mesh(shape, file)
            if trouble:
                notes.append(f"link {shape.link!r}: mesh {shape.file} {trouble}; it is left out")
                continue
            given["mesh"] = meshes.setdefault((mesh, shape.size), f"mesh {len(meshes) + 1}")
        else:
            halved = SHAPE_TRAITS[shape.kind].halved  # but radii are whole
            given["size"] = words(0.5 * x if k in halved else x for k, x in enumerate(shape.size))
        if shape.link not in bodies:
            notes.append(f"link {shape.link!r} is no body in MJCF; its shape is left out")
            continue
        if shape.color is not None and shape.role == "visual":
            given["rgba"] = words(shape.color)
        added(bodies[shape.link], "geom", type=shape.kind, **given, **placed(shape.pose))
    if meshes:
        assets = added(root, "asset")
        for (mesh, scale), name in meshes.items():
            # shells have areas, which surfaces that are open or flat have too
            added(assets, "mesh", name=name, file=mesh, scale=words(scale), inertia="shell")
    return notes


def _mesh(shape: ShapeData, file: str) -> tuple[str, str]:
    """The name of a mesh file as MuJoCo finds it; and what is wrong with it, if something is."""
    path = mesh_file(shape.file, file)
    if path is None:
        return "", "is not found"
    if path.suffix.lower() not in _SUFFIXES:
        return "", f"is of no kind that MuJoCo reads ({', '.join(_SUFFIXES)})"
    if path.suffix.lower() == ".stl" and not _binary(path):
        return "", f"is no binary STL file of {_MOST_FACES} triangles or fewer, as MuJoCo reads"
    return renamed(path.name, os.fspath(path), file), ""


def _binary(path: Path) -> bool:
    """80 bytes, the number of triangles, and 50 bytes for each."""
    with path.open("rb") as stream:
        count = int.from_bytes(stream.read(84)[80:], "little")
    return 0 < count <= _MOST_FACES and path.stat().st_size == 84 + 50 * count
