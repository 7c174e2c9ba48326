"""Select the pairs of links and obstacles that may collide."""

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from chasles.distances.elements import Element
from chasles.errors import ArgumentError, InputError
from chasles.formats import srdf as srdf_files
from chasles.model import WORLD, Model, ShapeData
from chasles.motion.contact.from_file import may_touch, real_parents
from chasles.motion.contract import Machine
from chasles.names import suggest

Pair = tuple[str, str]


def collision_pairs(robot: Machine, *, srdf: Any = None) -> tuple[Pair, ...]:
    """Return pairs of links that may collide; see `Robot.collision_pairs`."""
    model = robot.model
    touching: dict[str, list[ShapeData]] = {}
    for shape in model.source.shapes:
        if shape.collides:
            touching.setdefault(shape.link, []).append(shape)
    names = [name for name in (link.name for link in model.source.links) if name in touching]
    return tuple(
        (a, b) for a, b in pairs_among(model, names, srdf) if _meet(touching[a], touching[b])
    )


def pairs_among(model: Model, names: Iterable[str], srdf: Any = None) -> list[Pair]:
    """Return pairs of the named links that may collide.

    Pairs are omitted if the links do not move relative to each other, if a single joint connects
    them, or if the model file or SRDF file excludes them.
    """
    body = {name: model.frame(name).body for name in names}
    near = _adjacent(model)
    without = {frozenset(pair) for pair in (*model.source.excluded, *_disabled(model, srdf))}
    return [
        (a, b)
        for a, b in combinations(body, 2)
        if body[a] != body[b]
        and frozenset((body[a], body[b])) not in near
        and frozenset((a, b)) not in without
    ]


def _meet(first: Iterable[ShapeData], second: Iterable[ShapeData]) -> bool:
    """Return True if the collision bit masks of two links allow contact or are not specified."""
    return any(may_touch(a, b) for a in first for b in second)


def _adjacent(model: Model) -> set[frozenset[int]]:
    """Return pairs of bodies that are connected by a tree joint or loop joint.

    Massless links that only connect consecutive joints are skipped. A floating joint does not
    connect a body to the world. In models with MuJoCo's bit masks, tree joints do not
    connect bodies to the world either.
    """
    mujoco = any(shape.bits is not None for shape in model.source.shapes)
    found = set()
    for i, (parent, between) in enumerate(real_parents(model)):
        floating = any(model.bodies[k].data.traits.floating for k in (i, *between))
        if not (parent == WORLD and (floating or mujoco)):
            found.add(frozenset((i, parent)))
    return found | {frozenset((loop.predecessor.body, loop.successor.body)) for loop in model.loops}


def _disabled(model: Model, srdf: Any) -> list[Pair]:
    if srdf is False:
        return []
    if srdf is not None and not isinstance(srdf, str | os.PathLike):
        problem = f"`srdf` must be a path, None or False, not {srdf!r:.60}"
        raise ArgumentError("E-DIST-020", problem, part="collision_pairs")
    path = srdf_files.beside(model.source.where, model.name) if srdf is None else srdf
    links = (link.name for link in model.source.links)
    return [] if path is None else srdf_files.disabled(path, links)


def checked_pairs(given: Any, known: Mapping[str, object]) -> list[Pair]:
    """Return the argument `pairs` of `distance` as a list, after checking the names.

    The keys of `known` are the names of all obstacles and of all links with shapes.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        problem = f"`pairs` must be a sequence of pairs of names, not {given!r:.60}"
        raise ArgumentError("E-DIST-021", problem, part="distance")
    found = []
    for pair in given:
        names = tuple(pair) if isinstance(pair, tuple | list) else ()
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            problem = f"{pair!r:.60} is not a pair of names"
            raise ArgumentError(
                "E-DIST-022", problem, "use (link, link) or (link, obstacle)", part="distance"
            )
        for name in names:
            if name not in known:
                problem = f"{name!r} is neither a link with collision shapes nor an obstacle"
                raise InputError("E-DIST-023", problem, suggest(name, known), part="distance")
        if names[0] == names[1]:
            problem = f"a pair contains {names[0]!r} twice"
            raise InputError("E-DIST-024", problem, "use two different links", part="distance")
        found.append((names[0], names[1]))
    return found


def all_pairs(
    robot: Machine, own: Sequence[Element], world: Sequence[Element], given: bool
) -> list[Pair]:
    """Return the pairs of links, or of a moving link and an obstacle, that may collide.

    `own` contains the robot's shapes, and `world` the obstacles. `given` is True if the robot's
    shapes were passed by the user; shapes in the model file are then ignored.
    """
    model = robot.model
    owned: dict[str, list[Element]] = {}
    for element in own:
        owned.setdefault(element.owner, []).append(element)
    inner = pairs_among(model, owned) if given else list(collision_pairs(robot))
    moving = [name for name in owned if model.frame(name).body >= 0]
    known = {frozenset(pair) for pair in inner}
    outer = [
        (link, obstacle.owner)
        for link in moving
        for obstacle in world
        if frozenset((link, obstacle.owner)) not in known
        and any(may_touch(element, obstacle) for element in owned[link])
    ]
    return [*inner, *dict.fromkeys(outer)]
