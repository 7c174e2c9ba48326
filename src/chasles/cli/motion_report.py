"""What `chasles motion` shows: progress, a summary in the terminal, and a plot in a file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from chasles.cli.motion import Summary, Task, run
from chasles.cli.output import check_table
from chasles.cli.tables import table
from chasles.formats.files import size, whole
from chasles.formats.motion import numbered
from chasles.robot import Robot

PICTURES = (".png", ".svg", ".pdf")


def report(task: Task, output: Path | None, plot: Path | None, console: Console) -> None:
    """Do a task and show its summary; write the table and the plot that are asked for."""
    for path in (output, plot):
        if path is not None:
            task.check_not_read(path)
    if output is not None:
        check_table(output)
    if plot is not None and plot.suffix.lower() not in PICTURES:
        raise ValueError(f"{plot}: unknown kind of picture; end the name in {', '.join(PICTURES)}")
    with progress(size(str(task.motion))) as done:
        summary = run(task, output, done)
    show(task, summary, console)
    if output is not None:
        console.print(f"Table saved to {output}", markup=False, soft_wrap=True)
    if plot is not None:
        draw(task, summary, plot)
        console.print(f"Plot saved to {plot}", markup=False, soft_wrap=True)


@contextmanager
def progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal that is told how many bytes of the motion are done, and goes at last."""
    columns = (BarColumn(20), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("left"))
    console = Console(stderr=True)
    shown = console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        task = bar.add_task("", total=total)

        def done(count: int) -> None:
            bar.update(task, completed=count)

        yield done


def show(task: Task, summary: Summary, console: Console) -> None:
    """How long the motion is, the joint forces, the frame's motion and the energy."""
    robot, frame = task.robot, task.frames[0]
    length = "" if summary.end is None else f", {summary.start:g} to {summary.end:g} s"
    console.print(f"[bold]{escape(robot.name)}[/]: {summary.instants} instants{length}")
    rows = table(["joint force"], ["peak", "rms", "unit"])
    efforts = zip(_efforts(robot), summary.peak, summary.rms, strict=True)
    for (name, unit), peak, rms in efforts:
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


def _efforts(robot: Robot) -> Iterator[tuple[str, str]]:
    """The name and the unit of every joint force."""
    for i in robot.model.movers:
        joint, name = robot.model.bodies[i].joint, robot.model.bodies[i].data.name
        for label, unit in zip(numbered(name, joint.nv), joint.velocity_units, strict=True):
            yield label, {"rad": "N m", "m": "N"}[unit]


def draw(task: Task, summary: Summary, path: Path) -> None:
    """Joint positions, joint forces and the frame's speed over time, as a picture file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    robot = task.robot
    figure = Figure(figsize=(9.0, 3.3), layout="constrained")
    FigureCanvasAgg(figure)
    positions, forces, speed = figure.subplots(1, 3)
    t, rest = summary.samples[:, 0], summary.samples[:, 1:]
    positions.plot(t, rest[:, : robot.nq])
    lines = forces.plot(t, rest[:, robot.nq : -1])
    speed.plot(t, rest[:, -1], "k")
    names = [name for name, _ in _efforts(robot)]
    if 0 < len(names) <= 12:
        forces.legend(lines, names, fontsize="x-small", ncols=2, frameon=False)
    titles = (
        (positions, "joint positions (rad, m)"),
        (forces, "joint forces (N m, N)"),
        (speed, f"speed of {task.frames[0]!r} (m/s)"),
    )
    for axes, title in titles:
        axes.set_title(title, fontsize="medium", parse_math=False)
        axes.set_xlabel("instant" if summary.end is None else "time (s)")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    with whole(path) as part:
        figure.savefig(part, dpi=110, format=path.suffix[1:].lower())
