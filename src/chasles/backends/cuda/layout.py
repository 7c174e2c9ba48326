"""Memory layout of arrays in GPU kernels: an address, and strides between states and entries."""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from chasles.backends.arrays import batch_shape, check_shape
from chasles.expr import Interface, Variable

Extent = tuple[tuple[int, ...], tuple[int, ...] | None]
"""Shape and strides of an array. The strides, in elements, are None for a C-contiguous array."""

Look = tuple[int, Extent]
"""An array's address, shape and strides."""

Steps = tuple[int, int]
"""Two strides (elements): between successive states, and between entries of one state."""


class Arrays(Protocol):
    """Operations on an array library's arrays, for one dtype and one device.

    - stream: current stream of the library.
    - look: return the address and memory layout of an array.
    - new: allocate a result array. If `rows` is True, the entries of each state are contiguous;
      otherwise, the library chooses the layout.
    - rows: broadcast an array to a shape and copy it into rows.
    """

    dtype: Any
    device: int
    stream: int

    def look(self, array: Any) -> Look: ...

    def new(self, batch: tuple[int, ...], shape: tuple[int, ...], *, rows: bool) -> Any: ...

    def rows(self, array: Any, shape: tuple[int, ...]) -> Any: ...


class Walk(NamedTuple):
    """Strides of a kernel's input or output arrays, which share a leading shape.

    - batch: the leading shape.
    - steps: strides of each array.
    - strange: indices of arrays with a layout that kernels do not support. An input is copied to
      rows first, and an output is copied from rows afterwards. `steps` holds the strides of these
      rows.
    - rows: True if the entries of each state are contiguous in all arrays.
    """

    batch: tuple[int, ...]
    steps: tuple[Steps, ...]
    strange: tuple[int, ...]
    rows: bool

    @staticmethod
    def of(
        batch: tuple[int, ...], variables: Sequence[Variable], found: Sequence[Steps | None]
    ) -> "Walk":
        steps = tuple(f or (v.size, 1) for f, v in zip(found, variables, strict=True))
        strange = tuple(k for k, f in enumerate(found) if f is None)
        pairs = zip(steps, variables, strict=True)
        return Walk(batch, steps, strange, all(c == 1 or v.size <= 1 for (_, c), v in pairs))


def walk_in(interface: Interface, name: str, extents: tuple[Extent, ...]) -> Walk:
    """Return the strides for reading a kernel's inputs (0 along broadcast axes)."""
    leads = []
    for variable, (shape, _) in zip(interface.inputs, extents, strict=True):
        check_shape(name, variable, shape)
        leads.append(shape[: len(shape) - len(variable.shape)])
    batch = batch_shape(name, interface, leads)
    found = [_steps(e, batch, v) for e, v in zip(extents, interface.inputs, strict=True)]
    return Walk.of(batch, interface.inputs, found)


def walk_out(interface: Interface, batch: tuple[int, ...], extents: tuple[Extent, ...]) -> Walk:
    """Return the strides for writing a kernel's outputs.

    The layout of an output is not supported if it consists of neither rows nor columns, or if its
    entries overlap.
    """
    count, found = math.prod(batch), []
    for extent, variable in zip(extents, interface.outputs, strict=True):
        steps = _steps(extent, batch, variable)
        distinct = steps is not None and _are_distinct(steps, variable.size, count)
        found.append(steps if distinct else None)
    return Walk.of(batch, interface.outputs, found)


def strides(extent: Extent) -> tuple[int, ...]:
    """Return the stride along each axis, 0 along broadcast axes."""
    shape, found = extent
    steps = found or _contiguous(shape)
    return tuple(0 if n == 1 else s for n, s in zip(shape, steps, strict=True))


def overlap(a: Look, b: Look, itemsize: int) -> bool:
    """Return True if the memory ranges of two arrays overlap."""
    (first, last), (start, end) = _reach(a[1]), _reach(b[1])
    apart = b[0] - a[0]
    return first * itemsize < apart + end * itemsize and apart + start * itemsize < last * itemsize


def _steps(extent: Extent, batch: tuple[int, ...], variable: Variable) -> Steps | None:
    """Return the row and column strides of an array, or None if either stride is not constant."""
    shape, strides = extent
    ahead = len(shape) - len(variable.shape)
    strides = strides or _contiguous(shape)
    repeated = [0] * (len(batch) - ahead)
    repeated += [0 if n == 1 else s for n, s in zip(shape, strides[:ahead], strict=False)]
    row, column = _stride(batch, repeated), _stride(variable.shape, strides[ahead:])
    return None if row is None or column is None else (row, column)


def _are_distinct(steps: Steps, size: int, count: int) -> bool:
    """Return True if an array has contiguous rows or contiguous columns that do not overlap."""
    row, column = steps
    in_rows = (column == 1 or size <= 1) and (row >= size or count <= 1)
    in_columns = (row == 1 or count <= 1) and (column >= count or size <= 1)
    return in_rows or in_columns


def _stride(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """Return the constant stride between successive entries in C order, or None if it varies."""
    left = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    for (_, outer), (n, inner) in itertools.pairwise(left):
        if outer != n * inner:
            return None
    return left[-1][1] if left else 1


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of an array in C order."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


@functools.lru_cache(256)
def _reach(extent: Extent) -> tuple[int, int]:
    """Return the range of offsets that an array covers, relative to its first element."""
    shape, strides = extent
    if 0 in shape:
        return 0, 0
    reach = [(n - 1) * s for n, s in zip(shape, strides or _contiguous(shape), strict=True)]
    return sum(r for r in reach if r < 0), 1 + sum(r for r in reach if r > 0)
