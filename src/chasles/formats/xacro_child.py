"""Expands a xacro file; `walled_program.py` runs it. It imports nothing of chasles.

Every element that is no xacro statement gets the attribute `chasles-origin`, "file:line", which
macros carry along: so messages about what was expanded can say where it was written.
"""

import json
import os
import re
import sys
import types
import xml.dom.minidom
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xacro
from lxml import etree

ORIGIN = "chasles-origin"

_evaluate = xacro.safe_eval
_clone = xml.dom.minidom.Element.cloneNode


def answer(file: str, arguments: str, most: str) -> dict[str, str]:
    """The URDF of a file; {name: value} as JSON are its arguments, its text has `most` bytes."""
    packages = types.ModuleType("ament_index_python.packages")
    packages.get_package_share_directory = lambda name: found(name, file)  # type: ignore[attr-defined]
    sys.modules |= {"ament_index_python": packages, "ament_index_python.packages": packages}
    xacro.parse, xacro.safe_eval = parsed, evaluated
    xml.dom.minidom.Element.cloneNode = cloned  # type: ignore[method-assign]
    try:
        document = xacro.process_file(file, mappings=json.loads(arguments), verbosity=0)
        text = document.documentElement.toxml()
    except Exception as error:  # xacro lets through whatever an expression raises
        said = (str(error) or repr(error)).removeprefix(f"{type(error)}: ")
        what = re.sub(r"^(.+) \1$", r"\1", " ".join(said.split()))  # some it says twice
        endless = "maximum recursion depth" in what
        what = "macros or included files call each other without end" if endless else what
        raise complaint(file, what, place(error)) from None
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
        root = etree.fromstring(Path(filename).read_bytes(), plain)
    except etree.XMLSyntaxError as error:
        raise xacro.XacroException(
            f"not readable XML at line {error.lineno}: {error.msg}"
        ) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise xacro.XacroException("document types and entities are not read")
    for element in root.iter(etree.Element):
        if element.prefix != "xacro":
            element.set(ORIGIN, f"{filename}:{element.sourceline}")
    document = xml.dom.minidom.parseString(etree.tostring(root))
    for element, node in zip(root.iter(etree.Element), elements(document), strict=True):
        node.place = f"{os.path.abspath(filename)}:{element.sourceline}"
    return document


def elements(node: Any) -> Iterator[Any]:
    """Elements of a document or an element, itself included, in the order of the text."""
    pending = [node]
    while pending:
        node = pending.pop()
        if node.nodeType == node.ELEMENT_NODE:
            yield node
        pending += reversed(node.childNodes)


def cloned(self: Any, deep: bool) -> Any:
    """A copy that knows its place; xacro makes them of macros and blocks."""
    copy = _clone(self, deep)
    for mine, its in zip(elements(self), elements(copy), strict=False):
        if hasattr(mine, "place"):
            its.place = mine.place
    return copy


def place(error: BaseException) -> str:
    """The file and line of the innermost element that xacro was at; "" where it was at none."""
    found, trace = "", error.__traceback__
    while trace is not None:
        for name in ("node", "elt"):  # as its functions call it
            found = getattr(trace.tb_frame.f_locals.get(name), "place", found)
        trace = trace.tb_next
    return found


def evaluated(expression: str, names: Any, local: Any = None) -> Any:
    """An expression's value; xacro checks names only outside of functions."""
    if "__" in expression:
        raise xacro.XacroException("names with two underscores are not evaluated")
    try:
        return _evaluate(expression, names, local)
    except MemoryError:
        raise xacro.XacroException("there is not enough memory") from None


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


def complaint(file: str, what: str, at: str = "") -> ValueError:
    """Error with its place and macros."""
    files = [name for name in xacro.filestack or [] if name] or [file]
    called = [macro.body.getAttribute("name") for macro in xacro.macrostack or []]
    macros = list(dict.fromkeys(called[::-1]))[:4]
    line = re.search(r"(?: at line |: line )(\d+)", what)  # of XML that is broken
    if line is not None:
        at = f"{os.path.abspath(files[-1])}:{line[1]}"
    told = {"at": at or os.path.abspath(files[-1]), "macros": macros, "what": what}
    return ValueError(json.dumps(told))
