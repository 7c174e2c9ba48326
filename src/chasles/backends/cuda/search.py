"""Batched inverse kinematics on a GPU: in float32 until nearly solved, then in float64.

The searches work as in `llvm.search`, but on CuPy arrays. After the search in float32, most
problems need two or three steps in float64. The search is repeated for unsolved problems, from all
initial configurations, with one warp per problem. The calls do not synchronize with the GPU.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda.build import Layout
from chasles.backends.cuda.driver import Function, architecture
from chasles.backends.cuda.kernel import Kernel
from chasles.backends.cuda.searching import BLOCK, GROUPS, around
from chasles.backends.cuda.tiles import WARP

BLOCKS = 16
"""Maximum number of thread blocks per multiprocessor. If there are more problems than threads, each
thread solves several."""

NUMBERS = 256
"""Maximum number of initial configurations. Their indices are stored in single bytes."""

KEPT = 64
"""Maximum number of constant arrays whose copies are kept on the GPU."""


Stage = tuple[Sequence[np.ndarray], int]
"""Parameters of the searches in one precision.

The first element lists constant arrays of shape (1, size), for the kernel inputs that follow the
goals. The second element is the maximum number of attempts for each problem.
"""


class Search:
    """Inverse-kinematics search on a GPU, in single and then double precision."""

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
        room: tuple[np.ndarray, np.ndarray],
        rotations: tuple[int, ...] = (),
    ) -> tuple[Any, ...]:
        """Return CuPy arrays: configurations, solver states, steps, solved flags and active limits.

        Configurations have shape (count, n). The active limit of a coordinate is given as -1
        (lower), 1 (upper) or 0 (none). Goals that are not finite or contain an invalid rotation
        become NaN, and their configurations are NaN too.

        - goals (count, size): rows in float64, which are overwritten.
        - guess (count or 1, n): the first initial configuration in float64, by default the nearest
          of `starts`.
        - starts, others, table, memories: as in `llvm.search`.
        - limits: lower and upper limits of the configuration.
        - room: the same limits, but with lower = upper for coordinates that are held fixed.
        - stages: parameters of the searches in float32 and in float64.
        - rotations: offsets, in the goals, of the rotation matrices.
        """
        import cupy

        (count, size), n, m = goals.shape, starts.shape[1], memories.shape[1]
        points, ends = cupy.empty((count, n)), cupy.empty((count, m))
        steps, solved = cupy.zeros(count, cupy.int32), cupy.zeros(count, bool)
        sides = cupy.zeros((count, n), cupy.int8)
        if not count:
            return points, ends, steps, solved, sides
        help_with = functools.partial(_help, goals.data.device_id, size, rotations)
        single, near = cupy.empty((count, size), cupy.float32), cupy.zeros((count, n), "float32")
        rough, ranks = cupy.empty((count, m), cupy.float32), cupy.empty((count, GROUPS), "uint8")
        begins, ahead = guess, 0
        if guess is None:
            begins, ahead = cupy.empty((count, n), cupy.float32), 1
        rows, first = self._table(table, size), self._sent(starts, "float32")
        given = goals, rows, len(table), single, ranks, first, begins if ahead else 0
        help_with("rank", count, *given, n, points, m, ends)
        constants, tries = stages[0]
        left = cupy.empty(count + 1, cupy.uint64)
        run = functools.partial(self._run, (starts, memories), others, ranks, steps, left)
        run("search", self.single, tries, constants, ahead, begins, single, (near, rough))
        polished = cupy.empty((count, n))
        help_with("narrow", count * n, n, *map(cupy.asarray, room), near, polished)
        constants, tries = stages[1]
        doubles = [cupy.asarray(a, cupy.float64) for a in constants]
        rest = doubles, 0, polished, goals, (points, ends)
        run("search", self.double, 0, *rest)
        run("tries", self.double, tries, *rest)
        bounds = [cupy.asarray(a) for a in limits]
        help_with("look", count * n, n, *bounds, points, m, ends, sides, solved)
        return points, ends, steps, solved, sides

    def _sent(self, array: np.ndarray, dtype: str) -> Any:
        """Return a copy of an array on the current device; the copy is cached for later calls."""
        import cupy

        key = id(array), dtype, cupy.cuda.Device().id
        if key not in self._kept:
            while len(self._kept) >= KEPT:
                self._kept.pop(next(iter(self._kept)))
            # Keep `array`, so that no other array gets its id.
            self._kept[key] = array, cupy.asarray(array, dtype)
        return self._kept[key][1]

    def _table(self, table: np.ndarray, size: int) -> Any:
        """Return a GPU copy of the table that ranks initial configurations by their distance."""
        tiles, columns, lanes = table.shape
        assert columns == size + 1
        assert lanes == GROUPS
        assert tiles * lanes <= NUMBERS
        return self._sent(table, "float32")

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
        """Run searches with one kernel.

        ahead: number of ranked initial configurations to skip.
        """
        import cupy

        count, device, dtype = len(goals), goals.data.device_id, kernel.dtype.name
        starts, memories = (self._sent(a, dtype) for a in kept)
        begins, taken = cupy.ascontiguousarray(begins, dtype), cupy.zeros(1, cupy.uint64)
        shared = [cupy.asarray(a, dtype) for a in constants]
        if form == "search":
            left.data.memset_async(0, left.itemsize)  # reset the number of remaining problems
        parameters = [count, -1, tries, GROUPS - ahead, GROUPS, others, ranks.data.ptr + ahead]
        parameters += [a.data.ptr for a in (starts, steps, taken, left)]
        for k, a in enumerate((begins, memories, goals, *shared, *results)):
            parameters += [a.data.ptr, 0 if len(a) == 1 and k != 1 else a.shape[1]]
        built, function = kernel.loaded(architecture(device), form)
        threads = count * (WARP if form == "tries" else 1)
        grid = min(-(-threads // built.block), BLOCKS * _multiprocessors(device))
        shape = (grid, 1), (built.block, 1), built.shared * built.block // WARP
        function.launch(*shape, parameters, cupy.cuda.get_current_stream().ptr, device)


def _help(
    device: int, size: int, rotations: tuple[int, ...], name: str, count: int, *given: Any
) -> None:
    """Launch one of the helper kernels (`searching.around`) by name, with `count` threads."""
    import cupy

    function = _around(architecture(device), size, rotations, name)
    parameters = [count, *(a if isinstance(a, int) else a.data.ptr for a in given)]
    where = cupy.cuda.get_current_stream().ptr, device
    function.launch((-(-count // BLOCK), 1), (BLOCK, 1), 0, parameters, *where)


@functools.cache
def _around(target: str, size: int, rotations: tuple[int, ...], name: str) -> Function:
    return Function(_around_code(target, size, rotations), name, target)


@functools.cache
def _around_code(target: str, size: int, rotations: tuple[int, ...]) -> bytes:
    return cuda_driver.compile(around(size, rotations), target).code


@functools.cache
def _multiprocessors(device: int) -> int:
    import cupy

    return int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])
