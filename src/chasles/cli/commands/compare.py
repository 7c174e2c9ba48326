"""The command `chasles compare`."""

from pathlib import Path
from typing import Annotated

import typer

from chasles.cli import compare as report
from chasles.cli.command import FOUND, Answer
from chasles.cli.options import among
from chasles.cli.target import Asked
from chasles.errors import InputError
from chasles.peers import LIBRARIES
from chasles.peers import compare as compared


def compare(
    asked: Asked,
    library: Annotated[
        str,
        typer.Option(
            "--with",
            show_default=False,
            autocompletion=among(LIBRARIES),
            help="pinocchio, mujoco or drake.",
        ),
    ] = "",
    file: Annotated[
        Path | None,
        typer.Option("--file", help="The file that it reads. Default: the same, or one written."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random state.")] = 0,
) -> Answer:
    """Compare a robot with another library, term by term.

    Placements, masses, Jacobians, mass matrix, gravity, bias forces and loops.

    The first difference is named with its likely cause; exit status 1 then.

    Examples:

    chasles compare robot.urdf --with pinocchio --no-mimic --no-snap

    chasles compare robot.xml --with mujoco

    chasles compare panda --with drake --no-mimic --no-snap

    chasles compare robot.xml --with pinocchio --file robot.urdf --json
    """
    if not library:
        problem = f"name the library to compare with: {', '.join(LIBRARIES)}"
        raise InputError("E-CLI-002", problem, part="--with")
    robot, own = asked.robot(), asked.file
    read = library in LIBRARIES and own and own.suffix in LIBRARIES[library].suffixes
    found = compared(robot, library, file or (own if read else None), seed=seed)
    return Answer(
        report.facts(found),
        lambda console: report.show(found, console),
        0 if found.ok else FOUND,
    )
