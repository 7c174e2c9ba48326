"""The command `chasles export`."""

from pathlib import Path
from typing import Annotated

import typer

from chasles.cli import export as task
from chasles.cli.command import Answer, said
from chasles.cli.options import Frame, Functions, listed
from chasles.cli.target import Asked
from chasles.errors import InputError
from chasles.exporting import export as write


def export(
    asked: Asked,
    functions: Functions,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")],
    dtype: Annotated[str, typer.Option(help="double or float.")] = "double",
    own_sine: Annotated[
        bool, typer.Option("--own-sine", help="Sines and cosines without the C library.")
    ] = False,
    prefix: Annotated[
        str, typer.Option(show_default=False, help="Of all names. Default: the robot's name.")
    ] = "",
    frame: Frame = "",
    axes: Annotated[str, typer.Option(show_default=False, help="world or frame.")] = "",
    at: Annotated[str, typer.Option(show_default=False, help="frame, world or x,y,z.")] = "",
    dissipation: Annotated[bool, typer.Option("--dissipation", help="With friction.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files.")] = False,
) -> Answer:
    """Write functions of a robot as plain C99, with a test.

    A header, a source, CMakeLists.txt, and a program that checks stored numbers.

    NAME_derivatives are the derivatives of NAME by all its arguments.

    Examples:

    chasles export puma560 --function inverse_dynamics,mass_matrix --output puma

    chasles export robot.urdf -f jacobian --frame hand --dtype float -o hand
    """
    names = listed(functions)
    if not names:
        problem = "name what to export, such as inverse_dynamics"
        raise InputError("E-CLI-003", problem, part="--function")
    robot = asked.robot()
    paths = write(
        robot,
        names,
        output,
        dtype=dtype,
        prefix=prefix or None,
        own_sine=own_sine,
        dissipation=dissipation,
        overwrite=overwrite,
        **task.viewpoint(robot, names, frame=frame, axes=axes, at=at),
    )
    data = {"robot": robot.name, "functions": names, "files": {p.name: p for p in paths}}
    return Answer(data, said(*task.lines(paths)))
