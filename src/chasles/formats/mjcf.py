"""Read MJCF files, MuJoCo's XML format, with MuJoCo's compiler.

The compiler resolves defaults, includes, frames and angle units, and computes inertias from shapes.
This module converts the compiled model. Array names are the fields of mjModel; see the chapters
"Computation" and "XML Reference" at mujoco.readthedocs.io.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from chasles.errors import ModelError
from chasles.formats.mjcf_equalities import Equalities, equalities
from chasles.formats.mjcf_machine import (
    Tendons,
    actuators,
    fluid,
    keyframes,
    position,
    unsupported,
)
from chasles.formats.mjcf_sensors import sensors
from chasles.formats.mjcf_source import Source, opened, pose
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import matrix_from_axis_angle
from chasles.mathematics.spatial import RigidInertia, Transform, inverted
from chasles.model import (
    SHAPE_TRAITS,
    SHAPES,
    Description,
    FrameData,
    HeightFieldData,
    JointData,
    Limits,
    LinkData,
    ShapeData,
)
from chasles.model.build import compose
from chasles.model.description import as_bounded, spelled
from chasles.model.machine import UNBOUNDED

WORLD = "world"
"""Name of MuJoCo's body 0, the fixed root of the kinematic tree."""

_ABOUT_A_POINT = ("hinge", "ball")
"""Types of joints that rotate the body about the anchor point `pos`."""

_SHOWN = (0, 1, 2)
"""Geom groups visible in MuJoCo's viewer; collision shapes are usually in other groups."""


def read(path: str | os.PathLike[str], *, snap: bool = True, floating: bool = False) -> Description:
    """Read an MJCF file as MuJoCo's compiler interprets it; requires the package mujoco.

    Every body becomes a link; the first link is "world". Named sites become frames. Coordinates are
    the same as in MuJoCo, including `ref`, and in the same order; `chasles.conventions.mujoco`
    converts the coordinates of free joints. If a body has several joints, massless links
    "body.joint" are inserted between them. The equalities `connect` and `weld` close loops. If an
    equality between joints is linear, the dependent joint becomes a mimic joint; if it is constant,
    the joint becomes a fixed joint; otherwise, the equality becomes a coupling. Equalities between
    fixed tendons also become couplings. The armature of an actuator is added to its joint; the
    armature of a fixed tendon over several joints becomes a rotor. Springs, tendons, actuators,
    gravity compensation, fluid and keyframes are read as MuJoCo defines them. Inactive equalities
    and contacts are ignored with a note, and unsupported parts with a warning.

    `snap` has no effect, because MuJoCo converts the angles. If `floating` is True, attach the only
    body in worldbody to the world by a free joint named root_joint; the body must not have other
    joints.
    """
    source = opened(os.fsdecode(path))
    links = [LinkData(WORLD, RigidInertia.zero(), source.file)]
    joints: list[JointData] = []
    for i in range(1, len(source.bodies)):
        between, chain = _chain(source, i)
        links += [*between, _link(source, i)]
        joints += chain
    if floating:
        joints = _on_free_joint(source, joints)
    found = equalities(source)
    frames, tied = tuple(_frames(source)), Tendons(source, found.held)
    joints, rotors = tied.read(joints)
    driven = actuators(source, tied, found.held)
    measured, unread = sensors(source, set(found.held), tied.names)
    shapes, planes, fields = dict(_shapes(source)), dict(_planes(source)), dict(_fields(source))
    _note_unused(source, joints)
    return Description(
        source.model or PurePath(source.file).stem,
        tuple(links),
        tuple(_tied(joint, found) for joint in joints),
        (*frames, *tied.sites),
        gravity=Vector(tuple(source["gravity"])),
        notes=tuple(source.notes),
        where=source.file,
        loops=tuple(found.loops),
        couplings=tuple(found.couplings),
        rotors=tuple(rotors),
        shapes=tuple(shapes.values()),
        planes=tuple(planes.values()),
        fields=tuple(fields.values()),
        paired=tuple(_paired(source, shapes | planes | fields)),
        excluded=tuple((source.bodies[a], source.bodies[b]) for a, b in source["excluded"]),
        sensors=tuple(measured),
        actuators=driven,
        keyframes=tuple(keyframes(source, driven)),
        fluid=fluid(source),
        unsupported=(*unsupported(source), *unread),
    )


def _link(source: Source, i: int) -> LinkData:
    """Return the link for a body.

    MuJoCo stores the principal moments of inertia about the center of mass. If the inertial frame
    differs from the body frame only by rounding errors, MuJoCo uses the body frame instead.
    """
    axes = pose(source["body_ipos"][i], source["body_iquat"][i])
    if source["body_sameframe"][i] == "body":
        axes = Transform.identity()
    xx, yy, zz = source["body_inertia"][i]
    tensor = axes.E.T @ Symmetric(xx, yy, zz, 0.0, 0.0, 0.0)
    inertia = RigidInertia.from_center(source["body_mass"][i], axes.r, tensor)
    lifted = source["body_gravcomp"][i]
    return LinkData(source.bodies[i], inertia, source.where("body", i), lifted=lifted)


