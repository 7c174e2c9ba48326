"""Read robot motions and forces from files, one block of samples at a time, and write motions.

A motion in a .csv, .npz or .parquet table has named columns: t (s) and, for a joint J, the columns
J.q, J.qd and J.qdd. If the joint has several coordinates, the columns are J.q0, J.q1, ... A motion
can also be the folder or the .npz file that `chasles simulate` writes. Any other file has the
layout of Legnani et al. (1996), part II, fig. 6: q, qd and qdd for each joint, with one line per
joint or one line per sample. The first line may contain the time step, as in SPACELIB's program;
the program listing in the paper does not read the time step. Forces have the columns fx, fy, fz,
cx, cy, cz. A .csv file names these columns; any other file contains them in this order. Comments
begin with #.
"""

import csv
import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from chasles.errors import ModelError
from chasles.formats.archive import MOTION_FORMAT
from chasles.formats.files import Line, is_number, lines, short, size
from chasles.formats.recorded import REACHED, READERS, Block, known_columns
from chasles.model import Model
from chasles.model.description import some
from chasles.model.graph import FREE
from chasles.model.spaces import PositionSpace
from chasles.names import suggest
from chasles.writing import whole

CHUNK = 4096
"""Default number of samples per block."""

ACTION = ("fx", "fy", "fz", "cx", "cy", "cz")
"""Columns for a force (N) and a couple (N m)."""

QUANTITIES = ("q", "qd", "qdd")

IGNORED = re.compile(
    r"sample|kinetic|potential|contact\d+\.(gap|fx|fy|fz)"
    r"|.+\.(M[123][1234]|w[xyz]|v[xyz]|wd[xyz]|a[xyz]|m[xyz]|f[xyz])"
)
"""Pattern for columns that are ignored when a file is read.

`chasles simulate` writes energies and contact forces. `chasles motion` also writes sample numbers,
and poses, velocities, accelerations and reactions.
"""

MOTION_FILE = "motion.npz"
"""Name of the motion file in a simulation folder."""


@dataclass(frozen=True)
class Motion:
    """A block of consecutive samples of a motion.

    Attributes
    ----------
    first
        Index of the first sample.
    t
        Times (n,) in s; None if the file does not contain them.
    q
        Joint positions (n, nq).
    qd, qdd
        Joint velocities and accelerations (n, nv); None if the file does not contain them.
    end
        Number of bytes read so far.
    """

    first: int
    t: np.ndarray | None
    q: np.ndarray
    qd: np.ndarray | None
    qdd: np.ndarray | None
    end: int


_Row = tuple[Line, list[float]]
"""Last line of a sample in the file (for error messages), and the values of the sample."""


@dataclass(frozen=True)
class _Table:
    """Table of a motion file: rows, column indices by quantity, and time step (None if unknown)."""

    rows: Iterator[_Row]
    places: dict[str, list[int]]
    step: float | None = None


def read(
    path: str | os.PathLike[str], model: Model, *, step: float | None = None, chunk: int = CHUNK
) -> Iterator[Motion]:
    """Read a motion from a file, `chunk` samples at a time.

    `path` is a table (.csv, .npz, .parquet), the folder of a simulation, or a plain text file.
    `step` is the time step in s, for a file without times.
    """
    file = motion_file(path)
    if (suffix := PurePath(file).suffix.lower()) in READERS:
        yield from _recorded(file, model, READERS[suffix](file, columns(model), chunk), step)
        return
    table = (_csv_motion if suffix == ".csv" else _plain_motion)(file, model)
    if step is not None and (table.step is not None or "t" in table.places):
        raise _timed(file)
    step = table.step if step is None else step
    rows = _increasing(table) if "t" in table.places else table.rows
    first = 0
    while block := list(itertools.islice(rows, chunk)):
        numbers = np.array([row for _, row in block])
        found = {name: numbers[:, place] for name, place in table.places.items()}
        _check_quaternions(model, block, found["q"])
        t = found["t"][:, 0] if "t" in found else None
        if step is not None:
            t = step * np.arange(first, first + len(block))
        yield Motion(first, t, found["q"], found.get("qd"), found.get("qdd"), block[-1][0].end)
        first += len(block)
    if first == 0:
        raise _empty(file)


def _recorded(
    file: str, model: Model, blocks: Iterable[Block], step: float | None
) -> Iterator[Motion]:
    """Yield the blocks of a motion read from a binary file."""
    first, end = 0, size(file)
    for block in blocks:
        count = len(block["q"])
        if step is not None and "t" in block:
            raise _timed(file)
        t = block.get("t") if step is None else step * np.arange(first, first + count)
        places: Iterator[_Row] = ((Line(file, first + k + 1, "", end), []) for k in range(count))
        _check_quaternions(model, places, block["q"])
        yield Motion(first, t, block["q"], block.get("qd"), block.get("qdd"), end)
        first += count
    if first == 0:
        raise _empty(file)


