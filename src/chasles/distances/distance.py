"""Distances between links and obstacles: `Robot.distance`."""

from typing import Any

from chasles.distances.elements import PART
from chasles.distances.scene import Distances, Scene
from chasles.functions.doors import check_robot
from chasles.motion.contract import Array, Machine

KEPT = 8
"""Maximum number of scenes (links, obstacles and options) that are cached for each robot."""


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
    """Return the distances between pairs of shapes; see `Robot.distance`."""
    check_robot(PART, robot)
    return _prepared(robot, pairs, obstacles, shapes, meshes)(q, threads=threads)


def _prepared(robot: Machine, pairs: Any, obstacles: Any, shapes: Any, meshes: str) -> Scene:
    """Return the collision scene for the given options, from the robot's cache if possible."""

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
