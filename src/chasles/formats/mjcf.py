"""MJCF files (MuJoCo's XML), compiled by MuJoCo itself: bodies, joints, sites and equalities.

MuJoCo's compiler resolves defaults, includes, frames, angles and inertias from shapes; what it
makes of the file is translated here. The numbers have the names of mjModel, whose meaning is that
of mujoco.readthedocs.io, "Computation" and "XML Reference".
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from lxml import etree

from chasles.formats.files import load
from chasles.formats.mjcf_compiler import compiled
from chasles.formats.xml_document import parse
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import matrix_from_axis_angle, matrix_from_quaternion
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import (
    Description,
    FrameData,
    JointData,
    Limits,
    LinkData,
    LoopData,
    Mimic,
    ModelError,
)
from chasles.model.build import compose

WORLD = "world"
"""MuJoCo's name of body 0, which carries all others and never moves."""

_KINDS = {"hinge": "continuous", "slide": "prismatic", "ball": "spherical", "free": "free"}
"""The model's name for each type of joint; a hinge with limits is revolute."""

_ABOUT_A_POINT = ("hinge", "ball")
"""Joints whose `pos` matters."""

_LOOPS = {"connect": "spherical", "weld": "fixed"}
"""The joint that each equality between two bodies is."""

_PLACES = {
    ".//body": "body",
    "worldbody//joint": "joint",
    "worldbody//freejoint": "joint",
    "worldbody//site": "site",
    "equality/*": "equality",
}
"""Where a file has the parts of each kind."""


def read(path: str | os.PathLike[str], *, snap: bool = True, floating: bool = False) -> Description:
    """What an MJCF file says, as MuJoCo's compiler understands it; the package mujoco is needed.

    Every body is a link, "world" the first; named sites are frames. Coordinates are those of
    MuJoCo, `ref` included, in its order; `chasles.conventions.mujoco` exchanges the numbers of free
    joints. Where a body has several joints, or one that is not at its origin, massless links
    "body.joint" stand between. Equalities connect and weld close loops; linear ones between joints
    are mimic joints, and a constant one makes its joint fixed. Inactive ones, actuators, tendons,
    springs and contacts are left out; notes say so.

    snap: nothing is left to do, MuJoCo has read the angles. floating: put the one body that
    worldbody holds without a joint on a free one, named root_joint.
    """
    file = os.fsdecode(path)
    root = _parse(file)
    source = _Source(file, _lines(root), compiled(file))
    links = [LinkData(WORLD, RigidInertia.zero(), file)]
    joints: list[JointData] = []
    for i in range(1, len(source.bodies)):
        between, chain = _chain(source, i)
        links += [*between, _link(source, i)]
        joints += chain
    if floating:
        joints = _on_free_joint(source, joints)
    loops = _equalities(source, joints)
    _note_unused(source, joints)
    return Description(
        root.get("model") or PurePath(file).stem,
        tuple(links),
        tuple(joints),
        tuple(_frames(source)),
        gravity=Vector(tuple(source["gravity"])),
        notes=tuple(source.notes),
        where=file,
        loops=tuple(loops),
    )


# The file and its parts ------------------------------------------------------------------------


def _parse(file: str) -> etree._Element:
    """The `<mujoco>` element."""
    root = parse(file, load(file))
    if root.tag != "mujoco":
        remedy = (
            "a URDF file ends in .urdf" if root.tag == "robot" else "an MJCF file is a <mujoco>"
        )
        raise ModelError(f"{file}:{root.sourceline}: the document is a <{root.tag}>; {remedy}")
    return root


def _lines(root: etree._Element) -> dict[tuple[str, str], int]:
    """Where the file has a part, by its kind and name."""
    found: dict[tuple[str, str], int] = {}
    for path, kind in _PLACES.items():
        for element in root.iterfind(path):
            line = element.sourceline
            found[kind, element.get("name", "")] = line if isinstance(line, int) else 1
    return found


@dataclass
class _Source:
    """A file being read. lines: see `_lines`. numbers: those of the compiled model, by name."""

    file: str
    lines: dict[tuple[str, str], int]
    numbers: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.links, self.ties = set(self["body"]), {*self["joint"], *self["equality"]}
        self.bodies = [name or self.link(f"body{i}") for i, name in enumerate(self["body"])]
        self.joints = [name or self.tie(f"joint{k}") for k, name in enumerate(self["joint"])]

    def __getitem__(self, name: str) -> Any:
        return self.numbers[name]

    def link(self, wanted: str) -> str:
        """A name that no other link or frame has."""
        return _new(wanted, self.links)

    def tie(self, wanted: str) -> str:
        """A name that no other joint or loop has."""
        return _new(wanted, self.ties)

    def where(self, kind: str, name: str) -> str:
        """ "file:line", or the file alone where it has no such name (includes, replicas)."""
        line = self.lines.get((kind, name)) if name else None
        return self.file if line is None else f"{self.file}:{line}"


