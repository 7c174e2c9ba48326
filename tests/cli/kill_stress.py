"""Kill and resume simulations: `python kill_stress.py COUNT [SEED]`, or `files COUNT`.

A forked child with all modules loaded simulates in parts into a folder. SIGKILL ends it at a random
moment: at the start, between steps, or while it writes a part, the manifest or the motion file. The
next child resumes. When a motion is complete, its file must be bitwise identical to that of an
uninterrupted run, and the folder must have the same file names. The user's files in the folder must
not change. `files` kills writers of robot files and of C code; each file must then be the old one
or the new one.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from typer.testing import CliRunner

import chasles
from chasles.cli import app

ARM, BOUNCES = "planar:2 --random 1 --integrator", "rigid,restitution=0.9"
WAYS = {
    "compiled": f"{ARM} rk4 --duration 1 --save 0",
    "disturbed": f"{ARM} euler --duration 1 --save 0 --disturbance effort=1,hold=0.02,seed=3",
    "dopri5": f"{ARM} dopri5 --duration 4 --rtol 1e-9 --save 0.005",
    "bouncing": f"ball.toml --q 0.2 --duration 1 --foot ball:0.1 --ground {BOUNCES} --save 0.005",
    "overwritten": f"{ARM} rk4 --duration 0.5 --save 0 --overwrite",
}
"""Arguments of simulations that take about 0.1 s; after a kill, the last one starts over."""

BALL = """
format = "mechanism"
[[link]]
name = "ball"
mass = 2.0
inertia = [0.1, 0.1, 0.1]
[[joint]]
name = "fall"
kind = "prismatic"
child = "ball"
axis = [0, 0, 1]
"""

MINE = {"notes.txt": "mine", "part-000001-notes.npz": "mine", ".download.part": "another's"}
"""Files of the user and of other programs."""


def child(words: list[str]) -> int:
    """Start a simulation in a child process and return its process ID."""
    pid = os.fork()
    if pid == 0:
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            app(["simulate", *words, "--no-plots"], standalone_mode=True)
        except SystemExit as exit:
            os._exit(exit.code if isinstance(exit.code, int) else 1)
        finally:
            os._exit(99)
    return pid


def unbroken(words: list[str], folder: str) -> tuple[bytes, float]:
    """Return the motion file of an uninterrupted run, and the run time (s)."""
    began = time.monotonic()
    _, status = os.waitpid(child([*words, "-o", folder]), 0)
    assert os.waitstatus_to_exitcode(status) == 0, words
    return Path(folder, "motion.npz").read_bytes(), time.monotonic() - began


def trial(way: str, draw: random.Random, most: int) -> Counter[str]:
    """Run one motion, killed up to `most` times; count the states of the folder at the kills."""
    words, folder, met = WAYS[way].split(), Path("killed"), Counter[str]()
    expected, takes = unbroken(words, "whole")
    folder.mkdir()
    for name, text in MINE.items():
        (folder / name).write_text(text)
    while met.total() < most:
        begun = (folder / "run.json").exists()
        how = ["--resume"] if begun and "--overwrite" not in words else []
        pid = child(
            [word for word in words if not how or word != "--overwrite"] + ["-o", "killed", *how]
        )
        time.sleep(draw.uniform(0.0, 1.1) * takes)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            assert os.waitstatus_to_exitcode(status) == 0, f"{way}: {status}"
            if "--overwrite" not in words:
                break
        else:
            left = bool(list(folder.glob(".chasles-*.part")))
            done, parts = (
                (folder / "motion.npz").exists(),
                len(list(folder.glob("part-*-*.npz"))) - 1,
            )
            state = (
                "over" if done else "in parts" if parts > 0 else "begun" if begun else "not begun"
            )
            met[f"{state}, while writing" if left else state] += 1
    resume = ["--resume"] if (folder / "run.json").exists() and "--overwrite" not in words else []
    _, status = os.waitpid(child([*words, "-o", "killed", *resume]), 0)
    assert os.waitstatus_to_exitcode(status) == 0, f"{way}: it does not go on after {met}"
    assert (folder / "motion.npz").read_bytes() == expected, f"{way}: other bytes after {met}"
    names = {"run.json", "scenario.toml", "motion.npz", *MINE}
    assert {path.name for path in folder.iterdir()} == names, list(folder.iterdir())
    assert all((folder / name).read_text() == text for name, text in MINE.items())
    for used in ("whole", "killed"):
        shutil.rmtree(used)
    return met


def main(count: int, seed: int = 0, ways: Sequence[str] = tuple(WAYS)) -> Counter[str]:
    """Kill simulations of all kinds `count` times; count the states of the folder at the kills."""
    draw, met, began = random.Random(seed), Counter[str](), time.monotonic()
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            Path("ball.toml").write_text(BALL)
            for way in ways:  # load all modules and code for the children
                done = CliRunner().invoke(
                    app, ["simulate", *WAYS[way].split(), "-o", way, "--no-plots"]
                )
                assert done.exit_code == 0, done.output
            motions = 0
            while met.total() < count:
                way = ways[motions % len(ways)]
                met += trial(way, draw, min(10, count - met.total()))
                motions += 1
        finally:
            os.chdir(here)
    print(f"{met.total()} kills, {motions} motions, {time.monotonic() - began:.0f} s")
    for state, times in met.most_common():
        print(f"{times:6} {state}")
    return met


def files(count: int) -> None:
    """Kill a process that writes two robots to the same files in turn."""
    robots, draw = (chasles.robots.planar(1), chasles.robots.planar(2)), random.Random(0)
    with tempfile.TemporaryDirectory() as place:
        wholes: dict[str, set[bytes]] = {}
        for robot in robots:
            write(robot, Path(place))
            for path in Path(place).rglob("*.*"):
                wholes.setdefault(path.name, set()).add(path.read_bytes())
        left = 0
        for _ in range(count):
            pid = os.fork()
            if pid == 0:
                try:
                    while True:
                        for robot in robots:
                            write(robot, Path(place))
                finally:
                    os._exit(99)
            time.sleep(draw.uniform(0.0, 0.05))
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            assert os.WIFSIGNALED(status), "the writer ended by itself"
            found = [path for path in Path(place).rglob("*") if path.is_file()]
            parts = [path for path in found if path.name.startswith(".chasles-")]
            for path in set(found) - set(parts):
                assert path.read_bytes() in wholes[path.name], path
            left += bool(parts)
            # Before it writes, a writer removes files that earlier writers left in the folder.
            most = Counter(path.parent for path in set(found) - set(parts))
            here = Counter(path.parent for path in parts)
            assert here <= most, "files of earlier writers were not collected"
        write(robots[0], Path(place))
        assert not list(Path(place).rglob(".chasles-*"))
    print(f"{count} kills of writers, {left} while a file was being written")


def write(robot: chasles.Robot, place: Path) -> None:
    """Write a robot file and exported C code of one function, replacing existing files."""
    chasles.save(robot, place / "robot.toml", overwrite=True)
    chasles.export(robot, "mass_matrix", place / "c", prefix="arm", overwrite=True)


if __name__ == "__main__":
    if sys.argv[1] == "files":
        files(int(sys.argv[2]))
    else:
        main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
