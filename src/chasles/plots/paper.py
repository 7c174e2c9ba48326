"""Helpers for plots: axes style, curves over time, output files and argument checks."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from chasles.errors import InputError, shown
from chasles.formats.motion import numbered
from chasles.functions.doors import numbers
from chasles.robot import Robot

Axes = Any
"""Type alias for `matplotlib.axes.Axes` that avoids importing Matplotlib."""

PICTURES = (".png", ".svg", ".pdf")
"""Supported file suffixes for plots."""

Rows = Literal["linear", "angular", "all"]
"""Rows of the Jacobian to plot: for linear velocity, for angular velocity, or all."""

ROWS = {"angular": slice(0, 3), "linear": slice(3, 6), "all": slice(0, 6)}

LONGEST = 24
"""Maximum length (characters) of a name in a legend."""

MOST_NAMED = 12
"""Maximum number of curves in a legend."""

COLORS = 10
"""Number of curves with different colors; further curves use other line styles."""

STYLES = ("-", "--", ":", "-.")


def new(axes: Axes | None, projection: str | None = None) -> Axes:
    """Return the given axes, or the axes of a new pyplot figure."""
    if axes is not None:
        if projection is not None and getattr(axes, "name", "") != projection:
            problem = f"this plot requires axes with projection={projection!r}"
            raise InputError("E-PLOT-004", problem)
        return axes
    from matplotlib import pyplot

    return pyplot.subplots(subplot_kw={"projection": projection}, layout="constrained")[1]


def sheet(count: int, size: tuple[float, float] = (9.0, 3.3)) -> tuple[Any, Sequence[Axes]]:
    """Create a figure that is not shown on the screen, with `count` plots side by side.

    `size` contains the width and height of the figure in inches.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, count, squeeze=False)[0]


def check_picture(path: Path) -> None:
    """Raise an error if a path is a directory or has an unsupported suffix."""
    if path.suffix.lower() not in PICTURES:
        problem = "unknown plot format"
        raise InputError(
            "E-PLOT-005", problem, f"use a file name ending in {', '.join(PICTURES)}", file=path
        )
    if os.path.isdir(path):
        raise InputError(
            "E-PLOT-006", "the path is a directory", "name a file inside the directory", file=path
        )


def save(figure: Any, stream: Path | BinaryIO, suffix: str) -> None:
    """Write a figure in the format given by `suffix`."""
    figure.savefig(stream, dpi=110, format=suffix.removeprefix(".").lower())


