"""The command `chasles identify`."""

import itertools
import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from chasles.api import save
from chasles.cli import command
from chasles.cli.dataset import count_of
from chasles.cli.options import Asked, Cluster, Overwrite, among, listed, option, pairs, repeatable
from chasles.errors import InputError
from chasles.identification import Identified
from chasles.identification import identify as found
from chasles.identification.equations import Sample
from chasles.identification.logs import Reader, files
from chasles.identification.measured import Measured
from chasles.identification.report import SHOWN, Errors, errors, extent, page, torques
from chasles.identification.samples import checked_wrenches
from chasles.identification.shapes import REGIONS
from chasles.identification.unknowns import INCLUDED
from chasles.robot import Robot
from chasles.writing import check_target, store

PRIORS = ("pull-back", "entropic", "log-cholesky")
SMOOTHING = ("low-pass", "savitzky-golay", "spline")


def identify(
    asked: Asked,
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOGS...",
            help="Logs (.csv, .npz, .parquet, .arrow, .mcap, .db3), or folders of logs.",
        ),
    ],
    validate: Annotated[
        list[Path], repeatable("Log to validate the result with; repeatable.", metavar="LOG")
    ],
    column: Annotated[
        list[str], repeatable("Name of a column in the logs: elbow.q=pos3.", metavar="NAME=COLUMN")
    ],
    unit: Annotated[
        list[str],
        repeatable(
            "Unit of a quantity or column: q=deg, t=ms, elbow.qd=deg/s.", metavar="NAME=UNIT"
        ),
    ],
    wrench: Annotated[
        list[str],
        repeatable(
            "Frame with an external wrench in the logs: FOOT=plate or FOOT=sensor.",
            metavar="FRAME=KIND",
        ),
    ],
    symmetry: Annotated[
        list[str],
        repeatable("Links with equal or mirrored inertias; repeatable.", metavar="LEFT=RIGHT"),
    ],
    include: Annotated[
        str, option(f"Terms to identify: inertia, {', '.join(INCLUDED)}.", metavar="NAME,...")
    ] = "inertia,damping,friction",
    output: Annotated[
        Path | None, option("Robot file to write (.urdf, .xml, .sdf, .toml).", "--output", "-o")
    ] = None,
    report: Annotated[Path | None, option("Report with plots to write (.html).")] = None,
    smoothing: Annotated[
        str,
        option(
            "Smoothing of positions: low-pass, savitzky-golay or spline.",
            autocompletion=among(SMOOTHING),
        ),
    ] = "low-pass",
    cutoff: Annotated[
        float | None,
        option("Cut-off frequency of the smoothing (Hz). Default: chosen from the data."),
    ] = None,
    delay: Annotated[
        str, option("Delay of the torques (s), or estimate, or JOINT=SECONDS,...")
    ] = "0",
    rest_velocity: Annotated[
        float | None,
        option("Velocity (rad/s or m/s) up to which a joint with friction is considered at rest."),
    ] = None,
    loss: Annotated[str, option("Loss: squares, or huber to limit outliers.")] = "squares",
    prior: Annotated[
        str,
        option(
            "Distance from the robot's inertias: pull-back, entropic or log-cholesky.",
            autocompletion=among(PRIORS),
        ),
    ] = "pull-back",
    deviation: Annotated[
        float, option("Standard deviation of the prior, relative to each inertia.")
    ] = 1.0,
    payload: Annotated[
        str | None, option("Frame with an unknown payload; the robot's inertias stay fixed.")
    ] = None,
    total_mass: Annotated[float | None, option("Total mass (kg) of the moving links.")] = None,
    enclosed: Annotated[
        str | None,
        option(
            "Keep masses within the links' shapes: box or ellipsoid.",
            autocompletion=among(REGIONS),
        ),
    ] = None,
    skip_bad: Annotated[bool, option("Skip and count bad rows and files.")] = False,
    cluster: Cluster = None,
    overwrite: Overwrite = False,
) -> command.Answer:
    """Identify a robot's parameters from logged motions and torques.

    Each log has a column t and, for every joint J, the columns J.q, J.qd, J.qdd
    and J.tau. J.qd and J.qdd are optional.

    Writes a report, and a robot file with physically consistent parameters.

    Examples:
        chasles identify robot.urdf logs/ -o new.urdf --report report.html
        chasles identify robot.urdf run.csv --unit q=deg --skip-bad
        chasles identify robot.urdf logs/ -o new.urdf --cluster tcp://host:8786
    """
    for path in (output, report):
        if path is not None:
            read = [file for log in logs for file in files(log)]
            check_target(path, overwrite=overwrite, inputs=read)
    robot = asked.robot()
    options = {"columns": pairs("--column", column), "units": pairs("--unit", unit)}
    reading: dict[str, Any] = {"smoothing": smoothing, "cutoff": cutoff, "delay": _delay(delay)}
    total = count_of([Path(file) for log in logs for file in files(log)])
    with warnings.catch_warnings(), command.counting(total) as told:
        warnings.simplefilter("ignore", UserWarning)  # the same warnings are printed as notes
        paths = [str(path) for path in logs]
        reading |= {"include": listed([include]), "loss": loss, "skip_bad": skip_bad}
        reading |= {"total_mass": total_mass, "enclosed": enclosed, "payload": payload}
        reading |= {"symmetry": pairs("--symmetry", symmetry)}
        reading |= {"wrenches": pairs("--wrench", wrench)}
        reading |= {"prior": prior, "deviation": deviation, "rest_velocity": rest_velocity}
        reading |= {"cluster": cluster, "progress": told}
        result = found(robot, paths, columns=options["columns"], units=options["units"], **reading)
    loads = checked_wrenches(robot, reading["wrenches"])
    reader = Reader(robot, options["columns"], options["units"], skip_bad, wrenches=loads)
    measured = Measured(reader, reading["smoothing"], cutoff, result.delay or 0.0)
    samples = _some(measured, logs)
    wrong = {"training": errors(result, samples)}
    if validate:
        wrong["validation"] = errors(result, measured.samples([str(path) for path in validate]))
    written = {}
    if output is not None:
        save(result.robot, output, overwrite=overwrite)
        written["robot"] = output
    if report is not None:
        plotted = _some(measured, validate) if validate else samples
        store(report, page(result, plotted, wrong), overwrite=overwrite)
        written["report"] = report
    data = _data(robot, result, wrong, written)
    return command.Answer(data, partial(_show, robot, result, wrong, written))


