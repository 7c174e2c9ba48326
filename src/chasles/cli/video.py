"""Command-line options for videos and pictures, and recording with a progress bar."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rich.progress import TaskProgressColumn, TextColumn, TimeRemainingColumn

from chasles.cli.command import Terminal, bar, write
from chasles.cli.options import option
from chasles.robot import Robot
from chasles.view import record, show
from chasles.view.pictures import RATE
from chasles.view.solids import MOST_TRIANGLES
from chasles.view.video import SIZE, STILL, parse_size

DEFAULT_SIZE = f"{SIZE[0]}x{SIZE[1]}"

MOST_NOTES = 3
"""Maximum number of notes to print, because each mesh can add a note."""

Rate = Annotated[float, option("Frames per second of the video.", "--rate", min=0.1, max=240.0)]
Size = Annotated[
    str, option("Size of the video or picture (pixels).", "--size", metavar="WIDTHxHEIGHT")
]

__all__ = ["DEFAULT_SIZE", "RATE", "Rate", "Size", "kind", "note_lines", "shoot"]


def kind(path: Path) -> str:
    """Return "picture" or "video", depending on the file suffix."""
    return "picture" if path.suffix.lower() == STILL else "video"


def note_lines(notes: Sequence[str]) -> list[str]:
    """Format the viewer's notes for printing, at most `MOST_NOTES` of them."""
    lines = [f"note: {note}" for note in notes[:MOST_NOTES]]
    more = len(notes) - MOST_NOTES
    return [*lines, f"note: {more} more notes (--json lists all)"] if more > 0 else lines


def shoot(
    robot: Robot,
    motion: Path | None,
    path: Path,
    *,
    rate: float,
    size: str,
    overwrite: bool,
    beside: Robot | None = None,
    triangles: int = MOST_TRIANGLES,
    shadows: bool | None = None,
    at: float | None = None,
) -> list[str]:
    """Record a video of a robot's motion, or a picture; return the viewer's notes."""
    columns = (
        TaskProgressColumn(),
        TextColumn("{task.completed:.3g} of {task.total:.3g} s recorded,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    pixels = parse_size(size)
    with show(
        robot, beside=beside, motion=motion, port=0, triangles=triangles, shadows=shadows
    ) as viewer:
        play = viewer.playback
        last = 0.0 if play is None else play.last
        if play is not None and kind(path) == "video":
            frames = math.ceil((last - play.first) * rate + 0.5)
            write(Terminal(stderr=True), f"recording {frames} frames")
        with bar(last, *columns) as told:
            record(
                viewer,
                path,
                rate=rate,
                size=pixels,
                at=at,
                overwrite=overwrite,
                progress=lambda t: told(completed=t),
            )
        return list(viewer.notes)
