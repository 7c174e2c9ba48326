"""The command `chasles view`: its options, its help, and the wait for its end."""

import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from chasles.cli.app import app
from chasles.cli.options import Floating, NoMimic, NoSnap, Target, reported


@app.command()
def view(
    target: Target,
    motion: Annotated[
        Path | None,
        typer.Option(help="A motion to play: .npz or folder of simulate, .csv, or plain."),
    ] = None,
    beside: Annotated[
        str, typer.Option(metavar="FILE|NAME", show_default=False, help="Another robot beside it.")
    ] = "",
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 is everywhere.")] = (
        "127.0.0.1"
    ),
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The first to try; the next free one is taken.")
    ] = 8080,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    floating: Floating = False,
    no_mimic: NoMimic = False,
    no_snap: NoSnap = False,
) -> None:
    """Show a robot in a browser: move its joints, play a motion.

    With frames, centre of mass, inertias, gravity torques, reactions, manipulability.

    Only this machine sees the page, and nothing is fetched from elsewhere. Ctrl-C ends it.

    Examples:

    chasles view puma560 --open

    chasles view robot.urdf --motion simulation

    chasles view robot.urdf --beside robot.xml --motion moves.csv
    """
    from rich.console import Console

    from chasles.cli.target import Loading, find
    from chasles.view import show

    with reported():
        how = Loading(floating, not no_mimic, not no_snap)
        robot = find(target, how)
        other = find(beside, how) if beside else None
        console = Console(highlight=False)
        with show(robot, beside=other, motion=motion, host=host, port=port) as viewer:
            for note in viewer.notes:
                console.print(f"note: {note}", markup=False, soft_wrap=True)
            console.print(f"{robot.name} is at {viewer.url} (Ctrl-C ends)", markup=False)
            if browser:
                webbrowser.open(viewer.url)
            try:
                threading.Event().wait()
            except KeyboardInterrupt:
                console.print("ended", markup=False)
