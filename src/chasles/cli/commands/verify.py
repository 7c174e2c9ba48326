"""The command `chasles verify`."""

from typing import Annotated

import typer

from chasles.checks.table import CHECKS
from chasles.checks.verify import verify as checked
from chasles.cli import verify as report
from chasles.cli.bench_report import progress
from chasles.cli.command import FOUND, Answer
from chasles.cli.target import Asked


def verify(
    asked: Asked,
    seed: Annotated[int, typer.Option(min=0, help="Of the first random state.")] = 0,
    states: Annotated[int, typer.Option(min=1, help="How many random states.")] = 2,
    full: Annotated[
        bool, typer.Option("--full", help="Also what takes long: closed forms of large robots.")
    ] = False,
) -> Answer:
    """Check a robot's functions against each other and against physics.

    Every method, Newton's and Euler's laws, energy, derivatives, loops, backends.

    At random states of this robot; the exit status is 1 where something differs.

    Examples:

    chasles verify puma560

    chasles verify robot.urdf --floating --states 5

    chasles verify robot.xml --full --json
    """
    robot = asked.robot()
    with progress(len(CHECKS)) as step:
        found = checked(robot, seed=seed, states=states, full=full, step=step)
    return Answer(
        report.facts(found),
        lambda console: report.show(found, console),
        0 if found.ok else FOUND,
    )
