"""Ranks of the matrices of closed loops, and the choice of pivots for their equations."""

from collections.abc import Sequence

import numpy as np

from chasles.model.description import Closure

RANK = 1e-8
"""Singular values of the loop matrix below this fraction of the largest one count as zero."""

SINGULAR = 1e-6
"""Dependent coordinates are undetermined if a singular value is below this fraction of the largest.

At a residual of 1e-13, the configuration is then uncertain by more than 1e-7.
"""

SHARE = 0.1
"""Fraction of the best candidate that a coordinate must contribute to become dependent.

A pivot is acceptable if it is at least this fraction of the largest remaining entry in its column.
That entry must be at least the square of the fraction times the largest initial entry, unless no
column satisfies this.
"""

NOTHING = 1e-12
"""Entries below this fraction of the largest entry are rounding errors."""


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
    """Return orthonormal x with A x = 0, for matrices of given rank: (..., columns, motions)."""
    return np.asarray(np.swapaxes(np.linalg.svd(A)[2][..., rank:, :], -1, -2))


def smallest(A: np.ndarray, rank: int) -> np.ndarray:
    """Return the smallest nonzero singular value of matrices of given rank (inf for rank 0)."""
    if not rank:
        return np.full(A.shape[:-2], np.inf)
    return np.asarray(np.linalg.svd(A, compute_uv=False)[..., rank - 1])


def spans(A: np.ndarray, rank: int) -> np.ndarray:
    """Return the largest value that each entry takes in unit vectors x with A x = 0."""
    if not A.size:
        return np.ones(A.shape[-1])
    return np.asarray(np.linalg.norm(np.linalg.svd(A)[2][rank:], axis=0))


def margin(A: np.ndarray) -> np.ndarray:
    """Return the ratio of the smallest to the largest singular value (0 with too few rows)."""
    if A.shape[-1] == 0:
        return np.ones(len(A))
    if A.shape[-2] < A.shape[-1]:
        return np.zeros(len(A))
    values = np.linalg.svd(A, compute_uv=False)
    return values[:, -1] / np.maximum(values[:, 0], 1e-300)


def independent_columns(
    A: np.ndarray, rank: int, order: Sequence[int], share: float = SHARE
) -> np.ndarray:
    """Return independent columns of A (states, rows, nv), by threshold pivoting.

    The other columns become dependent in the given order, but a column that contributes less than
    `share` of the best candidate is skipped.
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
    """Return True if the given coordinates determine all others in some state."""
    return bool(np.max(margin(np.delete(A, given, axis=-1))) > SINGULAR)


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
    """Choose `rank` rows, and the columns among `dependent` for which they are solved.

    Position-level rows (`holonomic`, all by default) come first, so that they alone determine the
    columns for which they are solved. share: see `SHARE`. See Featherstone 2008, section 8.8.

    K (states, rows, nv): the first state determines the size of pivots, all states the zeros. Each
    step selects an acceptable pivot in a column with the fewest initial entries (so that loops stay
    separate), among these one with the least fill-in (Markowitz's rule), and among those the
    largest.
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
    """Eliminate column c from every other row."""
    pivot = left[:, r, c]
    safe = np.where(np.abs(pivot) > NOTHING, pivot, np.inf)
    less = left - left[:, :, c, None] * (left[:, r] / safe[:, None])[:, None, :]
    less[:, r] = left[:, r]
    return less


def _pivots(K: np.ndarray) -> tuple[float, ...]:
    """Return the pivots of elimination in the given order, in the first state."""
    found = []
    for s in range(K.shape[-1]):
        found.append(float(K[0, s, s]))
        K = _eliminated(K, s, s)
    return tuple(found)