def _empty(file: str) -> ModelError:
    return ModelError(
        "E-FILE-013", "the file contains no samples", "give at least one sample", file=file
    )


def _timed(file: str) -> ModelError:
    problem = "the file already contains sample times"
    return ModelError("E-FILE-012", problem, "omit the time step", file=file)


def motion_file(path: str | os.PathLike[str]) -> str:
    """Return the path of the motion file, given the file or a simulation folder."""
    file = os.fsdecode(path)
    return os.path.join(file, MOTION_FILE) if os.path.isdir(file) else file


def _check_quaternions(model: Model, block: Iterable[_Row], q: np.ndarray) -> None:
    for first, joint in PositionSpace().quaternions(model).items():
        zero = ~np.any(q[:, first : first + 4], axis=1)
        if np.any(zero):
            line, _ = next(itertools.islice(block, int(np.argmax(zero)), None))
            problem = f"the quaternion of joint {joint!r} is zero"
            raise line.error("E-FILE-014", problem, "use 1, 0, 0, 0 for the identity")


def forces(path: str | os.PathLike[str]) -> Iterator[list[float]]:
    """Yield the force (N) and couple (N m) in each row of a file: fx, fy, fz, cx, cy, cz."""
    file = os.fsdecode(path)
    if PurePath(file).suffix.lower() not in (".csv", *READERS):
        yield from (_numbers(line, line.text.split(), ACTION) for line in lines(file))
        return
    header = _table(file, ACTION)
    order = header.places(ACTION)
    yield from ([numbers[k] for k in order] for _, numbers in header.rows())


POSITION, ANGLES = ("x", "y", "z"), ("roll", "pitch", "yaw")
QUATERNION = ("qw", "qx", "qy", "qz")


def read_poses(path: str | os.PathLike[str]) -> tuple[np.ndarray | None, np.ndarray]:
    """Read times (n,) and poses from a table; times are None if the file has no column t.

    The table is a .csv or .parquet file, or a .npz file with one array for each column.

    The columns are t (s, optional); x, y, z (m); and for orientations either roll, pitch, yaw (rad,
    about fixed axes as in URDF) or qw, qx, qy, qz. Poses are positions (n, 3), or positions with
    quaternions (n, 7).
    """
    file = os.fsdecode(path)
    header = _table(file, ["t", *POSITION, *ANGLES, *QUATERNION])
    turned = [names for names in (ANGLES, QUATERNION) if set(names) & set(header.names)]
    if len(turned) > 1:
        problem = "orientations are given twice, as angles and as quaternions"
        raise header.line.error("E-FILE-085", problem, "remove one of them")
    places = {"t": header.places(["t"])} if "t" in header.names else {}
    places["pose"] = header.places([*POSITION, *itertools.chain.from_iterable(turned)])
    table = _Table(header.rows(), places)
    rows = list(_increasing(table) if "t" in places else table.rows)
    if not rows:
        raise ModelError("E-FILE-082", "the file has no poses", "give at least one pose", file=file)
    numbers = np.array([row for _, row in rows])
    poses = placed(numbers[:, places["pose"]])
    zero = ~poses[:, 3:].any(axis=1)
    if poses.shape[1] == 7 and zero.any():
        line = rows[int(np.argmax(zero))][0]
        raise line.error("E-FILE-083", "the quaternion is zero", "use 1, 0, 0, 0 for the identity")
    return (numbers[:, places["t"][0]] if "t" in places else None), poses


def placed(numbers: np.ndarray) -> np.ndarray:
    """Convert positions with roll, pitch, yaw (..., 6) to positions with quaternions (..., 7).

    Quaternions are ordered w, x, y, z. Positions (..., 3), and positions with quaternions (..., 7),
    are returned unchanged.
    """
    if numbers.shape[-1] != 6:
        return numbers
    from scipy.spatial.transform import Rotation

    turned = Rotation.from_euler("xyz", numbers[..., 3:]).as_quat()
    return np.concatenate([numbers[..., :3], np.roll(turned, 1, axis=-1)], axis=-1)


def columns(model: Model) -> dict[str, list[str]]:
    """Return the column names of a motion file for each quantity, in coordinate order."""
    names: dict[str, list[str]] = {quantity: [] for quantity in QUANTITIES}
    for body in (model.bodies[i] for i in model.movers):
        for quantity, found in names.items():
            count = body.joint.nq if quantity == "q" else body.joint.nv
            found += numbered(f"{body.data.name}.{quantity}", count)
    return names


