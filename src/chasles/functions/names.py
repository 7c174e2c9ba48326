"""Arrays of coordinates: checked by name, and taken apart and put together by joint name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.model import Model


def check_robot(function: str, robot: Any) -> None:
    """What is given for a robot must be one, not its path or its name."""
    if not isinstance(getattr(robot, "model", None), Model):
        problem = f"robot must be what chasles.load or chasles.robots give, not {robot!r}"
        raise ArgumentError("E-CALL-055", problem, part=function)


def numbers(what: str, value: Any, size: int) -> np.ndarray:
    """Floats, of the precision that they have, `size` of them in the last axis."""
    array = np.asarray(value)
    if array.shape[-1:] != (size,):
        problem = f"{what} must have {size} numbers in its last axis, not {array.shape}"
        raise InputError("E-CALL-056", problem)
    return array if array.dtype.kind == "f" else array.astype(float)


def leading_shape(function: str, **arrays: np.ndarray) -> tuple[int, ...]:
    """The shape of all but the last axes, of all arrays together."""
    try:
        return np.broadcast_shapes(*(a.shape[:-1] for a in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {a.shape[:-1]}" for name, a in arrays.items())
        problem = f"leading shapes do not broadcast together: {shapes}"
        raise InputError("E-CALL-057", problem, part=function) from None


def by_name(
    array: np.ndarray, where: Callable[[str], slice], joints: Sequence[str]
) -> dict[str, np.ndarray]:
    """{joint: its part}: (...) for joints with one number, (..., n) for others."""
    parts = {name: array[..., where(name)] for name in joints}
    return {name: p[..., 0] if p.shape[-1] == 1 else p for name, p in parts.items()}


def from_names(
    values: Mapping[str, Any], where: Callable[[str], slice], default: np.ndarray
) -> np.ndarray:
    """One array from {joint: part}, with `default` where a joint is not named; shapes broadcast."""
    parts = []
    for name, value in values.items():
        place, part = where(name), np.asarray(value)
        size = place.stop - place.start
        part = part[..., None] if size == 1 else part
        parts.append((place, numbers(f"joint {name!r}", part, size)))
    lead = np.broadcast_shapes(default.shape[:-1], *(part.shape[:-1] for _, part in parts))
    out = np.array(np.broadcast_to(default, (*lead, default.shape[-1])))
    for place, part in parts:
        out[..., place] = part
    return out
