"""Functions that edit mechanisms. Each function returns a new description."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace

from chasles.errors import ModelError
from chasles.expr import Number, Program
from chasles.mathematics.derivatives import replayed
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia, Transform, inverted
from chasles.model.build import compose, swept
from chasles.model.couplings import held
from chasles.model.description import (
    CouplingData,
    Description,
    FrameData,
    JointData,
    LinkData,
    RotorData,
    freedom_names,
    some,
)
from chasles.model.given import a_flag, a_name
from chasles.model.graph import in_series
from chasles.model.joints import Fixed
from chasles.model.machine import ActuatorData, FluidData, KeyframeData, Named
from chasles.model.model import WORLD, Model
from chasles.model.passes import equivalent
from chasles.model.sensors import SensorData
from chasles.names import one_of

_HOLDS = 1e-9
"""Tolerance for the residual of a coupling between locked joints."""


def lock(model: Model, positions: Mapping[str, Vector]) -> Description:
    """Lock joints at the given coordinates, together with the joints that mimic them."""
    moving = {body.data.name: i for i, body in enumerate(model.bodies)}
    locked: dict[str, Vector] = {}
    for name, q in positions.items():
        if name not in moving:
            problem = f"there is no moving joint {name!r} to lock"
            part = f"robot {model.name!r}"
            raise ModelError("E-MODEL-019", problem, one_of(name, moving), part=part)
        follow = model.bodies[moving[name]].follow
        if follow is not None:
            other = model.bodies[follow.leader].data.name
            problem = f"joint {name!r} mimics joint {other!r}"
            raise ModelError("E-MODEL-020", problem, f"lock joint {other!r} instead")
        locked[name] = q
    for body in model.bodies:
        leader = model.bodies[body.follow.leader].data.name if body.follow else ""
        if body.follow and leader in locked:
            value = locked[leader][0] * body.follow.ratio + body.follow.offset
            locked[body.data.name] = Vector.of(value)
    joints = tuple(
        _held(model, moving[joint.name], locked[joint.name]) if joint.name in locked else joint
        for joint in model.source.joints
    )
    coupled = (_coupled_still(model, data, locked) for data in model.source.couplings)
    left = tuple(data for data in coupled if data is not None)
    turned = _turned_by(model.source, lambda joint: joint not in locked, locked)
    driven = _driven_still(model.source, set(locked), {x.name for x in turned})
    return replace(
        model.source,
        joints=joints,
        couplings=left,
        rotors=turned,
        independent=(),
        actuators=driven,
    )


def _driven_still(
    source: Description, locked: Container[str], tendons: Container[str]
) -> tuple[ActuatorData, ...]:
    """Detach actuators from locked joints and removed tendons, so that they exert no force."""
    return tuple(
        replace(data, kind="", target="", reference="")
        if (data.kind == "joint" and data.target in locked)
        or (data.kind == "tendon" and data.target not in tendons)
        else data
        for data in source.actuators
    )


def _turned_by(
    source: Description,
    moves: Callable[[str], bool],
    positions: Mapping[str, Vector] | None = None,
) -> tuple[RotorData, ...]:
    """Return the tendons and rotors, restricted to the joints for which `moves` is True.

    `positions` contains the coordinates of the locked joints. The constant lengths or angles that
    these joints contribute are added to the offsets. Tendons and rotors without a remaining joint
    are omitted, except spatial tendons, which do not change.
    """
    found, places = [], positions or {}
    for rotor in source.rotors:
        pairs = zip(rotor.freedoms, rotor.ratios, strict=True)
        kept = [(name, ratio) for name, ratio in pairs if moves(name.partition("[")[0])]
        if kept:
            freedoms, ratios = zip(*kept, strict=True)
            still = (
                r * float(places[name][0])
                for name, r in zip(rotor.freedoms, rotor.ratios, strict=True)
                if name in places
            )
            offset = rotor.offset + sum(still)
            found.append(replace(rotor, freedoms=freedoms, ratios=ratios, offset=offset))
        elif rotor.path:
            found.append(rotor)
    return tuple(found)


def _coupled_still(
    model: Model, data: CouplingData, positions: Mapping[str, Vector]
) -> CouplingData | None:
    """Substitute the values of locked coordinates into a coupling.

    If no coordinate is left, return None, or raise an error if the coupling does not hold.
    """
    values: dict[str, Number] = {}
    still: set[str] = set()
    joints = {body.data.name: body.joint for body in model.bodies}
    for name, q in positions.items():
        words = () if joints[name].additive else joints[name].numbers.position.split()
        places = [f"{name}[{word}]" for word in words] or freedom_names(name, len(q))
        values |= dict(zip(places, q, strict=True))
        still |= set(freedom_names(name, joints[name].nv))
    fixed = [name for name in data.freedoms if name in values]
    fixed += [name for name in data.rates if name in still and name not in fixed]
    if not fixed:
        return data
    left = held(data, values, still)
    if left.freedoms or left.rates or left.frames:
        return left
    part, locked = f"coupling {data.name!r}", f"{', '.join(map(repr, fixed))} locked"
    if data.timed:
        problem = f"the coupling depends on time, so it cannot be satisfied with {locked}"
        raise ModelError("E-MODEL-021", problem, "leave one of these joints unlocked", part=part)
    error = max(map(abs, replayed(left.residual, {})))
    if error > _HOLDS:
        problem = f"the coupling does not hold with {locked}: its residual is {error:.3g}"
        remedy = "lock the joints at positions where the coupling holds"
        raise ModelError("E-MODEL-022", problem, remedy, part=part)
    return None


def _held(model: Model, i: int, q: Vector) -> JointData:
    """Return a fixed joint that replaces the joint of body i at its position q."""
    body = model.bodies[i]
    child = model.frames[body.name].placement @ body.joint.transform(q)
    parent = body.data.parent
    start = Transform.identity() if parent is None else model.frames[parent].placement
    fixed = replace(body.data, kind="fixed", mimic=None, reversed=False, custom=None)
    fixed = replace(fixed, stiffness=0.0, rest=(), start=(), lifted=False)
    return replace(fixed, pose=compose(child, inverted(start)), child_pose=Transform.identity())


def drive(model: Model, motions: Mapping[str, Program]) -> Description:
    """Prescribe the motion of some joints, which then have no coordinates.

    If a single degree of freedom "joint[k]" is prescribed, the joint is replaced by joints in
    series named "joint[0]", "joint[1]", ... (Featherstone 2008, section 3.4). The index is that of
    a coordinate, so the velocities of a planar joint become the rates of its coordinates.
    """
    whole = {
        freedom: model.bodies[i].data
        for i in model.movers
        for freedom in freedom_names(model.bodies[i].data.name, model.bodies[i].joint.nv)
    }
    for name in motions:
        joint = whole[name] if name in whole else model.bodies[model.mover(name)].data
        if name != joint.name and not (joint.traits.series or joint.traits.coordinate_series):
            problem = (
                f"the degrees of freedom of a {joint.kind} joint cannot be prescribed individually"
            )
            if not joint.traits.additive:
                problem += ", because its velocities are not the rates of its coordinates"
            remedy = (
                "prescribe all degrees of freedom of the joint, "
                "or use joints in series, such as yaw_pitch_roll"
            )
            raise ModelError("E-JOINT-240", problem, remedy, part=f"joint {joint.name!r}")
    split = {whole[name].name for name in motions if name in whole and name != whole[name].name}
    source = in_series(model.source, only=split)
    joints = tuple(
        replace(joint, motion=motions.get(joint.name, joint.motion)) for joint in source.joints
    )
    return replace(source, joints=joints, independent=())


def sensors_left(source: Description) -> tuple[SensorData, ...]:
    """Return the sensors whose frames and joints exist in `source`, after parts were removed."""
    frames = {link.name for link in source.links} | {frame.name for frame in source.frames}
    joints = {joint.name for joint in source.joints if joint.kind != Fixed.kind}
    joints |= {rotor.name for rotor in source.rotors}
    joints |= {actuator.name for actuator in source.actuators if actuator.kind}
    return tuple(
        sensor
        for sensor in source.sensors
        if frames.issuperset(sensor.frames) and (not sensor.joint or sensor.joint in joints)
    )


def attach(model: Model, frame: str, name: str, inertia: RigidInertia) -> Description:
    """Attach a payload to a frame, in which the payload's inertia is expressed."""
    where = model.frame(frame)
    source, name = model.source, a_name("a payload", name, "attach")
    if name in model.frames:
        problem = f"robot {model.name!r} already has a frame {name!r}"
        raise ModelError("E-MODEL-023", problem, "give the payload another name")
    if where.body == WORLD:
        problem = f"frame {frame!r} does not move, so a payload there has no effect"
        raise ModelError("E-MODEL-024", problem)
    own = {link.name: FrameData("", link.name, Transform.identity()) for link in source.links}
    at = (own | {f.name: f for f in source.frames})[frame]
    held = JointData(f"{name}_attachment", "fixed", at.link, name, at.pose)
    links = (*source.links, LinkData(name, inertia))
    return replace(source, links=links, joints=(*source.joints, held), massless=False)


