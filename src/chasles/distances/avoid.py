"""Obstacles and self-collisions that inverse kinematics avoids."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from chasles.distances.elements import Element, of_world
from chasles.distances.enclosing import enclosed, enclosing_shapes
from chasles.distances.scene import Scene
from chasles.errors import ArgumentError, InputError
from chasles.functions.clearance import Clearance
from chasles.functions.rounds import OBSTACLES
from chasles.functions.targets import Pose, Target
from chasles.model.given import a_mapping, a_number, some_numbers
from chasles.motion.contract import Machine
from chasles.motion.geometry.closed_forms import Sphere

PART = "avoid"

FINE, MANY = 0.01, 64
"""Largest distance (m) by which spheres extend beyond an obstacle, and largest number of spheres.
"""

POSTURES = 256
"""Number of random configurations. A pair of links that overlaps in all of them is ignored."""


class Posing(Machine, Protocol):
    """A robot that returns random configurations within its limits."""

    def random(self, rng: Any = None, size: Any = ()) -> np.ndarray:
        """Return configurations (*size, nq)."""


@dataclass(frozen=True, eq=False)
class Avoid:
    """Obstacles and self-collisions that `inverse_kinematics` avoids.

    Parameters
    ----------
    obstacles
        {name: shape} as in `distance`. A sphere may also be an array (..., 4) of its center and
        radius, which may differ between problems. Obstacles that are not spheres, capsules, boxes
        or planes are enclosed in spheres, within 1 cm.
    margin
        Smallest distance (m) to keep.
    shapes
        Spheres and capsules on frames of the robot. By default `enclosing_shapes()`, which contain
        the collision shapes of the robot's file.
    pairs
        Pairs of names, as in `distance`.
    weight
        Weight of overlaps relative to other targets, if not all targets can be met.
    tolerance
        Distance (m) beyond the margin that the solver aims for.

    Notes
    -----
    A `solved` configuration keeps the margin between all pairs. Pairs of links that are too close
    in all of 256 random configurations are ignored, with a warning.
    """

    obstacles: Any = None
    margin: float = 0.0
    shapes: Any = None
    pairs: Any = None
    weight: float = 1.0
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("margin", "tolerance"):
            value = a_number(name, getattr(self, name), PART)
            if not math.isfinite(value) or value < 0.0 or (name == "tolerance" and value == 0.0):
                problem = f"{name} must be finite and positive, not {value!r}"
                raise InputError("E-DIST-050", problem, part=PART)


def with_clearance(robot: Posing, targets: Any, avoid: Any) -> dict[str, Any]:
    """Return targets of inverse kinematics and a clearance target.

    avoid: an `Avoid`, or a mapping of obstacle names to shapes.
    """
    if isinstance(avoid, Mapping):
        avoid = Avoid(avoid)
    if not isinstance(avoid, Avoid):
        problem = (
            "avoid must map obstacle names to shapes, or be a "
            f"chasles.distances.Avoid, not {avoid!r:.60}"
        )
        raise ArgumentError("E-DIST-051", problem, part="inverse_kinematics")
    given = dict(a_mapping("targets", targets, "inverse_kinematics"))
    frame = robot.model.source.links[0].name  # targets have frame names; any frame will do
    before = given.get(frame)
    if before is None:
        others = []
    elif isinstance(before, list) and all(isinstance(each, Target) for each in before):
        others = before
    else:
        others = [before]
    from_pose = [each if isinstance(each, Target) else Pose(each) for each in others]
    return given | {frame: [*from_pose, clearance(robot, avoid)]}


def clearance(robot: Posing, avoid: Avoid) -> Clearance:
    """Return the clearance target for an `Avoid`."""
    plain, batched = _sorted(avoid.obstacles)
    shapes = enclosing_shapes(robot) if avoid.shapes is None else avoid.shapes
    scene = Scene(robot, avoid.pairs, obstacles=plain, shapes=shapes)
    if scene.uses_coal:
        problem = "clearance supports spheres and capsules, and boxes only against spheres"
        remedy = "use spheres as shapes, for example robot.enclosing_shapes('spheres')"
        raise InputError("E-DIST-052", problem, remedy, part=PART)
    rows = [batched.get(e.owner, e.numbers()) for e in scene.closed_obstacles]
    lead = np.broadcast_shapes(*(row.shape[:-1] for row in rows))
    numbers = [np.broadcast_to(row, (*lead, row.shape[-1])) for row in rows]
    whole = np.concatenate(numbers, axis=-1) if numbers else np.zeros(0)
    groups = _separable(robot, scene, avoid.margin)
    kinds = tuple(e.kind for e in scene.closed_obstacles)
    pairs = tuple(pair for group in groups for pair in group)
    limits = {"weight": avoid.weight, "tolerance": avoid.tolerance}
    return Clearance(scene.rounds.rounds, kinds, pairs, whole, avoid.margin, **limits)


def _sorted(obstacles: Any) -> tuple[dict[str, Any] | None, dict[str, np.ndarray]]:
    """Return the obstacles of a scene, and the arrays of spheres that differ between problems."""
    if obstacles is None:
        return None, {}
    plain: dict[str, Any] = {}
    batched: dict[str, np.ndarray] = {}
    for name, given in a_mapping("obstacles", obstacles, PART).items():
        if isinstance(given, np.ndarray):
            batched[name] = _balls(name, given)
            plain[name] = Sphere(None, 1.0)
        else:
            plain[name] = [_round(element) for element in of_world({name: given})]
            plain[name] = [each for some in plain[name] for each in some]
    return plain, batched


def _balls(name: str, given: np.ndarray) -> np.ndarray:
    array = some_numbers(f"obstacle {name!r}", given, PART).astype(float)
    good = array.shape[-1:] == (4,) and np.isfinite(array).all()
    if not good or not (array[..., 3] > 0.0).all():
        problem = f"obstacle {name!r} must have shape (..., 4): finite centers and positive radii"
        raise InputError("E-DIST-053", problem, part=PART)
    return array


def _round(element: Element) -> list[Any]:
    """Return an obstacle unchanged if its kind is supported, or spheres that enclose it."""
    if element.kind in OBSTACLES:
        return [element]
    return list(enclosed(element, "spheres", FINE, MANY))


def _separable(robot: Posing, scene: Scene, margin: float) -> list[tuple[tuple[int, int], ...]]:
    """Return groups of pairs, except pairs of links that overlap in all random configurations."""
    names = {e.owner for e in scene.closed_obstacles}
    inner = [p for p, pair in enumerate(scene.pairs) if not names & {*pair}]
    kept = dict(scene.groups)
    if inner:
        least = scene(robot.random(0, size=POSTURES)).distance[:, inner].max(axis=0)
        never = [p for p, far in zip(inner, least, strict=True) if far < margin]
        if never:
            some = ", ".join(" and ".join(scene.pairs[p]) for p in never[:4])
            text = (
                f"the shapes of {len(never)} pairs of links always overlap; these pairs are ignored"
            )
            warnings.warn(f"avoid: {text}: {some}", stacklevel=5)
        for p in never:
            kept.pop(p)
    return list(kept.values())
