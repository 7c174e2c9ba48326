"""The command `chasles lint`."""

from enum import StrEnum
from typing import Annotated

import typer

from chasles.cli.command import Answer
from chasles.cli.lint_report import Task, plain, show
from chasles.cli.options import Arguments, given, installed, option


class FailOn(StrEnum):
    """From which findings on the exit status is 1."""

    error = "error"
    warning = "warning"
    note = "note"
    never = "never"


def lint(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|NAME",
            help="Robot files, or names of installed robots.",
            autocompletion=installed,
        ),
    ],
    argument: Arguments,
    fix: Annotated[
        bool, option("Write NAME.fixed.urdf beside the file; show the changes.", "--fix")
    ] = False,
    fail_on: Annotated[
        FailOn, option("Exit status 1 from such findings on.", "--fail-on")
    ] = FailOn.warning,
    no_meshes: Annotated[
        bool, option("Do not open the mesh files that a file names.", "--no-meshes")
    ] = False,
) -> Answer:
    """Find what is wrong or odd in robot files, also in those that do not load.

    Inertias, units, left unlike right, limits, names, loops, shapes.

    Exit status: 0 clean, 1 findings, 2 a file cannot be read.

    Examples:

    chasles lint robot.urdf

    chasles lint robots/*.urdf --json --fail-on error

    chasles lint robot.urdf --fix
    """
    task = Task(fix, fail_on.value, not no_meshes, given(argument))
    reports = [task.report(target) for target in files]
    return Answer(
        {"reports": [plain(report) for report in reports]},
        lambda console: show(reports, console),
        task.status(reports),
    )
