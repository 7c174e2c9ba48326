"""The folder of a simulation: numbered parts while it runs, one motion file when it is over.

    scenario.toml               what is simulated
    run.json                    of which scenario, robot and version this is
    part-000001-DIGEST.npz      states, and where they stopped; DIGEST is of the file's bytes
    motion.npz                  all states: the parts are gone then

A file is whole or not there: it is written under another name, brought to the disk, and renamed. A
run that is killed at any moment goes on from its last part.
"""

import hashlib
import io
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from chasles.cli.scene import Scene
from chasles.errors import FileError, ModelError, said
from chasles.formats.files import store, whole
from chasles.formats.motion import MOTION_FORMAT
from chasles.rollouts import End, Trajectory
from chasles.version import VERSION

SCENARIO, RUN, MOTION = "scenario.toml", "run.json", "motion.npz"
PART = re.compile(r"part-(\d{6,})-([0-9a-f]{16})\.npz")
END, MEMORY = "end.", "memory."
"""Before the names of a part's arrays that say where it stopped, and what it remembers there."""


class Recording:
    """A folder; end: where its last part stopped; notes: what was damaged in it, or odd."""

    def __init__(self, folder: Path, scene: Scene) -> None:
        self.folder, self.scene = folder, scene
        self.notes: list[str] = []
        self.end: End | None = None
        self._parts: list[Path] = []

    # Beginning and going on -------------------------------------------------------------------

    def begin(self, *, overwrite: bool) -> None:
        """Make the folder ready for a simulation from its start."""
        if (self.folder / RUN).exists() and not overwrite:
            problem = "there is a simulation in this folder"
            remedy = (
                "go on with it by --resume, replace it by --overwrite, or choose another --output"
            )
            raise ModelError("E-CLI-031", problem, remedy, file=self.folder)
        with self._placed("the folder cannot be used; choose another --output"):
            self.folder.mkdir(parents=True, exist_ok=True)
            for path in (self.folder / RUN, self.folder / MOTION, *self._found()):
                path.unlink(missing_ok=True)
            store(self.folder / SCENARIO, self.scene.scenario.text(self.folder.absolute()))
            store(self.folder / RUN, json.dumps(self._identity(), indent=1) + "\n")

    def go_on(self) -> None:
        """Find how far the simulation has come; parts after a damaged one do not count."""
        self._check_identity()
        for path in self._found():
            arrays = _intact(path)
            if arrays is None or str(arrays["after"]) != self._last:
                self.notes.append(f"{path}: damaged, or after a damaged part; computed again")
                path.unlink()
                continue
            self._parts.append(path)
            self.end = _end(arrays)

    def _identity(self) -> dict[str, str]:
        return {
            "format": "chasles-run-1",
            "chasles": VERSION,
            "scenario": self.scene.scenario.digest(),
            "robot": self.scene.digest,
            "name": self.scene.robot.name,
        }

    def _check_identity(self) -> None:
        try:
            there = json.loads((self.folder / RUN).read_text("utf-8"))
        except FileNotFoundError:
            problem = "there is no simulation to go on with"
            raise ModelError("E-CLI-032", problem, "leave out --resume", file=self.folder) from None
        except (OSError, ValueError) as error:
            remedy = "simulate anew"
            raise ModelError("E-CLI-033", f"{error}", remedy, file=self.folder / RUN) from None
        for key, here in self._identity().items():
            if not isinstance(there, dict) or there.get(key) != here:
                what = {"chasles": "version of chasles", "format": "kind of folder"}.get(key, key)
                problem = (
                    f"the simulation in this folder is of another {what} "
                    f"({str(there.get(key))[:12]}, not {here[:12]})"
                )
                remedy = "give what it began with, or choose another --output"
                raise ModelError("E-CLI-034", problem, remedy, file=self.folder)

    def _found(self) -> list[Path]:
        """All parts in order; what was being written when a run was killed is removed."""
        for path in self.folder.glob(".*.part"):
            path.unlink()
        return sorted(path for path in self.folder.glob("part-*.npz") if PART.fullmatch(path.name))

    @property
    def _last(self) -> str:
        """The name of the last part, which the next one says it comes after."""
        return self._parts[-1].name if self._parts else ""

    # Writing ----------------------------------------------------------------------------------

    def add(self, pieces: Sequence[Trajectory]) -> None:
        """Keep pieces of a motion as the next part."""
        end = pieces[-1].end
        assert end is not None
        arrays = joined([_rows(piece) for piece in pieces])
        arrays |= {MEMORY + name: array for name, array in end.memory.items()}
        arrays |= {END + name: np.asarray(getattr(end, name)) for name in ("t", "q", "qd", "over")}
        data = _packed(arrays | {"after": np.array(self._last)})
        name = f"part-{len(self._parts) + 1:06}-{_digest(data)}.npz"
        self._store(self.folder / name, data)
        self._parts.append(self.folder / name)
        self.end = end

    def finish(self) -> dict[str, np.ndarray]:
        """Join the parts of a motion that is over to one motion file; its arrays."""
        if not (self.folder / MOTION).exists():
            arrays, robot = joined(list(map(_states, self._parts))), self.scene.robot
            arrays["kinetic"] = robot.kinetic_energy(arrays["q"], arrays["qd"])
            arrays["potential"] = robot.potential_energy(arrays["q"])
            said = {"format": MOTION_FORMAT, "robot": robot.name, "robot_digest": self.scene.digest}
            texts = {name: np.array(text) for name, text in said.items()}
            self._store(self.folder / MOTION, _packed(arrays | texts))
        for path in self._found():
            path.unlink()
        try:
            with np.load(self.folder / MOTION) as file:
                return dict(file)
        except (ValueError, KeyError, BadZipFile) as error:
            remedy = "the file is damaged, simulate by --overwrite"
            raise ModelError("E-CLI-035", f"{error}", remedy, file=self.folder / MOTION) from None

    @property
    def finished(self) -> bool:
        """Return True if the whole motion is in its file."""
        return (self.folder / MOTION).exists()

    @property
    def over(self) -> bool:
        """Return True if all of the motion is computed."""
        return self.finished or (self.end is not None and self.end.over)

    @property
    def how_to_go_on(self) -> str:
        """The command."""
        return f"chasles simulate --output {shlex.quote(str(self.folder))} --resume"

    def _store(self, path: Path, data: bytes) -> None:
        until = 0.0 if self.end is None else self.end.t
        remedy = f"the motion up to t = {until:.6g} s is kept; make room, then go on with: "
        with self._placed(remedy + self.how_to_go_on), whole(path) as part:
            part.write_bytes(data)

    @contextmanager
    def _placed(self, remedy: str) -> Iterator[None]:
        """Turn errors of the system about the folder into one with a remedy."""
        try:
            yield
        except OSError as error:
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
            problem = cause.strerror or said(cause)
            raise FileError("E-CLI-036", problem, remedy, file=self.folder) from error


