"""Time exported C beside Pinocchio, answers checked."""

import argparse

from rich.console import Console

from benchmarks import exported_c
from benchmarks.compare import FULL, QUICK
from benchmarks.console import output
from benchmarks.routes import WrongAnswer


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--quick", action="store_true", help="few rounds, to try the command")


def run(chosen: argparse.Namespace) -> int:
    """Measure and show."""
    errors = Console(stderr=True)
    try:
        sections = exported_c.measure(QUICK if chosen.quick else FULL, errors.print)
    except (WrongAnswer, FileNotFoundError) as error:
        errors.print(f"error: {error}", markup=False)
        return 1
    exported_c.show(sections, output())
    return 0
