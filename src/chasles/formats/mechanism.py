"""Whole mechanisms as TOML files: trees of any joints, loops, gears, frames.

`format = "mechanism"` is required at the top. Optional there are `name`, `gravity` (m/s2, world
axes), `inertia_about` ("center" or "frame", for all links), `independent` (freedoms that the others
follow through loops and gears), `massless` (true: kinematics only), `notes` (what is to be known of
the robot, a list of texts: those of the file it was read from), and the table `units`.

- [[link]]: name; mass, center, inertia ([xx, yy, zz], [xx, yy, zz, xy, xz, yz] or a matrix),
  inertia_about; in the link's own frame; massless (true: it has no inertia, and that is meant).
- [[joint]]: name, kind, child; parent (the world, if it is not said); the joint's frame in the
  parent link's frame as position and rpy or rotation, and in the child link's frame as
  child_position and child_rpy or child_rotation; axis, second_axis, pitch, radius, reversed,
  limits, velocity, effort, armature, damping, friction, mimic = {joint, multiplier, offset}.
- [[loop]]: the same without mimic, for a joint that closes a loop; kind may be "fixed", a weld.
- [[frame]]: name, link, position, rpy or rotation.
- [[shape]]: what can be seen of a link: link, kind (box, sphere, cylinder, capsule, ellipsoid),
  size as `chasles.model.ShapeData` has it; or kind "mesh", file, scale = [x, y, z]; its pose in the
  link's frame as position and rpy or rotation; color = [red, green, blue, opacity], 0 to 1;
  role = "collision" where it is for that.
- [[gear]]: name, joint, ratios = {leader = ratio, ...}, offset: joint = sum of ratio times leader,
  plus offset, in rad and m.
- [[coupling]]: name, terms = [[factor, {freedom = power, ...}], ...]: the sum of factor times
  powers of coordinates is zero, in rad and m.
- units: angle ("rad" or "deg"), length ("m" or "mm"), mass ("kg" or "g"); SI where not said. They
  hold for rpy, positions, size, center, radius, pitch (length for one rad), mass, inertia, and for
  limits and velocity of joints whose coordinates are all angles or all lengths. All else is SI.

rpy = [roll, pitch, yaw] is R = Rz(yaw) Ry(pitch) Rx(roll); rotation is R itself, by rows.
"""

import math
import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np

from chasles.formats import dh
from chasles.formats.toml_file import TomlFile, coordinate
from chasles.mathematics.angles import rotation_from_angles
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import (
    JOINTS,
    ROLES,
    SHAPES,
    CouplingData,
    Description,
    FrameData,
    JointData,
    Limits,
    LinkData,
    LoopData,
    Mimic,
    ShapeData,
    gear,
)
from chasles.model.description import freedom_names
from chasles.model.dh_fields import FIELDS, TABLE, Field, choice, number, numbers
from chasles.model.graph import on_free_joint
from chasles.model.model import suggest
from chasles.model.polynomials import polynomial

_ORTHOGONAL = 1e-9
"""How far R R' may be from 1: what printing with ten digits leaves."""


MOST_POWERS = 9
"""Of one coordinate in a term of a polynomial."""


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


def _terms(value: Any) -> list[tuple[float, dict[str, int]]]:
    rows = [(number(factor), dict(powers)) for factor, powers in value]
    for _, powers in rows:
        if any(isinstance(x, bool) or x not in range(MOST_POWERS + 1) for x in powers.values()):
            raise ValueError
    return rows


def _lengths(value: Any) -> tuple[float, ...]:
    entries = tuple(map(number, value))
    if not entries or min(entries) <= 0.0:
        raise ValueError
    return entries


