"""Time GPU kernels, and compare them with the limits of the GPU's memory and arithmetic."""

import argparse
from pathlib import Path

from rich.console import Console

from benchmarks import gpu, gpu_peers, gpu_rollouts
from benchmarks.console import count, output
from benchmarks.robots import CASES
from benchmarks.states import INPUTS


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--robots", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--functions", nargs="+", choices=INPUTS, default=list(gpu.FUNCTIONS))
    parser.add_argument("--dtypes", nargs="+", choices=gpu.DTYPES, default=list(gpu.DTYPES))
    parser.add_argument("--counts", nargs="+", type=count, default=list(gpu.COUNTS))
    parser.add_argument(
        "--peers", action="store_true", help="time only the comparison with PyTorch and MJX"
    )
    parser.add_argument(
        "--rollouts",
        nargs="*",
        choices=gpu_rollouts.ROLLOUTS,
        help="time only rollouts (default: all)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to this file")


def run(chosen: argparse.Namespace) -> int:
    """Run the benchmark, print the results and write them. Return 1 after an error, else 0."""
    errors = Console(stderr=True)
    try:
        if chosen.peers:
            gpu_peers.show(gpu_peers.measure(progress=errors.print), output())
            return 0
        if chosen.rollouts is not None:
            cases = chosen.rollouts or list(gpu_rollouts.ROLLOUTS)
            found = gpu_rollouts.measure(cases, chosen.dtypes, gpu_rollouts.COUNTS, errors.print)
            gpu_rollouts.show(*found, output())
            return 0
        machine, rows = gpu.measure(
            chosen.robots, chosen.functions, chosen.dtypes, chosen.counts, errors.print
        )
    except (RuntimeError, ImportError) as error:
        errors.print(f"error: {error}", markup=False)
        return 1
    gpu.show(machine, rows, output())
    if chosen.json is not None:
        gpu.write(machine, rows, chosen.json)
    return 0
