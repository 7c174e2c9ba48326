"""Searches on a GPU: in float32 until each problem is nearly solved, then in float64.

The searches are those of `llvm.search`, on CuPy's arrays. Most problems need two or three steps of
float64. The others are tried again from all starts, by a warp each. Nothing is synchronised.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda.build import Layout
from chasles.backends.cuda.driver import Function, architecture
from chasles.backends.cuda.kernel import Kernel
from chasles.backends.cuda.searching import BLOCK, GROUPS, ranking
from chasles.backends.cuda.tiles import WARP

BLOCKS = 16
"""Blocks for each multiprocessor, at most: each thread takes problems until none is left."""

NUMBERS = 256
"""Starts that a byte can number."""

KEPT = 64
"""Small arrays that are kept on the GPU."""


Stage = tuple[Sequence[np.ndarray], int]
"""Inputs of searches of one dtype: the kernel's inputs after the goals (1, size), and the number of
tries.
"""


class Search:
    """Searches with kernels from (point, memory, goals ...) to (point, memory)."""

    def __init__(self, single: Kernel, double: Kernel) -> None:
        self.single, self.double = single, double
        self._kept: dict[tuple[int, str, int], tuple[np.ndarray, Any]] = {}

    def __call__(
        self,
        goals: Any,
        guess: Any,
        stages: tuple[Stage, Stage],
        starts: np.ndarray,
        others: int,
        table: np.ndarray,
        memories: np.ndarray,
        limits: tuple[np.ndarray, np.ndarray],
        rotations: tuple[int, ...] = (),
    ) -> tuple[Any, Any, Any]:
        """Points (count, n), memories, and steps of each problem: CuPy's arrays.

        goals (count, size) of float64, in rows, are overwritten; those that are not finite, or not
        rotations where `rotations` says so, become NaN, and so do their points. guess (count or 1,
        n) of float64: where the first try begins; without it, at the nearest start. starts, others,
        table, memories: as in `llvm.search`. limits: of a point. stages: of float32 and float64.
        """
        import cupy

        count, n = len(goals), starts.shape[1]
        points = cupy.full((count, n), cupy.nan)
        ends = cupy.full((count, memories.shape[1]), cupy.inf)
        steps = cupy.zeros(count, cupy.int32)
        if not count:
            return points, ends, steps
        single, ranks = self._ranked(goals, table, rotations)
        begins, ahead = guess, 0
        if guess is None:
            begins, ahead = self._sent(starts, "float32")[ranks[:, 0]], 1
        near = cupy.zeros((count, n), cupy.float32)
        rough = cupy.empty((count, ends.shape[1]), cupy.float32)
        left = cupy.empty(count + 1, cupy.uint64)
        constants, tries = stages[0]
        run = functools.partial(self._run, (starts, memories), others, ranks, steps, left)
        run("search", self.single, tries, constants, ahead, begins, single, (near, rough))
        begins = cupy.clip(near.astype(cupy.float64), *map(cupy.asarray, limits))
        constants, tries = stages[1]
        given = [cupy.asarray(a, cupy.float64) for a in constants], 0, begins, goals, (points, ends)
        run("search", self.double, 0, *given)
        run("tries", self.double, tries, *given)
        return points, ends, steps

    def _sent(self, array: np.ndarray, dtype: str) -> Any:
        """An array on the current device; those that come again are kept there."""
        import cupy

        key = id(array), dtype, cupy.cuda.Device().id
        if key not in self._kept:
            while len(self._kept) >= KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = array, cupy.asarray(array, dtype)  # the array keeps its number
        return self._kept[key][1]

    def _ranked(self, goals: Any, table: np.ndarray, rotations: tuple[int, ...]) -> tuple[Any, Any]:
        """Goals in float32, and numbers of starts (count, GROUPS) in the order of their tries."""
        import cupy

        count, size = goals.shape
        tiles, columns, lanes = table.shape
        assert columns == size + 1
        assert lanes == GROUPS
        assert tiles * lanes <= NUMBERS
        device, rows = goals.data.device_id, self._sent(table, "float32")
        single, ranks = cupy.empty((count, size), cupy.float32), cupy.zeros((count, 8), cupy.uint8)
        pointers = goals.data.ptr, rows.data.ptr, tiles, single.data.ptr, ranks.data.ptr
        function = _ranking(architecture(device), size, rotations)
        where = cupy.cuda.get_current_stream().ptr, device
        function.launch((-(-count // BLOCK), 1), (BLOCK, 1), 0, [count, *pointers], *where)
        return single, ranks

    def _run(
        self,
        kept: tuple[np.ndarray, np.ndarray],
        others: int,
        ranks: Any,
        steps: Any,
        left: Any,
        form: Layout,
        kernel: Kernel,
        tries: int,
        constants: Sequence[Any],
        ahead: int,
        begins: Any,
        goals: Any,
        results: tuple[Any, Any],
    ) -> None:
        """Search with one kernel. ahead: ranked starts that were taken before."""
        import cupy

        count, device, dtype = len(goals), goals.data.device_id, kernel.dtype.name
        starts, memories = (self._sent(a, dtype) for a in kept)
        begins, taken = cupy.ascontiguousarray(begins, dtype), cupy.zeros(1, cupy.uint64)
        shared = [cupy.asarray(a, dtype) for a in constants]
        if form == "search":
            left[:1] = 0
        parameters = [count, -1, tries, GROUPS - ahead, GROUPS, others, ranks.data.ptr + ahead]
        parameters += [a.data.ptr for a in (starts, steps, taken, left)]
        for k, a in enumerate((begins, memories, goals, *shared, *results)):
            parameters += [a.data.ptr, 0 if len(a) == 1 and k != 1 else a.shape[1]]
        built, function = kernel.loaded(architecture(device), form)
        threads = count * (WARP if form == "tries" else 1)
        grid = min(-(-threads // built.block), BLOCKS * _multiprocessors(device))
        shape = (grid, 1), (built.block, 1), built.shared * built.block // WARP
        function.launch(*shape, parameters, cupy.cuda.get_current_stream().ptr, device)


@functools.cache
def _ranking(target: str, size: int, rotations: tuple[int, ...]) -> Function:
    """The kernel that ranks starts."""
    return Function(cuda_driver.compile(ranking(size, rotations), target).code, "rank", target)


@functools.cache
def _multiprocessors(device: int) -> int:
    import cupy

    return int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])
