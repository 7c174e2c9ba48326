"""Contacts defined in a robot's file: collision shapes, planes, pairs, masks and friction."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, warn
from chasles.formats import meshes as mesh_files
from chasles.formats.registry import mesh_file
from chasles.model import WORLD, HeightFieldData, Model, ShapeData
from chasles.motion.contact.pairs import Pair, Rigid
from chasles.motion.contract import Machine
from chasles.motion.geometry.closed_forms import Box, Capsule, Ground, Plane, Sphere
from chasles.motion.geometry.fields import HeightField
from chasles.motion.geometry.shapes import ConvexMesh, Cylinder, place
from chasles.motion.steps.slots import supported

FRICTION = (1.0, 0.005, 0.0001)
"""Default coefficients of sliding, torsional (m) and rolling (m) friction, as in MuJoCo."""

MOST_OWN = 12
"""Maximum number of self-collision pairs that do not share contact slots (potential contact
points)."""

SLOTS = 8
"""Default number of contact slots (potential contact points) that self-collision pairs share if
there are more than `MOST_OWN` pairs."""


def file_pairs(
    robot: Machine,
    *,
    ground: Plane | Ground | HeightField | bool | None = None,
    friction: float | None = None,
    restitution: float = 0.0,
    own: bool = True,
    slots: int = SLOTS,
) -> list[Pair]:
    """Return the contact pairs that the robot's file defines.

    Link shapes collide with planes and other shapes in the file according to MuJoCo's rules: masks
    (contype and conaffinity), excluded pairs, and no contact between a body and its parent. The
    friction of a pair is the larger friction of its two shapes, or the friction of the shape with
    the higher priority.

    Parameters
    ----------
    robot : Robot
        The robot.
    ground : Plane, Ground, HeightField or bool, optional
        Additional ground that all collision shapes can touch, for files without ground, such as
        URDF files. True adds the plane z = 0 of the world.
    friction : float, optional
        Sliding friction coefficient for all pairs. Default: the coefficient in the file, or 1.
    restitution : float, optional
        Coefficient of restitution for all pairs.
    own : bool, optional
        Enable contact between shapes of the robot.
    slots : int, optional
        If there are more than 12 self-collision pairs, these pairs share this number of contact
        slots: in each step, only this many of the closest points can be in contact.
        `Trajectory.overflow` counts the steps with too few slots.

    Returns
    -------
    pairs : list of Pair
        The pairs, for `contacts=` of `Robot.simulate`, whose default integrator is then
        "time-stepping", with joint limits, damping and dry friction. Pairs that cannot be compiled
        are omitted with a warning.

    Raises
    ------
    ArgumentError
        If `ground` is neither True nor a shape of the ground.
    InputError
        If the friction, the restitution or a dimension of a shape is not valid.
    ModelError
        If a mesh file cannot be read.
    MissingPackageError
        If a mesh needs a package that is not installed.

    Examples
    --------
    >>> import chasles
    >>> from chasles import contact
    >>> contact.file_pairs(chasles.robots.planar(2), ground=contact.Plane())
    []
    """
    model = robot.model
    shapes = [(s, made) for s in model.source.shapes if s.collides for made in _shape(model, s)]
    planes: list[tuple[ShapeData, Any]]
    planes = [(s, _plane(s)) for s in model.source.planes if s.collides]
    planes += [(s, _field(s)) for s in model.source.fields if s.collides]
    if ground := _ground(ground):
        planes.append((ShapeData(ground.frame or "", "plane", ()), ground))

    def pair(a: tuple[ShapeData, Any], b: tuple[ShapeData, Any]) -> Pair:
        law = _law(a[0], b[0], friction, restitution)
        return Pair(a[1], b[1], law, from_file=True)

    found: list[Pair] = []
    left: list[tuple[Any, Any]] = []
    known = {_key(a, b) for a, b in model.source.paired}
    for shape in shapes:
        for plane in planes:
            if _key(shape[0], plane[0]) in known:
                continue
            if _moves(model, shape[0], plane[0]) and may_touch(shape[0], plane[0]):
                if supported(shape[1], plane[1]):
                    found.append(pair(shape, plane))
                else:
                    left.append((shape[1], plane[1]))
    among: list[Pair] = []
    allowed = _allowed(model)
    touching = [
        (a, b)
        for a, b in combinations(shapes, 2)
        if _moves(model, a[0], b[0])
        and may_touch(a[0], b[0])
        and allowed(a[0], b[0])
        and _key(a[0], b[0]) not in known
    ]
    for one, other in model.source.paired:
        touching += [((one, a), (other, b)) for a in _any(model, one) for b in _any(model, other)]
    for a, b in touching:
        on_plane = bool({"plane", "hfield"} & {a[0].kind, b[0].kind})
        ends = next(((x, y) for x, y in ((a, b), (b, a)) if supported(x[1], y[1])), None)
        if not (own or on_plane):
            continue
        if ends is None:
            left.append((a[1], b[1]))
        else:
            (found if on_plane else among).append(pair(*ends))
    _tell(left)
    if len(among) > MOST_OWN:
        among = [replace(each, shared=slots) for each in among]
    floats = any(body.joint.floating for body in model.bodies) and any(model.gravity_vector)
    if floats and not _stands(model, found + among):
        problem = "no plane or fixed shape can touch the robot, so the robot falls"
        remedy = "add a ground with file_pairs(robot, ground=True)"
        if ground:
            problem = "no collision shape can touch the ground, so the robot falls"
            remedy = "add collision shapes to the robot's file, or define the contact pairs"
        warn(f"contacts from the file: {problem}; {remedy}")
    return found + among


def _stands(model: Model, pairs: Iterable[Pair]) -> bool:
    """Return True if any pair consists of a shape fixed in the world and a moving shape."""
    fixed = [[f is None or model.frame(f).body == WORLD for f in pair.frames] for pair in pairs]
    return any(one != other for one, other in fixed)


def _ground(given: Any) -> Plane | Ground | HeightField | None:
    """Return the `ground` argument of `file_pairs` as a surface, or None."""
    if given is None or given is False:
        return None
    if given is True:
        return Plane()
    if not isinstance(given, Plane | Ground | HeightField):
        problem = f"`ground` must be True, a Plane, Ground or HeightField, not {given!r:.60}"
        raise ArgumentError("E-CONTACT-092", problem, part="file_pairs")
    return given


def _tell(left: list[tuple[Any, Any]]) -> None:
    """Warn about pairs of shapes that are omitted because they are not supported."""
    if left:
        kinds = dict.fromkeys(f"{type(a).__name__} on {type(b).__name__}" for a, b in left)
        words = ", ".join([*kinds][:4]) + (", ..." if len(kinds) > 4 else "")
        problem = f"unsupported pairs of shapes do not collide ({len(left)}): {words}"
        warn(f"contacts from the file: {problem}")


def _law(a: ShapeData, b: ShapeData, friction: float | None, restitution: float) -> Rigid:
    """Return the contact law of a pair, with the friction of the shape that has higher priority.

    If the priorities are equal, the larger value is used for each coefficient and for the number of
    friction directions.
    """
    if a.priority != b.priority:
        a = b = max(a, b, key=lambda shape: shape.priority)
    given = [s.friction for s in (a, b) if s.friction is not None] or [FRICTION]
    slide, spin, roll = (max(values) for values in zip(*given, strict=True))
    slide = slide if friction is None else friction
    many = max(s.directions for s in (a, b) if s.kind != "plane" or s.friction is not None)
    return Rigid(
        friction=slide if many > 1 else 0.0,
        restitution=restitution,
        torsion=spin if many > 3 else 0.0,
        rolling=roll if many > 4 else 0.0,
    )


def _body(model: Model, shape: ShapeData) -> int:
    return model.frame(shape.link).body if shape.link else WORLD


def _moves(model: Model, a: ShapeData, b: ShapeData) -> bool:
    """Return True if two shapes belong to different bodies."""
    return _body(model, a) != _body(model, b)


def may_touch(a: Any, b: Any) -> bool:
    """Return True if the collision bits of two shapes allow contact; missing bits allow it.

    By MuJoCo's rule, the contype of one shape and the conaffinity of the other must have a common
    bit.
    """
    if a.bits is None or b.bits is None:
        return True
    return bool(a.bits[0] & b.bits[1] or b.bits[0] & a.bits[1])


def real_parents(model: Model) -> list[tuple[int, list[int]]]:
    """Return the parent of each body, and the massless bodies between the body and this parent.

    Massless links without shapes, which connect joints in series, do not count as parents.
    """
    links, shapes = model.source.links, model.source.shapes
    names = {link.name for link in links if not link.massless} | {shape.link for shape in shapes}
    real = {model.frames[name].body for name in names if name}
    found = []
    for body in model.bodies:
        parent, between = body.parent, list[int]()
        while parent != WORLD and parent not in real:
            between.append(parent)
            parent = model.bodies[parent].parent
        found.append((parent, between))
    return found


def _allowed(model: Model) -> Callable[[ShapeData, ShapeData], bool]:
    """Return a predicate that is True if contact between two shapes is allowed.

    Contact is not allowed if the file excludes the pair of links, or if the body of one shape is
    the parent of the other's body.
    """
    parents = [parent for parent, _ in real_parents(model)]
    near = {frozenset((k, parent)) for k, parent in enumerate(parents) if parent != WORLD}
    excluded = {frozenset(pair) for pair in model.source.excluded}

    def allowed(a: ShapeData, b: ShapeData) -> bool:
        bodies = frozenset((_body(model, a), _body(model, b)))
        return bodies not in near and frozenset((a.link, b.link)) not in excluded

    return allowed


def _key(a: ShapeData, b: ShapeData) -> frozenset[tuple[Any, ...]]:
    """Return a key that identifies a pair of shapes, regardless of their order and friction."""
    return frozenset((x.link, x.kind, x.size, repr(x.pose), x.file) for x in (a, b))


def _any(model: Model, shape: ShapeData) -> Iterator[Any]:
    """Yield the contact shapes for a shape in the file, including planes and height fields."""
    if shape.kind == "plane":
        yield _plane(shape)
    elif isinstance(shape, HeightFieldData):
        yield _field(shape)
    else:
        yield from _shape(model, shape)


def _plane(shape: ShapeData) -> Plane:
    R, r = np.array(shape.pose.R.rows, dtype=float), np.array([*shape.pose.r], dtype=float)
    return Plane(shape.link, place(R[:, 2]), place(r))


def _field(shape: HeightFieldData) -> HeightField:
    R, r = np.array(shape.pose.R.rows, dtype=float), np.array([*shape.pose.r], dtype=float)
    x, y = map(float, shape.size)
    first, second, third = (place(axis) for axis in R.T)
    axes = (first, second, third)
    return HeightField(shape.link, shape.heights, (x, y), shape.base, place(r), axes)


def _shape(model: Model, shape: ShapeData) -> Iterator[Any]:
    """Convert a shape in the file to a contact shape. Yield nothing if its mesh is missing."""
    R, r = np.array(shape.pose.R.rows, dtype=float), np.array([*shape.pose.r], dtype=float)
    size = tuple(map(float, shape.size))
    if shape.kind == "sphere":
        yield Sphere(shape.link, size[0], place(r))
    elif shape.kind in ("capsule", "cylinder"):
        half = 0.5 * size[1] * R[:, 2]
        kind = Capsule if shape.kind == "capsule" else Cylinder
        yield kind(shape.link, size[0], place(r - half), place(r + half))
    elif shape.kind == "box":
        yield _box(shape.link, size, R, r)
    elif shape.kind == "ellipsoid":
        yield _hull(shape.link, _around(np.array(size)), R, r)
    else:
        yield from _mesh(model, shape, R, r)


def _box(link: str, size: Iterable[float], R: np.ndarray, r: np.ndarray) -> Box | ConvexMesh:
    """Return a `Box`, or a `ConvexMesh` of the corners if the edges are not along link axes."""
    edges = np.array([*size])
    if np.allclose(np.abs(R).max(axis=0), 1.0, atol=1e-9):
        return Box(link, place(np.abs(R) @ edges), place(r))
    signs = np.array(np.meshgrid(*[(-0.5, 0.5)] * 3)).reshape(3, -1).T
    return _hull(link, signs * edges, R, r)


def _hull(link: str, points: np.ndarray, R: np.ndarray, r: np.ndarray) -> ConvexMesh:
    return ConvexMesh(link, tuple(place(p) for p in points @ R.T + r))


def _around(half: np.ndarray) -> np.ndarray:
    """Return nearly equally spaced points (n, 3) on an ellipsoid with the given semi-axes."""
    n = 60
    z = 1.0 - (2.0 * np.arange(n) + 1.0) / n
    angle, wide = np.pi * (3.0 - 5.0**0.5) * np.arange(n), np.sqrt(1.0 - z * z)
    return np.stack([wide * np.cos(angle), wide * np.sin(angle), z], axis=-1) * half


def _mesh(model: Model, shape: ShapeData, R: np.ndarray, r: np.ndarray) -> Iterator[ConvexMesh]:
    """Yield the convex hull of a mesh file."""
    path = mesh_file(shape.file, model.source.where)
    if path is None:
        warn(f"contacts from the file: mesh {shape.file!r} was not found, so it is ignored")
        return
    points = np.concatenate([vertices for vertices, _ in mesh_files.triangles(path)])
    hull = _hull(shape.link, points * np.array(shape.size), R, r)
    yield replace(hull, vertices=tuple(place(p) for p in hull.points))
