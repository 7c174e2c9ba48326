"""Export robot functions as a C99 library."""

import inspect
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from chasles import backends
from chasles.algorithms import METHODS
from chasles.backends.c.body import NUMBERS
from chasles.backends.c.function import Function
from chasles.backends.c.iterated import Iteration
from chasles.backends.c.library import Library, Sample
from chasles.backends.c.names import LONGEST, identifier, prefix_for, taken_by
from chasles.backends.c.search import Search
from chasles.errors import (
    ArgumentError,
    ExistingFileError,
    FileError,
    InputError,
    NotAFolderError,
    said,
)
from chasles.expr import Program
from chasles.functions.doors import (
    Wrench,
    check_robot,
    derivative_names,
    wrench_arguments,
)
from chasles.functions.programs import Derivative, checked_options, program, spaces
from chasles.functions.rates import LEAST
from chasles.functions.targets import Pose
from chasles.mechanisms.exported import STEP, TRIES, Reaching
from chasles.mechanisms.postures import Bounds
from chasles.model.spaces import PositionSpace
from chasles.motion.exported import OPTIONS as STEP_OPTIONS
from chasles.motion.exported import TIME_STEP, exported_step
from chasles.motion.rates import ResolvedRate
from chasles.names import suggested
from chasles.robot import Robot
from chasles.version import VERSION
from chasles.writing import store_all

DERIVATIVES = "_derivatives"
"""Suffix of a function name that requests the derivatives of the function."""

STATES = 3
"""Number of states for which the exported test contains expected results."""

CHOICE = 32
"""Number of random states from which the test states of `resolved_rate` are selected."""

REACH, ITERATION, RATE = "inverse_kinematics", "inverse_kinematics_step", "resolved_rate"
SOLVERS = {
    REACH: ("frame", "targets", "tries", "seed"),
    ITERATION: ("frame", "targets"),
    RATE: ("frame", "tasks", "damping", "singular", "passes"),
    TIME_STEP: STEP_OPTIONS,
}
"""Solvers that can be exported in addition to robot functions, and the options of each."""


