"""Time several functions in turn, so that all are affected by the same noise.

By default, the clock is the processor time of all threads of this process. On an idle computer and
for one thread, processor time equals wall time. On a busy computer, processor time excludes the
time spent waiting, which would mostly affect long runs, that is, the slower library. A library does
not gain an advantage by using more threads.
"""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Times:
    """Minimum and median time (s) of one run. Noise can only increase the minimum."""

    minimum: float
    median: float
    samples: int


@dataclass(frozen=True)
class Rounds:
    """Stopping criterion: the minimum times have not decreased in the last `quiet` rounds.

    A relative decrease of at most `step` is ignored. The number of rounds is between `least` and
    `most`. On a busy computer, more rounds are needed.
    """

    least: int
    most: int
    quiet: int = 8
    step: float = 0.01


def interleaved(
    runs: Sequence[Callable[[], object]],
    rounds: Rounds,
    *,
    repeats: int = 3,
    clock: Callable[[], int] = time.process_time_ns,
) -> list[Times]:
    """Return the times of all runs. In each round, each run is called and timed `repeats` times.

    These calls follow an untimed call, so that no run is slowed down by the cache contents that
    another run has left. `clock` returns a time in ns; use `time.perf_counter_ns` to compare
    numbers of threads.
    """
    taken: list[list[float]] = [[] for _ in runs]
    lowest = [float("inf")] * len(runs)
    fell = 0
    collecting = gc.isenabled()
    gc.disable()
    try:
        for number in range(rounds.most):
            for run, samples in zip(runs, taken, strict=True):
                samples.extend(_turn(run, repeats, clock))
            if any(min(s) < low * (1 - rounds.step) for s, low in zip(taken, lowest, strict=True)):
                lowest, fell = [min(s) for s in taken], number
            if number + 1 >= rounds.least and number - fell >= rounds.quiet:
                break
    finally:
        if collecting:
            gc.enable()
    return [Times(min(s), statistics.median(s), len(s)) for s in taken]


def _turn(run: Callable[[], object], repeats: int, clock: Callable[[], int]) -> list[float]:
    run()
    taken = []
    for _ in range(repeats):
        taken.append(seconds(run, clock))
    return taken


def seconds(run: Callable[[], object], clock: Callable[[], int] = time.process_time_ns) -> float:
    """Return the time (s) of one run, by default the processor time."""
    start = clock()
    run()
    return (clock() - start) * 1e-9
