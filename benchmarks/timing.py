"""Times of several routes, taken in turns so that all of them meet the same noise.

The clock is the processor time of all threads of this process. On an idle computer that is the time
on the wall, for one thread; on a busy one it leaves out the waiting, which would fall on long runs
(the slower library) and spare short ones. A library that used more threads would gain nothing.
"""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Times:
    """Seconds of one run: the least, which noise can only raise, and the median of all."""

    minimum: float
    median: float
    samples: int


@dataclass(frozen=True)
class Rounds:
    """How long to go on: until no minimum fell by more than `step` in the last `quiet` rounds.

    That many and at least `least` rounds are run, at most `most`: a busy computer takes longer.
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
    """Time every run equally often: in each round each takes its turn of `repeats` timed calls.

    A turn begins with an untimed call, so that no run pays for what another left in the caches.
    clock: in ns; `time.perf_counter_ns` where several threads are the point.
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
    """The time of one run, by default the processor's."""
    start = clock()
    run()
    return (clock() - start) * 1e-9
