"""Speeds along a path from which its end can be reached: three short programs, repeated.

Between grid points i and i + 1 the acceleration u along a path is constant, so that the squared
speed x is linear: x(i + 1) = x(i) + 2 D u. A constraint is a row lo <= a u + b x + c <= hi. The
speeds from which the end can be reached are intervals, found backward, and the fastest way through
them forward (Pham and Pham, IEEE Transactions on Robotics 34, 2018: reachability analysis).

For one x, every row leaves an interval of u, and intervals meet if every two of them do. Pairs of
rows of one grid point bound x whatever comes after: Newton's method finds these bounds for all grid
points at once, since the room between two rows is concave in x. Pairs of a row and the next
interval remain: one multiplication and a minimum each, grid point by grid point.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from chasles import backends
from chasles.expr import (
    RULES,
    Arena,
    Number,
    Program,
    Variable,
    less,
    maximum,
    minimum,
    select,
)

FAR = 1e30
"""A bound that does not count."""

NEWTON = 6
"""Steps of Newton's method at a time; more are taken where bounds still move."""

MOST_ROUNDS = 40
"""How often, at most."""

SMALL = 1e-11
"""A coefficient is zero if it is so small against the other one of its row."""


@dataclass(frozen=True)
class Rows:
    """Rows lo <= a u + b x + c <= hi of N grid intervals: (N, m) each; top: x at most (N,).

    length: the length of the intervals (N,).
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    top: np.ndarray
    length: np.ndarray


@dataclass(frozen=True)
class Speeds:
    """Squared speeds x (N + 1,) at the grid points; or the first interval that is infeasible.

    failed: its index, None where the path can be run through. low, high (N + 1,): squared speeds
    from which the end can be reached.
    """

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    failed: int | None = None


def fastest(rows: Rows, first: float, last: float, slack: float) -> Speeds:
    """The largest squared speeds from `first` to `last`; slack: of all bounds, as part of them.

    The intervals are found with more slack than the way through them, so that rounding does not
    leave them.
    """
    low, high = _reachable(rows, last, slack)
    empty = np.flatnonzero(~(low <= high))
    if len(empty):
        return Speeds(high, low, high, int(min(empty[-1], len(rows.length) - 1)))
    if not low[0] <= first <= high[0] * (1.0 + 1e-9):
        return Speeds(high, low, high, 0)
    x = _forward(rows, first, low, high, 0.5 * slack)
    return Speeds(x, low, high)


def _margins(rows: Rows, slack: float) -> tuple[np.ndarray, np.ndarray]:
    """lo - c and hi - c with some slack."""
    narrow = slack * np.minimum(rows.hi - rows.lo, FAR)
    return rows.lo - rows.c + narrow, rows.hi - rows.c - narrow


def _reachable(rows: Rows, last: float, slack: float) -> tuple[np.ndarray, np.ndarray]:
    """The intervals of squared speeds (N + 1,) from which the end can be reached at `last`."""
    lo, hi = _margins(rows, slack)
    bottom, top = _alone(rows, lo, hi)
    share = rows.a / (2.0 * rows.length)[:, None]
    w = rows.b - share
    zero = np.abs(w) <= SMALL * (np.abs(share) + np.abs(rows.b))
    r = 1.0 / np.where(zero, 1.0, w)
    one, two = lo * r, hi * r
    most, least = np.where(zero, FAR, np.maximum(one, two)), np.where(zero, -FAR, np.minimum(one, two))
    along = np.where(zero, 0.0, share * r)
    m, n = rows.a.shape[1], len(rows.length)
    controls = [
        np.ascontiguousarray(each[::-1])[None]
        for each in (
            most, least, np.maximum(along, 0.0), np.maximum(-along, 0.0),
            np.stack([bottom, top], axis=1),
        )
    ]
    record = np.empty((1, n, 2))
    _loop("backward", m)([np.array([[last, last]])], controls, [record], n, 1, 1)
    found = np.concatenate([record[0, ::-1], [[last, last]]])
    return found[:, 0], found[:, 1]


def _alone(rows: Rows, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (N,) of x by pairs of rows of the same grid point."""
    flat = np.abs(rows.a) <= SMALL * np.abs(rows.b)
    divisor = 1.0 / np.where(flat, 1.0, rows.a)
    one, two = lo * divisor, hi * divisor
    upper = np.where(flat, FAR, np.maximum(one, two))
    lower = np.where(flat, -FAR, np.minimum(one, two))
    slope = np.where(flat, 0.0, rows.b * divisor)
    bottom, top = np.zeros(len(rows.top)), rows.top
    if np.any(flat):
        still = rows.b == 0.0
        by = 1.0 / np.where(still, 1.0, rows.b)
        ends = np.where(flat & ~still, lo * by, -FAR), np.where(flat & ~still, hi * by, FAR)
        bottom = np.maximum(bottom, np.minimum(*ends).max(axis=1))
        top = np.minimum(top, np.maximum(*ends).min(axis=1))
        broken = (flat & still & ((lo > 0.0) | (hi < 0.0))).any(axis=1)
        top = np.where(broken, -FAR, top)
    state = np.stack([bottom, top], axis=1)
    controls = [np.ascontiguousarray(each[:, None, :]) for each in (upper, lower, slope)]
    for _ in range(MOST_ROUNDS):
        before = state.copy()
        _loop("alone", rows.a.shape[1])([state], controls, [], NEWTON, NEWTON, 1)
        if np.all(np.abs(state - before) <= 1e-13 * np.abs(before)):
            break
    return state[:, 0], state[:, 1]


