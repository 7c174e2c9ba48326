"""The command `chasles bench`."""

from pathlib import Path
from typing import Annotated

import typer

from chasles.cli import bench as measure
from chasles.cli import bench_report
from chasles.cli.command import Answer
from chasles.cli.output import check_new_picture
from chasles.cli.target import Asked


def bench(
    asked: Asked,
    batch: Annotated[int, typer.Option(min=1, help="States in a batch.")] = 4096,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The plot to write (.png, .svg, .pdf).")
    ] = Path("bench.png"),
) -> Answer:
    """Time a robot's main functions and their derivatives on this machine.

    One call from Python, batches on one core and on all, and in float32.

    Beside Pinocchio for .urdf files, where it is installed; answers must agree.

    Examples:

    chasles bench puma560

    chasles bench robot.urdf --floating --output bench.png
    """
    check_new_picture(output)
    robot = asked.robot()
    with bench_report.progress(measure.STEPS) as step:
        result = measure.run(
            robot, asked.target, floating=asked.how.floating, batch=batch, step=step
        )
    bench_report.plot(result, output)
    return Answer(
        bench_report.data(result) | {"files": {"plot": output}},
        lambda console: bench_report.show(result, output, console),
    )
