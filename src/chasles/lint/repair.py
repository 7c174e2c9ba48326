"""Repair faults that have a single plausible correction, with minimal changes to the file."""

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
"""Minimum ratio of the smallest to the largest second moment of mass in a repaired inertia.

The ratio is greater than zero, because rounding could make a zero moment negative.
"""

NOT_WRITTEN = "the file does not contain the numbers literally"
"""Reason why numbers from expressions, defaults or included files are not repaired."""

ROUNDING = 1e-14
"""Fraction of the largest moment of inertia below which a repaired moment is written as zero."""


class Left(NamedTuple):
    """A fault that cannot be repaired: the affected part, "file:line" and the reason."""

    part: str
    where: str
    why: str

    def __str__(self) -> str:
        return shown(f"{self.where}: {self.part}: not repaired: {self.why}")


Found = Iterator[Edit | Left]


def nearest_inertia(moments: np.ndarray) -> np.ndarray:
    """Return the physically consistent inertia nearest to `moments` (kg m2).

    Both inertias are about the center of mass. The second moments of mass about the principal
    planes are raised to at least `THINNEST` times the largest. The result minimizes the Frobenius
    norm of the change in the matrix of second moments, which is a block of the pseudo-inertia
    (Wensing, Kim and Slotine 2018, Linear matrix inequalities for physically consistent inertial
    parameter identification).
    """
    second = np.trace(moments) / 2.0 * np.eye(3) - moments
    values, axes = np.linalg.eigh(second)
    raised = axes @ np.diag(np.maximum(values, THINNEST * values[-1])) @ axes.T
    return np.trace(raised) * np.eye(3) - raised


def inertias(sheet: Sheet) -> Found:
    """Yield edits that replace impossible inertias with the nearest consistent inertias."""
    for link in sheet.links:
        fault = inertia_fault(link.mass, link.moments) if link.mass else None
        if fault is None or fault.check not in ("triangle", "not-positive"):
            continue
        sound = np.all(np.isfinite(link.moments)) and np.max(link.second_moments) > 0.0
        edits = list(_moments(link, nearest_inertia(link.moments))) if sound else []
        if link.place is None:
            yield Left(link.part, link.where, NOT_WRITTEN)
        elif not sound:
            yield Left(link.part, link.where, "no valid inertia is close; give the correct inertia")
        elif None in edits:
            yield Left(
                link.part,
                link.where,
                "the repair needs a product of inertia that is not in the file",
            )
        else:
            yield from filter(None, edits)


def _moments(link: Link, moments: np.ndarray) -> Iterator[Edit | None]:
    """Yield edits that set a link's moments of inertia; yield None if the file omits a moment."""
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
    """Format numbers with 12 significant digits; replace rounding errors with zero."""
    most = max(map(abs, numbers))
    return [f"{x if abs(x) >= ROUNDING * most else 0.0:.12g}" for x in numbers]


def limits(sheet: Sheet) -> Found:
    """Yield edits that swap the limits of a joint if the lower limit is above the upper limit."""
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
    """Return the text of a child element, or else of an attribute; None if both are missing."""
    child = element.find(name)
    return element.get(name) if child is None else child.text or ""


REPAIRS: dict[str, Callable[[Sheet], Found]] = {"inertia": inertias, "limits": limits}
"""Repair functions, by the key stored in `Check.repair`."""


def unrepaired(sheet: Sheet) -> tuple[Left, ...]:
    """Return the findings that cannot be repaired automatically."""
    return tuple(each for each in _found(sheet) if isinstance(each, Left))


def repaired(sheet: Sheet) -> tuple[str, str]:
    """Return the text of a file before and after all repairs."""
    assert sheet.document is not None, "something in it can be repaired"
    edits = [each for each in _found(sheet) if isinstance(each, Edit)]
    changes = sorted((*sheet.document.span(edit), edit.text) for edit in edits)
    text = new = sheet.document.text
    for start, end, word in reversed(changes):
        new = new[:start] + word + new[end:]
    return text, new


def _found(sheet: Sheet) -> dict[Edit | Left, None]:
    """Return all edits and unrepairable faults, each listed once even if a macro repeats it."""
    return dict.fromkeys(each for repair in REPAIRS.values() for each in repair(sheet))
