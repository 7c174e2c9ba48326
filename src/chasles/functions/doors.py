"""Check the arguments of robot functions, such as wrenches and time derivatives."""

import importlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from chasles import backends
from chasles.algorithms import FUNCTIONS, METHODS
from chasles.algorithms.spatial.kinematics import At, Axes
from chasles.backends.arrays import Load as Held
from chasles.backends.objects import places
from chasles.errors import ArgumentError, InputError, MissingPackageError, said
from chasles.expr import Variable
from chasles.functions.programs import check_axes, checked_order, checked_point, spaces
from chasles.functions.tracing import WrenchKey, rate_name
from chasles.model import Model
from chasles.model.given import a_name, some_names, some_numbers
from chasles.model.spaces import WrenchesSpace
from chasles.names import one_of, suggested


@dataclass(frozen=True, slots=True)
class Wrench:
    """External wrench on the robot at a frame: moment (N m) and force (N).

    `value` is an array (..., 6). `axes` is "world" or "frame": the axes in which the moment and the
    force are expressed. `at` is the reference point of the moment: "frame" for the frame origin,
    "world" for the world origin, or a point (x, y, z) in the frame.
    """

    value: Any
    axes: Axes = "world"
    at: At = "frame"

    def __post_init__(self) -> None:
        check_axes(self.axes)
        object.__setattr__(self, "at", checked_point(self.at))


def checked_time(t: Any) -> np.ndarray:
    """Return a time or several times (s) as an array, after checking that all are finite."""
    if type(t) is float and math.isfinite(t):
        return np.array(t)
    try:
        time = np.asarray(t, dtype=None if is_single(t) else float)
    except (TypeError, ValueError, OverflowError):
        problem = f"`t` must be a time in s or an array of times, not {t!r}"
        raise ArgumentError("E-CALL-021", problem, part="at_time") from None
    if not np.all(np.isfinite(time)):
        raise InputError("E-CALL-022", f"`t` must be finite, not {t!r}", part="at_time")
    return time


def order_of(function: str, rates: Sequence[Any]) -> int:
    """Return the number of time derivatives passed to a function. At least one is required."""
    if not rates:
        problem = f"{function} needs at least one time derivative after q: qd, qdd, ..."
        raise ArgumentError("E-CALL-023", problem)
    return len(rates)


