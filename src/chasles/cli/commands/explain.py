"""The command `chasles explain`."""

from dataclasses import asdict
from typing import Annotated

import typer

from chasles.algorithms import FUNCTIONS, METHODS
from chasles.cli.command import Answer, said
from chasles.cli.options import Asked, Frame, among, has_frame, method_option, option
from chasles.errors import InputError
from chasles.names import suggested


def explain(
    asked: Asked,
    function: Annotated[
        str,
        typer.Argument(
            metavar="FUNCTION",
            help="Function name, for example inverse_dynamics.",
            autocompletion=among(FUNCTIONS),
        ),
    ],
    method: Annotated[str, method_option("Method name.")] = "fastest",
    frame: Frame = "",
    program: Annotated[bool, option("Show every line of the program (also with --json).")] = False,
) -> Answer:
    """Explain what runs when a function is called.

    Shows the chosen method and its alternatives, the model simplifications with
    the number of operations after each, the location of the algorithm's source
    code, and the generated program.

    Examples:
        chasles explain puma560 inverse_dynamics
        chasles explain robot.urdf mass_matrix --program
        chasles explain four_bar forward_dynamics --json
    """
    robot = asked.robot()
    if function not in METHODS:
        problem = f"unknown function {function!r}"
        raise InputError("E-CLI-044", problem, suggested(function, METHODS))
    options = {"frame": frame or robot.tool} if has_frame(function) else {}
    found = robot.explain(function, method=method, **options)
    lines = found.text(full=program).split("\n")
    lines[1:1] = [f"frame: {name!r}" for name in options.values()]
    plain = ("robot", "function", "method", "reason", "source", "lines", "sources")
    data = {name: getattr(found, name) for name in plain} | {
        "given": asdict(found.given),
        "passes": [
            each._asdict() | {"operations": asdict(each.operations)} for each in found.passes
        ],
        "candidates": [each._asdict() for each in found.candidates],
        "operations": asdict(found.program.count),
        "program": found.listing(full=program),
    }
    return Answer(data | options, said(*lines, whole=program))
