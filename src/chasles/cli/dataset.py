"""The work of `chasles motion` on logs of any length: a Parquet table of results for each file.

A file is read, processed and written block by block, so that memory does not grow with its length.
A table is either complete or missing. Its metadata identify the log and the recipe that it was made
from, so that an interrupted run continues with the remaining files.
"""

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from chasles.cli.motion import ACCELERATION, POSE, REACTION, VELOCITY
from chasles.cli.scene import digest
from chasles.errors import ExistingFileError, InputError
from chasles.formats.motion import MOTION_FILE
from chasles.identification.logs import Log, Reader, column_names, files
from chasles.model.model import suggest
from chasles.robot import Robot
from chasles.version import VERSION
from chasles.writing import whole

AHEAD = 3
"""Blocks in memory between reading and writing."""

MARK = b"chasles"
"""Key of the table's metadata that holds its origin."""

Compute = Callable[["Job", np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Function of a job and the states q, qd, qdd of a block; it returns one row per state."""


def _by_frame(function: Callable[..., np.ndarray]) -> Compute:
    def found(job: "Job", *states: np.ndarray) -> np.ndarray:
        parts = [function(job.robot, *states, frame) for frame in job.frames]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    return found


def _energies(job: "Job", q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    return np.column_stack([job.robot.kinetic_energy(q, qd), job.robot.potential_energy(q)])


def _reactions(job: "Job", q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    unloaded = np.zeros(job.robot.mechanism.rows)  # the loops transmit no forces
    return job.robot.joint_reactions(q, qd, qdd, multipliers=unloaded).reshape(len(q), -1)


QUANTITIES: dict[str, Compute] = {
    "q": lambda job, q, qd, qdd: q,
    "qd": lambda job, q, qd, qdd: qd,
    "qdd": lambda job, q, qd, qdd: qdd,
    "tau": lambda job, q, qd, qdd: job.robot.inverse_dynamics(q, qd, qdd, threads=1),
    "pose": _by_frame(lambda r, q, qd, qdd, frame: r.forward_kinematics(q, frame=frame)[:, :3]),
    "velocity": _by_frame(lambda r, q, qd, qdd, frame: r.frame_velocity(q, qd, frame=frame)),
    "acceleration": _by_frame(
        lambda r, q, qd, qdd, frame: r.frame_acceleration(q, qd, qdd, frame=frame)
    ),
    "reactions": _reactions,
    "energy": _energies,
}
"""Groups of columns, and the function that computes each."""


def groups(robot: Robot, frames: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of the columns of each quantity, as `chasles motion` writes them."""

    def framed(entries: Sequence[str]) -> list[str]:
        return [f"{frame}.{entry}" for frame in frames for entry in entries]

    return {
        **column_names(robot),
        "pose": framed(POSE),
        "velocity": framed(VELOCITY),
        "acceleration": framed(ACCELERATION),
        "reactions": [f"{joint}.{entry}" for joint in robot.moving_joints for entry in REACTION],
        "energy": ["kinetic", "potential"],
    }


@dataclass(frozen=True)
class Done:
    """Results of one file: states, skipped rows by reason, peaks and sums of squares of tau."""

    states: int
    skipped: Mapping[str, int]
    peak: np.ndarray
    squares: np.ndarray
    resumed: bool = False


@dataclass(frozen=True)
class Job:
    """The computation for each file; it can be pickled and run in any process.

    wanted: quantities, or names of columns. columns, units, skip_bad: as in `logs.Reader`.
    """

    robot: Robot
    wanted: tuple[str, ...] = ("tau",)
    frames: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    skip_bad: bool = False
    threads: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "frames", self.frames or (self.robot.tool,))
        for frame in self.frames:
            self.robot.model.frame(frame)
        known = groups(self.robot, self.frames)
        every = {name for names in known.values() for name in names}
        for name in self.wanted:
            if name not in known and name not in every:
                remedy = suggest(name[:100], dict.fromkeys([*known, *every]))
                raise InputError("E-CLI-270", f"unknown column {name!r:.80}", remedy)

    @cached_property
    def chosen(self) -> dict[str, list[int] | None]:
        """Columns of each quantity that are written; None for all of them."""
        found: dict[str, list[int] | None] = {}
        for quantity, names in groups(self.robot, self.frames).items():
            some = [k for k, name in enumerate(names) if name in self.wanted]
            if quantity in self.wanted:
                found[quantity] = None
            elif some:
                found[quantity] = some
        return found

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns in the table, without the time."""
        known = groups(self.robot, self.frames)
        return [
            name
            for quantity, some in self.chosen.items()
            for k, name in enumerate(known[quantity])
            if some is None or k in some
        ]

    @cached_property
    def recipe(self) -> str:
        """Digest of everything except the log that determines a table."""
        given = (sorted(self.columns.items()), sorted(self.units.items()), self.skip_bad)
        parts = (VERSION, digest(self.robot), self.names, given)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def mark(self, source: Path) -> bytes:
        """Return the origin of a table: file, size, time of change, recipe."""
        found = source.stat()
        origin = {"source": source.name, "bytes": found.st_size, "changed": found.st_mtime_ns}
        return json.dumps({**origin, "recipe": self.recipe}).encode()

    def table(self, log: Log) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the columns of a block, time first if there is one, and joint forces."""
        assert log.qd is not None, "needed"
        assert log.qdd is not None, "needed"
        tau, found = np.zeros((0, 0)), [] if log.t is None else [log.t]
        for quantity, some in self.chosen.items():
            array = QUANTITIES[quantity](self, log.q, log.qd, log.qdd)
            if quantity == "tau":
                tau = array
            array = array if some is None else array[:, some]
            with np.errstate(over="ignore", invalid="ignore"):
                finite = np.isfinite(array.sum()) or np.all(np.isfinite(array))
            if not finite:
                row = log.first + int(np.argmin(np.all(np.isfinite(array), axis=1)))
                problem, remedy = f"{quantity} of this row is not finite", "check the units"
                raise InputError("E-CLI-271", problem, remedy, file=log.file, line=row)
            found += list(np.ascontiguousarray(array.T))
        return found, tau

    def run(
        self,
        source: Path,
        target: Path,
        *,
        overwrite: bool = False,
        told: Callable[[int], None] = lambda count: None,
    ) -> Done:
        """Compute the table of one file, unless it exists; `told` counts states."""
        mark = self.mark(source)
        if target.exists() and not overwrite:
            return _resumed(target, mark)
        target.parent.mkdir(parents=True, exist_ok=True)
        reader = Reader(
            self.robot, self.columns, self.units, self.skip_bad, ("q", "qd", "qdd"), gaps=True
        )
        states, peak, squares = 0, np.zeros(self.robot.nv), np.zeros(self.robot.nv)
        with whole(target, overwrite=overwrite) as part, _writer(part, mark, self.names) as add:
            for columns, tau in _ahead(self.table, reader.read(source), self.threads):
                add(columns)
                count = len(columns[0])
                if tau.size:
                    peak = np.maximum(peak, np.maximum(tau.max(axis=0), -tau.min(axis=0)))
                    squares = squares + np.einsum("ni,ni->i", tau, tau)
                states += count
                told(count)
        return Done(states, dict(reader.skipped.counts), peak, squares)


def _resumed(target: Path, mark: bytes) -> Done:
    """Return the result for a table of an earlier run; raise an error if its origin differs."""
    from pyarrow import ArrowException, parquet

    try:
        there = parquet.read_metadata(target)
        own = (there.metadata or {}).get(MARK)
    except (ArrowException, OSError):
        own = None
    if own != mark:
        problem = "the table was not made from this log by the same command"
        remedy = "choose another folder, or replace the tables with --overwrite"
        raise ExistingFileError("E-CLI-272", problem, remedy, file=target)
    return Done(there.num_rows, {}, np.zeros(0), np.zeros(0), resumed=True)


Add = Callable[[list[np.ndarray]], None]


@contextmanager
def _writer(path: Path, mark: bytes, names: Sequence[str]) -> Iterator[Add]:
    """Write columns of doubles on a separate thread, one row group per addition."""
    import pyarrow
    from pyarrow import parquet

    made: list[Any] = []
    last: list[Future[None]] = []

    def written(columns: list[np.ndarray]) -> None:
        every = ["t", *names] if len(columns) > len(names) else list(names)
        if not made:
            fields = [(name, pyarrow.float64()) for name in every]
            schema = pyarrow.schema(fields, metadata={MARK: mark})
            made.append(parquet.ParquetWriter(path, schema, use_dictionary=False))
        made[0].write_batch(pyarrow.record_batch(columns, schema=made[0].schema))

    def add(columns: list[np.ndarray]) -> None:
        if last:
            last.pop().result()
        last.append(pool.submit(written, columns))

    try:
        with ThreadPoolExecutor(1) as pool:
            yield add
            if not last:
                add([np.zeros(0) for _ in names])
            last.pop().result()
    finally:
        for writer in made:
            writer.close()


def _ahead(function: Callable[[Any], Any], blocks: Iterator[Any], threads: int) -> Iterator[Any]:
    """Yield a function's results for blocks, in order; threads compute while blocks are read."""
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Any]] = deque()
        for block in blocks:
            waiting.append(pool.submit(function, block))
            if len(waiting) >= AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def partitions(logs: Path, target: Path) -> list[tuple[Path, Path]]:
    """Return the files of a log or a folder of logs, and the table of each."""
    if not logs.is_dir():
        return [(logs, target)]
    pairs = []
    for file in map(Path, files(logs)):
        kept = file.relative_to(logs)
        name = kept.name if kept.suffix == ".parquet" else f"{kept.name}.parquet"
        pairs.append((file, target / kept.with_name(name)))
    return pairs


