"""Inverse kinematics with weights or tolerances that differ between problems.

Problems with the same weights and tolerances are solved together.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from chasles.functions.doors import leading_shape
from chasles.functions.targets import Target, stated
from chasles.mechanisms.differentiable import _from_part, _grouped, _several
from chasles.mechanisms.given_targets import OPTIONS, PART, checked_posture, goal_of
from chasles.mechanisms.inverse_kinematics import Solution, inverse_kinematics
from chasles.mechanisms.mechanism import Mechanism
from chasles.mechanisms.postures import Bounds
from chasles.model.given import some_numbers


def varied(targets: Mapping[str, Any]) -> bool:
    """Return True if a target has separate weights or tolerances for each problem."""
    each = (target for value in targets.values() for target in _several(value))
    return any(
        np.ndim(getattr(target, name)) > 1
        for target in each
        if isinstance(target, Target)
        for name in OPTIONS
    )


def solved_in_groups(
    mechanism: Mechanism, bounds: Bounds, targets: Mapping[str, Any], options: Mapping[str, Any]
) -> Solution:
    """Solve a batch with different weights or tolerances, one group of equal values at a time."""
    pairs = [(frame, target) for frame, value in targets.items() for target in stated(value)]
    goals = [goal_of(frame, target) for frame, target in pairs]
    rows = [
        np.atleast_1d(some_numbers(name, getattr(target, name), PART)).astype(float)
        for _, target in pairs
        for name in OPTIONS
    ]
    states = {
        name: posture
        for name in ("guess", "near", "comfort")
        if not isinstance(options[name], str)
        and (posture := checked_posture(mechanism, name, options[name])) is not None
    }
    named = {f"target of {frame!r}": a for (frame, _), a in zip(pairs, goals, strict=True)}
    sizes = {f"{OPTIONS[k % 2]} of target {k // 2}": row for k, row in enumerate(rows)}
    lead = leading_shape(PART, **named, **sizes, **states)
    if 0 in lead:
        plain = [(frame, replace(target, weight=1.0, tolerance=1.0)) for frame, target in pairs]
        return inverse_kinematics(mechanism, bounds, _grouped(plain), **options)
    flat = [_flat(a, lead) for a in (*goals, *rows, *states.values())]
    n = len(pairs)
    _, group = np.unique(np.concatenate(flat[n : 3 * n], axis=-1), axis=0, return_inverse=True)
    whole: dict[str, np.ndarray] = {}
    for k in range(group.max(initial=-1) + 1):
        some = np.flatnonzero(group.ravel() == k)
        part = [a[some] for a in flat]
        given = [
            (frame, replace(_from_part(target, part[i]), **_each(part[n + 2 * i : n + 2 * i + 2])))
            for i, (frame, target) in enumerate(pairs)
        ]
        own = dict(options) | dict(zip(states, part[3 * n :], strict=True))
        found = vars(inverse_kinematics(mechanism, bounds, _grouped(given), **own))
        for name, a in found.items():
            array = np.broadcast_to(a, (len(some), *np.shape(a)[1:]))
            whole.setdefault(name, np.empty((len(group), *array.shape[1:]), array.dtype))
            whole[name][some] = array
    return Solution(**{name: a.reshape(*lead, *a.shape[1:]) for name, a in whole.items()})


def _flat(array: np.ndarray, lead: tuple[int, ...]) -> np.ndarray:
    wide = np.broadcast_to(array, (*lead, array.shape[-1]))
    return np.ascontiguousarray(wide).reshape(-1, array.shape[-1])


def _each(rows: list[np.ndarray]) -> dict[str, Any]:
    """Return the options of a target (weight and tolerance), which are equal within a group."""
    return dict(zip(OPTIONS, (row[0] for row in rows), strict=True))
