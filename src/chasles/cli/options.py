"""Options shared by several commands, and loading of the robot that a command names."""

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from chasles import robots
from chasles.algorithms import FUNCTIONS
from chasles.api import load
from chasles.errors import InputError, ModelError
from chasles.formats import endings, is_name, registry
from chasles.functions.programs import spaces
from chasles.robot import Robot


@dataclass(frozen=True)
class Loading:
    """Options of `chasles.load`; for built-in robots, `snap` has no effect."""

    floating: bool = False
    mimic: bool = True
    snap: bool = True
    strict: bool = False
    arguments: Mapping[str, str] | None = None
    trust: bool = False


@dataclass(frozen=True)
class Asked:
    """Robot argument of a command: the file or name that the user typed, and loading options."""

    target: str
    how: Loading

    def robot(self) -> Robot:
        """Load the robot with the requested options."""
        return find(self.target, self.how)

    @property
    def file(self) -> Path | None:
        """Path of the robot file, or None for a built-in robot."""
        return located(self.target)


def find(target: str, how: Loading) -> Robot:
    """Load a robot from a file, or an installed or built-in robot by name, such as planar:4."""
    file = located(target)
    return _built(target, how) if file is None else load(file, **vars(how))


def located(target: str) -> Path | None:
    """Locate a robot file by path or name; return None for a built-in robot."""
    if target.partition(":")[0] in robots.ROBOTS and not os.path.isfile(target):
        return None
    return registry.find(target, also=robots.ROBOTS) if is_name(target) else Path(target)


def _built(target: str, how: Loading) -> Robot:
    """Build a built-in robot with the given options."""
    name, _, arguments = target.partition(":")
    needed, given = needs(name), arguments.split(",") if arguments else []
    counts = all(re.fullmatch("[0-9]{1,4}", word) for word in given)
    if len(given) != len(needed) or not counts:
        usage = f"{name}:{','.join(needed)}" if needed else name
        where = ", with integers" if needed else ", without arguments"
        raise ModelError("E-CLI-042", f"specify this built-in robot as {usage}{where}", part=target)
    robot: Robot = getattr(robots, name)(*map(int, given))
    source = robot.model.source
    if how.floating:
        held = {joint.child for joint in source.joints}
        roots = [link.name for link in source.links if link.name not in held]
        if not roots:
            problem = "the robot already has a floating base"
            raise ModelError("E-CLI-043", problem, "omit --floating", part=robot.name)
        source = robot.subtree(roots[0], floating=True).model.source
    return Robot(source, mimic=how.mimic, strict=how.strict)


def needs(name: str) -> list[str]:
    """Return the names of the arguments that a built-in robot requires, in upper case."""
    words = inspect.signature(robots.ROBOTS[name]).parameters.values()
    return [word.name.upper() for word in words if word.default is inspect.Parameter.empty]


# Options ---------------------------------------------------------------------------------------


def among(words: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a shell-completion function that lists the words starting with the typed text."""
    known = tuple(dict.fromkeys(words))
    return lambda incomplete: [word for word in known if word.startswith(incomplete)]


def installed(incomplete: str) -> list[str]:
    """Return names of installed robots that start with the typed text, for shell completion."""
    return among(robot.name for robot in registry.installed())(incomplete)


def names(incomplete: str) -> list[str]:
    """Return names of built-in and installed robots (not files) that start with the typed text."""
    return among([*robots.ROBOTS, *installed(incomplete)])(incomplete)


def option(help: str, *names: str, **more: Any) -> Any:
    """Return a command option, named after its parameter by default."""
    return typer.Option(*names, help=help, **more)


def repeatable(help: str, *names: str, **more: Any) -> Any:
    """Return a command option that can be repeated."""
    return option(help, *names, default_factory=list, **more)


def pairs(flag: str, words: list[str]) -> dict[str, str]:
    """Parse NAME=VALUE options into a dictionary."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            problem = f"{word!r} is not of the form NAME=VALUE"
            raise InputError("E-CLI-260", problem, "give NAME=VALUE", part=flag)
        found[name] = value
    return found


_ROBOT = {"rich_help_panel": "The robot"}
Floating = Annotated[
    bool, option("Attach the root link by a free joint (floating base).", **_ROBOT)
]
NoMimic = Annotated[bool, option("Give mimic joints their own coordinates.", **_ROBOT)]
NoSnap = Annotated[bool, option("Do not replace angles such as 1.5708 by pi/2.", **_ROBOT)]
Strict = Annotated[bool, option("Treat an invalid inertia as an error.", **_ROBOT)]
Arguments = Annotated[
    list[str], repeatable("Argument for a .xacro file; repeatable.", metavar="NAME=VALUE", **_ROBOT)
]
Trust = Annotated[bool, option("Allow a .xacro file to run Python.", **_ROBOT)]
Target = Annotated[
    str,
    typer.Argument(
        metavar="FILE|NAME",
        help=f"{endings()} file, or the name of a robot, such as puma560.",
        autocompletion=names,
    ),
]
Functions = Annotated[
    list[str],
    repeatable(
        "Function name; repeatable.",
        *("--function", "--functions", "-f"),
        metavar="NAME,...",
        autocompletion=among(FUNCTIONS),
    ),
]
Frame = Annotated[str, option("Frame for functions that need one. Default: the tool.")]
Overwrite = Annotated[bool, option("Overwrite existing files.")]
Cluster = Annotated[
    str | None,
    option("Dask scheduler (tcp://host:8786), or local:N for N processes.", metavar="ADDRESS"),
]


def method_option(help: str, **more: Any) -> Any:
    """Return a command option for a method name."""
    known = among(method.name for row in FUNCTIONS.values() for method in row)
    return option(help, "--method", "-m", autocompletion=known, **more)


def asked(
    target: Target,
    argument: Arguments,
    floating: Floating = False,
    no_mimic: NoMimic = False,
    no_snap: NoSnap = False,
    strict: Strict = False,
    trust: Trust = False,
) -> Asked:
    """Combine the robot argument and the loading options shared by all robot commands."""
    how = Loading(floating, not no_mimic, not no_snap, strict, given(argument), trust)
    return Asked(target, how)


def given(words: Sequence[str]) -> dict[str, str]:
    """Parse xacro arguments of the form NAME=VALUE, or NAME:=VALUE as in ROS."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name.rstrip(":") or not equals:
            raise ModelError("E-CLI-041", "give NAME=VALUE", part=f"--argument {word}")
        found[name.rstrip(":")] = value
    return found


def listed(words: list[str]) -> list[str]:
    """Split the comma-separated values of a repeatable option into names."""
    return [name.strip() for word in words for name in word.split(",") if name.strip()]


def has_frame(function: str) -> bool:
    """Return True if a function has the option `frame`."""
    return "frame" in spaces(function).options


def check_folder(output: Path) -> None:
    """Raise an error if the parent folder of an output file does not exist."""
    if not os.path.isdir(output.absolute().parent):
        problem = "the folder does not exist"
        raise InputError("E-CLI-027", problem, "create the folder first", file=output)