def _new(wanted: str, taken: set[str]) -> str:
    names = itertools.chain([wanted], (f"{wanted}_{k}" for k in itertools.count(1)))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name


# Bodies and their joints -----------------------------------------------------------------------


def _link(source: _Source, i: int) -> LinkData:
    """A body; MuJoCo has its inertia about the centre of mass, along principal axes."""
    axes = _pose(source["body_ipos"][i], source["body_iquat"][i])
    xx, yy, zz = source["body_inertia"][i]
    moments = Symmetric(xx, yy, zz, 0.0, 0.0, 0.0)
    inertia = RigidInertia.from_center(source["body_mass"][i], axes.r, axes.E.T @ moments)
    return LinkData(source.bodies[i], inertia, source.where("body", source["body"][i]))


def _chain(source: _Source, i: int) -> tuple[list[LinkData], list[JointData]]:
    """The joints from a body's parent to the body, and the massless links between them.

    `pose` is that of the next joint's frame in the frame of the link before it: axes are the
    body's, origins the joints' anchors, which `anchor` has in the body's frame.
    """
    body, parent = source.bodies[i], source.bodies[source["body_parentid"][i]]
    pose, anchor = _pose(source["body_pos"][i], source["body_quat"][i]), Vector.zero()
    between, joints = [], []
    first, count = source["body_jntadr"][i], source["body_jntnum"][i]
    for k in range(first, first + count):
        where = source.where("joint", source["joint"][k])
        place = anchor
        if source["jnt_type"][k] in _ABOUT_A_POINT:
            place = Vector(tuple(source["jnt_pos"][k]))
        child = body
        if k + 1 < first + count or any(place):
            child = source.link(f"{body}.{source.joints[k]}")
            between.append(LinkData(child, RigidInertia.zero(), where, massless=True))
        moved = compose(_shift(place - anchor), pose)
        joints.append(_joint(source, k, JointData("", "", parent, child, moved, where=where)))
        parent, pose, anchor = child, Transform.identity(), place
    if parent != body:
        pose = compose(_shift(-anchor), pose)
        name, where = source.tie(f"{body}.fixed"), source.where("body", source["body"][i])
        joints.append(JointData(name, "fixed", parent, body, pose, where=where))
    return between, joints


def _joint(source: _Source, k: int, data: JointData) -> JointData:
    """What MuJoCo has of a joint; data has its place at `ref`."""
    kind, dof = source["jnt_type"][k], source["jnt_dofadr"][k]
    limits, limited = Limits(), source["jnt_limited"][k] and kind != "ball"
    if limited:
        lower, upper = source["jnt_range"][k]
        limits = Limits(lower, upper)
    if source["jnt_actfrclimited"][k]:
        limits = replace(limits, effort=max(map(abs, source["jnt_actfrcrange"][k])))
    data = replace(
        data,
        name=source.joints[k],
        kind="revolute" if kind == "hinge" and limited else _KINDS[kind],
        axis=Vector(tuple(source["jnt_axis"][k])),
        limits=limits,
        armature=source["dof_armature"][dof],
        damping=source["dof_damping"][dof],
        friction=source["dof_frictionloss"][dof],
    )
    if kind == "free":  # its numbers are the body's pose in the world
        return replace(data, pose=Transform.identity())
    return _displaced(data, -_reference(source, k))


def _reference(source: _Source, k: int) -> float:
    """The coordinate of a hinge or slide with which the body stands where the file has it."""
    scalar = source["jnt_type"][k] in ("hinge", "slide")
    return source["qpos0"][source["jnt_qposadr"][k]] if scalar else 0.0


def _displaced(joint: JointData, q: float) -> JointData:
    """A joint whose zero is where its coordinate was q."""
    if q == 0.0:
        return joint
    if joint.kind == "prismatic":
        return replace(joint, pose=compose(_shift(joint.axis * q), joint.pose))
    turn = Transform.from_pose(matrix_from_axis_angle(joint.axis, q), Vector.zero())
    return replace(joint, pose=compose(turn, joint.pose))


def _on_free_joint(source: _Source, joints: list[JointData]) -> list[JointData]:
    """The joints, the fixed one of the body that floats now free."""
    held = [joint for joint in joints if joint.parent == WORLD]
    if len(held) == 1 and held[0].kind == "free":
        return joints
    if len(held) != 1 or held[0].kind != "fixed":
        names = ", ".join(repr(joint.child) for joint in held)
        raise ModelError(
            f"{source.file}: worldbody holds {names or 'no body'}; only a single body without "
            "joints can be made to float: leave out floating, or add a <freejoint/>"
        )
    free = JointData(source.tie("root_joint"), "free", WORLD, held[0].child, where=held[0].where)
    return [free if joint is held[0] else joint for joint in joints]


