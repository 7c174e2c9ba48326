"""The command `chasles view`."""

import signal
import threading
import webbrowser
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console

from chasles.cli.command import Answer, said, write, write_saved
from chasles.cli.options import Asked, Overwrite, find, names, option, repeatable
from chasles.cli.video import DEFAULT_SIZE, RATE, Rate, Size, kind, note_lines, shoot
from chasles.errors import InputError
from chasles.view import show
from chasles.view.solids import MOST_TRIANGLES
from chasles.view.video import check_video


def view(
    asked: Asked,
    allow: Annotated[
        list[str],
        repeatable("Host name of a proxy or notebook server; repeatable.", metavar="HOST[:PORT]"),
    ],
    motion: Annotated[
        Path | None, option("Motion to play: simulation, .csv, .npz, .parquet or plain text.")
    ] = None,
    beside: Annotated[
        str,
        option(
            "Second robot to show next to the first.", metavar="FILE|NAME", autocompletion=names
        ),
    ] = "",
    host: Annotated[str, option("Address to listen on; 0.0.0.0 for all networks.")] = "127.0.0.1",
    port: Annotated[
        int, option("First port to try; the next free port is used.", min=0, max=65535)
    ] = 8080,
    browser: Annotated[bool, option("Open the page in a browser.", "--open")] = False,
    recorded: Annotated[
        Path | None,
        option(
            "Write a video of the motion (.mp4, .gif) or a picture (.png), and exit.", "--record"
        ),
    ] = None,
    triangles: Annotated[
        int, option("Triangles per robot above which meshes are simplified.", min=1)
    ] = MOST_TRIANGLES,
    shadows: Annotated[
        bool | None,
        option("Draw shadows (default: in recordings and fast browsers)."),
    ] = None,
    rate: Rate = RATE,
    size: Size = DEFAULT_SIZE,
    at: Annotated[float | None, option("Time of the picture in the motion (s).", "--at")] = None,
    overwrite: Overwrite = False,
) -> Answer:
    """Show a robot in a browser, move its joints, and play motions.

    Overlays show frames, inertias, gravity torques, reactions and manipulability.

    By default, only this machine can open the page. The printed address contains
    a secret token. Nothing is downloaded.

    Press Ctrl-C to stop.

    Examples:
        chasles view puma560 --open
        chasles view robot.urdf --motion simulation
        chasles view robot.urdf --beside robot.xml --motion moves.csv
        chasles view robot.urdf --motion simulation --record motion.mp4
        chasles view robot.urdf --record robot.png
        chasles view robot.urdf --motion simulation --record landed.png --at 0.8
    """
    if at is not None and recorded is None:
        raise InputError("E-VIEW-034", "--at needs --record", "add --record FILE.png", part="view")
    if recorded is not None:
        check_video(recorded, overwrite=overwrite)
    robot = asked.robot()
    other = find(beside, asked.how) if beside else None
    if recorded is not None:
        options: dict[str, Any] = {
            "rate": rate,
            "size": size,
            "overwrite": overwrite,
            "beside": other,
            "triangles": triangles,
            "shadows": shadows,
            "at": at,
        }
        notes = shoot(robot, motion, recorded, **options)
        files = {kind(recorded): recorded}

        def show_saved(console: Console) -> None:
            write(console, *note_lines(notes))
            write_saved(console, files)

        data = {"robot": robot.name, "notes": notes, "files": files}
        return Answer(data, show_saved)
    viewer = show(
        robot,
        beside=other,
        motion=motion,
        host=host,
        port=port,
        allow=allow,
        triangles=triangles,
        shadows=shadows,
    )
    ended = threading.Event()
    # Install the Ctrl-C handler before the address is printed.
    before = signal.signal(signal.SIGINT, lambda *_: ended.set())

    def serve() -> None:
        try:
            with viewer:
                if browser:
                    webbrowser.open(viewer.url)
                wait(ended)
        finally:
            signal.signal(signal.SIGINT, before)

    place = f"{robot.name} is at {viewer.url} (press Ctrl-C to stop)"
    data = {"robot": robot.name, "url": viewer.url, "notes": viewer.notes}
    return Answer(data, said(*note_lines(viewer.notes), place), then=serve)


def wait(ended: threading.Event) -> None:
    """Wait until Ctrl-C is pressed."""
    ended.wait()