# Joints ----------------------------------------------------------------------------------------


def _chain(source: Source, i: int) -> tuple[list[LinkData], list[JointData]]:
    """Return the massless links and the joints between a body and its parent."""
    body, parent = source.bodies[i], source.bodies[source["body_parentid"][i]]
    place, between, joints = pose(source["body_pos"][i], source["body_quat"][i]), [], []
    first, count = source["body_jntadr"][i], source["body_jntnum"][i]
    for k in range(first, first + count):
        child, where = body, source.where("joint", k)
        if k + 1 < first + count:
            child = source.link(f"{body}.{source.joints[k]}")
            between.append(LinkData(child, RigidInertia.zero(), where, massless=True))
        joints.append(_joint(source, k, JointData("", "", parent, child, place, where=where)))
        parent, place = child, Transform.identity()
    if not joints:
        name = source.tie(f"{body}.fixed")
        joints.append(JointData(name, "fixed", parent, body, place, where=source.where("body", i)))
    return between, joints


def _joint(source: Source, k: int, data: JointData) -> JointData:
    """Fill in a joint from MuJoCo's arrays; `data.pose` is the child's pose at coordinate `ref`."""
    kind, dof = source["jnt_type"][k], source["jnt_dofadr"][k]
    limits, limited = Limits(), source["jnt_limited"][k] and kind != "ball"
    if limited:
        lower, upper = source["jnt_range"][k]
        limits = Limits(lower, upper)
    elif source["jnt_limited"][k]:
        limits = Limits(upper=max(source["jnt_range"][k]))
    forces = UNBOUNDED
    if source["jnt_actfrclimited"][k]:
        lower, upper = forces = tuple(source["jnt_actfrcrange"][k])
        limits = replace(limits, effort=max(abs(lower), abs(upper)))
    data = replace(
        data,
        name=source.joints[k],
        kind=as_bounded(spelled("MJCF")[kind], bool(limited)),
        axis=Vector(tuple(source["jnt_axis"][k])),
        limits=limits,
        armature=source["dof_armature"][dof] + source["armature"]["joint"][k],
        damping=source["dof_damping"][dof] + source["damping"]["joint"][k],
        friction=source["dof_frictionloss"][dof],
        stiffness=source["jnt_stiffness"][k],
        rest=position(source, k, source["qpos_spring"]) if source["jnt_stiffness"][k] else (),
        start=position(source, k, source["qpos0"]),
        forces=forces,
        lifted=bool(source["jnt_actgravcomp"][k]),
    )
    if data.traits.floating:  # the coordinates of a free joint are its body's pose in the world
        return replace(data, pose=Transform.identity())
    if kind in _ABOUT_A_POINT:
        anchor = pose(source["jnt_pos"][k])
        data = replace(data, pose=compose(anchor, data.pose), child_pose=anchor)
    return _displaced(data, -source.reference(k))


def _displaced(joint: JointData, q: float) -> JointData:
    """Move the zero position of a joint to the position where its coordinate is q."""
    if q == 0.0:
        return joint
    if joint.traits.units == ("m",):
        motion = pose(list(joint.axis * q))
    else:
        motion = Transform.from_pose(matrix_from_axis_angle(joint.axis, q), Vector.zero())
    return replace(joint, pose=compose(motion, joint.pose))


def _tied(joint: JointData, found: Equalities) -> JointData:
    """Apply the equalities to a joint; it may become a fixed joint or a mimic joint."""
    if joint.name in found.held:
        fixed = _displaced(joint, found.held[joint.name])
        held = JointData(fixed.name, "fixed", fixed.parent, fixed.child, fixed.pose)
        return replace(held, child_pose=fixed.child_pose, where=fixed.where)
    return replace(joint, mimic=found.followers.get(joint.name))


def _on_free_joint(source: Source, joints: list[JointData]) -> list[JointData]:
    """Replace the fixed joint between the world and the only root body with a free joint."""
    held = [joint for joint in joints if joint.parent == WORLD]
    if len(held) == 1 and held[0].traits.floating:
        return joints
    if len(held) != 1 or held[0].kind != "fixed":
        names = ", ".join(repr(joint.child) for joint in held)
        problem = f"worldbody contains {names or 'no body'} instead of one body without joints"
        remedy = "omit `floating`"
        raise ModelError("E-MJCF-001", problem, remedy, file=source.file)
    free = JointData(source.tie("root_joint"), "free", WORLD, held[0].child, where=held[0].where)
    return [free if joint is held[0] else joint for joint in joints]


# Shapes, frames and notes ---------------------------------------------------------------------


