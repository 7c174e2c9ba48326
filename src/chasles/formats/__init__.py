"""Robot files: one reader and one writer for each format, chosen by the file's suffix."""

import importlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from types import ModuleType
from typing import Any

from chasles.errors import ModelError
from chasles.formats.mesh_files import renamed
from chasles.formats.writable import writable
from chasles.model import Description

READERS: dict[str, str] = {
    ".urdf": "chasles.formats.urdf",
    ".dat": "chasles.formats.dat",
    ".toml": "chasles.formats.toml_robots",
    ".xml": "chasles.formats.mjcf",
    ".mjcf": "chasles.formats.mjcf",
    ".sdf": "chasles.formats.sdf",
    ".xacro": "chasles.formats.xacro",
}
"""One row a format: the module whose `read` takes a path and the options below; loaded on use."""

WRITERS: dict[str, str] = {
    ".toml": "chasles.formats.mechanism_writer",
    ".urdf": "chasles.formats.urdf_writer",
    ".xml": "chasles.formats.mjcf_writer",
    ".mjcf": "chasles.formats.mjcf_writer",
    ".sdf": "chasles.formats.sdf_writer",
}
"""One row a format: the module whose `write` takes a description and a path; loaded on use."""


MAX_LINKS = 5_000
"""Of a robot: what has more takes many seconds to build, and is no robot."""


def read(
    path: str | os.PathLike[str],
    *,
    snap: bool = True,
    floating: bool = False,
    arguments: Mapping[str, str] | None = None,
) -> Description:
    """What a robot file says, before any choice of numbering or frames.

    snap: take angles printed as a rounded multiple of a right angle for that multiple.
    floating: put the root link on a free joint. arguments: of a xacro file.
    """
    options: dict[str, Any] = {"snap": snap, "floating": floating}
    if arguments:
        if not os.fsdecode(path).lower().endswith(".xacro"):
            problem = "only .xacro files take arguments"
            raise ModelError("E-FILE-001", problem, "leave them out", file=os.fsdecode(path))
        options["arguments"] = arguments
    description: Description = _module(READERS, path).read(path, **options)
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
    notes: tuple[str, ...] = _module(WRITERS, path).write(there, path)
    return (*left, *notes)


def _module(table: Mapping[str, str], path: str | os.PathLike[str]) -> ModuleType:
    """The row of a table for a file."""
    suffix = PurePath(os.fsdecode(path)).suffix.lower()
    if suffix not in table:
        fault = "this is a directory" if os.path.isdir(path) else f"unknown file type {suffix!r}"
        remedy = f"give a file that ends in {', '.join(table)}"
        raise ModelError("E-FILE-003", fault, remedy, file=os.fsdecode(path))
    return importlib.import_module(table[suffix])


__all__ = ["READERS", "WRITERS", "read", "write"]
