"""Tendons and actuators of a model, with the bodies that they act on."""

import math
from typing import NamedTuple

from chasles.expr import Number
from chasles.mathematics.linear import Vector
from chasles.model.description import faulty, freedom_names
from chasles.model.machine import DYNAMICS, TRANSMISSIONS, ActuatorData, RotorData
from chasles.model.model import Frame, Model, Share, Stretch
from chasles.names import suggest


class Tendon(NamedTuple):
    """A tendon that is coupled to joints (`geared`) or follows a path.

    `offset` is the constant part of the tendon's length.
    """

    data: RotorData
    geared: tuple[Share, ...]
    path: tuple[Stretch, ...]
    offset: Number


def freedoms(model: Model) -> dict[str, tuple[int, int]]:
    """Map the name of each degree of freedom to (body index, index in the body's joint)."""
    return {
        name: (i, k)
        for i, body in enumerate(model.bodies)
        for k, name in enumerate(freedom_names(body.data.name, body.joint.nv))
    }


def tendons(model: Model) -> tuple[Tendon, ...]:
    """Return all tendons, in file order."""
    return tuple(tendon_of(model, data) for data in model.source.rotors)


def tendon_of(model: Model, data: RotorData) -> Tendon:
    """Create a tendon. The lengths of segments within one body are added to the tendon's offset."""
    known = freedoms(model)
    for name in data.freedoms:
        if name not in known:
            problem = f"no moving joint is named {name!r}"
            raise faulty("E-MODEL-220", data, problem, suggest(name, known))
    for link in (end for part in data.path for end in (part.start, part.end)):
        if link not in model.frames:
            raise faulty("E-MODEL-222", data, f"no link {link!r}", suggest(link, model.frames))
    if not (data.freedoms or data.path) or len(data.freedoms) != len(data.ratios):
        problem = (
            f"{len(data.ratios)} ratios were given for {len(data.freedoms)} degrees of freedom"
        )
        raise faulty("E-MODEL-221", data, problem, "give one ratio per degree of freedom")
    geared = (Share(*known[name], r) for name, r in zip(data.freedoms, data.ratios, strict=True))
    path, offset = [], data.offset
    for a, start, b, end, factor in data.path:
        r, s = _point(model, a, start), _point(model, b, end)
        if r[0] == s[0]:
            d = s[1] - r[1]
            offset += factor * math.sqrt(d.dot(d))
        else:
            path.append(Stretch(*r, *s, factor))
    return Tendon(data, tuple(geared), tuple(path), offset)


def _point(model: Model, link: str, point: Vector) -> tuple[int, Vector]:
    """Return the body of a link, and the position of a link-fixed point in the body's frame."""
    frame = model.frames[link]
    return frame.body, frame.placement.locate(point)


class Actuator(NamedTuple):
    """An actuator and the joint, tendon or frame that it drives.

    `body` is the index of the driven joint's body, and `activation` is the index of the actuator's
    activation. An index is -1 if it does not apply.
    """

    data: ActuatorData
    body: int = -1
    tendon: Tendon | None = None
    frame: Frame | None = None
    reference: Frame | None = None
    activation: int = -1


def actuators(model: Model) -> tuple[Actuator, ...]:
    """Return all actuators in the order of controls, with the indices of their activations."""
    bodies = {body.data.name: i for i, body in enumerate(model.bodies)}
    known, found, active = {t.data.name: t for t in tendons(model)}, list[Actuator](), 0
    for data in model.source.actuators:
        place, active = (active, active + 1) if data.active else (-1, active)
        given: Actuator = Actuator(data, activation=place)
        if data.kind == "joint":
            given = given._replace(body=bodies[data.target])
        elif data.kind == "tendon":
            given = given._replace(tendon=known[data.target])
        elif data.kind:
            second = model.frames[data.reference] if data.reference else None
            given = given._replace(frame=model.frames[data.target], reference=second)
        found.append(given)
    return tuple(found)


