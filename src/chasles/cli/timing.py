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
    """Function to time, number of states per call of the function, and clock to use."""

    states: int
    run: Callable[[], object]
    clock: Callable[[], float]


def loop(call: Callable[..., Any], rows: Sequence[tuple[Any, ...]]) -> None:
    """Call a function with every row of arguments, without the overhead of a Python loop."""
    deque(starmap(call, rows), maxlen=0)


def interleaved(ways: Sequence[Way], seconds: float) -> list[float]:
    """Time each function in at least three rounds; return its shortest time (s) per state."""
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
