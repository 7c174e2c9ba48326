"""Read worlds and models from SDF files (sdformat.org, versions 1.0 to 1.12).

Models may be nested or included. Plugins and physics engine parameters are ignored. Only
`<include>` opens other files, which must be local.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from chasles.errors import ModelError
from chasles.formats.gazebo_sensors import with_sensors
from chasles.formats.sdf_document import GEARBOX, Document, gears, opened
from chasles.formats.sdf_frames import WORLD, Node, direction, end, is_set, relative, truth
from chasles.formats.sdf_shapes import inertial_of, shapes, uniform
from chasles.formats.xml_file import Part, note_degrees, reflected
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import (
    Description,
    FrameData,
    JointData,
    Limits,
    LinkData,
    Mimic,
)
from chasles.model.description import spelled
from chasles.model.graph import from_graph, unused_name
from chasles.names import one_of

UNBOUNDED = 1e16
"""Magnitude at or above which a joint limit is treated as infinite."""

_PERPENDICULAR = 1e-9

GRAVITY = Vector.of(0.0, 0.0, -9.8)
"""Default gravity in a `<world>` (m/s2)."""


def read(path: str | os.PathLike[str], *, snap: bool = True, floating: bool = False) -> Description:
    """Read an SDF file.

    The first link is "world". If models are nested, or if there are several models, links, joints
    and frames are named `model::name`. A joint between links that are already connected closes a
    loop. A free joint is added, with a note, for each tree of links that is not connected to the
    world; a single added joint is named root_joint. Static models are fixed. Gravity is read from
    the `<world>`, or is (0, 0, -9.81) if the file contains only a model.

    `snap` has the same meaning as in `formats.urdf.read`. If `floating` is True, a single fixed
    joint between the model and the world is replaced by a free joint; any other connection to the
    world raises an error.
    """
    document = opened(os.fsdecode(path), snap=snap)
    links = [LinkData(WORLD, RigidInertia.zero(), document.file)]
    links += [_link(node, document.file) for node in document.of("link")]
    if len(links) == 1:
        raise ModelError("E-SDF-001", "the model has no links", "add a <link>", file=document.file)
    joints = [_held(document, node) for node in document.of("link") if node.static]
    for node in document.of("joint"):
        if not node.static and node.part.text("type") != GEARBOX:
            parts, between = _joints(document, node)
            joints += parts
            links += between
    if floating:
        joints = _set_free(document, joints)
    loops, roots = _spanned(links, joints)
    couplings = tuple(gears(document, joints))
    joints = _floating(document, roots) + joints
    seen = tuple(shape for node in document.of("link") for shape in shapes(node, document.file))
    made = from_graph(_name(document), links, joints, base=WORLD, loops=loops)
    made = replace(
        made,
        joints=tuple(joint for joint in made.joints if joint.child != WORLD),
        frames=tuple(_frames(document)),
        gravity=_gravity(document),
        notes=(*dict.fromkeys(document.notes), *made.notes),
        where=document.file,
        couplings=couplings,
        shapes=seen,
    )
    return with_sensors(made, [(x.name, x.part.element) for x in document.nodes])


def _name(document: Document) -> str:
    models = [node for node in document.top.nodes.values() if node.kind == "model"]
    one = models[0].part.element.get("name") if len(models) == 1 else None
    return one or document.world.element.get("name") or PurePath(document.file).stem


def _gravity(document: Document) -> Vector:
    if document.world.tag != WORLD:
        return Description.gravity
    given = document.world.find("gravity")
    return GRAVITY if given is None else document.world.vector("gravity")


DEFORMABLE = ("drake:deformable_properties", "{http://drake.mit.edu}deformable_properties")
"""Tags of Drake's element for deformable bodies, without and with an XML namespace."""

# Links and frames ------------------------------------------------------------------------------


