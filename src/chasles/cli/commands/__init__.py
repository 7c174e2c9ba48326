"""All commands, each defined in its own file."""

from collections.abc import Callable

from chasles.cli.command import Answer
from chasles.cli.commands.bench import bench
from chasles.cli.commands.cache import cache
from chasles.cli.commands.compare import compare
from chasles.cli.commands.convert import convert
from chasles.cli.commands.cost import cost
from chasles.cli.commands.demo import demo
from chasles.cli.commands.excite import excite
from chasles.cli.commands.explain import explain
from chasles.cli.commands.export import export
from chasles.cli.commands.identify import identify
from chasles.cli.commands.info import info
from chasles.cli.commands.lint import lint
from chasles.cli.commands.motion import motion
from chasles.cli.commands.reach import reach
from chasles.cli.commands.robots import robots
from chasles.cli.commands.simulate import simulate
from chasles.cli.commands.sweep import sweep
from chasles.cli.commands.trajectory import trajectory
from chasles.cli.commands.verify import verify
from chasles.cli.commands.view import view

COMMANDS: tuple[Callable[..., Answer], ...] = (
    demo,
    robots,
    info,
    view,
    lint,
    verify,
    compare,
    cost,
    explain,
    bench,
    convert,
    reach,
    trajectory,
    motion,
    excite,
    identify,
    simulate,
    sweep,
    export,
    cache,
)
"""All commands, in the order shown in the help.

Typer reads their options from the signatures and their help from the docstrings.
"""
