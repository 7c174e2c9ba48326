"""Work on parts of a batch in several processes, for packages that hold the interpreter's lock."""

import mmap
import os
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

FEWEST = 16
"""Smallest number of rows for which a process is started."""


def in_processes(
    work: Callable[..., None], count: int, processes: int, results: Sequence[np.ndarray]
) -> None:
    """Call work(rows, *results) for parts of range(count), each in a forked process.

    The processes write the rows of `results` in shared memory. Without `os.fork`, for few rows, or
    if a process fails, this process does the work.
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
    """Return a copy of an array in memory that forked processes share."""
    memory = mmap.mmap(-1, max(array.nbytes, 1))
    found = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
    found[...] = array
    return found


def _forked(work: Callable[..., None], rows: range, shared: Sequence[np.ndarray]) -> int:
    """Return the number of a new process that does the work and ends without cleaning up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about other threads, which the new process does not have
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        work(rows, *shared)
        status = 0
    finally:
        os._exit(status)