def _link(node: Node, file: str) -> LinkData:
    """Read a link; the default mass is 1 kg, with moments of inertia of 1 kg m2."""
    part = node.part
    if not truth(part, "gravity", True):
        part.note("gravity is disabled for this link in the file, but acts on it in chasles")
    if truth(part, "kinematic", False):
        part.note("it is kinematic in the file, but moves under forces in chasles")
    if any(child.tag in DEFORMABLE for child in part.element):
        part.note("it is deformable in the file, but rigid in chasles")
    inertial = part.find("inertial")
    if inertial is None and not node.static:
        part.note(
            "it has no <inertial>; SDF's defaults are used: 1 kg, and 1 kg m2 about each axis"
        )
    if inertial is not None and is_set(inertial, "auto"):
        return LinkData(node.name, uniform(node, inertial, file), part.where)
    inertia = inertial_of(part if inertial is None else inertial).about_origin()
    return LinkData(node.name, inertia, part.where)


def _frames(document: Document) -> Iterator[FrameData]:
    for node in document.of("frame"):
        link = node.carrier or document.top
        yield FrameData(node.name, link.name or WORLD, relative(node, link))


# Joints ----------------------------------------------------------------------------------------


def _joints(document: Document, node: Node) -> tuple[list[JointData], list[LinkData]]:
    """Read a joint; if it has two axes, it may become two joints and a massless link."""
    part = node.part
    given, kinds = part.text("type"), spelled("SDF")
    if given not in kinds:
        problem = f"type {given!r} is not supported"
        known = (*kinds, GEARBOX)
        remedy = one_of(given, known)
        raise part.error("E-SDF-003", problem, remedy)
    parent, child = (end(node, tag) or document.top for tag in ("parent", "child"))
    if parent is child or child is document.top:
        fault = "it connects a link to itself" if parent is child else "its child is the world"
        raise part.error("E-SDF-004", fault, "name a link of the model as its child")
    ends = parent.name or WORLD, child.name, relative(node, parent)
    place = relative(node, child)
    joint = JointData(node.name, kinds[given], *ends, child_pose=place, where=part.where)
    if joint.kind == "fixed":
        return [joint], []
    if not joint.traits.along:
        return [replace(joint, **_resistance(part.find("axis")))], []
    first = _with_axis(joint, node, "axis")
    if "pitch" in joint.traits.data:
        first = replace(first, pitch=_pitch(part))
    if len(joint.traits.along) < 2:
        return [reflected(first, part)], []
    return _two_axes(first, _with_axis(joint, node, "axis2"))


def _two_axes(first: JointData, second: JointData) -> tuple[list[JointData], list[LinkData]]:
    """Return one joint if the axes are perpendicular and have equal properties, else two joints."""
    alike = replace(second, axis=first.axis) == first and first.mimic is None
    if alike and abs(first.axis.dot(second.axis)) < _PERPENDICULAR:
        return [replace(first, second_axis=second.axis)], []
    kinds = [part.kind for part in first.traits.series]
    none, link = Transform.identity(), f"{first.child}.{first.name}[0]"
    return [
        replace(first, name=f"{first.name}[0]", kind=kinds[0], child=link, child_pose=none),
        replace(second, name=f"{first.name}[1]", kind=kinds[1], parent=link, pose=none),
    ], [LinkData(link, RigidInertia.zero(), first.where, massless=True)]


def _with_axis(joint: JointData, node: Node, tag: str) -> JointData:
    """Read a joint's axis, limits, mimic relation, damping, friction and spring from `<axis>`."""
    axis = node.part.find(tag)
    if axis is None:
        raise node.part.error("E-SDF-005", f"there is no <{tag}>", "add one")
    mimic, limits = axis.find("mimic"), _limits(axis, joint.traits.bounds)
    if joint.traits.hinge:
        note_degrees(axis, limits)
    return replace(
        joint,
        axis=direction(node, axis),
        limits=limits,
        mimic=None if mimic is None else _mimic(node, mimic),
        **_resistance(axis),
    )


def _resistance(axis: Part | None) -> dict[str, Any]:
    """Read damping, friction and spring parameters from `<axis>`."""
    dynamics = None if axis is None else axis.find("dynamics")
    if dynamics is None:
        return {}
    found: dict[str, Any] = {tag: dynamics.number(tag, 0.0) for tag in ("damping", "friction")}
    if stiffness := dynamics.number("spring_stiffness", 0.0):
        found |= {"stiffness": stiffness}
        if reference := dynamics.number("spring_reference", 0.0):
            found |= {"rest": (reference,)}
    return found


