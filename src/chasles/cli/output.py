"""Printed tables, bars of progress, files of numbers and pictures of commands."""

import csv
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from chasles.cli.options import check_folder
from chasles.errors import InputError
from chasles.formats.files import whole
from chasles.plots.paper import check_picture, save


def table(words: Iterable[str], numbers: Iterable[str] = ()) -> Table:
    """An empty table: columns of words, then columns of numbers, which are never broken."""
    made = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    for column in words:
        made.add_column(column, overflow="fold")
    for column in numbers:
        made.add_column(column, justify="right", no_wrap=True)
    return made


def vector(entries: Iterable[float]) -> str:
    """Numbers in parentheses, four digits each."""
    return f"({', '.join(f'{x + 0.0:.4g}' for x in entries)})"


@contextmanager
def bar(total: float, *columns: ProgressColumn) -> Iterator[Callable[..., None]]:
    """On a terminal, a bar on stderr that moves when told `completed=`, and goes at the end."""
    console = Console(stderr=True)
    shown = Progress(
        BarColumn(20), *columns, console=console, transient=True, disable=not console.is_terminal
    )
    with shown:
        yield partial(shown.update, shown.add_task("", total=total))


@contextmanager
def steps(count: int) -> Iterator[Callable[[str], None]]:
    """A bar that moves with every step it is told of."""
    with bar(count, TimeElapsedColumn(), TextColumn("{task.description}")) as told:
        done = itertools.count()
        yield lambda what: told(completed=next(done), description=what)


# Files of numbers ------------------------------------------------------------------------------

Add = Callable[[np.ndarray], None]
"""Adds rows to a table."""


@contextmanager
def csv_table(path: Path, names: Sequence[str]) -> Iterator[Add]:
    """A header and a line for each row, every number with all its digits."""
    with path.open("x", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerow(names)

        def add(rows: np.ndarray) -> None:
            stream.writelines(",".join(map(repr, row)) + "\n" for row in rows.tolist())

        yield add


@contextmanager
def parquet_table(path: Path, names: Sequence[str]) -> Iterator[Add]:
    """A column of doubles for each name; a row group for each addition."""
    import pyarrow as arrow
    from pyarrow import parquet

    schema = arrow.schema([(name, arrow.float64()) for name in names])
    with parquet.ParquetWriter(path, schema) as writer:

        def add(rows: np.ndarray) -> None:
            writer.write_table(arrow.table(list(rows.T.copy()), schema=schema))

        yield add


TABLES = {".csv": csv_table, ".parquet": parquet_table}
"""Writers of tables by the file's suffix."""


def check_new_table(path: Path) -> None:
    """Say at once what would make writing a table fail."""
    check_folder(path)
    if path.suffix.lower() not in TABLES:
        problem = "unknown kind of table"
        raise InputError("E-CLI-028", problem, f"end the name in {' or '.join(TABLES)}", file=path)
    if path.is_dir():
        raise InputError("E-CLI-029", "this is a directory", "name a file in it", file=path)
    if path.suffix.lower() == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            remedy = "pip install 'chasles[data]', or write a .csv"
            raise InputError("E-CLI-030", "Parquet needs pyarrow", remedy, file=path) from None


# Pictures --------------------------------------------------------------------------------------


def check_new_picture(path: Path) -> None:
    """Say at once what would make writing a picture fail."""
    check_folder(path)
    check_picture(path)


def write_picture(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib, all of it or nothing."""
    with whole(path) as part:
        save(figure, part, path.suffix)
