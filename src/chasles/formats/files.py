"""Table of robot file formats, and functions that read bytes, lines and numbers from files."""

import importlib
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple

from chasles.errors import ArgumentError, ModelError
from chasles.expr import Number
from chasles.formats.writable import writable
from chasles.model import Description
from chasles.model.description import Precision
from chasles.model.given import admitted
from chasles.writing import check_target


class Format(NamedTuple):
    """A robot file format.

    Attributes
    ----------
    suffixes
        File name suffixes, starting with the default.
    reader
        Module whose `read` accepts a path and the options of `formats.read`.
    writer
        Module whose `write` accepts a description and a path.
    arguments
        True if files of this format accept arguments (xacro).
    installed
        True if `registry` searches installed packages for files of this format.
    survey
        Function ("module:function") that extracts raw values from a file for lint.
    seen
        Values that lint checks after a file has loaded without errors: the raw values ("raw"), the
        loaded robot ("loaded"), or "both".
    """

    suffixes: tuple[str, ...]
    reader: str
    writer: str = ""
    arguments: bool = False
    installed: bool = False
    survey: str = ""
    seen: Literal["raw", "loaded", "both"] = "loaded"


FORMATS: dict[str, Format] = {
    "TOML": Format((".toml",), "chasles.formats.mechanism", "chasles.formats.mechanism_writer",
                   survey="chasles.lint.surveys:toml"),
    "URDF": Format((".urdf",), "chasles.formats.urdf", "chasles.formats.urdf", installed=True,
                   survey="chasles.lint.surveys:urdf", seen="raw"),
    "MJCF": Format((".xml", ".mjcf"), "chasles.formats.mjcf", "chasles.formats.mjcf_writer",
                   installed=True, survey="chasles.lint.surveys:mjcf"),
    "SDF": Format((".sdf",), "chasles.formats.sdf", "chasles.formats.sdf_writer", installed=True,
                  survey="chasles.lint.surveys:sdf", seen="both"),
    "xacro": Format((".xacro",), "chasles.formats.xacro", arguments=True,
                    survey="chasles.lint.surveys:xacro", seen="raw"),
    "data": Format((".dat",), "chasles.formats.dat"),
}  # fmt: skip
"""Supported formats; their modules are imported on first use."""

MAX_LINKS = 5_000
"""Maximum number of links in a robot."""


def suffixes(*, written: bool = False, installed: bool = False) -> tuple[str, ...]:
    """Return the supported file suffixes.

    If `written` is True, formats that can only be read are excluded. If `installed` is True, return
    only the default suffix of each format that `registry` searches for in installed packages.
    """
    return tuple(
        suffix
        for row in FORMATS.values()
        for suffix in row.suffixes[: 1 if installed else None]
        if (row.writer or not written) and (row.installed or not installed)
    )


def endings(*, written: bool = False) -> str:
    """Return the supported suffixes as a phrase for messages, such as ".urdf, .xml or .sdf"."""
    *most, last = suffixes(written=written)
    return f"{', '.join(most)} or {last}"


