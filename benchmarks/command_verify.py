"""Time `chasles verify` on every built-in robot and on real ones; its answers are the check."""

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
"""Arguments of the built-in robots that need some."""

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
"""Robots of the package example-robot-data: arms, a hand, and legged ones that float."""


@dataclass(frozen=True)
class Row:
    """One robot: what `verify` said, and the seconds it took."""

    robot: str
    freedoms: int
    results: list[dict[str, Any]]
    wall: float
    work: float

    @property
    def wrong(self) -> int:
        """How many comparisons differ."""
        return sum(not result["ok"] for result in self.results)

    @property
    def unchecked(self) -> int:
        """How many could not be made, since the robot leaves no digits."""
        return sum(not result["checked"] for result in self.results)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--robots", nargs="+", help='some only, like "solo12 --floating"')
    parser.add_argument("--full", action="store_true", help="with --full")


def run(chosen: argparse.Namespace) -> int:
    """Verify each robot and print the tables of docs/verify.md; 1 where something differs."""
    built = [name + SIZES.get(name, "") for name in chasles.robots.ROBOTS]
    more = ["--full"] if chosen.full else []
    rows = []
    _head("robot", "freedoms", "comparisons", "differ", "unchecked", "wall", "processor")
    for robot in chosen.robots or (*built, *REAL):
        row = verified(robot, more)
        rows.append(row)
        seconds = f"{row.wall:.0f} s", f"{row.work:.0f} s"
        _line(robot, row.freedoms, len(row.results), row.wrong, row.unchecked, *seconds)
    print()
    _head("check", "worst error", "tolerance", "of", "robot")
    for name, (result, robot) in worst(rows).items():
        what = f"{result['function']}, {result['method']}"
        _line(name, f"{result['error']:.0e}", f"{result['tolerance']:.0e}", what, robot)
    return int(any(row.wrong for row in rows))


def verified(robot: str, more: list[str]) -> Row:
    """The command in a process of its own, with nothing compiled yet."""
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
        for number in ("error", "tolerance"):  # null is a number that is not finite
            result[number] = float("inf") if result[number] is None else result[number]
        if not result["ok"]:
            Console(stderr=True).print(robot, result, markup=False)
    return Row(robot, freedoms, found["results"], wall, work)


def worst(rows: Iterable[Row]) -> dict[str, tuple[dict[str, Any], str]]:
    """Of each check, the result nearest to its tolerance, and whose it is."""
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
    """Processor time of the processes that have ended, in s."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
