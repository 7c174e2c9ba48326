"""Tables of results; Parquet tables have metadata that identifies their inputs."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from chasles.cli.command import TABLES, Add
from chasles.errors import ExistingFileError

MARK, SUMMARY = b"chasles", b"chasles summary"
"""Metadata keys of a Parquet table: for the inputs of the run, and for a summary of the results."""


GROUP = 65_536
"""Number of buffered rows at which a row group is written."""

ENCODING: dict[str, Any] = {
    "use_dictionary": False,
    "use_byte_stream_split": True,
    "compression": "lz4",
}
"""Column encoding: byte-stream split (all first bytes, then all second bytes, ...) and LZ4.

In smooth signals, sign and exponent bytes repeat and compress well.
"""


class Table:
    """Context manager that writes a Parquet table of doubles."""

    def __init__(self, path: Path, mark: bytes, names: Sequence[str]) -> None:
        self.path, self.mark, self.names = path, mark, names
        self.writer: Any = None
        self.held: list[Any] = []

    def __enter__(self) -> "Table":
        return self

    def __exit__(self, *error: object) -> None:
        if self.writer is not None:
            self.writer.close()

    def add(self, columns: Sequence[np.ndarray]) -> None:
        """Append rows, given as one array per column; the first array may be the time."""
        import pyarrow
        from pyarrow import parquet

        if self.writer is None:
            timed = len(columns) > len(self.names)
            names = (["t"] if timed else []) + [*self.names]
            fields = [pyarrow.field(name, pyarrow.float64(), nullable=False) for name in names]
            schema = pyarrow.schema(fields, metadata={MARK: self.mark})
            self.writer = parquet.ParquetWriter(self.path, schema, **ENCODING)
        self.held.append(pyarrow.record_batch(list(columns), schema=self.writer.schema))
        if sum(batch.num_rows for batch in self.held) >= GROUP:
            self._write()

    def _write(self) -> None:
        """Write all buffered rows as one row group."""
        import pyarrow

        if self.held:
            self.writer.write_table(pyarrow.Table.from_batches(self.held))
            self.held.clear()

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the buffered rows, and store the summary in the metadata."""
        if self.writer is None:
            self.add([np.zeros(0) for _ in self.names])
        self._write()
        self.writer.add_key_value_metadata({SUMMARY: json.dumps(summary)})


class Plain:
    """Context manager that writes a table without metadata, such as a .csv or .npz file."""

    def __init__(self, path: Path, suffix: str, names: Sequence[str]) -> None:
        self.path, self.suffix, self.names = path, suffix, names
        self.files = ExitStack()
        self.append: Add | None = None

    def __enter__(self) -> "Plain":
        return self

    def __exit__(self, *error: Any) -> None:
        self.files.__exit__(*error)

    def add(self, columns: Sequence[np.ndarray]) -> None:
        """Append rows, given as one array per column; the first array may be the time."""
        if self.append is None:
            timed = len(columns) > len(self.names)
            names = (["t"] if timed else []) + [*self.names]
            self.append = self.files.enter_context(TABLES[self.suffix](self.path, names))
        self.append(np.column_stack(columns))

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the header if the table has no rows."""
        if self.append is None:
            self.add([np.zeros(0) for _ in self.names])


def created(part: Path, target: Path, mark: bytes, names: Sequence[str]) -> Table | Plain:
    """Return the writer of a new table, whose format is given by the suffix of `target`."""
    suffix = target.suffix.lower()
    return Table(part, mark, names) if suffix == ".parquet" else Plain(part, suffix, names)


def resumed(target: Path, mark: bytes, source: str) -> dict[str, Any]:
    """Return the summary of a finished table; raise an error if it has different inputs."""
    from pyarrow import ArrowException, parquet

    try:
        there = parquet.read_metadata(target).metadata or {}
    except (ArrowException, OSError):
        there = {}
    if there.get(MARK) != mark:
        raise unlike(target, source)
    return dict(json.loads(there[SUMMARY]))


def unlike(target: Path, source: str) -> ExistingFileError:
    """Return the error for an existing table with different inputs."""
    problem = f"the existing table was made from a different {source} or with different options"
    remedy = "choose another output path, or replace the tables with --overwrite"
    return ExistingFileError("E-CLI-272", problem, remedy, file=target)
