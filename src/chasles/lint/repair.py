"""Repair faults that have a single reasonable correction, with minimal changes to the text."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from lxml import etree

from chasles.errors import shown
from chasles.formats.solids import six
from chasles.formats.xml_file import MOMENTS
from chasles.lint.sheet import Edit, Link, Sheet, Table
from chasles.model.validate import inertia_fault

THINNEST = 1e-3
"""Smallest second moment of a repaired body relative to its largest.

It is not zero, because a moment of zero could become negative by rounding.
"""

NOT_WRITTEN = "the file does not contain the numbers literally"
"""Reason why numbers from expressions, defaults or included files are not repaired."""

ROUNDING = 1e-14
"""Moments below this relative size are rounding errors."""


class Left(NamedTuple):
    """Fault that cannot be repaired: the part, "file:line", and the reason."""

    part: str
    where: str
    why: str

    def __str__(self) -> str:
        return shown(f"{self.where}: {self.part}: not repaired: {self.why}")


Found = Iterator[Edit | Left]


def nearest_inertia(moments: np.ndarray) -> np.ndarray:
    """Return the valid inertia (kg m2, about the center of mass) nearest to the given moments.

    Second moments of mass about principal planes are raised to at least `THINNEST` times the
    largest. This minimizes the change of the matrix of second moments in the Frobenius norm. The
    matrix is a block of the pseudo-inertia (Wensing, Kim and Slotine 2018, Linear matrix
    inequalities for physically consistent inertial parameter identification).
    """
    second = np.trace(moments) / 2.0 * np.eye(3) - moments
    values, axes = np.linalg.eigh(second)
    raised = axes @ np.diag(np.maximum(values, THINNEST * values[-1])) @ axes.T
    return np.trace(raised) * np.eye(3) - raised


def inertias(sheet: Sheet) -> Found:
    """Yield edits that replace impossible moments of links with mass by the nearest valid ones."""
    for link in sheet.links:
        fault = inertia_fault(link.mass, link.moments) if link.mass else None
        if fault is None or fault.check not in ("triangle", "not-positive"):
            continue
        sound = np.all(np.isfinite(link.moments)) and np.max(link.second_moments) > 0.0
        edits = list(_moments(link, nearest_inertia(link.moments))) if sound else []
        if link.place is None:
            yield Left(link.part, link.where, NOT_WRITTEN)
        elif not sound:
            yield Left(link.part, link.where, "no possible inertia is close; give the correct one")
        elif None in edits:
            yield Left(link.part, link.where, "it needs a product of inertia that is not written")
        else:
            yield from filter(None, edits)


def _moments(link: Link, moments: np.ndarray) -> Iterator[Edit | None]:
    """Yield edits of the moments in a file; None for a product of inertia that the file omits."""
    place, words = link.place, _words(six(moments))
    if isinstance(place, Table):
        yield Edit(place, "inertia", f"[{', '.join(_words(place.written(moments)))}]")
    elif place is not None and "fullinertia" in place.attrib:
        yield Edit(place, "fullinertia", " ".join(words))
    elif place is not None and "diaginertia" in place.attrib:
        yield Edit(place, "diaginertia", " ".join(words[:3]))
    elif place is not None:
        for name, word in zip(MOMENTS, words, strict=True):
            old = _text(place, name)
            if old is None and word != "0":
                yield None
            elif old is not None and float(word) != float(old.strip() or "0"):
                yield Edit(place, name, word)


def _words(numbers: Sequence[float]) -> list[str]:
    """Return numbers as text with 12 significant digits; rounding errors become zero."""
    most = max(map(abs, numbers))
    return [f"{x if abs(x) >= ROUNDING * most else 0.0:.12g}" for x in numbers]


def limits(sheet: Sheet) -> Found:
    """Yield edits that swap limits if the lower limit is above the upper one."""
    for joint in sheet.joints:
        if joint.range is None or joint.range[0] <= joint.range[1]:
            continue
        if joint.place is None:
            yield Left(joint.part, joint.where, NOT_WRITTEN)
        elif "range" in joint.place.attrib:
            lower, upper = joint.place.get("range").split()
            yield Edit(joint.place, "range", f"{upper} {lower}")
        else:
            for key, other in (("lower", "upper"), ("upper", "lower")):
                yield Edit(joint.place, key, _text(joint.place, other) or "")


def _text(element: etree._Element, name: str) -> str | None:
    """Return the text of a child element; without this child, return the attribute or None."""
    child = element.find(name)
    return element.get(name) if child is None else child.text or ""


REPAIRS: dict[str, Callable[[Sheet], Found]] = {"inertia": inertias, "limits": limits}
"""Repairs by the names in the table of checks."""


def unrepaired(sheet: Sheet) -> tuple[Left, ...]:
    """Return faults of repairable kinds that cannot be repaired."""
    return tuple(each for each in _found(sheet) if isinstance(each, Left))


def repaired(sheet: Sheet) -> tuple[str, str]:
    """Return the original text of a file, and the text with all repairs applied.

    Only the repaired parts differ.
    """
    assert sheet.document is not None, "something in it can be repaired"
    edits = [each for each in _found(sheet) if isinstance(each, Edit)]
    changes = sorted((*sheet.document.span(edit), edit.text) for edit in edits)
    text = new = sheet.document.text
    for start, end, word in reversed(changes):
        new = new[:start] + word + new[end:]
    return text, new


def _found(sheet: Sheet) -> dict[Edit | Left, None]:
    """Return each edit or fault once; xacro macros may repeat them."""
    return dict.fromkeys(each for repair in REPAIRS.values() for each in repair(sheet))
