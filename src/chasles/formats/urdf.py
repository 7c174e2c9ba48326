"""Read and write URDF files: links, joints, inertias and shapes.

wiki.ros.org/urdf/XML defines the format. Additional joint types are supported: spherical,
yaw_pitch_roll, universal (`<axis>` and an optional perpendicular `<axis2>`), cylindrical,
sphere_in_cylinder, helical (attribute `pitch`, m/rad), rack_and_pinion and rolling (attribute
`radius`, m). Simple transmissions, and sensors and springs in `<gazebo>` elements, are also read.
This module does not open mesh files or other files.
"""

import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Any

from lxml import etree

from chasles.errors import ModelError
from chasles.formats import xml_file as xml
from chasles.formats.files import load, short, words
from chasles.formats.gazebo_sensors import with_sensors
from chasles.formats.spelling import ATTRIBUTES, URDF
from chasles.formats.urdf_machine import (
    add_springs,
    add_transmissions,
    transmissions,
    with_springs,
)
from chasles.formats.writable import check_writable, lacking, refusal
from chasles.formats.xml_file import (
    MOMENTS,
    Inertial,
    Part,
    Source,
    note_degrees,
    note_misspelled,
    reflected,
)
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import SHAPE_TRAITS, Description, JointData, Limits, LinkData, Mimic, ShapeData
from chasles.model.build import compose
from chasles.model.description import Named, as_bounded, part_of, spelled, spelling, traits
from chasles.model.graph import at_children, in_series, on_free_joint, taken_names, unused_name
from chasles.model.joints import TYPES
from chasles.model.machine import ActuatorData
from chasles.names import one_of
from chasles.writing import store

UNBOUNDED = sys.float_info.max
"""Value written for a missing limit where URDF requires one; URDF readers reject "inf"."""

_KINDS = [kind for kind, row in SHAPE_TRAITS.items() if row.urdf]

_ELSE, _ENDS = "save the robot as .toml or .xml", ("parent", "child")

Color = tuple[float, ...]


def read(path: str | os.PathLike[str], *, snap: bool = True, floating: bool = False) -> Description:
    """Read a URDF file.

    If `snap` is True, angles such as 1.5708 are replaced with exact multiples of pi/2, and a note
    is added. An angle is replaced if it equals a multiple of pi/2 that is rounded or truncated to
    at least five digits. The sine and cosine of an exact multiple are exact. If `floating` is True,
    attach the root link to the world by a free joint named root_joint.
    """
    file, notes = os.fsdecode(path), list[str]()
    root = xml.parse(file, load(file), notes)
    return described(file, root, notes, snap=snap, floating=floating)


def described(
    file: str, root: etree._Element, notes: list[str], *, snap: bool, floating: bool
) -> Description:
    """Convert a URDF document to a `Description`; `notes` are notes from the XML parser."""
    if root.tag.rpartition("}")[2] != "robot":
        problem = f"the root element is <{root.tag}>, not <robot>"
        remedy = "use <robot> as the root element of a URDF file"
        raise ModelError("E-URDF-001", problem, remedy, file=f"{file}:{root.sourceline}")
    robot = Part(Source(file, root.tag.removesuffix("robot"), snap, notes), root, "robot")
    parts = list(_named(robot, "link"))
    if not parts:
        raise robot.error("E-URDF-002", "the file has no links", "add a <link>")
    note_misspelled(robot, URDF, ATTRIBUTES)
    links = tuple(map(_link, parts))
    joints, actuators = tuple(map(_joint, _named(robot, "joint"))), tuple[ActuatorData, ...]()
    extensions = [(part.get("reference", ""), part) for part in root.iterfind("{*}gazebo")]
    gears = list(robot.all("transmission"))
    if gears:
        joints = _motors(gears, joints)
        actuators = tuple(transmissions(gears, joints))
    if extensions:
        joints = with_springs(robot.all("gazebo"), joints)
    colors = _materials(robot)
    made = Description(
        root.get("name") or PurePath(file).stem,
        links,
        on_free_joint(links, joints) if floating else joints,
        shapes=tuple(
            shape
            for part in parts
            for shape in part.shapes(partial(drawn, link=part.text("name"), named=colors))
        ),
        notes=tuple(dict.fromkeys(robot.source.notes)),
        where=file,
        actuators=actuators,
    )
    return with_sensors(made, extensions) if extensions else made