def is_dataset(path: Path) -> bool:
    """Return True for a folder of logs, which has no motion file of a simulation."""
    return path.is_dir() and not (path / MOTION_FILE).exists()


@dataclass
class Total:
    """Results of all files."""

    peak: np.ndarray
    squares: np.ndarray
    states: int = 0
    computed: int = 0
    files: int = 0
    resumed: int = 0
    seconds: float = 0.0
    skipped: dict[str, int] = field(default_factory=dict)

    def add(self, done: Done) -> None:
        """Add the results of a file."""
        self.states += done.states
        self.files += 1
        for reason, count in done.skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + count
        if done.resumed:
            self.resumed += 1
            return
        self.computed += done.states
        self.peak, self.squares = np.maximum(self.peak, done.peak), self.squares + done.squares

    @property
    def rms(self) -> np.ndarray:
        return np.sqrt(self.squares / max(self.computed, 1))

    @property
    def rate(self) -> float:
        """States computed per second."""
        return self.computed / max(self.seconds, 1e-9)

    def data(self, job: Job) -> dict[str, Any]:
        """Return machine-readable results, with joint forces only if they were computed."""
        names = column_names(job.robot)["tau"] if "tau" in job.chosen and self.computed else ()
        forces = [
            {"column": name, "peak": peak, "rms": rms}
            for name, peak, rms in zip(names, self.peak, self.rms, strict=bool(names))
        ]
        kept = {name: getattr(self, name) for name in ("states", "resumed", "skipped")}
        return {"robot": job.robot.name, **kept, "rate": self.rate, "forces": forces}


def run(
    job: Job,
    pairs: Sequence[tuple[Path, Path]],
    told: Callable[[int], None],
    *,
    overwrite: bool = False,
) -> Total:
    """Compute the missing tables of all files, one file after the other."""
    start, none = time.perf_counter(), np.zeros(job.robot.nv)
    total = Total(none, none)
    for source, target in pairs:
        done = job.run(source, target, overwrite=overwrite, told=told)
        if done.resumed:
            told(done.states)
        total.add(done)
    total.seconds = time.perf_counter() - start
    return total


def count_of(pairs: Sequence[tuple[Path, Path]]) -> int | None:
    """Return the number of rows of Parquet files; None if a file is unreadable or not Parquet."""
    from pyarrow import ArrowException, parquet

    if any(source.suffix.lower() != ".parquet" for source, _ in pairs):
        return None
    try:
        return sum(int(parquet.read_metadata(source).num_rows) for source, _ in pairs)
    except (ArrowException, OSError):
        return None
