"""Expands a xacro file; `walled_program.py` runs it. It imports nothing of chasles.

Every element that is no xacro statement gets the attribute `chasles-origin`, "file:line", which
macros carry along: so messages about what was expanded can say where it was written.
"""

import json
import os
import sys
import types
import xml.dom.minidom
from pathlib import Path
from typing import Any

import xacro
from lxml import etree

ORIGIN = "chasles-origin"

_evaluate = xacro.safe_eval


def answer(file: str, arguments: str, most: str) -> dict[str, str]:
    """The URDF of a file; {name: value} as JSON are its arguments, its text has `most` bytes."""
    packages = types.ModuleType("ament_index_python.packages")
    packages.get_package_share_directory = lambda name: found(name, file)  # type: ignore[attr-defined]
    sys.modules |= {"ament_index_python": packages, "ament_index_python.packages": packages}
    xacro.parse, xacro.safe_eval = parsed, evaluated
    try:
        document = xacro.process_file(file, mappings=json.loads(arguments), verbosity=0)
        text = document.documentElement.toxml()
    except Exception as error:  # xacro lets through whatever an expression raises
        what = str(error) or repr(error)
        endless = "maximum recursion depth" in what
        raise complaint(file, "macros call each other without end" if endless else what) from None
    if len(text) > int(most):
        raise complaint(file, f"the URDF would have {len(text)} bytes")
    return {"urdf": text}


def parsed(given: Any, filename: str | None = None) -> Any:
    """A file as xacro takes it, without entities, each element with its place."""
    if given is not None or filename is None:
        return given
    if not os.path.isfile(filename):
        xacro.filestack.pop()  # the fault is of the file that includes it
        raise xacro.XacroException(f"there is no file {os.path.basename(filename)!r} to include")
    plain = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)
    try:
        root = etree.parse(filename, plain).getroot()
    except etree.XMLSyntaxError as error:
        raise xacro.XacroException(
            f"not readable XML at line {error.lineno}: {error.msg}"
        ) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise xacro.XacroException("document types and entities are not read")
    for element in root.iter(etree.Element):
        if element.prefix != "xacro":
            element.set(ORIGIN, f"{filename}:{element.sourceline}")
    return xml.dom.minidom.parseString(etree.tostring(root))


def evaluated(expression: str, names: Any, local: Any = None) -> Any:
    """An expression's value; xacro checks names only outside of functions."""
    if "__" in expression:
        raise xacro.XacroException("names with two underscores are not evaluated")
    return _evaluate(expression, names, local)


def found(package: str, file: str) -> str:
    """The folder of a package: one above the file, or beside one of those."""
    for above in Path(file).resolve().parents:
        for folder in (above, above / package):
            manifest = folder / "package.xml"
            named = manifest.is_file() and f"<name>{package}</name>" in manifest.read_text(
                "utf-8", "replace"
            )
            if (folder.name == package and folder.is_dir()) or named:
                return str(folder)
    raise xacro.XacroException(f"package {package!r} is not above the file, nor beside what is")


def complaint(file: str, what: str) -> ValueError:
    """What went wrong, in which file and macros, and the line of what it quotes."""
    files = [name for name in xacro.filestack or [] if name] or [file]
    called = [macro.body.getAttribute("name") for macro in xacro.macrostack or []]
    macros = list(dict.fromkeys(called[::-1]))[:4]
    at, line = os.path.abspath(files[-1]), where(files[-1], what)
    return ValueError(
        json.dumps({"at": f"{at}:{line}" if line else at, "macros": macros, "what": what})
    )


def where(file: str, what: str) -> int:
    """The line that a message quotes: of broken XML, an expression or a tag; 0 if it is unclear."""
    if " at line " in what:
        return int(what.partition(" at line ")[2].partition(":")[0])
    quoted = [part for part in what.replace('"', "'").split("'")[1::2] if part.strip()]
    quoted += [f"<{word}" for word in what.split() if word.startswith("xacro:")]
    try:
        lines = Path(file).read_text("utf-8", "replace").splitlines()
    except OSError:
        return 0
    hits = [k for k, line in enumerate(lines, 1) if any(part in line for part in quoted)]
    return hits[0] if len(hits) == 1 else 0