def _named(robot: Part, tag: str) -> Iterator[Part]:
    """Yield the elements with the given tag ("link" or "joint"); their names must be unique."""
    first: dict[str, str] = {}
    for element in robot.all(tag):
        yield _distinct(element, first)


def _distinct(element: Part, first: dict[str, str]) -> Part:
    """Return a link or joint with `owner` set; raise an error if its name is already used.

    `first` contains the file and line where each name was first used.
    """
    part, name = element.named(), element.text("name")
    if name in first:
        problem = f"{first[name]} has a {part.tag} with the same name"
        raise part.error("E-URDF-003", problem, "rename one of them")
    first[name] = part.where
    return part


def refusals(robot: Part) -> Iterator[ModelError]:
    """Yield the first error of each link and joint; `read` stops at the first error of the file."""
    for tag, reader in (("link", _link), ("joint", _joint)):
        first: dict[str, str] = {}
        for element in robot.all(tag):
            try:
                reader(_distinct(element, first))
            except ModelError as error:
                yield error


def origin(part: Part) -> Transform:
    """Return the pose in `<origin xyz rpy>`; roll, pitch, yaw are about the fixed x, y, z axes."""
    given = part.find("origin")
    if given is None:
        return Transform.identity()
    return given.placement(given.vector("xyz", "0 0 0"), given.words("rpy", 3, "0 0 0"))


def _link(link: Part) -> LinkData:
    given = link.find("inertial")
    inertia = RigidInertia.zero() if given is None else inertial(given).about_origin()
    return LinkData(link.text("name"), inertia, link.where)


def inertial(part: Part) -> Inertial:
    """Read an `<inertial>`; missing moments are 0, and without `<mass>` the inertia is zero."""
    mass, tensor, pose = part.find("mass"), part.find("inertia"), origin(part)
    if mass is None or "value" not in mass.element.attrib:
        part.note("<inertial> has no mass, so the link has no inertia; add <mass value=.../>")
        return Inertial(0.0, pose, [0.0] * 6)
    absent = [x for x in MOMENTS if tensor is None or x not in tensor.element.attrib]
    if absent:
        part.note(f"inertia has no {', '.join(absent)}; 0 is used; add the missing attributes")
    moments = [0.0 if tensor is None else tensor.number(name, 0.0) for name in MOMENTS]
    return Inertial(mass.number("value"), pose, moments)


# Joints ----------------------------------------------------------------------------------------


def _joint(joint: Part) -> JointData:
    given = joint.text("type")
    kinds = (k for k, row in TYPES.items() if given in row.names.get("URDF", k).split())
    kind = next(kinds, None)
    if kind is None:
        known = spelled("URDF", own=True)
        remedy = one_of(given, known)
        raise joint.error("E-URDF-004", f"unknown type {short(given)}", remedy)
    name, (parent, child) = joint.text("name"), (joint.need(x).text("link") for x in _ENDS)
    data = JointData(name, kind, parent, child, origin(joint), where=joint.where)
    return data if data.kind == "fixed" else _moving(joint, data)


def _moving(joint: Part, data: JointData) -> JointData:
    """Read the axes, limits, damping, friction and mimic relation of a moving joint."""
    kind = TYPES[data.kind]
    axis = joint.find("axis") if kind.along else None
    second = joint.find("axis2") if len(kind.along) == 2 else None
    dynamics, mimic = joint.find("dynamics"), joint.find("mimic")
    numbers: dict[str, Any] = {name: joint.number(name) for name in kind.data}
    limits = _limits(joint, kind.bounds)
    if kind.hinge:
        note_degrees(joint, limits)
    if dynamics is not None:
        numbers |= {key: dynamics.number(key, 0.0) for key in ("damping", "friction")}
    return replace(
        data,
        axis=Vector.of(1.0, 0.0, 0.0) if axis is None else axis.axis(),
        second_axis=None if second is None else second.axis(),
        limits=limits,
        mimic=None if mimic is None else follows(mimic),
        **numbers,
    )


def _motors(gears: Iterable[Part], joints: tuple[JointData, ...]) -> tuple[JointData, ...]:
    """Add rotor inertias to the joints; Drake's files store them in `<transmission>`."""
    found = {joint.name: joint for joint in joints}
    for part in gears:
        actuator, driven = part.find("actuator"), part.find("joint")
        joint = None if driven is None else found.get(driven.element.get("name", ""))
        if joint is None or actuator is None or joint.kind == "fixed":
            continue
        if "SimpleTransmission" in part.text("type", "?"):
            found[joint.name] = reflected(joint, replace(actuator, owner=part_of(joint)), "value")
    return tuple(found.values())