def effort_columns(model: Model) -> list[str]:
    """Return the column names for joint torques: J.tau, or J.tau0, J.tau1, ..."""
    joints = (model.bodies[i] for i in model.movers)
    return [name for b in joints for name in numbered(f"{b.data.name}.tau", b.joint.nv)]


def write(
    path: str | os.PathLike[str],
    model: Model,
    t: np.ndarray,
    rows: Sequence[np.ndarray],
    *,
    overwrite: bool = True,
) -> None:
    """Write a motion to a table (.csv, .parquet) or to a .npz file.

    `t` contains the times (n,) in s. `rows` are the arrays for q and, optionally, qd and qdd.
    """
    file = os.fsdecode(path)
    writer = WRITERS.get(PurePath(file).suffix.lower())
    if writer is None:
        *others, last = WRITERS
        remedy = f"use a file name ending in {', '.join(others)} or {last}"
        raise ModelError("E-FILE-415", "unknown motion format", remedy, file=file)
    names, found = columns(model), dict(zip(QUANTITIES, rows, strict=False))
    header = ["t", *itertools.chain.from_iterable(names[x] for x in found)]
    with whole(path, overwrite=overwrite) as part:
        writer(part, header, {"t": t, **found})


def _write_csv(part: Path, header: Sequence[str], found: Mapping[str, np.ndarray]) -> None:
    with part.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerow(header)
        rows = np.column_stack(list(found.values()))
        stream.writelines(",".join(map(repr, row)) + "\n" for row in rows.tolist())


def _write_npz(part: Path, header: Sequence[str], found: Mapping[str, np.ndarray]) -> None:
    arrays: dict[str, Any] = {"format": MOTION_FORMAT, **found}
    with part.open("wb") as stream:
        np.savez(stream, **arrays)


def _write_parquet(part: Path, header: Sequence[str], found: Mapping[str, np.ndarray]) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        remedy = "run pip install 'chasles[data]', or use a .csv file"
        raise ModelError("E-FILE-416", "pyarrow is not installed", remedy, part="save") from None
    rows = np.column_stack(list(found.values()))
    parquet.write_table(pyarrow.table(dict(zip(header, rows.T.copy(), strict=True))), part)


WRITERS = {".csv": _write_csv, ".npz": _write_npz, ".parquet": _write_parquet}
"""Functions that write a motion, by file suffix."""


def numbered(name: str, count: int) -> list[str]:
    """Return the column names of a quantity: [name] if count is 1, else [name0, name1, ...]."""
    return [name] if count == 1 else [f"{name}{k}" for k in range(count)]


# CSV -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Header:
    """Header of a table, its column names, and the lines that follow.

    `values` are the rows of a binary table.
    """

    line: Line
    names: list[str]
    body: Iterable[Line]
    values: Iterable[list[float]] | None = None

    def places(self, names: Sequence[str]) -> list[int]:
        """Return the indices of columns; raise an error if a column is missing."""
        for name in names:
            if name not in self.names:
                raise self.line.error("E-FILE-015", f"column {name!r} is missing", "add the column")
        return [self.names.index(name) for name in names]

    def rows(self) -> Iterator[_Row]:
        """Yield each line after the header with its values."""
        if self.values is not None:
            yield from zip(self.body, self.values, strict=False)
            return
        for line in self.body:
            yield line, _numbers(line, line.text.split(","), self.names)


def _table(file: str, known: Sequence[str]) -> _Header:
    """Read the columns of a .csv, .parquet or .npz table, one row at a time."""
    suffix = PurePath(file).suffix.lower()
    if suffix not in READERS:
        return _header(file, known)
    found = known_columns(file, known)
    rows = np.column_stack(list(found.values())).tolist() if found else []
    end = size(file)
    body = (Line(file, k, "", end) for k in itertools.count(1))
    return _Header(Line(file, 1, "", end), list(found), body, rows)


def _csv_motion(file: str, model: Model) -> _Table:
    wanted = columns(model)
    known = itertools.chain.from_iterable(wanted.values())
    header = _header(file, ["t", *known, *REACHED, *effort_columns(model)])
    places = {"t": header.places(["t"])} if "t" in header.names else {}
    for quantity, names in wanted.items():
        if quantity == "q" or any(name in header.names for name in names):
            places[quantity] = header.places(names)
    rows = header.rows()
    if REACHED[0] in header.names:
        rows = _reached(rows, header.names.index(REACHED[0]))
    return _Table(rows, places)


