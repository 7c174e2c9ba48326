"""Read mesh files; files that would expand too much are refused before they are read.

Files are read by trimesh in this process. STL, PLY and OFF files take memory in proportion to their
size. In other formats, a small file can take much more memory or time: this module counts repeated
parts (instances in .dae and .glb), omitted data (.glb) and materials (.obj).
"""

import json
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from chasles.errors import MissingPackageError, ModelError

MOST_TIMES, BASE = 20, 40 * 2**20
"""Factor and offset of the limit on the expanded size (bytes): factor * file size + offset."""

INSTANCE = 20_000.0
"""Smallest number of bytes that trimesh needs for each additional copy of a mesh."""

_FAULTS = (ValueError, LookupError, TypeError, RecursionError, SyntaxError, struct.error)

MOST_GROUPED = 5 * 10**7
"""Largest product of faces and materials of an .obj file; it bounds the work of trimesh."""


@lru_cache(maxsize=512)
def loaded(path: Path) -> list[Any]:
    """Return the meshes of a file that have faces, as trimesh objects in the frame of the file."""
    try:
        import trimesh
    except ImportError:
        problem = "run pip install trimesh, which reads mesh files"
        raise MissingPackageError("E-FILE-080", problem) from None
    if path.suffix.lower() == ".dae":
        try:
            import collada  # noqa: F401  trimesh uses it to read such files
        except ImportError:
            problem = "run pip install pycollada, which reads .dae files"
            raise MissingPackageError("E-FILE-081", problem) from None
    check(path)
    return [mesh for mesh in trimesh.load_scene(path).dump() if len(mesh.faces)]


@lru_cache(maxsize=512)
def triangles(path: Path) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Return the vertices (n, 3) and faces (m, 3) of the meshes of a file, in its frame.

    Binary STL files, the usual collision meshes, are read without trimesh, because importing it
    takes a second.
    """
    plain = _binary_stl(path.read_bytes()) if path.suffix.lower() == ".stl" else None
    if plain is not None:
        return (plain,)
    return tuple((np.asarray(m.vertices, float), np.asarray(m.faces)) for m in loaded(path))


_STL = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("bits", "<u2")])


def _binary_stl(data: bytes) -> tuple[np.ndarray, np.ndarray] | None:
    """Return distinct vertices and faces; None if the data are not a complete binary STL file."""
    if len(data) <= 84:
        return None
    (count,) = struct.unpack_from("<I", data, 80)
    if not count or len(data) != 84 + count * _STL.itemsize:
        return None
    corners = np.frombuffer(data, _STL, offset=84)["corners"].reshape(-1, 3)
    if not np.isfinite(corners).all():
        return None
    vertices, faces = np.unique(corners, axis=0, return_inverse=True)
    return vertices.astype(float), faces.reshape(-1, 3)


def check(path: Path) -> None:
    """Refuse a mesh file that would take far more memory or time than its size suggests."""
    counted = _COUNTED.get(path.suffix.lower())
    if counted is None:
        return
    data = path.read_bytes()
    try:
        size = counted(data)
    except ModelError as error:
        raise error.at(file=path) from None
    except _FAULTS as error:
        raise _unreadable(error).at(file=path) from None
    if size > MOST_TIMES * len(data) + BASE:
        problem = f"{len(data)} bytes expand to {size:.3g}"
        raise ModelError("E-FILE-066", problem, "export the mesh without repeated parts", file=path)


def _unreadable(error: Exception) -> ModelError:
    problem = f"the mesh cannot be read ({str(error)[:100]})"
    return ModelError("E-FILE-065", problem, "export the mesh again")


def _obj(data: bytes) -> float:
    """Return infinity if faces times materials exceed `MOST_GROUPED`, and zero otherwise."""
    work = data.count(b"usemtl") * data.count(b"\nf")
    return 0.0 if work <= MOST_GROUPED else float("inf")


def _dae(data: bytes) -> float:
    """Return the bytes of the geometries in the scene, counted for each instance."""
    from lxml import etree  # imported on use: motions import this module, but few of them need lxml

    plain = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    try:
        root = etree.fromstring(data, plain)
    except etree.LxmlError as error:
        raise _unreadable(error) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise ModelError(
            "E-FILE-067", "document types and entities are not supported", "remove them"
        )
    known = {f"#{x.get('id')}": x for x in root.iter(etree.Element) if x.get("id")}
    sizes: dict[str, float] = {}

    def shown(element: etree._Element) -> float:
        """Return the bytes of the texts in an element and in the elements that it refers to."""
        size = 0.0
        for part in element.iter(etree.Element):
            size += len(part.text or "")
            if part.tag.rpartition("}")[2].startswith("instance_"):
                size += INSTANCE + target(part.get("url", ""))
        return size

    def target(url: str) -> float:
        if url not in sizes:
            sizes[url] = float("inf")  # in case it contains itself
            sizes[url] = shown(known[url]) if url in known else 0.0
        return sizes[url]

    return shown(root)


def _glb(data: bytes) -> float:
    """Return the bytes of the meshes of all nodes (once per instance), plus all accessors."""
    length, kind = struct.unpack_from("<II", data, 12)
    if kind != 0x4E4F534A or length > len(data):
        raise ModelError("E-FILE-068", "a .glb file must begin with JSON", "export the mesh again")
    said: Mapping[str, Any] = json.loads(data[20 : 20 + length])
    accessors = [4.0 * float(x["count"]) for x in said.get("accessors", ())]

    def primitive(given: Mapping[str, Any]) -> float:
        used = [*given.get("attributes", {}).values(), *filter(None, [given.get("indices")])]
        return INSTANCE + sum(accessors[k] for k in used)

    meshes = [sum(map(primitive, mesh["primitives"])) for mesh in said.get("meshes", ())]
    shown = sum(meshes[node["mesh"]] for node in said.get("nodes", ()) if "mesh" in node)
    return shown + sum(accessors)


_COUNTED: dict[str, Callable[[bytes], float]] = {".obj": _obj, ".dae": _dae, ".glb": _glb}
