"""Reachability analysis: programs that find feasible speeds along a path divided into intervals.

Between grid points the acceleration u along the path is constant, so the squared speed x is linear
in the path parameter: over an interval of length D, the next value is y = x + 2 D u. A constraint
lo <= a u + b x + c <= hi becomes a row low + slope x <= y <= high + slope x. A backward pass finds
the interval of speeds at each grid point from which the end can be reached. A forward pass finds
the fastest motion within these intervals (Pham and Pham, IEEE Transactions on Robotics 34, 2018).

For a given x, each row restricts y to an interval, and all these intervals have a common point if
every two of them intersect. Pairs of rows from the same grid interval bound x independently of
later intervals. Newton's method finds these bounds for all grid intervals at once, because the gap
between rows is concave in x. Pairs of a row and the speed interval at the next grid point are
handled one grid point at a time.

Constraints are evaluated at three points in each grid interval: its start, middle and end. The rows
are formed from the Bernstein coefficients of the parabolas through these values. These coefficients
bound the parabolas, so a constraint also holds between grid points.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from math import perm
from operator import add
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
    select,
    sqrt,
)

FAR = 1e30
"""Finite number that replaces an infinite bound."""

PLACES = 3
"""Number of points in each grid interval at which limits are checked: start, middle and end."""

NEWTON, MOST_NEWTON, NEARLY = 2, 240, 1e-13
"""Parameters of Newton's method for the bounds on the squared speed.

Each call takes `NEWTON` steps, and the number of calls is at most `MOST_NEWTON`. The method has
converged when the relative change is at most `NEARLY`.
"""

CUBIC = 1.0 / 24.0
"""Error bound for parabolic interpolation, relative to the change in second differences.

For a cubic, the error of the parabola through the three points of an interval is at most 1/31 of
the change in the second difference from one interval to the next.
"""

CAUTION = 1.2
"""Safety factor for interpolation errors, by which limits are tightened.

The factor exceeds 1 because the errors change slightly with the speeds.
"""

SMALL = 1e-11
"""Smallest magnitude of a divisor. Smaller divisors are replaced by this value.

The divisors are the slopes of constraint rows, and the coefficients a of the constraints
lo <= a u + b x + c <= hi. The magnitude of a is taken relative to |b|.
"""

SLACK = 5e-7
"""Fraction of each limit reserved for rounding and interpolation errors."""

STEADY = 0.5
"""Ratio of the minimum to the maximum of q'^2 above which q' is treated as nearly constant.

In an interval of the path q(s) with a smaller ratio, the bound on the path speed is constant.
"""

RELAXED = 0.5
"""Fraction of `SLACK` by which the forward pass relaxes constraint rows.

