"""The first step of the `chasles` command, outside the package: Ctrl-C as it loads is heard."""

import sys

INTERRUPTED = 130
"""The exit status of a command that Ctrl-C stopped, as shells have it."""


def main() -> None:
    """Load the command and run it; Ctrl-C at any time is one line, and an exit status."""
    try:
        from chasles.cli import main as command

        command()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
