"""The public functions beside the robot itself: load, compile, cost."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from chasles import formats
from chasles.compiled import Compiled, Wrench, checked_options, derivative_names, wrench_arguments
from chasles.cost import Cost, here, measured
from chasles.programs import Derivative, program
from chasles.robot import Robot


def load(
    path: str | os.PathLike[str],
    *,
    floating: bool = False,
    mimic: bool = True,
    snap: bool = True,
    strict: bool = False,
) -> Robot:
    """Read a robot from a file: .urdf, or .dat (the data file of Legnani et al. 1996, fig. 6).

    floating: put the root link on a free joint. mimic: followers move with their leader and have no
    coordinate of their own (False: every joint is independent, as in Pinocchio). snap: take angles
    printed as rounded multiples of a right angle as exact; `robot.notes` says where. strict: an
    invalid inertia is an error instead of a note.
    """
    return Robot(formats.read(path, snap=snap, floating=floating), mimic=mimic, strict=strict)


def compile(
    robot: Robot,
    function: str,
    *,
    backend: str = "llvm",
    method: str = "fastest",
    dissipation: bool = False,
    f_ext: Mapping[str, Wrench] | None = None,
    parameters: Sequence[str] = (),
    wrt: str | Sequence[str] | None = None,
    dtype: str = "float64",
    **options: Any,
) -> Compiled:
    """The callable behind a function of a robot: takes arrays in order, and `out=`.

    backend: "llvm" (machine code), "numpy" (vectorised Python) or "interpret" (slow: one operation
    at a time, the definition of correct). f_ext: the external wrenches it will take (their values
    are ignored), as extra arrays after the others, in alphabetical order of their frames.
    parameters: numbers of the robot that stay inputs, batched and differentiable, after all other
    arrays: "<link>.mass", "<link>.center", "<link>.inertia", "<joint>.placement", "gravity" (their
    shapes and values: `robot.parameter(name)`). wrt: compile the derivatives with respect to these
    arguments and parameters instead. dtype: "float64" (which turns to float32 where all arrays
    are) or "float32". options: those of the method of `Robot`, e.g. frame="hand".
    """
    keys, _ = wrench_arguments(robot.model, f_ext)
    derivative = None
    if wrt is not None:
        order = dict(checked_options(robot.model, function, options)).get("order", 1)
        names = derivative_names(function, wrt, parameters, order=order)
        derivative = Derivative("jacobian", names)
    return robot.function(
        function,
        backend=backend,
        method=method,
        dissipation=dissipation,
        wrenches=keys,
        derivative=derivative,
        parameters=parameters,
        dtype=dtype,
        **options,
    )


def cost(
    robot: Robot,
    function: str,
    *,
    method: str = "fastest",
    dissipation: bool = False,
    **options: Any,
) -> Cost:
    """How many operations a function takes for one state of this robot, after simplification.

    Also by statement of the algorithm (`.steps`), the longest path (`.depth`) and the largest
    number of values needed at one time (`.live`).
    """
    chosen = dict(checked_options(robot.model, function, options))
    traced = program(
        robot.model, function, method=method, dissipation=dissipation, where=here, **chosen
    )
    return measured(traced)
