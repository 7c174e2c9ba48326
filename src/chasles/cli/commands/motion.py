"""The command `chasles motion`."""

from pathlib import Path
from typing import Annotated

import typer

from chasles.cli.command import Answer
from chasles.cli.motion import Task
from chasles.cli.motion_report import carried_out
from chasles.cli.output import check_new_picture, check_new_table
from chasles.cli.target import Asked


def motion(
    asked: Asked,
    motion: Annotated[
        Path, typer.Argument(metavar="MOTION", help="A .csv with a header, or plain q qd qdd.")
    ],
    frame: Annotated[
        list[str],
        typer.Option(
            "--frame",
            metavar="NAME",
            default_factory=list,
            show_default=False,
            help="A frame to follow; repeatable. Default: the last.",
        ),
    ],
    all_links: Annotated[
        bool, typer.Option("--all-links", help="Follow every link and frame of the robot.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The table to write (.csv, .parquet).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="A picture to draw (.png, .svg, .pdf).")
    ] = None,
    forces: Annotated[
        Path | None, typer.Option("--forces", help="External force and couple: one, or each.")
    ] = None,
    forces_on: Annotated[
        str,
        typer.Option(
            "--forces-on", show_default=False, help="The frame they act on. Default: the last."
        ),
    ] = "",
    at_world: Annotated[
        bool,
        typer.Option("--at-world", help="Of the point at the world's origin, as in W and H."),
    ] = False,
    step: Annotated[
        float | None, typer.Option("--step", help="Seconds between instants without times.")
    ] = None,
    differentiate: Annotated[
        bool, typer.Option("--differentiate", help="Compute missing rates by differences.")
    ] = False,
) -> Answer:
    """Compute poses, velocities, accelerations and forces along a motion.

    Direct kinematics and inverse dynamics at every instant of a motion file.

    Writes them as a table and shows peaks; docs/motion.md says what files hold.

    Examples:

    chasles motion robot.dat robot.mot --output table.csv

    chasles motion puma560 moves.csv --frame tool --plot moves.png

    chasles motion robot.urdf moves.csv --differentiate --forces push.csv
    """
    if output is not None:
        check_new_table(output)
    if plot is not None:
        check_new_picture(plot)
    robot = asked.robot()
    task = Task(
        robot,
        asked.target,
        motion,
        robot.frames if all_links else tuple(frame),
        forces,
        forces_on,
        step,
        differentiate,
        at="world" if at_world else "frame",
    )
    return carried_out(task, output, plot)
