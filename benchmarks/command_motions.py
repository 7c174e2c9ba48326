"""Time rollouts beside MuJoCo's, on one core, answers checked before and after."""

import argparse

from rich.console import Console
from rich.table import Table

from benchmarks.console import count, output
from benchmarks.motions import measure
from benchmarks.routes import WrongAnswer
from benchmarks.targets import BATCH, MOTIONS
from benchmarks.timing import Rounds


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--batch", type=count, default=BATCH, help="robots in a batch")
    parser.add_argument("--quick", action="store_true", help="few rounds, to try the command")


def run(chosen: argparse.Namespace) -> int:
    """Measure and show."""
    errors = Console(stderr=True)
    rounds = Rounds(2, 2) if chosen.quick else Rounds(4, 12, quiet=3)
    try:
        found = measure(chosen.batch, 10_000, rounds, errors.print)
    except WrongAnswer as error:
        errors.print(f"error: {error}", markup=False)
        return 1
    table = Table("motion", "robots", "steps/s", "here", "MuJoCo", "ratio", "goal")
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
    output().print("Processor time for a second of one robot's motion, from Python, one thread.")
    return 0
