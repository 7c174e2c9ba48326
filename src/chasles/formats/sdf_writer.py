"""Write a robot as an SDF model, inside a world if gravity differs from the default."""

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np
from lxml import etree

from chasles.formats import xml_file as xml
from chasles.formats.files import short, words
from chasles.formats.sdf_document import GEARBOX, REFERENCE
from chasles.formats.sdf_frames import MODEL, WORLD
from chasles.formats.writable import ball_limits, check_writable, lacking, refusal, single_rest
from chasles.formats.xml_file import MOMENTS
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia, Transform, inverted
from chasles.model import Description, JointData, Limits, LoopData, ShapeData
from chasles.model.build import compose, natural_axes
from chasles.model.couplings import linear
from chasles.model.description import Named, as_bounded, some, spelling
from chasles.model.graph import in_series, taken_names, unused_name
from chasles.writing import store

VERSION = "1.11"
"""SDF version of written files.

This is the first version that supports mimic joints and thread pitch in m per turn.
"""

_CLOSED = 1e-12
"""Tolerance for the difference between the two frames of a closed loop (m or rad)."""

_ELSE = "save the robot as .toml"

Kind = TypeVar("Kind", bound=JointData)


def write(description: Description, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a mechanism at full precision; loading the file gives a robot with the same motion.

    Loops are written as joints between links that are already connected; they must be closed when
    all coordinates are zero. Free joints are not written, because unconnected links float in SDF.
    Cylindrical joints and some other types are written as joints in series (`model.graph`). Gear
    ratios between two revolute joints are written as gearboxes. Parts that SDF cannot represent
    raise an error: other joint types and couplings, armature, and free joints that do not start at
    the world origin.
    """
    notes = check_writable(description, "SDF")
    source = _renamed(in_series(description, "SDF"), notes)
    free = [joint for joint in source.joints if joint.traits.floating]
    joints = [joint for joint in source.joints if not joint.traits.floating]
    for joint in (*joints, *source.loops):
        _check(joint)
    for joint in free:
        _check_free(joint)
        what = (
            "needs no element, because SDF models float by default; loading the file adds this "
            "free joint as the first joint"
        )
        notes.append(f"free joint {joint.name!r} {what}")
    root = xml.added(None, "sdf", version=VERSION)
    outer = root
    if source.gravity != Description.gravity:
        outer = xml.added(root, "world", name="world")
        xml.add_texts(outer, gravity=words(source.gravity))
    model = xml.added(outer, "model", name=source.name)
    _add_parts(model, source, [joint.child for joint in free], joints)
    notes += ball_limits(source.joints)
    if light := [link.name for link in source.links if not link.inertia.m]:
        notes.append(f"Gazebo does not accept links without mass: {some(light)}")
    store(path, xml.printed(root))
    return tuple(notes)


def _add_parts(
    model: etree._Element, source: Description, floats: list[str], joints: list[JointData]
) -> None:
    """Write links (floating links first, so that they are read as roots), joints and frames."""
    joint_of = {joint.child: joint for joint in joints}
    for link in sorted(source.links, key=lambda link: link.name not in floats):
        element = xml.added(model, "link", name=link.name)
        if link.name in joint_of:
            joint = joint_of[link.name]
            _add_pose(element, inverted(joint.child_pose), joint.name)
        _add_inertial(element, link.inertia)
        own = (shape for shape in source.shapes if shape.link == link.name)
        for k, shape in enumerate(own, start=1):
            _add_shape(element, shape, k)
    for joint in joints:
        _add_joint(model, joint, joint.pose, joint.parent or MODEL)
    taken = set.union(*taken_names(source))
    for link in source.links:
        if link.name not in joint_of and link.name not in floats:
            held = JointData(unused_name(f"{link.name}.world", taken), "fixed", None, link.name)
            _add_joint(model, held, Transform.identity(), MODEL)
    carriers: dict[str | None, JointData] = {joint.child: joint for joint in source.joints}
    for loop in source.loops:
        _check_loop(loop, carriers)
        _add_joint(model, loop, loop.child_pose, loop.child)
    _add_gears(model, source)
    for frame in source.frames:
        _add_pose(xml.added(model, "frame", name=frame.name, attached_to=frame.link), frame.pose)


# Format restrictions ---------------------------------------------------------------------------


def _renamed(source: Description, notes: list[str]) -> Description:
    """Replace names that are invalid in SDF; a massless root link "world" becomes the world."""
    taken, carried = {WORLD}, {joint.child for joint in source.joints}
    kept = [
        link
        for link in source.links
        if link.name != WORLD or WORLD in carried or link.inertia != RigidInertia.zero()
    ]
    if len(kept) < len(source.links):
        for frame in source.frames:
            if frame.link == WORLD:
                notes.append(f"frame {frame.name!r} is attached to the world and is not written")
        if any(shape.link == WORLD for shape in source.shapes):
            notes.append("shapes attached to the world are not written")

    def legal(what: str, names: Iterable[str]) -> dict[str, str]:
        found = {}
        for name in names:
            plain = " ".join(name.replace("::", ".").split())
            plain = plain.strip("_") if plain.startswith("__") else plain
            found[name] = unused_name(plain or what, taken)
            if found[name] != name:
                notes.append(
                    f"{what} {short(name)} is written as {found[name]!r}, a valid SDF name"
                )
        return found

    links = legal("link", (link.name for link in kept))
    frames = legal("frame", (frame.name for frame in source.frames if frame.link in links))
    named: list[Named] = [*source.joints, *source.loops, *source.couplings]
    ties = legal("joint", (part.name for part in named))

    def tied(joint: Kind) -> Kind:
        mimic = joint.mimic
        return replace(
            joint,
            name=ties[joint.name],
            parent=links.get(joint.parent or ""),
            child=links[joint.child],
            mimic=None if mimic is None else replace(mimic, joint=ties[mimic.joint]),
        )

    taken.intersection_update({WORLD})
    (name,) = legal("robot", (source.name,)).values()
    return replace(
        source,
        name=name,
        links=tuple(replace(link, name=links[link.name]) for link in kept),
        joints=tuple(map(tied, source.joints)),
        loops=tuple(map(tied, source.loops)),
        couplings=tuple(
            replace(x, name=ties[x.name], freedoms=tuple(ties.get(f, f) for f in x.freedoms))
            for x in source.couplings
        ),
        frames=tuple(
            replace(x, name=frames[x.name], link=links[x.link])
            for x in source.frames
            if x.link in links
        ),
        shapes=tuple(replace(x, link=links[x.link]) for x in source.shapes if x.link in links),
    )


def _check(joint: JointData) -> None:
    """Raise an error for a joint that SDF cannot represent."""
    turned = isinstance(joint, LoopData) and (joint.traits.flips or not joint.traits.along)
    if "SDF" not in joint.traits.names or (joint.reversed and joint.kind != "fixed" and not turned):
        raise refusal("E-SDF-035", joint, lacking(joint), _ELSE)
    if joint.armature and joint.kind != "fixed":
        raise refusal("E-SDF-036", joint, "has an armature", f"{_ELSE} or .xml")


def _check_free(joint: JointData) -> None:
    """Raise an error for a free joint that SDF cannot represent."""
    here = joint.pose.is_identity and joint.child_pose.is_identity
    if joint.parent is not None or not here or joint.resists or joint.reversed:
        problem = (
            "is a free joint with a parent link, armature, damping, friction, a spring, "
            "or an offset from the world origin"
        )
        raise refusal("E-SDF-037", joint, problem, f"{_ELSE}, or remove these properties")


def _check_loop(loop: LoopData, joint_of: Mapping[str | None, JointData]) -> None:
    """Raise an error for a loop that SDF cannot represent.

    A loop must be closed at q = 0, because an SDF joint has only one frame. A loop must
    not connect a floating link to the world or to another floating link, because readers would use
    the loop joint as a tree joint.
    """
    first, one = _in_world(loop.parent, loop.pose, joint_of)
    second, other = _in_world(loop.child, loop.child_pose, joint_of)
    apart = [a - b for a, b in zip(first.r, second.r, strict=True)]
    if not _is_ball(loop):
        apart += np.ravel(np.subtract(first.R.rows, second.R.rows)).tolist()
    if max(map(abs, apart)) > _CLOSED * (1.0 + max(map(abs, first.r))):
        problem = "is not closed when all joint positions are zero"
        remedy = f"{_ELSE}, or choose zero positions at which the loop is closed"
        raise refusal("E-SDF-038", loop, problem, remedy)
    if one != other:
        problem = f"includes the free joint of link {other or one!r}"
        raise refusal("E-SDF-039", loop, problem, f"{_ELSE} or .xml")


def _in_world(
    link: str | None, pose: Transform, joint_of: Mapping[str | None, JointData]
) -> tuple[Transform, str | None]:
    """Return the world pose of a frame at zero coordinates, and the floating link that carries it.

    The floating link is None if no free joint lies between the frame and the world.
    """
    floating = None
    while link in joint_of:
        joint = joint_of[link]
        floating = link if floating is None and joint.traits.floating else floating
        pose = compose(compose(pose, inverted(joint.child_pose)), joint.pose)
        link = joint.parent
    return pose, floating


def _is_ball(joint: JointData) -> bool:
    """Return True if a joint moves but has no axis, like a ball joint."""
    return not joint.traits.along and joint.kind != "fixed"


# Elements --------------------------------------------------------------------------------------


def _add_pose(element: etree._Element, pose: Transform, base: str = "") -> None:
    """Add a pose relative to the frame `base`, or to SDF's default frame if `base` is empty."""
    if base or not pose.is_identity:
        relative = {"relative_to": base} if base else {}
        xml.added(element, "pose", **relative).text = f"{words(pose.r)} {xml.angles(pose)}"


def _add_inertial(element: etree._Element, inertia: RigidInertia) -> None:
    """Add mass and inertia, even if they are zero, because SDF's default mass is 1 kg."""
    mass, center, moments = inertia.about_center()
    inertial = xml.added(element, "inertial")
    xml.add_texts(inertial, pose=f"{words(center)} 0 0 0", mass=words([mass]))
    entries = xml.each(dict(zip(MOMENTS, moments, strict=True)))
    xml.add_texts(xml.added(inertial, "inertia"), **entries)


def _add_shape(link: etree._Element, shape: ShapeData, k: int) -> None:
    """Add the k-th shape of a link; its name is unique within the link."""
    element = xml.added(link, shape.role, name=f"{shape.role} {k}")
    _add_pose(element, shape.pose)
    file = {"uri": shape.file} if shape.kind == "mesh" else {}
    xml.add_texts(xml.added(xml.added(element, "geometry"), shape.kind), **file, **xml.sizes(shape))
    if shape.color is not None and shape.role == "visual":
        color = words(shape.color)
        xml.add_texts(xml.added(element, "material"), ambient=color, diffuse=color)


def _add_joint(model: etree._Element, joint: JointData, place: Transform, base: str) -> None:
    """Add a joint with the pose `place` relative to the frame `base`."""
    bounded = (joint.limits.lower, joint.limits.upper) != (-math.inf, math.inf)
    kind = spelling(as_bounded(joint.kind, True) if bounded else joint.kind, "SDF")
    element = xml.added(model, "joint", name=joint.name, type=kind)
    _add_pose(element, place, base)
    parent = WORLD if joint.parent is None else joint.parent
    xml.add_texts(element, parent=parent, child=joint.child)
    if joint.kind == "fixed" or (_is_ball(joint) and not joint.resists):
        return
    if "pitch" in joint.traits.data:
        xml.add_texts(element, screw_thread_pitch=words([joint.pitch * 2.0 * math.pi]))
    axes = [joint.axis]  # SDF stores a ball joint's damping in <axis>; the direction is arbitrary
    if len(joint.traits.along) == 2:
        axes = [Vector(row) for row in natural_axes(joint).rows[:2]]
    for tag, axis in zip(("axis", "axis2"), axes, strict=False):
        _add_axis(xml.added(element, tag), joint, axis)


def _add_axis(element: etree._Element, joint: JointData, axis: Vector) -> None:
    """Add the axis, limits, dynamics and mimic relation of one degree of freedom."""
    xml.add_texts(element, xyz=words(axis))
    bounds = Limits() if _is_ball(joint) else joint.limits
    if limits := {key: x for key, x in vars(bounds).items() if math.isfinite(x)}:
        xml.add_texts(xml.added(element, "limit"), **xml.each(limits))
    if joint.damping or joint.friction or joint.stiffness:
        numbers = {"damping": joint.damping, "friction": joint.friction}
        if joint.stiffness:
            numbers |= {"spring_reference": single_rest(joint, "SDF")}
            numbers |= {"spring_stiffness": joint.stiffness}
        xml.add_texts(xml.added(element, "dynamics"), **xml.each(numbers))
    if joint.mimic is not None:
        mimic = xml.added(element, "mimic", joint=joint.mimic.joint, axis="axis")
        numbers = {"multiplier": joint.mimic.multiplier, "offset": joint.mimic.offset}
        xml.add_texts(mimic, **xml.each(numbers), reference="0")


# Gearboxes -------------------------------------------------------------------------------------


def _add_gears(model: etree._Element, source: Description) -> None:
    """Write each coupling a q + b p = 0 of two joint angles q and p as a gearbox.

    The gearbox equation is t p = -(s t a/b) s q, with the signs s and t that `_end` returns.
    """
    joints = {joint.name: joint for joint in source.joints}
    for data in source.couplings:
        slopes, constant = linear(data) or ([], 0.0)
        pair = [joints[name] for name in data.freedoms if name in joints]
        shared = _shared(pair)
        if constant or len(slopes) != 2 or shared is None:
            problem = (
                "is a coupling other than a gear ratio between two revolute joints on one link"
            )
            raise refusal("E-SDF-040", data, problem, "save the robot as .toml or .xml")
        first, second = zip(pair, slopes, strict=True)
        if first[1] == 1.0:  # make this the child: readers scale its coefficient to 1
            first, second = second, first
        if _end(second[0], shared)[0] == WORLD:
            first, second = second, first
        (parent, s), (child, t) = (_end(joint, shared) for joint, _ in (first, second))
        ratio = {"gearbox_ratio": words([s * t * first[1] / second[1]]), REFERENCE: shared}
        element = xml.added(model, "joint", name=data.name, type=GEARBOX)
        xml.add_texts(element, parent=parent, child=child, **ratio)
        for tag, (joint, _) in (("axis", first), ("axis2", second)):
            axis = xml.added(element, tag)
            xml.added(axis, "xyz", expressed_in=joint.name).text = words(joint.axis)


def _shared(pair: list[JointData]) -> str | None:
    """Return the link (or the world) that two revolute joints have in common, or None."""
    if len(pair) != 2 or not all(joint.traits.hinge for joint in pair):
        return None
    first, second = ({joint.parent or WORLD, joint.child} for joint in pair)
    return next(iter(first & second), None)


def _end(joint: JointData, shared: str) -> tuple[str, float]:
    """Return the link that a joint connects to the link `shared`, and a sign.

    The sign is +1 if the returned link is the child of the joint, and -1 if it is the parent.
    """
    return (joint.child, 1.0) if shared != joint.child else (joint.parent or WORLD, -1.0)
