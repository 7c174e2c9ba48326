"""Trajectories that compiled controllers follow, sampled at the stages of each step.

Each compiled step takes one row of samples: the trajectory at all stages of the integrator. The
trajectory is interpolated through these samples, so its values are exact at every stage.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.expr import Number
from chasles.functions.doors import is_trajectory, library_of, module
from chasles.model import Model
from chasles.model.spaces import PositionSpace
from chasles.motion.steps.integrators import INTEGRATORS, Table


def stages(integrator: str) -> tuple[float, ...]:
    """Return the fractions of a step at which an integrator evaluates the controller.

    Unknown integrator names raise an error later, when the step is compiled.
    """
    row = INTEGRATORS.get(integrator) if isinstance(integrator, str) else None
    table = None if row is None else row.advance
    return tuple(sorted(set(table.c))) if isinstance(table, Table) else (0.0,)


def check_reference(what: str, target: Any, size: int) -> None:
    """Raise an error if a trajectory does not have `size` coordinates."""
    if not is_trajectory(target):
        return
    shape = np.shape(target(0.0)[0])
    if shape != (size,):
        problem = f"a trajectory of {shape[-1]} coordinates was given, but {what} {size}"
        raise InputError("E-MOTION-211", problem, "pass a trajectory of this robot", part="control")


def row_size(size: int, parts: Sequence[float]) -> int:
    """Return the length of a row of `samples`, if the trajectory has `size` values at each stage.

    The row also contains the time at the start of the step and the reciprocal of the step size.
    """
    return 2 + len(parts) * size


def samples(
    target: Callable[..., Any], quaternions: Sequence[int], parts: Sequence[float], *, whole: bool
) -> Callable[[float, float, int], np.ndarray]:
    """Return a function that samples a trajectory, given start time, step size and step count.

    The function returns one row per step: the time at the start of the step (s), 1 / dt, and the
    samples at each stage.

    Parameters
    ----------
    target : callable
        Trajectory t -> (q, qd, qdd, ...).
    quaternions : sequence of int
        Indices of quaternions in q, whose signs are chosen to match the first stage of a step.
    parts : sequence of float
        Stages of the integrator, as fractions of a step.
    whole : bool
        True to sample q, qd and qdd, False to sample q alone.
    """

    def rows(start: float, dt: float, steps: int) -> np.ndarray:
        begin = start + dt * np.arange(steps)
        t = begin[:, None] + dt * np.array(parts)
        if is_trajectory(target):
            found = target(t)[:3]
        else:
            every = [tuple(map(np.asarray, target(each)[:3])) for each in t.ravel().tolist()]
            found = [np.array(x).reshape(*t.shape, -1) for x in zip(*every, strict=True)]
        q = np.array(found[0], dtype=float)
        for k in quaternions:
            turn = q[..., k : k + 4]
            turn *= np.copysign(1.0, np.sum(turn * turn[:, :1], axis=-1, keepdims=True))
        each = np.concatenate([q, *found[1:3]], axis=-1) if whole else q
        times = np.stack([begin, np.full(steps, 1.0 / dt)], axis=-1)
        return np.concatenate([times, each.reshape(steps, -1)], axis=-1)

    return rows


def quaternion_places(model: Model) -> list[int]:
    """Return the index in q of the first entry of each quaternion."""
    return list(PositionSpace().quaternions(model))


def interpolated(
    row: Sequence[Number], t: Number, size: int, parts: Sequence[float]
) -> list[Number]:
    """Interpolate a trajectory at time t between its samples in one step (Lagrange's formula).

    `row` contains the start time of the step, the inverse of its duration, and `size` values for
    each of the `parts`.
    """
    part = (t - row[0]) * row[1]
    found: list[Number] = [0.0] * size
    for k, here in enumerate(parts):
        weight: Number = 1.0
        for other in (*parts[:k], *parts[k + 1 :]):
            weight = weight * ((part - other) * (1.0 / (here - other)))
        values = row[2 + k * size : 2 + (k + 1) * size]
        found = [x + weight * value for x, value in zip(found, values, strict=True)]
    return found


def alike(rows: np.ndarray, q: Any) -> Any:
    """Convert a NumPy array to the array library, dtype and device of q."""
    library = library_of(q)
    if library is None or library.takes_numpy:
        return rows
    make = getattr(module(library.package), library.package)
    if library.package == "torch":
        return make.as_tensor(rows, dtype=q.dtype, device=q.device)
    with q.device:
        return make.asarray(rows, dtype=q.dtype)