def export(
    robot: Robot,
    functions: str | Sequence[str],
    directory: str | os.PathLike[str],
    *,
    dtype: str = "double",
    prefix: str | None = None,
    own_sine: bool = False,
    dissipation: bool = False,
    f_ext: Mapping[str, Wrench] | None = None,
    parameters: Sequence[str] = (),
    overwrite: bool = False,
    **options: Any,
) -> tuple[Path, ...]:
    """Export robot functions to C99: a header, a source file, CMakeLists.txt and a test.

    Parameters
    ----------
    robot : Robot
        The robot.
    functions : str or sequence of str
        Names of `Robot` methods. NAME_derivatives exports the derivatives of NAME with respect
        to all its arguments. "inverse_kinematics", "inverse_kinematics_step", "resolved_rate" and
        "time_step" export solvers; see Notes.
    directory : str or path
        Folder to write to.
    dtype : {"double", "float"}, optional
        Floating-point type.
    prefix : str, optional
        Prefix of all C identifiers and file names. Default: the robot's name.
    own_sine : bool, optional
        Export the sine and cosine functions of chasles instead of calling those of the C library.
        The sine and cosine of chasles are faster and give identical results on every machine.
        Batch functions always use the chasles functions.
    dissipation : bool, optional
        Include joint damping and friction.
    f_ext : mapping from str to Wrench or array_like, optional
        External wrenches that the functions take as arguments, as in `chasles.compile`.
    parameters : sequence of str, optional
        Model parameters to keep as inputs, as in `chasles.compile`.
    overwrite : bool, optional
        Replace existing files.
    **options
        Options of the functions, such as `frame`, `axes` and `at`.

    Returns
    -------
    tuple of Path
        Paths of the files. If an error occurs, no file is written.

    Raises
    ------
    ArgumentError
        If `robot` is not a Robot, if `f_ext` is not a mapping, or if a required option is missing.
    InputError
        If a function, an option or `dtype` is unknown, if a function cannot be exported, or if
        `prefix` is not a valid C identifier.
    ModelError
        If the function does not keep loops closed and the robot has loops, if the method does not
        support the robot, or if a frame does not exist.
    ExistingFileError
        If a file exists and `overwrite` is False.
    NotAFolderError
        If `directory` is a file.
    FileError
        If a file cannot be written.

    Notes
    -----
    Arrays are row-major, in the same order and units as in the `Robot` methods (docs/export-c.md).
    "inverse_kinematics" is the complete solver, which starts from `tries` stored random
    configurations (32 by default, generated from `seed`). "inverse_kinematics_step" is one
    iteration. Both solve for a pose of `frame`, or for `targets` as in `Robot.inverse_kinematics`.
    "resolved_rate" is the step of `chasles.control.resolved_rate` for the twist of `frame`, or for
    `tasks`, with `damping`, `singular` and `passes`. "time_step" is one step of size `dt` with the
    integrator "time-stepping", with `contacts`, `limits` and `control` as in `rollout`. With
    ctrl=True, "time_step" takes actuator controls instead of joint torques. For robots with loops,
    the option `q` is a configuration in which the loops are closed. This configuration determines
    the choice of independent coordinates.

    If the robot's name is reserved in C, C++, CMake or a system header, the prefix is "robot_"
    followed by the name. A long name is shortened and ends in a hash. A comment in the header notes
    either change.

    Examples
    --------
    >>> import chasles, tempfile
    >>> files = chasles.export(chasles.robots.planar(2), "mass_matrix", tempfile.mkdtemp())
    >>> sorted(file.name for file in files)
    ['CMakeLists.txt', 'planar.c', 'planar.h', 'planar_test.c']
    """
    check_robot("export", robot)
    if not isinstance(directory, str | os.PathLike):
        problem = f"`directory` must be the path of a folder, not {type(directory).__name__}"
        raise ArgumentError("E-EXPORT-040", problem, part="export")
    names = [functions] if isinstance(functions, str) else list(dict.fromkeys(functions))
    if not names:
        problem = (
            "`functions` is empty; pass at least one function name, such as 'inverse_dynamics'"
        )
        raise InputError("E-EXPORT-001", problem, part="export")
    _check_dtype(dtype)
    for name in names:
        _check_function(robot, name)
    _check_used(names, [*options, *(["f_ext"] if f_ext is not None else [])])
    stem, note = prefix_for(robot.name) if prefix is None else (_checked(prefix), "")
    given = {"dissipation": dissipation, "f_ext": f_ext, "parameters": parameters, **options}
    number = NUMBERS[dtype]
    made: dict[str, tuple[Function, Sample]] = {}
    searches: list[Search] = []
    iterations: list[Iteration] = []

    def add(name: str, summary: str, traced: Program, sample: Sample) -> Function:
        function = Function(f"{stem}_{name}", summary, traced, number, own_sine)
        return made.setdefault(name, (function, sample))[0]

    for name in names:
        if name == TIME_STEP:
            chosen = {key: options[key] for key in STEP_OPTIONS if key in options}
            chosen |= {"own_sine": own_sine, "dissipation": dissipation, "count": STATES}
            iterations.append(exported_step(robot, stem, number, **chosen))
        elif name == RATE:
            add(name, _summary(name), *_rate(robot, number.dtype, options))
        elif name in SOLVERS:
            reaching = _reaching(robot, number.dtype, options)
            traced = reaching.task.step_program()
            step = add(ITERATION, STEP, traced, reaching.sample(STATES))
            if name == REACH:
                tried = options.get("tries", TRIES), options.get("seed", 0)
                searches.append(reaching.search(f"{stem}_{name}", step, *tried))
        else:
            traced = _program(robot, name, **given)
            add(name, _summary(name), traced, _sample(robot, name, traced))
    notes = (*([f"Note: {note}.", ""] if note else []), *_notes(robot))
    every = tuple(function for function, _ in made.values())
    samples = tuple(sample for _, sample in made.values())
    solvers = (tuple(searches), tuple(iterations))
    library = Library(stem, _title(robot), notes, number, every, samples, *solvers)
    return _write(Path(directory), library.files(), overwrite=overwrite)


def _title(robot: Robot) -> str:
    return f"Robot {robot.name}, generated by chasles {VERSION}. SI units and radians. Do not edit."


def export_program(
    robot: Robot,
    summary: str,
    traced: Program,
    sample: Sample,
    directory: str | os.PathLike[str],
    *,
    dtype: str = "double",
    prefix: str | None = None,
    overwrite: bool = False,
) -> tuple[Path, ...]:
    """Export a single program as a C99 library, with the same kinds of files as `export`.

    `sample` contains one array (n, size) for each input of the program, with n test states.
    """
    _check_dtype(dtype)
    stem, note = prefix_for(robot.name) if prefix is None else (_checked(prefix), "")
    notes = (*([f"Note: {note}.", ""] if note else []), *_notes(robot))
    function = Function(f"{stem}_{traced.name}", summary, traced, NUMBERS[dtype], own_sine=False)
    library = Library(stem, _title(robot), notes, NUMBERS[dtype], (function,), (sample,), ())
    return _write(Path(directory), library.files(), overwrite=overwrite)


