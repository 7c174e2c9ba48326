"""The look that all tables of the command share."""

from collections.abc import Iterable

from rich import box
from rich.table import Table


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
