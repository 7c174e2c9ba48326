"""The distances of a robot, as its method."""

from typing import Any

from chasles.functions.doors import check_robot
from chasles.motion.contract import Array, Machine
from chasles.motion.distances.elements import PART
from chasles.motion.distances.scene import Distances, Scene

KEPT = 8
"""Scenes that are kept for a robot."""


def distance(
    robot: Machine,
    q: Array,
    pairs: Any = None,
    *,
    obstacles: Any = None,
    shapes: Any = None,
    meshes: str = "hull",
    threads: int | None = None,
) -> Distances:
    """Return the distances between links, and from links to obstacles of the world, at q (..., nq).

    Parameters
    ----------
    q
        One posture, or any batch of postures.
    pairs
        Pairs of names: of links with collision shapes, and of obstacles. By default
        `collision_pairs()`, and every moving link with every obstacle.
    obstacles
        {name: shape}: shapes of `chasles.contact` whose frame is None (`Sphere`, `Capsule`, `Box`,
        `Cylinder`, `ConvexMesh`, `Plane`), (shape, pose) with a pose (4, 4) in the world, or a list
        of such.
    shapes
        Shapes of `chasles.contact` on frames of the robot, in place of those of its file, such as
        `enclosing_shapes()`.
    meshes
        "hull": each mesh of the file stands for its convex hull, which contains it. "triangles":
        the surface of its triangles, which has no inside: of overlapping meshes the distance is not
        the depth of penetration.
    threads
        The number of threads of the compiled program; by default all, for large batches.

    Returns
    -------
    Distances
        `distance` (..., P), `points` (..., P, 2, 3) in the world, `normals`, `gradient` (..., P,
        nv), `least` (...) and the pair that has it, `nearest`.

    Raises
    ------
    ModelError
        The robot has no collision shapes, or mesh files are not found.

    Notes
    -----
    Pairs of spheres and capsules are one compiled program, with threads and SIMD; so are pairs of
    these and planes, and of spheres and boxes of the world. All others are computed by coal
    (`pip install 'chasles[contact]'`), one after the other.

    Examples
    --------
    >>> from chasles.contact import Plane, Sphere
    >>> robot = chasles.robots.puma560()
    >>> ball = Sphere("tool", 0.05)
    >>> found = robot.distance(robot.neutral(), shapes=[ball], obstacles={"floor": Plane()})
    >>> found.nearest
    ('tool', 'floor')
    """
    check_robot(PART, robot)
    return _prepared(robot, pairs, obstacles, shapes, meshes)(q, threads=threads)


def _prepared(robot: Machine, pairs: Any, obstacles: Any, shapes: Any, meshes: str) -> Scene:
    """A scene, kept with the robot where it has the same shapes as before."""

    def make() -> Scene:
        return Scene(robot, pairs, obstacles=obstacles, shapes=shapes, meshes=meshes)

    if not _plain(pairs) or robot.mechanism.t is not None:
        return make()
    key = ("scene", repr(pairs), repr(obstacles), _text(shapes), repr(meshes))
    kept = robot.mechanism.kept
    if key not in kept:
        made = make()
        scenes = [known for known in kept if isinstance(known, tuple) and known[0] == "scene"]
        for known in scenes[: len(scenes) - KEPT + 1]:
            kept.pop(known, None)
        kept[key] = made
    found: Scene = kept[key]
    return found


def _plain(pairs: Any) -> bool:
    return pairs is None or isinstance(pairs, list | tuple)


def _text(shapes: Any) -> Any:
    return shapes if isinstance(shapes, tuple) else repr(shapes)