def _check_dtype(dtype: str) -> None:
    if dtype not in NUMBERS:
        problem = f"`dtype` must be {' or '.join(map(repr, NUMBERS))}, not {dtype!r}"
        raise InputError("E-EXPORT-002", problem, part="export")


def function_of(name: str) -> str:
    """Remove the suffix "_derivatives" from the name of a function."""
    return name if name in METHODS else name.removesuffix(DERIVATIVES)


def _check_function(robot: Robot, name: str) -> None:
    function = function_of(name)
    if name in SOLVERS:
        return
    if function in METHODS:
        robot.mechanism.refuse_open("export", function)
        return
    if callable(getattr(Robot, function, None)):
        raise InputError(
            "E-EXPORT-003",
            f"{name} cannot be exported because it runs Python code",
            "export the functions that it calls (for closed loops, constrained_dynamics, or "
            "loop_residual and loop_matrix)",
            part="export",
        )
    hint = suggested(function, METHODS)
    raise InputError("E-EXPORT-004", f"unknown function {name!r}", hint, part="export")


def _check_used(names: Sequence[str], options: Sequence[str]) -> None:
    """Raise an error for an option that none of the functions accepts."""
    for option in options:
        if not any(_takes(function_of(name), option) for name in names):
            problem = f"option {option!r} does not apply to {', '.join(names)}"
            raise InputError("E-EXPORT-005", problem, "omit this option", part="export")


def _takes(function: str, option: str) -> bool:
    if function in SOLVERS:
        return option in SOLVERS[function]
    return option in spaces(function).options or option in spaces(function).inputs


def _checked(prefix: str) -> str:
    """Return a prefix; raise an error if it is too long, reserved or not a C identifier."""
    if prefix != identifier(prefix):
        problem = f"prefix {prefix!r} is not a valid C identifier"
        remedy = f"use letters, digits and single underscores, for example {identifier(prefix)!r}"
        raise InputError("E-EXPORT-006", problem, remedy, part="export")
    if len(prefix) > LONGEST or taken_by(prefix):
        why = (
            f"is {taken_by(prefix)}" if taken_by(prefix) else f"is longer than {LONGEST} characters"
        )
        remedy = f"choose another prefix, for example {prefix_for(prefix)[0]!r}"
        raise InputError("E-EXPORT-010", f"prefix {prefix!r:.80} {why}", remedy, part="export")
    return prefix


def _program(
    robot: Robot,
    name: str,
    *,
    dissipation: bool,
    f_ext: Mapping[str, Wrench] | None,
    parameters: Sequence[str],
    **options: Any,
) -> Program:
    function = function_of(name)
    model = robot.mechanism.chosen(function)
    taken = {key: value for key, value in options.items() if _takes(function, key)}
    chosen = dict(checked_options(model, function, taken))
    derivative = None
    if function != name:
        order = chosen.get("order", 1)
        derivative = Derivative("jacobian", derivative_names(function, None, order=order))
    for parameter in parameters:
        robot.parameter(parameter)
    keys, _ = wrench_arguments(model, f_ext if _takes(function, "f_ext") else None)
    return program(
        model,
        function,
        dissipation=dissipation,
        wrenches=keys,
        derivative=derivative,
        parameters=tuple(dict.fromkeys(parameters)),
        **chosen,
    )


def _reaching(robot: Robot, dtype: str, options: Mapping[str, Any]) -> Reaching:
    """Return the inverse kinematics solver for `targets` or, by default, for a pose of `frame`."""
    targets = options.get("targets")
    if targets is None:
        tolerance = 1e-6 if dtype == "float64" else 1e-4
        targets = {_frame(options, REACH): Pose(np.eye(4), tolerance=tolerance)}
    bounds = Bounds(robot.limits.lower, robot.limits.upper)
    return Reaching(robot.mechanism, bounds, targets, dtype)