def a_path(path: str | os.PathLike[str], part: str) -> str:
    """Return the path of a file with the home folder (~) expanded.

    Raise an error if the argument is not a path, is empty, or contains the text of a file.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        problem = f"`path` must be a file name, not {type(path).__name__}"
        raise ArgumentError("E-FILE-411", problem, part=part)
    text = os.path.expanduser(os.fsdecode(path))
    if not text:
        raise ModelError("E-FILE-412", "the path is empty", "give a file name", part=part)
    if ("\n" in text or text.lstrip().startswith("<")) and not os.path.exists(text):
        problem = "`path` must be a file name, not the text of a file"
        raise ModelError("E-FILE-413", problem, "save the text to a file", part=part)
    return text


def is_name(path: str | os.PathLike[str]) -> bool:
    """Return True if a path is not a file but may be the name of a robot, such as "arm_v1.2".

    The result is also True if a directory has this name, such as the output folder of a command.
    """
    text = os.fsdecode(path)
    file = Path(text)
    is_bare = bool(text) and file.name == text
    return (
        is_bare
        and file.suffix.lower() not in suffixes()
        and (os.path.isdir(file) or not os.path.exists(file))
    )


def read(
    path: str | os.PathLike[str],
    *,
    snap: bool = True,
    floating: bool = False,
    arguments: Mapping[str, str] | None = None,
    trust: bool = False,
) -> Description:
    """Read a robot file as a `Description`; frames and the order of links and joints are kept.

    Physically impossible values either raise an error or are corrected and reported in a note, as
    described in `chasles.model.ranges`. If `snap` is True, replace each angle that is written as a
    rounded multiple of pi/2 with the exact multiple. If `floating` is True, attach the root link to
    the world by a free joint. `arguments` are the arguments for a xacro file. If `trust` is True,
    allow a xacro file to run Python code; other formats contain no code.
    """
    options = {"snap": snap, "floating": floating, "trust": trust}
    found = admitted(written(path, arguments=arguments, **options))
    if (found.loops or found.couplings) and found.precision == Precision():
        return replace(found, precision=printed(sorted(inputs(found))))
    return found


def written(
    path: str | os.PathLike[str],
    *,
    snap: bool = True,
    floating: bool = False,
    arguments: Mapping[str, str] | None = None,
    trust: bool = False,
) -> Description:
    """Read a robot file without checking that its values are physically possible."""
    options: dict[str, Any] = {"snap": snap, "floating": floating}
    if arguments:
        taking = [suffix for row in FORMATS.values() if row.arguments for suffix in row.suffixes]
        if not os.fsdecode(path).lower().endswith(tuple(taking)):
            problem = f"only {', '.join(taking)} files accept arguments"
            raise ModelError("E-FILE-001", problem, "omit the arguments", file=os.fsdecode(path))
        options["arguments"] = arguments
    row = row_of(path)
    if row.arguments:
        options["trust"] = trust
    description: Description = importlib.import_module(row.reader).read(path, **options)
    if len(description.links) > MAX_LINKS:
        problem = (
            f"the file has {len(description.links)} links, but at most {MAX_LINKS} are supported"
        )
        remedy = "merge links that are connected by fixed joints"
        raise ModelError("E-FILE-002", problem, remedy, file=os.fsdecode(path))
    return description


def write(
    description: Description, path: str | os.PathLike[str], *, overwrite: bool = True
) -> tuple[str, ...]:
    """Write a robot file and return notes on omitted parts.

    If `overwrite` is False, an existing file raises an error.

    Parts that affect the motion are never omitted: if the format cannot represent such a part, an
    error names it and no file is written.
    """
    file = os.fsdecode(path)
    shapes = (replace(s, file=renamed(s.file, description.where, file)) for s in description.shapes)
    there, left = writable(replace(description, shapes=tuple(shapes)))
    row = row_of(path, written=True)
    writer = importlib.import_module(row.writer)
    check_target(path, overwrite=overwrite)
    notes: tuple[str, ...] = writer.write(there, path)
    counts = {
        "sensors": 0 if row is FORMATS["MJCF"] else len(description.sensors),
        "planes": 0 if row is FORMATS["TOML"] else len(description.planes),
        "height fields": len(description.fields),
        "explicit contact pairs of shapes": len(description.paired),
    }
    ignored = (f"{what} ({count}) are ignored" for what, count in counts.items() if count)
    return (*left, *ignored, *notes)


def inputs(description: Description) -> set[str]:
    """Return the paths of a robot's main file and of all files that it includes."""
    rows = (description.links, description.joints, description.loops, description.couplings)
    places = {description.where, *(part.where for row in rows for part in row)}
    places |= {rotor.where for rotor in description.rotors}
    return {re.sub(r":\d+$", "", place) for place in places if place}


def row_of(path: str | os.PathLike[str], *, written: bool = False) -> Format:
    """Return the file format of a path; `written` excludes formats that can only be read."""
    suffix, known = Path(os.fsdecode(path)).suffix.lower(), suffixes(written=written)
    if suffix not in known:
        fault = (
            "the path is a directory" if os.path.isdir(path) else f"unknown file type {suffix!r}"
        )
        remedy = f"use a file name ending in {', '.join(known)}"
        raise ModelError("E-FILE-003", fault, remedy, file=os.fsdecode(path))
    return next(row for row in FORMATS.values() if suffix in row.suffixes)


# Bytes and lines -------------------------------------------------------------------------------

MAX_BYTES = 64 * 2**20
"""Maximum size of a robot file (bytes); the largest file in example-robot-data is 0.2 MB."""

MAX_LINE = 2**20
"""Maximum length of a line (bytes)."""

_COMMENT = re.compile(r"(^|\s)#.*")


class Line(NamedTuple):
    """A nonblank line with its line number (from 1) and the byte offset of its end."""

    file: str
    number: int
    text: str
    end: int

    def error(self, code: str, problem: str, remedy: str) -> ModelError:
        return ModelError(code, problem, remedy, file=self.file, line=self.number)


def size(file: str) -> int:
    """Return the size of a regular file in bytes."""
    if not os.path.isfile(file):
        fault = "the path is a device, a pipe or a broken link" if os.path.lexists(file) else ""
        fault = (
            "the path is a directory" if os.path.isdir(file) else fault or "the file does not exist"
        )
        raise ModelError("E-FILE-004", fault, "check the path", file=file)
    return os.path.getsize(file)


def load(file: str) -> bytes:
    """Read a robot file as bytes; raise an error if it is empty or too large."""
    try:
        check_bearable(file)
        with open(file, "rb") as stream:
            data = stream.read(MAX_BYTES)
    except OSError as error:
        remedy = "check that the file is readable"
        raise ModelError("E-FILE-005", error.strerror or str(error), remedy, file=file) from error
    if not data.strip():
        raise ModelError("E-FILE-006", "the file is empty", "export the robot again", file=file)
    return data


