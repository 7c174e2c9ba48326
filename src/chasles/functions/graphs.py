"""Capture functions in CUDA graphs, which launch all GPU kernels of the functions at once."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from chasles.backends.arrays import checked_count
from chasles.errors import ArgumentError, InputError
from chasles.functions.doors import module
from chasles.model.given import a_mapping, a_name
from chasles.names import one_of

LIBRARIES = ("cupy", "torch")
"""Import names of the array libraries that support CUDA graphs.

For each library, a module in `functions/libraries` defines the function `captured`.
"""


class Graph:
    """CUDA graph of captured functions; call this object to launch the graph.

    `inputs` contains the arrays that every launch reads, by name. To change the inputs, write to
    these arrays in place, or pass new values to `graph(...)`, which copies them. `outputs` is the
    array, or tuple of arrays, that every launch overwrites.
    """

    def __init__(
        self,
        inputs: Mapping[str, Any],
        outputs: Any,
        launch: Callable[[], object],
        copy: Callable[[Any, Any], object],
        memory: Any = None,
    ) -> None:
        self.inputs, self.outputs = dict(inputs), outputs
        self._memory = memory  # keeps the graph's memory allocated
        self._targets, self._launch, self._copy = tuple(inputs.values()), launch, copy

    def __call__(self, *arguments: Any) -> Any:
        """Launch the graph on the array library's current stream, and return the outputs.

        The outputs are valid once the work queued on the stream has finished. The optional
        `arguments` are values for all inputs, in order. The shapes of the values must broadcast to
        the input shapes.
        """
        if arguments:
            if len(arguments) != len(self._targets):
                names = ", ".join(self.inputs)
                count = len(arguments)
                problem = f"expected arrays for all inputs ({names}) or for none, but got {count}"
                raise ArgumentError("E-GPU-024", problem, part="graph")
            for target, argument in zip(self._targets, arguments, strict=True):
                self._copy(target, argument)
        self._launch()
        return self.outputs

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(a.shape)}" for name, a in self.inputs.items())
        return f"<Graph of {shapes}>"


def captured(
    function: Callable[..., Any],
    values: Mapping[str, np.ndarray],
    library: str,
    device: int | None,
) -> Graph:
    """Record the GPU operations of a function as a graph with the initial inputs `values`."""
    if a_name("`library`", library, "graph") not in LIBRARIES:
        remedy = one_of(library, LIBRARIES)
        raise InputError("E-GPU-025", f"unknown library {library!r}", remedy, part="graph")
    found: Graph = module(library).captured(function, values, device)
    return found


def shapes_of(
    function: Callable[..., Any],
    known: Mapping[str, tuple[int, ...]],
    given: Any,
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a function's arguments for a single state, by argument name.

    `known` contains default shapes. `given` contains shapes that replace or extend the defaults.
    """
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        problem = f"`function` must be a name or a Python function, not {function!r:.60}"
        raise ArgumentError("E-GPU-038", problem, part="graph") from None
    shapes = {**known, **a_mapping("`shapes`", given, "graph")}
    for name in names:
        if name not in shapes:
            shape = f"shapes={{{name!r}: (...)}}"
            remedy = f"rename the argument to one of {', '.join(known)}, or pass its shape: {shape}"
            problem = f"the shape of argument {name!r} is unknown"
            raise ArgumentError("E-GPU-027", problem, remedy, part="graph")
    return {name: _checked_shape(name, shapes[name]) for name in names}


def _checked_shape(name: str, shape: Any) -> tuple[int, ...]:
    """Return the shape of an argument as a tuple of integers, or raise an error."""
    if not isinstance(shape, tuple | list):
        problem = f"the shape of argument {name!r} must be a tuple of sizes, not {shape!r:.60}"
        raise ArgumentError("E-GPU-039", problem, part="graph")
    return tuple(checked_count(f"graph: shape of {name!r}", size, least=0) for size in shape)


def initial(name: str, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return an array of zeros for an argument, or raise an error if memory is insufficient."""
    try:
        return np.zeros(shape, dtype)
    except (MemoryError, ValueError):
        size = math.prod(shape) * np.dtype(dtype).itemsize
        problem = f"argument {name!r} needs {size / 1e9:.3g} GB, more than the available memory"
        remedy = "reduce `batch` or `shapes`"
        raise InputError("E-GPU-040", problem, remedy, part="graph") from None