def _rate(robot: Robot, dtype: str, options: Mapping[str, Any]) -> tuple[Program, Sample]:
    """Return a program for one step of resolved-rate control, and test inputs for it.

    The exported test uses `STATES` of `CHOICE` random states: those with the smallest resulting
    joint velocities, because such states are far from singularities.
    """
    tasks = options.get("tasks")
    tasks = {_frame(options, RATE): "twist"} if tasks is None else tasks
    law = {key: options[key] for key in ("damping", "singular", "passes") if key in options}
    limits = {name: getattr(robot.limits, name) for name in ("lower", "upper", "velocity")}
    given = ResolvedRate(robot.mechanism, limits, tasks, dt=0.0078125, compiled=False, **law).step
    step = replace(given, least=LEAST[dtype])
    rng, nv, rows = np.random.default_rng(0), robot.nv, step.rows
    q = robot.random(rng, size=CHOICE)
    sizes = (0.125 * rng.normal(size=(CHOICE, n)) for n in (nv, rows, nv))
    lower = np.nan_to_num(robot.limits.lower, neginf=-100.0)
    upper = np.nan_to_num(robot.limits.upper, posinf=100.0)
    fast = (np.full(nv, 1024.0), np.full(nv, 1048576.0), np.array([0.0078125]))
    every = (np.ones(rows), lower, upper, *fast)
    arrays = (q, *sizes, *(np.tile(a, (CHOICE, 1)) for a in every))
    sample = [np.float32(a).astype(float) for a in arrays]
    found, traced = np.empty((CHOICE, nv)), step.program()
    backends.compile(traced, "numpy")(sample, [found])
    best = np.argsort(np.abs(found).max(axis=1))[:STATES]
    return traced, tuple(a[best] for a in sample)


def _frame(options: Mapping[str, Any], name: str) -> str:
    if "frame" not in options:
        option = "tasks" if name == RATE else "targets"
        problem = f"{name} requires `frame` or `{option}`"
        raise InputError("E-EXPORT-013", problem, "pass the name of a frame", part="export")
    frame: str = options["frame"]
    return frame


def _summary(name: str) -> str:
    if name == RATE:
        return "Joint velocities for desired frame velocities, within limits (resolved rate)."
    function = function_of(name)
    owner = getattr(Robot, function, METHODS[function][0].algorithm)
    first = (inspect.getdoc(owner) or function).split("\n\n")[0].replace("\n", " ")
    return first if name == function else f"Derivatives with respect to each argument of: {first}"


def _notes(robot: Robot) -> tuple[str, ...]:
    """Return header comments that list all joint coordinates."""
    lines = ["Arrays must not overlap. Functions have no state and are thread-safe.", ""]
    for joint in robot.joints:
        q, v = robot.position_slice(joint), robot.velocity_slice(joint)
        kind = robot.joint(joint).kind
        lines.append(f"q[{_range(q)}], qd[{_range(v)}]: {joint}, {kind}")
    return tuple(lines)


def _range(part: slice) -> str:
    return str(part.start) if part.stop == part.start + 1 else f"{part.start} to {part.stop - 1}"


def _sample(robot: Robot, name: str, traced: Program) -> Sample:
    """Return random test states whose coordinates are exact in single precision."""
    rng = np.random.default_rng(0)
    known = spaces(function_of(name), max(len(traced.inputs), 1)).inputs
    arrays = []
    for variable in traced.inputs:
        if isinstance(known.get(variable.name), PositionSpace):
            values = np.round(robot.random(rng, size=STATES) * 1024.0) / 1024.0
        elif variable.name in (*known, "t") or variable.name.startswith("f_ext["):
            values = np.round(rng.normal(size=(STATES, variable.size)) * 1024.0) / 1024.0
        else:
            values = np.tile(robot.parameter(variable.name).ravel(), (STATES, 1))
        arrays.append(values.astype(np.float32).astype(float))
    return tuple(arrays)


def _write(folder: Path, files: Mapping[str, str], *, overwrite: bool) -> tuple[Path, ...]:
    """Write all files or, if an error occurs, none."""
    made = not folder.exists()
    paths = {folder / name: text for name, text in files.items()}
    try:
        folder.mkdir(exist_ok=True)
        store_all(paths, overwrite=overwrite)
        made = False
    except ExistingFileError as error:
        remedy = "choose another directory or prefix, or use overwrite=True"
        raise ExistingFileError("E-EXPORT-007", error.problem, remedy, file=error.file) from None
    except FileExistsError as error:
        problem = "the path is not a directory"
        raise NotAFolderError("E-EXPORT-008", problem, "pass a directory", file=folder) from error
    except OSError as error:
        why, remedy = error.strerror or said(error), "choose another path; nothing was written"
        if isinstance(error, FileError):
            why, remedy = error.problem, error.remedy
        raise FileError("E-EXPORT-009", why, remedy, file=folder) from error
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()
    return tuple(paths)