def _delay(text: str) -> Any:
    """Parse a delay in seconds, "estimate", or a list JOINT=DELAY,... for individual joints."""
    if text == "estimate":
        return text
    if "=" in text:
        return {name: _delay(each) for name, each in pairs("--delay", text.split(",")).items()}
    try:
        return float(text)
    except ValueError:
        problem, remedy = f"{text!r} is not a number", "give seconds, or estimate"
        raise InputError("E-CLI-261", problem, remedy, part="--delay") from None


def _some(measured: Measured, logs: list[Path]) -> list[Sample]:
    """Return the first samples in the logs, for plots and the training error."""
    taken: list[Sample] = []
    left = SHOWN
    for sample in itertools.islice(measured.samples([str(path) for path in logs]), 100):
        q, qd, qdd, tau, loads = (array[:left] for array in sample)
        taken.append((q, qd, qdd, tau, loads))
        left -= len(q)
        if not left:
            break
    return taken


def _data(
    robot: Robot, result: Identified, wrong: Errors, written: dict[str, Path]
) -> dict[str, Any]:
    rows = zip(result.names, result.base, result.deviations, strict=True)
    return {
        "robot": robot.name,
        "states": result.samples,
        "condition": result.condition,
        "base": [{"name": n, "value": v, "deviation": d} for n, v, d in rows],
        "noise": dict(zip(robot.independent, result.noise, strict=True)),
        "errors": {
            log: dict(zip(robot.independent, each, strict=True)) for log, each in wrong.items()
        },
        "notes": result.notes,
        "files": written,
    }


def _show(
    robot: Robot, result: Identified, wrong: Errors, written: dict[str, Path], console: Console
) -> None:
    """Print torque prediction errors, notes and output paths."""
    console.print(
        f"[bold]{escape(robot.name)}[/]: {len(result.base)} base parameters from {result.samples} "
        f"states, condition number {result.condition:.3g}"
    )
    (first, *rest), entries = torques(result, wrong)
    rows = command.table([first], rest)
    for name, *numbers in entries:
        rows.add_row(f"[cyan]{escape(name)}[/]", *numbers)
    console.print(rows)
    command.write(console, *filter(None, [extent(result)]))
    command.write(console, *(f"note: {note}" for note in result.notes))
    command.write_saved(console, written)
