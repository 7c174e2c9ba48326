"""The robots that commands find by name: built in, and installed by other packages."""

import inspect
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from chasles.cli.tables import table
from chasles.formats import registry
from chasles.robots import ROBOTS


def found() -> dict[str, Any]:
    """The built-in robots, and by package the folders that hold robots and their files in them."""
    built_in = []
    for name, make in ROBOTS.items():
        words = inspect.signature(make).parameters.values()
        needed = [p.name.upper() for p in words if p.default is inspect.Parameter.empty]
        what = (inspect.getdoc(make) or "").partition("\n")[0]
        built_in.append({"name": name, "arguments": needed, "what": what})
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
    return {"built_in": built_in, "installed": installed}


def show(found: Mapping[str, Any], console: Console) -> None:
    """The built-in robots, then those of each package, with their files in its folder."""
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
