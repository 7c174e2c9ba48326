"""The `chasles` command: its subcommands, their options and their help."""

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

import chasles
from chasles.cli.options import (
    Arguments,
    Floating,
    NoMimic,
    NoSnap,
    Strict,
    Target,
    check_folder,
    reported,
)

app = typer.Typer(
    name="chasles",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"chasles {chasles.__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Rigid-body kinematics and dynamics, compiled for one robot.

    Start with: chasles demo
    """


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The picture to write (.png, .svg, .pdf).")
    ] = Path("demo.png"),
) -> None:
    """Move an arm, check its torques three ways, save a plot.

    The built-in PUMA 560 follows a smooth motion; inverse dynamics says how.

    Forward dynamics must give the motion back, and work must become energy.

    Examples:

    chasles demo

    chasles demo --output puma.svg
    """
    from rich.console import Console

    from chasles.cli import demo as experiment
    from chasles.cli import demo_report

    with reported():
        check_folder(output)
        console = Console(highlight=False)
        result = experiment.run()
        demo_report.show(result, console)
        demo_report.plot(result, output)
        console.print(f"Plot saved to {output}", markup=False, soft_wrap=True)
        if not all(check.passed for check in result.checks):
            raise typer.Exit(1)


@app.command()
def info(
    target: Target,
    argument: Arguments,
    floating: Floating = False,
    no_mimic: NoMimic = False,
    no_snap: NoSnap = False,
    strict: Strict = False,
) -> None:
    """Show a robot's joints, links, masses, frames and notes.

    Built-in robots that need numbers take them after a colon.

    Examples:

    chasles info puma560

    chasles info planar:4

    chasles info robot.urdf --floating --strict

    chasles info robot.xacro --argument arm=left
    """
    from rich.console import Console

    from chasles.cli import info as report
    from chasles.cli.target import Loading, find, given

    with reported():
        how = Loading(floating, not no_mimic, not no_snap, strict, given(argument))
        robot = find(target, how)
        report.show(robot, Console(highlight=False))


@app.command()
def cost(
    target: Target,
    function: Annotated[
        list[str],
        typer.Option(
            "--function",
            "-f",
            default_factory=list,
            show_default=False,
            help="Any function, also closed_form or inverse_dynamics_sensitivities; repeatable. "
            "Default: the main ones.",
        ),
    ],
    method: Annotated[
        str,
        typer.Option("--method", "-m", show_default=False, help="Default: every method."),
    ] = "",
    frame: Annotated[
        str,
        typer.Option(show_default=False, help="Of functions that have one. Default: the last."),
    ] = "",
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
    floating: Floating = False,
    no_mimic: NoMimic = False,
    no_snap: NoSnap = False,
) -> None:
    """Count the operations of each function by each method.

    For one state of the robot, after simplification: the program that runs. By the rules of
    Balafoutis and Patel (1991), nothing is shared between two equations, sines and signs are free.

    Examples:

    chasles cost puma560

    chasles cost robot.urdf --floating --function mass_matrix

    chasles cost puma560 --function inverse_dynamics --method spatial --steps

    chasles cost puma560 --table

    chasles cost puma560 --table -f closed_form -f inverse_dynamics_sensitivities

    chasles cost general_chain:6 -f inverse_dynamics -m augmented-tensor --steps --rules book
    """
    from rich.console import Console

    from chasles.cli import cost as report
    from chasles.cli.target import Loading, find

    with reported():
        robot = find(target, Loading(floating, not no_mimic, not no_snap))
        console = Console(highlight=False)
        if compare:
            report.check_apart(steps=steps, rules=rules)
            report.compare(robot, console, functions=function, method=method, frame=frame)
        else:
            chosen = report.checked_rules(rules)
            report.show(
                robot,
                console,
                functions=function,
                method=method,
                frame=frame,
                steps=steps,
                rules=chosen,
            )


@app.command()
def bench(
    target: Target,
    floating: Floating = False,
    no_mimic: NoMimic = False,
    no_snap: NoSnap = False,
    batch: Annotated[int, typer.Option(min=1, help="States in a batch.")] = 4096,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The plot to write (.png, .svg, .pdf).")
    ] = Path("bench.png"),
) -> None:
    """Time a robot's main functions and their derivatives on this machine.

    One call from Python, batches on one core and on all, and in float32.

    Beside Pinocchio for .urdf files, where it is installed; answers must agree.

    Examples:

    chasles bench puma560

    chasles bench robot.urdf --floating --output bench.png
    """
    from rich.console import Console

    from chasles.cli import bench as measure
    from chasles.cli import bench_report
    from chasles.cli.target import Loading, find

    with reported():
        check_folder(output)
        console = Console(highlight=False)
        robot = find(target, Loading(floating, not no_mimic, not no_snap))
        with bench_report.progress(measure.STEPS) as step:
            result = measure.run(robot, target, floating=floating, batch=batch, step=step)
        bench_report.show(result, console)
        bench_report.plot(result, output)
        console.print(f"Plot saved to {output}", markup=False, soft_wrap=True)


@app.command()
def convert(
    target: Target,
    output: Annotated[
        Path, typer.Argument(metavar="OUT", help="The .toml, .urdf, .sdf, .xml or .mjcf to write.")
    ],
    argument: Arguments,
    floating: Floating = False,
    no_snap: NoSnap = False,
    strict: Strict = False,
) -> None:
    """Write a robot in another format, with all digits.

    What would change its motion and has no place in the format is an error.

    What would not is left out, and said. The file is whole or not there at all.

    Examples:

    chasles convert robot.urdf robot.xml

    chasles convert robot.xml robot.toml

    chasles convert planar:4 planar.urdf --floating

    chasles convert robot.xacro robot.sdf --argument arm=left
    """
    from rich.console import Console

    from chasles.cli.convert import report
    from chasles.cli.target import Loading, find, given

    with reported():
        check_folder(output)
        robot = find(target, Loading(floating, True, not no_snap, strict, given(argument)))
        report(robot, output, Console(highlight=False))


@app.command()
def motion(
    target: Target,
    motion: Annotated[
        Path, typer.Argument(metavar="MOTION", help="A .csv with a header, or plain q qd qdd.")
    ],
    frame: Annotated[
        list[str],
        typer.Option(
            "--frame",
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
    floating: Floating = False,
    no_mimic: NoMimic = False,
    no_snap: NoSnap = False,
) -> None:
    """Compute poses, velocities, accelerations and forces along a motion.

    Direct kinematics and inverse dynamics at every instant of a motion file.

    Writes them as a table and shows peaks; docs/motion.md says what files hold.

    Examples:

    chasles motion robot.dat robot.mot --output table.csv

    chasles motion puma560 moves.csv --frame tool --plot moves.png

    chasles motion robot.urdf moves.csv --differentiate --forces push.csv
    """
    from rich.console import Console

    from chasles.cli.motion import Task
    from chasles.cli.motion_report import report
    from chasles.cli.target import Loading, find

    with reported():
        for path in (output, plot):
            if path is not None:
                check_folder(path)
        robot = find(target, Loading(floating, not no_mimic, not no_snap))
        frames = robot.frames if all_links else tuple(frame)
        task = Task(
            robot,
            target,
            motion,
            frames,
            forces,
            forces_on,
            step,
            differentiate,
            at="world" if at_world else "frame",
        )
        report(task, output, plot, Console(highlight=False))


@app.command()
def export(
    target: Target,
    functions: Annotated[
        str, typer.Option("--functions", "-f", help="Names with commas between them.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")],
    dtype: Annotated[str, typer.Option(help="double or float.")] = "double",
    own_sine: Annotated[
        bool, typer.Option("--own-sine", help="Sines and cosines without the C library.")
    ] = False,
    prefix: Annotated[
        str, typer.Option(show_default=False, help="Of all names. Default: the robot's name.")
    ] = "",
    frame: Annotated[
        str, typer.Option(show_default=False, help="Of functions that have one. Default: the last.")
    ] = "",
    axes: Annotated[str, typer.Option(show_default=False, help="world or frame.")] = "",
    at: Annotated[str, typer.Option(show_default=False, help="frame, world or x,y,z.")] = "",
    dissipation: Annotated[bool, typer.Option("--dissipation", help="With friction.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files.")] = False,
    floating: Floating = False,
    no_mimic: NoMimic = False,
    no_snap: NoSnap = False,
) -> None:
    """Write functions of a robot as plain C99, with a test.

    A header, a source, CMakeLists.txt, and a program that compares with stored numbers.

    NAME_derivatives are the derivatives of NAME by all its arguments.

    Examples:

    chasles export puma560 --functions inverse_dynamics,mass_matrix --output puma

    chasles export robot.urdf -f jacobian --frame hand --dtype float --own-sine -o hand
    """
    from rich.console import Console

    from chasles.cli import export as task
    from chasles.cli.target import Loading, find

    with reported():
        robot = find(target, Loading(floating, not no_mimic, not no_snap))
        names = [name.strip() for name in functions.split(",") if name.strip()]
        viewpoint = task.viewpoint(robot, names, frame=frame, axes=axes, at=at)
        paths = chasles.export(
            robot,
            names,
            output,
            dtype=dtype,
            prefix=prefix or None,
            own_sine=own_sine,
            dissipation=dissipation,
            overwrite=overwrite,
            **viewpoint,
        )
        task.show(paths, Console(highlight=False))


@app.command()
def robots() -> None:
    """List the robots that are here by name: built in, and installed.

    Built-in ones that need numbers take them after a colon: planar:4.

    Installed are those of example-robot-data and of robot_descriptions' cache.

    Examples:

    chasles robots

    chasles info panda
    """
    from rich.console import Console

    from chasles.cli import robots as report

    with reported():
        report.show(Console(highlight=False))


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all entries.")] = False,
) -> None:
    """Show, or clear, the compiled code that is kept on disk.

    The folder is the platform's own, or what CHASLES_CACHE says.

    Examples:

    chasles cache

    chasles cache --clear
    """
    from rich.console import Console

    from chasles.cli import cache as report

    with reported():
        console = Console(highlight=False)
        if clear:
            report.clear(console)
        else:
            report.show(console)


def main() -> None:
    """The entry point of the `chasles` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="chasles")
