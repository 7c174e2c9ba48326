"""Run and time `chasles verify` for all built-in robots and for robots of a package."""

import argparse
import json
import operator
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Console

import chasles
from chasles.cli.options import Loading, find

SIZES = {
    "planar": ":3",
    "zigzag": ":4",
    "general_chain": ":6",
    "general_tree": ":7,2",
    "random_tree": ":9,14",
}
"""Arguments of the built-in robots that require arguments."""

REAL = (
    "ur5_robot",
    "panda",
    "kinova",
    "talos_left_arm",
    "so101",
    "allegro_right_hand",
    "baxter",
    "solo12 --floating",
    "go2 --floating",
    "bolt --floating",
    "talos_reduced --floating",
)
"""Robots of the package example-robot-data: arms, a hand, and legged robots."""


@dataclass(frozen=True)
class Row:
    """Results of `verify` for a robot, and its wall and processor time (s)."""

    robot: str
    freedoms: int
    results: list[dict[str, Any]]
    wall: float
    work: float

    @property
    def wrong(self) -> int:
        """Number of comparisons that failed."""
        return sum(not result["ok"] for result in self.results)

    @property
    def unchecked(self) -> int:
        """Number of comparisons that were skipped, because the robot is too ill-conditioned."""
        return sum(not result["checked"] for result in self.results)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--robots", nargs="+", help='robots, such as "solo12 --floating"')
    parser.add_argument("--full", action="store_true", help="run chasles verify --full")


def run(chosen: argparse.Namespace) -> int:
    """Verify all robots and print the tables of docs/verify.md. Return 1 if one fails, else 0."""
    built = [name + SIZES.get(name, "") for name in chasles.robots.ROBOTS]
    more = ["--full"] if chosen.full else []
    rows = []
    _head(
        "robot", "degrees of freedom", "comparisons", "failed", "unchecked", "wall time", "CPU time"
    )
    for robot in chosen.robots or (*built, *REAL):
        row = verified(robot, more)
        rows.append(row)
        seconds = f"{row.wall:.0f} s", f"{row.work:.0f} s"
        _line(robot, row.freedoms, len(row.results), row.wrong, row.unchecked, *seconds)
    print()
    _head("check", "largest error", "tolerance", "function, method", "robot")
    for name, (result, robot) in worst(rows).items():
        what = f"{result['function']}, {result['method']}"
        _line(name, f"{result['error']:.0e}", f"{result['tolerance']:.0e}", what, robot)
    return int(any(row.wrong for row in rows))


def verified(robot: str, more: list[str]) -> Row:
    """Run `chasles verify` in a new process with an empty cache."""
    words = robot.split()
    freedoms = find(words[0], Loading(floating="--floating" in words)).nv
    with tempfile.TemporaryDirectory() as empty:
        start, before = time.perf_counter(), _work()
        said = subprocess.run(
            [sys.executable, "-m", "chasles", "verify", *words, *more, "--json"],
            env=os.environ | {"CHASLES_CACHE": empty},
            stdout=subprocess.PIPE,
            check=False,
        )
        wall, work = time.perf_counter() - start, _work() - before
    found = json.loads(said.stdout)
    for result in found["results"]:
        for number in ("error", "tolerance"):  # null stands for a value that is not finite
            result[number] = float("inf") if result[number] is None else result[number]
        if not result["ok"]:
            Console(stderr=True).print(robot, result, markup=False)
    return Row(robot, freedoms, found["results"], wall, work)


def worst(rows: Iterable[Row]) -> dict[str, tuple[dict[str, Any], str]]:
    """Return the result with the largest ratio of error to tolerance, and its robot, by check."""
    found: dict[str, tuple[dict[str, Any], str]] = {}
    for row in rows:
        for result in filter(operator.itemgetter("checked"), row.results):
            other = found.get(result["check"])
            if other is None or _share(result) > _share(other[0]):
                found[result["check"]] = result, row.robot
    return found


def _share(result: dict[str, Any]) -> float:
    return float(result["error"] / (result["tolerance"] or 1e-300))


def _head(*words: str) -> None:
    _line(*words)
    print("|---" * len(words) + "|")


def _line(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def _work() -> float:
    """Return the processor time (s) of all child processes that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