def subtree(model: Model, link: str, *, floating: bool = False) -> Description:
    """Return the subtree of a link; the link is fixed to the world, or floats if `floating`.

    Loops, couplings and tendons that involve other links are removed, and notes report them.
    """
    source, link = model.source, a_name("a link", link, "subtree")
    if link not in {entry.name for entry in source.links}:
        model.frame(link)
        raise ModelError(
            "E-MODEL-025", f"{link!r} is a frame, not a link", "give the root link of the subtree"
        )
    kept, more = set[str | None](), {link}
    while more:
        kept |= more
        more = {j.child for j in source.joints if j.parent in kept} - kept
    free = a_flag("floating", floating, "subtree")
    base = (JointData("root_joint", "free", None, link),) if free else ()
    inner = tuple(j for j in source.joints if j.parent in kept)
    names = {j.name for j in inner}
    for joint in inner:
        if joint.mimic is not None and joint.mimic.joint not in names:
            problem = (
                f"the joint mimics {joint.mimic.joint!r}, which is not in the subtree of {link!r}"
            )
            remedy = f"load with mimic=False, or lock joint {joint.mimic.joint!r} first"
            raise ModelError("E-MODEL-026", problem, remedy, part=f"joint {joint.name!r}")
    cut = [x for x in source.loops if (x.parent in kept) != (x.child in kept)]
    notes = tuple(
        f"loop {x.name!r} is removed: it leads out of the subtree of {link!r}" for x in cut
    )
    inside = {
        x.name: {model.bodies[i].data.name in names for i in x.bodies} | {not x.data.frames}
        for x in model.couplings
    }
    notes += tuple(
        f"coupling {name!r} is removed: it leads out of the subtree of {link!r}"
        for name, found in inside.items()
        if len(found) == 2
    )
    torn = [x for x in source.rotors if not {e for y in x.path for e in (y.start, y.end)} <= kept]
    notes += tuple(
        f"tendon {x.name!r} is removed: it leads out of the subtree of {link!r}" for x in torn
    )
    return replace(
        source,
        name=f"{source.name}/{link}",
        links=tuple(entry for entry in source.links if entry.name in kept),
        joints=base + inner,
        frames=tuple(f for f in source.frames if f.link in kept),
        loops=tuple(x for x in source.loops if x.parent in kept and x.child in kept),
        couplings=tuple(x for x in source.couplings if inside[x.name] == {True}),
        rotors=(
            turned := tuple(x for x in _turned_by(source, names.__contains__) if x not in torn)
        ),
        actuators=(driven := _driven_within(source, names, {x.name for x in turned}, kept)),
        keyframes=_keys_within(source, names, {x.name for x in driven}),
        fluid=_around(source, kept),
        independent=(),
        notes=source.notes + notes,
        shapes=tuple(x for x in source.shapes if x.link in kept),
        excluded=tuple(pair for pair in source.excluded if kept.issuperset(pair)),
        paired=tuple(pair for pair in source.paired if kept.issuperset(x.link for x in pair)),
    )


