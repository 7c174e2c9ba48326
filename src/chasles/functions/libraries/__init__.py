"""Arrays of other libraries: told by their type, and taken by a module that loads on use."""

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np

from chasles.backends import BACKENDS
from chasles.errors import ArgumentError, StateError
from chasles.expr import Variable


class Library(NamedTuple):
    """A library: its name, its package, its type of arrays, and whether it takes NumPy's too."""

    name: str
    package: str
    array: str
    takes_numpy: bool


LIBRARIES = (
    Library("PyTorch", "torch", "Tensor", False),
    Library("JAX", "jax", "Array", True),
    Library("CuPy", "cupy", "ndarray", False),
)
"""One row a library: `call(function, arguments, out, threads)` of the module here with the name of
its package takes its arrays and gives the same kind."""

_OURS = frozenset({np.ndarray, np.float64, np.float32, list, tuple, float, int})
_NUMPY = Library("NumPy", "numpy", "ndarray", True)
_TAKERS: dict[str, Callable[..., Any]] = {}
_TYPES: dict[type, Library] = {}
"""Types that are a library's type of arrays itself, for a short way."""
_KNOWN: dict[str, WeakSet[Any]] = {}


def library_of(argument: Any) -> Library | None:
    """The library that an array is of, or None for what NumPy takes; imports nothing."""
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
    """The one library that arrays are of, or None for NumPy; of several, an error names two."""
    found = [library_of(argument) for argument in arguments]
    chosen = next((row for row in found if row is not None), None)
    if chosen is None:
        return None
    first = found.index(chosen)
    for k, row in enumerate(found):
        if row is None and isinstance(arguments[k], np.ndarray) and not chosen.takes_numpy:
            row = _NUMPY
        if row is not None and row is not chosen:
            problem = (
                f"{variables[first].name} is of {chosen.name} and {variables[k].name} of {row.name}"
            )
            raise ArgumentError("E-CALL-039", problem, "give all arrays of one library", part=title)
    return chosen


def taker(function: Any, arguments: Sequence[Any], out: Any) -> Callable[..., Any] | None:
    """What calls a function with arrays of another library; None where its kernel takes them.

    Kernels take NumPy's arrays, those of the CUDA backend CuPy's. Arrays of several libraries are
    an error, which names two of them.
    """
    title = function.recipe.function
    chosen = common(title, function.interface.inputs, arguments)
    if chosen is None:
        return None
    for given in out if isinstance(out, tuple) else () if out is None else (out,):
        if library_of(given) is not chosen:
            problem = (
                f"out must be of {chosen.name}, as the other arrays are, not {type(given).__name__}"
            )
            raise ArgumentError("E-CALL-040", problem, part=title)
    if chosen.package == BACKENDS[function.recipe.backend].arrays:
        return None
    if chosen.package not in _TAKERS:
        _load(chosen.package)
    return _TAKERS[chosen.package]


def refuse(function: str, *arguments: Any) -> None:
    """Say so where a function is made of steps between which NumPy decides how to go on."""
    for argument in arguments:
        row = library_of(argument)
        if row is not None:
            problem = f"here it takes NumPy's arrays only, not those of {row.name}"
            remedy = "convert them, and know that no derivative goes through"
            raise ArgumentError("E-CALL-041", problem, remedy, part=function)


def module(package: str) -> Any:
    """What takes a library's arrays, loaded."""
    return importlib.import_module(f"chasles.functions.libraries.{package}")


def _load(package: str) -> None:
    _TAKERS[package] = module(package).call


def remember(function: Any) -> None:
    """Let graphs of other libraries, which hold text and numbers only, name a function."""
    _KNOWN.setdefault(function.key, WeakSet()).add(function)
    if "torch" in sys.modules and "torch" not in _TAKERS:
        _load("torch")  # its compiler follows a call, but no import


def recall(key: str) -> Any:
    """A function by its key."""
    for function in _KNOWN.get(key, ()):
        return function
    remedy = "keep what chasles.compile returned for as long as the graph is used"
    raise StateError("E-CALL-042", "a graph calls a function of a robot that is gone", remedy)