The relaxation allows for rounding errors.
"""

Numbers = Sequence[Number]


def minimum(a: Number, b: Number) -> Number:
    """Return the smaller of two numbers, or b if either is NaN.

    For symbolic numbers, the compiled code is a single machine instruction.
    """
    return select(less(a, b), a, b)


def maximum(a: Number, b: Number) -> Number:
    """Return the larger of two numbers, or b if either is NaN.

    For symbolic numbers, the compiled code is a single machine instruction.
    """
    return select(less(b, a), a, b)


def _parabolas(given: Sequence[Numbers], accelerations: int, torques: int) -> list[list[Any]]:
    """Return a, b and c of each limited quantity a u + b x + c, at three points of an interval."""
    q1, q2, held, pushed, turned = (given[k : k + PLACES] for k in range(0, 5 * PLACES, PLACES))
    found: list[list[Any]] = [
        [(q1[p][k], q2[p][k], 0.0) for p in range(PLACES)] for k in range(accelerations)
    ]
    for k in range(torques):
        c = [place[k] for place in held]
        found.append([(pushed[p][k] - c[p], turned[p][k] - c[p], c[p]) for p in range(PLACES)])
    return found


def bernstein(values: Numbers) -> list[Number]:
    """Return the Bernstein coefficients of the parabola through values at start, middle, end."""
    first, middle, last = values
    return [first, 2.0 * middle - 0.5 * (first + last), last]


def _rows(given: Sequence[Numbers], accelerations: int, torques: int) -> list[list[Number]]:
    """Return the initial iterate, status and data of Newton's method for the squared-speed bounds.

    Iterate and status are described in `_newton_steps`. The data are the coefficients `high`,
    `low` and `slope` of all constraint rows. Constrained quantities must lie between -`hi` and
    `hi`. `top` is the middle Bernstein coefficient of the largest allowed x. The last input
    contains the bounds on x found so far.
    """
    hi, (top,), (d,), (bottom, most) = given[5 * PLACES :]
    high, low, slope = [], [], []
    for k, places in enumerate(_parabolas(given, accelerations, torques)):
        a = bernstein([x + y * (p * d) for p, (x, y, _) in enumerate(places)])
        b, c = (bernstein([place[i] for place in places]) for i in (1, 2))
        room = (1.0 - 2.0 * SLACK) * hi[k]
        for x, y, z in zip(a, b, c, strict=True):
            floor = SMALL * absolute(y) + 2e-16 * hi[k]
            by = 2.0 * d / select(less(absolute(x), floor), floor, x)
            one, two = (-room - z) * by, (room - z) * by
            high.append(maximum(one, two))
            low.append(minimum(one, two))
            slope.append(1.0 - y * by)
    high.append(2.0 * top)
    low.append(0.0)
    slope.append(-1.0 + 0.0 * d)
    rests = less(joined(maximum, low), joined(minimum, high))  # 1 if x = 0 is feasible.
    bounded = less(absolute(joined(add, [*high, *slope])), FAR * FAR)  # 0 if a row contains NaN.
    point = [most, most, -1.0 + 0.0 * d]
    return [point, [0.0 * d, 0.0 * d], [*high, *low, *slope, bottom, rests, bounded]]


def _newton_steps(given: Sequence[Numbers], m: int) -> list[list[Number]]:
    """Take Newton steps toward the ends of the feasible range of x; return iterate and status.

    The range contains all x with low_i + slope_i x <= high_j + slope_j x for all rows i and j. The
    iteration starts above the upper end (side -1), and then finds the lower end (side 1) unless
    x = 0 is feasible. If the range is empty, x diverges.

    The iterate contains x, the upper end and the side. The status contains a flag (1 if both
    ends have been found) and the number of calls.
    """
    (x, upper, side), (found, count), data = given
    high, low, slope, (bottom, rests, _) = _split(data, m)
    moved: Number = 0.0
    new = x
    for _ in range(NEWTON):
        before, new = new, _newton(new, side, high, low, slope)
        moved = less(NEARLY * absolute(new), absolute(new - before))
    again = select(less(count, MOST_NEWTON), moved, 0.0)
    first = less(side, 0.0)
    lower = select(first, 1.0 - rests, 0.0)  # the lower end has not been found yet
    ended = select(again, 0.0, 1.0 - lower)
    turned = select(again, 0.0, lower)
    point = [
        select(turned, bottom, new),
        select(first, new, upper),
        select(turned, 1.0, side),
    ]
    old = less(0.5, found)
    kept = [select(old, a, b) for a, b in zip(given[0], point, strict=True)]
    return [kept, [select(old, found, ended), count + 1.0]]


def _bounded(given: Sequence[Numbers], m: int) -> list[list[Number]]:
    """Return `high`, `low`, `slope` and 1 / `slope` of the constraints, and bounds on x.

    If a constraint contains NaN, the lower bound is `FAR`, so that no x is feasible.
    """
    (x, upper, side), _, data = given[-3:]
    high, low, slope, (bottom, _, bounded) = _split(data, m)
    inverse = [1.0 / select(less(absolute(s), SMALL), SMALL, s) for s in slope]
    least = select(less(side, 0.0), bottom, x)
    return [high, low, slope, inverse, [select(bounded, least, FAR), upper]]


def _split(data: Numbers, m: int) -> list[list[Number]]:
    """Split an array from `_rows` into its parts: `high`, `low`, `slope` and other entries."""
    whole = list(data)
    return [whole[:m], whole[m : 2 * m], whole[2 * m : 3 * m], whole[3 * m :]]


def _peaks(given: Sequence[Numbers], accelerations: int, torques: int) -> list[list[Number]]:
    """Return upper bounds and second differences of the quantities (torques, ...) with limits."""
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
    """Return the range of squared speeds from which the next grid point's range is reachable."""
    (least, most), (bottom, top) = state, alone
    tops, bottoms = [top], [bottom]
    for up, down, by in zip(high, low, inverse, strict=True):
        one, two = (most - down) * by, (least - up) * by
        tops.append(maximum(one, two))
        bottoms.append(minimum(one, two))
    return joined(maximum, bottoms), joined(minimum, tops)


