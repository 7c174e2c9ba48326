"""Whole mechanisms as TOML files: trees of any joints, loops, gears, frames.

`format = "mechanism"` is required at the top. Optional there are `name`, `gravity` (m/s2, world
axes), `inertia_about` ("center" or "frame", for all links), `independent` (freedoms that the others
follow through loops and gears), `massless` (true: kinematics only), and the table `units`.

- [[link]]: name; mass, center, inertia ([xx, yy, zz], [xx, yy, zz, xy, xz, yz] or a matrix),
  inertia_about; in the link's own frame.
- [[joint]]: name, kind, child; parent (the world, if it is not said); the joint's frame in the
  parent link's frame as position and rpy or rotation, and in the child link's frame as
  child_position and child_rpy or child_rotation; axis, second_axis, pitch, radius, reversed,
  limits, velocity, effort, armature, damping, friction, mimic = {joint, multiplier, offset}.
- [[loop]]: the same without mimic, for a joint that closes a loop; kind may be "fixed", a weld.
- [[frame]]: name, link, position, rpy or rotation.
- [[gear]]: name, joint, ratios = {leader = ratio, ...}, offset: joint = sum of ratio times leader,
  plus offset, in rad and m.
- units: angle ("rad" or "deg"), length ("m" or "mm"), mass ("kg" or "g"); SI where not said. They
  hold for rpy, positions, center, radius, pitch (length for one rad), mass, inertia, and for limits
  and velocity of joints whose coordinates are all angles or all lengths. Everything else is SI.

rpy = [roll, pitch, yaw] is R = Rz(yaw) Ry(pitch) Rx(roll); rotation is R itself, by rows.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path, PurePath
from typing import Any, TypeVar

import numpy as np

from chasles.formats.toml_file import TomlFile, word
from chasles.mathematics.angles import rotation_from_angles
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import (
    JOINTS,
    Description,
    FrameData,
    JointData,
    Limits,
    LinkData,
    LoopData,
    Mimic,
    ModelError,
    gear,
)
from chasles.model.couplings import linear
from chasles.model.description import CouplingData
from chasles.model.dh_fields import FIELDS, TABLE, Field, choice, number, numbers
from chasles.model.graph import on_free_joint

_ORTHOGONAL = 1e-9
"""How far R R' may be from 1: what printing with ten digits leaves."""


def _rotation(value: Any) -> Matrix:
    R = Matrix(tuple(map(numbers(3), value)))
    dense: np.ndarray = np.array(R.rows)
    if dense.shape != (3, 3) or np.max(np.abs(dense @ dense.T - np.eye(3))) > _ORTHOGONAL:
        raise ValueError
    if np.linalg.det(dense) < 0.0:
        raise ValueError
    return R


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(FIELDS["name"].convert, value))


