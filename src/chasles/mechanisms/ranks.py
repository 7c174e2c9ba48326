"""Ranks of loop constraint Jacobians: active equations, independent coordinates, and pivots.

The values in a file close a loop only to the precision of the file. For example, the loop of a
planar four-bar gives five equations for three joints. If the file gives the directions of the
axes to six digits, two equations determine the motion, and the other three agree with these to six
digits. To machine precision, the five equations have no solution or lock the mechanism. Therefore
equations that follow from others within a tolerance are dropped, once for all states.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from chasles.functions import numeric
from chasles.mechanisms.reports import ImpossiblePosition, how_open
from chasles.model.description import Closure

if TYPE_CHECKING:
    from chasles.mechanisms.equations import Equations

RANK = 1e-8
"""Relative tolerance below which singular values of the loop matrix count as zero."""

SINGULAR = 1e-6
"""Ratio of smallest to largest singular value below which coordinates count as undetermined.

Below this ratio, a residual of 1e-13 leaves the configuration uncertain by more than 1e-7.
"""

SHARE = 0.1
"""Minimum pivot of a coordinate that may be chosen as dependent, relative to the largest pivot.

A pivot is acceptable if it is at least `SHARE` times the largest remaining entry in its column.
That entry must be at least `SHARE`^2 times the largest initial entry of the column, unless no
column satisfies this condition.
"""

CLOSED = 1e-13
"""Tolerance for solving the loop equations (rad, or relative to the size of the loop)."""

STARTS = 16
"""Number of initial guesses in the search for configurations that close the loops."""

STRIDE, STRIDES = 0.1, 30
"""Step size and number of steps of a motion that tests whether dropped equations stay satisfied.

`STRIDE` is the step size (rad, or relative to the size of the largest loop). `STRIDES` is the
number of steps forward, and also backward.
"""

BRANCHING = 0.2
"""Ratio of the smallest singular value to its initial value, below which a branch point is near.

At a branch point, several motions meet. Only the redundant equations, which were dropped, determine
which of these motions the mechanism can follow.
"""

NOTHING = 1e-12
"""Tolerance for zeros in Gaussian elimination.

A pivot counts as zero if its magnitude does not exceed this value. A matrix entry counts as zero if
its magnitude does not exceed this value times the largest entry.
"""


def times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return A x for each state."""
    return np.asarray(np.einsum("...ij,...j->...i", A, x))


def rank_of(
    A: np.ndarray, largest: float | None = None, *, share: float = RANK
) -> tuple[int, np.ndarray]:
    """Return the rank of a matrix and its singular values (a single zero for an empty matrix).

    The rank is the number of singular values above `share` times the largest.
    """
    values = np.linalg.svd(A, compute_uv=False) if A.size else np.zeros(1)
    top = values[0] if largest is None else largest
    return int(np.count_nonzero(values > share * top)), values


def null_space(A: np.ndarray, rank: int) -> np.ndarray:
    """Return an orthonormal basis, in columns, of the null space of A, which has the given rank."""
    return np.asarray(np.swapaxes(np.linalg.svd(A)[2][..., rank:, :], -1, -2))


def smallest(A: np.ndarray, rank: int) -> np.ndarray:
    """Return the smallest nonzero singular value of A, given its rank (inf for rank 0)."""
    if not rank:
        return np.full(A.shape[:-2], np.inf)
    return np.asarray(np.linalg.svd(A, compute_uv=False)[..., rank - 1])


def spans(A: np.ndarray, rank: int) -> np.ndarray:
    """Return the maximum of |x_k| over unit vectors x with A x = 0, for each entry k."""
    if not A.size:
        return np.ones(A.shape[-1])
    return np.asarray(np.linalg.norm(np.linalg.svd(A)[2][rank:], axis=0))


def margin(A: np.ndarray) -> np.ndarray:
    """Return the ratio of smallest to largest singular value, or 0 with fewer rows than columns."""
    if A.shape[-1] == 0:
        return np.ones(len(A))
    if A.shape[-2] < A.shape[-1]:
        return np.zeros(len(A))
    values = np.linalg.svd(A, compute_uv=False)
    return values[:, -1] / np.maximum(values[:, 0], 1e-300)


