"""Checks for trajectory inputs: states, times and limits."""

import math
from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.functions.doors import check_robot
from chasles.model.given import a_number, some_numbers
from chasles.model.spaces import PositionSpace
from chasles.robot import Robot

Array = Any


def finite(what: str, value: Any, size: int | None, part: str) -> np.ndarray:
    """Check and return a finite vector, whose length must be `size` unless `size` is None."""
    found = some_numbers(what, value, part).astype(float)
    if found.ndim != 1 or (size is not None and len(found) != size):
        wanted = "a vector" if size is None else f"{size} numbers"
        raise InputError(
            "E-PATH-004", f"{what} must be {wanted}, not an array of shape {found.shape}", part=part
        )
    return all_finite(what, found, part)


def all_finite(what: str, found: np.ndarray, part: str) -> np.ndarray:
    """Return an array after checking that it is finite."""
    bad = np.argwhere(~np.isfinite(found))
    if len(bad):
        at = tuple(bad[0].tolist())
        problem = f"{what} contains {found[at]} at index {at if len(at) > 1 else at[0]}"
        raise InputError("E-PATH-005", problem, "pass finite numbers", part=part)
    return found


def positive(what: str, value: Any, part: str) -> float:
    """Check that a number is positive and finite, and return it."""
    found = a_number(what, value, part)
    if not (math.isfinite(found) and found > 0.0):
        problem = f"{what} must be a positive number, not {found!r}"
        raise InputError("E-PATH-006", problem, part=part)
    return found


def increasing(value: Any, count: int, part: str) -> np.ndarray:
    """Check that times (count,) start at 0 and increase, and return them."""
    t = finite("times", value, None, part)
    if len(t) != count:
        raise InputError("E-PATH-007", f"{len(t)} times were given for {count} points", part=part)
    if len(t) < 2:
        raise InputError("E-PATH-008", "a trajectory needs at least two points", part=part)
    bad = np.flatnonzero(np.diff(t) <= 0.0)
    if len(bad):
        k = int(bad[0])
        problem = f"time {k + 1} ({t[k + 1]:g} s) is not later than time {k} ({t[k]:g} s)"
        raise InputError("E-PATH-009", problem, "pass increasing times", part=part)
    if t[0] != 0.0:
        problem = f"the first time is {t[0]:g} s instead of 0"
        raise InputError("E-PATH-010", problem, "subtract the first time from all times", part=part)
    return t


def points(what: str, value: Any, robot: Robot | None, part: str) -> np.ndarray:
    """Check positions (m, n) or, if a robot is given, its configurations, and return them."""
    if robot is not None:
        check_robot(part, robot)
    found = some_numbers(what, value, part).astype(float)
    size = found.shape[-1] if robot is None and found.ndim else getattr(robot, "nq", None)
    if found.ndim != 2 or found.shape[-1] != size or not size:
        wanted = "(points, n)" if robot is None else f"(points, {robot.nq})"
        problem = f"{what} must have shape {wanted}, not {found.shape}"
        raise InputError("E-PATH-011", problem, part=part)
    all_finite(what, found, part)
    if robot is not None:
        for first, joint in PositionSpace().quaternions(robot.model).items():
            norm = np.linalg.norm(found[:, first : first + 4], axis=1)
            if np.any(norm == 0.0):
                problem = f"the quaternion of joint {joint!r} is zero in row {int(np.argmin(norm))}"
                raise InputError(
                    "E-PATH-012", problem, "use 1, 0, 0, 0 for the identity", part=part
                )
    return found


def two_points(q0: Any, q1: Any, robot: Robot | None, part: str) -> np.ndarray:
    """Check the start and end positions, and return them as an array (2, n)."""
    if robot is not None:
        check_robot(part, robot)
    size = None if robot is None else robot.nq
    first = finite("q0", q0, size, part)
    return points("q0 and q1", [first, finite("q1", q1, len(first), part)], robot, part)


def bounds(what: str, value: Any, size: int, part: str, *, infinite: bool = False) -> np.ndarray:
    """Return positive limits (size,), given as one number or one per coordinate."""
    if type(value) is np.ndarray and value.dtype == float and value.shape == (size,):
        found = value  # fast path for the common case
    else:
        found = some_numbers(what, value, part).astype(float)
    if found.shape not in ((), (size,)):
        problem = (
            f"{what} must be one number or {size} numbers, not an array of shape {found.shape}"
        )
        raise InputError("E-PATH-013", problem, part=part)
    found = np.full(size, found)
    fine = found > 0.0 if infinite else (found > 0.0) & np.isfinite(found)
    if not fine.all():
        bad = ~fine
        k = int(np.argmax(bad))
        kind = "positive" if infinite else "positive and finite"
        problem = f"{what} must be {kind}, but entry {k} is {found[k]:g}"
        raise InputError("E-PATH-014", problem, f"pass {what}=", part=part)
    return found
