"""Pivots of closed loops: which equations to solve for which freedoms (Featherstone 2008, 8.8)."""

from collections.abc import Sequence

import numpy as np

from chasles.mechanisms.ranks import NOTHING, SHARE, rank_of
from chasles.model.description import Closure


def choose(
    K: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    rank: int,
    dependent: np.ndarray,
    holonomic: Sequence[bool] = (),
    share: float = SHARE,
) -> Closure:
    """`rank` rows to solve for as many of the columns that may be dependent.

    Rows of position come first (`holonomic`, all by default), so that they alone determine the
    columns that they are solved for. share: as `SHARE`.

    K (states, rows, nv): the first state decides how large pivots are, all together where zeros
    are. Each step takes a fair pivot in a column with fewest entries at the start (so that loops
    stay apart), of these one that fills fewest zeros (Markowitz's rule), and the largest of those.
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
    """Every other row without column c."""
    pivot = left[:, r, c]
    safe = np.where(np.abs(pivot) > NOTHING, pivot, np.inf)
    less = left - left[:, :, c, None] * (left[:, r] / safe[:, None])[:, None, :]
    less[:, r] = left[:, r]
    return less


def _pivots(K: np.ndarray) -> tuple[float, ...]:
    """The divisors of elimination in the given order, in the first state."""
    found = []
    for s in range(K.shape[-1]):
        found.append(float(K[0, s, s]))
        K = _eliminated(K, s, s)
    return tuple(found)