def independent_columns(
    A: np.ndarray, rank: int, order: Sequence[int], share: float = SHARE
) -> np.ndarray:
    """Return the column indices of the independent coordinates in A (states, rows, nv).

    The dependent columns (`rank` in number) are chosen by threshold pivoting. Columns are tried in
    the given order; a column is skipped if its remaining norm is below `share` times the largest.
    """
    left, dependent = A.copy(), np.zeros(A.shape[-1], dtype=bool)
    for _ in range(rank):
        size = np.where(dependent, 0.0, np.median(np.linalg.norm(left, axis=-2), axis=0))
        k = next(k for k in order if size[k] >= share * np.max(size) and not dependent[k])
        u = left[..., k] / np.maximum(np.linalg.norm(left[..., k], axis=-1), RANK)[..., None]
        left = left - u[..., None] * np.einsum("...m,...mv->...v", u, left)[..., None, :]
        dependent[k] = True
    return np.flatnonzero(~dependent)


def determine(A: np.ndarray, given: np.ndarray) -> bool:
    """Return True if the given coordinates determine all others in at least one state."""
    return bool(np.max(margin(np.delete(A, given, axis=-1))) > SINGULAR)


# Active equations ---------------------------------------------------------------------------------


class Agreement(NamedTuple):
    """Active loop equations, and reference configurations in which the loops are closed.

    `rows` contains the scales of the equations, which are 0 for dropped equations. `references`
    (states, nq) contains closed configurations where the Jacobian of the active equations has its
    maximum rank. `misfit` contains the largest dimensionless residual of each dropped equation at
    the references and along motions that start there, and 0 for active equations.
    """

    rows: np.ndarray
    references: np.ndarray
    misfit: np.ndarray


def agreement(loops: "Equations") -> Agreement:
    """Return the active loop equations, and reference configurations with closed loops.

    All equations are active if they have solutions and rounding does not change their rank.
    Otherwise, equations that are redundant to within the tolerance are dropped.
    """
    starts, scales = _starts(loops), loops.scales
    found = _mixed(loops, loops.solve(starts, loops.columns, scales))
    closed, near = (found.q[found.size <= most] for most in (CLOSED, loops.tolerance))
    sure = len(closed) and len(closed) == len(near)
    if not (sure and _rank(loops, closed, RANK) == _rank(loops, closed, loops.tolerance)):
        fewer = _fewer(loops, starts)
        if fewer is not None:
            return fewer
    if not len(closed):
        best = how_open(loops.model, found.residual[int(np.argmin(found.size))])
        when = " at t = 0, where independent coordinates are chosen" if loops.model.timed else ""
        problem = f"no configuration was found that closes the loops{when}"
        remedy = f"check lengths, frames and couplings; smallest residual: {best}"
        raise ImpossiblePosition("E-LOOP-002", problem, remedy, part=loops.part)
    return Agreement(scales, regular(loops, closed, scales), np.zeros(len(scales)))


def _starts(loops: "Equations") -> np.ndarray:
    """Return the neutral configuration and random configurations around it: (STARTS, nq)."""
    nv = loops.model.nv
    inside = np.isin(np.arange(nv), loops.looped)
    spread = np.linspace(0.0, 3.0, STARTS)[:, None] * loops.columns * inside
    away = spread * np.random.default_rng(0).uniform(-1.0, 1.0, (STARTS, nv))
    return np.asarray(loops.function("integrate")(np.tile(loops.neutral, (STARTS, 1)), away))


