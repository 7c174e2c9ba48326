"""Results that NumPy made, delivered as those of compiled functions are."""

from typing import Any, TypeVar, cast

import numpy as np

from chasles.errors import ArgumentError, InputError

Results = TypeVar("Results", bound=tuple[np.ndarray, ...])


def delivered(name: str, results: Results, out: Any) -> Results:
    """The results themselves, or `out` (a tuple of arrays like them) filled with them."""
    if out is None:
        return results
    if not isinstance(out, tuple) or len(out) != len(results):
        raise InputError("E-CALL-058", f"out must be a tuple of {len(results)} arrays", part=name)
    for array, result in zip(out, results, strict=True):
        _check(name, result, array)
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
    _check(name, result, out)
    out[...] = result
    return cast(np.ndarray, out)


def _check(name: str, result: np.ndarray, out: Any) -> None:
    if not isinstance(out, np.ndarray):
        problem = f"out must be a NumPy array, not {type(out).__name__}"
        raise ArgumentError("E-CALL-060", problem, part=name)
    if out.dtype != result.dtype:
        problem = f"out must have dtype {result.dtype}, not {out.dtype}"
        raise ArgumentError("E-CALL-061", problem, part=name)
    if out.shape != result.shape:
        problem = f"out must have shape {result.shape}, not {out.shape}"
        raise InputError("E-CALL-062", problem, part=name)
    if not out.flags.writeable:
        raise InputError("E-CALL-063", "out is read-only", "give a writeable array", part=name)
