"""Compiled closed-form inverse kinematics for batches of poses, also for redundant arms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import COMPILING, Kernel
from chasles.expr import Program
from chasles.functions.branches import Arm, Form, Limits, arm, chosen, traced
from chasles.functions.checked_branches import checked_branches
from chasles.functions.reaching import MEMORY, STATUS, Task
from chasles.functions.targets import Pose
from chasles.mechanisms.distinct import Rows, Search, sort
from chasles.mechanisms.mechanism import Mechanism

GRID, FINE = 64, 1024
"""Number of redundant-joint positions in the coarse grid and in the fine grid.

The fine grid is used only if the coarse grid yields no solution.
"""

AT_ONCE = 1 << 12
"""Number of pairs (pose, position of the redundant joint) in one batch."""


@dataclass(frozen=True, eq=False)
class Branches:
    """Compiled closed-form inverse kinematics of an arm, with all configurations for a pose."""

    mechanism: Mechanism
    frame: str
    chain: Arm
    form: Form
    exact: bool
    lower: np.ndarray
    upper: np.ndarray
    held: int | None = None
    """Index of the redundant joint in q, or None if the joint's position is not prescribed."""

    @cached_property
    def checking(self) -> Kernel:
        """Return the program that computes, checks and orders all configurations for a pose."""
        given = (self.mechanism.model, self.frame, self.chain, self.form, self.limits)
        known = (self.mechanism.model.source, self.mechanism.model.mimics, self.frame)
        return self.compiled(lambda: checked_branches(*given), "checked branches", *known)

    @property
    def redundant(self) -> bool:
        """Return True if the arm is redundant, so that one joint position must be prescribed."""
        return self.form.given is not None

    @cached_property
    def kernel(self) -> Kernel:
        """Return the compiled program that finds all configurations for a pose."""
        return self.compiled(lambda: traced(self.chain, self.form, *self.limits), "branches")

    @property
    def limits(self) -> Limits:
        """Lower and upper limits of the joints in the chain."""
        return self.lower, self.upper

    def compiled(self, trace: Callable[[], Program], *name: Any) -> Kernel:
        """Return the compiled program for a closed-form solution, cached by name and parameters."""
        recipe = (*name, self.chain, self.form, *(a.tolist() for a in self.limits))
        with COMPILING:
            return backends.known(recipe, trace) or backends.compile(trace(), recipe=recipe)

    def __call__(
        self, goals: np.ndarray, given: np.ndarray | None, threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return configurations (count, branches, joints) and their validity (count, branches).

        `goals` (count, 12) contains rotation matrices by rows, then positions. `given` (count,)
        contains positions of the redundant joint.
        """
        variables, count = self.kernel.interface.outputs, len(goals)
        q, found = (np.empty((count, v.size)) for v in variables)
        inputs = [goals] if given is None else [goals, np.ascontiguousarray(given[:, None])]
        self.kernel(inputs, [q, found], threads)
        return q.reshape(count, *variables[0].shape), found > 0.0

    def postures(
        self, goals: np.ndarray, base: np.ndarray, count: int, threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return m solutions on all branches: pose indices (m,), ascending, and positions (m, nq).

        Coordinates outside the chain are copied from base (1 or number of poses, nq). For a
        redundant arm, each pose has at most `count` solutions, evenly distributed over the
        possible positions of the redundant joint.
        """
        if self.redundant and self.held is None:
            who, q = self._sampled(goals, count, threads)
        else:
            given = None
            if self.held is not None:
                given = np.broadcast_to(base[:, self.held], len(goals))
            every, found = self(goals, given, threads)
            who, branch = np.nonzero(found)
            q = every[who, branch]
        whole = base[who if len(base) > 1 else np.zeros(len(who), int)]
        whole[:, self.chain.columns] = q
        return who, whole

    def _sampled(
        self, goals: np.ndarray, count: int, threads: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        every = np.arange(len(goals))
        who, q = self._on_grid(goals, every, count, GRID, threads)
        missing = np.setdiff1d(every, who)
        more, rows = self._on_grid(goals, missing, count, FINE, threads)
        who, q = np.concatenate([who, more]), np.concatenate([q, rows])
        order = np.argsort(who, kind="stable")
        return who[order], q[order]

    def _on_grid(
        self, goals: np.ndarray, poses: np.ndarray, count: int, grid: int, threads: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find up to `count` configurations per pose, with the redundant joint on a grid.

        The grid has `grid` positions, evenly spaced within the joint's range. Return the index of
        each configuration's pose, and the configurations.
        """
        values, step = self._values(grid), max(1, AT_ONCE // grid)
        who = [np.zeros(0, np.intp)]
        postures = [np.zeros((0, len(self.chain.joints)))]
        for first in range(0, len(poses), step):
            some = poses[first : first + step]
            given = np.tile(values, len(some))
            q, found = self(np.repeat(goals[some], grid, axis=0), given, threads)
            rows, branch = np.nonzero(found)
            owner, chosen = _evenly(rows // grid, len(some), count)
            who.append(some[owner])
            postures.append(q[rows[chosen], branch[chosen]])
        return np.concatenate(who), np.concatenate(postures)

    def _values(self, grid: int) -> np.ndarray:
        """Return positions of the redundant joint, evenly spaced within its range."""
        low, high = self.range
        return np.asarray(low + (high - low) * (np.arange(grid) + 0.5) / grid)

    @property
    def range(self) -> tuple[float, float]:
        """Range of the redundant joint: its limits, but at most one turn for a revolute joint."""
        if self.form.given is None:
            return (0.0, 0.0)
        if self.form.kind == "elbow":
            return (-np.pi, np.pi)
        low, high = (float(a[self.form.given]) for a in (self.lower, self.upper))
        slides = self.chain.joints[self.form.given].slides
        reach = 2.0 * self.chain.size if slides else np.pi
        middle = max(low + reach, min(0.0, high - reach))
        if not slides or not np.isfinite(high - low):
            low, high = max(low, middle - reach), min(high, middle + reach)
        return low, high


def _evenly(who: np.ndarray, owners: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Select at most `count` evenly spaced configurations per pose; return pose and row indices.

    `who` contains the pose index of each row, in ascending order.
    """
    total = np.bincount(who, minlength=owners)
    kept = np.minimum(total, count)
    owner = np.repeat(np.arange(owners), kept)
    number = _number(owner, kept)
    start = np.cumsum(total) - total
    return owner, start[owner] + ((2 * number + 1) * total[owner]) // (2 * kept[owner])


TIGHT = 1e-3
"""Maximum pose tolerance (rad or m) for which closed-form solutions are used."""


def tight(weights: np.ndarray, tolerances: np.ndarray) -> bool:
    """Return True if all weights are positive and no tolerance is larger than `TIGHT`."""
    return bool(tolerances.max() <= TIGHT and weights.min() > 0.0)


def uneven(weights: np.ndarray, tolerances: np.ndarray) -> bool:
    """Return True if the tolerances of errors with positive weights are not all equal."""
    counted = tolerances[weights > 0.0]
    return bool(counted.size and counted.max() > counted.min())


# All solutions ----------------------------------------------------------------------------------


def checked(
    closed: Branches,
    goals: np.ndarray,
    base: np.ndarray,
    count: int,
    tolerances: np.ndarray,
    threads: int | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return all configurations (n, count, nq) for poses, checked against the tolerances.

    Also returns residuals (n, count, 2), the number of configurations (n,), and a mask (n,) of
    poses with a configuration outside the tolerances.
    """
    n, (many, nq) = len(goals), closed.checking.interface.outputs[0].shape
    wide = max(count, many)
    q, residual, told = np.empty((n, wide, nq)), np.empty((n, wide, 2)), np.empty((n, 2))
    q[:, many:], residual[:, many:] = np.nan, np.inf
    outputs = [a.reshape(n, wide * k)[:, : many * k] for a, k in ((q, nq), (residual, 2))]
    shared = (base, tolerances, np.array([[np.nan, np.inf]]))
    inputs = [goals, *(np.broadcast_to(a, (n, a.shape[1])) for a in shared)]
    closed.checking(inputs, [*outputs, told], threads)
    return q[:, :count], residual[:, :count], told[:, 0], told[:, 1] > 0.0


def every(
    mechanism: Mechanism,
    closed: Branches,
    goals: np.ndarray,
    base: np.ndarray,
    count: int,
    search: Search,
    threads: int | None,
) -> tuple[Rows, np.ndarray]:
    """Return closed-form solutions for n poses: configurations, solver states, and step counts.

    Also returns a mask (n,) of poses for which all solutions were found. The configurations have
    shape (n, count, nq). The function `search` checks each solution, and corrects it if axes
    intersect only approximately.
    """
    n = len(goals)
    q, ends = np.full((n, count, base.shape[1]), np.nan), np.full((n, count, MEMORY), np.inf)
    steps, complete = np.zeros((n, 1), np.int64), np.zeros(n, bool)
    for first in range(0, n, AT_ONCE):
        some = slice(first, min(first + AT_ONCE, n))
        rows, own = goals[some], base[some] if len(base) > 1 else base
        who, begins = closed.postures(rows, own, count, threads)
        found, end, taken = search(np.ascontiguousarray(rows[who]), begins)
        solved = end[:, STATUS] == 1.0
        total = np.bincount(who[solved], minlength=len(rows))
        place = _number(who[solved], total)
        fits = place < count
        at = (who[solved][fits], place[fits])
        q[some][at], ends[some][at] = found[solved][fits], end[solved][fits]
        steps[some, 0] = np.bincount(who, taken[:, 0], minlength=len(rows))
        complete[some] = closed.exact & (not closed.redundant or closed.held is not None)
        complete[some] &= total <= count
        moved = np.unique(who[taken[:, 0] > 1])
        _sift(mechanism, rows, who, found, end, moved, q[some], ends[some], search)
    return (q, ends, steps), complete


def rescue(
    closed: Branches,
    goals: np.ndarray,
    base: np.ndarray,
    rows: Rows,
    missed: np.ndarray,
    search: Search,
    threads: int | None,
) -> None:
    """Find closed-form solutions for unsolved poses, and store them in the result arrays `rows`.

    `missed` (n,) is the mask of unsolved poses. `base` (n or 1, nq) contains the coordinates
    that are not solved for. The function `search` checks and corrects the solutions.
    """
    lost = np.flatnonzero(missed)
    own = base[lost] if len(base) > 1 else base
    who, begins = closed.postures(goals[lost], own, 1, threads)
    found = search(np.ascontiguousarray(goals[lost][who]), begins)
    solved = np.flatnonzero(found[1][:, STATUS] == 1.0)
    mine, first = np.unique(who[solved], return_index=True)
    for whole, part in zip(rows, found, strict=True):
        whole[lost[mine]] = part[solved[first]]


def _number(who: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Number the rows of each pose, starting at 0.

    `who` contains the pose index of each row, in ascending order. `total` contains the number of
    rows for each pose.
    """
    return np.arange(len(who)) - np.repeat(np.cumsum(total) - total, total)


def _sift(
    mechanism: Mechanism,
    goals: np.ndarray,
    who: np.ndarray,
    found: np.ndarray,
    end: np.ndarray,
    suspects: np.ndarray,
    q: np.ndarray,
    ends: np.ndarray,
    search: Search,
) -> None:
    """Remove duplicate configurations from the results of some poses (indices `suspects`).

    Duplicates can arise where the search has corrected approximate branches.
    """
    if not len(suspects):
        return
    mine = np.isin(who, suspects)
    owner = np.searchsorted(suspects, who[mine])
    total = np.bincount(owner, minlength=len(suspects))
    at = (owner, _number(owner, total))
    some = np.full((len(suspects), total.max(), q.shape[2]), np.nan)
    marks = np.full((*some.shape[:2], MEMORY), np.inf)
    some[at], marks[at] = found[mine], end[mine]
    clean, kept = np.full_like(q[suspects], np.nan), np.full_like(ends[suspects], np.inf)
    sort(mechanism, goals[suspects], some, marks, clean, kept, search)
    q[suspects], ends[suspects] = clean, kept


# Construction -----------------------------------------------------------------------------------


def branches(
    mechanism: Mechanism, task: Task, lower: np.ndarray, upper: np.ndarray, fixed: Sequence[str]
) -> Branches | None:
    """Return the closed-form inverse kinematics for a pose target, or None if there is none.

    The result is cached. `fixed` contains the names of joints that do not move, for example the
    redundant joint of a seven-joint arm.
    """
    if len(task.targets) != 1 or type(task.targets[0][1]) is not Pose or any(task.scales):
        return None
    frame = task.targets[0][0]
    held = frozenset(mechanism.position_slice(name).start for name in fixed)
    key = ("branches", frame, held)
    if key not in mechanism.kept:
        with COMPILING:
            if key not in mechanism.kept:
                mechanism.kept[key] = _made(mechanism, frame, held, lower, upper)
    found: Branches | None = mechanism.kept[key]
    return found


def _made(
    mechanism: Mechanism, frame: str, held: frozenset[int], lower: np.ndarray, upper: np.ndarray
) -> Branches | None:
    chain = arm(mechanism.model, frame)
    if chain is None:
        return None
    columns = list(chain.columns)
    stopped = [k for k, column in enumerate(columns) if column in held]
    if len(stopped) > len(columns) - 6:
        return None
    form, exact = chosen(chain, stopped[0] if stopped else None)
    if form is None:
        return None
    place = columns[stopped[0]] if stopped else None
    return Branches(mechanism, frame, chain, form, exact, lower[columns], upper[columns], place)
