"""Results that NumPy made, delivered as those of compiled functions are."""

from typing import Any, TypeVar, cast

import numpy as np

from chasles.backends.arrays import check_out
from chasles.errors import InputError

Results = TypeVar("Results", bound=tuple[np.ndarray, ...])


def delivered(name: str, results: Results, out: Any) -> Results:
    """The results themselves, or `out` (a tuple of arrays like them) filled with them."""
    if out is None:
        return results
    if not isinstance(out, tuple) or len(out) != len(results):
        raise InputError("E-CALL-058", f"out must be a tuple of {len(results)} arrays", part=name)
    for array, result in zip(out, results, strict=True):
        check_out(name, array, result.shape, result.dtype)
    if any(np.shares_memory(a, b) for k, a in enumerate(out) for b in out[:k]):
        problem = "arrays of out overlap"
        raise InputError("E-CALL-059", problem, "give each result its own", part=name)
    for array, result in zip(out, results, strict=True):
        array[...] = result
    return cast(Results, out)


def filled(name: str, result: np.ndarray, out: Any) -> np.ndarray:
    """One result itself, or `out` filled with it; without the time that a tuple would take."""
    if out is None:
        return result
    check_out(name, out, result.shape, result.dtype)
    out[...] = result
    return cast(np.ndarray, out)
