"""Capture functions in CUDA graphs, which launch all GPU kernels of the functions at once."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, InputError, MissingPackageError, said
from chasles.functions.doors import module
from chasles.names import one_of

LIBRARIES = {"cupy": "CuPy", "torch": "PyTorch"}
"""Array libraries that support CUDA graphs: import name and display name.

The module in `functions/libraries` for each library defines the function `captured`.
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
    if library not in LIBRARIES:
        remedy = one_of(library, LIBRARIES)
        raise InputError("E-GPU-025", f"unknown library {library!r}", remedy, part="graph")
    try:
        door = module(library)
    except ImportError as error:
        reason = said(error)
        problem = f"{LIBRARIES[library]} is required, but cannot be imported ({reason})"
        remedy = f"install {LIBRARIES[library]}"
        raise MissingPackageError("E-GPU-026", problem, remedy, part="graph") from None
    found: Graph = door.captured(function, values, device)
    return found


def shapes_of(
    function: Callable[..., Any],
    known: Mapping[str, tuple[int, ...]],
    given: Mapping[str, tuple[int, ...]],
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a function's arguments for a single state, by argument name.

    `known` contains default shapes. `given` contains shapes that replace or extend the defaults.
    """
    names = list(inspect.signature(function).parameters)
    shapes = {**known, **given}
    for name in names:
        if name not in shapes:
            shape = f"shapes={{{name!r}: (...)}}"
            remedy = f"rename the argument to one of {', '.join(known)}, or pass its shape: {shape}"
            problem = f"the shape of argument {name!r} is unknown"
            raise ArgumentError("E-GPU-027", problem, remedy, part="graph")
    return {name: tuple(shapes[name]) for name in names}
