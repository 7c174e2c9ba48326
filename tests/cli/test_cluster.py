"""`--cluster` gives the same results from worker processes, even if some are killed."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from support import raises
from typer.testing import CliRunner

import chasles
from chasles import tasks
from chasles.cli import dataset
from chasles.cli.app import app
from chasles.cli.dataset import Job, partitions
from chasles.identification.logs import column_names

distributed = pytest.importorskip("distributed")

ROBOT = chasles.robots.planar(2)
ROWS, FILES = 2000, 6


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    place, names = tmp_path_factory.mktemp("logs"), column_names(ROBOT)
    for k in range(FILES):
        rng = np.random.default_rng(k)
        w, t = 2.0 * np.pi * np.arange(1, 4) / 5.0, 0.01 * np.arange(ROWS)
        a, s, c = rng.normal(size=(3, 2)), np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        q, qd, qdd = s @ a, (c * w) @ a, -(s * w**2) @ a
        tau = ROBOT.inverse_dynamics(q, qd, qdd) + 0.01 * rng.normal(size=q.shape)
        log = {"t": t}
        for quantity, array in (("q", q), ("qd", qd), ("qdd", qdd), ("tau", tau)):
            log |= dict(zip(names[quantity], array.T, strict=True))
        parquet.write_table(pyarrow.table(log), place / f"{k}.parquet")
    return place


def command(*words: Any) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


def tables(place: Path) -> dict[str, Any]:
    return {p.name: parquet.read_table(p) for p in sorted(place.rglob("*.parquet"))}


def test_motion(cluster: Any, folder: Path, tmp_path: Path) -> None:
    """Tables and summaries are bitwise identical."""
    told = []
    for name, where in (("here", ()), ("there", ("--cluster", cluster.scheduler_address))):
        words = ("motion", "planar:2", folder, "-o", tmp_path / name, "--columns", "tau,energy")
        answer = command(*words, *where, "--json")
        assert answer.exit_code == 0, answer.output
        told.append(json.loads(answer.stdout))
    here, there = (tables(tmp_path / name) for name in ("here", "there"))
    assert len(here) == FILES
    assert here == there
    assert told[0]["states"] == told[1]["states"] == FILES * ROWS
    assert told[0]["forces"] == told[1]["forces"]


def test_identification(cluster: Any, folder: Path) -> None:
    counts: list[int] = []
    here = chasles.identify(ROBOT, folder)
    address = cluster.scheduler_address
    there = chasles.identify(ROBOT, folder, cluster=address, progress=counts.append)
    assert here.samples == there.samples == sum(counts) == FILES * ROWS
    assert np.array_equal(here.base, there.base)
    assert np.array_equal(here.vector, there.vector)
    answer = command("identify", "planar:2", folder, "--cluster", address, "--json")
    assert answer.exit_code == 0, answer.output
    assert np.array_equal([x["value"] for x in json.loads(answer.stdout)["base"]], here.base)


def test_a_worker_compiles_once(cluster: Any, folder: Path, tmp_path: Path) -> None:
    """A process builds the job from its recipe once, however many files it computes."""
    with tasks.connected(cluster.scheduler_address) as client:
        before = client.run(_made)
        for name in ("one", "two"):
            pairs = partitions(folder, tmp_path / name, Job(ROBOT).reader())
            job = Job(ROBOT, ("energy",))
            dataset.run(job, pairs, lambda n: None, cluster=cluster.scheduler_address)
        after = client.run(_made)
    assert all(0 <= after[worker] - before[worker] <= 1 for worker in after)
    assert sum(after.values()) > sum(before.values())


def _made() -> int:
    return tasks._made.cache_info().misses


def test_workers_on_this_computer(capfd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings reach the worker process, and nothing is printed."""
    # Dask prefers variables of this process, which earlier clusters in this process have set.
    for name in tasks.SETTINGS["distributed.nanny.pre-spawn-environ"]:
        monkeypatch.delenv(name, raising=False)
    found = list(tasks.run(_settings, range(3), cluster="local:1"))
    assert found == [(k, 1, 10_000, 10_000, False, str(2**28)) for k in range(3)]
    assert capfd.readouterr() == ("", "")


