"""Equations of loops and couplings: made dimensionless, their ranks, and which to solve.

Lengths are divided by the size of their loop, which is the sum of the fixed distances around it.
"""

import math
from collections.abc import Sequence

import numpy as np

from chasles.mathematics.linear import Vector
from chasles.model import Coupling, Loop, Model
from chasles.model.description import Closure
from chasles.model.spaces import freedom_units

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

SAMPLES = 16
"""Places at which the slope of a coupling is looked at."""


# Scales -------------------------------------------------------------------------------------------


def row_scales(model: Model) -> np.ndarray:
    """Scales of equations: 1 for rotations, 1/size for translations, 1/slope for couplings."""
    scales = []
    for loop in model.loops:
        T = loop.joint.constraint(loop.joint.neutral())
        scales += [1.0 / size(model, loop) if any(f.force) else 1.0 for f in T.columns]
    scales += [1.0 / _slope(model, coupling) for coupling in model.couplings]
    return np.array(scales)


def column_scales(model: Model) -> np.ndarray:
    """Scales of freedoms: 1 for rotations, the largest loop's size for translations."""
    largest = max((size(model, loop) for loop in model.loops), default=1.0)
    return np.array(freedom_units(model, largest))


def size(model: Model, loop: Loop) -> float:
    """The sum of the fixed distances around a loop, in m; 1 where there are none."""
    steps = [model.bodies[i].joint.placement.r for i, _ in loop.path]
    steps += [loop.predecessor.placement.r, loop.successor.placement.r]
    return sum(math.sqrt(r.dot(r)) for r in steps) or 1.0


def _slope(model: Model, coupling: Coupling) -> float:
    """The steepest slope of a coupling near neutral, for one rad or m; 1 where it has none."""
    rng = np.random.default_rng(0)
    found = [0.0]
    for _ in range(SAMPLES):
        near = {i: rng.uniform(-1.0, 1.0, model.bodies[i].joint.nv) for i in coupling.bodies}
        blocks = coupling.matrix({i: Vector(tuple(x.tolist())) for i, x in near.items()})
        found += [abs(entry) for block in blocks.values() for entry in block.rows[0]]
    return max(filter(math.isfinite, found)) or 1.0


# Ranks --------------------------------------------------------------------------------------------


def times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A x for each state."""
    return np.asarray(np.einsum("...ij,...j->...i", A, x))


def rank_of(A: np.ndarray, largest: float | None = None) -> tuple[int, np.ndarray]:
    """The rank of a matrix, and its singular values (one zero, if it has none)."""
    values = np.linalg.svd(A, compute_uv=False) if A.size else np.zeros(1)
    top = values[0] if largest is None else largest
    return int(np.count_nonzero(values > RANK * top)), values


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
    """Independent columns of A (states, rows, nv).

    The others are taken one after the other in an order, each unless what it adds to those taken is
    less than a share of what another would (threshold pivoting).
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
    """Return True if some coordinates determine all others, in one of the states of A at least.

    More than is needed may be given.
    """
    return bool(np.max(margin(np.delete(A, given, axis=-1))) > SINGULAR)


def beyond(A: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The equations between some coordinates whatever the others do, whose columns are zero."""
    rest = np.delete(np.arange(A.shape[-1]), given)
    U, s, _ = np.linalg.svd(A[..., rest], full_matrices=False)
    kept = U * (s > RANK * np.max(s, axis=-1, initial=0.0, keepdims=True))[..., None, :]
    left = A - kept @ (np.swapaxes(kept, -1, -2) @ A)
    left[..., rest] = 0.0
    return left


# Pivots (Featherstone 2008, section 8.8) ----------------------------------------------------------


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
    """The divisors of elimination in the given order, in the first state."""
    found = []
    for s in range(K.shape[-1]):
        found.append(float(K[0, s, s]))
        K = _eliminated(K, s, s)
    return tuple(found)
