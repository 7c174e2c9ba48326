"""The command `chasles info`."""

from chasles.cli import info as report
from chasles.cli.command import Answer
from chasles.cli.target import Asked


def info(asked: Asked) -> Answer:
    """Show a robot's joints, links, masses, frames and notes.

    Built-in robots that need numbers take them after a colon.

    Examples:

    chasles info puma560

    chasles info planar:4

    chasles info robot.urdf --floating --strict

    chasles info robot.xacro --argument arm=left --json
    """
    robot = asked.robot()
    return Answer(report.facts(robot), lambda console: report.show(robot, console))
