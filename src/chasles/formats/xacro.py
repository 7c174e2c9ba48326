"""xacro files: URDF with macros, expanded by the package xacro in a separate process.

That package runs expressions of a file as Python. Here `xacro_expressions` evaluates them, with
arithmetic and some functions only, unless the file is trusted. Time and memory are bounded.
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
"""Large robots of manufacturers take less than a second."""

_REMEDIES = {
    "Undefined substitution argument": "pass it: chasles.load(path, arguments={name: value})",
    "is neither above the file": "put the package's folder there",
}
"""Remedies by a part of xacro's messages; by default the file must be corrected."""

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

    arguments: values of the file's `xacro:arg`, by name. `$(find package)` is a folder of that name
    (or whose package.xml has it) above the file, or next to one of those. Errors and notes have the
    file and line that an element was written at. trust: run expressions as Python, and read any
    file and the environment. snap, floating: as for URDF files.
    """
    file = os.fsdecode(path)
    return described(file, expanded(file, arguments, trust), [], snap=snap, floating=floating)


def expanded(
    file: str, arguments: Mapping[str, str] | None = None, trust: bool = False
) -> etree._Element:
    """Return the URDF document that a xacro file expands to; its elements know their origin."""
    parse(file, load(file))  # xacro itself has no bounds but those of its process
    given = {str(key): str(value) for key, value in (arguments or {}).items()}
    answer = XACRO.ask(file, json.dumps(given), str(MAX_BYTES), "yes" if trust is True else "no")
    if "error" in answer:
        raise _complaint(file, answer["error"])
    return parse(file, answer["urdf"].encode())


def _complaint(file: str, told: str) -> ModelError:
    """Make an error of xacro's message, with its place and macros."""
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
