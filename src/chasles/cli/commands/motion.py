"""The command `chasles motion`."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import TaskProgressColumn, TextColumn, TimeRemainingColumn

from chasles.cli import command, dataset
from chasles.cli.dataset import QUANTITIES, Job, Total, count_of, is_dataset, partitions
from chasles.cli.motion import Summary, Task, run
from chasles.cli.options import Asked, Cluster, Overwrite, listed, option, pairs, repeatable
from chasles.cli.wording import beyond_limits, is_lossy, outside_limits
from chasles.errors import InputError
from chasles.formats.files import size
from chasles.formats.motion import motion_file
from chasles.plots.paper import efforts, finish, sheet
from chasles.plots.paper import forces as draw_forces
from chasles.plots.paper import positions as draw_positions
from chasles.writing import check_target

LOSSLESS = (
    "the joint torques exclude damping and friction; "
    "in Python, robot.inverse_dynamics with dissipation=True includes them"
)
"""Note for a robot whose joints have damping or friction."""


def motion(
    asked: Asked,
    motion: Annotated[
        Path,
        typer.Argument(
            metavar="MOTION",
            help="Simulation or log folder, .csv, .npz, .parquet or text file (q qd qdd).",
        ),
    ],
    frame: Annotated[
        list[str],
        repeatable("Frame to follow; repeatable. Default: the tool.", metavar="NAME"),
    ],
    column: Annotated[
        list[str], repeatable("Name of a column in logs: elbow.q=pos3.", metavar="NAME=COLUMN")
    ],
    unit: Annotated[
        list[str], repeatable("Unit of a quantity or column in logs: q=deg.", metavar="NAME=UNIT")
    ],
    all_links: Annotated[bool, option("Follow every link and frame of the robot.")] = False,
    columns: Annotated[
        str,
        option(
            f"Columns to compute from logs: {', '.join(QUANTITIES)}, or names. "
            "Default for folders: tau.",
            metavar="NAME,...",
        ),
    ] = "",
    output: Annotated[
        Path | None,
        option(
            "Table to write (.csv, .npz, .parquet), or folder for several tables.",
            "--output",
            "-o",
        ),
    ] = None,
    plot: Annotated[Path | None, option("Plot to write (.png, .svg, .pdf).")] = None,
    forces: Annotated[
        Path | None, option("External forces and couples (N, N m): one row, or one per sample.")
    ] = None,
    forces_on: Annotated[str, option("Frame on which --forces act. Default: the tool.")] = "",
    at_world: Annotated[
        bool, option("Refer velocities to the body point at the world origin (matrices W, H).")
    ] = False,
    step: Annotated[
        float | None, option("Time step (s) of a motion without a time column.")
    ] = None,
    differentiate: Annotated[
        bool, option("Compute missing velocities and accelerations by finite differences.")
    ] = False,
    skip_bad: Annotated[bool, option("Skip and count bad rows and files of logs.")] = False,
    cluster: Cluster = None,
    overwrite: Overwrite = False,
) -> command.Answer:
    """Compute poses, velocities, accelerations and forces along a motion.

    Runs forward kinematics and inverse dynamics at each sample of a motion.

    Writes a table and shows peak values. docs/motion.md describes the file
    formats.

    Examples:
        chasles motion robot.dat robot.mot --output table.csv
        chasles motion puma560 moves.csv --frame tool --plot moves.png
        chasles motion robot.urdf moves.csv --differentiate --forces push.csv
        chasles motion puma560 simulation --differentiate
        chasles motion robot.urdf logs/ --output torques/ --columns tau,energy
        chasles motion robot.urdf logs/ -o torques/ --cluster tcp://host:8786
    """
    if columns or is_dataset(motion):
        others = {"--plot": plot, "--forces": forces, "--step": step, "--at-world": at_world}
        wanted = tuple(listed([columns])) or ("tau",)
        names, units = pairs("--column", column), pairs("--unit", unit)
        job = partial(Job, wanted=wanted, columns=names, units=units, skip_bad=skip_bad)
        given = partial(job, overwrite=overwrite, frames=tuple(frame), differentiate=differentiate)
        resumable = motion.is_dir() or (output is not None and output.suffix.lower() == ".parquet")
        if output is not None and not resumable:
            command.check_new_table(output, overwrite=overwrite)
        return _logs(asked, given, motion, output, others, cluster)
    if cluster is not None:
        problem = "--cluster requires a folder of logs or --columns"
        raise InputError("E-CLI-275", problem, "omit --cluster, or add --columns")
    if output is not None:
        command.check_new_table(output, overwrite=overwrite)
    if plot is not None:
        command.check_new_picture(plot, overwrite=overwrite)
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
        summarized=frame[0] if frame else robot.tool,
    )
    files = {what: path for what, path in (("table", output), ("plot", plot)) if path is not None}
    for path in files.values():
        check_target(path, overwrite=overwrite, inputs=task.inputs)
    shown = (TaskProgressColumn(), TimeRemainingColumn(), TextColumn("left"))
    with command.bar(size(motion_file(motion)), *shown) as told:
        summary = run(task, output, lambda count: told(completed=count), overwrite=overwrite)
    q = summary.samples[:, 1 : 1 + robot.nq]
    notes = [outside_limits(robot, q, "the motion") if len(q) else ""]
    notes += [beyond_limits(robot, "velocity", summary.velocity, "the motion")]
    if not robot.model.constraints:  # with loops, the torques assume zero loop forces
        notes += [beyond_limits(robot, "effort", summary.peak, "the motion")]
    notes += [LOSSLESS if is_lossy(robot) else ""]
    for text in filter(None, notes):
        command.note(f"note: {text}")
    if plot is not None:
        _draw(task, summary, plot, overwrite=overwrite)

    data = _data(task, summary) | {"files": files}
    return command.Answer(data, partial(_show, task, summary, files))


def _logs(
    asked: Asked,
    job: Callable[..., Job],
    logs: Path,
    output: Path | None,
    others: Mapping[str, Any],
    cluster: str | None,
) -> command.Answer:
    """Compute one table per log, for logs of any length."""
    for name, value in others.items():
        if value:
            problem = f"{name} cannot be combined with --columns or a folder of logs"
            raise InputError("E-CLI-273", problem, "omit the option, or give one motion file")
    if output is None:
        kind = "a folder" if logs.is_dir() else f"a table ({', '.join(command.TABLES)})"
        problem = f"the output of this command must be {kind}"
        raise InputError("E-CLI-274", problem, f"give the path of {kind} as --output")
    given = job(asked.robot())
    if "tau" in given.chosen and is_lossy(given.robot):
        command.note(f"note: {LOSSLESS}")
    reader = given.reader()
    tables = partitions(logs, output, reader)
    for reason, count in reader.skipped.counts.items():
        command.note(f"note: skipped: {reason}: {count}")
    with command.counting(count_of([source for source, _ in tables])) as told:
        total = dataset.run(given, tables, told, cluster=cluster)
    data = total.data(given) | {"files": {"tables": output}, "count": total.files}
    return command.Answer(data, partial(_show_logs, given, total, output))


def _show_logs(job: Job, total: Total, output: Path, console: Console) -> None:
    """Print the number of states, peak and RMS joint torques, and skipped rows."""
    resumed = f" ({total.resumed} already existed)" if total.resumed else ""
    console.print(
        f"[bold]{escape(job.robot.name)}[/]: {total.states} states in {total.files} files"
        f"{resumed}, {total.rate / 1e6:.3g} million per second"
    )
    if "tau" in job.chosen and total.states:
        rows = command.table(["generalized force"], ["peak", "rms", "unit"])
        columns = map(command.without_noise, (total.peak, total.rms))
        for (name, unit), peak, rms in zip(efforts(job.robot), *columns, strict=True):
            rows.add_row(f"[cyan]{escape(name)}[/]", f"{peak:.5g}", f"{rms:.5g}", unit)
        console.print(rows)
    for reason, count in total.skipped.items():
        console.print(f"skipped: {reason}: {count}")
    command.write_saved(console, {"tables" if total.files > 1 else "table": output})


def _data(task: Task, summary: Summary) -> dict[str, Any]:
    """Return machine-readable results in SI units."""
    joints = zip(efforts(task.robot), summary.peak, summary.rms, strict=True)
    work = summary.work
    return {
        "robot": task.robot.name,
        "samples": summary.instants,
        "start": summary.start,
        "end": summary.end,
        "forces": [
            {"joint": name, "unit": unit, "peak": peak, "rms": rms}
            for (name, unit), peak, rms in joints
        ],
        "frame": task.summarized,
        "forces_on": None if task.forces is None else task.forces_on,
        "peak_speed": summary.speed,
        "peak_acceleration": summary.acceleration,
        "energy": dict(zip(("first", "last"), summary.energy, strict=True)),
        "work": None if work is None else {"joints": work[0], "external": work[1]},
    }


def _show(task: Task, summary: Summary, files: Mapping[str, Path], console: Console) -> None:
    """Print the duration, joint torques, frame motion and energy."""
    robot, frame = task.robot, task.summarized
    length = "" if summary.end is None else f", {summary.start:g} to {summary.end:g} s"
    console.print(f"[bold]{escape(robot.name)}[/]: {summary.instants} samples{length}")
    rows = command.table(["generalized force"], ["peak", "rms", "unit"])
    columns = map(command.without_noise, (summary.peak, summary.rms))
    forces = zip(efforts(robot), *columns, strict=True)
    for (name, unit), peak, rms in forces:
        rows.add_row(f"[cyan]{escape(name)}[/]", f"{peak:.5g}", f"{rms:.5g}", unit)
    console.print(rows)
    if robot.model.constraints:
        console.print(
            "The robot has closed loops; these generalized forces of its tree exclude loop forces."
        )
    console.print(
        f"frame {escape(repr(frame))}: peak speed {summary.speed:.5g} m/s, "
        f"peak acceleration {summary.acceleration:.5g} m/s²"
    )
    if task.forces is not None:
        console.print(f"external forces: on frame {escape(repr(task.forces_on))}")
    first, last = summary.energy
    console.print(f"energy: {first:.5g} J initially, {last:.5g} J finally ({last - first:+.5g} J)")
    if summary.work is not None:
        joints, outside = summary.work
        console.print(f"work: {joints:.5g} J by the joints, {outside:.5g} J by external forces")
    command.write_saved(console, files)


def _draw(task: Task, summary: Summary, path: Path, *, overwrite: bool) -> None:
    """Save a plot of joint positions, joint torques and frame speed over time."""
    robot = task.robot
    figure, (positions, forces, speed) = sheet(3)
    samples, rest = summary.samples[:, 0], summary.samples[:, 1:]
    t = None if summary.end is None else samples
    across = "sample" if t is None else "time (s)"
    draw_positions(robot, rest[:, : robot.nq], t, positions)
    draw_forces(robot, rest[:, robot.nq : -1], t, forces)
    speed.plot(samples, rest[:, -1], "k")
    finish(speed, f"speed of {task.summarized!r} (m/s)", across)
    command.write_picture(figure, path, overwrite=overwrite)
