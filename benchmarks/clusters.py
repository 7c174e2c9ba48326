"""Compute torques of logs on local Dask clusters: compare tables, time, and kill workers."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from pyarrow import parquet

from benchmarks.console import WrongAnswer
from benchmarks.recorded import panda
from chasles import tasks
from chasles.cli.dataset import Done, Job, Partition, Total, partitions
from chasles.tasks import Told

Task = Callable[[Partition, Told], tuple[Done, float]]
"""Function that processes a file and also returns its processor time (s)."""

IDLE_SECONDS = 5.0
"""Time (s) for which an idle cluster is observed to measure its processor time."""


@dataclass(frozen=True)
class Timed:
    """Job that also returns the processor time (s) of its thread."""

    job: Job

    def __call__(self, partition: Partition, told: Told) -> tuple[Done, float]:
        start = time.thread_time()
        done = self.job(partition, told)
        return done, time.thread_time() - start


@dataclass(frozen=True)
class Sines:
    """Task that computes NumPy sines for a given processor time (s), to measure Dask itself."""

    seconds: float

    def __call__(self, partition: Partition, told: Told) -> tuple[Done, float]:
        start, angles = time.thread_time(), np.zeros(100_000)
        while (spent := time.thread_time() - start) < self.seconds:
            np.sin(angles)
        return Done(0, {}, (), ()), spent


@contextmanager
def started(workers: int, *, plain: bool = False) -> Iterator[Any]:
    """Start a local cluster of single-threaded workers, with Dask's own settings if `plain`."""
    from distributed import LocalCluster

    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) if plain else tasks.started(workers) as made:
        yield made


def processes(cluster: Any) -> list[int]:
    """Return the process IDs of this process (client and scheduler) and of the workers."""
    alive = (each.process for each in cluster.workers.values())
    return [os.getpid(), *(p.pid for p in alive if p is not None and p.pid)]


def used(pids: Sequence[int]) -> float:
    """Return the total processor time (s) of processes, from their CPU clocks on Linux."""
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)


@dataclass(frozen=True)
class Times:
    """Wall time of a run, and processor times (s) of all processes and of the tasks' threads.

    `idle` is the processor time per second of the same processes without tasks.
    """

    states: int
    wall: float
    processor: float
    tasks: float
    idle: float = 0.0

    @property
    def overhead(self) -> float:
        """Processor time outside the tasks, relative to the tasks."""
        return self.processor / self.tasks - 1.0

    @property
    def idling(self) -> float:
        """Processor time that idle processes use in the time of the run, relative to the tasks."""
        return self.idle * self.wall / self.tasks


def total(pairs: Sequence[Partition], cluster: Any = None, told: Told = lambda n: None) -> Total:
    """Compute the torques of all files; return number of states, peaks and sums of squares."""
    where = None if cluster is None else cluster.scheduler_address
    found, job = _none(), Job(panda(), threads=1)
    for done in tasks.run(job, pairs, cluster=where, told=told):
        found.add(done)
    return found


def _none() -> Total:
    none = np.zeros(panda().nv)
    return Total(none, none)


def torques() -> Task:
    """Return the task that computes the torques of a file."""
    return Timed(Job(panda(), threads=1))


def alone(task: Task, logs: Path, made: Path) -> Times:
    """Process all files on two threads of this process, and return the times."""
    return _timed(task, partitions(logs, made), None, [os.getpid()], 0.0)


def timed(task: Task, logs: Path, made: Path, cluster: Any, repeats: int) -> Iterator[Times]:
    """Yield the times of repeated runs on a cluster, after its workers have compiled the function.

    The caller removes the tables after each run.
    """
    where, pids = cluster.scheduler_address, processes(cluster)
    list(tasks.run(task, partitions(logs, made)[: 4 * len(pids)], cluster=where))
    rmtree(made, ignore_errors=True)
    start = used(pids)
    time.sleep(IDLE_SECONDS)
    idle = (used(pids) - start) / IDLE_SECONDS
    for _ in range(repeats):
        yield _timed(task, partitions(logs, made), where, pids, idle)


def _timed(
    task: Task, pairs: Sequence[Partition], where: str | None, pids: Sequence[int], idle: float
) -> Times:
    start, wall, states, inside = used(pids), time.perf_counter(), 0, 0.0
    for done, seconds in tasks.run(task, pairs, cluster=where):
        states, inside = states + done.states, inside + seconds
    wall = time.perf_counter() - wall
    return Times(states, wall, used(pids) - start, inside, idle)


def compare(one: Path, other: Path) -> None:
    """Raise WrongAnswer unless two folders contain the same tables, with identical values."""
    names = [sorted(p.name for p in place.iterdir()) for place in (one, other)]
    if names[0] != names[1]:
        raise WrongAnswer(f"{other}: {names[1]} instead of {names[0]}")
    for name in names[0]:
        if not parquet.read_table(one / name).equals(parquet.read_table(other / name)):
            raise WrongAnswer(f"{other / name} differs from {one / name}")


class Killer:
    """Context manager that kills random workers of a cluster at random intervals, in a thread."""

    def __init__(self, cluster: Any, kills: int, longest: float, seed: int) -> None:
        self.cluster, self.kills, self.longest = cluster, kills, longest
        self.rng, self.moments = random.Random(seed), list[float]()
        self.stopped, self.start = threading.Event(), time.perf_counter()
        self.thread = threading.Thread(target=self._kill, daemon=True)

    def __enter__(self) -> "Killer":
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stopped.set()
        self.thread.join()

    def _kill(self) -> None:
        while len(self.moments) < self.kills:
            if self.stopped.wait(self.rng.uniform(0.0, self.longest)):
                return
            victims = processes(self.cluster)[1:]
            if victims:
                os.kill(self.rng.choice(victims), signal.SIGKILL)
                self.moments.append(time.perf_counter() - self.start)


def killed(logs: Path, expected: Path, place: Path, workers: int, kills: int, seed: int) -> int:
    """Process all files repeatedly while workers are killed, and return the number of kills.

    Raise WrongAnswer if a table or a sum differs from that of one process.
    """
    reference = total(partitions(logs, expected))  # the tables exist, so only their sums are read
    count = 0
    with started(workers) as cluster:
        while count < kills:
            made = place / f"killed-{count}"
            with Killer(cluster, kills - count, 1.5, seed + count) as killer:
                found = total(partitions(logs, made), cluster)
            compare(expected, made)
            same = np.array_equal(found.squares, reference.squares)
            if not same or found.states != reference.states:
                raise WrongAnswer(f"sums differ after {len(killer.moments)} kills")
            count += len(killer.moments)
    return count