def _forward(state: Numbers, high: Numbers, low: Numbers, slope: Numbers, ends: Numbers) -> Any:
    """Return the largest feasible squared speed at the next grid point."""
    (x,), (least, most), more = state, ends, RELAXED * SLACK
    found = [most]
    for up, down, by in zip(high, low, slope, strict=True):
        found.append((up + more * (up - down)) + by * x)
    return (maximum(joined(minimum, found), least),)


def joined(least: Callable[[Number, Number], Number], values: Numbers) -> Number:
    """Combine all values with the binary function `least`: minimum, maximum or addition.

    Values are combined in pairs, because this vectorizes well.
    """
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [*(least(a, b) for a, b in pairs), *values[len(values) & ~1 :]]
    return values[0]


def _newton(x: Number, side: Number, high: Numbers, low: Numbers, slope: Numbers) -> Number:
    """Take a Newton step from x to the intersection of the two bounds that are tightest at x.

    An upper and a lower bound intersect; each belongs to one constraint row. The intersection is
    computed only from the coefficients of these rows, so it is accurate even if x is far away.
    """
    up, down, up_slope, down_slope = high[0], low[0], slope[0], slope[0]
    top, bottom = up + up_slope * x, down + down_slope * x
    for one, two, by in zip(high[1:], low[1:], slope[1:], strict=True):
        rise = by * x
        lower, higher = less(one + rise, top), less(bottom, two + rise)
        up, up_slope = select(lower, one, up), select(lower, by, up_slope)
        down, down_slope = select(higher, two, down), select(higher, by, down_slope)
        top, bottom = minimum(one + rise, top), maximum(two + rise, bottom)
    rate = up_slope - down_slope
    helps = less(0.0, rate * side)
    nearer = (down - up) / select(helps, rate, 1.0)
    return select(less(top, bottom), select(helps, nearer, side * FAR), x)


STEPS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "backward": (_backward, (2, 0, 0, 0, 2)),
    "forward": (_forward, (1, 0, 0, 0, 2)),
}
"""Functions that process one interval in each pass, with the lengths of their inputs.

A length of 0 is replaced by the number of constraint rows.
"""


def _path(given: Sequence[Numbers], terms: int, n: int) -> list[list[Number]]:
    """Evaluate n polynomials and their first two derivatives at three points in an interval.

    A constant vector, `anchor`, is added to the values of the polynomials. The interval must not
    contain a breakpoint of the path.
    """
    *rows, anchor, (start,), (d,) = given
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
                values.append(total + (anchor[j] if not order else 0.0 * t))
            found.append(values)
    return found


