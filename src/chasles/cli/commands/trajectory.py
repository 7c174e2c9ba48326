"""The command `chasles trajectory`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from chasles import trajectory as make
from chasles.cli import command
from chasles.cli.options import Asked, Overwrite, among, option
from chasles.cli.simulate import coordinates, gains
from chasles.cli.wording import beyond_limits, outside_limits
from chasles.errors import InputError
from chasles.formats.motion import WRITERS, read
from chasles.formats.recorded import READERS
from chasles.names import one_of
from chasles.plots import move as draw
from chasles.plots.paper import efforts, sheet
from chasles.robot import Robot

NUMBERS = "X,...|JOINT=X|FILE"
"""Placeholder in the help text for the values of options that accept a posture."""

MOTIONS = (".csv", *READERS)
"""Suffixes of motion files that `--from` and `--to` accept."""

POLYNOMIALS: dict[str, Callable[..., make.Move]] = {
    "minimum-jerk": make.minimum_jerk,
    "minimum-snap": make.minimum_snap,
    "cubic": make.cubic,
    "quintic": make.quintic,
    "septic": make.septic,
}
"""Functions for polynomial trajectories, by kind."""

ORIENTATIONS = ("path", "free")
"""Values of `--orientation` for a frame that follows a path."""

STRAIGHT = "line"
"""Value of `--via` that selects a straight segment."""

PATHS = ("line", "arc", "path")
"""Trajectory kinds in which a frame follows lines and arcs."""

JUMPING = ("trapezoid", "time-optimal")
"""Trajectory kinds with discontinuous acceleration and thus unbounded jerk."""

KINDS = (*POLYNOMIALS, "trapezoid", "s-curve", "spline", *PATHS, "time-optimal")
"""All trajectory kinds."""


def trajectory(
    asked: Asked,
    output: Annotated[
        Path, option("Motion file to write (.csv, .npz, .parquet).", "--output", "-o")
    ],
    kind: Annotated[
        str,
        option(f"Kind: {', '.join(KINDS[:-1])} or {KINDS[-1]}.", autocompletion=among(KINDS)),
    ] = "minimum-jerk",
    start: Annotated[
        list[str] | None,
        option(
            "Initial posture, or a motion file for its first row; repeatable per joint. "
            "Default: neutral.",
            "--from",
            metavar=NUMBERS,
        ),
    ] = None,
    end: Annotated[
        list[str] | None,
        option(
            "Final posture, or a motion file for its last row; joints that are not named keep "
            "their position.",
            "--to",
            metavar=NUMBERS,
        ),
    ] = None,
    through: Annotated[
        Path | None,
        option("Table of postures (.csv, .npz, .parquet), for spline and time-optimal."),
    ] = None,
    frame: Annotated[str, option("Frame that follows a line or arc. Default: the tool.")] = "",
    position: Annotated[
        list[str] | None,
        option("End of a line or arc: x,y,z (m); repeatable for corners.", metavar="X,Y,Z"),
    ] = None,
    via: Annotated[
        list[str] | None,
        option(
            f"Point on the arc to each --position; {STRAIGHT!r} for a straight segment.",
            metavar=f"X,Y,Z|{STRAIGHT}",
        ),
    ] = None,
    orientation: Annotated[
        str,
        option(
            "Orientation of the frame on lines and arcs: path (constant) or free.",
            autocompletion=among(ORIENTATIONS),
        ),
    ] = "path",
    blend: Annotated[float, option("Blend distance at corners of lines and arcs (m).")] = 0.0,
    duration: Annotated[
        float | None, option("Duration (s). Default: 1, or the shortest possible.")
    ] = None,
    velocity: Annotated[
        str | None, option("Velocity limits (rad/s or m/s). Default: the robot's.")
    ] = None,
    acceleration: Annotated[str | None, option("Acceleration limits (rad/s² or m/s²).")] = None,
    jerk: Annotated[str | None, option("Jerk limits (rad/s³ or m/s³).")] = None,
    effort: Annotated[str | None, option("Torque limits (N m or N). Default: the robot's.")] = None,
    grid: Annotated[int, option("Number of grid intervals for --kind time-optimal.", min=1)] = 200,
    step: Annotated[float, option("Time step of the motion file (s).")] = 0.01,
    plot: Annotated[Path | None, option("Plot to write (.png, .svg, .pdf).")] = None,
    overwrite: Overwrite = False,
) -> command.Answer:
    """Plan a trajectory and write it to a motion file.

    The trajectory connects two postures, passes through a table of postures, or
    moves a frame along straight lines and arcs.

    `chasles motion`, `view --motion` and `simulate --follow` read the file.

    Examples:
        chasles trajectory puma560 --to joint1=1 --duration 2 -o move.csv
        chasles trajectory puma560 --through points.csv --kind spline -o a.csv
        chasles trajectory robot.urdf --kind line --position 0.5,0.1,0.2 -o b.csv
        chasles trajectory a.urdf --kind arc --via 1,0,1 --position 1,1,1 -o c.csv
    """
    command.check_new_table(output, overwrite=overwrite, suffixes=tuple(WRITERS))
    if plot is not None:
        command.check_new_picture(plot, overwrite=overwrite)
    if kind not in KINDS:
        problem = f"unknown kind {kind!r}"
        raise InputError("E-CLI-250", problem, one_of(kind, KINDS), part="--kind")
    robot = asked.robot()
    limits = {
        name: gains(f"--{name}", text)
        for name, text in (
            *(("velocity", velocity), ("acceleration", acceleration)),
            *(("jerk", jerk), ("effort", effort)),
        )
    }
    first = _posture(robot, "--from", start, robot.neutral(within=True), row=0)
    if kind in PATHS:
        options = {"blend": blend, "orientation": orientation}
        ends = _points("--position", position)
        points = ends, _on_arcs(kind, via, len(ends))
        made = _along(robot, frame, points, first, duration, options)
    elif through is not None:
        made = _through(robot, kind, through, limits, grid)
    else:
        if end is None:
            problem = "the trajectory has no end point"
            remedy = "give --to, --through, or --kind line --position"
            raise InputError("E-CLI-251", problem, remedy, part="trajectory")
        last = _posture(robot, "--to", end, first, row=-1)
        made = _between(robot, kind, first, last, duration, limits, grid)
    t = made.times(step)
    q, qd = made(t, 1)
    peaks = np.abs(qd).max(axis=0)
    outside = outside_limits(robot, q, "the trajectory")
    fast = beyond_limits(robot, "velocity", peaks, "the trajectory")
    for text in filter(None, (outside, fast)):
        command.note(f"note: {text}")
    made.save(output, robot, step=step, overwrite=overwrite)
    files = {"motion": output}
    if plot is not None:
        figure, axes = sheet(4, (14.0, 3.3))
        draw(made, axes)
        command.write_picture(figure, plot, overwrite=overwrite)
        files["plot"] = plot
    moved = {"frame": frame or robot.tool} if kind in PATHS else {}
    data = _data(robot, kind, made, step) | moved | {"files": files}
    return command.Answer(data, partial(_show, data))


def _posture(
    robot: Robot, flag: str, words: list[str] | None, default: np.ndarray, *, row: int
) -> np.ndarray:
    """Parse a posture from a list of all coordinates, JOINT=X pairs, or a row of a motion file.

    Unless all coordinates are listed, the dependent coordinates are adjusted to close the loops.
    """
    if words and len(words) == 1 and Path(words[0]).suffix.lower() in MOTIONS:
        return _postures(robot, Path(words[0]))[1][row]
    given = coordinates(flag, words)
    if given is None or isinstance(given, dict):
        q = robot.state(given or {}, default=default)
        return robot.mechanism.closed(q, np.zeros(robot.nv), anywhere=True)[0]
    if len(given) != robot.nq:
        problem = f"{len(given)} values were given, but the robot has {robot.nq} coordinates"
        raise InputError(
            "E-CLI-252", problem, "give one value per coordinate, or JOINT=X", part=flag
        )
    return np.array(given)


def _needed(
    kind: str, limits: dict[str, Any], names: tuple[str, ...], robot: Robot
) -> dict[str, Any]:
    """Return the limits that a trajectory kind needs.

    The default velocity limits are the robot's velocity limits.
    """
    found = {}
    for name in names:
        value = limits[name]
        if value is None and name == "velocity" and np.all(np.isfinite(robot.limits.velocity)):
            value = robot.limits.velocity
        if value is None:
            problem = f"{kind} needs --{name}"
            raise InputError("E-CLI-253", problem, "give one value, or one per joint")
        found[name] = value
    return found


def _between(
    robot: Robot,
    kind: str,
    first: np.ndarray,
    last: np.ndarray,
    duration: float | None,
    limits: dict[str, Any],
    grid: int,
) -> make.Move:
    """Return a trajectory between two postures."""
    if kind in POLYNOMIALS:
        return POLYNOMIALS[kind](first, last, 1.0 if duration is None else duration, robot=robot)
    if kind == "spline":
        return make.spline([0.0, 1.0 if duration is None else duration], [first, last], robot=robot)
    if kind == "time-optimal":
        path = make.spline([0.0, 1.0], [first, last], robot=robot)
        return _fastest(robot, path, limits, grid)
    names = ("velocity", "acceleration", "jerk")[: 2 if kind == "trapezoid" else 3]
    chosen = _needed(kind, limits, names, robot)
    build = make.trapezoid if kind == "trapezoid" else make.s_curve
    return build(first, last, duration=duration, robot=robot, **chosen)


def _fastest(robot: Robot, path: make.Move, limits: dict[str, Any], grid: int) -> make.Move:
    given = {name: limits[name] for name in ("velocity", "acceleration", "effort")}
    return make.time_optimal(robot, path, grid=grid, **given)


def _through(robot: Robot, kind: str, table: Path, limits: dict[str, Any], grid: int) -> make.Move:
    """Return a trajectory through a table of postures, 1 s apart if the table has no times."""
    if kind not in ("spline", "time-optimal"):
        problem = f"--kind {kind} connects only two postures"
        raise InputError(
            "E-CLI-254", problem, "use --kind spline or --kind time-optimal", part="--through"
        )
    t, q = _postures(robot, table)
    path = make.spline(t - t[0], q, robot=robot)
    return path if kind == "spline" else _fastest(robot, path, limits, grid)


def _postures(robot: Robot, table: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read times (n,) and postures (n, nq) from a motion file, 1 s apart if it has no times."""
    parts = list(read(table, robot.model))
    q = np.concatenate([part.q for part in parts])
    times = [part.t for part in parts if part.t is not None]
    return (np.concatenate(times) if times else np.arange(len(q), dtype=float)), q


