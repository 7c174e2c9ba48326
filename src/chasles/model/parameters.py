"""Named parameters of a mechanism, whose values can be replaced by numbers or symbols.

| name | shape | meaning |
|---|---|---|
| `<link>.mass` | () | mass, kg |
| `<link>.center` | (3,) | center of mass in the link's frame, m |
| `<link>.inertia` | (3, 3) | rotational inertia about the center of mass, link axes, kg m2 |
| `<joint>.placement` | (4, 4) | pose of the joint's frame in the parent link's frame |
| `<joint>.stiffness` | () | stiffness of the joint's spring, N m/rad or N/m |
| `<joint>.damping` | () | damping, N m s/rad or N s/m |
| `<joint>.friction` | () | dry friction, N m or N |
| `<joint>.armature` | () | rotor inertia reflected to the joint, kg m2 or kg |
| `gravity` | (3,) | acceleration of gravity, world axes, m/s2 |
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chasles.errors import ModelError
from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model.description import Description, JointData, LinkData
from chasles.model.given import a_name
from chasles.names import similar

SHAPES: dict[str, tuple[int, ...]] = {
    "mass": (),
    "center": (3,),
    "inertia": (3, 3),
    "placement": (4, 4),
    "stiffness": (),
    "damping": (),
    "friction": (),
    "armature": (),
    "gravity": (3,),
}

JOINT_NUMBERS = ("stiffness", "damping", "friction", "armature")
"""Names of the joint parameters that are scalars."""


def shape(source: Description, name: str) -> tuple[int, ...]:
    """Return the shape of a parameter. Raise an error if the parameter does not exist."""
    part, _, what = a_name("a parameter", name).rpartition(".")
    known = {
        "mass": {link.name for link in source.links},
        "placement": {joint.name for joint in source.joints},
        "gravity": {""},
    }
    known["center"] = known["inertia"] = known["mass"]
    known |= dict.fromkeys(JOINT_NUMBERS, known["placement"])
    if what not in SHAPES or part not in known[what]:
        joint = ", ".join(f".{what}" for what in JOINT_NUMBERS)
        names = (f"{part}.{what}".lstrip(".") for what, parts in known.items() for part in parts)
        remedy = similar(name, tuple(names))
        if not remedy:
            remedy = f"use <link>.mass, .center, .inertia, <joint>.placement, {joint} or gravity"
        raise ModelError("E-MODEL-038", f"robot {source.name!r} has no parameter {name!r}", remedy)
    return SHAPES[what]


def nominal(source: Description, name: str) -> list[float]:
    """Return the current value of a parameter as a flat list."""
    shape(source, name)
    part, _, what = name.rpartition(".")
    if what == "gravity":
        return list(source.gravity)
    if what in JOINT_NUMBERS:
        return [next(getattr(joint, what) for joint in source.joints if joint.name == part)]
    if what == "placement":
        pose = next(joint.pose for joint in source.joints if joint.name == part)
        return [float(x) for row in pose.homogeneous.rows for x in row]
    inertia = next(link.inertia for link in source.links if link.name == part)
    m, c, I = inertia.about_center()
    flat = {"mass": [m], "center": list(c), "inertia": [x for row in I.matrix().rows for x in row]}
    return flat[what]


def substituted(source: Description, values: Mapping[str, Sequence[Number]]) -> Description:
    """Return the description with named parameters replaced by flat lists of numbers or symbols."""
    for name in values:
        shape(source, name)
    gravity = Vector(tuple(values.get("gravity", source.gravity.entries)))
    links = tuple(_link(link, values) for link in source.links)
    joints = tuple(_joint(joint, values) for joint in source.joints)
    return replace(source, gravity=gravity, links=links, joints=joints)


def _link(link: LinkData, values: Mapping[str, Sequence[Number]]) -> LinkData:
    names = {what: f"{link.name}.{what}" for what in ("mass", "center", "inertia")}
    if not any(name in values for name in names.values()):
        return link
    m, c, I = link.inertia.about_center()
    if names["mass"] in values:
        (m,) = values[names["mass"]]
    if names["center"] in values:
        c = Vector(tuple(values[names["center"]]))
    if names["inertia"] in values:
        xx, xy, xz, yx, yy, yz, zx, zy, zz = values[names["inertia"]]
        I = Symmetric(xx, yy, zz, (xy + yx) * 0.5, (xz + zx) * 0.5, (yz + zy) * 0.5)
    return replace(link, inertia=RigidInertia.from_center(m, c, I))


def _joint(joint: JointData, values: Mapping[str, Sequence[Number]]) -> JointData:
    own: dict[str, Any] = {
        what: values[f"{joint.name}.{what}"][0]
        for what in JOINT_NUMBERS
        if f"{joint.name}.{what}" in values
    }
    joint = replace(joint, **own) if own else joint
    flat = values.get(f"{joint.name}.placement")
    if flat is None:
        return joint
    R = Matrix(tuple(tuple(flat[4 * k : 4 * k + 3]) for k in range(3)))
    return replace(joint, pose=Transform.from_pose(R, Vector(tuple(flat[3:12:4]))))
