"""What `chasles motion` shows: progress, a summary in the terminal, and a plot in a file."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import TaskProgressColumn, TextColumn, TimeRemainingColumn

from chasles.cli.command import Answer, said
from chasles.cli.motion import Summary, Task, run
from chasles.cli.output import write_picture
from chasles.cli.progress import bar
from chasles.cli.tables import table
from chasles.formats.files import size
from chasles.plots import motions
from chasles.plots.paper import finish, sheet
from chasles.plots.subject import efforts


def carried_out(task: Task, output: Path | None, plot: Path | None) -> Answer:
    """Do a task: its summary, and the table and the plot that are asked for."""
    files = {what: path for what, path in (("table", output), ("plot", plot)) if path is not None}
    for path in files.values():
        task.check_not_read(path)
    columns = (TaskProgressColumn(), TimeRemainingColumn(), TextColumn("left"))
    with bar(size(str(task.motion)), *columns) as told:
        summary = run(task, output, lambda count: told(completed=count))
    if plot is not None:
        draw(task, summary, plot)
    saved = said(*(f"{what.capitalize()} saved to {path}" for what, path in files.items()))

    def shown(console: Console) -> None:
        show(task, summary, console)
        saved(console)

    return Answer(data(task, summary) | {"files": files}, shown)


def data(task: Task, summary: Summary) -> dict[str, Any]:
    """What `show` shows, for programs: SI units."""
    joints = zip(efforts(task.robot), summary.peak, summary.rms, strict=True)
    work = summary.work
    return {
        "robot": task.robot.name,
        "instants": summary.instants,
        "start": summary.start,
        "end": summary.end,
        "forces": [
            {"joint": name, "unit": unit, "peak": peak, "rms": rms}
            for (name, unit), peak, rms in joints
        ],
        "frame": task.frames[0],
        "peak_speed": summary.speed,
        "peak_acceleration": summary.acceleration,
        "energy": dict(zip(("first", "last"), summary.energy, strict=True)),
        "work": None if work is None else {"joints": work[0], "external": work[1]},
    }


def show(task: Task, summary: Summary, console: Console) -> None:
    """How long the motion is, the joint forces, the frame's motion and the energy."""
    robot, frame = task.robot, task.frames[0]
    length = "" if summary.end is None else f", {summary.start:g} to {summary.end:g} s"
    console.print(f"[bold]{escape(robot.name)}[/]: {summary.instants} instants{length}")
    rows = table(["joint force"], ["peak", "rms", "unit"])
    forces = zip(efforts(robot), summary.peak, summary.rms, strict=True)
    for (name, unit), peak, rms in forces:
        rows.add_row(f"[cyan]{escape(name)}[/]", f"{peak:.5g}", f"{rms:.5g}", unit)
    console.print(rows)
    if robot.model.constraints:
        console.print("The robot has loops: these are the forces of its tree, without the loops'.")
    console.print(
        f"frame {escape(repr(frame))}: peak speed {summary.speed:.5g} m/s, "
        f"peak acceleration {summary.acceleration:.5g} m/s²"
    )
    first, last = summary.energy
    console.print(f"energy: {first:.5g} J at first, {last:.5g} J at last ({last - first:+.5g} J)")
    if summary.work is not None:
        joints, outside = summary.work
        console.print(f"work: {joints:.5g} J of the joints, {outside:.5g} J of external forces")


def draw(task: Task, summary: Summary, path: Path) -> None:
    """Joint positions, joint forces and the frame's speed over time, as a picture file."""
    robot = task.robot
    figure, (positions, forces, speed) = sheet(3)
    samples, rest = summary.samples[:, 0], summary.samples[:, 1:]
    t = None if summary.end is None else samples
    across = "instant" if t is None else "time (s)"
    positions.plot(samples, rest[:, : robot.nq])
    finish(positions, "joint positions (rad, m)", across)
    motions.forces(robot, rest[:, robot.nq : -1], t, forces)
    speed.plot(samples, rest[:, -1], "k")
    finish(speed, f"speed of {task.frames[0]!r} (m/s)", across)
    write_picture(figure, path)
