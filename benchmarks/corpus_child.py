"""Read robot files in a separate process, which `benchmarks.corpus` starts.

Each input line names a file, as JSON. The output lines for a file are the stages that have been
reached, followed by the result. The file and the stage are therefore known if a reader crashes or
hangs.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import chasles
from chasles import peers
from chasles.backends.llvm.code import Machine
from chasles.errors import ChaslesError
from chasles.peers.drake import Drake
from chasles.peers.mujoco import MuJoCo
from chasles.peers.pinocchio import Pinocchio

READERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "URDF": ("pinocchio", Pinocchio),
    "xacro": ("pinocchio", Pinocchio),
    "MJCF": ("mujoco", MuJoCo),
    "SDF": ("drake", Drake),
}
"""Reference library and its reader for each format."""

SEEDS = (0, 1)
"""Seeds of the random states at which robots are compared."""


def tried(path: Path, format: str, stage: Callable[[str], None]) -> dict[str, Any]:
    """Read a file with the reference reader and with chasles, and compare the robots."""
    library, reader = READERS[format]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        stage("reference")
        try:
            file = expanded(path, folder) if format == "xacro" else path
            peer = reader(file, floating=False)
            if format == "SDF" and peer.plant.num_bodies() == 1:
                raise ValueError("the file has no links")
        except Exception as error:  # each library has its own types of errors
            found["unread"] = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        stage("here")
        try:
            robot = chasles.load(path, snap=False, mimic=False)
        except ChaslesError as error:
            return found | {"refused": error.code, "message": str(error)[:400]}
        found |= {"notes": list(robot.notes), "idle": list(robot.model.idle)}
        if "unread" in found:
            return found
        stage("comparison")
        if format == "SDF":
            robot = robot.with_gravity(peer.gravity)  # Drake ignores the gravity of files
        try:
            return found | compared([peers.compare(robot, library, file, seed=k) for k in SEEDS])
        except ChaslesError as error:
            return found | {"first": error.code, "cause": str(error)[:400]}


def compared(agreements: list[peers.Agreement]) -> dict[str, Any]:
    """Return the largest error of each term, and the first difference with its cause."""
    errors: dict[str, float] = {}
    for agreement in agreements:
        for name, term in agreement.terms:
            errors[name] = max(errors.get(name, 0.0), term.error)
    different = next((x for x in agreements if not x.ok), agreements[0])
    return {"errors": errors, "first": different.first, "cause": different.cause}


def expanded(path: Path, folder: str) -> Path:
    """Expand a xacro file to URDF. `$(find)` searches the parent folders of the file."""
    import xacro

    packages = ModuleType("ament_index_python.packages")

    def share(package: str) -> str:
        for above in path.absolute().parents:
            for place in (above, above / package):
                if place.name == package and place.is_dir():
                    return str(place)
        raise LookupError(package)

    packages.get_package_share_directory = share  # type: ignore[attr-defined]
    sys.modules |= {"ament_index_python": packages, "ament_index_python.packages": packages}
    file = Path(folder, "expanded.urdf")
    file.write_text(xacro.process_file(str(path)).toxml(), "utf-8")
    return file


@contextmanager
def answering() -> Iterator[Callable[[Any], None]]:
    """Yield a function that sends JSON lines to the parent. Other output goes to stderr."""
    mine = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with mine:
        yield lambda line: print(json.dumps(line), file=mine, flush=True)


def main() -> None:
    """Process all files from standard input. Code is compiled without optimization."""
    quick = replace(Machine.host(), effort=0)
    Machine.host = staticmethod(lambda: quick)  # type: ignore[assignment]
    with answering() as answer:
        for line in sys.stdin:
            asked = json.loads(line)
            answer(tried(Path(asked["path"]), asked["format"], answer))


if __name__ == "__main__":
    main()
