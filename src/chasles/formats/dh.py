"""Denavit-Hartenberg tables as TOML files.

`format = "dh"` and `convention` ("modified" or "standard") are required at the top. Optional there
are `name`, `gravity` (m/s2, world axes), `inertia_about` ("center" or "frame", for all rows), and
the tables `units`, `base`, `tool`. Every `[[joint]]` table is a row with the fields of `DHRow`, of
which theta, d, a, alpha are required.

- units: angle ("rad" or "deg"), length ("m" or "mm"), mass ("kg" or "g"); SI where not said.
  Angles are theta, alpha, rpy, and limits and velocity of revolute joints; lengths are d, a, b,
  center, position, and limits and velocity of prismatic joints; inertia is mass times length
  squared. Everything else (gravity, effort, armature, damping, friction) is in SI units and rad.
- base, tool: position = [x, y, z] and rpy = [roll, pitch, yaw], R = Rz(yaw) Ry(pitch) Rx(roll); of
  frame 0 in the world, and of the tool in the last frame.
"""

import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path, PurePath
from typing import Any

from chasles.formats.files import load
from chasles.formats.numbers import multiple, radians, right_angles
from chasles.formats.toml_lines import Lines
from chasles.mathematics.angles import angles_from_matrix, rotation_from_angles
from chasles.mathematics.linear import Matrix
from chasles.model import Description, ModelError, build
from chasles.model.denavit_hartenberg import Convention, DHRow, DHTable, row_of
from chasles.model.dh_fields import FIELDS, IDENTITY, TABLE, Field, Pose, checked, choice, numbers
from chasles.model.dh_fit import dh_table
from chasles.model.model import suggest


def _thousandth(x: float) -> float:
    return x / 1e3


UNITS: dict[str, dict[str, Callable[[float], float]]] = {
    "angle": {"rad": float, "deg": math.radians},
    "length": {"m": float, "mm": _thousandth},
    "mass": {"kg": float, "g": _thousandth},
}
"""What takes a number in a unit to SI; the first of each is SI itself."""

ANGLES = ("theta", "alpha", "rpy")
LENGTHS = ("d", "a", "b", "center", "position")
COORDINATES = ("limits", "velocity")
"""Fields that are converted as their names say, or as the joint's coordinate is."""

_TEXT = FIELDS["name"]
_TOP = {"format": _TEXT} | TABLE | {"inertia_about": FIELDS["inertia_about"]}
_POSE = {
    "position": Field(numbers(3), "three finite numbers"),
    "rpy": Field(numbers(3), "three finite numbers: roll, pitch, yaw"),
}
_UNITS = {
    what: Field(choice(*names), " or ".join(map(repr, names))) for what, names in UNITS.items()
}
_TABLES: dict[str, dict[str, Field]] = {
    "units": _UNITS,
    "base": _POSE,
    "tool": _POSE,
    "joint": FIELDS,
}
"""The keys at the top and in each table."""


class _Printed(float):
    """A number and the digits that the file has for it."""

    text: str

    def __new__(cls, text: str) -> "_Printed":
        made = super().__new__(cls, text)
        made.text = text.replace("_", "")
        return made


def read(path: str | os.PathLike[str], *, snap: bool = True, floating: bool = False) -> Description:
    """The arm of a file: links base, link1, ..., frames base, dh1, ..., tool.

    snap: an angle in rad that is printed as a rounded multiple of a right angle is taken as that
    multiple; notes say where. floating: refused, because a table has no mass for its base.
    """
    source = _Source(os.fsdecode(path), snap)
    if floating:
        raise ModelError(
            f"{source.file}: a Denavit-Hartenberg table has no mass for its base, so the base "
            "cannot float; use a URDF, or leave out floating"
        )
    return source.table().description()


