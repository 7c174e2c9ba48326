"""Measure the accuracy of identification for simulated robots, or speed with `--speed`."""

import argparse

from rich.table import Table

from benchmarks.console import count, output
from benchmarks.identified import BAD, ROBOTS, Accuracy, measure
from benchmarks.normal_equations import measure as measure_speed
from benchmarks.targets import IDENTIFICATION, NORMAL_EQUATIONS


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--robots", nargs="+", choices=ROBOTS, default=list(ROBOTS))
    parser.add_argument("--speed", action="store_true", help="Time the normal equations instead.")
    parser.add_argument(
        "--states", type=count, default=200_000, help="States to time; default: 200,000."
    )
    parser.add_argument(
        "--samples", type=count, default=2000, help="Number of samples; default: 2000."
    )
    parser.add_argument("--draws", type=count, default=5, help="Draws of the noise; default: 5.")


def met(found: Accuracy) -> bool:
    """Return True if all accuracy targets are met."""
    return (
        found.inside >= IDENTIFICATION["inside"]
        and found.error <= IDENTIFICATION["error"]
        and found.possible
        and found.terms <= IDENTIFICATION["terms"]
        and found.diagnosed == BAD
    )


def speed(states: int) -> int:
    """Print the throughput of the normal equations. Return 0."""
    table = Table(
        "robot", "chasles", "NumPy with Pinocchio's regressor", "ratio",
        title=f"normal equations, states/s on one core; target ratio: {NORMAL_EQUATIONS:g}",
    )  # fmt: skip
    for name in ("panda", "ur5"):
        found = measure_speed(name, states)
        ratio = found.ours / found.theirs
        table.add_row(name, f"{found.ours:,.0f}", f"{found.theirs:,.0f}", f"{ratio:.0f}")
    output().print(table)
    return 0


def run(chosen: argparse.Namespace) -> int:
    """Print the table. Return 1 if an accuracy target is missed, else 0."""
    if chosen.speed:
        return speed(chosen.states)
    table = Table(
        "robot", "base parameters", "condition number", "within 3 deviations", "rms deviation",
        "error on a new motion", "positive definite", "friction and offsets", "bad data diagnosed",
        title=f"1 % torque noise, {chosen.samples} states, {chosen.draws} draws",
    )  # fmt: skip
    good = True
    for name in chosen.robots:
        found = measure(name, chosen.samples, chosen.draws)
        good = good and met(found)
        table.add_row(
            ROBOTS[name][0], str(found.base), f"{found.condition:.0f}", f"{found.inside:.1%}",
            f"{found.rms:.2f}", f"{found.error:.3f} x noise", "yes" if found.possible else "NO",
            f"{found.terms:.2%}", f"{len(found.diagnosed)} of {len(BAD)}",
        )  # fmt: skip
    output().print(table)
    return 0 if good else 1
