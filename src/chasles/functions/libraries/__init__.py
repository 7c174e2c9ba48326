"""Array libraries other than NumPy; each module is named after the package that it supports."""

from collections.abc import Callable, Sequence
from typing import Any

from chasles.backends.arrays import COMPILING
from chasles.backends.cuda.resident import Library, resident
from chasles.errors import ArgumentError


def in_front(
    function: Any, arrays: Sequence[Any], places: Sequence[int | None], move: Callable[..., Any]
) -> list[Any]:
    """Move the axis mapped by vmap to the front of each array that has such an axis."""
    sizes = [len(v.shape) for v in function.interface.inputs]
    ranks = [
        a.ndim - size - (place is not None)
        for a, size, place in zip(arrays, sizes, places, strict=True)
    ]
    moved = []
    for a, place, rank in zip(arrays, places, ranks, strict=True):
        if place is not None:
            a = move(a, place, 0)
            a = a.reshape(a.shape[0], *[1] * (max(ranks) - rank), *a.shape[1:])
        moved.append(a)
    return moved


def refuse_threads(title: str, threads: Any) -> None:
    """Raise an error if a number of threads was given for arrays on a GPU."""
    if threads is not None:
        problem = "`threads` applies only to the CPU"
        raise ArgumentError("E-GPU-021", problem, "omit `threads`", part=title)


def learn(
    function: Any, library: Library, kernel: Any, device: int, count: int, *, rows: bool
) -> None:
    """Prepare fast calls that take a library's GPU arrays, for batches of about `count` states.

    `rows` is True if the arrays are row-major, with one state per row.
    """
    known, bits = function.residents, 8 * kernel.dtype.itemsize
    with COMPILING:
        if library.name not in known:
            known[library.name] = resident(function.interface, library, function.call)
        found = known[library.name]
        if found is not None and found.lacks(bits, device, count, rows=rows):
            plan = kernel.plan(device, count, rows=rows)
            if plan is not None:
                found.add(plan)
                function.quick.update(dict.fromkeys(library.types, found.call))
