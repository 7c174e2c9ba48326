"""Read TOML files, with unit conversion and line numbers for error messages; write TOML files."""

import bisect
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from chasles.errors import ModelError
from chasles.formats.files import angle_word, load, radians, snapped
from chasles.mathematics.linear import Vector
from chasles.model import JOINTS, Mimic
from chasles.model.dh_fields import Field, checked, choice
from chasles.names import suggest

MAX_BYTES, MAX_MARKS, MAX_DOTS, MAX_WORD = 8 * 2**20, 300_000, 4, 1000
"""Maximum numbers of bytes and marks in a file, dots in a key, and characters in a key or number.

Marks are "=", ",", "[", "{" and line ends; they bound the number of keys and values. A robot with a
hundred links has 10,000 marks. Because `tomllib` stores all prefixes of a dotted key, a 90 kB key
would need 6 GB.
"""

_MARKS = ("=", ",", "[", "{", "\n")

_TEXTS = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"{3,5})?'
    r"|'''(?:[^']++|'(?!''))*+(?:'{3,5})?"
    r'|"(?:[^"\\\n]++|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+",
    re.DOTALL,
)
"""Pattern for strings and comments, equivalent to `tomllib` up to the first syntax error."""

_STATEMENT = re.compile(r"[=,\[\]{}\n]+")
"""Pattern for the separators between keys, values and headers."""


UNITS: dict[str, dict[str, Callable[[float], float]]] = {
    "angle": {"rad": float, "deg": math.radians},
    "length": {"m": float, "mm": lambda x: x / 1e3},
    "mass": {"kg": float, "g": lambda x: x / 1e3},
}
"""Conversions to SI units for each quantity and unit; the default unit comes first."""

ANGLES = ("theta", "alpha", "rpy", "child_rpy")
LENGTHS = ("d", "a", "b", "center", "position", "child_position", "radius", "pitch", "size")
COORDINATES = ("limits", "velocity")
"""Keys whose unit (of angle or length) depends on the joint type."""

_HEADER = re.compile(r"\s*\[{1,2}\s*[\"']?([\w-]+)[\"']?\s*\]{1,2}\s*(#.*)?")

_UNITS = {what: choice(*names) for what, names in UNITS.items()}


def _coordinate(kind: str) -> str:
    """Return the quantity of a joint type's coordinates: "angle", "length", or "" for neither."""
    units = set(JOINTS[kind].units) if kind in JOINTS else set()
    return {"rad": "angle", "m": "length"}[units.pop()] if units in ({"rad"}, {"m"}) else ""


class _Printed(float):
    """A number that also stores its original text."""

    text: str

    def __new__(cls, text: str) -> "_Printed":
        made = super().__new__(cls, text)
        made.text = text.replace("_", "")
        return made

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]
        return (self.text,)


class Lines:
    """Line numbers of headers and keys, which `tomllib` does not provide.

    Only keys at the start of a line are found, not keys in inline tables.
    """

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._starts: dict[str, list[int]] = {}
        for k, line in enumerate(self._lines):
            if match := _HEADER.fullmatch(line.rstrip("\r")):
                self._starts.setdefault(match[1], []).append(k)
        self._headers = sorted(chain.from_iterable(self._starts.values()))

    def of(self, data: dict[str, Any], *path: str | int) -> int | None:
        """Return the line number (from 1) of a key, given its path, e.g. ("joint", 2, "theta").

        If the key is not found, return the line number of its table, or None.
        """
        block, *rest = path
        starts = self._starts.get(str(block), [])
        value = data.get(str(block))
        expected = len(value) if isinstance(value, list) else 1
        if not starts or len(starts) != expected:
            return self._key(str(block), 0)
        start = starts[int(rest.pop(0))] if isinstance(value, list) and rest else starts[0]
        return (self._key(str(rest[0]), start + 1) if rest else None) or start + 1

    def _key(self, key: str, first: int) -> int | None:
        """Return the line number of `key = ...` between line `first` and the next header."""
        pattern = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]")
        k = bisect.bisect_left(self._headers, first)
        last = self._headers[k] if k < len(self._headers) else len(self._lines)
        found = [k for k in range(first, last) if pattern.match(self._lines[k])]
        return found[0] + 1 if len(found) == 1 else None


