"""The command `chasles cache`."""

from typing import Annotated

import typer

from chasles.cli import cache as report
from chasles.cli.command import Answer


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all entries.")] = False,
) -> Answer:
    """Show, or clear, the compiled code that is kept on disk.

    The folder is the platform's own, or what CHASLES_CACHE says.

    Examples:

    chasles cache

    chasles cache --clear
    """
    return report.cleared() if clear else report.kept()
