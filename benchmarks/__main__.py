"""The commands: `python -m benchmarks compare` and `python -m benchmarks c`."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks import exported_c
from benchmarks.alone import measure
from benchmarks.closed_loops import CLOSED, closed_loops
from benchmarks.compare import FULL, QUICK, WrongAnswer, compare
from benchmarks.plot import plot
from benchmarks.report import show, write
from benchmarks.robots import CASES
from benchmarks.states import INPUTS
from benchmarks.targets import BATCH, DERIVATIVES, DYNAMICS

TABLE_WIDTH = 160
"""Columns of the widest table, for output that is not a terminal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 1 where an answer was wrong, whatever the times."""
    chosen = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = chosen.run
    return run(chosen)


def _exported_c(chosen: argparse.Namespace) -> int:
    errors = Console(stderr=True)
    try:
        sections = exported_c.measure(QUICK if chosen.quick else FULL, errors.print)
    except (WrongAnswer, FileNotFoundError) as error:
        errors.print(f"error: {error}", markup=False)
        return 1
    exported_c.show(sections, Console() if sys.stdout.isatty() else Console(width=TABLE_WIDTH))
    return 0


def _compare(chosen: argparse.Namespace) -> int:
    effort = QUICK if chosen.quick else FULL
    if chosen.batch is not None:
        effort = replace(effort, batch=chosen.batch)
    errors = Console(stderr=True)
    try:
        result = compare(chosen.robots, chosen.functions, effort, errors.print)
        closed = closed_loops(chosen.mechanisms, effort, errors.print)
        alone = measure(effort, long=chosen.long, progress=errors.print)
    except WrongAnswer as error:
        errors.print(f"wrong answer: {error}", markup=False)
        return 1
    console = Console() if sys.stdout.isatty() else Console(width=TABLE_WIDTH)
    whole = replace(result, rows=result.rows + closed)
    show(whole, alone, console)
    if chosen.json is not None:
        write(whole, alone, chosen.json)
    if chosen.plot is not None:
        plot(result, chosen.plot)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser(
        "compare", help="time chasles, Pinocchio and MuJoCo in one run, answers checked"
    )
    command.add_argument("--robots", nargs="+", choices=CASES, default=list(CASES))
    command.add_argument(
        "--functions", nargs="+", choices=INPUTS, default=[*DYNAMICS, *DERIVATIVES]
    )
    command.add_argument("--mechanisms", nargs="*", choices=CLOSED, default=list(CLOSED))
    command.add_argument("--batch", type=_count, help=f"states in a batch ({BATCH})")
    command.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    command.add_argument("--plot", type=Path, metavar="FILE", help="draw the ratios there")
    command.add_argument("--long", action="store_true", help="also chains of 100 and 1000 bodies")
    command.add_argument("--quick", action="store_true", help="few rounds, to try the command")
    command.set_defaults(run=_compare)
    exported = commands.add_parser("c", help="time exported C beside Pinocchio, answers checked")
    exported.add_argument("--quick", action="store_true", help="few rounds, to try the command")
    exported.set_defaults(run=_exported_c)
    return parser


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("a batch has at least one state")
    return value


if __name__ == "__main__":
    raise SystemExit(main())
