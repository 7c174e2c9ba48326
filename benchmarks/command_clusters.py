"""Torques of many logs on local Dask clusters: the same bits, overhead, killed workers."""

import argparse
import shutil
import tempfile
from pathlib import Path

from rich.table import Table

from benchmarks.clusters import alone, compare, killed, started, timed
from benchmarks.console import count, output
from benchmarks.recorded import write
from benchmarks.targets import SCHEDULING


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--files", type=count, default=200, help="Files; default: 200.")
    parser.add_argument("--states", type=count, default=100_000, help="States a file; 100,000.")
    parser.add_argument("--workers", nargs="+", type=count, default=[2, 4, 8])
    parser.add_argument("--kills", type=int, default=0, help="Kill workers instead of timing.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the moments; default: 0.")
    parser.add_argument("--plain", action="store_true", help="With Dask's default settings.")
    parser.add_argument("--repeats", type=count, default=3, help="Runs per cluster; default: 3.")
    parser.add_argument("--folder", type=Path, help="Place for the files; a temporary one.")


def run(chosen: argparse.Namespace) -> int:
    """Print the table; 1 if scheduling takes more than its target."""
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        place = Path(name)
        logs, expected = place / "logs", place / "expected"
        write(logs, chosen.files, chosen.states, tau=False)
        here = alone(logs, expected)
        if chosen.kills:
            for workers in chosen.workers:
                done = killed(logs, expected, place, workers, chosen.kills, chosen.seed)
                output().print(f"{workers} workers: {done} kills; all tables and sums are the same")
            return 0
        table = Table(
            "", "wall time", "tasks", "overhead", "of it idle",
            title=f"time per state, {chosen.files} files of {chosen.states:,} states",
        )  # fmt: skip
        ns, good = 1e9 / here.states, True
        table.add_row("one process", f"{here.wall * ns:.0f} ns", f"{here.tasks * ns:.0f} ns",
                      f"{here.overhead:.1%}", "")  # fmt: skip
        for workers in chosen.workers:
            with started(workers, plain=chosen.plain) as cluster:
                for k, found in enumerate(timed(logs, place / "made", cluster, chosen.repeats)):
                    compare(expected, place / "made" / f"tables-{k}")
                    table.add_row(
                        f"{workers} workers", f"{found.wall * ns:.0f} ns",
                        f"{found.tasks * ns:.0f} ns", f"{found.overhead:.1%}",
                        f"{found.idling:.1%}",
                    )  # fmt: skip
                    good = good and found.overhead <= SCHEDULING
            shutil.rmtree(place / "made")
        output().print(table)
    return 0 if good else 1
