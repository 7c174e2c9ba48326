"""Speeds along a path from which its end can be reached: three short programs, repeated.

Between grid points the acceleration u along a path is constant, so that the squared speed x is
linear: x(i + 1) = x(i) + 2 D u. A constraint is a row lo <= a u + b x + c <= hi. The speeds from
which the end can be reached are intervals, found backward, and the fastest way through them forward
(Pham and Pham, IEEE Transactions on Robotics 34, 2018: reachability analysis).

For one x every row leaves an interval of u, and all intervals meet if every two of them do. Pairs
of rows of one grid interval bound x whatever comes after: Newton's method finds these bounds for
all grid intervals at once, since the room between rows is concave in x. There remain pairs of a row
and the next interval of speeds, grid point by grid point.

Rows are Bernstein coefficients of polynomials of degree PLACES - 1 in each grid interval, which
bound them: so a constraint holds between grid points too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Any, NamedTuple

import numpy as np

from chasles import backends
from chasles.expr import (
    RULES,
    Arena,
    Number,
    Program,
    Variable,
    absolute,
    less,
    less_equal,
    maximum,
    minimum,
    select,
)

FAR = 1e30
"""A bound that does not count."""

PLACES = 3
"""Equally spaced places in a grid interval, its ends included, where constraints are known."""

NEWTON, MOST_ROUNDS, NEARLY = 5, 40, 1e-13
"""Steps of Newton's method at a time, how often at most, and the part by which they may move."""

SMALL = 1e-11
"""A coefficient is zero if it is so small against the other one of its row."""

RELAXED = 0.5
"""The part of the slack that the way forward leaves, so that rounding does not stop it."""


@dataclass(frozen=True)
class Constraints:
    """Rows lo <= a u + b x <= hi of N grid intervals: (PLACES, N, r) each; length: (N,).

    x at the ends and between is at most `top` (PLACES, N): the Bernstein coefficients of x.
    """

    a: np.ndarray
    b: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    top: np.ndarray
    length: np.ndarray

    def arrays(self, slack: float) -> list[np.ndarray]:
        """Inputs of the programs (N, size), with limits narrowed by a part of them."""
        less_ = slack * (self.hi - self.lo)
        parts = (self.a, self.b, self.lo + less_, self.hi - less_)
        rows = [row for part in parts for row in part]
        ends = np.concatenate([self.top, self.length[None]]).T
        return [*rows, np.ascontiguousarray(ends)]


class Speeds(NamedTuple):
    """Squared speeds x (N + 1,) at the grid points; or the last interval that is infeasible.

    low, high (N + 1,): the squared speeds from which the end can be reached. failed: the index of
    the interval, None where the path can be run through.
    """

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    failed: int | None = None


def fastest(given: Constraints, first: float, last: float, slack: float) -> Speeds:
    """The largest squared speeds along the path, from `first` to `last` at its ends.

    slack: the part of all limits that is left.
    """
    n, r = given.lo.shape[1:]
    arrays = given.arrays(slack)
    alone = _alone(arrays, n, r)
    record = np.empty((1, n, 2))
    controls = [each[None, ::-1] for each in (*arrays, alone)]
    _loop("backward", r)([np.array([[last, last]], float)], controls, [record], n, 1, 1)
    low, high = np.append(record[0, ::-1], [[last, last]], axis=0).T
    empty = np.flatnonzero(~(low <= high))
    if len(empty) or not low[0] <= first <= high[0] * (1.0 + 1e-9):
        return Speeds(high, low, high, int(empty[-1]) if len(empty) else 0)
    arrays = given.arrays(RELAXED * slack)
    ends = np.stack([low[1:], high[1:]], axis=1)
    x = np.empty((1, n, 1))
    controls = [each[None] for each in (*arrays, ends)]
    _loop("forward", r)([np.array([[first]], float)], controls, [x], n, 1, 1)
    return Speeds(np.append(first, x), low, high)


def _alone(arrays: Sequence[np.ndarray], n: int, r: int) -> np.ndarray:
    """Bounds (N, 2) of x by rows of the same grid interval."""
    found = np.stack([np.zeros(n), arrays[-1][:, 0]], axis=1)
    controls = [each[:, None] for each in arrays]
    for end, (side, steps) in enumerate(((1.0, 1), (-1.0, NEWTON))):
        state = np.stack([found[:, end], np.ones(n), np.full(n, side)], axis=1)
        for _ in range(MOST_ROUNDS):
            _loop("alone", r)([state], controls, [], steps, steps, 1)
            if not np.any(state[:, 1]):
                break
        found[:, end] = state[:, 0]
    return found


# Programs ----------------------------------------------------------------------------------------

Numbers = Sequence[Number]


class _Row(NamedTuple):
    """lo <= a u + b x <= hi."""

    a: Number
    b: Number
    lo: Number
    hi: Number


@cache
def bernstein() -> np.ndarray:
    """From values of a polynomial at the places to its Bernstein coefficients."""
    n, t = PLACES - 1, np.linspace(0.0, 1.0, PLACES)
    values = [[comb(n, k) * x**k * (1.0 - x) ** (n - k) for k in range(n + 1)] for x in t]
    return np.linalg.inv(np.array(values))


