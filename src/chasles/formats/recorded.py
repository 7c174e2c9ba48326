"""Read motions from binary files: .npz archives of simulations and .parquet tables."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from zipfile import is_zipfile

import numpy as np

from chasles.errors import ModelError, said
from chasles.formats.archive import arrays
from chasles.formats.files import short, size

REACHED = ("solved", "angle_error", "distance_error")
"""Additional columns in motions that `chasles reach` writes.

`solved` is 1 if the pose was reached, and 0 otherwise. `angle_error` is in rad, and
`distance_error` is in m. Reading a row with `solved` equal to 0 raises an error.
"""

MOTION_FORMAT = "chasles-motion-1"
"""Value of `format` in a motion file (.npz) written by `chasles simulate`."""

Block = dict[str, np.ndarray]
"""Consecutive samples: q (n, nq) and, if available, t (n,) in s, qd (n, nv) and qdd (n, nv)."""


def archive(file: str, columns: Mapping[str, Sequence[str]], chunk: int) -> Iterator[Block]:
    """Read a motion from a .npz file in blocks; `columns` maps q, qd and qdd to column names."""
    found = read_archive(file, len(columns["q"]), len(columns["qd"]))
    for first in range(0, len(found["t"]), chunk):
        yield {name: array[first : first + chunk] for name, array in found.items()}


def read_archive(file: str, nq: int, nv: int) -> Block:
    """Read times, positions and, if present, velocities and accelerations from a .npz file."""
    size(file)
    try:
        found = arrays(file, ("format", "t", "q"))
        for name in ("qd", "qdd"):
            with suppress(ValueError):  # velocities and accelerations are optional
                found |= arrays(file, (name,))
        named = str(found.pop("format"))
        found = {name: np.asarray(array, dtype=float) for name, array in found.items()}
    except (ValueError, TypeError) as error:
        zipped = is_zipfile(file)
        fault = (
            f"the motion cannot be read ({said(error)})"
            if zipped
            else "the file is not a .npz file"
        )
        remedy = "give a motion.npz file written by `chasles simulate`"
        raise ModelError("E-FILE-027", fault, remedy, file=file) from None
    if named != MOTION_FORMAT:
        problem = f"unknown motion format {short(named)}"
        raise ModelError("E-FILE-028", problem, f"use {MOTION_FORMAT!r}", file=file)
    t, q = found["t"], found["q"]
    qd, qdd = (found.get(name, np.zeros((t.size, nv))) for name in ("qd", "qdd"))
    rates = {qd.shape, qdd.shape}
    if t.ndim != 1 or q.shape != (len(t), nq) or rates != {(len(t), nv)} or not len(t):
        shapes = ", ".join(f"{name} {values.shape}" for name, values in found.items())
        problem = f"the shapes of the arrays do not match: {shapes}"
        more = {(7, 6): "with", (-7, -6): "without"}
        base = more.get((q.shape[-1] - nq, qd.shape[-1] - nv)) if q.ndim == qd.ndim == 2 else None
        remedy = f"give a motion for this robot, which has {nq} coordinates"
        if base:  # the motion has the coordinates of a free joint, or lacks them
            remedy = f"load the robot {base} floating=True"
        raise ModelError("E-FILE-029", problem, remedy, file=file)
    for name, values in found.items():
        if not np.all(np.isfinite(values)):
            problem, remedy = f"{name} contains NaN or infinity", "remove these samples"
            raise ModelError("E-FILE-030", problem, remedy, file=file)
    if np.any(np.diff(t) < 0.0):
        raise ModelError("E-FILE-092", "t decreases", "sort the samples by time", file=file)
    return found


def parquet(file: str, columns: Mapping[str, Sequence[str]], chunk: int) -> Iterator[Block]:
    """Read a motion from a Parquet table in blocks; see `archive` for `columns`."""
    size(file)
    opened = _opened(file)
    there = set(opened.schema_arrow.names)
    wanted = {"t": ["t"], **columns} if "t" in there else dict(columns)
    wanted = {x: names for x, names in wanted.items() if x == "q" or there & set(names)}
    wanted |= {"solved": [REACHED[0]]} if REACHED[0] in there else {}
    read = list(itertools.chain.from_iterable(wanted.values()))
    for name in read:
        if name not in there:
            raise ModelError(
                "E-FILE-089", f"column {name!r} is missing", "add the column", file=file
            )
    first, last = 0, -np.inf
    for batch in opened.iter_batches(chunk, columns=read):
        block = {x: _matrix(file, batch, names, first) for x, names in wanted.items()}
        if "t" in block:
            block["t"] = block["t"][:, 0]
            if np.any(np.diff(block["t"], prepend=last) < 0.0):
                remedy = "sort the rows by time"
                raise ModelError("E-FILE-090", "t is not in ascending order", remedy, file=file)
            last = block["t"][-1]
        if "solved" in block and not np.all(solved := block.pop("solved")):
            problem = f"the pose in row {first + int(np.argmin(solved))} was not reached"
            remedy = "remove the rows in which `solved` is 0, or choose reachable poses"
            raise ModelError("E-FILE-414", problem, remedy, file=file)
        first += len(batch)
        yield block


def _opened(file: str) -> Any:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        remedy = "run pip install 'chasles[data]', or use a .csv file"
        raise ModelError("E-FILE-087", "pyarrow is not installed", remedy, file=file) from None
    try:
        return ParquetFile(file)
    except (ArrowException, OSError) as error:
        problem = f"the file is not a Parquet table ({said(error)})"
        raise ModelError("E-FILE-086", problem, "save the table as Parquet", file=file) from None


def _matrix(file: str, batch: Any, names: Sequence[str], first: int) -> np.ndarray:
    """Return columns of a Parquet batch as a matrix; `first` is the row where the batch begins."""
    try:
        found = (
            np.column_stack(
                [
                    np.asarray(batch.column(name).to_numpy(zero_copy_only=False), float)
                    for name in names
                ]
            )
            if names
            else np.zeros((len(batch), 0))
        )
    except (ValueError, TypeError) as error:
        problem = f"a column is not numeric ({said(error)})"
        raise ModelError("E-FILE-088", problem, "store the column as float64", file=file) from None
    bad = np.argwhere(~np.isfinite(found))
    if len(bad):
        row, column = bad[0]
        problem = f"{names[column]} in row {first + int(row)} is not a finite number"
        raise ModelError("E-FILE-091", problem, "give a finite number", file=file)
    return found


def parquet_columns(file: str, known: Sequence[str]) -> Block:
    """Read the columns of a Parquet table with known names."""
    size(file)
    opened = _opened(file)
    names = [name for name in opened.schema_arrow.names if name in known]
    return dict(zip(names, _matrix(file, opened.read(names), names, 0).T, strict=True))


def npz_columns(file: str, known: Sequence[str]) -> Block:
    """Read the arrays (n,) of a .npz file with known names."""
    size(file)
    try:
        found = {name: x for name, x in arrays(file).items() if name in known}
        numbers = {name: np.asarray(x, dtype=float) for name, x in found.items()}
    except (ValueError, TypeError) as error:
        problem = f"the table cannot be read ({said(error)})"
        remedy = "save one array for each column with numpy.savez"
        raise ModelError("E-FILE-420", problem, remedy, file=file) from None
    for name, x in numbers.items():
        if x.ndim != 1 or len(x) != len(next(iter(numbers.values()))):
            problem = f"array {name!r} has shape {x.shape}"
            remedy = "give each column the same number of entries"
            raise ModelError("E-FILE-421", problem, remedy, file=file)
        if not np.all(np.isfinite(x)):
            problem, remedy = f"{name} contains NaN or infinity", "remove these rows"
            raise ModelError("E-FILE-422", problem, remedy, file=file)
    return numbers


READERS = {".npz": archive, ".parquet": parquet}
"""Functions that read a recorded motion, by file suffix."""
