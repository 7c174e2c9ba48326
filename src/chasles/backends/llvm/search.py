"""Batched search for configurations that reach goals, such as end-effector poses.

Machine code repeats a kernel until every search has ended. Each call of the kernel updates the
configurations and solver states of a block of searches, with one search per vector lane at a time.
The first entry of a solver state is the status of the search (0: running, 1: solved, 2:
abandoned). The second entry is the distance from the goals. A solved search is replaced by the next
problem. An abandoned search restarts from another initial configuration. When all initial
configurations are used up, the search restarts once more from the best configuration that it has
found. The result of a search depends only on its problem, not on its index, on other problems, or
on the number of threads.
"""

import ctypes
import functools
import itertools
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chasles.backends import objects
from chasles.backends.arrays import Rows, words
from chasles.backends.llvm import checked
from chasles.backends.llvm.alone_source import ALONE
from chasles.backends.llvm.checked import address, start_of
from chasles.backends.llvm.code import Machine, assemble, load
from chasles.backends.llvm.kernel import Kernel
from chasles.backends.llvm.loop import fitting_threads
from chasles.backends.llvm.loop_source import BLOCK
from chasles.backends.llvm.ranking import LANES, ranking, table
from chasles.backends.llvm.search_source import SOURCE
from chasles.backends.llvm.threads import memory, pool


@functools.cache
def _machine_code() -> bytes:
    machine = Machine.host()
    return assemble(SOURCE + ALONE + ranking(machine.fuse), machine)


class Search:
    """Iterative search for configurations that reach goals.

    Each step computes the next configuration and solver state.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        symbols = {"batch": kernel.batch_address, "one": kernel.one_address}
        names = ("search", "rank", "alone")
        self.code = load(_machine_code(), symbols | memory(), names, (kernel.code,))
        self._search, self._rank, self._alone = (self.code.address(name) for name in names)

    table = staticmethod(table)

    def ranked(self, goals: np.ndarray, table: np.ndarray) -> np.ndarray:
        """Return indices (count, LANES) of the initial configurations nearest to the goals.

        The initial configurations are divided into `LANES` groups. For each problem, the nearest
        configuration of each group is returned, in order of distance from the problem's goals.
        """
        tiles, size, lanes = table.shape
        assert goals.shape[1] == size - 1 > 0
        assert lanes == LANES
        ranks = np.zeros((len(goals), LANES), np.int64)
        if len(goals):
            numbers = (size - 1, tiles, address(goals), goals.strides[0])
            given, run = words((*numbers, address(table), address(ranks))), pool()
            run(self._rank, start_of(given), len(goals), BLOCK, 1, tiles * lanes * size)
        return ranks

    def __call__(
        self,
        goals: Rows,
        begins: np.ndarray,
        ranks: np.ndarray,
        starts: np.ndarray,
        others: int,
        memories: np.ndarray,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the configurations (count, n), the solver states, and an integer array (count, 2).

        The integers are, for each problem, the total number of steps and the index of the last
        attempt.

        - goals: the kernel's inputs after configuration and solver state (count or 1, size). A
          single row is shared by all problems.
        - begins (count or 1, n): initial configuration for the first attempt at each problem.
        - ranks (count, k): indices in `starts` for the next attempts. Later attempts use the rows
          of `starts` beginning with index `others`.
        - memories: initial solver state for each attempt, including a final one that starts at the
          best configuration found.
        """
        inputs = self.kernel.interface.inputs
        count, tries = len(ranks), len(memories) - 1
        sizes = [8 * variable.size for variable in inputs]
        assert [8 * g.shape[1] for g in goals] == sizes[2:]
        assert all(len(g) in (1, count) for g in (*goals, begins))
        assert 8 * starts.shape[1] == 8 * begins.shape[1] == sizes[0]
        assert 8 * memories.shape[1] == sizes[1]
        assert ranks.shape[1] + len(starts) - others >= tries - 1
        assert ranks.size == 0 or 0 <= ranks.min() <= ranks.max() < len(starts)
        points = np.empty((count, starts.shape[1]))
        points[:] = begins
        ends, steps = np.full((count, memories.shape[1]), np.inf), np.zeros((count, 2), np.int64)
        if not count:
            return points, ends, steps
        places, table, space = _layout(sizes)
        rows = [0, 0, *(0 if len(g) == 1 else g.strides[0] for g in goals)]
        begin_row = words([0 if len(begins) == 1 else begins.strides[0]])
        ins = words([0, 0, *map(address, goals)])
        numbers = (tries, ranks.shape[1], len(inputs), space + self.kernel.artifact.workspace)
        tables: list[Sequence[int]] = [rows, sizes, places]
        kept = [words(each) for each in tables]
        pointers = [start_of(ins), *map(start_of, kept), address(begins), start_of(begin_row)]
        pointers += [address(a) for a in (ranks, starts, memories, points, ends, steps)]
        given, run = words((*numbers, space, table, others, *pointers)), pool()
        work = 16 * max(self.kernel.artifact.work, 1)
        threads = fitting_threads(count, work, threads)
        run(self._search, start_of(given), count, BLOCK, threads, work)
        return points, ends, steps

    def alone(self, *given: Any, **facts: Any) -> "Alone":
        """Prepare a search that solves one inverse-kinematics problem per call (`Alone`)."""
        return Alone(self, *given, **facts)