def _rows(given: Sequence[Numbers]) -> tuple[list[_Row], Number]:
    """All rows of an interval, and its length."""
    k = PLACES
    found = [
        _Row(*row)
        for place in range(k)
        for row in zip(*(given[part * k + place] for part in range(4)), strict=True)
    ]
    *top, d = given[4 * k]
    share = [p / (k - 1.0) for p in range(k)]
    found += [_Row(2.0 * d * p, 1.0, 0.0, t) for p, t in zip(share[1:], top[1:], strict=True)]
    return found, d


def _over(number: Number, zero: Number) -> Number:
    """1 / number, or 1 where it counts as zero."""
    return 1.0 / select(zero, 1.0, number)


def _bounds(row: _Row) -> tuple[Number, Number, Number, Number]:
    """u between lower - slope x and upper - slope x; and whether the row does not bound it."""
    flat = less_equal(absolute(row.a), SMALL * absolute(row.b))
    by = _over(row.a, flat)
    one, two = row.lo * by, row.hi * by
    upper, lower = select(flat, FAR, maximum(one, two)), select(flat, -FAR, minimum(one, two))
    return upper, lower, select(flat, 0.0, row.b * by), flat


def _backward(state: Numbers, *given: Numbers) -> Numbers:
    """The interval of x from which the next interval is reached."""
    (low, high), (bottom, top) = state, given[-1]
    rows, d = _rows(given)
    for row in rows:
        share = row.a / (2.0 * d)
        w = row.b - share
        none = less_equal(absolute(w), SMALL * (absolute(share) + absolute(row.b)))
        by = _over(w, none)
        one, two, along = row.lo * by, row.hi * by, share * by
        least, most = minimum(along * low, along * high), maximum(along * low, along * high)
        top = minimum(top, select(none, FAR, maximum(one, two) - least))
        bottom = maximum(bottom, select(none, -FAR, minimum(one, two) - most))
    return bottom, top


def _forward(state: Numbers, *given: Numbers) -> Numbers:
    """The largest x at the next grid point."""
    (x,), (low, high) = state, given[-1]
    found, (rows, d) = high, _rows(given)
    for row in rows:
        upper, _, slope, _ = _bounds(row)
        found = minimum(found, x + 2.0 * d * (upper - slope * x))
    return (maximum(found, low),)


def _newton(state: Numbers, *given: Numbers) -> Numbers:
    """A step to an end of {x: max(lower - slope x) <= min(upper - slope x)} from outside.

    side is 1 for the lower end, -1 for the upper one; x is far outside where there is no such
    set. moved: 1 where x changed.
    """
    before, _, side = state
    x, lines = before, []
    for row in _rows(given)[0]:
        upper, lower, slope, flat = _bounds(row)
        lines.append((upper, lower, slope))
        constant = less_equal(absolute(row.b), 0.0)
        by = _over(row.b, constant) * side
        least = select(constant, -FAR, minimum(row.lo * by, row.hi * by))
        broken = constant * maximum(less(0.0, row.lo), less(row.hi, 0.0))
        least = select(broken, FAR, least)
        x = select(flat, side * maximum(side * x, least), x)
    upper, lower, slope = lines[0]
    top, bottom, top_slope, bottom_slope = upper - slope * x, lower - slope * x, slope, slope
    for upper, lower, slope in lines[1:]:
        here, there = upper - slope * x, lower - slope * x
        top_slope = select(less(here, top), slope, top_slope)
        bottom_slope = select(less(bottom, there), slope, bottom_slope)
        top, bottom = minimum(top, here), maximum(bottom, there)
    room, rate = top - bottom, (bottom_slope - top_slope) * side
    helps = less(0.0, rate)
    nearer = x - room * side / select(helps, rate, 1.0)
    x = select(less(room, 0.0), select(helps, nearer, side * FAR), x)
    return x, less(NEARLY * absolute(x), absolute(x - before)), side


STEPS: dict[str, tuple[Callable[..., Numbers], int, tuple[int, ...]]] = {
    "alone": (_newton, 3, ()),
    "backward": (_backward, 2, (2,)),
    "forward": (_forward, 1, (2,)),
}
"""The step of each program, the size of its state, and of what it takes beside constraints."""


def _program(name: str, r: int) -> Program:
    """The program of r constraints; its output is the next state."""
    body, size, more = STEPS[name]
    arena = Arena(RULES)
    sizes = (size, *(r,) * (4 * PLACES), PLACES + 1, *more)
    inputs = [Variable(f"x{i}", (n,)) for i, n in enumerate(sizes)]
    given = [[arena.input(v.name, k) for k in range(v.size)] for v in inputs]
    found = list(body(*given))
    return Program.from_outputs(name, inputs, [(Variable("next", (size,)), found)])


@cache
def _loop(name: str, r: int) -> Any:
    """A program, compiled and repeated."""
    recipe = ("time optimal", name, r)

    def trace() -> Program:
        return _program(name, r)

    return backends.loop(backends.known(recipe, trace) or backends.compile(trace(), recipe=recipe))