class TomlFile:
    """A TOML file that is being read.

    If `snap` is True, `notes` contains messages about angles that were replaced by multiples of
    pi/2.
    """

    def __init__(self, path: str | os.PathLike[str], snap: bool) -> None:
        self.file, self.snap = os.fsdecode(path), snap
        self.notes: list[str] = []
        data = load(self.file)
        _check_size(self.file, data)
        text = _decoded(self.file, data)
        _check_keys(self.file, text)
        self.data = _parsed(self.file, text)
        self._lines = Lines(text)
        self._units = {what: next(iter(names.values())) for what, names in UNITS.items()}

    def where(self, *path: str | int) -> str:
        """Return "file:line" for a key, or only the file if the line is unknown."""
        line = self._lines.of(self.data, *path)
        return self.file if line is None else f"{self.file}:{line}"

    def error(self, code: str, problem: str, remedy: str, *path: str | int) -> ModelError:
        return self.placed(ModelError(code, problem, remedy), *path)

    def placed(self, error: ModelError, *path: str | int) -> ModelError:
        """Return a copy of an error, with the line and table of a key added."""
        return error.at(part=self._part(*path), file=self.where(*path))

    def top(self, plain: dict[str, Field], tables: Mapping[str, object]) -> dict[str, Any]:
        """Read the units, and return all other top-level values except tables and `format`."""
        self._check_keys(self.data, {"format": None, **plain, "units": None, **tables})
        given = self.data.get("units", {})
        self._check_keys(given, _UNITS, "units")
        for what, unit in given.items():
            self._units[what] = UNITS[what][self._value(_UNITS, unit, "units", what)]
        return {k: self._value(plain, v, k) for k, v in self.data.items() if k in plain}

    def table(self, name: str, known: dict[str, Field]) -> dict[str, Any]:
        """Return the values in a top-level table in SI units; empty if the table is missing."""
        return self._read(self.data.get(name, {}), known, "", name)

    def rows(self, name: str, known: dict[str, Field], kind: str = "") -> list[dict[str, Any]]:
        """Read all [[name]] tables, converted to SI units; `kind` is the default joint type."""
        given = self.data.get(name, [])
        if not isinstance(given, list):
            problem = f"{name} is not a list of tables"
            raise self.error("E-TOML-013", problem, f"write [[{name}]] above each table", name)
        return [self._read(row, known, kind, name, i) for i, row in enumerate(given)]

    def _read(
        self, given: Any, known: dict[str, Field], kind: str, *path: str | int
    ) -> dict[str, Any]:
        self._check_keys(given, known, *path)
        values = {key: self._value(known, raw, *path, key) for key, raw in given.items()}
        measure = _coordinate(values.get("kind", kind))
        return {k: self._in_si(given[k], v, measure, *path, k) for k, v in values.items()}

    def _check_keys(self, given: Any, known: Mapping[str, object], *path: str | int) -> None:
        if not isinstance(given, dict):
            problem = f"{path[0]} is {given!r:.40}"
            raise self.error("E-TOML-014", problem, f"use a table with {', '.join(known)}", *path)
        for key in given:
            if key not in known:
                problem = f"unknown key {key!r}"
                raise self.error("E-TOML-015", problem, suggest(key, known), *path, key)

    def _value(self, known: dict[str, Field], value: Any, *path: str | int) -> Any:
        try:
            return checked(known, str(path[-1]), value)
        except ModelError as error:
            raise self.placed(error, *path) from None

    def _in_si(self, raw: Any, value: Any, coordinate: str, *path: str | int) -> Any:
        """Convert a value to SI units and radians."""
        key = path[-1]
        if key in ANGLES or (key in COORDINATES and coordinate == "angle"):
            if isinstance(value, tuple):
                return tuple(self._angle(r, v, *path) for r, v in zip(raw, value, strict=True))
            return self._angle(raw, value, *path)
        length, mass = self._units["length"], self._units["mass"]
        if key in LENGTHS or (key in COORDINATES and coordinate == "length"):
            return tuple(map(length, value)) if isinstance(value, tuple) else length(value)
        if key == "mass":
            return mass(value)
        if key == "inertia":
            return tuple(mass(length(length(x))) for x in value)
        return value

    def _part(self, *path: str | int) -> str:
        """Return the name of a key's table for messages: "joint 'elbow'", or "joint 3"."""
        if len(path) == 1:
            return ""
        kind, place = path[:2]
        if not isinstance(place, int):
            return f"{kind}"
        row = self.data[str(kind)][place]
        name = row.get("name") if isinstance(row, dict) else None
        return f"{kind} {name!r:.60}" if name and isinstance(name, str) else f"{kind} {place + 1}"

    def _angle(self, raw: Any, value: float, *path: str | int) -> float:
        """Convert an angle to rad; replace a rounded multiple of pi/2 by the exact multiple."""

        def note(what: str) -> None:
            self.notes.append(": ".join(filter(None, (self.where(*path), self._part(*path), what))))

        printed = isinstance(raw, _Printed) and math.isfinite(value)
        snaps = self._units["angle"] is float and self.snap and printed
        k = snapped(raw.text, str(path[-1]), note) if snaps else 0
        return radians(k) if k else self._units["angle"](value)


