"""Run independent tasks on threads of this process, or on the workers of a Dask cluster.

A task reads, processes and writes one item, so only its small result is transferred. Workers
receive the function in serialized form, and each process deserializes it once. Results arrive in
the order of the items, so sums do not depend on the number of threads or workers.
"""

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from logging import CRITICAL
from threading import Event, Lock
from time import sleep
from typing import Any, TypeVar
from uuid import uuid4

from chasles.errors import InputError, MissingPackageError, StateError, said
from chasles.version import VERSION

THREADS = 2
"""Default number of tasks that run at the same time in this process."""

WINDOW, LEAST = 8, 16
"""Number of pending tasks on a cluster: `WINDOW` per worker thread, and at least `LEAST` in all."""

TOGETHER = 16
"""Maximum number of items per task on a cluster. Dask's overhead is about 4 ms per task."""

ATTEMPTS = 10
"""Maximum number of times that a task is submitted if the workers that run it die.

Each time, Dask tries several workers.
"""

PAUSE = 0.1
"""Time (s) between fetches of results from a cluster while tasks are still waiting for a thread."""

INTERVAL, HEARTBEAT = "heartbeat-interval", 10.0
"""Dask setting for the heartbeats of local workers: its name, and the time (s) between heartbeats.

Dask's default is 0.5 s. Without heartbeats, the scheduler still notices the end of a worker process
at once, because the worker's connection is closed.
"""

PATIENCE = 10.0
"""Timeout (s) for connecting to a scheduler."""

LOCAL, MOST = "local", 1000
"""Cluster address that selects local worker processes, and the maximum number of these processes.

Each call starts the processes and stops them at the end.
"""

SETTINGS = {
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.cycle": "10s",
    "distributed.admin.tick.interval": "10s",
    "distributed.nanny.pre-spawn-environ": {
        "MALLOC_MMAP_THRESHOLD_": 2**25,
        "MALLOC_TRIM_THRESHOLD_": 2**28,
        "OMP_NUM_THREADS": 1,
        "OPENBLAS_NUM_THREADS": 1,
    },
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.worker.profile.enabled": False,
}
"""Dask settings for local workers: no profiler, and system monitors every 10 s.

malloc keeps up to 256 MB of freed memory. With Dask's default environment variables, malloc returns
all memory to the system after each block of data, and requesting it again for the next block takes
10 % of the processor time.
"""

Told = Callable[[int], None]
"""Progress callback, called with the number of units completed since the last call."""

Item = TypeVar("Item")
Result = TypeVar("Result")
Task = Callable[[Item, Told], Result]
"""Function `task(item, told)` that processes an item and reports progress by calling `told`."""


def run(
    task: Task[Item, Result],
    items: Iterable[Item],
    *,
    cluster: str | None = None,
    threads: int = THREADS,
    told: Told = lambda count: None,
) -> Iterator[Result]:
    """Yield the results of a task for all items, in the order of the items.

    `cluster` is the address of a Dask scheduler, such as tcp://host:8786, or local:N for N worker
    processes on this computer. By default, tasks run on threads of this process.
    """
    if cluster is None:
        return _here(task, items, threads, told)
    return _there(task, items, cluster, told)


def ahead(
    function: Callable[[Item], Result], blocks: Iterable[Item], threads: int
) -> Iterator[Result]:
    """Yield function(block) for all blocks in order, computed on threads while blocks are read.

    At most `threads` + 1 blocks are in memory. With one thread, the function runs in the caller's
    thread.
    """
    if threads < 2:
        yield from map(function, blocks)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from _ordered((pool.submit(function, block) for block in blocks), threads)


