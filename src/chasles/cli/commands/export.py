"""The command `chasles export`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from chasles.algorithms import METHODS
from chasles.backends.c.names import prefix_for
from chasles.cli.command import Answer, said
from chasles.cli.options import Asked, Frame, Functions, Overwrite, has_frame, listed, option
from chasles.errors import InputError
from chasles.exporting import export as write
from chasles.exporting import function_of
from chasles.functions.programs import NEEDED, spaces
from chasles.motion.exported import TIME_STEP
from chasles.robot import Robot


def export(
    asked: Asked,
    functions: Functions,
    output: Annotated[Path, option("Folder to write to.", "--output", "-o")],
    dtype: Annotated[str, option("Floating-point type: double or float.")] = "double",
    own_sine: Annotated[bool, option("Compute sines and cosines without the C library.")] = False,
    prefix: Annotated[str, option("Prefix of all C names. Default: the robot's name.")] = "",
    frame: Frame = "",
    axes: Annotated[str, option("Axes in which vectors are expressed: world or frame.")] = "",
    at: Annotated[str, option("Reference point: frame, world or x,y,z (m).")] = "",
    dissipation: Annotated[bool, option("Include joint damping and friction.")] = False,
    dt: Annotated[float, option("Step size of time_step (s).")] = 0.0,
    overwrite: Overwrite = False,
) -> Answer:
    """Export robot functions as C99 source code with a test program.

    Writes a header, a source file, CMakeLists.txt, and a test program that
    compares results with stored values. NAME_derivatives denotes the derivatives
    of NAME with respect to all its arguments. time_step computes one step of
    `chasles simulate` with the file's contacts, joint limits and friction.
    time_step takes controls if the file has actuators, otherwise joint torques.

    Examples:
        chasles export puma560 -f inverse_dynamics,mass_matrix --output puma
        chasles export robot.urdf -f jacobian --frame hand --dtype float -o hand
        chasles export humanoid.xml -f time_step --dt 0.002 -o humanoid
    """
    names = listed(functions)
    if not names:
        problem = "name a function to export, for example inverse_dynamics"
        raise InputError("E-CLI-003", problem, part="--function")
    robot = asked.robot()
    viewpoint = _viewpoint(robot, names, frame=frame, axes=axes, at=at)
    paths = write(
        robot,
        names,
        output,
        dtype=dtype,
        prefix=prefix or None,
        own_sine=own_sine,
        dissipation=dissipation,
        overwrite=overwrite,
        **viewpoint,
        **_stepping(robot, names, dt),
    )
    note = "" if prefix else prefix_for(robot.name)[1]
    data = {"robot": robot.name, "functions": names, "files": {p.name: p for p in paths}}
    data["notes"] = [note] if note else []
    used = {name: viewpoint[name] for name in ("frame",) if name in viewpoint}
    lines = (
        *([f"note: {note}"] if note else []),
        *(f"Frame: {name!r}" for name in used.values()),
        f"Written to {paths[0].parent}: {', '.join(path.name for path in paths)}",
        "Build and test:",
        f"  cmake -S {paths[0].parent} -B build && cmake --build build",
        "  ctest --test-dir build",
    )
    return Answer(data | used, said(*lines))


def _stepping(robot: Robot, functions: Sequence[str], dt: float) -> dict[str, Any]:
    """Return the options of `export` that the function `time_step` needs."""
    given: dict[str, Any] = {"dt": dt} if dt else {}
    if TIME_STEP in functions:
        given |= {"contacts": "file", "ctrl": bool(robot.actuators)}
    return given


def _viewpoint(
    robot: Robot, functions: Sequence[str], *, frame: str, axes: str, at: str
) -> dict[str, Any]:
    """Return the `frame`, `axes` and `at` options; the default frame is the robot's tool."""
    given: dict[str, Any] = {"axes": axes} if axes else {}
    if at:
        given["at"] = at if at in ("frame", "world") else _point(at)
    known = [function_of(name) for name in functions if function_of(name) in METHODS]
    for name in known:
        needed = [repr(x) for x in spaces(name).options if x in NEEDED and x != "frame"]
        if needed:
            words = " and ".join(needed)
            remedy = "use the Python function chasles.export"
            problem = f"the command line cannot pass {words} to this function"
            raise InputError("E-CLI-011", problem, remedy, part=f"--function {name}")
    if frame or any(map(has_frame, known)):
        given["frame"] = frame or robot.tool
    return given


def _point(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        problem, remedy = "invalid point", "use frame, world, or x,y,z (m, in the frame)"
        raise InputError("E-CLI-012", problem, remedy, part=f"--at {text}") from None
