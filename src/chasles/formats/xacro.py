"""Read xacro files (URDF with macros), which the xacro package expands in a separate process.

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
from chasles.names import suggest

XACRO = Tool("xacro", "xacro", "xacro", "xacro_child.py", seconds=5.0, memory=2**30)
"""The xacro reader, with limits on time and memory.

Expanding a manufacturer's file for a large robot takes less than 1 s.
"""

_REMEDIES = {
    "Undefined substitution argument": "pass it: chasles.load(path, arguments={name: value})",
    "was not found in the parent folders": "put the package in one of these folders",
}
"""Remedies, keyed by a phrase in the error message; the default is "correct the file"."""

_TRUST = "if you trust the file, allow it to run Python with trust=True"


def read(
    path: str | os.PathLike[str],
    *,
    snap: bool = True,
    floating: bool = False,
    arguments: Mapping[str, str] | None = None,
    trust: bool = False,
) -> Description:
    """Expand a xacro file and read the resulting URDF.

    `arguments` are the values for `xacro:arg`, by name. If `trust` is True, allow the file to run
    Python expressions and to read any file and environment variable. `snap` and `floating` have the
    same meaning as in `formats.urdf.read`.

    `$(find package)` expands to the package's folder. The parent folders of the file, and their
    subfolders, are searched for a folder that has the name of the package, or that contains a
    package.xml with this name. Errors and notes refer to the original file and line of an element.
    """
    file = os.fsdecode(path)
    root, notes = expanded(file, arguments, trust)
    return described(file, root, notes, snap=snap, floating=floating)


def expanded(
    file: str, arguments: Mapping[str, str] | None = None, trust: bool = False
) -> tuple[etree._Element, list[str]]:
    """Expand a xacro file to a URDF document; elements keep their original file and line.

    Also return a note for each argument that the file does not use.
    """
    parse(file, load(file))  # check sizes, because the xacro package does not
    given = {str(key): str(value) for key, value in (arguments or {}).items()}
    answer = XACRO.ask(file, json.dumps(given), str(MAX_BYTES), "yes" if trust is True else "no")
    if "error" in answer:
        raise _complaint(file, answer["error"])
    known = answer["arguments"]
    unused = [name for name in given if name not in known]
    what = "the file does not use the argument"
    notes = [f"{file}: {what} {name!r}; {suggest(name, known)}" for name in unused]
    return parse(file, answer["urdf"].encode()), notes


def _complaint(file: str, told: str) -> ModelError:
    """Convert a message from `xacro_child` to an error with its file, line and macros."""
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