def _tops(given: Sequence[Numbers], n: int) -> list[list[Number]]:
    """Return Bernstein coefficients of the largest squared speed x within each velocity limit.

    The largest x is (limit / q')^2. If q' varies too much in the interval (see `STEADY`), all
    coefficients are -`FAR`. Also return the second difference of (limit / q')^2, a bound on x that
    holds in the whole interval, and the largest |q'| at each end of the interval.
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
    ends = [joined(maximum, [absolute(rate) for rate in rates[p]]) for p in (0, -1)]
    return [*coefficients, second, safe, ends]


def _deviation(before: Number, second: Number, after: Number) -> Number:
    """Estimate the largest deviation of a curve from the parabola through three of its points.

    `second` is the second difference in an interval, and `before` and `after` are those in the
    neighboring intervals (infinite if there is no neighbor). The estimate is proportional to the
    change in second differences on the side where it is smaller, because the path may have a
    breakpoint on the other side.
    """
    change = minimum(absolute(second - before), absolute(second - after))
    return select(less(change, FAR), CUBIC * change, absolute(second))


def _lowest(given: Sequence[Numbers], n: int) -> list[list[Number]]:
    """Return the smallest Bernstein coefficients of the speed bounds from all velocity limits.

    Interpolation errors are subtracted first. No coefficient is reduced below `safe`, a bound that
    holds in the whole interval.
    """
    *coefficients, before, second, after, safe = given
    errors = [_deviation(*each) for each in zip(before, second, after, strict=True)]
    found = []
    for place in coefficients:
        rows = zip(place, errors, safe, strict=True)
        found.append(joined(minimum, [maximum(x - e, least) for x, e, least in rows]))
    return [[each] for each in found]


def _common(given: Sequence[Numbers]) -> list[list[Number]]:
    """Return bounds on the squared path speed in an interval and at its start, less `SLACK`.

    Bounds are polynomials with Bernstein coefficients. `given` contains the first and middle
    coefficients of the interval, and the last coefficient of the previous interval. The results are
    the middle coefficient, and the range from zero to the smaller of the two bounds at the
    start.
    """
    (first,), (middle,), (before,) = given
    rest = 1.0 - SLACK
    return [[rest * middle], [0.0 * first, rest * minimum(first, before)]]


def _fits(given: Sequence[Numbers]) -> list[list[Number]]:
    """Return 1 where no speed is feasible, or where a required range of speeds is not reachable."""
    (least, most), (low, high) = given
    fits = select(less(most, least), 0.0, select(less(low, least), 0.0, 1.0))
    return [[1.0 - select(less(most, high), 0.0, fits)]]


def _ends(given: Sequence[Numbers]) -> Sequence[Numbers]:
    """Return the initial states of the backward and forward passes.

    The backward pass starts with the range of squared speeds at the end of the path, and the
    forward pass starts with the squared speed at the start of the path.
    """
    return given


def _timing(given: Sequence[Numbers]) -> list[list[Number]]:
    """Return an interval's duration, half of its path acceleration, and its initial path speed."""
    (x,), (y,), (d,) = given
    begin, end = (sqrt(maximum(each, 0.0)) for each in (x, y))
    return [[2.0 * d / (begin + end)], [0.25 * (y - x) / d], [begin]]


def _exceeded(given: Sequence[Numbers], r: int) -> list[list[Number]]:
    """Return the margins by which to tighten limits, and a flag: 1 if any limit is exceeded."""
    before, second, after, peak, limits = given
    margins, over = [], []
    for *change, top, limit in zip(before, second, after, peak, limits, strict=True):
        error = _deviation(*change)
        over.append(less(limit, top + error))
        margins.append(select(over[-1], CAUTION * error, 0.0))
    return [margins, [joined(maximum, [0.0, *over])]]


def _narrowed(given: Sequence[Numbers], r: int) -> list[list[Number]]:
    """Return limits tightened by the largest margin of an interval and its two neighbors."""
    *margins, now, limits = given
    found = []
    for *some, old, limit in zip(*margins, now, limits, strict=True):
        found.append(minimum(old, limit - joined(maximum, some)))
    return [found]


