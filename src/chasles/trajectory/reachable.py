"""Speeds along a path from which its end can be reached: short programs for a grid of intervals.

Between grid points the acceleration u along a path is constant, so that the squared speed x is
linear: the next one is y = x + 2 D u. A constraint lo <= a u + b x + c <= hi is then a row
low + slope x <= y <= high + slope x. The speeds from which the end can be reached are intervals,
found backward, and the fastest way through them forward (Pham and Pham, IEEE Transactions on
Robotics 34, 2018: reachability analysis).

For one x every row leaves an interval of y, and all intervals meet if every two of them do. Pairs
of rows of one grid interval bound x whatever comes after: Newton's method finds these bounds for
all grid intervals at once, since the room between rows is concave in x. There remain pairs of a row
and the next interval of speeds, grid point by grid point.

Constraints are known at three places of a grid interval. Rows are the Bernstein coefficients of the
parabolas through them, which bound these: so a constraint holds between grid points too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from math import perm
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import PPoly

from chasles import backends
from chasles.expr import (
    RULES,
    Arena,
    Number,
    Program,
    Variable,
    absolute,
    less,
    maximum,
    minimum,
    select,
)

FAR = 1e30
"""A bound that does not count."""

PLACES = 3
"""Places in a grid interval where constraints are known: its ends and its middle."""

NEWTON, MOST_ROUNDS, NEARLY = 4, 60, 1e-13
"""Steps of Newton's method at a time, how often at most, and the part by which they may move."""

SMALL = 1e-11
"""The least coefficient of u, as part of that of x; and the least slope of a row."""

SLACK = 5e-7
"""The part of every limit that is left for rounding, and for errors of the parabolas."""

RELAXED = 0.5
"""The part of the slack that the way forward leaves, so that rounding does not stop it."""

Numbers = Sequence[Number]


