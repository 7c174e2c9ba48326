"""Values of an XML file that may be wrong: what cannot be read is noted, and a default taken."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from chasles.errors import ModelError
from chasles.formats.numbers import is_number
from chasles.formats.xml_part import Part
from chasles.lint.sheet import Found


@dataclass
class Values:
    """The faults of a file so far."""

    faults: list[Found] = field(default_factory=list)

    def numbers(self, part: Part | None, attribute: str, default: str) -> tuple[float, ...]:
        """Those of an attribute; the default where it is absent or no such numbers."""
        given = None if part is None else part.element.get(attribute)
        usual = tuple(map(float, default.split()))
        if part is None or given is None:
            return usual
        words = given.split()
        if len(words) == len(usual) and all(map(is_number, words)):
            return tuple(map(float, words))
        self._note(lambda: part.words(attribute, len(usual)), part)
        return usual

    def number(self, part: Part | None, attribute: str, default: float = 0.0) -> float:
        """One number of an attribute."""
        return self.numbers(part, attribute, repr(default))[0]

    def within(self, part: Part | None, tag: str, default: str) -> tuple[float, ...]:
        """The numbers in a child element."""
        child = None if part is None else part.find(tag)
        text = "" if child is None else (child.element.text or "").strip()
        usual = tuple(map(float, default.split()))
        if child is None or not text:
            return usual
        if len(text.split()) == len(usual) and all(map(is_number, text.split())):
            return tuple(map(float, text.split()))
        self._note(lambda: child.numerals(tag, text, len(usual)), child)
        return usual

    def _note(self, read: Callable[[], object], part: Part) -> None:
        """Take down what the reader says."""
        try:
            read()
        except ModelError as error:
            self.faults.append(Found(part.owner, part.where, error.problem))


def rotation(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """Roll about x, then pitch about y, then yaw about z, all of the outer frame; rad."""
    (cr, sr), (cp, sp), (cy, sy) = ((np.cos(a), np.sin(a)) for a in (roll, pitch, yaw))
    about_x: np.ndarray = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    about_y: np.ndarray = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_z: np.ndarray = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


def tensor(xx: float, yy: float, zz: float, xy: float, xz: float, yz: float) -> np.ndarray:
    """The symmetric matrix of six moments."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def six(moments: np.ndarray) -> list[float]:
    """The moments of a symmetric matrix, in the order of `tensor`."""
    return [float(moments[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
