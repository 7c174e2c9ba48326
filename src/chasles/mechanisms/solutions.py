"""Results of inverse kinematics, and configurations that differ by full turns."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.mechanisms.mechanism import Mechanism
from chasles.mechanisms.postures import TURN, Bounds, angles

FULL = 6
"""Number of degrees of freedom of a full pose (position and orientation)."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Configurations found by inverse kinematics, with the same leading dimensions as the targets.

    The truth value of a solution is True if every problem is solved; with `solutions="all"`, if at
    least one configuration was found for each problem.

    Attributes
    ----------
    q : (..., nq)
        Configuration within the limits. If a problem is not solved, this is the configuration with
        the smallest error found. With `solutions="all"`, the shape is (..., count, nq), and unused
        rows are NaN.
    solved : (...)
        True where every error is within its tolerance and all loops are closed.
    residual : (..., 2)
        Largest angle error (rad) and largest position error (m) of the targets at q.
    iterations : (...)
        Total number of steps over all attempts.
    limits : (..., nq)
        1 where a coordinate is at its upper limit, -1 at its lower limit, else 0.
    complete : (...)
        True where q contains all existing configurations, up to full turns; requires
        `solutions="all"`, an arm with closed-form inverse kinematics, and at most `count`
        configurations.
    """

    q: np.ndarray
    solved: np.ndarray
    residual: np.ndarray
    iterations: np.ndarray
    limits: np.ndarray
    complete: np.ndarray | bool = False

    def __bool__(self) -> bool:
        solved = _plain(self.solved)
        several = solved.ndim > _plain(self.iterations).ndim
        return bool(np.all(np.any(solved, axis=-1) if several else solved))

    def __repr__(self) -> str:
        q, solved, residual = map(_plain, (self.q, self.solved, self.residual))
        count = f"{np.count_nonzero(solved)} of {solved.size} solved"
        answer = count if solved.ndim else "solved" if solved else "not solved"
        rows = np.reshape(residual, (-1, 2))
        angle, distance = np.max(rows[np.isfinite(rows).all(axis=1)], axis=0, initial=0.0)
        values = f" = {np.array2string(q, precision=4)}" if q.ndim == 1 else ""
        most = f"residual at most {angle:.2g} rad, {distance:.2g} m"
        return f"<Solution: {answer}; {most}; q {q.shape}{values}{self.hint}>"

    @property
    def hint(self) -> str:
        """Return a hint if an arm with fewer than six joints misses a pose; otherwise, ""."""
        few, angle = self.q.shape[-1] < FULL, np.max(_plain(self.residual)[..., 0], initial=0.0)
        if not few or np.all(_plain(self.solved)) or not 0.0 < angle < np.inf:
            return ""
        return (
            f"; a pose has {FULL} degrees of freedom, the robot {self.q.shape[-1]}: "
            "constrain less, for example with Position"
        )


def _plain(array: Any) -> np.ndarray:
    """Convert an array, such as a PyTorch tensor or a CuPy array, to a NumPy array."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
    return np.asarray(array.get() if hasattr(array, "get") else array)


def sides(q: np.ndarray, bounds: Bounds) -> np.ndarray:
    """Return 1 where a coordinate is at its upper limit, -1 at its lower limit, else 0."""
    at = (q >= bounds.upper).view(np.int8)
    at -= (q <= bounds.lower).view(np.int8)
    return at


def wrapped(mechanism: Mechanism, bounds: Bounds, found: Solution) -> Solution:
    """Add configurations in which revolute joints with limits are rotated by full turns.

    The added configurations are stored in unused rows. If more rows are needed than are available,
    `complete` is False.
    """
    count = found.q.shape[-2]
    turning = [k for k in angles(mechanism) if math.isfinite(bounds.upper[k] - bounds.lower[k])]
    q, residual = (a.reshape(-1, count, a.shape[-1]).copy() for a in (found.q, found.residual))
    solved = found.solved.reshape(-1, count).copy()
    complete = np.array(found.complete).reshape(-1)
    for each in range(len(q)):
        known = np.flatnonzero(solved[each])
        turned = ((at, other) for at in known for other in _turned(q[each, at], turning, bounds))
        for to, (at, other) in zip(np.flatnonzero(~solved[each]), turned, strict=False):
            q[each, to], residual[each, to], solved[each, to] = other, residual[each, at], True
        complete[each] &= next(turned, None) is None
    return Solution(
        q.reshape(found.q.shape),
        solved.reshape(found.solved.shape),
        residual.reshape(found.residual.shape),
        found.iterations,
        sides(q, bounds).reshape(found.q.shape),
        complete.reshape(np.shape(found.complete)),
    )


def _turned(q: np.ndarray, turning: list[int], bounds: Bounds) -> Iterator[np.ndarray]:
    """Yield copies of q with full turns added to angles, within limits, fewest turns first."""
    below, above = (bounds.lower - q) / TURN, (bounds.upper - q) / TURN
    ranges = [(min(math.ceil(below[k]), 0), max(math.floor(above[k]), 0)) for k in turning]
    for total in range(1, sum(max(-low, high) for low, high in ranges) + 1):
        for turns in _sums(ranges, total):
            other = q.copy()
            other[turning] += TURN * np.array(turns)
            yield np.clip(other, bounds.lower, bounds.upper)


def _sums(ranges: Sequence[tuple[int, int]], total: int) -> Iterator[tuple[int, ...]]:
    """Yield all tuples of integers whose absolute values add up to `total`.

    `ranges[k]` contains the lower and upper bound of entry k.
    """
    if not ranges:
        if not total:
            yield ()
        return
    (low, high), *rest = ranges
    room = sum(max(-a, b) for a, b in rest)
    for size in range(max(total - room, 0), total + 1):
        for turns in (-size, size)[not size :]:
            if low <= turns <= high:
                yield from ((turns, *others) for others in _sums(rest, total - size))
