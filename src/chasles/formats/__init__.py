"""Robot files: one reader for each format, chosen by the file's suffix."""

import os
from collections.abc import Callable, Mapping
from pathlib import PurePath

from chasles.formats import urdf
from chasles.model import Description, ModelError

READERS: Mapping[str, Callable[..., Description]] = {
    ".urdf": urdf.read,
}
"""Every format by suffix; a reader takes a path and the options of `read`."""


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
    return READERS[suffix](path, snap=snap, floating=floating)


__all__ = ["READERS", "read"]
