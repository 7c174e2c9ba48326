"""Compare the speed of chasles, Pinocchio and MuJoCo in one run."""

import argparse
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.alone import measure
from benchmarks.closed_loops import CLOSED, closed_loops
from benchmarks.compare import FULL, QUICK, compare
from benchmarks.console import count, output
from benchmarks.plot import plot
from benchmarks.report import show, write
from benchmarks.robots import CASES
from benchmarks.states import INPUTS
from benchmarks.targets import BATCH, DERIVATIVES, DYNAMICS


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--robots", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--functions", nargs="+", choices=INPUTS, default=[*DYNAMICS, *DERIVATIVES])
    parser.add_argument("--mechanisms", nargs="*", choices=CLOSED, default=list(CLOSED))
    parser.add_argument("--batch", type=count, help=f"states per batch (default: {BATCH})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="plot the ratios to this file")
    parser.add_argument("--quick", action="store_true", help="short trial run with few rounds")


def run(chosen: argparse.Namespace) -> int:
    """Run the comparison, print and write the results. Return 1 if a result is wrong, else 0."""
    effort = QUICK if chosen.quick else FULL
    if chosen.batch is not None:
        effort = replace(effort, batch=chosen.batch)
    errors = Console(stderr=True)
    result = compare(chosen.robots, chosen.functions, effort, errors.print)
    closed = closed_loops(chosen.mechanisms, effort, errors.print)
    alone = measure(effort, progress=errors.print)
    whole = replace(result, rows=result.rows + closed)
    show(whole, alone, output())
    if chosen.json is not None:
        write(whole, alone, chosen.json)
    if chosen.plot is not None:
        plot(result, chosen.plot)
    return 0
