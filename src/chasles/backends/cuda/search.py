"""Searches on a GPU: in float32 until each problem is nearly solved, then in float64.

The searches are those of `llvm.search`, on CuPy's arrays. Most problems need two or three steps of
float64. Those that float32 did not solve are tried again from all starts. Nothing is synchronised.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda.driver import Function, architecture
from chasles.backends.cuda.kernel import Kernel
from chasles.backends.cuda.searching import BLOCK, GROUPS, ranking
from chasles.backends.cuda.tiles import WARP

BLOCKS = 16
"""Blocks for each multiprocessor, at most: each thread takes problems until none is left."""

NUMBERS = 256
"""Starts that a byte can number."""


Stage = tuple[Sequence[np.ndarray], np.ndarray]
"""What searches of one kind of number are given, beside goals: the kernel's other inputs (1, size),
and memories, one for each try, and one for the last, from the best point."""


class Search:
    """Searches with kernels from (point, memory, goals ...) to (point, memory)."""

    def __init__(self, single: Kernel, double: Kernel) -> None:
        self.single, self.double = single, double

    def __call__(
        self,
        goals: Any,
        guess: Any,
        stages: tuple[Stage, Stage],
        starts: np.ndarray,
        others: int,
        table: np.ndarray,
        limits: tuple[np.ndarray, np.ndarray],
        rotations: tuple[int, ...] = (),
    ) -> tuple[Any, Any, Any]:
        """Points (count, n), memories, and steps of each problem: CuPy's arrays.

        goals (count, size) of float64, in rows, are overwritten; those that are not finite, or not
        rotations where `rotations` says so, become NaN, and so do their points. guess (count or 1,
        n) of float64: where the first try begins; without it, at the nearest start. starts, others,
        table: as in `llvm.search`. limits: of a point. stages: of float32 and of float64.
        """
        import cupy

        count, n = len(goals), starts.shape[1]
        points = cupy.full((count, n), cupy.nan)
        ends = cupy.full((count, stages[1][1].shape[1]), cupy.inf)
        total = cupy.zeros(count, cupy.int64)
        if not count:
            return points, ends, total
        single, ranks = _ranked(cupy, goals, table, rotations)
        begins, ahead = guess, 0
        if guess is None:
            begins, ahead = cupy.asarray(starts, cupy.float32)[ranks[:, 0]], 1
        near = cupy.zeros((count, n), cupy.float32)
        rough = cupy.empty((count, ends.shape[1]), cupy.float32)
        run = functools.partial(_searched, cupy, starts, others)
        steps = run(self.single, stages[0], single, begins, ranks, ahead, (near, rough))
        total += steps[:, 0]
        lower, upper = (cupy.asarray(a) for a in limits)
        begins = cupy.clip(near.astype(cupy.float64), lower, upper)
        steps = run(self.double, stages[1], goals, begins, ranks, 0, (points, ends))
        total += steps[:, 0]
        return points, ends, total


def _ranked(cupy: Any, goals: Any, table: np.ndarray, rotations: tuple[int, ...]) -> Any:
    """Goals in float32, and numbers of starts (count, GROUPS) in the order of their tries."""
    count, size = goals.shape
    tiles, columns, lanes = table.shape
    assert columns == size + 1
    assert lanes == GROUPS
    assert tiles * lanes <= NUMBERS
    device = goals.data.device_id
    single, ranks = cupy.empty(goals.shape, cupy.float32), cupy.zeros((count, GROUPS), cupy.uint8)
    rows = cupy.asarray(table, cupy.float32)
    pointers = goals.data.ptr, rows.data.ptr, tiles, single.data.ptr, ranks.data.ptr
    function = _ranking(architecture(device), size, rotations)
    where = cupy.cuda.get_current_stream().ptr, device
    function.launch((-(-count // BLOCK), 1), (BLOCK, 1), 0, [count, *pointers], *where)
    return single, ranks


@functools.cache
def _ranking(target: str, size: int, rotations: tuple[int, ...]) -> Function:
    code = cuda_driver.compile(ranking(size, rotations), target).code
    return Function(code, "rank", target)


def _searched(
    cupy: Any,
    starts: np.ndarray,
    others: int,
    kernel: Kernel,
    stage: Stage,
    goals: Any,
    begins: Any,
    ranks: Any,
    ahead: int,
    results: tuple[Any, Any],
) -> Any:
    """Search with one kernel: steps and tries (count, 2). ahead: ranked starts that were taken."""
    count, device = len(goals), goals.data.device_id
    made = [cupy.asarray(a, kernel.dtype) for a in (starts, stage[1], *stage[0])]
    points, memories, *constants = made
    begins = cupy.ascontiguousarray(begins, kernel.dtype)
    steps, taken = cupy.zeros((count, 2), cupy.int32), cupy.zeros(1, cupy.uint64)
    parameters = [count, -1, len(memories) - 1, GROUPS - ahead, GROUPS, others]
    parameters += [ranks.data.ptr + ahead, *(a.data.ptr for a in (points, steps, taken))]
    arrays = (begins, memories, goals, *constants, *results)
    for k, a in enumerate(arrays):
        shared = len(a) == 1 and k != 1
        parameters += [a.data.ptr, 0 if shared else a.shape[1]]
    built, function = kernel.loaded(architecture(device), "search")
    most = BLOCKS * cupy.cuda.Device(device).attributes["MultiProcessorCount"]
    grid, shared_bytes = min(-(-count // built.block), most), built.shared * built.block // WARP
    where = cupy.cuda.get_current_stream().ptr, device
    function.launch((grid, 1), (built.block, 1), shared_bytes, parameters, *where)
    return steps
