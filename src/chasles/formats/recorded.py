"""Read motions from binary files: .npz archives of simulations and .parquet tables."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from chasles.errors import ModelError, said
from chasles.formats.archive import table
from chasles.formats.files import size

REACHED = ("solved", "angle_error", "distance_error")
"""Additional columns in motions that `chasles reach` writes.

`solved` is 1 if the pose was reached, and 0 otherwise. `angle_error` is in rad, and
`distance_error` is in m. Reading a row with `solved` equal to 0 raises an error.
"""

Block = dict[str, np.ndarray]
"""Consecutive samples: q (n, nq) and, if available, t (n,) in s, qd (n, nv) and qdd (n, nv)."""


def archive(file: str, columns: Mapping[str, Sequence[str]], chunk: int) -> Iterator[Block]:
    """Read a motion from a .npz file in blocks; `columns` maps q, qd and qdd to column names."""
    found = table(file, {"t": ["t"], **columns, REACHED[0]: REACHED[:1]})
    count = len(next(iter(found.values()), ()))
    parts = ({x: a[k : k + chunk] for x, a in found.items()} for k in range(0, count, chunk))
    return _motion(file, list(found), parts, columns)


def parquet(file: str, columns: Mapping[str, Sequence[str]], chunk: int) -> Iterator[Block]:
    """Read a motion from a Parquet table in blocks; see `archive` for `columns`."""
    size(file)
    opened = _opened(file)
    known = {"t", REACHED[0], *itertools.chain.from_iterable(columns.values())}
    there = [name for name in opened.schema_arrow.names if name in known]
    batches = opened.iter_batches(chunk, columns=there)
    return _motion(file, there, (_columns(file, batch, there) for batch in batches), columns)


def _motion(
    file: str,
    there: Sequence[str],
    parts: Iterable[Mapping[str, np.ndarray]],
    columns: Mapping[str, Sequence[str]],
) -> Iterator[Block]:
    """Yield the blocks of a motion from parts of a table that has the columns `there`."""
    wanted = {x: names for x, names in columns.items() if x == "q" or {*there} & {*names}}
    for name in itertools.chain.from_iterable(wanted.values()):
        if name not in there:
            raise ModelError(
                "E-FILE-089", f"column {name!r} is missing", "add the column", file=file
            )
    first, last = 0, -np.inf
    for part in parts:
        _check_finite(file, part, first)
        count = len(next(iter(part.values()), ()))
        block = {x: _matrix(part, names, count) for x, names in wanted.items()}
        if "t" in part:
            block["t"] = part["t"]
            if np.any(np.diff(part["t"], prepend=last) < 0.0):
                remedy = "sort the rows by time"
                raise ModelError("E-FILE-090", "t is not in ascending order", remedy, file=file)
            last = part["t"][-1]
        solved = part.get(REACHED[0], np.ones(0))
        if not np.all(solved):
            problem = f"the pose in row {first + int(np.argmin(solved))} was not reached"
            remedy = "remove the rows in which `solved` is 0, or choose reachable poses"
            raise ModelError("E-FILE-414", problem, remedy, file=file)
        first += count
        yield block


def _matrix(part: Mapping[str, np.ndarray], names: Sequence[str], count: int) -> np.ndarray:
    return np.column_stack([part[name] for name in names]) if names else np.zeros((count, 0))


def _check_finite(file: str, part: Mapping[str, np.ndarray], first: int) -> None:
    """Raise an error for a number that is not finite; `first` is the row where the part begins."""
    for name, array in part.items():
        if not np.all(np.isfinite(array)):
            row = first + int(np.argmin(np.isfinite(array)))
            problem = f"{name} in row {row} is not a finite number"
            raise ModelError("E-FILE-091", problem, "give a finite number", file=file)


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


def _columns(file: str, batch: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return columns of a Parquet batch as doubles; empty cells are NaN."""
    try:
        found = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in names}
        return {name: np.asarray(array, float) for name, array in found.items()}
    except (ValueError, TypeError) as error:
        problem = f"a column is not numeric ({said(error)})"
        raise ModelError("E-FILE-088", problem, "store the column as float64", file=file) from None


def known_columns(file: str, known: Sequence[str]) -> dict[str, np.ndarray]:
    """Read the columns (n,) of a .npz or Parquet table with known names."""
    if PurePath(file).suffix.lower() == ".npz":
        found = table(file, {name: [name] for name in known})
    else:
        size(file)
        opened = _opened(file)
        names = [name for name in opened.schema_arrow.names if name in known]
        batches = [_columns(file, batch, names) for batch in opened.iter_batches(columns=names)]
        found = {
            name: np.concatenate([x[name] for x in batches] or [np.zeros(0)]) for name in names
        }
    _check_finite(file, found, 0)
    return found


READERS = {".npz": archive, ".parquet": parquet}
"""Functions that read a recorded motion, by file suffix."""
