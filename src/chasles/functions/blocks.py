"""Newton's method for independent blocks of equations, each with its own step and damping."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from chasles.functions.numeric import STEPS, Found, least_step


@dataclass(frozen=True)
class Blocks:
    """Independent blocks of equations and coordinates, all of the same size.

    Row k of each array contains the indices for block k: its residual entries (`rows`), velocity
    coordinates (`v`) and position coordinates (`q`).
    """

    rows: np.ndarray
    v: np.ndarray
    q: np.ndarray

    def sizes(self, r: np.ndarray) -> np.ndarray:
        """Return the norm of each block of residuals r (n, m), as an array (n, blocks)."""
        return np.asarray(np.linalg.norm(r[:, self.rows], axis=-1))


def solve(
    residual: Callable[[np.ndarray], np.ndarray],
    matrix: Callable[[np.ndarray], np.ndarray],
    integrate: Callable[[np.ndarray, np.ndarray], np.ndarray],
    q: np.ndarray,
    blocks: Sequence[Blocks],
    *,
    rows: np.ndarray,
    columns: np.ndarray,
    tolerance: float,
    rank: float,
) -> Found:
    """Solve each block as in `numeric.solve`, independently of the other blocks.

    Only small matrices are decomposed, so the time per step is proportional to the number of
    blocks. The tolerance is divided among the blocks so that it bounds the norm of the whole
    residual.
    """
    q, enough = q.copy(), tolerance / math.sqrt(sum(len(each.rows) for each in blocks))
    r = rows * residual(q)
    searches = [_Search(each, r, enough) for each in blocks]
    for _ in range(STEPS):
        some = np.flatnonzero(np.any([each.moving.any(axis=-1) for each in searches], axis=0))
        if not len(some):
            break
        A = rows[:, None] * matrix(q[some]) * columns
        step = np.zeros((len(some), A.shape[-1]))
        for each in searches:
            each.propose(some, A, r, rank, step)
        trial = integrate(q[some], columns * step)
        left = rows * residual(trial)
        for each in searches:
            each.accept(some, (q, r), (trial, left))
    lost = np.any([np.isinf(each.size).any(axis=-1) for each in searches], axis=0)
    return Found(q, r, np.where(lost, np.inf, np.linalg.norm(r, axis=-1)))


class _Search:
    """Damped Newton iteration for blocks of equations of the same size, in all states at once.

    Arrays such as `size` and `damping` have shape (states, blocks).
    """

    def __init__(self, blocks: Blocks, r: np.ndarray, enough: float) -> None:
        self.blocks, self.enough = blocks, enough
        self.size = blocks.sizes(r)
        self.size[~np.isfinite(self.size)] = np.inf
        self.damping = np.full(self.size.shape, 1e-2)
        self.moving = (self.size != 0.0) & (self.size != np.inf)

    def propose(
        self, some: np.ndarray, A: np.ndarray, r: np.ndarray, rank: float, step: np.ndarray
    ) -> None:
        """Write the steps of active blocks to `step`; drop blocks whose matrix is not finite."""
        s, k = np.nonzero(self.moving[some])
        rows, v = self.blocks.rows[k], self.blocks.v[k]
        part = A[s[:, None, None], rows[:, :, None], v[:, None, :]]
        able = np.isfinite(part).all(axis=(-1, -2))
        self.moving[some[s], k] = able
        s, k, rows, v = s[able], k[able], rows[able], v[able]
        at = some[s], k
        slow = self.damping[at] * self.size[at] ** 2
        step[s[:, None], v] = least_step(part[able], r[at[0][:, None], rows], slow, rank)

    def accept(
        self,
        some: np.ndarray,
        here: tuple[np.ndarray, np.ndarray],
        there: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """Update the positions and residuals of all blocks whose residual decreased."""
        norm, before, tried = self.blocks.sizes(there[1]), self.size[some], self.moving[some]
        better, halved = tried & (norm < before), norm < 0.5 * before
        s, k = np.nonzero(better)
        for old, new, places in zip(here, there, (self.blocks.q, self.blocks.rows), strict=True):
            old[some[s][:, None], places[k]] = new[s[:, None], places[k]]
        self.size[some] = np.where(better, norm, before)
        self.damping[some] *= np.where(better, 0.2, 10.0)
        resting = (self.size[some] <= self.enough) & ~halved
        self.moving[some] = tried & ~resting & (self.damping[some] <= 1e12)
