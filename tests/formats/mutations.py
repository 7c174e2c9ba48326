"""Mutated robot files: real files with random mistakes, which must load or be refused.

`PYTHONPATH=tests python tests/formats/mutations.py 10000` tries 10000 files and prints failures
with their seeds. Arguments `10000 5 .xacro` start at seed 5 and select one format.
`tests/mutating.py` makes the mistakes. With a negative count, MuJoCo compiles MJCF files in this
process.
"""

import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import files
from pathlib import Path

import sdf_files
import xacro_files
from mutating import mutated
from readers_here import readers_here

import chasles
from chasles.formats import mjcf_source, xml_file
from chasles.lint import lint
from chasles.model import ModelError

SECONDS = 5.0
"""Maximum processor time per file (s)."""

KINDS = {".urdf": "xml", ".sdf": "xml", ".xacro": "xml", ".xml": "xml", ".toml": "toml"}
"""Kinds of files in `mutating`, by suffix."""


def seeds() -> dict[str, str]:
    """Return the texts of real files, by name."""
    found = {f"{name}.sdf": text for name, text in sdf_files.FILES.items()}
    found |= {f"{name}.xacro": text for name, text in xacro_files.FILES.items()}
    listed = [f for f in files("example-robot-data") or () if f.name.endswith(".urdf")]
    for name in ("panda", "solo12", "ur5_robot", "double_pendulum", "cassie"):
        path = next((f for f in listed if f.stem == name), None)
        if path is not None:
            found[f"{name}.urdf"] = Path(str(path.locate())).read_text()
    with tempfile.TemporaryDirectory() as folder:
        for robot in ("planar", "general_tree"):
            made = getattr(chasles.robots, robot)(*(3, 2)[: 1 + (robot == "general_tree")])
            for suffix in (".urdf", ".sdf", ".toml", ".xml"):
                path = Path(folder, robot + suffix)
                chasles.save(made, path)
                found[path.name] = path.read_text()
        for robot in ("four_bar", "delta"):
            path = Path(folder, f"{robot}.toml")
            chasles.save(getattr(chasles.robots, robot)(), path)
            found[path.name] = path.read_text()
    source = Path(chasles.robots.__file__).with_name("puma560.toml")
    return found | {"puma560.toml": source.read_text(), "dh.toml": DH, "links.dat": DAT}


DH = """\
format = "dh"
convention = "modified"
[units]
angle = "deg"
[base]
position = [0.1, 0, 0.5]
rpy = [0, 90, 0]
[[joint]]
theta = 30
d = 0.12
a = 0.1
alpha = 90
mass = 1.5
center = [0.01, 0, -0.02]
inertia = [2, 3, 4]
limits = [-180, 90]
velocity = 360
effort = 20
[[joint]]
kind = "prismatic"
theta = 0
d = 0.2
a = 0
alpha = 0
name = "slide"
link = "boom"
mass = 2.0
inertia = [1, 1, 1, 0, 0, 0]
damping = 0.1
"""
DAT = """3
0 0.1 0.4 0 0.3 1.5708
2.0 0.02 0 0 0.03 0 0.04
-0.1 0 0
1 0 0.5 0 0 0
1.0 0.01 0 0 0.01 0 0.01
0 0 -0.2
0 0 0 0.05 0.2 0
0.5 0.001 0 0 0.002 0 0.003
0 0 0.1
0 0 -9.81
"""


def put(folder: Path) -> None:
    """Write the files that other files include into a folder."""
    sdf_files.put(folder)
    xacro_files.put(folder)


def attempt(
    path: Path, hear: Callable[[str], object] = lambda text: None, *, mujoco: bool = False
) -> bool:
    """Return True if a file loads and can be linted; without `mujoco`, only parse MJCF files.

    NumPy warnings count as errors, because users should get a message about the mistake in the
    file.
    """
    with warnings.catch_warnings(), readers_here(mujoco=mujoco):
        warnings.simplefilter("error")
        try:
            if path.suffix == ".xml" and not mujoco:
                mjcf_source._lines(xml_file.parse(str(path), path.read_bytes()))
            else:
                lint(path, meshes=False)
                chasles.load(path)
        except ModelError as error:
            hear(str(error))
            return False
    return True


def cases(count: int, first: int = 0, kind: str = "") -> Iterator[tuple[int, str, bytes]]:
    """Yield seed, name and contents of mutated files, optionally of one suffix only."""
    known = seeds()
    names = sorted(name for name in known if name.endswith(kind))
    for seed in range(first, first + abs(count)):
        rng = random.Random(seed)
        name = names[seed % len(names)]
        kind_of = KINDS.get(Path(name).suffix, "text")
        yield seed, name, mutated(known[name].encode(), kind_of, rng)


def main(count: int, first: int = 0, kind: str = "") -> None:
    """Try mutated files, with a time limit for each file."""
    loaded, wrong, slowest = 0, 0, 0.0

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS:g} s")

    signal.signal(signal.SIGPROF, stop)
    with tempfile.TemporaryDirectory() as folder:
        put(Path(folder))
        for seed, name, data in cases(count, first, kind):
            path = Path(folder, name)
            path.write_bytes(data)
            start = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                loaded += attempt(path, mujoco=count < 0)
            except Exception:
                wrong += 1
                print(f"seed {seed}, {name}:", traceback.format_exc().strip()[-700:], flush=True)
            signal.setitimer(signal.ITIMER_PROF, 0)
            slowest = max(slowest, time.process_time() - start)
    print(f"{abs(count)} files, {loaded} loaded, {wrong} wrong; the slowest {slowest:.2f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
