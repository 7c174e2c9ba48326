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
    parser.add_argument("--quiet", action="store_true", help="Without Dask's profiler, monitors.")
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
            "", "wall time", "tasks", "idle processes", "scheduling",
            title=f"processor time per state, {chosen.files} files of {chosen.states:,} states",
        )  # fmt: skip
        ns = 1e9 / here.states
        whole = f"{here.processor * ns:.0f} ns in all"
        table.add_row("one process", f"{here.wall * ns:.0f} ns", f"{here.tasks * ns:.0f} ns", "",
                      whole)  # fmt: skip
        good = True
        for workers in chosen.workers:
            with started(workers, quiet=chosen.quiet) as cluster:
                found = timed(logs, place / "made", cluster)
            compare(expected, place / "made" / "tables")
            shutil.rmtree(place / "made")
            table.add_row(
                f"{workers} workers", f"{found.wall * ns:.0f} ns", f"{found.tasks * ns:.0f} ns",
                f"{found.idling:.1%} of tasks", f"{found.scheduling:.1%} of tasks",
            )  # fmt: skip
            good = good and found.scheduling + found.idling <= SCHEDULING
        output().print(table)
    return 0 if good else 1
