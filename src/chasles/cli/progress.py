"""A bar that shows how far a command has come."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn


@contextmanager
def bar(total: float, *columns: ProgressColumn) -> Iterator[Callable[..., None]]:
    """On a terminal, a bar on stderr with columns behind it, which goes at the end.

    It moves when it is told `completed=`, as much of `total`; `description=` is for a column.
    """
    console = Console(stderr=True)
    shown = Progress(
        BarColumn(20), *columns, console=console, transient=True, disable=not console.is_terminal
    )
    with shown:
        yield partial(shown.update, shown.add_task("", total=total))
