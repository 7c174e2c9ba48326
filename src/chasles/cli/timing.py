"""Interleaved timing of several functions, so that noise affects all of them equally."""

import gc
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any, NamedTuple

CALLS = 256
"""Number of states in a timed loop of single calls."""


class Way(NamedTuple):
    """A function to time, with the number of states per call and the clock."""

    states: int
    run: Callable[[], object]
    clock: Callable[[], float]


def loop(call: Callable[..., Any], rows: Sequence[tuple[Any, ...]]) -> None:
    """Call a function for every row without the overhead of a Python loop."""
    deque(starmap(call, rows), maxlen=0)


def interleaved(ways: Sequence[Way], seconds: float) -> list[float]:
    """Return the shortest time (s) per state of each function, over at least three rounds."""
    least = [float("inf")] * len(ways)
    collecting = gc.isenabled()
    gc.disable()
    try:
        end, turns = time.perf_counter() + seconds, 0
        while turns < 3 or time.perf_counter() < end:
            for k, way in enumerate(ways):
                way.run()  # warm the caches
                begin = way.clock()
                way.run()
                least[k] = min(least[k], (way.clock() - begin) / way.states)
            turns += 1
    finally:
        if collecting:
            gc.enable()
    return least
