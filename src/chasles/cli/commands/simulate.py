"""The command `chasles simulate`."""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import progress
from rich.console import Console
from rich.markup import escape

from chasles.cli import command
from chasles.cli import simulate as work
from chasles.cli.manifest import CONTACT_PLOT, ENERGY_PLOT, MOTION, MOTION_PLOT
from chasles.cli.options import (
    Arguments,
    Floating,
    NoMimic,
    NoSnap,
    Strict,
    Trust,
    among,
    check_folder,
    given,
    names,
    option,
)
from chasles.cli.recording import Recording
from chasles.cli.scenario_fields import ACTUATORS, LAWS, METHODS
from chasles.cli.video import DEFAULT_SIZE, RATE, Rate, Size, kind, note_lines, shoot
from chasles.formats.motion import columns as motion_columns
from chasles.formats.motion import effort_columns
from chasles.motion.steps.spots import FAR
from chasles.plots.paper import energies, finish, positions, sheet, touches, velocities
from chasles.robot import Robot
from chasles.view.video import check_video
from chasles.writing import check_target, whole

MOST_SHOWN = 4000
"""Approximate maximum number of samples in a plot."""

Arrays = Mapping[str, np.ndarray]

FOLDER = Path("simulation")

NUMBERS = "X,...|JOINT=X"
"""Placeholder in the help for the values of options that accept joint coordinates."""