def check_bearable(file: str) -> None:
    """Raise an error if a robot file is larger than `MAX_BYTES`."""
    if size(file) > MAX_BYTES:
        megabytes = f"{size(file) / 2**20:.0f} MB"
        problem = (
            f"the file size, {megabytes}, exceeds the limit of {MAX_BYTES // 2**20} "
            "MB for robot files"
        )
        raise ModelError("E-FILE-007", problem, "check that this is the intended file", file=file)


def lines(file: str) -> Iterator[Line]:
    """Yield the nonblank lines of a text file, with comments (#) removed."""
    size(file)
    try:
        with open(file, "rb") as stream:
            number = end = 0
            while raw := stream.readline(MAX_LINE + 1):
                number, end = number + 1, end + len(raw)
                if len(raw) > MAX_LINE:
                    problem = f"the line is longer than {MAX_LINE} bytes"
                    remedy = "check that this is a text file"
                    raise ModelError("E-FILE-008", problem, remedy, file=file, line=number)
                text = _COMMENT.sub("", raw.decode("utf-8", "replace").lstrip("\ufeff")).strip()
                if text:
                    yield Line(file, number, text, end)
    except OSError as error:
        remedy = "check that the file is readable"
        raise ModelError("E-FILE-009", error.strerror or str(error), remedy, file=file) from error


def short(text: str) -> str:
    """Return a string in quotes, truncated to 60 characters."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def renamed(name: str, robot_file: str, other: str) -> str:
    """Convert a mesh path relative to the file `robot_file` into a path relative to `other`."""
    folder, place = (os.path.dirname(os.path.abspath(file)) for file in (robot_file, other))
    if not robot_file or folder == place or "://" in name or os.path.isabs(name):
        return name
    path = os.path.join(folder, name)
    try:
        return Path(os.path.relpath(path, place)).as_posix()
    except ValueError:  # the path is on another drive (Windows)
        return path


# Numbers ---------------------------------------------------------------------------------------

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)

RIGHT_ANGLE, _RADIAN = 15707963267948966192313216916397514420985, 10**40
"""pi/2 and 1 rad as integers in units of 1e-40 rad, for exact digit-by-digit comparison."""

_MOST_RIGHT_ANGLES = 8


def is_number(word: str) -> bool:
    """Return True if a string is a finite decimal number."""
    return _NUMBER.fullmatch(word) is not None and math.isfinite(float(word))


_PRINTED = re.compile(rb"(?<![\w.])(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?(?![\w.])")


def printed(files: Iterable[str]) -> Precision:
    """Return the maximum precision of numbers in files: significant digits and decimal places."""
    significant = decimals = 0
    for file in filter(os.path.isfile, files):
        for whole, part, exponent in set(_PRINTED.findall(load(file))):
            digits = (whole + part).lstrip(b"0")
            significant = max(significant, len(digits if part else digits.rstrip(b"0")))
            decimals = max(decimals, len(part) - int(exponent or 0))
    return Precision(min(significant, 17), min(decimals, 17)) if significant else Precision()


def snapped(angle: str, name: str, note: Callable[[str], None]) -> int:
    """Return k if an angle represents k pi/2, else 0; call `note` if the angle was rounded."""
    k = right_angles(angle)
    if k and float(angle) != radians(k):
        numerator, denominator = (k, "/2") if k % 2 else (k // 2, "")
        factor = {1: "", -1: "-"}.get(numerator, str(numerator))
        note(f"{name} {angle} taken as {factor}pi{denominator}")
    return k


def right_angles(angle: str) -> int:
    """Return k if an angle (rad, as written in a file) represents k pi/2, and 0 otherwise.

    An angle with 5 to 17 digits represents k pi/2 if it equals k pi/2 rounded or truncated to that
    number of digits. An angle with any number of digits represents k pi/2 if, as a double, it
    differs from the double nearest to k pi/2 by at most one unit in the last place. k is between -8
    and 8.
    """
    k = round(float(angle) / radians(1))
    if not 0 < abs(k) <= _MOST_RIGHT_ANGLES:
        return 0
    if abs(float(angle) - radians(k)) <= math.ulp(radians(k)):
        return k
    _, digits, exponent = Decimal(angle).as_tuple()
    if not 5 <= len(digits) <= 17:
        return 0
    printed = int("".join(map(str, digits)))
    unit = 10 ** (40 + int(exponent))
    exact = abs(k) * RIGHT_ANGLE
    return k if printed in (exact // unit, (exact + unit // 2) // unit) else 0


def radians(k: int) -> float:
    """Return the double nearest to k pi/2."""
    return k * RIGHT_ANGLE / _RADIAN


def angle_word(angle: Any) -> str:
    """Format an angle (rad).

    An angle that is close but not equal to a multiple of pi/2 is written with 20 decimal places.
    Otherwise, reading the file would replace the angle with the multiple.
    """
    plain = repr(float(angle) + 0.0)
    k = right_angles(plain)
    return f"{angle:.20f}" if k and float(angle) != radians(k) else plain


def words(numbers: Iterable[Number]) -> str:
    """Return numbers as a string, at full precision and separated by spaces."""
    return " ".join(repr(float(x) + 0.0) for x in numbers)