def _frames(source: _Source) -> Iterator[FrameData]:
    """The sites that have names."""
    for k, site in enumerate(source["site"]):
        if site:
            name = source.link(site if site not in source.links else f"{site}_site")
            if name != site:
                where = source.where("site", site)
                source.notes.append(f"{where}: site {site!r}: a body has this name; now {name!r}")
            pose = _pose(source["site_pos"][k], source["site_quat"][k])
            yield FrameData(name, source.bodies[source["site_bodyid"][k]], pose)


# Equalities ------------------------------------------------------------------------------------


def _equalities(source: _Source, joints: list[JointData]) -> list[LoopData]:
    """The loops; in `joints`, those that follow others or are held become so."""
    loops = []
    for k, kind in enumerate(source["eq_type"]):
        given = source["equality"][k]
        where = source.where("equality", given)
        what = f"{where}: equality {given or k!r}"
        if source["equalities_disabled"] or not source["eq_active0"][k]:
            source.notes.append(f"{what} is not active and left out")
        elif kind in _LOOPS:
            name = given or source.tie(f"{kind}{k}")
            (parent, pose), (child, child_pose) = _ends(source, k)
            data = (name, _LOOPS[kind], parent, child, pose)
            loops.append(LoopData(*data, where=where, child_pose=child_pose))
        elif kind == "joint":
            _couple(source, k, joints, what)
        else:
            raise ModelError(
                f"{what}: a {kind} equality cannot be read; take it out, or set active='false'"
            )
    return loops


def _ends(source: _Source, k: int) -> list[tuple[str, Transform]]:
    """The links that an equality joins, and the frames on them that it brings together."""
    ids, data = (source["eq_obj1id"][k], source["eq_obj2id"][k]), source["eq_data"][k]
    if source["eq_objtype"][k] == "site":
        return [
            (
                source.bodies[source["site_bodyid"][s]],
                _pose(source["site_pos"][s], source["site_quat"][s]),
            )
            for s in ids
        ]
    first, second = (source.bodies[i] for i in ids)
    if source["eq_type"][k] == "connect":
        return [(first, _pose(data[:3])), (second, _pose(data[3:6]))]
    return [(first, _pose(data[3:6], data[6:10])), (second, _pose(data[:3]))]


def _couple(source: _Source, k: int, joints: list[JointData], what: str) -> None:
    """q1 - ref1 = c0 + c1 (q2 - ref2): joint 1 follows joint 2, or is held where there is none."""
    i1, i2, (c0, c1, *higher) = source["eq_obj1id"][k], source["eq_obj2id"][k], source["eq_data"][k]
    place = {joint.name: n for n, joint in enumerate(joints)}
    n, offset = place[source.joints[i1]], c0 + _reference(source, i1)
    if i2 < 0:
        source.notes.append(f"{what} holds joint {joints[n].name!r} at {offset:g}; now fixed")
        held = _displaced(joints[n], offset)
        joints[n] = JointData(
            held.name, "fixed", held.parent, held.child, held.pose, where=held.where
        )
        return
    leader = source.joints[i2]
    if any(higher[:3]):
        raise ModelError(
            f"{what}: joint {joints[n].name!r} follows {leader!r} by a polynomial; only linear "
            "ones can be read: give polycoef='a b 0 0 0', or set active='false'"
        )
    if joints[n].kind == "fixed" or joints[n].mimic is not None:
        raise ModelError(
            f"{what}: another equality moves joint {joints[n].name!r} already; let each joint be "
            "joint1 of one equality"
        )
    mimic = Mimic(leader, c1, offset - c1 * _reference(source, i2))
    joints[n] = replace(joints[n], mimic=mimic)


# Notes and numbers -----------------------------------------------------------------------------


def _note_unused(source: _Source, joints: list[JointData]) -> None:
    counts = [f"{what} ({count})" for what, count in source["unused"].items() if count]
    if counts:
        source.notes.append(f"{source.file}: not used: {', '.join(counts)}")
    for joint in joints:
        if joint.kind == "free" and (joint.armature or joint.friction):
            source.notes.append(
                f"{joint.where}: joint {joint.name!r}: armature and friction of a free joint act "
                "along the body's axes; MuJoCo has those of its translation along the world's"
            )


def _pose(
    position: Sequence[float], quaternion: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
) -> Transform:
    R = matrix_from_quaternion(Vector(tuple(quaternion)))
    return Transform.from_pose(R, Vector(tuple(position)))


def _shift(r: Vector) -> Transform:
    return Transform.from_pose(Matrix.identity(), r)
