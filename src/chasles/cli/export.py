"""What `chasles export` is asked for, and what it says when the files are written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chasles.algorithms import METHODS
from chasles.errors import InputError
from chasles.exporting import function_of
from chasles.functions.doors import NEEDED
from chasles.functions.programs import spaces
from chasles.robot import Robot


def viewpoint(
    robot: Robot, functions: Sequence[str], *, frame: str, axes: str, at: str
) -> dict[str, Any]:
    """The options of functions that have a frame: the last one unless it is named."""
    given: dict[str, Any] = {"axes": axes} if axes else {}
    if at:
        given["at"] = at if at in ("frame", "world") else _point(at)
    known = [function_of(name) for name in functions if function_of(name) in METHODS]
    for name in known:
        needed = [f"{x}=" for x in spaces(name).options if x in NEEDED and x != "frame"]
        if needed:
            words = " and ".join(needed)
            remedy = "give them to chasles.export"
            raise InputError("E-CLI-011", f"it needs {words}", remedy, part=f"--function {name}")
    if frame or any("frame" in spaces(name).options for name in known):
        given["frame"] = frame or robot.frames[-1]
    return given


def _point(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        problem = "give frame, world, or x,y,z in the frame"
        raise InputError("E-CLI-012", problem, part=f"--at {text}") from None


def lines(paths: Sequence[Path]) -> tuple[str, ...]:
    """Where the files are, and how to build and test them."""
    folder = paths[0].parent
    return (
        f"Written to {folder}: {', '.join(path.name for path in paths)}",
        "Build and test:",
        f"  cmake -S {folder} -B build && cmake --build build",
        "  ctest --test-dir build",
    )
