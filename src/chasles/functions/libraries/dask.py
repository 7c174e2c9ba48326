"""Dask arrays: lazy, one call of the compiled function for each chunk of states.

A task holds the recipe of the function, not its code: each process compiles the function once, or
loads the code from its cache. Results are bitwise identical to one call with all states.
"""

from collections.abc import Sequence
from typing import Any

import cloudpickle
import dask.array as lazy
import numpy as np

from chasles.backends.arrays import check_shape
from chasles.errors import ArgumentError
from chasles.expr import Variable

_KNOWN: dict[str, "_Chunk"] = {}
"""Functions of this process, by key."""


def call(function: Any, arguments: Sequence[Any], out: Any, threads: int | None) -> Any:
    """Return lazy results; leading axes keep their chunks, the axes of a state are in one chunk."""
    title, inputs = function.recipe.function, function.interface.inputs
    if out is not None:
        problem = "out= cannot be combined with lazy arrays"
        raise ArgumentError("E-CALL-119", problem, "omit it", part=title)
    given = [a if isinstance(a, lazy.Array) else np.asarray(a) for a in arguments]
    for variable, array in zip(inputs, given, strict=True):
        check_shape(title, variable, array.shape)
    single = function.recipe.dtype == "float32" or all(a.dtype == np.float32 for a in given)
    outputs, dtype = function.interface.outputs, np.dtype("float32" if single else "float64")
    sizes: dict[str, int] = {}
    left = ",".join(_axes(f"i{k}", v, sizes) for k, v in enumerate(inputs))
    sizes.clear()
    right = ",".join(_axes(f"o{k}", v, sizes) for k, v in enumerate(outputs))
    found = lazy.apply_gufunc(
        _Chunk(function, threads or 1),
        f"{left}->{right}",
        *given,
        output_dtypes=[dtype] * len(outputs) if len(outputs) > 1 else dtype,
        output_sizes=sizes,
        allow_rechunk=True,
    )
    return tuple(found) if len(outputs) > 1 else found


def _axes(name: str, variable: Variable, sizes: dict[str, int]) -> str:
    """Return the axes of a variable in a signature, and add their sizes to `sizes`."""
    named = {f"{name}_{k}": size for k, size in enumerate(variable.shape)}
    sizes.update(named)
    return f"({','.join(named)})"


class _Chunk:
    """A compiled function of the arrays of one chunk."""

    def __init__(self, function: Any, threads: int) -> None:
        self.function, self.threads = function, threads
        self.key = f"{function.key} {threads}"
        self.recipe: bytes = cloudpickle.dumps((function, threads))

    def __call__(self, *arrays: np.ndarray) -> Any:
        return self.function(*arrays, threads=self.threads)

    def __dask_tokenize__(self) -> str:
        return self.key

    def __reduce__(self) -> tuple[Any, ...]:
        return _remembered, (self.key, self.recipe)


def _remembered(key: str, recipe: bytes) -> _Chunk:
    """Return this process's function for a key, made from its recipe on first use."""
    if key not in _KNOWN:
        _KNOWN[key] = _Chunk(*cloudpickle.loads(recipe))
    return _KNOWN[key]
