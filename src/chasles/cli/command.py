"""Convert functions to commands, print their results and errors, and write output files."""

import csv
import errno
import inspect
import io
import itertools
import json
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args, get_type_hints

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from chasles.cli.options import Asked, asked, check_folder, option
from chasles.cli.wording import in_the_shell, options_of, warnings_as_notes
from chasles.errors import ChaslesError, InputError, cuts, escaped, shown
from chasles.plots.paper import check_picture, save
from chasles.writing import check_target, whole

FOUND, WRONG, FAULT, INTERRUPTED, UNHEARD = 1, 2, 3, 130, 141
"""Exit codes for a failed check, invalid input, an internal error, Ctrl-C and a closed pipe."""


@dataclass(frozen=True)
class Answer:
    """The result of a command.

    `data` is the machine-readable output, `show` prints the output as text, and `status` is the
    exit status. `then`, if set, is called after the output and runs until Ctrl-C.
    """

    data: Mapping[str, Any]
    show: Callable[[Console], None]
    status: int = 0
    then: Callable[[], None] | None = None


def write(console: Console, *lines: str, whole: bool = False, **look: Any) -> None:
    """Print lines without wrapping, so that paths can be copied.

    Long names are shortened unless `whole` is True.
    """
    for line in lines:
        text = Text(shown(line, sys.maxsize)) if whole else line
        console.print(text, markup=False, soft_wrap=True, **look)


def note(line: str) -> None:
    """Print a line on stderr."""
    write(Terminal(stderr=True), line)


def write_saved(console: Console, files: Mapping[str, Path]) -> None:
    """Print one line per saved file with its kind and path."""
    for what, path in files.items():
        write(console, f"{what.replace('_', ' ').capitalize()} saved to {path}")


def said(*lines: str, whole: bool = False) -> Callable[[Console], None]:
    """Return a function that prints the lines on a given console."""
    return lambda console: write(console, *lines, whole=whole)


_EVERY = {"rich_help_panel": "Every command"}
Json = Annotated[bool, option("Print the result as JSON.", "--json", **_EVERY)]
Debug = Annotated[bool, option("Show a traceback for errors.", "--debug", **_EVERY)]


def offered(command: Callable[..., Answer]) -> Callable[..., None]:
    """Convert a function to a Typer command with the options --json and --debug.

    A parameter of type `Asked` is replaced by the options that select and load a robot.
    """
    own = dict(inspect.signature(command).parameters)
    hints = get_type_hints(command, include_extras=True)
    robots = [name for name in own if hints[name] is Asked]
    named = dict(inspect.signature(asked).parameters) if robots else {}
    hints |= get_type_hints(asked, include_extras=True) if robots else {}
    target = {name: p for name, p in named.items() if name == "target"}
    shared = {
        name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False)
        for name in ("as_json", "debug")
    }
    hints |= {"as_json": Json, "debug": Debug, "context": typer.Context}

    def run(context: typer.Context, as_json: bool, debug: bool, **given: Any) -> None:
        options = options_of(context.command.params)
        loud = debug or bool(context.find_root().params.get("debug"))
        with guarded(loud, as_json, options), warnings_as_notes(note, options):
            if given.get("overwrite"):
                _check_outputs(given)
            if robots:
                given[robots[0]] = asked(**{name: given.pop(name) for name in named})
            deliver(command(**given), as_json)

    every = target | {n: p for n, p in own.items() if n not in robots} | named | shared
    every |= {"context": inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY)}
    for name, parameter in every.items():
        _complete(name, parameter.default, hints[name])
    told = (command.__doc__ or "").replace("    Examples:", "    \bExamples:")
    run.__name__, run.__doc__ = command.__name__, told  # in Click, \b keeps line breaks
    run.__annotations__ = {name: hints[name] for name in every}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=p.KEYWORD_ONLY, annotation=hints[n]) for n, p in every.items()]
    )
    return run


WRITTEN = ("output", "plot", "recorded", "report", "table", "write_scenario")
"""Names of the command parameters that specify output files."""


def _check_outputs(given: Mapping[str, Any]) -> None:
    """Raise an error if the command would overwrite one of its input files."""
    read = {name: value for name, value in given.items() if name not in WRITTEN}
    files = [x for value in read.values() for x in (value if isinstance(value, list) else [value])]
    for name in WRITTEN:
        if isinstance(path := given.get(name), Path) and os.path.isfile(path):
            inputs = [x for x in files if isinstance(x, str | Path) and os.path.isfile(x)]
            check_target(path, overwrite=True, inputs=inputs)


