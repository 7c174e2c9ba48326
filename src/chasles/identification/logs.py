"""Logs of motions and torques: files, folders of files, and tables in memory.

Columns have the same names as in motion files: t (s), and for a joint J the columns J.q, J.qd,
J.qdd and J.tau (J.q0, ... for joints with several coordinates). `columns=` maps these names to the
names in the log, and `units=` gives the units of columns. External wrenches at a frame F have the
columns F.mx, F.my, F.mz, F.fx, F.fy, F.fz. Invalid data raise an error that names the file and row.
With `skip_bad=True`, invalid rows and files are skipped and counted instead.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, InputError, ModelError
from chasles.formats import motion
from chasles.functions.tracing import WrenchKey
from chasles.identification.samples import Log, check, load_columns, other_unit
from chasles.identification.sources import SUFFIXES, Columns, blocks, table
from chasles.identification.sources import names as names_in
from chasles.names import one_of, suggest
from chasles.robot import Robot

DEGREE = np.pi / 180.0

UNITS = {
    "rad": ("rad", 1.0),
    "rad/s": ("rad/s", 1.0),
    "rad/s2": ("rad/s2", 1.0),
    "deg": ("rad", DEGREE),
    "deg/s": ("rad/s", DEGREE),
    "deg/s2": ("rad/s2", DEGREE),
    "rpm": ("rad/s", np.pi / 30.0),
    "m": ("m", 1.0),
    "m/s": ("m/s", 1.0),
    "m/s2": ("m/s2", 1.0),
    "mm": ("m", 1e-3),
    "mm/s": ("m/s", 1e-3),
    "mm/s2": ("m/s2", 1e-3),
    "cm": ("m", 1e-2),
    "s": ("s", 1.0),
    "ms": ("s", 1e-3),
    "us": ("s", 1e-6),
    "ns": ("s", 1e-9),
    "N": ("N", 1.0),
    "N m": ("N m", 1.0),
    "N mm": ("N m", 1e-3),
    "mN m": ("N m", 1e-3),
}
"""SI unit and conversion factor of each unit."""

SIDE_BY_SIDE = 64
"""Number of matrix rows that `extremes` combines into one row.

NumPy finds extremes faster in long rows.
"""

GAP = 5.0
"""Ratio of a time step to the median step, above which the step counts as a gap."""

OFTEN = 3.0
"""Threshold for positions whose unit is probably wrong.

The threshold applies to the distance from the middle of a joint's range, relative to half the
range.
"""

MOST_NAMED = 3
"""Largest number of skipped files that a note names."""

REASONS = {
    "E-LOG-003": "files without a column",
    "E-LOG-007": "files in other units",
    "E-LOG-016": "files with swapped joints",
    "E-LOG-017": "files with swapped joints",
    "E-LOG-018": "files in other units",
    "E-LOG-025": "files with swapped joints",
}
"""Reasons for skipping a file, by error code. Files with other errors count as unreadable."""


@dataclass
class Skipped:
    """Numbers of skipped rows and files, by reason."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, reason: str, rows: int) -> None:
        """Increase the count of rows or files that were skipped for the given reason."""
        self.counts[reason] = self.counts.get(reason, 0) + rows

    def __str__(self) -> str:
        return ", ".join(f"{reason}: {count}" for reason, count in self.counts.items())


@dataclass
class _Clock:
    """Time of the last row read from a log, and the median time step."""

    last: float = -np.inf
    step: float = np.nan


def column_names(robot: Robot) -> dict[str, list[str]]:
    """Return the standard column names of a robot's log by quantity: q, qd, qdd, tau."""
    return {**motion.columns(robot.model), "tau": motion.effort_columns(robot.model)}


def column_units(robot: Robot, wrenches: Sequence[WrenchKey] = ()) -> dict[str, str]:
    """Return the SI unit of each column of a robot's log by standard name."""
    joints = [robot.model.bodies[i].joint for i in robot.model.movers]
    rates = [unit for joint in joints for unit in joint.velocity_units]
    units = {
        "q": [unit for joint in joints for unit in joint.units],
        "qd": [f"{unit}/s" for unit in rates],
        "qdd": [f"{unit}/s2" for unit in rates],
        "tau": ["N m" if unit == "rad" else "N" for unit in rates],
    }
    names = column_names(robot)
    found = {"t": "s"}
    for quantity, some in units.items():
        found |= zip(names[quantity], some, strict=True)
    return found | {x: "N m" if ".m" in x[-3:] else "N" for x in load_columns(wrenches)}


