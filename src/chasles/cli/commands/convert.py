"""The command `chasles convert`."""

from pathlib import Path
from typing import Annotated

import typer

from chasles.api import save
from chasles.cli.command import Answer, said
from chasles.cli.options import Asked, Overwrite, check_folder
from chasles.formats import endings, inputs
from chasles.writing import check_target


def convert(
    asked: Asked,
    output: Annotated[
        Path,
        typer.Argument(metavar="OUT", help=f"{endings(written=True)} file to write."),
    ],
    overwrite: Overwrite = False,
) -> Answer:
    """Convert a robot to another file format, in full precision.

    If the format cannot represent something that affects the motion, the command
    fails and writes no file. Notes list other omissions.

    Examples:
        chasles convert robot.urdf robot.xml
        chasles convert robot.xml robot.toml
        chasles convert planar:4 planar.urdf --floating
        chasles convert robot.xacro robot.sdf --argument arm=left
    """
    check_folder(output)
    robot = asked.robot()
    check_target(output, overwrite=overwrite, inputs=inputs(robot.model.source))
    notes = save(robot, output, overwrite=overwrite)
    parts = f"{len(robot.joints)} joints, {len(robot.bodies)} links"
    return Answer(
        {"robot": robot.name, "notes": notes, "files": {"robot": output}},
        said(*(f"note: {note}" for note in notes), f"{robot.name} ({parts}) saved to {output}"),
    )
