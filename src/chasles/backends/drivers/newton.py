"""Newton's method on a manifold, damped: many states at once, each with its own damping."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

STEPS = 100
"""At most. From a fair guess it takes 4 to 10; at a double root (a dead point) about 30."""

REACH = 0.5
"""The longest step of a coordinate, in its own scale: a longer one may jump to another branch."""


@dataclass(frozen=True)
class Found:
    """Where the iteration ended for each state: q, what is left of the residual, and its norm.

    The norm is infinite where the residual has no value.
    """

    q: np.ndarray
    residual: np.ndarray
    size: np.ndarray


def solve(
    residual: Callable[[np.ndarray], np.ndarray],
    matrix: Callable[[np.ndarray], np.ndarray],
    integrate: Callable[[np.ndarray, np.ndarray], np.ndarray],
    q: np.ndarray,
    *,
    rows: np.ndarray,
    columns: np.ndarray,
    tolerance: float,
    rank: float,
) -> Found:
    """Move each q (n, nq) by steps of `integrate` until its residual (n, m) vanishes.

    matrix: the derivative (n, m, nv) of the residual, exact where that is zero. rows, columns: the
    scales that make residuals and steps dimensionless; a coordinate with scale 0 is held. Steps are
    those of least norm (singular values below `rank` times the largest count as zero), damped by
    Levenberg and Marquardt in proportion to the squared residual, so that they are Newton's at the
    end. A state rests when the norm of its residual is below `tolerance` and halves no more, or
    when no step makes it smaller, or where residual or matrix have no value.
    """
    q = q.copy()
    r = rows * residual(q)
    size = np.linalg.norm(r, axis=-1)
    size[~np.isfinite(size)] = np.inf
    damping = np.full(len(q), 1e-2)
    moving = np.flatnonzero((size != 0.0) & (size != np.inf))
    for _ in range(STEPS):
        A = rows[:, None] * matrix(q[moving]) * columns
        able = np.isfinite(A).all(axis=(-1, -2))
        moving, A = moving[able], A[able]
        if not len(moving):
            break
        step = _step(A, r[moving], damping[moving] * size[moving] ** 2, rank)
        trial = integrate(q[moving], columns * step)
        left = rows * residual(trial)
        norm = np.linalg.norm(left, axis=-1)
        better, halved = norm < size[moving], norm < 0.5 * size[moving]
        accepted = moving[better]
        q[accepted], r[accepted], size[accepted] = trial[better], left[better], norm[better]
        damping[moving] *= np.where(better, 0.2, 10.0)
        stuck = damping[moving] > 1e12
        moving = moving[~(stuck | ((size[moving] <= tolerance) & ~halved))]
    return Found(q, r, size)


def _step(A: np.ndarray, r: np.ndarray, damping: np.ndarray, rank: float) -> np.ndarray:
    """x of least norm that minimises |A x + r|^2 + damping |x|^2, no entry beyond REACH."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    kept = s > rank * s[:, :1]
    gain = np.where(kept, s, 0.0) / np.where(kept, s * s + damping[:, None], 1.0)
    x = -np.einsum("nkv,nk,nmk,nm->nv", Vt, gain, U, r)
    longest = np.max(np.abs(x), axis=-1, initial=0.0, keepdims=True)
    return x * np.minimum(1.0, REACH / np.maximum(longest, REACH))
