"""Speeds along a path from which its end can be reached: programs for a grid of intervals.

Between grid points the acceleration u along a path is constant, so that the squared speed x is
linear: the next one is y = x + 2 D u. A constraint lo <= a u + b x + c <= hi is then a row low +
slope x <= y <= high + slope x. The speeds from which the end can be reached are intervals, found
backward, and the fastest way through them forward (Pham and Pham, IEEE Transactions on Robotics 34,
2018: reachability analysis).

For one x every row leaves an interval of y, and all intervals intersect if every two of them do.
Pairs of rows of one grid interval bound x independently of later intervals: Newton's method finds
these bounds for all grid intervals at once, since the room between rows is concave in x. There
remain pairs of a row and the next interval of speeds, which are treated point by point.

Constraints are known at three places of a grid interval. Rows are the Bernstein coefficients of the
parabolas through them, which bound these, so that a constraint also holds between grid points.
"""

from collections.abc import Callable, Sequence
from functools import cache
from math import perm
from typing import Any

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
"""Bound without effect."""

PLACES = 3
"""Number of places in a grid interval where constraints are known: its ends and its middle."""

NEWTON, NEARLY = 4, 1e-13
"""Number of Newton steps at a time, and the relative change at which they have converged."""

SMALL = 1e-11
"""Smallest coefficient of u relative to that of x, and the smallest slope of a row."""

SLACK = 5e-7
"""Fraction of every limit reserved for rounding and for errors of the parabolas."""

STEADY = 0.5
"""Factor of change of squared rates q' in an interval above which they bound the speed as one."""

RELAXED = 0.5
"""Fraction of the slack that the forward pass leaves, so that rounding does not stop it."""

Numbers = Sequence[Number]


def _parabolas(given: Sequence[Numbers], accelerations: int, torques: int) -> list[list[Any]]:
    """Return a, b and c of each constraint at the places."""
    q1, q2, held, pushed, turned = (given[k : k + PLACES] for k in range(0, 5 * PLACES, PLACES))
    found: list[list[Any]] = [
        [(q1[p][k], q2[p][k], 0.0) for p in range(PLACES)] for k in range(accelerations)
    ]
    for k in range(torques):
        c = [place[k] for place in held]
        found.append([(pushed[p][k] - c[p], turned[p][k] - c[p], c[p]) for p in range(PLACES)])
    return found


def bernstein(values: Numbers) -> list[Number]:
    """Return the Bernstein coefficients of the parabola through values at the places."""
    first, middle, last = values
    return [first, 2.0 * middle - 0.5 * (first + last), last]


def _rows(given: Sequence[Numbers], accelerations: int, torques: int) -> list[list[Number]]:
    """Return rows high, low, slope and inverse of all constraints, and the room at x = 0.

    Limits are -hi and hi; top: the middle Bernstein coefficient of the largest x.
    """
    hi, (top,), (d,) = given[5 * PLACES :]
    high, low, slope = [], [], []
    for k, places in enumerate(_parabolas(given, accelerations, torques)):
        a = bernstein([x + y * (p * d) for p, (x, y, _) in enumerate(places)])
        b, c = (bernstein([place[i] for place in places]) for i in (1, 2))
        most = (1.0 - 2.0 * SLACK) * hi[k]
        for x, y, z in zip(a, b, c, strict=True):
            floor = SMALL * absolute(y) + 2e-16 * hi[k]
            by = 2.0 * d / select(less(absolute(x), floor), floor, x)
            one, two = (-most - z) * by, (most - z) * by
            high.append(maximum(one, two))
            low.append(minimum(one, two))
            slope.append(1.0 - y * by)
    high.append(2.0 * top)
    low.append(0.0)
    slope.append(-1.0 + 0.0 * d)
    inverse = [1.0 / select(less(absolute(s), SMALL), SMALL, s) for s in slope]
    return [high, low, slope, inverse, [joined(minimum, high) - joined(maximum, low)]]


def _peaks(given: Sequence[Numbers], accelerations: int, torques: int) -> list[list[Number]]:
    """Return the largest absolute value of each constraint, and its second difference."""
    (x,), (y,), (d,) = given[5 * PLACES :]
    u, middle = (y - x) / (2.0 * d), 0.5 * (x + y)
    peak, second = [], []
    for places in _parabolas(given, accelerations, torques):
        values = [a * u + b * at + c for (a, b, c), at in zip(places, (x, middle, y), strict=True)]
        first, control, last = map(absolute, bernstein(values))
        peak.append(maximum(maximum(first, control), last))
        second.append(values[0] - 2.0 * values[1] + values[2])
    return [peak, second]


def _backward(state: Numbers, high: Numbers, low: Numbers, inverse: Numbers, alone: Numbers) -> Any:
    """Return the interval of x from which the next interval is reached."""
    (least, most), (bottom, top) = state, alone
    tops, bottoms = [top], [bottom]
    for up, down, by in zip(high, low, inverse, strict=True):
        one, two = (most - down) * by, (least - up) * by
        tops.append(maximum(one, two))
        bottoms.append(minimum(one, two))
    return joined(maximum, bottoms), joined(minimum, tops)