def _driven_within(
    source: Description, joints: set[str], tendons: set[str], links: Container[str | None]
) -> tuple[ActuatorData, ...]:
    """Return the actuators that drive only the given joints, tendons and links."""
    frames = {frame.name for frame in source.frames if frame.link in links}
    frames |= {link.name for link in source.links if link.name in links}
    parts = {"joint": joints, "tendon": tendons, "": {""}}
    return tuple(
        data
        for data in source.actuators
        if {data.target, data.reference or data.target} <= parts.get(data.kind, frames)
    )


def _keys_within(
    source: Description, joints: Container[str], actuators: Container[str]
) -> tuple[KeyframeData, ...]:
    """Restrict keyframes to the given joints and actuators."""

    def among(named: Named, parts: Container[str]) -> Named:
        return tuple((name, numbers) for name, numbers in named if name in parts)

    return tuple(
        KeyframeData(
            key.name,
            among(key.positions, joints),
            among(key.velocities, joints),
            among(key.controls, actuators),
            among(key.activations, actuators),
        )
        for key in source.keyframes
    )


def _around(source: Description, links: Container[str | None]) -> FluidData | None:
    """Return the fluid data for the given links, or None if there is no fluid.

    Boxes that approximate other links are removed.
    """
    if source.fluid is None:
        return None
    boxes = tuple(box for box in source.fluid.boxes if box.link in links)
    return replace(source.fluid, boxes=boxes)


