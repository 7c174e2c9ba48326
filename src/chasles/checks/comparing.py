"""How far two arrays are apart, and where first."""

from typing import Any, NamedTuple

import numpy as np


class Comparison(NamedTuple):
    """Two arrays that should be equal: of a function, by a method, found in two ways.

    size: what differences are measured beside, where the largest entry expected is smaller (a force
    that is zero has no size of its own). looser: how many times the check's tolerance is allowed,
    where the numbers themselves lose digits (by the condition of the mass matrix).
    """

    function: str
    method: str
    found: Any
    expected: Any
    size: float = 0.0
    looser: float = 1.0


def relative_error(compared: Comparison) -> float:
    """The largest difference beside the largest entry expected; infinite where shapes differ."""
    a, b = (np.asarray(x, dtype=float) for x in (compared.found, compared.expected))
    if a.shape != b.shape:
        return np.inf
    if np.array_equal(a, b):
        return 0.0
    size = max(float(np.max(np.abs(b))), compared.size)
    worst = float(np.max(np.abs(a - b)))
    error = worst / size if size else np.inf
    return error if np.isfinite(error) else np.inf


def first_difference(compared: Comparison, tolerance: float) -> str:
    """The first entry that differs by more than the tolerance, in words; empty if none does."""
    a, b = (np.asarray(x, dtype=float) for x in (compared.found, compared.expected))
    if a.shape != b.shape:
        return f"shape {a.shape} instead of {b.shape}"
    size = max(float(np.max(np.abs(b), initial=0.0)), compared.size)
    wrong = np.argwhere(~(np.abs(a - b) <= tolerance * size))
    if not len(wrong):
        return ""
    at = tuple(map(int, wrong[0]))
    return f"{list(at) if at else 'the number'}: {a[at]:.9g} instead of {b[at]:.9g}"
