"""The command `chasles simulate`."""

from pathlib import Path
from typing import Annotated

import typer

from chasles.cli import flags
from chasles.cli.command import Answer
from chasles.cli.options import Arguments, Floating, NoMimic, NoSnap, Strict, among, check_folder
from chasles.cli.output import check_new_table
from chasles.cli.scenario import CONTROLS
from chasles.cli.simulate import Task
from chasles.cli.simulate_report import carried_out, written
from chasles.cli.target import given, names
from chasles.simulate import INTEGRATORS

NUMBERS = "X,...|JOINT=X"
"""How coordinates are written."""


def simulate(
    argument: Arguments,
    target: Annotated[
        str,
        typer.Argument(
            metavar="ROBOT|SCENARIO",
            help="A robot, or a scenario (.toml).",
            autocompletion=names,
        ),
    ] = "",
    duration: Annotated[float | None, typer.Option(help="Seconds; 1 if not said.")] = None,
    dt: Annotated[float | None, typer.Option(help="The longest step, in s. Default: 1 ms.")] = None,
    integrator: Annotated[
        str | None,
        typer.Option(
            autocompletion=among(INTEGRATORS),
            help="rk4 (default), dopri5, semi-implicit, variational, ...",
        ),
    ] = None,
    rtol: Annotated[float | None, typer.Option(help="Of dopri5's steps.")] = None,
    atol: Annotated[float | None, typer.Option(help="Of dopri5's steps.")] = None,
    every: Annotated[int | None, typer.Option(help="Keep one state of so many.")] = None,
    q: Annotated[
        list[str] | None,
        typer.Option("--q", metavar=NUMBERS, help="Start: all numbers, or some joints'; repeat."),
    ] = None,
    qd: Annotated[
        list[str] | None, typer.Option("--qd", metavar=NUMBERS, help="The same of rates.")
    ] = None,
    random: Annotated[
        int | None, typer.Option("--random", metavar="SEED", help="Start at random.")
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            autocompletion=among((*CONTROLS, "none")), help="pd, gravity, computed-torque or none."
        ),
    ] = None,
    stiffness: Annotated[
        str | None, typer.Option("--stiffness", "--kp", help="Its stiffness: one number, or each.")
    ] = None,
    damping: Annotated[
        str | None, typer.Option("--damping", "--kd", help="Its damping: one number, or each.")
    ] = None,
    goal: Annotated[
        list[str] | None,
        typer.Option("--target", metavar=NUMBERS, help="Where it goes. Default: the start."),
    ] = None,
    disturbance: Annotated[
        str | None, typer.Option(metavar="effort=X,hold=X,seed=N", help="Random joint forces.")
    ] = None,
    foot: Annotated[
        list[str] | None,
        typer.Option("--foot", metavar="FRAME[:RADIUS]", help="What may touch z = 0; repeat."),
    ] = None,
    ground: Annotated[
        str | None,
        typer.Option(metavar="LAW,KEY=X,...", help="rigid,friction=0.8 or another law."),
    ] = None,
    dissipation: Annotated[
        bool, typer.Option("--dissipation", help="With joint friction.")
    ] = False,
    limits: Annotated[bool, typer.Option("--limits", help="Joints stop at their limits.")] = False,
    floating: Floating = False,
    no_mimic: NoMimic = False,
    no_snap: NoSnap = False,
    strict: Strict = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")] = Path(
        "simulation"
    ),
    table: Annotated[
        Path | None, typer.Option("--table", help="Also a table (.csv, .parquet).")
    ] = None,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw nothing.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on in the folder.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what it holds.")] = False,
    save: Annotated[
        float, typer.Option(help="Seconds of real time between parts on disk.", min=0.0)
    ] = 5.0,
    write_scenario: Annotated[
        Path | None, typer.Option("--write-scenario", help="Write a scenario; do no more.")
    ] = None,
) -> Answer:
    """Let a robot move, and keep its motion in a folder.

    From flags, or from a scenario, whose values flags replace.

    Ctrl-C keeps what was computed; --resume goes on, to the same bits.

    Examples:

    chasles simulate puma560 --random 1 --duration 2

    chasles simulate puma560 --control pd --stiffness 90 --damping 9 -o up

    chasles simulate puma560 --control gravity --write-scenario hold.toml

    chasles simulate hold.toml --duration 2 --output hold --table hold.csv

    chasles simulate --output hold --resume
    """
    said = flags.values(
        {
            "duration": duration,
            "dt": dt,
            "integrator": integrator,
            "rtol": rtol,
            "atol": atol,
            "every": every,
            "dissipation": dissipation or None,
            "limits": limits or None,
            "floating": floating or None,
            "mimic": False if no_mimic else None,
            "snap": False if no_snap else None,
            "strict": strict or None,
            "arguments": given(argument) or None,
        },
        start={"q": q, "qd": qd, "random": random},
        control={"law": control, "stiffness": stiffness, "damping": damping, "target": goal},
        disturbance=disturbance,
        feet=foot or [],
        ground=ground,
    )
    if table is not None:
        check_new_table(table)
    task = Task(target, said, output, resume, overwrite, save, table)
    if write_scenario is not None:
        check_folder(write_scenario)
        return written(task, write_scenario)
    return carried_out(task, plots=not no_plots)
