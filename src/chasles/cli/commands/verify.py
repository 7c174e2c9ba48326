"""The command `chasles verify`."""

from functools import partial
from typing import Annotated

from rich.console import Console, Group
from rich.markup import escape

from chasles.checks import CHECKS, Result, Verification, reasons
from chasles.checks import verify as checked
from chasles.cli.command import FOUND, Answer, steps, table
from chasles.cli.options import Asked, option

WIDE = 120
"""Minimum console width (columns) for printing the function and method in their own column."""


def verify(
    asked: Asked,
    seed: Annotated[int, option("Seed of the first random state.", min=0)] = 0,
    states: Annotated[int, option("Number of random states.", min=1)] = 2,
    full: Annotated[
        bool, option("Include slow checks, such as closed forms of large robots.")
    ] = False,
) -> Answer:
    """Check a robot's functions against each other and against physics.

    Compare all methods and backends, and check the Newton-Euler equations,
    energy, derivatives and loops at random states. The exit status is 1 if a
    check fails.

    Examples:
        chasles verify puma560
        chasles verify robot.urdf --floating --states 5
        chasles verify robot.xml --full --json
    """
    robot = asked.robot()
    with steps(len(CHECKS)) as step:
        found = checked(robot, seed=seed, states=states, full=full, step=step)
    results = [vars(x) | {"ok": x.ok, "checked": x.checked} for x in found.results]
    data = vars(found) | {"ok": found.ok, "results": results}
    return Answer(data, partial(show, found), 0 if found.ok else FOUND)


def show(found: Verification, console: Console) -> None:
    """Print one row per check, with the function and method that have the largest error."""
    console.print(f"[bold]{escape(found.robot)}[/]: {len(found.results)} comparisons")
    wide = console.width >= WIDE
    words = ["", "check", "worst of"] if wide else ["", "check, and its worst term"]
    rows = table(words, ["error", "tolerance", "seed"])
    for name, worst in found.worst.items():
        who = f"{worst.function}, {worst.method}" if worst.method else worst.function
        check, what = f"[cyan]{name}[/]", escape(who)
        cells = [check, what] if wide else [Group(check, what)]
        numbers = f"{worst.error:.1e}", f"{worst.tolerance:.0e}", str(worst.seed)
        rows.add_row(_mark(worst), *cells, *numbers)
    console.print(rows)
    for result in found.failures:
        console.print(f"[red]differs[/] {escape(str(result))}")
    for line in (*found.left_out, *reasons(found.unchecked)):
        console.print(f"[yellow]unchecked[/] {escape(line)}")
    if not found.full:
        console.print("--full also compiles every function, including in float32.")


def _mark(result: Result) -> str:
    if not result.checked:
        return "[yellow]unchecked[/]"
    return "[green]ok[/]" if result.ok else "[red]differs[/]"
