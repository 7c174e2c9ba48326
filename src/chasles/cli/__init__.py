"""The `chasles` command."""

from chasles.cli import simulate_command  # noqa: F401  its command joins those of `app`
from chasles.cli.app import app, main

__all__ = ["app", "main"]
