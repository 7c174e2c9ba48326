"""Check and convert arguments: names, numbers and mappings."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, InputError


def a_name(what: str, value: Any, part: str = "") -> str:
    """Return the value if it is a string, or raise an error about the argument `what`."""
    if not isinstance(value, str):
        problem = f"{what} must be a name, not {type(value).__name__}"
        raise ArgumentError("E-CALL-110", problem, part=part)
    return value


def some_names(what: str, value: Any, part: str = "") -> list[str]:
    """Return a list of names from one name or a sequence of names."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable) or isinstance(value, np.ndarray | bytes):
        problem = f"{what} must be a list of names, not {type(value).__name__}"
        raise ArgumentError("E-CALL-111", problem, part=part)
    return [a_name(what, each, part) for each in value]


def a_mapping(what: str, value: Any, part: str = "") -> Mapping[str, Any]:
    """Return the value if it is a mapping with string keys, or raise an error."""
    if not isinstance(value, Mapping):
        problem = f"{what} must be a dictionary, not {type(value).__name__}"
        raise ArgumentError("E-CALL-112", problem, part=part)
    for key in value:
        a_name(f"a key of {what}", key, part)
    return value


def some_numbers(what: str, value: Any, part: str = "") -> np.ndarray:
    """Convert a value to an array of real numbers, keeping floating-point types."""
    try:
        found = np.asarray(value)
        if found.dtype.kind in "fiub" or (found.dtype == object and None not in found.ravel()):
            return found if found.dtype.kind == "f" else found.astype(float)
        problem = f"not {type(value).__name__} of {found.dtype}"
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"not {type(value).__name__}: {error}"
    remedy = "pass its attribute q" if isinstance(getattr(value, "q", None), np.ndarray) else ""
    raise ArgumentError(
        "E-CALL-113", f"{what} must be real numbers, {problem:.200}", remedy, part=part
    )


def a_number(what: str, value: Any, part: str = "") -> float:
    """Convert a value to a single real number, or raise an error."""
    found = some_numbers(what, value, part)
    if found.ndim:
        problem = f"{what} must be one number, not an array of shape {found.shape}"
        raise ArgumentError("E-CALL-114", problem, part=part)
    return float(found)


def checked_step(dt: Any, what: str = "linearize: dt") -> float:
    """Convert a time step to float, and check that it is finite and positive."""
    try:
        step = float(dt)
    except (TypeError, ValueError, OverflowError):
        problem = f"{what} must be a number of seconds, not {dt!r}"
        raise ArgumentError("E-MATH-030", problem) from None
    if not (math.isfinite(step) and step > 0.0):
        raise InputError("E-MATH-031", f"{what} must be finite and positive, not {dt!r}")
    return step


def a_flag(what: str, value: Any, part: str = "") -> bool:
    """Convert an argument to bool. Raise an error for an array or similar value."""
    try:
        return bool(value)
    except Exception:
        problem = f"{what} must be True or False, not {type(value).__name__}"
        raise ArgumentError("E-CALL-380", problem, part=part) from None


def is_finite(value: Any) -> bool:
    """Return True if the value is a single finite real number."""
    if type(value) is float:
        return math.isfinite(value)
    try:
        return math.isfinite(a_number("", value))
    except ArgumentError:
        return False


def a_generator(value: Any, part: str = "") -> np.random.Generator:
    """Return a NumPy generator from a generator or a seed."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"rng must be a NumPy generator or a seed, not {type(value).__name__}: {error}"
        raise InputError("E-CALL-115", f"{problem:.200}", part=part) from None


UNHASHABLE = (TypeError, ValueError)
"""Exceptions that `hash` raises. A writable memoryview raises ValueError."""


def check_hash(function: str, name: str, value: Any) -> None:
    """Raise an error if an option is not hashable. Options are keys of the program cache."""
    try:
        hash(value)
    except UNHASHABLE:
        problem = f"{name} must be hashable, not {type(value).__name__}"
        raise ArgumentError("E-CALL-116", problem, part=function) from None