def _forward(
    rows: Rows, first: float, low: np.ndarray, high: np.ndarray, slack: float
) -> np.ndarray:
    """The fastest way through the intervals: x (N + 1,)."""
    lo, hi = _margins(rows, slack)
    flat = np.abs(rows.a) <= SMALL * np.abs(rows.b)
    step = (2.0 * rows.length)[:, None] / np.where(flat, 1.0, rows.a)
    most = np.where(flat, FAR, np.maximum(lo * step, hi * step))
    slope = np.where(flat, 1.0, 1.0 - rows.b * step)
    ends = np.stack([low[1:], high[1:]], axis=1)
    n = len(rows.length)
    record = np.empty((1, n, 1))
    controls = [np.ascontiguousarray(each)[None] for each in (most, slope, ends)]
    _loop("forward", rows.a.shape[1])([np.array([[first]])], controls, [record], n, 1, 1)
    return np.concatenate([[first], record[0, :, 0]])


# Programs ----------------------------------------------------------------------------------------


@cache
def _loop(name: str, m: int) -> Any:
    """A program for m rows, compiled and repeated."""
    recipe, trace = ("time optimal", name, m), lambda: _PROGRAMS[name](m)
    kernel = backends.known(recipe, trace) or backends.compile(trace(), recipe=recipe)
    return backends.loop(kernel)


def _symbols(
    name: str, sizes: dict[str, int], body: Callable[..., Sequence[Number]]
) -> Program:
    """A program of arrays whose output is the next value of the first of them."""
    arena = Arena(RULES)
    inputs = [Variable(each, (n,)) for each, n in sizes.items()]
    given = [[arena.input(v.name, k) for k in range(v.size)] for v in inputs]
    state = Variable("next", inputs[0].shape)
    return Program.from_outputs(name, inputs, [(state, list(body(*given)))])


def _backward_program(m: int) -> Program:
    """The interval of x from which the next interval is reached."""

    def body(
        state: Sequence[Number],
        most: Sequence[Number],
        least: Sequence[Number],
        rising: Sequence[Number],
        falling: Sequence[Number],
        alone: Sequence[Number],
    ) -> Sequence[Number]:
        (low, high), (bottom, top) = state, alone
        for up, down, plus, minus in zip(most, least, rising, falling, strict=True):
            top = minimum(top, up - (plus * low - minus * high))
            bottom = maximum(bottom, down - (plus * high - minus * low))
        return bottom, top

    sizes = {"state": 2} | dict.fromkeys(("most", "least", "rising", "falling"), m)
    return _symbols("backward", sizes | {"alone": 2}, body)


def _forward_program(m: int) -> Program:
    """The largest x at the next grid point."""

    def body(
        state: Sequence[Number],
        most: Sequence[Number],
        slope: Sequence[Number],
        ends: Sequence[Number],
    ) -> Sequence[Number]:
        (x,), (low, high) = state, ends
        found = high
        for at, by in zip(most, slope, strict=True):
            found = minimum(found, at + by * x)
        return (maximum(found, low),)

    return _symbols("forward", {"state": 1, "most": m, "slope": m, "ends": 2}, body)


def _alone_program(m: int) -> Program:
    """One step of Newton's method for the ends of {x: max(lower - slope x) <= min(upper - ...)}."""

    def body(
        state: Sequence[Number],
        upper: Sequence[Number],
        lower: Sequence[Number],
        slope: Sequence[Number],
    ) -> Sequence[Number]:
        found: list[Number] = []
        for x, side in zip(state, (1.0, -1.0), strict=True):
            top, top_slope = upper[0] - slope[0] * x, slope[0]
            bottom, bottom_slope = lower[0] - slope[0] * x, slope[0]
            for u, v, s in zip(upper[1:], lower[1:], slope[1:], strict=True):
                here, there = u - s * x, v - s * x
                top_slope = select(less(here, top), s, top_slope)
                bottom_slope = select(less(bottom, there), s, bottom_slope)
                top, bottom = minimum(top, here), maximum(bottom, there)
            room, rate = top - bottom, (bottom_slope - top_slope) * side
            helps = less(0.0, rate)
            step = x - room * side / select(helps, rate, 1.0)
            outside = select(helps, step, side * FAR)
            found.append(select(less(room, 0.0), outside, x))
        return found

    return _symbols("alone", {"state": 2, "upper": m, "lower": m, "slope": m}, body)


_PROGRAMS: dict[str, Callable[[int], Program]] = {
    "alone": _alone_program,
    "backward": _backward_program,
    "forward": _forward_program,
}
