"""Linear algebra on arrays of expressions, in which terms with constant zeros are skipped."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.expr import Number, Scalar
from chasles.motion.geometry.closed_forms import absolute, less, maximum, select


def absent(x: Any) -> bool:
    """Return True if x is the number zero; symbols count as nonzero."""
    return not isinstance(x, Scalar) and x == 0.0


def zeros(*shape: int) -> np.ndarray:
    """Return an array of zeros of dtype object, whose entries may be replaced by expressions."""
    return np.full(shape, 0.0, dtype=object)


def dot(a: Any, b: Any) -> Number:
    total: Number = 0.0
    for x, y in zip(a, b, strict=True):
        if not absent(x) and not absent(y):
            total = total + x * y
    return total


def total(parts: Sequence[np.ndarray]) -> np.ndarray:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole


def symmetric(A: np.ndarray) -> np.ndarray:
    return 0.5 * (A + A.T)


def skew(r: np.ndarray) -> np.ndarray:
    x, y, z = r
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]], dtype=object)


def columns(carriers: Sequence[np.ndarray], k: int) -> list[Any]:
    """Return column k of each Jacobian as (shared column, sign), or None if the column is zero.

    Equal or opposite columns share one object. The Jacobians may differ in the number of rows.
    """
    found: list[Any] = []
    unique: list[np.ndarray] = []
    for J in carriers:
        column = J[:, k]
        if all(absent(x) for x in column):
            found.append(None)
            continue
        for known in unique:
            if _same(known, column):
                found.append((known, 1.0))
                break
            if _same(known, -column):
                found.append((known, -1.0))
                break
        else:
            unique.append(column)
            found.append((column, 1.0))
    return found


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return len(a) == len(b) and all(
        x is y or (not isinstance(x, Scalar) and x == y) for x, y in zip(a, b, strict=True)
    )


def grouped(columns: Sequence[Any], wrenches: Sequence[np.ndarray]) -> list[tuple[Any, Any]]:
    """Return each distinct Jacobian column with the sum of the wrenches that it multiplies.

    `columns` contains an entry for each wrench: None for a zero column, or a pair of the column
    and the sign of the wrench.
    """
    found: list[list[Any]] = []
    for column, wrench in zip(columns, wrenches, strict=True):
        if column is None:
            continue
        for row in found:
            if row[0] is column[0]:
                row[1] = row[1] + column[1] * wrench
                break
        else:
            found.append([column[0], column[1] * wrench])
    return [(a, b) for a, b in found]


def solved(
    A: np.ndarray, b: np.ndarray, order: Sequence[int], floor: np.ndarray | None
) -> np.ndarray:
    """Solve A x = b by factorization A = L' D L, starting from the last index in `order`.

    Pivots smaller than `floor` are replaced by `floor`.
    """
    n, places = len(order), list(order)
    lower = [
        [A[max(places[i], places[j]), min(places[i], places[j])] for j in range(i + 1)]
        for i in range(n)
    ]
    D: list[Number] = [0.0] * n
    for k in range(n - 1, -1, -1):
        pivot = lower[k][k]
        D[k] = 1.0 / (pivot if floor is None else maximum(pivot, floor[places[k]]))
        for i in (i for i in range(k - 1, -1, -1) if not absent(lower[k][i])):
            a = lower[k][i] * D[k]
            for j in range(i + 1):
                if not absent(lower[k][j]):
                    lower[i][j] = lower[i][j] - a * lower[k][j]
            lower[k][i] = a
    x = [b[k] for k in places]
    for i in range(n - 1, -1, -1):
        for j in range(i):
            if not absent(lower[i][j]):
                x[j] = x[j] - lower[i][j] * x[i]
    x = [value * d for value, d in zip(x, D, strict=True)]
    for i in range(n):
        for j in range(i):
            if not absent(lower[i][j]):
                x[i] = x[i] - lower[i][j] * x[j]
    found = zeros(n)
    found[places] = x
    return found


def solved_square(
    A: np.ndarray, b: np.ndarray, order: Sequence[int], floor: np.ndarray
) -> np.ndarray:
    """Solve A x = b by elimination, starting from the last index in `order`.

    A may be asymmetric, but its pattern of zeros must be symmetric. Pivots smaller than `floor` are
    replaced by `floor`.
    """
    n, places = len(order), list(order)
    rows = [[A[i, j] for j in places] for i in places]
    x, inverse = [b[k] for k in places], [0.0] * n
    for k in range(n - 1, -1, -1):
        pivot, least = rows[k][k], floor[places[k]]
        inverse[k] = 1.0 / select(less(absolute(pivot), least), least, pivot)
        for i in (i for i in range(k) if not absent(rows[i][k])):
            a = rows[i][k] * inverse[k]
            x[i] = x[i] - a * x[k]
            for j in range(k):
                if not absent(rows[k][j]):
                    rows[i][j] = rows[i][j] - a * rows[k][j]
    for i in range(n):
        for j in range(i):
            if not absent(rows[i][j]):
                x[i] = x[i] - rows[i][j] * x[j]
        x[i] = x[i] * inverse[i]
    found = zeros(n)
    found[places] = x
    return found