def _limits(axis: Part, bounds: str) -> Limits:
    """Read joint limits; a negative velocity or effort, or a very large value, means no limit."""
    limit = axis.find("limit")
    if limit is None:
        return Limits()
    none = vars(Limits())
    given = {tag: bound(limit, tag, x) for tag, x in none.items()}
    for tag, x in given.items():
        positive = tag in ("velocity", "effort")
        if x < 0.0 if positive else bounds == "none":
            given[tag] = none[tag]
        elif abs(x) >= UNBOUNDED:
            given[tag] = math.copysign(math.inf, x)
    return Limits(**given)


def bound(limit: Part, tag: str, default: float) -> float:
    """Read a joint limit, which may be infinite."""
    text = limit.content(tag)
    endless = text.lower().lstrip("+-") in ("inf", "infinity")
    return float(text) if endless else limit.number(tag, default)


def _mimic(node: Node, mimic: Part) -> Mimic:
    """Read a mimic relation: multiplier * (leader - reference) + offset."""
    leader = node.beside(mimic.text("joint"), mimic)
    if leader.kind != "joint" or mimic.element.get("axis", "axis") != "axis":
        problem = "<mimic> must refer to the first axis of a joint"
        raise mimic.error("E-SDF-006", problem, "name a joint with one axis")
    ratio = mimic.number("multiplier", 1.0)
    offset = mimic.number("offset", 0.0) - ratio * mimic.number("reference", 0.0)
    return Mimic(leader.name, ratio, offset)


def _pitch(joint: Part) -> float:
    """Read the pitch of a screw joint and convert it to m/rad.

    `screw_thread_pitch` is in meters per turn (right-handed); the older `thread_pitch` is in
    radians per meter (left-handed).
    """
    if joint.find("screw_thread_pitch") is not None:
        return joint.number("screw_thread_pitch", 1.0) / (2.0 * math.pi)
    older = joint.number("thread_pitch", 1.0)
    if older == 0.0:
        raise joint.error("E-SDF-007", "thread_pitch is 0", "give the rotation in rad per meter")
    return -1.0 / older


# Connection to the world -----------------------------------------------------------------------


def _held(document: Document, node: Node) -> JointData:
    """Return the joint that fixes a link of a static model to the world."""
    name = unused_name(f"{node.name}.fixed", document.ties)
    pose = relative(node, document.top)
    return JointData(name, "fixed", WORLD, node.name, pose, where=node.part.where)


def _spanned(links: list[LinkData], joints: list[JointData]) -> tuple[list[str], list[str]]:
    """Return the joints that close loops, and the roots of trees not connected to the world.

    A joint closes a loop if earlier joints already connect its links. The root of a tree is its
    first link that is not the child of a tree joint.
    """
    part_of = {link.name: [link.name] for link in links}
    loops, carried = [], set()
    for joint in joints:
        assert joint.parent is not None, "a link is named 'world', which SDF reserves"
        less, more = sorted((part_of[joint.parent], part_of[joint.child]), key=len)
        if less is more:
            loops.append(joint.name)
            continue
        carried.add(joint.child)
        more += less
        part_of |= dict.fromkeys(less, more)
    roots = {id(part_of[WORLD]): WORLD}
    for link, part in part_of.items():
        if link not in carried:
            roots.setdefault(id(part), link)
    return loops, list(roots.values())[1:]


def _floating(document: Document, roots: list[str]) -> list[JointData]:
    """Return a free joint for each tree that is not connected to the world."""
    found = []
    for root in roots:
        wanted = "root_joint" if len(roots) == 1 else f"{root}_free"
        name = unused_name(wanted, document.ties)
        what = f"no joint connects link {root!r} to the world, so free joint {name!r} is added"
        document.notes.append(f"{document.file}: {what}")
        found.append(JointData(name, "free", WORLD, root, where=document.file))
    return found


def _set_free(document: Document, joints: list[JointData]) -> list[JointData]:
    """Remove the fixed joint between the model and the world, so that the base floats."""
    held = [joint for joint in joints if joint.parent == WORLD]
    if len(held) > 1 or (held and held[0].kind != "fixed"):
        names = ", ".join(repr(joint.name) for joint in held)
        remedy = "omit `floating`"
        raise ModelError(
            "E-SDF-008",
            f"the model is attached to the world by {names}, not by a single fixed joint",
            remedy,
            file=document.file,
        )
    return [joint for joint in joints if joint.parent != WORLD]
