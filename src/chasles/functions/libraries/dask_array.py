"""Lazy evaluation of Dask arrays, with one call to the compiled function for each chunk of states.

Tasks contain the specification of the function instead of its code. Each process compiles the
function once, or loads the code from its cache. Results are bitwise identical to those of a
single call with all states.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import dask.array as lazy
import numpy as np

from chasles.backends.arrays import check_shape, checked_count
from chasles.errors import ArgumentError
from chasles.expr import Variable
from chasles.tasks import Portable


def call(function: Any, arguments: Sequence[Any], out: Any, threads: int | None) -> Any:
    """Return the lazy results (Dask arrays) of a function.

    Leading axes keep their chunks. The axes of a state are rechunked to one chunk each.
    """
    title, inputs = function.recipe.function, function.interface.inputs
    check_out(title, out)
    threads = 1 if threads is None else checked_count(f"{title}: threads", threads)
    given = [a if isinstance(a, lazy.Array) else np.asarray(a) for a in arguments]
    for variable, array in zip(inputs, given, strict=True):
        check_shape(title, variable, array.shape)
    outputs = function.interface.outputs
    dtype = result_type(function, [a.dtype for a in given])
    sizes: dict[str, int] = {}
    left = ",".join(_axes(f"i{k}", v, sizes) for k, v in enumerate(inputs))
    sizes.clear()
    right = ",".join(_axes(f"o{k}", v, sizes) for k, v in enumerate(outputs))
    found = lazy.apply_gufunc(
        Portable(partial(function, threads=threads), f"{function.key} {threads}"),
        f"{left}->{right}",
        *given,
        output_dtypes=[dtype] * len(outputs) if len(outputs) > 1 else dtype,
        output_sizes=sizes,
        allow_rechunk=True,
    )
    return tuple(found) if len(outputs) > 1 else found


def check_out(title: str, out: Any) -> None:
    """Raise an error for `out=`, because lazy results have no memory to write to."""
    if out is not None:
        problem = "out= cannot be combined with lazy arrays"
        raise ArgumentError("E-CALL-119", problem, "do not pass `out`", part=title)


def result_type(function: Any, types: Sequence[Any]) -> np.dtype:
    """Return the dtype of the results for the dtypes of the arguments."""
    single = function.recipe.dtype == "float32" or all(t == np.float32 for t in types)
    return np.dtype("float32" if single else "float64")


def _axes(name: str, variable: Variable, sizes: dict[str, int]) -> str:
    """Return a variable's part of a gufunc signature, such as (q_0), and extend `sizes`."""
    named = {f"{name}_{k}": size for k, size in enumerate(variable.shape)}
    sizes.update(named)
    return f"({','.join(named)})"