def _color(value: Any) -> tuple[float, ...]:
    entries = numbers(4)(value)
    if min(entries) < 0.0 or max(entries) > 1.0:
        raise ValueError
    return entries


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
    "notes": Field(_texts, "a list of texts"),
}
_LINK = {"name": _NAME, "mass": _NUMBER, "massless": _TRUTH} | {
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
_COUPLING = {
    "name": _NAME,
    "terms": Field(_terms, "a list of [factor, {freedom = power, ...}], powers 0 to 9"),
}
_SHAPE = {
    "link": _NAME,
    "kind": Field(choice(*SHAPES), f"one of {', '.join(SHAPES)}"),
    "size": Field(_lengths, "positive numbers"),
    "scale": _THREE,
    "file": _NAME,
    "role": Field(choice(*ROLES), f"one of {', '.join(ROLES)}"),
    "color": Field(_color, "four numbers from 0 to 1: red, green, blue, opacity"),
} | _POSE
_TABLES = {"link": _LINK, "joint": _JOINT, "loop": _LOOP, "frame": _FRAME} | {
    "shape": _SHAPE,
    "gear": _GEAR,
    "coupling": _COUPLING,
}
"""The keys at the top and of each table."""

SAME = ("pitch", "radius", "reversed", "armature", "damping", "friction", "mimic")
"""Keys of a joint that are fields of `JointData`, with the same value."""

_REQUIRED = {
    "link": ("name",),
    "joint": ("name", "kind", "child"),
    "loop": ("name", "kind", "child"),
    "frame": ("name", "link"),
    "shape": ("link", "kind"),
    "gear": ("name", "joint"),
    "coupling": ("name", "terms"),
}

Kind = TypeVar("Kind", bound=JointData)


def read(path: str | os.PathLike[str], *, snap: bool = True, floating: bool = False) -> Description:
    """What a robot file in TOML says: the key `format` at the top says which of the formats it is.

    snap: an angle in rad that is printed as a rounded multiple of a right angle is taken as that
    multiple; notes say where. floating: put the root link on a free joint.
    """
    source = TomlFile(path, snap)
    kind = source.data.get("format")
    if not isinstance(kind, str) or kind not in FORMATS:
        ways = (f'{what} begins with format = "{name}"' for name, (what, _) in FORMATS.items())
        problem = "the file does not say which kind of robot file it is"
        raise source.error("E-TOML-018", problem, ", ".join(ways), "format")
    return FORMATS[kind][1](source, floating=floating)


def described(source: TomlFile, *, floating: bool) -> Description:
    """The mechanism of a file. floating: put the root link on a free joint, root_joint."""
    top = source.top(_TOP, _TABLES)
    about = top.pop("inertia_about", "center")
    links = tuple(
        LinkData(row["name"], _inertia(row, about), where, row.get("massless", False))
        for row, where in _rows(source, "link")
    )
    if not links:
        raise source.error("E-TOML-004", "no links", "give one [[link]] table for each", "link")
    joints = tuple(_joint(JointData, source, "joint"))
    _check_independent(source, top.get("independent", ()), joints)
    return Description(
        top.get("name", PurePath(source.file).stem),
        links,
        on_free_joint(links, joints) if floating else joints,
        tuple(FrameData(row["name"], row["link"], _pose(row)) for row, _ in _rows(source, "frame")),
        Vector(top["gravity"]) if "gravity" in top else Description.gravity,
        (*top.get("notes", ()), *source.notes),
        source.file,
        tuple(_joint(LoopData, source, "loop")),
        top.get("independent", ()),
        massless=top.get("massless", False),
        couplings=(*_gears(source), *_polynomials(source)),
        shapes=tuple(_shapes(source, {link.name for link in links})),
    )


FORMATS: dict[str, tuple[str, Callable[..., Description]]] = {
    "mechanism": ("a mechanism", described),
    "dh": ("a Denavit-Hartenberg table", dh.described),
}
"""One row a format: what it is, and what makes a description of such a file."""


def _gears(source: TomlFile) -> Iterator[CouplingData]:
    for row, where in _rows(source, "gear"):
        ratios, offset = row.get("ratios", {}), row.get("offset", 0.0)
        yield gear(row["name"], row["joint"], ratios, offset, where=where)


def _polynomials(source: TomlFile) -> Iterator[CouplingData]:
    for row, where in _rows(source, "coupling"):
        yield polynomial(row["name"], row["terms"], where=where)


def _check_independent(source: TomlFile, names: Sequence[str], joints: Sequence[JointData]) -> None:
    """Freedoms are named as `robot.independent` names them."""
    known: dict[str, None] = {}
    for joint in joints:
        count = JOINTS[joint.kind].nv if joint.kind in JOINTS else 0
        known |= dict.fromkeys(freedom_names(joint.name, count))
    for name in names:
        if name not in known:
            problem = f"no freedom {name!r}"
            raise source.error("E-TOML-005", problem, suggest(name, known), "independent")


def _rows(source: TomlFile, table: str) -> list[tuple[dict[str, Any], str]]:
    """The rows of a table with their places; none lacks what it must have."""
    rows = source.rows(table, _TABLES[table], _coordinate)
    for i, row in enumerate(rows):
        for key in _REQUIRED[table]:
            if key not in row:
                needs = ", ".join(_REQUIRED[table])
                remedy = f"give {needs} in every [[{table}]]"
                raise source.error("E-TOML-006", f"no {key}", remedy, table, i)
        for end in ("", "child_"):
            if f"{end}rpy" in row and f"{end}rotation" in row:
                problem = f"{end}rpy and {end}rotation"
                raise source.error("E-TOML-007", problem, "give one of them", table, i)
    return [(row, source.where(table, i)) for i, row in enumerate(rows)]


def _shapes(source: TomlFile, links: Container[str]) -> Iterator[ShapeData]:
    for i, (row, _) in enumerate(_rows(source, "shape")):
        kind, here = row["kind"], ("shape", i)
        if row["link"] not in links:
            problem = f"no link {row['link']!r}"
            raise source.error("E-TOML-008", problem, "name one of the [[link]] tables", *here)
        if kind == "mesh" and ("size" in row or "file" not in row):
            problem = "a mesh has a file and a scale"
            raise source.error("E-TOML-009", problem, "give them, and no size", *here)
        if kind != "mesh" and (
            {"scale", "file"} & set(row) or len(row.get("size", ())) != SHAPES[kind]
        ):
            problem = f"give size, {SHAPES[kind]} numbers for a {kind}, and no file"
            raise source.error("E-TOML-010", problem, "", *here)
        size = row.get("scale", (1.0, 1.0, 1.0)) if kind == "mesh" else row["size"]
        file, color, role = row.get("file", ""), row.get("color"), row.get("role", ROLES[0])
        yield ShapeData(row["link"], kind, size, _pose(row), file, color, role)


def _coordinate(row: Mapping[str, Any]) -> str:
    """What limits and velocity of a joint are in: angles, lengths, or neither."""
    return coordinate(row.get("kind", ""))


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
                **{key: row[key] for key in SAME if key in row},
            )
        )
    return found
