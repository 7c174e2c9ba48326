"""The command `chasles robots`."""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rich.console import Console
from rich.markup import escape

from chasles.cli.command import Answer, table
from chasles.cli.options import needs
from chasles.formats import registry
from chasles.robots import ROBOTS


def robots() -> Answer:
    """List the names of built-in and installed robots.

    Append arguments of a built-in robot after a colon, as in planar:4.
    Installed robots come from example-robot-data and from the cache of
    robot_descriptions.

    Examples:
        chasles robots
        chasles info panda
    """
    built_in = [
        {
            "name": name,
            "arguments": needs(name),
            "what": _what(make),
        }
        for name, make in ROBOTS.items()
    ]
    known = registry.installed()
    installed = {
        source: [
            {
                "folder": place,
                "robots": [
                    {"name": robot.name, "file": robot.path.relative_to(place)}
                    for robot in known
                    if robot.path.is_relative_to(place)
                ],
            }
            for place in places
        ]
        for source, places in registry.folders().items()
    }
    found = {"built_in": built_in, "installed": installed}
    return Answer(found, partial(_show, found))


def _what(make: Callable[..., Any]) -> str:
    """Return a description of a function's result: the first line of its docstring, shortened."""
    line = (inspect.getdoc(make) or "").partition("\n")[0]
    noun = re.sub(r"^Return (the |an? )?", "", line)
    return noun[:1].upper() + noun[1:]


def _show(found: Mapping[str, Any], console: Console) -> None:
    """Print the built-in robots, then the robots of each package with their files."""
    rows = table(["built in", "what"])
    for robot in found["built_in"]:
        needed = [",".join(robot["arguments"])] if robot["arguments"] else []
        rows.add_row(":".join([robot["name"], *needed]), escape(robot["what"]))
    console.print(rows)
    for source, places in found["installed"].items():
        for place in places:
            console.print(f"[bold]{source}[/]: {escape(str(place['folder']))}", soft_wrap=True)
            rows = table(["name", "file"])
            for robot in place["robots"]:
                rows.add_row(robot["name"], escape(str(robot["file"])))
            console.print(rows)
        if not places:
            console.print(f"[bold]{source}[/]: not installed")
