"""Robot files: one reader for each format, chosen by the file's suffix."""

import importlib
import os
from pathlib import PurePath

from chasles.model import Description, ModelError

READERS: dict[str, str] = {
    ".urdf": "chasles.formats.urdf",
    ".dat": "chasles.formats.dat",
    ".toml": "chasles.formats.toml_robots",
    ".xml": "chasles.formats.mjcf",
    ".mjcf": "chasles.formats.mjcf",
}
"""One row a format: the module whose `read` takes a path and the options below; loaded on use."""


def read(path: str | os.PathLike[str], *, snap: bool = True, floating: bool = False) -> Description:
    """What a robot file says, before any choice of numbering or frames.

    snap: take angles printed as a rounded multiple of a right angle for that multiple.
    floating: put the root link on a free joint.
    """
    suffix = PurePath(path).suffix.lower()
    if suffix not in READERS:
        raise ModelError(
            f"{os.fspath(path)}: unknown file type {suffix!r}; "
            f"give a file that ends in {', '.join(READERS)}"
        )
    reader = importlib.import_module(READERS[suffix])
    description: Description = reader.read(path, snap=snap, floating=floating)
    return description


__all__ = ["READERS", "read"]
