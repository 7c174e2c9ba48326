"""The robots that commands find by name: built in, and installed by other packages."""

import inspect

from rich.console import Console
from rich.markup import escape

from chasles.cli.tables import table
from chasles.formats import registry
from chasles.robots import ROBOTS


def show(console: Console) -> None:
    """The built-in robots, then those of each package, with their files in its folder."""
    rows = table(["built in", "what"])
    for name, make in ROBOTS.items():
        words = inspect.signature(make).parameters.values()
        needed = [p.name.upper() for p in words if p.default is inspect.Parameter.empty]
        what = (inspect.getdoc(make) or "").partition("\n")[0]
        rows.add_row(":".join([name, *([",".join(needed)] if needed else [])]), escape(what))
    console.print(rows)
    known = registry.installed()
    for source, places in registry.folders().items():
        for place in places:
            console.print(f"[bold]{source}[/]: {escape(str(place))}", soft_wrap=True)
            rows = table(["name", "file"])
            for robot in known:
                if robot.path.is_relative_to(place):
                    rows.add_row(robot.name, escape(str(robot.path.relative_to(place))))
            console.print(rows)
        if not places:
            console.print(f"[bold]{source}[/]: not installed")
