"""The command `chasles compare`."""

from functools import partial
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.markup import escape

from chasles.cli.command import FOUND, Answer, table
from chasles.cli.options import Asked, among, option
from chasles.errors import InputError
from chasles.peers import LIBRARIES, Agreement
from chasles.peers import compare as compared


def compare(
    asked: Asked,
    library: Annotated[
        str,
        option(
            "Library to compare with: pinocchio, mujoco or drake.",
            "--with",
            autocompletion=among(LIBRARIES),
        ),
    ] = "",
    file: Annotated[
        Path | None, option("File for the other library. Default: ROBOT, or one written from it.")
    ] = None,
    seed: Annotated[int, option("Seed of the random state.", min=0)] = 0,
    motion: Annotated[
        Path | None,
        option("Motion whose states are compared: simulation, .csv, .npz, .parquet or text."),
    ] = None,
) -> Answer:
    """Compare a robot's results with those of another library, term by term.

    Compares placements, masses, Jacobians, the mass matrix, gravity and bias
    forces, accelerations and loops.

    If a term differs, shows the first difference and its likely cause, and exits
    with status 1.

    Examples:
        chasles compare robot.urdf --with pinocchio --no-mimic --no-snap
        chasles compare robot.xml --with mujoco
        chasles compare robot.xml --with mujoco --motion simulation
        chasles compare panda --with drake --no-mimic --no-snap
        chasles compare robot.xml --with pinocchio --file robot.urdf --json
    """
    if not library:
        problem = f"name the library to compare with: {', '.join(LIBRARIES)}"
        raise InputError("E-CLI-002", problem, part="--with")
    robot, own = asked.robot(), asked.file
    read = library in LIBRARIES and own and own.suffix in LIBRARIES[library].suffixes
    there = file or (own if read else None)
    found = compared(robot, library, there, seed=seed, motion=motion)
    terms = [{"term": name, "of": x.of, "difference": x.error} for name, x in found.terms]
    data = vars(found) | {"ok": found.ok, "terms": terms}
    return Answer(data, partial(_show, found), 0 if found.ok else FOUND)


def _show(found: Agreement, console: Console) -> None:
    """Print one row per term with its largest relative difference."""
    console.print(f"[bold]{escape(found.robot)}[/] in chasles and in {found.library}:")
    rows = table(["", "term", "worst of"], ["difference"])
    for name, worst in found.terms:
        same = worst.error <= found.tolerance
        mark = "[green]same[/]" if same else "[red]differs[/]"
        rows.add_row(mark, f"[cyan]{name}[/]", escape(worst.of), f"{worst.error:.1e}")
    if found.terms:
        console.print(rows)
    if found.ok:
        console.print(f"All terms agree within {found.tolerance:g} of the largest entry.")
        if found.uncompared:
            console.print(f"[bold]not compared[/] {escape('; '.join(found.uncompared))}")
    else:
        console.print(f"[bold]first difference[/] {escape(found.first)}")
        console.print(f"[bold]likely cause[/] {escape(found.cause)}")
