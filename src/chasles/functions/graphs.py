"""Functions captured in a CUDA graph: arrays keep their addresses, and each call is one launch."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, InputError, MissingPackageError, said
from chasles.functions.doors import module

LIBRARIES = {"cupy": "CuPy", "torch": "PyTorch"}
"""Libraries that support capture, by package; the module for each has a function `captured`."""


class Graph:
    """Functions captured on a GPU: `graph()` launches all of them at once.

    inputs: the arrays that every launch reads, by name; write to them in place, or call the graph
    with arrays, which are copied there. outputs: the array or tuple of arrays that every launch
    overwrites.
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
        self._memory = memory  # reserved for launches
        self._targets, self._launch, self._copy = tuple(inputs.values()), launch, copy

    def __call__(self, *arguments: Any) -> Any:
        """Launch the graph on the library's current stream, and return the outputs.

        The outputs are valid when the stream has finished. arguments: none, or values for all
        inputs in order, with shapes that broadcast to the inputs' shapes.
        """
        if arguments:
            if len(arguments) != len(self._targets):
                names = ", ".join(self.inputs)
                problem = f"it takes no arrays or all of {names}, but {len(arguments)} were given"
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
    """Capture a function with initial inputs, on the given device (default: the current one)."""
    if library not in LIBRARIES:
        remedy = f"use one of {', '.join(LIBRARIES)}"
        raise InputError("E-GPU-025", f"unknown library {library!r}", remedy, part="graph")
    try:
        door = module(library)
    except ImportError as error:
        problem = f"library={library!r} needs {LIBRARIES[library]} ({said(error)})"
        raise MissingPackageError("E-GPU-026", problem, "install it", part="graph") from None
    found: Graph = door.captured(function, values, device)
    return found


def shapes_of(
    function: Callable[..., Any],
    known: Mapping[str, tuple[int, ...]],
    given: Mapping[str, tuple[int, ...]],
) -> dict[str, tuple[int, ...]]:
    """Return the argument shapes of a function for one state, by argument name.

    known: default shapes by name. given: shapes that replace the defaults or add names.
    """
    names = list(inspect.signature(function).parameters)
    shapes = {**known, **given}
    for name in names:
        if name not in shapes:
            remedy = f"rename it to one of {', '.join(known)}, or pass shapes={{{name!r}: (...)}}"
            problem = f"the shape of argument {name!r} is unknown"
            raise ArgumentError("E-GPU-027", problem, remedy, part="graph")
    return {name: tuple(shapes[name]) for name in names}