def _forward(state: Numbers, high: Numbers, low: Numbers, slope: Numbers, ends: Numbers) -> Any:
    """Return the largest x at the next grid point."""
    (x,), (least, most), more = state, ends, RELAXED * SLACK
    found = [most]
    for up, down, by in zip(high, low, slope, strict=True):
        found.append(up + more * (up - down) + by * x)
    return (maximum(joined(minimum, found), least),)


def joined(least: Callable[[Number, Number], Number], values: Numbers) -> Number:
    """Return the smallest or largest of numbers by pairwise reduction, which vectorizes."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [*(least(a, b) for a, b in pairs), *values[len(values) & ~1 :]]
    return values[0]


def _alone(given: Sequence[Numbers], m: int, steps: int) -> list[list[Number]]:
    """Return an end of {x: max(low + slope x) <= min(high + slope x)}, by Newton's method.

    The iteration starts outside. side is 1 for the lower end, -1 for the upper one; x is far
    outside if the set is empty. moved: 1 if x changed in the last step.
    """
    (x,), (side,), *rows = given
    moved: Number = 0.0
    for _ in range(steps):
        before, x = x, _newton(x, side, *rows)
        moved = less(NEARLY * absolute(x), absolute(x - before))
    return [[x], [moved]]


def _newton(x: Number, side: Number, high: Numbers, low: Numbers, slope: Numbers) -> Number:
    """Take a Newton step."""
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
    return select(less(room, 0.0), select(helps, nearer, side * FAR), x)


STEPS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "backward": (_backward, (2, 0, 0, 0, 2)),
    "forward": (_forward, (1, 0, 0, 0, 2)),
}
"""Step of each loop, and the sizes of its inputs; 0 stands for the number of rows."""


def _path(given: Sequence[Numbers], terms: int, n: int) -> list[list[Number]]:
    """Return n polynomials with the given number of terms at the places, with two derivatives.

    No interval contains a break of the curve.
    """
    *rows, (start,), (d,) = given
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


def _tops(given: Sequence[Numbers], n: int) -> list[list[Number]]:
    """Return Bernstein coefficients of the largest x by each velocity, at three places.

    They are those of (velocity / q')^2 if q' changes little, and FAR below zero otherwise; followed
    by the second difference of these squares, and a bound of x for the whole interval.
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


def _lowest(given: Sequence[Numbers], n: int) -> list[list[Number]]:
    """Return the smallest coefficients less their errors, but at least the bounds `safe`."""
    *coefficients, errors, safe = given
    found = []
    for place in coefficients:
        rows = zip(place, errors, safe, strict=True)
        found.append(joined(minimum, [maximum(x - e, least) for x, e, least in rows]))
    return [[each] for each in found]


def _constraints(accelerations: int, torques: int) -> list[int]:
    """Return the sizes of the constraints' arrays at the places."""
    return [accelerations] * (2 * PLACES) + [torques] * (3 * PLACES)


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., list[int]]]] = {
    "path": (_path, lambda terms, n: [n] * terms + [1, 1]),
    "tops": (_tops, lambda n: [n] * (PLACES + 1)),
    "lowest": (_lowest, lambda n: [n] * (PLACES + 2)),
    "rows": (_rows, lambda a, t: [*_constraints(a, t), a + t, 1, 1]),
    "alone": (_alone, lambda m, _: [1, 1, m, m, m]),
    "peaks": (_peaks, lambda a, t: [*_constraints(a, t), 1, 1, 1]),
}
"""Programs of intervals, and the sizes of their inputs, by numbers of terms and limits."""


def _traced(name: str, sizes: Sequence[int], body: Callable[..., Any]) -> Program:
    arena = Arena(RULES)
    inputs = [Variable(f"x{i}", (n,)) for i, n in enumerate(sizes)]
    found = body(*([arena.input(v.name, k) for k in range(v.size)] for v in inputs))
    outputs = [(Variable(f"y{i}", (len(each),)), list(each)) for i, each in enumerate(found)]
    return Program.from_outputs(name, inputs, outputs)


def _compiled(recipe: tuple[Any, ...], trace: Callable[[], Program]) -> Any:
    return backends.known(recipe, trace) or backends.compile(trace(), recipe=recipe)


@cache
def kernel(name: str, *numbers: int) -> Any:
    """Return a compiled program of intervals."""
    body, sizes = PROGRAMS[name]

    def trace() -> Program:
        return _traced(name, sizes(*numbers), lambda *given: body(given, *numbers))

    return _compiled(("time optimal", name, *numbers), trace)


@cache
def loop(name: str, m: int) -> Any:
    """Return a compiled and repeated step for m rows."""
    body, sizes = STEPS[name]

    def trace() -> Program:
        return _traced(name, [n or m for n in sizes], lambda *given: (body(*given),))

    return backends.loop(_compiled(("time optimal", name, m), trace))
