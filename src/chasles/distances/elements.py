"""Geometry of links and obstacles for distance computations."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from chasles.errors import ArgumentError, InputError, MissingPackageError, ModelError, said
from chasles.formats import meshes as mesh_files
from chasles.formats.registry import mesh_file, package_of, package_remedy
from chasles.functions.rounds import Round
from chasles.mathematics.spatial import Transform
from chasles.model import WORLD, Model, ShapeData
from chasles.model.given import some_numbers
from chasles.motion.geometry.closed_forms import Box, Capsule, Plane, Sphere, contact_axes
from chasles.motion.geometry.shapes import ConvexMesh, Cylinder, place
from chasles.motion.solvers import optional

PART = "distance"

ROUND = ("sphere", "capsule")
"""Shape kinds with closed-form distances in `functions.rounds`."""

MESHES = ("hull", "triangles")
"""Representations of a mesh: its convex hull, or its triangles."""

Shape = Sphere | Capsule | Box | Cylinder | ConvexMesh | Plane | ShapeData


@dataclass(frozen=True, eq=False)
class Element:
    """Collision shape of a link or obstacle named `owner`.

    Attributes
    ----------
    owner : str
        Name of the link or obstacle.
    frame : str or None
        Frame that the shape is attached to; None for the world.
    kind, size : str and tuple of float
        As in `ShapeData`. Additional kinds are "plane" (the half-space z < 0), "hull" and
        "triangles".
    R, r : ndarray
        Orientation (3, 3) and origin (3,) of the shape in `frame`, or in the world frame.
    vertices, faces : ndarray or None
        Vertices (n, 3) of a mesh in the shape's frame, and vertex indices (m, 3) of its triangles.
    bits : tuple of int or None
        Collision bit masks, as in `ShapeData`.
    """

    owner: str
    frame: str | None
    kind: str
    size: tuple[float, ...]
    R: np.ndarray
    r: np.ndarray
    vertices: np.ndarray | None = None
    faces: np.ndarray | None = None
    bits: tuple[int, int] | None = None

    @cached_property
    def round(self) -> Round:
        """Sphere or capsule as a `Round` in `frame`, for closed-form distances."""
        half = 0.5 * self.size[1] * self.R[:, 2] if self.kind == "capsule" else np.zeros(3)
        return Round(self.frame, self.size[0], place(self.r - half), place(self.r + half))

    def numbers(self) -> np.ndarray:
        """Return the obstacle's parameters, in the order that `rounds.OBSTACLES` documents."""
        if self.kind == "box":
            half = 0.5 * np.array(self.size)
            return np.concatenate([self.R.ravel(), self.r, half])
        if self.kind == "plane":
            return np.array([*self.R[:, 2], self.R[:, 2] @ self.r])
        ends = [*self.round.start, *self.round.end][: 3 if self.kind == "sphere" else 6]
        return np.array([*ends, self.round.radius])

    @cached_property
    def solid(self) -> Any:
        """Geometry object of the Coal library, in the shape's frame."""
        coal = optional("coal")
        if self.kind in ("hull", "triangles"):
            assert self.vertices is not None
            return _hull(self) if self.kind == "hull" else _triangles(self.vertices, self.faces)
        if self.kind == "plane":
            return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
        return getattr(coal, self.kind.capitalize())(*self.size)

    def points(self) -> np.ndarray:
        """Return points (n, 3), expressed in `frame`, whose convex hull contains the shape.

        Cylinders are replaced by enclosing prisms, and ellipsoids by enclosing polyhedra.
        Spheres, capsules and planes are not supported.
        """
        return np.asarray(self._points() @ self.R.T + self.r)

    def _points(self) -> np.ndarray:
        if self.vertices is not None:
            return self.vertices
        if self.kind == "ellipsoid":
            return np.asarray(np.array(self.size) * _around_ball())
        if self.kind == "cylinder":
            radius, length = self.size
            angles = 2.0 * np.pi / SIDES * np.arange(SIDES)
            far = radius / np.cos(np.pi / SIDES)
            ring = far * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=-1)
            lift = np.array([0.0, 0.0, 0.5 * length])
            return np.concatenate([ring - lift, ring + lift])
        assert self.kind == "box"
        return CORNERS * 0.5 * np.array(self.size)


SIDES = 24
"""Number of sides of the prism that encloses a cylinder."""

CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


def _around_ball() -> np.ndarray:
    """Return the vertices of a subdivided icosahedron that contains the unit ball."""
    g = 0.5 * (1.0 + np.sqrt(5.0))
    base = np.array([[0, a, b * g] for a in (-1.0, 1.0) for b in (-1.0, 1.0)])
    corners = np.concatenate([np.roll(base, k, axis=1) for k in range(3)])
    corners /= np.linalg.norm(corners, axis=1, keepdims=True)
    hull = scipy.spatial.ConvexHull(corners)
    middles = [
        corners[[a, b]].mean(axis=0)
        for f in hull.simplices
        for a, b in zip(f, np.roll(f, 1), strict=True)
    ]
    whole = np.concatenate([corners, middles])
    whole /= np.linalg.norm(whole, axis=1, keepdims=True)
    levels = -scipy.spatial.ConvexHull(whole).equations[:, 3]
    return np.asarray(whole / levels.min())


