"""Time rollouts on one core, and compare them with MuJoCo."""

import argparse

from rich.console import Console
from rich.table import Table

from benchmarks.console import count, output
from benchmarks.motions import measure
from benchmarks.targets import BATCH, MOTIONS
from benchmarks.timing import Rounds


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--batch", type=count, default=BATCH, help="robots per batch")
    parser.add_argument("--quick", action="store_true", help="short trial run with few rounds")


def run(chosen: argparse.Namespace) -> int:
    """Run the benchmark, print the results and return 0."""
    errors = Console(stderr=True)
    rounds = Rounds(2, 2) if chosen.quick else Rounds(4, 12, quiet=3)
    found = measure(chosen.batch, 10_000, rounds, errors.print)
    table = Table("motion", "robots", "steps/s", "chasles", "MuJoCo", "ratio", "target")
    for motion in found:
        here, there = (f"{1e6 * t:.2f} us" for t in (motion.here, motion.there))
        goal = MOTIONS.get(motion.name)
        table.add_row(
            motion.title,
            str(motion.batch),
            f"{1e-6 * motion.steps:.2f} M",
            here,
            there,
            f"{motion.ratio:.1f}",
            "" if goal is None else f"{goal:g}",
        )
    output().print(table)
    output().print("Times are processor times per simulated second of one robot, on one thread.")
    return 0
