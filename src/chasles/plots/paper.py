"""What pictures are drawn on: axes of one look, curves over time, files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from chasles.errors import InputError

Axes = Any
"""`matplotlib.axes.Axes`, in which a picture is drawn."""

PICTURES = (".png", ".svg", ".pdf")
"""Files that hold a picture, by suffix."""

MOST_NAMED = 12
"""Curves that a legend can name; more would cover the picture."""


def new(axes: Axes | None, projection: str | None = None) -> Axes:
    """The axes that are given, or those of a new figure of pyplot."""
    if axes is not None:
        if projection is not None and getattr(axes, "name", "") != projection:
            problem = f"axes must have projection={projection!r} for this picture"
            raise InputError("E-PLOT-004", problem)
        return axes
    from matplotlib import pyplot

    return pyplot.subplots(subplot_kw={"projection": projection}, layout="constrained")[1]


def sheet(count: int, size: tuple[float, float] = (9.0, 3.3)) -> tuple[Any, Sequence[Axes]]:
    """A figure for a file, without a window, and `count` axes side by side. size: in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, count, squeeze=False)[0]


def check_picture(path: Path) -> None:
    """Say at once that a picture cannot be written so."""
    if path.suffix.lower() not in PICTURES:
        problem = "unknown kind of picture"
        raise InputError("E-PLOT-005", problem, f"end the name in {', '.join(PICTURES)}", file=path)
    if path.is_dir():
        raise InputError("E-PLOT-006", "this is a directory", "name a file in it", file=path)


def save(figure: Any, stream: Path | BinaryIO, suffix: str) -> None:
    """Write a figure in the format of a suffix."""
    figure.savefig(stream, dpi=110, format=suffix.removeprefix(".").lower())


def curves(axes: Axes, t: np.ndarray, lines: Mapping[str, np.ndarray], **look: Any) -> None:
    """Curves over t, with a legend of their names where those can be read."""
    for label, values in lines.items():
        axes.plot(t, values, label=label, **look)
    if 0 < len(lines) <= MOST_NAMED:
        legend(axes, columns=2 if len(lines) > 4 else 1)


def legend(axes: Axes, columns: int = 1, **place: Any) -> None:
    """The names of curves, small and without a frame. They may have any letters."""
    made = axes.legend(fontsize="x-small", ncols=columns, frameon=False, **place)
    for text in made.get_texts():
        text.set_parse_math(False)


def finish(axes: Axes, title: str, across: str, up: str = "") -> Axes:
    """Title and labels, and the look that all pictures share."""
    axes.set_title(title, fontsize="medium", parse_math=False)
    axes.set_xlabel(across, parse_math=False)
    if up:
        axes.set_ylabel(up, parse_math=False)
    axes.grid(alpha=0.25)
    if axes.name != "3d":
        axes.spines[["top", "right"]].set_visible(False)
    return axes
