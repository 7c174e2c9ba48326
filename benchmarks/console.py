"""What the commands share: where tables go, and counts as arguments."""

import argparse
import sys

from rich.console import Console

TABLE_WIDTH = 160
"""Columns of the widest table, for output that is not a terminal."""


def output() -> Console:
    """The terminal, or a file with room for all columns."""
    return Console() if sys.stdout.isatty() else Console(width=TABLE_WIDTH)


def count(text: str) -> int:
    """A number of states."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("a batch has at least one state")
    return value