def check_actuators(model: Model) -> None:
    """Raise an error for actuators that are invalid or refer to missing objects."""
    parts: dict[str, dict[str, object]] = {
        "joint": {body.data.name: None for body in model.bodies},
        "tendon": {data.name: None for data in model.source.rotors},
    }
    frames: dict[str, object] = dict.fromkeys(model.frames)
    seen: set[str] = set()
    for data in model.source.actuators:
        if data.name in seen:
            raise faulty("E-MODEL-401", data, "another actuator has the same name", "rename one")
        seen.add(data.name)
        if data.kind not in TRANSMISSIONS or data.dynamics not in DYNAMICS:
            problem = f"kind {data.kind!r} with dynamics {data.dynamics!r} is not supported"
            remedy = (
                f"set `kind` to one of {TRANSMISSIONS[:-1]} and `dynamics` to one of {DYNAMICS}"
            )
            raise faulty("E-MODEL-402", data, problem, remedy)
        known = parts.get(data.kind, frames)
        for name in _driven(data):
            if name not in known:
                problem = f"the driven joint, tendon or frame {name!r} does not exist"
                raise faulty("E-MODEL-403", data, problem, suggest(name, known))
        wanted = 1 if data.kind in ("tendon", "crank") else 6
        if data.kind == "joint":
            nv = next(b.joint.nv for b in model.bodies if b.data.name == data.target)
            wanted = 1 if nv == 1 else 6
        if data.kind and len(data.gear) != wanted:
            problem = f"`gear` has {len(data.gear)} values instead of {wanted}"
            raise faulty("E-MODEL-404", data, problem, f"give {wanted}")


def _driven(data: ActuatorData) -> tuple[str, ...]:
    """Return the names of an actuator's target and, if it has one, its reference frame."""
    if not data.kind:
        return ()
    second = data.kind == "crank" or data.reference
    return (data.target, data.reference) if second else (data.target,)


def check_states(model: Model) -> None:
    """Raise an error for initial positions and keyframes with unknown names or wrong sizes."""
    source = model.source
    joints = {joint.name: -1 for joint in source.joints}
    rates = dict(joints)
    for body in model.bodies:
        joints[body.data.name], rates[body.data.name] = body.joint.nq, body.joint.nv
        if body.data.start and len(body.data.start) != body.joint.nq:
            problem = (
                f"the initial position has {len(body.data.start)} values, but the joint has "
                f"{body.joint.nq} coordinates"
            )
            raise faulty("E-MODEL-409", body.data, problem, "give one value per coordinate")
    actuators = {data.name: 1 for data in source.actuators}
    active = {data.name: 1 for data in source.actuators if data.active}
    seen: set[str] = set()
    for key in source.keyframes:
        if key.name in seen:
            raise faulty("E-MODEL-406", key, "another keyframe has the same name", "rename one")
        seen.add(key.name)
        for named, sizes in (
            (key.positions, joints),
            (key.velocities, rates),
            (key.controls, actuators),
            (key.activations, active),
        ):
            for name, numbers in named:
                if name not in sizes:
                    problem = f"the keyframe has values for {name!r}, which the robot does not have"
                    raise faulty("E-MODEL-407", key, problem, suggest(name, sizes))
                if sizes[name] not in (-1, len(numbers)):
                    problem = f"{name!r} requires {sizes[name]} values, not {len(numbers)}"
                    raise faulty("E-MODEL-408", key, problem, f"give {sizes[name]}")


def check_fluid(model: Model) -> None:
    """Raise an error if a box for fluid forces refers to a link that does not exist."""
    links = {link.name: None for link in model.source.links}
    for box in model.source.fluid.boxes if model.source.fluid is not None else ():
        if box.link not in links:
            problem = f"a box for fluid forces refers to link {box.link!r}, which does not exist"
            raise faulty("E-MODEL-410", model.source, problem, suggest(box.link, links))
