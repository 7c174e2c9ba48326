"""Time all ways of calling a function from Python, and compare them with Pinocchio."""

import argparse
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks import calls
from benchmarks.calls import Cell
from benchmarks.console import output
from benchmarks.timing import Rounds


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--quick", action="store_true", help="short trial run with few rounds")


def run(chosen: argparse.Namespace) -> int:
    """Run the benchmark, print the results and return 0."""
    errors = Console(stderr=True)
    rounds = Rounds(2, 2) if chosen.quick else Rounds(8, 30)
    single, batched = calls.measure(rounds, errors.print)
    others = list(calls.measure_others(rounds))
    show("One state", single)
    show(f"A batch of {calls.BATCH} states", batched)
    table = Table("one state", "microseconds", "kernel alone", title="Other functions and robots")
    for row in others:
        kernel = "" if row.kernel is None else f"{1e6 * row.kernel:.3f}"
        table.add_row(row.name, f"{1e6 * row.seconds:.3f}", kernel)
    output().print(table)
    output().print(
        "Microseconds per state, one thread. In parentheses: speed relative to Pinocchio."
    )
    return 0


def show(title: str, cells: Sequence[Cell]) -> None:
    """Print a table with a row for each way of calling and a column for each function."""
    table = Table("way of calling", *calls.FUNCTIONS, title=title)
    for way in dict.fromkeys(cell.way for cell in cells):
        row = {cell.function: cell for cell in cells if cell.way == way}
        texts = [
            f"{1e6 * row[name].seconds:.3f} ({row[name].peer / row[name].seconds:.1f})"
            if name in row
            else ""
            for name in calls.FUNCTIONS
        ]
        table.add_row(way, *texts)
    output().print(table)
