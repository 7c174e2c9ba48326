"""Measure states per second and peak memory of commands that process logs larger than memory."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet
from rich.table import Table

from benchmarks.console import WrongAnswer, count, output
from benchmarks.recorded import columns, panda, robot_file, separate, write
from benchmarks.targets import LOGS
from chasles.identification.logs import column_names

PAUSE = 0.005
"""Time (s) between measurements of the memory of a process."""

CHECKED = 2000
"""Number of rows of a table that are compared with torques computed from NumPy arrays."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--files", type=count, default=10, help="Number of files; default: 10.")
    parser.add_argument(
        "--states", type=count, default=1_000_000, help="States per file; default: 10^6."
    )
    parser.add_argument("--kind", choices=("parquet", "csv"), default="parquet")
    parser.add_argument(
        "--identify", action="store_true", help="Identify, instead of computing torques."
    )
    parser.add_argument(
        "--cold", action="store_true", help="Read the files from disk, not from the page cache."
    )
    parser.add_argument("--folder", type=Path, help="Folder for the files; default: temporary.")


@dataclass(frozen=True)
class Run:
    """Output, wall and processor time (s), and peak anonymous memory (bytes) of a command."""

    answer: dict[str, Any]
    seconds: float
    processor: float
    peak: int


def measured(words: list[str]) -> Run:
    """Run a chasles command in a new process, and measure it."""
    import psutil

    start, peak = time.perf_counter(), 0
    with tempfile.TemporaryFile("w+") as told:
        child = subprocess.Popen([sys.executable, "-m", "chasles", *words], stdout=told)
        watched, used = psutil.Process(child.pid), 0.0
        while child.poll() is None:
            try:
                used = sum(watched.cpu_times()[:2])
                peak = max(peak, _anonymous(child.pid))
            except (psutil.NoSuchProcess, OSError, StopIteration):
                break
            time.sleep(PAUSE)
        if child.wait():
            raise WrongAnswer(f"chasles {' '.join(words)} failed")
        seconds = time.perf_counter() - start
        told.seek(0)
        return Run(json.load(told), seconds, used, peak)


def _anonymous(process: int) -> int:
    """Return the anonymous memory (bytes) of a process."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])


def check(table: Path, states: int) -> None:
    """Raise WrongAnswer if torques differ from those of arrays. Logs in .csv files are rounded."""
    robot = panda()
    log, names = columns(robot, states, tau=False), column_names(robot)
    q, qd, qdd = (np.column_stack([log[n] for n in names[x]]) for x in ("q", "qd", "qdd"))
    found = parquet.read_table(table, columns=names["tau"])
    expected = robot.inverse_dynamics(q[-CHECKED:], qd[-CHECKED:], qdd[-CHECKED:])
    given = np.column_stack([found[n].to_numpy()[-CHECKED:] for n in names["tau"]])
    close = 0.05 if ".csv" in table.name else 0.0
    if len(found) != states or np.abs(given - expected).max() > close:
        raise WrongAnswer(f"{table}: torques differ from those computed from arrays")


def run(chosen: argparse.Namespace) -> int:
    """Print rates and memory. Return 1 if a target is missed, else 0."""
    total = chosen.files * chosen.states
    what = "identification" if chosen.identify else "torques"
    with tempfile.TemporaryDirectory(dir=chosen.folder) as place:
        logs, made = Path(place) / "logs", Path(place) / "out"
        write(logs, chosen.files, chosen.states, kind=chosen.kind, tau=chosen.identify)
        if chosen.cold:
            separate(logs)
        size = sum(file.stat().st_size for file in logs.iterdir())
        robot = str(robot_file())
        rest = ["identify", robot, str(logs)] if chosen.identify else [
            "motion", robot, str(logs), "--output", str(made)]  # fmt: skip
        found = measured([*rest, "--json"])
        if found.answer["states"] != total:
            raise WrongAnswer(f"{found.answer['states']} states instead of {total}")
        if not chosen.identify:
            check(sorted(made.iterdir())[-1], chosen.states)
    table = Table("states", "read", "whole command", "tables alone", "per core", "peak memory",
                  title=f"{what} from {chosen.files} {chosen.kind} files")  # fmt: skip
    alone = found.answer.get("rate")
    table.add_row(
        f"{total:,}", f"{size / 1e9:.2f} GB", f"{total / found.seconds:,.0f} per second",
        "" if alone is None else f"{alone:,.0f} per second",
        f"{total / found.processor:,.0f} per second", f"{found.peak / 1e6:.0f} MB",
    )  # fmt: skip
    output().print(table)
    quick = alone is None or chosen.kind == "csv" or alone >= LOGS["rate"]
    return 0 if quick and found.peak <= LOGS["memory"] else 1
