"""The command `chasles excite`."""

from functools import partial
from pathlib import Path
from typing import Annotated, cast, get_args

from rich.console import Console
from rich.markup import escape

from chasles.cli import command
from chasles.cli.options import Asked, Overwrite, among, option
from chasles.cli.simulate import gains
from chasles.formats.motion import WRITERS
from chasles.identification.curves import Shape
from chasles.identification.excitation import Excitation, Goal
from chasles.identification.excitation import excite as found
from chasles.identification.unknowns import INCLUDED
from chasles.plots import move as draw
from chasles.plots.paper import sheet
from chasles.robot import Robot


def excite(
    asked: Asked,
    output: Annotated[
        Path, option("Motion file to write (.csv, .npz, .parquet).", "--output", "-o")
    ],
    duration: Annotated[float, option("Duration of the motion (s).")] = 10.0,
    harmonics: Annotated[int, option("Harmonics of the Fourier series.", min=2)] = 5,
    shape: Annotated[
        str, option("Kind of motion: fourier or spline.", autocompletion=among(get_args(Shape)))
    ] = "fourier",
    goal: Annotated[
        str,
        option(
            "Quantity to optimize: condition or information.", autocompletion=among(get_args(Goal))
        ),
    ] = "condition",
    include: Annotated[
        str, option(f"Terms to identify: inertia, {', '.join(INCLUDED)}.", metavar="NAME,...")
    ] = "inertia,damping,friction",
    velocity: Annotated[
        str | None, option("Maximum joint velocities (rad/s, m/s). Default: the robot's.")
    ] = None,
    acceleration: Annotated[
        str | None, option("Maximum joint accelerations (rad/s², m/s²).")
    ] = None,
    effort: Annotated[
        str | None, option("Maximum joint torques (N m, N). Default: the robot's.")
    ] = None,
    clearance: Annotated[float, option("Minimum distance between links (m).")] = 0.0,
    ignore_collisions: Annotated[bool, option("Do not check distances between links.")] = False,
    steps: Annotated[int, option("Number of gradient steps.", min=1)] = 400,
    seed: Annotated[int, option("Seed of the random motions.")] = 0,
    step: Annotated[float, option("Time step of the motion file (s).")] = 0.01,
    plot: Annotated[Path | None, option("Plot to write (.png, .svg, .pdf).")] = None,
    overwrite: Overwrite = False,
) -> command.Answer:
    """Optimize an excitation motion for parameter identification.

    The motion is a Fourier series or a spline that starts and ends at rest and
    respects the robot's limits. Execute the motion on the robot, record the
    torques, and run `chasles identify`.

    Examples:
        chasles excite puma560 --velocity 2 --effort 100 -o motion.csv
        chasles excite robot.urdf --duration 20 --clearance 0.05 -o motion.csv
    """
    command.check_new_table(output, overwrite=overwrite, suffixes=tuple(WRITERS))
    if plot is not None:
        command.check_new_picture(plot, overwrite=overwrite)
    robot = asked.robot()
    with command.counting(steps) as told:
        excitation = found(
            robot,
            duration=duration,
            harmonics=harmonics,
            shape=cast(Shape, shape),
            goal=cast(Goal, goal),
            include=[name.strip() for name in include.split(",")],
            velocity=gains("--velocity", velocity),
            acceleration=gains("--acceleration", acceleration),
            effort=gains("--effort", effort),
            clearance=None if ignore_collisions else clearance,
            steps=steps,
            seed=seed,
            progress=told,
        )
    excitation.move.save(output, step=step, overwrite=overwrite)
    files = {"motion": output}
    if plot is not None:
        figure, axes = sheet(4, (14.0, 3.3))
        draw(excitation.move, axes)
        command.write_picture(figure, plot, overwrite=overwrite)
        files["plot"] = plot
    data = {
        "robot": robot.name,
        "duration": duration,
        "condition": excitation.condition,
        "margins": excitation.margins,
        "files": files,
    }
    return command.Answer(data, partial(_show, robot, excitation, files))


def _show(robot: Robot, excitation: Excitation, files: dict[str, Path], console: Console) -> None:
    """Print the condition number and the remaining margin to each limit."""
    console.print(
        f"[bold]{escape(robot.name)}[/]: {excitation.move.duration:g} s, condition number "
        f"{excitation.condition:.4g}"
    )
    rows = command.table(["limit"], ["left", "unit"])
    for name, left in excitation.margins.items():
        metres = name.startswith(("distance", "workspace"))
        rows.add_row(
            escape(name), f"{left:.4g}" if metres else f"{left:.1%}", "m" if metres else ""
        )
    console.print(rows)
    command.write_saved(console, files)
