"""What `chasles simulate` shows: progress, a summary, plots of energy and contact, a table."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from chasles.cli.output import TABLES, check_table
from chasles.cli.recording import MOTION, Recording
from chasles.cli.simulate import Task, interruptible, run
from chasles.cli.tables import table, vector
from chasles.formats.files import whole
from chasles.formats.motion import numbered
from chasles.robot import Robot

MOST_SHOWN = 4000
"""Instants of a plot, at most about."""

Arrays = Mapping[str, np.ndarray]


INTERRUPTED = 130
"""The exit status of a command that Ctrl-C ended."""


def carry_out(task: Task, write_scenario: Path | None, *, plots: bool, as_json: bool) -> int:
    """Do a task, and say what came of it; the exit status."""
    console, aside = Console(highlight=False), Console(stderr=True, highlight=False)
    if write_scenario is not None:
        task.scenario().write(write_scenario)
        console.print(f"Scenario saved to {write_scenario}", markup=False, soft_wrap=True)
        return 0
    if task.table is not None:
        check_table(task.table)
    recording = task.recording()
    for note in recording.notes:
        aside.print(f"note: {note}", markup=False, soft_wrap=True)
    begun = time.monotonic()
    whole_time = recording.scene.scenario.top["duration"]
    with progress(whole_time) as done, interruptible() as stop:
        if not recording.finished:
            run(recording, done, stop, task.save)
    wall = time.monotonic() - begun
    if not recording.over:
        found = summary(recording, None, wall)
        aside.print(
            f"Stopped at t = {found['t']:.6g} s of {whole_time:g} s, which are kept. Go on with: "
            f"{recording.how_to_go_on}",
            markup=False,
            soft_wrap=True,
        )
        if as_json:
            typer.echo(json.dumps(found, indent=1))
        return INTERRUPTED
    arrays = recording.finish()
    found = summary(recording, arrays, wall) | {"files": _written(task, recording, arrays, plots)}
    if as_json:
        typer.echo(json.dumps(found, indent=1))
    else:
        show(found, recording.scene.robot, console)
    return 0


def _written(task: Task, recording: Recording, arrays: Arrays, plots: bool) -> dict[str, str]:
    """What was written, by what it is; tables and plots are written here."""
    found = {"motion": str(recording.folder / MOTION)}
    if task.table is not None:
        write_table(arrays, recording.scene.robot, task.table)
        found["table"] = str(task.table)
    if plots:
        drawn = draw(arrays, recording.folder)
        found |= {f"{path.stem}_plot": str(path) for path in drawn}
    return found


@contextmanager
def progress(duration: float) -> Iterator[Callable[[float], None]]:
    """A bar on a terminal that is told the time of the motion, and goes at last."""
    columns = (
        BarColumn(20),
        TaskProgressColumn(),
        TextColumn("{task.completed:.3g} of {task.total:g} s simulated in"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    console = Console(stderr=True)
    shown = console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        task = bar.add_task("", total=duration)
        yield lambda t: bar.update(task, completed=t)


def summary(recording: Recording, arrays: Arrays | None, wall: float) -> dict[str, Any]:
    """What a program may want to know; arrays: of the whole motion, once it is over.

    wall: seconds of real time that this command computed.
    """
    scene, end = recording.scene, recording.end
    found: dict[str, Any] = {
        "robot": scene.robot.name,
        "robot_digest": scene.digest,
        "scenario_digest": scene.scenario.digest(),
        "folder": str(recording.folder),
        "finished": arrays is not None,
        "wall_s": wall,
    }
    if arrays is None:
        return found | {"t": 0.0 if end is None else end.t}
    energy = arrays["kinetic"] + arrays["potential"]
    found |= {
        "t": float(arrays["t"][-1]),
        "states": len(arrays["t"]),
        "q": arrays["q"][-1].tolist(),
        "qd": arrays["qd"][-1].tolist(),
        "energy": {
            "first": float(energy[0]),
            "last": float(energy[-1]),
            "largest_change": float(np.max(np.abs(energy - energy[0]))),
            "largest_kinetic": float(np.max(arrays["kinetic"])),
        },
    }
    if "contact_gaps" in arrays:
        found["contact"] = {
            "deepest": float(max(0.0, -np.min(arrays["contact_gaps"]))),
            "largest_force": float(np.max(np.linalg.norm(arrays["contact_forces"], axis=-1))),
            "last_force": np.sum(arrays["contact_forces"][-1], axis=0).tolist(),
        }
    return found


def show(found: Mapping[str, Any], robot: Robot, console: Console) -> None:
    """The summary of a motion that is over, for people."""
    console.print(f"[bold]{escape(robot.name)}[/]: {found['states']} states, to {found['t']:g} s")
    rows = table(["joint"], ["q", "qd"])
    for joint in robot.joints:
        q, qd = np.array(found["q"]), np.array(found["qd"])
        parts = (q[robot.position_slice(joint)], qd[robot.velocity_slice(joint)])
        rows.add_row(f"[cyan]{escape(joint)}[/]", *map(_numbers, parts))
    console.print(rows)
    energy = found["energy"]
    console.print(
        f"energy: {energy['first']:.6g} J at first, {energy['last']:.6g} J at last, at most "
        f"{energy['largest_change']:.2g} J away from the first"
    )
    if "contact" in found:
        contact = found["contact"]
        console.print(
            f"contact: {vector(contact['last_force'])} N at last, largest "
            f"{contact['largest_force']:.4g} N, deepest {contact['deepest']:.2g} m"
        )
    for what, path in found["files"].items():
        name = what.replace("_", " ").capitalize()
        console.print(f"{name} saved to {path}", markup=False, soft_wrap=True)


def _numbers(values: np.ndarray) -> str:
    return f"{values[0]:.5g}" if len(values) == 1 else vector(values)


# Tables and plots ------------------------------------------------------------------------------


def write_table(arrays: Arrays, robot: Robot, path: Path) -> None:
    """One row an instant: t, q and qd by joint, energies, and gaps and forces at contacts."""
    names, columns = ["t"], [arrays["t"]]
    for key, where in (("q", robot.position_slice), ("qd", robot.velocity_slice)):
        for joint in robot.joints:
            names += numbered(f"{joint}.{key}", where(joint).stop - where(joint).start)
            columns += list(arrays[key][:, where(joint)].T)
    for key in ("kinetic", "potential"):
        names.append(key)
        columns.append(arrays[key])
    if "contact_gaps" in arrays:
        for k in range(arrays["contact_gaps"].shape[1]):
            names += [f"contact{k}.{entry}" for entry in ("gap", "fx", "fy", "fz")]
            columns += [arrays["contact_gaps"][:, k], *arrays["contact_forces"][:, k].T]
    with whole(path) as part, TABLES[path.suffix.lower()](part, names) as add:
        add(np.column_stack(columns))


def draw(arrays: Arrays, folder: Path) -> list[Path]:
    """energy.png, and contact.png where there are contacts."""
    step = max(1, len(arrays["t"]) // MOST_SHOWN)
    t, some = arrays["t"][::step], {name: a[::step] for name, a in arrays.items() if a.ndim}
    energies = {"kinetic": some["kinetic"], "potential": some["potential"]}
    energies["total"] = some["kinetic"] + some["potential"]
    paths = [folder / "energy.png"]
    change = energies["total"] - energies["total"][0]
    _plot(paths[0], t, {"energy (J)": energies, "change of the total (J)": {"": change}})
    if "contact_gaps" in some:
        points = range(some["contact_gaps"].shape[1])
        forces = np.linalg.norm(some["contact_forces"], axis=-1)
        paths.append(folder / "contact.png")
        _plot(
            paths[1],
            t,
            {
                "contact forces (N)": {f"point {k}": forces[:, k] for k in points},
                "gaps (m)": {"": some["contact_gaps"]},
            },
        )
    return paths


def _plot(path: Path, t: np.ndarray, pictures: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Curves over time side by side, by title and label."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.3), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, curves) in zip(
        figure.subplots(1, len(pictures)), pictures.items(), strict=True
    ):
        for label, values in curves.items():
            axes.plot(t, values, label=label or None)
        if any(curves) and len(curves) <= 12:
            axes.legend(fontsize="x-small", frameon=False)
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel("time (s)")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    with whole(path) as part:
        figure.savefig(part, dpi=110, format="png")