def rates_by_name(function: str, rates: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the time derivatives passed by keyword, from lowest to highest order."""
    names = [rate_name(len(rates) + k) for k in range(1, len(named) + 1)]
    for name in named:
        if name not in names:
            remedy = f"pass the remaining time derivatives by keyword as {', '.join(names)}"
            problem = f"{function} does not accept the keyword argument {name!r}"
            raise ArgumentError("E-CALL-024", problem, remedy)
    return tuple(named[name] for name in names)


def order_option(function: str, arguments: Sequence[Any]) -> dict[str, int]:
    """Return {"order": number of time derivatives} if the function has this option, else {}."""
    if a_name("a function", function) not in FUNCTIONS or not spaces(function).any_order:
        return {}
    return {"order": order_of(function, arguments[1:])}


def derivative_names(
    function: str,
    wrt: str | Sequence[str] | None,
    parameters: Sequence[str] = (),
    *,
    order: int = 1,
    model: Model | None = None,
) -> tuple[str, ...]:
    """Check the argument names in `wrt`, and return them as a tuple.

    The function will be differentiated with respect to these arguments. `order` is the number of
    time derivatives of q. If `model` depends on time, `wrt` may include "t", which is not included
    by default.
    """
    if a_name("a function", function) not in METHODS:
        problem = f"unknown function {function!r}"
        raise InputError("E-CALL-031", problem, suggested(function, FUNCTIONS))
    sign = spaces(function)
    if sign.any_order:
        sign = spaces(function, checked_order(function, order))
    if len(sign.outputs) > 1:
        remedy = (
            "pass the name of a function with one result, such as mass_matrix or forward_dynamics"
        )
        problem = f"{function} has several results and cannot be differentiated"
        raise InputError("E-CALL-032", problem, remedy)
    known = [name for name, s in sign.inputs.items() if not isinstance(s, WrenchesSpace)]
    known += parameters
    names = list(known) if wrt is None else some_names("wrt", wrt, function)
    timed = model is not None and model.timed and function not in ("integrate", "difference")
    known += ["t"] if timed else []
    if not names:
        problem = f"`wrt` is empty; name at least one of {', '.join(known)}"
        raise InputError("E-CALL-033", problem, part=function)
    for name in names:
        if name not in known:
            problem = f"{function} has no argument {name!r}"
            raise InputError("E-CALL-034", problem, one_of(name, known))
    return tuple(dict.fromkeys(names))


class Load(NamedTuple):
    """External wrenches. Each has a key (frame, axes and reference point) and a value."""

    keys: tuple[WrenchKey, ...] = ()
    forces: Sequence[Any] = ()


def wrench_arguments(model: Model, f_ext: Mapping[str, Any] | None) -> Load:
    """Return the keys and values of external wrenches, sorted by frame name."""
    if f_ext is None:
        return Load()
    if not isinstance(f_ext, Mapping):
        problem = f"`f_ext` must be a mapping from frame names to wrenches, not {f_ext!r}"
        raise ArgumentError("E-CALL-038", problem)
    keys, values = [], []
    for name in sorted(f_ext, key=str):
        if name not in model.frames:
            model.frame(name)  # raises an error that suggests similar names
        given = f_ext[name]
        wrench = given if isinstance(given, Wrench) else Wrench(given)
        keys.append(WrenchKey(name, wrench.axes, wrench.at))
        values.append(wrench.value)
    return Load(tuple(keys), values)


@cache
def _fields() -> tuple[int, ...] | None:
    """Return the memory offsets of the fields of a `Wrench`, or None if unknown."""
    sample = Wrench([], "frame", (1.0, 2.0, 3.0))
    return places(sample, (sample.value, sample.axes, sample.at))


def loads_of(f_ext: Any, keys: Sequence[WrenchKey]) -> tuple[list[Held], list[int]] | None:
    """Describe the wrenches in `f_ext` for a fast entry (a C callable).

    Return a description of each wrench in `f_ext` and, for each key in `keys`, the index of the
    corresponding wrench in `f_ext`. Return None if a fast entry cannot read `f_ext`.
    """
    where, known = _fields(), {key.frame: key for key in keys}
    if type(f_ext) is not dict or where is None or f_ext.keys() != known.keys():
        return None
    held = []
    for name, given in f_ext.items():
        if type(name) is not str or (isinstance(given, Wrench) and type(given) is not Wrench):
            return None
        kind = Wrench if type(given) is Wrench else None
        held.append(Held(name, kind, where, known[name].axes, known[name].at))
    order = list(f_ext)
    return held, [order.index(key.frame) for key in keys]


def is_single(argument: Any) -> bool:
    return getattr(argument, "dtype", None) == np.float32


def check_robot(function: str, robot: Any) -> None:
    """Raise an error if `robot` is not a Robot."""
    if not isinstance(getattr(robot, "model", None), Model):
        problem = f"`robot` must be a Robot from chasles.load or chasles.robots, not {robot!r}"
        raise ArgumentError("E-CALL-055", problem, part=function)


def is_trajectory(given: Any) -> bool:
    """Return True if an object is a trajectory from `chasles.trajectory`."""
    return hasattr(given, "duration") and hasattr(given, "inside")


def numbers(what: str, value: Any, size: int) -> np.ndarray:
    """Return a float array with `size` entries along the last axis; float32 arrays stay float32."""
    array = some_numbers(what, value)
    if array.shape[-1:] != (size,):
        problem = f"{what} must have {size} entries along its last axis; its shape is {array.shape}"
        raise InputError("E-CALL-056", problem)
    return array


def leading_shape(function: str, **arrays: np.ndarray) -> tuple[int, ...]:
    """Return the broadcast shape of all axes except the last."""
    try:
        return np.broadcast_shapes(*(a.shape[:-1] for a in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {tuple(a.shape[:-1])}" for name, a in arrays.items())
        problem = f"leading shapes do not broadcast: {shapes}"
        raise InputError("E-CALL-057", problem, part=function) from None


def from_names(
    values: Mapping[str, Any], where: Callable[[str], slice], default: np.ndarray
) -> np.ndarray:
    """Return one array from a mapping of joint names to values. Other joints keep `default`."""
    parts = []
    for name, value in values.items():
        place, part = where(name), np.asarray(value)
        size = place.stop - place.start
        part = part[..., None] if size == 1 else part
        parts.append((place, numbers(f"joint {name!r}", part, size)))
    lead = np.broadcast_shapes(default.shape[:-1], *(part.shape[:-1] for _, part in parts))
    out = np.array(np.broadcast_to(default, (*lead, default.shape[-1])))
    for place, part in parts:
        out[..., place] = part
    return out


# Other array libraries ---------------------------------------------------------------------------


class Library(NamedTuple):
    """Array library; `takes_numpy` is True if the library also accepts NumPy arrays."""

    name: str
    package: str
    array: str
    takes_numpy: bool


LIBRARIES = (
    Library("PyTorch", "torch", "Tensor", False),
    Library("JAX", "jax", "Array", True),
    Library("CuPy", "cupy", "ndarray", False),
    Library("Dask", "dask.array", "Array", True),
    Library("Dask (data frames)", "dask.dataframe", "DataFrame", True),
)
"""Supported array libraries. For a package `a.b`, the module `libraries.a_b` defines
`call(function, arguments, out, threads)`, which accepts and returns arrays of that package.
"""

_OURS = frozenset({np.ndarray, np.float64, np.float32, list, tuple, float, int})
_NUMPY = Library("NumPy", "numpy", "ndarray", True)
_TYPES: dict[type, Library] = {}
"""Cache of the array library for each array type."""


def library_of(argument: Any) -> Library | None:
    """Return the library of an array without importing it, or None for NumPy arrays and lists."""
    if type(argument) in _OURS:
        return None
    if type(argument) in _TYPES:
        return _TYPES[type(argument)]
    for row in LIBRARIES:
        kind = getattr(sys.modules.get(row.package), row.array, None)
        if kind is type(argument):
            _TYPES[kind] = row
        if kind is not None and isinstance(argument, kind):
            return row
    return None


def common(title: str, variables: Sequence[Variable], arguments: Sequence[Any]) -> Library | None:
    """Return the library of all arrays, or None for NumPy; raise an error if libraries differ."""
    found = [library_of(argument) for argument in arguments]
    chosen = next((row for row in found if row is not None), None)
    if chosen is None:
        return None
    first = found.index(chosen)
    for k, row in enumerate(found):
        if row is None and isinstance(arguments[k], np.ndarray) and not chosen.takes_numpy:
            row = _NUMPY
        if row is not None and row is not chosen:
            one, other = variables[first].name, variables[k].name
            problem = f"{one} is a {chosen.name} array, but {other} is a {row.name} array"
            raise ArgumentError(
                "E-CALL-039", problem, "pass arrays from a single library", part=title
            )
    return chosen


def refuse(function: str, *arguments: Any) -> None:
    """Raise an error if an argument is an array of a library other than NumPy."""
    for argument in arguments:
        row = library_of(argument)
        if row is not None:
            problem = f"this function accepts only NumPy arrays, not {row.name} arrays"
            remedy = (
                "convert the arrays to NumPy (this function does not support automatic "
                "differentiation)"
            )
            raise ArgumentError("E-CALL-041", problem, remedy, part=function)


def module(package: str) -> Any:
    """Import and return the chasles module that supports the arrays of a package such as JAX."""
    try:
        return importlib.import_module(f"chasles.functions.libraries.{package.replace('.', '_')}")
    except ImportError as error:
        name = next((row.name for row in LIBRARIES if row.package == package), package)
        problem = f"{name} is required, but cannot be imported ({said(error)})"
        raise MissingPackageError("E-GPU-026", problem, f"install {name}") from None


_TAKERS: dict[str, Callable[..., Any]] = {}


def caller(package: str) -> Callable[..., Any]:
    """Return the function that calls compiled functions with arrays of a package such as JAX."""
    if package not in _TAKERS:
        _TAKERS[package] = module(package).call
    return _TAKERS[package]


def taker(function: Any, arguments: Sequence[Any], out: Any) -> Callable[..., Any] | None:
    """Return the function that passes arrays of a library, such as JAX, to a compiled function.

    Return None if the compiled function accepts the arrays directly: NumPy arrays or, with the CUDA
    backend, CuPy arrays. Raise an error if the arrays belong to several libraries.
    """
    title = function.recipe.function
    chosen = common(title, function.interface.inputs, arguments)
    if chosen is None:
        return None
    for given in out if isinstance(out, tuple) else () if out is None else (out,):
        if library_of(given) is not chosen:
            kind = type(given).__name__
            problem = f"`out` must be a {chosen.name} array like the other arguments, not {kind}"
            raise ArgumentError("E-CALL-040", problem, part=title)
    if chosen.package == backends.BACKENDS[function.recipe.backend].arrays:
        return None
    return caller(chosen.package)