def _constraints(accelerations: int, torques: int) -> list[int]:
    """Return the sizes of the input arrays, for the given numbers of limited quantities."""
    return [accelerations] * (2 * PLACES) + [torques] * (3 * PLACES)


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., list[int]]]] = {
    "path": (_path, lambda terms, n: [n] * (terms + 1) + [1, 1]),
    "tops": (_tops, lambda n: [n] * (PLACES + 1)),
    "lowest": (_lowest, lambda n: [n] * (PLACES + 4)),
    "common": (_common, lambda: [1, 1, 1]),
    "ends": (_ends, lambda: [2, 1]),
    "fits": (_fits, lambda: [2, 2]),
    "peaks": (_peaks, lambda a, t: [*_constraints(a, t), 1, 1, 1]),
    "timing": (_timing, lambda: [1, 1, 1]),
    "exceeded": (_exceeded, lambda r: [r] * 5),
    "narrowed": (_narrowed, lambda r: [r] * 5),
}
"""Programs that process one grid interval of the path, by name.

Each entry is a pair of functions: the first computes the outputs of the program, and the second
returns the sizes of its inputs.
"""


def _traced(
    name: str, inputs: Sequence[Variable], body: Callable[..., Any], names: Sequence[str] = ()
) -> Program:
    arena = Arena(RULES)
    found = body(*([arena.input(v.name, k) for k in range(v.size)] for v in inputs))
    named = names or [f"y{i}" for i in range(len(found))]
    outputs = [
        (Variable(each, (len(values),)), list(values))
        for each, values in zip(named, found, strict=True)
    ]
    return Program.from_outputs(name, inputs, outputs)


def _variables(sizes: Sequence[int]) -> list[Variable]:
    return [Variable(f"x{i}", (n,)) for i, n in enumerate(sizes)]


def _compiled(recipe: tuple[Any, ...], trace: Callable[[], Program]) -> Any:
    return backends.known(recipe, trace) or backends.compile(trace(), recipe=recipe)


@cache
def kernel(name: str, *numbers: int) -> Any:
    """Return the compiled program `name` of `PROGRAMS`, for given numbers of constraints."""
    body, sizes = PROGRAMS[name]

    def trace() -> Program:
        return _traced(name, _variables(sizes(*numbers)), lambda *given: body(given, *numbers))

    return _compiled(("time optimal", name, *numbers), trace)


@cache
def rows(accelerations: int, torques: int) -> Any:
    """Return a compiled program that computes an interval's constraints and feasible speeds."""
    m = PLACES * (accelerations + torques) + 1
    sizes = [*_constraints(accelerations, torques), accelerations + torques, 1, 1, 2]
    carried = [
        Variable(*each) for each in (("point", (3,)), ("memory", (2,)), ("data", (3 * m + 3,)))
    ]
    names = [each.name for each in carried]
    given, tiled = _variables(sizes), frozenset(names)

    def begin() -> Program:
        body = lambda *given: _rows(given, accelerations, torques)  # noqa: E731
        return replace(_traced("begin", given, body, names), tiled=tiled)

    def refine() -> Program:
        step = _traced("refine", carried, lambda *given: _newton_steps(given, m), names[:2])
        return replace(step, tiled=tiled)

    def end() -> Program:
        last = _traced("end", [*given, *carried], lambda *given: _bounded(given, m))
        return replace(last, tiled=tiled)

    made = [
        _compiled(("time optimal rows", each.__name__, accelerations, torques), each)
        for each in (begin, refine, end)
    ]
    return backends.iterated(made)


@cache
def loop(name: str, m: int) -> Any:
    """Return the compiled backward or forward pass, for m constraint rows per interval."""
    body, sizes = STEPS[name]

    def trace() -> Program:
        given = _variables([n or m for n in sizes])
        return _traced(name, given, lambda *given: (body(*given),))

    return backends.loop(_compiled(("time optimal", name, m), trace))
