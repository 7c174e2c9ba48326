"""The command `chasles cost`."""

from typing import Annotated

import typer

from chasles.algorithms import FUNCTIONS
from chasles.cli import cost as report
from chasles.cli.command import Answer
from chasles.cli.options import Frame, Functions, among, listed
from chasles.cli.target import Asked


def cost(
    asked: Asked,
    function: Functions,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            show_default=False,
            autocompletion=among(method.name for row in FUNCTIONS.values() for method in row),
            help="Default: every method.",
        ),
    ] = "",
    frame: Frame = "",
    steps: Annotated[
        bool, typer.Option("--steps", help="Also by statement of each algorithm. Not of --table.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--table", help="Methods side by side: both rules, ratio to the best.")
    ] = False,
    rules: Annotated[
        str,
        typer.Option(
            show_default="simplified",
            help="simplified: the program that runs; book: as counted by hand. --table has both.",
        ),
    ] = "",
) -> Answer:
    """Count the operations of each function by each method.

    For one state of the robot, after simplification: the program that runs.

    With --rules book as Balafoutis and Patel (1991) count: sines and signs are
    free, and nothing is shared between two equations.

    Examples:

    chasles cost puma560

    chasles cost robot.urdf --floating --function mass_matrix

    chasles cost puma560 --function inverse_dynamics --method spatial --steps

    chasles cost puma560 --table

    chasles cost puma560 --table -f closed_form,inverse_dynamics_sensitivities

    chasles cost general_chain:6 -f inverse_dynamics --rules book
    """
    functions, robot = listed(function), asked.robot()
    if compare:
        report.check_apart(steps=steps, rules=rules)
        return report.compared(robot, functions, method, frame)
    chosen = report.checked_rules(rules)
    return report.counted(robot, functions, method, frame, steps=steps, rules=chosen)