def unsprung(source: Description) -> Description:
    """Remove all springs, and list them in `unsupported`."""
    every: tuple[JointData | RotorData, ...] = (*source.joints, *source.rotors)
    parts = [part for part in every if part.stiffness]
    if not parts:
        return source
    what = f"{source.where}: springs ({len(parts)}) are ignored, as requested: "
    return replace(
        source,
        joints=tuple(replace(joint, stiffness=0.0, rest=()) for joint in source.joints),
        rotors=tuple(replace(rotor, stiffness=0.0) for rotor in source.rotors),
        unsupported=(*source.unsupported, what + some(part.name for part in parts)),
    )


def opened(source: Description, names: Sequence[str] | None) -> Description:
    """Remove loops, couplings and mimic relations by name (default: all loops and couplings)."""
    ties = [loop.name for loop in source.loops] + [data.name for data in source.couplings]
    chosen = ties if names is None else names
    mimics = [joint.name for joint in source.joints if joint.mimic is not None]
    for name in chosen:
        if name not in (*ties, *mimics):
            problem = f"there is no loop, coupling or mimic joint {name!r} to remove"
            remedy = (
                f"available loops, couplings and mimic joints: {some((*ties, *mimics)) or 'none'}"
            )
            raise ModelError("E-LOOP-240", problem, remedy, part=f"robot {source.name!r}")
    if not chosen:
        return source
    joints = (replace(j, mimic=None) if j.name in chosen else j for j in source.joints)
    return replace(
        source,
        joints=tuple(joints),
        loops=tuple(loop for loop in source.loops if loop.name not in chosen),
        couplings=tuple(data for data in source.couplings if data.name not in chosen),
        independent=(),
        notes=(*source.notes, f"removed on request: {some(chosen)}"),
    )


def simplified(model: Model) -> Description:
    """Regroup link inertias so that more entries are zero and the equation of motion is the same.

    The part of a body's inertia that does not affect its joint is assigned to the parent link, and
    the rest to the child link of the joint (Featherstone 2008, section 9.7).
    """
    carrier = {link.name: model.frames[link.name].body for link in model.source.links}
    moved = {
        body.name: swept(model.frames[body.name].placement @ body.inertia)
        for body in equivalent(model).bodies
    }
    links = tuple(
        link
        if carrier[link.name] == WORLD
        else replace(link, inertia=moved.get(link.name, RigidInertia.zero()))
        for link in model.source.links
    )
    note = (
        "inertias are regrouped: joint torques are the same as for the original robot, but "
        "joint reactions and momenta differ"
    )
    return replace(model.source, links=links, notes=(*model.source.notes, note))
