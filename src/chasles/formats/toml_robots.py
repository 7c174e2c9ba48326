"""Robot files in TOML: the key `format` at the top says which of the formats one is in."""

import os
from collections.abc import Callable

from chasles.formats import dh, mechanism
from chasles.formats.toml_file import TomlFile
from chasles.model import Description

FORMATS: dict[str, tuple[str, Callable[..., Description]]] = {
    "mechanism": ("a mechanism", mechanism.read),
    "dh": ("a Denavit-Hartenberg table", dh.read),
}
"""One row a format: what it is, and what makes a description of such a file."""


def read(path: str | os.PathLike[str], *, snap: bool = True, floating: bool = False) -> Description:
    """What a file says.

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
