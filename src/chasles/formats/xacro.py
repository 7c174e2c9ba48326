"""Read xacro files: URDF with macros, expanded by the xacro package in a separate process.

The xacro package evaluates the expressions in a file as Python code. Unless the file is trusted,
`xacro_expressions` evaluates these expressions instead and allows only arithmetic and a few
functions. Time and memory are limited.
"""

import json
import os
import re
from collections.abc import Mapping

from lxml import etree

from chasles.errors import ModelError
from chasles.formats.files import load
from chasles.formats.urdf import described
from chasles.formats.walled import Tool
from chasles.formats.xml_file import MAX_BYTES, parse
from chasles.model import Description

XACRO = Tool("xacro", "xacro", "xacro", "xacro_child.py", seconds=5.0, memory=2**30)
"""Expansion program and its limits. Manufacturers' files of large robots take less than 1 s."""

_REMEDIES = {
    "Undefined substitution argument": "pass it: chasles.load(path, arguments={name: value})",
    "is neither above the file": "put the package's folder there",
}
"""Remedies for xacro messages that contain the key. The default is to correct the file."""

_TRUST = "if you trust the file, allow it to run Python: chasles.load(path, trust=True), or --trust"


def read(
    path: str | os.PathLike[str],
    *,
    snap: bool = True,
    floating: bool = False,
    arguments: Mapping[str, str] | None = None,
    trust: bool = False,
) -> Description:
    """Read the URDF that a xacro file expands to.

    arguments: values of the file's `xacro:arg`, by name. trust: let the file run expressions as
    Python, and read any file and the environment. snap, floating: as for URDF files.

    `$(find package)` is a folder with that name (or with the name in its package.xml) above the
    file, or next to a folder above it. Errors and notes give the file and line where an element was
    written.
    """
    file = os.fsdecode(path)
    return described(file, expanded(file, arguments, trust), [], snap=snap, floating=floating)


def expanded(
    file: str, arguments: Mapping[str, str] | None = None, trust: bool = False
) -> etree._Element:
    """Return the URDF document that a xacro file expands to; elements keep their file and line."""
    parse(file, load(file))  # check sizes, which the xacro package does not check
    given = {str(key): str(value) for key, value in (arguments or {}).items()}
    answer = XACRO.ask(file, json.dumps(given), str(MAX_BYTES), "yes" if trust is True else "no")
    if "error" in answer:
        raise _complaint(file, answer["error"])
    return parse(file, answer["urdf"].encode())


def _complaint(file: str, told: str) -> ModelError:
    """Return an error with xacro's message, the place of the fault and the enclosing macros."""
    try:
        found = json.loads(told)
    except ValueError:
        return ModelError("E-XACRO-001", told[:400], "simplify the file", part="xacro", file=file)
    whole = os.path.abspath(file)
    at = re.sub(rf"^{re.escape(whole)}(?=:|$)", lambda _: file, found["at"])
    macros = "".join(f"in macro {name!r}, " for name in found["macros"])
    remedies = (remedy for fault, remedy in _REMEDIES.items() if fault in found["what"])
    remedy = next(remedies, "correct the file")
    problem = " ".join(found["what"].split())[:400]
    part = f"{macros}xacro"
    if found["refused"]:
        return ModelError("E-XACRO-003", problem, _TRUST, part=part, file=at)
    return ModelError("E-XACRO-002", problem, remedy, part=part, file=at)
