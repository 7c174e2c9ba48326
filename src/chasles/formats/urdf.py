"""URDF files: links, joints and inertias, with errors and notes that say where.

The format is that of wiki.ros.org/urdf/XML. Joint types beyond it: spherical, yaw_pitch_roll,
universal (`<axis>` and an optional perpendicular `<axis2>`), cylindrical, sphere_in_cylinder,
helical (attribute `pitch`, m/rad), rack_and_pinion and rolling (attribute `radius`, m).
Transmissions and simulator extensions are ignored; no other file is ever opened.
"""

import math
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from lxml import etree

from chasles.errors import ModelError
from chasles.formats.files import load, short
from chasles.formats.urdf_shapes import materials, origin, shapes
from chasles.formats.xml_document import parse
from chasles.formats.xml_part import MOMENTS, Inertial, Part, Source
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import Description, JointData, Limits, LinkData, Mimic
from chasles.model.graph import on_free_joint
from chasles.model.joints import spelled

UNBOUNDED = sys.float_info.max
"""Stands for no limit where one must be given: readers of the format take no "inf"."""


def read(path: str | os.PathLike[str], *, snap: bool = True, floating: bool = False) -> Description:
    """What a URDF file says.

    snap: an angle whose five or more printed digits are those of a multiple of a right angle,
    rounded or truncated, is taken as that multiple, with exact sine and cosine; notes say where.
    floating: put the root link on a free joint, named root_joint.
    """
    file = os.fsdecode(path)
    return described(file, parse(file, load(file)), snap=snap, floating=floating)


def described(file: str, root: etree._Element, *, snap: bool, floating: bool) -> Description:
    """What a document says that stands in a file."""
    if root.tag.rpartition("}")[2] != "robot":
        problem = f"the document is a <{root.tag}>"
        remedy = "a URDF file is a <robot>"
        raise ModelError("E-URDF-001", problem, remedy, file=f"{file}:{root.sourceline}")
    source = Source(file, root.tag.removesuffix("robot"), snap, [])
    parts = tuple(_named(source, root, "link"))
    if not parts:
        raise Part(source, root, "robot").error("E-URDF-002", "there are no links", "add a <link>")
    links = tuple(map(_link, parts))
    joints = tuple(map(_joint, _named(source, root, "joint")))
    if floating:
        joints = on_free_joint(links, joints)
    name = root.get("name") or PurePath(file).stem
    colors = materials(Part(source, root, "robot"))
    seen = tuple(shape for part in parts for shape in shapes(part, colors))
    notes = tuple(dict.fromkeys(source.notes))
    return Description(name, links, joints, notes=notes, where=file, shapes=seen)


# The file and its elements ---------------------------------------------------------------------


def _named(source: Source, root: etree._Element, tag: str) -> Iterator[Part]:
    """The links or the joints; no two may have the same name."""
    first: dict[str, str] = {}
    for element in Part(source, root, "robot").all(tag):
        part, name = element.named(), element.text("name")
        if name in first:
            problem = f"{first[name]} has a {tag} of the same name"
            raise part.error("E-URDF-003", problem, "rename one of them")
        first[name] = part.where
        yield part


# What the elements say -------------------------------------------------------------------------


def _link(link: Part) -> LinkData:
    given = link.find("inertial")
    inertia = RigidInertia.zero() if given is None else inertial(given).about_origin()
    return LinkData(link.text("name"), inertia, link.where)


def inertial(part: Part) -> Inertial:
    """What an `<inertial>` says."""
    mass, tensor = part.need("mass").number("value"), part.need("inertia")
    pose = origin(part)
    return Inertial(mass, pose, list(map(tensor.number, MOMENTS)))


def _joint(joint: Part) -> JointData:
    given, kinds = joint.text("type"), spelled("URDF", own=True)
    if given not in kinds:
        problem = f"unknown type {short(given)}"
        raise joint.error("E-URDF-004", problem, f"use one of {', '.join(kinds)}")
    data = JointData(
        joint.text("name"),
        kinds[given],
        joint.need("parent").text("link"),
        joint.need("child").text("link"),
        origin(joint),
        where=joint.where,
    )
    return data if data.kind == "fixed" else _moving(joint, data)


def _moving(joint: Part, data: JointData) -> JointData:
    """The data of a joint, with what only a moving one has."""
    axis = joint.find("axis") if data.traits.along else None
    second = joint.find("axis2") if len(data.traits.along) == 2 else None
    dynamics, mimic = joint.find("dynamics"), joint.find("mimic")
    sizes: dict[str, Any] = {name: joint.number(name) for name in data.traits.data}
    return replace(
        data,
        axis=Vector.of(1.0, 0.0, 0.0) if axis is None else _axis(axis),
        second_axis=None if second is None else _axis(second),
        **sizes,
        limits=_limits(joint, data.traits.bounds),
        damping=0.0 if dynamics is None else dynamics.number("damping", 0.0),
        friction=0.0 if dynamics is None else dynamics.number("friction", 0.0),
        mimic=None if mimic is None else follows(mimic),
    )


def _axis(axis: Part) -> Vector:
    """A unit vector in the joint's frame."""
    return axis.unit(axis.vector("xyz"))


def _limits(joint: Part, bounds: str) -> Limits:
    """Bounds; URDF takes an absent lower or upper as 0, and gives a continuous joint neither."""
    limit = joint.find("limit")
    if limit is None:
        if bounds == "needed":
            joint.note("no limit is given; taken as unbounded")
        return Limits()
    absent = {"velocity": math.inf, "effort": math.inf}
    if bounds == "needed":
        absent |= {"lower": 0.0, "upper": 0.0}
        for bound, value in absent.items():
            if bound not in limit.element.attrib:
                limit.note(f"no {bound} limit is given; taken as {value:g}")
    elif bounds != "none":
        absent |= {"lower": -math.inf, "upper": math.inf}
    given = {bound: limit.number(bound, value) for bound, value in absent.items()}
    return Limits(
        **{k: x if abs(x) < UNBOUNDED else math.copysign(math.inf, x) for k, x in given.items()}
    )


def follows(mimic: Part) -> Mimic:
    """What a `<mimic>` says."""
    return Mimic(mimic.text("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))
