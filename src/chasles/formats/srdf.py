"""Read disabled collision pairs from the SRDF files of URDF robots.

Only `<disable_collisions link1= link2=>` elements are read (wiki.ros.org/srdf). Groups, states and
virtual joints are ignored.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from lxml import etree

from chasles.errors import ModelError
from chasles.formats import xml_file as xml
from chasles.formats.files import load

FOLDERS = (".", "srdf", "../srdf", "../config")
"""Folders that are searched for SRDF files, relative to the folder of the URDF file."""


def beside(file: str, name: str) -> Path | None:
    """Find the SRDF file that has the same name as a URDF file or its robot; None if missing."""
    path = Path(os.path.abspath(file))
    if path.suffix.lower() not in (".urdf", ".xacro") or not path.is_file():
        return None
    for stem in dict.fromkeys((path.name.partition(".")[0], name)):
        if not stem or os.path.basename(stem) != stem:
            continue
        for folder in FOLDERS:
            found = path.parent / folder / f"{stem}.srdf"
            if found.is_file():
                return Path(os.path.normpath(found))
    return None


def disabled(path: str | os.PathLike[str], links: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs of links with disabled collisions; pairs with unknown links are omitted."""
    file = os.fsdecode(path)
    root = xml.parse(file, load(file))
    if root.tag.rpartition("}")[2] != "robot":
        problem = f"the root element is <{root.tag}>, not <robot>"
        raise ModelError(
            "E-SRDF-001", problem, "use <robot> as the root element of an SRDF file", file=file
        )
    known = frozenset(links)
    return [pair for pair in _pairs(root, file) if known.issuperset(pair)]


def _pairs(root: etree._Element, file: str) -> Iterator[tuple[str, str]]:
    for part in root.iter("{*}disable_collisions"):
        first, second = part.get("link1"), part.get("link2")
        if not first or not second:
            where = f"{file}:{part.sourceline}"
            problem = "<disable_collisions> requires the attributes link1 and link2"
            raise ModelError("E-SRDF-002", problem, "give the names of two links", file=where)
        yield first, second