def simulate(
    argument: Arguments,
    target: Annotated[
        str,
        typer.Argument(
            metavar="ROBOT|SCENARIO", help="Robot or scenario file (.toml).", autocompletion=names
        ),
    ] = "",
    duration: Annotated[float | None, option("Simulated time (s). Default: 1.")] = None,
    dt: Annotated[float | None, option("Maximum step size (s). Default: 0.001.")] = None,
    integrator: Annotated[
        str | None,
        option(
            "Integrator: rk4 (default), dopri5, time-stepping (default with shapes), ...",
            autocompletion=among(METHODS),
        ),
    ] = None,
    rtol: Annotated[float | None, option("Relative tolerance of dopri5.")] = None,
    atol: Annotated[float | None, option("Absolute tolerance of dopri5.")] = None,
    every: Annotated[int | None, option("Store only every N-th state.")] = None,
    q: Annotated[
        list[str] | None,
        option("Initial positions (rad or m): all, or JOINT=X; repeatable.", metavar=NUMBERS),
    ] = None,
    qd: Annotated[
        list[str] | None, option("Initial joint velocities (rad/s or m/s).", metavar=NUMBERS)
    ] = None,
    random: Annotated[int | None, option("Start from a random state.", metavar="SEED")] = None,
    keyframe: Annotated[str | None, option("Start from a keyframe of the robot.")] = None,
    control: Annotated[
        str | None,
        option(
            "Controller: pd, gravity, computed-torque, actuators or none.",
            autocompletion=among(LAWS),
        ),
    ] = None,
    stiffness: Annotated[
        str | None,
        option("Proportional gain: one value, or one per joint.", "--stiffness", "--kp"),
    ] = None,
    damping: Annotated[
        str | None, option("Derivative gain: one value, or one per joint.", "--damping", "--kd")
    ] = None,
    goal: Annotated[
        list[str] | None,
        option(
            "Target position (rad or m). Default: the initial position.",
            "--target",
            metavar=NUMBERS,
        ),
    ] = None,
    follow: Annotated[
        Path | None,
        option("Motion file to follow, with --control pd or computed-torque and gains."),
    ] = None,
    ctrl: Annotated[
        list[str] | None,
        option("Actuator controls: all, or ACTUATOR=X; repeatable.", metavar=NUMBERS),
    ] = None,
    act: Annotated[
        list[str] | None,
        option("Initial activations: all, or ACTUATOR=X; repeatable.", metavar=NUMBERS),
    ] = None,
    disturbance: Annotated[
        str | None,
        option(
            "Standard deviation of random joint torques (N m or N).",
            metavar="effort=X,hold=X,seed=N",
        ),
    ] = None,
    foot: Annotated[
        list[str] | None,
        option("Frame that can touch the plane z = 0; repeatable.", metavar="FRAME[:RADIUS]"),
    ] = None,
    ground: Annotated[
        str | None,
        option(
            "Contact law for the ground plane z = 0, such as rigid,friction=0.8. "
            "Without --foot, all collision shapes can touch the ground.",
            metavar="LAW,KEY=X,...",
        ),
    ] = None,
    contacts: Annotated[
        str | None,
        option(
            "Contacts: file (shapes and planes in the file; default if it has a plane) or none.",
            autocompletion=among(("file", "none")),
        ),
    ] = None,
    dissipation: Annotated[bool, option("Include joint damping and friction.")] = False,
    limits: Annotated[bool, option("Stop joints at their limits.")] = False,
    floating: Floating = False,
    no_mimic: NoMimic = False,
    no_snap: NoSnap = False,
    strict: Strict = False,
    trust: Trust = False,
    output: Annotated[Path, option("Folder to write to.", "--output", "-o")] = FOLDER,
    table: Annotated[Path | None, option("Also write a table (.csv, .npz, .parquet).")] = None,
    no_plots: Annotated[bool, option("Do not draw plots.")] = False,
    recorded: Annotated[
        Path | None,
        option("Also write a video (.mp4, .gif) or a picture of the start (.png).", "--record"),
    ] = None,
    rate: Rate = RATE,
    size: Size = DEFAULT_SIZE,
    resume: Annotated[bool, option("Continue the simulation in the folder.")] = False,
    overwrite: Annotated[bool, option("Replace an existing simulation and files.")] = False,
    save: Annotated[
        float, option("Wall-clock time (s) between parts written to disk.", min=0.0)
    ] = 5.0,
    write_scenario: Annotated[Path | None, option("Write the scenario and exit.")] = None,
) -> command.Answer:
    """Simulate a robot and store its motion in a folder.

    Options override the values of a scenario file.

    Ctrl-C saves the results so far. --resume continues the simulation and gives
    the same results as an uninterrupted run.

    Examples:
        chasles simulate puma560 --random 1 --duration 2
        chasles simulate puma560 --control pd --stiffness 90 --damping 9 -o up
        chasles simulate puma560 --follow a.csv --control pd --kp 900 --kd 90 -o a
        chasles simulate puma560 --control gravity --write-scenario hold.toml
        chasles simulate ant.xml --ctrl hip_1=0.5 --ctrl ankle_1=-0.2 -o ant
        chasles simulate dog.urdf --floating --ground rigid,friction=0.8 -o dog
        chasles simulate hold.toml --duration 2 --output hold --table hold.csv
        chasles simulate --output hold --resume
    """
    values = {
        "duration": duration,
        "dt": dt,
        "integrator": integrator,
        "rtol": rtol,
        "atol": atol,
        "every": every,
        "dissipation": dissipation or None,
        "limits": limits or None,
        "contacts": contacts,
        "floating": floating or None,
        "mimic": False if no_mimic else None,
        "snap": False if no_snap else None,
        "strict": strict or None,
        "arguments": given(argument),
        "start": {
            "q": work.coordinates("--q", q),
            "qd": work.coordinates("--qd", qd),
            "random": random,
            "keyframe": keyframe,
        },
        "control": {
            "law": ACTUATORS if control is None and (ctrl or act) else control,
            "stiffness": work.gains("--stiffness", stiffness),
            "damping": work.gains("--damping", damping),
            "target": work.coordinates("--target", goal),
            "follow": None if follow is None else str(follow.absolute()),
            "ctrl": work.coordinates("--ctrl", ctrl),
            "act": work.coordinates("--act", act),
        },
        "disturbance": work.disturbance(disturbance),
        **work.contacts(foot or [], ground),
    }
    if table is not None:
        command.check_new_table(table, overwrite=overwrite)
    if recorded is not None:
        check_video(recorded, overwrite=overwrite)
    task = work.Task(target, work.said(values), output, resume, overwrite, save, table, trust)
    if write_scenario is None:
        film = None
        if recorded is not None:
            film = partial(shoot, path=recorded, rate=rate, size=size, overwrite=overwrite)
        return _carried_out(task, film, plots=not no_plots)
    check_folder(write_scenario)
    scenario = task.scenario()
    check_target(write_scenario, overwrite=overwrite, inputs=task.inputs(scenario))
    scenario.write(write_scenario)
    saved = f"Scenario saved to {write_scenario}"
    return command.Answer({"files": {"scenario": write_scenario}}, command.said(saved))


