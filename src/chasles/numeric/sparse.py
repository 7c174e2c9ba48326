"""Sparse factorization of mass matrices (Featherstone 2008, section 6.5).

H (..., n, n) is symmetric. `parents[i]` < i is the parent of row i, or -1 if the parent is the
base. An entry is zero unless its row is an ancestor of its column or vice versa. Elimination from
the leaves to the root preserves these zeros. Only the lower triangles of H and L are read. Vectors
have shape (..., n), and batch shapes broadcast. For robots, use `ltl_factor` and `ltdl_factors`.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError

Parents = Sequence[int]


class _Row(NamedTuple):
    """Ancestors of a row (the rows on its path to the root), and all pairs of ancestors.

    `ancestors` begins with the row's parent. `upper` and `lower` contain the indices of each pair,
    with upper >= lower.
    """

    ancestors: np.ndarray
    upper: np.ndarray
    lower: np.ndarray


class Operations(NamedTuple):
    """Operation counts for a tree with n rows (Featherstone 2008, table 6.6).

    Let d be the number of rows on the path from a row to the root. D1 and D2 are the sums of d - 1
    and of d (d - 1) / 2 over all rows (Featherstone 2008, Eq 6.26 and 6.27). A factorization takes
    D2 multiplications, D2 additions and D1 divisions; LTL also takes n square roots. A solution
    takes 2 D1 multiplications, 2 D1 additions and n divisions (2 n for LTL).
    """

    n: int
    D1: int
    D2: int

    @property
    def entries(self) -> int:
        """Number of entries of H that may be nonzero, n + 2 D1."""
        return self.n + 2 * self.D1


def operations(parents: Parents) -> Operations:
    """Return the operation counts for a tree (Featherstone 2008, table 6.6).

    Parameters
    ----------
    parents : sequence of int, length n
        Parent of each row, or -1 if the parent is the base.

    Returns
    -------
    operations : Operations
        Number of rows n, and the sums D1 and D2 that determine the operation counts.

    Raises
    ------
    InputError
        If `parents` is not a sequence of integers with -1 <= parents[i] < i.

    Examples
    --------
    >>> from chasles.numeric import sparse
    >>> sparse.operations((-1, 0, 1))
    Operations(n=3, D1=3, D2=4)
    """
    rows = _rows(_checked("operations", parents))
    sizes = [len(row.ancestors) for row in rows]
    return Operations(len(rows), sum(sizes), sum(s * (s + 1) // 2 for s in sizes))


def pattern(parents: Parents) -> np.ndarray:
    """Return the sparsity pattern of H for a tree (Featherstone 2008, section 6.4).

    Parameters
    ----------
    parents : sequence of int, length n
        Parent of each row, or -1 if the parent is the base.

    Returns
    -------
    mask : ndarray of bool, shape (n, n)
        True for entries that may be nonzero.

    Raises
    ------
    InputError
        If `parents` is not a sequence of integers with -1 <= parents[i] < i.

    Examples
    --------
    >>> from chasles.numeric import sparse
    >>> int(sparse.pattern((-1, 0, 0)).sum())
    7
    """
    lower = _lower(_checked("pattern", parents))
    return lower | lower.T


def expanded_parents(parents: Parents, freedoms: Sequence[int]) -> tuple[int, ...]:
    """Return the parent of each row of H from the parents of bodies (Featherstone 2008, table 6.4).

    Parameters
    ----------
    parents : sequence of int
        Parent of each body, or -1 if the parent is the base.
    freedoms : sequence of int
        Number of degrees of freedom of each body's joint, which may be zero. The rows of one joint
        form a chain.

    Returns
    -------
    parents : tuple of int
        Parent of each row.

    Raises
    ------
    InputError
        If `parents` is not a sequence of integers with -1 <= parents[i] < i, or if `freedoms` does
        not contain one nonnegative integer per body.

    Examples
    --------
    >>> from chasles.numeric import sparse
    >>> sparse.expanded_parents((-1, 0), (3, 1))
    (-1, 0, 1, 2)
    """
    tree = _checked("expanded_parents", parents)
    counts = np.asarray(freedoms)
    if counts.shape != (len(tree),) or counts.dtype.kind not in "iu" or np.any(counts < 0):
        problem = f"`freedoms` must be {len(tree)} nonnegative integers, not {freedoms!r}"
        raise InputError("E-MATH-340", problem, part="expanded_parents")
    found: list[int] = []
    last: dict[int, int] = {-1: -1}
    for i, p in enumerate(tree):
        above = last[p]
        for _ in range(int(counts[i])):
            found.append(above)
            above = len(found) - 1
        last[i] = above
    return tuple(found)


# Factorization ---------------------------------------------------------------------------------


def factor_ltl(H: Any, parents: Parents) -> np.ndarray:
    """Factorize H = L' L with a lower triangular L (Featherstone 2008, table 6.3).

    Parameters
    ----------
    H : array_like, shape (..., n, n)
        Symmetric matrix. Only the lower triangle is read.
    parents : sequence of int, length n
        Parent of each row, or -1 if the parent is the base.

    Returns
    -------
    L : ndarray, shape (..., n, n)
        Lower triangular factor, with the same sparsity pattern as H.

    Raises
    ------
    InputError
        If `parents` is not valid, if H does not have shape (..., n, n) or is not finite, if an
        entry of H is not zero for two rows on different branches, or if a pivot is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import sparse
    >>> H, parents = np.array([[4.0, 2.0], [2.0, 2.0]]), (-1, 0)
    >>> L = sparse.factor_ltl(H, parents)
    >>> bool(np.allclose(L.T @ L, H))
    True
    """
    L, rows = _matrix("factor_ltl", H, parents)
    for k in range(len(rows) - 1, -1, -1):
        above, i, j = rows[k]
        _check_pivot("factor_ltl", L[..., k, k], k, positive=True)
        L[..., k, k] = np.sqrt(L[..., k, k])
        L[..., k, above] /= L[..., k, k, None]
        L[..., i, j] -= L[..., k, i] * L[..., k, j]
    return L


def factor_ltdl(H: Any, parents: Parents) -> tuple[np.ndarray, np.ndarray]:
    """Factorize H = L' D L with a unit lower triangular L (Featherstone 2008, table 6.3).

    Parameters
    ----------
    H : array_like, shape (..., n, n)
        Symmetric matrix. Only the lower triangle is read.
    parents : sequence of int, length n
        Parent of each row, or -1 if the parent is the base.

    Returns
    -------
    L : ndarray, shape (..., n, n)
        Unit lower triangular factor, with the same sparsity pattern as H.
    D : ndarray, shape (..., n)
        Diagonal entries of D.

    Raises
    ------
    InputError
        If `parents` is not valid, if H does not have shape (..., n, n) or is not finite, if an
        entry of H is not zero for two rows on different branches, or if a pivot is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import sparse
    >>> H, parents = np.array([[4.0, 2.0], [2.0, 2.0]]), (-1, 0)
    >>> L, D = sparse.factor_ltdl(H, parents)
    >>> bool(np.allclose(L.T @ np.diag(D) @ L, H))
    True
    """
    L, rows = _matrix("factor_ltdl", H, parents)
    for k in range(len(rows) - 1, -1, -1):
        above, i, j = rows[k]
        _check_pivot("factor_ltdl", L[..., k, k], k, positive=False)
        row = L[..., k, :].copy()
        L[..., k, above] /= L[..., k, k, None]
        L[..., i, j] -= L[..., k, i] * row[..., j]
    n = range(len(rows))
    D = L[..., n, n].copy()
    L[..., n, n] = 1.0
    return L, D


def solve_ltl(L: Any, b: Any, parents: Parents) -> np.ndarray:
    """Solve L' L x = b for x.

    Parameters
    ----------
    L : array_like, shape (..., n, n)
        Lower triangular factor. Only the lower triangle is read.
    b : array_like, shape (..., n)
        Right-hand side.
    parents : sequence of int, length n
        Parent of each row, or -1 if the parent is the base.

    Returns
    -------
    x : ndarray, shape (..., n)
        Solution.

    Raises
    ------
    InputError
        If `parents` is not valid, if an array does not have the documented shape, or if the matrix
        is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import sparse
    >>> H, parents = np.array([[4.0, 2.0], [2.0, 2.0]]), (-1, 0)
    >>> x = sparse.solve_ltl(sparse.factor_ltl(H, parents), [1.0, 0.0], parents)
    >>> bool(np.allclose(H @ x, [1.0, 0.0]))
    True
    """
    return solve_lower(L, solve_lower_transposed(L, b, parents), parents)


def solve_ltdl(L: Any, D: Any, b: Any, parents: Parents) -> np.ndarray:
    """Solve L' D L x = b for x.

    Parameters
    ----------
    L : array_like, shape (..., n, n)
        Lower triangular factor. Only the lower triangle is read.
    D : array_like, shape (..., n)
        Diagonal entries of D.
    b : array_like, shape (..., n)
        Right-hand side.
    parents : sequence of int, length n
        Parent of each row, or -1 if the parent is the base.

    Returns
    -------
    x : ndarray, shape (..., n)
        Solution.

    Raises
    ------
    InputError
        If `parents` is not valid, if an array does not have the documented shape, or if L is not
        finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import sparse
    >>> H, parents = np.array([[4.0, 2.0], [2.0, 2.0]]), (-1, 0)
    >>> x = sparse.solve_ltdl(*sparse.factor_ltdl(H, parents), [1.0, 0.0], parents)
    >>> bool(np.allclose(H @ x, [1.0, 0.0]))
    True
    """
    y = solve_lower_transposed(L, b, parents)
    pivots = np.asarray(D, dtype=float)
    if pivots.shape[-1:] != y.shape[-1:]:
        problem = f"D must have shape (..., {y.shape[-1]}), not {pivots.shape}"
        raise InputError("E-MATH-341", problem, part="solve_ltdl")
    return solve_lower(L, y / pivots, parents)


# Products and solutions (Featherstone 2008, table 6.5) ------------------------------------------


def multiply_lower(L: Any, x: Any, parents: Parents) -> np.ndarray:
    """Return the product L x.

    Parameters
    ----------
    L : array_like, shape (..., n, n)
        Lower triangular factor. Only the lower triangle is read.
    x : array_like, shape (..., n)
        Vector.
    parents : sequence of int, length n
        Parent of each row, or -1 if the parent is the base.

    Returns
    -------
    y : ndarray, shape (..., n)
        Product.

    Raises
    ------
    InputError
        If `parents` is not valid, if an array does not have the documented shape, or if the matrix
        is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import sparse
    >>> H, parents = np.array([[4.0, 2.0], [2.0, 2.0]]), (-1, 0)
    >>> sparse.multiply_lower(H, [1.0, 1.0], parents).tolist()
    [4.0, 4.0]
    """
    A, y, rows = _pair("multiply_lower", L, x, parents)
    given = y.copy()
    for i, (above, *_) in enumerate(rows):
        own = A[..., i, i] * given[..., i]
        y[..., i] = own + np.sum(A[..., i, above] * given[..., above], axis=-1)
    return y


def multiply_lower_transposed(L: Any, x: Any, parents: Parents) -> np.ndarray:
    """Return the product L' x.

    Parameters
    ----------
    L : array_like, shape (..., n, n)
        Lower triangular factor. Only the lower triangle is read.
    x : array_like, shape (..., n)
        Vector.
    parents : sequence of int, length n
        Parent of each row, or -1 if the parent is the base.

    Returns
    -------
    y : ndarray, shape (..., n)
        Product.

    Raises
    ------
    InputError
        If `parents` is not valid, if an array does not have the documented shape, or if the matrix
        is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import sparse
    >>> H, parents = np.array([[4.0, 2.0], [2.0, 2.0]]), (-1, 0)
    >>> sparse.multiply_lower_transposed(H, [1.0, 1.0], parents).tolist()
    [6.0, 2.0]
    """
    A, y, rows = _pair("multiply_lower_transposed", L, x, parents)
    given = y.copy()
    for i, (above, *_) in enumerate(rows):
        y[..., i] = A[..., i, i] * given[..., i]
        y[..., above] += A[..., i, above] * given[..., i, None]
    return y


def multiply_symmetric(H: Any, x: Any, parents: Parents) -> np.ndarray:
    """Return the product H x.

    Parameters
    ----------
    H : array_like, shape (..., n, n)
        Symmetric matrix. Only the lower triangle is read.
    x : array_like, shape (..., n)
        Vector.
    parents : sequence of int, length n
        Parent of each row, or -1 if the parent is the base.

    Returns
    -------
    y : ndarray, shape (..., n)
        Product.

    Raises
    ------
    InputError
        If `parents` is not valid, if an array does not have the documented shape, or if the matrix
        is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import sparse
    >>> H, parents = np.array([[4.0, 2.0], [2.0, 2.0]]), (-1, 0)
    >>> sparse.multiply_symmetric(H, [1.0, 1.0], parents).tolist()
    [6.0, 4.0]
    """
    A, y, rows = _pair("multiply_symmetric", H, x, parents)
    given = y.copy()
    for i, (above, *_) in enumerate(rows):
        own = A[..., i, i] * given[..., i]
        y[..., i] = own + np.sum(A[..., i, above] * given[..., above], axis=-1)
        y[..., above] += A[..., i, above] * given[..., i, None]
    return y


def solve_lower(L: Any, b: Any, parents: Parents) -> np.ndarray:
    """Solve L x = b for x.

    Parameters
    ----------
    L : array_like, shape (..., n, n)
        Lower triangular factor. Only the lower triangle is read.
    b : array_like, shape (..., n)
        Right-hand side.
    parents : sequence of int, length n
        Parent of each row, or -1 if the parent is the base.

    Returns
    -------
    x : ndarray, shape (..., n)
        Solution.

    Raises
    ------
    InputError
        If `parents` is not valid, if an array does not have the documented shape, or if the matrix
        is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import sparse
    >>> H, parents = np.array([[4.0, 2.0], [2.0, 2.0]]), (-1, 0)
    >>> sparse.solve_lower(H, [4.0, 4.0], parents).tolist()
    [1.0, 1.0]
    """
    A, x, rows = _pair("solve_lower", L, b, parents)
    for i, (above, *_) in enumerate(rows):
        x[..., i] -= np.sum(A[..., i, above] * x[..., above], axis=-1)
        x[..., i] /= A[..., i, i]
    return x


def solve_lower_transposed(L: Any, b: Any, parents: Parents) -> np.ndarray:
    """Solve L' x = b for x.

    Parameters
    ----------
    L : array_like, shape (..., n, n)
        Lower triangular factor. Only the lower triangle is read.
    b : array_like, shape (..., n)
        Right-hand side.
    parents : sequence of int, length n
        Parent of each row, or -1 if the parent is the base.

    Returns
    -------
    x : ndarray, shape (..., n)
        Solution.

    Raises
    ------
    InputError
        If `parents` is not valid, if an array does not have the documented shape, or if the matrix
        is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import sparse
    >>> H, parents = np.array([[4.0, 2.0], [2.0, 2.0]]), (-1, 0)
    >>> sparse.solve_lower_transposed(H, [4.0, 4.0], parents).tolist()
    [0.0, 2.0]
    """
    A, x, rows = _pair("solve_lower_transposed", L, b, parents)
    for i in range(len(rows) - 1, -1, -1):
        above = rows[i].ancestors
        x[..., i] /= A[..., i, i]
        x[..., above] -= A[..., i, above] * x[..., i, None]
    return x


# Checks ----------------------------------------------------------------------------------------


@cache
def _rows(parents: tuple[int, ...]) -> tuple[_Row, ...]:
    chains: list[list[int]] = []
    for p in parents:
        chains.append([] if p < 0 else [p, *chains[p]])
    found = []
    for chain in chains:
        pairs = [(i, j) for s, i in enumerate(chain) for j in chain[s:]]
        i, j = np.array(pairs, dtype=int).reshape(-1, 2).T
        found.append(_Row(np.array(chain, dtype=int), i, j))
    return tuple(found)


@cache
def _lower(parents: tuple[int, ...]) -> np.ndarray:
    mask = np.eye(len(parents), dtype=bool)
    for i, row in enumerate(_rows(parents)):
        mask[i, row.ancestors] = True
    mask.flags.writeable = False
    return mask


def _checked(function: str, parents: Parents) -> tuple[int, ...]:
    """Check that each parent precedes its child, and return the parents as integers."""
    given = np.asarray(parents)
    right = given.ndim == 1 and (given.dtype.kind in "iu" or not given.size)
    if not right or np.any(given < -1) or np.any(given >= np.arange(len(given))):
        problem = f"`parents` must be integers with -1 <= parents[i] < i, not {parents!r:.60}"
        remedy = "number the rows from 0 at the root; use -1 for rows attached to the base"
        raise InputError("E-MATH-342", problem, remedy, part=function)
    return tuple(map(int, given))


def _square(function: str, matrix: Any, n: int) -> np.ndarray:
    A = np.asarray(matrix, dtype=float)
    if A.shape[-2:] != (n, n) or not np.all(np.isfinite(A)):
        problem = f"the matrix must be finite with shape (..., {n}, {n}), not {A.shape}"
        raise InputError(
            "E-MATH-343", problem, "pass one row for each entry of `parents`", part=function
        )
    return A


def _matrix(function: str, H: Any, parents: Parents) -> tuple[np.ndarray, tuple[_Row, ...]]:
    """Check that H has the tree's sparsity; return its lower triangle, and each row's ancestors."""
    tree = _checked(function, parents)
    A = _square(function, H, len(tree))
    extra = np.argwhere((np.tril(A) != 0.0) & ~_lower(tree))
    if len(extra):
        i, j = extra[0][-2:]
        problem = f"entry [{i}, {j}] is not zero, but its row and column are on different branches"
        raise InputError("E-MATH-344", problem, "check `parents`", part=function)
    return np.tril(A), _rows(tree)


def _pair(
    function: str, matrix: Any, vector: Any, parents: Parents
) -> tuple[np.ndarray, np.ndarray, tuple[_Row, ...]]:
    """Return the matrix, the vector, and the ancestors of each row.

    The vector is a copy, broadcast to the common batch shape of the matrix and the vector.
    """
    tree = _checked(function, parents)
    A, x = _square(function, matrix, len(tree)), np.asarray(vector, dtype=float)
    if x.shape[-1:] != (len(tree),):
        problem = f"the vector must have shape (..., {len(tree)}), not {x.shape}"
        raise InputError("E-MATH-345", problem, part=function)
    try:
        lead = np.broadcast_shapes(A.shape[:-2], x.shape[:-1])
    except ValueError:
        problem = f"batch shapes {A.shape[:-2]} and {x.shape[:-1]} do not broadcast"
        raise InputError("E-MATH-346", problem, part=function) from None
    return A, np.array(np.broadcast_to(x, (*lead, len(tree)))), _rows(tree)


def _check_pivot(function: str, pivot: np.ndarray, k: int, *, positive: bool) -> None:
    if np.any(pivot <= 0.0) if positive else np.any(pivot == 0.0):
        kind = "not positive definite" if positive else "singular"
        problem = f"the matrix is {kind}: the pivot of row {k} is {np.min(pivot):.3g}"
        raise InputError(
            "E-MATH-347",
            problem,
            "check the inertias of the bodies that the joint of this row moves",
            part=function,
        )