class _Source:
    """A file being read."""

    def __init__(self, file: str, snap: bool) -> None:
        self.file, self.snap = file, snap
        self.notes: list[str] = []
        text = _decoded(file, load(file))
        self.data = _parsed(file, text)
        self.lines = Lines(text)
        self.units = {what: next(iter(names.values())) for what, names in UNITS.items()}

    def table(self) -> DHTable:
        """What the file says."""
        top = self._top()
        for what, unit in self._plain("units").items():
            self.units[what] = UNITS[what][unit]
        about = {"inertia_about": top.pop("inertia_about", "center")}
        rows = tuple(self._row(i, about) for i in range(len(self.data["joint"])))
        return DHTable(
            rows,
            **({"name": PurePath(self.file).stem} | top),
            base=self._pose("base"),
            tool=self._pose("tool"),
            notes=tuple(self.notes),
            where=self.file,
        )

    def where(self, *path: str | int) -> str:
        """The file and, where it is known, the line of a key."""
        line = self.lines.of(self.data, *path)
        return self.file if line is None else f"{self.file}:{line}"

    def error(self, what: str, *path: str | int) -> ModelError:
        return ModelError(f"{self.where(*path)}: {_part(*path)}{what}")

    def _top(self) -> dict[str, Any]:
        """The plain keys at the top, when all that is there may be there."""
        if self.data.get("format") != "dh":
            raise ModelError(
                f"{self.where('format')}: the file does not say which kind of robot file it is; "
                'a Denavit-Hartenberg table begins with format = "dh"'
            )
        self._check_keys(self.data, {**_TOP, **_TABLES})
        if "convention" not in self.data:
            raise ModelError(
                f"{self.file}:1: no convention; give convention = 'modified' or 'standard'"
            )
        joints = self.data.get("joint")
        if not isinstance(joints, list) or not joints:
            raise self.error("no joints; give one [[joint]] table for each row", "joint")
        plain = {k: self._value(_TOP, v, k) for k, v in self.data.items() if k in _TOP}
        return {key: value for key, value in plain.items() if key != "format"}

    def _check_keys(self, given: Any, known: Mapping[str, object], *path: str | int) -> None:
        if not isinstance(given, dict):
            raise self.error(
                f"{path[0]} is {given!r:.40}; give a table of {', '.join(known)}", *path
            )
        for key in given:
            if key not in known:
                raise self.error(f"unknown key {key!r}; {suggest(key, known)}", *path, key)

    def _value(self, known: dict[str, Field], value: Any, *path: str | int) -> Any:
        try:
            return checked(known, str(path[-1]), value)
        except ModelError as error:
            raise self.error(str(error), *path) from None

    def _plain(self, name: str) -> dict[str, Any]:
        """The values of a table at the top, as they are; none if there is no such table."""
        given = self.data.get(name, {})
        self._check_keys(given, _TABLES[name], name)
        return {key: self._value(_TABLES[name], v, name, key) for key, v in given.items()}

    def _row(self, i: int, common: dict[str, Any]) -> DHRow:
        given = self.data["joint"][i]
        self._check_keys(given, FIELDS, "joint", i)
        kind = self._value(FIELDS, given.get("kind", "revolute"), "joint", i, "kind")
        values = common | {"kind": kind}
        for key, raw in given.items():
            value = self._value(FIELDS, raw, "joint", i, key)
            values[key] = self._in_si(raw, value, kind, "joint", i, key)
        try:
            row = row_of(values)
        except ModelError as error:
            raise self.error(str(error), "joint", i) from None
        return replace(row, where=self.where("joint", i))

    def _pose(self, name: str) -> Pose:
        values = {}
        for key, value in self._plain(name).items():
            values[key] = self._in_si(self.data[name][key], value, "", name, key)
        R = rotation_from_angles("xyz", values.get("rpy", (0.0, 0.0, 0.0)), "fixed").matrix()
        p = values.get("position", (0.0, 0.0, 0.0))
        return (*((*row, x) for row, x in zip(R.rows, p, strict=True)), IDENTITY[3])

    def _in_si(self, raw: Any, value: Any, kind: str, *path: str | int) -> Any:
        """A value of the file in SI units and radians."""
        key = path[-1]
        if key in ANGLES or (key in COORDINATES and kind == "revolute"):
            if isinstance(value, tuple):
                return tuple(self._angle(r, v, *path) for r, v in zip(raw, value, strict=True))
            return self._angle(raw, value, *path)
        length, mass = self.units["length"], self.units["mass"]
        if key in LENGTHS or (key in COORDINATES and kind == "prismatic"):
            return tuple(map(length, value)) if isinstance(value, tuple) else length(value)
        if key == "mass":
            return mass(value)
        if key == "inertia":
            return tuple(mass(length(length(x))) for x in value)
        return value

    def _angle(self, raw: Any, value: float, *path: str | int) -> float:
        """In rad; printed digits of a right angle mean a right angle."""
        if self.units["angle"] is float and self.snap and isinstance(raw, _Printed):
            k = right_angles(raw.text) if math.isfinite(value) else 0
            if k and value != radians(k):
                note = self.error(f"{path[-1]} {raw.text} taken as {multiple(k)}", *path)
                self.notes.append(str(note))
            value = radians(k) if k else value
        return self.units["angle"](value)


