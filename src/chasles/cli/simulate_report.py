"""What `chasles simulate` shows: progress, a summary, plots of energy and contact, a table."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from chasles.cli.command import INTERRUPTED, Answer, Terminal, said
from chasles.cli.output import TABLES, write_picture
from chasles.cli.progress import bar
from chasles.cli.recording import MOTION, Recording
from chasles.cli.simulate import Task, interruptible, run
from chasles.cli.tables import table, vector
from chasles.formats.files import whole
from chasles.formats.motion import numbered
from chasles.plots import motions
from chasles.plots.paper import curves, finish, sheet
from chasles.robot import Robot

MOST_SHOWN = 4000
"""Instants of a plot, at most about."""

Arrays = Mapping[str, np.ndarray]


def written(task: Task, scenario: Path) -> Answer:
    """The scenario of a task as a file, and no more."""
    task.scenario().write(scenario)
    return Answer({"files": {"scenario": scenario}}, said(f"Scenario saved to {scenario}"))


def carried_out(task: Task, *, plots: bool) -> Answer:
    """Do a task, to its end or until it is interrupted."""
    recording = task.recording()
    aside = Terminal(stderr=True)
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
        return Answer(found, said(), INTERRUPTED)
    arrays = recording.finish()
    found = summary(recording, arrays, wall) | {"files": _written(task, recording, arrays, plots)}
    return Answer(found, lambda console: show(found, recording.scene.robot, console))


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
    """A bar that is told the time of the motion."""
    columns = (
        TaskProgressColumn(),
        TextColumn("{task.completed:.3g} of {task.total:g} s simulated in"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with bar(duration, *columns) as told:
        yield lambda t: told(completed=t)


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
        "notes": recording.notes,
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
    rows = table(["joint"])
    for column in ("q", "qd"):  # vectors of free joints are broken into lines
        rows.add_column(column, justify="right", overflow="fold")
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
    paths = [folder / "energy.png"]
    figure, (energy, drift) = sheet(2)
    motions.energies(some["kinetic"], some["potential"], t, energy)
    total = some["kinetic"] + some["potential"]
    drift.plot(t, total - total[0])
    finish(drift, "change of the total (J)", "time (s)")
    write_picture(figure, paths[0])
    if "contact_gaps" in some:
        paths.append(folder / "contact.png")
        figure, (forces, gaps) = sheet(2)
        norms = np.linalg.norm(some["contact_forces"], axis=-1)
        curves(forces, t, {f"point {k}": norm for k, norm in enumerate(norms.T)})
        gaps.plot(t, some["contact_gaps"])
        finish(forces, "contact forces (N)", "time (s)")
        finish(gaps, "gaps (m)", "time (s)")
        write_picture(figure, paths[1])
    return paths
