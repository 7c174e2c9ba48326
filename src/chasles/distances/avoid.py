"""Collision avoidance for inverse kinematics."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from chasles.distances.elements import Element, of_world
from chasles.distances.enclosing import enclosed, enclosing_shapes
from chasles.distances.scene import Scene
from chasles.errors import ArgumentError, InputError, warn
from chasles.functions.clearance import Clearance
from chasles.functions.rounds import OBSTACLES
from chasles.functions.targets import Pose, Target
from chasles.model.given import a_mapping, a_number, some_numbers
from chasles.motion.contract import Machine
from chasles.motion.geometry.closed_forms import Sphere

PART = "avoid"

FINE, MANY = 0.01, 64
"""Limits for the spheres that enclose an obstacle.

Shapes are split until the spheres extend at most `FINE` (m) beyond the obstacle, or until there are
`MANY` spheres per shape.
"""

POSTURES = 256
"""Number of random configurations for finding links that are always closer than the margin."""


class Posing(Machine, Protocol):
    """Protocol for robots with a method that returns random configurations."""

    def random(self, rng: Any = None, size: Any = ()) -> np.ndarray:
        """Return random configurations (*size, nq) within the joint limits."""


@dataclass(frozen=True, eq=False)
class Avoid:
    """Collision avoidance options for `inverse_kinematics`.

    Parameters
    ----------
    obstacles
        {name: shape} as in `Robot.distance`. An array (..., 4) of centers and radii defines one
        sphere for each problem in a batch. Obstacles other than spheres, capsules, boxes and planes
        are replaced by enclosing spheres, at most 64 per shape. The spheres extend up to 1 cm
        beyond small obstacles, and farther beyond large ones.
    margin
        Smallest allowed distance (m).
    shapes
        Spheres and capsules attached to frames of the robot. The default is
        `robot.enclosing_shapes()`, which encloses the collision shapes in the model file.
    pairs
        Pairs of links, or of a link and an obstacle, to keep apart; see `Robot.distance`.
    weight
        Weight of collision avoidance relative to the other targets, used if not all targets can be
        reached.
    tolerance
        Additional distance (m): solver steps aim at `margin` plus `tolerance`.

    Notes
    -----
    In a solved configuration (`solved` is True), all pairs are at least the margin apart.
    Pairs of links that are closer than the margin in all of 256 random configurations are ignored,
    with a warning.
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
                sign = "positive" if name == "tolerance" else "nonnegative"
                problem = f"{name} must be finite and {sign}, not {value!r}"
                raise InputError("E-DIST-050", problem, part=PART)


def with_clearance(robot: Posing, targets: Any, avoid: Any) -> dict[str, Any]:
    """Add the clearance target defined by `avoid` to inverse kinematics targets.

    `avoid` is an `Avoid`, or a mapping from obstacle names to shapes.
    """
    if isinstance(avoid, Mapping):
        avoid = Avoid(avoid)
    if not isinstance(avoid, Avoid):
        problem = (
            "`avoid` must map obstacle names to shapes, or be a "
            f"chasles.distances.Avoid, not {avoid!r:.60}"
        )
        raise ArgumentError("E-DIST-051", problem, part="inverse_kinematics")
    given = dict(a_mapping("targets", targets, "inverse_kinematics"))
    frame = robot.model.source.links[0].name  # any link: the target applies to all
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
    """Return the clearance target defined by `avoid`."""
    plain, batched = _sorted(avoid.obstacles)
    shapes = enclosing_shapes(robot) if avoid.shapes is None else avoid.shapes
    scene = Scene(robot, avoid.pairs, obstacles=plain, shapes=shapes)
    if scene.uses_coal:
        problem = (
            "`avoid` supports only spheres, capsules and planes, and boxes in pairs with spheres"
        )
        remedy = "pass spheres, for example shapes=robot.enclosing_shapes('spheres')"
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
    """Return the shapes of all obstacles, and the centers and radii (..., 4) given as arrays.

    A sphere that is given as an array can have a different center and radius in each problem. The
    shape returned for such a sphere is a placeholder.
    """
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
        problem = (
            f"obstacle {name!r} must be an array (..., 4) of finite centers and positive radii"
        )
        raise InputError("E-DIST-053", problem, part=PART)
    return array


def _round(element: Element) -> list[Any]:
    """Return the shape in a list, or enclosing spheres if its kind is unsupported."""
    if element.kind in OBSTACLES:
        return [element]
    return list(enclosed(element, "spheres", FINE, MANY))


def _separable(robot: Posing, scene: Scene, margin: float) -> list[tuple[tuple[int, int], ...]]:
    """Return the pairs of shapes to keep apart, in one group for each pair in `scene.pairs`.

    Pairs of links that are closer than `margin` in all of `POSTURES` random configurations are
    omitted, with a warning.
    """
    names = {e.owner for e in scene.closed_obstacles}
    inner = [p for p, pair in enumerate(scene.pairs) if not names & {*pair}]
    kept = dict(scene.groups)
    if inner:
        least = scene(robot.random(0, size=POSTURES)).distance[:, inner].max(axis=0)
        never = [p for p, far in zip(inner, least, strict=True) if far < margin]
        if never:
            some = ", ".join(" and ".join(scene.pairs[p]) for p in never[:4])
            text = (
                f"{len(never)} pairs of links are closer than the margin in all sampled "
                "configurations and are ignored"
            )
            warn(f"avoid: {text}: {some}")
        for p in never:
            kept.pop(p)
    return list(kept.values())
