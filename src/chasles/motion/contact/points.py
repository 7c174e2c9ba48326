"""World positions of contact points along a trajectory, and depths below planes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.expr import RULES, Arena, Program, Variable
from chasles.mathematics.linear import Vector
from chasles.model import WORLD, Model
from chasles.motion.contact.pairs import Pair, Placed
from chasles.motion.geometry.closed_forms import Plane
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.steps.bodies import placed
from chasles.motion.steps.scene import Scene
from chasles.motion.steps.sharing import closest
from chasles.motion.steps.slots import MOST_CORNERS, Corners, corners_of, normal_of, tilted

CLOSE = 1e-9
"""Height margin (m). A corner of a hull is a candidate for a contact point if it is at most this
far above the lowest corner. The margin exceeds the rounding errors of the heights; the compiled
program selects the exact lowest candidate."""

MANY = 1000
"""Maximum number of directions for which the heights of all corners are computed at once."""


def contact_points(
    model: Model, pairs: Sequence[Pair], q: np.ndarray, *, count: int, stepped: bool
) -> np.ndarray | None:
    """Return the contact points (..., count, 3) in the world (m) for configurations q (..., nq).

    Points are in the order of `Touching.forces`, which contains the forces at `count` points.
    Contacts that are computed outside the compiled step, such as those on height fields, come last
    in `Touching.forces`; their points are NaN. `stepped` is True for a trajectory of the integrator
    "time-stepping". For other integrators, the result is None if the points vary with the motion.
    """
    found = _places(model, pairs, q, stepped)
    if found is None:
        return None
    points = np.full((*np.shape(q)[:-1], count, 3), np.nan)
    points[..., : len(found), :] = _evaluated([place.point for place in found], q)
    return points


def contact_wrenches(
    model: Model, pairs: Sequence[Pair], q: np.ndarray, forces: np.ndarray, *, stepped: bool
) -> dict[str, np.ndarray] | None:
    """Return the wrenches (..., 6) of all contact forces on each frame, about the world's origin.

    `forces` (..., count, 3) are those of `Touching`, in configurations q (..., nq). `stepped` is
    that of `contact_points`. The result is None if the point of a force is not known.
    """
    found = _places(model, pairs, q, stepped)
    if found is None or np.any(forces[..., len(found) :, :]):
        return None
    wrenches = {f: np.zeros((*np.shape(q)[:-1], 6)) for pair in pairs for f in pair.frames if f}
    if not found:
        return wrenches
    points = _evaluated([place.point for place in found], q)
    numbers = _evaluated([np.array([place.over, place.under, 0.0]) for place in found], q)
    for k, place in enumerate(found):
        force = forces[..., k, :]
        wrench = np.concatenate([np.cross(points[..., k, :], force), force], axis=-1)
        for sign, number in ((1.0, numbers[..., k, 0]), (-1.0, numbers[..., k, 1])):
            for index, frame in enumerate(place.frames):
                if frame:
                    wrenches[frame] += sign * (number == index)[..., None] * wrench
    return wrenches


class _Place(NamedTuple):
    """Contact point in the world, and the indices in `frames` of the body and the surface."""

    point: np.ndarray
    frames: Sequence[str | None]
    over: Any = 0.0
    under: Any = 1.0


def _places(
    model: Model, pairs: Sequence[Pair], q: np.ndarray, stepped: bool
) -> list[_Place] | None:
    """Return the contact points of `contact_points` as expressions in q, with their frames."""
    arena = Arena(RULES)
    given = symbols(arena, "q", (model.nq,))
    if stepped:
        own, crowded = Scene(model, tuple(pairs)).spots(given, bodies=_reduced(model, pairs, q))
        found = [_Place(spot.point, pair.frames) for pair, spot in own]
        for crowd in crowded:
            slots, _ = closest(crowd, lambda pair: 0.0)
            found += [_Place(s.spot.point, crowd.frames, s.over, s.under) for s in slots]
        return found
    if any(pair.varies for pair in pairs):
        return None
    spots = Placed(model, tuple(pairs)).spots(arena, given, np.zeros(model.nv))
    frames = [pair.frames for pair in pairs for _ in range(pair.points)]
    return [_Place(s.point, each) for s, each in zip(spots, frames, strict=True)]


def slot_names(model: Model, pairs: Sequence[Pair], count: int, *, stepped: bool) -> list[str]:
    """Return the name of the pair of each of `count` contact points, such as "foot on ground".

    The order of the points, and `stepped`, are those of `contact_points`. The slots that several
    pairs share have a common name.
    """
    if not stepped:
        return [_name([pair]) for pair in pairs for _ in range(pair.points)]
    scene = Scene(model, tuple(pairs))
    own, crowded = scene.few
    groups = [([pair], 1) for pair, _ in own]
    groups += [([pair for pair, _ in crowd.spots], crowd.slots) for crowd in crowded]
    groups += [(group.pairs, group.slots) for group in scene.unseen]
    return [_name(some) for some, slots in groups for _ in range(slots)][:count]


def _name(pairs: Sequence[Pair]) -> str:
    """Return the names of the two links, or the number of link pairs if there are several."""
    names = list(dict.fromkeys(" on ".join(f or "ground" for f in pair.frames) for pair in pairs))
    return names[0] if len(names) == 1 else f"{len(names)} pairs of links"


def _reduced(model: Model, pairs: Sequence[Pair], q: np.ndarray) -> list[Any]:
    """Return the body of each pair; hulls keep only the corners that are lowest in some state.

    The program that computes the contact points compares all corners of a hull in every state.
    Removing the other corners makes the program much smaller. The selected points are the same.
    """
    bodies: list[Any] = [pair.body for pair in pairs]
    hulls = {k: found for k, pair in enumerate(pairs) if (found := corners_of(pair)) is not None}
    if not hulls:
        return bodies
    places = placed(model, symbols(Arena(RULES), "q", (model.nq,)), pairs)
    down: list[np.ndarray] = []
    for k in hulls:
        surface, (over, under) = pairs[k].surface, (places[frame] for frame in pairs[k].frames)
        assert isinstance(surface, Plane), "as for every hull in `hulls`"
        down += tilted(over, normal_of(surface, under))
    directions = np.split(_evaluated(down, q), len(hulls), axis=-2)
    for (k, corners), along in zip(hulls.items(), directions, strict=True):
        rows = along.reshape(-1, 3)
        low = np.arange(len(corners)) <= MOST_CORNERS  # a hull with fewer corners has other slots
        for some in np.array_split(rows, len(rows) // MANY + 1):
            levels = some @ corners.T
            low |= np.any(levels <= np.min(levels, axis=1, keepdims=True) + CLOSE, axis=0)
        bodies[k] = Corners(corners[low])
    return bodies


def _evaluated(vectors: Sequence[np.ndarray], q: np.ndarray) -> np.ndarray:
    """Return the values (..., n, 3) of n vectors of expressions for configurations q (..., nq)."""
    output = (Variable("points", (len(vectors), 3)), np.ravel(vectors).tolist())
    program = Program.from_outputs("points", [Variable("q", np.shape(q)[-1:])], [output])
    values: np.ndarray = call(backends.compile(program, "numpy"), "contact_points", (q,))
    return values


def depths(model: Model, pairs: Sequence[Pair], q: np.ndarray) -> dict[int, float]:
    """Return the height (m) by which each part of the robot must rise to clear the fixed planes.

    A part consists of a body attached to the world and all bodies that it carries; the key is the
    index of the attached body. Values are negative for parts above all planes. `q` has shape (nq,).
    """
    found: dict[int, float] = {}
    floors = [replace(p, shared=0) for p in pairs if isinstance(p.surface, Plane)]
    floors = [p for p in floors if _root(model, p.surface.frame) == WORLD]
    for pair, spot in Scene(model, tuple(floors)).spots(q)[0]:
        root, up = _root(model, pair.body.frame), float(spot.normal[2])
        if root != WORLD and up > 0.0:
            found[root] = max(found.get(root, -np.inf), -float(spot.gap) / up)
    return found


def _root(model: Model, frame: str | None) -> int:
    """Return the body attached to the world that carries a frame, or WORLD."""
    body = WORLD if not frame else model.frame(frame).body
    while body != WORLD and model.bodies[body].parent != WORLD:
        body = model.bodies[body].parent
    return body


def fixed_planes(pairs: Sequence[Pair]) -> np.ndarray:
    """Return a point (m) and the unit normal of each contact plane of the world, (n, 2, 3)."""
    surfaces = [pair.surface for pair in pairs]
    planes = dict.fromkeys(s for s in surfaces if isinstance(s, Plane) and not s.frame)
    found = [(p.point, np.array(p.normal) / np.linalg.norm(p.normal)) for p in planes]
    return np.reshape(np.array(found, dtype=float), (-1, 2, 3))


def lifted(model: Model, q: np.ndarray, name: str, height: float) -> np.ndarray:
    """Return q with the floating base at joint `name` raised by `height` (m)."""
    i = next(i for i, body in enumerate(model.bodies) if body.data.name == name)
    where, joint, q = model.position_slices[i], model.bodies[i].joint, q.copy()

    def place(x: np.ndarray) -> np.ndarray:
        return np.array(joint.transform(Vector(tuple(x))).r.entries, dtype=float)

    moved = [place(q[where] + step) - place(q[where]) for step in np.eye(7)[4:]]
    q[where][4:] += height * np.array(moved)[:, 2]  # along the world's z axis
    return q
