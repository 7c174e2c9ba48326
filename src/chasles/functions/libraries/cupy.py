"""Support for CuPy arrays, which the CUDA backend processes on CuPy's current stream."""

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cupy
import numpy as np

from chasles import backends
from chasles.backends.cuda.resident import Library
from chasles.errors import ArgumentError, InputError
from chasles.expr import Variable
from chasles.functions.graphs import Graph
from chasles.functions.libraries import learn, refuse_threads


def call(function: Any, arguments: Sequence[Any], out: Any, threads: int | None) -> Any:
    """Call a function with CuPy arrays on one device, in float32 if all arrays are float32."""
    title = function.recipe.function
    kernel = (function.single if single(arguments) else function).cuda.kernel
    if not all(isinstance(a, cupy.ndarray) and a.dtype == kernel.dtype for a in arguments):
        arguments = converted(title, function.interface.inputs, arguments, kernel.dtype)
    return run(function, kernel, arguments, out, threads)


def single(arguments: Sequence[Any]) -> bool:
    """Return True if all CuPy arrays among the arguments are float32."""
    return all(a.dtype == cupy.float32 for a in arguments if isinstance(a, cupy.ndarray))


def run(function: Any, kernel: Any, arguments: Sequence[Any], out: Any, threads: int | None) -> Any:
    """Run the kernel of a function, and prepare faster calls for similar arrays on this GPU."""
    refuse_threads(function.recipe.function, threads)
    found = kernel.call(function.recipe.function, arguments, out)
    result, variable = found[0] if isinstance(found, tuple) else found, kernel.interface.outputs[0]
    count = math.prod(result.shape[: result.ndim - len(variable.shape)])
    rows = all(a.flags.c_contiguous for a in arguments)
    learn(function, _LIBRARY, kernel, result.data.device_id, count, rows=rows)
    return found


def _new(like: Any, *shape: int) -> Any:
    return cupy.ndarray(shape, like.dtype)


def _turned(like: Any, *shape: int) -> Any:
    """Return a new column-major array, in which each entry is contiguous over the states."""
    ahead = cupy.ndarray((*shape[1:], shape[0]), like.dtype)
    return ahead.transpose(ahead.ndim - 1, *range(ahead.ndim - 1))


_LIBRARY = Library("cupy", (cupy.ndarray,), _new, _turned, cupy.cuda.get_current_stream)
"""Types and functions that compiled code uses to read and create CuPy arrays."""

namespace = cupy
"""The library's array functions, named as in NumPy."""


def like(array: Any, given: np.ndarray) -> Any:
    """Return a NumPy array as a CuPy array with the dtype and device of a given array."""
    with array.device:
        return cupy.asarray(given, dtype=array.dtype)


def captured(
    function: Callable[..., Any], values: Mapping[str, np.ndarray], device: int | None
) -> Graph:
    """Capture a function in a CUDA graph, which owns the memory allocated during capture."""
    backends.described("cuda")  # raises an error if there is no GPU
    pool, place = cupy.cuda.MemoryPool(), cupy.cuda.Device(device)
    with place, cupy.cuda.using_allocator(pool.malloc):
        inputs = {name: cupy.asarray(a) for name, a in values.items()}
        place.synchronize()
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            for _ in range(2):  # compile and allocate memory
                function(*inputs.values())
            stream.synchronize()
            stream.begin_capture()
            try:
                outputs = function(*inputs.values())
            except BaseException:
                with contextlib.suppress(RuntimeError):
                    stream.end_capture()
                raise
            graph = stream.end_capture()

    def launch() -> None:
        graph.launch(cupy.cuda.get_current_stream())

    def copy(target: Any, given: Any) -> None:
        target[...] = cupy.asarray(given)

    return Graph(inputs, outputs, launch, copy, pool)


def converted(
    title: str, variables: Sequence[Variable], arguments: Sequence[Any], dtype: Any
) -> list[Any]:
    """Return all arguments as CuPy arrays with one dtype on one device."""
    given = {
        v.name: a for v, a in zip(variables, arguments, strict=True) if isinstance(a, cupy.ndarray)
    }
    for name, a in given.items():
        if a.dtype.kind not in "fiu" or a.dtype == cupy.float16:
            problem = f"{name} must have dtype float64 or float32, not {a.dtype}"
            raise ArgumentError("E-GPU-022", problem, part=title)
    (first, device), *others = ((name, a.device) for name, a in given.items())
    for name, other in others:
        if other != device:
            problem = f"{first} is on {device}, but {name} is on {other}"
            raise InputError("E-GPU-023", problem, "move the arrays to one device", part=title)
    with device:
        return [cupy.asarray(a, dtype=dtype) for a in arguments]
