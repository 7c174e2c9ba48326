"""What commands share: the robot they are asked about, and checks of what they are to write."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from chasles.algorithms import FUNCTIONS
from chasles.cli.target import Asked, Loading, given, names
from chasles.errors import InputError
from chasles.formats import endings

_ROBOT = "The robot"


def among(words: Iterable[str]) -> Callable[[str], list[str]]:
    """The words that begin as what is typed, for a shell that completes."""
    known = tuple(dict.fromkeys(words))
    return lambda incomplete: [word for word in known if word.startswith(incomplete)]


Target = Annotated[
    str,
    typer.Argument(
        metavar="FILE|NAME",
        help=f"A {endings()} file, or a robot's name: puma560.",
        autocompletion=names,
    ),
]
Floating = Annotated[
    bool,
    typer.Option("--floating", help="Put the root link on a free joint.", rich_help_panel=_ROBOT),
]
NoMimic = Annotated[
    bool,
    typer.Option(
        "--no-mimic",
        help="Give joints that mimic another a coordinate too.",
        rich_help_panel=_ROBOT,
    ),
]
NoSnap = Annotated[
    bool,
    typer.Option(
        "--no-snap",
        help="Keep an angle like 1.5708 as printed, not as pi/2.",
        rich_help_panel=_ROBOT,
    ),
]
Arguments = Annotated[
    list[str],
    typer.Option(
        "--argument",
        default_factory=list,
        show_default=False,
        metavar="NAME=VALUE",
        help="Of a .xacro file; repeatable.",
        rich_help_panel=_ROBOT,
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="An impossible inertia is an error.", rich_help_panel=_ROBOT),
]
Functions = Annotated[
    list[str],
    typer.Option(
        "--function",
        "--functions",
        "-f",
        default_factory=list,
        show_default=False,
        autocompletion=among(FUNCTIONS),
        metavar="NAME,...",
        help="Names of functions; repeatable.",
    ),
]
Frame = Annotated[
    str,
    typer.Option(
        "--frame", show_default=False, help="Of functions that have one. Default: the last."
    ),
]


def asked(
    target: Target,
    argument: Arguments,
    floating: Floating = False,
    no_mimic: NoMimic = False,
    no_snap: NoSnap = False,
    strict: Strict = False,
) -> Asked:
    """The robot that these name; every command about a robot takes them."""
    how = Loading(floating, not no_mimic, not no_snap, strict, given(argument))
    return Asked(target, how)


def listed(words: list[str]) -> list[str]:
    """Names with commas between them, or in several options."""
    return [name.strip() for word in words for name in word.split(",") if name.strip()]


def check_folder(output: Path) -> None:
    """Say at once that a file has no folder to be written to."""
    if not output.absolute().parent.is_dir():
        problem = "there is no such folder to write to"
        raise InputError("E-CLI-027", problem, "make it first", file=output)
