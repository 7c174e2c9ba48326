"""Simulation folder, with numbered part files during the run and one motion file at the end.

    run.json                digests of the scenario and the robot, version, list of files
    scenario.toml           the scenario
    part-000001-DIGEST.npz  states and the end state; DIGEST is a hash of the file
    motion.npz              all states; it replaces the part files

Files are written atomically: to a temporary file that is flushed to disk and then renamed. A killed
run can continue from its last part file. `manifest` records the files of each run.
"""

import hashlib
import io
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from chasles.cli.manifest import FORMAT, MOTION, PART, PRODUCTS, SCENARIO, Manifest
from chasles.cli.scene import Scene
from chasles.errors import ExistingFileError, FileError, ModelError, said
from chasles.formats import archive
from chasles.formats.archive import MOTION_FORMAT
from chasles.robot import Robot
from chasles.rollouts import End, Trajectory
from chasles.version import VERSION
from chasles.writing import check_target

END, MEMORY, LAST = "end.", "memory.", ("t", "q", "qd", "over")
"""Name prefixes of end-state and solver-state arrays in a part file; names of end-state fields."""


class Recording:
    """Context manager for a simulation folder; it unlocks the folder on exit.

    `end` is the end state of the last part file, and `notes` are messages for the user. `finished`
    is True if the motion file has been written.
    """

    def __init__(self, folder: Path, scene: Scene) -> None:
        self.folder, self.scene = folder, scene
        self.notes: list[str] = []
        self.end: End | None = None
        self.finished = False
        self._manifest = Manifest(folder)
        self._parts: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._manifest.unlock()

    # Starting and resuming --------------------------------------------------------------------

    def begin(self, *, overwrite: bool, inputs: Iterable[str] = ()) -> None:
        """Prepare the folder for a new simulation.

        `inputs` are files that must not be replaced.
        """
        self._check_new(overwrite, inputs)
        with self._placed("the folder cannot be used; choose another --output"), self._locking():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._manifest.lock()
            self._check_new(overwrite, inputs)
            self._manifest.remove(name for name in self._manifest.files if name != SCENARIO)
            self._manifest.facts = self._identity()
            self._manifest.save()
            self._write_scenario()

    def _check_new(self, overwrite: bool, inputs: Iterable[str]) -> None:
        """Raise an error if a new simulation would overwrite other data."""
        if self._manifest.load() and not overwrite:
            problem = "the folder already contains a simulation"
            remedy = (
                "continue it with --resume, replace it with --overwrite, or choose another --output"
            )
            raise ModelError("E-CLI-031", problem, remedy, file=self.folder)
        for name in PRODUCTS:
            check_target(self.folder / name, overwrite=True, inputs=inputs)
        self._manifest.check_own(PRODUCTS)

    def _write_scenario(self) -> None:
        text = self.scene.scenario.text(self.folder.absolute())
        self._manifest.write(SCENARIO, text.encode())

    def go_on(self) -> None:
        """Prepare to resume the simulation; discard damaged part files and all files after them."""
        if not self._manifest.load():
            problem = "there is no simulation to continue"
            raise ModelError("E-CLI-032", problem, "omit --resume", file=self.folder)
        self._check_identity()
        with self._placed("the folder cannot be used"), self._locking():
            self._manifest.lock()
            self._manifest.load()
            self._manifest.check_own([MOTION])
            self.finished = self._manifest.is_own(MOTION)
            if not (self.folder / SCENARIO).exists():  # an earlier run was killed in `begin`
                self._write_scenario()
            for path in self._found():
                arrays = _intact(path)
                if arrays is None or str(arrays["after"]) != self._last:
                    self.notes.append(
                        f"{path}: the part is damaged or follows a damaged part; computed again"
                    )
                    path.unlink()
                    continue
                self._parts.append(path)
                self.end = _end(arrays)

    @contextmanager
    def _locking(self) -> Iterator[None]:
        """Unlock the folder if the code in the `with` block raises an error."""
        try:
            yield
        except BaseException:
            self._manifest.unlock()
            raise

    def _identity(self) -> dict[str, str]:
        return {
            "format": FORMAT,
            "chasles": VERSION,
            "scenario": self.scene.scenario.digest(),
            "robot": self.scene.digest,
            "name": self.scene.robot.name,
        }

    def _check_identity(self) -> None:
        there = self._manifest.facts
        for key, here in self._identity().items():
            if there.get(key) != here:
                what = "chasles version" if key == "chasles" else key
                problem = (
                    f"the simulation in this folder was made with a different {what} "
                    f"({str(there.get(key))[:12]}, not {here[:12]})"
                )
                remedy = f"use the original {what}, or choose another --output"
                raise ModelError("E-CLI-034", problem, remedy, file=self.folder)

    def _found(self) -> list[Path]:
        """Return the paths of all part files of this simulation, in order."""
        names = [name for name in self._manifest.files if PART.fullmatch(name)]
        return [self.folder / name for name in sorted(names) if self._manifest.is_own(name)]

    @property
    def _last(self) -> str:
        """Name of the last part file; the next part file stores this name."""
        return self._parts[-1].name if self._parts else ""

    # Writing ----------------------------------------------------------------------------------

    def add(self, pieces: Sequence[Trajectory]) -> None:
        """Write consecutive chunks of a trajectory to the next part file."""
        end = pieces[-1].end
        assert end is not None
        arrays = joined([_rows(piece) for piece in pieces])
        arrays |= {MEMORY + name: array for name, array in end.memory.items()}
        arrays |= {END + name: np.asarray(getattr(end, name)) for name in LAST}
        data = _packed(arrays | {"after": np.array(self._last)})
        name = f"part-{len(self._parts) + 1:06}-{_digest(data)}.npz"
        self.store(name, data)
        self._parts.append(self.folder / name)
        self.end = end

    def finish(self) -> dict[str, np.ndarray]:
        """Merge the part files of a complete motion into one motion file; return its arrays."""
        if not self.finished:
            arrays, robot = joined(list(map(_states, self._parts))), self.scene.robot
            arrays["tau"] = self.scene.torques(arrays)
            if "contact_forces" in arrays:
                arrays["contact_planes"] = self.scene.planes
                points = self.scene.points(arrays["q"], arrays["contact_forces"].shape[1])
                if points is not None:
                    arrays["contact_points"] = points
            arrays["kinetic"] = robot.kinetic_energy(arrays["q"], arrays["qd"])
            arrays["potential"] = robot.potential_energy(arrays["q"])
            facts = {
                "format": MOTION_FORMAT,
                "robot": robot.name,
                "robot_digest": self.scene.digest,
            }
            texts = {name: np.array(text) for name, text in facts.items()}
            self.store(MOTION, _packed(arrays | texts))
            self.finished = True
        with self._placed("the folder cannot be used"):
            parts = [name for name in self._manifest.files if PART.fullmatch(name)]
            if parts:
                self._manifest.remove(parts)
                self._manifest.save()
        try:
            return _checked(archive.arrays(self.folder / MOTION), self.scene.robot)
        except (ValueError, KeyError) as error:
            remedy = "the file is damaged; simulate again with --overwrite"
            raise ModelError("E-CLI-035", said(error), remedy, file=self.folder / MOTION) from None

    @property
    def over(self) -> bool:
        """Return True if the simulation is complete."""
        return self.finished or (self.end is not None and self.end.over)

    @property
    def how_to_go_on(self) -> str:
        """Shell command that continues the simulation."""
        return f"chasles simulate --output {shlex.quote(str(self.folder))} --resume"

    def store(self, name: str, data: bytes) -> None:
        """Write a simulation file atomically."""
        until = 0.0 if self.end is None else self.end.t
        remedy = (
            f"the motion up to t = {until:.6g} s is saved; free disk space, then continue with: "
        )
        with self._placed(remedy + self.how_to_go_on):
            self._manifest.write(name, data)

    @contextmanager
    def _placed(self, remedy: str) -> Iterator[None]:
        """Convert operating-system errors to `FileError` with a remedy."""
        try:
            yield
        except ExistingFileError:
            raise
        except OSError as error:
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
            problem = cause.strerror or said(cause)
            raise FileError("E-CLI-036", problem, remedy, file=self.folder) from error