def _ordered(submitted: Iterator[Future[Result]], threads: int) -> Iterator[Result]:
    """Yield the results of futures in order, with at most `threads` + 1 futures pending."""
    waiting: deque[Future[Result]] = deque()
    try:
        for future in submitted:
            waiting.append(future)
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _here(
    task: Task[Item, Result], items: Iterable[Item], threads: int, told: Told
) -> Iterator[Result]:
    """Yield the results of tasks that run on threads of this process, in order.

    After an error or Ctrl-C, each running task stops when it next reports progress.
    """
    stop = Event()

    def tell(count: int) -> None:
        if stop.is_set():
            raise CancelledError
        told(count)

    with ThreadPoolExecutor(threads) as pool:
        try:
            yield from _ordered((pool.submit(task, item, tell) for item in items), threads)
        finally:
            stop.set()


# Clusters --------------------------------------------------------------------------------------


class Portable:
    """A function that is pickled as bytes and deserialized once in each process.

    `key` identifies the function in Dask graphs. Names of Dask tasks begin with `__name__`.
    """

    __name__ = "chasles"

    def __init__(self, function: Callable[..., Any], key: str = "") -> None:
        import cloudpickle

        self.function, self.key = function, key
        self.recipe: bytes = cloudpickle.dumps((function, key))

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __dask_tokenize__(self) -> Any:
        return self.key or self.recipe

    def __reduce__(self) -> tuple[Any, ...]:
        return _remembered, (self.recipe, VERSION)


_MAKING = Lock()


def _remembered(recipe: bytes, version: str) -> Portable:
    """Return the function pickled in `recipe`, which each process deserializes only once."""
    if version != VERSION:
        problem = f"a worker has chasles {VERSION}, but the client has chasles {version}"
        raise InputError("E-CLUSTER-003", problem, "install the same version everywhere")
    with _MAKING:
        return _made(recipe)


@lru_cache(maxsize=64)
def _made(recipe: bytes) -> Portable:
    return Portable(*pickle.loads(recipe))