def _part(*path: str | int) -> str:
    """The table that a key is in, for an error."""
    if len(path) == 1:
        return ""
    return f"joint {int(path[1]) + 1}: " if path[0] == "joint" else f"{path[0]}: "


def _decoded(file: str, data: bytes) -> str:
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ModelError(f"{file}:{line}: this is no text in UTF-8; save it as such") from None


def _parsed(file: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=_Printed)
    except (ValueError, RecursionError) as error:
        found = re.search(r"(.*?) \(at line (\d+)", str(error))
        what = found[1] if found else "nested too deep" if isinstance(error, RecursionError) else ""
        line = int(found[2]) if found else text.count("\n") + 1
        what = what or str(error).removesuffix(" (at end of document)")
        raise ModelError(f"{file}:{line}: {what}; write it as toml.io says") from None


# Writing ---------------------------------------------------------------------------------------


def write(
    description: Description,
    path: str | os.PathLike[str],
    *,
    convention: Convention = "modified",
    tool: str | None = None,
) -> None:
    """Write the table of a serial arm, in SI units and radians; read back, it is the same arm.

    convention, tool, and what is refused: as for `chasles.to_dh`. Links that do not move, and
    frames other than the tool, have no place in the file.
    """
    table = dh_table(build(description), convention, tool)
    text = [
        "# Denavit-Hartenberg table; m, kg, rad",
        'format = "dh"',
        f"convention = {_word(table.convention)}",
        f"name = {_word(table.name)}",
        f"gravity = {_word(table.gravity)}",
    ]
    for name, pose in (("base", table.base), ("tool", table.tool)):
        if pose != IDENTITY:
            R = Matrix(tuple(row[:3] for row in pose[:3]))
            angles = ", ".join(map(_angle_word, angles_from_matrix(R, "xyz", "fixed")[0]))
            position = _word(tuple(row[3] for row in pose[:3]))
            text += ["", f"[{name}]", f"position = {position}", f"rpy = [{angles}]"]
    for row in table.rows:
        text += ["", "[[joint]]", *_row_lines(row)]
    Path(path).write_text("\n".join(text) + "\n", "utf-8")


def _row_lines(row: DHRow) -> list[str]:
    """The fields of a row that are not as they are without being said."""
    lines = []
    for known in fields(DHRow):
        value = getattr(row, known.name)
        if known.name in FIELDS and (known.name == "kind" or value != known.default):
            word = _angle_word(value) if known.name in ANGLES else _word(value)
            lines.append(f"{known.name} = {word}")
    return lines


def _word(value: Any) -> str:
    """A value as TOML writes it, with all digits."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return f"[{', '.join(map(_word, value))}]"
    return repr(float(value) + 0.0)


def _angle_word(angle: Any) -> str:
    """An angle, with digits that are not taken for a right angle unless it is one."""
    word = _word(angle)
    k = right_angles(word)
    return f"{angle:.20f}" if k and float(angle) != radians(k) else word
