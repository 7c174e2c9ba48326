"""Implementation of `chasles motion` for logs of any length, with one table per log.

Logs are processed and tables are written in blocks, so that memory use does not depend on the
length of a log, except for .npz tables. Tables are written atomically. The tables of a folder are
Parquet files; the metadata of each table identifies the log and the options, so that an interrupted
run can continue with the remaining logs.
"""

import hashlib
import itertools
import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from chasles import tasks
from chasles.cli.motion import ACCELERATION, POSE, REACTION, VELOCITY, completed
from chasles.cli.scene import digest
from chasles.cli.tables import created, resumed, unlike
from chasles.errors import InputError
from chasles.formats.motion import Motion
from chasles.identification.logs import Reader, column_names, is_simulation
from chasles.identification.samples import Log
from chasles.names import suggest
from chasles.robot import Robot
from chasles.tasks import THREADS, Told, ahead
from chasles.version import VERSION
from chasles.writing import check_target, whole

Compute = Callable[["Job", np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Function that takes a job and the arrays q, qd and qdd, and returns one row per state."""


def _by_frame(function: Callable[..., np.ndarray]) -> Compute:
    def found(job: "Job", *states: np.ndarray) -> np.ndarray:
        parts = [function(job.robot, *states, frame) for frame in job.frames]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    return found


def _energies(job: "Job", q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    return np.column_stack([job.robot.kinetic_energy(q, qd), job.robot.potential_energy(q)])


def _reactions(job: "Job", q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    unloaded = np.zeros(job.robot.mechanism.rows)  # the loop forces are assumed to be zero
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
"""For each quantity, the function that computes its columns."""


def groups(robot: Robot, frames: Sequence[str]) -> dict[str, list[str]]:
    """Return the column names of each quantity in the output of `chasles motion`."""

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
    """Summary of one log.

    `states` is the number of states. `skipped` is the number of skipped rows by reason. For each
    generalized force, `peak` contains the largest magnitude and `squares` the sum of squares over
    all states.
    """

    states: int
    skipped: Mapping[str, int]
    peak: tuple[float, ...]
    squares: tuple[float, ...]
    resumed: bool = False

    @classmethod
    def read(cls, summary: Mapping[str, Any]) -> "Done":
        """Restore the summary of a table that an earlier run completed."""
        sums = tuple(summary["peak"]), tuple(summary["squares"])
        return cls(summary["states"], summary["skipped"], *sums, resumed=True)


def _motion(logs: Iterator[Log], read: deque[Log]) -> Iterator[Motion]:
    """Convert the blocks of a log to consecutive parts of a motion; append each block to `read`."""
    first = 0
    for log in logs:
        read.append(log)
        yield Motion(first, log.t, log.q, log.qd, log.qdd, 0)
        first += len(log.q)


Partition = tuple[Path, Path]
"""Paths of an input log and of the output table for this log."""


@dataclass(frozen=True)
class Job:
    """Picklable computation that runs on each log, in any process.

    Attributes
    ----------
    wanted
        Names of quantities or columns.
    columns, units, skip_bad
        As in `logs.Reader`.
    differentiate
        Compute missing velocities and accelerations.
    threads
        Number of threads that compute the blocks of one file.
    """

    robot: Robot
    wanted: tuple[str, ...] = ("tau",)
    frames: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    skip_bad: bool = False
    differentiate: bool = False
    overwrite: bool = False
    threads: int = THREADS

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
        """Indices of the columns to write for each quantity, or None for all columns."""
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
        """Names of the output columns, without the time."""
        known = groups(self.robot, self.frames)
        return [
            name
            for quantity, some in self.chosen.items()
            for k, name in enumerate(known[quantity])
            if some is None or k in some
        ]

    @cached_property
    def recipe(self) -> str:
        """Digest of all inputs that determine a table, except the log.

        `skip_bad` is excluded, because it has no effect on a table without skipped rows.
        """
        given = sorted(self.columns.items()), sorted(self.units.items()), self.differentiate
        parts = (VERSION, digest(self.robot), self.names, given)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def mark(self, source: Path) -> bytes:
        """Return a JSON object that identifies the inputs of a table.

        The object contains the log's name, size and modification time, and the digest `recipe`.
        """
        found = source.stat()
        origin = {"source": source.name, "bytes": found.st_size, "changed": found.st_mtime_ns}
        return json.dumps({**origin, "recipe": self.recipe}).encode()

    def reader(self) -> Reader:
        """Return a log reader, which allows gaps in time unless derivatives are computed."""
        needed = ("q",) if self.differentiate else ("q", "qd", "qdd")
        gaps, threaded = not self.differentiate, self.threads > 1
        given = (self.robot, self.columns, self.units, self.skip_bad, needed)
        return Reader(*given, gaps=gaps, threaded=threaded)

    def _with_rates(self, reader: Reader, logs: Iterator[Log]) -> Iterator[Log]:
        """Compute missing velocities and accelerations in the logs."""
        count = 0

        def number(log: Log) -> int:
            nonlocal count
            count += log.begins
            return count

        for _, group in itertools.groupby(logs, number):
            read: deque[Log] = deque()
            motion = completed("", self.robot, _motion(group, read))
            try:
                for found in motion:
                    yield replace(read.popleft(), qd=found.qd, qdd=found.qdd)
            except InputError as error:
                if error.code not in ("E-CLI-009", "E-CLI-010"):
                    raise
                if not self.skip_bad or error.code == "E-CLI-009":
                    raise error.at(file=read[0].file) from None
                reader.skipped.add("motions with fewer than three rows", 1)

    def table(self, log: Log) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the output columns for a block of n states, and the generalized forces (nv, n).

        The first column is the time if the log has times.
        """
        assert log.qd is not None, "needed"
        assert log.qdd is not None, "needed"
        tau, found = np.zeros((0, 0)), [] if log.t is None else [log.t]
        for quantity, some in self.chosen.items():
            array = QUANTITIES[quantity](self, log.q, log.qd, log.qdd)
            array = np.ascontiguousarray(array.T)
            if quantity == "tau":
                tau = array
            array = array if some is None else array[some]
            with np.errstate(over="ignore", invalid="ignore"):
                finite = np.isfinite(array.sum()) or np.all(np.isfinite(array))
            if not finite:
                row = log.first + int(np.argmin(np.all(np.isfinite(array), axis=0)))
                problem, remedy = f"{quantity} of this row is not finite", "check the units"
                raise InputError("E-CLI-271", problem, remedy, file=log.file, line=row)
            found += list(array)
        return found, tau

    def __call__(self, partition: Partition, told: Told) -> Done:
        """Compute the table of one log, unless the table exists and `overwrite` is False.

        `told` is called with the number of states finished since its last call.
        """
        source, target = partition
        mark = self.mark(source)
        if target.suffix.lower() != ".parquet":
            check_target(target, overwrite=self.overwrite, inputs=[str(source)])
        elif target.exists() and not self.overwrite:
            done = Done.read(resumed(target, mark, "log"))
            if done.skipped and not self.skip_bad:
                raise unlike(target, "log")
            told(done.states)
            return done
        target.parent.mkdir(parents=True, exist_ok=True)
        reader = self.reader()
        logs = reader.read(source)
        if self.differentiate:
            logs = self._with_rates(reader, logs)
        states, peak, squares = 0, np.zeros(self.robot.nv), np.zeros(self.robot.nv)
        with (
            whole(target, overwrite=self.overwrite) as part,
            created(part, target, mark, self.names) as out,
        ):
            for columns, tau in ahead(self.table, logs, self.threads):
                out.add(columns)
                count = len(columns[0])
                if tau.size:
                    peak = np.maximum(peak, np.maximum(tau.max(axis=1), -tau.min(axis=1)))
                    squares = squares + np.einsum("in,in->i", tau, tau)
                states += count
                told(count)
            sums = tuple(map(float, peak)), tuple(map(float, squares))
            done = Done(states, dict(reader.skipped.counts), *sums)
            out.finish(vars(done))
        return done


def partitions(logs: Path, target: Path, reader: Reader) -> list[Partition]:
    """Return the absolute paths of each log and its output table.

    Files that are not logs are counted in `reader.skipped`. Tables in `target` are not logs.
    """
    logs, target = logs.absolute(), target.absolute()
    if not logs.is_dir():
        return [(logs, target)]
    if target.exists() and target.samefile(logs):
        problem = "the output folder is the folder of the logs"
        raise InputError("E-CLI-278", problem, "choose another output folder", file=target)
    pairs = []
    for file in map(Path, reader.partitions(logs, without=target)):
        kept = file.relative_to(logs)
        name = kept.name if kept.suffix == ".parquet" else f"{kept.name}.parquet"
        pairs.append((file, target / kept.with_name(name)))
    return pairs


def is_dataset(path: Path) -> bool:
    """Return True if the path is a folder of logs and not a simulation folder."""
    return path.is_dir() and not is_simulation(path)


@dataclass
class Total:
    """Totals over all logs, such as the number of states and the peak torques."""

    peak: np.ndarray
    squares: np.ndarray
    states: int = 0
    computed: int = 0
    files: int = 0
    resumed: int = 0
    seconds: float = 0.0
    skipped: dict[str, int] = field(default_factory=dict)

    def add(self, done: Done) -> None:
        """Add the summary of one log to the totals."""
        self.states += done.states
        self.files += 1
        for reason, count in done.skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + count
        self.peak, self.squares = np.maximum(self.peak, done.peak), self.squares + done.squares
        if done.resumed:
            self.resumed += 1
        else:
            self.computed += done.states

    @property
    def rms(self) -> np.ndarray:
        return np.sqrt(self.squares / max(self.states, 1))

    @property
    def rate(self) -> float:
        """States computed per second."""
        return self.computed / max(self.seconds, 1e-9)

    def data(self, job: Job) -> dict[str, Any]:
        """Return machine-readable results, with joint torques if they were computed."""
        names = column_names(job.robot)["tau"] if "tau" in job.chosen and self.states else ()
        forces = [
            {"column": name, "peak": peak, "rms": rms}
            for name, peak, rms in zip(names, self.peak, self.rms, strict=bool(names))
        ]
        kept = {name: getattr(self, name) for name in ("states", "resumed", "skipped")}
        return {"robot": job.robot.name, **kept, "rate": self.rate, "forces": forces}


def run(
    job: Job,
    pairs: Sequence[Partition],
    told: Told,
    *,
    cluster: str | None = None,
    threads: int = THREADS,
) -> Total:
    """Compute all missing tables in parallel, on this machine or on a cluster."""
    start, none = time.perf_counter(), np.zeros(job.robot.nv)
    total = Total(none, none)
    if cluster is not None or len(pairs) > 1:
        job = replace(job, threads=1)
    for done in tasks.run(job, pairs, cluster=cluster, threads=threads, told=told):
        total.add(done)
    total.seconds = time.perf_counter() - start
    return total


def count_of(files: Sequence[Path]) -> int | None:
    """Return the total number of rows in Parquet files, or None if unknown."""
    if any(file.suffix.lower() != ".parquet" for file in files):
        return None
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        return None
    try:
        return sum(int(parquet.read_metadata(file).num_rows) for file in files)
    except (ArrowException, OSError):
        return None