# Arrays and files ------------------------------------------------------------------------------


def _rows(piece: Trajectory) -> dict[str, np.ndarray]:
    """The states of a trajectory by name, one a row."""
    rows, met = {"t": piece.t, "q": piece.q, "qd": piece.qd}, piece.touching
    if met is not None and met.gaps.shape[-1]:
        rows |= {f"contact_{name}": array for name, array in met._asdict().items()}
    return rows


def joined(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Rows one after the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _states(path: Path) -> dict[str, np.ndarray]:
    """The rows of a part."""
    arrays = _intact(path)
    if arrays is None:
        problem = "the part was damaged meanwhile"
        raise ModelError("E-CLI-037", problem, "compute it again by --resume", file=path)
    return {n: array for n, array in arrays.items() if not n.startswith((END, MEMORY, "after"))}


def _end(arrays: Mapping[str, np.ndarray]) -> End:
    memory = {n.removeprefix(MEMORY): x for n, x in arrays.items() if n.startswith(MEMORY)}
    t, q, qd, over = (arrays[END + name] for name in ("t", "q", "qd", "over"))
    return End(float(t), q, qd, bool(over), memory)


def _packed(arrays: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _intact(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays of a part; none where its bytes are not those that were written."""
    data = path.read_bytes()
    if path.name.split("-")[2].removesuffix(".npz") != _digest(data):
        return None
    with np.load(io.BytesIO(data)) as file:
        return dict(file)
