"""Changed mechanisms: each function takes a description and gives a new one."""

from collections.abc import Mapping
from dataclasses import replace

from chasles.errors import ModelError
from chasles.expr import Number, Program
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia, Transform, inverted
from chasles.model import couplings
from chasles.model.build import compose, swept
from chasles.model.description import CouplingData, Description, FrameData, JointData, LinkData
from chasles.model.model import WORLD, Model
from chasles.model.passes import equivalent

_HOLDS = 1e-9
"""Locked joints may leave a coupling of no others this far from holding, as `closed` may loops."""


def lock(model: Model, positions: Mapping[str, Vector]) -> Description:
    """Joints fixed at the given coordinates; followers of a locked leader are locked with it."""
    moving = {body.data.name: i for i, body in enumerate(model.bodies)}
    held: dict[str, Vector] = {}
    for name, q in positions.items():
        if name not in moving:
            problem = f"no moving joint {name!r} to lock"
            remedy = f"it has {', '.join(map(repr, moving))}"
            raise ModelError("E-MODEL-019", problem, remedy, part=f"robot {model.name!r}")
        if model.bodies[moving[name]].follow is not None:
            raise ModelError("E-MODEL-020", f"joint {name!r} mimics another", "lock that one")
        held[name] = q
    for body in model.bodies:
        leader = model.bodies[body.follow.leader].data.name if body.follow else ""
        if body.follow and leader in held:
            value = held[leader][0] * body.follow.ratio + body.follow.offset
            held[body.data.name] = Vector.of(value)
    joints = tuple(
        _held(model, moving[joint.name], held[joint.name]) if joint.name in held else joint
        for joint in model.source.joints
    )
    coupled = (_coupled_still(data, held) for data in model.source.couplings)
    left = tuple(data for data in coupled if data is not None)
    return replace(model.source, joints=joints, couplings=left, independent=())


def _coupled_still(data: CouplingData, held: Mapping[str, Vector]) -> CouplingData | None:
    """A coupling with numbers for the coordinates of locked joints; None if it has no others."""
    values: dict[str, Number] = {}
    for name, q in held.items():
        values |= {name: q[0]} if len(q) == 1 else {f"{name}[{k}]": x for k, x in enumerate(q)}
    fixed = [name for name in data.freedoms if name in values]
    if len(fixed) < len(data.freedoms):
        return couplings.held(data, values) if fixed else data
    part, locked = f"coupling {data.name!r}", f"{', '.join(map(repr, fixed))} are locked"
    if data.timed:
        problem = f"it depends on time, so it cannot hold where {locked}"
        raise ModelError("E-MODEL-021", problem, "leave one of them free", part=part)
    error = couplings.residual_at(data, values)
    if abs(error) > _HOLDS:
        problem = f"it does not hold where {locked}: it is off by {error:.3g}"
        raise ModelError("E-MODEL-022", problem, "lock them where it holds", part=part)
    return None


def _held(model: Model, i: int, q: Vector) -> JointData:
    """The joint of body i as a fixed joint: its child's frame where q puts it."""
    body = model.bodies[i]
    child = model.frames[body.name].placement @ body.joint.transform(q)
    parent = body.data.parent
    start = Transform.identity() if parent is None else model.frames[parent].placement
    fixed = replace(body.data, kind="fixed", mimic=None, reversed=False, custom=None)
    return replace(fixed, pose=compose(child, inverted(start)), child_pose=Transform.identity())


def drive(model: Model, motions: Mapping[str, Program]) -> Description:
    """Joints moved in time as given, in place of having coordinates."""
    for name in motions:
        model.mover(name)
    joints = tuple(
        replace(joint, motion=motions.get(joint.name, joint.motion))
        for joint in model.source.joints
    )
    return replace(model.source, joints=joints, independent=())


def attach(model: Model, frame: str, name: str, inertia: RigidInertia) -> Description:
    """A payload fixed to a frame; its inertia is given in that frame."""
    where = model.frame(frame)
    source = model.source
    if name in model.frames:
        problem = f"robot {model.name!r} already has a frame {name!r}"
        raise ModelError("E-MODEL-023", problem, "name the payload")
    if where.body == WORLD:
        problem = f"frame {frame!r} does not move: a payload there has no effect"
        raise ModelError("E-MODEL-024", problem)
    own = {link.name: FrameData("", link.name, Transform.identity()) for link in source.links}
    at = (own | {f.name: f for f in source.frames})[frame]
    held = JointData(f"{name}_attachment", "fixed", at.link, name, at.pose)
    links = (*source.links, LinkData(name, inertia))
    return replace(source, links=links, joints=(*source.joints, held), massless=False)


def subtree(model: Model, link: str, *, floating: bool = False) -> Description:
    """The part of the mechanism that hangs on a link, the link itself held fixed (or free).

    A loop that the cut opens is left out, with a note, and so is a coupling with joints outside.
    """
    source = model.source
    if link not in {entry.name for entry in source.links}:
        model.frame(link)
        raise ModelError("E-MODEL-025", f"{link!r} is a frame", "a subtree starts at a link")
    kept, more = set[str | None](), {link}
    while more:
        kept |= more
        more = {j.child for j in source.joints if j.parent in kept} - kept
    base = (JointData("root_joint", "free", None, link),) if floating else ()
    inner = tuple(j for j in source.joints if j.parent in kept)
    names = {j.name for j in inner}
    for joint in inner:
        if joint.mimic is not None and joint.mimic.joint not in names:
            problem = f"it mimics {joint.mimic.joint!r}, which is outside the subtree of {link!r}"
            remedy = "load with mimic=False, or lock that joint first"
            raise ModelError("E-MODEL-026", problem, remedy, part=f"joint {joint.name!r}")
    cut = [x for x in source.loops if (x.parent in kept) != (x.child in kept)]
    notes = tuple(f"loop {x.name!r} is open: it leads out of the subtree of {link!r}" for x in cut)
    inside = {
        x.data.name: {model.bodies[i].data.name in names for i in x.bodies} for x in model.couplings
    }
    notes += tuple(
        f"coupling {name!r} is left out: it leads out of the subtree of {link!r}"
        for name, found in inside.items()
        if len(found) == 2
    )
    return replace(
        source,
        name=f"{source.name}/{link}",
        links=tuple(entry for entry in source.links if entry.name in kept),
        joints=base + inner,
        frames=tuple(f for f in source.frames if f.link in kept),
        loops=tuple(x for x in source.loops if x.parent in kept and x.child in kept),
        couplings=tuple(x for x in source.couplings if inside[x.name] == {True}),
        independent=(),
        notes=source.notes + notes,
        shapes=tuple(x for x in source.shapes if x.link in kept),
    )


def simplified(model: Model) -> Description:
    """The same equation of motion with more zeros among the inertias (Featherstone 2008, 9.7).

    All that moves with a joint is put on its child link, but what the joint does not feel moves on.
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
    note = "inertias are regrouped: joint forces are those of the robot, reactions and momenta not"
    return replace(model.source, links=links, notes=(*model.source.notes, note))