def curves(axes: Axes, t: np.ndarray, lines: Mapping[str, np.ndarray], **look: Any) -> None:
    """Draw curves over t, with a legend if there are at most `MOST_NAMED` curves."""
    for k, (label, values) in enumerate(lines.items()):
        style = STYLES[k // COLORS % len(STYLES)]
        axes.plot(t, values, label=label, **{"linestyle": style, **look})
    if 0 < len(lines) <= MOST_NAMED:
        legend(axes, columns=2 if len(lines) > 4 else 1)


def legend(axes: Axes, columns: int = 1, **place: Any) -> None:
    """Add a small, frameless legend whose labels are not parsed as math text."""
    made = axes.legend(fontsize="x-small", ncols=columns, frameon=False, **place)
    for text in made.get_texts():
        text.set_parse_math(False)
        text.set_text(shown(text.get_text()))


def finish(axes: Axes, title: str, across: str, up: str = "") -> Axes:
    """Set the title, the axis labels and the common plot style."""
    axes.set_title(shown(title), fontsize="medium", parse_math=False)
    axes.set_xlabel(shown(across), parse_math=False)
    if up:
        axes.set_ylabel(shown(up), parse_math=False)
    axes.grid(alpha=0.25)
    if axes.name != "3d":
        axes.spines[["top", "right"]].set_visible(False)
    return axes


# Plots over time -------------------------------------------------------------------------------


def positions(robot: Robot, q: np.ndarray, t: Any, axes: Axes | None) -> Axes:
    """Plot joint positions q (n, nq) over time, one curve per coordinate."""
    units = {unit for i in robot.model.movers for unit in robot.model.bodies[i].joint.units}
    known = ", ".join(unit for unit in ("rad", "m") if unit in units)
    title = f"joint positions ({known})" if known else "positions"
    return _coordinates(robot, "position", title, q, t, axes)


def velocities(robot: Robot, qd: np.ndarray, t: Any, axes: Axes | None) -> Axes:
    """Plot joint velocities qd (n, nv) over time, one curve per degree of freedom."""
    bodies = (robot.model.bodies[i] for i in robot.model.movers)
    units = {unit for body in bodies for unit in body.joint.velocity_units}
    known = ", ".join(f"{unit}/s" for unit in ("rad", "m") if unit in units)
    return _coordinates(robot, "velocity", f"joint velocities ({known})", qd, t, axes)


def _coordinates(
    robot: Robot, kind: str, title: str, rows: np.ndarray, t: Any, axes: Axes | None
) -> Axes:
    """Plot positions or velocities; the legend names the coordinates as in `joint.numbers`."""
    instants, across = times(t, len(rows))
    names = []
    for i in robot.model.movers:
        joint, name = robot.model.bodies[i].joint, robot.model.bodies[i].data.name
        words = getattr(joint.numbers, kind).split()
        count = joint.nq if kind == "position" else joint.nv
        long = [f"{name} {word}" for word in words]
        names += long if len(long) == count > 1 else numbered(name, count)
    drawn = new(axes)
    shortened = (shown(name, LONGEST) for name in names)
    curves(drawn, instants, dict(zip(shortened, rows.T, strict=True)))
    return finish(drawn, title, across)


def forces(robot: Robot, tau: np.ndarray, t: Any, axes: Axes | None) -> Axes:
    """Plot joint torques tau (n, nv) over time."""
    known = list(efforts(robot))
    instants, across = times(t, len(tau))
    units = ", ".join(sorted({unit for _, unit in known}, key=["N m", "N"].index))
    names = [name for name, _ in known]
    drawn = new(axes)
    curves(drawn, instants, dict(zip(names, tau.T, strict=True)))
    kind = {"N m": "joint torques", "N": "joint forces"}.get(units, "generalized forces")
    return finish(drawn, f"{kind} ({units})", across)


def energies(kinetic: np.ndarray, potential: np.ndarray, t: Any, axes: Axes | None) -> Axes:
    """Plot energies (n,) over time. Potential energy is relative to its initial value."""
    instants, across = times(t, len(kinetic))
    gained = potential - potential[0]
    drawn = new(axes)
    curves(drawn, instants, {"kinetic": kinetic, "change of potential": gained})
    curves(drawn, instants, {"sum": kinetic + gained}, color="k")
    return finish(drawn, "energy (J)", across)


def touches(
    names: Sequence[str], forces: np.ndarray, gaps: np.ndarray, t: Any, axes: Sequence[Axes]
) -> None:
    """Plot the contact force and the smallest gap of each pair over time.

    Parameters
    ----------
    names : sequence of str, length points
        Pair of shapes that each contact slot belongs to.
    forces : array, shape (n, points, 3)
        Contact forces (N). The forces at the points of a pair are added.
    gaps : array, shape (n, points)
        Gaps (m); NaN for inactive slots.
    t : array_like, shape (n,)
        Times (s).
    axes : sequence of Axes
        Axes for the forces and for the gaps.
    """
    instants, across = times(t, len(gaps))
    near = np.where(np.isnan(gaps), np.inf, gaps)
    columns = {name: [k for k, other in enumerate(names) if other == name] for name in names}
    least = {name: np.min(near[:, of], axis=1) for name, of in columns.items()}
    order = sorted(least, key=lambda name: float(np.min(least[name])))[:MOST_NAMED]
    close = {name: least[name] for name in names if name in order}
    pressed = {name: np.sum(forces[:, columns[name]], axis=1) for name in close}
    curves(axes[0], instants, {x: np.linalg.norm(f, axis=-1) for x, f in pressed.items()})
    curves(axes[1], instants, {x: np.where(a < np.inf, a, np.nan) for x, a in close.items()})
    finish(axes[0], "contact forces (N)", across)
    finish(axes[1], "smallest gaps (m)", across)


# Argument checks ------------------------------------------------------------------------


def efforts(robot: Robot) -> Iterator[tuple[str, str]]:
    """Yield the name and unit of each joint torque or force."""
    for i in robot.model.movers:
        joint, name = robot.model.bodies[i].joint, robot.model.bodies[i].data.name
        for label, unit in zip(numbered(name, joint.nv), joint.velocity_units, strict=True):
            yield label, {"rad": "N m", "m": "N"}[unit]


def path(what: str, value: Any, size: int) -> np.ndarray:
    """Check that an array (n, size) is finite and has at least two rows, and return it."""
    found = numbers(what, value, size)
    if found.ndim != 2 or len(found) < 2:
        raise InputError(
            "E-PLOT-016",
            f"{what} must have shape (n, {size}) with at least two samples, not {found.shape}",
        )
    return _finite(what, found)


def times(t: Any, count: int) -> tuple[np.ndarray, str]:
    """Return the x-axis values of a plot (times in s, or row indices) and their label."""
    if t is None:
        return np.arange(count), "sample"
    found = np.asarray(t, float)
    if found.shape != (count,):
        problem = f"t must have shape ({count},), one time per sample, not {found.shape}"
        raise InputError("E-PLOT-017", problem)
    return _finite("t", found), "time (s)"


def state(robot: Robot, q: Any) -> np.ndarray:
    """Check that q is one finite configuration (nq,), and return it."""
    found = numbers("q", q, robot.nq)
    if found.ndim != 1:
        problem = f"q must be one configuration with shape ({robot.nq},), not {found.shape}"
        raise InputError("E-PLOT-018", problem)
    return _finite("q", found)


def _finite(what: str, found: np.ndarray) -> np.ndarray:
    bad = np.argwhere(~np.isfinite(found))
    if len(bad):
        problem = f"{what} is not finite at index {tuple(bad[0].tolist())}"
        raise InputError("E-PLOT-019", problem)
    return found


def frame_of(robot: Robot, frame: str | None) -> str:
    """Return the frame name (default: `robot.tool`); raise an error if it is unknown."""
    chosen = robot.tool if frame is None else frame
    robot.model.frame(chosen)
    return chosen


def span(robot: Robot, joint: str) -> tuple[float, float]:
    """Return the plotted range of a joint with one coordinate.

    The range is given by the joint limits. Without limits, it is (-pi, pi) rad or (-1, 1) m.
    """
    i = robot.model.mover(joint)
    body, limits = robot.model.bodies[i], robot.model.limits[i]
    if body.joint.nq != 1:
        problem = (
            f"joint {joint!r} has {body.joint.nq} coordinates, so its range is not an interval"
        )
        raise InputError("E-PLOT-021", problem, "choose a joint with one coordinate")
    low, high = limits.lower, limits.upper
    if math.isfinite(low) and math.isfinite(high) and low < high:
        return low, high
    reach = {"rad": math.pi, "m": 1.0}[body.joint.units[0]]
    return -reach, reach


def unit(robot: Robot, joint: str) -> str:
    """Return the unit of a joint's first coordinate: rad or m."""
    return robot.model.bodies[robot.model.mover(joint)].joint.units[0]