def _ratios(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise TypeError
    return {leader: number(ratio) for leader, ratio in value.items()}


def _mimic(value: Any) -> Mimic:
    known = {"joint", "multiplier", "offset"}
    if not isinstance(value, dict) or "joint" not in value or not set(value) <= known:
        raise TypeError
    rest = {key: number(x) for key, x in value.items() if key != "joint"}
    return Mimic(FIELDS["name"].convert(value["joint"]), **rest)


_NAME, _NUMBER = FIELDS["name"], FIELDS["theta"]
_THREE = Field(numbers(3), "three finite numbers")
_KINDS = ("fixed", *JOINTS)
_TRUTH = Field(_truth, "true or false")

_TOP = {
    "name": _NAME,
    "gravity": TABLE["gravity"],
    "inertia_about": FIELDS["inertia_about"],
    "independent": Field(_texts, "a list of freedoms"),
    "massless": _TRUTH,
}
_LINK = {"name": _NAME, "mass": _NUMBER} | {
    key: FIELDS[key] for key in ("center", "inertia", "inertia_about")
}
_POSE = {
    "position": _THREE,
    "rpy": Field(numbers(3), "three finite numbers: roll, pitch, yaw"),
    "rotation": Field(_rotation, "a 3x3 matrix, a rotation with all its digits, by rows"),
}
_LOOP = (
    {"name": _NAME, "kind": Field(choice(*_KINDS), f"one of {', '.join(_KINDS)}")}
    | {"parent": _NAME, "child": _NAME}
    | _POSE
    | {f"child_{key}": field for key, field in _POSE.items()}
    | {"axis": _THREE, "second_axis": _THREE, "pitch": _NUMBER, "radius": _NUMBER}
    | {"reversed": _TRUTH}
    | {key: FIELDS[key] for key in ("limits", "velocity", "effort")}
    | dict.fromkeys(("armature", "damping", "friction"), _NUMBER)
)
_JOINT = _LOOP | {
    "mimic": Field(_mimic, "{joint = a name, multiplier = a number, offset = a number}")
}
_FRAME = {"name": _NAME, "link": _NAME} | _POSE
_GEAR = {
    "name": _NAME,
    "joint": _NAME,
    "ratios": Field(_ratios, "a table of a number for each leading joint"),
    "offset": _NUMBER,
}
_TABLES = {"link": _LINK, "joint": _JOINT, "loop": _LOOP, "frame": _FRAME, "gear": _GEAR}
"""The keys at the top and of each table."""

_SAME = ("pitch", "radius", "reversed", "armature", "damping", "friction", "mimic")
"""Keys of a joint that are fields of `JointData`, with the same value."""

_REQUIRED = {
    "link": ("name",),
    "joint": ("name", "kind", "child"),
    "loop": ("name", "kind", "child"),
    "frame": ("name", "link"),
    "gear": ("name", "joint"),
}

Kind = TypeVar("Kind", bound=JointData)


def read(source: TomlFile, *, floating: bool = False) -> Description:
    """The mechanism of a file. floating: put the root link on a free joint, root_joint."""
    top = source.top(_TOP, _TABLES)
    about = top.pop("inertia_about", "center")
    links = tuple(
        LinkData(row["name"], _inertia(row, about), where) for row, where in _rows(source, "link")
    )
    if not links:
        raise source.error("no links; give one [[link]] table for each", "link")
    joints = tuple(_joint(JointData, source, "joint"))
    return Description(
        top.get("name", PurePath(source.file).stem),
        links,
        on_free_joint(links, joints) if floating else joints,
        tuple(FrameData(row["name"], row["link"], _pose(row)) for row, _ in _rows(source, "frame")),
        Vector(top["gravity"]) if "gravity" in top else Description.gravity,
        tuple(source.notes),
        source.file,
        tuple(_joint(LoopData, source, "loop")),
        top.get("independent", ()),
        massless=top.get("massless", False),
        couplings=tuple(
            gear(
                row["name"],
                row["joint"],
                row.get("ratios", {}),
                row.get("offset", 0.0),
                where=where,
            )
            for row, where in _rows(source, "gear")
        ),
    )


def _rows(source: TomlFile, table: str) -> list[tuple[dict[str, Any], str]]:
    """The rows of a table with their places; none lacks what it must have."""
    rows = source.rows(table, _TABLES[table], _coordinate)
    for i, row in enumerate(rows):
        for key in _REQUIRED[table]:
            if key not in row:
                needs = ", ".join(_REQUIRED[table])
                raise source.error(f"no {key}; give {needs} in every [[{table}]]", table, i)
        for end in ("", "child_"):
            if f"{end}rpy" in row and f"{end}rotation" in row:
                raise source.error(f"{end}rpy and {end}rotation; give one of them", table, i)
    return [(row, source.where(table, i)) for i, row in enumerate(rows)]


def _coordinate(row: Mapping[str, Any]) -> str:
    """What limits and velocity of a joint are in: angles, lengths, or neither."""
    kind = JOINTS.get(row.get("kind", ""))
    units = set() if kind is None else set(kind.units)
    return {"rad": "angle", "m": "length"}[units.pop()] if units in ({"rad"}, {"m"}) else ""


def _inertia(row: Mapping[str, Any], about: str) -> RigidInertia:
    m, c = row.get("mass", 0.0), Vector(row.get("center", (0.0, 0.0, 0.0)))
    I = Symmetric(*row.get("inertia", (0.0,) * 6))
    if row.get("inertia_about", about) == "frame":
        return RigidInertia(m, c * m, I)
    return RigidInertia.from_center(m, c, I)


def _pose(row: Mapping[str, Any], end: str = "") -> Transform:
    R = row.get(f"{end}rotation")
    if R is None:
        angles = row.get(f"{end}rpy", (0.0, 0.0, 0.0))
        R = rotation_from_angles("xyz", angles, "fixed").matrix()
    return Transform.from_pose(R, Vector(row.get(f"{end}position", (0.0, 0.0, 0.0))))


def _joint(made: Callable[..., Kind], source: TomlFile, table: str) -> list[Kind]:
    """The joints of a table."""
    found = []
    for row, where in _rows(source, table):
        lower, upper = row.get("limits", (-math.inf, math.inf))
        speed, effort = row.get("velocity", math.inf), row.get("effort", math.inf)
        axes = {key: Vector(row[key]) for key in ("axis", "second_axis") if key in row}
        found.append(
            made(
                row["name"],
                row["kind"],
                row.get("parent"),
                row["child"],
                _pose(row),
                child_pose=_pose(row, "child_"),
                limits=Limits(lower, upper, speed, effort),
                where=where,
                **axes,
                **{key: row[key] for key in _SAME if key in row},
            )
        )
    return found


# Writing ---------------------------------------------------------------------------------------


def write(description: Description, path: str | os.PathLike[str]) -> None:
    """Write a mechanism, in SI units and radians, with all digits; read back, it is the same.

    Refused: joints of one's own type, motions given in time, and couplings that are no gears. Notes
    have no place in the file, nor have lines of the file that a mechanism was read from.
    """
    text = ["# Mechanism; m, kg, rad", 'format = "mechanism"', f"name = {word(description.name)}"]
    text += [f"gravity = {_numbers(description.gravity)}", 'inertia_about = "frame"']
    if description.independent:
        text.append(f"independent = {word(description.independent)}")
    if description.massless:
        text.append("massless = true")
    for table, rows in (
        ("link", map(_link_row, description.links)),
        ("joint", map(_joint_row, description.joints)),
        ("loop", map(_joint_row, description.loops)),
        ("frame", map(_frame_row, description.frames)),
        ("gear", map(_gear_row, description.couplings)),
    ):
        for row in rows:
            text += ["", f"[[{table}]]", *(f"{key} = {value}" for key, value in row.items())]
    Path(path).write_text("\n".join(text) + "\n", "utf-8")


def _numbers(values: Sequence[Any] | Vector) -> str:
    return word(tuple(values))


def _link_row(link: LinkData) -> dict[str, str]:
    row = {"name": word(link.name)}
    m, h, I = link.inertia.m, tuple(link.inertia.h), tuple(link.inertia.I)
    if m:
        row |= {"mass": word(m), "center": _numbers([x / m for x in h])}
    elif any(h):
        raise ModelError(f"link {link.name!r} has a first moment without mass; give it a mass")
    return row | ({"inertia": word(I)} if any(I) else {})


def _pose_rows(pose: Transform, end: str = "") -> dict[str, str]:
    row = {f"{end}position": _numbers(pose.r)} if any(pose.r) else {}
    if Matrix.identity() != pose.R:
        row[f"{end}rotation"] = word(pose.R.rows)
    return row


def _joint_row(joint: JointData) -> dict[str, str]:
    """The fields of a joint that are not as they are without being said."""
    if joint.custom is not None:
        raise ModelError(
            f"joint {joint.name!r} is of a type of your own, which a file cannot say; keep it in "
            "Python"
        )
    if joint.motion is not None:
        raise ModelError(
            f"joint {joint.name!r} is driven in time, which a file cannot say; save the robot "
            "before it is, and keep the motion in Python, with robot.drive"
        )
    row = {"name": word(joint.name), "kind": word(joint.kind)}
    row |= {} if joint.parent is None else {"parent": word(joint.parent)}
    row |= {"child": word(joint.child)} | _pose_rows(joint.pose)
    row |= _pose_rows(joint.child_pose, "child_")
    default = {known.name: known.default for known in fields(JointData)}
    for key in ("axis", "second_axis"):
        if getattr(joint, key) != default[key]:
            row[key] = _numbers(getattr(joint, key))
    limits, none = joint.limits, Limits()
    if (limits.lower, limits.upper) != (none.lower, none.upper):
        row["limits"] = word((limits.lower, limits.upper))
    row |= {
        key: word(getattr(limits, key))
        for key in ("velocity", "effort")
        if getattr(limits, key) != math.inf
    }
    for key in _SAME:
        value = getattr(joint, key)
        assert default[key] is not MISSING
        if value != default[key]:
            row[key] = word(vars(value) if key == "mimic" else value)
    return row


def _frame_row(frame: FrameData) -> dict[str, str]:
    return {"name": word(frame.name), "link": word(frame.link)} | _pose_rows(frame.pose)


def _gear_row(data: CouplingData) -> dict[str, str]:
    found = linear(data)
    if found is None or not found[0][0]:
        raise ModelError(
            f"coupling {data.name!r} is no gear, which is all that a file can say of couplings; "
            "keep it in Python, with robot.with_couplings"
        )
    (own, *slopes), constant = found
    ratios = {leader: -slope / own for leader, slope in zip(data.freedoms[1:], slopes, strict=True)}
    row = {"name": word(data.name), "joint": word(data.freedoms[0]), "ratios": word(ratios)}
    return row | ({"offset": word(-constant / own)} if constant else {})
