"""Time every way of calling a function from Python beside Pinocchio's call, answers checked."""

import argparse
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks import calls
from benchmarks.calls import Cell
from benchmarks.console import output
from benchmarks.routes import WrongAnswer
from benchmarks.timing import Rounds


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--quick", action="store_true", help="few rounds, to try the command")


def run(chosen: argparse.Namespace) -> int:
    """Measure and show."""
    errors = Console(stderr=True)
    rounds = Rounds(2, 2) if chosen.quick else Rounds(8, 30)
    try:
        single, batched = calls.measure(rounds, errors.print)
        others = list(calls.measure_others(rounds))
    except WrongAnswer as error:
        errors.print(f"wrong answer: {error}", markup=False)
        return 1
    show("One state", single)
    show(f"A batch of {calls.BATCH}", batched)
    table = Table("one state", "microseconds", "kernel alone", title="Other functions and robots")
    for row in others:
        kernel = "" if row.kernel is None else f"{1e6 * row.kernel:.3f}"
        table.add_row(row.name, f"{1e6 * row.seconds:.3f}", kernel)
    output().print(table)
    output().print("Microseconds a state (times Pinocchio's own call for one state), one thread.")
    return 0


def show(title: str, cells: Sequence[Cell]) -> None:
    """A row for each way of calling, a column for each function."""
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