def _counted(items: Sequence[Any], recipe: bytes, version: str) -> list[tuple[Any, int]]:
    """Process items on a worker, and return the result and the reported progress for each item.

    The pickled function is passed as bytes (`recipe`), so that the scheduler does not unpickle it.
    """
    task, found = _remembered(recipe, version), []
    for item in items:
        counts: list[int] = []
        found.append((task(item, counts.append), sum(counts)))
    return found


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield a Dask client connected to the scheduler at an address."""
    try:
        from distributed import Client
    except ImportError:
        remedy = "run pip install 'chasles[cluster]'"
        raise MissingPackageError(
            "E-CLUSTER-001", "dask.distributed is not installed", remedy
        ) from None
    if address.split(":")[0] == LOCAL:
        with started(_workers(address)) as cluster, Client(cluster, set_as_default=False) as client:
            yield client
        return
    try:
        client = Client(address, set_as_default=False, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        problem = f"there is no Dask scheduler at {address!r:.80} ({said(error)})"
        remedy = "run `dask scheduler`, and pass the scheduler's address, such as tcp://host:8786"
        raise InputError("E-CLUSTER-002", problem, remedy) from None
    with client:
        yield client


def _workers(address: str) -> int:
    """Return the number of workers: N for local:N, and the number of processors for local."""
    count = address.removeprefix(LOCAL).removeprefix(":")
    if address == LOCAL:
        from dask.system import CPU_COUNT

        return int(CPU_COUNT)
    if not count.isdecimal() or not 0 < int(count) <= MOST:
        problem = f"the number of worker processes in {address!r:.80} must be from 1 to {MOST}"
        remedy = "use local:N for N worker processes, or local for one process per processor"
        raise InputError("E-CLUSTER-005", problem, remedy)
    return int(count)


@contextmanager
def started(workers: int) -> Iterator[Any]:
    """Yield a Dask cluster of worker processes on this computer, with one thread each."""
    import dask
    from distributed import LocalCluster

    options = {
        "threads_per_worker": 1,
        "memory_limit": 0,
        "silence_logs": CRITICAL,
        "dashboard_address": "127.0.0.1:0",
        "scheduler_kwargs": {"dashboard": False},
    }
    with dask.config.set(SETTINGS):
        cluster = LocalCluster(n_workers=workers, **options)
    with cluster:
        handlers = cluster.scheduler.handlers
        heard = handlers["heartbeat_worker"]
        handlers["heartbeat_worker"] = lambda **told: heard(**told) | {INTERVAL: HEARTBEAT}
        yield cluster


def _there(
    task: Task[Item, Result], items: Iterable[Item], address: str, told: Told
) -> Iterator[Result]:
    """Yield the results of tasks that run on a Dask cluster, in order.

    If a worker dies, its tasks run again on another worker.
    """
    with connected(address) as client:
        threads, every = max(1, sum(client.nthreads().values())), list(items)
        sent = _Sent(client, Portable(task).recipe, threads)
        window, rest = max(LEAST, WINDOW * threads), _shared(every, threads)
        done, upcoming = dict[int, list[Result]](), 0
        while True:
            if 2 * len(sent.waiting) <= window:
                sent.add(list(islice(rest, window - len(sent.waiting))))
            if not sent.waiting:
                return
            for first, counted in sent.finished():
                told(sum(count for _, count in counted))
                done[first] = [result for result, _ in counted]
            while upcoming in done:
                found = done.pop(upcoming)
                yield from found
                upcoming += len(found)


def _shared(items: Sequence[Item], threads: int) -> Iterator[tuple[int, Sequence[Item], int]]:
    """Yield tasks as tuples: the index of the first item, the items, and the attempt number (1).

    In each round, two thirds of the remaining items are split evenly among the threads
    (Hummel, Schonberg, Flynn 1992). Most items are in a few large tasks, and the last tasks are
    small, so that all threads finish at about the same time.
    """
    first = 0
    while first < len(items):
        size = min(max(1, 2 * (len(items) - first) // (3 * threads)), TOGETHER)
        for _ in range(threads):
            if some := items[first : first + size]:
                yield first, some, 1
            first += size


class _Sent:
    """Pending tasks on a cluster.

    `waiting` maps the key of a task to the index of its first item, its items, and the number of
    the attempt. Tasks are sent and results fetched several at a time, because each message has a
    large overhead.
    """

    def __init__(self, client: Any, recipe: bytes, threads: int) -> None:
        from distributed import as_completed

        self.client, self.recipe, self.threads, self.name = client, recipe, threads, uuid4().hex
        self.completed = as_completed(loop=client.loop)
        self.waiting: dict[Any, tuple[int, Any, int]] = {}

    def add(self, some: Sequence[tuple[int, Any, int]]) -> None:
        """Send tasks to the cluster."""
        if not some:
            return
        keys = [f"chasles-{self.name}-{number}-{attempt}" for number, _, attempt in some]
        made = {"recipe": self.recipe, "version": VERSION}
        futures = self.client.map(_counted, [items for _, items, _ in some], key=keys, **made)
        self.waiting |= {future.key: each for future, each in zip(futures, some, strict=True)}
        self.completed.update(futures)

    def finished(self) -> list[tuple[int, Any]]:
        """Wait for results, and return a list of (index of the task's first item, result).

        Tasks whose workers died are sent again, for at most `ATTEMPTS` attempts in all.
        """
        from distributed import KilledWorker

        if len(self.waiting) > self.threads:
            sleep(PAUSE)
        good, again = [], []
        for future in self.completed.next_batch():
            number, items, attempt = self.waiting.pop(future.key)
            if future.status != "error":
                good.append((number, future))
                continue
            error = future.exception()
            if not isinstance(error, KilledWorker):
                raise error
            if attempt == ATTEMPTS:
                problem, remedy = f"several workers died: {said(error)}", "give workers more memory"
                raise StateError(
                    "E-CLUSTER-004", problem, remedy, part=f"{items[0]!s:.80}"
                ) from None
            again.append((number, items, attempt + 1))
        self.add(again)
        results = self.client.gather([future for _, future in good])
        return list(zip((number for number, _ in good), results, strict=True))
