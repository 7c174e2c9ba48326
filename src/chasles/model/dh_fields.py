"""Conversions and valid values for the fields of Denavit-Hartenberg tables."""

import math
import reprlib
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import ModelError
from chasles.model.description import spelled
from chasles.model.given import fits
from chasles.model.ranges import LARGEST, RANGES
from chasles.names import one_of, similar

_KINDS = tuple(spelled("DH"))

Pose = tuple[tuple[float, ...], ...]
"""A homogeneous 4x4 matrix as a tuple of rows."""

IDENTITY: Pose = tuple(tuple(float(i == k) for k in range(4)) for i in range(4))

_ROUNDED = 1e-9
"""Relative tolerance for matrix entries, which may be rounded in files."""


def number(value: Any) -> float:
    """Convert a value to float; raise an error if it is not a number or exceeds `LARGEST`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError
    if not abs(x := float(value)) <= LARGEST:
        raise ValueError
    return x


def numbers(count: int) -> Callable[[Any], tuple[float, ...]]:
    """Return a converter for sequences of `count` numbers."""

    def convert(value: Any) -> tuple[float, ...]:
        entries = tuple(map(number, value))
        if len(entries) != count:
            raise ValueError
        return entries

    return convert


def rotation(value: Any) -> tuple[tuple[float, ...], ...]:
    """Convert a value to the rows of a 3x3 rotation matrix, or raise an error."""
    rows = tuple(map(numbers(3), value))
    R: np.ndarray = np.array(rows)
    if R.shape != (3, 3) or np.max(np.abs(R @ R.T - np.eye(3))) > _ROUNDED or np.linalg.det(R) < 0:
        raise ValueError
    return rows


def choice(*words: str, wanted: str = "") -> "Field":
    """Return a `Field` that accepts one of the given strings."""

    def convert(value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError
        return value

    if len(words) == 2:  # naming both is clearer than a suggestion
        return Field(convert, " or ".join(map(repr, words)))
    return Field(convert, wanted or f"one of {', '.join(map(repr, words))}", words)


def _within(key: str) -> "Field":
    """Return a `Field` that accepts a number in the range `RANGES[key]`."""
    row = RANGES[key]

    def convert(value: Any) -> float:
        x = float(value) if value == math.inf else number(value)
        if not fits(row, x):
            raise ValueError
        return x

    return Field(convert, row.wanted)


def _interval(value: Any) -> tuple[float, float]:
    """Convert a value to lower and upper limits. Raise an error if lower > upper."""
    lower, upper = (float(x) if x in (-math.inf, math.inf) else number(x) for x in value)
    if lower > upper:
        raise ValueError
    return lower, upper


def _moments(value: Any) -> tuple[float, ...]:
    """Convert three or six entries of an inertia tensor, or all nine, to xx, yy, zz, xy, xz, yz."""
    entries = tuple(value)
    if len(entries) != 3:
        return numbers(6)(entries)
    if isinstance(entries[0], Real):
        return (*numbers(3)(entries), 0.0, 0.0, 0.0)
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = map(numbers(3), entries)
    uneven = max(abs(xy - yx), abs(xz - zx), abs(yz - zy))
    if uneven > _ROUNDED * max(map(abs, (xx, yy, zz, xy, xz, yz))):
        raise ValueError
    return xx, yy, zz, (xy + yx) / 2.0, (xz + zx) / 2.0, (yz + zy) / 2.0


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


class Field(NamedTuple):
    """A converter for the values of a field, and a description of valid values.

    `words` are the valid strings, if there are more than two.
    """

    convert: Callable[[Any], Any]
    wanted: str
    words: tuple[str, ...] = ()

    def remedy(self, value: Any) -> str:
        """Return a remedy for an invalid value: similar words, or the description."""
        return similar(value, self.words) or f"give {self.wanted}"


_NUMBER = Field(number, "a finite number")
_NAME = Field(_text, "a string")

FIELDS: dict[str, Field] = {
    **dict.fromkeys(("theta", "d", "a", "alpha", "b", "pitch"), _NUMBER),
    "kind": choice(*_KINDS),
    "mass": _within("link.mass"),
    **{key: _within(f"joint.{key}") for key in ("armature", "damping", "friction")},
    "center": Field(numbers(3), "three finite numbers"),
    "inertia": Field(_moments, "[xx, yy, zz], [xx, yy, zz, xy, xz, yz] or a symmetric 3x3 matrix"),
    "inertia_about": choice("center", "frame"),
    "limits": Field(_interval, "a lower and an upper limit, in this order"),
    **{key: _within(f"limits.{key}") for key in ("velocity", "effort")},
    **dict.fromkeys(("name", "link"), _NAME),
}
"""Fields of a row of a Denavit-Hartenberg table, by name."""

TABLE: dict[str, Field] = {
    "convention": choice("modified", "standard"),
    "name": _NAME,
    "gravity": Field(numbers(3), "three finite numbers"),
}
"""Fields that apply to a whole Denavit-Hartenberg table, by name."""


def checked(known: dict[str, Field], key: str, value: Any) -> Any:
    """Convert the value of a field, or raise an error that describes the valid values."""
    if key not in known:
        problem = f"unknown field {_cut(key)}"
        raise ModelError("E-DH-090", problem, one_of(key, known))
    try:
        return known[key].convert(value)
    except (TypeError, ValueError, OverflowError):
        problem = f"{key} is {_cut(value)}"
        raise ModelError("E-DH-006", problem, known[key].remedy(value)) from None


def checked_pose(what: str, value: Any) -> Pose:
    """Convert a value to a homogeneous matrix, or raise an error if it is not a rigid pose."""
    try:
        rows = tuple(map(numbers(4), value))
        rotation([row[:3] for row in rows[:3]])
        if rows[3:] != IDENTITY[3:]:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        remedy = (
            "give a 4x4 matrix with a rotation matrix in full precision, a position, "
            "and the last row 0 0 0 1"
        )
        raise ModelError("E-DH-007", f"{what} is {_cut(value)}", remedy) from None
    return rows


def _cut(value: Any) -> str:
    """Return a value on one line, shortened if it is long."""
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    return " ".join(reprlib.repr(plain).split())
