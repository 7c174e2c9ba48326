"""The `chasles` command."""

from chasles.cli.app import app, main

__all__ = ["app", "main"]
