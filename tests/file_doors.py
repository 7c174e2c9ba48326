"""Readers of files other than robots, each with a valid file and a function that reads it.

`PYTHONPATH=tests python tests/file_doors.py run.json 10000` tries 10,000 mutated files and prints
each unexpected error with the seed that reproduces it. `run.json 10000 5` starts at seed 5.
"""

import json
import random
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from mutating import mutated

import chasles
from chasles.backends.cache import Artifact
from chasles.cli import scenario, scene
from chasles.cli.manifest import MANIFEST, MOTION
from chasles.cli.motion import Task, computed
from chasles.cli.recording import Recording
from chasles.errors import ChaslesError
from chasles.expr import Variable
from chasles.expr.program import Interface
from chasles.formats import motion


@dataclass(frozen=True)
class Door:
    """A reader of files, with a valid file.

    Attributes
    ----------
    name
        Name of the file in its folder.
    kind
        Kind of file, as in `mutating`.
    seed
        Function that returns the content of a valid file.
    read
        Function that reads a file, given its path.
    """

    name: str
    kind: str
    seed: Callable[[], bytes]
    read: Callable[[Path], Any]


@cache
def arm() -> chasles.Robot:
    return chasles.robots.planar(2)


@cache
def floating() -> chasles.Robot:
    return chasles.robots.random_tree(2, 3, floating=True)


SCENARIO = """\
format = "scenario"
robot = "planar:2"
duration = 0.02
dt = 0.01
integrator = "rk4"
every = 1
[start]
q = {joint1 = 0.3}
qd = [0.1, 0.2]
[control]
law = "pd"
kp = 3.0
kd = [0.1, 0.2]
target = [0.1, 0.2]
[disturbance]
effort = 0.1
hold = 0.1
seed = 3
[[contact]]
body = {kind = "sphere", frame = "link2", radius = 0.1, center = [1.0, 0.0, 0.0]}
surface = {kind = "plane", point = [0.0, 0.0, -5.0]}
law = {kind = "hunt-crossley", stiffness = 1e4, damping = 0.3}
"""


def _scene(path: Path) -> Any:
    return scene.made(scenario.read(path))


def _columns() -> bytes:
    names = [x for found in motion.columns(floating().model).values() for x in found]
    q = floating().random(0, size=3)
    rates = np.random.default_rng(0).normal(size=(3, 2 * floating().nv))
    rows = np.column_stack([0.1 * np.arange(3), q, rates])
    lines = [["t", *names], *([repr(x) for x in row] for row in rows.tolist())]
    return "\n".join(map(",".join, lines)).encode()


@cache
def _folder() -> Path:
    """Return a folder with a simulation stopped after its first part, and the finished one."""
    folder = Path(tempfile.mkdtemp(prefix="chasles-doors-"))
    file = folder / "given.toml"
    file.write_text(SCENARIO.partition("[[contact]]")[0])
    recording = Recording(folder / "run", _scene(file))
    recording.begin(overwrite=False)
    recording.add([recording.scene.simulate(1)])
    shutil.copytree(folder / "run", folder / "done")
    done = Recording(folder / "done", recording.scene)
    done.go_on()
    done.add([done.scene.simulate(None, done.end)])
    done.finish()
    return folder


@cache
def _scene_of() -> scene.Scene:
    return _scene(_folder() / "given.toml")


def _part() -> Path:
    return next((_folder() / "run").glob("part-*.npz"))


def _go_on(path: Path) -> Any:
    """Resume a simulation in which one file is replaced by the given one."""
    folder = path.parent / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_folder() / ("done" if path.name == MOTION else "run"), folder)
    name = path.name
    if path.name.startswith("part"):
        old = next(folder.glob("part-*"))
        old.unlink()
        from chasles.cli.recording import _digest

        digest = _digest(path.read_bytes()) if path.is_file() else "0" * 16
        name = f"part-000001-{digest}.npz"
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        manifest["files"][name] = manifest["files"].pop(old.name)
        (folder / MANIFEST).write_text(json.dumps(manifest))
    target = folder / name
    if target.exists():
        target.unlink()
    (shutil.copytree if path.is_dir() else shutil.copy)(path, target)
    found = Recording(folder, _scene_of())
    found.go_on()
    return found.finish() if found.finished else found.end


def _artifact() -> bytes:
    given = (Variable("q", (2,)),)
    return Artifact(Interface("f", given, given, ()), "float64", 0, 8, b"code" * 20).to_bytes()


DOORS = {
    "scenario": Door("given.toml", "toml", lambda: SCENARIO.encode(), _scene),
    "motion.csv": Door(
        "given.csv", "text", _columns, lambda path: list(motion.read(path, floating().model))
    ),
    "motion.txt": Door(
        "given.txt",
        "text",
        lambda: b"0.1\n0 0 0\n1 2 3\n0.1 0.2 0.3\n# end\n4 5 6\n",
        lambda path: list(motion.read(path, arm().model)),
    ),
    "moved": Door(
        "moved.txt",
        "text",
        lambda: b"0.1\n0 0 0\n1 2 3\n0.1 0.2 0.3\n4 5 6\n",
        lambda path: list(computed(Task(arm(), "planar", path))),
    ),
    "forces": Door(
        "given.csv",
        "text",
        lambda: b"fx,fy,fz,cx,cy,cz\n1,2,3,4,5,6\n",
        lambda path: list(motion.forces(path)),
    ),
    "archive": Door(
        MOTION,
        "npz",
        lambda: (_folder() / "done" / MOTION).read_bytes(),
        lambda path: list(motion.read(path, arm().model)),
    ),
    "run.json": Door(MANIFEST, "json", lambda: (_folder() / "run" / MANIFEST).read_bytes(), _go_on),
    "part": Door("part.npz", "npz", lambda: _part().read_bytes(), _go_on),
    "finished": Door(MOTION, "npz", lambda: (_folder() / "done" / MOTION).read_bytes(), _go_on),
    "cache": Door(
        "given.code", "npz", _artifact, lambda path: Artifact.from_bytes(path.read_bytes())
    ),
}
"""Readers by name; the command takes these names."""


def attempt(door: Door, path: Path) -> bool:
    """Return True if a file is read and False if it is rejected; other errors are raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            door.read(path)
        except ChaslesError:
            return False
    return True


def main(name: str, count: int, first: int = 0) -> None:
    """Read many mutated files with one of the readers."""
    door, read, wrong = DOORS[name], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path, sound = Path(folder, door.name), door.seed()
        for seed in range(first, first + count):
            path.write_bytes(mutated(sound, door.kind, random.Random(seed)))
            try:
                read += attempt(door, path)
            except Exception:
                wrong += 1
                print(f"seed {seed}:", traceback.format_exc().strip()[-900:], flush=True)
    print(f"{name}: {count} files, {read} read, {wrong} wrong")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:4]))
