"""Read mechanisms from TOML files; docs/mechanism-files.md lists the tables and keys."""

import math
import os
from collections.abc import Callable, Container, Iterator, Mapping
from pathlib import PurePath
from typing import Any, TypeVar

from chasles.formats import dh
from chasles.formats import mechanism_machine as machine
from chasles.formats.toml_file import TomlFile
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
    rolling,
)
from chasles.model.couplings import polynomial
from chasles.model.description import Precision, freedom_names
from chasles.model.dh_fields import FIELDS, TABLE, Field, choice, number, numbers, rotation
from chasles.model.graph import on_free_joint
from chasles.model.rolling import KINDS
from chasles.names import suggest

MOST_POWERS = 9
"""Maximum exponent of a coordinate in a polynomial coupling."""


def _such(convert: Callable[[Any], Any], holds: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """Return a converter that raises ValueError if `holds` is False for the converted value."""

    def converted(value: Any) -> Any:
        made = convert(value)
        if not holds(made):
            raise ValueError
        return made

    return converted


def _terms(value: Any) -> list[tuple[float, dict[str, int]]]:
    rows = [(number(factor), dict(powers)) for factor, powers in value]
    for _, powers in rows:
        if any(isinstance(x, bool) or x not in range(MOST_POWERS + 1) for x in powers.values()):
            raise ValueError
    return rows


def _mimic(value: Any) -> Mimic:
    if not isinstance(value, dict) or not {"joint"} <= set(value) <= set(Mimic.__match_args__):
        raise TypeError
    rest = {key: number(x) for key, x in value.items() if key != "joint"}
    return Mimic(FIELDS["name"].convert(value["joint"]), **rest)


def _precision(value: Any) -> Precision:
    made = Precision(**dict(value))
    if not all(type(x) is int for x in (made.significant, made.decimals)):
        raise ValueError
    if made.loops is not None and number(made.loops) <= 0.0:
        raise ValueError
    return made


def _bits(value: Any) -> tuple[int, int]:
    first, second = value
    if not all(type(x) is int and -(2**31) <= x < 2**31 for x in (first, second)):
        raise ValueError
    return first, second


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _directions(value: Any) -> int:
    if type(value) is not int or value not in (1, 3, 4, 6):
        raise ValueError
    return value


_TEXTS = Field(lambda value: tuple(map(FIELDS["name"].convert, value)), "a list of strings")
_NUMBER, _TEXT = FIELDS["theta"], FIELDS["name"]
_THREE = Field(numbers(3), "three finite numbers")
_TRUTH = Field(_such(lambda x: x, lambda x: isinstance(x, bool)), "true or false")
_ROTATION = Field(
    lambda rows: Matrix(rotation(rows)), "a 3x3 rotation matrix with all its digits, by rows"
)
_RATIOS = Field(
    lambda value: {leader: number(ratio) for leader, ratio in dict.items(value)},
    "a table with a number for each leading joint",
)
_KIND, _SHAPE_KIND, _ROLE, _CONTACT = (
    choice(*words) for words in (("fixed", *JOINTS), SHAPES, ROLES, KINDS)
)
_FRICTION = Field(numbers(3), "three numbers: sliding, spinning and rolling")
_KINDS = {
    "shape": {"kind": _SHAPE_KIND, "friction": _FRICTION},
    "plane": {"friction": _FRICTION},
    "coupling": {"kind": _CONTACT},
    **machine.KINDS,
}
"""Value types for keys of specific tables; they take precedence over `_KEYS`."""
_LENGTHS = _such(lambda x: tuple(map(number, x)), lambda x: min(x) > 0.0)
_COLOR = _such(numbers(4), lambda x: min(x) >= 0.0 and max(x) <= 1.0)

_TOP = {
    "name": _TEXT,
    "gravity": TABLE["gravity"],
    "inertia_about": FIELDS["inertia_about"],
    "independent": _TEXTS._replace(wanted="a list of degrees of freedom"),
    "massless": _TRUTH,
    "precision": Field(_precision, "{significant = digits, decimals = digits, loops = rad}"),
    "notes": _TEXTS,
}
_KEYS = (
    {key: FIELDS[key] for key in ("center", "inertia", "inertia_about")}
    | {"limits": Field(machine.bounds, "a lower and an upper limit")}
    | dict.fromkeys(("velocity", "effort"), Field(machine.bound, "a number, or inf"))
    | dict.fromkeys(("name", "link", "joint", "parent", "child", "file", "frame", "on"), _TEXT)
    | dict.fromkeys(("mass", "pitch", "radius", "offset"), _NUMBER)
    | dict.fromkeys(("armature", "damping", "friction"), _NUMBER)
    | dict.fromkeys(("position", "child_position", "axis", "second_axis", "scale"), _THREE)
    | dict.fromkeys(
        ("rpy", "child_rpy"), Field(numbers(3), "three finite numbers: roll, pitch, yaw")
    )
    | dict.fromkeys(("rotation", "child_rotation"), _ROTATION)
    | dict.fromkeys(("massless", "reversed", "touching"), _TRUTH)
    | {"kind": _KIND, "role": _ROLE, "ratios": _RATIOS}
    | {
        "mimic": Field(_mimic, "{joint = a name, multiplier = a number, offset = a number}"),
        "terms": Field(_terms, "a list of [factor, {coordinate = power, ...}], powers 0 to 9"),
        "size": Field(_LENGTHS, "positive numbers"),
        "color": Field(_COLOR, "four numbers from 0 to 1: red, green, blue, opacity"),
        "directions": Field(_directions, "1, 3, 4 or 6"),
        "priority": Field(_whole, "an integer"),
        "bits": Field(_bits, "two integers: MuJoCo's contype and conaffinity"),
        "links": Field(_such(_TEXTS.convert, lambda x: len(x) == 2), "the names of two links"),
    }
    | machine.KEYS
)
"""Value type of each key. `_KINDS` contains the keys whose type depends on the table."""

_POSE = ("position", "rpy", "rotation")
_MOVES = (
    *("parent", *_POSE, *(f"child_{key}" for key in _POSE), "axis", "second_axis", "pitch"),
    *("radius", "reversed", "limits", "velocity", "effort", "armature", "damping", "friction"),
    *machine.JOINT_KEYS,
)
TOUCH = ("bits", "friction", "directions", "priority")
"""Contact properties of shapes and planes: keys that are also fields of `ShapeData`."""
_ROLLS = ("on", "radius", "axis", "touching")
_TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "link": (("name",), ("mass", "center", "inertia", "inertia_about", "massless", "lifted")),
    "joint": (("name", "kind", "child"), (*_MOVES, "mimic")),
    "loop": (("name", "kind", "child"), _MOVES),
    "frame": (("name", "link"), _POSE),
    "shape": (("link", "kind"), ("size", "scale", "file", "role", "color", *TOUCH, *_POSE)),
    "plane": (("link",), (*TOUCH, *_POSE)),
    "excluded": (("links",), ()),
    "gear": (("name", "joint"), ("ratios", "offset")),
    "coupling": (("name",), ("terms", "kind", "frame", *_ROLLS)),
    **machine.TABLES,
}
"""Required and optional keys for each table."""

