"""The public functions beside the robot itself: load, save, from_dh, to_dh, compile, cost."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np

from chasles import backends, formats
from chasles.algorithms import that_runs
from chasles.backends.arrays import check_tolerance
from chasles.errors import InputError, LeftOutWarning, ModelError, shown
from chasles.formats import is_name, registry
from chasles.functions.compiled import Compiled
from chasles.functions.cost import Cost, Rules, measured, recorder
from chasles.functions.devices import Automatic
from chasles.functions.doors import (
    Wrench,
    check_robot,
    checked_options,
    derivative_names,
    wrench_arguments,
)
from chasles.functions.made import Tiered
from chasles.functions.programs import Derivative, program
from chasles.model.denavit_hartenberg import Convention, DHRow, DHTable
from chasles.model.dh_fields import TABLE, checked
from chasles.model.dh_fit import dh_table
from chasles.model.edit import opened, unsprung
from chasles.model.given import some_names
from chasles.robot import Robot


def load(
    path: str | os.PathLike[str],
    *,
    floating: bool = False,
    mimic: bool = True,
    snap: bool = True,
    strict: bool = False,
    arguments: Mapping[str, str] | None = None,
    trust: bool = False,
    loops: bool = True,
    omit: Sequence[str] = (),
    loop_tolerance: float | None = None,
    springs: bool = True,
) -> Robot:
    """Read a robot from a file: .urdf, .xacro, .sdf, .toml (a mechanism, docs/mechanism-files.md,
    or a Denavit-Hartenberg table, docs/dh.md), .xml or .mjcf (a MuJoCo model, docs/mjcf.md), or
    .dat (the data file of Legnani et al. 1996, fig. 6). A name without suffix is that of a robot
    which example-robot-data or robot_descriptions have put on this machine: load("panda");
    `chasles.robots.installed()` lists them.

    floating: put the root link on a free joint. mimic: followers move with their leader and have no
    coordinate of their own (False: every joint is independent, as in Pinocchio). snap: take angles
    printed as rounded multiples of a right angle as exact; `robot.notes` says where. strict: an
    invalid inertia is an error instead of a note. arguments: of a xacro file, by name. trust: let a
    xacro file run Python, read any file and the environment; without it, expressions that need more
    than arithmetic and xacro's functions are refused (docs/formats.md#xacro).

    loops: False leaves out all joints that close loops and all couplings. omit: names of loops and
    couplings (equalities of MJCF) to leave out; the name of a mimic joint makes it independent.
    loop_tolerance: how much the equations of a loop may contradict each other, in rad and in parts
    of the loop's size, before the loop is impossible or locked; by default 1e-4, and up to 1e-3 if
    the file prints so few digits (docs/loops.md#loops-closed-to-the-digits-of-a-file).

    springs: False leaves out the springs of joints and tendons. Springs that are left out, and
    parts of the file that exert forces and are not supported, are each a
    `chasles.errors.LeftOutWarning`.
    """
    file = registry.find(os.fsdecode(path)) if is_name(path) else path
    source = formats.read(file, snap=snap, floating=floating, arguments=arguments, trust=trust)
    if not isinstance(omit, tuple) or omit or loops is False:
        left_out = some_names("omit", omit, "load")
        if loops is False or left_out:
            source = opened(source, None if loops is False else left_out)
    if loop_tolerance is not None:
        check_tolerance("load", loop_tolerance)
        precision = replace(source.precision, loops=float(loop_tolerance))
        source = replace(source, precision=precision)
    if springs is False:
        source = unsprung(source)
    for what in source.unsupported:
        warnings.warn(shown(what), LeftOutWarning, stacklevel=2)
    return Robot(source, mimic=mimic, strict=strict)


def save(robot: Robot, path: str | os.PathLike[str], *, overwrite: bool = False) -> tuple[str, ...]:
    """Write a robot as a file, with all digits: .toml (a mechanism file, which holds everything but
    joints of a type of your own and couplings that are no polynomials), .urdf, .sdf, or .xml or
    .mjcf (a MuJoCo model); docs/formats.md says what each can hold.

    `load` reads a robot of it that moves the same. What would change the motion and has no place in
    the format is an error that names the part; what would not (limits of velocity in MJCF, say) is
    left out, and the notes that are returned say so. Mimic joints are written as such, also those
    of a robot that was loaded with mimic=False. The file is whole or not there at all. A file that
    is there stays, with an error, unless overwrite=True.
    """
    check_robot("save", robot)
    return formats.write(robot.model.source, path, overwrite=overwrite)


def from_dh(
    rows: DHTable | Sequence[DHRow | Mapping[str, Any] | Sequence[float]] | np.ndarray,
    *,
    convention: Convention | None = None,
    name: str | None = None,
    gravity: Sequence[float] | None = None,
    base: Any = None,
    tool: Any = None,
) -> Robot:
    """A serial arm from Denavit-Hartenberg rows, in m, rad and kg.

    rows: `DHRow`s, mappings of their fields, or an (n, 4) array of theta, d, a, alpha for an arm of
    revolute joints without masses, which has kinematics only; or a whole `DHTable`. convention:
    "modified" (Rx(alpha) Tx(a) Rz(theta) Tz(d)) or "standard" (Rz(theta) Tz(d) Tx(a) Rx(alpha)); it
    must be said, since rows of the one make another robot in the other. gravity: m/s2, world axes.
    base, tool: homogeneous 4x4 matrices, of frame 0 in the world and of the tool in the last frame.
    Those of a `DHTable` hold where they are not given.

    Links are base, link1, ..., joints joint1, ... unless rows name them; frame i of the table is
    "dh<i>", frame 0 "base", and "tool" the end. Angles that are multiples of a right angle in full
    (math.pi / 2) are exact.
    """
    options = {"name": name, "gravity": gravity, "base": base, "tool": tool}
    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    if isinstance(rows, DHTable):
        if convention not in (None, rows.convention):
            problem = f"the table is {rows.convention}, not {convention}"
            remedy = "leave out convention, or convert the robot with chasles.to_dh"
            raise ModelError("E-ROBOT-001", problem, remedy)
        return Robot(replace(rows, **given).description())
    if convention is None:
        problem = "say which convention the rows have: 'modified' or 'standard'"
        raise ModelError("E-ROBOT-002", problem)
    return Robot(DHTable(rows, convention, **given).description())  # type: ignore[arg-type]


def to_dh(robot: Robot, *, convention: Convention = "modified", tool: str | None = None) -> DHTable:
    """The Denavit-Hartenberg table of a serial arm of revolute and prismatic joints, any axes.

    `from_dh` makes a robot of it with the same coordinates (in the order of the joints along the
    arm), the same poses of the tool and the same dynamics; mass data are moved to the table's
    frames. Base and tool hold what rows cannot. tool: the frame at the end, by default the robot's
    last one that moves with the last link. A robot whose links have the frames of a table (from_dh,
    .toml, .dat, the built-in arms) keeps that table; others get theirs by the book's rules: x along
    common normals, d = 0 between parallel axes (Balafoutis and Patel 1991, section 2.3).
    """
    check_robot("to_dh", robot)
    return dh_table(robot.model, checked(TABLE, "convention", convention), tool)


@overload
def compile(
    robot: Robot, function: str, *, device: Literal["auto"], **options: Any
) -> Automatic: ...
@overload
def compile(
    robot: Robot,
    function: str,
    *,
    device: Literal["cpu", "cuda"] | None = None,
    backend: str | None = None,
    method: str = "fastest",
    dissipation: bool = False,
    f_ext: Mapping[str, Wrench] | None = None,
    parameters: Sequence[str] = (),
    wrt: str | Sequence[str] | None = None,
    dtype: str = "float64",
    tier: Literal["best"] = "best",
    **options: Any,
) -> Compiled: ...
@overload
def compile(
    robot: Robot, function: str, *, tier: Literal["quick"], **options: Any
) -> Compiled | Tiered: ...
def compile(
    robot: Robot,
    function: str,
    *,
    device: Literal["cpu", "cuda", "auto"] | None = None,
    backend: str | None = None,
    method: str = "fastest",
    dissipation: bool = False,
    f_ext: Mapping[str, Wrench] | None = None,
    parameters: Sequence[str] = (),
    wrt: str | Sequence[str] | None = None,
    dtype: str = "float64",
    tier: Literal["best", "quick"] = "best",
    **options: Any,
) -> Compiled | Automatic | Tiered:
    """The callable behind a function of a robot: takes arrays in order, and `out=`.

    device: "cpu", "cuda" (takes arrays on a GPU, docs/gpu.md) or "auto" (takes arrays in the host's
    memory and runs each batch where that was measured to be faster, copies included; it says where:
    `.choice(count)`, `.report()`). backend: of the CPU "llvm" (machine code; "llvm-quick" is
    compiled in less time and runs slower), "numpy" (vectorised Python) or "interpret" (slow: one
    operation at a time, the definition of correct), of a GPU "cuda"; by default "llvm", or what
    the device has.

    f_ext: the external wrenches it will take (their values are ignored), as extra arrays after the
    others, in alphabetical order of their frames. parameters: numbers of the robot that stay
    inputs, batched and differentiable, after all other arrays: "<link>.mass", "<link>.center",
    "<link>.inertia", "<joint>.placement", "gravity" (their shapes and values:
    `robot.parameter(name)`). Of a robot that depends on time the time t (...) is an array before
    the parameters. wrt: compile the derivatives with respect to these arguments and parameters
    instead. dtype: "float64" (which turns to float32 where all arrays are) or "float32". tier:
    "best" waits for the fastest code; "quick" begins with code that is compiled in less time and
    goes on with the best when that is ready (`.tier`, `.wait()`), for functions of large robots.
    options: those of the method of `Robot`, e.g. frame="hand".
    """
    check_robot("compile", robot)
    robot.mechanism.refuse_open("compile", function)
    chosen = _backend(device, backend)
    keys, _ = wrench_arguments(robot.model, f_ext)
    derivative = None
    if wrt is not None:
        order = dict(checked_options(robot.model, function, options)).get("order", 1)
        names = derivative_names(function, wrt, parameters, order=order, model=robot.model)
        derivative = Derivative("jacobian", names)
    known = ("best", "quick") if backends.row(chosen).first else ("best",)
    if tier not in known:
        problem = f"tier must be 'best' or, with backend='llvm', 'quick', not {tier!r}"
        raise InputError("E-ROBOT-040", problem, part="compile")
    compiled = robot.function(
        function,
        backend=chosen,
        method=method,
        dissipation=dissipation,
        wrenches=keys,
        derivative=derivative,
        parameters=parameters,
        dtype=dtype,
        **options | ({"tier": tier} if tier == "quick" and device != "auto" else {}),
    )
    return Automatic(compiled) if device == "auto" else compiled


def _backend(device: str | None, backend: str | None) -> str:
    """The backend for a device, or the one that was asked for if it is of that device."""
    if device is None:
        return backend or backends.USUAL
    devices = backends.devices()
    if device not in devices:
        problem = f"unknown device {device!r}"
        raise InputError("E-ROBOT-003", problem, f"use one of {', '.join(devices)}")
    known = devices[device]
    if backend is not None and backend not in known:
        problem = f"device={device!r} runs by {' or '.join(known)}, not by the backend {backend!r}"
        raise InputError("E-ROBOT-004", problem, "leave out one of the two")
    return backend or known[0]


def cost(
    robot: Robot,
    function: str,
    *,
    method: str = "fastest",
    dissipation: bool = False,
    f_ext: Mapping[str, Wrench] | None = None,
    rules: Rules = "simplified",
    **options: Any,
) -> Cost:
    """The operations that a function takes for one state of this robot, after simplification.

    Also by statement of the algorithm (`.steps`), the longest path (`.depth`) and the largest
    number of values needed at one time (`.live`). f_ext: the external wrenches it will take (their
    values are ignored).

    rules="book" counts as Balafoutis and Patel do by hand (1991, sections 5.3 and 6.3): structural
    zeros and ones, signs and trigonometric functions are free, a doubling is an addition, a
    division is a multiplication, and nothing is shared between two equations unless it has a name.
    "fastest" is the program that runs, by either rules: of a robot with loops, for
    "forward_dynamics" that of "constrained_dynamics".
    """
    check_robot("cost", robot)
    function = that_runs(robot.model, function)
    robot.mechanism.refuse_open("cost", function)
    model = robot.mechanism.chosen(function)
    keys, _ = wrench_arguments(model, f_ext)
    chosen = dict(checked_options(model, function, options))
    traced = program(
        model,
        function,
        method=method,
        dissipation=dissipation,
        wrenches=keys,
        record=recorder(rules),
        **chosen,
    )
    return measured(traced, rules)
