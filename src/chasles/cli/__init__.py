"""The `chasles` command."""

from chasles.cli import lint_command, simulate_command  # noqa: F401  they join those of `app`
from chasles.cli.app import app, main

__all__ = ["app", "main"]
