"""The largest speeds along a path that limits of velocities allow, in every grid interval."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from chasles.expr import Number, absolute, less, maximum, minimum, select
from chasles.trajectory.reachable import (
    FAR,
    PLACES,
    Numbers,
    bernstein,
    compiled,
    joined,
    traced,
)

STEADY = 0.5
"""Squared rates q' that change by more than this factor in an interval bound the speed as one."""


def tops(
    rates: np.ndarray, velocity: np.ndarray, errors: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """The largest Bernstein coefficients of x (PLACES, N) by limits of velocities (n,).

    rates: q' (PLACES, N, n). errors: how far a parabola with given second differences (N, n) may be
    from its curve.
    """
    _, count, n = rates.shape
    found = [np.empty((count, n)) for _ in range(PLACES + 2)]
    _each("tops", n)([*rates, np.broadcast_to(velocity, (count, n))], found, 1)
    *coefficients, second, safe = found
    top = np.empty((PLACES, count, 1))
    _each("lowest", n)([*coefficients, errors(second), safe], list(top), 1)
    return top[..., 0]


@cache
def _each(name: str, n: int) -> Any:
    """`_tops` or `_lowest` for a number of velocities, compiled."""
    body, count = {"tops": (_tops, PLACES + 1), "lowest": (_lowest, PLACES + 2)}[name]
    trace = partial(traced, name, [n] * count, lambda *given: body(given))
    return compiled(("time optimal", name, n), trace)


def _tops(given: Sequence[Numbers]) -> list[list[Number]]:
    """Bernstein coefficients of the largest x by each velocity, at three places of an interval.

    Those of (velocity / q')^2, where q' changes little; FAR below zero elsewhere. Then the second
    difference of these squares, and a bound of x for the whole interval.
    """
    *rates, velocity = given
    coefficients: list[list[Number]] = [[], [], []]
    second, safe = [], []
    for *places, limit in zip(*rates, velocity, strict=True):
        slow = [(rate / limit) * (rate / limit) for rate in places]
        high, low = joined(maximum, slow), joined(minimum, slow)
        bend = absolute(slow[0] - 2.0 * slow[1] + slow[2])
        even = less(STEADY * high, low)
        fast = [1.0 / select(even, each, 1.0) for each in slow]
        for found, value in zip(coefficients, bernstein(fast), strict=True):
            found.append(select(even, value, -FAR))
        second.append(fast[0] - 2.0 * fast[1] + fast[2])
        safe.append(1.0 / maximum(high + bend, 1.0 / FAR))
    return [*coefficients, second, safe]


def _lowest(given: Sequence[Numbers]) -> list[list[Number]]:
    """The least of coefficients less their errors, which count above the bounds `safe`."""
    *coefficients, errors, safe = given
    found = []
    for place in coefficients:
        rows = zip(place, errors, safe, strict=True)
        found.append(joined(minimum, [maximum(x - e, least) for x, e, least in rows]))
    return [[each] for each in found]