def _hull(element: Element) -> Any:
    coal, points = optional("coal"), optional("coal").StdVec_Vec3s()
    assert element.vertices is not None
    points.extend(list(element.vertices))
    return coal.Convex.convexHull(points, True, "Qt")


def _triangles(vertices: np.ndarray, faces: np.ndarray | None) -> Any:
    coal, assembled = optional("coal"), optional("coal").BVHModelOBBRSS()
    assert faces is not None
    points, corners = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    points.extend(list(vertices))
    corners.extend([coal.Triangle(*map(int, face)) for face in faces])
    assembled.beginModel(len(faces), len(vertices))
    assembled.addSubModel(points, corners)
    assembled.endModel()
    return assembled


# Shapes from model files ------------------------------------------------------------------------


def of_file(model: Model, meshes: str, links: Iterable[str] | None) -> list[Element]:
    """Return the collision shapes in a model file, optionally restricted to some links."""
    wanted = None if links is None else set(links)
    chosen = [s for s in model.source.shapes if s.collides and (wanted is None or s.link in wanted)]
    missing = [s for s in chosen if s.kind == "mesh" and _path(model, s.file) is None]
    if missing:
        raise _absent(model, missing)
    return [of_data(s, s.link, s.link, model.source.where, meshes) for s in chosen]


def planes_of_file(model: Model, links: Iterable[str] | None) -> list[Element]:
    """Return the collision planes in a model file, optionally restricted to some links.

    Fixed planes are expressed in the world frame.
    """
    wanted = None if links is None else set(links)
    found = []
    for shape in model.source.planes:
        if not shape.collides or not (wanted is None or shape.link in wanted):
            continue
        made = of_data(shape, shape.link, shape.link, model.source.where, "hull")
        frame = model.frame(shape.link)
        if frame.body == WORLD:
            R = np.array(frame.placement.R.rows, dtype=float)
            r = np.array([*frame.placement.r], dtype=float)
            made = replace(made, frame=None, R=R @ made.R, r=R @ made.r + r)
        found.append(made)
    return found


def _path(model: Model, name: str) -> Any:
    return mesh_file(name, model.source.where)


def _absent(model: Model, missing: Sequence[ShapeData]) -> ModelError:
    files, links = ({getattr(s, key): None for s in missing} for key in ("file", "link"))
    some = ", ".join([*files][:2]) + (", ..." if len(files) > 2 else "")
    packages = [name for name in dict.fromkeys(map(package_of, files)) if name]
    found = package_remedy(packages[0]) if packages else "restore the files"
    remedy = f"{found}, or pass `pairs` that do not contain {', '.join([*links][:3])}"
    problem = f"mesh files for collision shapes were not found ({len(files)}): {some}"
    return ModelError("E-DIST-001", problem, remedy, part=f"robot {model.name!r}")


def of_data(shape: ShapeData, owner: str, frame: str | None, file: str, meshes: str) -> Element:
    """Convert a shape from a model file to an `Element`."""
    R, r = np.array(shape.pose.R.rows, dtype=float), np.array([*shape.pose.r], dtype=float)
    size = tuple(map(float, shape.size))
    if shape.kind != "mesh":
        return Element(owner, frame, shape.kind, size, R, r, bits=shape.bits)
    vertices, faces = _mesh(shape, file)
    vertices = vertices * np.array(size)
    kind = meshes if len(vertices) > 3 and _solid(vertices) else "triangles"
    if kind == "hull":
        vertices = vertices[scipy.spatial.ConvexHull(vertices).vertices]
    return Element(owner, frame, kind, (), R, r, vertices, faces, shape.bits)


def _solid(vertices: np.ndarray) -> bool:
    """Return True if the points are not coplanar."""
    spread = vertices - vertices.mean(axis=0)
    values = np.linalg.svd(spread, compute_uv=False)
    return bool(values[-1] > 1e-9 * values[0])


