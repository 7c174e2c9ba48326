"""The command `chasles bench`."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.markup import escape

from chasles.cli import bench as measure
from chasles.cli.bench import Bench, Speed
from chasles.cli.command import Answer, write_saved
from chasles.cli.options import Asked, option
from chasles.cli.output import check_new_picture, steps, table, write_picture
from chasles.plots.paper import finish, legend, sheet


def bench(
    asked: Asked,
    batch: Annotated[int, option("States in a batch.", min=1)] = 4096,
    output: Annotated[
        Path, option("The plot to write (.png, .svg, .pdf).", "--output", "-o")
    ] = Path("bench.png"),
) -> Answer:
    """Time a robot's main functions and their derivatives on this machine.

    One call from Python, batches on one core and on all, and in float32.

    Beside Pinocchio for .urdf files, where it is installed; answers must agree.

    Examples:

    chasles bench puma560

    chasles bench robot.urdf --floating --output bench.png
    """
    check_new_picture(output)
    robot = asked.robot()
    with steps(measure.STEPS) as step:
        result = measure.run(
            robot, asked.target, floating=asked.how.floating, batch=batch, step=step
        )
    _plot(result, output)
    return Answer(_data(result) | {"files": {"plot": output}}, partial(show, result, output))


def _data(bench: Bench) -> dict[str, Any]:
    """What `show` shows, for programs: seconds; error: relative, to Pinocchio's answers."""
    return {
        "robot": bench.robot.name,
        "nv": bench.robot.nv,
        "batch": bench.batch,
        "cores": bench.cores,
        "speeds": [vars(speed) | {"function": speed.function.title} for speed in bench.speeds],
        "note": bench.note or None,
    }


def show(bench: Bench, output: Path, console: Console) -> None:
    """The times, and their ratios to Pinocchio's; output: where the plot is."""
    console.print(
        f"[bold]{escape(bench.robot.name)}[/] (nv {bench.robot.nv}): one call from Python, and a "
        f"state in a batch of {bench.batch}:"
    )
    rows = table(
        ["function"],
        ["compile s", "call µs", "1 core ns", f"{bench.cores} cores ns", "float32 ns"],
    )
    for speed in bench.speeds:
        batches = (speed.one_core, speed.all_cores, speed.single)
        times = (f"{1e9 * t:.0f}" if t >= 1e-7 else f"{1e9 * t:.1f}" for t in batches)
        rows.add_row(_label(speed), f"{speed.compile:.2f}", f"{1e6 * speed.call:.2f}", *times)
    console.print(rows)
    if bench.note:
        console.print(bench.note, markup=False)
    else:
        console.print("Times as fast as Pinocchio called from Python for each state:")
        their = ["its call µs", "call", "1 core", f"{bench.cores} cores", "float32", "differ"]
        rows = table(["function"], their)
        for speed in bench.speeds:
            if speed.pinocchio is not None and speed.error is not None:
                ratios = (f"[bold]{speed.pinocchio / taken:.1f}[/]" for taken in _taken(speed))
                call = f"{1e6 * speed.pinocchio:.2f}"
                rows.add_row(_label(speed), call, *ratios, f"{speed.error:.0e}")
        console.print(rows)
    write_saved(console, {"plot": output})


def _label(speed: Speed) -> str:
    """Derivatives stand below their function."""
    return "  derivatives" if speed.function.derivatives else f"[cyan]{speed.function.name}[/]"


def _taken(speed: Speed) -> tuple[float, ...]:
    return speed.call, speed.one_core, speed.all_cores, speed.single


def _plot(bench: Bench, path: Path) -> None:
    """Times for a state, one group of bars a function, as a picture file."""
    labels = ["one call", "batch, 1 core", f"batch, {bench.cores} cores", "batch, 1 core, float32"]
    bars = [[1e6 * x for x in _taken(speed)] for speed in bench.speeds]
    if not bench.note:
        labels.insert(0, "Pinocchio, one call")
        bars = [[1e6 * (s.pinocchio or 0.0), *b] for s, b in zip(bench.speeds, bars, strict=True)]
    colors = (["0.6"] if not bench.note else []) + ["C0", "C1", "C2", "C3"]
    figure, (axes,) = sheet(1, (8.0, 4.2))
    width = 0.8 / len(labels)
    for k, (label, color) in enumerate(zip(labels, colors, strict=True)):
        places = [row + (k + 0.5) * width - 0.4 for row in range(len(bars))]
        axes.barh(places, [row[k] for row in bars], width, label=label, color=color)
    axes.set_yticks(range(len(bars)), [s.function.title.replace(", ", ",\n") for s in bench.speeds])
    axes.invert_yaxis()
    axes.set_xscale("log")
    legend(axes)
    title = f"{bench.robot.name}, batches of {bench.batch}"
    finish(axes, title, "µs for a state, less is better")
    axes.grid(visible=False, axis="y")
    write_picture(figure, path)
