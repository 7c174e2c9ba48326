"""Repairs of what has one defensible repair, as the smallest change of the file's text."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from lxml import etree

from chasles.formats.xml_part import MOMENTS
from chasles.lint.sheet import Sheet
from chasles.model import ModelError
from chasles.model.validate import inertia_fault

THINNEST = 1e-3
"""The least second moment of mass that a repaired body has, of its largest: one that is a thirtieth
as thick as it is wide. With none, digits that are cut off would make it impossible again."""

ROUNDING = 1e-14
"""Of the largest moment: what is smaller is what rounding leaves of zero."""


class Edit(NamedTuple):
    """New text of an element's attribute, or of what stands in its child of that name."""

    element: etree._Element
    name: str
    text: str


def nearest_inertia(moments: np.ndarray) -> np.ndarray:
    """The possible inertia (kg m2, about the centre of mass) next to an impossible one.

    Second moments of mass about principal planes are raised to `THINNEST` of the largest, which
    changes the matrix of second moments least, in the sum of squares, of all that have as much
    (the pseudo-inertia's part of Wensing, Kim and Slotine 2018, Linear matrix inequalities for
    physically consistent inertial parameter identification).
    """
    second = np.trace(moments) / 2.0 * np.eye(3) - moments
    values, axes = np.linalg.eigh(second)
    raised = axes @ np.diag(np.maximum(values, THINNEST * values[-1])) @ axes.T
    return np.trace(raised) * np.eye(3) - raised


def inertias(sheet: Sheet) -> Iterator[Edit]:
    """The nearest possible moments for impossible ones of a positive mass."""
    for link in sheet.links:
        fault = inertia_fault(link.mass, link.moments) if link.mass else None
        if fault is None or fault.check not in ("triangle", "not-positive") or link.place is None:
            continue
        if not np.all(np.isfinite(link.moments)) or not np.max(link.second_moments) > 0.0:
            continue
        new = nearest_inertia(link.moments)
        new[np.abs(new) < ROUNDING * np.max(new)] = 0.0
        six = (*np.diag(new), new[0, 1], new[0, 2], new[1, 2])
        yield from _moments(link.place, [f"{x + 0.0:.12g}" for x in six])


def _moments(place: etree._Element, six: list[str]) -> Iterator[Edit]:
    """Where a file says its moments: one attribute in MJCF, six attributes or elements else."""
    if "fullinertia" in place.attrib:
        yield Edit(place, "fullinertia", " ".join(six))
    elif "diaginertia" in place.attrib:
        yield Edit(place, "diaginertia", " ".join(six[:3]))
    else:
        given = dict(zip(MOMENTS, six, strict=True))
        absent = [key for key in MOMENTS if key not in place.attrib and place.find(key) is None]
        if all(given[key] == "0" for key in absent):
            yield from (
                Edit(place, key, given[key])
                for key in MOMENTS
                if key not in absent and float(given[key]) != float(_text(place, key) or "0")
            )


def limits(sheet: Sheet) -> Iterator[Edit]:
    """Limits exchanged where the lower one is the larger."""
    for joint in sheet.joints:
        if joint.range is None or joint.range[0] <= joint.range[1] or joint.place is None:
            continue
        for key, other in (("lower", "upper"), ("upper", "lower")):
            yield Edit(joint.place, key, _text(joint.place, other))


def _text(element: etree._Element, name: str) -> str:
    child = element.find(name)
    return element.get(name, "") if child is None else child.text or ""


REPAIRS: dict[str, Callable[[Sheet], Iterator[Edit]]] = {
    "inertia": inertias,
    "limits": limits,
}
"""By the names that the table of checks has for them."""

_TAG = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<([^\s<>/!?][^\s<>/]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
"""What begins with "<": comments and the like, or a start tag by its name and attributes."""


def repaired(sheet: Sheet) -> tuple[str, str]:
    """The text of a file and its text with all repairs; the rest of it stays as it is."""
    if sheet.document is None:
        raise ModelError(f"{sheet.file}: only .urdf, .sdf and .xml files are repaired; edit it")
    data, root = sheet.document
    text = _decoded(sheet.file, data)
    edits = {edit: None for find in REPAIRS.values() for edit in find(sheet)}
    starts = dict(zip(root.iter(), _start_tags(text), strict=True))
    changes = [_change(text, starts, edit) for edit in edits]
    new = text
    for start, end, word in sorted(changes, reverse=True):
        new = new[:start] + word + new[end:]
    return text, new


def _decoded(file: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ModelError(f"{file}: only text in UTF-8 is repaired; save it as such") from None


def _start_tags(text: str) -> list[re.Match[str]]:
    """The start tags of a document, in the order of its elements."""
    return [match for match in _TAG.finditer(text) if match[1]]


def _change(
    text: str, starts: dict[etree._Element, re.Match[str]], edit: Edit
) -> tuple[int, int, str]:
    """From where to where a text is exchanged, and for what."""
    child = edit.element.find(edit.name)
    if child is not None:
        first = starts[child].end()
        return first, text.index("<", first), edit.text
    tag = starts[edit.element]
    found = re.search(rf"(?<![\w:.-]){edit.name}\s*=\s*([\"'])(.*?)\1", tag[2], re.DOTALL)
    assert found is not None, "the parser found the attribute"
    return tag.start(2) + found.start(2), tag.start(2) + found.end(2), edit.text
