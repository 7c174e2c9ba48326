"""Write robots as MJCF files, MuJoCo's XML format."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from lxml import etree

from chasles.errors import ModelError
from chasles.formats.files import renamed, words
from chasles.formats.mjcf_equalities import add_equalities, placed
from chasles.formats.mjcf_machine_writer import (
    add_actuators,
    add_fluid,
    add_keyframes,
    add_tendons,
    spring,
    start_of,
)
from chasles.formats.mjcf_sensor_writer import add_sensors
from chasles.formats.registry import mesh_file
from chasles.formats.writable import ball_limits, check_writable, lacking, refusal
from chasles.formats.xml_file import added, each, printed
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import RigidInertia, Transform, inverted
from chasles.model import SHAPE_TRAITS, Description, JointData, LinkData, ShapeData
from chasles.model.build import compose
from chasles.model.description import Limits, some, spelling
from chasles.model.graph import at_children, in_series, unused_name
from chasles.model.machine import UNBOUNDED
from chasles.writing import store

WORLD = "world"
"""Name of MuJoCo's fixed world body."""

_LEAST = 1e-15
"""Smallest mass and principal moment that MuJoCo accepts for a moving body (mjMINVAL)."""

_ROUNDING = 1e-12
"""Tolerance for principal moments of inertia, relative to the moments about the link's origin.

Principal moments about the center of mass are computed by subtraction and lose digits.
"""

_ELSE = "save the robot as .toml"

_ROLES = {
    "visual": {"group": "2", "contype": "0", "conaffinity": "0"},
    "collision": {"group": "3"},
}
"""MJCF attributes of visual and collision shapes; MuJoCo's viewer hides group 3 by default."""

_SUFFIXES = (".stl", ".obj", ".msh")
_MOST_FACES = 200_000
"""Maximum number of triangles that MuJoCo accepts in a binary STL file."""


