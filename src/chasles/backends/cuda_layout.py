"""Arrays as kernels on a GPU see them: where they start, and two strides."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, Protocol

from chasles.expr import Variable

Extent = tuple[tuple[int, ...], tuple[int, ...] | None]
"""An array's shape, and its strides in numbers, or None where it is C-contiguous."""

Look = tuple[int, Extent]
"""An array's address and extent."""

Steps = tuple[int, int]
"""How far apart the numbers of successive states are, and how far successive numbers of one."""


class Arrays(Protocol):
    """What a library's arrays of one type of numbers, on one device, can do.

    stream: where the library works now. look: how an array lies in memory. new: an array for a
    result of some shape for every state of a batch, in rows or if it likes in columns. rows: an
    array broadcast to a shape and copied into rows.
    """

    dtype: Any
    device: int
    stream: int

    def look(self, array: Any) -> Look: ...

    def new(self, batch: tuple[int, ...], shape: tuple[int, ...], *, rows: bool) -> Any: ...

    def rows(self, array: Any, shape: tuple[int, ...]) -> Any: ...


def steps(extent: Extent, batch: tuple[int, ...], variable: Variable) -> Steps | None:
    """How a kernel goes through an array as it is, or None where its strides do not allow that."""
    shape, strides = extent
    ahead = len(shape) - len(variable.shape)
    strides = strides or _contiguous(shape)
    repeated = [0] * (len(batch) - ahead)
    repeated += [0 if n == 1 else s for n, s in zip(shape, strides[:ahead], strict=False)]
    row, column = _stride(batch, repeated), _stride(variable.shape, strides[ahead:])
    return None if row is None or column is None else (row, column)


def is_distinct(found: Steps, size: int, count: int) -> bool:
    """Whether no two numbers of an array are one: it lies in rows or columns, gaps allowed."""
    row, column = found
    in_rows = (column == 1 or size <= 1) and (row >= size or count <= 1)
    in_columns = (row == 1 or count <= 1) and (column >= count or size <= 1)
    return in_rows or in_columns


def overlap(a: Look, b: Look, itemsize: int) -> bool:
    """Whether two arrays may have memory in common: what lies between their ends does."""
    (first, last), (start, end) = (_ends(look, itemsize) for look in (a, b))
    return first < end and start < last


def _stride(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """The one stride in which numbers of a shape follow each other in C order, if there is one."""
    left = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    for (_, outer), (n, inner) in itertools.pairwise(left):
        if outer != n * inner:
            return None
    return left[-1][1] if left else 1


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array in C order."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


def _ends(look: Look, itemsize: int) -> tuple[int, int]:
    """The addresses between which an array's numbers lie."""
    address, (shape, strides) = look
    if 0 in shape:
        return address, address
    reach = [(n - 1) * s for n, s in zip(shape, strides or _contiguous(shape), strict=True)]
    first = address + itemsize * sum(r for r in reach if r < 0)
    return first, address + itemsize * (1 + sum(r for r in reach if r > 0))