class Alone:
    """A prepared search that solves one problem per call, within microseconds.

    If there is an initial guess, the first attempt starts from the guess and runs alone. If this
    attempt fails, or if there is no guess, several attempts run in the lanes of a vector. The
    successful attempt with the lowest index provides the result. Therefore the result is bitwise
    identical to the result of a batch.

    - constants: the kernel's inputs after the goals.
    - offsets: for each pose, the offset of its 12 entries in the goals.
    - limits: lower and upper limits of the configuration.

    For the other parameters, see `Search`.

    Attributes
    ----------
    matrices : (poses, 4, 4)
        Target poses, set by the caller before each call. The call checks that they are valid.
    goals : (1, size)
        Other entries of the goals, set by the caller before each call.
    constants : list of arrays (1, size)
        Copies of the kernel's other inputs, which may be changed between calls.
    guess : (n,)
        Initial configuration of the first attempt, set by the caller before a call with a guess.
    answer : (n + m + 2 + ceil(n / 8),)
        The configuration (n) and the solver state (m) found, the total number of steps and the
        index of the last attempt (integers), and the active limits (one byte per coordinate).
    """

    def __init__(
        self,
        search: Search,
        constants: Rows,
        starts: np.ndarray,
        others: int,
        memories: np.ndarray,
        table: np.ndarray,
        offsets: Sequence[int],
        limits: tuple[np.ndarray, np.ndarray],
    ) -> None:
        kernel, tries = search.kernel, len(memories) - 1
        sizes = [8 * variable.size for variable in kernel.interface.inputs]
        n, m, goal = (size // 8 for size in sizes[:3])
        assert [8 * a.shape[1] for a in constants] == sizes[3:]
        assert starts.shape[1] == n == limits[0].size == limits[1].size
        assert memories.shape[1] == m
        assert all(0 <= offset <= goal - 12 for offset in offsets)
        assert table.shape[1:] == (goal + 1, LANES)
        assert len(starts) - others >= tries - 1
        self.matrices, self.guess = np.empty((len(offsets), 4, 4)), np.empty(n)
        self.goals, self.constants = np.zeros((1, goal)), [np.array(a) for a in constants]
        self.answer = np.empty(n + m + 2 + -(-n // 8))
        places, where, space = _layout(sizes)
        whole = space + kernel.artifact.workspace
        scratch = np.empty(whole // 8 + 16)
        begin = _even(objects.address(scratch))
        memory = scratch[(begin - objects.address(scratch)) // 8 :]
        memory.view(np.int64)[: len(sizes)] = [begin + place for place in places]
        goals, ranks = self.goals, np.zeros(LANES, np.int64)
        counts = np.zeros(tries + 1, np.int64)
        lower, upper = (np.array(a, float) for a in limits)
        pieces = itertools.accumulate((n, m, 2), initial=0)
        point, end, steps, sides = (self.answer[k:] for k in pieces)
        self._arrays = [self.matrices, self.guess, self.answer, scratch, goals, ranks, counts]
        self._arrays += [lower, upper, starts, memories, table, *self.constants]
        self._words: list[array[int]] = []
        at = objects.address
        ins = self._table([0, 0, at(goals), *map(at, self.constants)])
        rows, sizes_, places_ = (self._table(x) for x in ([0] * len(sizes), sizes, places))
        ranking = self._table((goal, len(table), at(goals), 0, at(table), at(ranks)))
        outs = self._table(
            [begin + places[k] + sizes[k] for k in range(2)]
        )  # a single step writes its results to row 1 of the configurations and solver states
        places_of_poses = self._table(offsets)
        ways = []
        for own in (ranks[1:], ranks):  # without a guess, the first attempt uses the nearest start
            numbers = (tries, len(own), len(sizes), whole, space, where, others)
            pointers = (ins, rows, sizes_, places_, at(self.guess), rows, at(own))
            results = map(at, (starts, memories, point, end, steps))
            given = self._table((*numbers, *pointers, *results))
            rest = map(at, (lower, upper, sides, counts))
            head = (len(offsets), int(len(own) == LANES), given, ranking, begin, at(self.matrices))
            ways.append(self._table((*head, places_of_poses, *rest, outs)))
        self.plain, self.guessed = map(ctypes.c_void_p, ways)
        self._search, run = search, ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(search._alone)
        self.run: Callable[[ctypes.c_void_p], int] = self._checked(run) if checked.ON else run
        """Function that runs the search.

        The argument is `self.plain` for a search without an initial guess, or `self.guessed` to try
        the guess first. The result is 0, or `REFUSED` if a pose is invalid or the guess is not
        finite.
        """

    def _table(self, numbers: Sequence[int]) -> int:
        """Return the address of a new table of 8-byte words, which lives as long as this object."""
        self._words.append(words(numbers))
        return self._words[-1].buffer_info()[0]

    def _checked(self, run: Any) -> Callable[[ctypes.c_void_p], int]:
        """Return a function that calls `run` in debug mode, which checks memory accesses.

        Before each call, the returned function registers the arrays of this search as memory that
        the compiled search may access.
        """
        last = checked.ends(run)

        def noted(way: ctypes.c_void_p) -> int:
            for a in self._arrays:
                checked.address(a)
            for each in self._words:
                checked.start_of(each)
            answer: int = last(way)
            return answer

        return noted


def _layout(sizes: Sequence[int]) -> tuple[list[int], int, int]:
    """Return the offsets of input rows, search table and workspace in the memory of a block."""
    starting = itertools.accumulate((BLOCK * size for size in sizes), initial=8 * len(sizes))
    *places, table = (_even(place) for place in starting)
    return places, table, _even(table + 24 * BLOCK)


def _even(place: int) -> int:
    """Return an offset rounded up to a multiple of 64 bytes, the alignment of vectors."""
    return -(-place // 64) * 64
