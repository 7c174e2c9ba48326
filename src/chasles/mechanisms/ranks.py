"""Ranks of the matrices of closed loops."""

from collections.abc import Sequence

import numpy as np

RANK = 1e-8
"""A singular value of the loops' matrix below this part of the largest is zero."""

SINGULAR = 1e-6
"""Below this part of the largest singular value the dependent freedoms are not determined: a
residual of 1e-13 then leaves a position uncertain by more than 1e-7."""

SHARE = 0.1
"""A freedom may be made dependent if it adds this part of what the best one would. A pivot is fair
that is at least this part of the largest left in its column, where that is at least the square of
it beside the largest that the column had (or where no column has such)."""

NOTHING = 1e-12
"""An entry below this part of the largest is rounding."""


def times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A x for each state."""
    return np.asarray(np.einsum("...ij,...j->...i", A, x))


def rank_of(
    A: np.ndarray, largest: float | None = None, *, share: float = RANK
) -> tuple[int, np.ndarray]:
    """The rank of a matrix, and its singular values (one zero, if it has none).

    Those above a share of the largest count.
    """
    values = np.linalg.svd(A, compute_uv=False) if A.size else np.zeros(1)
    top = values[0] if largest is None else largest
    return int(np.count_nonzero(values > share * top)), values


def null_space(A: np.ndarray, rank: int) -> np.ndarray:
    """Orthonormal motions x with A x = 0, of matrices with a rank: (..., columns, motions)."""
    return np.asarray(np.swapaxes(np.linalg.svd(A)[2][..., rank:, :], -1, -2))


def smallest(A: np.ndarray, rank: int) -> np.ndarray:
    """The smallest singular value that counts, of matrices with a rank (infinite if that is 0)."""
    if not rank:
        return np.full(A.shape[:-2], np.inf)
    return np.asarray(np.linalg.svd(A, compute_uv=False)[..., rank - 1])


def spans(A: np.ndarray, rank: int) -> np.ndarray:
    """For each column of A how far it goes in motions x of unit length with A x = 0, at most."""
    if not A.size:
        return np.ones(A.shape[-1])
    return np.asarray(np.linalg.norm(np.linalg.svd(A)[2][rank:], axis=0))


def margin(A: np.ndarray) -> np.ndarray:
    """The smallest singular value of each matrix beside the largest (0 if it has too few rows)."""
    if A.shape[-1] == 0:
        return np.ones(len(A))
    if A.shape[-2] < A.shape[-1]:
        return np.zeros(len(A))
    values = np.linalg.svd(A, compute_uv=False)
    return values[:, -1] / np.maximum(values[:, 0], 1e-300)


def independent_columns(
    A: np.ndarray, rank: int, order: Sequence[int], share: float = SHARE
) -> np.ndarray:
    """Independent columns of A (states, rows, nv), by threshold pivoting.

    The others are taken in an order, unless they add less than a share of what another would.
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
    """Return True if given coordinates, or more than are needed, determine all others somewhere."""
    return bool(np.max(margin(np.delete(A, given, axis=-1))) > SINGULAR)
