"""What `chasles bench` shows: progress, tables in the terminal, and a plot in a file."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import TextColumn, TimeElapsedColumn
from rich.table import Table

from chasles.cli.bench import Bench, Speed
from chasles.cli.output import write_picture
from chasles.cli.progress import bar
from chasles.cli.tables import table
from chasles.plots.paper import finish, legend, sheet


@contextmanager
def progress(steps: int) -> Iterator[Callable[[str], None]]:
    """A bar that moves with every step it is told of."""
    with bar(steps, TimeElapsedColumn(), TextColumn("{task.description}")) as told:
        done = itertools.count()
        yield lambda what: told(completed=next(done), description=what)


def data(bench: Bench) -> dict[str, Any]:
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
    console.print(_times(bench))
    if bench.note:
        console.print(bench.note, markup=False)
    else:
        console.print("Times as fast as Pinocchio called from Python for each state:")
        console.print(_ratios(bench))
    console.print(f"Plot saved to {output}", markup=False, soft_wrap=True)


def _times(bench: Bench) -> Table:
    all_cores = f"{bench.cores} cores ns"
    rows = table(["function"], ["compile s", "call µs", "1 core ns", all_cores, "float32 ns"])
    for speed in bench.speeds:
        batches = (speed.one_core, speed.all_cores, speed.single)
        rows.add_row(
            _label(speed),
            f"{speed.compile:.2f}",
            f"{1e6 * speed.call:.2f}",
            *(f"{1e9 * taken:.0f}" if taken >= 1e-7 else f"{1e9 * taken:.1f}" for taken in batches),
        )
    return rows


def _ratios(bench: Bench) -> Table:
    all_cores = f"{bench.cores} cores"
    rows = table(["function"], ["its call µs", "call", "1 core", all_cores, "float32", "differ"])
    for speed in bench.speeds:
        if speed.pinocchio is not None and speed.error is not None:
            ratios = (speed.pinocchio / taken for taken in _taken(speed))
            rows.add_row(
                _label(speed),
                f"{1e6 * speed.pinocchio:.2f}",
                *(f"[bold]{ratio:.1f}[/]" for ratio in ratios),
                f"{speed.error:.0e}",
            )
    return rows


def _label(speed: Speed) -> str:
    """Derivatives stand below their function."""
    return "  derivatives" if speed.function.derivatives else f"[cyan]{speed.function.name}[/]"


def _taken(speed: Speed) -> tuple[float, ...]:
    return speed.call, speed.one_core, speed.all_cores, speed.single


def plot(bench: Bench, path: Path) -> None:
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