def _complete(name: str, default: Any, hint: Any) -> None:
    """Drop the --no-NAME form of flags, and hide empty defaults in the help."""
    for info in getattr(hint, "__metadata__", ()):
        if get_args(hint)[0] is bool and info.default is ...:  # option without a custom name
            info.default = f"--{name.replace('_', '-')}"
        if info.show_default is True and (default == "" or info.default_factory):
            info.show_default = False


def deliver(answer: Answer, as_json: bool) -> None:
    """Print the result of a command, and exit with its status."""
    if as_json:
        print(json.dumps(plain(answer.data), indent=1, allow_nan=False))
    else:
        answer.show(Terminal())
    flush()
    if answer.then is not None:
        answer.then()
    if answer.status:
        raise typer.Exit(answer.status)


def flush() -> None:
    """Flush stdout, so that write errors are raised."""
    if sys.stdout is not None:
        sys.stdout.flush()


def plain(value: Any) -> Any:
    """Convert a value to JSON types. Infinity and NaN become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(x) for key, x in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(x) for x in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


ENDLESS = 10_000
"""Line width (columns) for output to a file or pipe, large enough to avoid wrapping."""


LONGEST_LINE = 10_000
"""Maximum length (characters) of a printed line."""


class Terminal(Console):
    """Console that prints untrusted names safely and raises an error if the pipe is closed.

    `render_str` processes all text, including table cells. Unprintable characters are escaped, so
    that a name cannot control the terminal. Long names are shortened.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, emoji=False)
        if not self.is_terminal and not os.environ.get("COLUMNS"):
            self.width = ENDLESS

    def render_str(self, text: str, **look: Any) -> Text:
        whole = super().render_str(escaped(text), **look)
        made, end = whole.blank_copy(), 0
        for first, last in cuts(whole.plain, LONGEST_LINE):
            made.append_text(whole[end:first]).append("\N{HORIZONTAL ELLIPSIS}")
            end = last
        return made.append_text(whole[end:]) if end else whole

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


@contextmanager
def guarded(
    debug: bool = False, as_json: bool = False, options: Sequence[str] = ()
) -> Iterator[None]:
    """Report an error in one line on stderr and exit; with --json, also print its fields.

    `options` are the names of the command's options, which replace Python argument names in
    remedies.
    """
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except BrokenPipeError:
        hang_up()
        raise typer.Exit(UNHEARD) from None
    except KeyboardInterrupt as error:
        leave("interrupted", INTERRUPTED, error if debug else None)
    except (ChaslesError, ValueError, OSError, ImportError, MemoryError) as error:
        error = in_the_shell(error, options) if isinstance(error, ChaslesError) else error
        if as_json and isinstance(error, ChaslesError):
            print(json.dumps({"error": error.fields()}, indent=1))
        leave(f"error: {worded(error) or 'out of memory'}", WRONG, error if debug else None)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        line = (
            f"error: internal error in chasles: {what}; rerun with --debug and report the traceback"
        )
        leave(line, FAULT, error if debug else None)


