"""Time exported C code, and compare it with Pinocchio."""

import argparse

from rich.console import Console

from benchmarks import exported_c
from benchmarks.compare import FULL, QUICK
from benchmarks.console import output


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--quick", action="store_true", help="short trial run with few rounds")


def run(chosen: argparse.Namespace) -> int:
    """Run the benchmark and print the results. Return 1 after an error, else 0."""
    errors = Console(stderr=True)
    try:
        sections = exported_c.measure(QUICK if chosen.quick else FULL, errors.print)
    except FileNotFoundError as error:
        errors.print(f"error: {error}", markup=False)
        return 1
    exported_c.show(sections, output())
    return 0