def _points(flag: str, words: list[str] | None) -> list[list[float]]:
    points = [coordinates(flag, [text]) for text in words or ()]
    if not points or any(not isinstance(p, list) or len(p) != 3 for p in points):
        problem = f"{flag} needs three coordinates"
        raise InputError("E-CLI-255", problem, f"give {flag} X,Y,Z", part="trajectory")
    return points


def _on_arcs(kind: str, via: list[str] | None, count: int) -> list[list[float] | None] | None:
    """Return the via point of each segment, or None for `--kind line`.

    The via point of a straight segment is None.
    """
    if kind == "line":
        if via:
            problem = "--via applies to arcs, not to --kind line"
            raise InputError("E-CLI-276", problem, "use --kind arc or --kind path", part="--via")
        return None
    given = len(via or ())
    if given != count:
        problem = f"--kind {kind} needs one --via for each --position ({count}), not {given}"
        remedy = "give a point on each arc, in order: --via X,Y,Z --position X,Y,Z"
        remedy += f"; use --via {STRAIGHT} for a straight segment" if kind == "path" else ""
        raise InputError("E-CLI-277", problem, remedy, part="--via")
    straight = STRAIGHT if kind == "path" else None
    return [None if text == straight else _points("--via", [text])[0] for text in via or ()]


