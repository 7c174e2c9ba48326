"""Robot files: one reader and one writer for each format, chosen by the file's suffix."""

import importlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from chasles.errors import ModelError
from chasles.formats.files import renamed
from chasles.formats.writable import writable
from chasles.model import Description


class Format(NamedTuple):
    """A file format. suffixes: of its files, the usual one first.

    reader: the module whose `read` takes a path and the options of `formats.read`. writer: the one
    whose `write` takes a description and a path, if it can be written. arguments: files take them.
    installed: packages of robots have such files. survey: "module:function" that reads what a file
    says, raw, for lint; without it lint sees what was loaded. seen: what counts for lint of a file
    that loads: what it says ("raw"), what was loaded ("loaded"), or what was loaded with what the
    file says of the same part ("both").
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
"""One row a format; its modules are loaded on use."""

MAX_LINKS = 5_000
"""Of a robot: what has more takes many seconds to build, and is no robot."""


def suffixes(*, written: bool = False, installed: bool = False) -> tuple[str, ...]:
    """Suffixes of files that can be read; that can be written; or that packages install."""
    return tuple(
        suffix
        for row in FORMATS.values()
        for suffix in row.suffixes[: 1 if installed else None]
        if (row.writer or not written) and (row.installed or not installed)
    )


def endings(*, written: bool = False) -> str:
    """The suffixes of files that can be read, or written, in words."""
    *most, last = suffixes(written=written)
    return f"{', '.join(most)} or {last}"


def is_name(path: str | os.PathLike[str]) -> bool:
    """Return True if a path is not a file, but may be a robot's name, such as "arm_v1.2"."""
    text = os.fsdecode(path)
    file = Path(text)
    is_bare = bool(text) and file.name == text
    return is_bare and file.suffix.lower() not in suffixes() and not file.exists()


def read(
    path: str | os.PathLike[str],
    *,
    snap: bool = True,
    floating: bool = False,
    arguments: Mapping[str, str] | None = None,
) -> Description:
    """Read a robot file, before any choice of numbering or frames.

    snap: take angles printed as a rounded multiple of a right angle for that multiple.
    floating: put the root link on a free joint. arguments: of a xacro file.
    """
    options: dict[str, Any] = {"snap": snap, "floating": floating}
    if arguments:
        taking = [suffix for row in FORMATS.values() if row.arguments for suffix in row.suffixes]
        if not os.fsdecode(path).lower().endswith(tuple(taking)):
            problem = f"only {', '.join(taking)} files take arguments"
            raise ModelError("E-FILE-001", problem, "leave them out", file=os.fsdecode(path))
        options["arguments"] = arguments
    description: Description = importlib.import_module(row_of(path).reader).read(path, **options)
    if len(description.links) > MAX_LINKS:
        problem = f"{len(description.links)} links, and a robot may have {MAX_LINKS}"
        remedy = "check that this is the right file"
        raise ModelError("E-FILE-002", problem, remedy, file=os.fsdecode(path))
    return description


def write(description: Description, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a robot file, whole or not at all; notes say what the format has no place for.

    Such is left out only if the motion does not change with it; anything else is an error that
    names the part.
    """
    file = os.fsdecode(path)
    shapes = (replace(s, file=renamed(s.file, description.where, file)) for s in description.shapes)
    there, left = writable(replace(description, shapes=tuple(shapes)))
    writer = importlib.import_module(row_of(path, written=True).writer)
    notes: tuple[str, ...] = writer.write(there, path)
    return (*left, *notes)


def row_of(path: str | os.PathLike[str], *, written: bool = False) -> Format:
    """The format of a file, to be read or written, by its suffix."""
    suffix, known = Path(os.fsdecode(path)).suffix.lower(), suffixes(written=written)
    if suffix not in known:
        fault = "this is a directory" if os.path.isdir(path) else f"unknown file type {suffix!r}"
        remedy = f"give a file that ends in {', '.join(known)}"
        raise ModelError("E-FILE-003", fault, remedy, file=os.fsdecode(path))
    return next(row for row in FORMATS.values() if suffix in row.suffixes)


__all__ = ["FORMATS", "Format", "endings", "is_name", "read", "row_of", "suffixes", "write"]