def _mixed(loops: "Equations", found: numeric.Found) -> numeric.Found:
    """Close groups of loops that are open in some states but closed in others.

    The coordinates of an open group are copied from a state in which this group is closed, because
    a search from a single start rarely closes many groups at once.
    """
    q, r = found.q.copy(), found.residual.copy()
    for each in loops.blocks:
        closed = each.sizes(r) <= CLOSED
        for k, (rows, places) in enumerate(zip(each.rows, each.q, strict=True)):
            good, bad = np.flatnonzero(closed[:, k]), np.flatnonzero(~closed[:, k])
            if len(good):
                taken = np.resize(good, len(bad))
                q[np.ix_(bad, places)], r[np.ix_(bad, rows)] = (
                    q[taken][:, places],
                    r[taken][:, rows],
                )
    return numeric.Found(q, r, np.linalg.norm(r, axis=-1)) if loops.blocks else found


def _fewer(loops: "Equations", starts: np.ndarray) -> Agreement | None:
    """Select a minimal set of loop equations that implies the others within the tolerance.

    The result is None if all equations are needed.

    A singular value below the tolerance may be due to rounded values in a file, or to a nearly
    singular mechanism. Only in the second case does a motion of the mechanism violate the dropped
    equations, so these are tested along a motion.
    """
    scales, most = loops.scales, loops.tolerance
    found = loops.solve(starts, loops.columns, scales, tolerance=most, rank=most)
    near = found.q[found.size <= most]
    if not len(near):
        return None
    A = scales[:, None] * loops.raw_matrix(near) * loops.columns
    least = min(rank_of(a, share=most)[0] for a in A)
    exact, across = max(rank_of(a)[0] for a in A), np.swapaxes(A, -1, -2)
    for rank in range(least, max(exact, least + 1)):
        spare = independent_columns(across, rank, range(len(scales)))
        dropped = np.intersect1d(spare, np.flatnonzero(loops.model.holonomic_rows))
        rows = scales.copy()
        rows[dropped] = 0.0
        solved = loops.solve(near, loops.columns, rows)
        closed = solved.q[solved.size <= CLOSED]
        agree = closed[_size(loops, closed, dropped) <= most]
        tried = _walked(loops, agree, rows, rank)
        if len(agree) and np.all(_size(loops, tried, dropped) <= most):
            misfit = np.zeros(len(scales))
            misfit[dropped] = np.max(np.abs(_residual(loops, tried)[:, dropped]), axis=0)
            contradict = rank < exact or np.max(misfit, initial=0.0) > CLOSED
            return Agreement(rows, regular(loops, agree, rows), misfit) if contradict else None
    return None


def _walked(loops: "Equations", q: np.ndarray, rows: np.ndarray, rank: int) -> np.ndarray:
    """Return q, followed by configurations that the mechanism reaches if it satisfies `rows`.

    `rows` selects loop equations. The mechanism moves from the configuration in q that is farthest
    from a singularity.
    """
    found, inside, integrate = [q], loops.looped, loops.function("integrate")

    def equations(at: np.ndarray) -> np.ndarray:
        return (rows[:, None] * loops.raw_matrix(at) * loops.columns)[..., inside]

    least = smallest(equations(q), rank)
    best = np.flatnonzero(least == np.max(least, initial=0.0))[:1]
    ways = np.swapaxes(null_space(equations(q[best]), rank), -1, -2).reshape(-1, len(inside))
    along = np.concatenate([ways, -ways])
    at = np.repeat(q[best], len(along), axis=0)
    for _ in range(STRIDES):
        N = null_space(equations(at), rank)
        along = np.einsum("sik,sjk,sj->si", N, N, along)
        along = along / np.maximum(np.linalg.norm(along, axis=-1, keepdims=True), RANK)
        step = np.zeros((len(at), loops.model.nv))
        step[:, inside] = STRIDE * along
        solved = loops.solve(integrate(at, loops.columns * step), loops.columns, rows)
        goes_on = solved.size <= CLOSED
        goes_on &= smallest(equations(solved.q), rank) > BRANCHING * np.max(least, initial=0.0)
        at, along = solved.q[goes_on], along[goes_on]
        found.append(at)
    return np.concatenate(found)


def _rank(loops: "Equations", q: np.ndarray, share: float) -> int:
    """Return the largest rank of the loop equations over configurations q (see `rank_of`)."""
    A = loops.scales[:, None] * loops.raw_matrix(q) * loops.columns
    return max(rank_of(a, share=share)[0] for a in A)


