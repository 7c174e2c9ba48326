"""Compute torques of many logs on local Dask clusters: overhead, and effect of killed workers."""

import argparse
import shutil
import tempfile
from pathlib import Path

from rich.table import Table

from benchmarks.clusters import Sines, Times, alone, compare, killed, started, timed, torques
from benchmarks.console import count, output
from benchmarks.recorded import write
from benchmarks.targets import SCHEDULING
from chasles import tasks


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--files", type=count, default=200, help="Number of files; default: 200.")
    parser.add_argument(
        "--states", type=count, default=100_000, help="States per file; default: 100,000."
    )
    parser.add_argument("--workers", nargs="+", type=count, default=[2, 4, 8])
    parser.add_argument(
        "--kills",
        type=int,
        default=0,
        help="Number of workers to kill; if 0 (default), measure times.",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="Seed of the times of kills; default: 0."
    )
    parser.add_argument("--plain", action="store_true", help="Use Dask's default settings.")
    parser.add_argument("--bare", action="store_true", help="Compute NumPy sines, not torques.")
    parser.add_argument("--single", action="store_true", help="Run one Dask task per file.")
    parser.add_argument("--repeats", type=count, default=3, help="Runs per cluster; default: 3.")
    parser.add_argument("--folder", type=Path, help="Folder for the files; default: temporary.")


def run(chosen: argparse.Namespace) -> int:
    """Print the table. Return 1 if the overhead exceeds its target, else 0."""
    if chosen.single:
        tasks.TOGETHER = 1
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        place = Path(name)
        logs, expected = place / "logs", place / "expected"
        write(logs, chosen.files, chosen.states, tau=False)
        here = alone(torques(), logs, expected)
        if chosen.kills:
            for workers in chosen.workers:
                done = killed(logs, expected, place, workers, chosen.kills, chosen.seed)
                output().print(f"{workers} workers: {done} kills; tables and sums are identical")
            return 0
        task = Sines(here.tasks / chosen.files) if chosen.bare else torques()
        what = "NumPy" if chosen.bare else "torques"
        table = Table(
            "", "wall time", "tasks", "all processes", "overhead", "idle overhead",
            "increase over one process",
            title=f"{what}: time per state, {chosen.files} files of {chosen.states:,} states",
        )  # fmt: skip
        ns, good = 1e9 / here.states, True

        def add(name: str, found: Times, one: Times) -> None:
            table.add_row(
                name, f"{found.wall * ns:.0f} ns", f"{found.tasks * ns:.0f} ns",
                f"{found.processor * ns:.0f} ns", f"{found.overhead:.1%}", f"{found.idling:.1%}",
                f"{found.processor / one.processor - 1.0:.1%}",
            )  # fmt: skip

        for workers in chosen.workers:
            one = alone(task, logs, place / "one")
            shutil.rmtree(place / "one", ignore_errors=True)
            add("one process", one, one)
            with started(workers, plain=chosen.plain) as cluster:
                found = timed(task, logs, place / "made", cluster, chosen.repeats)
                for times in found:
                    if not chosen.bare:
                        compare(expected, place / "made")
                    shutil.rmtree(place / "made", ignore_errors=True)
                    add(f"{workers} workers", times, one)
                    good = good and times.overhead <= SCHEDULING
        output().print(table)
    return 0 if good else 1
