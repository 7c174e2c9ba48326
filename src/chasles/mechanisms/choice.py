"""Which equations of the loops give which freedoms: chosen by pivoting (Featherstone 8.8)."""

import numpy as np

from chasles.model.description import Closure

SHARE = 0.1
"""A pivot is fair that is at least this part of the largest left in its column, where that is at
least the square of it beside the largest that the column had (or where no column has such)."""

NOTHING = 1e-12
"""An entry below this part of the largest is rounding."""


def choose(
    K: np.ndarray, rows: np.ndarray, columns: np.ndarray, rank: int, dependent: np.ndarray
) -> Closure:
    """`rank` rows to solve for as many of the columns that may be dependent.

    K: the loops' matrix in some states (states, rows, nv); the first decides how large pivots are,
    all together where zeros are. rows, columns: scales that make it dimensionless. Of the fair
    pivots each step takes one in a column with fewest entries at the start (freedoms of one loop
    before those of many, so that loops stay apart), of these one that fills fewest zeros
    (Markowitz's rule), and the largest of those.
    """
    left = (rows[:, None] * K * columns)[..., dependent]
    floor = NOTHING * np.max(np.abs(left), initial=0.0)
    start = np.max(np.abs(left[0]), axis=0)
    many = left.size * np.sum(np.max(np.abs(left), axis=0) > floor, axis=0)
    taken: list[tuple[int, int]] = []
    while len(taken) < rank:
        entries = np.abs(left)
        for row, column in taken:
            entries[:, row], entries[:, :, column] = 0.0, 0.0
        size, full = entries[0], np.max(entries, axis=0) > floor
        largest = np.max(size, axis=0)
        fair = full & (size >= SHARE * largest)
        strong = fair & (largest >= SHARE**2 * start)
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
    """Every other row without column c."""
    pivot = left[:, r, c]
    safe = np.where(np.abs(pivot) > NOTHING, pivot, np.inf)
    less = left - left[:, :, c, None] * (left[:, r] / safe[:, None])[:, None, :]
    less[:, r] = left[:, r]
    return less


def _pivots(K: np.ndarray) -> tuple[float, ...]:
    """What elimination in the given order divides by, in the first state."""
    found = []
    for s in range(K.shape[-1]):
        found.append(float(K[0, s, s]))
        K = _eliminated(K, s, s)
    return tuple(found)