def worded(error: BaseException) -> str:
    """Return an error message. For a system error, the message names the file."""
    if isinstance(error, OSError) and not isinstance(error, ChaslesError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def leave(line: str, status: int, error: BaseException | None = None) -> NoReturn:
    """Print a line on stderr and exit. If `error` is given, print its traceback first."""
    if error is not None:
        lines = "".join(traceback.format_exception(error))
        print(shown(lines, lines=True), end="", file=sys.stderr)
    write(Terminal(stderr=True), " ".join(line.split()), style="red")
    raise typer.Exit(status) from None


def hang_up() -> None:
    """Redirect stdout to the null device after the reader has closed the pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


# Tables and progress bars ---------------------------------------------------------------------

NOISE = 1e-15
"""Values below this fraction of the largest value of a quantity are displayed as zero."""


def table(words: Iterable[str], numbers: Iterable[str] = ()) -> Table:
    """Return an empty table with text columns followed by right-aligned number columns."""
    made = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    for column in words:
        made.add_column(column, overflow="fold")
    for column in numbers:
        made.add_column(column, justify="right", no_wrap=True)
    return made


def without_noise(values: Any) -> np.ndarray:
    """Return an array in which entries below the rounding error of the largest entry are zero."""
    array = np.asarray(values, dtype=float)
    least = NOISE * np.max(np.abs(array), initial=0.0, where=np.isfinite(array))
    return np.where(np.abs(array) <= least, 0.0, array)


def vector(entries: Iterable[float]) -> str:
    """Format a vector in parentheses, with four significant digits per component."""
    return f"({', '.join(f'{x + 0.0:.4g}' for x in entries)})"


@contextmanager
def bar(total: float | None, *columns: ProgressColumn) -> Iterator[Callable[..., None]]:
    """Show a progress bar if stderr is a terminal; yield a function that updates the bar."""
    console = Console(stderr=True)
    moving = Progress(
        BarColumn(20), *columns, console=console, transient=True, disable=not console.is_terminal
    )
    with moving:
        yield partial(moving.update, moving.add_task("", total=total))


class _Rate(ProgressColumn):
    """Progress column that shows steps per second."""

    def render(self, task: Any) -> Text:
        speed = task.speed or 0.0
        return Text(f"{speed / 1e3:.0f} thousand/s" if speed >= 1e4 else f"{speed:.3g}/s")


@contextmanager
def counting(total: float | None) -> Iterator[Callable[[float], None]]:
    """Show a progress bar with rate and remaining time; yield a function that advances it."""
    columns = (TaskProgressColumn(), _Rate(), TimeRemainingColumn(), TextColumn("left"))
    with bar(total, *columns) as told:
        yield lambda count: told(advance=count)


@contextmanager
def steps(count: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar for `count` steps; yield a function to call before each step."""
    with bar(count, TimeElapsedColumn(), TextColumn("{task.description}", markup=False)) as told:
        done = itertools.count()
        yield lambda what: told(completed=next(done), description=shown(what))


# Table files -----------------------------------------------------------------------------------

Add = Callable[[np.ndarray], None]
"""Function that appends rows to a table file."""


@contextmanager
def csv_table(path: Path, names: Sequence[str]) -> Iterator[Add]:
    """Write a CSV file with a header and numbers in full precision."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerow(names)

        def add(rows: np.ndarray) -> None:
            stream.writelines(",".join(map(repr, row)) + "\n" for row in rows.tolist())

        yield add


@contextmanager
def parquet_table(path: Path, names: Sequence[str]) -> Iterator[Add]:
    """Write a Parquet file of doubles. Each call to the yielded function adds a row group."""
    import pyarrow as arrow
    from pyarrow import parquet

    schema = arrow.schema([(name, arrow.float64()) for name in names])
    with parquet.ParquetWriter(path, schema) as writer:

        def add(rows: np.ndarray) -> None:
            writer.write_table(arrow.table(list(rows.T.copy()), schema=schema))

        yield add


@contextmanager
def npz_table(path: Path, names: Sequence[str]) -> Iterator[Add]:
    """Write a .npz file with one array per column; rows stay in memory until the end."""
    parts = [np.zeros((0, len(names)))]
    yield parts.append
    columns = dict(zip(names, np.concatenate(parts).T.copy(), strict=True))
    with path.open("wb") as stream:
        np.savez(stream, **columns)


TABLES = {".csv": csv_table, ".npz": npz_table, ".parquet": parquet_table}
"""Table writers by file suffix."""


def check_new_table(
    path: Path, *, overwrite: bool, suffixes: Sequence[str] = tuple(TABLES)
) -> None:
    """Check, before any computation, that a table file can be written."""
    check_folder(path)
    if path.suffix.lower() not in suffixes:
        problem, *others, last = "unknown table format", *suffixes
        remedy = f"use a file name ending in {', '.join(others)} or {last}"
        raise InputError("E-CLI-028", problem, remedy, file=path)
    if os.path.isdir(path):
        raise InputError(
            "E-CLI-029", "the path is a directory", "name a file inside the directory", file=path
        )
    check_target(path, overwrite=overwrite)
    if path.suffix.lower() == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            remedy = "run pip install 'chasles[data]', or write a .csv file"
            raise InputError(
                "E-CLI-030", "writing Parquet files needs pyarrow", remedy, file=path
            ) from None


# Plots -----------------------------------------------------------------------------------------


def check_new_picture(path: Path, *, overwrite: bool) -> None:
    """Check, before any computation, that a plot file can be written."""
    check_folder(path)
    check_picture(path)
    check_target(path, overwrite=overwrite)


def picture(figure: Any, suffix: str) -> bytes:
    """Render a matplotlib figure to bytes in the format given by `suffix`."""
    stream = io.BytesIO()
    save(figure, stream, suffix)
    return stream.getvalue()


def write_picture(figure: Any, path: Path, *, overwrite: bool) -> None:
    """Write a matplotlib figure atomically."""
    with whole(path, overwrite=overwrite) as part:
        part.write_bytes(picture(figure, path.suffix))
