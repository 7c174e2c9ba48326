"""Regenerate the corpus from the built-in robots and the files of the tests.

Run `python -m fuzz.seeds`. The files in corpus/small are written by hand and are not changed.
"""

import contextlib
import shutil
from pathlib import Path

import mutations
import numpy as np
from serial import random_links
from serial import text as dat_text
from typer.testing import CliRunner

import chasles
from chasles.cli import app
from chasles.cli.simulate import Task, run
from fuzz import CORPUS

MOST = 20_000
"""Maximum size of a robot file in bytes."""

OTHERS = ("panda", "solo12", "ur5_robot", "double_pendulum", "cassie")
"""Robots of other packages, which are not copied into the corpus."""

SCENARIOS = {
    "swing": """format = "scenario"
robot = "planar:2"
duration = 0.01
dt = 0.001
integrator = "rk4"
every = 2

[start]
q = { joint1 = 0.3 }
random = 1

[control]
law = "pd"
stiffness = 9.0
damping = [1.0, 2.0]
target = [0.1, 0.2]

[disturbance]
effort = 0.1
hold = 0.002
seed = 3
""",
    "drop": """format = "scenario"
robot = "planar:1"
duration = 0.02
dt = 0.002
integrator = "semi-implicit"
dissipation = true

[[contact]]
body = { kind = "point", frame = "tip" }
surface = { kind = "plane" }
law = { kind = "hunt-crossley", stiffness = 1e4, damping = 1e2 }
""",
}
TABLES = {
    "swing.csv": "t,joint1.q,joint1.qd,joint1.qdd\n0,0,0,0\n0.1,0.1,0,0\n0.2,0,0,0\n",
    "plain.mot": "0 0 0\n0.1 0.2 0.3\n-1 2.5e-3 4\n",
}


def main() -> None:
    """Write all files of the corpus except those in corpus/small."""
    for folder in ("robots", "scenarios", "tables", "run", "stopped"):
        shutil.rmtree(CORPUS / folder, ignore_errors=True)
    for folder in ("robots", "scenarios", "tables"):
        (CORPUS / folder).mkdir(parents=True)
    for name, text in (mutations.seeds() | extra()).items():
        if len(text.encode()) <= MOST and name.partition(".")[0] not in OTHERS:
            (CORPUS / "robots" / name).write_text(text, "utf-8")
    for name, text in SCENARIOS.items():
        (CORPUS / "scenarios" / f"{name}.toml").write_text(text)
    for name, text in TABLES.items():
        (CORPUS / "tables" / name).write_text(text)
    words = ["simulate", str(CORPUS / "scenarios" / "swing.toml"), "--no-plots"]
    CliRunner().invoke(app, [*words, "-o", str(CORPUS / "run")])
    stopped()


def stopped() -> None:
    """Write the folder of an interrupted run: its parts can be continued with --resume."""
    target, folder = CORPUS / "scenarios" / "swing.toml", CORPUS / "stopped"
    values = {"duration": 0.9, "dt": 5e-4, "every": 100}
    recording = Task(str(target), values, folder, save=0.0).recording()
    asked = iter([False, False])
    run(recording, lambda t: None, lambda: next(asked, True), 0.0)


def extra() -> dict[str, str]:
    """Return the text of robots in every format that can represent them, by file name."""
    found, folder = dict[str, str](), CORPUS / "made"
    folder.mkdir()
    for robot in (chasles.robots.puma560(), chasles.robots.four_bar()):
        for suffix in (".urdf", ".sdf", ".toml", ".xml", ".dat"):
            with contextlib.suppress(chasles.ChaslesError):
                path = Path(folder, robot.name + suffix)
                chasles.save(robot, path)
                found[path.name] = path.read_text()
    links = random_links(np.random.default_rng(1), [0, 1, 0])
    found["arm.dat"] = dat_text(links, np.array([0.0, 0.0, -9.81]), np.zeros((0, 6)))
    shutil.rmtree(folder)
    return found


if __name__ == "__main__":
    main()
