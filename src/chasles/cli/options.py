"""What commands share: options, and how they say what went wrong."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

Target = Annotated[
    str,
    typer.Argument(
        metavar="FILE|NAME",
        help="A .urdf, .xacro, .sdf, .xml (MJCF), .toml or .dat file, or a robot's name: puma560.",
    ),
]
Floating = Annotated[bool, typer.Option("--floating", help="Put the root link on a free joint.")]
NoMimic = Annotated[
    bool, typer.Option("--no-mimic", help="Give joints that mimic another a coordinate too.")
]
NoSnap = Annotated[
    bool, typer.Option("--no-snap", help="Keep an angle like 1.5708 as printed, not as pi/2.")
]
Arguments = Annotated[
    list[str],
    typer.Option(
        "--argument",
        default_factory=list,
        show_default=False,
        help="Of a .xacro file: NAME=VALUE; repeatable.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="An impossible inertia is an error.")]


@contextmanager
def reported() -> Iterator[None]:
    """Show what a user can put right as one line, without a traceback; exit status 2."""
    try:
        yield
    except (ValueError, OSError) as error:
        typer.secho(f"error: {' '.join(str(error).split())}", fg=typer.colors.RED, err=True)
        raise typer.Exit(2) from None


def check_folder(output: Path) -> None:
    """Say at once that a file has no folder to be written to."""
    if not output.absolute().parent.is_dir():
        raise ValueError(f"{output}: there is no such folder to write to; make it first")