@dataclass(frozen=True)
class Reader:
    """Options for reading a robot's logs.

    Attributes
    ----------
    columns
        Column names in the log, by standard name.
    units
        Units, by quantity or standard name. The unit of a quantity applies only to columns of its
        kind: "deg" to angles, "mm" to lengths.
    needed
        Quantities that a log must have; torques are read only if `needed` includes "tau".
    gaps
        True to accept gaps in time.
    threaded
        True to allow pyarrow to use several threads.
    wrenches
        External wrenches that a log must have.
    """

    robot: Robot
    columns: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    skip_bad: bool = False
    needed: tuple[str, ...] = ("q", "tau")
    gaps: bool = False
    threaded: bool = True
    wrenches: tuple[WrenchKey, ...] = ()
    skipped: Skipped = field(default_factory=Skipped)

    def __post_init__(self) -> None:
        names = {**column_names(self.robot), "loads": load_columns(self.wrenches)}
        known = {"t", *names, *(name for some in names.values() for name in some)}
        for name in (*self.columns, *self.units):
            if name not in known:
                raise InputError("E-LOG-001", f"unknown column {name!r}",
                                 suggest(name, dict.fromkeys(known)), part="logs")  # fmt: skip
        for name, unit in self.units.items():
            if unit not in UNITS:
                problem = f"unknown unit {unit!r}"
                raise InputError("E-LOG-002", problem, one_of(unit, UNITS), part="logs")
            own = dict.fromkeys(self._si[each] for each in names.get(name, [name]))
            if UNITS[unit][0] not in own:
                problem = f"{name} is measured in {' or '.join(own)}, not in {unit!r}"
                fitting = ", ".join(x for x, (si, _) in UNITS.items() if si in own) or "no unit"
                raise InputError("E-LOG-026", problem, f"use {fitting}", part="logs")

    @cached_property
    def _si(self) -> dict[str, str]:
        """SI units by standard name."""
        return column_units(self.robot, self.wrenches)

    def _factor(self, quantity: str, name: str) -> float:
        """Return the factor that converts a column to SI units."""
        unit = self.units.get(name, self.units.get(quantity))
        if unit is None:
            return 1.0
        si, factor = UNITS[unit]
        return factor if si == self._si[name] else 1.0

    def read(self, data: Any) -> Iterator[Log]:
        """Yield logs block by block, from paths or from a pandas, xarray or pyarrow table."""
        if isinstance(data, str | os.PathLike):
            data = [data]
        if isinstance(data, Sequence):
            check_paths(data)
            for path in data:
                for file in self.files(path)[0]:
                    yield from self._guarded(file)
            return
        yield from self._blocks("table", iter([table(data)]))

    def files(
        self, path: str | os.PathLike[str], without: Path | None = None
    ) -> tuple[list[str], list[str]]:
        """Return the logs at a path, and the files in the folder that are not logs.

        A file in a folder is not a log if it has no column of the robot's joints. If no file has
        such a column, all files count as logs, and reading them reports the missing columns. Files
        in the folder `without` are omitted.
        """
        found = [x for x in files(path) if without is None or not Path(x).is_relative_to(without)]
        if not os.path.isdir(path) or is_simulation(path):
            return found, []
        some = {own: names for own, names in self._names().items() if own != "t"}
        known = {self.columns.get(name, name) for names in some.values() for name in names}
        there = {file: names_in(file) for file in found}
        others = [x for x, given in there.items() if given is not None and not given & known]
        others = [x for x in others if not (x.endswith(".npz") and (there[x] or set()) & {*some})]
        if len(others) == len(found):
            return found, []
        return [file for file in found if file not in others], others

    def partitions(self, data: Any, without: Path | None = None) -> list[Any]:
        """Return the parts of `data` that can be read separately: each file, or a table in memory.

        Files that are not logs are counted in `skipped`. Files in the folder `without` are omitted.
        """
        if isinstance(data, str | os.PathLike):
            data = [data]
        if not isinstance(data, Sequence):
            return [data]
        check_paths(data)
        found = []
        for path in data:
            logs, others = self.files(path, without)
            found += [os.path.abspath(file) for file in logs]
            if others:
                self.skipped.add(not_logs(others), len(others))
        return found

    def _guarded(self, file: str) -> Iterator[Log]:
        """Yield the logs of a file; with skip_bad, skip and count a file that cannot be read."""
        wanted = {
            quantity: [self.columns.get(name, name) for name in some]
            for quantity, some in self._names().items()
        }
        try:
            yield from self._blocks(file, blocks(file, wanted, self.threaded))
        except ModelError as error:
            if not self.skip_bad:
                raise
            self.skipped.add(REASONS.get(error.code, "unreadable files"), 1)

    def _names(self) -> dict[str, list[str]]:
        """Return the standard names of the columns that are read, by quantity."""
        names = {"t": ["t"], **column_names(self.robot)}
        names = {x: some for x, some in names.items() if x != "tau" or x in self.needed}
        return names | ({"loads": load_columns(self.wrenches)} if self.wrenches else {})

    def _blocks(self, file: str, tables: Iterator[Columns]) -> Iterator[Log]:
        first, clock = 1, _Clock()
        for given in tables:
            values = self._values(file, given)
            del given  # free the memory before the next table is read
            good = self._good(file, first, clock.last, values)
            rows = np.arange(first, first + len(good))
            first += len(good)
            if not good.all():
                rows, values = rows[good], {name: array[good] for name, array in values.items()}
            if not len(rows):
                continue
            self._check_units(file, rows, values["q"])
            t = values["t"][:, 0] if "t" in values else None
            none = np.zeros((len(rows), 0))
            every: dict[str, Any] = {
                "qd": None,
                "qdd": None,
                "tau": none,
                "loads": none,
                **values,
                "t": t,
            }
            for part, begins in self._pieces(file, rows, t, clock):
                some: dict[str, Any] = {
                    name: x if x is None else x[part] for name, x in every.items()
                }
                log = Log(file, int(rows[part.start]), begins, **some)
                if begins:
                    check(self.robot, column_names(self.robot), self._si, log, self.wrenches)
                yield log

    def _values(self, file: str, given: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a table in SI units."""
        found = {}
        for quantity, names in self._names().items():
            wanted = [self.columns.get(name, name) for name in names]
            pairs = zip(wanted, names, strict=True)
            missing = [(own, name) for own, name in pairs if own not in given]
            if missing and (quantity in (*self.needed, "loads") or len(missing) < len(wanted)):
                own, name = missing[0]
                remedy = f"add the column, or pass its name in the log: columns={{{name!r}: ...}}"
                raise ModelError("E-LOG-003", f"there is no column {own!r}", remedy,
                                 file=file, line=1)  # fmt: skip
            if missing:
                continue
            array = np.empty((len(next(iter(given.values()))), len(wanted)))
            for k, (own, name) in enumerate(zip(wanted, names, strict=True)):
                array[:, k] = given[own]
                if (factor := self._factor(quantity, name)) != 1.0:
                    array[:, k] *= factor
            found[quantity] = array
        return found

    def _good(
        self, file: str, first: int, last: float, values: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Return the mask of usable rows; without skip_bad, an unusable row raises an error."""
        good = np.ones(len(values["q"]), bool)
        for quantity, array in values.items():
            with np.errstate(over="ignore", invalid="ignore"):
                if np.isfinite(array.sum()):
                    continue
            finite = np.isfinite(array)
            bad = ~np.all(finite, axis=1)
            name = self._names()[quantity][int(np.argmin(finite[np.argmax(bad & good)]))]
            self._tell(file, first, bad & good, "E-LOG-004", f"{name} is not a finite number",
                       "remove the row, or fill it", "values that are not finite")  # fmt: skip
            good &= ~bad
        if "t" in values:
            t = np.where(good, values["t"][:, 0], -np.inf)
            before = np.maximum.accumulate(np.append(last, t))[:-1]
            for bad, code, problem, reason in (
                (good & (t == before), "E-LOG-005", "the time is repeated", "repeated times"),
                (good & (t < before), "E-LOG-006", "the time decreases", "unsorted times"),
            ):
                remedy = "sort the rows by time, and remove repeated times"
                self._tell(file, first, bad, code, problem, remedy, reason)
                good &= ~bad
        return good

    def _tell(
        self, file: str, first: int, bad: np.ndarray, code: str, problem: str, remedy: str,
        reason: str,
    ) -> None:  # fmt: skip
        if not np.any(bad):
            return
        if not self.skip_bad:
            row = first + int(np.argmax(bad))
            raise ModelError(code, problem, f"{remedy}, or pass skip_bad=True", file=file, line=row)
        self.skipped.add(reason, int(bad.sum()))

    def _check_units(self, file: str, rows: np.ndarray, q: np.ndarray) -> None:
        """Raise an error if the positions of a joint are far beyond its limits."""
        limits = self.robot.limits
        bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
        low, high = np.where(bounded, limits.lower, -1.0), np.where(bounded, limits.upper, 1.0)
        half = np.where(bounded, np.maximum(0.5 * (high - low), 1e-9), np.inf)
        middle = 0.5 * (low + high)
        least, largest = extremes(q)
        worst = np.maximum(largest - middle, middle - least) / half
        if worst.max(initial=0.0) > OFTEN:
            k = int(np.argmax(worst))
            row = int(np.argmax(np.abs(q[:, k] - middle[k])))
            names = column_names(self.robot)["q"]
            problem = f"{names[k]} is {q[row, k]:.4g}, far beyond the joint's limits"
            doubtful = [names[i] for i in np.flatnonzero(worst > OFTEN)]
            given = [name for name in doubtful if self._factor("q", name) != 1.0]
            remedy = "check the positions and their unit"
            if names[k] not in given:
                alike = [name for name in doubtful if name not in given]
                column, unit = other_unit("q", names[k], alike, self._si)
                remedy = f"pass the unit of the positions: units={{{column!r}: {unit!r}}}"
            raise ModelError("E-LOG-007", problem, remedy, file=file, line=int(rows[row]))

    def _pieces(
        self, file: str, rows: np.ndarray, t: np.ndarray | None, clock: _Clock
    ) -> Iterator[tuple[slice, bool]]:
        """Split the rows of a log at gaps in time; yield each part, with True for a new motion."""
        if t is None:
            yield slice(0, len(rows)), clock.last == -np.inf
            clock.last = np.inf
            return
        steps = np.diff(t, prepend=clock.last)
        if len(t) > 2:
            clock.step = float(np.median(steps[1:]))
        clock.last = float(t[-1])
        starts = np.flatnonzero(steps > GAP * clock.step) if not self.gaps else np.zeros(0, int)
        gaps = starts[np.isfinite(steps[starts])]
        if len(gaps) and not self.skip_bad:
            problem = f"there is a gap of {steps[gaps[0]]:.4g} s before this row"
            remedy = "split the log at this row, or pass skip_bad=True"
            raise ModelError("E-LOG-008", problem, remedy, file=file, line=int(rows[gaps[0]]))
        if len(gaps):
            self.skipped.add("gaps", len(gaps))
        begins = {0: np.isinf(steps[0]), **dict.fromkeys(map(int, gaps), True)}
        cuts = sorted(begins)
        for low, high in zip(cuts, [*cuts[1:], len(rows)], strict=True):
            yield slice(low, high), bool(begins[low])


def extremes(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest entry of each column of a nonempty matrix.

    NumPy compares long rows with SIMD instructions, so several rows are combined into one.
    """
    n, k = array.shape
    whole = n - n % SIDE_BY_SIDE
    if not whole or not k:
        return array.min(axis=0), array.max(axis=0)
    wide = array[:whole].reshape(-1, SIDE_BY_SIDE * k)
    ends = [wide.min(axis=0).reshape(-1, k), wide.max(axis=0).reshape(-1, k), array[whole:]]
    few = np.concatenate(ends)
    return few.min(axis=0), few.max(axis=0)


def not_logs(files: Sequence[str]) -> str:
    """Return the reason for skipping files that are not logs, with the first names."""
    shown = [os.path.basename(file) for file in files[:MOST_NAMED]]
    more = ", ..." * (len(files) > MOST_NAMED)
    return f"files without columns of the robot's joints ({', '.join(shown)}{more})"


def is_simulation(path: str | os.PathLike[str]) -> bool:
    """Return True if the path is a folder that `chasles simulate` wrote."""
    return os.path.isfile(os.path.join(path, motion.MOTION_FILE))


def check_paths(data: Sequence[Any]) -> None:
    """Raise an error if an entry of a sequence of logs is not a path."""
    for path in data:
        if not isinstance(path, str | os.PathLike):
            problem = f"`data` must be paths or one table, not a sequence of {type(path).__name__}"
            remedy = "pass file paths, or join the tables to one data frame"
            raise ArgumentError("E-LOG-030", problem, remedy, part="identify")


def files(path: str | os.PathLike[str]) -> list[str]:
    """Return the files at a path that may be logs: the file itself, or all files in a folder.

    The files of a folder are sorted; files and folders whose names begin with a dot are omitted.
    The log in a simulation folder is its motion file.
    """
    place = Path(motion.motion_file(path) if is_simulation(path) else path)
    if not os.path.exists(path):
        raise ModelError(
            "E-LOG-019", "there is no such file or folder", "check the path", file=path
        )
    if not place.is_dir():
        if place.suffix.lower() not in SUFFIXES:
            remedy = f"use {', '.join(SUFFIXES)} or a folder of such files"
            raise ModelError("E-LOG-009", "unknown log format", remedy, file=path)
        return [os.fspath(place)]
    every = (p for p in place.rglob("*") if p.suffix.lower() in SUFFIXES)
    found = sorted(
        p for p in every if not any(x.startswith(".") for x in p.relative_to(place).parts)
    )
    if not found:
        raise ModelError("E-LOG-010", "there are no logs in this folder",
                         f"use a folder with {', '.join(SUFFIXES)} files", file=path)  # fmt: skip
    return [os.fspath(p) for p in found]
