"""Command-line application `chasles`, with signal handling and exit codes."""

import _thread
import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from chasles.cli import command
from chasles.cli.commands import COMMANDS
from chasles.errors import shown
from chasles.version import VERSION


class _Bare:
    """Mixin that removes the <bool> that some Typer releases print after flags in the help."""

    def get_params(self, ctx: Any) -> Any:
        parameters = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class One(_Bare, TyperCommand):
    """Typer command whose help does not show <bool> after flags."""


class Commands(_Bare, TyperGroup):
    """Command group that reports Ctrl-C even before a command has started."""

    def make_context(self, *words: Any, **options: Any) -> Any:
        with _heard():
            return super().make_context(*words, **options)

    def invoke(self, ctx: Any) -> Any:
        with _heard():
            return super().invoke(ctx)


@contextmanager
def _heard() -> Iterator[None]:
    """Report Ctrl-C and system errors in one line, and escape user input in usage errors."""
    try:
        yield
    except KeyboardInterrupt:
        command.leave("interrupted", command.INTERRUPTED)
    except BrokenPipeError:
        raise
    except OSError as error:
        command.leave(f"error: {command.worded(error)}", command.WRONG)
    except Exception as error:
        if hasattr(error, "format_message") and hasattr(error, "message"):
            error.message = shown(error.message)  # escape user input that a usage error quotes
        raise


app = typer.Typer(
    name="chasles",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"chasles {VERSION}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    debug: command.Debug = False,
) -> None:
    """Rigid-body kinematics and dynamics, compiled for one robot.

    Every command accepts --help (with examples) and --json (for programs).

    \bExamples:
        chasles demo
        chasles info puma560 --json
        chasles cost --help
    """


for _command in COMMANDS:
    app.command(cls=One)(command.offered(_command))


def main() -> None:
    """Run the `chasles` command."""
    sys.unraisablehook = _raised_again
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="chasles")
    except SystemExit as ended:
        unheard = 0
        try:
            command.flush()  # Typer's output, such as the help text, may still be buffered
        except OSError as error:
            command.hang_up()
            unheard = command.UNHEARD if isinstance(error, BrokenPipeError) else command.WRONG
        sys.exit(ended.code or unheard)


def _raised_again(dropped: Any) -> None:
    """Raise KeyboardInterrupt again if it occurred in a finalizer, where Python ignores it."""
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        again = threading.Timer(0.3, _thread.interrupt_main)  # interrupt once the hook has returned
        again.daemon = True
        try:
            again.start()
        except KeyboardInterrupt:  # Ctrl-C was pressed again during this hook
            _raised_again(dropped)
    else:
        sys.__unraisablehook__(dropped)