def _check_size(file: str, data: bytes) -> None:
    """Raise an error if a file would need too much memory to parse."""
    marks = sum(data.count(mark.encode()) for mark in _MARKS)
    if len(data) > MAX_BYTES or marks > MAX_MARKS:
        problem = (
            f"the file size is {len(data) / 2**20:.1f} MB, with {marks} keys, entries and lines; "
            f"the limits are {MAX_BYTES // 2**20} MB and {MAX_MARKS} keys, entries and lines"
        )
        raise ModelError("E-TOML-012", problem, "check that this is the intended file", file=file)


def _check_keys(file: str, text: str) -> None:
    """Raise an error for long numbers, long keys, and keys with many dots."""
    for word in _STATEMENT.split(_TEXTS.sub("0", text)):
        if word.count(".") > MAX_DOTS or len(word.strip()) > MAX_WORD:
            problem = f"a key or number has more than {MAX_DOTS} dots or {MAX_WORD} characters"
            remedy = "shorten the key or number, or define nested keys under [table] headers"
            raise ModelError("E-TOML-019", problem, remedy, file=file)


def _decoded(file: str, data: bytes) -> str:
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = "the file is not UTF-8 text"
        raise ModelError(
            "E-TOML-016", problem, "save the file as UTF-8", file=file, line=line
        ) from None


def _parsed(file: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=_Printed)
    except (ValueError, RecursionError) as error:
        found = re.search(r"(.*?) \(at line (\d+)", str(error))
        what = (
            found[1]
            if found
            else "the document is nested too deeply"
            if isinstance(error, RecursionError)
            else ""
        )
        line = int(found[2]) if found else text.count("\n") + 1
        what = what or str(error).removesuffix(" (at end of document)")
        remedy = "follow the TOML syntax (toml.io)"
        raise ModelError("E-TOML-017", what, remedy, file=file, line=line) from None


# Writing ---------------------------------------------------------------------------------------


def lines(row: Mapping[str, Any]) -> list[str]:
    """Format a table as lines of TOML; omit values that are None."""
    angular = (*ANGLES, *COORDINATES)
    given = {key: value for key, value in row.items() if value is not None}
    return [f"{key} = {word(x, angular=key in angular)}" for key, x in given.items()]


def word(value: Any, *, angular: bool = False) -> str:
    """Format a value as TOML at full precision; angles are formatted by `angle_word`."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int):
        return str(value).lower()
    if isinstance(value, tuple | list | Vector):
        return f"[{', '.join(word(x, angular=angular) for x in value)}]"
    if isinstance(value, Mimic):
        value = vars(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{word(key)} = {word(x)}' for key, x in value.items())}}}"
    return angle_word(value) if angular and math.isfinite(value) else repr(float(value) + 0.0)
