"""How far two arrays are apart, and where first."""

from typing import Any, NamedTuple

import numpy as np


class Loss(NamedTuple):
    """Digits that are lost whatever the method: how many times wider a tolerance is, and why."""

    times: float = 1.0
    why: str = ""


NOTHING = Loss()


class Comparison(NamedTuple):
    """Two arrays that should be equal: of a function, by a method, found in two ways.

    size: what differences are measured beside, where the largest entry expected is smaller (a force
    that is zero has no size of its own). loss: how much wider the check's tolerance is, where the
    numbers themselves lose digits. units: what both arrays are multiplied by, so that their entries
    are of one kind; the size is of these.
    """

    function: str
    method: str
    found: Any
    expected: Any
    size: float = 0.0
    loss: Loss = NOTHING
    units: Any = 1.0


def relative_error(compared: Comparison) -> float:
    """The largest difference beside the largest entry expected; infinite where shapes differ."""
    a, b = (np.asarray(x, dtype=float) for x in (compared.found, compared.expected))
    if a.shape != b.shape:
        return np.inf
    if np.array_equal(a, b):
        return 0.0
    apart, size = _apart(compared, a, b)
    error = float(np.max(apart)) / size if size else np.inf
    return error if np.isfinite(error) else np.inf


def first_difference(compared: Comparison, tolerance: float) -> str:
    """The first entry that differs by more than the tolerance, in words; empty if none does."""
    a, b = (np.asarray(x, dtype=float) for x in (compared.found, compared.expected))
    if a.shape != b.shape:
        return f"shape {a.shape} instead of {b.shape}"
    apart, size = _apart(compared, a, b)
    wrong = np.argwhere(~(apart <= tolerance * size))
    if not len(wrong):
        return ""
    at = tuple(map(int, wrong[0]))
    return f"{list(at) if at else 'the number'}: {a[at]:.9g} instead of {b[at]:.9g}"


def _apart(compared: Comparison, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    """Differences of the entries, and what they are beside: both NaN where a number is none."""
    with np.errstate(all="ignore"):
        apart = np.abs((a - b) * compared.units)
        size = float(np.max(np.abs(b * compared.units), initial=compared.size))
    return apart, size
