"""The commands `chasles verify` and `chasles compare`: their options and their help."""

from pathlib import Path
from typing import Annotated

import typer

from chasles.cli.app import app
from chasles.cli.options import Floating, NoMimic, NoSnap, Target, reported


@app.command()
def verify(
    target: Target,
    seed: Annotated[int, typer.Option(min=0, help="Of the first random state.")] = 0,
    states: Annotated[int, typer.Option(min=1, help="How many random states.")] = 2,
    full: Annotated[
        bool, typer.Option("--full", help="Also what takes long: closed forms of large robots.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Every result, as JSON.")] = False,
    floating: Floating = False,
    no_mimic: NoMimic = False,
    no_snap: NoSnap = False,
) -> None:
    """Check a robot's functions against each other and against physics.

    Every method, Newton's and Euler's laws, energy, derivatives, loops, backends.

    At random states of this robot; the exit status is 1 where something differs.

    Examples:

    chasles verify puma560

    chasles verify robot.urdf --floating --states 5

    chasles verify robot.xml --full --json
    """
    from rich.console import Console

    from chasles.checks.table import CHECKS
    from chasles.checks.trial import ARM
    from chasles.checks.verify import verify as checked
    from chasles.cli import verify as report
    from chasles.cli.bench_report import progress
    from chasles.cli.target import Loading, find

    with reported():
        robot = find(target, Loading(floating, not no_mimic, not no_snap))
        with progress(len(CHECKS)) as step:
            found = checked(robot, seed=seed, states=states, full=full, step=step)
        if as_json:
            typer.echo(report.as_json(found))
        else:
            report.show(found, Console(highlight=False), freedoms=robot.nv, arm=ARM)
        if not found.ok:
            raise typer.Exit(1)


@app.command()
def compare(
    target: Target,
    library: Annotated[str, typer.Option("--with", help="pinocchio or mujoco.")],
    file: Annotated[
        Path | None,
        typer.Option("--file", help="The file that it reads. Default: the same, or one written."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random state.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    floating: Floating = False,
    no_mimic: NoMimic = False,
    no_snap: NoSnap = False,
) -> None:
    """Compare a robot with another library, term by term.

    Placements, masses, Jacobians, mass matrix, gravity, bias forces and loops.

    The first difference is named with its likely cause; the exit status is 1 then.

    Examples:

    chasles compare robot.urdf --with pinocchio --no-mimic --no-snap

    chasles compare robot.xml --with mujoco

    chasles compare robot.xml --with pinocchio --file robot.urdf --json
    """
    from rich.console import Console

    from chasles.cli import compare as report
    from chasles.cli.target import Loading, find
    from chasles.peers import LIBRARIES
    from chasles.peers import compare as compared

    with reported():
        robot = find(target, Loading(floating, not no_mimic, not no_snap))
        path = Path(target)
        read = library in LIBRARIES and path.suffix in LIBRARIES[library].suffixes
        found = compared(robot, library, file or (path if read else None), seed=seed)
        if as_json:
            typer.echo(report.as_json(found))
        else:
            report.show(found, Console(highlight=False))
        if not found.ok:
            raise typer.Exit(1)
