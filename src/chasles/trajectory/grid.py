"""Preallocated arrays and compiled programs for the grid intervals along a path.

A call to `time_optimal` fills the arrays of a grid and runs its programs. The next call with the
same numbers of intervals and limits reuses the grid, and therefore spends most of its time in
compiled code.
"""

from typing import Any, NamedTuple

import numpy as np

from chasles import backends
from chasles.trajectory.reachable import FAR, PLACES, kernel, loop, rows

MOST_ROUNDS = 12
"""Maximum number of iterations that tighten limits to allow for interpolation errors."""

KEPT, LONGEST = 4, 4096
"""Limits of the grid cache.

`KEPT` is the number of cached grids. Grids with more than `LONGEST` intervals are not cached.
"""


class Size(NamedTuple):
    """Sizes of a grid: numbers of intervals, coordinates and limited quantities.

    `accelerations` and `torques` are the numbers of limited accelerations and torques. `terms` is
    the number of polynomial coefficients per interval, or 0 if the path is not polynomial.
    """

    intervals: int
    positions: int
    velocities: int
    accelerations: int
    torques: int
    terms: int


class Grid:
    """Constraints at three points in each interval, and the largest speeds that satisfy them.

    A constraint is lo <= a u + b x + c <= hi for the acceleration u along the path and the squared
    speed x. For N intervals and r limited accelerations and torques, the fields are:

    - length (N, 1): lengths of the intervals.
    - q (PLACES, N, nq), rates (2, PLACES, N, nv): q, q' and q'' of the path.
    - bent: q' and q'' of the coordinates whose accelerations q' u + q'' x are limited.
    - torques: values of c, c + a and c + b for the limited torques.
    - loads: kernel that computes these torques (`functions.loads`), or None.
    - velocity (1, nv), limits (1, r): symmetric limits hi = -lo.
    - end (1,): the largest squared speed that the velocity limits allow at the end of the path.

    Results of `fastest`:

    - x (N + 1,): the largest squared speeds.
    - reach (N + 1, 2): bounds on the squared speeds from which the end can be reached.
    - dt (N, 1): durations of the intervals.
    - motion (2, N, 1): half of u, and the speed at the start of each interval.
    """

    def __init__(self, size: Size, loads: Any = None) -> None:
        n, positions, velocities, accelerations, torques, _ = size
        r = accelerations + torques
        self.size, self.loads, self.length = size, loads, np.empty((n, 1))
        self.q = np.empty((PLACES, n, positions))
        self.rates = np.empty((2, PLACES, n, velocities))
        whole = accelerations == velocities
        self.bent = self.rates if whole else np.empty((2, PLACES, n, accelerations))
        self.torques = np.empty((3, PLACES, n, torques))
        self.velocity, self.limits = np.empty((1, velocities)), np.empty((1, r))
        self.pace = np.empty((n, 2))
        self.x, self.reach = np.empty(n + 1), np.empty((n + 1, 2))
        self._ends = np.empty((n + 1, 2))
        self._ends[:] = np.inf, -np.inf
        self._middle, self._alone = np.empty((n, 1)), np.empty((n, 2))
        self.dt, self.motion = np.empty((n, 1)), np.empty((2, n, 1))
        self._bound = backends.rounds([*self._path_parts(), *self._top_parts()])
        self._rounds = backends.rounds(self._round_parts(), MOST_ROUNDS)

    def _path_parts(self) -> list[Any]:
        """Return programs for a polynomial path and, if `loads` is set, for joint torques."""
        n, _, velocities, *_, terms = self.size
        self.pieces, self.start = np.empty((terms, n, velocities)), np.empty((n, 1))
        self.anchor, parts = np.empty((1, velocities)), []
        if terms:
            anchor = np.broadcast_to(self.anchor, (n, velocities))
            given = [*self.pieces, anchor, self.start, self.length]
            found = [*self.q, *self.rates[0], *self.rates[1]]
            parts.append(kernel("path", terms, velocities).prepared(given, found))
        if self.loads is not None:
            given, found = [*map(_joined, (self.q, *self.rates))], [*map(_joined, self.torques)]
            parts.append(self.loads.prepared(given, found))
        return parts

    def _top_parts(self) -> list[Any]:
        """Return programs that compute the speeds allowed by the velocity limits."""
        n, _, velocities, *_ = self.size
        *coefficients, safe = (np.empty((n, velocities)) for _ in range(PLACES + 1))
        bend, last = _padded(n, velocities, np.inf), _padded(n, 1, FAR)
        self.end = last[-2]
        top = [np.empty((n, 1)), self._middle, last[1:-1]]
        every = np.broadcast_to(self.velocity, (n, velocities))
        found = [*coefficients, bend[1:-1], safe, self.pace]
        lowest = [*coefficients, *_neighbors(bend), safe]
        common = [top[0], self._middle, last[:-2]]
        return [
            kernel("tops", velocities).prepared([*self.rates[0], every], found),
            kernel("lowest", velocities).prepared(lowest, top),
            kernel("common").prepared(common, [self._middle, self._alone]),
        ]

    def _round_parts(self) -> list[Any]:
        """Return the programs of an iteration, which compute speeds and tighten the limits."""
        n, _, _, *key, _ = self.size
        r = sum(key)
        self._now, every = np.empty((n, r)), np.broadcast_to(self.limits, (n, r))
        places = [place for array in (*self.bent, *self.torques) for place in array]
        peak, over, misfit = np.empty((n, r)), np.empty((n, 1)), np.empty((n + 1, 1))
        second, margin = _padded(n, r, np.inf), _padded(n, r, 0.0)
        x = [self.x[:-1, None], self.x[1:, None]]
        exceeded = [*_neighbors(second), peak, every]
        narrowed = [*_neighbors(margin), self._now, every]
        start, backward, forward, made = self._passes()
        return [
            rows(*key).prepared([*places, self._now, self._middle, self.length, self._alone], made),
            start,
            backward,
            kernel("fits").prepared([self.reach, self._ends], [misfit]),
            ("stop", misfit),
            forward,
            kernel("timing").prepared([*x, self.length], [self.dt, *self.motion]),
            kernel("peaks", *key).prepared([*places, *x, self.length], [peak, second[1:-1]]),
            kernel("exceeded", r).prepared(exceeded, [margin[1:-1], over]),
            ("done", over),
            kernel("narrowed", r).prepared(narrowed, [self._now]),
        ]

    def _passes(self) -> tuple[Any, Any, Any, list[np.ndarray]]:
        """Return the prepared start, backward and forward programs, and the arrays they read."""
        n, _, _, *key, _ = self.size
        m = PLACES * sum(key) + 1
        high, low, slope, inverse = (np.empty((n, m)) for _ in range(4))
        states = [np.empty((1, 2)), np.empty((1, 1))]
        start = kernel("ends").prepared([self.reach[-1:], self.x[:1, None]], states)
        controls = [each[None, ::-1] for each in (high, low, inverse, self._alone)]
        records = [self.reach[None, -2::-1]]
        backward = loop("backward", m).prepared(states[:1], controls, records, n)
        controls = [each[None] for each in (high, low, slope, self.reach[1:])]
        records = [self.x[None, 1:, None]]
        forward = loop("forward", m).prepared(states[1:], controls, records, n)
        return start, backward, forward, [high, low, slope, inverse, self._alone]

    def bound(self, velocity: np.ndarray, limits: np.ndarray) -> None:
        """Set the velocity limits (nv,) and the other limits (r,), and compute the speed bounds.

        If the path is polynomial, its points are computed first. If the grid has a torque kernel
        (`loads`), the torques along the path are also computed.
        """
        self.velocity[...], self.limits[...], self._now[...] = velocity, limits, limits
        self._bound()

    def fastest(self, first: float, last: float) -> int | None:
        """Compute the largest feasible squared speeds along the path, and store them in `x`.

        `first` and `last` are the squared speeds at the ends. Limits are tightened until the
        original limits also hold between the three points of each interval. Return None on
        success, or the index of the last interval in which the limits cannot be satisfied.
        """
        self.reach[-1], self.x[0] = last, first
        self._ends[0] = first, first / (1.0 + 1e-9)
        if self._rounds() != "stop":
            return None
        least, most = self.reach.T
        empty = np.flatnonzero(~(least <= most))
        return int(empty[-1]) if len(empty) else 0


def _padded(n: int, size: int, value: float) -> np.ndarray:
    """Return an array filled with `value`: one row per interval, and one extra row at each end."""
    return np.full((n + 2, size), value)


def _neighbors(padded: np.ndarray) -> list[np.ndarray]:
    """Return views of a padded array: the rows of the previous, current and next intervals."""
    return [padded[:-2], padded[1:-1], padded[2:]]


def _joined(places: np.ndarray) -> np.ndarray:
    """Merge the first two axes (points within an interval, intervals) of an array."""
    return places.reshape(-1, places.shape[-1])


_GRIDS: dict[tuple[Size, Any], Grid] = {}


def taken(size: Size, loads: Any) -> Grid:
    """Return a matching grid from the cache, or a new grid.

    A cached grid is removed from the cache until it is passed to `keep`.
    """
    return _GRIDS.pop((size, loads), None) or Grid(size, loads)


def keep(grid: Grid) -> None:
    """Cache a grid for further calls, unless it has more than `LONGEST` intervals."""
    if grid.size.intervals <= LONGEST:
        _GRIDS[grid.size, grid.loads] = grid
        for old in list(_GRIDS)[:-KEPT]:
            _GRIDS.pop(old, None)
