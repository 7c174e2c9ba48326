"""Read mesh files, and refuse files that would need excessive memory or time.

Files are read by trimesh in this process. For STL, PLY and OFF files, the memory needed is
proportional to the file size. In other formats, a small file can need much more memory or time.
Before such a file is read, its cost is estimated from the instances (.dae and .glb), declared array
sizes (.glb) or materials (.obj) that it contains.
"""

import json
import math
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from chasles.errors import MissingPackageError, ModelError

MOST_TIMES, BASE = 20, 40 * 2**20
"""Limit on the expanded size of a mesh: MOST_TIMES * file size + BASE (bytes)."""

INSTANCE = 20_000.0
"""Minimum memory that trimesh needs for each additional instance of a mesh (bytes)."""

_FAULTS = (ValueError, LookupError, TypeError, RecursionError, SyntaxError, struct.error)

MOST_GROUPED = 5 * 10**7
"""Maximum product of face and material counts in an .obj file, to bound the loading time."""


@lru_cache(maxsize=512)
def loaded(path: Path) -> list[Any]:
    """Read a mesh file; return its nonempty meshes as trimesh objects in the file's frame."""
    try:
        import trimesh
    except ImportError:
        problem, remedy = "reading mesh files requires trimesh", "run pip install trimesh"
        raise MissingPackageError("E-FILE-080", problem, remedy) from None
    if path.suffix.lower() == ".dae":
        try:
            import collada  # noqa: F401  trimesh uses it to read such files
        except ImportError:
            problem, remedy = "reading .dae files requires pycollada", "run pip install pycollada"
            raise MissingPackageError("E-FILE-081", problem, remedy) from None
    check(path)
    return [mesh for mesh in trimesh.load_scene(path).dump() if len(mesh.faces)]


@lru_cache(maxsize=512)
def triangles(path: Path) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Return the vertices (n, 3) and faces (m, 3) of each mesh in a file, in the file's frame.

    Binary STL files are read without trimesh, because importing trimesh takes a second.
    """
    plain = _binary_stl(path.read_bytes()) if path.suffix.lower() == ".stl" else None
    if plain is not None:
        return (plain,)
    return tuple((np.asarray(m.vertices, float), np.asarray(m.faces)) for m in loaded(path))


_STL = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("bits", "<u2")])


def _binary_stl(data: bytes) -> tuple[np.ndarray, np.ndarray] | None:
    """Return unique vertices and faces, or None if the data are not a complete binary STL file."""
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
    """Raise an error if a mesh file would need far more memory or time than its size suggests."""
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
        whole = f"{size:.3g}" if math.isfinite(size) else "infinitely many"
        problem = f"the mesh would expand from {len(data)} to {whole} bytes"
        raise ModelError("E-FILE-066", problem, "export the mesh without repeated parts", file=path)


def _unreadable(error: Exception) -> ModelError:
    problem = f"the mesh cannot be read ({str(error)[:100]})"
    return ModelError("E-FILE-065", problem, "export the mesh again")


def _obj(data: bytes) -> float:
    """Raise an error if an .obj file has too many faces and materials; else return 0.

    The limit for the product of the two counts is `MOST_GROUPED`.
    """
    materials, faces = data.count(b"usemtl"), data.count(b"\nf")
    if materials * faces > MOST_GROUPED:
        problem = f"the mesh changes its material {materials} times, with {faces} faces in total"
        raise ModelError("E-FILE-093", problem, "sort the faces by material")
    return 0.0


def _dae(data: bytes) -> float:
    """Return the size of the scene in a .dae file (bytes), counting each instance of a mesh."""
    from lxml import etree  # imported here because it is slow and rarely needed

    plain = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    try:
        root = etree.fromstring(data, plain)
    except etree.LxmlError as error:
        raise _unreadable(error) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise ModelError(
            "E-FILE-067",
            "XML document type declarations and entities are not supported",
            "remove <!DOCTYPE>",
        )
    known = {f"#{x.get('id')}": x for x in root.iter(etree.Element) if x.get("id")}
    sizes: dict[str, float] = {}

    def shown(element: etree._Element) -> float:
        """Estimate the size of an element in bytes, including the elements that it references."""
        size = 0.0
        for part in element.iter(etree.Element):
            size += len(part.text or "")
            if part.tag.rpartition("}")[2].startswith("instance_"):
                size += INSTANCE + target(part.get("url", ""))
        return size

    def target(url: str) -> float:
        if url not in sizes:
            sizes[url] = float("inf")  # ends the recursion if an element contains itself
            sizes[url] = shown(known[url]) if url in known else 0.0
        return sizes[url]

    return shown(root)


def _glb(data: bytes) -> float:
    """Return the memory (bytes) needed to load a .glb file with all instances of its meshes."""
    length, kind = struct.unpack_from("<II", data, 12)
    if kind != 0x4E4F534A or length > len(data):
        problem = "the .glb file is invalid: its first chunk is not JSON"
        raise ModelError("E-FILE-068", problem, "export the mesh again")
    said: Mapping[str, Any] = json.loads(data[20 : 20 + length])
    accessors = [4.0 * float(x["count"]) for x in said.get("accessors", ())]

    def primitive(given: Mapping[str, Any]) -> float:
        used = [*given.get("attributes", {}).values(), *filter(None, [given.get("indices")])]
        return INSTANCE + sum(accessors[k] for k in used)

    meshes = [sum(map(primitive, mesh["primitives"])) for mesh in said.get("meshes", ())]
    shown = sum(meshes[node["mesh"]] for node in said.get("nodes", ()) if "mesh" in node)
    return shown + sum(accessors)


_COUNTED: dict[str, Callable[[bytes], float]] = {".obj": _obj, ".dae": _dae, ".glb": _glb}
