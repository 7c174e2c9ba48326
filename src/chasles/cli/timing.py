"""Interleaved timing of runs, so that all are subject to the same noise."""

import gc
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any, NamedTuple

CALLS = 256
"""States in a loop of single calls."""


class Way(NamedTuple):
    """Something to time: how many states a run computes, the run, and the clock for it."""

    states: int
    run: Callable[[], object]
    clock: Callable[[], float]


def loop(call: Callable[..., Any], rows: Sequence[tuple[Any, ...]]) -> None:
    """Call for every row and keep nothing: the loop itself runs in C."""
    deque(starmap(call, rows), maxlen=0)


def interleaved(ways: Sequence[Way], seconds: float) -> list[float]:
    """The least seconds of each way for a state: in turns for about so long, at least three."""
    least = [float("inf")] * len(ways)
    collecting = gc.isenabled()
    gc.disable()
    try:
        end, turns = time.perf_counter() + seconds, 0
        while turns < 3 or time.perf_counter() < end:
            for k, way in enumerate(ways):
                way.run()  # so that none pays for what another left in the caches
                begin = way.clock()
                way.run()
                least[k] = min(least[k], (way.clock() - begin) / way.states)
            turns += 1
    finally:
        if collecting:
            gc.enable()
    return least