SAME = (
    *("pitch", "radius", "reversed", "armature", "damping", "friction", "mimic"),
    *machine.JOINT_KEYS,
)
"""Keys of [[joint]] tables that set the field of the same name in `JointData`."""

Kind = TypeVar("Kind", bound=JointData)


def read(path: str | os.PathLike[str], *, snap: bool = True, floating: bool = False) -> Description:
    """Read a robot from a TOML file with format = "mechanism" or format = "dh" (a DH table).

    If `snap` is True, replace each angle in rad that is written as a rounded multiple of pi/2 with
    the exact multiple, and add a note. If `floating` is True, attach the root link of a mechanism
    to the world by a free joint; for a DH table, raise an error.
    """
    source = TomlFile(path, snap)
    kind = source.data.get("format")
    if not isinstance(kind, str) or kind not in FORMATS:
        ways = (f'{what} begins with format = "{name}"' for name, (what, _) in FORMATS.items())
        problem = "the key `format` is missing or unknown"
        raise source.error("E-TOML-018", problem, ", ".join(ways), "format")
    return FORMATS[kind][1](source, floating=floating)


def described(source: TomlFile, *, floating: bool) -> Description:
    """Convert a mechanism file to a `Description`; `floating` adds a free joint at the root."""
    top = source.top(_TOP, _TABLES)
    about = top.pop("inertia_about", "center")
    links = tuple(
        LinkData(
            row["name"],
            _inertia(row, about),
            where,
            row.get("massless", False),
            row.get("lifted", 0.0),
        )
        for row, where in _rows(source, "link")
    )
    if not links:
        raise source.error(
            "E-TOML-004", "the file has no links", "write one [[link]] table for each link", "link"
        )
    joints = tuple(_joints(JointData, source, "joint"))
    counts = {joint.name: JOINTS[joint.kind].nv if joint.kind in JOINTS else 0 for joint in joints}
    freedoms = {freedom: 0 for name, n in counts.items() for freedom in freedom_names(name, n)}
    for name in top.get("independent", ()):
        if name not in freedoms:
            problem = f"there is no degree of freedom {name!r}"
            raise source.error("E-TOML-005", problem, suggest(name, freedoms), "independent")
    return Description(
        top.get("name", PurePath(source.file).stem),
        links,
        on_free_joint(links, joints) if floating else joints,
        tuple(FrameData(row["name"], row["link"], _pose(row)) for row, _ in _rows(source, "frame")),
        Vector(top["gravity"]) if "gravity" in top else Description.gravity,
        (*top.get("notes", ()), *source.notes),
        source.file,
        tuple(_joints(LoopData, source, "loop")),
        top.get("independent", ()),
        massless=top.get("massless", False),
        couplings=tuple(_couplings(source)),
        rotors=tuple(machine.rotors(_rows(source, "rotor"))),
        shapes=tuple(_shapes(source, {link.name for link in links})),
        planes=tuple(_planes(source, {link.name for link in links})),
        excluded=tuple(row["links"] for row, _ in _rows(source, "excluded")),
        precision=top.get("precision", Precision()),
        actuators=machine.actuators(_rows(source, "actuator")),
        keyframes=machine.keyframes(_rows(source, "keyframe")),
        fluid=machine.fluid(_rows(source, "fluid"), _rows(source, "box"), _pose, source.file),
    )


