"""The `chasles` command."""

from chasles.cli import simulate_command, trust_commands  # noqa: F401  they join those of `app`
from chasles.cli.app import app, main

__all__ = ["app", "main"]