def _paired(source: Source, made: Mapping[int, ShapeData]) -> Iterator[tuple[ShapeData, ShapeData]]:
    """Yield explicit contact pairs, which ignore contype; both shapes get the pair's friction."""
    for a, b, directions, (slide, _, spin, roll, _) in source["paired"]:
        if a in made and b in made:
            own = {"friction": (slide, spin, roll), "directions": directions, "bits": (1, 1)}
            yield replace(made[a], **own), replace(made[b], **own)


def _shapes(source: Source) -> Iterator[tuple[int, ShapeData]]:
    """Yield all shapes except planes, height fields and missing meshes.

    MuJoCo stores half lengths, and aligns the frame of a mesh with its principal axes of inertia.
    """
    folder = os.path.join(os.path.dirname(os.path.abspath(source.file)), "")
    for k, kind in enumerate(source["geom_type"]):
        if kind not in SHAPES or k in source["stubs"]:
            continue
        halved, file = SHAPE_TRAITS[kind].halved, ""
        size = [2.0 * x if i in halved else x for i, x in enumerate(source["geom_size"][k])]
        place = pose(source["geom_pos"][k], source["geom_quat"][k])
        if kind == "mesh":
            mesh = source["geom_dataid"][k]
            file, size = source["mesh_file"][mesh].removeprefix(folder), source["mesh_scale"][mesh]
            principal = pose(source["mesh_pos"][mesh], source["mesh_quat"][mesh])
            place = compose(inverted(principal), place)
            if not file:
                continue
        visual, link = source["geom_group"][k] in _SHOWN, source.bodies[source["geom_bodyid"][k]]
        color = tuple(source["geom_color"][k]) if visual else None
        role = "visual" if visual else "collision"
        made = ShapeData(link, kind, tuple(size[: SHAPES[kind]]), place, file, color, role)
        yield k, replace(made, **_touch(source, k))


def _planes(source: Source) -> Iterator[tuple[int, ShapeData]]:
    """Yield all planes, which are infinite; MuJoCo uses their size only for rendering."""
    for k, kind in enumerate(source["geom_type"]):
        if kind == "plane":
            place = pose(source["geom_pos"][k], source["geom_quat"][k])
            link = source.bodies[source["geom_bodyid"][k]]
            yield k, ShapeData(link, kind, (), place, role="collision", **_touch(source, k))


def _fields(source: Source) -> Iterator[tuple[int, HeightFieldData]]:
    """Yield all height fields."""
    for k, kind in enumerate(source["geom_type"]):
        if kind == "hfield" and (heights := source["hfield"][source["geom_dataid"][k]]):
            x, y, _, base = source["hfield_size"][source["geom_dataid"][k]]
            place = pose(source["geom_pos"][k], source["geom_quat"][k])
            link, rows = source.bodies[source["geom_bodyid"][k]], tuple(map(tuple, heights))
            made = HeightFieldData(link, kind, (2.0 * x, 2.0 * y), place, role="collision")
            yield k, replace(made, heights=rows, base=base, **_touch(source, k))


def _touch(source: Source, k: int) -> dict[str, Any]:
    """Return the contact properties of a shape as fields of `ShapeData`."""
    return {
        "bits": (source["geom_contype"][k], source["geom_conaffinity"][k]),
        "friction": tuple(source["geom_friction"][k]),
        "directions": source["geom_condim"][k],
        "priority": source["geom_priority"][k],
    }


def _frames(source: Source) -> Iterator[FrameData]:
    """Yield a frame for each named site."""
    for k, site in enumerate(source["site"]):
        if site:
            name = source.link(site if site not in source.links else f"{site}_site")
            source.frames[k] = name
            if name != site:
                what = f"site {site!r}: a link has the same name; the frame is named {name!r}"
                source.notes.append(f"{source.where('site', k)}: {what}")
            place = pose(source["site_pos"][k], source["site_quat"][k])
            yield FrameData(name, source.bodies[source["site_bodyid"][k]], place)


def _note_unused(source: Source, joints: list[JointData]) -> None:
    if count := source["mocap"]:
        what = f"bodies moved by the user (mocap) are fixed at their initial pose ({count})"
        source.notes.append(f"{source.file}: {what}")
    if count := source["touching"]:
        what = f"contacts of the shapes ({count}) act only in simulations with contacts='file'"
        source.notes.append(f"{source.file}: {what}")
    if absent := source["absent"]:
        names = ", ".join(absent[:4]) + (", ..." if len(absent) > 4 else "")
        what = f"{len(absent)} missing files, not needed to load the robot: {names}"
        source.notes.append(f"{source.file}: {what}")
    for joint in joints:
        if joint.traits.floating and joint.friction:
            source.notes.append(
                f"{joint.where}: joint {joint.name!r}: translational friction of a free "
                "joint acts along the body axes; MuJoCo applies it along the world axes"
            )