def _reached(rows: Iterator[_Row], place: int) -> Iterator[_Row]:
    """Yield the rows of an inverse-kinematics result; raise an error for a row with solved = 0."""
    for line, numbers in rows:
        if numbers[place] == 0.0:
            problem = "the pose in this row was not reached (solved is 0)"
            raise line.error("E-FILE-084", problem, "remove the row, or choose a reachable pose")
        yield line, numbers


def _header(file: str, known: Sequence[str]) -> _Header:
    """Read the header of a .csv file; column names must be known and unique."""
    body = lines(file)
    first = next(body, None)
    if first is None:
        remedy = "begin the file with the column names"
        raise ModelError("E-FILE-016", "the file is empty", remedy, file=file, line=1)
    try:
        names = [name.strip() for name in next(csv.reader([first.text]))]
    except csv.Error as error:
        raise first.error(
            "E-FILE-017", f"{error}", "begin the file with the column names"
        ) from error
    for name in names:
        if name not in known and not IGNORED.fullmatch(name):
            problem = f"unknown column {short(name)}"
            remedy = suggest(name[:100], dict.fromkeys(known))
            if name.startswith(f"{FREE}."):
                remedy = "for a motion with a floating base, load the robot with floating=True"
            raise first.error("E-FILE-018", problem, remedy)
        if names.count(name) > 1:
            raise first.error("E-FILE-019", f"column {name!r} appears twice", "remove one")
    return _Header(first, names, body)


def _increasing(table: _Table) -> Iterator[_Row]:
    """Yield the rows; raise an error if the times do not increase."""
    (place,), last = table.places["t"], -math.inf
    for line, numbers in table.rows:
        t = numbers[place]
        if t <= last:
            problem = f"time {t!r} is not later than the previous time {last!r}"
            raise line.error("E-FILE-020", problem, "sort the rows by time and remove duplicates")
        last = t
        yield line, numbers


# Text files with the layout of Legnani et al. (1996), part II, fig. 6 --------------------------


def _plain_motion(file: str, model: Model) -> _Table:
    names = [model.bodies[i].data.name for i in model.movers]
    for name, i in zip(names, model.movers, strict=True):
        if (count := model.bodies[i].joint.nq) != 1:
            problem = (
                f"joint {name!r} has {count} coordinates, but a file without a header supports "
                "only joints with one coordinate"
            )
            remedy = "use a .csv file with a header that names the columns"
            raise ModelError("E-FILE-021", problem, remedy, file=file)
    body = lines(file)
    first = next(body, None)
    step = None
    if first is not None and len(first.text.split()) == 1:
        (step,) = _numbers(first, first.text.split(), ["time step"])
        if step <= 0.0:
            raise first.error(
                "E-FILE-022", f"the time step is {step!r}", "give a positive time step"
            )
        first = next(body, None)
    rest = itertools.chain([] if first is None else [first], body)
    places = {x: list(range(k, 3 * len(names), 3)) for k, x in enumerate(QUANTITIES)}
    return _Table(_instants(rest, names), places, step)


def _instants(body: Iterable[Line], names: Sequence[str]) -> Iterator[_Row]:
    """Yield q, qd, qdd of all joints for each sample.

    Each line of the file contains the values of one joint or of all joints.
    """
    whole = [f"{name}.{quantity}" for name in names for quantity in QUANTITIES]
    numbers: list[float] = []
    for line in body:
        words = line.text.split()
        if len(words) == len(whole) and not numbers:
            numbers = _numbers(line, words, whole)
        elif len(words) == 3 and names:
            numbers += _numbers(line, words, whole[len(numbers) : len(numbers) + 3])
        else:
            remedy = f"give 3 numbers for one joint (q qd qdd), or {len(whole)} for all joints"
            raise line.error("E-FILE-023", f"the line has {len(words)} numbers", remedy)
        if len(numbers) == len(whole):
            yield line, numbers
            numbers = []
    if numbers:
        problem = f"the last sample has only {len(numbers) // 3} of {len(names)} joints"
        raise line.error("E-FILE-024", problem, "add the missing joints")


def _numbers(line: Line, words: Sequence[str], names: Sequence[str]) -> list[float]:
    """Convert the words in a line to finite numbers, one for each name."""
    if len(words) != len(names):
        problem = f"the row has {len(words)} values instead of {len(names)}: {some(names, 12)}"
        raise line.error("E-FILE-025", problem, "add or remove values")
    try:
        numbers = list(map(float, words))
    except ValueError:
        numbers = [math.nan]
    if "_" in line.text or not all(map(math.isfinite, numbers)):
        given = zip(names, map(str.strip, words), strict=True)
        other = ("a number", line.text)  # if each word is a number, but the line is invalid
        name, word = next((pair for pair in given if not is_number(pair[1])), other)
        raise line.error("E-FILE-026", f"{name} is {short(word)}", "give a finite number")
    return numbers
