"""Compile robot functions and count their operations: compile, cost."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

from chasles import backends
from chasles.algorithms import that_runs
from chasles.errors import InputError
from chasles.functions.compiled import Compiled
from chasles.functions.cost import Cost, Rules, measured, recorder
from chasles.functions.devices import Automatic
from chasles.functions.doors import (
    Wrench,
    check_robot,
    derivative_names,
    wrench_arguments,
)
from chasles.functions.programs import Derivative, checked_options, program
from chasles.functions.tiers import Tiered
from chasles.names import one_of
from chasles.robot import Robot


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
    """Compile a robot function and return a callable.

    Parameters
    ----------
    robot : Robot
        The robot.
    function : str
        Name of a `Robot` method, for example "inverse_dynamics".
    device : {"cpu", "cuda", "auto"}, optional
        "cuda" accepts arrays in GPU memory (docs/gpu.md). "auto" accepts arrays in host memory,
        measures the time on both devices, including copies, and runs each batch on the faster
        device. The methods `choice(count)` and `report()` of the result show the choice.
    backend : str, optional
        For the CPU: "llvm" (machine code, default), "llvm-quick" (compiles faster, runs slower),
        "numpy" (vectorized Python) or "interpret" (one operation at a time, the reference). For a
        GPU: "cuda".
    method : str, optional
        Algorithm, as for the argument `method` of the `Robot` method.
    dissipation : bool, optional
        Include joint damping and friction.
    f_ext : mapping from str to Wrench or array_like, optional
        External wrenches. The compiled function takes them as extra arrays, in alphabetical order
        of the frame names. Only the names are used here, not the values.
    parameters : sequence of str, optional
        Model parameters to keep as inputs after all other arrays: "<link>.mass", "<link>.center",
        "<link>.inertia", "<joint>.placement" or "gravity". These inputs can be batched and
        differentiated. `robot.parameter(name)` returns the current value.
    wrt : str or sequence of str, optional
        Compile the derivatives with respect to these arguments and parameters, instead of the
        function.
    dtype : {"float64", "float32"}, optional
        Precision. With "float64", a call with only float32 arrays is computed in float32.
    tier : {"best", "quick"}, optional
        "best" waits until the fastest code is compiled. "quick", for large robots, starts with code
        that compiles faster and switches to the best code when it is ready (`.tier`, `.wait()`).
    **options
        Options for the `Robot` method, for example frame="tool".

    Returns
    -------
    callable
        Function that takes the arrays as positional arguments, and optional result arrays as the
        keyword `out`. The function can be pickled.

    Raises
    ------
    ArgumentError
        If `robot` is not a Robot, if `f_ext` is not a mapping, if an option is unknown, or if a
        required option is missing.
    InputError
        If `function`, `device`, `backend`, `method`, `dtype`, the value of an option or an argument
        in `wrt` is unknown, or if the function has no derivatives.
    ModelError
        If the function does not keep loops closed and the robot has loops, if the method does not
        support the robot, or if a frame or parameter does not exist.

    Notes
    -----
    For a time-dependent robot, the time t, of shape (...), is an additional array before the
    parameters.

    Examples
    --------
    >>> import chasles
    >>> mass = chasles.compile(chasles.robots.planar(2), "mass_matrix")
    >>> mass([0.0, 0.5]).shape
    (2, 2)
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
    compiled = robot.function(
        function,
        backend=chosen,
        method=method,
        dissipation=dissipation,
        wrenches=keys,
        derivative=derivative,
        parameters=parameters,
        dtype=dtype,
        tier="best" if tier == "quick" and device == "auto" else tier,
        **options,
    )
    return Automatic(compiled) if device == "auto" else compiled


def _backend(device: str | None, backend: str | None) -> str:
    """Return `backend` if the device supports it, or the device's default backend."""
    if device is None:
        return backend or backends.USUAL
    devices = backends.devices()
    if device not in devices:
        problem = f"unknown device {device!r}"
        raise InputError("E-ROBOT-003", problem, one_of(device, devices))
    known = devices[device]
    if backend is not None and backend not in known:
        problem = f"device={device!r} requires the backend {' or '.join(known)}, not {backend!r}"
        raise InputError("E-ROBOT-004", problem, "omit `device` or `backend`")
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
    """Count the operations that a robot function needs for one state.

    Parameters
    ----------
    robot : Robot
        The robot.
    function : str
        Name of a `Robot` method.
    method : str, optional
        Algorithm, as for the argument `method` of the `Robot` method.
    dissipation : bool, optional
        Include joint damping and friction.
    f_ext : mapping from str to Wrench or array_like, optional
        External wrenches that the function takes as extra arguments. The values are ignored.
    rules : {"simplified", "book"}, optional
        Count the operations of the simplified program that runs (default), or count by the rules of
        Balafoutis and Patel; see Notes.
    **options
        Options for the `Robot` method, for example frame="tool".

    Returns
    -------
    Cost
        Number of operations by kind and by statement of the algorithm (`.steps`), length of the
        longest dependency chain (`.depth`), and maximum number of live values (`.live`).

    Raises
    ------
    ArgumentError
        If `robot` is not a Robot, if `f_ext` is not a mapping, if an option is unknown, or if a
        required option is missing.
    InputError
        If `function`, `method`, `rules` or the value of an option is unknown, or if the method does
        not support `f_ext` or `dissipation`.
    ModelError
        If the method does not support the robot, or if a frame does not exist.

    Notes
    -----
    rules="book" counts operations as Balafoutis and Patel do (1991, sections 5.3 and 6.3).
    Structural zeros and ones, signs and trigonometric functions are not counted. A doubling counts
    as an addition, and a division as a multiplication. An expression that occurs in two equations
    counts twice unless it is a named variable. For a robot with loops, "forward_dynamics" counts
    the operations of "constrained_dynamics".

    Examples
    --------
    >>> import chasles
    >>> chasles.cost(chasles.robots.planar(2), "mass_matrix").additions
    2
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