@dataclass(frozen=True, eq=False)
class Course:
    """Constraints of N grid intervals at their places: arrays (PLACES, N, k), and lengths (N,).

    q1, q2: first and second derivatives along the path of coordinates whose accelerations q1 u +
    q2 x are limited. held, pushed, turned: torques c, c + a and c + b of a u + b x + c.
    """

    q1: np.ndarray
    q2: np.ndarray
    held: np.ndarray
    pushed: np.ndarray
    turned: np.ndarray
    length: np.ndarray

    @cached_property
    def arrays(self) -> list[np.ndarray]:
        """The arrays of each place, (N, k)."""
        every = (self.q1, self.q2, self.held, self.pushed, self.turned)
        return [place for array in every for place in array]

    @property
    def key(self) -> tuple[int, int]:
        """Return the number of limited accelerations and torques."""
        return self.q1.shape[-1], self.held.shape[-1]

    def rows(self, lo: np.ndarray, hi: np.ndarray, top: np.ndarray) -> list[np.ndarray]:
        """Rows high, low, slope and its inverse, (N, m) each.

        lo, hi: limits (N, r). top (PLACES, N): Bernstein coefficients of the largest x.
        """
        ends = np.stack([top[1], self.length], axis=1)
        return self._run("rows", lo, hi, ends)

    def peaks(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The largest absolute values of the constraints in each interval (N, r), by their
        parabolas, and the second differences of these; x: squared speeds (N + 1,)."""
        state = np.stack([x[:-1], x[1:], self.length], axis=1)
        high, second = self._run("peaks", state)
        return high, second

    def _run(self, name: str, *more: np.ndarray) -> list[np.ndarray]:
        """The results of a program for each interval."""
        kernel = _kernel(name, *self.key)
        found = [np.empty((len(self.length), v.size)) for v in kernel.interface.outputs]
        kernel([*self.arrays, *more], found, 1)
        return found


class Speeds(NamedTuple):
    """Squared speeds x (N + 1,) at the grid points; or the last interval that is infeasible.

    low, high (N + 1,): the squared speeds from which the end can be reached. failed: the index of
    the interval, None where the path can be run through.
    """

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    failed: int | None = None


def fastest(rows: Sequence[np.ndarray], top: np.ndarray, first: float, last: float) -> Speeds:
    """The largest squared speeds along the path, from `first` to `last` at its ends.

    rows: of `Course.rows`. top: the largest x at the starts of the intervals (N,).
    """
    (n, m), (high, low, slope, inverse) = rows[0].shape, rows
    alone = _alone(high, low, slope, top)
    record, last_one = np.empty((1, n, 2)), np.array([[last, last]], float)
    controls = [each[None, ::-1] for each in (high, low, inverse, alone)]
    _loop("backward", m)([last_one.copy()], controls, [record], n, 1, 1)
    least, most = np.append(record[0, ::-1], last_one, axis=0).T
    empty = np.flatnonzero(~(least <= most))
    if len(empty) or not least[0] <= first <= most[0] * (1.0 + 1e-9):
        return Speeds(most, least, most, int(empty[-1]) if len(empty) else 0)
    x, ends = np.empty((1, n, 1)), np.stack([least[1:], most[1:]], axis=1)
    controls = [each[None] for each in (high, low, slope, ends)]
    _loop("forward", m)([np.array([[first]], float)], controls, [x], n, 1, 1)
    return Speeds(np.append(first, x), least, most)


def _alone(high: np.ndarray, low: np.ndarray, slope: np.ndarray, top: np.ndarray) -> np.ndarray:
    """Bounds (N, 2) of x by rows of the same grid interval."""
    n, m = high.shape
    found = np.stack([np.zeros(n), top], axis=1)
    controls = [each[:, None] for each in (high, low, slope)]
    rests = bool(np.all(low.max(axis=1) <= high.min(axis=1)))  # everywhere at x = 0
    for end, side in ((1, -1.0),) if rests else ((0, 1.0), (1, -1.0)):
        state, here = np.stack([found[:, end], np.ones(n), np.full(n, side)], axis=1), np.arange(n)
        given = controls
        for k in range(MOST_ROUNDS):
            steps = NEWTON if k else 1  # one shows that most bounds stay
            _loop("alone", m)([state], given, [], steps, steps, 1)
            found[here, end] = state[:, 0]
            moved = state[:, 1] != 0.0
            if not np.any(moved):
                break
            state, here, given = state[moved], here[moved], [each[moved] for each in given]
    return found


# Programs ----------------------------------------------------------------------------------------


def _parabolas(given: Sequence[Numbers], accelerations: int, torques: int) -> list[list[Any]]:
    """a, b and c of each constraint at the places."""
    q1, q2, held, pushed, turned = (given[k : k + PLACES] for k in range(0, 5 * PLACES, PLACES))
    found: list[list[Any]] = [
        [(q1[p][k], q2[p][k], 0.0) for p in range(PLACES)] for k in range(accelerations)
    ]
    for k in range(torques):
        c = [place[k] for place in held]
        found.append([(pushed[p][k] - c[p], turned[p][k] - c[p], c[p]) for p in range(PLACES)])
    return found


def bernstein(values: Numbers) -> list[Number]:
    """Bernstein coefficients of the parabola through values at the places."""
    first, middle, last = values
    return [first, 2.0 * middle - 0.5 * (first + last), last]


def _rows(given: Sequence[Numbers], accelerations: int, torques: int) -> list[list[Number]]:
    """Rows high, low, slope, and its inverse, of all constraints."""
    lo, hi, (top, d) = given[5 * PLACES :]
    high, low, slope = [], [], []
    for k, places in enumerate(_parabolas(given, accelerations, torques)):
        a = bernstein([x + y * (p * d) for p, (x, y, _) in enumerate(places)])
        b, c = (bernstein([place[i] for place in places]) for i in (1, 2))
        slack = SLACK * (hi[k] - lo[k])
        for x, y, z in zip(a, b, c, strict=True):
            floor = SMALL * absolute(y) + 1e-16 * (hi[k] - lo[k])
            by = 2.0 * d / select(less(absolute(x), floor), floor, x)
            one, two = (lo[k] - z + slack) * by, (hi[k] - z - slack) * by
            high.append(maximum(one, two))
            low.append(minimum(one, two))
            slope.append(1.0 - y * by)
    high.append(2.0 * top)
    low.append(0.0)
    slope.append(-1.0 + 0.0 * d)
    inverse = [1.0 / select(less(absolute(s), SMALL), SMALL, s) for s in slope]
    return [high, low, slope, inverse]


def _peaks(given: Sequence[Numbers], accelerations: int, torques: int) -> list[list[Number]]:
    """The largest absolute value of each constraint, and its second difference."""
    x, y, d = given[5 * PLACES]
    u, middle = (y - x) / (2.0 * d), 0.5 * (x + y)
    peak, second = [], []
    for places in _parabolas(given, accelerations, torques):
        values = [a * u + b * at + c for (a, b, c), at in zip(places, (x, middle, y), strict=True)]
        first, control, last = map(absolute, bernstein(values))
        peak.append(maximum(maximum(first, control), last))
        second.append(values[0] - 2.0 * values[1] + values[2])
    return [peak, second]


def _backward(state: Numbers, high: Numbers, low: Numbers, inverse: Numbers, alone: Numbers) -> Any:
    """The interval of x from which the next interval is reached."""
    (least, most), (bottom, top) = state, alone
    tops, bottoms = [top], [bottom]
    for up, down, by in zip(high, low, inverse, strict=True):
        one, two = (most - down) * by, (least - up) * by
        tops.append(maximum(one, two))
        bottoms.append(minimum(one, two))
    return joined(maximum, bottoms), joined(minimum, tops)


def _forward(state: Numbers, high: Numbers, low: Numbers, slope: Numbers, ends: Numbers) -> Any:
    """The largest x at the next grid point."""
    (x,), (least, most), more = state, ends, RELAXED * SLACK
    found = [most]
    for up, down, by in zip(high, low, slope, strict=True):
        found.append(up + more * (up - down) + by * x)
    return (maximum(joined(minimum, found), least),)


def joined(least: Callable[[Number, Number], Number], values: Numbers) -> Number:
    """The least or largest of numbers, by pairs of pairs: processors compare several at a time."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [*(least(a, b) for a, b in pairs), *values[len(values) & ~1 :]]
    return values[0]


def _newton(state: Numbers, high: Numbers, low: Numbers, slope: Numbers) -> Any:
    """A step to an end of {x: max(low + slope x) <= min(high + slope x)} from outside.

    side is 1 for the lower end, -1 for the upper one; x is far outside where there is no such
    set. moved: 1 where x changed.
    """
    x, _, side = state
    top, bottom = high[0] + slope[0] * x, low[0] + slope[0] * x
    top_slope, bottom_slope = slope[0], slope[0]
    for up, down, by in zip(high[1:], low[1:], slope[1:], strict=True):
        rise = by * x
        here, there = up + rise, down + rise
        top_slope = select(less(here, top), by, top_slope)
        bottom_slope = select(less(bottom, there), by, bottom_slope)
        top, bottom = minimum(top, here), maximum(bottom, there)
    room, rate = top - bottom, (top_slope - bottom_slope) * side
    helps = less(0.0, rate)
    nearer = x - room * side / select(helps, rate, 1.0)
    after = select(less(room, 0.0), select(helps, nearer, side * FAR), x)
    return after, less(NEARLY * absolute(after), absolute(after - x)), side


STEPS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "alone": (_newton, (3, 0, 0, 0)),
    "backward": (_backward, (2, 0, 0, 0, 2)),
    "forward": (_forward, (1, 0, 0, 0, 2)),
}
"""The step of each loop, and the sizes of its inputs; 0 stands for the number of rows."""