def _carried_out(task: work.Task, film: partial[Any] | None, *, plots: bool) -> command.Answer:
    """Open the output folder, and run a simulation until it ends or is interrupted."""
    with command.bar(None, progress.TextColumn("{task.description} ...")) as told:
        told(description="preparing the simulation")
        prepared = task.recording(lambda words: told(description=words))
    with prepared as recording:
        return _recorded(task, recording, film, plots=plots)


def _recorded(
    task: work.Task, recording: Recording, film: partial[Any] | None, *, plots: bool
) -> command.Answer:
    """Run a simulation and write its results, including a video if `film` is not None."""
    aside = command.Terminal(stderr=True)
    command.write(aside, *(f"note: {note}" for note in recording.notes))
    begun = time.monotonic()
    whole_time = recording.scene.scenario.top["duration"]
    columns = (
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.completed:.3g} of {task.total:g} s simulated in"),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("left"),
    )
    with command.bar(whole_time, *columns) as told, work.interruptible() as stop:
        if not recording.finished:
            work.run(recording, lambda t: told(completed=t), stop, task.save)
    wall = time.monotonic() - begun
    if not recording.over:
        found = _summary(recording, None, wall)
        kept = f"Stopped at t = {found['t']:.6g} s of {whole_time:g} s; the result so far is saved."
        command.write(aside, f"{kept} Continue with: {recording.how_to_go_on}")
        return command.Answer(found, command.said(), command.INTERRUPTED)
    arrays, robot = recording.finish(), recording.scene.robot
    late = work.exploded(recording.scene, arrays["kinetic"], arrays["potential"])
    recording.notes += late
    command.write(aside, *(f"note: {note}" for note in late))
    files = {"motion": recording.folder / MOTION}
    if task.table is not None:
        _write_table(arrays, robot, task.table, overwrite=task.overwrite)
        files["table"] = task.table
    if plots:
        files |= {f"{path.stem}_plot": path for path in _draw(arrays, recording)}
    if film is not None:
        notes = film(robot, files["motion"])
        command.write(aside, *note_lines(notes))
        recording.notes += notes
        files[kind(film.keywords["path"])] = film.keywords["path"]
    found = _summary(recording, arrays, wall) | {"files": files}
    return command.Answer(found, partial(_show, found, robot))


def _summary(recording: Recording, arrays: Arrays | None, wall: float) -> dict[str, Any]:
    """Return a machine-readable summary.

    `arrays` is the complete motion, or None after an interruption. `wall` is the wall-clock time
    (s).
    """
    scene, end = recording.scene, recording.end
    found: dict[str, Any] = {
        "robot": scene.robot.name,
        "robot_digest": scene.digest,
        "scenario_digest": scene.scenario.digest(),
        "folder": recording.folder,
        "finished": arrays is not None,
        "wall_s": wall,
        "notes": recording.notes,
    }
    if arrays is None:
        return found | {"t": 0.0 if end is None else end.t}
    energy = arrays["kinetic"] + arrays["potential"]
    found |= {
        "t": arrays["t"][-1],
        "states": len(arrays["t"]),
        "q": arrays["q"][-1],
        "qd": arrays["qd"][-1],
        "energy": {
            "first": energy[0],
            "last": energy[-1],
            "largest_change": np.max(np.abs(energy - energy[0])),
            "largest_kinetic": np.max(arrays["kinetic"]),
        },
    }
    if "contact_gaps" in arrays:
        found["contact"] = {
            "deepest": max(0.0, -np.min(arrays["contact_gaps"])),
            "largest_force": np.max(np.linalg.norm(arrays["contact_forces"], axis=-1)),
            "last_force": np.sum(arrays["contact_forces"][-1], axis=0),
        }
    return found