def _mesh(shape: ShapeData, file: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a mesh file, and return its vertices and faces."""
    path = mesh_file(shape.file, file)
    if path is None:
        problem = f"mesh file {shape.file!r} was not found"
        raise ModelError("E-DIST-002", problem, "correct the path of the mesh", part=PART)
    try:
        found = mesh_files.triangles(path)
    except MissingPackageError:
        raise
    except Exception as error:  # mesh readers raise arbitrary exceptions for invalid files
        problem = f"the mesh cannot be read: {said(error)}"
        raise ModelError("E-DIST-003", problem, "export the mesh again", file=path) from None
    if not found:
        raise ModelError(
            "E-DIST-004", "the mesh has no triangles", "export it with triangles", file=path
        )
    first, vertices, faces = 0, [], []
    for points, corners in found:
        vertices.append(points)
        faces.append(corners + first)
        first += len(points)
    return np.concatenate(vertices), np.concatenate(faces)


# User-defined shapes ----------------------------------------------------------------------------


def of_shape(shape: Any, owner: str, frame: str | None, pose: np.ndarray) -> Element:
    """Convert a `ShapeData`, or a shape from `chasles.contact`, to an `Element`."""
    if isinstance(shape, ShapeData):
        made = of_data(shape, owner, frame, "", "hull")
        kind, size, R, r = made.kind, made.size, made.R, made.r
        vertices, faces = made.vertices, made.faces
    else:
        kind, size, R, r, vertices = _plain(shape)
        faces = None
    turned, moved = pose[:3, :3] @ R, pose[:3, :3] @ r + pose[:3, 3]
    return Element(owner, frame, kind, size, turned, moved, vertices, faces)


def _plain(
    shape: Any,
) -> tuple[str, tuple[float, ...], np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the kind, size, orientation, origin and vertices of a shape from `chasles.contact`."""
    if isinstance(shape, Sphere):
        return "sphere", (shape.radius,), np.eye(3), np.array(shape.center), None
    if isinstance(shape, Box):
        return "box", shape.size, np.eye(3), np.array(shape.center), None
    if isinstance(shape, ConvexMesh):
        return "hull", (), np.eye(3), np.zeros(3), shape.points
    if isinstance(shape, Plane):
        normal = np.array(shape.normal) / np.linalg.norm(shape.normal)
        return "plane", (), contact_axes(normal).T, np.array(shape.point), None
    if isinstance(shape, Capsule | Cylinder):
        along = np.subtract(shape.end, shape.start)
        length = float(np.linalg.norm(along))
        kind = "capsule" if isinstance(shape, Capsule) else "cylinder"
        middle = 0.5 * np.add(shape.start, shape.end)
        return kind, (shape.radius, length), contact_axes(along / length).T, middle, None
    names = "Sphere, Capsule, Box, Cylinder, ConvexMesh or Plane from chasles.contact"
    raise ArgumentError("E-DIST-005", f"{shape!r:.80} is not a {names}", part=PART)


def of_user(model: Model, shapes: Any) -> list[Element]:
    """Return an `Element` for each user-defined shape on a link or frame of the robot."""
    if not isinstance(shapes, Iterable) or isinstance(shapes, str | bytes | Mapping):
        problem = f"`shapes` must be a sequence of shapes, not {type(shapes).__name__}"
        raise ArgumentError("E-DIST-006", problem, part=PART)
    found = []
    for shape in shapes:
        name = shape.link if isinstance(shape, ShapeData) else getattr(shape, "frame", "")
        if not isinstance(name, str):
            problem = f"{shape!r:.80} is not attached to a frame"
            remedy = "set the frame of the shape to the name of a link or frame"
            raise ArgumentError("E-DIST-007", problem, remedy, part=PART)
        model.frame(name)
        if isinstance(shape, ShapeData):
            found.append(of_data(shape, name, name, model.source.where, "hull"))
        else:
            found.append(of_shape(shape, name, name, np.eye(4)))
    return found


def of_world(obstacles: Any) -> Iterator[Element]:
    """Yield an `Element` for each shape in a dict of obstacles.

    Each value of the dict is a shape, a tuple (shape, pose), or a list of these.
    """
    if obstacles is None:
        return
    if not isinstance(obstacles, Mapping):
        problem = f"`obstacles` must be a dict {{name: shape}}, not {type(obstacles).__name__}"
        raise ArgumentError("E-DIST-008", problem, part=PART)
    for name, given in obstacles.items():
        if not isinstance(name, str):
            raise ArgumentError(
                "E-DIST-009", f"the obstacle name {name!r} is not a string", part=PART
            )
        for each in given if isinstance(given, list) else [given]:
            if isinstance(each, Element):
                yield each
                continue
            shape, pose = each if isinstance(each, tuple) and len(each) == 2 else (each, np.eye(4))
            if getattr(shape, "frame", None) is not None:
                problem = (
                    f"obstacle {name!r} is attached to frame {shape.frame!r}, not to the world"
                )
                remedy = "set the frame of the shape to None (world), or pass the shape in `shapes`"
                raise InputError("E-DIST-010", problem, remedy, part=PART)
            yield of_shape(shape, name, None, _pose(name, pose))


def _pose(name: str, value: Any) -> np.ndarray:
    if isinstance(value, Transform):
        made = np.eye(4)
        made[:3, :3], made[:3, 3] = np.array(value.R.rows), np.array([*value.r])
        return made
    T = some_numbers(f"the pose of obstacle {name!r}", value, PART).astype(float)
    rigid = T.shape == (4, 4) and np.isfinite(T).all() and (T[3] == (0.0, 0.0, 0.0, 1.0)).all()
    if not rigid or not np.allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=1e-6):
        problem = f"the pose of obstacle {name!r} is not a homogeneous transform (4, 4)"
        raise InputError(
            "E-DIST-011", problem, "pass [[R, r], [0, 1]] with a rotation matrix R", part=PART
        )
    return T