def traced(name: str, sizes: Sequence[int], body: Callable[..., Any]) -> Program:
    arena = Arena(RULES)
    inputs = [Variable(f"x{i}", (n,)) for i, n in enumerate(sizes)]
    found = body(*([arena.input(v.name, k) for k in range(v.size)] for v in inputs))
    outputs = [(Variable(f"y{i}", (len(each),)), list(each)) for i, each in enumerate(found)]
    return Program.from_outputs(name, inputs, outputs)


def along(curve: PPoly, s: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, ...]:
    """A curve and its first two derivatives (PLACES, N, n) at the places of intervals from s on.

    No interval contains a break of the curve.
    """
    c, x = curve.c, curve.x
    piece = np.clip(np.searchsorted(x, s, "right") - 1, 0, len(x) - 2)
    rows, n = list(c[:, piece]), c.shape[-1]
    kernel = _path(len(c), n)
    found = [np.empty((PLACES, len(s), n)) for _ in range(3)]
    outputs = [place for each in found for place in each]
    kernel([*rows, np.stack([s - x[piece], length], axis=1)], outputs, 1)
    return tuple(found)


@cache
def _path(terms: int, n: int) -> Any:
    """n polynomials of so many terms at the places, with two derivatives."""

    def body(*given: Numbers) -> list[list[Number]]:
        *rows, (start, d) = given
        times = [start + (0.5 * p) * d for p in range(PLACES)]
        found: list[list[Number]] = []
        for order in range(3):
            weights = [perm(terms - 1 - k, order) for k in range(terms - order)]
            for t in times:
                values = []
                for j in range(n):
                    total: Number = 0.0
                    for weight, row in zip(weights, rows, strict=False):
                        total = total * t + weight * row[j]
                    values.append(total + 0.0 * t)
                found.append(values)
        return found

    trace = partial(traced, "path", [n] * terms + [2], body)
    return compiled(("time optimal", "path", terms, n), trace)


def compiled(recipe: tuple[Any, ...], trace: Callable[[], Program]) -> Any:
    return backends.known(recipe, trace) or backends.compile(trace(), recipe=recipe)


@cache
def _kernel(name: str, accelerations: int, torques: int) -> Any:
    """`_rows` or `_peaks` for so many constraints, compiled."""
    r, body = accelerations + torques, {"rows": _rows, "peaks": _peaks}[name]
    sizes = [accelerations] * (2 * PLACES) + [torques] * (3 * PLACES)
    sizes += [r, r, 2] if name == "rows" else [3]

    def trace() -> Program:
        return traced(name, sizes, lambda *given: body(given, accelerations, torques))

    return compiled(("time optimal", name, accelerations, torques), trace)


@cache
def _loop(name: str, m: int) -> Any:
    """A step for m rows, compiled and repeated."""
    body, sizes = STEPS[name]

    def trace() -> Program:
        return traced(name, [n or m for n in sizes], lambda *given: (body(*given),))

    return backends.loop(compiled(("time optimal", name, m), trace))