def _show(found: Mapping[str, Any], robot: Robot, console: Console) -> None:
    """Print the summary of a complete motion."""
    console.print(f"[bold]{escape(robot.name)}[/]: {found['states']} states, to {found['t']:g} s")
    rows = command.table(["joint"], ["q", "qd"])
    positions, velocities = (command.without_noise(found[key]) for key in ("q", "qd"))
    for joint in robot.joints:
        q, qd = positions[robot.position_slice(joint)], velocities[robot.velocity_slice(joint)]
        parts = [("", q, qd)]
        words = robot.joint(joint).traits.numbers.position
        if words.startswith("qw") and len(q) > 4:  # a row with all numbers would be very long
            parts = [(" orientation", q[:4], qd[:3]), (" position", q[4:], qd[3:])]
        for which, *part in parts:
            rows.add_row(f"[cyan]{escape(joint)}[/]{which}", *map(_numbers, part))
    console.print(rows)
    energy = found["energy"]
    console.print(
        f"energy: {energy['first']:.6g} J initially, {energy['last']:.6g} J "
        f"finally; largest change: {energy['largest_change']:.2g} J"
    )
    if "contact" in found:
        contact = found["contact"]
        last = command.without_noise(contact["last_force"])
        console.print(
            f"contact: final force {command.vector(last)} N, largest "
            f"force per contact {contact['largest_force']:.4g} N, deepest penetration "
            f"{contact['deepest']:.2g} m"
        )
    command.write_saved(console, found["files"])


def _numbers(values: np.ndarray) -> str:
    """Format one number or a vector; return "" if there are no values."""
    if len(values) < 2:
        return "".join(f"{x:.5g}" for x in values)
    return command.vector(values)


# Tables and plots ------------------------------------------------------------------------------


def _write_table(arrays: Arrays, robot: Robot, path: Path, *, overwrite: bool) -> None:
    """Write a table with the state, joint torques, energies and contacts at each sample."""
    found = motion_columns(robot.model) | {"tau": effort_columns(robot.model)}
    names, columns = ["t"], [arrays["t"]]
    for key in ("q", "qd", "tau"):
        names += found[key]
        columns += list(arrays[key].T)
    names += ["kinetic", "potential"]
    columns += [arrays["kinetic"], arrays["potential"]]
    if "contact_gaps" in arrays:
        for k in range(arrays["contact_gaps"].shape[1]):
            names += [f"contact{k}.{entry}" for entry in ("gap", "fx", "fy", "fz")]
            columns += [arrays["contact_gaps"][:, k], *arrays["contact_forces"][:, k].T]
    table = command.TABLES[path.suffix.lower()]
    with whole(path, overwrite=overwrite) as part, table(part, names) as add:
        add(np.column_stack(columns))


def _draw(arrays: Arrays, recording: Recording) -> list[Path]:
    """Draw motion.png, energy.png and, if there are contacts, contact.png."""
    step = max(1, len(arrays["t"]) // MOST_SHOWN)
    t, some = arrays["t"][::step], {name: a[::step] for name, a in arrays.items() if a.ndim}
    names = [MOTION_PLOT, ENERGY_PLOT]
    figure, (place, rate) = sheet(2)
    positions(recording.scene.robot, some["q"], t, place)
    velocities(recording.scene.robot, some["qd"], t, rate)
    recording.store(MOTION_PLOT, command.picture(figure, ".png"))
    figure, (energy, drift) = sheet(2)
    energies(some["kinetic"], some["potential"], t, energy)
    total = some["kinetic"] + some["potential"]
    drift.plot(t, total - total[0])
    finish(drift, "change of total energy (J)", "time (s)")
    recording.store(ENERGY_PLOT, command.picture(figure, ".png"))
    if "contact_gaps" in some:
        names.append(CONTACT_PLOT)
        figure, axes = sheet(2)
        pairs = recording.scene.slot_names(some["contact_gaps"].shape[1])
        gaps = np.where(some["contact_gaps"] < 0.5 * FAR, some["contact_gaps"], np.nan)
        touches(pairs, some["contact_forces"], gaps, t, axes)
        recording.store(CONTACT_PLOT, command.picture(figure, ".png"))
    return [recording.folder / name for name in names]
