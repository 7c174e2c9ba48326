"""The command `chasles demo`."""

from pathlib import Path
from typing import Annotated

import typer

from chasles.cli import demo as experiment
from chasles.cli import demo_report
from chasles.cli.command import FOUND, Answer
from chasles.cli.output import check_new_picture


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The picture to write (.png, .svg, .pdf).")
    ] = Path("demo.png"),
) -> Answer:
    """Move an arm, check its torques three ways, save a plot.

    The built-in PUMA 560 follows a smooth motion; inverse dynamics says how.

    Forward dynamics must give the motion back, and work must become energy.

    Examples:

    chasles demo

    chasles demo --output puma.svg
    """
    check_new_picture(output)
    result = experiment.run()
    demo_report.plot(result, output)
    return Answer(
        demo_report.data(result) | {"files": {"plot": output}},
        lambda console: demo_report.show(result, output, console),
        0 if all(check.passed for check in result.checks) else FOUND,
    )