def _settings(item: int, told: Any) -> tuple[Any, ...]:
    worker = distributed.get_worker()
    calls, trim = worker.periodic_callbacks, os.environ.get("MALLOC_TRIM_THRESHOLD_")
    end = monotonic() + 10.0
    while calls["heartbeat"].callback_time < 10_000.0 and monotonic() < end:
        sleep(0.01)  # the response to the first or second heartbeat sets the interval
    times = (calls[name].callback_time for name in ("tick", "heartbeat"))
    return item, worker.state.nthreads, *times, "profile" in calls, trim


def test_tasks_of_a_cluster() -> None:
    """All items are in order, in few tasks, and the last tasks have one item each."""
    for count in (0, 1, 7, 100, 1003):
        for threads in (1, 2, 8):
            items = list(range(count))
            shared = list(tasks._shared(items, threads))
            assert [k for _, some, _ in shared for k in some] == items
            assert all(first == some[0] for first, some, _ in shared)
            sizes = [len(some) for _, some, _ in shared]
            assert sizes == sorted(sizes, reverse=True)
            assert max(sizes, default=0) <= tasks.TOGETHER
            if count >= 100:
                assert set(sizes[-threads:]) == {1}
                assert len(sizes) < count / 3
            else:
                assert len(sizes) >= min(count, threads)


def test_a_bad_log_is_named(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    parquet.write_table(pyarrow.table({"t": [0.0]}), tmp_path / "logs" / "bad.parquet")
    where = ("--cluster", cluster.scheduler_address)
    answer = command("motion", "planar:2", tmp_path / "logs", "-o", tmp_path / "out", *where)
    assert answer.exit_code == 2
    assert "bad.parquet:1: " in answer.output
    assert "E-LOG-003" in answer.output


def test_refusals(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tasks, "PATIENCE", 0.2)
    words = ("motion", "planar:2", folder, "-o", tmp_path / "out", "--cluster")
    for address in ("tcp://127.0.0.1:1", "nowhere"):
        answer = command(*words, address)
        assert "E-CLUSTER-002" in answer.output
        assert answer.exit_code == 2
    for address in ("local:0", "local:", "local:-1", "local:two", "local:1001", "local:1:2"):
        assert "E-CLUSTER-005" in command(*words, address).output
    with raises("E-IDENT-041", "squares"):
        chasles.identify(ROBOT, folder, loss="huber", cluster="tcp://127.0.0.1:1")
    alone = command("motion", "planar:2", folder / "0.parquet", "--cluster", "x")
    assert "E-CLI-275" in alone.output
    with raises("E-CLUSTER-003", "0.0"):
        tasks._remembered(b"", "0.0")


def test_killed_workers_lose_nothing(folder: Path, tmp_path: Path) -> None:
    """Workers are killed while they read, compute and write, but no incomplete table remains."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    expected = dataset.run(
        Job(ROBOT), partitions(folder, tmp_path / "here", Job(ROBOT).reader()), lambda n: None
    )
    with distributed.LocalCluster(**options) as made:
        victims = [2000, 6000]

        def told(count: int) -> None:
            victims[0] -= count
            if victims[0] <= 0 and len(victims) > 1:
                worker = next(w for w in made.workers.values() if w.process and w.process.pid)
                os.kill(worker.process.pid, signal.SIGKILL)
                victims.pop(0)

        pairs = partitions(folder, tmp_path / "there", Job(ROBOT).reader())
        found = dataset.run(Job(ROBOT), pairs, told, cluster=made.scheduler_address)
    assert tables(tmp_path / "here") == tables(tmp_path / "there")
    assert np.array_equal(found.squares, expected.squares)
    assert np.array_equal(found.peak, expected.peak)
    assert found.states == expected.states == FILES * ROWS