# Arrays and files ------------------------------------------------------------------------------


def _rows(piece: Trajectory) -> dict[str, np.ndarray]:
    """Return the arrays of a trajectory by name, with one row per state."""
    rows, met = {"t": piece.t, "q": piece.q, "qd": piece.qd}, piece.touching
    if piece.act is not None:
        rows["act"] = piece.act
    if met is not None and met.gaps.shape[-1]:
        rows |= {f"contact_{name}": array for name, array in met._asdict().items()}
    return rows


def joined(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Concatenate the arrays of consecutive chunks of a motion."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _checked(arrays: dict[str, np.ndarray], robot: Robot) -> dict[str, np.ndarray]:
    """Check the shapes and dtypes of the arrays in a motion file, and return them."""
    n, met = arrays["t"].size, arrays["contact_gaps"].shape[1:] if "contact_gaps" in arrays else ()
    shapes: dict[str, tuple[int, ...]] = {"t": (n,), "q": (n, robot.nq), "qd": (n, robot.nv)}
    shapes |= {"tau": (n, robot.nv), "kinetic": (n,), "potential": (n,)}
    shapes |= {"contact_gaps": (n, *met), "contact_forces": (n, *met, 3)} if met else {}
    for name, shape in shapes.items():
        if arrays[name].shape != shape or arrays[name].dtype != float or not n:
            problem = (
                f"{name} has shape {arrays[name].shape}, "
                f"but must be a float64 array of shape {shape}"
            )
            raise ModelError("E-CLI-053", problem)
    return arrays


def _states(path: Path) -> dict[str, np.ndarray]:
    """Return the state arrays of a part file, which stores consecutive steps of the run."""
    arrays = _intact(path)
    if arrays is None:
        problem = "this file, which contains part of the motion, was damaged during the run"
        raise ModelError("E-CLI-037", problem, "compute this part again with --resume", file=path)
    return {n: array for n, array in arrays.items() if not n.startswith((END, MEMORY, "after"))}


def _end(arrays: Mapping[str, np.ndarray]) -> End:
    memory = {n.removeprefix(MEMORY): x for n, x in arrays.items() if n.startswith(MEMORY)}
    t, q, qd, over = (arrays[END + name] for name in LAST)
    return End(float(t), q, qd, bool(over), memory)


def _packed(arrays: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _intact(path: Path) -> dict[str, np.ndarray] | None:
    """Return the arrays of a part file, or None if the file is damaged."""
    try:
        data = path.read_bytes()
    except OSError as error:
        problem, remedy = error.strerror or f"{error}", "remove it and continue with --resume"
        raise FileError("E-CLI-051", problem, remedy, file=path) from None
    if path.name.split("-")[2].removesuffix(".npz") != _digest(data):
        return None
    try:
        arrays = archive.arrays(io.BytesIO(data))
        # check the entries that --resume needs: the end state and the name of the previous part
        _end(arrays), str(arrays["after"])
    except (ValueError, KeyError, TypeError):
        return None
    return arrays