FORMATS: dict[str, tuple[str, Callable[..., Description]]] = {
    "mechanism": ("a mechanism", described),
    "dh": ("a Denavit-Hartenberg table", dh.described),
}
"""Display name and reader function for each value of the key `format`."""


def _couplings(source: TomlFile) -> Iterator[CouplingData]:
    for row, where in _rows(source, "gear"):
        ratios, offset = row.get("ratios", {}), row.get("offset", 0.0)
        yield gear(row["name"], row["joint"], ratios, offset, where=where)
    for i, (row, where) in enumerate(_rows(source, "coupling")):
        rest = {key: value for key, value in row.items() if key in _ROLLS}
        if "terms" in row and not {"kind", "frame", *rest} & set(row):
            yield polynomial(row["name"], row["terms"], where=where)
        elif {"kind", "frame"} <= set(row) and "terms" not in row:
            yield rolling(row["name"], row["kind"], row["frame"], **rest, where=where)
        else:
            problem, remedy = (
                "it is neither a polynomial nor a contact",
                "give `terms` alone, or `kind` and `frame`",
            )
            raise source.error("E-TOML-320", problem, remedy, "coupling", i)


def _rows(source: TomlFile, table: str) -> list[tuple[dict[str, Any], str]]:
    """Return the rows of a table, each with its "file:line".

    Raise an error if a required key is missing, or if a rotation is given twice.
    """
    required, optional = _TABLES[table]
    keys = _KEYS | _KINDS.get(table, {})
    known = {key: keys[key] for key in (*required, *optional)}
    rows = source.rows(table, known)
    for i, row in enumerate(rows):
        for key in required:
            if key not in row:
                remedy = f"give {', '.join(required)} in every [[{table}]] table"
                raise source.error("E-TOML-006", f"the key {key} is missing", remedy, table, i)
        for end in ("", "child_"):
            if f"{end}rpy" in row and f"{end}rotation" in row:
                problem = f"both {end}rpy and {end}rotation are given"
                raise source.error("E-TOML-007", problem, "give only one of them", table, i)
    return [(row, source.where(table, i)) for i, row in enumerate(rows)]


def _shapes(source: TomlFile, links: Container[str]) -> Iterator[ShapeData]:
    for i, (row, _) in enumerate(_rows(source, "shape")):
        kind, here = row["kind"], ("shape", i)
        _check_link(source, row, links, *here)
        if kind == "mesh" and ("size" in row or "file" not in row):
            problem = "a mesh requires `file` and does not accept `size`"
            raise source.error(
                "E-TOML-009", problem, "give `file` and `scale`, and omit `size`", *here
            )
        sized = len(row.get("size", ())) == SHAPES[kind] and not {"scale", "file"} & set(row)
        if kind != "mesh" and not sized:
            problem = (
                f"a {kind} requires `size`, a list of length {SHAPES[kind]}, and does not accept "
                "`file` or `scale`"
            )
            raise source.error("E-TOML-010", problem, "", *here)
        size = row.get("scale", (1.0, 1.0, 1.0)) if kind == "mesh" else row["size"]
        file, color, role = row.get("file", ""), row.get("color"), row.get("role", ROLES[0])
        yield ShapeData(row["link"], kind, size, _pose(row), file, color, role, **_touch(row))


def _planes(source: TomlFile, links: Container[str]) -> Iterator[ShapeData]:
    for i, (row, _) in enumerate(_rows(source, "plane")):
        _check_link(source, row, links, "plane", i)
        yield ShapeData(row["link"], "plane", (), _pose(row), role="collision", **_touch(row))


def _check_link(
    source: TomlFile, row: Mapping[str, Any], links: Container[str], table: str, i: int
) -> None:
    if row["link"] not in links:
        problem = f"there is no link {row['link']!r}"
        raise source.error("E-TOML-008", problem, "name one of the [[link]] tables", table, i)


def _touch(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contact properties in the table of a shape or plane."""
    return {key: row[key] for key in TOUCH if key in row}


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


def _joints(made: Callable[..., Kind], source: TomlFile, table: str) -> Iterator[Kind]:
    for row, where in _rows(source, table):
        lower, upper = row.get("limits", (-math.inf, math.inf))
        speed, effort = row.get("velocity", math.inf), row.get("effort", math.inf)
        axes = {key: Vector(row[key]) for key in ("axis", "second_axis") if key in row}
        yield made(
            *(row["name"], row["kind"], row.get("parent"), row["child"], _pose(row)),
            child_pose=_pose(row, "child_"),
            limits=Limits(lower, upper, speed, effort),
            where=where,
            **axes,
            **{key: row[key] for key in SAME if key in row},
        )