def write(description: Description, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a mechanism at full precision; return notes on omitted parts.

    Loading the file gives a robot with the same motion and with coordinates in MuJoCo's order.
    Screw joints, and joints with several degrees of freedom, are written as joints in series
    (`model.graph`). Joints that are connected by massless links are written as several joints of
    one body. Frames are written as sites. Loops with spherical joints, revolute joints and welds
    are written as equalities between sites. Mimic joints and polynomial couplings are written as
    equalities between joints, and gears as equalities between fixed tendons. Rotors are written as
    fixed tendons with armature. Other joints and couplings, and inertias that MuJoCo does not
    accept, raise an error.
    """
    notes = check_writable(description, "MJCF")
    source = at_children(in_series(description), _apart)
    writer = _Writer(source, notes, {link.name for link in description.links})
    root = added(None, "mujoco", model=description.name)
    added(root, "compiler", angle="radian")
    add_fluid(added(root, "option", gravity=words(description.gravity)), description)
    # MuJoCo's equalities are soft; make them as stiff as possible
    added(added(root, "default"), "equality", solimp="0.9999 0.9999 0.001")
    bodies = writer.bodies(added(root, "worldbody"))
    add_equalities(root, source, bodies)
    add_tendons(root, source, bodies)
    notes += add_actuators(root, source)
    if description.fluid is not None:
        notes.append("fluid boxes are not written; MuJoCo computes them from the inertias")
    notes += add_keyframes(root, source, writer.written)
    notes += add_sensors(root, replace(source, sensors=description.sensors), bodies, writer.written)
    notes += _add_shapes(root, bodies, description.shapes, os.fsdecode(path))
    named = [pair for pair in description.excluded if bodies.keys() >= {*pair}]
    for pair in named:
        contact = root.find("contact")
        contact = added(root, "contact") if contact is None else contact
        added(
            contact,
            "exclude",
            **{f"body{k}": bodies[x].get("name", "world") for k, x in enumerate(pair, 1)},
        )
    writer.note_what_is_left(description)
    store(path, printed(root))
    return tuple(notes)


def _apart(joint: JointData) -> bool:
    """Return True if a joint frame differs from the body frame in a way that MuJoCo forbids.

    The frame of a free joint must be the body frame. The frame of a ball joint must be parallel to
    the body frame.
    """
    turned = Matrix.identity() != joint.child_pose.R
    moved = joint.traits.floating and not joint.child_pose.is_identity
    return moved or (spelling(joint.kind, "MJCF") == "ball" and turned)


@dataclass
class _Writer:
    """Writer for bodies and joints.

    `named` contains the names of the links in the user's description. `written` contains the names
    of the joints written so far.
    """

    source: Description
    notes: list[str]
    named: set[str]
    written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.links = {link.name: link for link in self.source.links}
        self.joint_of = {joint.child: joint for joint in self.source.joints}
        self.children: dict[str | None, list[JointData]] = {}
        for joint in self.source.joints:
            self.children.setdefault(joint.parent, []).append(joint)
        ends = [end for loop in self.source.loops for end in (loop.parent, loop.child)]
        self.needed = {*ends, *(frame.link for frame in self.source.frames)}
        self.taken = {WORLD, *self.links}

    def bodies(self, world: etree._Element) -> dict[str | None, etree._Element]:
        """Write all bodies and frames; return the XML element of each link (None for the world)."""
        found: dict[str | None, etree._Element] = {None: world}
        pending: list[tuple[str, list[JointData]]] = []
        for link in reversed(self.source.links):
            if link.name not in self.joint_of:
                pending.append((link.name, []))
        pending += reversed([self._series(joint) for joint in self.children.get(None, [])])
        while pending:
            name, series = pending.pop()
            if not series and name == WORLD and self.links[name].inertia == RigidInertia.zero():
                found[name] = world
            else:
                found[name] = self._body(found, name, series)
            pending += reversed([self._series(joint) for joint in self.children.get(name, [])])
        for frame in self.source.frames:
            added(found[frame.link], "site", name=frame.name, **placed(frame.pose))
            if frame.name in self.taken:
                name = unused_name(f"{frame.name}_site", self.taken)
                self.notes.append(
                    f"frame {frame.name!r} is read back as {name!r}, because a body has its name"
                )
        return found

    def _series(self, joint: JointData) -> tuple[str, list[JointData]]:
        """Return the next link to write as a body, and the chain of joints that leads to it."""
        series = [joint]
        while self._passed(series[-1]):
            (after,) = self.children[series[-1].child]
            if not _on_one_body([*series, after]):
                break
            series.append(after)
        return series[-1].child, series

    def _passed(self, joint: JointData) -> bool:
        """Return True if a joint's child link is massless and carries only one other joint."""
        link, carried = self.links[joint.child], self.children.get(joint.child, [])
        empty = link.inertia == RigidInertia.zero()
        return empty and len(carried) == 1 and link.name not in self.needed

    def _body(
        self, found: dict[str | None, etree._Element], name: str, series: list[JointData]
    ) -> etree._Element:
        """Write a body with its pose (all joints at zero), its joints and its inertia."""
        if name == WORLD:
            problem = "MuJoCo reserves this name for the fixed world"
            raise ModelError("E-MJCF-008", problem, "use another name", part=f"link {name!r}")
        moving = [joint for joint in series if joint.kind != "fixed"]
        place, parent = Transform.identity(), found[series[0].parent if series else None]
        for joint in series:
            place = compose(inverted(joint.child_pose), compose(joint.pose, place))
        if any(joint.traits.floating for joint in moving):
            parent, place = found[None], self._floats(series[0], place)
            place = compose(start_of(series[0]), place)
        body = added(parent, "body", name=name, **placed(place))
        if self.links[name].lifted:
            body.set("gravcomp", words([self.links[name].lifted]))
        frames = _frames(series)
        for joint, at in zip(series, frames, strict=True):
            if joint.kind != "fixed":
                self._joint(body, joint, at)
        self._inertia(body, self.links[name], moves=bool(moving))
        self._note_passed(name, series, frames)
        return body

    def _floats(self, joint: JointData, place: Transform) -> Transform:
        """Convert the pose of a free joint to the world frame, as MuJoCo requires."""
        link = joint.parent
        while link in self.joint_of and self.joint_of[link].kind == "fixed":
            held = self.joint_of[link]
            place = compose(place, compose(inverted(held.child_pose), held.pose))
            link = held.parent
        if link in self.joint_of:
            remedy = f"{_ELSE}, or attach the free joint to the world"
            raise refusal("E-MJCF-009", joint, "is a free joint on a moving link", remedy)
        if not place.is_identity:
            self.notes.append(f"joint {joint.name!r}: its coordinates are the pose in the world")
        return place

    def _note_passed(self, body: str, series: list[JointData], frames: list[Transform]) -> None:
        """Add a note on each massless link that is omitted because it is not a body in MJCF."""
        for joint, frame in zip(series[:-1], frames, strict=False):
            name = unused_name(f"{body}.{joint.name}", self.taken)
            kept = name == joint.child and compose(inverted(joint.child_pose), frame).is_identity
            if joint.child in self.named and not kept:
                self.notes.append(
                    f"link {joint.child!r} is not a body in MJCF; its frame is not written"
                )

    def _joint(self, body: etree._Element, joint: JointData, at: Transform) -> None:
        """Write a joint; `at` is its pose in the body frame."""
        kind, limits = spelling(joint.kind, "MJCF"), joint.limits
        if not kind or joint.reversed:
            raise refusal("E-MJCF-010", joint, lacking(joint), _ELSE)
        if kind == "ball" and Matrix.identity() != at.R:
            problem = "is preceded by joints whose axes are rotated relative to the ball joint"
            raise refusal("E-MJCF-011", joint, problem, _ELSE)
        given = {"name": joint.name, "type": kind}
        if kind in ("hinge", "slide"):
            given["axis"] = words(at.R @ joint.axis)
            if (limits.lower, limits.upper) != (-math.inf, math.inf):
                given |= self._range(joint, "range", limits.lower, limits.upper)
            if limits.effort != math.inf and joint.forces == UNBOUNDED:
                given |= self._range(joint, "actuatorfrcrange", -limits.effort, limits.effort)
        if kind == "ball" and 0.0 < limits.upper < math.inf:
            given["range"] = words([0.0, limits.upper])
        if kind in ("hinge", "ball") and at.r != Vector.zero():
            given["pos"] = words(at.r)
        resistance = {"armature": joint.armature, "damping": joint.damping}
        resistance |= {"frictionloss": joint.friction}
        given |= each({k: x for k, x in resistance.items() if x})
        added(body, "joint", **given, **spring(joint))
        self.written.append(joint.name)

    def _range(self, joint: JointData, key: str, lower: float, upper: float) -> dict[str, str]:
        if lower < upper:
            return {key: words([lower, upper])}
        what = f"{key} {lower:g} to {upper:g} is not written; MuJoCo requires lower < upper"
        self.notes.append(f"joint {joint.name!r}: {what}")
        return {}

    def _inertia(self, body: etree._Element, link: LinkData, *, moves: bool) -> None:
        if moves and not self._heavy(link.name):
            problem = "is moved by a joint, but its mass or inertia is zero"
            raise refusal(
                "E-MJCF-012", link, problem, f"give it mass and inertia, or {_ELSE} or .urdf"
            )
        if link.inertia == RigidInertia.zero():
            return
        mass, center, _ = link.inertia.about_center()
        moments, R = _principal(link)
        place = placed(Transform.from_pose(R, center))
        place.setdefault("pos", "0 0 0")
        added(body, "inertial", mass=words([mass]), diaginertia=words(moments), **place)

    def _heavy(self, name: str) -> bool:
        """Return True if a moving body has at least the mass and inertia that MuJoCo requires.

        A body that is fixed to the moving body may provide the mass and inertia instead.
        """
        mass, moments = self.links[name].inertia.m, _principal(self.links[name])[0]
        if min(mass, *moments) >= _LEAST:
            return True
        carried = self.children.get(name, [])
        return any(self._heavy(joint.child) for joint in carried if joint.kind == "fixed")

    def note_what_is_left(self, description: Description) -> None:
        """Add notes on omitted limits, on free-joint friction and on a changed coordinate order."""
        self.notes += ball_limits(
            j
            for j in description.joints
            if spelling(j.kind, "MJCF") != "ball" or j.limits != Limits(upper=j.limits.upper)
        )
        self.notes += [
            f"joint {j.name!r}: translational friction of a free joint acts along the "
            "world axes in MuJoCo, but along the body axes in chasles"
            for j in description.joints
            if j.traits.floating and j.friction
        ]
        single = (j for j in description.joints if "1" not in j.traits.units)
        if speeds := [j.name for j in single if j.limits.velocity != math.inf]:
            self.notes.append(f"MJCF does not store velocity limits: {some(speeds)}")
        moving = set(self.written)
        order = [j.name for j in self.source.joints if j.name in moving]
        if order != self.written:
            self.notes.append(f"coordinates are written in MuJoCo's order: {some(self.written)}")


def _on_one_body(series: list[JointData]) -> bool:
    """Return True if MuJoCo allows all joints in a series on one body.

    A body may have up to six degrees of freedom, and no rotation may follow a ball joint. A free
    joint must be the only joint of its body.
    """
    kinds = [spelling(joint.kind, "MJCF") for joint in series]
    turns_after = kinds[kinds.index("ball") + 1 :] if "ball" in kinds else []
    count = len(kinds) + 2 * kinds.count("ball")
    alone = all(kinds) and not any(joint.traits.floating for joint in series)
    return alone and count <= 6 and not {"ball", "hinge"} & set(turns_after)


def _frames(series: list[JointData]) -> list[Transform]:
    """Return the joint poses in the frame of the last child link, with all joints at zero."""
    found, link = [], Transform.identity()
    for joint in reversed(series):
        found.append(compose(joint.child_pose, link))
        link = compose(inverted(joint.pose), found[-1])
    return found[::-1]


def _principal(link: LinkData) -> tuple[list[float], Matrix]:
    """Return the principal moments about the center of mass, and their axes in the link frame."""
    inertia = np.array(link.inertia.about_center()[2].matrix().rows, dtype=float)
    if np.count_nonzero(inertia - np.diag(np.diag(inertia))):
        moments, axes = np.linalg.eigh(inertia)
        axes *= np.sign(np.linalg.det(axes))
    else:
        moments, axes = np.diag(inertia).copy(), np.eye(3)
    k = int(np.argmax(moments))
    others = moments.sum() - moments[k]
    slack = _ROUNDING * max(map(abs, link.inertia.I))
    if moments.min() < -slack or moments[k] > others + slack or link.inertia.m < 0.0:
        a, b, c = moments
        body = f"mass {link.inertia.m:g} and principal moments {a:g}, {b:g}, {c:g}"
        remedy = f"correct the inertia, or {_ELSE} or .urdf"
        raise refusal("E-MJCF-013", link, f"has the physically impossible {body}", remedy)
    moments[k] = min(moments[k], others)
    return [max(x, 0.0) for x in moments.tolist()], Matrix(tuple(map(tuple, axes.tolist())))


# Shapes ----------------------------------------------------------------------------------------


def _add_shapes(
    root: etree._Element,
    bodies: Mapping[str | None, etree._Element],
    shapes: tuple[ShapeData, ...],
    file: str,
) -> list[str]:
    """Write shapes to their bodies; return notes on omitted shapes."""
    notes: list[str] = []
    meshes: dict[tuple[str, tuple[float, ...]], str] = {}
    for shape in shapes:
        given, mesh = dict(_ROLES[shape.role]), ""
        if shape.kind == "mesh":
            mesh, trouble = _mesh(shape, file)
            if trouble:
                notes.append(
                    f"link {shape.link!r}: mesh {shape.file} {trouble}; the shape is not written"
                )
                continue
            given["mesh"] = meshes.setdefault((mesh, shape.size), f"mesh {len(meshes) + 1}")
        else:
            halved = SHAPE_TRAITS[shape.kind].halved  # MuJoCo stores half lengths, but full radii
            given["size"] = words(0.5 * x if k in halved else x for k, x in enumerate(shape.size))
        if shape.link not in bodies:
            notes.append(f"link {shape.link!r} is not a body in MJCF; its shape is not written")
            continue
        if shape.bits is not None:
            given |= {"contype": f"{shape.bits[0]}", "conaffinity": f"{shape.bits[1]}"}
        if shape.color is not None and shape.role == "visual":
            given["rgba"] = words(shape.color)
        body = bodies[shape.link]
        if body.find("inertial") is None:
            given["mass"] = "0"  # otherwise MuJoCo computes the mass from the shape
        added(body, "geom", type=shape.kind, **given, **placed(shape.pose))
    if meshes:
        assets = added(root, "asset")
        for (mesh, scale), name in meshes.items():
            # "shell" also works for open or flat surfaces, which have no volume
            added(assets, "mesh", name=name, file=mesh, scale=words(scale), inertia="shell")
    return notes


def _mesh(shape: ShapeData, file: str) -> tuple[str, str]:
    """Return a mesh file's path for MJCF, and the reason why MuJoCo cannot read the file, or ""."""
    path = mesh_file(shape.file, file)
    if path is None:
        return "", "was not found"
    if path.suffix.lower() not in _SUFFIXES:
        return "", f"has a type that MuJoCo does not read ({', '.join(_SUFFIXES)})"
    if path.suffix.lower() == ".stl" and not _binary(path):
        return (
            "",
            f"is not a binary STL file with at most {_MOST_FACES} triangles, which MuJoCo requires",
        )
    return renamed(path.name, os.fspath(path), file), ""


def _binary(path: Path) -> bool:
    """Return True if a file is a binary STL file with at most `_MOST_FACES` triangles."""
    with path.open("rb") as stream:
        count = int.from_bytes(stream.read(84)[80:], "little")
    return 0 < count <= _MOST_FACES and path.stat().st_size == 84 + 50 * count
