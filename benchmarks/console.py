"""Console output, errors and argument types that the commands share."""

import argparse
import sys

from rich.console import Console

TABLE_WIDTH = 160
"""Width (columns) of the widest table, used if the output is not a terminal."""


class WrongAnswer(Exception):
    """Raised if results differ from the reference, because the times are then meaningless."""


def output() -> Console:
    """Return a console for the terminal, or one that is wide enough for all tables."""
    return Console() if sys.stdout.isatty() else Console(width=TABLE_WIDTH)


def count(text: str) -> int:
    """Convert a command-line argument to a positive integer."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be a positive integer")
    return value
