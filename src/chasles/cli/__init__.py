"""The `chasles` command."""

from chasles.cli import simulate_command, view_command  # noqa: F401  commands that join `app`
from chasles.cli.app import app, main

__all__ = ["app", "main"]