def _along(
    robot: Robot,
    frame: str,
    points: tuple[list[list[float]], list[list[float] | None] | None],
    first: np.ndarray,
    duration: float | None,
    options: dict[str, Any],
) -> make.Move:
    """Return a motion that moves a frame along straight lines and arcs."""
    ends, via = points
    seconds = 1.0 if duration is None else duration
    every = [None] * len(ends) if via is None else via
    chosen = frame or robot.tool
    return make.path(robot, chosen, ends, every, start=first, duration=seconds, **options)


def _data(robot: Robot, kind: str, made: make.Move, step: float) -> dict[str, Any]:
    """Return a machine-readable summary in SI units."""
    t = made.times(step)
    rates = [np.abs(rate).max(axis=0) for rate in made(t, 3)[1:]]
    if kind in JUMPING:
        rates[2][rates[0] > 0.0] = np.inf
    peaks = zip(efforts(robot), *rates, strict=True)
    return {
        "robot": robot.name,
        "kind": kind,
        "duration": made.duration,
        "samples": len(t),
        "peaks": [
            {
                "joint": name,
                "unit": "rad" if unit == "N m" else "m",
                "velocity": v,
                "acceleration": a,
                "jerk": j,
            }
            for (name, unit), v, a, j in peaks
        ],
    }


def _limited(value: float) -> str:
    return f"{value:.5g}" if np.isfinite(value) else "unbounded"


def _show(data: dict[str, Any], console: Console) -> None:
    """Print the duration, and the peak velocity, acceleration and jerk of each joint."""
    of = f" of frame {escape(repr(data['frame']))}" if "frame" in data else ""
    console.print(
        f"[bold]{escape(data['robot'])}[/]: {data['kind']}{of}, {data['duration']:.6g} s, "
        f"{data['samples']} samples"
    )
    rows = command.table(["joint"], ["peak velocity", "acceleration", "jerk", "units"])
    keys = ("velocity", "acceleration", "jerk")
    peaks = [command.without_noise([row[key] for row in data["peaks"]]) for key in keys]
    for row, *numbers in zip(
        data["peaks"], *(map(_limited, column) for column in peaks), strict=True
    ):
        unit = row["unit"]
        rows.add_row(
            f"[cyan]{escape(row['joint'])}[/]", *numbers, f"{unit}/s, {unit}/s², {unit}/s³"
        )
    console.print(rows)
    command.write_saved(console, data["files"])
