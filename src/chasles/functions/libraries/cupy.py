"""CuPy's arrays: given to the CUDA backend, on CuPy's current stream."""

from collections.abc import Sequence
from typing import Any

import cupy

from chasles.errors import ArgumentError, InputError
from chasles.expr import Variable


def call(function: Any, arguments: Sequence[Any], out: Any, threads: int | None) -> Any:
    """A function of CuPy's arrays, all on one device: float32 if all are (numbers follow)."""
    title = function.recipe.function
    if threads is not None:
        raise ArgumentError("E-GPU-021", "threads= is for CPUs", "leave it out", part=title)
    given = [a for a in arguments if isinstance(a, cupy.ndarray)]
    single = all(a.dtype == cupy.float32 for a in given)
    kernel = (function.single if single else function).cuda.kernel
    if not all(isinstance(a, cupy.ndarray) and a.dtype == kernel.dtype for a in arguments):
        arguments = converted(title, function.interface.inputs, arguments, kernel.dtype)
    return kernel.call(title, arguments, out)


def converted(
    title: str, variables: Sequence[Variable], arguments: Sequence[Any], dtype: Any
) -> list[Any]:
    """All arguments as arrays of one type of numbers, on the device of those that are arrays."""
    given = {
        v.name: a for v, a in zip(variables, arguments, strict=True) if isinstance(a, cupy.ndarray)
    }
    for name, a in given.items():
        if a.dtype.kind not in "fiu" or a.dtype == cupy.float16:
            problem = f"{name} must be of float64 or float32, not of {a.dtype}"
            raise ArgumentError("E-GPU-022", problem, part=title)
    (first, device), *others = ((name, a.device) for name, a in given.items())
    for name, other in others:
        if other != device:
            problem = f"{first} is on {device} and {name} on {other}"
            raise InputError("E-GPU-023", problem, "bring them together", part=title)
    with device:
        return [cupy.asarray(a, dtype=dtype) for a in arguments]
