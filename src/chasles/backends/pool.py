"""Threads: a pool for large batches, made on first use and again after a fork, and one lock."""

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_POOL: "list[ThreadPoolExecutor]" = []


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


PIECES = 2
"""Ranges for each thread: one that starts late, or runs on a slower core, takes fewer. Each costs
some ten microseconds of Python, in which the others may have to wait."""


def run(count: int, step: int, threads: int, work: Callable[[int, int], None]) -> None:
    """Call `work(first, last)` for rows 0 to count, in ranges whose ends are multiples of `step`.

    The caller is one of the threads; each takes the next range when it is done with one.
    """
    if threads == 1 or count <= step:
        work(0, count)
        return
    share = -(-count // (threads * PIECES * step)) * step
    ranges = [(first, min(first + share, count)) for first in range(0, count, share)]
    left = iter(ranges)

    def help() -> None:
        for first, last in left:
            work(first, last)

    if not _POOL:
        from concurrent.futures import ThreadPoolExecutor

        _POOL.append(ThreadPoolExecutor(max(cores(), 2) - 1, thread_name_prefix="chasles"))
    waiting = [_POOL[0].submit(help) for _ in range(min(threads, len(ranges)) - 1)]
    try:
        help()
    finally:
        _finish(waiting)
    for task in waiting:
        task.result()


def _finish(waiting: "list[Future[None]]") -> None:
    """Wait for all tasks, whatever comes: they write into memory that the caller will free."""
    interrupted: BaseException | None = None
    for task in waiting:
        while not task.done():
            try:
                task.exception()
            except BaseException as error:
                interrupted = error
    if interrupted is not None:
        raise interrupted


def _forget() -> None:
    """In the child of a fork the threads are gone: a new pool is made when it is needed."""
    _POOL.clear()


COMPILING = threading.RLock()
"""Held while code is made. A fork waits for it, so that a child never finds it taken."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
    os.register_at_fork(
        before=COMPILING.acquire,
        after_in_parent=COMPILING.release,
        after_in_child=COMPILING.release,
    )
