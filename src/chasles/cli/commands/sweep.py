"""The command `chasles sweep`."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from chasles import tasks
from chasles.cli import command
from chasles.cli.axes import parsed
from chasles.cli.options import Cluster, Overwrite, Trust, names, option, repeatable
from chasles.cli.scenario import is_scenario, read, with_flags
from chasles.cli.scene import loaded
from chasles.cli.sweep import Sweep, parts


def sweep(
    target: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO|ROBOT", help="Scenario file (.toml) or robot.", autocompletion=names
        ),
    ],
    over: Annotated[
        list[str],
        repeatable(
            "Quantity to vary: A,B,... or FROM:TO:COUNT or normal(MEAN,SD) or uniform(A,B).",
            metavar="NAME=VALUES",
        ),
    ],
    samples: Annotated[int | None, option("Number of random runs per grid point.", min=1)] = None,
    seed: Annotated[int, option("Seed of the random values.", min=0)] = 0,
    motions: Annotated[bool, option("Write every state, not only the final one.")] = False,
    output: Annotated[Path, option("Folder to write to.", "--output", "-o")] = Path("sweep"),
    cluster: Cluster = None,
    trust: Trust = False,
    overwrite: Overwrite = False,
) -> command.Answer:
    """Simulate a scenario many times with different values.

    Varies scenario values, such as duration, start.q.JOINT and
    control.stiffness, or robot parameters, such as LINK.mass.

    Writes a folder of Parquet tables with one row per run. Run the same command
    again to continue an interrupted sweep.

    Examples:
        chasles sweep hold.toml --over link3.mass=1:5:9 -o masses
        chasles sweep hold.toml --over control.damping=2,5,9 --over dt=1e-3,2e-3
        chasles sweep puma560 --over "start.qd.joint1=normal(0,1)" --samples 50
    """
    axes = parsed(over, samples, seed)
    scenario = with_flags(read(target), {}) if is_scenario(target) else None
    scenario = scenario or with_flags(None, {"robot": target})
    work = Sweep(scenario, loaded(scenario, trust=trust), axes, motions, overwrite)
    work.simulated(0)  # check the scenario before any file is written
    done = failed = resumed = 0
    with command.counting(axes.count) as told:
        for some in tasks.run(work, parts(work, output), cluster=cluster, told=told):
            done, failed = done + some.runs, failed + some.failed
            resumed += some.runs if some.resumed else 0
    data = {"robot": work.robot.name, "runs": done, "failed": failed, "resumed": resumed,
            "columns": work.names, "files": {"tables": output}}  # fmt: skip
    return command.Answer(data, partial(_show, data))


def _show(data: dict[str, Any], console: Console) -> None:
    """Print the numbers of completed and failed runs."""
    again = f" ({data['resumed']} already existed)" if data["resumed"] else ""
    console.print(f"[bold]{escape(data['robot'])}[/]: {data['runs']} runs{again}")
    if data["failed"]:
        console.print(f"runs that ended with an error: {data['failed']}")
    command.write_saved(console, data["files"])
