"""Time the viewer in a browser without a graphics card."""

import argparse

from rich.console import Console
from rich.table import Table

import chasles
from benchmarks.browser import CHROMIUM
from benchmarks.console import output
from benchmarks.robots import CASES, path_of
from benchmarks.targets import VIEW
from benchmarks.view import PAGE, measure


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--quick", action="store_true", help="short trial run with one round")
    parser.add_argument(
        "--robot", metavar="FILE", help="robot file to use instead of the two default robots"
    )


def run(chosen: argparse.Namespace) -> int:
    """Run the benchmark and print the results. Return 1 without Chromium, else 0."""
    if CHROMIUM is None:
        Console(stderr=True).print("error: Chromium not found; install it (Debian: chromium)")
        return 1
    robots = [chasles.load(chosen.robot)] if chosen.robot else _robots()
    rounds, seconds = (1, 1.0) if chosen.quick else (5, 3.0)
    rates = ("first frame", "updates/s", "frames/s")
    table = Table("robot", "joints", *rates, "CPU per update", "CPU per frame")
    for robot in robots:
        found = measure(robot, rounds, seconds)
        table.add_row(
            robot.name,
            str(len(robot.joints)),
            f"{found.first:.2f} s",
            f"{found.updates:.1f}",
            f"{found.pictures:.1f}",
            f"{1e3 * found.server:.1f} ms",
            f"{1e3 * found.browser:.0f} ms",
        )
    goals = (f"{VIEW['first picture']:g} s", f"{VIEW['updates']:g}", f"{VIEW['pictures']:g}")
    table.add_row("target", "", *goals, "", "", end_section=True)
    output().print(table)
    output().print(
        f"Motion played on a page of {PAGE[0]} x {PAGE[1]} pixels; best of {rounds} rounds. "
        "The last two columns show processor times."
    )
    return 0


def _robots() -> list[chasles.Robot]:
    """Return one robot without meshes, and one with many meshes."""
    return [chasles.robots.humanoid(), chasles.load(path_of(CASES["talos"]))]
