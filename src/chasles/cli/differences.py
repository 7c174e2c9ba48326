"""Velocities and accelerations that a motion file does not give, by differences over time."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from chasles.errors import InputError
from chasles.formats.motion import Motion
from chasles.robot import Robot

REACH = 3
"""An instant's rates use positions at most this many instants away (a second rate, at an end)."""


def completed(file: str, robot: Robot, motion: Iterator[Motion]) -> Iterator[Motion]:
    """The same motion with rates; they do not depend on how it is cut, in REACH instants or more.

    The errors are of second order in the time step, which may vary smoothly; those of accelerations
    from positions are of first order at the first two instants and the last two. Along the
    configuration space where a joint has a quaternion.
    """
    before: list[Motion] = []
    here = next(motion)
    for after in itertools.chain(motion, [None]):
        next_ones = [] if after is None else [_cut(after, 0, REACH)]
        block = _joined([*before, here, *next_ones])
        skip = here.first - block.first
        inside = slice(skip, skip + len(here.q))
        qd, qdd = block.qd, block.qdd
        if qd is None:
            qd = _rates(_times(file, block), block.q, robot.difference)
        if qdd is None:
            qdd = _rates(_times(file, block), qd, lambda x, y: y - x)
        yield replace(here, qd=qd[inside], qdd=qdd[inside])
        if after is not None:
            last = _joined([*before, here])
            n = len(last.q)
            before, here = [_cut(last, n - REACH, n)], after


def _times(file: str, block: Motion) -> np.ndarray:
    if block.t is None:
        problem = "differences need times"
        raise InputError("E-CLI-009", problem, "add a column t, or give --step", file=file)
    if len(block.t) < 3:
        problem = f"{len(block.t)} instants"
        raise InputError("E-CLI-010", problem, "differences need three or more", file=file)
    return block.t


def _rates(
    t: np.ndarray, x: np.ndarray, difference: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """The derivative of the parabola through each instant and its neighbours."""
    h = np.diff(t)[:, None]
    d = difference(x[:-1], x[1:]) / h
    share = h[:-1] / (h[:-1] + h[1:])
    middle = (1.0 - share) * d[:-1] + share * d[1:]
    start = d[:1] + share[:1] * (d[:1] - d[1:2])
    end = d[-1:] + (1.0 - share[-1:]) * (d[-1:] - d[-2:-1])
    return np.concatenate([start, middle, end])


def _joined(parts: list[Motion]) -> Motion:
    """Consecutive motions as one."""

    def together(arrays: list[np.ndarray | None]) -> np.ndarray | None:
        given = [array for array in arrays if array is not None]
        return np.concatenate(given) if given else None

    return Motion(
        parts[0].first,
        together([part.t for part in parts]),
        np.concatenate([part.q for part in parts]),
        together([part.qd for part in parts]),
        together([part.qdd for part in parts]),
        parts[-1].end,
    )


def _cut(motion: Motion, start: int, stop: int) -> Motion:
    def some(array: np.ndarray | None) -> np.ndarray | None:
        return None if array is None else array[start:stop]

    q = motion.q[start:stop]
    t, qd, qdd = some(motion.t), some(motion.qd), some(motion.qdd)
    return Motion(motion.first + start, t, q, qd, qdd, motion.end)