def regular(loops: "Equations", q: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the configurations at which the rank of the loop equations is largest."""
    ranks = [rank_of(A)[0] for A in rows[:, None] * loops.raw_matrix(q) * loops.columns]
    return np.asarray(q[np.array(ranks) == max(ranks)])


def _residual(loops: "Equations", q: np.ndarray) -> np.ndarray:
    """Return the dimensionless residuals of all loop equations: (states, rows)."""
    return np.asarray(loops.scales * loops.function("loop_residual")(q))


def _size(loops: "Equations", q: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return the norm of the residuals of the loop equations `some` (indices), for each state."""
    return np.asarray(np.linalg.norm(_residual(loops, q)[:, some], axis=-1))


# Pivots -------------------------------------------------------------------------------------------


def choose(
    K: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    rank: int,
    dependent: np.ndarray,
    holonomic: Sequence[bool] = (),
    share: float = SHARE,
) -> Closure:
    """Choose `rank` equations (rows), and the dependent variables (columns) to solve for.

    Columns are chosen among `dependent`. Position-level rows (`holonomic`, all by default) come
    first, so that their columns do not depend on the other rows. For `share`, see `SHARE`. The
    selection follows Featherstone 2008, section 8.8.

    The first state of `K` (states, rows, nv) determines the size of the pivots, and all states
    together determine which entries are zero. Each step considers acceptable pivots in the columns
    that initially have the fewest nonzero entries, so that loops stay separate. The
    acceptable pivot with the least fill-in is selected (Markowitz's rule), or in a tie the largest.
    """
    left = (rows[:, None] * K * columns)[..., dependent]
    floor = NOTHING * np.max(np.abs(left), initial=0.0)
    start = np.max(np.abs(left[0]), axis=0)
    many = left.size * np.sum(np.max(np.abs(left), axis=0) > floor, axis=0)
    taken: list[tuple[int, int]] = []
    rolls = np.flatnonzero(~np.array(holonomic, dtype=bool))
    upto = max((rank_of(np.delete(A, rolls, axis=0))[0] for A in left), default=rank)
    while len(taken) < rank:
        entries = np.abs(left)
        for row, column in taken:
            entries[:, row], entries[:, :, column] = 0.0, 0.0
        if len(rolls) and len(taken) < upto:
            entries[:, rolls] = 0.0
        size, full = entries[0], np.max(entries, axis=0) > floor
        largest = np.max(size, axis=0)
        fair = full & (size >= share * largest) & (size > floor)
        fair = fair if fair.any() else full & (size >= share * largest)
        strong = fair & (largest >= share**2 * start)
        fair = strong if strong.any() else fair
        fill = np.outer(full.sum(axis=1) - 1, full.sum(axis=0) - 1) + many
        least = np.min(fill[fair])
        best = np.where(fair & (fill == least), size, -1.0)
        r, c = map(int, np.unravel_index(int(np.argmax(best)), best.shape))
        taken.append((r, c))
        left = _eliminated(left, r, c)
    kept, solved = [r for r, _ in taken], [int(dependent[c]) for _, c in taken]
    return Closure(
        tuple(kept), tuple(solved), _pivots(K[:, kept][..., solved]), tuple(map(float, rows))
    )


def _eliminated(left: np.ndarray, r: int, c: int) -> np.ndarray:
    """Eliminate column c from all rows except the pivot row r."""
    pivot = left[:, r, c]
    safe = np.where(np.abs(pivot) > NOTHING, pivot, np.inf)
    less = left - left[:, :, c, None] * (left[:, r] / safe[:, None])[:, None, :]
    less[:, r] = left[:, r]
    return less


def _pivots(K: np.ndarray) -> tuple[float, ...]:
    """Return the pivots of the first matrix in the batch K, for elimination without pivoting."""
    found = []
    for s in range(K.shape[-1]):
        found.append(float(K[0, s, s]))
        K = _eliminated(K, s, s)
    return tuple(found)
