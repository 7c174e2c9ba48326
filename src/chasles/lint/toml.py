"""Mechanism files as lint sees them: the links that a file gives, whatever else is wrong in it."""

import sys
from typing import Any

import numpy as np

from chasles.formats.files import load
from chasles.formats.toml_file import UNITS, TomlFile
from chasles.lint.documents import Table, TomlDocument
from chasles.lint.sheet import Link, Sheet
from chasles.lint.xml_links import six, tensor

_LARGEST = sys.float_info.max
"""TOML has whole numbers beyond it."""


def survey(file: str, *, meshes: bool) -> Sheet:
    """Links with a mass and moments about their centre that are numbers."""
    source, document = TomlFile(file, snap=False), TomlDocument(file, load(file))
    rows = source.data.get("link", [])
    links = [
        _link(source, document, row, k)
        for k, row in enumerate(rows if isinstance(rows, list) else [])
        if isinstance(row, dict) and _numbers(row.get("mass", 0.0)) == 1
    ]
    return Sheet(file, tuple(links), document=document)


def _link(source: TomlFile, document: TomlDocument, row: dict[str, Any], k: int) -> Link:
    length, mass = (_unit(source, what) for what in ("length", "mass"))
    m, c = mass * row.get("mass", 0.0), row.get("center", [0.0] * 3)
    center = length * np.array(c, dtype=float) if _numbers(c) == 3 else np.zeros(3)
    given, moments, shift = row.get("inertia"), np.zeros((3, 3)), np.zeros((3, 3))
    place, line = None, source.where("link", k, "inertia").rpartition(":")[2]
    if _numbers(given) == 6:
        if row.get("inertia_about", source.data.get("inertia_about", "center")) == "frame":
            shift = m * (center @ center * np.eye(3) - np.outer(center, center))
        unit = mass * length**2
        moments = unit * tensor(*map(float, given)) - shift  # type: ignore[arg-type]
        if line.isdigit() and document.list_at(int(line)) is not None:
            place = Table(int(line), lambda I: six((I + shift) / unit))
    name, where = str(row.get("name", k)), source.where("link", k)
    return Link(name, where, m, center, moments, place=place)


def _unit(source: TomlFile, what: str) -> float:
    """In SI; SI itself where the file says nothing that makes sense."""
    units = source.data.get("units")
    name = units.get(what) if isinstance(units, dict) else None
    return UNITS[what].get(str(name), float)(1.0)


def _numbers(value: Any) -> int:
    """How many a value is, 0 where something else is among them."""
    entries = value if isinstance(value, list) else [value]
    plain = all(isinstance(x, int | float) and not isinstance(x, bool) for x in entries)
    return len(entries) if plain and all(abs(x) <= _LARGEST for x in entries) else 0
