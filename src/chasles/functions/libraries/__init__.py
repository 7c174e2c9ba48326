"""Arrays of other libraries, each taken by the module with the name of its package."""

from collections.abc import Callable, Sequence
from typing import Any


def in_front(
    function: Any, arrays: Sequence[Any], places: Sequence[int | None], move: Callable[..., Any]
) -> list[Any]:
    """Arrays with a mapped axis, moved from its place (if any) before all other leading ones."""
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
