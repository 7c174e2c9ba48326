"""Time the viewer in a browser that draws without a graphics card."""

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
    """What the command takes."""
    parser.add_argument("--quick", action="store_true", help="one short round, to try the command")
    parser.add_argument("--robot", metavar="FILE", help="another robot, in place of the two")


def run(chosen: argparse.Namespace) -> int:
    """Measure and show."""
    if CHROMIUM is None:
        Console(stderr=True).print("error: no Chromium; install it (Debian: chromium)")
        return 1
    robots = [chasles.load(chosen.robot)] if chosen.robot else _robots()
    rounds, seconds = (1, 1.0) if chosen.quick else (5, 3.0)
    rates = ("first frame", "updates/s", "frames/s")
    table = Table("robot", "joints", *rates, "an update", "a frame")
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
    table.add_row("goal", "", *goals, "", "", end_section=True)
    output().print(table)
    output().print(
        f"A page of {PAGE[0]} x {PAGE[1]} pixels, a motion played; the best of {rounds} rounds. "
        "The last two columns are processor time."
    )
    return 0


def _robots() -> list[chasles.Robot]:
    """One without meshes, one with many."""
    return [chasles.robots.humanoid(), chasles.load(path_of(CASES["talos"]))]
