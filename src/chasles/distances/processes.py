"""Split a batch across several processes, for packages that do not release the GIL."""

import mmap
import os
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

FEWEST = 16
"""Minimum number of batch rows per process."""


def in_processes(
    work: Callable[..., None], count: int, processes: int, results: Sequence[np.ndarray]
) -> None:
    """Split range(count) into parts, and call work(part, *results) for all parts in parallel.

    The calling process handles one part, and forked processes handle the others. All processes
    write their rows of `results` to shared memory. If `os.fork` is not available, or if there are
    few rows, the calling process does all the work. Parts whose processes fail are repeated in the
    calling process.
    """
    number = min(processes, count // FEWEST)
    if number < 2 or not hasattr(os, "fork"):
        work(range(count), *results)
        return
    shared = [_shared(a) for a in results]
    ends = np.linspace(0, count, number + 1).astype(int).tolist()
    parts = [range(a, b) for a, b in pairwise(ends)]
    started = [(part, _forked(work, part, shared)) for part in parts[1:]]
    done = [parts[0]]
    try:
        work(parts[0], *shared)
    finally:
        done += [part for part, child in started if os.waitpid(child, 0)[1] == 0]
    for part in parts:
        if part not in done:
            work(part, *shared)
    for a, b in zip(results, shared, strict=True):
        a[...] = b


def _shared(array: np.ndarray) -> np.ndarray:
    """Return a copy of an array in memory shared with forked processes."""
    memory = mmap.mmap(-1, max(array.nbytes, 1))
    found = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
    found[...] = array
    return found


def _forked(work: Callable[..., None], rows: range, shared: Sequence[np.ndarray]) -> int:
    """Run work(rows, *shared) in a forked process; return its process ID.

    The forked process exits without running Python's cleanup.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fork warns about threads, which the child does not use
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        work(rows, *shared)
        status = 0
    finally:
        os._exit(status)
