"""Arrays of grid intervals along a path, and their programs, prepared once.

A call of `time_optimal` fills the arrays of a grid and runs its programs. The next call with the
same numbers of intervals and limits reuses them, so that it costs little more than the machine
code.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from chasles.trajectory.reachable import NEWTON, PLACES, SLACK, kernel, loop

MOST_ROUNDS = 60
"""Largest number of Newton steps."""

CUBIC = 1.0 / 24.0
"""Factor of the change of second differences that bounds the error of parabolas. For a cubic, a
parabola through three places of an interval differs by at most 1/31 of the change of its second
difference between intervals."""

KEPT, LONGEST = 4, 4096
"""Number of cached grids, and the largest number of intervals of a cached grid."""


class Size(NamedTuple):
    """Sizes of a grid: intervals, velocities, limited accelerations and torques, and terms.

    terms: number of terms of a path that is a polynomial in each interval, 0 for other paths.
    """

    intervals: int
    velocities: int
    accelerations: int
    torques: int
    terms: int


class Grid:
    """Constraints of intervals at their places, and the largest speeds through them.

    A constraint is lo <= a u + b x + c <= hi for the acceleration u along the path and the squared
    speed x. length (N, 1): lengths of the intervals. rates: q, q' and q'' of the path (PLACES, N,
    n). bent: q' and q'' of coordinates whose accelerations q' u + q'' x are limited. torques: c, c
    + a and c + b of limited torques. limits (N, r): hi = -lo.
    """

    def __init__(self, size: Size) -> None:
        n, velocities, accelerations, torques, _ = size
        r = accelerations + torques
        self.size, self.length = size, np.empty((n, 1))
        self.rates = np.empty((3, PLACES, n, velocities))
        whole = accelerations == velocities
        self.bent = self.rates[1:] if whole else np.empty((2, PLACES, n, accelerations))
        self.torques = np.empty((3, PLACES, n, torques))
        self.still = np.zeros((PLACES, n, velocities))
        self.limits, self.top = np.empty((n, r)), np.empty((PLACES, n, 1))
        self.x, self.reach = np.empty(n + 1), np.empty((n + 1, 2))
        self.peak, self.second = np.empty((n, r)), np.empty((n, r))
        self._prepare_path()
        self._prepare_tops()
        self._prepare_steps()

    def _prepare_path(self) -> None:
        n, velocities, *_, terms = self.size
        self.pieces, self.start = np.empty((terms, n, velocities)), np.empty((n, 1))
        if terms:
            given = [*self.pieces, self.start, self.length]
            found = [place for rate in self.rates for place in rate]
            self.follow = kernel("path", terms, velocities).prepared(given, found)

    def _prepare_tops(self) -> None:
        n, velocities, *_ = self.size
        self.velocity = np.empty((1, velocities))
        every = np.broadcast_to(self.velocity, (n, velocities))
        *coefficients, self._bend, safe = (np.empty((n, velocities)) for _ in range(PLACES + 2))
        self._error = np.empty((n, velocities))
        found = [*coefficients, self._bend, safe]
        self._squares = kernel("tops", velocities).prepared([*self.rates[1], every], found)
        given = [*coefficients, self._error, safe]
        self._lowest = kernel("lowest", velocities).prepared(given, list(self.top))

    def _prepare_steps(self) -> None:
        n, _, *key, _ = self.size
        m = PLACES * sum(key) + 1
        places = [place for array in (*self.bent, *self.torques) for place in array]
        self._room, self._rows = np.empty((n, 1)), [np.empty((n, m)) for _ in range(4)]
        high, low, slope, inverse = self._rows
        given = [*places, self.limits, self.top[1], self.length]
        self._make_rows = kernel("rows", *key).prepared(given, [*self._rows, self._room])
        given = [*places, self.x[:-1, None], self.x[1:, None], self.length]
        self.measure = kernel("peaks", *key).prepared(given, [self.peak, self.second])
        self._alone, self._some = np.empty((n, 2)), [np.empty((n, m)) for _ in range(3)]
        self._end, self._moved, self._side = np.empty((n, 1)), np.empty((n, 1)), np.empty((1, 1))
        given = [self._end, np.broadcast_to(self._side, (n, 1))]
        found = [self._end, self._moved]
        self._step = kernel("alone", m, 1).prepared([*given, high, low, slope], found)
        self._steps = kernel("alone", m, NEWTON).prepared([*given, *self._some], found)
        self._last, self._first = np.empty((1, 2)), np.empty((1, 1))
        controls = [each[None, ::-1] for each in (high, low, inverse, self._alone)]
        records = [self.reach[None, -2::-1]]
        self._backward = loop("backward", m).prepared([self._last], controls, records, n)
        controls = [each[None] for each in (high, low, slope, self.reach[1:])]
        records = [self.x[None, 1:, None]]
        self._forward = loop("forward", m).prepared([self._first], controls, records, n)

    def bound(self, limits: np.ndarray) -> None:
        """Bound the speeds by the limits of velocities (n,), and set the other limits (r,)."""
        self.limits[...] = limits
        self._squares()
        self._error[...] = errors(self._bend)
        self._lowest()
        top = self.top[..., 0]
        np.minimum(top[0, 1:], top[2, :-1], out=top[0, 1:])  # at a common grid point
        top *= 1.0 - SLACK
        self._alone[:, 0], self._alone[:, 1] = 0.0, top[0]

    def fastest(self, first: float, last: float) -> int | None:
        """Find the largest squared speeds x (N + 1,), from `first` to `last` at its ends.

        Also find the bounds `reach` (N + 1, 2) of speeds from which the end can be reached. Return
        None, or the last infeasible interval. Limits may only have become narrower since `bound`,
        so that earlier bounds of x by rows of one interval still hold.
        """
        self._make_rows()
        self._bounds_alone()
        self._last[...] = last
        self._backward()
        self.reach[-1] = last
        least, most = self.reach.T
        fits = least <= most
        if not fits.all() or not least[0] <= first <= most[0] * (1.0 + 1e-9):
            empty = np.flatnonzero(~fits)
            return int(empty[-1]) if len(empty) else 0
        self.x[0] = self._first[0, 0] = first
        self._forward()
        return None

    def _bounds_alone(self) -> None:
        """Bound x by rows of the same grid interval."""
        rests = bool((self._room >= 0.0).all())  # everywhere at x = 0
        for k, side in ((1, -1.0),) if rests else ((0, 1.0), (1, -1.0)):
            bounds, self._side[...] = self._alone[:, k], side
            self._end[:, 0] = bounds
            self._step()  # one step shows that most bounds stay
            bounds[...] = self._end[:, 0]
            self._go_on(bounds, np.flatnonzero(self._moved))

    def _go_on(self, bounds: np.ndarray, here: np.ndarray) -> None:
        """Repeat Newton steps for some intervals until nothing changes."""
        for _ in range(MOST_ROUNDS):
            count = len(here)
            if not count:
                return
            for some, row in zip(self._some, self._rows, strict=False):
                np.take(row, here, axis=0, out=some[:count], mode="clip")
            self._end[:count, 0] = bounds[here]
            self._steps(count)
            bounds[here] = self._end[:count, 0]
            here = here[self._moved[:count, 0] != 0.0]


def errors(second: np.ndarray) -> np.ndarray:
    """Return the largest deviation of curves from parabolas with these second differences (N, r).

    The smaller change to the two neighbors counts, because at a break of the path the other is not
    that of a smooth curve.
    """
    if len(second) == 1:
        return np.abs(second)
    change = np.subtract(second[1:], second[:-1])
    np.abs(change, out=change)
    change *= CUBIC
    found = np.empty_like(second)
    found[0], found[-1] = change[0], change[-1]
    np.minimum(change[:-1], change[1:], out=found[1:-1])
    return found


_GRIDS: dict[Size, Grid] = {}


@contextmanager
def taken(size: Size) -> Iterator[Grid]:
    """Yield a grid for exclusive use, cached for further calls unless it is long."""
    found = _GRIDS.pop(size, None) or Grid(size)
    try:
        yield found
    finally:
        if size.intervals <= LONGEST:
            _GRIDS[size] = found
            for old in list(_GRIDS)[:-KEPT]:
                _GRIDS.pop(old, None)