def _limits(joint: Part, bounds: str) -> Limits:
    """Read joint limits; URDF's default bounds are 0, and continuous joints have no bounds."""
    limit = joint.find("limit")
    if limit is None:
        if bounds == "needed":
            joint.note("no limit is given; the joint is taken as unbounded")
        return Limits()
    absent = {"velocity": math.inf, "effort": math.inf}
    if bounds == "needed":
        absent |= {"lower": 0.0, "upper": 0.0}
        for bound, value in absent.items():
            if bound not in limit.element.attrib:
                limit.note(f"no {bound} limit is given; {value:g} is used")
    elif bounds != "none":
        absent |= {"lower": -math.inf, "upper": math.inf}
    given = {bound: limit.number(bound, value) for bound, value in absent.items()}
    return Limits(
        **{k: x if abs(x) < UNBOUNDED else math.copysign(math.inf, x) for k, x in given.items()}
    )


def follows(mimic: Part) -> Mimic:
    """Read a mimic relation from a `<mimic>` element."""
    return Mimic(mimic.text("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))


# Shapes ----------------------------------------------------------------------------------------


def _materials(robot: Part) -> dict[str, Color]:
    """Return the colors of the materials at the top level, by name."""
    found = {part.element.get("name"): _color(part, {}) for part in robot.all("material")}
    return {name: color for name, color in found.items() if name and color is not None}


def drawn(part: Part, link: str, named: Mapping[str, Color]) -> ShapeData:
    """Read a `<visual>` or `<collision>` of a link; meshes are not opened."""
    geometry = part.need("geometry")
    found = geometry.find(*_KINDS)
    if found is None:
        raise geometry.error(
            "E-URDF-005", f"geometry contains none of {', '.join(_KINDS)}", "add one"
        )
    file = found.text("filename") if found.tag == "mesh" else ""
    size = found.sizes()
    if found.tag != "mesh" and min(size) <= 0.0:
        raise found.error("E-URDF-006", f"{found.tag} has no volume", "give positive sizes")
    material = part.find("material") if part.tag == "visual" else None
    color = None if material is None else _color(material, named)
    return ShapeData(link, found.tag, size, origin(part), file, color, part.tag)


def _color(material: Part, named: Mapping[str, Color]) -> Color | None:
    """Return the RGBA color of a material; None if the file does not specify a valid color."""
    color = material.find("color")
    if color is None:
        return named.get(material.element.get("name", ""))
    try:
        return tuple(min(max(float(x), 0.0), 1.0) for x in color.words("rgba", 4))
    except ModelError as error:
        material.source.notes.append(f"{error.message}; the color is ignored")
        return None


# Writing ---------------------------------------------------------------------------------------


def write(description: Description, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a robot that has no loops, at full precision.

    Loading the file gives a robot with the same motion and the same coordinates.

    Screw joints, and joints with several degrees of freedom, are written as joints in series
    (`model.graph`). Frames are written as links that are attached by fixed joints. If joints are
    attached to the world, a link "world" is added. Parts that URDF cannot represent raise an error:
    loops, couplings, armature, other joint types, and gravity other than (0, 0, -9.81).
    """
    notes = check_writable(description, "URDF")
    _check(description)
    source = at_children(in_series(description), lambda joint: not joint.child_pose.is_identity)
    root = xml.added(None, "robot", name=description.name)
    taken, names = taken_names(source)
    world = unused_name("world", taken)
    if any(joint.parent is None for joint in source.joints):
        xml.added(root, "link", name=world)
    for link in source.links:
        _add_link(root, link)
    for joint in source.joints:
        _add_joint(root, joint, world)
    for frame in source.frames:
        xml.added(root, "link", name=frame.name)
        held = unused_name(f"{frame.name}.fixed", names)
        _add_joint(root, JointData(held, "fixed", frame.link, frame.name, frame.pose), world)
    add_springs(root, source)
    left = _add_shapes(root, description) + add_transmissions(root, source)
    store(path, xml.printed(root))
    return (*notes, *left)


def _check(description: Description) -> None:
    """Raise an error for loops, couplings, gravity or joints that URDF cannot represent."""
    closing: list[Named] = [*description.loops, *description.couplings]
    for part in closing:
        raise refusal("E-URDF-007", part, "closes a loop or couples joints", _ELSE)
    if description.gravity != Description.gravity:
        x, y, z = description.gravity
        problem = f"has gravity ({x:g}, {y:g}, {z:g}) instead of (0, 0, -9.81)"
        remedy = f"{_ELSE}, or use robot.with_gravity((0, 0, -9.81))"
        raise refusal("E-URDF-008", description, problem, remedy)
    for joint in in_series(description).joints:
        if "URDF" not in joint.traits.names or (joint.reversed and joint.kind != "fixed"):
            raise refusal("E-URDF-009", joint, lacking(joint), _ELSE)
        if joint.armature and joint.kind != "fixed":
            raise refusal("E-URDF-010", joint, "has an armature", _ELSE)


def _add_origin(element: etree._Element, pose: Transform) -> None:
    xml.added(element, "origin", xyz=words(pose.r), rpy=xml.angles(pose))


def _add_link(root: etree._Element, link: LinkData) -> None:
    element = xml.added(root, "link", name=link.name)
    if link.inertia == RigidInertia.zero():
        return
    mass, center, inertia = link.inertia.about_center()
    inertial = xml.added(element, "inertial")
    xml.added(inertial, "origin", xyz=words(center), rpy="0 0 0")
    xml.added(inertial, "mass", value=words([mass]))
    xml.added(inertial, "inertia", **xml.each(dict(zip(MOMENTS, inertia, strict=True))))


def _add_joint(root: etree._Element, joint: JointData, world: str) -> None:
    """Add a joint with all limits that URDF requires; infinite limits become `UNBOUNDED`."""
    limits = joint.limits
    unbounded = (limits.lower, limits.upper) == (-math.inf, math.inf)
    kind = as_bounded(joint.kind, not unbounded)
    element = xml.added(root, "joint", name=joint.name, type=spelling(kind, "URDF"))
    _add_origin(element, joint.pose)
    xml.added(element, "parent", link=world if joint.parent is None else joint.parent)
    xml.added(element, "child", link=joint.child)
    if kind == "fixed":
        return
    if joint.traits.along:
        xml.added(element, "axis", xyz=words(joint.axis))
    bounds = traits(kind).bounds
    if bounds == "needed" or limits != Limits():
        keys = ("lower", "upper", "effort", "velocity")[2 if bounds == "none" else 0 :]
        given = {key: max(-UNBOUNDED, min(getattr(limits, key), UNBOUNDED)) for key in keys}
        xml.added(element, "limit", **xml.each(given))
    if joint.damping or joint.friction:
        dynamics = {"damping": joint.damping, "friction": joint.friction}
        xml.added(element, "dynamics", **xml.each(dynamics))
    if joint.mimic is not None:
        numbers = {"multiplier": joint.mimic.multiplier, "offset": joint.mimic.offset}
        xml.added(element, "mimic", joint=joint.mimic.joint, **xml.each(numbers))


def _add_shapes(root: etree._Element, source: Description) -> list[str]:
    """Add all shapes to their links; return notes on omitted shapes."""
    notes, links = [], {link.get("name"): link for link in root.iterfind("link")}
    seen = [s.color for s in source.shapes if s.color and s.role == "visual"]
    colors: dict[Color | None, str] = {}
    for k, color in enumerate(dict.fromkeys(seen), start=1):
        colors[color] = f"color {k}"
        xml.added(xml.added(root, "material", name=colors[color]), "color", rgba=words(color))
    for shape in source.shapes:
        if shape.kind not in _KINDS:
            notes.append(
                f"link {shape.link!r}: URDF does not support shapes of type {shape.kind}; "
                "the shape is not written"
            )
            continue
        for part in pieces(shape):
            element = xml.added(links[shape.link], shape.role)
            _add_origin(element, part.pose)
            file = {"filename": part.file} if part.kind == "mesh" else {}
            xml.added(xml.added(element, "geometry"), part.kind, **file, **xml.sizes(part))
            if part.color in colors and shape.role == "visual":
                xml.added(element, "material", name=colors[part.color])
    return notes


def pieces(shape: ShapeData) -> Iterator[ShapeData]:
    """Yield the shape, or the cylinder and two spheres that replace a capsule."""
    if shape.kind != "capsule":
        yield shape
        return
    radius, length = shape.size
    yield replace(shape, kind="cylinder")
    for z in (-0.5 * length, 0.5 * length):
        end = replace(Transform.identity(), r=Vector.of(0.0, 0.0, z))
        yield replace(shape, kind="sphere", size=(radius,), pose=compose(end, shape.pose))
