"""The command `chasles robots`."""

from chasles.cli import robots as report
from chasles.cli.command import Answer


def robots() -> Answer:
    """List the robots that are here by name: built in, and installed.

    Built-in ones that need numbers take them after a colon: planar:4.

    Installed are those of example-robot-data and of robot_descriptions' cache.

    Examples:

    chasles robots

    chasles info panda
    """
    found = report.found()
    return Answer(found, lambda console: report.show(found, console))
